"""Which rows need no owner."""

import pytest
from dpl.source import Source
from dplc.flat.parse import parse
from dplc.machine.emit.bodies.loans import loans

READS = """
  r.3: f64[] = index a.1 0
  x.4: f64 = dot r.3 b.2
  s.9: f64 = par i.8 < 3 to fold 0
    y.7: f64 = index r.3 i.8
    yield y.7
"""
ANOTHER = """
  t.5: f64[] = index a.1 1
  drop t.5
"""


def lent(body: str) -> set[str]:
    text = f"fn main(a.1: f64[,], b.2: f64[]) -> (f64) as main{body}  return x.4\n"
    return loans(parse(Source("loans", text)).fns["main"].body.binds)


def test_a_row_that_is_read() -> None:
    assert lent(READS + "  drop r.3\n") == {"r.3"}
    assert lent(READS + ANOTHER.lstrip("\n") + "  drop r.3\n") == {"r.3", "t.5"}


@pytest.mark.parametrize("between", [
    "  drop a.1\n",  # the array ends before the row
    "  dup r.3\n",  # the row has another owner
    "  c.5: f64[,] = update a.1 1.0 0 0\n",  # the array may change in place
    "  v.5: f64[] = reshape r.3 3\n",  # the same memory
    "  p.5: (f64[], f64) = (r.3, x.4)\n",
])  # fmt: skip
def test_a_row_that_needs_an_owner(between: str) -> None:
    assert lent(READS + between + "  drop r.3\n") == set()


def test_a_row_that_is_given_away() -> None:
    assert lent(READS) == set()
