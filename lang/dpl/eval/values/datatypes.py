"""The types of the parts of values, according to the declared data types, and so the scalar types of their leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from dpl.core import ty as t
from dpl.core.term import LIST, Data
from dpl.eval.values.instance import is_type
from dpl.eval.values.scalar import FIT, cast
from dpl.eval.values.structure import leaves, rebuild
from dpl.eval.values.value import Array, Con, Value


class DataTypes:
    """The data types of one program."""

    def __init__(self, datas: Mapping[str, Data]) -> None:
        self.declared = datas
        self.argument = cache(self._argument)

    def data(self, ty: t.Con) -> Data:
        """The declaration of a data type."""
        return LIST if ty.name == "list" else self.declared[ty.name]

    def _argument(self, ty: t.Con, tag: int) -> t.Ty | None:
        """The type of a constructor's argument; None if it takes none."""
        data = self.data(ty)
        argument = data.cases[tag][1]
        if argument is None:
            return None
        found = t.substitute(argument, {p.name: a for p, a in zip(data.params, ty.args, strict=True)})
        assert is_type(found)
        return found

    def fields(self, ty: t.Con, value: Con) -> tuple[tuple[str, Value, t.Ty], ...]:
        """The fields of a record, as (name, value, type).  A record with one field holds it directly, not in a
        tuple."""
        names, argument = self.data(ty).fields, self.argument(ty, 0)
        if len(names) == 1 and argument is not None:
            return ((names[0], value.arg, argument),)
        assert isinstance(argument, t.Tup)
        return tuple(zip(names, value.arg, argument.items, strict=True))

    def has_lone_field(self, ty: t.Ty) -> bool:
        """True for a record of one field, which is represented as the field's value."""
        return isinstance(ty, t.Con) and len(self.data(ty).fields) == 1

    # ---- precision ------------------------------------------------------------------------------------------------

    def rounding(self, ty: t.Ty) -> Callable[[Value], Value]:
        """A function that takes a value of this type with f64 floats and rounds each to its own precision."""
        return self._each_float(ty, lambda kind: cast("f64", kind))

    def widening(self, ty: t.Ty) -> Callable[[Value], Value]:
        """A function that gives a value of this type with f64 floats.  What flows back is rounded."""
        return self._each_float(ty, lambda kind: cast(kind, "f64"))

    def _each_float(self, ty: t.Ty, conversion: Callable[[str], Callable]) -> Callable[[Value], Value]:
        if self._mentioned(ty) <= {"f64"}:
            return lambda value: value

        def converted(value: Value) -> Value:
            pairs = zip(leaves(value), self.leaf_kinds(value, ty), strict=True)
            return rebuild(value, iter([conversion(k)(leaf) if k in t.FLOATS else leaf for leaf, k in pairs]))

        return converted

    def _mentioned(self, ty: t.Ty) -> set[str]:
        """The float types in a type, including those inside its data types."""
        seen: set = set()
        todo: list = [ty]
        while todo:
            part = todo.pop()
            if part in seen or not is_type(part):
                continue
            seen.add(part)
            match part:
                case t.Con(name, args):
                    todo.extend(args)
                    if name not in FIT and name not in ("bool", "string", "ref"):
                        todo.extend(self.argument(part, tag) for tag in range(len(self.data(part).cases)))
                case t.Tup(items):
                    todo.extend(items)
                case t.Arr(elem):
                    todo.append(elem)
                case _:
                    pass
        return {ty.name for ty in seen if isinstance(ty, t.Con) and ty.name in t.FLOATS}

    def leaf_kinds(self, value: Value, ty: t.Ty) -> list[str]:
        """The names of the leaves' types, in order; empty for functions."""
        out: list[str] = []
        todo: list = [(value, ty)]
        while todo:
            match todo.pop():
                case tuple() as parts, t.Tup(items):
                    todo.extend(reversed(tuple(zip(parts, items, strict=True))))
                case Con(tag=tag, arg=arg), t.Con() as its:
                    if arg is not None:
                        todo.append((arg, self.argument(its, tag)))
                case Array(data=data), t.Arr(elem):
                    while isinstance(elem, t.Arr):
                        elem = elem.elem
                    todo.extend((v, elem) for v in reversed(data))
                case _, t.Con(name):
                    out.append(name)
                case _:
                    out.append("")
        return out
