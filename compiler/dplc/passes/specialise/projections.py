"""Functions of functions that are taken out of known data, as themselves, so that each use may have a copy.

let o = { g = grad }               o.g (o.g f)  is  grad (grad f)
let (d, n) = (grad, 2)             d (d f)      is  grad (grad f)
let p = (grad, diff)               fst p        is  grad
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.walk import changed, subterms
from dpl.node import replace

from dplc.passes.specialise.copier import Copier, Scope
from dplc.passes.specialise.program import takes_functions


def resolved(copier: Copier, e: c.Term, scope: Scope) -> c.Term:
    """The name of a function of functions that a term takes out of known data; any other term as it is."""
    if not takes_functions(e.ty) or isinstance(e, c.Lam):
        return e
    found = taken(copier, e, scope)
    if found is not None and not isinstance(found, c.Var):
        found = resolved(copier, found, scope)
    return found if isinstance(found, c.Var) and not found.sizes and takes_functions(found.ty) else e


def taken(copier: Copier, e: c.Term, scope: Scope) -> c.Term | None:
    """The part of known data that a term is."""
    match e:
        case c.Field(record=data, index=index):
            place = index
        case c.App(fn=c.Var(name=name), arg=data) if (definition := copier.definition(name)) is not None:
            body = definition.body
            place = projection(body.body, body.param) if isinstance(body, c.Lam) else None
        case c.Match(scrutinee=data):
            place = projection(e, None)
        case _:
            return None
    if place is None or (items := parts(copier, data, scope)) is None:
        return None
    return items[place]


def projection(e: c.Term, param: str | None) -> int | None:
    """The number of the item, if a term takes one out of a tuple (of the parameter, if one is named)."""
    match e:
        case c.Match(scrutinee=data, arms=(c.Arm(pattern=pattern, guard=None, body=c.Var(name=name)),)):
            if param is None or (isinstance(data, c.Var) and data.name == param):
                names = bound(pattern)
                return names.index(name) if name in names else None
        case _:
            pass
    return None


def bound(pattern: c.Pattern) -> Sequence[str | None]:
    """The names that a pattern gives to the items of a tuple or record; None where it gives another pattern."""
    inner = pattern.arg if isinstance(pattern, c.PCon) and pattern.tag == 0 else pattern
    if not isinstance(inner, c.PTuple):
        return ()
    return [item.name if isinstance(item, c.PVar) else None for item in inner.items]


def parts(copier: Copier, data: c.Term, scope: Scope) -> tuple[c.Term, ...] | None:
    """The items of a tuple, or the fields of a record, if it is known how they are made."""
    match data:
        case c.Tuple(items=items):
            return items
        case c.Con(ty=t.Con(name), arg=arg) if arg is not None and (fields := copier.out.datas[name].fields):
            return (arg,) if len(fields) == 1 else arg.items if isinstance(arg, c.Tuple) else None
        case c.Update(ty=t.Con(name), record=record, fields=fields):
            old = parts(copier, record, scope) or [c.Hole(data.span, data.ty)] * len(copier.out.datas[name].fields)
            new = dict(fields)
            return tuple([new.get(index, item) for index, item in enumerate(old)])
        case c.Let(name=name, params=(), rhs=rhs, body=body):
            found = parts(copier, body, scope)
            return found and tuple([with_meaning(item, name, rhs) for item in found])
        case c.Var(name=name) if (given := scope.known.get(name)) is not None:
            found = named(copier, given.text, given.scope)
            return tuple([at_types(item or c.Hole(data.span, data.ty), given.scope.types) for item in found]) or None
        case c.Var(name=name, inst=inst):
            params, made = scope.data.get(name) or whole(copier, name)
            found = None if made is None else parts(copier, made, scope)
            env = {p.name: i for p, i in zip(params, inst, strict=True)} if params and found else {}
            return tuple([at_types(item, env) for item in found]) if env and found else found
        case _:
            found = taken(copier, data, scope)
            return None if found is None else parts(copier, found, scope)


def named(copier: Copier, data: c.Term, scope: Scope) -> tuple[c.Var | None, ...]:
    """The items of known data that are names of global functions of functions; None for the others."""
    return tuple([
        item
        if isinstance(item, c.Var)
        and takes_functions(item.ty)
        and item.name not in scope.locals
        and copier.definition(item.name) is not None
        else None
        for item in parts(copier, data, scope) or ()
    ])  # fmt: skip


def opened(copier: Copier, e: c.Match, scope: Scope) -> c.Match:
    """A `match` of known data whose one pattern names functions of functions: these names become definitions."""
    match e.arms:
        case (c.Arm(guard=None) as arm,):
            left, names = without_names(copier, arm.pattern, e.scrutinee, scope)
            body = arm.body
            for name, item in names:
                body = c.Let(item.span, body.ty, name, (), item, body)
            return replace(e, arms=(replace(arm, pattern=left, body=body),)) if names else e
        case _:
            return e


def without_names(
    copier: Copier, pattern: c.Pattern, data: c.Term, scope: Scope
) -> tuple[c.Pattern, list[tuple[str, c.Var]]]:
    """A pattern without its names of functions of functions, and these with what they name."""
    if isinstance(pattern, c.PVar):
        found = data if isinstance(data, c.Var) else resolved(copier, data, scope)
        if isinstance(found, c.Var) and takes_functions(found.ty) and not found.sizes:
            return c.PWild(pattern.ty), [(pattern.name, found)]
        return pattern, []
    if isinstance(pattern, c.PCon) and pattern.tag == 0 and pattern.arg is not None:
        inner, names = without_names(copier, pattern.arg, data, scope)
        return replace(pattern, arg=inner), names
    items = parts(copier, data, scope) if isinstance(pattern, c.PTuple) else None
    if not isinstance(pattern, c.PTuple) or items is None or len(items) != len(pattern.items):
        return pattern, []
    made = [without_names(copier, one, item, scope) for one, item in zip(pattern.items, items, strict=True)]
    return replace(pattern, items=tuple([one for one, _ in made])), [name for _, names in made for name in names]


def whole(copier: Copier, name: str) -> tuple[tuple[t.Var, ...], c.Term | None]:
    """A global value: its parameters, and the term that makes it."""
    definition = copier.definition(name)
    if definition is None or isinstance(definition.body, c.Lam):
        return (), None
    return definition.params, definition.body


def is_data(e: c.Term) -> bool:
    """True for a tuple or a record that holds the name of a function of functions."""
    while isinstance(e, c.Let):
        e = e.body
    items = e.items if isinstance(e, c.Tuple) else (e.arg,) if isinstance(e, c.Con) else ()
    items = subterms(e) if isinstance(e, c.Update) else items
    return any(
        (isinstance(item, c.Var) and takes_functions(item.ty)) or (item is not None and is_data(item)) for item in items
    )


def with_meaning(e: c.Term, name: str, meaning: c.Term) -> c.Term:
    """A name, or a field of what has it, with the term that it stands for."""
    if isinstance(e, c.Field):
        return replace(e, record=with_meaning(e.record, name, meaning))
    return meaning if isinstance(e, c.Var) and e.name == name else e


def at_types(e: c.Term, env: Mapping[str, Any]) -> c.Term:
    """A term with its type variables replaced."""
    if isinstance(e, c.Var):
        return replace(e, ty=t.substitute(e.ty, env), inst=tuple([argument(i, env) for i in e.inst]))
    return changed(e, lambda part: at_types(part, env), lambda ty: t.substitute(ty, env))


def argument(given: Any, env: Mapping[str, Any]) -> Any:
    match given:
        case t.Ctl(answer):
            return t.Ctl(t.substitute(answer, env))
        case t.Pure():
            return given
        case _:
            return t.substitute(given, env)
