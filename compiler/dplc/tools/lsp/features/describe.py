"""The description of a name: its declaration with its type, and its documentation."""

from __future__ import annotations

from typing import Any

from dpl.core import ty
from dpl.core.term import Data
from dpl.node import node
from dpl.types.library import library
from dpl.types.messages.pretty import Printer
from dpl.types.solve.scheme import Scheme
from dpl.types.state.env import TYPES, Constructor, Exports, Primitive, TypeName, Value
from dpl.types.state.notes import Notes

from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.links import FIRST
from dplc.tools.lsp.text.names import Foreign, Symbol, Target

BUILT_IN = {
    "bool": "`true` and `false`",
    "int": "integers of 64 bits, the same as `i64`",
    "float": "floating-point numbers of 64 bits, the same as `f64`",
    "string": "text, in Unicode",
    "unit": "the type of `()`",
    "list": "lists: `[1; 2]`, `first :: rest`, `[]`",
    "ref": "references: `ref e` makes one, `!r` is its content, `r := e` changes it",
    **{f"i{bits}": f"integers of {bits} bits" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"integers of {bits} bits, without sign" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"floating-point numbers of {bits} bits" for bits in (16, 32, 64)},
}


@node
class Description:
    """The description of a name: `text` is its declaration in DPL, `type` the part after the colon for a value."""

    text: str
    doc: str = ""
    type: str = ""


def printer(document: Document) -> Printer:
    """A printer of types with the solver's names of sizes."""
    document.check()
    solver = document.checking.solver
    return Printer(solver.sizes if solver else None, document.around.name)


def describe(document: Document, target: Target | None) -> Description | None:
    """The description of a name of this text or of another module; None if it has none."""
    if isinstance(target, Symbol):
        return describe_symbol(document, target)
    return describe_foreign(document, target) if target else None


def describe_symbol(document: Document, symbol: Symbol) -> Description | None:
    match symbol.kind:
        case "type":
            return Description(shortened(document, symbol), symbol.doc)
        case "typevar":
            return Description(f"'{symbol.name}", "a type variable")
        case "module":
            return describe_module(document, symbol.name)
        case "size":
            return Description(f"{symbol.name} : int", "a size", "int")
        case "constructor" | "field":
            found = document.found(document.book.page_of(symbol.span.start))
            kind = f"{symbol.kind}s"
            return describe_entry(printer(document), symbol.name, found.declares[kind].get(symbol.name))
        case _:
            pass
    scheme = scheme_of(document, symbol)
    if scheme is None:
        return Description(symbol.name, symbol.doc) if symbol.scope is None else None
    shown = printer(document).scheme(scheme)
    word = "" if symbol.scope else "let "
    return Description(f"{word}{bracketed(symbol.name)} : {shown}", symbol.doc, shown)


def scheme_of(document: Document, symbol: Symbol) -> Scheme | None:
    """The type of a value declared in this text; None if unknown."""
    found = document.found(document.book.page_of(symbol.span.start))
    if symbol.scope is None:
        entry = found.declares["values"].get(symbol.name)
        return entry.scheme if isinstance(entry, Value) else None
    return local_scheme(found.notes, symbol)


def local_scheme(notes: Notes, symbol: Symbol) -> Scheme | None:
    """The type of a local name: the last note for the smallest span around it; None if there is none."""
    around = [(span, s) for name, span, s in notes.locals if name == symbol.name and span.contains(symbol.span)]
    return min(reversed(around), key=lambda one: one[0].end - one[0].start)[1] if around else None


def describe_foreign(document: Document, target: Foreign) -> Description | None:
    if target.space == "modules":
        return describe_module(document, target.module)
    document.check()
    exports = document.around.modules.get(target.module) or library().modules.get(target.module)
    entry = getattr(exports, target.space).get(target.name) if exports else None
    if entry is None and target.module == FIRST:
        entry = library().primitives.values.get(target.name) if target.space == "values" else TYPES.get(target.name)
    if isinstance(entry, TypeName) and (there := document.resolve(target)) and there[1]:
        return Description(shortened(there[0], there[1]), there[1].doc)
    if isinstance(entry, Value) and not entry.doc and (there := document.resolve(target)) and there[1]:
        return describe_entry(printer(document), target.name, entry, there[1].doc)
    return describe_entry(printer(document), target.name, entry)


def describe_entry(p: Printer, name: str, entry: Any, doc: str = "") -> Description | None:
    """The description of a name from its entry in the type checker's environment."""
    match entry:
        case Value(scheme=scheme):
            shown = p.scheme(scheme)
            return Description(f"let {bracketed(name)} : {shown}", doc or entry.doc, shown)
        case Primitive(scheme=scheme):
            shown = p.scheme(scheme)
            return Description(f"let {bracketed(name)} : {shown}", entry.row.doc, shown)
        case TypeName():
            return Description(f"type {name}", BUILT_IN.get(name, ""))
        case Constructor():
            whole = ty.Con(entry.data.name, entry_params(entry.data.params))
            shown = p.type(whole if entry.arg is None else ty.Fn(entry.arg, ty.PURE, whole))
            return Description(f"{name} : {shown}", f"a constructor of `{p.data_name(entry.data.name)}`", shown)
        case Data():
            content = entry.cases[0][1]
            parts = content.items if isinstance(content, ty.Tup) and len(entry.fields) != 1 else (content,)
            shown = p.type(parts[entry.fields.index(name)])
            return Description(f"{name} : {shown}", f"a field of `{p.data_name(entry.name)}`", shown)
        case _:
            return None


def entry_params(params: tuple[ty.Var, ...]) -> tuple:
    """The parameters of a type's entry as arguments: sizes as sizes, types as they are."""
    return tuple(ty.Size(0, (((v.name,), 1),)) if v.sort == "size" else v for v in params)


def describe_module(document: Document, name: str) -> Description:
    path = document.module_file(name)
    other = document.workspace.document(path) if path else None
    return Description(f"module {name}", heading(other.text) if other else "")


def heading(text: str) -> str:
    """The comment at the top of a file."""
    lines = []
    for line in text.split("\n"):
        if not line.startswith("--"):
            break
        lines.append(line.lstrip("-| "))
    return "\n".join(lines)


def members(exports: Exports) -> dict[str, tuple[str, Any]]:
    """The exports of a module: name -> (kind, entry)."""
    found: dict[str, tuple[str, Any]] = {}
    for space in ("types", "values", "constructors"):
        found.update({name: (space, entry) for name, entry in getattr(exports, space).items()})
    return found


def shortened(document: Document, symbol: Symbol) -> str:
    """The first lines of a type's declaration, as written."""
    start, end = document.book.now(symbol.whole)
    lines = document.text[start:end].split("\n")
    text = "\n".join([*lines[:12], *(["  ..."] if len(lines) > 12 else [])])
    return text if text.startswith("type") else f"type {text}"


def bracketed(name: str) -> str:
    return name if name[:1].isalpha() or name[:1] == "_" else f"( {name} )"
