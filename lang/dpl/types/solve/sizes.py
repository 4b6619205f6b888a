"""Sizes: polynomials in normal form, and the solver of equations between them.

n + 2 = !3 + 1   ->   !3 := n + 1
?1 = 4           ->   assumed: to be checked when the program runs
n = n + n        ->   refuted
"""

from __future__ import annotations

from enum import Enum
from math import gcd

from dpl.core.ty import Size, as_terms, from_terms, multiply, substitute
from dpl.source import NOWHERE, Span

ONE = Size(1)


def name(text: str) -> Size:
    """The size that is one variable."""
    return Size(0, (((text,), 1),))


def add(a: Size, b: Size, factor: int = 1) -> Size:
    """`a + factor * b`, in normal form."""
    total = as_terms(a)
    for key, value in as_terms(b).items():
        total[key] = total.get(key, 0) + factor * value
    return from_terms(total)


def sub(a: Size, b: Size) -> Size:
    """`a - b`, in normal form."""
    return add(a, b, -1)


def mul(a: Size, b: Size) -> Size:
    """`a * b`, in normal form."""
    return from_terms(multiply(as_terms(a), as_terms(b)))


def names(size: Size) -> list[str]:
    """In an order that does not depend on the run, as unknowns are numbered by it."""
    return list(dict.fromkeys(n for key, _ in size.terms for n in key))


class Verdict(Enum):
    EQUAL = 1
    ASSUMED = 2  # a `?` occurs
    UNDECIDED = 3  # not linear in the unknowns
    DIFFERENT = 4


class Sizes:
    """The equations solved so far: `links` of unknown sizes, and the `levels` of names for generalisation.

    Messages need the origin of a size.  For a written size, `origins` holds it by identity; for an unknown, `places`
    holds the place that solved or created it."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix  # keeps the names of different modules apart
        self.links: dict[str, Size] = {}
        self.levels: dict[str, int] = {}
        self.count = 0
        self.place = NOWHERE  # the place being checked
        self.places: dict[str, Span] = {}
        self.origins: dict[int, tuple[Size, Span]] = {}

    def written(self, size: Size, span: Span) -> Size:
        """Records that `size` is written at `span`.  Sizes with unknowns to infer are not recorded."""
        if not any(n[0] == "!" for n in names(size)):
            self.origins[id(size)] = (size, span)
        return size

    def origin(self, size: Size) -> Span | None:
        """The place that a size comes from, if known."""
        place = None
        while id(size) not in self.origins:
            match size:
                case Size(0, (((unknown,), 1),)) if unknown in self.places:
                    place = self.places[unknown]
                    size = self.links.get(unknown, Size())
                case _:
                    return place
        return self.origins[id(size)][1]

    def fresh(self, level: int) -> Size:
        """An unknown size, which inference will find."""
        return self._new("!", level)

    def unknown(self, level: int) -> Size:
        """A size that is known only at run time."""
        return self._new("?", level)

    def _new(self, mark: str, level: int) -> Size:
        self.count += 1
        text = f"{mark}{self.prefix}{self.count}"
        self.levels[text] = level
        if mark == "?":
            self.places[text] = self.place
        return name(text)

    def norm(self, size: Size) -> Size:
        """`size` with all solved unknowns replaced.

        A mere alias yields the identical object, so that its origin is found."""
        while size.terms:
            match size:
                case Size(0, (((unknown,), 1),)) if unknown in self.links:
                    size = self.links[unknown]
                    continue
                case _:
                    pass
            known = {n: self.links[n] for n in names(size) if n in self.links}
            if not known:
                break
            size = substitute(size, known)
        return size

    def unify(self, a: Size, b: Size) -> Verdict:
        """Makes two sizes equal by linking an unknown, if one follows, and says how far they are equal."""
        a, b = self.norm(a), self.norm(b)
        difference = sub(a, b)
        if not difference.terms:
            return Verdict.DIFFERENT if difference.const else Verdict.EQUAL
        if (
            len(difference.terms) == 1
            and not difference.const
            and a.terms
            and b.terms
            and not any(n[0] == "?" for n in names(difference))
        ):
            return Verdict.DIFFERENT  # n = n + n, except for n = 0
        if difference.const % gcd(*(factor for _, factor in difference.terms)):
            return Verdict.DIFFERENT  # 4 * ?1 = 6
        verdict = self._named(a, b) or self._named(b, a) or self._solve(difference)
        if verdict is not None:
            return verdict
        free = {n[0] for n in names(difference)}
        if "?" in free:
            return Verdict.ASSUMED
        return Verdict.UNDECIDED if "!" in free else Verdict.DIFFERENT

    def _named(self, a: Size, b: Size) -> Verdict | None:
        """Solves `a = b` if `a` is a lone unknown.  It is linked to the very object `b`, which keeps its origin."""
        match a, b:
            case Size(0, (((unknown,), 1),)), Size(const, terms) if unknown[0] == "!" and unknown not in names(b):
                if any(n[0] == "!" for n in names(b)):  # levels decide which of them is linked
                    return None
                if not terms and const < 0:
                    return Verdict.DIFFERENT
                self.link(unknown, b)
                return Verdict.EQUAL
            case _:
                return None

    def _solve(self, difference: Size) -> Verdict | None:
        """Solves `difference = 0` for an unknown that it determines, the innermost first."""
        occurrences: dict[str, int] = {}
        for key, _ in difference.terms:
            for n in set(key):
                occurrences[n] = occurrences.get(n, 0) + 1
        flexible = [
            (key[0], factor)
            for key, factor in difference.terms
            if len(key) == 1 and key[0][0] == "!" and occurrences[key[0]] == 1
        ]
        flexible.sort(key=lambda item: (-self.levels[item[0]], item[0]))
        for unknown, factor in flexible:
            rest = sub(difference, from_terms({(unknown,): factor}))
            if all(value % factor == 0 for value in as_terms(rest).values()):
                solution = from_terms({key: -value // factor for key, value in as_terms(rest).items()})
                if not solution.terms and solution.const < 0:
                    return Verdict.DIFFERENT
                self.link(unknown, solution)
                return Verdict.EQUAL
        if len(difference.terms) == 1 and flexible:
            return Verdict.DIFFERENT  # 2 * !1 = 3
        return None

    def link(self, unknown: str, solution: Size) -> None:
        """Notes what an unknown size is."""
        self.links[unknown] = solution
        self.places[unknown] = self.place
        self.lower(solution, self.levels[unknown])

    def lower(self, size: Size, level: int) -> None:
        """Moves the unknowns and the names in `size` to `level`, or further out.

        A local function is not generalised over a size of its annotations that something outside of it has."""
        for n in names(self.norm(size)):
            if n[0] != "?" and self.levels.get(n, -1) > level:
                self.levels[n] = level
