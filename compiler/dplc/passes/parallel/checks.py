"""Reads in a nest of loops are checked once, before the nest, if nothing else in it can fail.

    par i < n {                                  if n <= dim a && m <= dim b { }
      par j < m {                                else for i < n { for j < m {
        if i = j { 0.0 }                   =>      if i = j { } else { index a i; index b j } } }      fails as before
        else { x = index a i                     par i < n {
               y = index b j; ... } } }            par j < m {
                                                     if i = j { 0.0 } else { x = index unchecked a i; ... } } }

Points without checks are vectorised, and joined with others.  Where a length is less than what the loops reach, the
part of the nest that can fail is run on its own, and the nest if that has not failed: a condition may protect a read.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import LARGEST, ONE, Sum, combined
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks, bound_inside, every, names, used, with_blocks
from dplc.passes.simplify.purity import HERE, droppable, natural


@node
class Reach:
    """An index of a read, which has to be less than dimension `k` of an array: a constant and indices of loops of these
    counts, each with a factor; or a variable from `outside`."""

    array: f.Var
    k: int
    constant: int
    parts: tuple[tuple[f.Atom, int], ...]
    outside: f.Var | None


def checked_before(supply: f.Supply, body: f.Block) -> f.Block:
    """The body of a function, with the checks of its Pars before them."""
    lengths = {bind.vars[0].name for bind in every(body) if isinstance(bind.rhs, f.Op) and bind.rhs.op == "dim"}
    return _Checks(supply, lengths).block(body)


@node
class _Checks:
    """`lengths` are variables that are not negative."""

    supply: f.Supply
    lengths: set[str]

    def block(self, block: f.Block) -> f.Block:
        if not any(isinstance(bind.rhs, f.Par) or blocks(bind.rhs) for bind in block.binds):
            return block
        binds: list[f.Bind] = []
        for bind in block.binds:
            if not bind.vars and droppable(bind.rhs):
                continue
            found = _Nest(bind.rhs, self.lengths) if isinstance(bind.rhs, f.Par) and not bind.rhs.ordered else None
            if found is not None and found.reaches and found.simple:
                binds += found.binds(self.supply, bind)
            else:
                rhs = with_blocks(bind.rhs, self.block)
                binds.append(bind if rhs is bind.rhs else f.Bind(bind.vars, rhs))
        return f.Block(tuple(binds), block.results)


class _Nest:
    """A Par with all that is inside of it.  It is `simple` if nothing can fail but reads whose indices are known from
    those of the loops: `reaches` says how far."""

    def __init__(self, par: f.Par, lengths: set[str]) -> None:
        self.lengths = lengths
        self.own = {var.name for var in bound_inside(par)}
        self.counts: dict[object, f.Atom] = {}
        self.sums: dict[str, Sum] = {}
        self.reaches: dict[Reach, None] = {}
        self.simple = True
        self.space(par)
        self.block(par.body)

    def space(self, par: f.Par) -> None:
        self.counts.update((index.name, count) for index, count in par.space if self.outside(count))

    def natural(self, count: f.Atom) -> bool:
        return natural(count) or (isinstance(count, f.Var) and count.name in self.lengths)

    def outside(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Const) or atom.name not in self.own

    def block(self, block: f.Block) -> None:
        for bind in block.binds:
            match bind.rhs:
                case f.Par() as par:
                    self.space(par)
                    self.simple &= all(map(self.natural, [count for _, count in par.space]))
                case f.For(index, count) if self.outside(count):
                    self.counts[index.name] = count
                case f.Op("add", (a, b)) if a.ty == f.I64:
                    self.sums[bind.vars[0].name] = combined(self.sum(a), self.sum(b), 1)
                case f.Op() as op if is_read(op) and self.known(op):
                    pass
                case f.Op() | f.Call() if not droppable(bind.rhs):
                    self.simple = False
                case _:
                    pass
            for inner in blocks(bind.rhs):
                self.block(inner)

    def sum(self, atom: f.Atom) -> Sum:
        if isinstance(atom, f.Const):
            return {ONE: atom.value} if isinstance(atom.value, int) else {}
        return self.sums.get(atom.name, {atom.name: 1})

    def known(self, read: f.Op) -> bool:
        """Notes what a read reaches; False if that is not known before the nest."""
        array, *at = read.args
        if not isinstance(array, f.Var) or not self.outside(array):
            return False
        found = [self.reach(array, k, i) for k, i in enumerate(at[: len(at) - read.attr("sure", 0)])]
        self.reaches.update((reach, None) for reach in found if reach is not None)
        return None not in found

    def reach(self, array: f.Var, k: int, index: f.Atom) -> Reach | None:
        if isinstance(index, f.Var) and self.outside(index):
            return Reach(array, k, 0, (), index)
        total = self.sum(index)
        if not all((term == ONE or term in self.counts) and 0 <= n < LARGEST for term, n in total.items()):
            return None
        parts = tuple([(self.counts[term], n) for term, n in total.items() if term != ONE])
        return Reach(array, k, total.get(ONE, 0), parts, None)

    # ---- the checks

    def binds(self, supply: f.Supply, bind: f.Bind) -> Iterator[f.Bind]:
        """The checks of a nest, and then the nest without them."""
        assert isinstance(bind.rhs, f.Par)
        b = Builder(supply)
        fits: f.Atom = f.Const(True, f.BOOL)
        for reach in self.reaches:
            for one in self.conditions(b, reach):
                fits = one if isinstance(fits, f.Const) else b.op("and", (fits, one))
        rare = Copier(supply, {}).block(f.Block(loops(bind.rhs), ()))
        b.binds.append(f.Bind((), f.If(fits, f.Block((), ()), rare)))
        yield from block_of(b.binds, ()).binds
        yield f.Bind(bind.vars, with_blocks(bind.rhs, unchecked))

    def conditions(self, b: Builder, reach: Reach) -> Iterator[f.Atom]:
        """What holds if no index is out of bounds.  Each part of a sum is asked for: then the sum does not overflow."""
        length = b.op("dim", (reach.array,), k=reach.k)
        if reach.outside is not None:
            yield b.op("le", (integer(0), reach.outside))
            yield b.op("lt", (reach.outside, length))
            return
        rest = integer(reach.constant + 1 - sum(factor for _, factor in reach.parts))
        most: f.Atom | None = None
        for count, factor in reach.parts:
            if (reach.parts, reach.constant) != (((count, 1),), 0):
                yield b.op("le", (count, length))
            part = count if factor == 1 else b.op("mul", (count, integer(factor)))
            most = part if most is None else b.op("add", (most, part))
        yield b.op("le", (rest if most is None else most if rest == integer(0) else b.op("add", (most, rest)), length))


def is_read(op: f.Op) -> bool:
    return op.op == "index" and not op.attr("unchecked")


def unchecked(block: f.Block) -> f.Block:
    """The block without checks."""
    binds = []
    for bind in block.binds:
        match bind.rhs:
            case f.Op() as op if is_read(op):
                rhs = replace(op, attrs=(*[a for a in op.attrs if a[0] != "unchecked"], ("unchecked", HERE)))
            case rhs:
                rhs = with_blocks(rhs, unchecked)
        binds.append(bind if rhs is bind.rhs else f.Bind(bind.vars, rhs))
    return f.Block(tuple(binds), block.results)


# ---- the part of a nest that can fail


def loops(par: f.Par) -> tuple[f.Bind, ...]:
    """The part of a Par that can fail, as loops in order."""
    binds = failing(par.body)
    for index, count in reversed(par.space):
        binds = (f.Bind((), f.For(index, count, (), (), f.Block(binds, ()))),)
    return binds


def failing(block: f.Block) -> tuple[f.Bind, ...]:
    """The bindings of a block that can fail, with what they need."""
    needed, kept = set[str](), list[f.Bind]()
    for bind in reversed(block.binds):
        if not any(var.name in needed for var in bind.vars):
            if not can_fail(bind.rhs):
                continue
            match bind.rhs:
                case f.Par() as par:
                    (bind,) = loops(par)
                case f.If(cond, then, else_):
                    bind = f.Bind((), f.If(cond, f.Block(failing(then), ()), f.Block(failing(else_), ())))
                case _:
                    pass
        kept.append(bind)
        needed.update(names(used(f.Block((bind,), ()))))
    return tuple(reversed(kept))


def can_fail(rhs: f.Rhs) -> bool:
    """True if there is a check in a right-hand side."""
    inside = (rhs, *(bind.rhs for block in blocks(rhs) for bind in every(block)))
    return any(isinstance(one, f.Op) and OPS[one.op].fails is Fails.BOUNDS and not droppable(one) for one in inside)
