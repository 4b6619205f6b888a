"""Int expressions whose value is a size known to the types: `3`, `n`, `2 * n + 1`, `length xs`."""

from __future__ import annotations

from dpl.core import term, ty
from dpl.node import replace
from dpl.syntax import tree
from dpl.types.solve import sizes
from dpl.types.solve.meta import prune
from dpl.types.state.context import Context
from dpl.types.state.env import Primitive, SizeName, Value

SYMBOL = "$"
OPERATORS = {"+": "add", "-": "sub", "*": "mul"}


def extent(cx: Context, low, high) -> ty.Size | None:
    """The size `high - low`.  Ints of unknown size may cancel: `i * b + b - i * b` is `b`."""
    a, b = size_of(cx, low, symbols=True), size_of(cx, high, symbols=True)
    if a is None or b is None:
        return None
    difference = sizes.sub(cx.solver.sizes.norm(b), cx.solver.sizes.norm(a))
    left = [n for n in sizes.names(difference) if n[0] == SYMBOL]
    return ty.substitute(difference, {n: of_int(cx, n[1:]) for n in left})


def inner_size_of(cx: Context, e) -> ty.Size | None:
    """The size that an inner count equals; None if it has none.

    Ints in scope become sizes of their own, because an array without rows could not tell its inner sizes."""
    found = size_of(cx, e, symbols=True)
    if found is None:
        return None
    return ty.substitute(found, {n: of_int(cx, n[1:]) for n in sizes.names(found) if n[0] == SYMBOL})


def of_int(cx: Context, name: str) -> ty.Size:
    """An int in scope as a size.  The size is known at run time, and is then that int."""
    value = cx.locals[name][-1]
    assert isinstance(value, Value)
    if value.size is not None:
        return value.size
    found = cx.solver.unknown_size()
    (unknown,) = sizes.names(found)
    cx.evidence[unknown] = cx.ints[unknown] = term.Var(value.span, ty.I64, value.name)
    cx.tied[unknown] = value.name
    cx.unused.pop(value.name, None)
    cx.locals[name][-1] = replace(value, size=found)
    return found


def size_of(cx: Context, e, symbols: bool = False) -> ty.Size | None:
    """The size that an int expression equals, or None; with `symbols`, ints in scope may stand for themselves."""
    match e:
        case tree.Lit(span, int() as value, "" | "i64") if not isinstance(value, bool) and value >= 0:
            return cx.solver.sizes.written(ty.Size(value), span)
        case tree.Var(_, name):
            match cx.find(name):
                case SizeName(size):
                    return size
                case Value(size=None, scheme=scheme) if symbols and cx.locals.get(name) and prune(scheme.ty) == ty.I64:
                    return sizes.name(SYMBOL + name)
                case Value(size=size):
                    return size
                case _:
                    pass
        case tree.Binary(_, op, left, right) if op in OPERATORS:
            entry = cx.find(op)
            if isinstance(entry, Primitive) and entry.row.name == OPERATORS[op]:
                a, b = size_of(cx, left, symbols), size_of(cx, right, symbols)
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
