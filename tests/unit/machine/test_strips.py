"""Which part of a point is kept in strips, and which part is vectors after that."""

from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.machine.emit.points.strips import in_parts
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
