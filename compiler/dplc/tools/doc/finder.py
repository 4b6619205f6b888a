"""A field on a page that finds what modules offer, by name, by word, by what other systems call it, or by type:
`finder.js` beside it.  What is mistyped finds names that are near (`near.js`)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from dpl.syntax.foreign import table
from dpl.types.state.unbound import bare

from dplc.tools.doc.contents import Page
from dplc.tools.search import elsewhere_said, meant

SCRIPT = Path(__file__).with_suffix(".js")
NEAR = SCRIPT.with_name("near.js")  # the book's own search has it, too


def finder(pages: Sequence[Page]) -> str:
    """The HTML of the field, with the entries of these pages."""
    others = foreign()
    entries = [
        {
            "name": f"{page.name}.{entry.name}",
            "type": entry.declared if entry.declared.startswith("type ") else entry.declared.partition(" : ")[2],
            "doc": entry.doc.split("\n")[0],
            "page": f"{page.name}.html#{entry.anchor}",
            "also": others.get(f"{page.name}.{entry.name}".removeprefix("Prelude."), []),
        }
        for page in pages
        for section in page.sections
        for entry in section.entries
    ]
    known, said = (json.dumps(part, ensure_ascii=False).replace("</", "<\\/") for part in (entries, elsewhere()))
    script = NEAR.read_text(encoding="utf-8") + SCRIPT.read_text(encoding="utf-8")
    label = "a name, a word, or a type such as  &#39;a list -> int"
    return (
        f'<input id="finder" type="search" autocomplete="off" aria-label="find" placeholder="{label}">'
        f'<ul id="found" aria-live="polite"></ul><script>{{\n{script}\nbegin({known}, {said});\n}}</script>'
    )


def elsewhere() -> dict[str, str]:
    """How things are written here that have a name elsewhere only, by that name, in part without its spelling."""
    like = {bare(name): elsewhere_said(name) for name in table()["like"]}
    return like | {name: elsewhere_said(name) for name in table()["said"]}


def foreign() -> dict[str, list[str]]:
    """What other languages and libraries call a value, by its name in DPL."""
    called: defaultdict[str, list[str]] = defaultdict(list)
    for part in ("same", "like"):
        for name in table()[part]:
            for own in meant(name):
                called[own].append(name)
    return called
