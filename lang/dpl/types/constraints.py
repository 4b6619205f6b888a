"""Relations between types that equations cannot say: lifting, powers, products, appending, conversion.

Each is solved as soon as it is decided.  `solve` answers whether it is; what is still open at generalisation goes into
the scheme, or is decided by `default` where nothing more can be learnt.

    Lift(float, float[3], !1)   ->   !1 := float[3]
    Lift(!1, float[4], !2)      ->   !2 := float[4], Fits(!1, float[4])
    Lift(2.0 : !1, !2, !3)      ->   !3 := !2, Elem(!2, !1)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from dpl.core import ty
from dpl.source import Span
from dpl.types.meta import Meta, Type, array, dimensions, is_scalar, prune
from dpl.types.sizes import add
from dpl.types.unify import Clash, Solver


class Constraint(ABC):
    """`types` are what is related; `extra` a class or a target type's name; `span` the place that asks for it, and
    `operands` those of the first types there."""

    __slots__ = ("done", "extra", "operands", "span", "types")
    name = ""

    def __init__(self, types: tuple[Type, ...], span: Span, extra: str = "", operands: tuple[Span, ...] = ()) -> None:
        self.types, self.span, self.extra, self.operands = types, span, extra, operands
        self.done = False

    def __reduce__(self) -> tuple:
        return type(self), (self.types, self.span, self.extra)

    def mapped(self, change: Callable, span: Span | None = None, operands: tuple[Span, ...] = ()) -> Constraint:
        return type(self)(tuple(change(t) for t in self.types), span or self.span, self.extra, operands)

    @abstractmethod
    def solve(self, s: Solver, emit: Callable[[Constraint], None]) -> bool:
        """Whether it is decided now."""

    def default(self, s: Solver, emit: Callable[[Constraint], None]) -> None:
        """Decide, as nothing more will be known."""
        raise Clash("ambiguous", self, None)

    @property
    def eager(self) -> bool:
        """Whether generalisation decides it even if its unknowns are quantified."""
        return False


class Elem(Constraint):
    """`t s`: s is the scalar in t, however deep."""

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
            for other in inner.watchers:  # two statements about one unknown say the same
                if type(other) is Elem and other is not self and not other.done:
                    s.unify(other.types[1], self.types[1])
                    return True
            return False
        s.unify(inner, self.types[1])
        return True

    def default(self, s, emit) -> None:
        s.unify(dimensions(self.types[0])[1], self.types[1])


class Fits(Constraint):
    """`t whole`: t is whole, or one of its rows, or a row of these, down to its scalar."""

    __slots__ = ()
    name = "fits"

    def solve(self, s, emit) -> bool:
        part, whole = (prune(t) for t in self.types)
        if part is whole:
            return True
        if is_scalar(part):
            emit(Elem((whole, part), self.span))
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


class Lift(Constraint):
    """`a b result`: elementwise, the operand of lower rank repeated over the leading dimensions of the other."""

    __slots__ = ()
    name = "lift"

    def solve(self, s, emit) -> bool:
        a, b, result = (prune(t) for t in self.types)
        if a is b:
            s.unify(result, a)
            return True
        for this, other, places in ((a, b, self.operands[::-1]), (b, a, self.operands)):
            if is_scalar(this):
                s.unify(result, other)
                emit(Elem((other, this), self.span, operands=places))
                return True
        if is_scalar(result):
            s.unify(a, result)
            s.unify(b, result)
            return True
        if type(a) is ty.Arr and type(b) is ty.Arr:
            return self._arrays(s, emit, a, b, result)
        for this, other in ((a, b), (b, a)):
            if type(this) is ty.Arr and type(other) is Meta:
                if is_product(other):  # of at least one dimension, and not free
                    return self._product(s, emit, this, other, result)
                if len(dimensions(result)[0]) > len(dimensions(this)[0]):
                    s.unify(other, result)
                    emit(Fits((this, result), self.span))
                else:
                    s.unify(result, this)
                    emit(Fits((other, this), self.span))
                return True
        return False

    def _product(self, s, emit, this, product, result) -> bool:
        """`x @ w + this`, the rank of x unknown: with one dimension, `this` fits every product."""
        sizes, inner = dimensions(this)
        if len(sizes) > 1 or not is_scalar(inner):
            return False
        s.unify(result, product)
        emit(Fits((this, product), self.span))
        return True

    def _arrays(self, s, emit, a, b, result) -> bool:
        (rank_a, inner_a), (rank_b, inner_b) = ((len(d), i) for d, i in (dimensions(a), dimensions(b)))
        same = rank_a == rank_b and inner_a is inner_b
        if (
            same
            or (is_scalar(inner_a) and (rank_b > rank_a or is_scalar(inner_b)))
            or (is_scalar(inner_b) and rank_a > rank_b)
        ):
            high, low = (a, b) if rank_a >= rank_b else (b, a)
            if same:
                s.unify(high, low)
            else:
                emit(Fits((low, high), self.span, operands=self.operands if low is a else self.operands[::-1]))
            s.unify(result, high)
            return True
        return False

    def default(self, s, emit) -> None:
        a, b, result = self.types
        rank_a, rank_b = len(dimensions(a)[0]), len(dimensions(b)[0])
        high, low = (a, b) if rank_a >= rank_b else (b, a)
        if rank_a == rank_b or min(rank_a, rank_b) == 0:
            s.unify(a, b)
        else:
            Fits((low, high), self.span).default(s, emit)
        s.unify(result, high)

    @property
    def eager(self) -> bool:
        return True


class Pow(Constraint):
    """`base exponent result`: the exponent is an int, or of the base's type."""

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
        emit(Lift(self.types, self.span))
        return True

    def default(self, s, emit) -> None:
        if is_scalar(self.types[1]):
            s.unify(self.types[1], ty.I64)
            s.unify(self.types[2], self.types[0])
        else:
            Lift(self.types, self.span).default(s, emit)

    @property
    def eager(self) -> bool:
        return True


class Matmul(Constraint):
    """`a b result`: matrix and matrix, matrix and vector, vector and matrix."""

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
        """`x @ v @ w`, the rank of x unknown: the columns of v are the rows of w all the same."""
        a, rows = prune(a), dimensions(b)[0]
        for w in a.watchers if type(a) is Meta else ():
            if type(w) is Matmul and not w.done and prune(w.types[2]) is a:
                columns = dimensions(w.types[1])[0]
                if len(columns) == 2 and rows:
                    self._inner(s, columns[1], rows[0])


def is_product(t: Meta) -> bool:
    """Whether an unknown is the result of a matrix product whose ranks are not known yet."""
    return any(type(w) is Matmul and not w.done and prune(w.types[2]) is t for w in t.watchers)


class Append(Constraint):
    """`a b result`: of strings, lists or arrays."""

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


class Convert(Constraint):
    """`a result` with `extra` the target: elementwise conversion of numbers."""

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
