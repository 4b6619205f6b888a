"""The documentation of modules, and the index of errors, as pages of the book, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from textwrap import dedent

from dplc.tools.doc.contents import Entry, Page
from dplc.tools.doc.finder import finder

FIRST_LETTERS = {
    "E": "Errors of programs", "R": "Errors while a program runs", "W": "Warnings",
}  # fmt: skip


def as_markdown(page: Page) -> str:
    parts = [f"# {page.name}", plain(page.intro)]
    for section in page.sections:
        if section.title:
            parts.append(f"## {section.title}")
        for entry in section.entries:
            parts += described(entry)
    return "\n\n".join(part for part in parts if part) + "\n"


def described(entry: Entry) -> Iterator[str]:
    """The parts of the text on a value or a type."""
    yield f'<a id="{escape(entry.anchor)}"></a>'
    yield code(entry.declared)
    yield plain(entry.text)
    if entry.examples:
        yield code("\n".join(f"{expression}  -- {value}" for expression, value in entry.examples))
    if entry.source:
        yield f"<details><summary>source</summary>\n\n{code(entry.source)}\n\n</details>"


def code(program: str) -> str:
    return f"```dpl norun\n{program}\n```"


def plain(text: str) -> str:
    """A comment as Markdown.  What stands in backquotes, and paragraphs that are indented, are programs; nothing else
    in it is markup."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(code(dedent(p)) if p.startswith(" ") else prose(p) for p in paragraphs).strip()


def prose(text: str) -> str:
    parts = re.split(r"(`[^`]*`)", text)
    escaped = (p if p.startswith("`") else re.sub(r"([*_<\[\]#|\\])", r"\\\1", p) for p in parts)
    return "".join(escaped).strip()


def index(pages: Sequence[Page]) -> str:
    """The list of modules, with a field that finds what they offer."""
    rows = [f"| [{page.name}]({page.name}.md) | {plain(first_sentence(page))} |" for page in pages]
    table = "\n".join(["| module | what is in it |", "|---|---|", *rows])
    names = "\n".join(page.name for page in pages)
    return (
        "# The library\n\nThe pages are made from the comments in the library, whose examples the tests run.\n\n"
        f"```{{raw}} html\n{finder(pages)}\n```\n\n{table}\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    )


def first_sentence(page: Page) -> str:
    start = re.sub(r"^Module \w+: ", "", " ".join(page.intro.split("\n\n")[0].split()))
    return start.partition(". ")[0].removesuffix(".")


def errors(files: Sequence[Path]) -> str:
    """The index of errors: the pages of `dpl explain`, one below the other."""
    parts = ["# Errors and warnings", "`dpl explain CODE` prints these pages."]
    before = ""
    for file in files:
        if file.stem[0] != before:
            before = file.stem[0]
            parts.append(f"## {FIRST_LETTERS[before]}")
        title, _, text = file.read_text(encoding="utf-8").partition("\n")
        parts.append(f"({file.stem.lower()})=\n### {title.removeprefix('# ')}\n{text.rstrip()}")
    return "\n\n".join(parts) + "\n"
