"""Loops of the host that write where an array tells, as `scatter` does, and their derivatives: on a device each place
finds out which step was the last that wrote there.

    for k < m state (s = a) {         done, last = par k < m to done, last n { i = at[k]; yield true, i }
      i = index at k                  s' = par p < n to keep { if last[p] then v of step last[p] - 1 else a[p] }
      s' = update s v i         =>
      yield s' }

A step may read the place before it writes the same number there as all others, as a backward sweep does.  It reads
what was there before the loop, if it is the first to come to that place.  Then the steps are numbered from the last one
on, so the last of all is the first of the loop.  What steps keep of that goes into arrays, at places of their own.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.types import rank_of
from dplc.flat.walk import mentions, names, needed, rhs_mentions
from dplc.narrow import expect_type
from dplc.passes.device.kernels import Devices
from dplc.passes.device.scan_loops import Change, Places, Scan, Straight
from dplc.passes.device.scan_tiles import Tiles
from dplc.passes.device.tiled_scan import TiledScan, left_alone, unless, unless_done
from dplc.passes.simplify.purity import droppable


@node
class Writes:
    """A loop that writes into an array by `update`, at a place that an array tells.  `reads` are its elements there
    before; `scan` has the rest of the loop, what it does to other arrays."""

    state: f.Var
    init: f.Atom
    update: f.Op
    reads: tuple[f.Var, ...]
    scan: Scan

    @property
    def value(self) -> f.Atom:
        return self.update.args[1]

    @property
    def place(self) -> f.Atom:
        return self.update.args[2]


def writes_of(loop: f.For) -> Writes | None:
    """The loop as one that writes; None if it is none."""
    arrays = {var.name: init for var, init in zip(loop.state, loop.inits, strict=True)}
    if loop.collect or not arrays or not all(isinstance(var.ty, f.Arr) for var in loop.state):
        return None
    straight = Straight(arrays)
    binds = straight.block(loop.body)
    body = f.Block(tuple(binds), straight.renamed.operands(loop.body.results))
    made = {bind.vars[0].name: bind for bind in binds if len(bind.vars) == 1}
    places, changes, told = Places(loop, body, made), list[Change](), list[tuple[f.Var, f.Op]]()
    for state, init, result in zip(loop.state, loop.inits, body.results, strict=True):
        if change := places.change(state, init, result):
            changes.append(change)
        elif op := _told(places.bind(result), state):
            told.append((state, op))
    if len(told) != 1 or len(changes) + 1 != len(loop.state):
        return None
    ((state, update),) = told
    done = {id(update), *(id(change.op) for change in changes)}
    rest = [bind for bind in binds if id(bind.rhs) not in done]
    reads = tuple([bind.vars[0] for bind in rest if _reads(bind.rhs, state, update.args[2])])
    uses = Counter(mentions(body))
    if (reads and not isinstance(update.args[1], f.Const)) or uses[state.name] != 1 + len(reads):
        return None
    others = {change.state.name for change in changes}
    if any(name in others for bind in rest for name in rhs_mentions(bind.rhs)):
        return None
    written = needed(rest, names(update.args[1:]))
    if any(state.name in rhs_mentions(bind.rhs) for bind in written):
        return None
    doubtful = tuple([init for name in straight.doubtful if isinstance(init := arrays[name], f.Var)])
    if not all(droppable(bind.rhs) for bind in rest) or len(doubtful) < len(straight.doubtful):
        return None
    return Writes(state, arrays[state.name], update, reads, Scan(loop, (), tuple(rest), tuple(changes), doubtful))


def _told(bind: f.Bind | None, state: f.Var) -> f.Op | None:
    """The update of an array at one index, by a number or a row of another array."""
    match bind and bind.rhs:
        case f.Op("update", (f.Var(name), value, f.Var())) as op if name == state.name:
            return op if rank_of(value.ty) == rank_of(state.ty) - 1 and isinstance(state.ty, f.Arr) and isinstance(
                state.ty.elem, f.Num) else None  # fmt: skip
        case _:
            return None


def _reads(rhs: f.Rhs, array: f.Var, place: f.Atom) -> bool:
    return isinstance(rhs, f.Op) and rhs.op == "index" and bool(rhs.attr("unchecked")) and rhs.args == (array, place)


class LastWrites:
    """Such a loop as Pars."""

    def __init__(self, writes: Writes, tiles: Tiles) -> None:
        self.writes, self.scan, self.tiles = writes, writes.scan, tiles
        self.b = Builder(tiles.supply)
        self.b.span = writes.update.span

    def binds(self, bind: f.Bind, devices: Devices) -> list[f.Bind]:
        """The bindings in place of the loop; none if a device cannot do them."""
        b, writes, scan = self.b, self.writes, self.scan
        row = self.row()
        if row is None:
            return []
        tests = left_alone(b, scan)
        for k in range(rank_of(writes.value.ty)):
            lengths = b.op("dim", (writes.init,), k=k + 1), b.op("dim", row.args[:1], k=len(row.args) - 1 + k)
            tests.append(b.op("ne", lengths))
        length = b.op("dim", (writes.init,), k=0)
        last = self.last(length)
        if devices.why_not(last):
            return []
        done, steps = unless(b, tests, last, (f.BOOL, f.Arr(f.I64, 1)))
        with b.inside() as inner:
            made = {writes.state.name: self.array(steps, length, row)}
            written = TiledScan(replace(scan, binds=tuple(self.reading(steps))), self.tiles)
            written.b = b
            made |= {change.state.name: written.changed(change, {}) for change in scan.changes}
            there = block_of(inner, [made[var.name] for var in scan.loop.state])
        return unless_done(b, done, there, [bind], devices)

    def row(self) -> f.Op | None:
        """The read of a row that a step writes; any operation if it writes a number, None if it is something else."""
        value = self.writes.value
        if not rank_of(value.ty):
            return self.writes.update
        found = next((bind.rhs for bind in self.scan.binds if value in bind.vars), None)
        return found if isinstance(found, f.Op) and found.op == "index" and found.attr("unchecked") else None

    def step(self, b: Builder, number: f.Atom) -> f.Atom:
        """The step of the loop that has a number of the Par: from the last one on if places are read."""
        if not self.writes.reads:
            return number
        return b.op("sub", (b.op("sub", (self.scan.loop.count, integer(1))), number))

    def last(self, length: f.Var) -> f.Par:
        """The Par that finds out for each place who is the last."""
        b, k = self.b, self.b.var("k", f.I64)
        with b.inside() as points:
            copier = Copier(self.tiles.supply, {self.scan.loop.index.name: self.step(b, k)})
            b.binds += copier.binds(tuple(needed(self.scan.binds, names((self.writes.place,)))))
            place = copier.atom(self.writes.place)
            if not self.writes.update.attr("unchecked"):
                b.effect("check_index", (place, length), after=0)
            body = block_of(points, (f.Const(True, f.BOOL), place))
        return f.Par(((k, self.scan.loop.count),), body, (f.Out("done"), f.Out("last", inner=(length,))), b.span)

    def array(self, steps: f.Var, length: f.Var, row: f.Op) -> f.Var:
        """The array after the loop."""
        b, writes, ty = self.b, self.writes, self.writes.state.ty
        space = [(b.var("p", f.I64), length)]
        space += [(b.var("q", f.I64), b.op("dim", (writes.init,), k=k)) for k in range(1, rank_of(ty))]
        at = [i for i, _ in space]
        with b.inside() as points:
            number = b.op("index", (steps, at[0]), unchecked=True)
            hit = b.op("gt", (number, integer(0)))
            with b.inside() as arm:
                step = self.step(b, b.op("sub", (number, integer(1))))
                copier = Copier(self.tiles.supply, {self.scan.loop.index.name: step})
                wanted = row.args if len(at) > 1 else (writes.value,)
                b.binds += copier.binds(tuple(needed(self.scan.binds, names(wanted))))
                value = copier.atom(writes.value)
                if len(at) > 1:
                    value = b.op("index", (*copier.operands(row.args), *at[1:]), unchecked=True)
                then = block_of(arm, (value,))
            with b.inside() as arm:
                old = b.op("index", (writes.init, *at), unchecked=True)
                else_ = block_of(arm, (old,))
            body = block_of(points, (b.one(f.If(hit, then, else_), old.ty, "new"),))
        return b.one(f.Par(tuple(space), body, (f.Out("keep"),), b.span), ty, "written")

    def reading(self, steps: f.Var) -> list[f.Bind]:
        """The bindings of a step.  What is read at a place is there if the step is the first of the loop that comes."""
        writes, made = self.writes, list[f.Bind]()
        for bind in self.scan.binds:
            if bind.vars[0] not in writes.reads:
                made.append(bind)
                continue
            b, op = Builder(self.tiles.supply), expect_type(f.Op, bind.rhs)
            number = b.op("index", (steps, writes.place), unchecked=True)
            first = b.op("eq", (b.op("sub", (self.scan.loop.count, number)), self.scan.loop.index))
            value = b.op("index", (writes.init, writes.place), unchecked=True)
            chosen = f.Op("select", (first, value, writes.value), (), op.span)
            made += [*block_of(b.binds, ()).binds, f.Bind(bind.vars, chosen)]
        return made
