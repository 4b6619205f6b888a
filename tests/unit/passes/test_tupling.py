"""Calls of one function that differ in some arguments only are one call."""

from __future__ import annotations

from collections import Counter

import pytest
from dpl.source import NOWHERE, Source
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.call_graph import groups
from dplc.flat.verify import verify
from dplc.flat.walk import every
from dplc.passes.vectors import tupled
from dplc.passes.vectors.tupling import tupling
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack

LOOP = "let f (x, y) = loop (a, b) = (x, y) for _ < 50 do (sin a * b, cos b + a)\n"
RECURSION = """
let rec f (x, y) = if x > 9.0 then (sin x, y) else let (a, b) = f (x + 1.0, x * y) in (a * sin x, b * a)
"""
LONG = """
let f (x : float) (y : float) =
  let s = loop s = x for i < 50 do sin s * exp (cos s) + sqrt (abs s + 2.0) * float i in
  let t = loop t = s while t < y do t * 1.5 + 0.1 in
  if y > 3.0 then t * s else t + (loop u = t for _ < int y do u * 0.5)
"""
FORWARD = """
let (_, a) = jvp f (0.5, 0.7) (1.0, 0.0)
let (_, b) = jvp f (0.5, 0.7) (0.0, 1.0)
do print (a, b)
"""
REVERSE = """
let (_, pull) = vjp f (0.5, 0.7)
do print (pull (1.0, 0.0), pull (0.0, 1.0), pull (0.5, 2.0))
"""


def flat(text: str, stage: str = "simplify2") -> f.Program:
    return on_large_stack(lambda: compile_to(stage, Source("it.dp", text), Context(verify=True))[1])


def operations(program: f.Program) -> Counter[str]:
    return Counter(bind.rhs.op for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.Op))


def loops(program: f.Program) -> list[f.For | f.While]:
    found = (bind.rhs for fn in program.fns.values() for bind in every(fn.body))
    return [rhs for rhs in found if isinstance(rhs, f.For | f.While)]


def calls(program: f.Program) -> int:
    """From outside, of what is not inlined."""
    return sum(isinstance(bind.rhs, f.Call) for bind in every(program.fns["main"].body))


def test_directions_share_the_run_of_the_function() -> None:
    program = flat(LOOP + FORWARD)
    (loop,) = loops(program)
    assert len(loop.state) == 2 + 2 * 2  # x and y once, their tangents for each direction
    one = flat(LOOP + FORWARD.replace("let (_, b)", "let b = 0.0 --"))
    assert operations(program)["sin"] == operations(one)["sin"]


def test_pullbacks_read_what_was_kept_once() -> None:
    there, back = loops(flat(LOOP + REVERSE))
    assert len(there.state) == 2 and len(back.state) == 3 * 2


@pytest.mark.parametrize(("way", "made"), [(FORWARD, 1), (REVERSE, 1 + 3)])
def test_recursion_is_gone_through_once(way: str, made: int) -> None:
    """Pullbacks are products with the Jacobian that it returns."""
    program = flat(RECURSION + way)
    assert calls(program) == made and len(groups(program)[1]) == 1


def test_the_same_call_is_made_once() -> None:
    text = LONG + "do print (f 0.5 4.0 + f 0.5 4.0)\n"
    assert calls(flat(text, "constant_parameters")) == 2
    assert operations(flat(text))["exp"] == 1 and calls(flat(text)) == 0


def test_ways_that_part() -> None:
    """What depends on the direction is done for each, loops and branches too."""
    program = flat(LONG + "do print (f 0.3 2.0, f 0.3 5.0, f 0.3 0.1)\n")
    assert operations(program)["exp"] == 1
    assert [type(loop) for loop in loops(program)] == [f.For] + 3 * [f.While] + 2 * [f.For]  # one has y > 3


@pytest.mark.parametrize(
    "text",
    [
        LONG + "do print (f 0.0 4.0 + f (-0.0) 4.0)\n",  # equal, and not the same
        LONG.replace("sin s", "(print s; sin s)") + "do print (f 0.5 4.0, f 0.5 5.0)\n",
        LONG + "let a = f 0.5 4.0\nlet t = Sys.time ()\nlet b = f 0.5 4.0\ndo print (a, b, t)\n",
        LONG + "do print (f 0.5 4.0, f 0.6 5.0)\n",  # nothing in common but the code
    ],
    ids=["zeros", "output", "time", "others"],
)
def test_other_calls_stay(text: str) -> None:
    assert calls(flat(text)) == 2


def test_a_step_of_many_guards_is_one_for_each_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of a Hessian share what a step computes, but its guards would be asked in each."""
    step = "exp (sin (s * v[1]) + tanh (v[2] / s) / sqrt (1.0 + s ** 2) + log (abs (s * v[3])))"
    text = f"let f (v : float[4]) = loop s = v[0] for i < 50 do {step}\ndo print (Ad.hessian f [0.5, 0.7, 0.3, 0.4])\n"
    together = flat(text, "tupling")
    monkeypatch.setattr(tupled, "GUARDED", 20)
    assert len(flat(text, "tupling").fns) < len(together.fns)


def test_what_comes_later_is_not_known_before() -> None:
    """A part of a tuple that is taken for a later call, and in a branch before that."""
    supply = f.Supply()
    one, two, half = f.Const(1, f.I64), f.Const(2, f.I64), f.Const(0.5, f.F64)

    def call(b: Builder, *args: f.Atom) -> f.Var:
        return b.calls("g", args, (f.F64,), NOWHERE)[0]

    def either(b: Builder, cond: f.Atom, then: Builder, gives: f.Atom, other: f.Atom) -> f.Var:
        return b.bind(f.If(cond, then.block(gives), f.Block((), (other,))), (f.F64,))[0]

    b, x, y, n = Builder(supply), f.Var("x", f.F64), f.Var("y", f.F64), f.Var("n", f.I64)
    inner = b.inner()
    product = inner.op("mul", (inner.op("sin", (y,)), call(inner, x, y, inner.op("sub", (n, one)))))
    g = f.Fn("g", (x, y, n), (f.F64,), b.block(either(b, b.op("gt", (n, one)), inner, product, x)))

    b, t, m = Builder(supply), f.Var("t", f.Tup((f.F64, f.F64))), f.Var("m", f.I64)
    first = call(b, f.Const(1.0, f.F64), half, m)
    inner = b.inner()
    early = inner.op("add", tuple(call(inner, inner.get(t, k), half, two) for k in (0, 1)))
    middle = either(b, b.op("gt", (m, two)), inner, early, first)
    last = call(b, b.op("mul", (b.get(t, 0), middle)), half, m)
    main = f.Fn("main", (t, m), (f.F64,), b.block(b.op("add", (middle, b.op("add", (first, last))))))

    b = Builder(supply)
    b.binds.append(f.Bind((t,), f.TupMake((half, half))))  # elsewhere, `t` is another tuple
    other = f.Fn("other", (), (f.F64,), b.block(b.op("add", (call(b, half, half, two), call(b, half, half, two)))))
    program = f.Program({"other": other, "g": g, "main": main})
    verify(program)
    made = tupling(program)
    verify(made)
    assert len(made.fns) > 3
