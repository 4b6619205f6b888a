"""Loops of the host that list the steps at which something holds, as `filter` does: a device counts, then fills.

    for i < n state (m = 0, a) {            done, flags = par i < n to done, keep { c; yield if c then 1 else 0 }
      c = ...                               counts = running sums of the flags
      m', a' = if c                   =>    m' = the last of them
        then m + 1, update a i m            a' = par p < dim a to keep in a { the first step whose count is
        else m, a                                                             more than p if p < m', else a[p] }
      yield m', a' }

A loop may also write without a branch:  a' = update a i m; m' = if c then m + 1 else m.  Then each step is written at
the end of the list, and the last one stays behind the list even if it is not listed.  The numbers of the list are
whole, so they are the same in any order.  Without a device the loop remains.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.walk import mentions, rhs_mentions
from dplc.passes.device.kernels import Devices
from dplc.passes.device.merge_sort import bisect
from dplc.passes.device.scan_tiles import Tiles
from dplc.passes.device.tiled_scan import unless, unless_done
from dplc.passes.simplify.purity import droppable

PLACES = f.Arr(f.I64, 1)


@node
class Selection:
    """Such a loop: `binds` compute the condition, `count` and `places` are the numbers of its state variables.  In one
    that `trails`, the last step stays behind the list."""

    loop: f.For
    binds: tuple[f.Bind, ...]
    cond: f.Atom
    count: int
    places: int
    trails: bool


def selection_of(loop: f.For) -> Selection | None:
    """The loop as a selection; None if it is none."""
    types = [var.ty for var in loop.state]
    if sorted(map(str, types)) != sorted(map(str, (f.I64, PLACES))) or loop.collect:
        return None
    count, places = types.index(f.I64), types.index(PLACES)
    found = _in_a_branch(loop, count, places) or _always(loop, count, places)
    if not found or loop.inits[count] != integer(0):
        return None
    names = {var.name for var in loop.state}
    if any(names.intersection(rhs_mentions(bind.rhs)) or not droppable(bind.rhs) for bind in found.binds):
        return None
    return found


def _in_a_branch(loop: f.For, count: int, places: int) -> Selection | None:
    """A loop that puts those steps at the end of the list at which the condition holds."""
    if not loop.body.binds:
        return None
    *rest, last = loop.body.binds
    if not isinstance(last.rhs, f.If) or last.vars != loop.body.results:
        return None
    then = last.rhs.then
    if last.rhs.else_ != f.Block((), tuple(loop.state)):
        return None
    made: dict[f.Atom, f.Rhs] = {bind.vars[0]: bind.rhs for bind in then.binds if len(bind.vars) == 1}
    more, listed = (made.get(then.results[k]) for k in (count, places))
    one = Counter(mentions(then))[loop.state[places].name] == 1
    right = len(then.binds) == 2 and one and _counts(loop, more, count) and _lists(loop, listed, count, places)
    return Selection(loop, tuple(rest), last.rhs.cond, count, places, False) if right else None


def _always(loop: f.For, count: int, places: int) -> Selection | None:
    """A loop that puts each step at the end of the list, and counts those at which the condition holds."""
    rest = loop.body.binds[:-2]
    made: dict[f.Atom, f.Rhs] = {bind.vars[0]: bind.rhs for bind in loop.body.binds[-2:] if len(bind.vars) == 1}
    counted, listed = (made.get(loop.body.results[k]) for k in (count, places))
    if not isinstance(counted, f.If) or not _lists(loop, listed, count, places):
        return None
    binds, (result,) = counted.then.binds, counted.then.results
    adds = len(binds) == 1 and binds[0].vars == (result,) and _counts(loop, binds[0].rhs, count)
    right = adds and counted.else_ == f.Block((), (loop.state[count],))
    return Selection(loop, rest, counted.cond, count, places, True) if right else None


def _counts(loop: f.For, rhs: f.Rhs | None, count: int) -> bool:
    return isinstance(rhs, f.Op) and rhs.op == "add" and rhs.args == (loop.state[count], integer(1))


def _lists(loop: f.For, rhs: f.Rhs | None, count: int, places: int) -> bool:
    """True if the step is put at the end of the list."""
    end = (loop.state[places], loop.index, loop.state[count])
    return isinstance(rhs, f.Op) and rhs.op == "update" and rhs.args == end


class CountThenFill:
    """Such a loop as Pars."""

    def __init__(self, selection: Selection, tiles: Tiles) -> None:
        self.selection, self.tiles = selection, tiles
        self.b = Builder(tiles.supply)
        self.b.span = next((bind.rhs.span for bind in selection.binds if isinstance(bind.rhs, f.Op)), f.NOWHERE)

    def binds(self, bind: f.Bind, devices: Devices) -> list[f.Bind]:
        """The bindings in place of the loop; none if a device cannot do them."""
        b, loop = self.b, self.selection.loop
        places = loop.inits[self.selection.places]
        flags = self.flags()
        if not isinstance(places, f.Var) or devices.why_not(flags):
            return []
        tests = [b.op("is_null", (places,)), b.op("ne", (b.op("dim", (places,), k=0), loop.count))]
        if not isinstance(loop.count, f.Const):
            tests.append(b.op("le", (loop.count, integer(0))))
        done, xs = unless(b, tests, flags, (f.BOOL, PLACES))
        with b.inside() as inner:
            starts, total = self.tiles.starts(b, "add", xs, loop.count, integer(0))
            results = {self.selection.count: total, self.selection.places: self.filled(xs, starts, total, places)}
            there = block_of(inner, [results[k] for k in range(2)])
        return unless_done(b, done, there, [bind], devices)

    def flags(self) -> f.Par:
        """1 for the steps that are listed, else 0."""
        b, selection, i = self.b, self.selection, self.b.var("i", f.I64)
        with b.inside() as points:
            copier = Copier(self.tiles.supply, {selection.loop.index.name: i})
            b.binds += copier.binds(selection.binds)
            flag = b.op("cast", (copier.atom(selection.cond),), to="i64")
            body = block_of(points, (f.Const(True, f.BOOL), flag))
        return f.Par(((i, selection.loop.count),), body, (f.Out("done"), f.Out("keep")), b.span)

    def filled(self, flags: f.Var, starts: f.Var, total: f.Var, places: f.Var) -> f.Var:
        """The list, after which the array is as it was."""
        b, n = self.b, self.selection.loop.count
        i, p = b.var("i", f.I64), b.var("p", f.I64)
        with b.inside() as points:
            before = self.tiles.before(b, "add", flags, starts, i)
            count = b.op("add", (before, b.op("index", (flags, i), unchecked=True)))
            body = block_of(points, (count,))
        counts = b.one(f.Par(((i, n),), body, (f.Out("keep"),), b.span), PLACES, "counts")
        with b.inside() as points:
            with b.inside() as arm:
                step = bisect(b, integer(0), n, lambda k: b.op("le", (b.op("index", (counts, k), unchecked=True), p)))
                then = block_of(arm, (step,))
            with b.inside() as arm:
                else_ = block_of(arm, (self.behind(flags, total, places, p),))
            place = b.one(f.If(b.op("lt", (p, total)), then, else_), f.I64, "place")
            body = block_of(points, (place,))
        return b.one(f.Par(((p, n),), body, (f.Out("keep", target=places),), b.span), PLACES, "places")

    def behind(self, flags: f.Var, total: f.Var, places: f.Var, p: f.Var) -> f.Atom:
        """What stands at a place that is not of the list."""
        b, loop = self.b, self.selection.loop
        before = b.op("index", (places, p), unchecked=True)
        if not self.selection.trails:
            return before
        last = b.op("sub", (loop.count, integer(1)))
        is_listed = b.op("ne", (b.op("index", (flags, last), unchecked=True), integer(0)))
        moved = b.op("or", (b.op("ne", (p, total)), is_listed))
        return b.one(f.If(moved, f.Block((), (before,)), f.Block((), (last,))), f.I64, "place")
