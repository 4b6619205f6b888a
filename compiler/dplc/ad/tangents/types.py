"""Type -> the type of its tangents (and cotangents), and its *leaves*.

    Tan(f64)                = f64                    Tan(i64) = Tan(str) = ()
    Tan((f64, i64, f64[]))  = (f64, (), f64[])       leaves: f64, f64[]
    Tan((f64, i64)[])       = (f64, ())[]            one leaf, itself
    Tan(tree)               = tan.tree               one leaf: the same constructors with Tan payloads

Tuples dissolve: derivatives handle a variable's tangent leaf by leaf, so that one component of a tuple can be active
and another not.  A leaf is a float, an array or data; the latter two may be null, which means zero of any shape.  A
type without floats has no leaves, and its Tan is ().  Tan is idempotent, so derivatives of derivatives need no more
types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from dplc.flat import term as f
from dplc.flat.build import UNIT_ATOM, Builder
from dplc.flat.types import elem_of, of_rank


class Tangents:
    """The tangent types of a program.  `resolve` gives the type of a residual (a `Res`)."""

    prefix = "tan."  # of the names of tangent data types
    idempotent = True  # Tan(Tan(ty)) = Tan(ty)
    more = 0  # added to the rank: of the tangent of a float or an array of floats

    def __init__(self, datas: dict[str, f.DataDecl], resolve: Callable[[f.Type], f.Type]) -> None:
        self.datas = datas
        self.resolve = resolve
        self._leaves: dict[f.Type, tuple[f.Type, ...]] = {}
        self._asked: dict[int, tuple[f.Type, tuple[f.Type, ...]]] = {}  # by identity, as large types take long to hash
        self._starts: dict[int, tuple[f.Tup, tuple[int, ...]]] = {}  # by identity, as tuples are wide
        self._floats: dict[str, bool] = {}

    def leaves(self, ty: f.Type) -> tuple[f.Type, ...]:
        """The types of the leaves of a tangent of `ty`, in order."""
        asked = self._asked.get(id(ty))
        if asked is None:
            known = self._leaves.get(ty)
            if known is None:
                known = self._leaves[ty] = self._find(ty)
            asked = self._asked[id(ty)] = ty, known
        return asked[1]

    def starts(self, ty: f.Tup) -> tuple[int, ...]:
        """The index of each item's first leaf among the leaves of a tuple, and the total number of leaves."""
        known = self._starts.get(id(ty))
        if known is None:
            counts = (len(self.leaves(item)) for item in ty.items)
            known = self._starts[id(ty)] = ty, tuple(accumulate(counts, initial=0))
        return known[1]

    def _find(self, ty: f.Type) -> tuple[f.Type, ...]:
        match ty:
            case f.Num():
                return (of_rank(ty, self.more),) if f.is_float(ty) else ()
            case f.Tup(items):
                return tuple(leaf for item in items for leaf in self.leaves(item))
            case f.Arr(elem, rank) if f.is_float(elem):
                return (f.Arr(elem, rank + self.more),)
            case f.Arr(elem, rank):
                return (f.Arr(self.of(elem), rank),) if self.leaves(elem) else ()
            case f.Data(name):
                return (self.mirror(name),) if self.has_float(name) else ()
            case f.Res():
                return self.leaves(self.resolve(ty))
            case _:
                return ()

    def of(self, ty: f.Type) -> f.Type:
        """The type Tan(ty)."""
        leaves = self.leaves(ty)
        match ty:
            case f.Res():
                return self.of(self.resolve(ty))
            case f.Tup(items) if leaves:
                return f.Tup(tuple(map(self.of, items)))
            case _:
                return leaves[0] if leaves else f.UNIT

    def payload(self, data: str, tag: int) -> f.Type | None:
        payload = self.datas[data].payloads[tag]
        return None if payload is None else self.resolve(payload)

    def mirror(self, name: str) -> f.Data:
        """The data type of the tangents of a data type.  It is made when first needed."""
        if self.idempotent and name.startswith(self.prefix):
            return f.Data(name)
        made = self.prefix + name
        if made in self.datas:
            return f.Data(made)
        decl = self.datas[name]
        self.datas[made] = f.DataDecl(made, (), decl.names)  # it may mention itself
        payloads = []
        for tag in range(len(decl.payloads)):
            payload = self.payload(name, tag)
            payloads.append(self.of(payload) if payload is not None and self.leaves(payload) else None)
        self.datas[made] = f.DataDecl(made, tuple(payloads), decl.names)
        return f.Data(made)

    def has_float(self, name: str) -> bool:
        """True if a value of this data type can hold a float."""
        if name not in self._floats:
            seen: set[str] = set()
            self._floats[name] = self._reaches_float(f.Data(name), seen)
        return self._floats[name]

    def _reaches_float(self, ty: f.Type, seen: set[str]) -> bool:
        match ty:
            case f.Tup(items):
                return any(self._reaches_float(item, seen) for item in items)
            case f.Arr(elem, _):
                return self._reaches_float(elem, seen)
            case f.Res():
                return self._reaches_float(self.resolve(ty), seen)
            case f.Data(name):
                if name in seen:
                    return False
                seen.add(name)
                return any(p is not None and self._reaches_float(p, seen) for p in self.datas[name].payloads)
            case _:
                return f.is_float(ty)

    # ---- tangents as values --------------------------------------------------------------------------------------

    def pack(self, b: Builder, ty: f.Type, leaves: Sequence[f.Atom | None]) -> f.Atom:
        """Leaves (None: zero) -> a value of type Tan(ty)."""
        return self._pack(b, self.of(ty), list(leaves))

    def _pack(self, b: Builder, tan: f.Type, rest: list[f.Atom | None]) -> f.Atom:
        match tan:
            case f.Tup(()):
                return UNIT_ATOM
            case f.Tup(items):
                return b.make([self._pack(b, item, rest) for item in items])
            case _:
                pass
        leaf = rest.pop(0)
        return zero(tan) if leaf is None else leaf

    def unpack(self, b: Builder, value: f.Atom) -> list[f.Atom]:
        """A value of a Tan type -> its leaves."""
        match value.ty:
            case f.Tup(items):
                return [leaf for i, t in enumerate(items) if self.leaves(t) for leaf in self.unpack(b, b.get(value, i))]
            case _:
                return [value]


class Series(Tangents):
    """The types of Taylor series.  In place of the tangent of a float is the array of its coefficients, from the first.

        Series(f64) = f64[]         Series(f64[]) = f64[,]: the coefficients of each element side by side

    A null leaf is zero in all coefficients, also that of a float."""

    prefix = "series."
    idempotent = False
    more = 1


def zero(leaf: f.Type) -> f.Const:
    """Zero of a leaf's type: 0.0, or null."""
    return f.Const(0.0 if f.is_float(leaf) else None, leaf)


def positive(b: Builder, numbers: f.Atom) -> f.Atom:
    """The numbers with 0.0 in place of -0.0: the zeros of a derivative are positive, whichever of them are symbolic."""
    if isinstance(numbers, f.Const):
        return zero(numbers.ty) if is_zero(numbers) else numbers
    return b.op("add", (numbers, f.Const(0.0, elem_of(numbers.ty))))


def is_zero(atom: f.Atom) -> bool:
    """True for the constant 0.0 and for null, the zero of types that are not numbers."""
    return isinstance(atom, f.Const) and (atom.value is None or (atom.value == 0.0 and f.is_float(atom.ty)))
