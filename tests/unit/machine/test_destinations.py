"""Which rows that an inner loop makes are written where they stay."""

import pytest
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.flat.walk import every
from dplc.machine.emit.points.destinations import rows_there

PROGRAM = """
fn main() -> ()
  return

export f = f

fn f(x: f64[,], n: i64, m: i64) -> (f64[,], f64[])
  (out: f64[,], sums: f64[]) = par i < n to keep of ({told}), keep
    (r: f64[], s: f64) = par j < {count} to keep{over}, fold 0
      y: f64 = index unchecked=true x i j
      yield y, y
    {after}
    yield {row}, s
  return out, sums
"""
PLAIN = {"told": "m", "count": "m", "over": "", "after": "", "row": "r"}
CASES = {
    "a row beside a sum": ({}, (0,)),
    "a known length": ({"told": "8", "count": "8"}, (0,)),
    "another length": ({"told": "m", "count": "n"}, ()),
    "read again": ({"after": "z: f64 = index unchecked=true r 0"}, ()),
    "a row of something else": ({"row": "q", "after": "q: f64[] = index unchecked=true x i"}, ()),
    "over another array": ({"over": " in z", "after": ""}, ()),
}


@pytest.mark.parametrize(("change", "rows"), CASES.values(), ids=CASES)
def test_rows_that_are_written_there(change: dict[str, str], rows: tuple[int, ...]) -> None:
    text = PROGRAM.format_map(PLAIN | change)
    if "over" in change:
        text = text.replace("    (r: f64[], s", "    z: f64[] = index unchecked=true x i\n    (r: f64[], s")
    (outer, *_) = [bind.rhs for bind in every(parse(Source("rows", text)).fns["f"].body) if isinstance(bind.rhs, f.Par)]
    assert rows_there(outer) == rows
