"""Running sums, and other scans, on a device: loops that combine a number with one more at each step, and keep it.

    for i < n state (s = a, out = o) {         done, xs = par i < n to done, keep { x }
      t = add s x                        =>    starts = s before steps 0, 128, 256, ...         (`tiles.py`)
      u = update out t (i + 1)                 out' = par p to keep { s = starts[i / 128]; for the steps of its tile
      yield t, u }                                                    up to i: s = add s xs[j]; yield s }

The numbers are those of the loop to the last bit: each point adds in the loop's order, from the start of its tile on,
and the starts are exact.  If no device does the first Par, the loop remains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier, Renamed
from dplc.flat.dims import Dims
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, nothing
from dplc.flat.walk import every, mentions, names, rhs_mentions, supply_for, with_binds, with_body, with_inner
from dplc.passes.kernels.device import Devices
from dplc.passes.kernels.tiles import Tiles
from dplc.passes.kernels.totals import called_by_points
from dplc.passes.simplify.purity import droppable


@node
class Change:
    """What the steps do to one of the arrays: each puts `value` at a place of its own, or adds it there.  Step i has
    the place c + i, or c - i if it goes down; c is that of step 0."""

    state: f.Var
    init: f.Atom
    op: f.Op
    down: bool

    @property
    def value(self) -> f.Atom:
        return self.op.args[1]

    @property
    def place(self) -> f.Atom:
        return self.op.args[-1]


@node
class Number:
    """A number that the steps combine with `term`, by an operation; `after` is what this gives.  It starts as an atom,
    or as an element, which the device reads then: the host need not have the array."""

    op: str
    state: f.Var
    start: f.Atom | f.Op
    term: f.Atom
    after: f.Var


@node
class Scan:
    """A loop whose steps combine numbers and change arrays.  `binds` are those of the body without the changes of
    arrays, which are not null; `doubtful` are the arrays of which that is to be asked."""

    loop: f.For
    numbers: tuple[Number, ...]
    binds: tuple[f.Bind, ...]
    changes: tuple[Change, ...]
    doubtful: tuple[f.Var, ...]


def running(program: f.Program) -> f.Program:
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
            scan = scan_of(bind.rhs) if isinstance(bind.rhs, f.For) else None
            if scan is not None and (found := self.scan(bind, scan)):
                binds += found
            else:
                binds.append(bind if isinstance(bind.rhs, f.Par) else with_inner(bind, self.block))
        return with_binds(block, binds)

    def scan(self, bind: f.Bind, scan: Scan) -> list[f.Bind]:
        """What comes in place of a loop; nothing if a device cannot do it."""
        read = {number.start.name: self.elements[number.start.name] for number in scan.numbers
                if isinstance(number.start, f.Var) and number.start.name in self.elements}  # fmt: skip
        numbers = tuple([replace(number, start=read.get(number.start.name, number.start))
                         if isinstance(number.start, f.Var) else number for number in scan.numbers])  # fmt: skip
        copier = Copier(self.tiles.supply, {})
        before = copier.binds(tuple([f.Bind((f.Var(name, elem_of(op.args[0].ty)),), op) for name, op in read.items()]))
        here = [*before, f.Bind(bind.vars, replace(scan.loop, inits=copier.operands(scan.loop.inits)))]
        found = _Written(replace(scan, numbers=numbers), self.tiles).binds(here, self.devices)
        if found:
            self.moved.update(read)
        return found


# ---- which loops


def scan_of(loop: f.For) -> Scan | None:
    """The loop as a scan; None if it is none."""
    arrays = {var.name: init for var, init in zip(loop.state, loop.inits, strict=True) if isinstance(var.ty, f.Arr)}
    if loop.collect or not 0 < len(arrays) < len(loop.state) or loop.count == integer(0):
        return None
    straight = _Straight(arrays)
    binds = straight.block(loop.body)
    body = f.Block(tuple(binds), straight.renamed.operands(loop.body.results))
    made = {bind.vars[0].name: bind for bind in binds if len(bind.vars) == 1}
    changes = _changes(loop, body, made)
    if changes is None:
        return None
    known = {change.state.name: change for change in changes}
    rest = [_reading(bind, known) for bind in binds if not any(change.op is bind.rhs for change in changes)]
    if any(name in known for bind in rest for name in rhs_mentions(bind.rhs)):
        return None
    numbers = _numbers(loop, body.results, made, rest)
    doubtful = tuple([init for name in straight.doubtful if isinstance(init := arrays[name], f.Var)])
    if numbers is None or not all(droppable(bind.rhs) for bind in rest) or len(doubtful) < len(straight.doubtful):
        return None
    return Scan(loop, numbers, tuple(rest), tuple(changes), doubtful)


def _numbers(
    loop: f.For, results: tuple[f.Atom, ...], made: dict[str, f.Bind], binds: list[f.Bind]
) -> tuple[Number, ...] | None:
    """The numbers of a loop; None if the steps do something else with one of them."""
    numbers: list[Number] = []
    for state, start, after in zip(loop.state, loop.inits, results, strict=True):
        if isinstance(state.ty, f.Arr):
            continue
        bind = made.get(after.name) if isinstance(after, f.Var) else None
        match bind and bind.rhs:
            case f.Op(op, (a, b)) if state in (a, b) and (found := in_tiles(op, state.ty)):
                assert isinstance(after, f.Var)
                numbers.append(Number(found, state, start, b if a == state else a, after))
            case _:
                return None
    states = {number.state.name for number in numbers}
    alone = all(states.isdisjoint(names_for(number.term, binds)) for number in numbers)
    return tuple(numbers) if alone else None


def in_tiles(op: str, ty: f.Type) -> str:
    """The operation that combines numbers of a type, if the starts of tiles can be found out of order: for sums of
    floats, too (`tiles.py`); "" for others."""
    if not isinstance(ty, f.Num) or ty.name in ("bool", "f16"):
        return ""
    if op in ("add", "acc_add"):
        return "add"
    return op if OPS[op].keeps or (op == "mul" and not f.is_float(ty)) else ""


class _Straight:
    """Bodies of loops where arrays are not null: the bindings, without what happens else.  `arrays` are their initial
    values."""

    def __init__(self, arrays: Mapping[str, f.Atom]) -> None:
        self.arrays = arrays
        self.doubtful: dict[str, None] = {}
        self.renamed = Renamed({})

    def block(self, block: f.Block) -> list[f.Bind]:
        binds: list[f.Bind] = []
        for bind in block.binds:
            match self.renamed.rhs(bind.rhs):
                case f.Op("is_null", (f.Var(name),)) if name in self.arrays:
                    self.doubtful[name] = None
                    self.renamed.atoms[bind.vars[0].name] = f.Const(False, f.BOOL)
                case f.Op("acc_zeros", (f.Var(name) as array, *_)) if name in self.arrays:
                    self.doubtful[name] = None
                    self.renamed.atoms[bind.vars[0].name] = array
                case f.Op("dim", (f.Var(name),)) as op if name in self.arrays:
                    self.doubtful[name] = None
                    binds.append(f.Bind(bind.vars, replace(op, args=(self.arrays[name],))))
                case f.If(f.Const(bool(chosen)), then, else_):
                    arm = then if chosen else else_
                    binds += self.block(arm)
                    given = self.renamed.operands(arm.results)
                    self.renamed.atoms |= {var.name: atom for var, atom in zip(bind.vars, given, strict=True)}
                case rhs:
                    binds.append(f.Bind(bind.vars, rhs))
        return binds


def _changes(loop: f.For, body: f.Block, made: dict[str, f.Bind]) -> list[Change] | None:
    """What the steps do to the arrays; None if they do something else with one of them."""
    affine, uses = Affine(Dims(body)), Counter(mentions(body))
    affine.loop(loop.index, loop.count)
    for bind in body.binds:
        affine.define(bind)
    changes: list[Change] = []
    for state, init, result in zip(loop.state, loop.inits, body.results, strict=True):
        if not isinstance(state.ty, f.Arr):
            continue
        bind = made.get(result.name) if isinstance(result, f.Var) else None
        if bind is None or uses[bind.vars[0].name] != 1:
            return None
        match bind.rhs:
            case f.Op("update", (f.Var(name), value, place)) as op if name == state.name and op.attr("unchecked"):
                pass
            case f.Op("acc_index", (f.Var(name), value, _, place)) as op if name == state.name:
                pass
            case _:
                return None
        total = affine.sum(place)
        step = total.get(loop.index.name, 0)
        fixed = all(term == ONE or (isinstance(term, str) and term not in made) for term in total
                    if term != loop.index.name)  # fmt: skip
        if abs(step) != 1 or not fixed or not isinstance(value.ty, f.Num):
            return None
        changes.append(Change(state, init, op, step < 0))
    return changes


def _reading(bind: f.Bind, changes: dict[str, Change]) -> f.Bind:
    """A read of an array at the place that the step changes, as one of the array before the loop."""
    match bind.rhs:
        case f.Op("index", (f.Var(name), place)) as op if name in changes and place == changes[name].place:
            return f.Bind(bind.vars, replace(op, args=(changes[name].init, place)))
        case _:
            return bind


def needed_for(atoms: Iterable[f.Atom], binds: Iterable[f.Bind]) -> list[f.Bind]:
    """The bindings that values need."""
    wanted, found = set(names(atoms)), list[f.Bind]()
    for bind in reversed(list(binds)):
        if any(var.name in wanted for var in bind.vars):
            found.insert(0, bind)
            wanted.update(rhs_mentions(bind.rhs))
    return found


def names_for(atom: f.Atom, binds: Iterable[f.Bind]) -> set[str]:
    """The variables that a value depends on."""
    return {*names((atom,)), *(name for bind in needed_for((atom,), binds) for name in rhs_mentions(bind.rhs))}


# ---- what is written


class _Written:
    """A scan as Pars."""

    def __init__(self, scan: Scan, tiles: Tiles) -> None:
        self.scan, self.tiles = scan, tiles
        self.b = Builder(tiles.supply)
        self.b.span = next((bind.rhs.span for bind in scan.binds if isinstance(bind.rhs, f.Op)), f.NOWHERE)

    def binds(self, loop: list[f.Bind], devices: Devices) -> list[f.Bind]:
        """The bindings in place of those of the loop; none if a device cannot do them."""
        b, (*before, bind) = self.b, loop
        terms = self.terms()
        if devices.why_not(terms):
            return []
        done, *xs = self.unless_null(terms)
        with b.inside() as inner:
            results = self.results(xs)
            there = block_of(inner, results)
        own = tuple([b.var(var.name, var.ty) for var in bind.vars])
        here = f.Block((*before, f.Bind(own, bind.rhs)), own)
        if any(isinstance(one.rhs, f.Par) and devices.why_not(one.rhs) for one in there.binds):
            return []
        return [*block_of(b.binds, ()).binds, f.Bind(bind.vars, f.If(done, there, here))]

    def terms(self) -> f.Par:
        """What the steps combine with the numbers."""
        scan, i = self.scan, self.b.var("i", f.I64)
        copier = Copier(self.tiles.supply, {scan.loop.index.name: i})
        terms = [number.term for number in scan.numbers]
        binds = copier.binds(tuple(needed_for(terms, scan.binds)))
        body = f.Block(binds, (f.Const(True, f.BOOL), *map(copier.atom, terms)))
        outs = (f.Out("done"), *[f.Out("keep") for _ in terms])
        return f.Par(((i, scan.loop.count),), body, outs, self.b.span)

    def unless_null(self, terms: f.Par) -> list[f.Var]:
        """Whether a device has made the terms, and the arrays of them.  Without steps, or where arrays are null, the
        loop remains."""
        b, types = self.b, (f.BOOL, *[f.Arr(number.state.ty, 1) for number in self.scan.numbers])
        count = self.scan.loop.count
        tests = [b.op("is_null", (array,)) for array in self.scan.doubtful]
        if not isinstance(count, f.Const):
            tests.append(b.op("le", (count, integer(0))))
        if not tests:
            return b.bind(terms, types, "terms")
        left = tests[0]
        for test in tests[1:]:
            left = b.op("or", (left, test))
        own = tuple([b.var("terms", ty) for ty in types])
        nothing_ = f.Block((), tuple(map(nothing, types)))
        return b.bind(f.If(left, nothing_, f.Block((f.Bind(own, terms),), own)), types, "terms")

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
        b.binds += copier.binds(tuple(needed_for(op.args[2:], scan.binds)))
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
        b.binds += copier.binds(tuple(needed_for([change.value], [x for x in scan.binds if x.vars[0] not in ends])))
        return copier.atom(change.value)
