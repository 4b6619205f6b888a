"""Which loops with branches are vectors under masks, though LLVM's estimate may be against that."""

import pytest
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.machine.emit.points.masks import has_masks
from dplc.machine.entry.executable import executable_text
from dplc.machine.llvm import target
from dplc.narrow import expect_type

LOOP = """
fn main() -> ()
  return

export f = f

fn f(n: i64, a: f64[,], b: f64[], p: i64[], c: bool) -> (f64[])
  out: f64[] = par i < 100 to keep
    x: f64 = index unchecked=true a 3 i
    {}
    yield y
  return out
"""
STENCIL = """low: bool = eq i 0
    y: f64 = if low
      yield 0.0
    else
      k: i64 = sub i 1
      z: f64 = index unchecked=true a 2 k
      w: f64 = div x z
      yield w"""
BODIES = {
    "arithmetic and neighbours": (True, STENCIL),
    "no branch": (False, "y: f64 = sqrt x"),
    "a branch for NaN": (False, """s: bool = eq x x
    y: f64 = if s
      yield x
    else
      yield 0.0"""),
    "numbers far apart": (False, STENCIL.replace("index unchecked=true a 2 k", "index unchecked=true a k 2")),
    "a read that is checked": (False, STENCIL.replace("unchecked=true ", "")),
    "one number for all points": (False, STENCIL.replace("index unchecked=true a 2 k", "index unchecked=true b 2")),
    "places that an array tells": (False, STENCIL.replace("sub i 1", "index unchecked=true p i")),
    "the same remainder at each point": (False, STENCIL.replace("w: f64", "r: i64 = mod 7 n\n      w: f64")),
    "a remainder": (False, STENCIL.replace("sub i 1", "mod i 5")),
    "a function": (False, STENCIL.replace("div x z", "atan2 x z")),
    "a condition of the last step": (False, STENCIL.replace("eq i 0", "eq i 99")),
    "a condition of the step before": (True, STENCIL.replace("eq i 0", "eq i 90")),
    "a condition of all but the last step": (False, STENCIL.replace("eq i 0", "lt i 99")),
    "a function outside of the branch": (False, STENCIL.replace("low:", "t: f64 = exp x\n    low:")),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_masks(name):
    wanted, body = BODIES[name]
    fn = parse(Source("loop.flat", LOOP.format(body))).fns["f"]
    loop = expect_type(f.Par, fn.body.binds[0].rhs)
    assert has_masks(*loop.space[0], loop.body.binds, fn.body) is wanted


@pytest.mark.parametrize(("length", "last"), [("n", "sub n 1"), ("m", "add n 0"), ("n", "sub m 2")])
def test_the_last_step_of_a_loop_of_any_length(length, last):
    body = STENCIL.replace("low: bool = eq i 0", f"end: i64 = {last}\n    low: bool = eq i end")
    text = LOOP.format(body).replace("  out:", "  m: i64 = add n 1\n  out:").replace("i < 100", f"i < {length}")
    fn = parse(Source("loop.flat", text)).fns["f"]
    loop = expect_type(f.Par, fn.body.binds[1].rhs)
    assert not has_masks(*loop.space[0], loop.body.binds, fn.body)


@pytest.mark.parametrize(("machine", "wide"), [("x86_64-linux", True), ("aarch64-linux", False)])
def test_machines_with_masks(machine, wide):
    program = parse(Source("loop.flat", LOOP.format(STENCIL)))
    text, _ = executable_text(program, target.to_build(machine, None))
    assert ("llvm.loop.vectorize.width" in text) is wide


ARMS = """
fn main() -> ()
  return

export f = f

fn f(a: f64[], m: i64) -> (f64[])
  c: f64[] = acc_zeros null:f64[] 40
  out: f64[] = par k < 40 to add (d: f64[] = c)
    here: bool = eq k m
    e: f64[] = if here
      yield d
    else
      x: f64 = index unchecked=true a k
      y: f64 = mul x 3.0
      g: f64[] = acc_index rank=1 d y 40 k
      yield g
    yield e
  return out
"""


@pytest.mark.parametrize(("machine", "wide"), [("x86_64-linux", True), ("aarch64-linux", False)])
def test_arms_of_lanes(machine, wide):
    """Lanes read and add in the arm that they take; other machines have a branch."""
    text, _ = executable_text(parse(Source("arms.flat", ARMS)), target.to_build(machine, None))
    assert ("llvm.masked.load.v" in text) is wide and ("llvm.masked.store.v" in text) is wide
