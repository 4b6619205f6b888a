"""Arrays that are never null, and code without questions whether they are.

    c = for i < n state (c = null) { ...; r = build ...; c' = acc_index c r n m i; yield c' }
    q = is_null c; x = if q { yield null } else { ...; yield y }               =>    ...; x is y

A loop that adds a row at each place gives an array that is there, also if it has no steps: `parallel` makes it from the
rows.
"""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.copy import Renamed
from dplc.flat.dims import dims_of
from dplc.flat.ops.table import OPS
from dplc.flat.signs import zeros_positive
from dplc.flat.types import rank_of
from dplc.flat.walk import blocks, bound_inside, every, names
from dplc.passes.parallel.additive import Trail

FALSE = f.Const(False, f.BOOL)


class Solid:
    """The arrays of floats of a function that are never null; `trails` tells how its loops add to their state."""

    def __init__(self, body: f.Block, trails: Callable[[f.For], tuple[Trail, ...] | None]) -> None:
        self.trails = trails
        self.names: set[str] = set()
        self.affine = Affine(dims_of(body))
        self.find(body)

    def __contains__(self, atom: f.Atom) -> bool:
        return not isinstance(atom.ty, f.Arr | f.Data) or (isinstance(atom, f.Var) and atom.name in self.names)

    def find(self, block: f.Block) -> None:
        for bind in block.binds:
            self.affine.define(bind)
            for inner in blocks(bind.rhs):
                self.find(inner)
            match bind.rhs:
                case f.Op(op) if OPS[op].solid(bind.rhs, self.__contains__):
                    found = bind.vars
                case f.Map() | f.Build():
                    found = bind.vars
                case f.For() as loop if trails := self.trails(loop):
                    found = tuple([var for k, var in enumerate(bind.vars[: len(trails)])
                                   if self.is_kept(loop, k, trails[k]) or self.is_added_to(loop, k)])  # fmt: skip
                case _:
                    continue
            self.names.update([var.name for var in found if isinstance(var.ty, f.Arr)])

    def is_added_to(self, loop: f.For, k: int) -> bool:
        """True if there are steps, and after one state variable number `k` is there."""
        some = isinstance(loop.count, f.Const) and isinstance(loop.count.value, int) and loop.count.value > 0
        return some and loop.body.results[k] in self

    def is_kept(self, loop: f.For, k: int, trail: Trail) -> bool:
        """True if each step adds to its own place of state variable number `k` only.  A row must be there, of a known
        size, and all that is added."""
        if not isinstance(loop.state[k].ty, f.Arr) or not trail:
            return False
        alone = len(trail) == 1 and loop.inits[k] == f.Const(None, loop.state[k].ty)
        return all(self.own_place(loop, bind.rhs, alone) for bind in trail)

    def own_place(self, loop: f.For, rhs: f.Rhs, alone: bool) -> bool:
        match rhs:
            case f.Op("acc_index", (_, added, *rest)):
                rank = rhs.attr("rank")
                dims, at = rest[:rank], rest[rank:]
            case _:
                return False
        if at != [loop.index] or rank_of(added.ty) != rank - 1:
            return False
        if rank == 1:
            return True
        inside = {var.name for var in bound_inside(loop)}
        all_of_it = self.affine.sum(dims[0]) == self.affine.sum(loop.count)
        return alone and all_of_it and added in self and not inside & set(names(dims))


def without_questions(body: f.Block, solid: Solid) -> f.Block:
    """The code without branches on whether these arrays are null, without zeros in their place, and without the
    additions of 0.0 that are seen to change nothing once the branches are gone."""
    asked = any(isinstance(bind.rhs, f.Op) and bind.rhs.op in ("is_null", "acc_zeros") and bind.rhs.args[0] in solid
                for bind in every(body))  # fmt: skip
    return _Answered(solid).block(body) if asked else body


class _Answered(Renamed):
    def __init__(self, solid: Solid) -> None:
        super().__init__({})
        self.solid = solid
        self.defs: dict[str, f.Rhs] = {}

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        made: list[f.Bind] = []
        for bind in binds:
            match bind.rhs:
                case f.Op("is_null", (array,)) if array in self.solid:
                    self.atoms[bind.vars[0].name] = FALSE
                case f.Op("acc_zeros", (array, *_)) if array in self.solid:
                    self.atoms[bind.vars[0].name] = self.atom(array)
                case f.If(cond, _, there) if self.atom(cond) == FALSE:
                    inner = self.block(there)
                    made += inner.binds
                    self.atoms.update(zip([var.name for var in bind.vars], inner.results, strict=True))
                case f.Map(_, (array,)) as loop if adds_zero(loop) and zeros_positive(self.atom(array), self.defs):
                    self.atoms[bind.vars[0].name] = self.atom(array)
                case rhs:
                    made.append(f.Bind(bind.vars, self.rhs(rhs)))
                    if len(bind.vars) == 1:
                        self.defs[bind.vars[0].name] = made[-1].rhs
        return tuple(made)


def adds_zero(loop: f.Map) -> bool:
    """True for `x + 0.0`, elementwise, with all of x kept."""
    match loop.body:
        case f.Block((f.Bind((total,), f.Op("add", (element, f.Const() as zero))),), (result,)):
            alone = (element,) == loop.params and result == total and element.ty == total.ty
            whole = loop.ranks == (rank_of(loop.inputs[0].ty),)
            return alone and whole and zero.value == 0.0 and zeros_positive(zero, {})
        case _:
            return False
