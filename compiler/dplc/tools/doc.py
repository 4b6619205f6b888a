"""`dpl doc`: HTML pages for modules, with the inferred types of their definitions and the documentation comments.

A line `-- ---- title ----` begins a section, `-- | text` documents the declaration that follows, and the comment at the
top of a file documents the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import click
from dpl.node import node
from dpl.prims import TABLE
from dpl.syntax import tree
from dpl.syntax.load import Module, load, load_standard, read, standard_modules
from dpl.syntax.show import show
from dpl.types.check import check_all
from dpl.types.library import library
from dpl.types.messages.pretty import show_scheme
from dpl.types.state.env import Exports, Primitive, Value

from dplc.tools.search import Known, known_in, named, told

CODE = re.compile(r"`([^`]+)`")
SECTION = re.compile(r"^-- -{2,}\s*(.*?)\s*-*$")


@node
class Entry:
    """A value or a type: its declaration and its documentation."""

    name: str
    declared: str
    doc: str
    anchor: str  # unique, although a type and a value may have the same name


@node
class Section:
    title: str
    entries: tuple[Entry, ...]


@node
class Page:
    name: str
    intro: str
    sections: tuple[Section, ...]


def write_pages(files: Sequence[str], stdlib: bool, folder: Path) -> int:
    """Write a page for each module and an index; print the path of the index."""
    pages = [page for file in files for page in pages_of(Path(file))]
    if stdlib:
        pages += (page for page in library_pages() if page.sections)  # some modules are only for internal use
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for page in pages:
            (folder / f"{page.name}.html").write_text(as_html(page), encoding="utf-8")
        (folder / "index.html").write_text(index(pages), encoding="utf-8")
    except OSError as failure:
        raise click.ClickException(f"cannot write {failure.filename}: {failure.strerror}") from None
    print(folder / "index.html")
    return 0


# ---- in the terminal ------------------------------------------------------------------------------------------------


def print_search(query: str) -> int:
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
    known = named(name, known_in(library().modules))
    if not known:
        raise click.ClickException(f"there is no module or value `{name}`; words are found by  dpl doc --search")
    return known


def described(one: Known) -> str:
    return f"{one.name} : {show_scheme(one.scheme)}\n{one.doc}".rstrip()


def as_text(page: Page) -> str:
    lines = [page.name, "", page.intro]
    for section in page.sections:
        lines += ["", section.title.upper()] if section.title else []
        for entry in section.entries:
            lines += ["", entry.declared, *[f"    {line}".rstrip() for line in entry.doc.splitlines()]]
    return "\n".join(lines)


# ---- contents -------------------------------------------------------------------------------------------------------


def pages_of(file: Path) -> Iterator[Page]:
    """The pages of a program and of the modules that it imports."""
    modules = load(read(file))
    exports = check_all(modules).exports
    for module in modules:
        name = file.stem if module.name == "main" else module.name
        yield page_of(name, module, exports[module.name].public())


def library_pages() -> Iterator[Page]:
    std = library()
    primitives = [
        Entry(name, f"{name} : {show_scheme(value.scheme)}", TABLE[value.name].doc, name)
        for name, value in sorted(std.primitives.values.items())
        if isinstance(value, Primitive)
    ]
    for name in standard_modules():
        page = page_of(name, load_standard(name), std.modules[name].public())
        built_in = (Section("built in", tuple(primitives)),) if name == "Prelude" else ()
        yield Page(page.name, page.intro, (*page.sections, *built_in))


def page_of(name: str, module: Module, exports: Exports) -> Page:
    titles = [("", 0)]
    titles += [(m[1], c.span.start) for c in module.tree.comments if (m := SECTION.match(c.text)) and m[1]]
    starts = [start for _, start in titles[1:]]
    found: dict[int, list[Entry]] = {}
    for decl in module.tree.decls:
        section = sum(start < decl.span.start for start in starts)
        found.setdefault(section, []).extend(entries(decl, exports))
    sections = [Section(title, tuple(found.get(i, ()))) for i, (title, _) in enumerate(titles)]
    return Page(name, intro(module.tree), tuple(s for s in sections if s.entries))


def entries(decl: tree.Decl, exports: Exports) -> Iterator[Entry]:
    """The public entries of a declaration."""
    match decl:
        case tree.DeclType(_, defs):
            for one in defs:
                if one.name in exports.types:
                    alone = tree.File(decl.span, (tree.DeclType(decl.span, (one,)),), ())
                    yield Entry(one.name, show(alone).strip(), one.doc, f"type.{one.name}")
        case tree.DeclLet() | tree.DeclExtern():
            for name, value in list(exports.values.items()):
                if isinstance(value, Value) and decl.span.start <= value.span.start < decl.span.end:
                    written = name if name[0].isalpha() else f"( {name} )"
                    yield Entry(name, f"{written} : {show_scheme(value.scheme)}", value.doc, name)
        case _:
            pass


def intro(file: tree.File) -> str:
    """The comment at the top of a file."""
    lines: list[str] = []
    end = 0
    for comment in file.comments:
        between = comment.span.source.text[end : comment.span.start]
        if between.strip() or between.count("\n") > 1 or comment.text.startswith("-- |") or SECTION.match(comment.text):
            break
        lines.append(comment.text.removeprefix("--").strip())
        end = comment.span.end
    return "\n".join(lines)


# ---- HTML -----------------------------------------------------------------------------------------------------------

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.2rem; font-size: 1.2rem; }
pre, code { font-family: ui-monospace, monospace; font-size: 0.92em; }
dt { margin-top: 1.1rem; } dt pre { margin: 0; padding: 0.4rem 0.7rem; white-space: pre-wrap; }
dt pre { background: #8881; border-left: 3px solid #58a; } dd { margin: 0.3rem 0 0 0.9rem; }
a { color: #36c; text-decoration: none; } a:hover { text-decoration: underline; }
nav { margin-bottom: 1rem; } p { margin: 0.5rem 0; }
@media (prefers-color-scheme: dark) { body { background: #181a1b; color: #ddd; } a { color: #8be; } }
"""


def as_html(page: Page) -> str:
    body = [f'<nav><a href="index.html">Modules</a></nav><h1>{escape(page.name)}</h1>', text(page.intro)]
    for section in page.sections:
        if section.title:
            body.append(f"<h2>{escape(section.title)}</h2>")
        body.append("<dl>")
        for entry in section.entries:
            body.append(f'<dt id="{escape(entry.anchor)}"><pre>{escape(entry.declared)}</pre></dt>')
            body.append(f"<dd>{text(entry.doc)}</dd>")
        body.append("</dl>")
    return document(page.name, "\n".join(body))


def index(pages: Sequence[Page]) -> str:
    body = ["<h1>Modules</h1>", "<dl>"]
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
    """A documentation text as HTML paragraphs; text in backquotes becomes code."""
    paragraphs = [CODE.sub(r"<code>\1</code>", escape(p, quote=False)) for p in doc.split("\n\n") if p.strip()]
    return "".join(f"<p>{p}</p>" for p in paragraphs)
