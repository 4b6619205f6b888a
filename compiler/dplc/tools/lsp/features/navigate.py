"""Go to the declaration of a name, find its references, and rename it everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from dpl.syntax.load import standard_modules
from dpl.syntax.tables import tables
from lsprotocol import types as lsp
from pygls import uris

from dplc.tools.lsp.text.documents import Document, Workspace
from dplc.tools.lsp.text.names import Foreign, Symbol, Use

WORD = re.compile(r"[^\W\d][\w']*")


class Refused(Exception):
    """A name cannot be renamed; the message says why."""


def definition(document: Document, place: int) -> lsp.Location | None:
    """Where the name at the cursor is declared; a module's is the first line of its file."""
    use = document.use_at(place)
    document.check()
    there = document.resolve(document.links.get(use)) if use else None
    if there is None:
        return None
    other, symbol = there
    if symbol is None or symbol.kind == "module":
        path = document.module_file(symbol.name) if symbol else None
        uri = path.resolve().as_uri() if path else other.uri
        return lsp.Location(uri, other.lines.range(0, 0))
    return location(other, symbol.span)


def location(document: Document, span) -> lsp.Location:
    return lsp.Location(document.uri, document.lines.range(*document.book.now(span)))


def references(document: Document, place: int, declaration: bool = True) -> list[lsp.Location]:
    """All places that mean the same declaration, in all files that know it."""
    found = meant(document, place)
    if found is None:
        return []
    home, symbol = found
    return [
        location(other, use.span) for other, use in mentions(home, symbol) if declaration or use.symbol is not symbol
        or not use.declares
    ]  # fmt: skip


def meant(document: Document, place: int) -> tuple[Document, Symbol] | None:
    """The document that declares the name at a place, and its symbol; None if unknown."""
    use = document.use_at(place)
    if use is None:
        return None
    document.check()
    there = document.resolve(document.links.get(use))
    return (there[0], there[1]) if there and there[1] else None


def mentions(home: Document, symbol: Symbol) -> Iterator[tuple[Document, Use]]:
    """All uses of a symbol in its own text, and in other texts if it is visible there."""
    for use, target in home.links.items():
        if target is symbol:
            yield home, use
    if symbol.scope is not None or symbol.kind == "module":
        return
    for other in with_the_word(home.workspace, symbol.name):
        if other is not home:
            for use, target in other.links.items():
                if isinstance(target, Foreign) and target.name == symbol.name and target.space == symbol.space:
                    there = other.resolve(target)
                    if there and there[1] is symbol:
                        yield other, use


def with_the_word(workspace: Workspace, name: str) -> list[Document]:
    """The texts in which a name may stand."""
    found = {d.uri: d for d in workspace.open.values()}
    for path in workspace.files():
        if other := workspace.document(path):
            found[other.uri] = other
    return [other for other in found.values() if name in other.text]


def renameable(document: Document, place: int) -> lsp.Range | None:
    """The range of the name at the cursor; None if it cannot be renamed: an operator, or a name of the library."""
    use = document.use_at(place)
    found = meant(document, place)
    if use is None or found is None or not WORD.fullmatch(found[1].name) or in_library(found[0]):
        return None
    return document.lines.range(*document.book.now(use.span))


def rename(document: Document, place: int, name: str) -> lsp.WorkspaceEdit:
    """The edits that rename a symbol.  Raises Refused if the name is not allowed or would change the program's
    meaning."""
    found = meant(document, place)
    if found is None:
        named = document.use_at(place)
        known = named is not None and document.links.get(named) is not None
        raise Refused("this name belongs to the standard library" if known else "there is no name here")
    home, symbol = found
    if in_library(home):
        raise Refused(f"`{symbol.name}` belongs to the standard library")
    check_name(symbol, name)
    changes: dict[str, list[tuple[int, int, str]]] = {}
    texts: dict[str, Document] = {}
    for other, use in mentions(home, symbol):
        start, end = other.book.now(use.span)
        texts[other.uri] = other
        changes.setdefault(other.uri, []).append((start, end, short_form(other, use, symbol, name)))
    changed = {uri: edited(texts[uri].text, edits) for uri, edits in changes.items()}
    if not means_the_same(home.workspace, {d.uri: d.text for d in with_the_word(home.workspace, name)} | changed):
        raise Refused(f"`{name}` would be taken for another `{name}` that is in scope")
    return lsp.WorkspaceEdit(
        changes={
            uri: [lsp.TextEdit(texts[uri].lines.range(start, end), new) for start, end, new in edits]
            for uri, edits in changes.items()
        }
    )


def in_library(document: Document) -> bool:
    return bool(document.standard)


def check_name(symbol: Symbol, name: str) -> None:
    """Raises Refused unless the new name is a name of the same kind."""
    if not WORD.fullmatch(name) or name in tables().words:
        raise Refused(f"`{name}` is no name")
    if name[0].isupper() != symbol.name[0].isupper():
        size = "capital" if symbol.name[0].isupper() else "small"
        raise Refused(f"the name of a {symbol.kind} begins with a {size} letter")
    if symbol.kind == "module" and name in standard_modules():
        raise Refused(f"`{name}` is a module of the standard library")


def short_form(document: Document, use: Use, symbol: Symbol, name: str) -> str:
    """The new text of a use.  In `{ x; y }`, where a name is both field and variable, it becomes `field = variable`."""
    twins = [u for u in document.links if u is not use and u.span == use.span]
    if twins and symbol.kind == "field":
        return f"{name} = {symbol.name}"
    if twins and twins[0].space == "fields":
        return f"{symbol.name} = {name}"
    return name


def edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def means_the_same(workspace: Workspace, changed: dict[str, str]) -> bool:
    """True if all names have the same targets in the changed texts as before."""
    trial = Workspace()
    for uri, text in ({uri: d.text for uri, d in workspace.open.items()} | changed).items():
        path = uris.to_fs_path(uri) if uri.startswith("file:") else None
        trial.open[uri] = Document(trial, uri, Path(path) if path else None)
        trial.open[uri].update(text)
    for uri in changed:
        before = workspace.open.get(uri) or workspace.document(Path(uris.to_fs_path(uri) or ""))
        if before is None or shape(before) != shape(trial.open[uri]):
            return False
    return True


def shape(document: Document) -> list[tuple]:
    """The targets of all names of a text as numbers, in order: independent of the names themselves."""
    document.check()  # the types of records tell whose fields are meant
    numbers: dict[str, dict[Symbol | None, int]] = {}
    found: list[tuple] = []
    for use in in_order(document):
        home, symbol = document.resolve(document.links[use]) or (None, None)
        if home is None or in_library(home):
            found.append((use.name,) if home else ())
            continue
        if home.uri not in numbers:
            numbers[home.uri] = declared(home)
        found.append((home.uri, numbers[home.uri].get(symbol, -1)))
    return found


def in_order(document: Document) -> list[Use]:
    return sorted(document.links, key=lambda u: (document.book.now(u.span)[0], u.space))


def declared(document: Document) -> dict[Symbol | None, int]:
    """The symbols that a text declares, by numbers."""
    return {use.symbol: number for number, use in enumerate(in_order(document)) if use.declares}
