"""The values of programs.

Scalars and strings are Python's own (`int`, `float`, `bool`, `str`), tuples are tuples, `()` is `()`.  A float inside
a derivative may be `Tagged` instead (active.py); every scalar operation accepts these.  All other values are here.  As
far as a program can see, all but `Cell` are immutable.  An Array owns its list: never share that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Value: TypeAlias = Any


class Array:
    """A regular array of any rank: `data` holds the elements in row-major order, none of them an Array.

    An update costs O(1) if only the newest version is used (Baker's trick): the new version takes the list over, and
    the old one remembers the elements in which it differs.  It makes a list of its own if it is read again."""

    __slots__ = ("_age", "_data", "_newer", "shape")

    def __init__(self, shape: tuple[int, ...], data: list, age: int = 0) -> None:
        self.shape = shape
        self._data: list | None = data
        self._newer: tuple[Array, int, list] | None = None  # (owner of the list, start of the change, old elements)
        self._age = age  # the number of earlier versions that share its list

    @property
    def data(self) -> list:
        """The elements in row-major order.  If a later version has them, they are copied (Baker 1991)."""
        return self._data if self._data is not None else self._restored()

    def updated(self, start: int, part: list) -> Array:
        """A version with some consecutive elements changed."""
        data = self.data
        stop = start + len(part)
        if self._age >= len(data):  # otherwise a retained first version would retain every change
            data = data.copy()
            data[start:stop] = part
            return Array(self.shape, data)
        newer = Array(self.shape, data, self._age + 1)
        self._newer = newer, start, data[start:stop]
        self._data = None
        data[start:stop] = part
        return newer

    def _restored(self) -> list:
        changes = []
        version = self
        while version._newer:
            changes.append(version._newer[1:])
            version = version._newer[0]
        data = version.data.copy()
        for start, part in reversed(changes):
            data[start : start + len(part)] = part
        self._data, self._newer, self._age = data, None, 0
        return data


class Con:
    """A constructor of a data type, of a list (`[]`, `::`) or of a record (tag 0, the tuple of its fields)."""

    __slots__ = ("arg", "name", "tag")

    def __init__(self, tag: int, name: str, arg: Value = None) -> None:
        self.tag = tag
        self.name = name
        self.arg = arg


class Cell:
    """A reference."""

    __slots__ = ("content",)

    def __init__(self, content: Value) -> None:
        self.content = content


class Closure:
    """A function of `code.arity` arguments, and the values that it captured."""

    __slots__ = ("code", "env")

    def __init__(self, code, env: tuple) -> None:
        self.code = code
        self.env = env


class Partial:
    """A closure that has been given some, but not all, of its arguments."""

    __slots__ = ("args", "closure")

    def __init__(self, closure: Closure, args: tuple) -> None:
        self.closure = closure
        self.args = args


class Builtin:
    """A function of one argument made by the interpreter: a pullback or an extern."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[Value], Value]) -> None:
        self.run = run


class Cont:
    """A captured continuation: the frames up to the nearest `reset`.  Frames are immutable, so it may be resumed many
    times."""

    __slots__ = ("frames",)

    def __init__(self, frames: tuple) -> None:
        self.frames = frames


FUNCTIONS = (Closure, Partial, Builtin, Cont)

NIL = Con(0, "[]")


def cons(head: Value, tail: Con) -> Con:
    return Con(1, "::", (head, tail))


def list_items(xs: Con):
    """The elements of a list."""
    while xs.tag:
        head, xs = xs.arg
        yield head


def make_list(items: list, tail: Con = NIL) -> Con:
    """A list of DPL with these items, before `tail`."""
    for item in reversed(items):
        tail = Con(1, "::", (item, tail))
    return tail


class Tagged:
    """A float that carries a derivative at some level; `primal` is the number itself (perhaps tagged at lower levels).

    Comparisons use only the number."""

    __slots__ = ("level", "primal")
    level: int
    primal: Value

    def __eq__(self, other):
        return number(self) == number(other)

    def __ne__(self, other):
        return number(self) != number(other)

    def __lt__(self, other):
        return number(self) < number(other)

    def __le__(self, other):
        return number(self) <= number(other)

    def __gt__(self, other):
        return number(self) > number(other)

    def __ge__(self, other):
        return number(self) >= number(other)

    __hash__ = object.__hash__


def number(x: Value) -> Value:
    """A scalar without its tags."""
    while isinstance(x, Tagged):
        x = x.primal
    return x
