"""The documentation of modules: the inferred types of their definitions, and the documentation comments.

A line `-- ---- title ----` begins a section, `-- | text` documents the declaration that follows, and the comment at the
top of a file documents the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from dpl.node import node
from dpl.prims import TABLE
from dpl.syntax import tree
from dpl.syntax.formatter.show import show
from dpl.syntax.load import Module, load, load_standard, read, standard_modules
from dpl.types.check import check_all
from dpl.types.library import library
from dpl.types.state.env import Exports, Primitive, Value

from dplc.tools.search import heading

EXAMPLE = re.compile(r"^Example: `(.*)` is (.*)\.$", re.MULTILINE)
SECTION = re.compile(r"^-- -{2,}\s*(.*?)\s*-*$")


@node
class Entry:
    """A value or a type: its declaration, its documentation, and its text in the module, empty for a primitive."""

    name: str
    declared: str
    doc: str
    anchor: str  # unique, although a type and a value may have the same name
    source: str = ""

    @property
    def text(self) -> str:
        """The documentation without its examples."""
        return EXAMPLE.sub("", self.doc).strip()

    @property
    def examples(self) -> list[tuple[str, str]]:
        """The examples: an expression and its value each."""
        return EXAMPLE.findall(self.doc)


@node
class Section:
    title: str
    entries: tuple[Entry, ...]


@node
class Page:
    name: str
    intro: str
    sections: tuple[Section, ...]


def pages_of(file: Path) -> Iterator[Page]:
    """The pages of a program and of the modules that it imports."""
    modules = load(read(file))
    exports = check_all(modules).exports
    for module in modules:
        name = file.stem if module.name == "main" else module.name
        yield page_of(name, module, exports[module.name].public())


def library_pages() -> Iterator[Page]:
    """The pages of the standard library.  Primitives are a section of `Prelude`."""
    std = library()
    primitives = [
        Entry(name, heading(name, value.scheme), TABLE[value.name].doc, name)
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
                    yield Entry(one.name, show(alone).strip(), one.doc, f"type.{one.name}", decl.span.text)
        case tree.DeclLet() | tree.DeclExtern():
            for name, value in list(exports.values.items()):
                if isinstance(value, Value) and decl.span.start <= value.span.start < decl.span.end:
                    written = name if name[0].isalpha() else f"( {name} )"
                    declared = heading(written, value.scheme, value.parameters)
                    yield Entry(name, declared, value.doc, name, decl.span.text)
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
        lines.append(comment.text.removeprefix("--").removeprefix(" ").rstrip())
        end = comment.span.end
    return "\n".join(lines)
