"""Formats as in Python, `$"{x:>+10.2f}"`: parsing them, and the parts of a value to which they apply.

    [[fill]align][sign][#][0][width][, or _][.precision][letter]

A number is written as by Python's `format`.  In data, a format applies to the numbers inside:

  with a letter for floats       to the floats, or to the integers if there are no floats
  with a precision, no letter    to the floats
  with a letter for integers     to the integers
  otherwise                      to all numbers

With the letter `s`, or if the value contains no numbers, the text of the whole value is cut and padded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from dpl.core import ty as t
from dpl.core.term import LIST, Data
from dpl.node import node
from dpl.regex import regex

OF_INTEGERS, OF_FLOATS = "dboxX", "eEfFgG%"
GRAMMAR = "[[fill]align][sign][#][0][width][, or _][.precision][letter]"
WIDEST, FINEST = 1_000_000, 10_000
INT, FLOAT = "int", "float"

_PARTS = regex(r"(?:(.)?([<>=^]))?([+\- ]?)(#?)(0?)(\d*)([,_]?)(?:(\.)(\d*))?", re.DOTALL)


class Unreadable(ValueError):
    """The text is not a format; the message says why."""


@node
class Format:
    text: str
    align: str
    sign: str
    prefix: bool  # `#`
    grouping: str
    precision: bool
    letter: str

    @property
    def suits_text(self) -> bool:
        """True if the format can be that of a string: it has no part that only numbers have."""
        return self.letter in ("", "s") and not (self.sign or self.prefix or self.grouping or self.align == "=")


def read(text: str) -> Format:
    """The format that a text says.  Raises Unreadable if it says none."""
    found = _PARTS.match(text)
    assert found is not None
    _, align, sign, prefix, _, width, grouping, point, digits = found.groups("")
    letter = text[found.end() :]
    if len(letter) > 1 or letter not in OF_INTEGERS + OF_FLOATS + "s":
        what = f"`{letter[0]}` stands where a letter is expected" if len(letter) == 1 else f"`{letter}` is left over"
        raise Unreadable(what)
    if point and not digits:
        raise Unreadable("the precision is missing after `.`")
    if int(width or 0) > WIDEST or int(digits or 0) > FINEST:
        raise Unreadable(f"a width is at most {WIDEST}, a precision at most {FINEST}")
    if point and letter and letter in OF_INTEGERS:
        raise Unreadable(f"`{letter}` is for integers, which have no precision")
    if grouping and letter and letter in ("boxX" if grouping == "," else "") + "s":
        raise Unreadable(f"`{grouping}` does not go with `{letter}`")
    if prefix and (not letter or letter not in "boxX"):
        raise Unreadable("`#` goes with b, o, x and X only")
    made = Format(text, align, sign, bool(prefix), grouping, bool(point), letter)
    if letter == "s" and not made.suits_text:
        raise Unreadable("a text has no sign and no digits to be filled or grouped")
    return made


# ---- the numbers to which a format applies ------------------------------------------------------------------------


def numbers(form: Format, kinds: frozenset[str]) -> frozenset[str]:
    """The kinds of numbers, among `kinds`, to which the format applies."""
    if form.letter == "s":
        return frozenset()
    if form.letter and form.letter in OF_FLOATS:
        return kinds & {FLOAT} or kinds
    if form.precision:
        return kinds & {FLOAT}
    return kinds & {INT} if form.letter else kinds


def suits(form: Format, kinds: frozenset[str], lone: bool) -> bool:
    """True if the format fits a value with these kinds of numbers inside.  `lone`: the value is itself a number."""
    if form.letter == "s":
        return not lone
    return bool(numbers(form, kinds)) or (not kinds and form.suits_text)


def kind_of(name: str) -> str:
    """INT or FLOAT for a scalar type of numbers; empty for other types."""
    return INT if name in t.INTS else FLOAT if name in t.FLOATS else ""


def kinds_of(ty: t.Ty, datas: Mapping[str, Data]) -> frozenset[str]:
    """The kinds of the numbers inside values of a type."""
    return scan(ty, datas, lambda part: part)[0]


def scan(ty: t.Ty, datas: Mapping[str, Data], look: Callable[[t.Ty], t.Ty]) -> tuple[frozenset[str], list[t.Hole]]:
    """(the kinds of the numbers inside values of a type, the unknown parts of the type).  `look` returns the known form
    of a part, so that its head can be read."""
    found: set[str] = set()
    unknown: list[t.Hole] = []
    seen: set[str] = set()
    todo: list = [ty]
    while todo:
        part = todo.pop()
        match look(part) if isinstance(part, t.Ty) else part:
            case t.Hole() as hole:
                if hole not in unknown:
                    unknown.append(hole)
            case t.Con(name, args):
                todo += args
                found.add(kind_of(name))
                data = LIST if name == "list" else datas.get(name)
                if data is not None and name not in seen:
                    seen.add(name)
                    todo += [argument for _, argument in data.cases if argument is not None]
            case t.Tup() | t.Arr() as whole:
                todo += t.children(whole)
            case _:
                pass
    return frozenset(found - {""}), unknown
