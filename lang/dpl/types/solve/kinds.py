"""Classes of types: which types are numbers, which have equality, which can be differentiated.

num     a number, or an array of numbers           scalar   no array
real    a float, or an array of floats             integer  an integer, or an array of them
data    no function and no reference inside        diff     the same, as an argument of a derivative
active  at least one float inside                  content  what a reference may hold (as data)
"""

from __future__ import annotations

from collections.abc import Mapping

from dpl.core import ty
from dpl.core.term import Data
from dpl.types.solve.meta import Meta, Type, prune

NUMBERS = frozenset(ty.INTS + ty.FLOATS)
SCALARS = {"num": NUMBERS, "real": frozenset(ty.FLOATS), "integer": frozenset(ty.INTS)}

PHRASES = {
    "num": "a number or an array of numbers",
    "real": "a float or an array of floats",
    "integer": "an integer",
    "scalar": "one number (no array)",
    "data": "data that can be compared (no functions, no references)",
    "content": "something a reference can hold (no functions, no references)",
    "diff": "something that can be differentiated (no functions, no references)",
    "active": "something with at least one float inside",
}


def compatible(classes: frozenset[str]) -> bool:
    """Can a type be in all of these classes?"""
    return "integer" not in classes or not classes & {"real", "active"}


class Kinds:
    """Membership of types in classes, given the declared data types."""

    def __init__(self, datas: Mapping[str, Data]) -> None:
        self.datas = datas
        self._opaque: dict[str, bool] = {}

    def parts(self, cls: str, t) -> list | None:
        """The types that must be in `cls` for `t` to be in it; None if `t` cannot be.  `t` must not be an unknown."""
        if cls in SCALARS:
            match t:
                case ty.Con(name, ()) if name in SCALARS[cls]:
                    return []
                case ty.Arr(elem, _):
                    return [elem]
                case _:
                    pass
            return None
        if cls == "scalar":
            return [] if type(t) is ty.Con and not t.args else None
        if cls == "active":
            return [] if self.has_float(t) is not False else None
        return self._data(t)

    def _data(self, t) -> list | None:
        match t:
            case ty.Con("ref", _) | ty.Fn():
                return None
            case ty.Con(name, args):
                return None if self.opaque(name) else [a for a in args if type(a) is not ty.Size]
            case ty.Tup(items):
                return list(items)
            case ty.Arr(elem, _):
                return [elem]
            case _:
                pass
        return []

    def opaque(self, name: str) -> bool:
        """True if values of a declared type hold functions or references, whatever its parameters are."""
        if name not in self._opaque:
            self._opaque[name] = False  # recursion alone does not make it opaque
            data = self.datas.get(name)
            self._opaque[name] = data is not None and any(self._holds(arg) for _, arg in data.cases if arg is not None)
        return self._opaque[name]

    def _holds(self, t) -> bool:
        match t:
            case ty.Con("ref", _) | ty.Fn():
                return True
            case ty.Con(name, args):
                return self.opaque(name) or any(self._holds(a) for a in args if type(a) is not ty.Size)
            case ty.Tup(items):
                return any(self._holds(i) for i in items)
            case ty.Arr(elem, _):
                return self._holds(elem)
            case _:
                pass
        return False

    def holder(self, t, seen: frozenset[str] = frozenset()) -> tuple[tuple[str, ...], Type] | None:
        """The function or reference inside a type, and the names of the fields and constructors on the way to it."""
        match t:
            case ty.Con("ref", _) | ty.Fn():
                return (), t
            case ty.Con(name, args):
                data = self.datas.get(name)
                inner = contents(data) if data is not None and name not in seen else ()
                steps = [*inner, *(("", a) for a in args if not isinstance(a, ty.Size))]
            case ty.Tup(items):
                steps = [("", i) for i in items]
            case ty.Arr(elem, _):
                steps = [("", elem)]
            case _:
                return None
        inside = seen | {t.name} if type(t) is ty.Con else seen
        for step, part in steps:
            if found := self.holder(prune(part), inside):
                return ((step, *found[0]) if step else found[0]), found[1]
        return None

    def has_float(self, t, seen: frozenset[str] = frozenset()) -> bool | None:
        """True if there is a float inside, False if not, None if unknown parts decide it."""
        match prune(t):
            case ty.Con(name, ()) if name in ty.FLOATS:
                return True
            case ty.Con(name, args):
                answers = [self.has_float(a, seen) for a in args if type(a) is not ty.Size]
                data = self.datas.get(name)
                if data is not None and name not in seen:
                    inside = seen | {name}
                    answers += [self.has_float(a, inside) is True for _, a in data.cases if a is not None]
            case ty.Tup(items):
                answers = [self.has_float(i, seen) for i in items]
            case ty.Arr(elem, _):
                answers = [self.has_float(elem, seen)]
            case Meta() | ty.Var():
                return None
            case _:
                return False
        return True if True in answers else None if None in answers else False


def contents(data: Data) -> list[tuple[str, Type]]:
    """What a declared type holds: the names of its fields or constructors, and the types there."""
    if not data.fields:
        return [(name, arg) for name, arg in data.cases if arg is not None]
    [(_, inner)] = data.cases
    assert inner is not None
    types = inner.items if type(inner) is ty.Tup and len(data.fields) > 1 else (inner,)
    return list(zip(data.fields, types, strict=True))
