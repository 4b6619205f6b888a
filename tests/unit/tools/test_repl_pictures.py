"""`dpl repl` and pictures: drawn where they are evaluated, saved and opened as files."""

from __future__ import annotations

import os
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

ENGINES = pytest.mark.parametrize("engine", [pytest.param("native", marks=pytest.mark.slow), "interp"])
SINE = 'Plot.graph sin 0.0 6.0 |> Plot.title "waves"'


def rows_of(dpl, *pictures: str) -> list[str]:
    """What programs draw of pictures."""
    program = "".join(f'do begin Plot.show ({picture}); print "~" end\n' for picture in pictures)
    return dpl("run", "-", stdin=program).stdout.split("~\n")[:-1]


@ENGINES
def test_a_picture_is_drawn(dpl, engine: str) -> None:
    """Below its type; after what else an input declares; and again whenever it is asked for."""
    other = "Plot.image [[0.0, 1.0], [1.0, 0.5]]"
    text = f"{SINE}\nlet (p, one, q) = (it, 1, {other})\nq\nlet unseen () = p\none + 1\n"
    run = dpl("repl", "--engine", engine, stdin=text)
    sine, cells = rows_of(dpl, SINE, other)
    said = [f"it : Plot.picture\n{sine}", f"one : int = 1\np : Plot.picture\n{sine}", f"q : Plot.picture\n{cells}"]
    said += [f"it : Plot.picture\n{cells}", "unseen : unit -> Plot.picture\n", "it : int = 2\n"]
    assert (run.stdout, run.stderr, run.returncode) == ("".join(said), "", 0)


@ENGINES
def test_saving(dpl, tmp_path: Path, engine: str) -> None:
    svg = tmp_path / "a.svg"
    text = f"let p = {SINE}\n:save {svg} p |> Plot.size 300 200\n:save {tmp_path}/a.png p |> Plot.size 120 100\n"
    text += f"p\n:save {svg}2.svg\n"
    run = dpl("repl", "--engine", engine, stdin=text)
    assert (run.stderr, run.returncode) == ("", 0)
    assert ElementTree.parse(svg).getroot().get("width") == "300"
    assert ElementTree.parse(f"{svg}2.svg").getroot().get("width") == "800"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (":save", "to which file?"),
        (":save a.svg", "there is no value `it`"),
        (":save a.svg 2", "expected Plot.picture"),
        (":save a.svg 2 +", "E0101"),
        (":save a.jpeg Plot.line [1.0] [1.0]", "ends neither in .svg nor in .png"),
        (":save no/such/folder/a.svg Plot.line [1.0] [1.0]", "cannot write no/such/folder/a.svg"),
        (":open", "there is no value `it`"),
    ],
)
def test_what_cannot_be_saved(dpl, tmp_path: Path, verb: str, said: str) -> None:
    run = dpl("repl", "--engine", "interp", stdin=f"let x = 1\n{verb}\nx\n", cwd=tmp_path)
    assert run.stdout == "x : int = 1\nit : int = 1\n" and said in run.stderr and run.returncode == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="opens by xdg-open")
def test_opening(dpl, tmp_path: Path) -> None:
    """The system's program is given an SVG file."""
    viewer, seen = tmp_path / "xdg-open", tmp_path / "seen"
    viewer.write_text(f'#!/bin/sh\ncp "$1" {seen}.part && mv {seen}.part {seen}\n')
    viewer.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    run = dpl("repl", stdin=f":open {SINE}\n", PATH=path, TMPDIR=str(tmp_path))
    assert run.returncode == 0 and run.stdout.endswith(".svg\n")
    for _ in range(50):
        if seen.exists():
            break
        time.sleep(0.1)
    assert ElementTree.parse(seen).getroot().tag.endswith("svg")
    alone = dpl("repl", stdin=f":open {SINE}\n", PATH=str(tmp_path / "nothing"), TMPDIR=str(tmp_path))
    assert alone.returncode == 1 and "no program to open it with" in alone.stderr
