"""`dpl explain`: explains the code of a message, with a wrong program and a corrected one.

The pages are `lang/dpl/codes/CODE.md`; the tests run their programs.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import click
from dpl import resources


def explain(code: str) -> int:
    """Prints the page of a code; an unknown one is a usage error, with a code that is near."""
    known = pages()
    page = known.get(code.upper())
    if page is None:
        near = difflib.get_close_matches(code.upper(), known, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else "`dpl explain --list` lists them"
        raise click.UsageError(f"there is no code {code}; {hint}")
    print(shown(page.read_text(encoding="utf-8")), end="")
    return 0


def list_codes() -> int:
    """Prints the title of each page."""
    for page in pages().values():
        print(page.read_text(encoding="utf-8").split("\n")[0].removeprefix("# "))
    return 0


def pages() -> dict[str, Path]:
    """The pages by their codes, in order."""
    return {page.stem: page for page in sorted(resources.codes().glob("*.md"))}


def shown(page: str) -> str:
    """A page for the terminal: its programs are indented under their kinds."""
    lines, inside = [], False
    for line in page.removeprefix("# ").split("\n"):
        if line.startswith("```"):
            inside = not inside
            lines += [heading(*line.split()[1:]), ""] if inside else []
        else:
            lines.append(f"    {line}" if inside and line else line)
    return "\n".join(lines)


def heading(kind: str = "", *command: str) -> str:
    """What stands over commands of a shell, or over a program: its kind, and the command that shows the message, if it
    is not the usual one."""
    if not kind:
        return "this shows it:"
    return f"{kind}, with  dpl {' '.join(command)}:" if len(command) > 1 else f"{kind}:"
