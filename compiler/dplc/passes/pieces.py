"""A loop whose state is a tuple -> one whose state is the tuple's parts, as several bindings.

s' = for i < n state (s = a) { ...; yield t }

x = a.0;  y = a.1
(x', y') = for i < n state (p = x, q = y) { s = (p, q); ...; u = t.0; v = t.1; yield u, v }
s' = (x', y')
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.flat.copy import Copier


def in_pieces(bind: f.Bind, supply: f.Supply) -> list[f.Bind]:
    loop = bind.rhs
    assert isinstance(loop, f.For | f.While)
    width = len(loop.state)
    pieces = Pieces(supply)
    binds: list[f.Bind] = []
    inits = tuple([x for a in loop.inits for x in pieces.apart(binds, a)])
    inside, after = list[f.Bind](), list[f.Bind]()
    state = tuple([x for s in loop.state for x in pieces.together(inside, s)])
    outs = tuple([x for v in bind.vars[:width] for x in pieces.together(after, v)])
    body = [*inside, *loop.body.binds]
    nexts = [x for r in loop.body.results[:width] for x in pieces.apart(body, r)]
    block = f.Block(tuple(body), (*nexts, *loop.body.results[width:]))
    if isinstance(loop, f.For):
        rhs = f.For(loop.index, loop.count, state, inits, block, loop.collect)
    else:
        cond = Copier(supply, {}).block(f.Block((*inside, *loop.cond.binds), loop.cond.results))
        rhs = f.While(state, inits, cond, block, loop.collect)
    return [*binds, f.Bind((*outs, *bind.vars[width:]), rhs), *after]


class Pieces:
    """Takes tuples apart, and puts them together."""

    def __init__(self, supply: f.Supply) -> None:
        self.supply = supply

    def apart(self, binds: list[f.Bind], atom: f.Atom) -> Sequence[f.Atom]:
        """The parts of a value, and theirs."""
        if not isinstance(atom.ty, f.Tup):
            return [atom]
        parts: list[f.Atom] = []
        for i, ty in enumerate(atom.ty.items):
            var = f.Var(self.supply.fresh("t"), ty)
            binds.append(f.Bind((var,), f.TupGet(atom, i)))
            parts += self.apart(binds, var)
        return parts

    def together(self, binds: list[f.Bind], var: f.Var) -> list[f.Var]:
        """New variables for the parts of `var`, which is bound to their tuple."""
        if not isinstance(var.ty, f.Tup):
            return [var]
        items = [f.Var(self.supply.fresh(var.name), ty) for ty in var.ty.items]
        parts = [part for item in items for part in self.together(binds, item)]
        binds.append(f.Bind((var,), f.TupMake(tuple(items))))
        return parts
