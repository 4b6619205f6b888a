"""Expressions of type int whose value is a size that the types know: `3`, `n`, `2 * n + 1`, `length xs`."""

from __future__ import annotations

from dpl.core import ty
from dpl.syntax import tree
from dpl.types import sizes
from dpl.types.context import Context
from dpl.types.env import Primitive, SizeName, Value
from dpl.types.meta import prune

OPERATORS = {"+": "add", "-": "sub", "*": "mul"}


def size_of(cx: Context, e) -> ty.Size | None:
    match e:
        case tree.Lit(span, int() as value, "" | "i64") if not isinstance(value, bool) and value >= 0:
            return cx.solver.sizes.written(ty.Size(value), span)
        case tree.Var(_, name):
            match cx.find(name):
                case SizeName(size):
                    return size
                case Value(size=size):
                    return size
                case _:
                    pass
        case tree.Binary(_, op, left, right) if op in OPERATORS:
            entry = cx.find(op)
            if isinstance(entry, Primitive) and entry.row.name == OPERATORS[op]:
                a, b = size_of(cx, left), size_of(cx, right)
                if a is not None and b is not None:
                    return sizes.mul(a, b) if op == "*" else sizes.add(a, b, 1 if op == "+" else -1)
        case tree.App(_, tree.Var(_, "length"), tree.Var(_, name)):
            entry, array = cx.find("length"), cx.find(name)
            if isinstance(entry, Primitive) and isinstance(array, Value) and not array.scheme.params:
                t = prune(array.scheme.ty)
                if type(t) is ty.Arr:
                    return t.size
        case _:
            pass
    return None
