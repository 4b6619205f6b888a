"""Simplify: what goes, what stays, and that the rest means the same."""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.interp import Array, Machine
from dplc.flat.show import show_fn
from dplc.flat.verify import verify
from dplc.passes.simplify.simplify import simplify

F, INT, VEC = f.F64, f.I64, f.Arr(f.F64, 1)


def num(x: float) -> f.Const:
    return f.Const(x, F)


def function(name: str, params: tuple[f.Type, ...], write: Callable[..., f.Atom], supply: f.Supply) -> f.Fn:
    b = Builder(supply)
    vars_ = tuple(b.var("p", ty) for ty in params)
    result = write(b, *vars_)
    return f.Fn(name, vars_, (result.ty,), b.block(result), name)


def simplified(program: f.Program, *args: object) -> list[str]:
    """The lines of `main` (here with parameters) afterwards, checked to give the same."""
    done = verify(simplify(verify(program)))
    assert Machine(done).call("main", *args) == Machine(program).call("main", *args)
    return [line.split("=", 1)[-1].strip() for line in show_fn(done.fns["main"]).splitlines()[1:]]


def words(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines]


def test_inline_fold_share() -> None:
    supply = f.Supply()
    half = function("half", (F,), lambda b, x: b.op("mul", (x, num(0.5))), supply)

    def main(b: Builder, a: f.Var) -> f.Atom:
        tup = b.make((a, b.op("add", (num(1.0), num(2.0)))))
        y = b.calls("half", (b.get(tup, 0),), (F,))[0]
        z = b.op("mul", (b.op("mul", (a, num(0.5))), num(1.0)))
        b.op("sin", (a,))
        return b.op("mul", (b.op("add", (y, z)), b.get(tup, 1)))

    program = f.Program({"half": half, "main": function("main", (F,), main, supply)})
    assert words(simplified(program, 3.0)) == ["mul", "add", "mul", "return"]


def test_zero_and_minus_zero_are_different_constants() -> None:
    supply = f.Supply()

    def main(b: Builder, a: f.Var) -> f.Atom:
        return b.op("add", (b.op("div", (a, num(0.0))), b.op("max", (b.op("div", (a, num(-0.0))), num(1.0)))))

    lines = simplified(f.Program({"main": function("main", (F,), main, supply)}), 1.0)
    assert words(lines).count("div") == 2


def test_known_constructor() -> None:
    supply = f.Supply()
    data = f.DataDecl("option", (None, F), ("None", "Some"))

    def main(b: Builder, a: f.Var) -> f.Atom:
        some, payload = b.con("option", 1, a), b.var("x", F)
        cases = (f.Case(0, None, f.Block((), (num(0.0),))), f.Case(1, payload, f.Block((), (payload,))))
        return b.bind(f.Switch(some, cases, None), (F,))[0]

    program = f.Program({"main": function("main", (F,), main, supply)}, {"option": data})
    assert words(simplified(program, 3.0)) == ["return"]


def test_loops() -> None:
    """Tuples in the state come apart, what stays the same leaves it, what does not change is computed before."""
    supply = f.Supply()

    def main(b: Builder, a: f.Var, n: f.Var) -> f.Atom:
        state, index, inner = b.var("s", f.Tup((F, F, F))), b.var("i", INT), b.inner()
        total = inner.op("add", (inner.get(state, 0), inner.op("exp", (inner.get(state, 1),))))
        body = inner.block(inner.make((total, inner.get(state, 1), inner.op("mul", (inner.get(state, 2), a)))))
        (last,) = b.bind(f.For(index, n, (state,), (b.make((num(0.0), a, a)),), body), (state.ty,))
        return b.get(last, 0)

    lines = simplified(f.Program({"main": function("main", (F, INT), main, supply)}), 0.5, 4)
    assert words(lines) == ["exp", "for", "add", "yield", "return"]


def test_an_error_stays() -> None:
    supply = f.Supply()

    def main(b: Builder, a: f.Var) -> f.Atom:
        b.op("index", (a, integer(7)))
        b.op("index", (a, integer(1)), unchecked=True)
        return b.op("sum", (a,))

    lines = simplified_only(f.Program({"main": function("main", (VEC,), main, supply)}))
    assert words(lines) == ["index", "sum", "return"]


def simplified_only(program: f.Program) -> list[str]:
    return [line.split("=", 1)[-1].strip() for line in show_fn(simplify(program).fns["main"]).splitlines()[1:]]


def test_arrays_are_measured_where_they_are_born() -> None:
    supply = f.Supply()

    def main(b: Builder, a: f.Var, n: f.Var) -> f.Atom:
        changed = b.op("update", (a, num(1.0), integer(0)))
        made = b.op("mul", (b.op("fill", (n, num(2.0))), changed))
        count = b.op("add", (b.op("dim", (made,), k=0), b.op("dim", (changed,), k=0)))
        b.bind(f.Op("check_equal", (b.op("dim", (a,), k=0), b.op("dim", (changed,), k=0))), ())
        return b.op("add", (b.op("sum", (made,)), b.op("cast", (count,), to="f64")))

    program = f.Program({"main": function("main", (VEC, INT), main, supply)})
    lines = simplified(program, Array((3,), [1.0, 2.0, 3.0]), 3)
    assert words(lines)[0] == "dim" and words(lines).count("dim") == 1 and "check_equal" not in words(lines)
