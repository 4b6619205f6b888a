"""Elementary functions in machine code, for numbers and for vectors: the bits of Python's arithmetic."""

from __future__ import annotations

import ctypes
import math
import re
from array import array
from collections.abc import Iterator
from random import Random

import pytest
from dpl.prims import elementary
from dplc.machine.llvm import target
from dplc.machine.llvm.types import SCALARS
from dplc.machine.object.assemble import module, optimised
from dplc.machine.runtime.elementary import definition, keep, vector_lengths
from dplc.machine.runtime.library import library
from dplc.machine.runtime.shapes import Vectors
from library import Loaded
from true_functions import JOINTS, TYPES, fitting, neighbours, random_points

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 5e-324, 1e-310, 1e300, -1e300, 710.0, -745.2, 1e5)
ALL = [(name, ty) for name in sorted(elementary.VECTORS) for ty in TYPES]
# those that together have every kind of step
SOME = [each for each in ALL if each[0] in ("atan2", "erf", "exp", "log", "pow", "sin", "tanh")]
POINTS = 64  # a multiple of every length


def whole(name: str, ty: str, lanes: int) -> str:
    """A function that computes POINTS results, by vectors."""
    leaf, count = SCALARS[ty], elementary.arity(name)
    vector = f"<{lanes} x {leaf}>" if lanes > 1 else leaf
    loads = [
        f"  %p{i} = getelementptr {leaf}, ptr %a{i}, i64 %i\n  %x{i} = load {vector}, ptr %p{i}, align 4\n"
        for i in range(count)
    ]
    args = ", ".join(f"{vector} %x{i}" for i in range(count))
    symbol = f"rt.{name}.{ty}" + (f".v{lanes}" if lanes > 1 else "")
    return f"""define void @{name}.{ty}.{lanes}(ptr %a0, ptr %a1, ptr %to) "min-legal-vector-width"="512" {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{"".join(loads)}  %y = call {vector} @{symbol}({args})
  %q = getelementptr {leaf}, ptr %to, i64 %i
  store {vector} %y, ptr %q, align 4
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, {POINTS}
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def loaded(functions: list[tuple[str, str]], width: int) -> Loaded:
    """The functions for numbers, and those for vectors of `width` bytes and half of it."""
    names = [(name, ty, n) for name, ty in functions for n in (1, *vector_lengths(name, ty, width))]
    types = {f"{name}.{ty}.{n}": ("void", ["ptr"] * 3) for name, ty, n in names}
    return Loaded("".join(whole(*each) for each in names), types, Vectors(width, False))


@pytest.fixture(scope="module")
def code() -> Loaded:
    return loaded(SOME, Vectors.of(target.features()).bytes)


def points(name: str, ty: str, seed: int) -> list[tuple[float, ...]]:
    fit, draw = fitting(ty), Random(seed)
    if elementary.arity(name) == 2:
        special = [(fit(a), fit(b)) for a in SPECIAL for b in SPECIAL]
        some = [(draw.gauss(0.0, 3.0), draw.gauss(0.0, 3.0)) for _ in range(POINTS)]
        found = [*draw.sample(special, 40), *[(fit(a), fit(b)) for a, b in some]]
    else:
        near = [x for joint in JOINTS.get(name, ()) for x in neighbours(fit(joint), ty, 1)]
        chance = [x for (x,) in random_points(name, ty, POINTS, seed)] or [draw.gauss(0, 3) for _ in range(POINTS)]
        found = [(fit(x),) for x in (*SPECIAL, *near, *chance)]
    return (found * POINTS)[:POINTS]


def columns(name: str, ty: str, seed: int) -> Iterator[array]:
    letter = "d" if ty == "f64" else "f"
    for i in range(2):
        yield array(letter, [point[i % len(point)] for point in points(name, ty, seed)])


def compare(code: Loaded, name: str, ty: str, width: int, seed: int) -> None:
    first, second = columns(name, ty, seed)
    run = elementary.function(name, ty)
    expected = array(first.typecode, [run(*args[: elementary.arity(name)]) for args in zip(first, second)])
    for lanes in (1, *vector_lengths(name, ty, width)):
        got = array(first.typecode, [7.0] * POINTS)
        code[f"{name}.{ty}.{lanes}"](*(ctypes.c_void_p(a.buffer_info()[0]) for a in (first, second, got)))
        for x, a, b in zip(zip(first, second), got, expected):
            bits = a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
            assert bits or (a != a and b != b), (lanes, x, a, b)


@pytest.mark.parametrize(("name", "ty"), SOME)
def test_vectors_and_numbers_have_the_same_bits(code: Loaded, name: str, ty: str) -> None:
    compare(code, name, ty, Vectors.of(target.features()).bytes, 1)


@pytest.mark.parametrize(("lanes", "width"), [(0, 0), (0, 32), (2, 16), (4, 32), (8, 64)])
@pytest.mark.parametrize("name", ["exp", "exp2", "bell", "pow"])
def test_what_vanishes_is_a_product_with_zero(name: str, lanes: int, width: int) -> None:
    """Processors take a hundred cycles for a product that underflows, so softmax of masked scores would be slow."""
    text = str(definition(f"rt.{name}.f64" + (f".v{lanes}" if lanes else ""), width, apart=False))
    chosen = re.findall(r"(%t\d+) = select [^\n]* (?:0x0000000000000000|splat \(double 0x0000000000000000\))\n", text)
    factor = rf"({'|'.join(chosen)}),"
    assert re.search(rf"scalef[^\n]*{factor}" if width == 64 else rf"= fmul [^\n]* {factor}", text)


@pytest.mark.parametrize("name", ["exp", "log", "tanh"])
def test_constants_of_avx2_are_operands_in_memory(name: str) -> None:
    """LLVM would make a vector of each by an instruction of its own."""
    symbol = f"rt.{name}.f64.v4"
    with optimised(module(str(definition(symbol, 32, apart=False)) + keep([symbol])), target.here()) as (_, made):
        text = made.text()
    assert len(re.findall(r"load <4 x (?:double|i64)>", text)) >= 10
    assert not re.search(r"f(?:add|mul|sub) <4 x double> [^\n]*splat", text)


@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_the_usual_way_of_an_exponential_has_no_bounds(name: str) -> None:
    """A branch sees to arguments that are not within, and to NaN."""
    symbol = f"rt.{name}.f64.v4"
    with optimised(module(str(definition(symbol, 32, apart=False)) + keep([symbol])), target.here()) as (_, made):
        before, _, after = made.text().partition("br i1")
    assert "select" not in before
    assert after.count("select") == 4


@pytest.mark.slow
@pytest.mark.parametrize("width", [16, 32, 64])
def test_vectors_of_every_width(width: int) -> None:
    code = loaded(ALL, width)
    for name, ty in ALL:
        for seed in range(20):
            compare(code, name, ty, width, seed)


def test_loops_call_the_functions_for_vectors() -> None:
    """Also in a branch."""
    text = """define void @run(ptr noalias %a, ptr noalias %b, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %p = getelementptr double, ptr %a, i64 %i
  %x = load double, ptr %p
  %c = fcmp ogt double %x, 1.0
  br i1 %c, label %then, label %next
then:
  %y = call double @rt.sin.f64(double %x)
  br label %next
next:
  %z = phi double [ %x, %head ], [ %y, %then ]
  %q = getelementptr double, ptr %b, i64 %i
  store double %z, ptr %q
  %j = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %head, label %done
done:
  ret void
}
"""
    with optimised(module(text + library(text)), target.here()) as (_, made):
        run = made.text().partition("@run(")[2].partition("\n}")[0]
    called = set(re.findall(r"@rt\.sin\.f64\.v(\d+)", run))
    most = Vectors.of(target.features()).bytes // 8
    assert called and called <= {str(most), str(most // 2)}  # LLVM prefers half of the vector on some processors
