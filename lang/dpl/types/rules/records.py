"""Records -> core: records with all fields, with other values in some fields, and their fields.

{ x = 1.0; y = 2.0 }      ->   point (1.0, 2.0)
{ p with y = 3.0 }        ->   p with field 1 := 3.0
p.y                       ->   field 1 of p
"""

from __future__ import annotations

from dpl.core import term, ty
from dpl.diagnostics import DplError, Label
from dpl.node import replace
from dpl.source import Span
from dpl.syntax import tree
from dpl.syntax.foreign import table
from dpl.types.messages.parts import Why, printer
from dpl.types.rules.annotations import unknowns
from dpl.types.rules.patterns import declared_types, field_types, record_of
from dpl.types.rules.shaped import fields_together
from dpl.types.solve.meta import Type, is_scalar, prune
from dpl.types.state.context import Context, rule
from dpl.types.state.deferred import Deferred
from dpl.types.state.env import Failed


@rule(tree.Record)
def record(cx: Context, e: tree.Record, expected) -> term.Term:
    data = record_of(cx, [name for name, _ in e.fields], expected, e.span)
    given = {tree.member(name): value for name, value in e.fields}
    if len(given) < len(e.fields):
        raise cx.fail("E0203", "a field is given twice", e.span)
    missing = [f for f in data.fields if f not in given]
    if missing:
        swallowed = [place for value in given.values() if (place := swallowed_field(value, missing[0]))]
        ends = "a function's body goes on after `;`: put it in parentheses,  f = (fun x -> e); ..."
        raise cx.fail(
            "E0203",
            f"the field `{missing[0]}` is missing",
            replace(e.span, end=e.span.start + 1) if swallowed else e.span,
            labels=tuple(Label(place, "this belongs to the function before it") for place in swallowed),
            helps=(ends,) if swallowed else (f"the fields are  {', '.join(data.fields)}",),
        )
    env = {v.name: cx.solver.size() if v.sort == "size" else cx.solver.fresh() for v in data.params}
    t = ty.Con(data.name, tuple(env.values()))
    known = prune(expected) if expected is not None else None
    if type(known) is ty.Con and known.name == data.name:
        cx.unify(t, known, e.span)
    types = dict(zip(data.fields, field_types(cx, data, env, data.fields)))
    values = {f: cx.check(value, types[f], Why(f"the field `{f}`")) for f, value in given.items()}
    return in_order(cx, data, t, types, values, e.span)


def swallowed_field(value: tree.Expr, field: str) -> Span | None:
    """The place where a function, `let` or `match` swallows the next field, `field = e`; None if it does not."""
    while True:
        match value:
            case tree.Fun(_, _, body) | tree.Let(_, _, _, body) | tree.Shift(_, _, body):
                value = body
            case tree.Match(_, _, arms):
                value = arms[-1].body
            case tree.Seq(_, _, tree.Binary(span, "=", tree.Var(_, name), _, _)) if name == field:
                return span
            case tree.Seq(_, _, second):
                value = second
            case _:
                return None


def in_order(cx: Context, data: term.Data, t: Type, types: dict, values: dict, span: Span) -> term.Term:
    """The record of `values`.  They are computed in the order written, even if the declaration has another."""
    bound: list[tuple[str, term.Term]] = []
    if list(values) != list(data.fields):
        for f, value in values.items():
            if not isinstance(value, term.Var | term.Lit | term.Lam):
                name = cx.unique(f)
                bound.append((name, value))
                values[f] = term.Var(value.span, types[f], name)
    result: term.Term = make_record(cx, data, t, types, values, span)
    for name, value in reversed(bound):
        result = term.Let(span, t, name, (), value, result)
    return result


def make_record(cx: Context, data: term.Data, t: Type, types: dict, values: dict, span: Span) -> term.Term:
    """The record of type `t` with these `values` by field; `types` are those that the fields have in `t`.  Sizes
    that several fields share, and that only the run knows, are compared then."""
    given = tuple([values[f] for f in data.fields])
    content = given[0]
    if len(given) > 1:
        whole = term.Tuple(span, ty.Tup(tuple(v.ty for v in given)), given)
        content = fields_together(cx, whole, [types[f] for f in data.fields])
    return term.Con(span, t, data.cases[0][0], 0, content)


@rule(tree.RecordWith)
def record_with(cx: Context, e: tree.RecordWith, expected) -> term.Term:
    old = cx.infer(e.record, expected)
    data = record_of(cx, [name for name, _ in e.fields], old.ty, e.span)
    before = {v.name: cx.solver.size() if v.sort == "size" else cx.solver.fresh() for v in data.params}
    cx.unify(old.ty, ty.Con(data.name, tuple(before.values())), e.record.span, Why("the record before `with`"))
    given = {tree.member(name): value for name, value in e.fields}
    declared = declared_types(data, tuple(given))
    named = data.fields if any(unknowns(t) for t in declared) else tuple(given)  # others may have the same sizes
    types = dict(zip(named, field_types(cx, data, before, named)))
    values = [(data.fields.index(f), cx.check(v, types[f], Why(f"the field `{f}`"))) for f, v in given.items()]
    made = term.Update(e.span, old.ty, old, tuple(values))
    return made if all(is_scalar(t) for t in declared) else with_sizes(cx, data, made, types, before)


def with_sizes(cx: Context, data: term.Data, update: term.Update, types: dict, params: dict) -> term.Term:
    """A record with other arrays, whose sizes are compared with those of all fields if they are not those declared."""

    def build(zonk) -> term.Term:
        if all(zonk.type(value.ty) == zonk.type(types[data.fields[index]]) for index, value in update.fields):
            return zonk(update)
        others = [f for f in data.fields if f not in types]
        types.update(zip(others, field_types(cx, data, params, others)))
        name = cx.unique("record")
        variable = term.Var(update.record.span, update.ty, name)
        values = {data.fields[index]: value for index, value in update.fields}
        for index, f in enumerate(data.fields):
            values.setdefault(f, term.Field(update.span, types[f], variable, index))
        new = in_order(cx, data, update.ty, types, values, update.span)
        return zonk(term.Let(update.span, update.ty, name, (), update.record, new))

    return Deferred(update.span, update.ty, build, (update,))


@rule(tree.Field)
def field_access(cx: Context, e: tree.Field, expected) -> term.Term:
    if prefix := of_no_use(cx, e):
        from dpl.types.state.unbound import of_other_library

        raise of_other_library(cx, e, prefix)
    value = content(cx, e.record, e.name) if isinstance(e.record, tree.Unary) else cx.infer(e.record)
    known = prune(value.ty)
    if type(known) in (ty.Tup, ty.Arr, ty.Fn) or (type(known) is ty.Con and not is_record(cx, known)):
        from dpl.types.state.unbound import called_on, of_inner_field

        title = f"{printer(cx).type(known)} is not a record, and has no field `{e.name}`"
        raise cx.fail("E0203", title, e.span, helps=of_inner_field(cx, e, known) or called_on(cx, e, known))
    if isinstance(e.record, tree.Var) and isinstance(cx.find(e.record.name), Failed) and not cx.is_field(e.name):
        raise Failed.again()
    data = record_of(cx, [e.name], value.ty, e.span)
    env = {v.name: cx.solver.size() if v.sort == "size" else cx.solver.fresh() for v in data.params}
    cx.unify(value.ty, ty.Con(data.name, tuple(env.values())), e.record.span, Why("the record"))
    (t,) = field_types(cx, data, env, (e.name,))
    return term.Field(e.span, t, value, data.fields.index(e.name))


def of_no_use(cx: Context, e: tree.Field) -> str:
    """The prefix `np` or `jax.numpy` of a name that another language would write so; else ""."""
    names: list[str] = []
    inner = e.record
    while isinstance(inner, tree.Field):
        names.append(inner.name)
        inner = inner.record
    if not isinstance(inner, tree.Var) or cx.find(inner.name):
        return ""
    if inner.name not in table()["libraries"]["names"]:  # a right program does not wait for the table to be read
        return ""
    return ".".join([inner.name, *reversed(names)])


def content(cx: Context, e: tree.Unary, field: str) -> term.Term:
    """The record in `!r.f`, which is `(!r).f`.  If `r` is no reference, the error suggests `!(r.f)`."""
    try:
        return cx.infer(e)
    except DplError as error:
        if not error.diagnostics:
            raise
        first, *rest = error.diagnostics
        if e.op == "!" and first.span == e.arg.span:
            text = e.arg.span.source.text[e.arg.span.start : e.arg.span.end]
            ways = f"`!{text}.{field}` is `(!{text}).{field}`; for the content of a field, write  !({text}.{field})"
            first = replace(first, helps=(ways, *first.helps))
        raise DplError(first, *rest) from None


def is_record(cx: Context, t: ty.Con) -> bool:
    return t.name in cx.datas and bool(cx.datas[t.name].fields)
