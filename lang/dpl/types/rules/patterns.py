"""Patterns -> core patterns.  Their variables are bound in the scope and are monomorphic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dpl.core import term, ty
from dpl.diagnostics import DplError, Label
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.messages.parts import Why, printer
from dpl.types.rules.annotations import Flexible, resolve, unknowns
from dpl.types.rules.apply import constructor_type
from dpl.types.rules.literals import literal_type
from dpl.types.solve.meta import Meta, Type, prune
from dpl.types.solve.scheme import mono, replace
from dpl.types.state.checks import learn
from dpl.types.state.context import Context
from dpl.types.state.env import Constructor, Value

Bound = dict[str, tuple[str, Type, Span]]


def bind_pattern(
    cx: Context, p: tree.Pattern, t: Type, flexible: Flexible = Flexible.ALL, watched: bool = False
) -> term.Pattern:
    """The core pattern for values of type `t`; its variables enter the scope.

    If `watched`, unused ones cause warnings."""
    found: Bound = {}
    sized = set(cx.frames[-1].sizes)
    pattern = _pattern(cx, p, t, found, flexible)
    for name in found.keys() & (cx.frames[-1].sizes.keys() - sized):
        title = f"`{name}` is both a variable of this pattern and a size of its annotations"
        helps = (f"make `{name}` a parameter of its own, before:  fun ({name} : int) (xs : float[{name}]) -> ...",
                 f"or leave it out: the size `{name}` is an int in scope")  # fmt: skip
        raise cx.fail("E0208", title, found[name][2], helps=helps)
    for name, (core, variable, span) in found.items():
        if watched:
            cx.watch(name, core, span)
        cx.bind(name, Value(core, mono(variable), span))
        learn(cx, term.Var(span, variable, core), variable)
    return pattern


def _pattern(cx: Context, p: tree.Pattern, t: Type, found: Bound, flexible: Flexible) -> term.Pattern:  # noqa: C901 -- one case per form
    match p:
        case tree.PatWild():
            return term.PWild(t)
        case tree.PatVar(span, name):
            return term.PVar(t, _variable(cx, name, t, span, found))
        case tree.PatLit(span, value, suffix):
            cx.unify(literal_type(cx, value, suffix), t, span, Why("this pattern"))
            return term.PLit(t, value)
        case tree.PatTuple(span, items):
            return _tuple(cx, items, t, span, found, flexible)
        case tree.PatCon():
            return _constructor(cx, p, t, found, flexible)
        case tree.PatCons(span, head, tail):
            elem = cx.solver.fresh()
            cx.unify(ty.list_of(elem), t, span, Why("this pattern"))
            pair = ty.Tup((elem, t))
            items = (_pattern(cx, head, elem, found, flexible), _pattern(cx, tail, t, found, flexible))
            return term.PCon(t, "::", 1, term.PTuple(pair, items))
        case tree.PatList(span, items):
            return _list(cx, items, t, span, found, flexible)
        case tree.PatArray(span, items):
            elem = cx.solver.fresh()
            whole = prune(t)
            size = cx.solver.unknown_size() if type(whole) is ty.Arr else ty.Size(len(items))
            cx.unify(ty.Arr(elem, size), t, span, Why("this pattern", help=_other_brackets(items, whole)))
            return term.PArray(t, tuple(_pattern(cx, i, elem, found, flexible) for i in items))
        case tree.PatRecord():
            return _record(cx, p, t, found, flexible)
        case tree.PatAs(span, inner, name):
            core = _variable(cx, name, t, span, found)
            return term.PAs(t, _pattern(cx, inner, t, found, flexible), core)
        case tree.PatOr(span, left, right):
            return _either(cx, left, right, t, span, found, flexible)
        case tree.PatAnnot(span, inner, annot):
            wanted = resolve(cx, annot, flexible)
            cx.unify(wanted, t, span, Why("this pattern"))
            return _pattern(cx, inner, wanted, found, flexible)
    raise AssertionError(p)


def _variable(cx: Context, name: str, t: Type, span: Span, found: Bound) -> str:
    if name in found and name != "_":
        raise cx.fail(
            "E0208", f"`{name}` is bound twice in this pattern", span, labels=(Label(found[name][2], "first here"),)
        )
    core = cx.unique(name)
    found[name] = (core, t, span)
    return core


def _tuple(cx, items, t, span, found, flexible) -> term.Pattern:
    known = prune(t)
    if type(known) is ty.Tup and len(known.items) != len(items) and items:
        shown = f"{len(known.items)} components" if known.items else "no components"
        parts = [*(i.span.text for i in items), *"_" * len(known.items)][: len(known.items)]
        helps = (f"as many as the value has:  ({', '.join(parts)})",) if known.items else ()
        title = f"this pattern has {len(items)} components, but the value has {shown}"
        raise cx.fail("E0208", title, span, helps=helps)
    types = known.items if type(known) is ty.Tup and items else tuple(cx.solver.fresh() for _ in items)
    cx.unify(ty.Tup(types), t, span, Why("this pattern", help=_other_brackets(items, known)))
    return term.PTuple(t, tuple(_pattern(cx, i, u, found, flexible) for i, u in zip(items, types)))


def _other_brackets(items: tuple[tree.Pattern, ...], t: Type) -> str:
    """A help for a pattern of a tuple, array or list that meets another of these."""
    parts = [i.span.text for i in items]
    match t:
        case ty.Arr() if parts:
            return f"an array is taken apart by  [{', '.join(parts)}]"
        case ty.Con("list"):
            return f"a list is taken apart by  [{'; '.join(parts)}{';' * (len(parts) == 1)}]"
        case ty.Tup() if len(parts) > 1:
            return f"a tuple is taken apart by  ({', '.join(parts)})"
        case Meta() | ty.F64 | ty.I64 if len(parts) > 1:
            alone = f"of several arguments:  fun {' '.join(parts)} -> e"
            return f"a function of a tuple is given one:  f ({', '.join(parts)}) ; {alone}"
        case _:
            return ""


def _constructor(cx, p: tree.PatCon, t, found, flexible) -> term.Pattern:
    con = cx.constructor(p.name, p.span, t)
    whole, arg = constructor_type(cx, con)
    cx.unify(whole, t, p.span, Why(f"the pattern `{con.name}`", help=_unmatched(con, prune(t))))
    if (arg is None) != (p.arg is None):
        needs = "takes no argument" if arg is None else "needs an argument"
        pattern = con.name if arg is None else f"{con.name} _"
        raise cx.fail("E0208", f"the constructor `{con.name}` {needs}", p.span, helps=(f"its pattern is  {pattern}",))
    inner = None if p.arg is None or arg is None else _pattern(cx, p.arg, arg, found, flexible)
    return term.PCon(t, con.name, con.tag, inner)


def _unmatched(con: Constructor, t: Type) -> str:
    """A help for a constructor's pattern that meets a value of another type."""
    if type(t) is ty.Fn:
        return "what is matched is a function: is an argument missing?"
    if con.data.name == "Prelude.option" and type(t) is not Meta:
        return "what is matched is no option: it is there, and needs neither `Some` nor `None`"
    return ""


def _list(cx, items, t, span, found, flexible) -> term.Pattern:
    whole = prune(t)
    if not items and type(whole) is ty.Arr:
        return term.PArray(t, ())
    elem = cx.solver.fresh()
    cx.unify(ty.list_of(elem), t, span, Why("this pattern", help=_other_brackets(items, whole)))
    pattern: term.Pattern = term.PCon(t, "[]", 0, None)
    inner = [_pattern(cx, i, elem, found, flexible) for i in items]
    for i in reversed(inner):
        pattern = term.PCon(t, "::", 1, term.PTuple(ty.Tup((elem, t)), (i, pattern)))
    return pattern


def _record(cx, p: tree.PatRecord, t, found, flexible) -> term.Pattern:
    data = record_of(cx, [name for name, _ in p.fields], t, p.span)
    env = {v.name: cx.solver.size() if v.sort == "size" else cx.solver.fresh() for v in data.params}
    cx.unify(ty.Con(data.name, tuple(env.values())), t, p.span, Why("this pattern"))
    cx.note(p.span, t)
    types = field_types(cx, data, env, data.fields)
    given = {tree.member(name): inner for name, inner in p.fields}
    if len(given) < len(p.fields):
        raise cx.fail("E0208", "a field is matched twice in this pattern", p.span)
    missing = [f for f in data.fields if f not in given]
    if missing and not p.open:
        raise cx.fail(
            "E0208",
            f"this pattern leaves out the field `{missing[0]}`",
            p.span,
            helps=("end it with  _  to ignore the rest",),
        )
    inner = tuple(
        _pattern(cx, given[f], u, found, flexible) if f in given else term.PWild(u) for f, u in zip(data.fields, types)
    )
    content = inner[0] if len(inner) == 1 else term.PTuple(ty.Tup(types), inner)
    return term.PCon(t, data.cases[0][0], 0, content)


def record_of(cx: Context, fields: list[str], t: Type | None, span: Span) -> term.Data:
    """The record type that is meant; raises an error if it lacks one of `fields`.

    A qualified field decides first, then the known type `t`, then the last declaration with the first field."""
    known = prune(t) if t is not None else None
    qualified = [cx.field_owner(name, span) for name in fields if "." in name]
    if qualified:
        data = qualified[0]
        if any(other.name != data.name for other in qualified):
            raise cx.fail("E0203", "these fields are of different record types", span)
    elif type(known) is ty.Con and known.name in cx.datas and cx.datas[known.name].fields:
        data = cx.datas[known.name]
    else:
        data = cx.field_owner(fields[0], span)
    for name in fields:
        if tree.member(name) not in data.fields:
            raise no_field(cx, data, name, span)
    return data


def no_field(cx: Context, data: term.Data, name: str, span: Span) -> DplError:
    """The error for a field that a record type does not have."""
    from dpl.types.state.unbound import suggest

    title = f"the record type `{printer(cx).data_name(data.name)}` has no field `{name}`"
    near = suggest(tree.member(name), data.fields)
    helps = near or (f"its fields are  {', '.join(data.fields)}",)
    return cx.fail("E0203", title, place_of_field(tree.member(name), span), helps=helps)


def place_of_field(name: str, span: Span) -> Span:
    """The place of a field's name in `{ x = 1; y = 2 }`, `{ r with x = 1 }` or `r.x`."""
    for found in re.finditer(rf"(?:[{{;.]|\bwith\b)\s*({re.escape(name)})\b", span.text):
        before = span.text[: found.start(1)]
        if before.count("{") - before.count("}") == span.text.startswith("{"):
            return Span(span.source, span.start + found.start(1), span.start + found.end(1))
    return span


def declared_types(data: term.Data, names: Sequence[str]) -> list[Any]:
    """The types of these fields of a record, as declared."""
    content = data.cases[0][1]
    parts = content.items if type(content) is ty.Tup and len(data.fields) != 1 else (content,)
    return [parts[data.fields.index(name)] for name in names] if names is not data.fields else [*parts]


def field_types(cx: Context, data: term.Data, env: dict, names: Sequence[str]) -> tuple[Type, ...]:
    """The types of these fields of a record, with its parameters replaced as `env` says."""
    parts = declared_types(data, names)
    opened = {n: cx.solver.unknown_size() for part in parts for n in unknowns(part)}
    memo: dict = {}
    return tuple(replace(part, {**env, **opened}, memo) for part in parts)


def _either(cx, left, right, t, span, found: Bound, flexible) -> term.Pattern:
    ours: Bound = {}
    theirs: Bound = {}
    first = _pattern(cx, left, t, ours, flexible)
    second = _pattern(cx, right, t, theirs, flexible)
    for name in [*ours, *theirs]:
        if name not in ours or name not in theirs:
            side = "right" if name in ours else "left"
            raise cx.fail("E0208", f"`{name}` must be bound on both sides of `|`", span, note=f"not on the {side}")
        cx.unify(theirs[name][1], ours[name][1], theirs[name][2], Why(f"`{name}`", ours[name][2], "bound here"))
    found.update(ours)
    return term.POr(t, first, _rename(second, {theirs[n][0]: ours[n][0] for n in ours}))


def _rename(p: term.Pattern, names: dict[str, str]) -> term.Pattern:
    match p:
        case term.PVar(t, name):
            return term.PVar(t, names.get(name, name))
        case term.PTuple(t, items):
            return term.PTuple(t, tuple(_rename(i, names) for i in items))
        case term.PArray(t, items):
            return term.PArray(t, tuple(_rename(i, names) for i in items))
        case term.PCon(t, name, tag, arg) if arg is not None:
            return term.PCon(t, name, tag, _rename(arg, names))
        case term.PAs(t, inner, name):
            return term.PAs(t, _rename(inner, names), names.get(name, name))
        case term.POr(t, left, right):
            return term.POr(t, _rename(left, names), _rename(right, names))
        case _:
            pass
    return p
