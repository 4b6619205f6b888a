"""Arrays that are never null, and code without questions whether they are.

    c = for i < n state (c = null) { ...; r = build ...; c' = acc_index c r n m i; yield c' }
    q = is_null c; x = if q { yield null } else { ...; yield y }               =>    ...; x is y

A loop that adds a row at each place gives an array that is there, also if it has no steps: `parallel` makes it from the
rows.  A state that is there before a loop with an order, and after a step if it was there before it, is always there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
        self.doubtful: set[str] = set()  # states that a step may make null
        self.last: set[str] = set()  # states after loops with an order
        self.asked: dict[str, f.Atom] = {}  # what conditions ask for, whether it is null
        self.affine = Affine(dims_of(body))
        self.find(body)

    def __contains__(self, atom: f.Atom) -> bool:
        return not isinstance(atom.ty, f.Arr | f.Data) or (isinstance(atom, f.Var) and atom.name in self.names)

    def find(self, block: f.Block) -> None:
        for bind in block.binds:
            self.affine.define(bind)
            if isinstance(bind.rhs, f.While) or (isinstance(bind.rhs, f.For) and self.trails(bind.rhs) is None):
                self.steps(bind.rhs)
                self.last.update([var.name for var in bind.vars])
            else:
                for inner in blocks(bind.rhs):
                    self.find(inner)
            self.names.update([var.name for var in self.found(bind) if isinstance(var.ty, f.Arr)])

    def found(self, bind: f.Bind) -> Sequence[f.Var]:
        """The variables of a binding that are never null, once its inner blocks are known."""
        match bind.rhs:
            case f.Op("is_null", (array,)):
                self.asked[bind.vars[0].name] = array
                return ()
            case f.Op(op) if OPS[op].solid(bind.rhs, self.__contains__):
                return bind.vars
            case f.Map() | f.Build():
                return bind.vars
            case f.If(cond, then, other):
                then = other if self.is_answered(cond) else then
                return [var for k, var in enumerate(bind.vars) if then.results[k] in self and other.results[k] in self]
            case f.For(state=state) as loop:
                trails = self.trails(loop)
                return [var for k, (var, now) in enumerate(zip(bind.vars, state, strict=False))
                        if now in self or self.is_added_to(loop, k)
                        or (trails is not None and self.is_kept(loop, k, trails[k]))]  # fmt: skip
            case f.While(state):
                return [var for var, now in zip(bind.vars, state, strict=False) if now in self]
            case _:
                return ()

    def is_last(self, array: f.Atom) -> bool:
        """True for a state after a loop with an order.  Zeros in its place tell its lengths, if it began as null."""
        return isinstance(array, f.Var) and array.name in self.last

    def is_answered(self, cond: f.Atom) -> bool:
        """True for the question whether an array is null that never is."""
        return isinstance(cond, f.Var) and cond.name in self.asked and self.asked[cond.name] in self

    def steps(self, loop: f.For | f.While) -> None:
        """Takes states that are there before the loop for never null, until its steps say otherwise.  What was doubtful
        once is so again: a loop around it assumes less each time."""
        while True:
            before = set(self.names)
            assumed = [k for k, state in enumerate(loop.state) if isinstance(state.ty, f.Arr)
                       and loop.inits[k] in self and state.name not in self.doubtful]  # fmt: skip
            self.names.update([loop.state[k].name for k in assumed])
            for inner in blocks(loop):
                self.find(inner)
            wrong = [loop.state[k].name for k in assumed if loop.body.results[k] not in self]
            if not wrong:
                return
            self.doubtful.update(wrong)
            self.names = before

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
                case f.Op("acc_zeros", (array, *_)) if array in self.solid and not self.solid.is_last(array):
                    self.atoms[bind.vars[0].name] = self.atom(array)
                case f.Op("and", args) if FALSE in map(self.atom, args):
                    self.atoms[bind.vars[0].name] = FALSE
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
