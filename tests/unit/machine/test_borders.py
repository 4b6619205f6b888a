"""What points do between the borders of their space, and how many steps lie at each border."""

import pytest
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.flat.walk import every
from dplc.machine.emit.points.borders import middle
from dplc.narrow import expect_type

LOOP = """
fn main() -> ()
  return

export f = f

fn f(n: i64, m: i64, a: f64[], c: bool) -> (f64[])
  longer: i64 = add n 1
  out: f64[] = par i < {} to keep
    j: i64 = sub i {}
    k: i64 = add i {}
    end: i64 = sub n 1
    {}
    y: f64 = if c1
      yield 0.0
    else
      x: f64 = index a 0
      yield x
    yield y
  return out
"""
LOOPS = {
    "the first step": ("n", 1, 1, "c1: bool = eq i 0", (1, 0)),
    "the last step": ("n", 1, 1, "c1: bool = eq i end", (0, 1)),
    "both": ("n", 1, 1, "b: bool = ge k n\n    d: bool = lt j 0\n    c1: bool = or b d", (1, 1)),
    "a step before the last": ("n", 1, 2, "c1: bool = gt k end", (0, 2)),
    "always": ("n", 1, 1, "c1: bool = lt i 0", (0, 0)),
    "from the other side": ("n", 1, 1, "c1: bool = le n k", (0, 1)),
    "an index that falls": ("n", 1, 1, "d: i64 = sub end i\n    c1: bool = lt d 1", (0, 1)),
    "far from a border": ("n", 1, 1, "c1: bool = eq i 7", None),
    "not so far in many steps": ("100", 1, 1, "c1: bool = eq i 7", (8, 0)),
    "the middle of many": ("100", 1, 1, "c1: bool = lt i 50", None),
    "few steps": ("4", 1, 1, "c1: bool = eq i 0", None),
    "a length that is a sum": ("longer", 1, 1, "c1: bool = ge i n", (0, 1)),
    "before a sum's end": ("n", 1, 1, "c1: bool = ge k longer", (0, 0)),
    "another length": ("n", 1, 1, "c1: bool = ge k m", None),
    "what points do not know": ("n", 1, 1, "d: bool = eq i 0\n    c1: bool = and c d", (1, 0)),
    "what else it depends on": ("n", 1, 1, "d: bool = ne i 0\n    c1: bool = and c d", None),
}


@pytest.mark.parametrize("name", LOOPS)
def test_borders(name):
    count, less, more, condition, borders = LOOPS[name]
    fn = parse(Source("loop.flat", LOOP.format(count, less, more, condition))).fns["f"]
    loop = expect_type(f.Par, fn.body.binds[-1].rhs)
    assert middle(loop.space, (), loop.body.binds, False, fn.body) is None
    made = middle(loop.space, (), loop.body.binds, True, fn.body)
    assert (made and made.borders["i"]) == borders
    assert made is None or not any(isinstance(bind.rhs, f.If) for bind in every(f.Block(made.binds, ())))
