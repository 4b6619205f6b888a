"""The manual pages are those of the command as it is, and typeset without complaints."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from conftest import ROOT

PAGES = ROOT / "compiler" / "dplc" / "manual" / "man1"


def test_pages_are_current() -> None:
    pytest.importorskip("click_man", reason="extra dev")
    from dplc.manual import make

    committed = {page.name: page.read_text(encoding="utf-8") for page in PAGES.iterdir()}
    assert committed == make.pages(), "python -m dplc.manual.make  writes them anew"


def test_every_verb_has_a_page() -> None:
    from dplc.commands import cli

    assert {f"dpl-{verb}.1" for verb in cli.commands} | {"dpl.1"} <= {page.name for page in PAGES.iterdir()}


def test_the_book_has_every_option() -> None:
    import click
    from dplc.commands import cli

    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    options = [(verb, option.opts[0]) for verb, command in cli.commands.items() if not command.hidden
               for option in command.params if isinstance(option, click.Option) and not option.hidden]  # fmt: skip
    assert [(verb, name) for verb, name in options if f"| `{verb}` | `{name}" not in page] == []


@pytest.mark.skipif(not shutil.which("groff"), reason="needs groff")
@pytest.mark.parametrize("page", ["dpl", "dpl-run", "dpl-build", "dpl-cache"])
def test_pages_can_be_read(page: str) -> None:
    command = ["groff", "-man", "-Tutf8", "-ww", "-P-cbu", PAGES / f"{page}.1"]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION"):
        assert heading in run.stdout
