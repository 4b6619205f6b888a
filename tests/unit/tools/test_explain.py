"""`dpl explain`: a page for every code, a code for every page, and programs that do what the pages say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from dpl import resources
from dpl.diagnostics import DplError
from dpl.syntax.load import load
from dpl.types.check import check_all
from dpl.types.warnings.advice import advice_without_running

PAGES = sorted(resources.codes().glob("*.md"))
PROGRAM = re.compile(r"^```dpl (wrong|right)([ \w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ONLY_INTERNAL = {"R0301"}  # of the compiler's own test interpreter
PLAIN = {  # no program shows them everywhere
    "E0110", "E0406", "E0512", "E0513", "E0571", "E0572", "R0505", "R0508", "R0509", "R0510", "R0511", "R0512",
    "R0513",
}  # fmt: skip


def programs(page: Path) -> list[tuple[str, list[str], str]]:
    """Kind, command if the program is not only checked, text."""
    found = PROGRAM.findall(page.read_text(encoding="utf-8"))
    return [(kind, command.split() or ["run"] * (page.stem[0] == "R"), text) for kind, command, text in found]


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    sources = [p for folder in ("lang", "compiler") for p in (ROOT / folder).rglob("*.py")]
    used = {code for p in sources for code in re.findall(r'"([EWR]\d{4})"', p.read_text(encoding="utf-8"))}
    assert used - ONLY_INTERNAL == {page.stem for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page(dpl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem}: ") and max(map(len, text.split("\n"))) <= 120
    assert [kind for kind, _, _ in programs(page)] == ([] if page.stem in PLAIN else ["wrong", "right"])
    for kind, command, program in programs(page):
        file = tmp_path / "main.dp"
        file.write_text(program, encoding="utf-8")
        wanted = {page.stem} if kind == "wrong" else set()
        if not command:
            assert codes(file) == wanted
        engines = ("interp", "native") if page.stem[0] == "R" else ("native",)
        for engine in engines if command == ["run"] else command[:1]:
            choice = ("--engine", engine) if command == ["run"] else command[1:]
            run = dpl(*command[:1], *choice, file, DPL_STACK="64", cwd=tmp_path)
            assert set(re.findall(r"(?:error|warning)\[(.....)\]", run.stderr)) == wanted, run.stderr
            assert run.returncode == (bool(wanted) and page.stem != "W0601"), run.stderr


COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = [page for page in PAGES if COMMANDS.search(page.read_text(encoding="utf-8"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWN, ids=lambda p: p.stem)
def test_commands_of_a_page(tmp_path: Path, page: Path) -> None:
    (commands,) = COMMANDS.findall(page.read_text(encoding="utf-8"))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(["bash", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode and f"error[{page.stem}]" in run.stderr, run.stderr


def codes(file: Path) -> set[str]:
    try:
        modules = load(file)
        checked = check_all(modules)
        told = [*checked.warnings, *advice_without_running(checked.program, {module.source for module in modules})]
        return {d.code for d in told}
    except DplError as error:
        return {d.code for d in error.diagnostics}


def test_the_command(dpl) -> None:
    run = dpl("explain", "e0301")
    assert run.returncode == 0 and run.stdout.startswith("E0301: two sizes differ\n") and "```" not in run.stdout
    assert "wrong:\n\n    let a = zeros 3\n" in run.stdout
    listed = dpl("explain", "--list").stdout.split("\n")
    assert "E0301: two sizes differ" in listed and len(listed) == len(PAGES) + 1


def test_an_unknown_code(dpl) -> None:
    run = dpl("explain", "E0311")
    assert run.returncode == 2 and "did you mean E0" in run.stderr
    assert dpl("explain").returncode == 2
