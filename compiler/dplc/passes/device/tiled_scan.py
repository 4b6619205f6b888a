"""A scan as Pars: the terms of all steps, the numbers at which tiles of steps start, and each array after the loop.

The shape is in `scans.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.types import nothing
from dplc.flat.walk import names, needed
from dplc.passes.device.kernels import Devices
from dplc.passes.device.scan_loops import Change, Scan, names_for
from dplc.passes.device.scan_tiles import Tiles


class TiledScan:
    """A scan as Pars."""

    def __init__(self, scan: Scan, tiles: Tiles) -> None:
        self.scan, self.tiles = scan, tiles
        self.b = Builder(tiles.supply)
        self.b.span = next((bind.rhs.span for bind in scan.binds if isinstance(bind.rhs, f.Op)), f.NOWHERE)

    def binds(self, loop: list[f.Bind], devices: Devices) -> list[f.Bind]:
        """The bindings in place of those of the loop; none if a device cannot do them."""
        b = self.b
        terms = self.terms()
        if devices.why_not(terms):
            return []
        types = (f.BOOL, *[f.Arr(number.state.ty, 1) for number in self.scan.numbers])
        done, *xs = unless(b, left_alone(b, self.scan), terms, types)
        with b.inside() as inner:
            results = self.results(xs)
            there = block_of(inner, results)
        return unless_done(b, done, there, loop, devices)

    def terms(self) -> f.Par:
        """What the steps combine with the numbers."""
        scan, i = self.scan, self.b.var("i", f.I64)
        copier = Copier(self.tiles.supply, {scan.loop.index.name: i})
        terms = [number.term for number in scan.numbers]
        binds = copier.binds(tuple(needed(scan.binds, names(terms))))
        body = f.Block(binds, (f.Const(True, f.BOOL), *map(copier.atom, terms)))
        outs = (f.Out("done"), *[f.Out("keep") for _ in terms])
        return f.Par(((i, scan.loop.count),), body, outs, self.b.span)

    def results(self, xs: list[f.Var]) -> list[f.Atom]:
        """The state after the loop, by what the device does."""
        scan, found, made = self.scan, dict[str, tuple[f.Var, f.Var]](), dict[str, f.Atom]()
        for number, terms in zip(scan.numbers, xs, strict=True):
            starts, last = self.tiles.starts(self.b, number.op, terms, scan.loop.count, number.start)
            found[number.state.name], made[number.state.name] = (terms, starts), last
        made |= {change.state.name: self.changed(change, found) for change in scan.changes}
        return [made[var.name] for var in scan.loop.state]

    def changed(self, change: Change, found: dict[str, tuple[f.Var, f.Var]]) -> f.Var:
        """An array after the loop, by the terms of each number, and those at which its tiles start."""
        b, scan, op = self.b, self.scan, change.op
        copier = Copier(self.tiles.supply, {scan.loop.index.name: integer(0)})
        b.binds += copier.binds(tuple(needed(scan.binds, names(op.args[2:]))))
        *length, first = map(copier.atom, op.args[2:])
        none, p = isinstance(change.init, f.Const), b.var("p", f.I64)
        before = b.op("acc_zeros", (change.init, *length)) if length and not none else change.init
        count = length[0] if none else b.op("dim", (before,), k=0)
        with b.inside() as points:
            old = nothing(change.value.ty) if none else b.op("index", (before, p), unchecked=True)
            step = b.op("sub", (first, p) if change.down else (p, first))
            inside = b.op("and", (b.op("ge", (step, integer(0))), b.op("lt", (step, scan.loop.count))))
            with b.inside() as arm:
                value = self.value(change, found, step)
                if length:
                    value = b.op("add", (old, value))
                then = block_of(arm, (value,))
            new = b.one(f.If(inside, then, f.Block((), (old,))), value.ty, "new")
            body = block_of(points, (new,))
        return b.one(f.Par(((p, count),), body, (f.Out("keep"),), b.span), f.Arr(value.ty, 1), "changed")

    def value(self, change: Change, found: dict[str, tuple[f.Var, f.Var]], step: f.Var) -> f.Atom:
        """What a step puts into an array, by its number."""
        b, scan = self.b, self.scan
        used = names_for(change.value, scan.binds)
        known: dict[str, f.Atom] = {scan.loop.index.name: step}
        for number in scan.numbers:
            if used & {number.state.name, number.after.name}:
                xs, starts = found[number.state.name]
                state = self.tiles.before(b, number.op, xs, starts, step)
                known[number.state.name] = state
                known[number.after.name] = b.op(number.op, (state, b.op("index", (xs, step), unchecked=True)))
        ends = {number.after for number in scan.numbers}
        copier = Copier(self.tiles.supply, known)
        b.binds += copier.binds(tuple(needed([x for x in scan.binds if x.vars[0] not in ends], names([change.value]))))
        return copier.atom(change.value)


def left_alone(b: Builder, scan: Scan) -> list[f.Var]:
    """Tests whether a loop is left alone: it has no steps, or arrays are null."""
    tests = [b.op("is_null", (array,)) for array in scan.doubtful]
    if not isinstance(scan.loop.count, f.Const):
        tests.append(b.op("le", (scan.loop.count, integer(0))))
    return tests


def unless(b: Builder, tests: list[f.Var], par: f.Par, types: Sequence[f.Type]) -> tuple[f.Var, ...]:
    """What a Par gives, which tells whether a device has done it; nothing, if one of the tests is true."""
    if not tests:
        return b.bind(par, types, "terms")
    left = tests[0]
    for test in tests[1:]:
        left = b.op("or", (left, test))
    own = tuple([b.var("terms", ty) for ty in types])
    nothing_ = f.Block((), tuple(map(nothing, types)))
    return b.bind(f.If(left, nothing_, f.Block((f.Bind(own, par),), own)), types, "terms")


def unless_done(
    b: Builder, done: f.Atom, there: f.Block, loop: Sequence[f.Bind], devices: Devices
) -> list[f.Bind]:  # fmt: skip
    """What has been built, and in place of a loop, which gives the results of the last binding, what is `there` if a
    device has done it; none if a device cannot do that."""
    *before, last = loop
    own = tuple([b.var(var.name, var.ty) for var in last.vars])
    here = f.Block((*before, f.Bind(own, last.rhs)), own)
    if any(isinstance(one.rhs, f.Par) and devices.why_not(one.rhs) for one in there.binds):
        return []
    return [*block_of(b.binds, ()).binds, f.Bind(last.vars, f.If(done, there, here))]
