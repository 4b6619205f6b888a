"""Scans: loops whose steps combine numbers with one more each, and put what they have into arrays, each at its place.

    for i < n state (s = a, out = o) { t = add s x; u = update out t (i + 1); yield t, u }

`x` depends on neither.  `scans.py` says what devices make of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine
from dplc.flat.build import integer
from dplc.flat.copy import Renamed
from dplc.flat.dims import Dims
from dplc.flat.ops.table import OPS
from dplc.flat.walk import mentions, names, needed, rhs_mentions
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


def scan_of(loop: f.For) -> Scan | None:
    """The loop as a scan; None if it is none."""
    arrays = {var.name: init for var, init in zip(loop.state, loop.inits, strict=True) if isinstance(var.ty, f.Arr)}
    if loop.collect or not 0 < len(arrays) < len(loop.state) or loop.count == integer(0):
        return None
    straight = Straight(arrays)
    binds = straight.block(loop.body)
    body = f.Block(tuple(binds), straight.renamed.operands(loop.body.results))
    made = {bind.vars[0].name: bind for bind in binds if len(bind.vars) == 1}
    changes = _changes(loop, body, made)
    if changes is None:
        return None
    known = {change.state.name: change for change in changes}
    rest = [reading(bind, known) for bind in binds if not any(change.op is bind.rhs for change in changes)]
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
    floats, too (`scan_tiles.py`); "" for others."""
    if not isinstance(ty, f.Num) or ty.name in ("bool", "f16"):
        return ""
    if op in ("add", "acc_add"):
        return "add"
    return op if OPS[op].keeps or (op == "mul" and not f.is_float(ty)) else ""


class Straight:
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
    places = Places(loop, body, made)
    found = [places.change(state, init, result)
             for state, init, result in zip(loop.state, loop.inits, body.results, strict=True)
             if isinstance(state.ty, f.Arr)]  # fmt: skip
    changes = [change for change in found if change is not None]
    return changes if len(changes) == len(found) else None


class Places:
    """The places of arrays that the steps of a loop change."""

    def __init__(self, loop: f.For, body: f.Block, made: dict[str, f.Bind]) -> None:
        self.loop, self.made = loop, made
        self.uses = Counter(mentions(body))
        self.affine = Affine(Dims(body))
        self.affine.loop(loop.index, loop.count)
        for bind in body.binds:
            self.affine.define(bind)

    def bind(self, result: f.Atom) -> f.Bind | None:
        """The binding of a result of the steps, which nothing else uses."""
        bind = self.made.get(result.name) if isinstance(result, f.Var) else None
        return bind if bind is not None and self.uses[bind.vars[0].name] == 1 else None

    def change(self, state: f.Var, init: f.Atom, result: f.Atom) -> Change | None:
        """What the steps do to an array, if each has a place of its own."""
        bind = self.bind(result)
        match bind and bind.rhs:
            case f.Op("update", (f.Var(name), value, place)) as op if name == state.name and op.attr("unchecked"):
                pass
            case f.Op("acc_index", (f.Var(name), value, _, place)) as op if name == state.name:
                pass
            case _:
                return None
        index, total = self.loop.index.name, self.affine.sum(place)
        step = total.get(index, 0)
        fixed = all(term == ONE or (isinstance(term, str) and term not in self.made) for term in total if term != index)
        if abs(step) != 1 or not fixed or not isinstance(value.ty, f.Num):
            return None
        return Change(state, init, op, step < 0)


def reading(bind: f.Bind, changes: dict[str, Change]) -> f.Bind:
    """A read of an array at the place that the step changes, as one of the array before the loop."""
    match bind.rhs:
        case f.Op("index", (f.Var(name), place)) as op if name in changes and place == changes[name].place:
            return f.Bind(bind.vars, replace(op, args=(changes[name].init, place)))
        case _:
            return bind


def names_for(atom: f.Atom, binds: Sequence[f.Bind]) -> set[str]:
    """The variables that a value depends on."""
    return {*names((atom,)), *(name for bind in needed(binds, names((atom,))) for name in rhs_mentions(bind.rhs))}
