"""Columns: flat -> flat where what the innermost loops of a nest read and add to lies side by side.

                                                  p, q = par k < m to keep, keep { index a k 0; index a k 1 }
                                                  zeros: f, g
    c = par i < n to add (c = null) {             f, g = par i < n to add f, add g {
      c' = par j < m to add (c' = c) {              f', g' = par j < m to add f, add g {
        if i = j { yield c' }                         x = index p j;  y = index q j
        else { x = index a j 0;  y = index a j 1  =>  u, v = if i = j { yield -0.0, -0.0 } else { ...; yield v, w }
               c1 = acc_index c' v j 0                f1 = acc_index f' u j;  g1 = acc_index g' v j
               c2 = acc_index c1 w j 1; ... } } }     ... } }
                                                  c = par k < m to add (c = null) { acc_index c (index f k) k 0; ... }

The rows of `a` are read n times, but put into columns once (a structure of arrays).  Columns are as long as the loops
are, so that reads in branches need no branch; and what a branch adds is added after it, -0.0 where it adds nothing.  So
loops over rows become vectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer, number_zero
from dplc.flat.copy import Renamed
from dplc.flat.kinds import any_of, kinds
from dplc.flat.types import elem_of
from dplc.flat.walk import supply_for, with_binds, with_body, with_inner
from dplc.passes.layout.invariants import computed_once
from dplc.passes.layout.strides import Column, Lengths, Nest, Sums
from dplc.passes.simplify.purity import HERE

MANY = 256  # columns of a nest, at most
POINTS = any_of(f.Par)


def columns(program: f.Program) -> f.Program:
    supply = supply_for(program)

    def function(fn: f.Fn) -> f.Fn:
        return with_body(fn, _Columns(supply, fn.body).block(fn.body))

    return replace(program, fns={name: function(fn) for name, fn in program.fns.items()})


class _Columns:
    """One function."""

    def __init__(self, supply: f.Supply, body: f.Block) -> None:
        self.supply = supply
        self.lengths = lru_cache(lambda: Lengths(body))

    def block(self, block: f.Block) -> f.Block:
        if not kinds(block) & POINTS:
            return block
        binds: list[f.Bind] = []
        for bind in block.binds:
            if isinstance(bind.rhs, f.Par):
                for one in computed_once(self.supply, bind, bind.rhs):
                    binds += self.nest(one, one.rhs) if isinstance(one.rhs, f.Par) else (one,)
            else:
                binds.append(with_inner(bind, self.block))
        return with_binds(block, binds)

    def nest(self, bind: f.Bind, par: f.Par) -> Iterable[f.Bind]:
        """The bindings in place of a Par: outermost nests first, as columns are best written once."""
        nest = Nest(par)
        if nest.lanes:
            nest.find()
        count = len(nest.reads) + sum(len(one.rests) for one in nest.sums)
        made = _Split(self.supply, nest, self.lengths()).nested(bind) if 0 < count <= MANY else (bind,)
        for one in made:
            yield with_inner(one, self.block) if nest.deep else one


@node
class Added:
    """What a branch adds: to which of the nest's sums, at what place."""

    sums: int
    rest: tuple[f.Atom, ...]
    number: f.Atom
    index: f.Atom


class _Split(Renamed):
    """Writes a nest with columns.  `now` has those that stand for each of the nest's `sums`; `reads` are reads of
    columns, by their indices; `gone` are the reads that they serve."""

    def __init__(self, supply: f.Supply, nest: Nest, known: Lengths) -> None:
        super().__init__({})
        self.b = Builder(supply)
        self.nest = nest
        self.known = known
        self.number = {name: k for k, sums in enumerate(nest.sums) for name in sums.names}
        self.now: list[dict[tuple[f.Atom, ...], f.Atom]] = []
        self.lengths: list[f.Atom] = []
        self.reads: dict[str, dict[Column, f.Bind]] = {}
        self.gone: set[str] = set()
        self.asked: dict[tuple, f.Atom] = {}  # what is asked of bounds, before the nest

    def nested(self, bind: f.Bind) -> Iterable[f.Bind]:
        """The bindings in place of that of a nest."""
        b = self.b
        self.split()
        for sums in self.nest.sums:
            length = sums.dims[0]
            for count in sums.counts:
                length = length if count == length else b.op("max", (length, count))
            zero = f.Const(0.0, elem_of(sums.target.ty))
            self.lengths.append(length)
            self.now.append({rest: b.op("fill", (length, zero)) for rest in sums.rests})
        made = self.par(bind, self.nest.par)
        b.binds.append(made)
        for k, sums in enumerate(self.nest.sums):
            b.binds.append(self.joined(sums, self.now[k], bind.vars[sums.number]))
        return block_of(b.binds, ()).binds

    # ---- columns that are read

    def split(self) -> None:
        """Writes the columns, those of an array and a length together."""
        together: dict[tuple[f.Var, f.Atom], list[Column]] = {}
        for column in self.nest.reads:
            together.setdefault((column.array, column.count), []).append(column)
        for (array, count), found in together.items():
            whole = self.known.reaches(array, 0, count)
            split = [column for column in found if column.rest or not whole]
            made = dict(zip(split, self.columns(array, count, split) if split else (), strict=True))
            for column in found:
                for name, index in self.nest.reads[column]:
                    self.read(column, made.get(column, array), name, index)

    def columns(self, array: f.Var, count: f.Atom, found: list[Column]) -> tuple[f.Var, ...]:
        b, i, elem = self.b, self.b.var("k", f.I64), elem_of(array.ty)
        length = None if self.known.reaches(array, 0, count) else b.op("dim", (array,), k=0)
        inside = [self.inside(column) for column in found]
        with b.inside() as body:
            there = None if length is None else b.op("lt", (i, length))
            elements = [self.element(both(b, there, one), column, i) for column, one in zip(found, inside, strict=True)]
        par = f.Par(((i, count),), block_of(body, elements), (f.Out("keep"),) * len(found))
        return b.bind(par, [f.Arr(elem, 1)] * len(found), "column")

    def inside(self, column: Column) -> f.Atom | None:
        """What is true, when the program runs, if a column's other indices are in bounds; None if that is known."""
        found: f.Atom | None = None
        for k, index in enumerate(column.rest, 1):
            number = index.value if isinstance(index, f.Const) else None
            if isinstance(number, int) and self.known.reaches(column.array, k, integer(number + 1)):
                continue
            found = self.both(found, self.below(index, column.array, k))
        return found

    def below(self, index: f.Atom, array: f.Var, k: int) -> f.Atom:
        """Whether an index is in bounds of a dimension."""
        asked = (index, array.name, k)
        if asked not in self.asked:
            b = self.b
            one: f.Atom = b.op("lt", (index, b.op("dim", (array,), k=k)))
            if not isinstance(index, f.Const):
                one = b.op("and", (one, b.op("le", (integer(0), index))))
            self.asked[asked] = one
        return self.asked[asked]

    def both(self, a: f.Atom | None, b: f.Atom) -> f.Atom:
        """Whether both are true; None is."""
        if a is not None and (a, b) not in self.asked:
            self.asked[a, b] = self.b.op("and", (a, b))
        return b if a is None else self.asked[a, b]

    def element(self, there: f.Atom | None, column: Column, index: f.Var) -> f.Var:
        """An element of a column: 0 where the array is too short."""
        b, elem = self.b, elem_of(column.array.ty)
        with b.inside() as read:
            value = b.op("index", (column.array, index, *column.rest), unchecked=HERE)
        if there is None:
            b.binds += read
            return value
        return b.one(f.If(there, block_of(read, (value,)), f.Block((), (number_zero(elem),))), elem, "x")

    def read(self, column: Column, var: f.Var, name: str, index: str) -> None:
        """Replaces the read that binds `name`."""
        reads = self.reads.setdefault(index, {})
        if column not in reads:
            x = self.b.var("x", elem_of(column.array.ty))
            reads[column] = f.Bind((x,), f.Op("index", (var, f.Var(index, f.I64)), (("unchecked", True),)))
        self.atoms[name] = reads[column].vars[0]
        self.gone.add(name)

    # ---- the nest

    def par(self, bind: f.Bind, par: f.Par) -> f.Bind:
        """A Par with columns in place of the arrays that it adds to."""
        place = [None if out.acc is None else self.number.get(out.acc.name) for out in par.outs]
        outs: list[f.Out] = []
        for out, k in zip(par.outs, place, strict=True):
            if k is None:
                outs.append(out)
                continue
            accs = {rest: self.b.var("c", column.ty) for rest, column in self.now[k].items()}
            outs += [f.Out("add", target=self.now[k][rest], acc=acc) for rest, acc in accs.items()]
            self.now[k] = {**accs}
        binds: list[f.Bind] = [read for index, _ in par.space for read in self.reads.get(index.name, {}).values()]
        self.write(par.body.binds, binds, None)
        results, variables = list[f.Atom](), list[f.Var]()
        for var, result, k in zip(bind.vars, par.body.results, place, strict=True):
            if k is None:
                results.append(self.atom(result))
                variables.append(var)
                continue
            results += self.now[k].values()
            after = {rest: self.b.var("c", column.ty) for rest, column in self.now[k].items()}
            variables += after.values()
            self.now[k] = {**after}
        body = block_of(binds, results)
        return f.Bind(tuple(variables), replace(par, body=body, outs=tuple(outs)))

    def write(self, old: Iterable[f.Bind], binds: list[f.Bind], added: list[Added] | None) -> None:
        """Writes bindings; in a branch, what they add goes to `added`."""
        for bind in old:
            match bind.rhs:
                case f.Op("index") if bind.vars[0].name in self.gone:
                    pass
                case f.Op("acc_index", (f.Var(name), value, *places)) as op if name in self.number:
                    first, *rest = places[op.attr("rank") :]
                    self.add(binds, Added(self.number[name], tuple(rest), self.atom(value), first), added)
                case f.Par() as par:
                    binds.append(self.par(bind, par))
                case f.If() as branch:
                    self.branch(bind, branch, binds, added)
                case rhs:
                    binds.append(f.Bind(bind.vars, self.rhs(rhs)))

    def add(self, binds: list[f.Bind], one: Added, added: list[Added] | None) -> None:
        if added is not None:
            added.append(one)
            return
        column = self.now[one.sums][one.rest]
        after = self.b.var("c", column.ty)
        operands = (column, one.number, self.lengths[one.sums], one.index)
        binds.append(f.Bind((after,), f.Op("acc_index", operands, (("rank", 1),))))
        self.now[one.sums][one.rest] = after

    def branch(self, bind: f.Bind, branch: f.If, binds: list[f.Bind], added: list[Added] | None) -> None:
        """A branch, and after it the additions of its arms."""
        sides: tuple[list[Added], list[Added]] = [], []
        plain = [k for k, var in enumerate(bind.vars) if var.name not in self.number]
        arms: list[list[f.Bind]] = []
        for arm, side in zip((branch.then, branch.else_), sides, strict=True):
            arms.append([])
            self.write(arm.binds, arms[-1], side)
        values = [[self.atom(arm.results[k]) for k in plain] for arm in (branch.then, branch.else_)]
        variables = [bind.vars[k] for k in plain]
        for s, side in enumerate(sides):
            for one in side:
                variables.append(self.b.var("added", one.number.ty))
                values[s].append(one.number)
                values[1 - s].append(f.Const(-0.0, one.number.ty))
        then, else_ = (block_of(arm, results) for arm, results in zip(arms, values, strict=True))
        binds.append(f.Bind(tuple(variables), f.If(self.atom(branch.cond), then, else_)))
        for one, var in zip((*sides[0], *sides[1]), variables[len(plain) :], strict=True):
            self.add(binds, replace(one, number=var), added)

    def joined(self, sums: Sums, columns: dict[tuple[f.Atom, ...], f.Atom], var: f.Var) -> f.Bind:
        """Adds columns to the array that the nest adds to."""
        b, i = self.b, self.b.var("k", f.I64)
        acc = b.var("c", var.ty)
        after = acc
        with b.inside() as body:
            for rest, column in columns.items():
                x = b.op("index", (column, i), unchecked=True)
                after = b.op("acc_index", (after, x, *sums.dims, i, *rest), rank=len(sums.dims))
        out = f.Out("add", target=sums.target, acc=acc)
        return f.Bind((var,), f.Par(((i, sums.dims[0]),), block_of(body, (after,)), (out,)))


def both(b: Builder, one: f.Atom | None, other: f.Atom | None) -> f.Atom | None:
    """The conjunction of conditions; None is true."""
    return b.op("and", (one, other)) if one is not None and other is not None else one or other
