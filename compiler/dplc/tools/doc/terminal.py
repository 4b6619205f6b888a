"""The documentation of the standard library in the terminal: modules, values by their names, what a search finds."""

from __future__ import annotations

from collections.abc import Sequence

import click
from dpl.syntax.load import standard_modules
from dpl.types.library import library

from dplc.tools.doc.contents import Page, library_pages
from dplc.tools.search import Known, known_in, named, near, told


def print_search(query: str) -> int:
    """What fits the words or the type.  Raises an error if nothing does."""
    text = told(query, known_in(library().modules))
    if not text:
        raise click.ClickException(f"nothing is found for `{query}`")
    print(text)
    return 0


def print_names(names: Sequence[str]) -> int:
    """Print the documentation of modules and values of the standard library."""
    pages = {page.name: page for page in library_pages()} if set(names) & set(standard_modules()) else {}
    for name in names:
        print(as_text(pages[name]) if name in pages else "\n\n".join(map(described, found(name))))
    return 0


def found(name: str) -> list[Known]:
    everything = list(known_in(library().modules))
    known = named(name, everything)
    if not known:
        meant = f"did you mean  {' or '.join(close[:2])} ?" if (close := near(name, everything)) else ""
        way = meant or "words are found by  dpl doc --search"
        raise click.ClickException(f"there is no module or value `{name}`; {way}")
    return known


def described(one: Known) -> str:
    return f"{one.heading}\n{one.doc}".rstrip()


def as_text(page: Page) -> str:
    lines = [page.name, "", page.intro]
    for section in page.sections:
        lines += ["", section.title.upper()] if section.title else []
        for entry in section.entries:
            lines += ["", entry.declared, *[f"    {line}".rstrip() for line in entry.doc.splitlines()]]
    return "\n".join(lines)
