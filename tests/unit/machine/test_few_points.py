"""Points of a few that add to rows and are summed: the additions are vectors, the sums are in order."""

import re

import pytest
from dpl.source import Source
from dplc.flat.parse import parse
from dplc.machine.entry.executable import executable_text
from dplc.machine.llvm import target

PRODUCT = """
fn main() -> ()
  return

export f = f

fn f(c0: f64[,], m: f64[,], y: f64[], u: f64, v: f64, i: i64) -> (f64, f64, f64[,])
  (s: f64, t: f64, out: f64[,]) = par j < {} to fold 0, fold 0, add (c: f64[,] = c0)
    z: f64 = index unchecked=true y j
    a: f64 = index unchecked=true m i j
    b: f64 = index unchecked=true m 0 j
    p: f64 = mul a z
    q: f64 = mul b z
    d: f64 = mul u z
    e: f64 = mul v z
    c1: f64[,] = acc_index rank=2 c d 9 9 i j
    c2: f64[,] = acc_index rank=2 c1 e 9 9 0 j
    yield p, q, c2
  return s, t, out
"""


@pytest.mark.parametrize("count", ["2", "6"])
def test_rows_are_added_in_vectors(count):
    """Two points are not worth a vector."""
    program = parse(Source("rows.flat", PRODUCT.format(count)))
    made, _ = executable_text(program, target.to_build("x86_64-linux", "x86-64-v3"))
    vectors = len(re.findall(r"fadd <[24] x double> %", made))
    assert vectors == (4 if count == "6" else 0)  # two rows, each in a vector of four and one of two
    assert len(re.findall(r"fadd double .*, %", made)) >= (12 if count == "6" else 0)  # one sum after the other
    assert "masked.store" not in made


STEPS = """
fn main() -> ()
  return

export f = f

fn f(c0: f64[], m: f64[,], y: f64[], n: i64) -> (f64[], f64[])
  (s: f64[], out: f64[]) = par j < {} to keep, add (c: f64[] = c0)
    (t: f64, c3: f64[]) = for k < n state (t0: f64 = 0.0, c1: f64[] = c)
      z: f64 = index unchecked=true y k
      a: f64 = index unchecked=true m k j
      p: f64 = mul a z
      t1: f64 = add t0 p
      c2: f64[] = acc_index rank=1 c1 p 9 k
      yield t1, c2
    yield t, c3
  return s, out
"""


@pytest.mark.parametrize("count", ["4", "8"])
def test_lanes_are_no_more_than_points(count):
    """What four lanes add at one place has the order of eight, of which the upper half adds -0.0."""
    program = parse(Source("steps.flat", STEPS.format(count)))
    made, _ = executable_text(program, target.to_build("x86_64-linux", "x86-64-v3"))
    assert f"fadd <{count} x double>" in made
    assert ("fadd <8 x double>" in made) == (count == "8")
