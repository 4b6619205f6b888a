"""The compiler's own bounds: programs at them, one below and one above, and programs for which they are tiny.

A bound says where the compiler stops doing something, so code on both sides of it must mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from doubt.agreement import same
from doubt.oracle import DONE, INTERP, NATIVE, OPTIMISED, Oracle, Outcome
from dpl.prims import sums
from dplc.ad import optimistic
from dplc.ad.reverse import tape
from dplc.machine.emit import loops
from dplc.machine.object import assemble
from dplc.passes.arrays import fuse
from dplc.passes.lower import decision_trees
from dplc.passes.recursion import by_value, linear_recursion
from dplc.passes.simplify import inlined
from dplc.passes.specialise import copier, operators
from dplc.passes.vectors import tupled, tupling

SAMPLES = """
let x0 = [0.3, 0.7, 1.1]
do print (f x0)
do print (snd (jvp f x0 [1.0, 0.5, -0.3]))
do print (dot (grad f x0) [1.0, 0.5, -0.3])
do print ((f (x0 + [1e-6, 5e-7, -3e-7]) - f (x0 - [1e-6, 5e-7, -3e-7])) / 2e-6)
do print (snd (jvp (fun x -> dot (grad f x) x) x0 [1.0, 0.5, -0.3]))
"""
ELEMENTWISE = {
    "sum": lambda n: f"sum ({nested(n, 'x')})",
    "dot": lambda n: f"dot ({nested(n, 'x')}) x",
    "dot of two chains": lambda n: f"dot ({nested(n // 2, 'x')}) ({nested(n - n // 2 - 1, '(x + x)')})",
    "two chains": lambda n: f"sum ({nested(n // 2, 'x')} * {nested(n - n // 2 - 1, '(x + x)')})",
    "the chain and its sum": lambda n: f"(let y = {nested(n, 'x')} in sum y + y[0] + sum (sin y))",
    "rows": lambda n: f"sum (let m = {nested(n, '[x, x + x]')} in sum (m * x))",
    "sums of sums": lambda n: f"sum (sum ({nested(n, '[x, x + x]')}))",
    "lifted": lambda n: f"(let y = {nested(n, 'x')} in sum (y * sum y))",
}
FEW = 12  # operations
MIXED = """
type shape = Dot | Line of float | Box of float * float | Group of shape list
let rec area s = match s with
  | Dot -> 0.0
  | Line x when x > 100.0 -> x
  | Line x -> x * 0.5 + sin x
  | Box (a, b) when a > b -> a * b
  | Box (a, b) -> a * b * b + cos a
  | Group ss -> List.fold (fun sum s -> sum + area s) 0.0 ss
let twice d g x = d (d g) x
let compose g h x = g (h x)
let chain (x : float[n]) = sum (exp (sin (x * 2.0 + x)) * x - cos (x @ [for i < n -> x * float i]))
let step k y = compose (fun z -> z * k) (fun z -> z + sin z) y
let wander (x : float) =
  let r = ref x in
  let rec go n y = if n = 0 then y else (r := !r * 0.9 + y; let z = go (n - 1) (y * 0.5 + !r) in z + !r) in
  go 4 x
let branched p = reset (let a = (shift k -> p * k true + (1.0 - p) * k false) in if a then p * 2.0 else sin p)
let looped (x : float) =
  let (a, b) = loop (a, b) = (x, 1.0) for i < 20 do (sin a * b + 0.1, cos b + a * 0.5) in
  loop s = a while s < 3.0 do s + abs b + 0.5
let directions g x y =
  let (_, a) = jvp g (x, y) (1.0, 0.0) in
  let (_, b) = jvp g (x, y) (0.0, 1.0) in
  let (_, pull) = vjp (fun (x, y) -> (g (x, y), x * y)) (x, y) in
  let ((c, d), (e, h)) = (pull (1.0, 0.0), pull (0.0, 1.0)) in
  a * b + c * d + e * h
let spin (a, b) = loop (a, b) = (a, b) for _ < 6 do (sin a * b, cos b + a)
let f (x : float[3]) =
  let s = Group [Dot; Line x[0]; Box (x[1], x[2]); Group [Box (x[2], x[0]); Line (x[1] * 300.0)]] in
  let big = filter (fun y -> y > 0.5) x in
  let heavy = directions (fun p -> fst (spin p)) x[0] x[1] in
  area s + chain x + step x[0] x[1] + wander x[2] + branched x[0] + looped x[1] + sum (big * big) + heavy
    + twice diff (fun y -> y ** 4) x[0] + step 2.0 x[2] + fold (fun a b -> a * 0.5 + b * b) 0.0 x
"""
TINY = [
    (fuse, "LARGEST", 1), (fuse, "LARGEST", 2), (fuse, "LARGEST", 5), (linear_recursion, "COPIES", 0),
    (linear_recursion, "LARGE", 0), (linear_recursion, "LARGE", 30), (tupling, "MOST", 1),
    (tupling, "MOST", 2), (tupled, "LARGE", 0), (tupled, "HOT", 1),
    (inlined, "SMALL", 0), (inlined, "SMALL", 60),
    (copier, "MOST_USES", 0), (copier, "MOST_USES", 1), (decision_trees, "TINY", 0), (decision_trees, "TINY", 1000),
    (operators, "DEEPEST", 0), (by_value, "VARIANTS", 0), (optimistic, "ATTEMPTS", 0), (optimistic, "ATTEMPTS", 1),
    (tape, "WIDE", 0), (tape, "WIDE", 2),
    (loops, "FIRST_ROOM", 1),
]  # fmt: skip


def nested(n: int, x: str) -> str:
    """`n` operations on arrays, one inside of the other."""
    return "sin (" * n + x + ")" * n


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    found = Oracle()
    yield found
    renew(found)


@cache
def interpreted(oracle: Oracle, text: str) -> Outcome:
    """The interpreter's answer does not depend on the compiler's bounds."""
    return oracle.ask(INTERP, text)


def renew(oracle: Oracle) -> None:
    """The next child knows the bounds as they are then."""
    if oracle.child:
        oracle.stop()


def agree(oracle: Oracle, text: str, engine: str) -> list[float]:
    """What a program prints, by both engines the same."""
    interp, native = interpreted(oracle, text), oracle.ask(engine, text)
    assert interp.end == native.end == DONE, (interp, native)
    assert same(interp.output, native.output, 1e-9), (interp.output, native.output)
    return [float(line) for line in native.output.split()]


def check(oracle: Oracle, text: str, engine: str = NATIVE) -> None:
    """Forward, reverse and differences meet."""
    _, forward, reverse, difference, _ = agree(oracle, text + SAMPLES, engine)
    assert forward == pytest.approx(reverse, rel=1e-9, abs=1e-12)
    assert forward == pytest.approx(difference, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("shape", ["the chain and its sum", "sums of sums"])
def test_fused_operations(oracle: Oracle, shape: str, more: int) -> None:
    check(oracle, f"let f (x : float[3]) = {ELEMENTWISE[shape](fuse.LARGEST + more)}\n")


@pytest.fixture(scope="module")
def short() -> Iterator[Oracle]:
    """An oracle for one bound only: its children, too, start where that is set."""
    found = Oracle()
    yield found
    renew(found)


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("shape", ELEMENTWISE)
def test_few_fused_operations(short: Oracle, monkeypatch: pytest.MonkeyPatch, shape: str, more: int) -> None:
    """Every shape, where short programs are as long as the bound."""
    monkeypatch.setattr(fuse, "LARGEST", FEW)
    check(short, f"let f (x : float[3]) = {ELEMENTWISE[shape](FEW + more)}\n")


def once(bounds: list[tuple]) -> Iterator:
    """The first value of each bound is quick, the others are in the long run."""
    seen = set()
    for module, name, value in bounds:
        marks = [pytest.mark.slow] if (module, name) in seen else []
        seen.add((module, name))
        yield pytest.param(module, name, value, id=f"{module.__name__}.{name}={value}", marks=marks)


@pytest.mark.parametrize(("module", "name", "value"), list(once(TINY)))
def test_tiny_bounds(oracle: Oracle, monkeypatch: pytest.MonkeyPatch, module, name: str, value: int) -> None:
    """What large programs meet, a small one does then."""
    assert getattr(module, name) != value
    monkeypatch.setattr(module, name, value)
    renew(oracle)
    try:
        check(oracle, MIXED)
    finally:
        renew(oracle)


def test_text_that_is_optimised_less(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "LARGE", 0)
    renew(oracle)
    try:
        check(oracle, "let f (x : float[n]) = sum (filter (fun y -> y > 0.5) (x * exp x)) + maximum x\n", OPTIMISED)
    finally:
        renew(oracle)


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("bound", [loops.FIRST_ROOM, 2 * sums.LANES])
def test_sizes_of_arrays(oracle: Oracle, bound: int, more: int) -> None:
    """At which growing arrays grow, and sums are taken otherwise."""
    n = bound + more
    check(
        oracle,
        f"""
let f (x : float[3]) =
  let a = [for i < {n} -> x[i % 3] * float (i + 1) / {n}.0] in
  let m = [for i < {n} -> a * cos a[i]] in
  let kept = filter (fun y -> y > -1.0) a in
  sum a + sum (m @ a) + sum kept + maximum a + dot a a + sum (cumsum a) + sum (transpose m)[0]
""",
    )
