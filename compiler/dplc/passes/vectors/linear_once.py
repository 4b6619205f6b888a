"""flat -> flat where loops over the directions of a Jacobian compute once what follows from no direction.

    par k < 13 to keep {                                  s = for b < n state (s' = ...) { ... }
      s, d = for b < n state (s' = ..., d' = ...) {       par k < 13 to keep {
        ... }                                        =>     s0, d = for b < n state (s' = ..., d' = ...) { ... }
      ... s ... d ... }                                     ... s ... d ... }

A derivative in a direction computes the function, too, and its loops both.  What they give of the function alone is
computed before the loop over the directions by copies of these loops (partial evaluation: You Only Linearize Once,
Radul et al. 2023).

A copy has only what its results need, and is made where it mentions nothing that the loop over directions binds.  It
cannot fail: what it reads is 0.0 where it is out of bounds, and it is not made if it has something else that may fail.
The loops go on with what they need of the function, so they fail as before, before wrong numbers are used.  For that, a
copy that may have wrong numbers ends soon: the counts of its loops are lengths of arrays or small numbers.  Points that
follow from no direction at all, and cannot fail, move.

In the points of a nest a loop that gives both becomes two, if the one for the function uses no direction, so that
`layout/invariants.py` can move it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, all_hold, block_of, integer, number_zero
from dplc.flat.copy import Copier
from dplc.flat.dims import dims_of
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import (
    blocks,
    bound_inside,
    every,
    is_in,
    rhs_mentions,
    supply_for,
    with_binds,
    with_blocks,
    with_body,
    with_inner,
)
from dplc.passes.simplify.dead_code import drop_unused
from dplc.passes.simplify.purity import HERE, droppable, natural
from dplc.passes.vectors.directions import following

LOOPS = f.For | f.Par
FEW = 1 << 20  # steps of a loop that takes no time that anybody sees


def linear_once(program: f.Program) -> f.Program:
    if not (found := following(program)):
        return program
    supply = supply_for(program)
    total = total_functions(program)
    short = short_functions(program, total)
    made = {name: without_repeats(program.fns[name], names, total, short, supply) for name, names in found.items()}
    return replace(program, fns={**program.fns, **made})


def total_functions(program: f.Program) -> set[str]:
    """The functions that only compute, and cannot fail."""
    found, size = set[str](), -1
    while size != (size := len(found)):
        found |= {name for name, fn in program.fns.items() if all(droppable(bind.rhs, found) for bind in fn.body.binds)}
    return found


def short_functions(program: f.Program, total: set[str]) -> set[str]:
    """Those of these functions that take little time, whatever they are given."""
    found, size = set[str](), -1
    while size != (size := len(found)):
        for name in total - found:
            body = program.fns[name].body
            if ends([bind.rhs for bind in every(body)], body, found):
                found.add(name)
    return found


def without_repeats(fn: f.Fn, found: set[str], total: set[str], short: set[str], supply: f.Supply) -> f.Fn:
    """A function; `found` are its variables that follow from directions."""
    body = _Once(fn.body, found, total, short, supply).block(fn.body)
    return fn if body is fn.body else with_body(fn, drop_unused(body))


class _Once:
    def __init__(self, body: f.Block, found: set[str], total: set[str], short: set[str], supply: f.Supply) -> None:
        self.dims, self.found, self.functions, self.supply = dims_of(body), found, total, supply
        self.body, self.short = body, short
        self.wrong = False  # whether a copy may compute with other numbers than its loop

    def block(self, block: f.Block) -> f.Block:
        return with_binds(block, [made for bind in block.binds for made in self.bind(bind)])

    def bind(self, bind: f.Bind) -> Sequence[f.Bind]:
        bind = with_inner(bind, self.block)
        if isinstance(par := bind.rhs, f.Par) and not par.ordered:
            own = {var.name for var in bound_inside(par)}
            if not own.isdisjoint(self.found):
                before, body = self.split(par.body, own)
                return (*before, bind if body is par.body else f.Bind(bind.vars, replace(par, body=body)))
        return (bind,)

    def split(self, body: f.Block, own: set[str]) -> tuple[list[f.Bind], f.Block]:
        """What is computed before the points of a Par, and the rest of its body."""
        before, rest, free = list[f.Bind](), list[f.Bind](), set(own)
        for bind in body.binds:
            first, *others = self.parted(bind) if isinstance(bind.rhs, LOOPS) else (bind,)
            moves = bool(others) or self.is_whole(bind)
            if moves and free.isdisjoint(rhs_mentions(first.rhs)):
                before.append(first)
                free.difference_update(var.name for var in first.vars)
            else:
                others = [bind]
            rest += [self.points(one, free) for one in others]
        return before, with_binds(body, rest)

    def points(self, bind: f.Bind, own: set[str]) -> f.Bind:
        """A binding where loops in the points of a Par are parted, if that for the function uses no direction."""
        if not isinstance(par := bind.rhs, f.Par) or par.ordered:
            return bind
        free, binds = own - {index.name for index, _ in par.space}, list[f.Bind]()
        for one in par.body.binds:
            made = self.parted(one) if isinstance(one.rhs, f.Par) else (one,)
            binds += made if free.isdisjoint(rhs_mentions(made[0].rhs)) else (one,)
        body = with_binds(par.body, binds)
        return bind if body is par.body else f.Bind(bind.vars, replace(par, body=body))

    def is_whole(self, bind: f.Bind) -> bool:
        """True for points that follow from no direction, and can be done before the loop over these."""
        if not isinstance(par := bind.rhs, f.Par) or any(is_in(var, self.found) for var in bind.vars):
            return False
        return droppable(par, self.functions) and not any(is_here(one.rhs) for one in every(par.body))

    def parted(self, bind: f.Bind) -> tuple[f.Bind, ...]:
        """A loop that gives what follows from no direction, and cannot fail, and the loop for the rest.  One loop, if
        there are no two, or what may fail cannot be left out."""
        wanted = [var for var in bind.vars if var.name not in self.found]
        if not wanted or len(wanted) == len(bind.vars) or not all(f.is_float(elem_of(var.ty)) for var in wanted):
            return (bind,)
        self.wrong = False
        copy = Copier(self.supply, {}).rhs(self.total(bind.rhs))
        unused = [f.Var(self.supply.fresh(var.name), var.ty) for var in bind.vars]
        first = [var if var in wanted else other for var, other in zip(bind.vars, unused, strict=True)]
        (made,) = drop_unused(f.Block((f.Bind(tuple(first), copy),), tuple(wanted)), self.functions).binds
        inside = [one.rhs for block in blocks(made.rhs) for one in every(block)]
        if not droppable(made.rhs, self.functions) or any(map(is_here, inside)):
            return (bind,)
        if self.wrong and not ends([made.rhs, *inside], self.body, self.short):
            return (bind,)
        others = [other if var in wanted else var for var, other in zip(bind.vars, unused, strict=True)]
        return made, f.Bind(tuple(others), bind.rhs)

    # ---- reads that do not fail

    def total(self, rhs: f.Rhs) -> f.Rhs:
        return with_blocks(rhs, self.total_block)

    def total_block(self, block: f.Block) -> f.Block:
        b = Builder(self.supply)
        for bind in block.binds:
            match bind.rhs:
                case f.Op("index") as op if op.attr("unchecked") is not True and is_element(op):
                    self.read(b, bind, op)
                case f.Call(_, args) as call:  # its results for the function do not depend on directions
                    given = [number_zero(x.ty) if isinstance(x.ty, f.Num) and is_in(x, self.found) else x for x in args]
                    self.wrong |= given != [*args]
                    b.binds.append(f.Bind(bind.vars, replace(call, args=tuple(given))))
                case rhs:
                    b.binds.append(f.Bind(bind.vars, self.total(rhs)) if blocks(rhs) else bind)
        return block_of(b.binds, block.results)

    def read(self, b: Builder, bind: f.Bind, op: f.Op) -> None:
        """Writes a read that is zero where it is out of bounds."""
        (array, *at), (var,) = op.args, bind.vars
        there = [asked for k, i in enumerate(at) for asked in self.bounds(b, array, k, i)]
        self.wrong |= bool(there)
        x = b.var(var.name, var.ty)
        read = f.Bind((x,), replace(op, attrs=(("unchecked", True),)))
        branch = f.If(all_hold(b, there), f.Block((read,), (x,)), f.Block((), (number_zero(var.ty),)))
        b.binds.append(f.Bind((var,), branch))

    def bounds(self, b: Builder, array: f.Atom, k: int, i: f.Atom) -> list[f.Atom]:
        """What holds where an index is in bounds, as far as it is not known."""
        length = self.dims.of(array, k)
        match i, length:
            case f.Const(int(place)), f.Const(int(limit)) if 0 <= place < limit:
                return []
            case _:
                most = length if isinstance(length, f.Const) else b.op("dim", (array,), k=k)
                lower = [] if natural(i) else [b.op("le", (integer(0), i))]
                return [*lower, b.op("lt", (i, most))]


def ends(code: Sequence[f.Rhs], body: f.Block, functions: set[str]) -> bool:
    """True for code of a body that takes little time, whatever the numbers are that it computes with, if `functions`
    do."""
    spaces = [space for rhs in code if (space := space_of(rhs)) is not None]
    indices = {index.name for space in spaces for index, _ in space}
    ops = {bind.vars[0].name: bind.rhs for bind in every(body) if isinstance(bind.rhs, f.Op) and bind.vars}
    if not all(is_few(count, ops, indices) for space in spaces for _, count in space):
        return False
    return all(rhs.fn in functions if isinstance(rhs, f.Call) else not isinstance(rhs, f.While) for rhs in code)


def space_of(rhs: f.Rhs) -> Sequence[tuple[f.Var, f.Atom]] | None:
    """The indices of a loop with their counts."""
    match rhs:
        case f.For(index, count):
            return ((index, count),)
        case f.Par(space):
            return space
        case _:
            return None


def is_few(count: f.Atom, ops: Mapping[str, f.Op], indices: set[str]) -> bool:
    """True for a small number, the length of an array, an index of such loops, and sums of these."""
    if isinstance(count, f.Const):
        return isinstance(count.value, int) and abs(count.value) <= FEW
    match ops.get(count.name):
        case None:
            return count.name in indices
        case f.Op("dim"):
            return True
        case f.Op("add" | "sub" | "min" | "max", args):
            return all(is_few(x, ops, indices) for x in args)
        case _:
            return False


def is_here(rhs: f.Rhs) -> bool:
    return isinstance(rhs, f.Op) and rhs.attr("unchecked") == HERE


def is_element(read: f.Op) -> bool:
    """True for a read of a number."""
    array, *at = read.args
    return rank_of(array.ty) == len(at) and isinstance(elem_of(array.ty), f.Num)
