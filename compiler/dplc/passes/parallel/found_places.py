"""Reads at places that points find in arrays are checked together, before the points.

    par o < n {                                  m = par o < n { i = index unchecked k o
      i = index k o                                              yield select (i < 0 or i >= dim a) 1 0 } to fold
      x = index a i                      =>      if m > 0 { what can fail, as before }
      ... }                                      par o < n { i = index k o; x = index unchecked a i; ... }

So points with much arithmetic are computed in vectors, which gather what they read.  Of places side by side, as those
of a spline, the first and the last one are checked.  Places that the loops of points find, as the neighbours of a box
of particles, are checked for the points and steps on which they depend:

    par b < m, o < n { for j < 4 {                  m = par b < m, j < 4 { i = index unchecked k b j; ... } to fold
      i = index k b j; x = index a i o; ... } }  =>

Points with loops are computed in lanes, which do not gather: what the innermost index tells is left alone there.

The code that finds places runs before everything else, so it reads only where indices of loops tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.node import record, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Sum
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks, bound_inside, every, names, needed, rhs_mentions
from dplc.passes.simplify.purity import droppable

MUCH = 8  # cheap operations on floats, or others that cost as much: the least for which vectors pay
DEAR = 8  # cheap operations that one of the others costs
SMALL = 1 << 10  # steps that cost nothing where there are no points

Loop = tuple[f.Var, f.Atom]


@record
class Found:
    """A read whose index in dimension `k` of `array`, from outside, is found by the point itself; `at` is the index as
    a sum.  `loops` are those of the nest around the read, outermost first."""

    read: f.Op
    index: f.Atom
    array: f.Var
    k: int
    at: Sum
    loops: tuple[Loop, ...]


@record
class Search:
    """Places that are found by the same loops, and what these do to find them."""

    loops: tuple[Loop, ...]
    code: tuple[f.Bind, ...]
    found: list[Found]


def is_much(par: f.Par) -> bool:
    """True for points with much arithmetic, and without calls and inner comprehensions."""
    work = 0
    for bind in every(par.body):
        match bind.rhs:
            case f.Op(op) if len(bind.vars) == 1 and f.is_float(bind.vars[0].ty) and op != "index":
                work += 1 if OPS[op].cheap else DEAR
            case f.Op("cast", (x,)) if f.is_float(x.ty):
                work += 1
            case f.Op() | f.If() | f.For() | f.TupGet() | f.TupMake():
                pass
            case _:
                return False
    return work >= MUCH


def searches(par: f.Par, found: Sequence[Found], inside: set[str]) -> list[Search] | None:
    """What is done to find these places; None if this may fail after the other checks, or needs what loops carry.
    `inside` are the variables of the Par's points."""
    binds, late = list(steps(par.body)), {id(one.read) for one in found}
    own, has_loops = par.space[-1][0].name, any(isinstance(bind.rhs, f.For) for bind in par.body.binds)
    groups: dict[tuple[Loop, ...], list[Found]] = {}
    for one in found:
        code = needed(binds, names([one.index]))
        if not runs_first(code, late):
            return None
        used = {*names([one.index]), *free(code)}
        if own in used and has_loops:
            return None
        loops = tuple(loop for loop in one.loops if loop[0].name in used) or one.loops[:1]
        made = {var.name for bind in code for var in bind.vars} | {index.name for index, _ in loops}
        if not used & inside <= made:
            return None
        groups.setdefault(loops, []).append(one)
    return [Search(loops, tuple(needed(binds, names([one.index for one in group]))), group)
            for loops, group in groups.items()]  # fmt: skip


def steps(block: f.Block) -> Iterator[f.Bind]:
    """The bindings of points and of the steps of their loops, without the loops and branches themselves."""
    for bind in block.binds:
        if isinstance(bind.rhs, f.For):
            yield from steps(bind.rhs.body)
        else:
            yield bind


def free(code: Sequence[f.Bind]) -> Iterator[str]:
    """The variables that bindings use, without those of their inner blocks."""
    for bind in code:
        own = {var.name for var in bound_inside(bind.rhs)}
        yield from (name for name in rhs_mentions(bind.rhs) if name not in own)


def runs_first(code: Sequence[f.Bind], late: set[int]) -> bool:
    """True for code that cannot fail once the other checks have been done: nothing in it fails but reads, and these are
    where indices of loops tell, so they are not among what is found."""
    read = set[str]()  # numbers that were read
    for bind in code:
        rhs = bind.rhs
        is_read = isinstance(rhs, f.Op) and rhs.op == "index"
        if id(rhs) in late or not (is_read or droppable(rhs)):
            return False
        follows = not read.isdisjoint(rhs_mentions(rhs))
        if follows and (is_read or any(isinstance(one.rhs, f.Op) and one.rhs.op == "index" for one in inner(rhs))):
            return False
        if follows or (is_read and not isinstance(bind.vars[0].ty, f.Arr)):
            read.update(var.name for var in bind.vars)
    return True


def inner(rhs: f.Rhs) -> Iterator[f.Bind]:
    return (bind for block in blocks(rhs) for bind in every(block))


def side_by_side(found: Sequence[Found]) -> list[tuple[Found, int]]:
    """The first of each group of places that differ by constants, and how far the last one is from it."""
    groups: dict[object, list[Found]] = {}
    for one in found:
        apart = frozenset((term, factor) for term, factor in one.at.items() if term != ONE)
        groups.setdefault((one.array, one.k, apart), []).append(one)
    ordered = [sorted(group, key=lambda one: one.at.get(ONE, 0)) for group in groups.values()]
    return [(group[0], group[-1].at.get(ONE, 0) - group[0].at.get(ONE, 0)) for group in ordered]


def outside(b: Builder, par: f.Par, found: Sequence[Search]) -> f.Atom:
    """True if one of the places that the points of a Par find is not inside of its array."""
    bad: f.Atom | None = None
    for search in found:
        failing = b.op("gt", (b.one(count(b, par, search), f.I64), integer(0)))
        bad = failing if bad is None else b.op("or", (bad, failing))
    assert bad is not None
    return bad


def count(b: Builder, par: f.Par, search: Search) -> f.Rhs:
    """Counts the places of a search that are not inside of their arrays."""
    with b.inside() as binds:
        bad: f.Atom | None = None
        for first, width in side_by_side(search.found):
            length = b.op("dim", (first.array,), k=first.k)
            end = b.op("sub", (length, integer(width))) if width else length
            for wrong in (b.op("lt", (first.index, integer(0))), b.op("ge", (first.index, end))):
                bad = wrong if bad is None else b.op("or", (bad, wrong))
        assert bad is not None
        number = b.op("select", (bad, integer(1), integer(0)))
    body = block_of([*search.code, *binds], (number,))
    space = tuple((index, steps_of(b, par, (index, count))) for index, count in search.loops)
    return Copier(b.supply, {}).rhs(replace(par, space=space, body=body, outs=(f.Out("fold"),)))


def steps_of(b: Builder, par: f.Par, loop: Loop) -> f.Atom:
    """The steps of a loop: of one inside of points, none if its count is negative or there are no points."""
    index, count = loop
    is_small = isinstance(count, f.Const) and isinstance(count.value, int) and 0 <= count.value <= SMALL
    if is_small or index in [own for own, _ in par.space]:
        return count
    steps = b.op("max", (count, integer(0)))
    for _, points in par.space:
        steps = b.op("select", (b.op("gt", (points, integer(0))), steps, integer(0)))
    return steps
