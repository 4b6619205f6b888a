"""Rows of its state that a loop reads, and does not add to, are read before the loop.

    c' = for j < m state (s = c) {                y = build j < m { x = index c i j; yield x }
      x = index s i j                             c' = for j < m state (s = c) {
      ...                                 =>        x = index y j
      s' = acc_index s v n m k j                    ...
      yield s' }              i is not k            s' = acc_index s v n m k j
                                                    yield s' }

The loop only adds to its state then, so its steps have no order.  Elimination of rows has such loops in its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import Affine, Sum, combined
from dplc.flat.conditions import Conditions
from dplc.flat.copy import Copier
from dplc.flat.dims import dims_of
from dplc.flat.types import rank_of
from dplc.flat.walk import every, mentions, names, needed, rhs_mentions, with_binds, with_blocks, with_rhs
from dplc.narrow import expect_type
from dplc.passes.parallel.forwards import upwards
from dplc.passes.simplify.purity import droppable


def other_rows(body: f.Block, supply: f.Supply) -> f.Block:
    """The body of a function, with such rows read before its loops."""
    if not any(isinstance(bind.rhs, f.For) and reads_and_adds(bind.rhs) for bind in every(body)):
        return body
    return _Rows(Affine(dims_of(body)), supply).block(body)


def reads_and_adds(loop: f.For) -> bool:
    """True if steps add to matrices and read of them, and cannot fail: nothing else says that a read is in bounds."""
    found = {bind.rhs.op for bind in loop.body.binds if isinstance(bind.rhs, f.Op)}
    both = {"index", "acc_index"} <= found and any(rank_of(s.ty) > 1 for s in loop.state)
    return both and all(droppable(bind.rhs) for bind in loop.body.binds)


@node
class Reads:
    """The reads of a state of a loop, all of one row that is not added to."""

    number: int
    row: tuple[f.Atom, ...]
    binds: tuple[f.Bind, ...]


class _Rows:
    """One function; `unlike` are sums that are not 0 here."""

    def __init__(self, affine: Affine, supply: f.Supply) -> None:
        self.affine, self.supply = affine, supply
        self.conditions = Conditions(affine)
        self.unlike: list[Sum] = []

    def block(self, block: f.Block) -> f.Block:
        return with_binds(block, [made for bind in block.binds for made in self.bind(bind)])

    def bind(self, bind: f.Bind) -> Sequence[f.Bind]:
        self.conditions.define(bind)
        self.affine.define(bind)
        self.affine.loops(bind.rhs)
        match bind.rhs:
            case f.For() as loop:
                bind = with_rhs(bind, with_blocks(loop, self.block))
                return self.loop(bind, expect_type(f.For, bind.rhs)) if reads_and_adds(loop) else [bind]
            case f.If() as branch:
                return [with_rhs(bind, self.conditions.branches(branch, lambda arm: self.arm(branch, arm)))]
            case _:
                pass
        return [with_rhs(bind, with_blocks(bind.rhs, self.block))]

    def arm(self, branch: f.If, arm: f.Block) -> f.Block:
        """A block of a branch on whether two numbers are equal."""
        asked = self.conditions.defined.get(branch.cond.name, (None, 0))[0] if isinstance(branch.cond, f.Var) else None
        before = self.unlike
        match asked:
            case f.Op("eq" | "ne" as name, (a, b)) if a.ty == f.I64 and (name == "ne") == (arm is branch.then):
                self.unlike = [*before, self.difference(a, b)]
            case _:
                pass
        done = self.block(arm)
        self.unlike = before
        return done

    def difference(self, a: f.Atom, b: f.Atom) -> Sum:
        return combined(self.affine.sum(a), self.affine.sum(b), -1)

    def differ(self, a: f.Atom, b: f.Atom) -> bool:
        """True if two numbers are known not to be equal."""
        known = self.difference(a, b) in self.unlike or self.difference(b, a) in self.unlike
        return known or self.affine.differ(a, b)

    def loop(self, bind: f.Bind, loop: f.For) -> list[f.Bind]:
        before: list[f.Bind] = []
        for number in range(len(loop.state)):
            reads = self.reads(loop, number)
            if reads is not None:
                loop = self.read_before(before, loop, reads)
        return [*before, with_rhs(bind, loop)]

    def reads(self, loop: f.For, number: int) -> Reads | None:
        """The reads of a state; None if it has none, or if something else is done with it."""
        rank, chain = rank_of(loop.state[number].ty), {loop.state[number].name}
        bound = {loop.index.name, *(var.name for one in every(loop.body) for var in one.vars)}
        found, added = list[f.Bind](), list[tuple[f.Atom, ...]]()
        for bind in loop.body.binds:
            if chain.isdisjoint(rhs_mentions(bind.rhs)):
                continue
            match bind.rhs:
                case f.Op("index", (array, *at)) as op if len(at) == rank and op.attr("unchecked") is True:
                    if array != loop.state[number]:
                        return None  # before the loop there may be no array yet
                    found.append(bind)
                case f.Op("acc_index", (f.Var(), added_to, *rest)) if chain.isdisjoint(names((added_to,))):
                    added.append(tuple(rest[rank:]))
                    chain.add(bind.vars[0].name)
                case _:
                    return None
        rows = {tuple(names_or_values(bind.rhs.args[1:-1])): bind.rhs.args[1:-1]
                for bind in found if isinstance(bind.rhs, f.Op)}  # fmt: skip
        result = loop.body.results[number]
        if len(rows) != 1 or not added or not isinstance(result, f.Var) or result.name not in chain:
            return None
        others = [x for k, x in enumerate(loop.body.results) if k != number]
        (row,) = rows.values()
        apart = all(any(map(self.differ, row, places)) for places in added)
        if not apart or not bound.isdisjoint(names(row)) or not chain.isdisjoint(mentions(f.Block((), tuple(others)))):
            return None
        return Reads(number, row, tuple(found))

    def read_before(self, before: list[f.Bind], loop: f.For, reads: Reads) -> f.For:
        """The loop, with the numbers that it reads read before it: if it has steps, as the row may not be there."""
        instead: dict[int, f.Bind] = {}
        for read in reads.binds:
            assert isinstance(read.rhs, f.Op)
            place = read.rhs.args[-1]
            counting = upwards(loop, self.affine)  # so that what lies side by side is read so
            code = self.code_of(counting, place)
            if code is None:
                return loop
            if counting.index.name not in mentions(f.Block(tuple(code), (place,))):
                counting = loop
            copier = Copier(self.supply, {})
            index = copier.var(counting.index)
            binds = copier.binds(tuple(code))
            number = f.Var(self.supply.fresh("x"), read.vars[0].ty)
            there = replace(read.rhs, args=(loop.inits[reads.number], *reads.row, copier.atom(place)))
            body = f.Block((*binds, f.Bind((number,), there)), (number,))
            row, made = (f.Var(self.supply.fresh("row"), f.Arr(read.vars[0].ty, 1)) for _ in range(2))
            steps = f.Var(self.supply.fresh("lt"), f.BOOL)
            some = f.Block((f.Bind((made,), f.Build(index, loop.count, body)),), (made,))
            before.append(f.Bind((steps,), f.Op("lt", (f.Const(0, f.I64), loop.count))))
            before.append(f.Bind((row,), f.If(steps, some, f.Block((), (f.Const(None, row.ty),)))))
            instead[id(read)] = with_rhs(read, replace(read.rhs, args=(row, counting.index)))
        return replace(loop, body=with_binds(loop.body, [instead.get(id(bind), bind) for bind in loop.body.binds]))

    def code_of(self, loop: f.For, place: f.Atom) -> list[f.Bind] | None:
        """The bindings of a step that compute a place; None if that is more than arithmetic."""
        code = needed(loop.body.binds, names((place,)))
        if not all(isinstance(bind.rhs, f.Op) and droppable(bind.rhs) for bind in code):
            return None
        states = {state.name for state in loop.state}
        return code if states.isdisjoint(mentions(f.Block(tuple(code), (place,)))) else None


def names_or_values(atoms: Sequence[f.Atom]) -> list[object]:
    return [atom.name if isinstance(atom, f.Var) else atom.value for atom in atoms]
