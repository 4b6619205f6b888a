"""Derivatives of flat functions: forward and reverse against slopes, and against each other at second order."""

from __future__ import annotations

import math
import re

import pytest
from dpl.diagnostics import DplError
from dplc.ad import derivatives
from dplc.ad.differentiate import differentiate
from dplc.flat import term as f
from dplc.flat.build import integer
from dplc.flat.interp import Array, Cell
from dplc.passes import NeedsInterpreter
from flatly import (
    INT,
    VEC,
    Builder,
    F,
    array,
    build,
    check,
    expanded,
    fn,
    for_,
    gradient,
    if_,
    num,
    while_,
    with_ad,
)

PAIR = f.Tup((F, INT, F))


def scalar(b: Builder, x: f.Var) -> f.Atom:
    return b.op("mul", (b.op("sin", (x,)), b.op("exp", (b.op("div", (x, num(3.0))),))))


def power(b: Builder, x: f.Var) -> f.Atom:
    return for_(b, integer(5), (num(1.0),), lambda c, i, s: [c.op("mul", (c.op("add", (s, num(0.1))), x))])[0]


def newton(b: Builder, x: f.Var) -> f.Atom:
    def step(c: Builder, s: f.Var, k: f.Var) -> list[f.Atom]:
        return [c.op("mul", (num(0.5), c.op("add", (s, c.op("div", (x, s)))))), c.op("add", (k, integer(1)))]

    return while_(b, (num(1.0), integer(0)), lambda c, s, k: c.op("lt", (k, integer(6))), step)[0]


def branchy(b: Builder, x: f.Var) -> f.Atom:
    def step(c: Builder, i: f.Var, s: f.Var) -> list[f.Atom]:
        big = c.op("gt", (s, num(1.0)))
        return [
            if_(c, big, lambda d: d.op("mul", (s, d.op("cos", (x,)))), lambda d: d.op("add", (d.op("exp", (s,)), x)))
        ]

    return for_(b, integer(4), (x,), step)[0]


def total(b: Builder, x: f.Var) -> f.Atom:
    doubled = build(
        b,
        b.op("dim", (x,), k=0),
        lambda c, i: c.op("exp", (c.op("mul", (c.op("index", (x, i)), c.op("index", (x, integer(0))))),)),
    )
    return b.op("sum", (b.op("mul", (doubled, x)),))


def matrices(b: Builder, x: f.Var) -> f.Atom:
    m = b.op("reshape", (x, integer(2), integer(3)))
    t = b.op("transpose", (m,))
    p = b.op("matmul", (m, t), ta=False, tb=False)
    q = b.op("matmul", (m, m), ta=True, tb=False)
    r = b.op("matmul", (t, m), ta=True, tb=True)
    row = b.op("sum", (b.op("mul", (m, b.op("index", (m, integer(1))))),))
    return b.op("add", (b.op("dot", (row, row)), b.op("add", (b.op("sum", (b.op("sum", (p,)),)), b.op(
        "mul", (b.op("sum", (b.op("sum", (q,)),)), b.op("index", (r, integer(1), integer(0)))))))))  # fmt: skip


def updates(b: Builder, x: f.Var) -> f.Atom:
    def step(c: Builder, i: f.Var, a: f.Var) -> list[f.Atom]:
        j = c.op("mod", (c.op("mul", (i, integer(3))), integer(4)))
        value = c.op("mul", (c.op("index", (a, i)), c.op("index", (x, j))))
        return [c.op("update", (a, value, j))]

    (a,) = for_(b, integer(4), (x,), step)
    both = b.op(
        "concat",
        (b.op("slice", (a, integer(1), integer(3))), b.op("array", (b.op("index", (x, integer(0))), num(2.0)))),
    )
    return b.op("mul", (both, b.op("add", (both, x))))


def pairs(b: Builder, x: f.Var) -> f.Atom:
    a, n, c = (b.get(x, k) for k in range(3))
    made = b.make((b.op("mul", (a, c)), n))
    filled = b.op("fill", (integer(3), made))
    swapped = b.op("update", (filled, b.make((b.op("sin", (c,)), integer(7))), integer(1)))

    def step(d: Builder, i: f.Var, s: f.Var) -> list[f.Atom]:
        item = d.op("index", (swapped, i))
        return [d.op("add", (d.op("mul", (s, d.get(item, 0))), d.op("cast", (d.get(item, 1),), to="f64")))]

    (s,) = for_(b, integer(3), (a,), step)
    return b.make((s, n, a))


def dead(b: Builder, x: f.Var) -> f.Atom:
    root = b.op("sqrt", (b.op("sub", (x, x)),))
    return if_(b, b.op("gt", (x, num(100.0))), lambda c: c.op("mul", (root, x)), lambda c: c.op("mul", (x, x)))


@pytest.mark.parametrize("write, x", [
    (scalar, 0.7), (power, 0.9), (newton, 3.0), (branchy, 0.3), (branchy, 1.4), (dead, 1.3),
    (total, array(0.3, -0.4, 0.5)), (updates, array(0.5, 1.5, -1.0, 2.0)),
    (matrices, array(0.3, -0.4, 0.5, 1.0, 0.2, -0.7)),
    (pairs, (0.7, 3, 1.1)),
])  # fmt: skip
def test_first_and_second_order(write, x) -> None:
    supply = f.Supply()
    ty = F if isinstance(x, float) else PAIR if isinstance(x, tuple) else VEC
    program = f.Program({"f": fn("f", (ty,), write, supply)})
    check(program, "f", x, supply)
    program = f.Program({"f": fn("f", (ty,), write, supply)})
    y = program.fns["f"].results[0]
    with_ad(program, "f", supply)
    # what the derivatives are, as functions of x alone, to be differentiated again
    m = expanded(f.Program(dict(program.fns)))
    (value,) = m.call("f", x)
    for mode in "JV":

        def derivative(b: Builder, x: f.Var, mode=mode, seed_like=ty if mode == "J" else y) -> f.Atom:
            seed = ones(b, seed_like, x, value)
            return b.calls(f"f.{mode}", (x, seed), (y, y if mode == "J" else ty))[1]

        again = f.Program({**program.fns, "d": fn("d", (ty,), derivative, supply)})
        check(again, "d", x, supply, 1e-4)


def ones(b: Builder, ty: f.Type, x: f.Var, value: object) -> f.Atom:
    """Some constant tangent."""
    match ty:
        case f.Num(name):
            return num(0.5) if name == "f64" else integer(0)
        case f.Tup(items):
            return b.make([ones(b, t, x, value) for t in items])
    return build(b, b.op("dim", (x,), k=0), lambda c, i: c.op("add", (c.op("cast", (i,), to="f64"), num(0.5))))


# ---- data and recursion ---------------------------------------------------------------------------------------------

TREE = f.Data("tree")
DATAS = {"tree": f.DataDecl("tree", (F, f.Tup((TREE, TREE)), None), ("Leaf", "Node", "Empty"))}


def product(supply: f.Supply) -> f.Fn:
    def write(b: Builder, t: f.Var) -> f.Atom:
        leaf, pair = b.var("x", F), b.var("p", f.Tup((TREE, TREE)))
        inner = b.inner()
        left, right = inner.calls("f", (inner.get(pair, 0),), (F,)), inner.calls("f", (inner.get(pair, 1),), (F,))
        made = inner.block(inner.op("mul", (left[0], right[0])))
        cases = (
            f.Case(0, leaf, f.Block((), (leaf,))),
            f.Case(1, pair, made),
            f.Case(2, None, f.Block((), (num(1.0),))),
        )
        return b.bind(f.Switch(t, cases, None), (F,))[0]

    return fn("f", (TREE,), write, supply)


def squares(supply: f.Supply) -> f.Fn:
    """tree -> tree, building data."""

    def write(b: Builder, t: f.Var) -> f.Atom:
        leaf, pair = b.var("x", F), b.var("p", f.Tup((TREE, TREE)))
        inner, low = b.inner(), b.inner()
        left, right = inner.calls("f", (inner.get(pair, 0),), (TREE,)), inner.calls("f", (inner.get(pair, 1),), (TREE,))
        made = inner.block(inner.con("tree", 1, inner.make((right[0], left[0]))))
        small = low.block(low.con("tree", 0, low.op("mul", (leaf, leaf))))
        return b.bind(f.Switch(t, (f.Case(0, leaf, small), f.Case(1, pair, made)), f.Block((), (t,))), (TREE,))[0]

    return fn("f", (TREE,), write, supply)


def node(a: Cell, b: Cell) -> Cell:
    return Cell(1, (a, b))


TREE_VALUE = node(Cell(0, 2.0), node(node(Cell(0, 3.0), Cell(2)), Cell(0, 4.0)))


@pytest.mark.parametrize("made", [product, squares])
def test_trees(made) -> None:
    supply = f.Supply()
    check(f.Program({"f": made(supply)}, dict(DATAS)), "f", TREE_VALUE, supply)
    program = with_ad(f.Program({"f": made(supply)}, dict(DATAS)), "f", supply)
    y = program.fns["f"].results[0]

    def twice(b: Builder, t: f.Var) -> f.Atom:
        seed = num(1.0) if y == F else b.calls("f", (t,), (TREE,))[0]
        return b.calls("f.V", (t, seed), (y, TREE))[1]

    program.fns["d"] = fn("d", (TREE,), twice, supply)
    check(program, "d", TREE_VALUE, supply, 1e-4)


def recursion(supply: f.Supply) -> f.Fn:
    """f (x, n, w) = if n <= 0 then x else w * sin (f (x * w, n - 1, w)) + f (x, n - 2, w)"""
    ty = f.Tup((F, INT, F))

    def write(b: Builder, t: f.Var) -> f.Atom:
        x, n, w = (b.get(t, k) for k in range(3))

        def more(c: Builder) -> f.Atom:
            one = c.calls("f", (c.make((c.op("mul", (x, w)), c.op("sub", (n, integer(1))), w)),), (F,))[0]
            two = c.calls("f", (c.make((x, c.op("sub", (n, integer(2))), w)),), (F,))[0]
            return c.op("add", (c.op("mul", (w, c.op("sin", (one,)))), two))

        return if_(b, b.op("le", (n, integer(0))), lambda c: x, more)

    return fn("f", (ty,), write, supply)


def test_the_scrutinee_used_in_its_own_branch() -> None:
    supply = f.Supply()

    def least(b: Builder, t: f.Var) -> f.Atom:
        leaf = b.var("x", F)
        switch = f.Switch(t, (f.Case(0, leaf, f.Block((), (leaf,))),), f.Block((), (num(0.0),)))
        return b.bind(switch, (F,))[0]

    def both(b: Builder, t: f.Var) -> f.Atom:
        leaf, inner = b.var("x", F), b.inner()
        again = inner.block(inner.op("add", (inner.op("mul", (leaf, leaf)), inner.calls("least", (t,), (F,))[0])))
        return b.bind(f.Switch(t, (f.Case(0, leaf, again),), f.Block((), (num(0.0),))), (F,))[0]

    program = f.Program(
        {"least": fn("least", (TREE,), least, supply), "f": fn("f", (TREE,), both, supply)}, dict(DATAS)
    )
    check(program, "f", Cell(0, 3.0), supply)


def test_recursion() -> None:
    supply = f.Supply()
    check(f.Program({"f": recursion(supply)}), "f", (0.7, 5, 1.1), supply)


def test_gradient_of_a_gradient() -> None:
    supply = f.Supply()
    program = f.Program({"f": recursion(supply)})
    name = gradient(program, "f", supply)
    check(program, name, (0.7, 4, 1.1), supply, 1e-4)


@pytest.mark.parametrize("own", [0, 1, 8])
def test_one_derivative_for_several_activities(own: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """g a b v = (sqrt a * b, v * a), called for what varies and for constants; at one, the root's slope is infinite."""
    monkeypatch.setattr(derivatives, "ACTIVITIES", own)
    supply = f.Supply()

    def g(b: Builder, a: f.Var, c: f.Var, v: f.Var) -> tuple:
        return b.op("mul", (b.op("sqrt", (a,)), c)), b.op("mul", (v, a))

    def write(b: Builder, x: f.Var) -> f.Atom:
        one, two = (b.op("index", (x, integer(k))) for k in range(2))
        ones = b.op("fill", (integer(2), num(1.0)))
        total: f.Atom = num(0.0)
        calls = (one, two, x), (num(0.0), two, x), (one, num(3.0), ones), (num(0.0), one, ones), (two, two, x)
        for arguments in calls:
            y, w = b.calls("g", arguments, (F, VEC))
            total = b.op("add", (b.op("mul", (total, y)), b.op("add", (y, b.op("sum", (w,))))))
        y, _ = b.calls("g", (two, num(2.0), ones), (F, VEC))
        return b.op("mul", (total, y))

    program = f.Program({"g": fn("g", (F, F, VEC), g, supply), "f": fn("f", (VEC,), write, supply)})
    check(program, gradient(program, "f", supply), array(0.7, 1.2), supply, 1e-4)
    check(program, "f", array(0.7, 1.2), supply)
    written = [name for name in differentiate(program).fns if re.fullmatch(r"g\.bwd(\.\d+)?", name)]
    assert len(written) == min(own + 1, 5), written


# ---- edges ----------------------------------------------------------------------------------------------------------


def test_dead_and_absent_contribute_nothing() -> None:
    supply = f.Supply()

    def write(b: Builder, x: f.Var) -> f.Atom:
        b.op("sqrt", (b.op("index", (x, integer(0))),))
        roots = build(b, b.op("dim", (x,), k=0), lambda c, i: c.op("sqrt", (c.op("index", (x, i)),)))
        return b.op("add", (b.op("index", (roots, integer(1))), b.op("index", (b.op("sqrt", (x,)), integer(1)))))

    program = with_ad(f.Program({"f": fn("f", (VEC,), write, supply)}), "f", supply)
    machine = expanded(program)
    assert machine.call("f.V", array(0.0, 4.0), 1.0)[1] == array(0.0, 0.5)


def test_absent_branch_in_a_loop() -> None:
    supply = f.Supply()

    def write(b: Builder, x: f.Var) -> f.Atom:
        root = b.op("sqrt", (b.op("mul", (x, num(0.0))),))

        def step(c: Builder, i: f.Var, s: f.Var) -> list[f.Atom]:
            low = c.op("lt", (x, num(0.0)))
            return [if_(c, low, lambda d: d.op("mul", (s, root)), lambda d: d.op("mul", (s, x)))]

        return for_(b, integer(2), (num(1.0),), step)[0]

    machine = expanded(with_ad(f.Program({"f": fn("f", (F,), write, supply)}), "f", supply))
    assert machine.call("f.V", 3.0, 1.0) == (9.0, 6.0)
    assert machine.call("f.J", 3.0, 1.0) == (9.0, 6.0)


def test_extern_is_refused() -> None:
    supply = f.Supply()

    def write(b: Builder, x: f.Var) -> f.Atom:
        return b.bind(f.Op("extern", (x,), (("symbol", "cbrt"),)), (F,))[0]

    for mode in "JV":
        program = with_ad(f.Program({"f": fn("f", (F,), write, supply)}), "f", supply)
        del program.fns[f"f.{'JV'.replace(mode, '')}"]
        with pytest.raises(DplError) as error:
            expanded(program)
        assert error.value.diagnostics[0].code == "E0404"


def test_endless() -> None:
    supply = f.Supply()
    program = f.Program()

    def write(b: Builder, x: f.Var) -> f.Atom:
        return if_(
            b, b.op("lt", (x, num(0.0))), lambda c: x, lambda c: c.bind(f.Ad("jvp", "f", (x, num(1.0)), "s"), (F, F))[1]
        )

    program.fns["f"] = fn("f", (F,), write, supply)
    with pytest.raises(NeedsInterpreter):
        expanded(program)


def cost(n: int) -> float:
    supply = f.Supply()

    def write(b: Builder, x: f.Var) -> f.Atom:
        def step(c: Builder, i: f.Var, s: f.Var) -> list[f.Atom]:
            return [
                c.op("add", (c.op("sin", (c.op("mul", (s, c.op("index", (x, i)))),)), c.op("index", (x, integer(0)))))
            ]

        return for_(b, b.op("dim", (x,), k=0), (num(1.0),), step)[0]

    machine = expanded(with_ad(f.Program({"f": fn("f", (VEC,), write, supply)}), "f", supply))
    x = Array((n,), [math.sin(i) for i in range(n)])
    machine.call("f", x)
    plain, machine.steps = machine.steps, 0
    machine.call("f.V", x, 1.0)
    return machine.steps / plain


def test_cost() -> None:
    assert cost(50) < 8
    assert cost(200) < 1.05 * cost(50)
