"""Running sums, and other scans, on a device: loops that combine a number with one more at each step, and keep it.

    for i < n state (s = a, out = o) {         done, xs = par i < n to done, keep { x }
      t = add s x                        =>    starts = s before steps 0, 128, 256, ...         (`scan_tiles.py`)
      u = update out t (i + 1)                 out' = par p to keep { s = starts[i / 128]; for the steps of its tile
      yield t, u }                                                    up to i: s = add s xs[j]; yield s }

The numbers are those of the loop to the last bit: each point adds in the loop's order, from the start of its tile on,
and the starts are exact.  If no device does the first Par, the loop remains.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.types import elem_of
from dplc.flat.walk import every, mentions, supply_for, with_binds, with_body, with_inner
from dplc.passes.device.array_sums import called_by_points
from dplc.passes.device.kernels import Devices
from dplc.passes.device.last_writes import LastWrites, writes_of
from dplc.passes.device.scan_loops import Scan, scan_of
from dplc.passes.device.scan_tiles import Tiles
from dplc.passes.device.selections import CountThenFill, selection_of
from dplc.passes.device.tiled_scan import TiledScan


def scans(program: f.Program) -> f.Program:
    """The program, in which devices do such loops of the host."""
    apart, devices = called_by_points(program), Devices(program)
    supply = supply_for(program)
    tiles = Tiles(supply)
    made = program.copy()
    for name, fn in program.fns.items():
        if name not in apart:
            made.fns[name] = _function(fn, devices, tiles)
    made.fns |= tiles.fns
    return made


def _function(fn: f.Fn, devices: Devices, tiles: Tiles) -> f.Fn:
    """A function.  Elements of arrays that are only used in loops of the host are read there."""
    elements = {bind.vars[0].name: bind.rhs for bind in every(fn.body)
                if isinstance(bind.rhs, f.Op) and bind.rhs.op == "index" and bind.rhs.attr("unchecked")}  # fmt: skip
    walk = _Walk(devices, tiles, elements)
    body = walk.block(fn.body)
    return with_body(fn, without(body, walk.moved.difference(mentions(body))) if walk.moved else body)


def without(block: f.Block, gone: set[str]) -> f.Block:
    """The block without the bindings of some variables."""
    kept = [with_inner(bind, lambda inner: without(inner, gone)) for bind in block.binds
            if not (bind.vars and bind.vars[0].name in gone)]  # fmt: skip
    return with_binds(block, kept)


class _Walk:
    """A walk through the blocks of a function that the host runs.  `elements` are reads of arrays, `moved` those that
    loops do now themselves."""

    def __init__(self, devices: Devices, tiles: Tiles, elements: dict[str, f.Op]) -> None:
        self.devices, self.tiles, self.elements = devices, tiles, elements
        self.moved: set[str] = set()

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            if isinstance(bind.rhs, f.For) and (found := self.loop(bind, bind.rhs)):
                binds += found
            else:
                binds.append(bind if isinstance(bind.rhs, f.Par) else with_inner(bind, self.block))
        return with_binds(block, binds)

    def loop(self, bind: f.Bind, loop: f.For) -> list[f.Bind]:
        """What comes in place of a loop; nothing if it stays."""
        if scan := scan_of(loop):
            return self.scan(bind, scan)
        if selection := selection_of(loop):
            return CountThenFill(selection, self.tiles).binds(bind, self.devices)
        writes = writes_of(loop)
        return LastWrites(writes, self.tiles).binds(bind, self.devices) if writes else []

    def scan(self, bind: f.Bind, scan: Scan) -> list[f.Bind]:
        """What comes in place of a loop; nothing if a device cannot do it."""
        read = {number.start.name: self.elements[number.start.name] for number in scan.numbers
                if isinstance(number.start, f.Var) and number.start.name in self.elements}  # fmt: skip
        numbers = tuple([replace(number, start=read.get(number.start.name, number.start))
                         if isinstance(number.start, f.Var) else number for number in scan.numbers])  # fmt: skip
        copier = Copier(self.tiles.supply, {})
        before = copier.binds(tuple([f.Bind((f.Var(name, elem_of(op.args[0].ty)),), op) for name, op in read.items()]))
        here = [*before, f.Bind(bind.vars, replace(scan.loop, inits=copier.operands(scan.loop.inits)))]
        found = TiledScan(replace(scan, numbers=numbers), self.tiles).binds(here, self.devices)
        if found:
            self.moved.update(read)
        return found
