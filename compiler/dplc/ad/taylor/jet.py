"""Taylor mode: f -> f.jet, in which every varied float has beside it the series of its Taylor coefficients.

    fn f(x: f64) -> (f64)       fn f.jet(x: f64, x': f64[], n: i64) -> (f64, f64[])
      s = sin x                   s = sin x;    s' = sin.series(x, x', n)
      y = add s x           =>    y = add s x;  y' = add s' x'
      return y                    return y, y'

It is forward mode with series as tangents.  The code keeps its structure.  Linear operations apply to series directly,
as the coefficients of an array's element lie side by side.  Rows of the table become functions of series, made once
each (`ad/taylor/recurrence.py`).  The order n is known at run time; the cost grows with its square.  The result is
ordinary code that can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dplc.ad.activity import Graph
from dplc.ad.derivatives import Derivatives, Mode
from dplc.ad.forward.forward import Forward, linear
from dplc.ad.tangents.symbolic_zeros import ZERO_ELEMENTS, Part, Zeros, together
from dplc.ad.taylor.recurrence import Term, convolution, series
from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.ops.table import OPS
from dplc.flat.show import show_type
from dplc.flat.types import elem_of, of_rank, rank_of


def variable(b: Builder, order: f.Atom, x: f.Atom) -> f.Var:
    """The series of the variable of differentiation: 1, 0, 0, ..."""
    index, inner = b.var("i", f.I64), b.inner()
    one, nothing = f.Const(1.0, x.ty), f.Const(0.0, x.ty)
    body = inner.block(inner.op("select", (inner.op("eq", (index, integer(0))), one, nothing)))
    return b.bind(f.Build(index, order, body), (f.Arr(x.ty, 1),))[0]


class Jet(Forward):
    def __init__(self, derivatives: Derivatives, mode: Mode, graph: Graph, active: Sequence[tuple[int, Zeros]]) -> None:
        super().__init__(derivatives, mode, graph, active)
        self.order = f.Var(derivatives.supply.fresh("n"), f.I64)
        self.extra = (self.order,)

    def dims(self, b: Builder, atom: f.Atom) -> tuple[f.Atom, ...]:
        return (*b.dims(atom), self.order) if f.is_float(elem_of(atom.ty)) else b.dims(atom)

    def build(self, b: Builder, build: f.Build, vars_: Sequence[f.Var]) -> None:
        """A comprehension without elements has no dimension for coefficients; a reshape of its series adds it."""
        super().build(b, build, vars_)
        for var in vars_:
            part = self.env.get((var.name, 0))
            if part is not None and f.is_float(elem_of(var.ty)):
                self.env[(var.name, 0)] = Part(b.op("reshape", (part.atom, *self.dims(b, var))), part.zeros)

    def inner_sizes(self, array: f.Var, sizes: tuple[f.Atom, ...]) -> tuple[f.Atom, ...]:
        return (*sizes, self.order) if f.is_float(elem_of(array.ty)) else sizes

    def linear(self, b: Builder, op: f.Op, tangents: dict[int, f.Atom]) -> f.Var:
        """The dimensions given to an operation get one more at the end, for the coefficients."""
        args, attrs = op.args, op.attrs
        if f.is_float(elem_of(op.args[0].ty)):
            match op.op:
                case "reshape":
                    args = (*args, self.order)
                case "acc_index" | "acc_slice":
                    rank = op.attr("rank")
                    args = (*args[: 2 + rank], self.order, *args[2 + rank :])
                    attrs = (("rank", rank + 1),)
                case "sum_to":
                    attrs = (("rank", op.attr("rank") + 1),)
                case _:
                    pass
        return linear(b, f.Op(op.op, args, attrs, op.span), tangents)

    # ---- rows ----------------------------------------------------------------------------------------------------

    def row(self, b: Builder, op: f.Op, y: f.Var) -> list[Part]:
        there = self.there(op)
        level = all(rank_of(a.ty) == rank_of(y.ty) for a in op.args)
        if len(there) == 1:
            i, part = there[0]
            return self.unless_null(b, part, lambda some, p: [self.alone(some, op, i, p, y, level)])
        solid = [(i, self.solid(b, op.args[i])) for i, _ in there]
        zeros = min(p.zeros for _, p in solid)
        if op.op in ("add", "sub") and level:
            return [Part(b.op(op.op, (solid[0][1].atom, solid[1][1].atom)), zeros)]
        return [self.called(b, op, solid, zeros, y)]

    def alone(self, b: Builder, op: f.Op, i: int, part: Part, y: f.Var, level: bool) -> Part:
        """The series of a row with one varied operand."""
        if op.attr("absent"):
            return part
        zeros = max(part.zeros, ZERO_ELEMENTS) if OPS[op.op].derivative.chooses else part.zeros
        if op.op in ("add", "neg") and level:
            return Part(part.atom if op.op == "add" else b.op("neg", (part.atom,)), zeros)
        return self.called(b, op, [(i, part)], zeros, y)

    def called(self, b: Builder, op: f.Op, there: Sequence[tuple[int, Part]], zeros: Zeros, y: f.Var) -> Part:
        row = OPS[op.op]
        has_zeros = bool(row.scalar) and row.derivative.multiplies and all(part.has_zeros for _, part in there)
        fn = self.function_of(op, [i for i, _ in there], has_zeros)
        made = b.calls(fn, (*op.args, *(part.atom for _, part in there), self.order), (of_rank(y.ty, 1),), op.span)
        return Part(made[0], zeros)

    def function_of(self, op: f.Op, active: Sequence[int], has_zeros: bool) -> str:
        """The name of the function of series for a row, or for a product of arrays."""
        types = ", ".join(show_type(a.ty) + ("'" if i in active else "") for i, a in enumerate(op.args))
        attrs = "".join(f" {name}" for name, value in op.attrs if value)
        name = f"{op.op}{attrs}.series({types}){'?' if has_zeros else ''}"
        if name not in self.d.program.fns:
            Writer(self, op, active, has_zeros).write(name)
        return name

    # ---- products ------------------------------------------------------------------------------------------------

    def product(self, b: Builder, op: f.Op, y: f.Var) -> list[Part]:
        there = dict(self.there(op))
        added = there.pop(0, None) if op.op == "matmul_acc" else None
        parts = [] if added is None else [added]
        if there:
            shift = int(op.op == "matmul_acc")
            times = f.Op("matmul" if shift else op.op, op.args[shift:], op.attrs, op.span)
            solid = [(i - shift, self.solid(b, op.args[i])) for i in there]
            parts.append(self.called(b, times, solid, min(p.zeros for _, p in solid), y))
        total = parts[0]
        for part in parts[1:]:
            total = Part(b.op("acc_add", (total.atom, part.atom)), together(total.zeros, part.zeros))
        return [total]


class Writer:
    """Writes the function of series for an operation."""

    def __init__(self, jet: Jet, op: f.Op, active: Sequence[int], has_zeros: bool) -> None:
        self.jet = jet
        self.d = jet.d
        self.b = b = Builder(jet.d.supply)
        self.op = op
        self.has_zeros = has_zeros
        self.order = b.var("n", f.I64)
        self.args = [b.var("x", a.ty) for a in op.args]
        self.given = {i: b.var("d", of_rank(op.args[i].ty, 1)) for i in active}

    def write(self, name: str) -> None:
        b, op = self.b, self.op
        outer = {i: outermost(b, xs) for i, xs in self.given.items()}
        if OPS[op.op].scalar is None:
            made = self.product(outer)
        else:
            operands = [(x, self.whole(x, outer[i]) if i in outer else None) for i, x in enumerate(self.args)]
            full = series(b, op.op, operands, self.order, self.link)
            made = b.op("slice", (full, integer(1), b.op("add", (self.order, integer(1)))), unchecked=True)
        if self.has_zeros:
            made = self.masked(outer.values(), made)
        made = innermost(b, made)
        params = (*self.args, *self.given.values(), self.order)
        self.d.program.fns[name] = f.Fn(name, params, (made.ty,), b.block(made), "", op.span)

    def whole(self, x: f.Atom, xs: f.Atom) -> f.Var:
        """A series that starts at coefficient 0."""
        return self.b.op("concat", (self.b.op("array", (x,)), xs))

    def product(self, outer: dict[int, f.Atom]) -> f.Var:
        b = self.b

        def times(b: Builder, x: f.Atom, y: f.Atom) -> f.Atom:
            return again(b, self.op, x, y, *self.args[2:])

        index, inner = b.var("i", f.I64), b.inner()
        left, right = (self.whole(x, outer[i]) if i in outer else x for i, x in enumerate(self.args[:2]))
        after = inner.op("add", (index, integer(1)))
        if len(outer) == 2:
            made = convolution(inner, left, right, after, times)
        else:
            made = times(inner, *(
                inner.op("index", (full, after), unchecked=True) if i in outer else full
                for i, full in enumerate((left, right))
            ))  # fmt: skip
        return b.bind(f.Build(index, self.order, inner.block(made)), (of_rank(made.ty, 1),))[0]

    def link(self, b: Builder, row: str, args: tuple[Term, ...]) -> Term:
        """A row of a chain that occurs in a rule."""
        value = b.op(row, tuple(a.first for a in args))
        op = f.Op(row, tuple(a.first for a in args))
        active = [i for i, a in enumerate(args) if a.series is not None]
        assert all(a.series is not None for a in args if a.varied), f"{row} of something computed"
        fn = self.jet.function_of(op, active, False)
        one, end = integer(1), b.op("add", (self.order, integer(1)))
        rest = [
            innermost(b, b.op("slice", (xs, one, end), unchecked=True)) for a in args if (xs := a.series) is not None
        ]
        (made,) = b.calls(fn, (*op.args, *rest, self.order), (of_rank(value.ty, 1),))
        return Term("given", value, series=b.op("concat", (b.op("array", (value,)), outermost(b, made))))

    def masked(self, given: Collection[f.Atom], made: f.Atom) -> f.Var:
        """The series; zero where the value is NaN and all operands' series are zero."""
        b = self.b
        value = again(b, self.op, *self.args)
        c, k, some, inner = b.var("k", f.I64), b.var("k", f.I64), b.inner(), b.inner()
        state = b.var("s", of_rank(f.BOOL, rank_of(value.ty)))
        nothing = f.Const(0.0, elem_of(value.ty))
        moved: f.Atom = state
        for xs in given:
            moved = some.op("or", (moved, some.op("ne", (some.op("index", (xs, c), unchecked=True), nothing))))
        loop = f.For(c, self.order, (state,), (b.op("lt", (value, value)),), some.block(moved))
        (there,) = b.bind(loop, (state.ty,))
        part = inner.op("index", (made, k), unchecked=True)
        absent = inner.op("and", (inner.op("not", (there,)), inner.op("ne", (part, part))))
        body = inner.block(inner.op("select", (absent, nothing, part)))
        return b.bind(f.Build(k, self.order, body), (made.ty,))[0]


def again(b: Builder, op: f.Op, *args: f.Atom) -> f.Var:
    """The operation on other operands."""
    return linear(b, f.Op(op.op, args, op.attrs, op.span), {})


def outermost(b: Builder, xs: f.Atom) -> f.Atom:
    """The series of an array's elements -> a series of arrays."""
    *dims, order = b.dims(xs)
    if len(dims) == 0:
        return xs
    flat = xs if len(dims) == 1 else b.op("reshape", (xs, count(b, dims), order))
    turned = b.op("transpose", (flat,))
    return turned if len(dims) == 1 else b.op("reshape", (turned, order, *dims))


def innermost(b: Builder, xs: f.Atom) -> f.Atom:
    """The inverse of `outermost`."""
    order, *dims = b.dims(xs)
    if len(dims) == 0:
        return xs
    flat = xs if len(dims) == 1 else b.op("reshape", (xs, order, count(b, dims)))
    turned = b.op("transpose", (flat,))
    return turned if len(dims) == 1 else b.op("reshape", (turned, *dims, order))


def count(b: Builder, dims: Sequence[f.Atom]) -> f.Atom:
    total = dims[0]
    for dim in dims[1:]:
        total = b.op("mul", (total, dim))
    return total
