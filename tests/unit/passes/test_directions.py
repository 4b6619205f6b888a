"""What follows from directions that are rows of an identity."""

from __future__ import annotations

import pytest
from dpl.source import Source
from dplc.flat.parse import parse
from dplc.passes.vectors.directions import following

PROGRAM = """
fn main() -> ()
  return

export f = f

fn f(n: i64, x: f64) -> (f64)
  eq.1: bool = eq n 3
  one.2: f64 = if eq.1
    yield 1.0
  else
    yield 0.0
{}
"""


def found(text: str, *others: str) -> set[str]:
    lines = "\n".join(f"  {line}" for line in text.strip().splitlines())
    names = following(parse(Source("f.flat", PROGRAM.format(lines) + "\n".join(others))))["f"]
    return names - {"one.2"}


def test_a_state_that_goes_round_several_states():
    chain = """(a.3: f64, b.4: f64, c.5: f64) = for i.7 < n state (s.8: f64 = x, t.9: f64 = x, u.10: f64 = one.2)
  yield t.9, u.10, x
return a.3"""
    assert found(chain) == {"u.10", "t.9", "s.8", "a.3", "b.4", "c.5"}


def test_a_condition_decides_on_all_states():
    asked = """(a.3: f64) = while state (s.8: f64 = x)
  lt.12: bool = lt s.8 one.2
  test lt.12
do
  m.13: f64 = mul s.8 0.5
  yield m.13
return a.3"""
    assert found(asked) >= {"lt.12", "s.8", "m.13", "a.3"}


@pytest.mark.parametrize("given, follows", [("one.2", True), ("x", False)])
def test_functions_that_call_themselves(given, follows):
    recursive = """
fn g(n: i64, y: f64, z: f64) -> (f64)
  le.1: bool = le n 0
  v.2: f64 = if le.1
    yield z
  else
    m.3: i64 = sub n 1
    w.4: f64 = g(m.3, z, y)
    yield w.4
  return v.2
"""
    names = found(f"r.3: f64 = g(n, {given}, x)\nq.4: f64 = sin r.3\nreturn q.4", recursive)
    assert names == ({"r.3", "q.4"} if follows else set())
