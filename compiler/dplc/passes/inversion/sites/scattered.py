"""What the points of a nest add, and where: what `sums/gathered.py` makes sums of."""

from __future__ import annotations

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.conditions import Conditions
from dplc.flat.types import rank_of
from dplc.flat.walk import bound_inside, every, is_in, names, rhs_mentions
from dplc.passes.inversion.nests import Guard, Loop, Unfit
from dplc.passes.simplify.purity import droppable


@node
class Added:
    """An addition at places of an accumulator; `loops` and `guards` are around it."""

    loops: tuple[Loop, ...]
    guards: tuple[Guard, ...]
    value: f.Atom
    dims: tuple[f.Atom, ...]
    places: tuple[f.Atom, ...]


class Points:
    """A nest: what its points compute, and what they add to each of its accumulators."""

    def __init__(self, par: f.Par, affine: Affine) -> None:
        self.affine = affine
        self.defined: dict[str, f.Rhs] = {}
        self.rows: dict[str, tuple[f.Var, tuple[f.Atom, ...]]] = {}  # parts of arrays from outside
        self.kept: dict[str, tuple[f.Atom, Loop, f.Atom]] = {}  # by inner Pars: an element, its index, a length
        self.opaque: set[str] = set()  # what cannot be computed again alone
        self.added: dict[int, list[Added]] = {}
        self.used = set(rhs_mentions(par))
        self.inside = {var.name for var in bound_inside(par)}
        self.conditions = Conditions(affine)
        self.guarded: set[str] = set()  # what is read under conditions
        self.walk(par, {out.acc.name: k for k, out in enumerate(par.outs) if out.acc}, (), ())

    def walk(self, par: f.Par, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]) -> None:
        """Walks a Par; `accs` are the names of accumulators in its body."""
        loops = (*loops, *[Loop(*dimension) for dimension in par.space])
        self.affine.loops(par)
        if not self.inside.isdisjoint(names([loop.count for loop in loops])):
            raise Unfit  # of a triangle: an index of the nest is a count, too
        self.block(par.body, accs, loops, guards)

    def block(
        self, block: f.Block, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]
    ) -> dict[str, int]:  # fmt: skip
        """The accumulators after a block, by their names."""
        for bind in block.binds:
            held = [accs[name] for name in rhs_mentions(bind.rhs) if name in accs]
            self.conditions.define(bind)
            match bind.rhs:
                case f.Par() as inner if not inner.ordered:
                    self.inner(bind, inner, accs, loops, guards)
                case f.If() as branch if held:
                    accs = accs | self.branch(bind, branch, accs, loops, guards)
                case f.Op("acc_index", (acc, value, *rest)) as op if len(held) == 1 and is_in(acc, accs):
                    rank = rank_of(acc.ty)
                    if op.attr("rank") != rank or len(rest) != 2 * rank or not isinstance(value.ty, f.Num):
                        raise Unfit
                    self.add(held[0], Added(loops, guards, value, tuple(rest[:rank]), tuple(rest[rank:])))
                    accs = accs | {bind.vars[0].name: held[0]}
                case f.Op("acc_add", (acc, f.Var(name))) if len(held) == 1 and is_in(acc, accs) and name in self.kept:
                    value, own, length = self.kept[name]
                    self.add(held[0], Added((*loops, own), guards, value, (length,), (own.index,)))
                    accs = accs | {bind.vars[0].name: held[0]}
                case f.Op("acc_extend", (f.Var(short), length)) if short in self.kept and not held:
                    value, own, _ = self.kept[short]
                    self.kept[bind.vars[0].name] = value, own, length
                    self.opaque.add(bind.vars[0].name)
                case f.Op() if not held and droppable(bind.rhs):
                    self.plain(bind, bind.rhs)
                    self.guarded |= {bind.vars[0].name} if guards else set()
                case f.Op("fill") if bind.vars[0].name not in self.used:
                    pass
                case rhs if not held and droppable(rhs):
                    self.opaque.update(var.name for var in bind.vars)
                    for inner in every(f.Block((bind,), ())):
                        self.affine.define(inner)
                        self.conditions.define(inner)
                case _:
                    raise Unfit
        return accs

    def branch(
        self, bind: f.Bind, branch: f.If, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]
    ) -> dict[str, int]:  # fmt: skip
        """The accumulators that a branch gives; its other results are not computed again."""
        after = [self.block(arm, accs, loops, (*guards, (branch.cond, truth)))
                 for arm, truth in ((branch.then, True), (branch.else_, False))]  # fmt: skip
        made = dict[str, int]()
        for var, *given in zip(bind.vars, branch.then.results, branch.else_.results, strict=True):
            held = {known.get(atom.name) if isinstance(atom, f.Var) else None
                    for atom, known in zip(given, after, strict=True)}  # fmt: skip
            if len(held) > 1:
                raise Unfit
            if (number := held.pop()) is None:
                self.opaque.add(var.name)
            else:
                made[var.name] = number
        return made

    def inner(
        self, bind: f.Bind, par: f.Par, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]
    ) -> None:
        names = dict[str, int]()
        for var, out, x in zip(bind.vars, par.outs, par.body.results, strict=True):
            match out:
                case f.Out("add", _, f.Var(name), f.Var() as acc) if name in accs:
                    names[acc.name] = accs[var.name] = accs[name]
                case f.Out("keep") if len(par.space) == 1 and isinstance(x.ty, f.Num):
                    self.kept[var.name] = x, Loop(*par.space[0]), par.space[0][1]
                    self.opaque.add(var.name)
                case f.Out("add"):
                    raise Unfit
                case _:
                    self.opaque.add(var.name)
        self.walk(par, names, loops, guards)

    def add(self, k: int, added: Added) -> None:
        self.added.setdefault(k, []).append(added)

    def plain(self, bind: f.Bind, op: f.Op) -> None:
        self.affine.define(bind)
        self.defined[bind.vars[0].name] = op
        if op.op == "index" and isinstance(op.args[0], f.Var):
            array, before = self.rows.get(op.args[0].name, (op.args[0], ()))
            self.rows[bind.vars[0].name] = array, (*before, *op.args[1:])
