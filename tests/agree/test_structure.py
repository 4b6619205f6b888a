"""What must be left of programs after stages, by their `-- structure` lines (`tests/structure.py`).

A fusion that is lost, an array that is made in a loop anew, a count that is changed in one: a failed test.  `pytest
--bless` rewrites the numbers; read the difference.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT
from dpl.source import Source
from dpl.syntax.load import read
from dplc.pipeline import NAMES, Context, compile_from, compile_to
from dplc.stack import on_large_stack
from structure import LINE, counts

GRADIENT = "\ndo print (Tree.dot (grad f x0) x0)\n"  # `gradients/` define functions and points only


def told(path: Path) -> bool:
    return LINE.search(path.read_text(encoding="utf-8")) is not None


PROGRAMS = [path for folder in ("agree", "golden") for path in sorted((ROOT / "tests" / folder).glob("*/*.dp"))]


def source(path: Path) -> Source:
    if path.parent.name == "gradients":
        return Source(path.name, path.read_text(encoding="utf-8") + GRADIENT)
    return read(path)


def found(path: Path, lines: list[re.Match[str]]) -> dict[str, str]:
    """For each line the same with what there is.  The arrays of these programs are small, and stand for large ones:
    they are not split into numbers."""
    context, now = Context(), {}
    at, value = "small_arrays", compile_to("promote", source(path), context)[1]
    for line in sorted(lines, key=lambda line: NAMES.index(line[1])):
        if NAMES.index(line[1]) < NAMES.index("small_arrays"):
            made = compile_to(line[1], source(path), context)[1]
        else:
            made = value = compile_from(at, value, line[1], context)[1]
            at = line[1]
        there = counts(made, line[2].strip())
        wanted = [word.split(" ")[0] for word in line[3].split(", ")]
        now[line[0]] = f"-- structure {line[1]}{line[2]} {{ {', '.join(f'{word} {there[word]}' for word in wanted)} }}"
    return now


@pytest.mark.parametrize("path", [p for p in PROGRAMS if told(p)], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_structure(request: pytest.FixtureRequest, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = list(LINE.finditer(text))
    now = on_large_stack(lambda: found(path, lines))
    if request.config.getoption("--bless"):
        path.write_text(LINE.sub(lambda line: now[line[0]], text), encoding="utf-8")
    else:
        assert list(now) == list(now.values())
