"""Rows of a comprehension keep only the elements that are needed (dead field elimination): what is the same constant in
all rows, an element of another array, or never read, is not kept.

    a = build k < n {                                      a = build k < n {
      r = build i < 2, j < 2 {                               e0 = exp (index x k 0);  e1 = exp (index x k 1)
        if i = j { exp (index x k i) } else                  r = array e0 e1
        if j < i { index x k 2 } else { 0.0 } }      =>      yield r }
      yield r }
    ...                                                    ...
    y = index a j 1 0;  z = index a j 0 1                  y = index x j 2;  z is 0.0

Rows have a known shape, and are read by elements at known places only, as `small_arrays` has made of products with
vectors of few numbers.  So a triangular matrix for each component of a mixture is its numbers, and reverse mode adds
nothing to zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.dims import Dims
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import atoms, blocks, every, names, rebuild, rhs_mentions, unchanged, with_blocks, with_rhs
from dplc.passes.scalar_replacement.few_elements import number
from dplc.passes.scalar_replacement.few_extrema import renamed
from dplc.passes.simplify.fold import fold
from dplc.passes.simplify.purity import droppable

MOST = 128  # elements of a row
LARGEST = 2048  # bindings, at most, that are looked at for a row

Place = tuple[int, ...]  # of an element in a row


@node
class Read:
    """An element that is read: the row's index, and the place.  `checked`: this read fails if there is no such row."""

    row: f.Atom
    place: Place
    checked: bool


@node
class Other:
    """An element of another array, in the row with the same index."""

    array: f.Var
    at: tuple[f.Atom, ...]


@node
class Element:
    """What is known of an element in all rows; `droppable`: it need not be computed if it is not read."""

    value: f.Const | Other | None
    droppable: bool


@node
class Plan:
    """What becomes of an array.  `kept` has the numbers of the elements that rows keep, `known` the other ones that are
    read.  `safe`: there are all the rows that are read."""

    build: f.Build
    shape: Place
    var: f.Var
    kept: Mapping[Place, int]
    known: Mapping[Place, f.Const | Other]
    safe: bool


def needed_elements(fn: f.Fn, dims: Dims, supply: f.Supply) -> f.Fn:
    """The function; the same object if all rows stay as they are."""
    finder = _Finder(fn, dims)
    plans = {name: plan for name in finder.reads if (plan := finder.plan(name, supply))}
    return replace(fn, body=_Rewriter(plans, supply).block(fn.body)) if plans else fn


# ---- what is needed -------------------------------------------------------------------------------------------------


class _Finder:
    """One function: its comprehensions of rows of known shapes, and the reads of these."""

    def __init__(self, fn: f.Fn, dims: Dims) -> None:
        self.dims = dims
        self.defs = {var.name: bind.rhs for bind in every(fn.body) for var in bind.vars}
        self.counts = {rhs.index.name: rhs.count for rhs in self.defs.values() if isinstance(rhs, f.Build | f.For)}
        self.reads: dict[str, list[Read]] = {name: [] for name, rhs in self.defs.items() if self.shape(rhs)}
        if self.reads:
            self.block(fn.body)

    def shape(self, rhs: f.Rhs) -> Place:
        """The shape of the rows that a comprehension makes, if it is known, and they have several numbers."""
        if not isinstance(rhs, f.Build) or len(rhs.body.results) != 1:
            return ()
        (row,) = rhs.body.results
        shape = self.dims.shape(row) if isinstance(row.ty, f.Arr) and isinstance(row.ty.elem, f.Num) else None
        return shape if shape and 1 < prod(shape) <= MOST else ()

    def block(self, block: f.Block) -> None:
        """Notes reads; what is done with an array otherwise needs all of it."""
        for name in names(block.results):
            self.reads.pop(name, None)
        for bind in block.binds:
            for name in names(atoms(bind.rhs)):
                read = read_by(bind.rhs) if name in self.reads else None
                if read is not None:
                    self.reads[name].append(read)
                else:
                    self.reads.pop(name, None)
            for inner in blocks(bind.rhs):
                self.block(inner)

    def plan(self, name: str, supply: f.Supply) -> Plan | None:
        """What becomes of an array; None if it stays."""
        build, reads = self.defs[name], self.reads[name]
        assert isinstance(build, f.Build)
        shape, wanted = self.shape(build), {read.place for read in reads}
        if not reads or prod(shape) * len(every(build.body)) > LARGEST:
            return None
        elements = _Elements(build, self.dims, self.defs)
        found = {place: one for place in product(*map(range, shape)) if (one := elements.at(place, shape))}
        known = {place: one.value for place, one in found.items() if place in wanted and one.value is not None}
        kept = [place for place, one in found.items()
                if place not in known and (place in wanted or not one.droppable)]  # fmt: skip
        safe = all(self.is_row(read.row, build) for read in reads)
        if not kept or len(kept) == prod(shape) or len(found) < prod(shape) or not wanted <= found.keys():
            return None
        (row,) = build.body.results
        assert isinstance(row.ty, f.Arr)
        var = f.Var(supply.fresh(name), f.Arr(row.ty.elem, 2))
        return Plan(build, shape, var, {place: k for k, place in enumerate(kept)}, known, safe)

    def is_row(self, row: f.Atom, build: f.Build) -> bool:
        """True if an index is that of a loop over all rows."""
        return isinstance(row, f.Var) and self.counts.get(row.name) == build.count


def place_at(at: Sequence[f.Atom]) -> Place:
    """The place at known indices; shorter if some are not known."""
    return tuple([i.value for i in at if isinstance(i, f.Const) and isinstance(i.value, int)])


def read_by(rhs: f.Rhs) -> Read | None:
    """The read of an element at a known place."""
    match rhs:
        case f.Op("index", (array, row, *at)) if len(at) + 1 == rank_of(array.ty):
            place = place_at(at)
            return Read(row, place, not rhs.attr("unchecked")) if len(place) == len(at) else None
        case _:
            return None


@node
class Row:
    """What makes the result of a block, a row: an inner comprehension of known length, or numbers.  `rest` are the
    other bindings of the block."""

    rhs: f.Build | f.Op
    rest: tuple[f.Bind, ...]


def row_of(block: f.Block) -> Row | None:
    """The row that is a block's result, if nothing else is done with it."""
    made = {bind.vars[0].name: bind for bind in block.binds if len(bind.vars) == 1}
    (result,), gone = block.results, list[f.Bind]()
    while isinstance(result, f.Var) and (bind := made.get(result.name)) is not None:
        gone.append(bind)
        match bind.rhs:
            case f.Op("reshape", (before, *_)):
                result = before
            case f.Build(_, f.Const()) | f.Op("array") as rhs:
                rest = tuple([bind for bind in block.binds if bind not in gone])
                used = {name for bind in rest for name in rhs_mentions(bind.rhs)}
                alone = used.isdisjoint(bind.vars[0].name for bind in gone)
                return Row(rhs, rest) if alone else None
            case _:
                break
    return None


class _Elements:
    """The elements of the rows of a comprehension: a small partial evaluation for each of them."""

    def __init__(self, build: f.Build, dims: Dims, defs: Mapping[str, f.Rhs]) -> None:
        self.build, self.dims, self.defs = build, dims, defs
        self.own = {var.name for bind in every(build.body) for var in bind.vars}
        self.known: dict[str, f.Atom] = {}
        self.ops: dict[str, f.Op] = {}
        self.droppable = True

    def at(self, place: Place, shape: Place) -> Element | None:
        """An element of rows of this shape; None if rows are made in another way."""
        self.known, self.ops, self.droppable = {}, {}, True
        item = self.item(self.build.body, place, shape)
        return None if item is None else Element(self.value(item) if self.droppable else None, self.droppable)

    def item(self, block: f.Block, place: Place, shape: Place) -> f.Atom | None:
        """The element of a block's result; None if that is made in another way."""
        row = row_of(block) if place else None
        for bind in row.rest if row else block.binds:
            self.step(bind, inner=block is not self.build.body)
        match row.rhs if row else None:
            case None:
                return None if place else self.atom(block.results[0])
            case f.Build(index, _, body):
                self.known[index.name] = f.Const(place[0], f.I64)
                return self.item(body, place[1:], shape[1:])
            case f.Op(_, items):
                return self.atom(items[number(shape, place)]) if isinstance(items[0].ty, f.Num) else None

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.known.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def step(self, bind: f.Bind, inner: bool) -> None:
        """Notes what a binding gives.  Those of outer blocks stay, whatever becomes of the elements."""
        match bind.rhs:
            case f.If(cond, then, else_) if isinstance(choice := self.atom(cond), f.Const):
                arm = then if choice.value else else_
                for one in arm.binds:
                    self.step(one, inner)
                self.known |= {var.name: self.atom(x) for var, x in zip(bind.vars, arm.results, strict=True)}
            case f.Op() as old if len(bind.vars) == 1:
                op = rebuild(old, self.atom, unchanged, unchanged)
                assert isinstance(op, f.Op)
                value = fold(op, self.defs) if OPS[op.op].scalar else None
                if value is not None:
                    self.known[bind.vars[0].name] = value
                    return
                self.ops[bind.vars[0].name] = op
                self.droppable &= not inner or droppable(op) or self.in_bounds(op)
            case rhs:
                self.droppable &= not inner or droppable(rhs)

    def in_bounds(self, op: f.Op) -> bool:
        lengths = [self.dims.of(op.args[0], k) for k in range(len(op.args) - 1)]
        return op.op == "index" and all(below(i, n) for i, n in zip(op.args[1:], lengths, strict=True))

    def value(self, item: f.Atom) -> f.Const | Other | None:
        """An element, if it is a constant, or that of an array from outside."""
        if isinstance(item, f.Const):
            return item
        at: tuple[f.Atom, ...] = ()
        while isinstance(item, f.Var) and item.name in self.ops and self.ops[item.name].op == "index":
            at = (*self.ops[item.name].args[1:], *at)
            item = self.ops[item.name].args[0]
        if not isinstance(item, f.Var) or item.name in self.own or len(at) != rank_of(item.ty):
            return None
        if at[:1] != (self.build.index,) or not all(isinstance(i, f.Const) for i in at[1:]):
            return None
        return Other(item, at[1:]) if self.as_long(item) else None

    def as_long(self, array: f.Var) -> bool:
        """True if an array has as many rows as are made."""
        length, count = self.dims.of(array, 0), self.build.count
        asked = self.defs.get(count.name) if isinstance(count, f.Var) else None
        if isinstance(asked, f.Op) and asked.op == "dim":
            return length in (count, (asked.args[0], asked.attr("k")))
        return length == count


def below(i: f.Atom, n: object) -> bool:
    known = isinstance(i, f.Const) and isinstance(n, f.Const)
    return known and isinstance(i.value, int) and isinstance(n.value, int) and 0 <= i.value < n.value


# ---- the new code ---------------------------------------------------------------------------------------------------


class _Rewriter:
    def __init__(self, plans: Mapping[str, Plan], supply: f.Supply) -> None:
        self.plans, self.supply = plans, supply

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            match bind.rhs:
                case f.Build() if (plan := self.plans.get(bind.vars[0].name)) is not None:
                    binds.append(f.Bind((plan.var,), self.rows(plan)))
                case f.Op("index", (f.Var(name), row, *_)) as op if name in self.plans:
                    self.read(bind, op, row, self.plans[name], binds)
                case rhs:
                    binds.append(with_rhs(bind, with_blocks(rhs, self.block)))
        return f.Block(tuple(binds), block.results)

    def read(self, bind: f.Bind, op: f.Op, row: f.Atom, plan: Plan, binds: list[f.Bind]) -> None:
        """Reads what has the element now: that may be an array of which another plan tells."""
        read, safe = read_by(op), plan.safe
        assert read is not None
        place, found = read.place, plan.known.get(read.place)
        while isinstance(found, Other) and (other := self.plans.get(found.array.name)):
            plan, place = other, place_at(found.at)
            found = plan.known.get(place)
        array, at = (found.array, found.at) if isinstance(found, Other) else (plan.var, self.number(plan, place))
        how = (("unchecked", True),) if safe else (("sure", len(at)),) if read.checked else op.attrs
        made = f.Op("index", (array, row, *at), how, op.span)
        if not isinstance(found, f.Const):
            binds.append(f.Bind(bind.vars, made))
            return
        if read.checked and not safe:
            binds.append(f.Bind((f.Var(self.supply.fresh("x"), bind.vars[0].ty),), made))
        renamed(binds, self.supply, bind.vars[0], found)

    def number(self, plan: Plan, place: Place) -> tuple[f.Atom, ...]:
        """Where rows have an element; the first one stands for what they do not keep."""
        return (f.Const(plan.kept.get(place, 0), f.I64),)

    def rows(self, plan: Plan) -> f.Build:
        """The comprehension with rows of the elements that are kept."""
        body = self.block(plan.build.body)
        row = row_of(body)
        assert row is not None
        binds = list(row.rest)
        items = tuple([self.item(row, place, plan.shape, Copier(self.supply, {}), binds) for place in plan.kept])
        made = f.Var(self.supply.fresh("array"), f.Arr(items[0].ty, 1))
        binds.append(f.Bind((made,), f.Op("array", items, (), plan.build.span)))
        inner = ((f.Const(len(items), f.I64),),)
        return replace(plan.build, body=f.Block(tuple(binds), (made,)), inner=inner)

    def item(self, row: Row, place: Place, shape: Place, copier: Copier, binds: list[f.Bind]) -> f.Atom:
        """Writes the code of an element."""
        match row.rhs:
            case f.Build(index, _, body):
                copier.atoms[index.name] = f.Const(place[0], f.I64)
                inner = row_of(body) if place[1:] else None
                binds += copier.binds(inner.rest if inner else body.binds)
                return self.item(inner, place[1:], shape[1:], copier, binds) if inner else copier.atom(body.results[0])
            case f.Op(_, items):
                return copier.atom(items[number(shape, place)])
