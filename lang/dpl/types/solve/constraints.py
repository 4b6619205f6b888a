"""Constraints between types that equations cannot express: lifting, powers, products, appending, conversion.

A constraint is solved as soon as enough is known; `solve` returns True when it is.  Constraints still open at
generalisation go into the scheme.  Where nothing more can be learnt, `default` decides them.

    Lift(float, float[3], !1)   ->   !1 := float[3]
    Lift(!1, float[4], !2)      ->   !2 := float[4], Fits(!1, float[4])
    Lift(2.0 : !1, !2, !3)      ->   !3 := !2, Elem(!2, !1)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from dpl.core import ty
from dpl.source import Span
from dpl.types.solve.meta import Meta, Type, array, dimensions, is_scalar, prune
from dpl.types.solve.sizes import add
from dpl.types.solve.unify import Clash, Solver

NUMERIC = frozenset(("num", "real", "integer"))


class Constraint(ABC):
    """A relation between `types` (or effects).  `extra` is a class or the name of a target type.

    `span` is the place that requires the relation; `operands` are the places of the first types."""

    __slots__ = ("done", "extra", "operands", "span", "types")
    name = ""

    def __init__(self, types: tuple[Any, ...], span: Span, extra: str = "", operands: tuple[Span, ...] = ()) -> None:
        self.types, self.span, self.extra, self.operands = types, span, extra, operands
        self.done = False

    def __reduce__(self) -> tuple:
        return type(self), (self.types, self.span, self.extra)

    def mapped(self, change: Callable, span: Span | None = None, operands: tuple[Span, ...] = ()) -> Constraint:
        """The constraint between other types, as an instance of a scheme has it."""
        return type(self)(tuple(change(t) for t in self.types), span or self.span, self.extra, operands)

    @abstractmethod
    def solve(self, s: Solver, emit: Callable[[Constraint], None]) -> bool:
        """Learns what it can and returns True if the constraint is decided; `emit` adds constraints.

        May raise Clash."""

    def concerns(self, s: Solver, meta: Meta) -> bool:
        """False if what became known of `meta` decides nothing here."""
        return True

    def default(self, s: Solver, emit: Callable[[Constraint], None]) -> None:
        """Decides the constraint when nothing more will be known.  Raises Clash if it is ambiguous."""
        raise Clash("ambiguous", self, None)

    @property
    def eager(self) -> bool:
        """True if generalisation decides the constraint even when its unknowns are quantified."""
        return False


class Elem(Constraint):
    """`t s`: s is the scalar type inside t, at any depth."""

    __slots__ = ()
    name = "elem"

    def solve(self, s, emit) -> bool:
        _, inner = dimensions(self.types[0])
        scalar = prune(self.types[1])
        if type(inner) is Meta and "scalar" not in inner.classes and inner is not scalar:
            if type(scalar) is Meta:
                for cls in scalar.classes - {"scalar"}:
                    s.require(inner, cls)
            else:
                for cls in inner.classes & {"num", "real", "integer"}:
                    s.require(scalar, cls)
            for other in inner.watchers:  # two constraints on one unknown have the same scalar
                if type(other) is Elem and other is not self and not other.done:
                    s.unify(other.types[1], self.types[1])
                    return True
            return False
        s.unify(inner, self.types[1])
        return True

    def default(self, s, emit) -> None:
        s.unify(dimensions(self.types[0])[1], self.types[1])


class Fits(Constraint):
    """`part whole`: part is whole, or one of its rows, or a row of these, down to its scalar."""

    __slots__ = ()
    name = "fits"

    def solve(self, s, emit) -> bool:
        part, whole = (prune(t) for t in self.types)
        if is_row(part, whole):
            return True
        if is_scalar(part):
            emit(Elem((whole, part), self.span, operands=self.operands[::-1]))
            return True
        if is_scalar(whole):
            s.unify(part, whole)
            return True
        sizes, inner = dimensions(whole)
        part_sizes, part_inner = dimensions(part)
        if not part_sizes and type(part_inner) is Meta:
            return False
        if is_scalar(inner) and (is_scalar(part_inner) or len(part_sizes) >= len(sizes)):
            return self._trailing(s, part, part_sizes, sizes, inner)
        return False

    def _trailing(self, s, part, part_sizes, sizes, inner) -> bool:
        if len(part_sizes) > len(sizes):
            raise Clash("rank", part, self.types[1])
        s.unify(part, array(sizes[len(sizes) - len(part_sizes) :], inner))
        return True

    def default(self, s, emit) -> None:
        sizes, inner = dimensions(self.types[1])
        part_sizes, _ = dimensions(self.types[0])
        if len(part_sizes) > len(sizes) and type(inner) is Meta:
            return s.unify(self.types[1], self.types[0])
        self._trailing(s, self.types[0], part_sizes or sizes, sizes, inner)


def is_row(part: Type, whole: Type) -> bool:
    """True if both are one type, or `part` is a row of `whole`, or a row of its rows."""
    while part is not whole:
        if type(whole) is not ty.Arr:
            return False
        whole = prune(whole.elem)
    return True


class Lift(Constraint):
    """`a b ... result`: elementwise; operands are repeated over the leading dimensions of the one of highest rank.

    Beside an array, an unknown operand is taken to be of no higher rank.  A `held` constraint does not assume this: it
    belongs to a function that has not yet received all its arguments.  An operand known to be a scalar, `scalar`, is
    the scalar type of the others (`scaled`).  From then on most news of one operand is no news for the rest: `open`
    are those that may be arrays."""

    __slots__ = ("held", "open", "scalar", "scaled")
    name = "lift"

    def __init__(self, types: tuple[Any, ...], span: Span, extra: str = "", operands: tuple[Span, ...] = ()) -> None:
        super().__init__(types, span, extra, operands)
        self.held = not operands
        self.scalar: Type | None = None
        self.scaled: dict[int, Type] = {}  # operands whose scalar type has been told, by identity
        self.open: dict[int, Type] = {}  # operands of unknown type, by identity

    def solve(self, s, emit) -> bool:
        *operands, result = (prune(t) for t in self.types)
        operands = distinct(operands)
        if is_scalar(result) and not all(is_scalar(t) for t in operands):
            for t in operands:
                s.unify(t, result)
            return True
        scalar = next((t for t in operands if is_scalar(t)), None)
        rest = [t for t in operands if not is_scalar(t)]
        tops = self._highest(s, emit, rest)
        if len(tops) < 2:
            self._is(s, result, tops[0] if tops else operands[-1])
        if scalar is not None:
            self.scalar, self.scaled[id(scalar)] = scalar, scalar
            self.open = {id(t): t for t in tops if type(t) is Meta}
            for other in operands:
                if id(other) not in self.scaled:
                    self.scaled[id(other)] = other
                    emit(Elem((other, scalar), self.span, operands=self._places(other, scalar)))
        if len(tops) < 2 or self._with_result(s, emit, tops, result) or self._taken(s, emit, tops, result):
            return True
        self._share(s, (*tops, result))
        return False

    def concerns(self, s, meta) -> bool:
        """That one of more than two operands is a scalar only leaves the others: Elem compares it with `scalar`, from
        which Elem also tells them their classes."""
        key = id(meta)
        if self.scalar is None or key not in self.open:
            return key not in self.scaled or not is_scalar(meta)
        if is_scalar(meta):
            del self.open[key]
            return len(self.open) < 2
        known = prune(self.scalar)
        if meta.link is not None or type(known) is not Meta or not meta.classes & NUMERIC <= known.classes:
            return True
        self._share(s, (meta, self.types[-1]))
        return False

    def _share(self, s, types) -> None:
        """Requires every operand to be in the numeric classes of the others."""
        inner = [t for t in (dimensions(t)[1] for t in types) if type(t) is Meta]
        classes = frozenset[str]().union(*(t.classes for t in inner)) & NUMERIC
        for t in inner:
            for cls in classes - t.classes:
                s.require(t, cls)

    def _places(self, *types) -> tuple[Span, ...]:
        """The places of these operands, or () if they are not all known."""
        known = [(prune(t), place) for t, place in zip(self.types, self.operands)]
        found = [place for t in types for u, place in known if u is t]
        return tuple(found) if len(found) == len(types) else ()

    def _highest(self, s, emit, operands: list) -> list:
        """The operands that may have the highest rank; each of the others fits one of them."""
        tops: list = []
        arrays: list[int] = []  # the places of arrays among them: nothing is known about the rank of an unknown
        for t in operands:
            for k in arrays if type(t) is ty.Arr else ():
                high = self._higher(s, emit, tops[k], t)
                if high is not None:
                    tops[k] = high
                    break
            else:
                if type(t) is ty.Arr:
                    arrays.append(len(tops))
                tops.append(t)
        return tops if len(tops) in (1, len(operands)) else self._highest(s, emit, tops)

    def _higher(self, s, emit, a, b) -> Any:
        """The array of higher rank, with the other made to fit it; None if the ranks are not known."""
        (sizes_a, inner_a), (sizes_b, inner_b) = dimensions(a), dimensions(b)
        if len(sizes_a) == len(sizes_b) and inner_a is inner_b:
            s.unify(a, b)
            return a
        known_a, known_b = is_scalar(inner_a), is_scalar(inner_b)
        if (known_a and (known_b or len(sizes_b) > len(sizes_a))) or (known_b and len(sizes_a) > len(sizes_b)):
            high, low = (a, b) if len(sizes_a) >= len(sizes_b) else (b, a)
            emit(Fits((low, high), self.span, operands=self._places(low, high)))
            return high
        return None

    def _with_result(self, s, emit, tops: list, result) -> bool:
        """Decides the constraint if one operand must be the result, by identity or by its rank."""
        whole = result if result in tops else None
        sizes, inner = dimensions(result)
        if whole is None and sizes:
            low = [t for t in tops if is_scalar(dimensions(t)[1]) and len(dimensions(t)[0]) < len(sizes)]
            same = [t for t in tops if is_scalar(dimensions(t)[1]) and len(dimensions(t)[0]) == len(sizes)]
            if same and is_scalar(inner):
                whole = same[0]
            elif len(low) == len(tops) - 1:
                (whole,) = [t for t in tops if t not in low]
        if whole is None:
            return False
        self._is(s, result, whole)
        return self._fitting(emit, tops, whole)

    def _taken(self, s, emit, tops: list, result) -> bool:
        """Decides the constraint beside a single array: unknown operands are taken to be of no higher rank."""
        arrays = [t for t in tops if type(t) is ty.Arr]
        if len(arrays) != 1:
            return False
        (this,) = arrays
        sizes, inner = dimensions(this)
        if self.held:
            for t in tops:
                if is_scalar(inner) and t is not this:
                    emit(Elem((t, inner), self.span))
            return False
        products = [t for t in tops if is_product(t)]  # a product has at least one dimension, and its rank is not free
        if products:
            if len(tops) > 2 or len(sizes) > 1 or not is_scalar(inner):
                return False
            (this,) = products
        self._is(s, result, this)
        return self._fitting(emit, tops, this)

    def _is(self, s, result, operand) -> None:
        known = len(s.assumed)
        s.unify(result, operand)
        s.claimed += s.assumed[known:]

    def _fitting(self, emit, tops: list, whole) -> bool:
        for t in tops:
            if t is not whole:
                emit(Fits((t, whole), self.span, operands=self._places(t, whole)))
        return True

    def default(self, s, emit) -> None:
        """Operands that stay unknown get one common type, or fit the array beside them."""
        self.held = False
        if self.solve(s, emit):
            return
        *operands, result = self.types
        high = max(operands, key=lambda t: len(dimensions(t)[0]))
        for t in operands:
            if len(dimensions(t)[0]) in (0, len(dimensions(high)[0])):
                s.unify(t, high)
            else:
                Fits((t, high), self.span).default(s, emit)
        s.unify(result, high)


def distinct(types: list) -> list:
    return list({id(t): t for t in types}.values())


class Pow(Constraint):
    """`base exponent result`: the exponent is an int, or has the type of the base."""

    __slots__ = ()
    name = "pow"

    def solve(self, s, emit) -> bool:
        base, exponent, result = (prune(t) for t in self.types)
        s.require(base, "num")
        if exponent == ty.I64:
            s.unify(result, base)
            return True
        _, inner = dimensions(exponent)
        if type(inner) is Meta and "real" not in inner.classes and inner is not dimensions(base)[1]:
            return False
        emit(Lift(self.types, self.span, operands=self.operands))
        return True

    def default(self, s, emit) -> None:
        if is_scalar(self.types[1]):
            s.unify(self.types[1], ty.I64)
            s.unify(self.types[2], self.types[0])
        else:
            Lift(self.types, self.span).default(s, emit)

    @property
    def eager(self) -> bool:
        return is_scalar(self.types[1])


class Matmul(Constraint):
    """`a b result`: the product of two matrices, or of a matrix and a vector."""

    __slots__ = ()
    name = "matmul"

    def _rank(self, s, t) -> int | None:
        sizes, inner = dimensions(t)
        if len(sizes) == 2 and type(inner) is Meta:
            s.require(inner, "scalar")
        if type(inner) is Meta and "scalar" not in inner.classes:
            return None
        if len(sizes) not in (1, 2):
            raise Clash("product", self.types[0], self.types[1])
        return len(sizes)

    def solve(self, s, emit) -> bool:
        a, b, result = self.types
        rank_a, rank_b = self._rank(s, a), self._rank(s, b)
        if rank_a is None or rank_b is None:
            self._chain(s, a, b)
            return False
        if rank_a == rank_b == 1:
            raise Clash("dot", a, b)
        (sizes_a, inner_a), (sizes_b, inner_b) = dimensions(a), dimensions(b)
        s.require(inner_a, "num")
        s.unify(inner_a, inner_b)
        self._inner(s, sizes_a[-1], sizes_b[0])
        s.unify(result, array(sizes_a[:-1] + sizes_b[1:], inner_a))
        return True

    def _inner(self, s, last: ty.Size, first: ty.Size) -> None:
        try:
            s.unify_size(last, first)
        except Clash as clash:
            raise Clash("inner", self.types[:2], (clash.left, clash.right), *clash.places) from clash

    def _chain(self, s, a, b) -> None:
        """Uses `x @ v @ w` with x of unknown rank: the columns of v are the rows of w in any case."""
        a, rows = prune(a), dimensions(b)[0]
        for w in a.watchers if type(a) is Meta else ():
            if type(w) is Matmul and not w.done and prune(w.types[2]) is a:
                columns = dimensions(w.types[1])[0]
                if len(columns) == 2 and rows:
                    self._inner(s, columns[1], rows[0])


def is_product(t: Type) -> bool:
    """True if an unknown is the result of a matrix product whose ranks are not known yet."""
    return type(t) is Meta and any(type(w) is Matmul and not w.done and prune(w.types[2]) is t for w in t.watchers)


class Append(Constraint):
    """`a b result`: a and b are appended; all are strings, lists or arrays."""

    __slots__ = ()
    name = "append"

    def solve(self, s, emit) -> bool:
        a, b, result = known = [prune(t) for t in self.types]
        if any(type(t) is ty.Arr or (type(t) is Meta and "num" in t.classes) for t in known):
            elem, n, m = s.fresh(), s.size(), s.size()
            s.unify(a, ty.Arr(elem, n))
            s.unify(b, ty.Arr(elem, m))
            s.unify(result, ty.Arr(elem, add(s.sizes.norm(n), s.sizes.norm(m))))
            return True
        heads = [t for t in known if type(t) is not Meta]
        if not heads:
            return False
        if not (type(heads[0]) is ty.Con and heads[0].name in ("string", "list")):
            raise Clash("append", a, b)
        s.unify(b, a)
        s.unify(result, a)
        return True


class Within(Constraint):
    """`effect context`: the effect occurs in a context that must allow it."""

    __slots__ = ()
    name = "within"

    def solve(self, s, emit) -> bool:
        s.perform(*self.types)
        return True


class Convert(Constraint):
    """`a result`: elementwise conversion of numbers to the type named by `extra`."""

    __slots__ = ()
    name = "convert"

    def solve(self, s, emit) -> bool:
        source, result = (prune(t) for t in self.types)
        sizes, inner = dimensions(source)
        if type(inner) is Meta and "scalar" not in inner.classes:
            if not is_scalar(result) or sizes:
                return False
            s.require(inner, "num")
            s.require(inner, "scalar")
        elif inner != ty.BOOL:
            s.require(inner, "num")
        s.unify(result, array(sizes, ty.Con(self.extra)))
        return True

    def default(self, s, emit) -> None:
        sizes, inner = dimensions(self.types[0])
        s.require(inner, "num")
        s.require(inner, "scalar")
        s.unify(self.types[1], array(sizes, ty.Con(self.extra)))

    @property
    def eager(self) -> bool:
        return True


KINDS = {c.name: c for c in (Lift, Pow, Matmul, Append, Convert)}
