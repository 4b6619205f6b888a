"""flat -> flat where steps and points in which a direction has no part do not compute its derivative.

    u = par j < 26 to keep {                              u = ...
      e = eq j k                                          d = ...
      v = if e { yield 1.0 } else { yield 0.0 }           t = par b < 22 to keep {
      yield v }                                             x = index d b 0; y = index d b 1
    d = ... u ...                                           n = ne x 0.0; m = ne y 0.0; o = or n m; yield o }
    par p < 100 to keep {                           =>    par p < 100 to keep {
      s = par b < 22 to fold 0 {                            s = par b < 22 to fold 0 {
        x = index d b 0; y = index d b 1                      o = index t b
        ...; z = add f g                                      z = if o { x = index d b 0; ...; yield z }
        yield z }                                                  else { yield 0.0 }
      yield s }                                               yield z }
                                                            yield s }

The columns of a Jacobian are derivatives in the directions of an identity's rows.  Most numbers that follow from such
a row are zero where each argument has a part in few results.  Which ones, a program knows as it runs (dynamic
exploitation of sparsity: Bischof, Khademi, Bouaricha and Carle 1996).

A slice of a block is left out where its sources, numbers that follow from such a row, are 0.0.  It has only numbers
that are 0.0, too, then: sums, differences and opposites of such numbers, their products with finite constants, and
products and quotients with a guard against NaN (`flat/nans.py`).  What they alone use is in the slice as well.

If such a zero is negative, the slice gives the positive one.  Nobody sees that: before a program gets a derivative, 0.0
is added to what may be -0.0 (`ad/tangents/convert.py`).  A result of a slice cannot be -0.0, or depends on a guard,
which only derivatives have, without an operation between that cannot give -0.0.

Whether a slice is done is asked in loops in order that change arrays, in points that make rows, and in inner loops of
points where it is alike for all of these.  It is asked before the loop there.  Other points may be lanes of vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.build import Builder, all_hold, block_of, integer, number_zero
from dplc.flat.copy import Copier
from dplc.flat.kinds import any_of, kinds
from dplc.flat.nans import guarded
from dplc.flat.ops.table import OPS
from dplc.flat.signs import zeros_positive
from dplc.flat.types import rank_of
from dplc.flat.walk import (
    bound_inside,
    every,
    is_in,
    names,
    rhs_mentions,
    supply_for,
    with_binds,
    with_body,
    with_inner,
)
from dplc.passes.simplify.purity import HERE, droppable, natural
from dplc.passes.vectors.directions import following

LEAST = 48  # operations of a slice
ASKED = 12  # operations, at least, for each source that is asked for in each step
KNOWN = 4  # the same, where that is asked before the loop
LOOPS = any_of(f.For, f.While, f.Par)


def zero_directions(program: f.Program) -> f.Program:
    if not (found := following(program)):
        return program
    supply = supply_for(program)
    made = {name: with_body(program.fns[name], _Zeros(program.fns[name].body, names, supply).body())
            for name, names in found.items()}  # fmt: skip
    return replace(program, fns={**program.fns, **made})


@node
class Slice:
    """What is left out where all `sources` are 0.0: bindings by their positions, and their results.  It can be asked
    for at position `at`."""

    at: int
    inside: dict[int, f.Bind]
    results: tuple[f.Var, ...]
    sources: tuple[f.Var, ...]


class _Zeros:
    """One function; `found` are the variables that follow from rows of an identity."""

    def __init__(self, body: f.Block, found: set[str], supply: f.Supply) -> None:
        self.whole, self.found, self.b = body, found, Builder(supply)
        self.positive: set[str] = set()  # floats that are never -0.0
        for bind in every(body):
            if isinstance(op := bind.rhs, f.Op) and len(bind.vars) == 1 and OPS[op.op].positive(op, self.is_positive):
                self.positive.add(bind.vars[0].name)

    def is_positive(self, atom: f.Atom) -> bool:
        return is_in(atom, self.positive) if isinstance(atom, f.Var) else zeros_positive(atom, {})

    def body(self) -> f.Block:
        return self.block(self.whole, False)

    def block(self, block: f.Block, asks: bool) -> f.Block:
        """A block; one that `asks` leaves out a slice where it is zero."""
        if not self.found.isdisjoint(names_bound(block)):
            block = with_binds(block, [made for bind in block.binds for made in self.bind(bind, asks)])
            if asks and (found := self.slice(block, False)) is not None:
                return self.asked(block, found)
        return block

    def bind(self, bind: f.Bind, asks: bool) -> Sequence[f.Bind]:
        match bind.rhs:
            case f.Par() as par if not par.ordered and any(isinstance(one.rhs, f.Par) for one in par.body.binds):
                return self.nest(with_inner(bind, lambda body: self.block(body, False)))
            case f.Par() as par:
                rows = all(map(rank_of, [x.ty for x in par.body.results])) and not kinds(par.body) & LOOPS
                return (with_inner(bind, lambda body: self.block(body, rows)),)
            case f.For(state=state) | f.While(state=state):
                changes = any(rank_of(var.ty) for var in state)
                return (with_inner(bind, lambda body: self.block(body, changes)),)
            case _:
                return (with_inner(bind, lambda body: self.block(body, asks)),)

    # ---- what can be left out

    def slice(self, block: f.Block, reads: bool) -> Slice | None:
        """A slice that is worth asking for; with `reads`, what is read is in it."""
        linear = _Linear(self.found, self.positive, block)
        left, inside, results = set(names(block.results)), dict[int, f.Bind](), list[f.Var]()
        for at in reversed(range(len(block.binds))):
            bind = block.binds[at]
            if is_number(bind) and (reads or not is_read(bind)):
                (var,) = bind.vars
                if var.name in left and linear.unseen.get(var.name):
                    results.append(var)
                elif var.name in left:
                    left.update(rhs_mentions(bind.rhs))
                    continue
                inside[at] = bind
            else:
                left.update(rhs_mentions(bind.rhs))
        sources = {x.name: x for x in linear.sources(results)}
        if not sources or len(inside) < max(LEAST, (KNOWN if reads else ASKED) * len(sources)):
            return None
        used = {name for bind in inside.values() for name in rhs_mentions(bind.rhs)} | sources.keys()
        given = {var.name for var in results}
        others = [(at, bind) for at, bind in enumerate(block.binds) if at not in inside]
        at = max([at + 1 for at, bind in others if not used.isdisjoint(names(bind.vars))], default=0)
        if any(before < at and not given.isdisjoint(rhs_mentions(bind.rhs)) for before, bind in others):
            return None
        return Slice(at, inside, tuple(reversed(results)), tuple(sources.values()))

    def asked(self, block: f.Block, found: Slice) -> f.Block:
        """A block that asks for the sources of a slice."""
        b = self.b
        with b.inside() as binds:
            some = any_part(b, found.sources)
        return without(block, found, [*block_of(binds, ()).binds, self.branch(some, found)])

    def branch(self, some: f.Atom, found: Slice) -> f.Bind:
        inside = tuple([found.inside[at] for at in sorted(found.inside)])
        zeros = f.Block((), tuple([number_zero(var.ty) for var in found.results]))
        done = Copier(self.b.supply, {}).block(f.Block(inside, found.results))
        return f.Bind(found.results, f.If(some, done, zeros))

    # ---- inner loops of points

    def nest(self, bind: f.Bind) -> Sequence[f.Bind]:
        """A Par, after what it asks for."""
        par, b = bind.rhs, self.b
        assert isinstance(par, f.Par)
        own = {var.name for var in bound_inside(par)}
        with b.inside() as before:
            binds = [replace(one, rhs=self.inner(one.rhs, par, own)) if isinstance(one.rhs, f.Par) else one
                     for one in par.body.binds]  # fmt: skip
        if not before:
            return (bind,)
        return (*block_of(before, ()).binds, f.Bind(bind.vars, replace(par, body=with_binds(par.body, binds))))

    def inner(self, inner: f.Par, par: f.Par, own: set[str]) -> f.Par:
        """A loop in the points of a Par."""
        (index, count), b = inner.space[-1], self.b
        if len(inner.space) > 1 or inner.ordered or is_in(count, own) or kinds(inner.body) & LOOPS:
            return inner
        if (found := self.slice(inner.body, True)) is None:
            return inner
        reads = [bind for bind in inner.body.binds if not {*found.sources}.isdisjoint(bind.vars)]
        if len(reads) < len(found.sources) or not all(is_alike(bind.rhs, index, own) for bind in reads):
            return inner
        for _, points in par.space:
            if not (isinstance(points, f.Const) and natural(points) and points.value):
                count = b.op("select", (b.op("eq", (points, integer(0))), integer(0), count))
        i = b.var("b", f.I64)
        with b.inside() as body:
            some = self.known(Copier(b.supply, {index.name: i}).block(f.Block(tuple(reads), found.sources)))
        asked = b.one(f.Par(((i, count),), block_of(body, (some,)), (f.Out("keep"),)), f.Arr(f.BOOL, 1), "parts")
        here = b.var("some", f.BOOL)
        read = f.Bind((here,), f.Op("index", (asked, index), (("unchecked", True),)))
        return replace(inner, body=without(inner.body, found, [read, self.branch(here, found)]))

    def known(self, reads: f.Block) -> f.Atom:
        """True where one of the numbers that are read is not zero, or a read may be out of bounds: what is in bounds
        only where the nest has checked another read is asked for."""
        b = self.b
        ops = [bind.rhs for bind in reads.binds if isinstance(bind.rhs, f.Op) and bind.rhs.attr("unchecked") == HERE]
        asked = dict.fromkeys((op.args[0], k, i) for op in ops for k, i in enumerate(op.args[1:]))
        there = [b.op("lt", (i, b.op("dim", (array,), k=k))) for array, k, i in asked]
        with b.inside() as inner:
            b.binds += reads.binds
            some = any_part(b, reads.results)
        if not there:
            b.binds += inner
            return some
        branch = f.If(all_hold(b, there), block_of(inner, (some,)), f.Block((), (f.Const(True, f.BOOL),)))
        return b.one(branch, f.BOOL, "some")


class _Linear:
    """The numbers of a block that are zero if its sources are: which ones, and whether the sign of such a zero is never
    asked for."""

    def __init__(self, found: set[str], positive: set[str], block: f.Block) -> None:
        self.found, self.positive = found, positive
        self.ops = {b.vars[0].name: b.rhs for b in block.binds if isinstance(b.rhs, f.Op) and len(b.vars) == 1}
        self.computed = {name for name, op in self.ops.items() if op.op != "index"}
        self.unseen: dict[str, bool] = {}
        self.perhaps: set[str] = set()  # zero or NaN
        self.because: dict[str, Sequence[f.Atom]] = {}  # the numbers that tell that one is zero, or zero or NaN
        for bind in block.binds:
            if isinstance(bind.rhs, f.Op) and len(bind.vars) == 1 and f.is_float(bind.vars[0].ty):
                self.note(bind.vars[0], bind.rhs)

    def note(self, var: f.Var, op: f.Op) -> None:
        stopped = self.stops(op)
        if stopped or self.is_zero(op):
            hidden = bool(stopped) or any(self.is_hidden(x) for x in op.args)
            self.unseen[var.name] = hidden or var.name in self.positive
        elif self.may_be_zero(op):
            self.perhaps.add(var.name)
        self.because[var.name] = stopped or op.args

    def is_source(self, atom: f.Atom) -> bool:
        return is_in(atom, self.found) and f.is_float(atom.ty) and not is_in(atom, self.computed)

    def sources(self, numbers: Sequence[f.Atom]) -> Iterator[f.Var]:
        """The sources that make numbers zero, also through numbers that are no part of a slice."""
        todo, seen = list(numbers), set[f.Atom]()
        while todo:
            x = todo.pop()
            if not isinstance(x, f.Var) or x in seen:
                continue
            seen.add(x)
            if self.is_source(x):
                yield x
            elif x.name in self.unseen or x.name in self.perhaps:
                todo += self.because[x.name]

    def zero(self, atom: f.Atom) -> bool:
        return atom == f.Const(0.0, atom.ty) or is_in(atom, self.unseen) or self.is_source(atom)

    def is_hidden(self, atom: f.Atom) -> bool:
        """True if a zero depends on a guard, without an operation between that cannot be -0.0."""
        return isinstance(atom, f.Var) and self.unseen.get(atom.name, False) and atom.name not in self.positive

    def is_zero(self, op: f.Op) -> bool:
        match op:
            case f.Op("add" | "sub" | "acc_add" | "neg", args):
                return all(map(self.zero, args))
            case f.Op("mul", (a, b)):
                zeros = self.zero(a), self.zero(b)
                return all(zeros) or (zeros[0] and is_finite(b)) or (zeros[1] and is_finite(a))
            case f.Op("select", (_, a, b)):
                return self.zero(a) and self.zero(b)
            case _:
                return False

    def may_be_zero(self, op: f.Op) -> bool:
        """True for what is zero or NaN."""
        match op:
            case f.Op("mul", (a, b)):
                return any(self.zero(x) or is_in(x, self.perhaps) for x in (a, b))
            case f.Op("div", (a, _)):
                return self.zero(a) or is_in(a, self.perhaps)
            case _:
                return False

    def stops(self, op: f.Op) -> Sequence[f.Atom]:
        """Of a guard against NaN of a number that is zero or NaN, which is zero if another one is: both.  None for
        others."""
        guard = guarded(self.ops, op)
        if guard is None or guard[1].name not in self.perhaps:
            return ()
        asked = self.ops.get(guard[0].name) if isinstance(guard[0], f.Var) else None
        match asked:
            case f.Op("eq", (x, f.Const(0.0))) if self.zero(x):
                return x, guard[1]
            case _:
                return ()


def names_bound(block: f.Block) -> Iterator[str]:
    return (var.name for bind in every(block) for var in bind.vars)


def is_finite(atom: f.Atom) -> bool:
    return isinstance(atom, f.Const) and isinstance(atom.value, float) and isfinite(atom.value)


def is_number(bind: f.Bind) -> bool:
    """True for an operation that gives a number and cannot fail."""
    one = isinstance(bind.rhs, f.Op) and len(bind.vars) == 1
    return one and isinstance(bind.vars[0].ty, f.Num) and droppable(bind.rhs)


def is_read(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.Op) and any(not isinstance(x.ty, f.Num) for x in bind.rhs.args)


def is_alike(rhs: f.Rhs, index: f.Var, own: set[str]) -> bool:
    """True for a read that is in bounds, of an array from outside, at an index of an inner loop and known ones."""
    match rhs:
        case f.Op("index", (array, *at)) if droppable(rhs):
            return not is_in(array, own) and all(i == index or natural(i) for i in at)
        case _:
            return False


def any_part(b: Builder, sources: Sequence[f.Atom]) -> f.Atom:
    """True if one of several numbers is not zero."""
    some: f.Atom = f.Const(False, f.BOOL)
    for k, x in enumerate(sources):
        other = b.op("ne", (x, number_zero(x.ty)))
        some = b.op("or", (some, other)) if k else other
    return some


def without(block: f.Block, found: Slice, instead: Sequence[f.Bind]) -> f.Block:
    """A block without a slice, and with these bindings in its place."""
    kept = [(at, bind) for at, bind in enumerate(block.binds) if at not in found.inside]
    binds = [*[bind for at, bind in kept if at < found.at], *instead, *[bind for at, bind in kept if at >= found.at]]
    return f.Block(tuple(binds), block.results)
