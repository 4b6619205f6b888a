"""Branches that follow each other and ask for one condition are one branch: jump threading between neighbours.

    x = if p { yield a } else { u = f c; yield u }        x, y = if p { yield a, b }
    y = if p { yield b } else { v = g c x; yield v }  =>                else { u = f c; v = g c u; yield u, v }

An arm is the same code in the same order, as the condition is the same number in both.  Such branches are the elements
of a row that is unrolled, `[for j < 4 -> if i = k then p[j] else ...]`.  What the elements have alike is then computed
once in an arm, and reverse mode asks once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from dplc.flat import term as f
from dplc.flat.copy import Renamed


def together(binds: Sequence[f.Bind], atom: Callable[[f.Atom], f.Atom]) -> Sequence[f.Bind]:
    """Bindings with one branch in place of neighbours on one condition; `atom` is what stands for an atom by now."""
    for one, other in pairwise(binds):
        if type(one.rhs) is f.If and type(other.rhs) is f.If:
            break
    else:  # as most often
        return binds
    made, asked = list[f.Bind](), None
    for bind in binds:
        now = atom(bind.rhs.cond) if isinstance(bind.rhs, f.If) else None
        if now is not None and now == asked:
            made[-1] = one_of(made[-1], bind)
        else:
            made.append(bind)
        asked = now
    return binds if len(made) == len(binds) else made


def one_of(first: f.Bind, second: f.Bind) -> f.Bind:
    """One branch in place of two on one condition."""
    a, b = first.rhs, second.rhs
    assert isinstance(a, f.If) and isinstance(b, f.If)
    arms = [after(first.vars, *both) for both in ((a.then, b.then), (a.else_, b.else_))]
    return f.Bind((*first.vars, *second.vars), f.If(a.cond, *arms))


def after(named: tuple[f.Var, ...], arm: f.Block, more: f.Block) -> f.Block:
    """An arm, and the one that follows it, in which the results of the first have names."""
    more = Renamed({var.name: x for var, x in zip(named, arm.results, strict=True)}).block(more)
    return f.Block((*arm.binds, *more.binds), (*arm.results, *more.results))
