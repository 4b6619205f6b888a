"""A field on a page that finds what modules offer, by name, by word, or by type: `finder.js` beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from dplc.tools.doc.contents import Page

SCRIPT = Path(__file__).with_suffix(".js")


def finder(pages: Sequence[Page]) -> str:
    """The HTML of the field, with the entries of these pages."""
    entries = [
        {
            "name": f"{page.name}.{entry.name}",
            "type": entry.declared.partition(" : ")[2] or entry.declared,
            "doc": entry.doc.split("\n")[0],
            "page": f"{page.name}.html#{entry.anchor}",
        }
        for page in pages
        for section in page.sections
        for entry in section.entries
    ]
    known = json.dumps(entries, ensure_ascii=False).replace("</", "<\\/")
    script = SCRIPT.read_text(encoding="utf-8")
    label = "a name, a word, or a type such as  &#39;a list -> int"
    return (
        f'<input id="finder" type="search" autocomplete="off" aria-label="find" placeholder="{label}">'
        f'<ul id="found" aria-live="polite"></ul><script>{{\n{script}\nbegin({known});\n}}</script>'
    )
