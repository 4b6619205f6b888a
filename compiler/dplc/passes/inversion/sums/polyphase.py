"""Additions at every second, third ... place: the phase of a place, what is left of it modulo the stride, gets a
dimension of the accumulator (polyphase decomposition; Bellanger, Bonnerot and Coudreuse 1976).

    c = par i < n to add (c = null) {                    d = par i < n, z < 1 to add (d = null) {
      ...; acc_index c x m (2 i)                   =>      ...; acc_index d x (n + 1) 2 i z
      acc_index c y m (2 i + 3) }                          acc_index d y (n + 1) 2 (i + 1) (z + 1) }
                                                         c = reshape d m, if that is 2 (n + 1)

A phase is that of a constant, for which the nest gets an index of one step, or that of a window's index, which counts
a multiple of the stride: that becomes two loops.  Each index then follows from a place, so the additions can be
inverted.  So are the gradients of pooling, of convolutions with a stride, and of filters before every second sample.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, combined
from dplc.flat.build import Builder, all_hold, block_of, integer, product
from dplc.flat.copy import Copier
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import bound_inside, is_in, names, rhs_mentions
from dplc.flat.written_sums import written
from dplc.narrow import expect_type
from dplc.passes.inversion.nests import Unfit

MOST = 8  # phases of which each is that of a constant


@node
class Phases:
    """The nest that adds to an array with phases, what is computed before it, what it begins with, and what makes the
    array that was added to of this one.  If `fits` is something, all this is only so where it holds."""

    before: tuple[f.Bind, ...]
    start: tuple[f.Bind, ...]
    adds: f.Bind
    after: f.Block
    fits: f.Atom | None

    def around(self, sums: list[f.Bind], bind: f.Bind, supply: f.Supply) -> list[f.Bind]:
        """The bindings in place of those of a nest, with these in place of that with phases."""
        binds = (*self.start, *sums, *self.after.binds)
        if self.fits is None:
            return [*self.before, *binds]
        as_it_is = Copier(supply, {}).binds((bind,))
        arms = f.Block(binds, self.after.results), f.Block(as_it_is, as_it_is[0].vars)
        return [*self.before, f.Bind(bind.vars, f.If(self.fits, *arms))]


def in_phases(bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply) -> Phases | None:
    """A nest that adds to one array only, with phases; None if it does not add with a stride."""
    if par.ordered or len(par.outs) != 1 or par.outs[0].acc is None:
        return None
    try:
        sites = _Sites(par, par.outs[0].acc, affine)
        strides = [sites.stride(k) for k in range(sites.rank)]
        return None if set(strides) == {1} else _Writer(sites, strides, supply).nest(bind, par)
    except Unfit:
        return None


class _Sites:
    """What a nest adds to an accumulator.  `held` are its names, `places` the places by dimensions."""

    def __init__(self, par: f.Par, acc: f.Var, affine: Affine) -> None:
        self.affine, self.rank = affine, rank_of(acc.ty)
        self.loops: dict[str, f.Atom] = {}
        self.held = {acc.name}
        self.places: list[list[Sum]] = [[] for _ in range(self.rank)]
        self.lengths: tuple[f.Atom, ...] = ()
        self.inside = {var.name for var in bound_inside(par)}
        self.walk(par)
        if not self.lengths or not self.inside.isdisjoint(names(self.lengths)):
            raise Unfit

    def walk(self, par: f.Par) -> None:
        self.affine.loops(par)
        self.loops |= {index.name: count for index, count in par.space}
        self.block(par.body)

    def block(self, block: f.Block) -> None:
        for bind in block.binds:
            self.affine.define(bind)
            if self.held.isdisjoint(rhs_mentions(bind.rhs)):
                continue
            match bind.rhs:
                case f.Par(outs=(f.Out("add", acc=f.Var() as acc),)) as inner if not inner.ordered:
                    self.held |= {acc.name, bind.vars[0].name}
                    self.walk(inner)
                case f.If(_, then, other):
                    self.block(then)
                    self.block(other)
                    self.held |= {var.name for var, x in zip(bind.vars, then.results, strict=True)
                                  if is_in(x, self.held)}  # fmt: skip
                case f.Op("acc_index", (acc, value, *rest)) if is_in(acc, self.held) and len(rest) == 2 * self.rank:
                    if not isinstance(value.ty, f.Num) or self.lengths not in ((), (*rest[: self.rank],)):
                        raise Unfit
                    self.lengths = (*rest[: self.rank],)
                    for places, at in zip(self.places, rest[self.rank :], strict=True):
                        places.append(self.affine.sum(at))
                    self.held.add(bind.vars[0].name)
                case _:
                    raise Unfit

    def stride(self, k: int) -> int:
        """The stride of the places in a dimension; 1 if there is none."""
        terms = [(term, factor) for at in self.places[k] for term, factor in at.items() if term != ONE]
        strides = {factor for _, factor in terms if factor != 1}
        if not strides:
            return 1
        stride = min(strides)
        if stride < 2 or any(term not in self.loops for term, _ in terms):
            raise Unfit
        if stride > MOST and any(self.window(at, stride) is None for at in self.places[k]):
            raise Unfit
        return stride

    def window(self, at: Sum, stride: int) -> str | None:
        """The index that tells the phase of a place; None if that is the same for all points."""
        rest = [str(term) for term, factor in at.items() if term != ONE and factor % stride]
        if not rest:
            return None
        count = self.loops[rest[0]]
        whole = isinstance(count, f.Const) and isinstance(count.value, int) and count.value % stride == 0
        if len(rest) > 1 or at[rest[0]] != 1 or at.get(ONE, 0) % stride or not whole:
            raise Unfit
        return rest[0]


class _Writer(Copier):
    """Writes a nest again.  `windows` are the indices that tell phases, with the stride."""

    def __init__(self, sites: _Sites, strides: Sequence[int], supply: f.Supply) -> None:
        super().__init__(supply, {})
        self.sites, self.affine, self.strides = sites, sites.affine, strides
        self.phases: dict[int, f.Var] = {}  # the index of one step, by dimensions
        self.windows: dict[str, int] = {}
        self.parts: dict[str, tuple[f.Var | None, f.Var]] = {}  # the index of whole strides, and that of the phase
        self.rank = sites.rank + sum(stride > 1 for stride in strides)
        self.b = Builder(supply)
        for k, stride in enumerate(strides):
            for at in sites.places[k] if stride > 1 else ():
                if (index := sites.window(at, stride)) is None:
                    self.phases.setdefault(k, f.Var(supply.fresh("phase"), f.I64))
                elif self.windows.setdefault(index, stride) != stride:
                    raise Unfit

    def nest(self, bind: f.Bind, par: f.Par) -> Phases:
        b, (out,), (var,) = self.b, par.outs, bind.vars
        lengths, ty = self.sites.lengths, self.deeper(expect_type(f.Arr, var.ty))
        counts = [self.count(k, length) for k, length in enumerate(lengths)]
        self.dims = [n for count, stride in zip(counts, self.strides, strict=True)
                     for n in ((count, integer(stride)) if stride > 1 else (count,))]  # fmt: skip
        room = [product(b, (count, integer(stride))) for count, stride in zip(counts, self.strides, strict=True)]
        differ = [(n, length) for n, length in zip(room, lengths, strict=True) if n != length]
        other = any(all(isinstance(n, f.Const) for n in pair) for pair in differ)  # there are always other lengths
        fits = None if other or not differ else all_hold(b, [b.op("eq", pair) for pair in differ])
        adds_there = isinstance(out.target, f.Var)
        before = block_of(b.binds, ()).binds
        b.binds = []
        start: f.Atom = f.Const(None, ty)
        if out.target is not None and adds_there and not other:
            start = b.op("reshape", (b.op("acc_zeros", (out.target, *lengths)), *self.dims), unchecked=True)
        made = expect_type(f.Par, self.rhs(replace(par, outs=(replace(out, target=start, inner=()),))))
        made = replace(made, space=(*made.space, *[(phase, integer(1)) for phase in self.phases.values()]))
        sums = b.var(var.name, ty)
        begins = block_of(b.binds, ()).binds
        with b.inside() as binds:
            as_it_is = f.Op("reshape", (sums, *lengths), (("unchecked", True),))
            if fits is not None and adds_there:
                var = b.one(as_it_is, var.ty, var.name)
            else:
                last = self.whole(sums, room, as_it_is, other, fits, var)
                if adds_there and other:
                    last = f.Op("acc_add", (expect_type(f.Var, out.target), b.one(last, var.ty, var.name)))
                b.binds.append(f.Bind((var,), last))
        after = block_of(binds, (var,))
        return Phases(before, begins, f.Bind((sums,), made), after, fits if adds_there else None)

    def whole(
        self, made: f.Var, room: Sequence[f.Atom], as_it_is: f.Op, other: bool, fits: f.Atom | None, var: f.Var
    ) -> f.Rhs:  # fmt: skip
        """The array that is added to, made of that with phases."""
        if other:
            return self.other(made, room)
        if fits is None:
            return as_it_is
        b = self.b
        with b.inside() as here:
            same = b.one(as_it_is, var.ty, var.name)
        with b.inside() as there:
            copied = b.one(self.other(made, room), var.ty, var.name)
        return f.If(fits, block_of(here, (same,)), block_of(there, (copied,)))

    def deeper(self, ty: f.Arr) -> f.Arr:
        return f.Arr(ty.elem, self.rank)

    def count(self, k: int, length: f.Atom) -> f.Atom:
        """How many whole strides there are: as the length says, or as many as the points need."""
        stride = self.strides[k]
        if stride == 1:
            return length
        if isinstance(length, f.Const) and isinstance(length.value, int):
            return integer(-(-length.value // stride))
        most, indices = 0, set[str]()
        for at in self.sites.places[k]:
            window = self.sites.window(at, stride)
            steps = 1 if window is None else known(self.sites.loops[window])
            most = max(most, (at.get(ONE, 0) + steps - 1) // stride)
            indices |= {str(term) for term in at if term not in (ONE, window)}
            if len(indices) != 1 or at.get(next(iter(indices))) != stride:  # or a place that no index tells
                raise Unfit
        count = self.sites.loops[indices.pop()]
        if not self.sites.inside.isdisjoint(names((count,))):
            raise Unfit
        return self.b.op("add", (count, integer(most))) if most else count

    # ---- the nest

    def var(self, var: f.Var) -> f.Var:
        if var.name in self.sites.held:
            var = replace(var, ty=self.deeper(expect_type(f.Arr, var.ty)))
        made = super().var(var)
        if (stride := self.windows.get(var.name)) is not None:
            whole = self.sites.loops[var.name] == integer(stride)
            self.parts[var.name] = (None, made) if whole else (self.b.var("stride", f.I64), self.b.var("phase", f.I64))
        return made

    def rhs(self, rhs: f.Rhs) -> f.Rhs:
        made = super().rhs(rhs)
        if not isinstance(rhs, f.Par):
            return made
        made = expect_type(f.Par, made)
        space, before = list[tuple[f.Var, f.Atom]](), list[f.Bind]()
        for (old, _), (index, count) in zip(rhs.space, made.space, strict=True):
            whole, phase = self.parts.get(old.name, (None, index))
            if whole is None:
                space.append((index, count))
                continue
            stride = integer(self.windows[old.name])
            space += [(whole, integer(known(count) // known(stride))), (phase, stride)]
            with self.b.inside() as binds:
                self.b.binds.append(f.Bind((index,), f.Op("add", (self.b.op("mul", (stride, whole)), phase))))
            before += block_of(binds, ()).binds
        return replace(made, space=tuple(space), body=replace(made.body, binds=(*before, *made.body.binds)))

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        made: list[f.Bind] = []
        for bind in binds:
            match bind.rhs:
                case f.Op("acc_index", (acc, value, *rest)) as op if is_in(acc, self.sites.held):
                    with self.b.inside() as before:
                        at = [part for k, place in enumerate(rest[self.sites.rank :]) for part in self.place(k, place)]
                    args = (self.atom(acc), self.atom(value), *self.dims, *at)
                    add = replace(op, args=args, attrs=(("rank", self.rank),))
                    made += [*block_of(before, ()).binds, f.Bind((self.var(bind.vars[0]),), add)]
                case _:
                    made += super().binds((bind,))
        return tuple(made)

    def place(self, k: int, place: f.Atom) -> list[f.Atom]:
        """Whole strides, and the phase, of a place."""
        stride, at = self.strides[k], self.affine.sum(place)
        if stride == 1:
            return [self.atom(place)]
        steps, left = divmod(at.get(ONE, 0), stride)
        total: Sum = {ONE: steps} if steps else {}
        phase: f.Atom | None = None
        for term, factor in at.items():
            if term == ONE:
                continue
            if factor % stride:
                whole, phase = self.parts[str(term)]
            else:
                whole = expect_type(f.Var, self.atoms[str(term)])
            if whole is not None:
                total = combined(total, {whole.name: max(1, factor // stride)}, 1)
        if phase is None:
            phase = self.phases[k]
            phase = self.b.op("add", (phase, integer(left))) if left else phase
        return [written(self.b, self.affine, total), phase]

    # ---- the array that is added to

    def other(self, made: f.Var, room: Sequence[f.Atom]) -> f.Rhs:
        """The array with lengths that are no multiples of the strides: a part of that with phases, or a copy."""
        b, lengths = self.b, self.sites.lengths
        long = b.op("reshape", (made, *room), unchecked=True)
        first, *others = lengths
        if [*others] == [*room[1:]] and is_part(first, room[0]):
            return f.Op("slice", (long, integer(0), first), (("unchecked", True),))
        places = [b.var("place", f.I64) for _ in lengths]
        with b.inside() as binds:
            beyond = [(at, n) for at, n, length in zip(places, room, lengths, strict=True) if not is_part(length, n)]
            with b.inside() as there:
                x = b.op("index", (long, *places), unchecked=True)
            value: f.Atom = f.Const(0.0, elem_of(made.ty))
            if beyond:
                all_there = all_hold(b, [b.op("lt", pair) for pair in beyond])
                value = b.one(f.If(all_there, block_of(there, (x,)), f.Block((), (value,))), x.ty, "kept")
            else:
                binds += there
                value = x
        return f.Par(tuple(zip(places, lengths, strict=True)), block_of(binds, (value,)), (f.Out("keep"),))


def known(number: f.Atom) -> int:
    return expect_type(int, expect_type(f.Const, number).value)


def is_part(length: f.Atom, whole: f.Atom) -> bool:
    """True for a known length that is not greater than another one."""
    match length, whole:
        case f.Const(int(n)), f.Const(int(most)):
            return n <= most
        case _:
            return length == whole
