"""How much the points of a loop do, as far as this is known before they run."""

from __future__ import annotations

from dpl.source import Source
from dplc.flat.parse import parse
from dplc.passes.kernels.work import of_block

TEXT = """
fn main(a: f64[,], v: f64[], n: i64) -> (f64[,], f64[])
  column.1: f64[,] = reshape v n 1
  c.2: f64[,] = matmul ta=false tb=false a column.1
  d.3: f64[] = reshape c.2 n
  e.4: f64[] = add d.3 v
  return c.2, e.4
"""


def test_arrays_that_points_make_have_lengths() -> None:
    """A column has one, where lengths that are not known count as several."""
    program = parse(Source("test", TEXT))
    found = of_block(program, program.fns["main"].body, lambda var, k: f"{var.name}.{k}" if k >= 0 else var.name)
    assert found[("a.0", "a.1")] == 2.0 and found[("n",)] == 1.0
