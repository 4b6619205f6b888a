"""Results of points that are written over an array: no row of them has memory of its own, and nothing leaks."""

import resource

import pytest
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.flat.verify import verify
from dplc.flat.walk import every
from dplc.machine.emit.llvm import emit_text
from dplc.machine.llvm.versions import final
from dplc.machine.object.assemble import assemble
from dplc.machine.object.compiled import Compiled
from dplc.machine.run.linked import linked
from dplc.machine.run.program import execute
from dplc.passes.kernels.nest import nest
from dplc.passes.memory.reference_counts import count_references

NEST = """
    u: f64[,] = par i < 64 to keep of (64) in s
      r: f64[] = par j < 64 to keep
        x: f64 = index unchecked=true s i j
        y: f64 = add x 1.0
        yield y
      yield r
"""
BESIDE_ROWS = """
    (u: f64[,], rows: f64[,,]) = par i < 64, j < 64 to keep in s, keep of (64)
      x: f64 = index unchecked=true s i j
      y: f64 = add x 1.0
      row: f64[] = index unchecked=true a i
      yield y, row
"""
BESIDE_SUMS = """
    (u: f64[,], sums: f64[]) = par i < 64 to keep of (64) in s, keep
      (r: f64[], total: f64) = par j < 64 to keep, fold 0
        x: f64 = index unchecked=true s i j
        y: f64 = add x 1.0
        yield y, x
      yield r, total
"""
CASES = {"nest": (NEST, 1000), "beside_rows": (BESIDE_ROWS, 200), "beside_sums": (BESIDE_SUMS, 1000)}


def program(points: str, steps: int) -> f.Program:
    text = f"""
fn main() -> ()
  zeros: f64[] = fill 64 0.0
  a: f64[,] = fill 64 zeros
  c: f64[,] = for t < {steps} state (s: f64[,] = a)
{points.strip(chr(10))}
    yield u
  z: f64 = index c 63 63
  buf_num z
  out: str = buf_take
  write out
  return
"""
    return parse(Source("targets", text))


def test_a_nest_writes_its_target_number_by_number():
    (outer,) = [bind.rhs for bind in every(program(NEST, 1).fns["main"].body)
                if isinstance(bind.rhs, f.Par) and bind.rhs.outs[0].target]  # fmt: skip
    levels = nest(outer)
    assert len(levels) == 2 and levels[-1].par.outs[0].target == outer.outs[0].target


@pytest.mark.parametrize(("points", "steps"), CASES.values(), ids=CASES)
def test_what_is_written_over_does_not_leak(points, steps, capfd, monkeypatch):
    monkeypatch.setenv("DPL_THREADS", "1")
    given = program(points, steps)
    verify(given)
    text, sites = emit_text(count_references(given))
    code = linked(Compiled(assemble(final(text)), sites.to_json()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert execute(code) == 0
    assert capfd.readouterr().out == f"{steps}.0"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < steps * 32 / 2
