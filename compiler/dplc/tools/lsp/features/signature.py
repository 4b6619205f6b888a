"""Signature help: the function applied at the cursor, and the argument being typed."""

from __future__ import annotations

from dpl.core import ty
from dpl.node import node
from dpl.syntax import tree
from dpl.types.library import library
from dpl.types.messages.pretty import PRODUCT, Printer
from dpl.types.solve.meta import Type, prune
from dpl.types.state.env import Constructor, Primitive, Value
from lsprotocol import types as lsp

from dplc.tools.lsp.features.describe import entry_params, local_scheme
from dplc.tools.lsp.text.cursor import Cursor, cursor_at
from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.links import FIRST
from dplc.tools.lsp.text.names import Symbol, Target, parts
from dplc.tools.lsp.text.unfinished import ANYTHING


@node
class Call:
    """An application; `number` is the position, from 0, of the argument with the cursor, of a constructor that of the
    part of its tuple."""

    head: tree.Var | tree.Con
    number: int


def signature(document: Document, place: int) -> lsp.SignatureHelp | None:
    """The call around the cursor.  An argument after the last parameter counts as the last."""
    cursor = cursor_at(document, place)
    call = call_at(cursor) if cursor else None
    if cursor is None or call is None:
        return None
    shown = signature_of(cursor, call)
    if shown is None or not shown.parameters:
        return None
    return lsp.SignatureHelp([shown], 0, min(call.number, len(shown.parameters) - 1))


def signature_of(cursor: Cursor, call: Call) -> lsp.SignatureInformation | None:
    target = target_of(cursor, call)
    if isinstance(call.head, tree.Con):
        entry = constructor_of(cursor, target)
        return of_constructor(cursor.printer, call.head.name, entry) if entry and entry.arg else None
    t, doc = type_of(cursor, target)
    return written(cursor.printer, call.head.name, t, doc) if t is not None else None


def call_at(cursor: Cursor) -> Call | None:
    """The innermost application of a name with the cursor in its arguments."""
    waiting: list[tuple[tree.Node, Call | None]] = [(decl, None) for decl in cursor.draft.decls]
    while waiting:
        n, inside = waiting.pop()
        match n:
            case tree.Var(_, name) if name == ANYTHING:
                return inside
            case tree.App():
                args: list[tree.Expr] = []
                head: tree.Expr = n
                while isinstance(head, tree.App):
                    args.insert(0, head.arg)
                    head = head.fn
                waiting.append((head, inside))
                if isinstance(head, tree.Con) and isinstance(args[0], tree.Tuple):
                    args = [*args[0].items]
                for number, arg in enumerate(args):
                    waiting.append((arg, Call(head, number) if isinstance(head, tree.Var | tree.Con) else inside))
            case tree.Fun() | tree.Let() | tree.Match():
                waiting += [(part, None) for part in parts(n)]
            case _:
                waiting += [(part, inside) for part in parts(n)]
    return None


def target_of(cursor: Cursor, call: Call) -> Target | None:
    for names in cursor.names:
        for use in names.uses:
            if use.span.end == call.head.span.end and use.space in ("values", "constructors"):
                return use.symbol or cursor.linker.target(use)
    return None


def constructor_of(cursor: Cursor, target: Target | None) -> Constructor | None:
    document = cursor.document
    if isinstance(target, Symbol):
        entry = document.checking.reached._found("constructors", target.name) if document.checking.reached else None
    elif target is not None and (exports := document.around.modules.get(target.module)):
        entry = exports.constructors.get(target.name)
    else:
        entry = None
    return entry if isinstance(entry, Constructor) else None


def type_of(cursor: Cursor, target: Target | None) -> tuple[Type | None, str]:
    """The type of a function, or None, and its documentation."""
    document = cursor.document
    if isinstance(target, Symbol) and target.scope is not None:
        scheme = local_scheme(cursor.notes, target)
        return (scheme.ty, "") if scheme else (None, "")
    if isinstance(target, Symbol):
        reached = document.checking.reached
        entry = reached._found("values", target.name) if reached and target.space == "values" else None
        return (entry.scheme.ty, target.doc) if isinstance(entry, Value) else (None, "")
    if target is None or target.space != "values":
        return None, ""
    exports = document.around.modules.get(target.module)
    entry = exports.values.get(target.name) if exports else None
    if entry is None and target.module == FIRST:
        entry = library().primitives.values.get(target.name)
    match entry:
        case Value(scheme=scheme, doc=doc):
            return scheme.ty, doc
        case Primitive(scheme=scheme):
            return scheme.ty, entry.row.doc
        case _:
            return None, ""


def of_constructor(p: Printer, name: str, entry: Constructor) -> lsp.SignatureInformation:
    """`Name : a * b -> t`, and the range of each part in it."""
    label, parameters = f"{name} : ", []
    for number, part in enumerate(entry.arg.items if isinstance(entry.arg, ty.Tup) else (entry.arg,)):
        label += " * " * (number > 0)
        parameters.append(parameter(label, p.type(part, PRODUCT)))
        label += p.type(part, PRODUCT)
    whole = ty.Con(entry.data.name, entry_params(entry.data.params))
    return lsp.SignatureInformation(f"{label} -> {p.type(whole)}", parameters=parameters)


def parameter(label: str, text: str) -> lsp.ParameterInformation:
    """The range of a text that is appended to a label."""
    start = len(label.encode("utf-16-le")) // 2
    return lsp.ParameterInformation((start, start + len(text.encode("utf-16-le")) // 2))


def written(p: Printer, name: str, t: Type, doc: str) -> lsp.SignatureInformation:
    """`name : a -> b -> c`, and the range of each argument in it."""
    label, parameters = f"{name} : ", []
    t = prune(t)
    while isinstance(t, ty.Fn):
        text = p.type(t.arg, PRODUCT)
        parameters.append(parameter(label, text))
        label += f"{text} {p.arrow(t.eff)} "
        t = prune(t.result)
    return lsp.SignatureInformation(label + p.type(t), documentation=doc or None, parameters=parameters)
