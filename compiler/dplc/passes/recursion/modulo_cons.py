"""flat -> which recursive calls are tail calls modulo cons: all that is left to do is to make a cell with the result.

    fn map(xs)                                    map(xs, out)
      ...                                           ...
      t = f x                                       t = f x
      r = map rest                          =>      c = :: (t, _);  *out = c
      c = :: (t, r)                                 map(rest, address of _)
      return c

Such a function can be given the address where its result belongs (destination passing): the cell is made first, with a
hole in it, which the call, now in tail position, fills.  So it takes no stack, however long the list.  This file finds
the calls; emission changes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.walk import blocks
from dplc.passes.simplify.purity import pure


@node
class Hole:
    """The end of a block: what is done before the call, the call, and the cell, of whose fields the result is number
    `place`."""

    before: tuple[f.Bind, ...]
    call: f.Call
    cell: f.ConMake
    fields: tuple[f.Atom, ...]
    place: int


def hole(block: f.Block, name: str) -> Hole | None:
    """If a block ends like that, in a call of `name`."""
    match block:
        case f.Block((*binds, f.Bind(vars_, f.ConMake(_, _, f.Var() as content) as cell)), results) if vars_ == results:
            pass
        case _:
            return None
    match binds:
        case [*before, f.Bind((made,), f.TupMake(fields))] if made == content:
            binds = before
        case _:
            fields = (content,)
    for at in range(len(binds) - 1, -1, -1):
        made, rhs = binds[at].vars, binds[at].rhs
        if isinstance(rhs, f.Call) and rhs.fn == name:
            if len(made) != 1 or fields.count(made[0]) != 1:
                return None
            return Hole((*binds[:at], *binds[at + 1 :]), rhs, cell, fields, fields.index(made[0]))
        if not is_small(rhs, made):
            return None
    return None


def is_small(rhs: f.Rhs, made: tuple[f.Var, ...]) -> bool:
    """Whether it may as well be done before the call: arithmetic on numbers, without failures."""
    numbers = all(isinstance(var.ty, f.Num) for var in made)
    return numbers and (isinstance(rhs, f.TupGet) or (isinstance(rhs, f.Op) and pure(rhs)))


def with_holes(program: f.Program) -> set[str]:
    """The functions to which this applies: they give one cell, and are not mutually recursive."""
    group, _ = groups(program)
    sizes = Counter(group.values())
    return {
        name
        for name, fn in program.fns.items()
        if len(fn.results) == 1 and isinstance(fn.results[0], f.Data) and sizes[group[name]] == 1
        and any(True for _ in ends(fn.body, name))
    }  # fmt: skip


def ends(block: f.Block, name: str) -> Iterator[Hole]:
    """Those of a function's body."""
    if (found := hole(block, name)) is not None:
        yield found
    elif block.binds and block.binds[-1].vars == block.results and isinstance(block.binds[-1].rhs, f.If | f.Switch):
        for inner in blocks(block.binds[-1].rhs):
            yield from ends(inner, name)
