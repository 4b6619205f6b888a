"""Mono core: the form of a program after specialisation, and questions about its types."""

from __future__ import annotations

from collections.abc import Iterable

from dpl.core import term as c
from dpl.core import ty as t
from dpl.node import field, record

ANY = t.Size()  # every array's size: sizes are erased


@record
class Mono:
    """`functions` by instance name; `calls` has the global names that each of them mentions.  `items`, in the order in
    which they run, are values (with a name) and effects (without).  With `control`, some function captures its context.
    `exports` names the values that hold exported functions."""

    functions: dict[str, c.Lam] = field(default_factory=dict)
    calls: dict[str, dict[str, None]] = field(default_factory=dict)
    items: list[tuple[str, c.Term]] = field(default_factory=list)
    datas: dict[str, c.Data] = field(default_factory=dict)
    control: bool = False
    exports: tuple[str, ...] = ()


# ---- types ----------------------------------------------------------------------------------------------------------


def takes_functions(ty: t.Ty) -> bool:
    """True for a type of functions that take a function."""
    return isinstance(ty, t.Fn) and (holds_function(ty.arg) or takes_functions(ty.result))


def holds_function(ty: t.Ty) -> bool:
    """True if a function type is in a type; the arguments of data types are looked at, not their fields."""
    return isinstance(ty, t.Fn) or any(holds_function(part) for part in parts_of(ty))


def dimensions(ty: t.Ty) -> tuple[list[t.Size], t.Ty]:
    """The sizes of an array, the outermost first, and the type of its numbers or other elements."""
    sizes = []
    while isinstance(ty, t.Arr):
        sizes.append(ty.size)
        ty = ty.elem
    return sizes, ty


def parts_of(ty: t.Ty) -> tuple:
    """The types that a type is made of."""
    match ty:
        case t.Con(_, args):
            return args
        case t.Tup(items):
            return items
        case t.Arr(elem):
            return (elem,)
        case t.Fn(arg, _, result):
            return (arg, result)
        case _:
            return ()


def type_arguments(params: Iterable[t.Var], inst: tuple) -> list:
    return [i for p, i in zip(params, inst, strict=True) if p.sort == "type"]


def type_arguments_of(datas: dict[str, c.Data], name: str, args: tuple) -> list[t.Ty]:
    """The arguments of a type constructor that are types."""
    declared = datas.get(name)
    return list(args) if declared is None or not args else type_arguments(declared.params, args)
