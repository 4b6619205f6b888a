"""Types at run time: the types that the type variables in scope stand for.

A polymorphic definition is compiled once.  Where its meaning depends on a type (literals, conversions, rounding,
printing), the compiled code asks the `Types` of the activation, the first item of every environment.  Equal instances
are one object, so it caches the answers.  Effects and sizes are erased from these types; the sizes that a definition
needs (`core/shapes.py`) are kept beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeGuard

from dpl.core import ty as t
from dpl.diagnostics import Bug

ANY_SIZE = t.Size()


@cache
def erase(ty: t.Ty) -> t.Ty:
    """The type without sizes and effects."""
    match ty:
        case t.Con(name, args):
            return t.Con(name, tuple(ANY_SIZE if not is_type(a) else erase(a) for a in args))
        case t.Tup(items):
            return t.Tup(tuple(map(erase, items)))
        case t.Arr(elem):
            return t.Arr(erase(elem), ANY_SIZE)
        case t.Fn(arg, _, result):
            return t.Fn(erase(arg), t.PURE, erase(result))
        case t.Lift(name, items):
            return t.lifted(name, [erase(i) for i in items])
        case t.Var():
            return ty
        case t.Hole():
            raise Bug(f"a type that inference left open: {ty}")


def is_type(arg: object) -> TypeGuard[t.Ty]:
    """True if an argument of a type is a type, not a size or an effect."""
    return isinstance(arg, (t.Con, t.Tup, t.Arr, t.Fn, t.Lift)) or (isinstance(arg, t.Var) and arg.sort == "type")


def types_of(inst: tuple) -> tuple[t.Ty, ...]:
    """The types in an instantiation."""
    return tuple(a for a in inst if is_type(a))


@cache
def is_closed(ty: t.Ty) -> bool:
    """True if an erased type mentions no variable."""
    match ty:
        case t.Var():
            return False
        case t.Con(_, args):
            return all(is_closed(a) for a in args if is_type(a))
        case t.Tup(items) | t.Lift(_, items):
            return all(map(is_closed, items))
        case t.Arr(elem):
            return is_closed(elem)
        case t.Fn(arg, _, result):
            return is_closed(arg) and is_closed(result)
        case t.Hole():
            raise Bug(f"a type that inference left open: {ty}")


def type_params(params: tuple) -> tuple[str, ...]:
    """The names of the type variables among a definition's parameters."""
    return tuple(p.name for p in params if p.sort == "type")


def type_args(params: tuple, inst: tuple) -> tuple[t.Ty, ...]:
    """The types in the instantiation of a definition with these parameters, erased."""
    return tuple(erase(a) for p, a in zip(params, inst, strict=True) if p.sort == "type")


class Assignment(dict):
    """Type variables -> types.  An undetermined variable stands for unit."""

    def get(self, name: str, default: object = None) -> t.Ty:
        return super().get(name, t.UNIT)


Handed = tuple[tuple[str, tuple[int, ...]], ...]  # (name of a type variable, the array sizes of its type)
MOST = 1000  # cached instances that differ in sizes: there may be any number of these


class Types:
    """Closed types of the type variables, and the sizes of some.  `memo` is a cache for the compiled code, with a key
    for each place in it."""

    __slots__ = ("_inner", "memo", "names", "sizes")

    def __init__(self, names: dict[str, t.Ty], sizes: dict[str, tuple[int, ...]] | None = None) -> None:
        self.names = Assignment(names)
        self.sizes = sizes or {}
        self.memo: dict = {}
        self._inner: dict[tuple, Types] = {}

    def resolve(self, ty: t.Ty) -> t.Ty:
        """A type without type variables: with those in scope replaced."""
        if is_closed(ty):
            return ty
        return t.substitute(ty, self.names)

    def extend(self, names: tuple[str, ...], types: tuple[t.Ty, ...], sizes: Handed = ()) -> Types:
        """The types in an inner scope.  Each instance is made once."""
        key = (names, types, sizes)
        if key not in self._inner:
            if sizes and len(self._inner) >= MOST:
                self._inner.clear()
            all_ = {**self.names, **dict(zip(names, types, strict=True))}
            self._inner[key] = Types(all_, {**self.sizes, **dict(sizes)})
        return self._inner[key]


def staged(types: tuple[t.Ty, ...], make: Callable) -> tuple[Any, Callable | None]:
    """(make(types), None) if the types are closed; otherwise (None, a function from the environment to the result)."""
    types = tuple(map(erase, types))
    if all(map(is_closed, types)):
        return make(types), None
    here = object()

    def later(env: tuple):
        memo = env[0].memo
        found = memo.get(here)
        if found is None:
            found = memo[here] = make(tuple(map(env[0].resolve, types)))
        return found

    return None, later
