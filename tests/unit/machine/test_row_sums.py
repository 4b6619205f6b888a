"""Sums of rows in points: vectors have the columns of several points, and no row is made."""

import pytest
from dpl.source import Source
from dplc.flat.parse import parse
from dplc.machine.entry.executable import executable_text
from dplc.machine.llvm import target

ROWS = """
fn main() -> ()
  return

export f = f

fn f(a: f64[], n: i64, m: i64) -> (f64[,])
  out: f64[,] = par i < n to keep of (2)
    x: f64 = index unchecked=true a i
    rows: f64[,] = par j < {} to keep of (2)
      y: f64 = index unchecked=true a j
      z: f64 = div x y
      u: f64 = mul x y
      row: f64[] = array z u
      yield row
    total: f64[] = sum rows
    drop rows
    yield total
  return out
"""


@pytest.mark.parametrize("count", ["20", "3000", "n", "m"])
def test_rows_are_numbers(count):
    """If their number is known, or that of the points: others might be no length, and fail."""
    text, _ = executable_text(parse(Source("rows.flat", ROWS.format(count))), target.to_build("x86_64-linux", None))
    assert ("fdiv <" in text) is (count != "m")
