"""The documentation of modules as HTML pages that need nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from textwrap import dedent

from dplc.tools.doc.contents import Entry, Page
from dplc.tools.doc.finder import finder

CODE = re.compile(r"`([^`]+)`")
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.2rem; font-size: 1.2rem; }
pre, code { font-family: ui-monospace, monospace; font-size: 0.92em; }
dt { margin-top: 1.1rem; } dt pre { margin: 0; padding: 0.4rem 0.7rem; white-space: pre-wrap; }
dt pre { background: #8881; border-left: 3px solid #58a; } dd { margin: 0.3rem 0 0 0.9rem; }
a { color: #36c; text-decoration: none; } a:hover { text-decoration: underline; }
nav { margin-bottom: 1rem; } p { margin: 0.5rem 0; }
summary { font-size: 0.85em; color: #777; cursor: pointer; } details pre { white-space: pre-wrap; }
#finder { width: 100%; box-sizing: border-box; font: inherit; padding: 0.4rem 0.6rem; } #found { padding-left: 1.2rem; }
@media (prefers-color-scheme: dark) { body { background: #181a1b; color: #ddd; } a { color: #8be; } }
"""


def as_html(page: Page) -> str:
    """The page of one module."""
    body = [f'<nav><a href="index.html">Modules</a></nav><h1>{escape(page.name)}</h1>', text(page.intro)]
    for section in page.sections:
        if section.title:
            body.append(f"<h2>{escape(section.title)}</h2>")
        body.append("<dl>")
        for entry in section.entries:
            body.append(f'<dt id="{escape(entry.anchor)}"><pre>{escape(entry.declared)}</pre></dt>')
            body.append(f"<dd>{text(entry.text)}{examples(entry)}{source(entry.source)}</dd>")
        body.append("</dl>")
    return document(page.name, "\n".join(body))


def examples(entry: Entry) -> str:
    lines = "\n".join(f"{expression}  -- {value}" for expression, value in entry.examples)
    return f"<pre>{escape(lines)}</pre>" if lines else ""


def source(program: str) -> str:
    """The text of a definition, folded."""
    return f"<details><summary>source</summary><pre>{escape(program)}</pre></details>" if program else ""


def index(pages: Sequence[Page]) -> str:
    """The page with all modules and all of their names, and a field to find some."""
    body = ["<h1>Modules</h1>", finder(pages), "<dl>"]
    for page in pages:
        file = f"{escape(page.name)}.html"
        entries = [e for s in page.sections for e in s.entries]
        links = " · ".join(f'<a href="{file}#{escape(e.anchor)}">{escape(e.name)}</a>' for e in entries)
        body.append(f'<dt><a href="{file}"><strong>{escape(page.name)}</strong></a></dt><dd>{links}</dd>')
    return document("Modules", "\n".join([*body, "</dl>"]))


def document(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n'
    )


def text(doc: str) -> str:
    """A documentation text as HTML paragraphs; text in backquotes and paragraphs that are indented become code."""
    return "".join(paragraph(p) for p in doc.split("\n\n") if p.strip())


def paragraph(words: str) -> str:
    if words.startswith(" "):
        return f"<pre>{escape(dedent(words))}</pre>"
    marked = CODE.sub(r"<code>\1</code>", escape(words, quote=False))
    return f"<p>{marked}</p>"
