"""The verifier of reference counts accepts what the pass makes, and nearly nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from dpl.diagnostics import Bug
from dpl.node import replace
from dpl.source import Source
from dplc.flat.parse import parse
from dplc.flat.verify_counts import verify
from stages import Edit, called, counting, flat_stages, programs, sample

SMALL = [path for path in sample(6) if path.stat().st_size < 600]


@pytest.mark.parametrize("path", [*SMALL, *(pytest.param(p, marks=pytest.mark.slow) for p in programs())], ids=called)
def test_mutants_are_rejected(path: Path) -> None:
    """Of a program with one change of a count left out, or done twice."""
    choice = random.Random(called(path))
    for _, program in flat_stages(path)[-1:]:
        verify(program)
        places = [(name, i) for name, fn in program.fns.items() for i in range(counting(fn.body))]
        for name, number in choice.sample(places, min(6, len(places))):
            for times in (0, 2):
                mutant, fn = program.copy(), program.fns[name]
                mutant.fns[name] = replace(fn, body=Edit(number, times).block(fn.body))
                with pytest.raises(Bug, match="reference counts"):
                    verify(mutant)


HEAD = """data list = [] | :: (str, list)

fn keep(xs: &list) -> ()
  return

fn eat(xs: list) -> ()
  drop xs
  return

"""
CONS = "switch xs\n  case 1 (p: (str, list))\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("drop xs\n  keep(xs)\n  return", "xs is used after its last owner has gone"),
        ("eat(xs)\n  keep(xs)\n  return", "xs is used after its last owner has gone"),
        ("return", "xs is never dropped"),
        ("dup xs\n  drop xs\n  return", "xs is never dropped"),
        ("drop ys\n  drop xs\n  return", "ys is given away without an owner"),
        ("for i < 3 state ()\n    drop xs\n  return", "xs is given away without an owner"),
        ("if true\n    drop xs\n  else\n    eat(ys)\n  return", "ys is given away without an owner"),
        ("if true\n    drop xs\n  else\n    keep(ys)\n  return", "different numbers of owners"),
        (CONS + "    s: str = p.0\n    drop xs\n    write s\n  return", "p is used"),
        (CONS + "    take data=list tag=1 xs\n  return", "p is never dropped"),
        ("take data=list tag=1 xs\n  return", "is not taken apart in an arm"),
        ("t: (list, list) = (xs, xs)\n  b: list = t.1\n  eat(b)\n  eat(xs)\n  return", "without an owner"),
    ],
)  # fmt: skip
def test_wrong_counts(body: str, said: str) -> None:
    program = parse(Source("here", f"{HEAD}fn f(xs: list, ys: &list) -> ()\n  {body}"))
    with pytest.raises(Bug, match=said):
        verify(program)


@pytest.mark.parametrize(
    "body",
    [
        "drop xs\n  return",
        "keep(xs)\n  eat(xs)\n  return",
        "dup ys\n  eat(ys)\n  drop xs\n  return",
        "dup xs\n  t: (list, list) = (xs, xs)\n  a: list = t.0\n  drop a\n  b: list = t.1\n  drop b\n  return",
        "for i < 3 state ()\n    dup xs\n    eat(xs)\n  drop xs\n  return",
        CONS + "    take data=list tag=1 xs\n    drop p\n  case 0\n    drop xs\n  return",
        "switch ys\n  case 1 (p: (str, list))\n    s: str = p.0\n    write s\n  default\n  drop xs\n  return",
    ],
)
def test_right_counts(body: str) -> None:
    verify(parse(Source("here", f"{HEAD}fn f(xs: list, ys: &list) -> ()\n  {body}")))
