"""flat -> flat where a comprehension that asks for the half of its index, or whether that is even, is one over halves,
whose points make two elements each (strip mining; Loveman 1977).

    y = build i < 2 n {                         z = build q < n {
      m = mod i 2; even = eq m 0                  a = index x q
      h = div i 2; x1 = index x h                 b = index x q; w = neg b
      v = if even { x1 } else { neg x1 }    =>    r = array a w; yield r }
      yield v }                                 y = reshape z (2 n)

So are thirds and fourths.  No point divides then, and the gradient adds at places that are the points' own.  In a nest
of comprehensions the innermost index is meant: what is asked of the others is asked once for a row.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine
from dplc.flat.build import Builder, block_of, integer, product
from dplc.flat.copy import Copier
from dplc.flat.dims import dims_of
from dplc.flat.kinds import any_of, kinds
from dplc.flat.types import elem_of, of_rank, rank_of
from dplc.flat.walk import bound_inside, every, mentions, names, supply_for, with_binds, with_body, with_inner
from dplc.flat.written_sums import written
from dplc.narrow import expect_type
from dplc.passes.simplify.simplify import simplified

STRIDES = range(2, 5)
MOST = 64  # operations of a point, which is written for each element of a strip
LOOPS = any_of(f.Build)


def strip_mining(program: f.Program) -> f.Program:
    supply = supply_for(program)
    fns = {}
    for name, fn in program.fns.items():
        mined = in_strips(fn, supply)
        fns[name] = simplified(mined, supply, program) if mined is not fn else fn
    return replace(program, fns=fns)


def in_strips(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function; one without such loops is given back."""
    if not kinds(fn.body) & LOOPS or not any(divides(bind.rhs) for bind in every(fn.body)):
        return fn
    summed = [bind.rhs.args for bind in every(fn.body) if isinstance(bind.rhs, f.Op) and bind.rhs.op == "sum"]
    uses = Counter(mentions(fn.body))
    sums = {name for args in summed for name in names(args) if uses[name] == 1}  # arrays that are never made
    return with_body(fn, _Mine(Affine(dims_of(fn.body)), supply, sums).block(fn.body))


def divides(rhs: f.Rhs) -> int:
    """The number by which a whole number is divided; 0 if it is none of `STRIDES`."""
    match rhs:
        case f.Op("div" | "mod", (_, f.Const(int(n), f.I64))) if n in STRIDES:
            return n
        case _:
            return 0


@node
class Strips:
    """The innermost loop of a nest of comprehensions, and the loops around it; the length of its strips, and how many
    there are.  If `whole` is not set, the last strip has fewer elements."""

    around: list[f.Build]
    build: f.Build
    stride: int
    number: f.Atom
    whole: bool


class _Mine:
    def __init__(self, affine: Affine, supply: f.Supply, sums: set[str]) -> None:
        self.affine, self.supply, self.sums = affine, supply, sums

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            self.affine.define(bind)
            made = self.mined(bind, bind.rhs) if isinstance(bind.rhs, f.Build) and len(bind.vars) == 1 else None
            binds += made or [with_inner(bind, self.block)]
        return with_binds(block, binds)

    def mined(self, bind: f.Bind, build: f.Build) -> list[f.Bind] | None:
        """The bindings in place of those of a comprehension."""
        b, (var,) = Builder(self.supply), bind.vars
        strips = None if var.name in self.sums else self.strips(b, build)
        if strips is None or not (strips.whole or (not strips.around and f.is_float(elem_of(var.ty)))):
            return None
        made = b.one(_Writer(self.supply, self.affine, strips).nest(0), of_rank(elem_of(var.ty), rank_of(var.ty) + 1))
        lengths = [one.count for one in (*strips.around, strips.build)]
        last = f.Op("reshape", (made, *lengths), (("unchecked", True),))
        if not strips.whole:
            room = product(b, (strips.number, integer(strips.stride)))
            long = b.op("reshape", (made, room), unchecked=True)
            last = f.Op("slice", (long, integer(0), *lengths), (("unchecked", True),))
        return [*block_of(b.binds, ()).binds, f.Bind((var,), last)]

    def strips(self, b: Builder, build: f.Build) -> Strips | None:
        """The strips of the innermost loop of a nest, if it divides its index."""
        inside = {var.name for var in bound_inside(build)}
        around: list[f.Build] = []
        while (inner := inner_of(build)) is not None and inside.isdisjoint(names((inner.count,))):
            self.affine.loop(build.index, build.count)
            for bind in build.body.binds[:-1]:
                self.affine.define(bind)
            around.append(build)
            build = inner
        self.affine.loop(build.index, build.count)
        for bind in every(build.body):
            self.affine.define(bind)
        strides = {stride for bind in every(build.body) if (stride := self.stride(bind.rhs, build.index))}
        results = build.body.results
        if len(strides) != 1 or len(results) != 1 or rank_of(results[0].ty) or not isinstance(results[0].ty, f.Num):
            return None
        if len(every(build.body)) > MOST or any(isinstance(bind.rhs, f.Ad) for bind in every(build.body)):
            return None
        (stride,) = strides
        if isinstance(build.count, f.Const):
            count = known(build.count)
            number = integer(-(-count // stride))
            return Strips(around, build, stride, number, count % stride == 0) if count >= stride else None
        total = self.affine.exact(build.count)
        if any(factor % stride for factor in total.values()) or not self.affine.is_natural(total):
            return None
        number = written(b, self.affine, {term: factor // stride for term, factor in total.items()})
        return Strips(around, build, stride, number, True)

    def stride(self, rhs: f.Rhs, index: f.Var) -> int:
        """The number by which an index, or the sum of it and a constant, is divided; 0 for others."""
        total = self.affine.sum(rhs.args[0]) if isinstance(rhs, f.Op) and divides(rhs) else {}
        return divides(rhs) if {ONE: 0} | total == {ONE: total.get(ONE, 0), index.name: 1} else 0


def inner_of(build: f.Build) -> f.Build | None:
    """The comprehension that makes the rows of another one."""
    last = build.body.binds[-1] if build.body.binds else None
    rows = last is not None and isinstance(last.rhs, f.Build) and build.body.results == last.vars
    return last.rhs if last is not None and isinstance(last.rhs, f.Build) and rows else None


class _Writer(Copier):
    """Writes a nest.  `element` is the number in its strip of the element that is being written."""

    def __init__(self, supply: f.Supply, affine: Affine, strips: Strips) -> None:
        super().__init__(supply, {})
        self.affine, self.strips, self.element = affine, strips, 0
        self.strip = f.Var(supply.fresh(strips.build.index.name), f.I64)

    def nest(self, k: int) -> f.Build:
        """The loops from number k on."""
        strips = self.strips
        inner = (*[one.count for one in strips.around[k + 1 :]], strips.number, integer(strips.stride))
        if k == len(strips.around):
            return f.Build(self.strip, strips.number, self.row(), strips.build.span, (inner[-1:],))
        loop = strips.around[k]
        index = self.var(loop.index)
        before = self.binds(loop.body.binds[:-1])
        rows = self.nest(k + 1)
        row = f.Var(self.supply.fresh("row"), of_rank(elem_of(loop.body.results[0].ty), len(inner)))
        return f.Build(index, loop.count, f.Block((*before, f.Bind((row,), rows)), (row,)), loop.span, (inner,))

    def row(self) -> f.Block:
        """All elements of a strip."""
        b, build, stride = Builder(self.supply), self.strips.build, self.strips.stride
        last = stride if self.strips.whole else known(build.count) % stride  # elements of the last strip
        values: list[f.Atom] = []
        for self.element in range(stride):
            with b.inside() as binds:
                start = b.op("mul", (integer(stride), self.strip))
                self.atoms[build.index.name] = b.op("add", (start, integer(self.element)))
                b.binds += self.binds(build.body.binds)
                value = self.atom(build.body.results[0])
            if self.element < last:
                b.binds += binds
            else:
                there = b.op("lt", (self.strip, integer(known(self.strips.number) - 1)))
                arms = block_of(binds, (value,)), f.Block((), (f.Const(0.0, value.ty),))
                value = b.one(f.If(there, *arms), value.ty, "element")
            values.append(value)
        row = b.op("array", values)
        return block_of(b.binds, (row,))

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        made: list[f.Bind] = []
        for bind in binds:
            quotient = self.quotient(bind.rhs)
            made += super().binds((bind if quotient is None else replace(bind, rhs=quotient),))
        return tuple(made)

    def quotient(self, rhs: f.Rhs) -> f.Op | None:
        """What the quotient of an index by the length of its strips is, or the rest, as an operation."""
        if not isinstance(rhs, f.Op) or divides(rhs) != self.strips.stride:
            return None
        total = self.affine.sum(rhs.args[0])
        if total.keys() - {ONE} != {self.strips.build.index.name} or total[self.strips.build.index.name] != 1:
            return None
        whole, rest = divmod(self.element + total.get(ONE, 0), self.strips.stride)
        return f.Op("add", (self.strip, integer(whole)) if rhs.op == "div" else (integer(rest), integer(0)))


def known(number: f.Atom) -> int:
    return expect_type(int, expect_type(f.Const, number).value)
