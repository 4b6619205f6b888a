"""Fission of nests that add: what a point computes is kept, and is added by a nest of its own.

    c, s = par i < n to add (c = null),         x, s = par i < n to keep, fold 0 {
                        fold 0 {                  ...; x = exp y; ...
      ...; x = exp y; ...                         yield x, z }
      c' = par j < m to add (c) {        =>     c = par i < n to add (c = null) {
        v = index w (i + j)                       x = index x i
        u = mul x v                               c' = par j < m to add (c) {
        acc_index c u m j }                         v = index w (i + j); u = mul x v
      yield c', z }                                 acc_index c u m j }
                                                  yield c' }

What is added is then little code, which can be inverted (`sums/`).  The numbers that the additions
use are kept at the outermost level of the nest that computes some; reads, conditions and places are in both nests.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks, names, rhs_mentions, with_binds
from dplc.narrow import expect_type
from dplc.passes.inversion.fission.alone import alone
from dplc.passes.inversion.fission.rows_again import Element, again, elements
from dplc.passes.inversion.fission.without_additions import without
from dplc.passes.inversion.nests import Unfit
from dplc.passes.simplify.purity import droppable, natural

MOST = 8  # numbers of a point that are kept


@node
class Parts:
    """The nest that keeps, and the one that only adds."""

    keeps: f.Bind
    adds: f.Bind


def parted(bind: f.Bind, par: f.Par, lengths: Collection[str], supply: f.Supply) -> Parts | None:
    """A nest in two parts; None if it cannot be parted.  `lengths` are names of lengths of arrays."""
    try:
        made = _Fission(lengths, supply).parts(bind, par, ())
    except Unfit:
        return None
    return Parts(made.keeps, f.Bind(made.adds.vars, Copier(supply, {}).rhs(made.adds.rhs)))


class _Fission:
    def __init__(self, lengths: Collection[str], supply: f.Supply) -> None:
        self.lengths, self.supply = lengths, supply
        self.final: list[f.Var] = []  # the arrays that are kept

    def parts(self, bind: f.Bind, par: f.Par, outer: tuple[f.Var, ...]) -> Parts:
        """The parts of a level of the nest; `outer` are the indices of the levels around it."""
        if par.ordered or any(out.kind == "done" or (out.kind != "add" and out.target) for out in par.outs):
            raise Unfit
        par = with_parted(par, self.supply)
        level = Level(par, self.lengths)
        indices = (*outer, *[index for index, _ in par.space])
        if level.kept:
            self.final = [f.Var(self.supply.fresh(var.name), f.Arr(var.ty, len(indices))) for var in level.kept]
            reads = [f.Bind((var,), f.Op("index", (array, *indices), (("unchecked", True),)))
                     for var, array in zip(level.kept, self.final, strict=True)]  # fmt: skip
            keeps = self.keeping(bind, par, level.first(level.kept), level.kept, (), not outer)
            return Parts(keeps, adding(bind, par, (*reads, *level.second)))
        inner = level.inner()
        made = self.parts(inner, expect_type(f.Par, inner.rhs), indices)
        local = made.keeps.vars[-len(self.final) :]
        kept = expect_type(f.Par, made.keeps.rhs)
        counts = (*[count for _, count in kept.space], *kept.outs[-1].inner)
        own = {index.name for index, _ in par.space}  # of a triangle
        if not (level.defined.keys() | own).isdisjoint(names(counts)):
            raise Unfit
        keeps = self.keeping(bind, par, level.first(local, made.keeps), local, counts, not outer)
        return Parts(keeps, adding(bind, par, [made.adds if one is inner else one for one in level.second]))

    def keeping(
        self, bind: f.Bind, par: f.Par, binds: Sequence[f.Bind], kept: Sequence[f.Var], inner: tuple[f.Atom, ...],
        outermost: bool,
    ) -> f.Bind:  # fmt: skip
        """A Par that keeps numbers, or arrays of them, and does what the old one does, without additions."""
        rest = [k for k, out in enumerate(par.outs) if out.kind != "add"]
        ranks = [len(par.space) + (var.ty.rank if isinstance(var.ty, f.Arr) else 0) for var in kept]
        arrays = self.final if outermost else [
            f.Var(self.supply.fresh(array.name), replace(expect_type(f.Arr, array.ty), rank=rank))
            for array, rank in zip(self.final, ranks, strict=True)
        ]  # fmt: skip
        outs = (*[par.outs[k] for k in rest], *[f.Out("keep", inner=inner) for _ in kept])
        body = f.Block(tuple(binds), (*[par.body.results[k] for k in rest], *kept))
        return f.Bind((*[bind.vars[k] for k in rest], *arrays), replace(par, body=body, outs=outs))


def with_parted(par: f.Par, supply: f.Supply) -> f.Par:
    """A Par whose inner nests do not add beside other results, if they do little: those that add do the arithmetic
    again, so that others have the results before.  They compute the rows that they read again, too."""
    binds: list[f.Bind] = []
    rows: dict[str, Element] = {}
    for bind in par.body.binds:
        outs = bind.rhs.outs if isinstance(bind.rhs, f.Par) else ()
        adds = [k for k, out in enumerate(outs) if out.kind == "add"]
        one = alone(bind, expect_type(f.Par, bind.rhs), adds[0], supply) if len(adds) == 1 < len(outs) else None
        binds += [] if one is None else [without(bind, set(adds))]
        binds.append(again(one or bind, rows, supply) if adds else bind)
        rows |= elements(bind)
    return replace(par, body=with_binds(par.body, binds))


def adding(bind: f.Bind, par: f.Par, binds: Sequence[f.Bind]) -> f.Bind:
    """A Par that only adds."""
    chosen = [k for k, out in enumerate(par.outs) if out.kind == "add"]
    body = f.Block(tuple(binds), tuple([par.body.results[k] for k in chosen]))
    outs = tuple([par.outs[k] for k in chosen])
    return f.Bind(tuple([bind.vars[k] for k in chosen]), replace(par, body=body, outs=outs))


def is_cheap(rhs: f.Rhs) -> bool:
    """True for what may be computed in both parts: arithmetic, and rows of it."""
    match rhs:
        case f.Par(_, body):
            return all(is_cheap(bind.rhs) and not isinstance(bind.rhs, f.Par) for bind in body.binds)
        case f.Op(op):
            return OPS[op].cheap or OPS[op].views or op == "acc_extend" or bool(rhs.attr("ring"))
        case _:
            return isinstance(rhs, f.TupGet | f.TupMake)


def is_choice(rhs: f.Rhs) -> bool:
    """True for a branch that is cheap on either side, as guards against NaN are."""
    return isinstance(rhs, f.If) and all(is_cheap(bind.rhs) for arm in blocks(rhs) for bind in arm.binds)


def added_to(bind: f.Bind, accs: Collection[str]) -> list[str]:
    """What a binding that adds to some of `accs` gives of these; an inner nest or a branch may give numbers beside."""
    match bind.rhs:
        case f.Par(outs=outs):
            are = [out.kind == "add" for out in outs]
        case f.If(_, then, else_):
            are = list(map(any, zip(added_by(then, accs), added_by(else_, accs), strict=True)))
        case _:
            are = [True] * len(bind.vars)
    return [var.name for var, is_acc in zip(bind.vars, are, strict=True) if is_acc]


def added_by(arm: f.Block, accs: Collection[str]) -> list[bool]:
    """Which results of an arm are accumulators."""
    inside = set(accs)
    for bind in arm.binds:
        if not inside.isdisjoint(rhs_mentions(bind.rhs)):
            inside.update(added_to(bind, inside))
    return [isinstance(x, f.Var) and x.name in inside for x in arm.results]


class Level:
    """A level of a nest: the bindings that add, and those that they need (`second`).  `kept` are the numbers that these
    take from the others, at most `most`; fewer, if both do the same arithmetic `again`.  What others need of what is
    given beside sums does not fit; or, if it may `follow`, they are of the second part, too."""

    def __init__(
        self, par: f.Par, lengths: Collection[str], again: bool = False, most: int = MOST, follow: bool = False
    ) -> None:
        self.par, self.lengths = par, lengths
        self.again = again
        self.defined = {var.name: bind for bind in par.body.binds for var in bind.vars}
        self.kept: list[f.Var] = []
        self.accs = {out.acc.name for out in par.outs if out.acc}
        self.adds: list[f.Bind] = []
        self.beside = set[str]()  # what the bindings that add give, but for the accumulators
        for bind in par.body.binds:
            used = rhs_mentions(bind.rhs)
            adds = not self.accs.isdisjoint(used)
            if adds or (follow and not self.beside.isdisjoint(used)):
                self.adds.append(bind)
                made = added_to(bind, self.accs) if adds else []
                self.accs.update(made)
                self.beside.update(var.name for var in bind.vars if var.name not in made)
        self.needed = {id(bind) for bind in self.adds}
        for bind in self.adds:
            self.need(bind.rhs)
        for bind in self.adds if self.kept else ():
            self.check(bind.rhs)
        self.second = tuple([bind for bind in par.body.binds if id(bind) in self.needed])
        others = [x for x, out in zip(par.body.results, par.outs, strict=True) if out.kind != "add"]
        self.wanted = set(names(others)) - (self.beside if follow else set())
        if not self.adds or len(self.kept) > most or not self.accs.isdisjoint(self.wanted):
            raise Unfit
        if self.kept and self.gives_others():
            raise Unfit

    def gives_others(self) -> bool:
        """True if others need something that the bindings that add give besides."""
        adds = set(map(id, self.adds))
        others = [bind.rhs for bind in self.par.body.binds if id(bind) not in adds]
        return not self.beside.isdisjoint(self.wanted.union(*map(rhs_mentions, others)))

    def need(self, rhs: f.Rhs) -> None:
        """Notes what a right-hand side of the second part needs."""
        for name in rhs_mentions(rhs):
            bind = self.defined.get(name)
            if name in self.accs or bind is None or id(bind) in self.needed:
                continue
            var = next(var for var in bind.vars if var.name == name)
            done_again = self.again and (is_cheap(bind.rhs) or is_choice(bind.rhs))
            if f.is_float(var.ty) and not done_again and not (isinstance(bind.rhs, f.Op) and bind.rhs.op == "index"):
                self.kept += [var] if var not in self.kept else []
                continue
            if len(bind.vars) > 1 or not (done_again or is_cheap(bind.rhs)):
                raise Unfit
            self.needed.add(id(bind))
            self.check(bind.rhs)
            self.need(bind.rhs)

    def check(self, rhs: f.Rhs) -> None:
        """What is done later than before must not fail."""
        for inner in blocks(rhs):
            for bind in inner.binds:
                self.check(bind.rhs)
        match rhs:
            case f.Par(space, outs=outs) if not rhs.ordered:
                counts = [count for _, count in space]  # lengths fail below zero, numbers of steps do not
                if any(out.kind not in ("add", "fold") for out in outs) and not all(map(self.is_length, counts)):
                    raise Unfit
            case f.Op("fill", (count, _)) if self.is_length(count):
                pass
            case f.Op(op) if OPS[op].accumulates:
                pass
            case f.Op() | f.If() | f.TupGet() | f.TupMake() if isinstance(rhs, f.If) or droppable(rhs):
                pass
            case _:
                raise Unfit

    def is_length(self, count: f.Atom) -> bool:
        return natural(count) or (isinstance(count, f.Var) and count.name in self.lengths)

    def first(self, kept: Sequence[f.Var], keeps: f.Bind | None = None) -> list[f.Bind]:
        """The bindings of the first part, with `keeps` in place of the inner nest; not those that only the second part
        needs."""
        wanted = self.wanted | {var.name for var in kept}
        adds, made = {id(bind) for bind in self.adds}, list[f.Bind]()
        for bind in reversed(self.par.body.binds):
            if id(bind) in adds:
                if keeps is None:
                    continue
                bind = keeps
            elif wanted.isdisjoint([var.name for var in bind.vars]) and self.is_free(bind):
                continue
            wanted.update(rhs_mentions(bind.rhs))
            made.append(bind)
        return made[::-1]

    def is_free(self, bind: f.Bind) -> bool:
        """True for a binding that may go if it is not used."""
        is_fill = isinstance(bind.rhs, f.Op) and bind.rhs.op == "fill" and self.is_length(bind.rhs.args[0])
        return droppable(bind.rhs) or id(bind) in self.needed or is_fill

    def inner(self) -> f.Bind:
        """The only binding that adds, a Par."""
        if len(self.adds) != 1 or not isinstance(self.adds[0].rhs, f.Par):
            raise Unfit
        return self.adds[0]
