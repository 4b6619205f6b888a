"""Which calls of elementary functions become one call for a vector."""

from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.machine.emit.scalars.function_groups import groups, moved

PROGRAM = """
fn main(x.1: f64, y.2: f64) -> (f64) as main
  a.3: f64 = sigmoid x.1
  b.4: f64 = sigmoid y.2
  mul.5: f64 = mul y.2 0.5
  c.6: f64 = sigmoid mul.5
  exp.7: f64 = exp a.3
  d.8: f64 = sigmoid exp.7
  e.9: f64 = exp c.6
  add.10: f64 = add d.8 e.9
  return add.10
"""


def main() -> f.Block:
    return parse(Source("groups", PROGRAM)).fns["main"].body


def calls(width: int) -> list[list[str]]:
    return [[bind.vars[0].name for bind in group.calls] for group in groups(main().binds, width).values()]


def test_operands_are_there_or_come_early() -> None:
    found = groups(main().binds, 64)
    assert calls(64) == [["a.3", "b.4", "c.6"], ["exp.7", "e.9"]]  # d.8 needs what comes after the first call
    assert [bind.vars[0].name for bind in found["a.3"].before] == ["mul.5"]
    assert moved(found) == {"b.4", "c.6", "mul.5", "e.9"}


def test_no_more_than_a_vector_has() -> None:
    assert calls(16) == [["a.3", "b.4"], ["exp.7", "e.9"]]
    assert calls(0) == []
