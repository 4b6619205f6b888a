"""Text that `show` has written -> the value, by its type."""

from __future__ import annotations

import re
import struct

from dpl.core import ty as t
from dpl.eval.values.datatypes import DataTypes
from dpl.eval.values.value import Array, Con, Value, make_list
from dpl.regex import regex

TOKEN = regex(r'"(?:\\.|[^"\\])*"|[][(){};,=]|[^][(){};,=\s"]+')
ESCAPED = regex(r"\\(.)", re.DOTALL)
PLAIN = {"n": "\n", "t": "\t"}


class Unreadable(Exception):
    """The text does not have all of the value: functions, references, the inner sizes of an array without rows."""


def is_readable(ty: t.Ty, datas: DataTypes) -> bool:
    """Whether the values of a closed type can be read back."""
    seen: set[t.Ty] = set()
    todo: list[t.Ty] = [ty]
    while todo:
        part = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        match part:
            case t.Con("ref", _) | t.Fn() | t.Var() | t.Lift() | t.Hole():
                return False
            case t.Con("list", (elem,)):
                todo.append(elem)  # pyrefly: ignore[bad-argument-type]
            case t.Con(name) if name in datas.declared:
                count = len(datas.data(part).cases)
                todo += [a for tag in range(count) if (a := datas.argument(part, tag)) is not None]
            case t.Tup(items):
                todo += items
            case t.Arr(elem):
                todo.append(elem)
            case _:
                pass
    return True


def read(text: str, ty: t.Ty, datas: DataTypes) -> Value:
    """The value that `show` has written as this text.  Raises Unreadable if the text is no value of this type."""
    reader = Reader(TOKEN.findall(text), datas)
    value = reader.value(ty)
    if reader.at != len(reader.tokens):
        raise Unreadable
    return value


class Reader:
    def __init__(self, tokens: list[str], datas: DataTypes) -> None:
        self.tokens, self.datas, self.at = tokens, datas, 0

    def next(self) -> str:
        if self.at >= len(self.tokens):
            raise Unreadable
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, wanted: str) -> None:
        if self.next() != wanted:
            raise Unreadable

    def accept(self, wanted: str) -> bool:
        found = self.at < len(self.tokens) and self.tokens[self.at] == wanted
        self.at += found
        return found

    def value(self, ty: t.Ty) -> Value:
        match ty:
            case t.Con("string"):
                return ESCAPED.sub(lambda m: PLAIN.get(m[1], m[1]), self.next()[1:-1])
            case t.Con("bool"):
                return self.next() == "true"
            case t.Con(name) if name in t.FLOATS or name in t.INTS:
                return scalar(self.next(), name)
            case t.Tup(items):
                return self.items(items)
            case t.Arr(elem):
                return self.array(elem)
            case t.Con("list", (elem,)):
                return self.read_list(elem)  # pyrefly: ignore[bad-argument-type]
            case t.Con():
                return self.data(ty)
            case _:
                raise Unreadable

    def items(self, types: tuple[t.Ty, ...]) -> tuple:
        self.expect("(")
        found = []
        for i, ty in enumerate(types):
            if i:
                self.expect(",")
            found.append(self.value(ty))
        self.expect(")")
        return tuple(found)

    def array(self, elem: t.Ty) -> Array:
        self.expect("[")
        found: list[Value] = []
        while not self.accept("]"):
            if found:
                self.expect(",")
            found.append(self.value(elem))
        if not isinstance(elem, t.Arr):
            return Array((len(found),), found)
        if not found:
            raise Unreadable
        return Array((len(found), *found[0].shape), [x for row in found for x in row.data])

    def read_list(self, elem: t.Ty) -> Con:
        self.expect("[")
        found = []
        while not self.accept("]"):
            found.append(self.value(elem))
            self.accept(";")
        return make_list(found)

    def data(self, ty: t.Con) -> Con:
        data = self.datas.data(ty)
        if data.fields:
            return Con(0, data.name, self.fields(self.datas.argument(ty, 0), len(data.fields)))
        bracketed = self.accept("(")
        name = self.next()
        tag = next((i for i, (case, _) in enumerate(data.cases) if case.rpartition(".")[2] == name), None)
        if tag is None:
            raise Unreadable
        argument = self.datas.argument(ty, tag)
        made = Con(tag, data.cases[tag][0], None if argument is None else self.argument(argument))
        if bracketed:
            self.expect(")")
        return made

    def argument(self, ty: t.Ty) -> Value:
        """The argument of a constructor: a negative number stands in parentheses."""
        bracketed = isinstance(ty, t.Con) and ty.name in (*t.INTS, *t.FLOATS) and self.accept("(")
        value = self.value(ty)
        if bracketed:
            self.expect(")")
        return value

    def fields(self, content: t.Ty | None, count: int) -> Value:
        types = content.items if isinstance(content, t.Tup) and count > 1 else (content,)
        self.expect("{")
        found = []
        for i, ty in enumerate(types):
            if i:
                self.expect(";")
            self.next()  # the name
            self.expect("=")
            assert ty is not None
            found.append(self.value(ty))
        self.expect("}")
        return tuple(found) if count > 1 else found[0]


def scalar(text: str, kind: str) -> Value:
    try:
        if kind in t.INTS:
            return int(text)
        return struct.unpack("f", struct.pack("f", float(text)))[0] if kind == "f32" else float(text)
    except (ValueError, OverflowError):
        raise Unreadable from None
