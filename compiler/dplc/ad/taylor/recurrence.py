"""The Taylor series of a row of the table, from its derivative rule read as a differential equation.

    y = exp x     y' = x' y                           y[k + 1] = (sum of (j + 1) x[j + 1] y[k - j]) / (k + 1)
    y = sin x     y' = x' c,  c = cos x,  c' = -x' y  both in one loop, side by side
    y = a / b     y[m] = (a[m] - sum of b[j] y[m - j], j > 0) / b[0]

The rule is traced once, as shared terms.  Other rows that it mentions have rules too, which may lead back to each
other, as those of `sin` and `cos` do.  Each term is a sequence of coefficients; one loop over the order computes them
all.  A *rate* is a term that is linear in a derivative (x'), one order behind.  Comparisons only use values.

A rule that leads to new terms without end is a chain: x ** n needs x ** (n - 1), and so on.  The chain has as many
terms as orders; they are computed last first, each from the one before and to one order more.  It never divides by x,
so powers at zero have the derivatives of the rule.  Elsewhere x ** (n - 1) is y / x, without a chain.

Numbers here may be arrays, elementwise; a series has its coefficients along the first dimension, from number 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.node import entity
from dpl.prims import TABLE, contribution
from dpl.source import NOWHERE

from dplc.ad.rules import bulk
from dplc.ad.rules.world import World
from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, of_rank, rank_of

Times = Callable[[Builder, f.Atom, f.Atom], f.Atom]
Operands = Sequence[tuple[f.Atom, f.Atom | None]]  # each with its series (None: a constant)
Given = Callable[["Builder", str, "tuple[Term, ...]"], "Term"]


@entity
class Term:
    """A term of a rule.  `op` is a row, "constant", "given" (all of `series` is known) or "rate" (the derivative of the
    argument).  `first` is coefficient 0; for a rate, which has none before the loop, any value of its shape."""

    op: str
    first: f.Atom
    args: tuple[Term, ...] = ()
    series: f.Atom | None = None
    rate: bool = False

    @property
    def varied(self) -> bool:
        return self.op != "constant"


class Trace(World):
    """The world in which rules make terms.  In a chain, `link` is the next row; without a chain, the row's own result
    divided by its first operand replaces it (`quotient`)."""

    __slots__ = ("given", "known", "law", "link", "quotient", "row", "whole")

    def __init__(self, b: Builder, row: str, given: Given) -> None:
        super().__init__(b, NOWHERE)
        self.row = row
        self.given = given  # makes the term of a chain's row inside a rule
        self.link: Term | None = None
        self.quotient = False
        self.whole: Term | None = None
        self.known: dict[tuple, Term] = {}
        self.law: dict[Term, tuple[Term, bool]] = {}  # term -> its derivative, or a term with the same coefficients

    def apply(self, name: str, *args: Term) -> Term:  # pyrefly: ignore[bad-override]
        key = (name, *args)
        if name == "neg" and args[0].op == "neg":
            return args[0].args[0]
        if key not in self.known:
            self.known[key] = self.inner(name, args)
        return self.known[key]

    def inner(self, name: str, args: tuple[Term, ...]) -> Term:
        """A row that occurs in a rule."""
        if self.link is not None and name == self.row:
            return self.link
        if self.whole is not None and name == self.row:
            return self.apply("div", self.whole, args[0])
        if not flowing(name, args):
            return Term("constant", super().apply(name, *(a.first for a in args)))
        return self.given(self.b, name, args) if OPS[name].derivative.chain else self.term(name, args)

    def term(self, name: str, args: tuple[Term, ...]) -> Term:
        first = super().apply(name, *(a.first for a in args))
        rate = any(a.rate for a in args)
        made = Term(name, self.b.op("stop_grad", (first,)) if rate else first, args, rate=rate)
        self.known[(name, *args)] = made
        if self.quotient and self.whole is None:
            self.whole = made
        if not OPS[name].derivative.algebraic:
            total = self.total(made, lambda arg: Term("rate", arg.first, (arg,), rate=True))
            curved = any(not t.rate and t.varied for t in below(total))
            self.law[made] = (total, True) if curved else (self.total(made, lambda arg: arg), False)
        return made

    def total(self, term: Term, rate: Callable[[Term], Term]) -> Term:
        """The sum of the rule's contributions over the operands of a term."""
        parts = []
        for i in flowing(term.op, term.args):
            rule = (TABLE[term.op].linear or ())[i]
            assert rule is not None
            parts.append(contribution(self, rule, self.rate(term.args[i], rate), term.args, term))
        total = parts[0]
        for part in parts[1:]:
            total = self.apply("add", total, part)
        return total

    def rate(self, arg: Term, rate: Callable[[Term], Term]) -> Term:
        made = rate(arg)
        return self.known.setdefault((made.op, *made.args), made) if made is not arg else arg

    def literal(self, number: float, like: Term) -> Term:  # pyrefly: ignore[bad-override]
        return self.known.setdefault(
            ("literal", number, elem_of(like.first.ty)), Term("constant", super().literal(number, like.first))
        )

    def integer(self, value: int) -> Term:  # pyrefly: ignore[bad-override]
        return Term("constant", integer(value))


def flowing(name: str, args: tuple[Term, ...]) -> list[int]:
    """The operands through which a row depends on a varied value."""
    return [i for i, rule in enumerate(TABLE[name].linear or ()) if rule is not None and args[i].varied]


def below(term: Term) -> list[Term]:
    """The terms inside a rate, down to derivatives.  The arguments of the derivatives are left out."""
    found, todo = [], [term]
    while todo:
        term = todo.pop()
        found.append(term)
        if term.op != "rate" and term.rate:
            todo += term.args
    return found


# ---- the loop -------------------------------------------------------------------------------------------------------


class Step:
    """Step k of the loop: the coefficients k + 1 of values, and k of rates, where they are needed."""

    def __init__(self, trace: Trace, b: Builder, k: f.Var, arrays: dict[Term, f.Atom]) -> None:
        self.trace = trace
        self.b = b
        self.k = k
        self.after = b.op("add", (k, integer(1)))
        self.arrays = arrays
        self.done: dict[Term, f.Atom] = {}

    def now(self, term: Term) -> f.Atom:
        """The coefficient of this step."""
        if term not in self.done:
            made = bulk.lift(self.b, self.coefficient(term), term.first)
            self.done[term] = made
            if term in self.arrays and term.series is None:
                at = self.k if term.rate else self.after
                self.arrays[term] = self.b.op("update", (self.arrays[term], made, at), unchecked=True)
        return self.done[term]

    def coefficient(self, term: Term) -> f.Atom:
        b, args = self.b, term.args
        match term.op:
            case "constant":
                return f.Const(0.0, elem_of(term.first.ty))
            case "given":
                assert term.series is not None
                return b.op("index", (term.series, self.after), unchecked=True)
            case "rate":
                return b.op("mul", (self.now(args[0]), self.number(term)))
            case "add" | "sub" | "neg":
                return self.sum(term)
            case "select":
                return b.op("select", (args[0].first, self.now(args[1]), self.now(args[2])))
            case "mul" if args[0].varied and args[1].varied:
                factors = [self.history(a, term) for a in args]
                return convolution(b, factors[0], factors[1], self.last(term), multiply)
            case "mul":
                (varied,) = [a for a in args if a.varied]
                (fixed,) = [a for a in args if not a.varied]
                return b.op("mul", (self.now(varied), fixed.first))
            case "div":
                return self.quotient(term)
            case _:
                law, rate = self.trace.law[term]
                found = self.now(law)
                return b.op("div", (found, self.number(term))) if rate else found

    def number(self, term: Term) -> f.Atom:
        elem = elem_of(term.first.ty)
        assert isinstance(elem, f.Num)
        return self.b.op("cast", (self.after,), to=elem.name)

    def last(self, term: Term) -> f.Atom:
        return self.k if term.rate else self.after

    def sum(self, term: Term) -> f.Atom:
        parts = [a for a in term.args if a.varied]
        if len(parts) == 2:
            return self.b.op(term.op, tuple(map(self.now, parts)))
        found = self.now(parts[0])
        return (
            self.b.op("neg", (found,)) if term.op == "neg" or (term.op == "sub" and parts[0] is term.args[1]) else found
        )

    def history(self, term: Term, user: Term) -> f.Atom:
        """The coefficients that a product in `user` needs: all before its own, and its own."""
        if term.series is not None:
            return term.series
        if term.rate or not user.rate:
            self.now(term)
        return self.arrays[term]

    def quotient(self, term: Term) -> f.Atom:
        b, (over, under) = self.b, term.args
        rest = self.now(over)
        if under.varied:
            rest = bulk.lift(b, rest, term.first)
            history = self.history(under, term), self.arrays[term]
            rest = products(b, rest, self.last(term), "sub", *history, multiply)
        return b.op("div", (rest, under.first))


def multiply(b: Builder, x: f.Atom, y: f.Atom) -> f.Atom:
    return b.op("mul", (x, y))


def convolution(b: Builder, xs: f.Atom, ys: f.Atom, m: f.Atom, times: Times) -> f.Atom:
    """The sum of xs[j] ys[m - j] for j from 0 to m."""
    first = times(b, b.op("index", (xs, integer(0)), unchecked=True), b.op("index", (ys, m), unchecked=True))
    return products(b, first, m, "add", xs, ys, times)


def products(b: Builder, start: f.Atom, m: f.Atom, plus: str, xs: f.Atom, ys: f.Atom, times: Times) -> f.Atom:
    """`start`, plus or minus all xs[j] ys[m - j] for j from 1 to m."""
    index, total, inner = b.var("j", f.I64), b.var("s", start.ty), b.inner()
    j = inner.op("add", (index, integer(1)))
    x = inner.op("index", (xs, j), unchecked=True)
    y = inner.op("index", (ys, inner.op("sub", (m, j))), unchecked=True)
    body = inner.block(inner.op(plus, (total, times(inner, x, y))))
    return b.bind(f.For(index, m, (total,), (start,), body), (start.ty,))[0]


def coefficients(trace: Trace, of: Term, count: f.Atom) -> f.Atom:
    """The series of a term, up to coefficient `count`."""
    b = trace.b
    kept = [of, *(term for term in remembered(trace, of) if term is not of)]
    starts = [b.op("fill", (count if t.rate else b.op("add", (count, integer(1))), shape(b, t))) for t in kept]
    k, inner = b.var("k", f.I64), b.inner()
    state = [b.var("s", start.ty) for start in starts]
    step = Step(trace, inner, k, dict(zip(kept, state, strict=True)))
    for term in kept:
        step.now(term)
    body = inner.block(*(step.arrays[term] for term in kept))
    return b.bind(f.For(k, count, tuple(state), tuple(starts), body), [s.ty for s in state])[0]


def remembered(trace: Trace, of: Term) -> list[Term]:
    """The terms whose coefficients are needed after their step."""
    found: dict[Term, None] = {}
    seen, todo = set[Term](), [of]
    while todo:
        term = todo.pop()
        if term in seen:
            continue
        seen.add(term)
        todo += term.args
        if term in trace.law:
            todo.append(trace.law[term][0])
        if term.op == "mul" and all(a.varied for a in term.args):
            found |= dict.fromkeys(term.args)
        elif term.op == "div" and term.args[1].varied:
            found |= dict.fromkeys((term.args[1], term))
    return [term for term in found if term.series is None]


def shape(b: Builder, term: Term) -> f.Atom:
    """The initial fill of a series: coefficient 0, or for a rate any number without a derivative."""
    if not term.rate:
        return term.first
    return b.op("stop_grad", (term.first,)) if rank_of(term.first.ty) else f.Const(0.0, term.first.ty)


# ---- rows -----------------------------------------------------------------------------------------------------------


def series(b: Builder, row: str, args: Operands, order: f.Atom, given: Given) -> f.Atom:
    """The series of a row from coefficient 0, given its operands with their series (None: a constant)."""

    def terms() -> list[Term]:
        return [Term("constant", x) if xs is None else Term("given", x, series=xs) for x, xs in args]

    if OPS[row].derivative.chain is None:
        trace = Trace(b, row, given)
        return coefficients(trace, trace.term(row, tuple(terms())), order)
    depth = links(b, row, args, order)
    if row == "polygamma":
        return chain(b, row, args, order, depth, given, terms)
    direct, other = b.inner(), b.inner()
    trace = Trace(direct, row, given)
    trace.quotient = True
    there = direct.block(coefficients(trace, trace.term(row, tuple(terms())), order))
    chained = other.block(chain(other, row, args, order, depth, given, terms))
    long = b.op("and", (b.op("ge", (depth, order)), divisible(b, row, [x for x, _ in args])))
    return b.choose(long, there, chained)[0]


def divisible(b: Builder, row: str, args: Sequence[f.Atom]) -> f.Atom:
    """True where y / x may replace x ** (n - 1): x is not zero, and y is neither too small nor too large to be
    exact."""
    x, y = args[0], b.op(row, args)
    zero, small = f.Const(0.0, elem_of(x.ty)), f.Const(1e-30, elem_of(x.ty))
    fine = b.op("and", (b.op("gt", (b.op("abs", (y,)), small)), b.op("eq", (b.op("sub", (y, y)), zero))))
    fine = b.op("and", (fine, b.op("ne", (x, zero))))
    if not rank_of(fine.ty):
        return fine
    return b.op("eq", (b.op("sum_to", (b.op("cast", (b.op("not", (fine,)),), to="i64"),), rank=0), integer(0)))


def chain(
    b: Builder, row: str, args: Operands, order: f.Atom, depth: f.Atom, given: Given, terms: Callable[[], list[Term]]
) -> f.Atom:
    """The series of a row, from the series of the rows in its chain."""
    place, step = changing(row)
    value = b.op(row, tuple(x for x, _ in args))
    nothing = b.op("acc_zeros", (f.Const(None, of_rank(value.ty, 1)), b.op("sub", (order, depth)), *b.dims(value)))
    index, link, inner = b.var("i", f.I64), b.var("s", nothing.ty), b.inner()
    number = inner.op("sub", (depth, index))
    trace = Trace(inner, row, given)
    operands = terms()
    start = operands[place]
    operands[place] = moved(inner, start, inner.op("add", (number, integer(1))), step)
    trace.link = Term("given", inner.op(row, tuple(x.first for x in operands)), series=link)
    operands[place] = moved(inner, start, number, step)
    found = coefficients(trace, trace.term(row, tuple(operands)), inner.op("sub", (order, number)))
    loop = f.For(index, b.op("add", (depth, integer(1))), (link,), (nothing,), inner.block(found))
    return b.bind(loop, (nothing.ty,))[0]


def changing(row: str) -> tuple[int, int]:
    """The operand that changes along a chain, and its step."""
    chain = OPS[row].derivative.chain
    assert chain is not None
    return chain


def links(b: Builder, row: str, args: Operands, order: f.Atom) -> f.Atom:
    """The length of a chain: `order`, or the exponent of a power if that is a smaller natural number."""
    start, xs = args[changing(row)[0]]
    if row == "polygamma" or xs is not None or rank_of(start.ty):
        return order
    whole = b.op("cast", (start,), to="i64") if f.is_float(start.ty) else start
    exact = b.op("eq", (like(b, whole, start), start))
    short = b.op("and", (b.op("ge", (whole, integer(0))), b.op("lt", (whole, order))))
    return b.op("select", (b.op("and", (exact, short)), whole, order))


def moved(b: Builder, operand: Term, number: f.Atom, step: int) -> Term:
    """The operand of link `number` in a chain."""
    start = operand.first
    away = b.op("mul", (like(b, number, start), literal(step, start)))
    first = b.op("add", (start, away))
    if operand.series is None:
        return Term("constant", first)
    return Term("given", first, series=b.op("update", (operand.series, first, integer(0)), unchecked=True))


def like(b: Builder, number: f.Atom, other: f.Atom) -> f.Atom:
    """An integer converted to the scalar type of `other`."""
    to = elem_of(other.ty)
    assert isinstance(to, f.Num)
    return number if number.ty == to else b.op("cast", (number,), to=to.name)


def literal(number: int, like: f.Atom) -> f.Const:
    ty = elem_of(like.ty)
    return f.Const(float(number) if f.is_float(ty) else number, ty)
