"""flat -> the tail calls modulo cons: recursive calls after which the function only makes a cell with the result.

    fn map(xs)                                    map(xs, out)
      ...                                           ...
      t = f x                                       t = f x
      r = map rest                          =>      c = :: (t, _);  *out = c
      c = :: (t, r)                                 map(rest, address of _)
      return c

Such a function can take the address for its result as a parameter (destination passing; Leijen and Lorenzen 2023).  The
cell is made first, with a hole in it.  The call, now in tail position, fills the hole.  So the stack does not grow with
the list.  This file finds the calls; emission changes them.
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
    """The end of a block: the bindings before the call, the call, and the cell; field number `place` of the cell is the
    result of the call."""

    before: tuple[f.Bind, ...]
    call: f.Call
    cell: f.ConMake
    fields: tuple[f.Atom, ...]
    place: int


def hole(block: f.Block, name: str) -> Hole | None:
    """The end of a block, if it is a call of `name` modulo cons."""
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
    """True for arithmetic on numbers that cannot fail: it may move before the call."""
    numbers = all(isinstance(var.ty, f.Num) for var in made)
    return numbers and (isinstance(rhs, f.TupGet) or (isinstance(rhs, f.Op) and pure(rhs)))


def with_holes(program: f.Program) -> set[str]:
    """The functions with such calls.  They return one cell, and are not mutually recursive."""
    group, _ = groups(program)
    sizes = Counter(group.values())
    return {
        name
        for name, fn in program.fns.items()
        if len(fn.results) == 1 and isinstance(fn.results[0], f.Data) and sizes[group[name]] == 1
        and any(True for _ in ends(fn.body, name))
    }  # fmt: skip


def ends(block: f.Block, name: str) -> Iterator[Hole]:
    """All such ends in the body of a function."""
    if (found := hole(block, name)) is not None:
        yield found
    elif block.binds and block.binds[-1].vars == block.results and isinstance(block.binds[-1].rhs, f.If | f.Switch):
        for inner in blocks(block.binds[-1].rhs):
            yield from ends(inner, name)
