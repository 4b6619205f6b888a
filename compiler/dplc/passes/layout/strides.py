"""What the innermost loops of a nest of Pars read and add to, row by row or in branches: what `columns.py` puts into
columns."""

from __future__ import annotations

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.dims import dims_of
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks, bound_inside, every, rhs_mentions

FEW = 8  # steps of a loop that is no vector


class Lengths:
    """What is known of the lengths of a function's arrays."""

    def __init__(self, body: f.Block) -> None:
        self.dims = dims_of(body)
        self.read = {bind.vars[0].name: self.dims.of(bind.rhs.args[0], bind.rhs.attr("k"))
                     for bind in every(body) if isinstance(bind.rhs, f.Op) and bind.rhs.op == "dim"}  # fmt: skip

    def reaches(self, array: f.Var, k: int, count: f.Atom) -> bool:
        """True if dimension `k` of an array is known to be at least `count`."""
        both = self.dims.of(array, k), count
        length, wanted = (self.read.get(x.name, x) if isinstance(x, f.Var) else x for x in both)
        numbers = [x.value for x in (length, wanted) if isinstance(x, f.Const) and isinstance(x.value, int)]
        return length == wanted or (len(numbers) == 2 and numbers[0] >= numbers[1])


@node
class Column:
    """Elements number 0 ... `count` - 1 of an array along its first dimension, at `rest` in the others."""

    array: f.Var
    count: f.Atom
    rest: tuple[f.Atom, ...]


class Sums:
    """An array, the `target`, that the points of a nest add to: the `names` of the variables that hold it; its
    dimensions; the counts of the loops whose indices are the first ones of what is added to; the others, `rests`."""

    def __init__(self, nest: Nest, number: int) -> None:
        out = nest.par.outs[number]
        assert out.acc is not None and out.target is not None
        self.nest = nest
        self.target = out.target
        self.number = number  # of the out
        self.names = {out.acc.name}
        self.dims: tuple[f.Atom, ...] = ()
        self.counts: dict[f.Atom, None] = {}
        self.rests: dict[tuple[f.Atom, ...], None] = {}
        self.wanted = False  # whether columns are better: an innermost loop adds to its own place

    def holds(self, atom: f.Atom | None) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.names

    def follow(self, block: f.Block, branch: bool) -> bool:
        """True if a block does nothing with the array but adding numbers at places that are known."""
        return all(self.through(bind, branch) for bind in block.binds if self.names & set(rhs_mentions(bind.rhs)))

    def through(self, bind: f.Bind, branch: bool) -> bool:
        match bind.rhs:
            case f.Op("acc_index", (_, f.Var(_, f.Num()) | f.Const(), *_)) as op:
                return self.addition(bind, op, branch)
            case f.Par() as par if not any(self.holds(count) for _, count in par.space):
                return self.through_par(bind, par)
            case f.If(_, then, else_):
                if not (self.follow(then, True) and self.follow(else_, True)):
                    return False
                held = [list(map(self.holds, pair)) for pair in zip(then.results, else_.results, strict=True)]
                self.names.update(var.name for var, both in zip(bind.vars, held, strict=True) if all(both))
                return all(one == other for one, other in held)
            case _:
                return False

    def through_par(self, bind: f.Bind, par: f.Par) -> bool:
        mine = [k for k, out in enumerate(par.outs) if self.holds(out.target)]
        if not all(par.outs[k].kind == "add" for k in mine):
            return False
        self.names.update(acc.name for k in mine if (acc := par.outs[k].acc) is not None)
        if not (self.follow(par.body, False) and all(self.holds(par.body.results[k]) for k in mine)):
            return False
        self.names.update(bind.vars[k].name for k in mine)
        return True

    def addition(self, bind: f.Bind, op: f.Op, branch: bool) -> bool:
        rank = op.attr("rank")
        dims, (first, *rest) = op.args[2 : 2 + rank], op.args[2 + rank :]
        count = self.nest.counts.get(first.name) if isinstance(first, f.Var) else None
        known = count is not None and len(rest) == rank - 1 and all(isinstance(i, f.Const) for i in rest)
        if not known or not all(map(self.nest.outside, dims)) or (self.dims and self.dims != dims):
            return False
        assert isinstance(first, f.Var) and count is not None
        self.dims, self.counts[count], self.rests[tuple(rest)] = dims, None, None
        self.names.add(bind.vars[0].name)
        self.wanted |= first.name in self.nest.lanes and (branch or bool(rest))
        return True


class Nest:
    """A Par with all that is inside of it.  `counts` of the loops, by their indices; `lanes` are the indices of
    innermost loops; `reads` are the reads that columns serve, by the variables that they bind, with their first
    index."""

    def __init__(self, par: f.Par) -> None:
        self.par = par
        self.own = {var.name for var in bound_inside(par)}
        self.counts: dict[str, f.Atom] = {}
        self.lanes: set[str] = set()
        self.innermost: list[f.Par] = []
        self.deep = False  # whether there are nests inside
        self.reads: dict[Column, list[tuple[str, str]]] = {}
        self.sums: list[Sums] = []
        if not par.ordered:
            self.look(par, len(par.space) > 1)

    def outside(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Const) or atom.name not in self.own

    def look(self, par: f.Par, nested: bool) -> None:
        self.counts.update((index.name, count) for index, count in par.space if self.outside(count) and is_long(count))
        inner = [bind.rhs for bind in par.body.binds if isinstance(bind.rhs, f.Par)]
        for one in inner:
            self.look(one, True)
            self.deep |= any(isinstance(bind.rhs, f.Par) for bind in one.body.binds)
        last = par.space[-1][0].name
        if nested and not inner and last in self.counts and is_straight(par.body):
            self.lanes.add(last)
            self.innermost.append(par)

    def find(self) -> None:
        for par in self.innermost:
            self.find_reads(par.body, False)
        for k, out in enumerate(self.par.outs):
            if out.acc is None or not (isinstance(out.acc.ty, f.Arr) and f.is_float(out.acc.ty.elem)):
                continue
            sums = Sums(self, k)
            end = self.par.body.results[k]
            if sums.follow(self.par.body, False) and sums.wanted and sums.holds(end):
                self.sums.append(sums)

    def find_reads(self, block: f.Block, branch: bool) -> None:
        for bind in block.binds:
            match bind.rhs:
                case f.Op("index", (f.Var(_, f.Arr(f.Num(), rank)) as array, f.Var(first), *rest)) if (
                    bind.rhs.attr("unchecked") and len(rest) == rank - 1
                    and first in self.counts and all(map(self.outside, (array, *rest)))
                ):  # fmt: skip
                    if branch or (rest and first in self.lanes):
                        column = Column(array, self.counts[first], tuple(rest))
                        self.reads.setdefault(column, []).append((bind.vars[0].name, first))
                case rhs:
                    for inner in blocks(rhs):
                        self.find_reads(inner, True)


def is_long(count: f.Atom) -> bool:
    """True unless a loop is known to have few steps."""
    return not isinstance(count, f.Const) or (isinstance(count.value, int) and count.value >= FEW)


def is_straight(body: f.Block) -> bool:
    """True if there are only operations on numbers in a body, and branches."""
    return all(is_plain(bind.rhs) for bind in every(body))


def is_plain(rhs: f.Rhs) -> bool:
    match rhs:
        case f.Op("index" | "acc_index", args):
            return all(isinstance(a.ty, f.Num) for a in args[1:])
        case f.Op(op, args):
            return OPS[op].quiet and all(isinstance(a.ty, f.Num) for a in args)
        case f.TupMake() | f.TupGet() | f.If():
            return True
        case _:
            return False
