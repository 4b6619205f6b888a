"""Extras: what one installs for a verb is declared, a verb without its own says which, and with it works."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = {"click", "lark", "llvmlite", "numpy", "prompt_toolkit", "Pygments"}
COST = ("bench", "--cost", "List", "map", "--plot")


def test_all_of_them_are_declared() -> None:
    texts = [p.read_text(encoding="utf-8") for folder in ("compiler", "lang") for p in (ROOT / folder).rglob("*.*y")]
    pages = [p.read_text(encoding="utf-8") for p in (ROOT / "lang" / "dpl" / "codes").glob("*.md")]
    named = set(re.findall(r"dpl-lang\[(\w+)\]", "".join([*texts, *pages, (ROOT / "README.md").read_text()])))
    assert named == {"cross", "jupyter", "lsp", "mpi", "plot"}
    assert named | {"dev", "docs"} == set(PROJECT["optional-dependencies"])


def test_no_more_is_needed_than_was_promised() -> None:
    assert {re.split("[<>=]", need)[0] for need in PROJECT["dependencies"]} == NEEDED


@pytest.mark.parametrize(
    ("module", "extra", "command"),
    [
        ("pygls", "lsp", ("lsp",)),
        ("matplotlib", "plot", (*COST, "costs.pdf")),
        ("ipykernel", "jupyter", ("jupyter", "install")),
    ],
)
def test_without_its_extra_a_verb_says_which_to_install(dpl, tmp_path, module, extra, command) -> None:
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError(name='{module}')\n")
    run = dpl(*command, PYTHONPATH=os.pathsep.join(map(str, (tmp_path, ROOT / "lang", ROOT / "compiler"))))
    assert (run.returncode, run.stdout) == (2, "")
    assert f"pip install 'dpl-lang[{extra}]'" in run.stderr


def test_a_picture_of_costs(dpl, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra is not installed: pip install 'dpl-lang[plot]'")
    run = dpl(*COST, tmp_path / "costs.svg")
    assert (run.returncode, run.stderr) == (0, "")
    drawn = (tmp_path / "costs.svg").read_text(encoding="utf-8")
    assert "List.map" in drawn and "gradient" in drawn
    for path, said in ((tmp_path / "costs.doc", "ends in none of"), (tmp_path / "no" / "costs.svg", "cannot write")):
        run = dpl(*COST, path)
        assert run.returncode != 0 and said in run.stderr and "Traceback" not in run.stderr


def test_a_picture_is_of_counts(dpl) -> None:
    run = dpl("bench", "--plot", "costs.pdf", "List")
    assert run.returncode == 2 and "--cost" in run.stderr
