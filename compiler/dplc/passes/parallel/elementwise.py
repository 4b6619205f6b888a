"""A `Map` -> a Par over the dimensions of its inputs.

    z, s = map (p in x, q in w) {              check_lengths m (dim 0 w)
      t = mul p q                              z, s = par i < n, j < m to keep, fold 1 {
      yield t, t } to ranks 2 1          =>      p = index x i j;  q = index w j
                                                 t = mul p q
    x : f64[,], w : f64[]                        yield t, t }

Dimensions that all inputs have together are one dimension: the arrays are seen as vectors of their elements.  An input
that is `fill n r`, copies of a row, is the row: the copies need not be made.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from operator import itemgetter

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, product
from dplc.flat.dims import Dims
from dplc.flat.types import of_rank, rank_of
from dplc.flat.walk import every, rhs_mentions


class Elementwise:
    """`free` are the variables that are not used later: a result may overwrite one of these.  `fills` are arrays of
    copies of a row; `dims` tells lengths that are known."""

    def __init__(
        self,
        supply: f.Supply,
        fused: f.Map,
        variables: tuple[f.Var, ...],
        free: set[str],
        fills: Mapping[str, f.Op],
        parts: Container[str],
        dims: Dims,
    ) -> None:
        self.b = Builder(supply)
        self.parts = parts
        self.fused, self.copies = with_rows(fused, fills)
        fused = self.fused
        self.vars = variables
        self.free = free
        self.dims = dims
        self.whole = max(fused.inputs, key=lambda a: rank_of(a.ty))
        self.rank = rank_of(self.whole.ty)
        inner = {rank_of(a.ty) for a in fused.inputs} | {rank for rank in fused.ranks if rank}
        self.ranks = sorted(inner, reverse=True)  # a dimension of the space begins where an array of this rank does

    def binds(self) -> tuple[f.Bind, ...]:
        fused, b = self.fused, self.b
        shapes = {a: self.shape(a) for a in dict.fromkeys((self.whole, *fused.inputs))}
        self.lengths = shapes[self.whole]
        for a, other, span in meetings(fused, self.whole):
            self.check(shapes[a][rank_of(a.ty) - rank_of(other.ty) :], shapes[other], span)
        for rank, count in self.copies:
            self.check([self.lengths[self.rank - rank]], [count], fused.span)
        ends = [*self.ranks[1:], 0]
        counts = [product(b, self.lengths[self.rank - start : self.rank - end])
                  for start, end in zip(self.ranks, ends, strict=True)]  # fmt: skip
        indices = [f.Var(b.supply.fresh("i"), f.I64) for _ in counts]
        inputs = [self.view(a, counts) for a in fused.inputs]
        reads = tuple([
            f.Bind((param,), f.Op("index", (a, *indices[-rank_of(a.ty) :]), (("unchecked", True),), fused.span))
            for param, a in zip(fused.params, inputs, strict=True)
        ])  # fmt: skip
        body = f.Block((*reads, *fused.body.binds), fused.body.results)
        outs = self.outs(inputs)
        results = [self.result(var, len(counts)) for var in self.vars]
        par = f.Par(tuple(zip(indices, counts, strict=True)), body, outs, fused.span)
        b.binds.append(f.Bind(tuple(results), par))
        for var, result in zip(self.vars, results, strict=True):
            if var is not result:
                dims = self.lengths[self.rank - rank_of(var.ty) :]
                b.binds.append(f.Bind((var,), f.Op("reshape", (result, *dims), (("unchecked", True),), fused.span)))
        return block_of(b.binds, ()).binds

    def shape(self, a: f.Atom) -> list[f.Atom]:
        """The dimensions of an array; those that are known numbers are not read."""
        known = [self.dims.of(a, k) for k in range(rank_of(a.ty))]
        return [n if isinstance(n, f.Const) else self.b.op("dim", (a,), k=k) for k, n in enumerate(known)]

    def check(self, lengths: list[f.Atom], others: list[f.Atom], span: f.Span) -> None:
        for n, other in zip(lengths, others, strict=True):
            if not (isinstance(n, f.Const) and n == other):
                self.b.effect("check_lengths", (n, other), span)

    def view(self, a: f.Atom, counts: list[f.Atom]) -> f.Atom:
        """An input with the dimensions of the space."""
        left = self.ranks.index(rank_of(a.ty))
        if len(counts) - left == rank_of(a.ty):
            return a
        return self.b.op("reshape", (a, *counts[left:]), self.fused.span, unchecked=True)

    def result(self, var: f.Var, dimensions: int) -> f.Var:
        rank = rank_of(var.ty)
        if not rank or (own := dimensions - self.ranks.index(rank)) == rank:
            return var
        elem = var.ty.elem if isinstance(var.ty, f.Arr) else var.ty
        return f.Var(self.b.supply.fresh(var.name), of_rank(elem, own))

    def outs(self, inputs: list[f.Atom]) -> tuple[f.Out, ...]:
        """What becomes of the results.  They overwrite inputs; parts of others last, as these have owners."""
        found = [(a.name in self.parts, view) for a, view in zip(self.fused.inputs, inputs, strict=True)
                 if rank_of(a.ty) == self.rank and isinstance(a, f.Var) and a.name in self.free]  # fmt: skip
        spare = [view for _, view in sorted(found, key=itemgetter(0))]
        made = []
        for atom, rank in zip(self.fused.body.results, self.fused.ranks, strict=True):
            if rank < self.rank:
                made.append(f.Out("fold", len(self.ranks) - self.ranks.index(rank) if rank else 0))
                continue
            fitting = [a for a in spare if isinstance(a.ty, f.Arr) and a.ty.elem == atom.ty]
            spare = [a for a in spare if a not in fitting[:1]]
            made.append(f.Out("keep", target=fitting[0] if fitting else None))
        return tuple(made)


def meetings(fused: f.Map, whole: f.Atom) -> Iterator[tuple[f.Atom, f.Atom, f.Span]]:
    """Where inputs meet: an operation with operands from two of them, each for all that were met before.  The program
    fails at the first such operation whose sizes differ.  What meets nowhere is compared with the `whole`."""
    stands = {param.name: a for param, a in zip(fused.params, fused.inputs, strict=True)}  # for a variable
    taken: dict[f.Atom, f.Atom] = {}

    def top(a: f.Atom) -> f.Atom:
        while a in taken:
            a = taken[a]
        return a

    def joined(a: f.Atom, other: f.Atom) -> tuple[f.Atom, f.Atom]:
        high, low = (a, other) if rank_of(a.ty) >= rank_of(other.ty) else (other, a)
        taken[low] = high
        return high, low

    for bind in fused.body.binds:
        met = [top(stands[name]) for name in rhs_mentions(bind.rhs) if name in stands]
        for other in met[1:]:
            if top(met[0]) != top(other):
                yield *joined(top(met[0]), top(other)), getattr(bind.rhs, "span", fused.span)
        stands |= {var.name: met[0] for var in bind.vars if met}
    for a in fused.inputs:
        if top(a) != top(whole):
            yield *joined(top(whole), top(a)), fused.span


def with_rows(fused: f.Map, fills: Mapping[str, f.Op]) -> tuple[f.Map, list[tuple[int, f.Atom]]]:
    """A Map that reads rows in place of their copies, if another input has its dimensions; and for each such input its
    rank and how many copies it has."""
    rank = max(rank_of(a.ty) for a in fused.inputs)
    if not any(rank_of(a.ty) == rank and not (isinstance(a, f.Var) and a.name in fills) for a in fused.inputs):
        return fused, []
    inputs, copies = [], []
    for a in fused.inputs:
        while isinstance(a, f.Var) and a.name in fills:
            count, row = fills[a.name].args
            copies.append((rank_of(a.ty), count))
            a = row
        inputs.append(a)
    return (replace(fused, inputs=tuple(inputs)), copies) if copies else (fused, [])


def parts_of_arrays(block: f.Block) -> set[str]:
    """The rows and slices that are read out of arrays, and the arrays in tuples that are."""
    read: set[str] = set()
    for bind in every(block):
        match bind.rhs:
            case f.Op("index" | "slice"):
                read.add(bind.vars[0].name)
            case f.TupGet(f.Var(name)) if name in read:
                read.add(bind.vars[0].name)
            case _:
                pass
    return read


def fills_of_rows(block: f.Block) -> dict[str, f.Op]:
    """The arrays that are copies of a row."""
    return {bind.vars[0].name: bind.rhs for bind in every(block)
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "fill" and rank_of(bind.rhs.args[1].ty)}  # fmt: skip
