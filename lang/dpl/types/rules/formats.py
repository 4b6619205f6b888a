"""Checks the formats of interpolated strings: their syntax, and whether they suit the type of the value.

fun x -> $"{x:.2f}"   ->   Formatted('a, ".2f"), decided where 'a is known
"""

from __future__ import annotations

from dpl.core import formats, ty
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.solve.constraints import Constraint
from dpl.types.solve.meta import Meta, Type, prune
from dpl.types.solve.unify import Clash, Solver
from dpl.types.state.context import Context


def place(e: tree.Interp, value: tree.Expr, form: str) -> Span:
    """The span of an expression's format."""
    start = e.span.source.text.find(form, value.span.end)
    return Span(e.span.source, start, start + len(form)) if start >= 0 else value.span


def check(cx: Context, form: str, t: Type, at: Span) -> None:
    """Checks the syntax of a format and constrains `t` to suit it.  Raises an error if the format cannot be read."""
    try:
        formats.read(form)
    except formats.Unreadable as problem:
        helps = (
            f"a format is  {formats.GRAMMAR}",
            "letters: e f g % for floats (E F G too), d b o x X for integers, s for text",
        )
        raise cx.fail("E0220", f"`{form}` is no format: {problem}", at, helps=helps) from None
    cx.constrain(Formatted((t,), at, form))


class Formatted(Constraint):
    """The format `extra` suits values of type t; `types` are t and the unknowns that decide it."""

    __slots__ = ()
    name = "format"

    def solve(self, s: Solver, emit) -> bool:
        whole, *known = self.types
        form = formats.read(self.extra)
        kinds, unknown = known_parts(s, whole)
        if not unknown or decided(form, whole, kinds):
            self.must_suit(form, kinds)
            return True
        if unknown == known:
            return False
        emit(Formatted((whole, *unknown), self.span, self.extra))
        return True

    def default(self, s: Solver, emit) -> None:
        """Takes numbers of unknown type as ints.  If no numbers are known, any format is accepted."""
        kinds, unknown = known_parts(s, self.types[0])
        if any(meta.classes & {"num", "integer"} for meta in unknown):
            kinds |= {formats.INT}
        if kinds:
            self.must_suit(formats.read(self.extra), kinds)

    def must_suit(self, form: formats.Format, kinds: frozenset[str]) -> None:
        if not formats.suits(form, kinds, is_number(self.types[0])):
            raise Clash("format", self.types[0], kinds)


def known_parts(s: Solver, t: Type) -> tuple[frozenset[str], list[Meta]]:
    """The kinds of numbers in values of a type, and the unknowns that may hold others."""
    kinds, found = formats.scan(t, s.datas, prune)
    unknown = [meta for meta in found if isinstance(meta, Meta)]
    others = [meta for meta in unknown if "real" not in meta.classes]
    return kinds | ({formats.FLOAT} if len(others) < len(unknown) else set()), others


def decided(form: formats.Format, whole: Type, kinds: frozenset[str]) -> bool:
    """True if the remaining unknowns make no difference."""
    if form.letter == "s":
        return is_number(whole) or type(prune(whole)) is not Meta
    return bool(formats.numbers(form, kinds))


def is_number(t: Type) -> bool:
    t = prune(t)
    return bool(t.classes & {"num", "real"}) if type(t) is Meta else type(t) is ty.Con and bool(formats.kind_of(t.name))
