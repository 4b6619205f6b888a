"""Patterns -> binders: (value, environment) -> the environment with the pattern's variables added, or None."""
# ruff: noqa: RUF005 (environments grow by concatenation: it is the fastest way)

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term as c
from dpl.core import ty as t
from dpl.eval.values.arrays import rows
from dpl.eval.values.instance import staged
from dpl.eval.values.scalar import fitted
from dpl.eval.values.value import Value

Binder = Callable[[Value, tuple], tuple | None]


def variables(pattern: c.Pattern) -> list[str]:
    """The variables of a pattern, in the order in which its binder adds them."""
    match pattern:
        case c.PVar(_, name):
            return [name]
        case c.PTuple(_, items) | c.PArray(_, items):
            return [name for p in items for name in variables(p)]
        case c.PCon(arg=arg) if arg is not None:
            return variables(arg)
        case c.PAs(_, inner, name):
            return [*variables(inner), name]
        case c.POr(_, left, _):
            return variables(left)
        case _:
            return []


def binder(pattern: c.Pattern) -> Binder:
    """A pattern -> a function that matches a value and adds the pattern's variables to the environment, in order."""
    match pattern:
        case c.PWild():
            return lambda value, env: env
        case c.PVar():
            return lambda value, env: env + (value,)
        case c.PLit(ty, literal):
            return _literal(ty, literal)
        case c.PTuple(_, items):
            return _tuple(items)
        case c.PCon(_, _, tag, arg):
            return _constructor(tag, arg)
        case c.PArray(_, items):
            all_of = _tuple(items)
            return lambda value, env: all_of(rows(value), env) if value.shape[0] == len(items) else None
        case c.PAs(_, inner, _):
            bind = binder(inner)
            return lambda value, env: None if (found := bind(value, env)) is None else found + (value,)
        case c.POr(_, left, right):
            return _either(left, right)


def _literal(ty: t.Ty, literal: c.Value) -> Binder:
    if isinstance(literal, (bool, str)):
        return lambda value, env: env if value == literal else None
    constant, later = staged((ty,), lambda types: fitted(types[0], literal))
    if later:
        return lambda value, env: env if value == later(env) else None
    return lambda value, env: env if value == constant else None


def _tuple(items: tuple[c.Pattern, ...]) -> Binder:
    if all(isinstance(p, c.PVar) for p in items):
        return lambda values, env: env + tuple(values)
    binders = [(i, binder(p)) for i, p in enumerate(items) if not isinstance(p, c.PWild)]

    def bind(values, env: tuple) -> tuple | None:
        for i, part in binders:
            if (found := part(values[i], env)) is None:
                return None
            env = found
        return env

    return bind


def _constructor(tag: int, arg: c.Pattern | None) -> Binder:
    if arg is None or isinstance(arg, c.PWild):
        return lambda value, env: env if value.tag == tag else None
    bind = binder(arg)
    return lambda value, env: bind(value.arg, env) if value.tag == tag else None


def _either(left: c.Pattern, right: c.Pattern) -> Binder:
    """Both sides bind the same variables, perhaps in different orders; the result has the left side's order."""
    first, second = binder(left), binder(right)
    theirs = variables(right)
    order = [theirs.index(name) for name in variables(left)]

    def bind(value: Value, env: tuple) -> tuple | None:
        found = first(value, env)
        if found is None and (found := second(value, env)) is not None:
            new = found[len(env) :]
            found = env + tuple(new[i] for i in order)
        return found

    return bind
