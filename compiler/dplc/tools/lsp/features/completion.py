"""Completion: names in scope with their types, fields, members of modules, keywords."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from dpl.core import ty
from dpl.core.term import Data
from dpl.syntax.load import module_name
from dpl.types.library import library
from dpl.types.messages.pretty import Printer
from dpl.types.solve.meta import prune
from dpl.types.state.env import TYPES, Constructor, Exports, Value
from lsprotocol import types as lsp

from dplc.tools.lsp.features.describe import BUILT_IN, describe_entry, local_scheme, members
from dplc.tools.lsp.text.cursor import Cursor, cursor_at
from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.links import FIRST
from dplc.tools.lsp.text.surroundings import Record, matched_at, record_at

Kind = lsp.CompletionItemKind
LOCAL, OWN, LIBRARY, WORD = "0123"  # the order of the offers


def completions(document: Document, place: int) -> list[lsp.CompletionItem]:
    """The names that contain the word at the cursor, in any case of letters; of equal names the nearest."""
    cursor = cursor_at(document, place)
    if cursor is None:
        return []
    wanted = cursor.word.lower()
    found: dict[str, lsp.CompletionItem] = {}
    for item in offered(cursor):
        if wanted in item.label.lower():
            found.setdefault(item.label, item)
    return list(found.values())


def offered(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    """The completions that the syntax allows at the cursor, nearest declarations first."""
    parser = cursor.draft.parser
    if cursor.qualifier:
        if after_brace(cursor):
            yield from fields_of_module(cursor)
        yield from of_module(cursor, parser.accepts("TYVAR"))
    elif cursor.after_point:
        yield from fields(cursor)
    elif parser.accepts("TYVAR"):
        yield from type_names(cursor)
    elif cursor.draft.tokens and cursor.draft.tokens[-1].kind in ("IMPORT", "OPEN"):
        yield from module_names(cursor)
    else:
        if record := record_at(cursor.draft.tokens):
            yield from fields_left(cursor, record)
        if parser.accepts("INTERP_OPEN"):  # as an operand does; a pattern may be `( ! )`, but no text with values
            yield from values(cursor)
        if parser.accepts("UPPER"):
            yield from constructors_of_matched(cursor)
            yield from constructors(cursor)
        yield from keywords(cursor)


def after_brace(cursor: Cursor) -> bool:
    """True after `{`, where the first field of a record may follow."""
    return bool(cursor.draft.tokens) and cursor.draft.tokens[-1].kind == "LBRACE"


def item(name: str, kind: Kind, order: str, detail: str = "", doc: str = "") -> lsp.CompletionItem:
    return lsp.CompletionItem(name, kind=kind, detail=detail or None, documentation=doc or None, sort_text=order + name)


def values(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    for name, symbol in reversed(cursor.symbols().items()):
        scheme = local_scheme(cursor.notes, symbol)
        detail = "int" if symbol.kind == "size" else cursor.printer.scheme(scheme) if scheme else ""
        yield item(name, Kind.Variable, LOCAL, detail)
    for exports in layers(cursor):
        for name, entry in exports.values.items():
            if isinstance(entry, Value) and name[:1].isalpha():
                yield of_value(cursor, name, entry, OWN)
    yield from (one for one in of_library(FIRST).values() if one.kind != Kind.Class)


def layers(cursor: Cursor) -> Iterator[Exports]:
    """The declarations and opened modules before the cursor, the latest first."""
    context = cursor.document.checking.reached
    yield from reversed(context.layers[1:] if context else [])


def of_value(cursor: Cursor, name: str, entry: Value, order: str) -> lsp.CompletionItem:
    is_function = isinstance(prune(entry.scheme.ty), ty.Fn)
    described = describe_entry(cursor.printer, name, entry)
    return item(name, Kind.Function if is_function else Kind.Variable, order, *texts(described))


def texts(described) -> tuple[str, str]:
    return (described.type or described.text, described.doc) if described else ("", "")


@cache
def of_library(module: str) -> dict[str, lsp.CompletionItem]:
    """The completions for the members of a library module, by name."""
    exports = library().modules[module]
    offered = dict(members(exports))
    if module == FIRST:
        offered |= {name: ("values", entry) for name, entry in library().primitives.values.items()}
    return {name: member(name, space, entry) for name, (space, entry) in offered.items() if name[:1].isalpha()}


def member(name: str, space: str, entry: Any) -> lsp.CompletionItem:
    is_function = space == "values" and isinstance(prune(entry.scheme.ty), ty.Fn)
    kind = {"types": Kind.Class, "constructors": Kind.EnumMember}.get(space)
    described = describe_entry(Printer(), name, entry)
    return item(name, kind or (Kind.Function if is_function else Kind.Variable), LIBRARY, *texts(described))


def of_module(cursor: Cursor, types: bool) -> Iterator[lsp.CompletionItem]:
    if cursor.qualifier in library().modules:
        found = of_library(cursor.qualifier).values()
    else:
        exports = cursor.document.around.modules.get(cursor.qualifier)
        found = [member(n, space, entry) for n, (space, entry) in members(exports).items()] if exports else []
    for one in found:
        if types == (one.kind == Kind.Class):
            yield one


def fields_of_module(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    """After `{ Optim.`: the fields of the module's records."""
    modules = {**cursor.document.around.modules, **library().modules}
    if exports := modules.get(cursor.qualifier):
        for name, data in exports.fields.items():
            yield item(name, Kind.Field, OWN, *texts(describe_entry(cursor.printer, name, data, "fields")))


def fields(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    """The fields of the record before the point; those of all types if its type is unknown."""
    point = cursor.draft.tokens[-1].start
    before = [prune(t) for span, t in cursor.notes.expressions if span.end == point]
    known = [t.name for t in before if isinstance(t, ty.Con)]
    data = cursor.document.checking.datas.get(known[-1]) if known else None
    if data is None or not data.fields:
        if not known:
            yield from all_fields(cursor)
        return
    yield from fields_of(cursor, data)


def fields_of(cursor: Cursor, data: Data, given: Collection[str] = ()) -> Iterator[lsp.CompletionItem]:
    for name in data.fields:
        if name not in given:
            yield item(name, Kind.Field, LOCAL, *texts(describe_entry(cursor.printer, name, data)))


def fields_left(cursor: Cursor, record: Record) -> Iterator[lsp.CompletionItem]:
    """The fields that a record may still get: of the type of what is updated, or of those with the fields it has."""
    given = {name.rpartition(".")[2] for name in record.given}
    modules = {**cursor.document.around.modules, **library().modules}
    named = [modules[m] for name in record.given if (m := name.rpartition(".")[0]) in modules]
    declared = [d for exports in named or layers(cursor) for d in exports.fields.values() if isinstance(d, Data)]
    fitting = {d.name: d for d in declared if given and given <= set(d.fields)}
    if record.updated and (updated := type_of(cursor, *record.updated)):
        fitting = {updated.name: updated}
    for data in fitting.values():
        yield from fields_of(cursor, data, given)
    if not fitting:
        yield from all_fields(cursor)


def type_of(cursor: Cursor, start: int, end: int) -> Data | None:
    """The data type of the expression between two places, if it is known."""
    found = [(span.start, prune(t)) for span, t in cursor.notes.expressions if span.end == end and span.start >= start]
    whole = min(found, key=lambda one: one[0], default=(0, None))[1]
    return cursor.document.checking.datas.get(whole.name) if isinstance(whole, ty.Con) else None


def constructors_of_matched(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    """At the beginning of an arm, the constructors of what is matched come first."""
    matched = matched_at(cursor.draft.tokens)
    data = type_of(cursor, *matched) if matched else None
    if data is None or data.fields:
        return
    for tag, (name, _) in enumerate(data.cases):
        plain = any(getattr(e.constructors.get(name), "data", None) == data for e in layers(cursor))
        module = "" if plain or data.name.startswith(f"{FIRST}.") else data.name.rpartition(".")[0]
        shown = f"{module}.{name}" if module in cursor.document.around.modules else name
        yield item(shown, Kind.EnumMember, LOCAL, *texts(describe_entry(cursor.printer, name, Constructor(data, tag))))


def all_fields(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    for exports in layers(cursor):
        for name, data in exports.fields.items():
            yield item(name, Kind.Field, OWN, *texts(describe_entry(cursor.printer, name, data)))


def constructors(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    for exports in layers(cursor):
        for name, entry in exports.constructors.items():
            described = describe_entry(cursor.printer, name, entry)
            yield item(name, Kind.EnumMember, OWN, *texts(described))
    yield from modules(cursor)


def modules(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    for name in cursor.document.around.modules:
        yield item(name, Kind.Module, LIBRARY if name in library().modules else OWN, "module")


def module_names(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    """The modules of the library, and the files beside this one."""
    path = cursor.document.path
    for beside in sorted(path.parent.glob("*.dp")) if path else ():
        if beside != path:
            yield item(module_name(beside), Kind.Module, OWN, beside.name)
    yield from modules(cursor)


def type_names(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    for exports in layers(cursor):
        for name in exports.types:
            yield item(name, Kind.Class, OWN)
    for name in TYPES:
        yield item(name, Kind.Class, LIBRARY, doc=BUILT_IN.get(name, ""))
    yield from modules(cursor)


def keywords(cursor: Cursor) -> Iterator[lsp.CompletionItem]:
    """The keywords that may come next."""
    parser = cursor.draft.parser
    for word, kind in parser.tables.words.items():
        if word.isalpha() and parser.accepts(kind):
            yield item(word, Kind.Keyword, WORD)
