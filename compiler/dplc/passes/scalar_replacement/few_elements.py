"""The elements of operations on arrays of known small size, one by one.

    y = add a b          y0 = add a0 b0;  y1 = add a1 b1          for a and b of two elements
    s = sum y            s0 = add 0.0 y0;  s = add s0 y1          in the order in which the array would be summed

`EXPANSIONS` has a rule for each operation: it takes the operands as `Few`, arrays in pieces, or as atoms, and returns
the result in pieces.  Elementwise operations have one rule for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from dpl.node import node, record

from dplc.flat import term as f
from dplc.flat.dims import Dims
from dplc.flat.ops.table import OPS, result_type
from dplc.flat.types import elem_of

Shape = tuple[int, ...]
FEW = 16  # elements of an array that is split
IN_ORDER = 15  # so many elements are added in sequence; a vector of more is added by lanes (`dpl/prims/sums.py`)


@node
class Few:
    """An array in pieces: its elements, row by row."""

    shape: Shape
    items: tuple[f.Atom, ...]

    def at(self, indices: Sequence[int]) -> tuple[f.Atom, ...]:
        """The element at some indices, or the elements of the part there."""
        size = prod(self.shape[len(indices) :])
        start = number(self.shape, indices) * size
        return self.items[start : start + size]


Piece = Few | f.Atom


def shape_of(dims: Dims, atom: f.Atom) -> Shape | None:
    """The shape of an array of few numbers, if it is known."""
    if not isinstance(atom, f.Var) or not isinstance(elem_of(atom.ty), f.Num) or not isinstance(atom.ty, f.Arr):
        return None
    shape = dims.shape(atom)
    return shape if shape and 0 < prod(shape) <= FEW else None


def number(shape: Shape, indices: Sequence[int]) -> int:
    """The number of an element, or of a part among the parts of its size."""
    total = 0
    for n, i in zip(shape, indices, strict=False):
        total = total * n + i
    return total


@record
class Writer:
    """Writes operations on numbers."""

    supply: f.Supply
    binds: list[f.Bind]

    def op(self, op: str, *args: f.Atom, span: f.Span = f.NOWHERE, attrs: tuple = ()) -> f.Var:
        ty = result_type(op, tuple([a.ty for a in args]), dict(attrs))
        var = f.Var(self.supply.fresh(op), ty)
        self.binds.append(f.Bind((var,), f.Op(op, args, attrs, span)))
        return var

    def total(self, items: Sequence[f.Atom], span: f.Span) -> f.Atom:
        """The sum of numbers, in order, from zero on."""
        ty = items[0].ty
        total: f.Atom = f.Const(0.0 if f.is_float(ty) else 0, ty)
        for item in items:
            total = self.op("add", total, item, span=span)
        return total

    def vector_total(self, items: Sequence[f.Atom], span: f.Span) -> f.Atom:
        """The sum of a vector: in order, or of `FEW` elements by halves, which is the order of lanes."""
        if len(items) == FEW:
            while len(items) > 1:
                half = len(items) // 2
                pairs = zip(items[:half], items[half:], strict=True)
                items = [self.op("add", x, y, span=span) for x, y in pairs]
        return self.total(items, span)

    def product(self, a: Few, b: Few, ta: bool, tb: bool, span: f.Span) -> Few:
        """A product of matrices."""
        (m, depth), n = a.shape[:: -1 if ta else 1], b.shape[0 if tb else 1]
        cells = []
        for i, j in product(range(m), range(n)):
            pairs = [(a.at((k, i) if ta else (i, k))[0], b.at((j, k) if tb else (k, j))[0]) for k in range(depth)]
            cells.append(self.total([self.op("mul", x, y, span=span) for x, y in pairs], span))
        return Few((m, n), tuple(cells))


# ---- rules ----------------------------------------------------------------------------------------------------------

Rule = Callable[[Writer, f.Op, Sequence[Piece]], "Piece | None"]
"""Writes an operation; None if it does not apply to these operands."""


def elementwise(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    shape = max((a.shape for a in args if isinstance(a, Few)), key=len)
    if any(isinstance(a, Few) and a.shape != shape[len(shape) - len(a.shape) :] for a in args):
        return None  # the program will fail there
    items = []
    for i in range(prod(shape)):
        numbers = [a.items[i % len(a.items)] if isinstance(a, Few) else a for a in args]
        items.append(w.op(op.op, *numbers, span=op.span, attrs=op.attrs))
    return Few(shape, tuple(items))


def sum_down(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    """The sum over the leading dimensions."""
    (a,) = args
    assert isinstance(a, Few)
    rank = op.attr("rank") if op.op == "sum_to" else len(a.shape) - 1
    shape = a.shape[len(a.shape) - rank :]
    size = prod(shape)
    if len(a.shape) == 1 and a.items:
        return w.vector_total(a.items, op.span)
    if not a.items or len(a.items) // size > IN_ORDER:
        return None
    totals = [w.total(a.items[i::size], op.span) for i in range(size)]
    return Few(shape, tuple(totals)) if rank else totals[0]


def dot(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    a, b = args
    assert isinstance(a, Few) and isinstance(b, Few)
    if a.shape != b.shape or not a.items or op.attr("masked") is not None:
        return None
    return w.vector_total([w.op("mul", x, y, span=op.span) for x, y in zip(a.items, b.items, strict=True)], op.span)


def matmul(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    a, b = args
    assert isinstance(a, Few) and isinstance(b, Few)
    if op.attr("masked") is not None:
        return None
    ta, tb = bool(op.attr("ta")), bool(op.attr("tb"))
    depth = a.shape[0 if ta else 1]
    if depth != b.shape[1 if tb else 0] or not 0 < depth <= IN_ORDER:
        return None
    return w.product(a, b, ta, tb, op.span)


def constants(atoms: Sequence[Piece], shape: Shape) -> tuple[int, ...] | None:
    """Indices, if they are numbers in bounds."""
    found = tuple([a.value for a in atoms if isinstance(a, f.Const) and isinstance(a.value, int)])
    good = len(found) == len(atoms) and all(0 <= i < n for i, n in zip(found, shape, strict=False))
    return found if good else None


def index(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    a, *at = args
    if not isinstance(a, Few) or (known := constants(at, a.shape)) is None:
        return None
    part = a.at(known)
    return Few(a.shape[len(known) :], part) if len(known) < len(a.shape) else part[0]


def update(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    a, new, *at = args
    if not isinstance(a, Few) or (known := constants(at, a.shape)) is None:
        return None
    items = new.items if isinstance(new, Few) else (new,)
    size = prod(a.shape[len(known) :])
    if len(items) != size:
        return None
    start = number(a.shape, known) * size
    return Few(a.shape, (*a.items[:start], *items, *a.items[start + size :]))


def fill(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    count, x = args
    if not isinstance(count, f.Const) or not isinstance(count.value, int) or count.value < 1:
        return None
    return stacked([x] * count.value)


def stacked(parts: Sequence[Piece]) -> Few | None:
    """The array of these rows or numbers."""
    shapes = {part.shape if isinstance(part, Few) else () for part in parts}
    if len(shapes) != 1:
        return None
    items = [item for part in parts for item in (part.items if isinstance(part, Few) else (part,))]
    return Few((len(parts), *shapes.pop()), tuple(items))


def transpose(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    (a,) = args
    assert isinstance(a, Few)
    n, m, *rest = a.shape
    items = [item for j in range(m) for i in range(n) for item in a.at((i, j))]
    return Few((m, n, *rest), tuple(items))


def reshape(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    a, *dims = args
    assert isinstance(a, Few)
    shape = tuple([d.value for d in dims if isinstance(d, f.Const) and isinstance(d.value, int)])
    return Few(shape, a.items) if len(shape) == len(dims) and prod(shape) == len(a.items) else None


def slice_(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    a, *ends = args
    assert isinstance(a, Few)
    known = constants(ends, (a.shape[0] + 1,) * 2)
    if known is None or known[0] >= known[1]:
        return None
    lo, hi = known
    size = prod(a.shape[1:])
    return Few((hi - lo, *a.shape[1:]), a.items[lo * size : hi * size])


def concat(w: Writer, op: f.Op, args: Sequence[Piece]) -> Piece | None:
    a, b = args
    if not isinstance(a, Few) or not isinstance(b, Few) or a.shape[1:] != b.shape[1:]:
        return None
    return Few((a.shape[0] + b.shape[0], *a.shape[1:]), a.items + b.items)


EXPANSIONS: dict[str, Rule] = {
    **{name: elementwise for name, row in OPS.items() if row.elementwise},
    "sum": sum_down, "sum_to": sum_down, "dot": dot, "matmul": matmul, "index": index, "update": update, "fill": fill,
    "array": lambda w, op, args: stacked(args), "transpose": transpose, "reshape": reshape, "slice": slice_,
    "concat": concat, "copy": lambda w, op, args: args[0],
}  # fmt: skip


def made_whole(binds: list[f.Bind], supply: f.Supply, few: Few, var: f.Var) -> None:
    """Binds a variable to the array that has these elements."""
    if len(few.shape) == 1:
        binds.append(f.Bind((var,), f.Op("array", few.items)))
        return
    row = f.Var(supply.fresh(var.name), f.Arr(elem_of(var.ty), 1))
    dims = tuple([f.Const(n, f.I64) for n in few.shape])
    binds.append(f.Bind((row,), f.Op("array", few.items)))
    binds.append(f.Bind((var,), f.Op("reshape", (row, *dims), (("unchecked", True),))))
