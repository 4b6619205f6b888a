"""What is kept for the backward sweep: as little as possible, in a record for each path."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dplc.ad.differentiate import differentiate
from dplc.ad.reverse import preaccumulation
from dplc.ad.reverse.min_cut import cut
from dplc.flat import term as f
from dplc.flat.build import integer
from dplc.flat.walk import every
from flatly import INT, VEC, Builder, F, array, build, check, fn, for_, gradient, if_, num, while_


@pytest.mark.parametrize(
    ("weights", "sources", "wanted", "kept"),
    [
        ({"a": 8, "b": 8, "c": 8}, {"b": ["a"], "c": ["a"]}, ["b", "c"], {"a"}),
        ({"a": 8, "b": 8}, {"b": ["a"]}, ["b"], {"b"}),  # of equals, what is nearest
        ({"a": 8, "b": 1}, {"b": ["a"]}, ["b"], {"b"}),
        ({"a": 8, "b": 8}, {"b": ["a"]}, ["a", "b"], {"a"}),
        ({"a": 8, "b": 8, "c": 8}, {"c": ["a", "b"]}, ["c"], {"c"}),
        ({"a": 8}, {"a": []}, ["a"], set()),  # made of nothing
        ({"a": 8, "b": 8}, {}, ["a", "b"], {"a", "b"}),
        ({"a": 1 << 61, "b": 1 << 62}, {"b": ["a"]}, ["b"], {"a"}),  # no weight is too large
        (
            dict.fromkeys("abcdefg", 8),
            {"c": ["a", "b"], "d": ["c"], "e": ["c"], "f": ["d", "e"], "g": ["e"]},
            ["d", "f", "g"],
            {"c"},
        ),
    ],
)
def test_lightest_cut(weights: dict, sources: dict, wanted: list, kept: set) -> None:
    assert cut(weights, sources, wanted) == kept


def kept_by_step(program: f.Program) -> list[int]:
    """The widths of what loops keep in each step."""
    loops = [bind.rhs for fn in program.fns.values() for bind in every(fn.body)]
    return [loop.collect for loop in loops if isinstance(loop, f.For | f.While) and loop.collect]


def midpoint(b: Builder, x: f.Var) -> f.Atom:
    """Steps whose backward code needs much that the state alone gives again."""

    def step(c: Builder, i: f.Var, s: f.Var) -> list[f.Atom]:
        half = c.op(
            "add", (s, c.op("mul", (num(0.05), c.op("mul", (c.op("mul", (s, x)), c.op("sub", (num(1.0), s)))))))
        )
        return [
            c.op(
                "add",
                (s, c.op("mul", (num(0.1), c.op("mul", (c.op("mul", (half, x)), c.op("sub", (num(1.0), half))))))),
            )
        ]

    return for_(b, integer(20), (num(0.5),), step)[0]


def test_a_loop_keeps_its_state_alone() -> None:
    supply = f.Supply()
    program = f.Program({"m": fn("m", (F,), midpoint, supply)})
    check(program, "m", 1.3, supply)
    program = f.Program({"m": fn("m", (F,), midpoint, supply)}, main=gradient(program, "m", supply))
    gradient(program, "m", supply)
    assert kept_by_step(differentiate(program)) == [1]


def tree(supply: f.Supply) -> f.Program:
    """f(x, n) = if n < 2 then x + n / 10 else f(x, n - 1) f(x, n - 2) / 2 + x, and g(x) = f(x, 7)."""

    def body(b: Builder, n: f.Var, x: f.Var) -> f.Atom:
        def leaf(c: Builder) -> f.Atom:
            return c.op("add", (x, c.op("mul", (num(0.1), c.op("cast", (n,), to="f64")))))

        def node(c: Builder) -> f.Atom:
            (left,) = c.calls("f", (c.op("sub", (n, integer(1))), x), (F,))
            (right,) = c.calls("f", (c.op("sub", (n, integer(2))), x), (F,))
            return c.op("add", (c.op("mul", (num(0.5), c.op("mul", (left, right)))), x))

        return if_(b, b.op("lt", (n, integer(2))), leaf, node)

    start = fn("g", (F,), lambda b, x: b.calls("f", (integer(7), x), (F,))[0], supply)
    return f.Program({"f": fn("f", (INT, F), body, supply), "g": start})


def test_recursion_keeps_a_record_for_each_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preaccumulation, "MOST", 0)  # else it returns its slope
    supply = f.Supply()
    check(tree(supply), "g", 0.3, supply)
    program = tree(supply)
    gradient(program, "g", supply)
    (record,) = [data for name, data in differentiate(program).datas.items() if name.startswith("res.")]
    own = f.Data(record.name)
    assert set(record.payloads) == {None, f.Tup((F, F, own, own))}


def test_tangents_through_recursion_are_known_to_be_there() -> None:
    supply = f.Supply()
    program = tree(supply)
    program.fns["g.J"] = fn("g.J", (F, F), lambda b, x, dx: b.bind(f.Ad("jvp", "g", (x, dx), "j"), (F, F)), supply)
    made = differentiate(program)
    assert "select" not in {b.rhs.op for fn in made.fns.values() for b in every(fn.body) if isinstance(b.rhs, f.Op)}


def sometimes(supply: f.Supply) -> f.Program:
    """f(n, x) = if n = 0 then 1 else sqrt (x f(n - 1, x)): at the end, there is nothing of x."""

    def body(b: Builder, n: f.Var, x: f.Var) -> f.Atom:
        def more(c: Builder) -> f.Atom:
            (rest,) = c.calls("f", (c.op("sub", (n, integer(1))), x), (F,))
            return c.op("sqrt", (c.op("mul", (x, rest)),))

        return if_(b, b.op("eq", (n, integer(0))), lambda c: num(1.0), more)

    start = fn("g", (F,), lambda b, x: b.calls("f", (integer(3), x), (F,))[0], supply)
    return f.Program({"f": fn("f", (INT, F), body, supply), "g": start})


def test_a_wrong_guess_is_taken_back() -> None:
    supply = f.Supply()
    check(sometimes(supply), "g", 0.7, supply)


def root(b: Builder, a: f.Var) -> f.Atom:
    """Newton's method, to where it stands still."""
    start = b.op("mul", (num(0.5), b.op("add", (a, num(1.0)))))

    def test(c: Builder, before: f.Var, x: f.Var) -> f.Atom:
        return c.op("gt", (c.op("abs", (c.op("sub", (x, before)),)), num(1e-12)))

    def step(c: Builder, before: f.Var, x: f.Var) -> list[f.Atom]:
        return [x, c.op("mul", (num(0.5), c.op("add", (x, c.op("div", (a, x))))))]

    return while_(b, (num(0.0), start), test, step)[1]


def test_loops_of_unknown_length() -> None:
    supply = f.Supply()
    check(f.Program({"r": fn("r", (F,), root, supply)}), "r", 7.0, supply)


def collected(program: f.Program) -> list[f.Type]:
    """The types that points and steps keep."""
    loops = [bind for fn in differentiate(program).fns.values() for bind in every(fn.body)]
    return [var.ty for bind in loops for var in bind.vars
            if isinstance(bind.rhs, f.For | f.While | f.Build) and var.name.startswith("kept")]  # fmt: skip


def waves(b: Builder, xs: f.Var) -> f.Atom:
    """The sum of sin x / sqrt x."""

    def point(c: Builder, i: f.Var) -> f.Atom:
        x = c.op("index", (xs, i))
        return c.op("div", (c.op("sin", (x,)), c.op("sqrt", (x,))))

    return b.op("sum", (build(b, b.op("dim", (xs,), k=0), point),))


def pairs(b: Builder, xs: f.Var) -> f.Atom:
    """The sum of log (sum of exp (x y)), over all x and y."""
    n = b.op("dim", (xs,), k=0)

    def row(c: Builder, i: f.Var) -> f.Atom:
        x = c.op("index", (xs, i))
        return c.op(
            "log", (c.op("sum", (build(c, n, lambda d, j: d.op("exp", (d.op("mul", (x, d.op("index", (xs, j)))),))),)),)
        )

    return b.op("sum", (build(b, n, row),))


@pytest.mark.parametrize("write", [waves, pairs])
def test_points_are_computed_again(write: Callable) -> None:
    supply = f.Supply()
    check(f.Program({"w": fn("w", (VEC,), write, supply)}), "w", array(0.5, 1.5, 0.8), supply)
    program = f.Program({"w": fn("w", (VEC,), write, supply)})
    gradient(program, "w", supply)
    assert not collected(program)


def changed(b: Builder, xs: f.Var) -> f.Atom:
    """An array that each step reads and updates: kept as it is, it would be copied by each step."""
    n = b.op("dim", (xs,), k=0)

    def step(c: Builder, i: f.Var, a: f.Var) -> list[f.Atom]:
        return [c.op("update", (a, c.op("sin", (c.op("index", (a, i)),)), i))]

    return b.op("sum", (for_(b, n, (xs,), step)[0],))


def test_an_array_that_is_updated_is_not_kept_by_each_step() -> None:
    supply = f.Supply()
    check(f.Program({"c": fn("c", (VEC,), changed, supply)}), "c", array(0.5, 1.5, 0.8), supply)
    program = f.Program({"c": fn("c", (VEC,), changed, supply)})
    gradient(program, "c", supply)
    assert collected(program) == [f.Arr(f.Tup((F,)), 1)]
