"""Final elements: what a loop reads of an array that it updates, at places that no later step updates.

    u' = for k < n state (u = a)                              backward code reads index u' k j, in place of
      u'' = for i < n - k - 1 state (v = u)                   keeping x for each step
        x = index v k j;  y = update v (...) (k + 1 + i) j

The result of the loop has these elements, so nothing is kept for them: elimination keeps its factors only.  Such are
elements of rows and tables that are complete when they are read: substitution, factorisation in place, dynamic
programming.  An element is final if each update that comes later, in the same step or in a later one of a loop around
both, has another place: one of the indices is above or below, as sums of the loops' indices (`flat/affine.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import takewhile

from dpl.node import field, node, record, replace

from dplc.ad.reverse.store_on_kill import makes, reads_only, takes
from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, combined
from dplc.flat.dims import Dims
from dplc.flat.walk import blocks, bound_inside, every, names, rhs_mentions, with_binds, with_inner


@node
class Loop:
    index: str
    count: f.Atom


@node
class Access:
    """A part of the array that is read or updated: in which loops, the outermost first, and after how many updates in
    the text."""

    loops: tuple[Loop, ...]
    at: tuple[f.Atom, ...]
    time: int


class Unfit(Exception):
    """The array does not go one way, from update to update."""


@record
class Final:
    """The results of loops that have the elements that are read, by the names of what is read."""

    last: dict[str, f.Var] = field(default_factory=dict)

    def read_last(self, bind: f.Bind, is_there: Callable[[f.Var], bool]) -> f.Bind:
        """The binding, reading final elements where they are last."""
        if isinstance(bind.rhs, f.Op):
            array = self.last.get(bind.vars[0].name) if bind.vars else None
            if array is None or not is_there(array):
                return bind
            return f.Bind(bind.vars, replace(bind.rhs, args=(array, *bind.rhs.args[1:])))
        return with_inner(bind, lambda block: with_binds(block, [self.read_last(b, is_there) for b in block.binds]))


def final_elements(fn: f.Fn, dims: Dims) -> Final:
    """What the loops of a function read that no later step writes; empty, at once, if nothing is updated."""
    found = Final()
    if any(isinstance(bind.rhs, f.Op) and bind.rhs.op == "update" for bind in every(fn.body)):
        affine = Affine(dims)
        for bind in every(fn.body):
            affine.define(bind)
            if isinstance(bind.rhs, f.For | f.Build):
                affine.loop(bind.rhs.index, bind.rhs.count)
        Finder(affine, found).block(fn.body, True)
    return found


@record
class Finder:
    """Looks for loops whose arrays stay as the loops leave them.  Outer loops come first, as their results are kept
    once."""

    affine: Affine
    found: Final

    def block(self, block: f.Block, outermost: bool) -> None:
        own = {var.name for bind in block.binds if makes(bind.rhs) for var in bind.vars}
        for at, bind in enumerate(block.binds):
            if isinstance(bind.rhs, f.For):
                for k, init in enumerate(bind.rhs.inits):
                    var = bind.vars[k]
                    leaves = outermost or var not in block.results or (isinstance(init, f.Var) and init.name in own)
                    if leaves and is_numbers(var.ty) and stays(var, block.binds[at + 1 :]):
                        self.loop(bind.rhs, k, var)
            for inner in blocks(bind.rhs):
                self.block(inner, False)

    def loop(self, loop: f.For, k: int, result: f.Var) -> None:
        thread = Thread()
        try:
            thread.loop(loop, k, ())
        except Unfit:
            return
        inside = {var.name for var in bound_inside(loop)}
        for name, read in thread.reads.items():
            if name not in self.found.last and all(Pair(self.affine, inside, read, u).apart() for u in thread.updates):
                self.found.last[name] = result


def is_numbers(ty: f.Type) -> bool:
    return isinstance(ty, f.Arr) and isinstance(ty.elem, f.Num)


def stays(array: f.Var, later: tuple[f.Bind, ...]) -> bool:
    return all(reads_only(bind.rhs, array.name) for bind in later)


@record
class Thread:
    """One array on its way through a loop: what is read of it, and what updates it."""

    reads: dict[str, Access] = field(default_factory=dict)
    updates: list[Access] = field(default_factory=list)

    def loop(self, loop: f.For, k: int, around: tuple[Loop, ...]) -> None:
        self.block(loop.body, loop.state[k], k, (*around, Loop(loop.index.name, loop.count)))

    def block(self, block: f.Block, now: f.Var, k: int, loops: tuple[Loop, ...]) -> None:
        """Follows the array through a block.  Result number `k` of the block is this array."""
        earlier: set[str] = set()
        for bind in block.binds:
            if not earlier.isdisjoint(rhs_mentions(bind.rhs)):
                raise Unfit
            after = self.after(bind, now, loops)
            if after != now:
                earlier.add(now.name)
                now = after
        results = list(names(block.results))
        if block.results[k] != now or results.count(now.name) > 1 or not earlier.isdisjoint(results):
            raise Unfit

    def after(self, bind: f.Bind, now: f.Var, loops: tuple[Loop, ...]) -> f.Var:
        """What the array is after a binding."""
        rhs = bind.rhs
        if reads_only(rhs, now.name):
            self.reads.update(self.read(bind, now, loops))
            return now
        k = takes(rhs, now)
        once = list(rhs_mentions(rhs)).count(now.name) == 1
        match rhs:
            case f.Op("update", (_, _, *at)) if once:
                self.updates.append(Access(loops, tuple(at), len(self.updates)))
                return bind.vars[0]
            case f.For() if k is not None and once:
                self.loop(rhs, k, loops)
                return bind.vars[k]
            case f.If() if len(bind.vars) == 1:
                for arm in blocks(rhs):
                    self.block(arm, now, 0, loops)
                return bind.vars[0]
            case _:
                raise Unfit

    def read(self, bind: f.Bind, array: f.Var, loops: tuple[Loop, ...]) -> Iterator[tuple[str, Access]]:
        """The parts of the array that are read in a binding."""
        match bind.rhs:
            case f.Op("index", (whole, *at)) if whole == array:
                yield bind.vars[0].name, Access(loops, tuple(at), len(self.updates))
            case f.For(index, count) | f.Build(index, count):
                loops = (*loops, Loop(index.name, count))
            case _:
                pass
        for block in blocks(bind.rhs):
            for inner in block.binds:
                yield from self.read(inner, array, loops)


@record
class Pair:
    """A read and an update.  The names `inside` are bound in the loop of the array: they are others in each step."""

    affine: Affine
    inside: set[str]
    read: Access
    update: Access

    def apart(self) -> bool:
        """True if it is known that what the update does later has another place."""
        both = zip(self.read.loops, self.update.loops, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))
        depths = range(common + (self.update.time >= self.read.time))
        return all(self.apart_at(self.later(depth, common)) for depth in depths)

    def later(self, depth: int, common: int) -> dict[object, Sum]:
        """The indices of the update in terms of those of the read, in a later step of the loop at this depth; at the
        depth `common`, in the same step of all common loops."""
        indices: dict[object, Sum] = {}
        for at, (index, count) in enumerate([(loop.index, loop.count) for loop in self.update.loops]):
            other = f"{index}'"
            if at < depth:
                indices[index] = {index: 1}
            elif at == depth < common:
                self.affine.counts[other] = combined(self.affine.trip(count), {index: 1, ONE: 1}, -1)
                indices[index] = {index: 1, ONE: 1, other: 1}
            else:
                steps = self.affine.trip(count)
                same = depth == common or self.known(steps, indices)  # in a later step a count may be another one
                self.affine.counts[other] = substituted(steps, indices) if same else {f"{other} count": 1}
                indices[index] = {other: 1}
        return indices

    def apart_at(self, indices: dict[object, Sum]) -> bool:
        own = {loop.index for loop in self.read.loops}
        for read, update in zip(self.read.at, self.update.at, strict=False):
            here, there = self.affine.sum(read), self.affine.sum(update)
            if self.known(here, own) and self.known(there, indices.keys()):
                apart = combined(substituted(there, indices), here, -1)
                if any(self.affine.is_natural(combined({ONE: -1}, apart, sign)) for sign in (1, -1)):
                    return True
        return False

    def known(self, total: Sum, indices: Collection[object]) -> bool:
        """True if all terms are indices or do not change in the loop of the array."""
        return all(
            term in indices or (term[0] if isinstance(term, tuple) else term) not in self.inside for term in total
        )


def substituted(total: Sum, terms: dict[object, Sum]) -> Sum:
    made: Sum = {}
    for term, factor in total.items():
        made = combined(made, terms.get(term, {term: 1}), factor)
    return made
