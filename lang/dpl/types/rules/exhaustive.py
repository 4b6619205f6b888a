"""Exhaustiveness check: the arms of a match -> an example that they miss, and the arms that are never reached.

    match xs with | [] -> .. | [x] when x > 0 -> .. | [] -> ..      ->   "_ :: _", arm 2

This is Maranget's algorithm on pattern matrices, with all rows at once.  A column that the first row inspects is split
by constructor; each part keeps the rows that may match it.  An arm is reached if its row comes first in some part; a
case is missing where no row is left.  The choice of the column keeps ordinary tuples linear; memoising matrices keeps
awkward ones from growing exponentially.  What no constructor of the column matches comes first: where that misses none,
no part does, and the other parts are looked at for the arms only that it has not reached.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence

from dpl.core import ty as t
from dpl.core.term import (
    LIST,
    Arm,
    Data,
    PArray,
    PAs,
    Pattern,
    PCon,
    PLit,
    POr,
    PTuple,
    PVar,
    PWild,
)
from dpl.node import field, node, record


@node
class _Example:
    """An example value as text, with `_` for any value.

    `loose` if it needs parentheses as an argument; `parts` are the components of a tuple."""

    text: str
    loose: bool = False
    parts: tuple[_Example, ...] = ()

    def argument(self) -> str:
        return f"({self.text})" if self.loose else self.text


_ANY = _Example("_")
_WILD = PWild(t.UNIT)  # its type is never used


@node
class _Row:
    patterns: tuple[Pattern, ...]
    arm: int


Examples = list[_Example]  # one per column


def check(data: Mapping[str, Data], scrutinee: t.Ty, arms: Sequence[Arm]) -> tuple[str | None, list[int]]:
    """An example of a value that no arm matches (or None), and the indices of the arms that no value reaches."""
    matrix = _Matrix(data, [arm.guard is not None for arm in arms])
    missing = matrix.missing([_Row((_bare(arm.pattern),), i) for i, arm in enumerate(arms)], 1)
    unreached = [i for i in range(len(arms)) if i not in matrix.reached]
    return (missing[0].text if missing else None), unreached


@record
class _Matrix:
    data: Mapping[str, Data]
    guarded: list[bool]
    reached: set[int] = field(default_factory=set)
    known: dict[Hashable, Examples | None] = field(default_factory=dict)

    def missing(self, rows: list[_Row], width: int, asked: bool = True) -> Examples | None:
        """One value per column such that no row matches; None if there is none, or unless it is `asked` for.  Records
        the arms that are reached."""
        while rows and all(p is _WILD for p in rows[0].patterns):
            self.reached.add(rows[0].arm)
            if not self.guarded[rows[0].arm]:
                return None
            rows = rows[1:]  # the guard may be false
        if not asked:
            rows = rows[: max((i + 1 for i, row in enumerate(rows) if row.arm not in self.reached), default=0)]
        if not rows:
            return [_ANY] * width if asked else None
        key = (asked, *((row.arm, *map(id, row.patterns)) for row in rows))
        if key not in self.known:
            self.known[key] = self.split(rows, width, asked)
        return self.known[key]

    def split(self, rows: list[_Row], width: int, asked: bool) -> Examples | None:
        """Splits by the constructors of the first column that the first row inspects."""
        column = next(i for i, p in enumerate(rows[0].patterns) if p is not _WILD)
        rows = [alternative for row in rows for alternative in _alternatives(row, column)]
        shown = next((p for row in rows if (p := row.patterns[column]) is not _WILD), None)
        if shown is None:  # `_ | _`
            return self.missing(rows, width, asked)
        groups, others = _group(rows, column)
        missing = None
        if (example := self.outside(shown, set(groups))) is not None:
            found = self.missing(others, width - 1, asked)
            missing = None if found is None else _put(found, column, example)
            asked = False  # the rows of a group are these and more
        for members, arity, head in groups.values():  # all groups, to find every reached arm
            found = self.missing(members, arity + width - 1, asked)
            if found is not None and missing is None:
                missing = _put(found[arity:], column, self.describe(head, found[:arity]))
        return missing

    def outside(self, pattern: Pattern, heads: set) -> _Example | None:
        """A value of the pattern's type with none of these heads; None if there is none."""
        match pattern:
            case PCon(ty, _, _, _):
                if len(heads) == len(self.cases(ty)):
                    return None
                name, arg = next(case for tag, case in enumerate(self.cases(ty)) if tag not in heads)
                return self.describe_case(ty, name, None if arg is None else _shape(arg))
            case PLit(ty, _):
                return _other_literal(ty, heads)
            case PArray(t.Arr(_, t.Size(length, ())), _) if heads == {length}:
                return None
            case PArray():
                length = next(n for n in itertools.count() if n not in heads)
                return _Example(f"[{', '.join(['_'] * length)}]")
            case _:
                return None  # a tuple

    def describe(self, pattern: Pattern, parts: Examples) -> _Example:
        """A value with the head of this pattern and these parts."""
        match pattern:
            case PTuple():
                return _tuple(parts)
            case PArray():
                return _Example(f"[{', '.join(p.text for p in parts)}]")
            case PCon(ty, name, _, arg):
                return self.describe_case(ty, name, parts[0] if arg else None)
            case PLit(_, value):
                return _literal(value)
            case _:
                raise TypeError(pattern)

    def describe_case(self, ty: t.Ty, name: str, arg: _Example | None) -> _Example:
        assert isinstance(ty, t.Con)
        declared = self.data.get(ty.name)
        if declared and declared.fields and arg:
            told = [f"{f} = {v.text}" for f, v in zip(declared.fields, arg.parts, strict=False) if v.text != "_"]
            rest = ["_"] if len(told) < len(declared.fields) else []
            return _Example(f"{{ {'; '.join([*told, *rest])} }}")
        name = name.rpartition(".")[2] if name != "::" else name
        if arg is None:
            return _Example(name)
        if name == "::":
            head, tail = arg.parts or (_ANY, _ANY)
            return _Example(f"{head.argument()} :: {tail.text}", loose=True)
        return _Example(f"{name} {arg.argument()}", loose=True)

    def cases(self, ty: t.Ty) -> Sequence[tuple[str, t.Ty | None]]:
        assert isinstance(ty, t.Con)
        return (LIST if ty.name == "list" else self.data[ty.name]).cases


# ---- rows ---------------------------------------------------------------------------------------------------------


def _bare(pattern: Pattern) -> Pattern:
    """A pattern without names: variables become wildcards."""
    while isinstance(pattern, PAs):
        pattern = pattern.pattern
    return _WILD if isinstance(pattern, PWild | PVar) else pattern


def _alternatives(row: _Row, column: int) -> Iterator[_Row]:
    """The rows that an or-pattern in a column stands for."""
    pattern = row.patterns[column]
    if not isinstance(pattern, POr):
        yield row
        return
    waiting: list[Pattern] = [pattern]
    while waiting:
        match waiting.pop():
            case POr(_, left, right):
                waiting += [_bare(right), _bare(left)]
            case other:
                yield _Row((*row.patterns[:column], other, *row.patterns[column + 1 :]), row.arm)


def _group(rows: list[_Row], column: int) -> tuple[dict[Hashable, tuple[list[_Row], int, Pattern]], list[_Row]]:
    """The rows that may match each head of the column, and the rows that match any head.

    In the former, the parts of the column's pattern come first; in the latter, the column is dropped."""
    groups: dict[Hashable, tuple[list[_Row], int, Pattern]] = {}
    others: list[_Row] = []
    for row in rows:
        pattern = row.patterns[column]
        rest = (*row.patterns[:column], *row.patterns[column + 1 :])
        if pattern is _WILD:
            others.append(_Row(rest, row.arm))
            for members, arity, _ in groups.values():
                members.append(_Row((_WILD,) * arity + rest, row.arm))
            continue
        head, parts = _open(pattern)
        if head not in groups:
            before = [_Row((_WILD,) * len(parts) + other.patterns, other.arm) for other in others]
            groups[head] = before, len(parts), pattern
        groups[head][0].append(_Row(parts + rest, row.arm))
    return groups, others


def _open(pattern: Pattern) -> tuple[Hashable, tuple[Pattern, ...]]:
    """The head of a pattern, which distinguishes it from others of its type, and its parts."""
    match pattern:
        case PCon(_, _, tag, arg):
            return tag, () if arg is None else (_bare(arg),)
        case PLit(_, value):
            return value, ()
        case PTuple(_, items):
            return (), tuple(map(_bare, items))
        case PArray(_, items):
            return len(items), tuple(map(_bare, items))
        case _:
            raise TypeError(pattern)


def _put(examples: Examples, column: int, example: _Example) -> Examples:
    return [*examples[:column], example, *examples[column:]]


# ---- examples -----------------------------------------------------------------------------------------------------


def _shape(arg: t.Ty) -> _Example:
    """Any argument of this type; a tuple shows its parts."""
    match arg:
        case t.Tup(items) if items:
            return _tuple([_ANY] * len(items))
        case _:
            return _ANY


def _tuple(parts: Examples) -> _Example:
    return _Example(f"({', '.join(p.text for p in parts)})", parts=tuple(parts))


def _literal(value: int | float | str | bool) -> _Example:
    match value:
        case bool():
            return _Example("true" if value else "false")
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
            return _Example(f'"{escaped}"')
        case _:
            return _Example(repr(value), loose=value < 0)


def _other_literal(ty: t.Ty, known: set) -> _Example | None:
    """A literal of this type that is not in `known`; None if there is none."""
    match ty:
        case t.Con("bool"):
            candidates: Iterator = iter((True, False))
        case t.Con("string"):
            candidates = itertools.chain([""], ("a" * n for n in itertools.count(1)))
        case t.Con(name) if name in t.INTS:
            bits = int(name[1:])
            low, high = (0, 2**bits) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
            candidates = itertools.chain(range(high), range(low, 0))
        case t.Con(name) if name in t.FLOATS:
            candidates = (float(n) for n in itertools.count())
        case _:  # the type of the number is a variable
            candidates = itertools.count()
    return next((_literal(value) for value in candidates if value not in known), None)
