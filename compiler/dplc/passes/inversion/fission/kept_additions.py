"""Fission of nests that add under conditions: what a point adds is kept, and zero where it adds nothing.

    c = par i < n to add (c = null) {           z = par i < n to keep {
      x = index w i; g = gt x 0.0                 x = index w i; g = gt x 0.0
      if g { z = sin x                     =>     z' = if g { z = sin x; yield z } else { yield 0.0 } }
             acc_index c z m (add i 1) }        c = par i < n to add (c = null) {
      else { c } }                                z = index z i
                                                  acc_index c z m (add i 1) }

The second nest adds zeros, also at places that are not there, so it is never run: it is inverted (`stencils.py`).
Conditions that indices decide are in both, so that one number is kept for all the places where it is added.
"""

from __future__ import annotations

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, of_rank, rank_of
from dplc.flat.walk import bound_inside, is_in, names, needed, rhs_mentions
from dplc.passes.inversion.fission.kept_numbers import Parts
from dplc.passes.inversion.nests import Guard, Unfit
from dplc.passes.simplify.purity import droppable

MOST = 16  # numbers that a point keeps
Accs = dict[str, int]  # the accumulators of the nest, by the names that they have
Space = tuple[tuple[f.Var, f.Atom], ...]  # of the loops around
Kept = dict[int, f.Atom]  # what is added, by the number of its place
Guards = tuple[Guard, ...]


@node
class Place:
    """Where something is added: to which accumulator, by an operation that also tells lengths; the loops around it;
    the conditions around that indices decide."""

    acc: int
    op: f.Op
    space: Space
    guards: Guards


def kept_first(bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply) -> Parts | None:
    """A nest in two parts; None if it cannot be parted."""
    try:
        return _Keeping(par, affine, supply).parts(bind, par)
    except Unfit:
        return None


class _Keeping:
    def __init__(self, par: f.Par, affine: Affine, supply: f.Supply) -> None:
        self.affine, self.supply = affine, supply
        self.inside = {var.name for var in bound_inside(par)}
        self.indices = set[str]()
        self.code: list[f.Bind] = []
        self.places: list[Place] = []
        self.numbers: dict[object, int] = {}  # of places, which may be computed in several branches
        self.counted: set[str] = set()  # what is computed of indices and of numbers from outside
        self.guards: Guards = ()  # the conditions around that are

    def parts(self, bind: f.Bind, par: f.Par) -> Parts:
        made, kept = self.loop(par, {out.acc.name: k for k, out in enumerate(par.outs) if out.acc}, ())
        arrays = list(dict.fromkeys(kept.values()))
        if not arrays or len(arrays) > MOST or any(place.space != self.places[0].space for place in self.places):
            raise Unfit
        rest = [var for var, out in zip(bind.vars, par.outs, strict=True) if out.kind != "add"]
        adds = self.adding(bind, par, kept)
        return Parts(f.Bind((*rest, *arrays), made), f.Bind(adds.vars, Copier(self.supply, {}).rhs(adds.rhs)))

    # ---- the nest that keeps

    def loop(self, par: f.Par, accs: Accs, around: Space) -> tuple[f.Par, dict[int, f.Var]]:
        """The Par with arrays in place of what it adds, and these, by the numbers of places."""
        counts = tuple([count for _, count in par.space])
        if par.ordered or any(out.kind == "done" for out in par.outs) or not self.inside.isdisjoint(names(counts)):
            raise Unfit
        self.affine.loops(par)
        self.indices.update(index.name for index, _ in par.space)
        body, kept = self.block(par.body, accs, (*around, *par.space))
        arrays = {value: self.var(of_rank(value.ty, len(counts))) for value in kept.values()}
        inner = [self.inner(kept, value, len(around) + len(counts)) for value in arrays]
        rest = [k for k, out in enumerate(par.outs) if out.kind != "add"]
        outs = (*[par.outs[k] for k in rest], *[f.Out("keep", inner=dims) for dims in inner])
        made = replace(par, body=f.Block(body, (*[par.body.results[k] for k in rest], *arrays)), outs=outs)
        return made, {number: arrays[value] for number, value in kept.items()}

    def inner(self, kept: Kept, value: f.Atom, depth: int) -> tuple[f.Atom, ...]:
        """The counts of the loops inside of the outer ones, for what is kept."""
        place = next(self.places[number] for number, atom in kept.items() if atom == value)
        return tuple([count for _, count in place.space[depth:]])

    def block(self, block: f.Block, accs: Accs, space: Space) -> tuple[tuple[f.Bind, ...], Kept]:
        """The bindings without additions, and what is to be kept."""
        binds: list[f.Bind] = []
        kept: Kept = {}
        for bind in block.binds:
            held = [name for name in rhs_mentions(bind.rhs) if name in accs]
            match bind.rhs:
                case _ if not held:
                    self.affine.define(bind)
                    if self.is_counted(bind.rhs):
                        self.counted.add(bind.vars[0].name)
                    self.code.append(bind)
                    binds.append(bind)
                case f.Op("acc_index", (f.Var(acc), value, *_)) as op if held == [acc]:
                    number = self.number(accs[acc], op, space)
                    self.keep(number, value, kept, binds)
                    accs[bind.vars[0].name] = accs[acc]
                case f.If() as rhs:
                    self.branch(bind, rhs, accs, space, kept, binds)
                case f.Par() as inner:
                    binds.append(self.nested(bind, inner, accs, space, kept))
                case _:
                    raise Unfit
        return tuple(binds), kept

    def keep(self, number: int, value: f.Atom, kept: Kept, binds: list[f.Bind]) -> None:
        """Adds to what is kept for a place."""
        if number in kept:
            both = self.var(value.ty)
            binds.append(f.Bind((both,), f.Op("acc_add", (kept[number], value))))
            value = both
        kept[number] = value

    def number(self, acc: int, op: f.Op, space: Space) -> int:
        """The number of the place where an operation adds."""
        rank = op.attr("rank")
        _, value, *rest = op.args
        if 2 * rank != len(rest) or not isinstance(value.ty, f.Num):
            raise Unfit
        at = tuple([frozenset(self.affine.sum(place).items()) for place in rest[rank:]])
        key = acc, tuple(rest[:rank]), at, tuple([index.name for index, _ in space]), self.guards
        if key not in self.numbers:
            self.numbers[key] = len(self.places)
            self.places.append(Place(acc, op, space, self.guards))
        return self.numbers[key]

    def is_counted(self, rhs: f.Rhs) -> bool:
        """True for arithmetic and comparisons of indices, and of numbers from outside."""
        known = self.counted | self.indices
        return (
            isinstance(rhs, f.Op)
            and OPS[rhs.op].cheap
            and OPS[rhs.op].elementwise
            and all(isinstance(arg, f.Const) or arg.name in known or arg.name not in self.inside for arg in rhs.args)
            and not any(map(f.is_float, [arg.ty for arg in rhs.args]))
        )

    def nested(self, bind: f.Bind, par: f.Par, accs: Accs, space: Space, kept: Kept) -> f.Bind:
        own: Accs = {}
        for var, out in zip(bind.vars, par.outs, strict=True):
            if out.kind != "add":
                continue
            if out.acc is None or not isinstance(out.target, f.Var) or out.target.name not in accs:
                raise Unfit
            own[out.acc.name] = accs[var.name] = accs[out.target.name]
        made, arrays = self.loop(par, own, space)
        kept |= arrays
        rest = [var for var, out in zip(bind.vars, par.outs, strict=True) if out.kind != "add"]
        return f.Bind((*rest, *dict.fromkeys(arrays.values())), made)

    def branch(self, bind: f.Bind, rhs: f.If, accs: Accs, space: Space, kept: Kept, binds: list[f.Bind]) -> None:
        """A branch that gives what each arm adds, and zeros for what only the other one adds."""
        arms = (rhs.then, rhs.else_)
        known = dict(accs), dict(accs)
        made = []
        around, counted = self.guards, is_in(rhs.cond, self.counted)
        for arm, mine, truth in zip(arms, known, (True, False), strict=True):
            self.guards = (*around, (rhs.cond, truth)) if counted else around
            made.append(self.block(arm, mine, space))
        self.guards = around
        rest = []
        for i, var in enumerate(bind.vars):
            given = [mine.get(atom.name) if isinstance(atom := arm.results[i], f.Var) else None
                     for arm, mine in zip(arms, known, strict=True)]  # fmt: skip
            if given[0] != given[1]:
                raise Unfit
            if given[0] is None:
                rest.append(i)
            else:
                accs[var.name] = given[0]
        (then, first), (other, second) = made
        pairs: dict[int, tuple[f.Atom, f.Atom]] = {}
        bound = {var.name for code in (then, other) for bind in code for var in bind.vars}
        for number in sorted({*first, *second}):
            value = first.get(number) or second[number]
            if counted and not is_in(value, bound):  # the place is under the condition
                self.keep(number, value, kept, binds)
                continue
            ty = value.ty
            if not isinstance(ty, f.Num):
                raise Unfit
            zero = f.Const(0.0, ty)
            pairs[number] = first.get(number, zero), second.get(number, zero)
        variables = {pair: self.var(pair[0].ty) for pair in pairs.values()}
        blocks = [f.Block(code, (*[arm.results[i] for i in rest], *[pair[k] for pair in variables]))
                  for k, (arm, code) in enumerate(zip(arms, (then, other), strict=True))]  # fmt: skip
        made_here = (*[bind.vars[i] for i in rest], *variables.values())
        if made_here or then or other:
            binds.append(f.Bind(made_here, f.If(rhs.cond, *blocks)))
        for number, pair in pairs.items():
            self.keep(number, variables[pair], kept, binds)

    def var(self, ty: f.Type) -> f.Var:
        return f.Var(self.supply.fresh("added"), ty)

    # ---- the nest that adds

    def adding(self, bind: f.Bind, par: f.Par, kept: dict[int, f.Var]) -> f.Bind:
        chosen = [k for k, out in enumerate(par.outs) if out.kind == "add"]
        accs = {k: acc for k in chosen if (acc := par.outs[k].acc) is not None}
        space = self.places[0].space
        indices = [index for index, _ in space]
        values = {array: f.Var(self.supply.fresh("x"), elem_of(array.ty)) for array in kept.values()}
        binds = [f.Bind((x,), f.Op("index", (array, *indices), (("unchecked", True),))) for array, x in values.items()]
        binds += self.places_code()
        for number, place in enumerate(self.places):
            acc = accs[place.acc]
            after = f.Var(self.supply.fresh("c"), acc.ty)
            rhs: f.Rhs = replace(place.op, args=(acc, values[kept[number]], *place.op.args[2:]))
            for cond, truth in reversed(place.guards):
                added = f.Var(self.supply.fresh("c"), acc.ty)
                blocks = f.Block((f.Bind((added,), rhs),), (added,)), f.Block((), (acc,))
                rhs = f.If(cond, *(blocks if truth else blocks[::-1]))
            binds.append(f.Bind((after,), rhs))
            accs[place.acc] = after
        body = f.Block(tuple(binds), tuple([accs[k] for k in chosen]))
        outs = tuple([par.outs[k] for k in chosen])
        return f.Bind(tuple([bind.vars[k] for k in chosen]), f.Par(space, body, outs, par.span))

    def places_code(self) -> list[f.Bind]:
        """The code that computes the places."""
        wanted = {name for place in self.places for name in names(place.op.args[2:])}
        wanted.update(names([cond for place in self.places for cond, _ in place.guards]))
        made = needed(self.code, wanted)
        if any(not isinstance(bind.rhs, f.Op) or not droppable(bind.rhs) or rank_of(bind.vars[0].ty) for bind in made):
            raise Unfit
        return made
