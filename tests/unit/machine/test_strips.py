"""Which part of a point is kept in strips, and which part is vectors after that."""

import pytest
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.machine.emit.points.strips import in_parts
from dplc.machine.entry.executable import executable_text
from dplc.machine.llvm import target
from dplc.narrow import expect_type

LOGSUMEXP = """
fn main() -> ()
  return

fn f(n: i64, m: i64, a: f64[,]) -> (f64)
  total: f64 = par i < n to fold 0
    row: f64[] = index a i
    top: f64 = sum row
    size: f64 = abs top
    infinite: bool = eq size inf
    shift: f64 = if infinite
      yield 0.0
    else
      yield top
    powers: f64 = par k < m to fold 0
      x: f64 = index row k
      y: f64 = sub x shift
      z: f64 = exp y
      yield z
    logarithm: f64 = if infinite
      yield top
    else
      l: f64 = log powers
      t: f64 = add top l
      yield t
    yield logarithm
  return total
"""


def test_a_condition_of_both_parts_is_asked_in_both():
    par = expect_type(f.Par, parse(Source("loop.flat", LOGSUMEXP)).fns["f"].body.binds[0].rhs)
    parts = in_parts(par, par.body.binds, masks=True)
    assert parts is not None
    assert {var.name for var in parts.kept} == {"top", "size", "powers"}
    assert [bind.vars[0].name for bind in parts.second] == ["infinite", "logarithm"]


CHANNELS = """
fn main() -> ()
  return

export f = f

fn f(far: bool, w: f64[,], g: f64[], z: f64[,]) -> (f64[,], f64)
  (c: f64[,], s: f64) = par t < 64 to add (c0: f64[,] = z), fold 0
    (c1: f64[,], near: f64, twice: f64) = par o < 4 to add (acc: f64[,] = c0), fold 0, fold 0
      v: f64 = if far
        a: f64 = index unchecked=true w o 2
        b: f64 = index unchecked=true w o 1
        m: f64 = mul a b
        yield m
      else
        yield 0.0
      s: f64 = sech2 v
      x: f64 = index unchecked=true g o
      y: f64 = mul x s
      (next: f64[,], one: f64) = if far
        u: f64 = index unchecked=true w o 3
        l: f64 = mul y u
        added: f64[,] = acc_index rank=2 acc l 4 4 o 1
        yield added, l
      else
        yield acc, 0.0
      two: f64 = mul one 2.0
      yield next, one, two
    both: f64 = add near twice
    yield c1, both
  return c, s
"""


def outermost(text: str) -> f.Par:
    return expect_type(f.Par, parse(Source("loop.flat", text)).fns["f"].body.binds[0].rhs)


def test_what_a_branch_gives_beside_what_it_adds_is_of_the_second_part():
    """The gradient of a causal convolution: few points, branches that ask where a row begins, sums beside."""
    par = expect_type(f.Par, outermost(CHANNELS).body.binds[0].rhs)
    parts = in_parts(par, par.body.binds, masks=True)
    assert parts is not None and parts.adds
    assert [var.name for var in parts.kept] == ["y"]
    assert [bind.vars[-1].name for bind in parts.second] == ["one", "two"]
    again = in_parts(parts.first, parts.first.body.binds, masks=True, branches=False)
    assert again is not None
    assert [var.name for var in again.kept] == ["v"]  # functions are vectors, branches that read need not be
    assert in_parts(parts.first, parts.first.body.binds, masks=True) is None


def test_few_points_that_add_and_sum_have_vectors_of_functions():
    made, _ = executable_text(parse(Source("loop.flat", CHANNELS)), target.to_build("x86_64-linux", "x86-64-v3"))
    assert made.count("alloca [16 x double]") == 2  # v and y


@pytest.mark.parametrize(("numbers", "fits"), [(16, True), (17, False)])
def test_points_keep_up_to_sixteen_numbers(numbers, fits):
    """A camera has a dozen: all are vectors, if none is to be kept in vain."""
    made = "".join(f"    y{k}: f64 = sin x{k - 1}\n    x{k}: f64 = mul y{k} x\n" for k in range(1, numbers + 1))
    adds = "".join(f"    c{k}: f64[,] = acc_index rank=2 c{k - 1} x{k} n 20 at {k}\n" for k in range(1, numbers + 1))
    par = outermost(f"""
fn main() -> ()
  return

fn f(n: i64, k: i64[], a: f64[], z: f64[,]) -> (f64[,])
  c: f64[,] = par i < n to add (c0: f64[,] = z)
    at: i64 = index unchecked=true k i
    x: f64 = index unchecked=true a i
    x0: f64 = cos x
{made}{adds}    yield c{numbers}
  return c
""")
    parts = in_parts(par, par.body.binds, masks=True)
    assert (parts is not None and len(parts.kept) == numbers) == fits
