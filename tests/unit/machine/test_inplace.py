"""Loops that change an array at every step: in place, and never somebody else's."""

from dplc.flat import term as f
from unit.machine.native import Main, agree

VECTOR = f.Arr(f.F64, 1)


def changing(m: Main, count: f.Atom, start: f.Atom, step) -> f.Var:
    """for i < count state (s = start) { step(i, s) }"""
    i, s = m.var("i", f.I64), m.var("s", VECTOR)
    with m.inside() as binds:
        after = step(i, s)
    return m.one(f.For(i, count, (s,), (start,), f.Block(tuple(binds), (after,))), VECTOR)


def bump(m: Main):
    def step(i, s):
        return m.op("update", (s, m.op("add", (m.op("index", (s, i)), m.float(1.0))), i))

    return step


def test_the_original_stays(capfd):
    m = Main()
    a = m.build(m.int(4), lambda i: m.op("cast", (i,), to="f64"), VECTOR)
    b = changing(m, m.int(4), a, bump(m))
    c = changing(m, m.int(2), b, bump(m))
    for x in (a, b, c):
        m.numbers(x)
    assert agree(m.program(), capfd) == "0.0 1.0 2.0 3.0 1.0 2.0 3.0 4.0 2.0 3.0 3.0 4.0"


def test_no_steps_change_nothing(capfd):
    m = Main()
    a = m.build(m.int(3), lambda i: m.float(1.0), VECTOR)
    null = changing(m, m.int(0), f.Const(None, VECTOR), lambda i, s: add(m, s, i))
    m.number(m.op("is_null", (null,)))
    m.numbers(changing(m, m.int(0), a, bump(m)))
    agree(m.program(), capfd)


def add(m: Main, s: f.Atom, i: f.Atom) -> f.Var:
    return m.op("acc_index", (s, m.float(0.5), m.int(3), m.op("mod", (i, m.int(3)))), rank=1)


def test_accumulators_may_begin_as_null(capfd):
    m = Main()
    a = changing(m, m.int(7), f.Const(None, VECTOR), lambda i, s: add(m, add(m, s, i), m.int(2)))
    m.numbers(a)
    m.numbers(changing(m, m.int(2), a, lambda i, s: add(m, s, i)))
    m.numbers(a)
    agree(m.program(), capfd)


def test_two_states_from_one_array(capfd):
    m = Main()
    a = m.build(m.int(2), lambda i: m.float(1.0), VECTOR)
    i, s, t = m.var("i", f.I64), m.var("s", VECTOR), m.var("t", VECTOR)
    with m.inside() as binds:
        s2 = m.op("update", (s, m.float(5.0), i))
        t2 = m.op("update", (t, m.op("index", (s2, m.int(0))), i))
    loop = f.For(i, m.int(2), (s, t), (a, a), f.Block(tuple(binds), (s2, t2)))
    for x in (*m.bind(loop, (VECTOR, VECTOR)), a):
        m.numbers(x)
    agree(m.program(), capfd)


def test_states_that_change_places(capfd):
    m = Main()
    a = m.build(m.int(2), lambda i: m.float(1.0), VECTOR)
    b = m.build(m.int(2), lambda i: m.float(2.0), VECTOR)
    i, s, t = m.var("i", f.I64), m.var("s", VECTOR), m.var("t", VECTOR)
    with m.inside() as binds:
        s2 = m.op("update", (s, m.op("cast", (i,), to="f64"), m.int(0)))
    loop = f.For(i, m.int(3), (s, t), (a, b), f.Block(tuple(binds), (t, s2)))
    for x in (*m.bind(loop, (VECTOR, VECTOR)), a, b):
        m.numbers(x)
    agree(m.program(), capfd)


def test_while_too(capfd):
    m = Main()
    a = m.build(m.int(3), lambda i: m.float(1.0), VECTOR)
    k, s = m.var("k", f.I64), m.var("s", VECTOR)
    with m.inside() as cond:
        more = m.op("lt", (k, m.int(3)))
    with m.inside() as binds:
        after = (m.op("add", (k, m.int(1))), m.op("update", (s, m.op("cast", (k,), to="f64"), k)))
    rhs = f.While((k, s), (m.int(0), a), f.Block(tuple(cond), (more,)), f.Block(tuple(binds), after))
    m.numbers(m.bind(rhs, (f.I64, VECTOR))[1])
    m.numbers(a)
    agree(m.program(), capfd)


def test_a_condition_that_prints_is_asked_once_a_step(capfd):
    m = Main()
    a = m.build(m.int(3), lambda i: m.float(1.0), VECTOR)
    k, s = m.var("k", f.I64), m.var("s", VECTOR)
    with m.inside() as cond:
        m.number(k)
        more = m.op("lt", (k, m.int(2)))
    with m.inside() as binds:
        after = (m.op("add", (k, m.int(1))), m.op("update", (s, m.float(7.0), k)))
    rhs = f.While((k, s), (m.int(0), a), f.Block(tuple(cond), (more,)), f.Block(tuple(binds), after))
    m.numbers(m.bind(rhs, (f.I64, VECTOR))[1])
    assert agree(m.program(), capfd) == "0 1 2 7.0 7.0 1.0"


def in_a_branch(m: Main, step, otherwise=None):
    """A step that changes the array where i > 1 only; or in another way elsewhere."""

    def both(i, s):
        more = m.op("lt", (m.int(1), i))
        with m.inside() as then:
            a = step(i, s)
        with m.inside() as other:
            b = otherwise(i, s) if otherwise else s
        return m.one(f.If(more, f.Block(tuple(then), (a,)), f.Block(tuple(other), (b,))), VECTOR)

    return both


def test_changes_in_a_branch_after_a_change(capfd):
    m = Main()
    a = m.build(m.int(4), lambda i: m.float(1.0), VECTOR)
    b = changing(m, m.int(4), m.op("update", (a, m.float(9.0), m.int(0))), in_a_branch(m, bump(m)))
    c = changing(m, m.int(4), m.op("update", (b, m.float(8.0), m.int(1))), in_a_branch(m, bump(m), bump(m)))
    d = changing(m, m.int(2), m.op("update", (c, m.float(7.0), m.int(3))), in_a_branch(m, bump(m)))
    for x in (a, b, c, d):
        m.numbers(x)
    assert agree(m.program(), capfd) == ("1.0 1.0 1.0 1.0 9.0 1.0 2.0 2.0 10.0 9.0 3.0 3.0 10.0 9.0 3.0 7.0")


def test_additions_in_a_branch(capfd):
    m = Main()
    first = m.op("acc_index", (f.Const(None, VECTOR), m.float(0.25), m.int(3), m.int(1)), rank=1)
    a = changing(m, m.int(5), first, in_a_branch(m, lambda i, s: add(m, add(m, s, i), m.int(0))))
    never = changing(m, m.int(2), f.Const(None, VECTOR), in_a_branch(m, lambda i, s: add(m, s, i)))
    m.numbers(a)
    m.number(m.op("is_null", (never,)))
    m.numbers(changing(m, m.int(4), a, in_a_branch(m, lambda i, s: add(m, s, i), lambda i, s: s)))
    m.numbers(a)
    agree(m.program(), capfd)


def test_a_branch_that_gives_another_array(capfd):
    m = Main()
    a = m.build(m.int(4), lambda i: m.float(1.0), VECTOR)
    b = m.build(m.int(4), lambda i: m.float(2.0), VECTOR)
    start = m.op("update", (a, m.float(9.0), m.int(0)))
    m.numbers(changing(m, m.int(4), start, in_a_branch(m, bump(m), lambda i, s: b)))
    m.numbers(b)
    agree(m.program(), capfd)
