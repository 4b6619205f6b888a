"""Whether each point of a loop adds at places of its own, so that LLVM may make vectors of its points."""

import pytest
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.flat.walk import every
from dplc.machine.emit.points.own_places import adds_apart
from dplc.narrow import expect_type

LOOP = """
fn main() -> ()
  return

export f = f

fn f(n: i64, c0: f64[], x: f64) -> (f64[])
  out: f64[] = par {space} to add (c: f64[] = c0)
    {body}
    yield d
  return out
"""
LAGS = """d1: f64[] = acc_index rank=1 c x n t
    k: i64 = add t n
    d: f64[] = acc_index rank=1 d1 x n k"""
INNER = """d: f64[] = for j < 3 state (s: f64[] = c)
      k: i64 = add t j
      e: f64[] = acc_index rank=1 s x n k
      yield e"""
LOOPS = {
    "at its index": (True, "t < n", "d: f64[] = acc_index rank=1 c x n t"),
    "moved by a number from outside": (True, "t < n", "k: i64 = add t n\n    d: f64[] = acc_index rank=1 c x n k"),
    "at two places": (False, "t < n", LAGS),
    "moved by another index": (False, "t < n, u < 4", "k: i64 = add t u\n    d: f64[] = acc_index rank=1 c x n k"),
    "moved by the index of a loop inside": (False, "t < n", INNER),
}


@pytest.mark.parametrize("name", LOOPS)
def test_points_add_apart(name):
    wanted, space, body = LOOPS[name]
    fn = parse(Source("loop.flat", LOOP.format(space=space, body=body))).fns["f"]
    loop = expect_type(f.Par, fn.body.binds[0].rhs)
    held = {"c", *(var.name for bind in every(loop.body) for var in bind.vars if var.ty == fn.params[1].ty), "s"}
    assert adds_apart(loop, held) is wanted
