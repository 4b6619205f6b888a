"""The book: every block of DPL prints what its page says; Sphinx builds it without a warning; the programs of other
systems in it print the same numbers.

`dpl test --engine interp --update PAGE` writes what the blocks of a page print.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output
from dpl.diagnostics import DplError
from dpl.source import Source
from dpl.syntax.automaton import Parser
from dpl.syntax.formatter.format import format_source
from dpl.syntax.pages import blocks
from dpl.syntax.parse import parse_block
from dpl.syntax.tables import tables
from dplc.commands import cli
from dplc.tools.test.pages import shown

DOCS = ROOT / "docs"
MADE = ("_build", "library", "errors.md")  # when the book is built
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    if not {*page.parts} & {*MADE, "node_modules"} and any(block.runs for block in blocks(page.read_text("utf-8")))
]
HEAVY = ("playground/tour", "tutorial/06-loops", "tutorial/08-fit", "tutorial/09-network")  # in the interpreter
NOTATIONS = ("language/expressions", "language/functions", "README")
OTHERS = {"pytorch": ("torch", "python"), "jax": ("jax", "python"), "ocaml": ("ocaml", "ocaml")}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix("")).removeprefix("docs/")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page(page: Path) -> None:
    _, found = shown(page, "native" if name(page) in HEAVY else "interp")
    assert [f"{page.name}:{one.line}\n{one.why}" for one in found if one.why] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_in_native_code(dpl, page: Path) -> None:
    run = dpl("test", "--engine", "native", page)
    assert run.returncode == 0, run.stdout


def test_the_page_of_the_command_has_every_verb() -> None:
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert [verb for verb in cli.commands if f"dpl {verb}" not in page] == []


@pytest.mark.slow
def test_sphinx_builds_the_book(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="the extra `docs` is not installed")
    pytest.importorskip("myst_parser", reason="the extra `docs` is not installed")
    source = tmp_path / "docs"
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns(*MADE, "node_modules"))
    shutil.copy(ROOT / "ARCHITECTURE.md", tmp_path)
    shutil.copytree(ROOT / "editors", tmp_path / "editors", ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", source, tmp_path / "html"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "html" / "library" / "List.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
def test_the_other_system_prints_the_same(dpl, tmp_path: Path, other: str) -> None:
    needs, language = OTHERS[other]
    if not (find_spec(needs) if language == "python" else shutil.which(needs)):
        pytest.skip(f"{needs} is not installed")
    page = DOCS / "coming-from" / f"{other}.md"
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"^```{language}\n(.*?)^```\n```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found
    program = tmp_path / "program"
    program.write_text(found[1], encoding="utf-8")
    command = [sys.executable if language == "python" else "ocaml", program]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, found[2])
    first = next(block for block in blocks(text) if block.runs and block.output)
    start, end = first.output or (0, 0)
    ours = re.findall(r"-?\d+\.\d+", text[start:end])
    theirs = re.findall(r"-?\d+\.\d+", found[2])
    assert all(any(abs(float(a) - float(b)) < 1e-11 for b in ours) for a in theirs)


def test_the_reference_has_an_example_of_each_construct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every production of the grammar: also of each operator, and of punctuation that may be left out."""
    used: set[int] = set()
    reduce = Parser.reduce

    def recorded(parser: Parser, number: int, here: int) -> None:
        used.add(number)
        reduce(parser, number, here)

    monkeypatch.setattr(Parser, "reduce", recorded)
    for page in sorted((DOCS / "language").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for block in blocks(text):
            with suppress(DplError):  # some show syntax errors
                parse_block(Source(page.name, text), block)
    missing = {(rule.action, rule.size) for number, rule in enumerate(tables().rules) if number not in used}
    assert missing == {("type_alone", 1), ("file", 0)}  # a type by itself is for tools; an empty program has no text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_is_formatted(page: Path) -> None:
    if name(page) in NOTATIONS:
        pytest.skip("the page shows notations that `dpl fmt` replaces by others")
    text = page.read_text(encoding="utf-8")
    assert format_source(Source(page.name, text, page)) == text
