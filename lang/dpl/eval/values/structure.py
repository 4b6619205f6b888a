"""Values as trees of leaves: listing the leaves, replacing them, comparing values.

    leaves ([1.0, x], Some 2)      = 1.0, x, 2
    rebuild ([1.0, x], Some 2) abc = ([a, b], Some c)

Leaves are scalars, strings, functions and references.  The functions use explicit stacks, because lists and trees may
be a million levels deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import eq

from dpl.diagnostics import DplError
from dpl.eval.values.value import Array, Con, Value, number

INNER = (tuple, Con, Array)


def leaves(value: Value) -> list:
    """All leaves, in order."""
    out: list = []
    todo = [value]
    while todo:
        v = todo.pop()
        match v:
            case tuple():
                todo.extend(reversed(v))
            case Con(arg=arg):
                if arg is not None:
                    todo.append(arg)
            case Array(data=data):
                if data and isinstance(data[0], INNER):
                    todo.extend(reversed(data))
                else:
                    out.extend(data)
            case _:
                out.append(v)
    return out


class _Close:
    """An entry of the work stack: the parts of this value are done, so assemble them."""

    __slots__ = ("count", "value")

    def __init__(self, value: Value, count: int) -> None:
        self.value = value
        self.count = count


def rebuild(value: Value, new: Iterator) -> Value:
    """`value` with its leaves replaced, in order, by the items of `new`."""
    done: list = []
    todo: list = [value]
    while todo:
        v = todo.pop()
        match v:
            case _Close(value=whole, count=n):
                parts = done[len(done) - n :]
                del done[len(done) - n :]
                done.append(_assemble(whole, parts))
            case tuple():
                todo.append(_Close(v, len(v)))
                todo.extend(reversed(v))
            case Con(arg=arg):
                if arg is None:
                    done.append(v)
                else:
                    todo += (_Close(v, 1), arg)
            case Array(shape=shape, data=data):
                if data and isinstance(data[0], INNER):
                    todo.append(_Close(v, len(data)))
                    todo.extend(reversed(data))
                else:
                    done.append(Array(shape, list(islice(new, len(data)))))
            case _:
                done.append(next(new))
    return done[0]


def _assemble(whole: Value, parts: list) -> Value:
    match whole:
        case tuple():
            return tuple(parts)
        case Con(tag=tag, name=name):
            return Con(tag, name, parts[0])
        case _:
            return Array(whole.shape, parts)


def check_same_form(x: Value, y: Value, what: str) -> None:
    """Check that two values have the same constructors and sizes.  Raises R0503, which begins with `what`."""
    todo = [(x, y)]
    while todo:
        a, b = todo.pop()
        match a:
            case tuple():
                todo.extend(zip(a, b, strict=True))
            case Con():
                if a.tag != b.tag:
                    differ = "different constructors; lists of different lengths have them too"
                    raise DplError.at("R0503", f"{what}: {differ}")
                if a.arg is not None:
                    todo.append((a.arg, b.arg))
            case Array():
                if a.shape != b.shape:
                    n, m = unequal(b.shape, a.shape)
                    raise DplError.at("R0503", f"{what}: sizes {n} and {m} differ")
                if a.data and isinstance(a.data[0], INNER):
                    todo.extend(zip(a.data, b.data, strict=True))
            case _:  # a leaf
                pass


def unequal(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, int]:
    """The first two sizes that differ, for messages: native code compares sizes one by one."""
    return next((n, m) for n, m in zip(shape, other, strict=True) if n != m)


def same_rows(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """True if two shapes without elements agree up to their first 0; the sizes after that may be guesses."""
    return 0 in a and a[: a.index(0) + 1] == b[: a.index(0) + 1]


def equal(x: Value, y: Value) -> bool:
    """Structural equality; floats compare as in IEEE 754."""
    todo = [(x, y)]
    while todo:
        a, b = todo.pop()
        match a:
            case tuple():
                todo.extend(zip(a, b, strict=True))
            case Con():
                if a.tag != b.tag:
                    return False
                if a.arg is not None:
                    todo.append((a.arg, b.arg))
            case Array():
                if a.shape != b.shape and not same_rows(a.shape, b.shape):
                    return False
                if a.data and isinstance(a.data[0], INNER):
                    todo.extend(zip(a.data, b.data, strict=True))
                elif not all(map(eq, a.data, b.data)):
                    return False
            case _:
                if a != b:
                    return False
    return True


def compare(x: Value, y: Value) -> int:
    """A number below, at or above 0.  Constructors compare by tag and then by argument, everything else
    lexicographically; a proper prefix comes first.  Inside data NaN comes after all numbers and beside itself, so that
    the order is total."""
    todo = [(x, y)]
    while todo:
        a, b = todo.pop()
        match a:
            case tuple():
                todo.extend(reversed(tuple(zip(a, b, strict=True))))
            case Con():
                if a.tag != b.tag:
                    return a.tag - b.tag
                if a.arg is not None:
                    todo.append((a.arg, b.arg))
            case Array():
                todo.append((a.shape[0], b.shape[0]))
                todo.extend(reversed(tuple(zip(a.data, b.data))))  # the shorter decides
            case _:
                p, q = number(a), number(b)
                if p < q:
                    return -1
                if p > q:
                    return 1
                if (p != p) != (q != q):
                    return 1 if p != p else -1
    return 0
