"""Copies of rows that lie one after the other are one copy (loop coalescing; Polychronopoulos 1987).

    b = par i < n to keep of (5 m) {                    u = reshape x w*m;  l = mul 5 m
      r = par v < 5 to keep of (m) {                    c = par i < n to keep of (l) {
        j = add v i                               =>      r = par t < l to keep {
        s = par e < m to keep {                             y = index u i*m+t;  yield y }
          y = index x j e; yield y }                      yield r }
        yield s }                                       b = reshape c n 5 m
      yield r }               x : w rows of m

Element e of row v is number v m + e after the first, in what is read and in what is made.  Windows of an image or of a
series have such rows, which are short: each was a loop of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.dims import Dims, dims_of
from dplc.flat.kinds import any_of, kinds
from dplc.flat.types import elem_of, of_rank, rank_of
from dplc.flat.walk import bound_inside, mentions, names, with_binds, with_body, with_inner
from dplc.passes.parallel.flat_nests import flat_nest, is_index_arithmetic, is_some
from dplc.passes.simplify.fold import folded

POINTS = any_of(f.Par)


def consecutive_rows(fn: f.Fn, supply: f.Supply) -> f.Fn:
    return with_body(fn, _Rows(supply, fn.body).block(fn.body))


@node
class _Copy:
    """A Par whose points copy an element of the row with number `first` (None: 0) plus the last index but one."""

    par: f.Par
    before: tuple[f.Bind, ...]  # index arithmetic
    read: f.Op
    first: f.Atom | None


class _Rows:
    """One function."""

    def __init__(self, supply: f.Supply, body: f.Block) -> None:
        self.supply, self.body = supply, body

    @cached_property
    def dims(self) -> Dims:
        return dims_of(self.body)

    def block(self, block: f.Block) -> f.Block:
        if not kinds(block) & POINTS:
            return block
        binds: list[f.Bind] = []
        for bind in block.binds:
            made = self.merged(bind.vars[0], bind.rhs) if isinstance(bind.rhs, f.Par) and len(bind.vars) == 1 else None
            binds += made or [with_inner(bind, self.block)]
        return with_binds(block, binds)

    def merged(self, var: f.Var, par: f.Par) -> tuple[f.Bind, ...] | None:
        nest = nest_of(par)
        copy = self.copied(nest) if all(is_kept(one) for one in nest) else None
        if copy is None:
            return None
        (_, rows), (_, width) = copy.par.space[-2:]
        array = copy.read.args[0]
        if not {one.name for one in bound_inside(par)}.isdisjoint(names((array, width))):
            return None
        b = Builder(self.supply)
        length = folded(b, "mul", rows, width)
        lengths = [self.length(b, array, k) for k in range(rank_of(array.ty) - 1)]
        view = b.op("reshape", (array, *lengths[:-1], folded(b, "mul", lengths[-1], width)), unchecked=True)
        inner = par.outs[0].inner
        told = folded(b, "mul", rows, inner[-1]) if len(inner) > 1 else length
        made = lower(var, self.supply)
        b.binds.append(f.Bind((made,), self.nested(nest, self.once(copy, view, length), told)))
        kept = [b.op("dim", (made,), k=k) for k in range(rank_of(made.ty))]
        dims = (*kept[:-1], rows, b.op("div", (kept[-1], rows)))
        b.binds.append(f.Bind((var,), f.Op("reshape", (made, *dims), (("unchecked", True),), par.span)))
        return block_of(b.binds, ()).binds

    def length(self, b: Builder, array: f.Atom, k: int) -> f.Atom:
        known = self.dims.of(array, k)
        return known if isinstance(known, f.Const) else b.op("dim", (array,), k=k)

    def copied(self, nest: Sequence[f.Par]) -> _Copy | None:
        """What the innermost Pars of a nest do, if they copy rows."""
        inmost = flat_nest(nest[-2]) if len(nest) > 1 and len(nest[-1].space) == 1 else nest[-1]
        match inmost.body:
            case f.Block((*before, f.Bind(made, f.Op("index", (array, *at)) as read)), results) if made == results:
                pass
            case _:
                return None
        if len(inmost.space) < 2 or len(at) < 2 or len(at) != rank_of(array.ty) or not read.attr("unchecked"):
            return None
        (row, rows), (element, width) = inmost.space[-2:]
        uses, place = Counter(mentions(inmost.body)), at[-2]
        if at[-1] != element or uses[element.name] != 1 or uses[row.name] != 1 or not is_some(rows):
            return None
        if not all(map(is_index_arithmetic, before)) or not self.is_width(array, width):
            return None
        if place == row:
            return _Copy(inmost, tuple(before), read, None)
        for bind in before:
            match bind:
                case f.Bind((f.Var(name) as total,), f.Op("add", args)) if total == place and row in args:
                    (first,) = [a for a in args if a != row]
                    rest = tuple([one for one in before if one is not bind])
                    return _Copy(inmost, rest, read, first) if uses[name] == 1 else None
                case _:
                    pass
        return None

    def is_width(self, array: f.Atom, width: f.Atom) -> bool:
        """True for the length of an array's rows."""
        read = self.dims.measured.get(width.name) if isinstance(width, f.Var) else None
        own = self.dims.of(array, rank_of(array.ty) - 1)
        return own is not None and own in (width, read)

    def once(self, copy: _Copy, view: f.Var, length: f.Atom) -> f.Par:
        """The Par that copies the elements of all rows."""
        index = f.Var(self.supply.fresh("t"), f.I64)
        b, place = Builder(self.supply), index
        if copy.first is not None:
            place = b.op("add", (folded(b, "mul", copy.first, copy.par.space[-1][1]), index))
        read = replace(copy.read, args=(view, *copy.read.args[1:-2], place))
        number = f.Var(self.supply.fresh("x"), elem_of(view.ty))
        body = f.Block((*copy.before, *block_of(b.binds, ()).binds, f.Bind((number,), read)), (number,))
        return replace(copy.par, space=(*copy.par.space[:-2], (index, length)), body=body, outs=(f.Out("keep"),))

    def nested(self, nest: Sequence[f.Par], inmost: f.Par, told: f.Atom) -> f.Par:
        """The nest with another Par in place of its innermost ones."""
        made, taken = inmost, 2 if len(nest) > 1 and len(nest[-1].space) == 1 else 1
        for par in reversed(nest[:-taken]):
            row = lower(par.body.binds[-1].vars[0], self.supply)
            body = f.Block((*par.body.binds[:-1], f.Bind((row,), made)), (row,))
            inner = par.outs[0].inner
            made = replace(par, body=body, outs=(f.Out("keep", inner=(*inner[:-2], told) if inner else ()),))
        return made


def nest_of(par: f.Par) -> list[f.Par]:
    """A Par, the Par that makes all that its points keep, and so on."""
    nest = [par]
    while (last := nest[-1].body).binds and isinstance(inner := last.binds[-1].rhs, f.Par):
        if last.binds[-1].vars != last.results:
            break
        nest.append(inner)
    return nest


def is_kept(par: f.Par) -> bool:
    return not par.ordered and len(par.outs) == 1 and replace(par.outs[0], inner=()) == f.Out("keep")


def lower(array: f.Var, supply: f.Supply) -> f.Var:
    """A variable for an array with one dimension less."""
    return f.Var(supply.fresh(array.name), of_rank(elem_of(array.ty), rank_of(array.ty) - 1))
