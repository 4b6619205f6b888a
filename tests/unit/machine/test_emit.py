"""Control, calls, data and failures in native code."""

import pytest
from dpl.diagnostics import DplError
from dplc.flat import term as f
from unit.machine.native import Main, agree, native

LIST = f.DataDecl("list", (None, f.Tup((f.I64, f.Data("list")))))
TREE = f.DataDecl("tree", (None, f.F64, f.Tup((f.Data("tree"), f.Data("tree"))), f.Tup(())))


def recursive(name: str, params: tuple[f.Var, ...], results: tuple[f.Type, ...], stop, go) -> f.Fn:
    """fn name(n, ...) = if n <= 0 then stop () else go ()"""
    m = Main()
    cond = m.op("le", (params[0], m.int(0)))
    with m.inside() as yes:
        then = f.Block(tuple(yes), stop(m))
    with m.inside() as no:
        given = go(m)
        other = f.Block(tuple(no), given)
    then = f.Block(tuple(yes), then.results)
    out = m.bind(f.If(cond, then, other), results)
    return f.Fn(name, params, results, f.Block(tuple(m.binds), tuple(out)))


def total(n: f.Var) -> f.Fn:
    """n - ((n - 1) - ((n - 2) - ...)), not in tail position."""

    def go(m: Main) -> tuple[f.Atom, ...]:
        rest = m.call("total", (m.op("sub", (n, m.int(1))),), f.I64)
        return (m.op("sub", (n, rest)),)

    return recursive("total", (n,), (f.I64,), lambda m: (m.int(0),), go)


def test_a_million_calls_deep(capfd):
    m = Main()
    m.number(m.call("total", (m.int(1_000_000),), f.I64))
    assert native(m.program((total(f.Var("n", f.I64)),)), capfd).split() == ["500000"]


def test_recursion_without_end_is_an_error(capfd, monkeypatch):
    monkeypatch.setenv("DPL_STACK", "16")
    m = Main()
    m.number(m.call("total", (m.int(1 << 40),), f.I64))
    with pytest.raises(DplError, match="recursion is too deep"):
        native(m.program((total(f.Var("n", f.I64)),)), capfd)


def test_mutual_tail_calls_take_no_stack(capfd, monkeypatch):
    """With more arguments and results than registers take."""
    monkeypatch.setenv("DPL_STACK", "16")
    state = tuple(f.Var(f"s{i}", f.I64 if i < 8 else f.F64) for i in range(12))
    results = tuple(v.ty for v in state)

    def hop(name: str, to: str) -> f.Fn:
        n = f.Var("n", f.I64)

        def go(m: Main) -> tuple[f.Atom, ...]:
            turned = (*state[1:8], state[0], *state[9:], state[8])
            return tuple(m.bind(f.Call(to, (m.op("sub", (n, m.int(1))), *turned)), results))

        return recursive(name, (n, *state), results, lambda m: state, go)

    m = Main()
    args = (m.int(3_000_003), *(m.int(i) for i in range(8)), *(m.float(i / 4) for i in range(4)))
    for x in m.bind(f.Call("ping", args), results):
        m.number(x)
    expected = [str((i + 3) % 8) for i in range(8)] + [str((i + 3) % 4 / 4) for i in range(4)]
    assert native(m.program((hop("ping", "pong"), hop("pong", "ping"))), capfd).split() == expected


def test_a_list_of_a_million_is_dropped(capfd):
    m = Main()
    i, state = f.Var("i", f.I64), f.Var("l", f.Data("list"))
    cell, more = f.Var("c", f.Tup((f.I64, state.ty))), f.Var("m", state.ty)
    body = f.Block((f.Bind((cell,), f.TupMake((i, state))), f.Bind((more,), f.ConMake("list", 1, cell))), (more,))
    nil = m.one(f.ConMake("list", 0, None), state.ty)
    whole = m.one(f.For(i, m.int(1_000_000), (state,), (nil,), body), state.ty)
    m.effect("drop", (whole,))
    m.say("fine")
    native(m.program(datas=(LIST,)), capfd)


def test_switches(capfd):
    m = Main()
    tree = f.Data("tree")
    leaf = m.one(f.ConMake("tree", 1, m.float(2.5)), tree)
    end = m.one(f.ConMake("tree", 0, None), tree)
    pair = m.one(f.TupMake((leaf, end)), f.Tup((tree, tree)))
    node, unit = m.one(f.ConMake("tree", 2, pair), tree), m.one(f.ConMake("tree", 3, f.Const((), f.UNIT)), tree)
    for value in (leaf, end, node, unit):
        x = f.Var(m.supply.fresh("x"), f.F64)
        cases = (f.Case(0, None, f.Block((), (m.float(-1.0),))), f.Case(1, x, f.Block((), (x,))))
        m.number(m.one(f.Switch(value, cases, f.Block((), (m.float(9.0),))), f.F64))
    for k in (0, 2, 7):
        arms = tuple(f.Case(t, None, f.Block((), (m.int(t * 10),))) for t in (0, 1, 2))
        m.number(m.one(f.Switch(m.int(k), arms, f.Block((), (m.int(99),))), f.I64))
    agree(m.program(datas=(TREE,)), capfd)


def test_while_keeps_what_its_steps_give(capfd):
    m = Main()
    s = f.Var("s", f.I64)
    with m.inside() as cond:
        low = m.op("lt", (s, m.int(100)))
    with m.inside() as step:
        more = m.op("add", (s, m.int(3)))
        real = m.op("cast", (s,), to="f64")
    body = f.Block(tuple(step), (more, real, s))
    kept = f.Arr(f.Tup((f.F64, f.I64)), 1)
    last, array = m.bind(f.While((s,), (m.int(1),), f.Block(tuple(cond), (low,)), body, 2), (f.I64, kept))
    m.number(last)
    m.number(m.op("dim", (array,), k=0))
    pair = m.op("index", (array, m.int(20)))
    m.number(m.one(f.TupGet(pair, 0), f.F64))
    assert agree(m.program(), capfd) == "100 33 61.0"


def failing(build) -> f.Program:
    m = Main()
    m.say("before\n")
    m.effect("write", (m.op("buf_take", ()),))
    a = m.build(m.int(3), lambda i: i, f.Arr(f.I64, 1))
    build(m, a)
    return m.program()


FAILURES = {
    "index 5 is out of bounds for length 3": lambda m, a: m.number(m.op("index", (a, m.int(5)))),
    "index -1 is out of bounds for length 3": lambda m, a: m.number(m.op("index", (a, m.int(-1)))),
    "the slice 2:4 is out of bounds for length 3": lambda m, a: m.numbers(m.op("slice", (a, m.int(2), m.int(4)))),
    "an array cannot have -2 elements": lambda m, a: m.numbers(m.op("fill", (m.int(-2), m.int(0)))),
    "out of memory": lambda m, a: m.numbers(m.op("fill", (m.int(1 << 43), m.int(0)))),
    "division by zero": lambda m, a: m.numbers(m.op("div", (a, m.int(0)))),
    r"sizes \[2\] and \[3\] do not fit together": lambda m, a: m.numbers(
        m.op("add", (m.op("slice", (a, m.int(1), m.int(3))), a))
    ),
    "n: 3 is not 4": lambda m, a: m.effect("check_equal", (m.op("dim", (a,), k=0), m.int(4)), what="n"),
    "alas": lambda m, a: m.effect("fail", (f.Const("alas", f.STR),), code="R0701"),
}


@pytest.mark.parametrize("message", FAILURES)
def test_failures(message, capfd):
    with pytest.raises(DplError, match=message):
        native(failing(FAILURES[message]), capfd)
    assert capfd.readouterr().out == "before\n"
