"""Accesses of points to arrays that were there before are marked as such, so that LLVM makes vectors of the loop."""

import re

from dpl.source import Source
from dplc.flat.parse import parse
from dplc.machine.emit.llvm import emit_text

ROWS = """
fn main() -> ()
  return

export f = f

fn f(n: i64, a: f64[,]) -> (f64[])
  out: f64[] = par i < n to keep
    row: f64[] = index unchecked=true a i
    x: f64 = index unchecked=true row 0
    y: f64 = index unchecked=true row 1
    z: f64 = div x y
    yield z
  return out
"""


def test_a_row_is_as_old_as_its_array():
    text, _ = emit_text(parse(Source("rows.flat", ROWS)))
    points = text[text.index('define internal fastcc void @"dpl f points') :].partition("\n}")[0]
    loads = re.findall(r"load double.*", points)
    assert len(loads) == 2 and all("!llvm.access.group" in load for load in loads)
