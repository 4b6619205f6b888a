"""Scalar replacement of aggregates: a loop whose state is a tuple -> a loop whose state is the parts of the tuple.

    s' = for i < n state (s = a) { ...; yield t }

    x = a.0;  y = a.1
    (x', y') = for i < n state (p = x, q = y) { s = (p, q); ...; u = t.0; v = t.1; yield u, v }
    s' = (x', y')

Likewise a branch whose result is a tuple.  What a loop collects and each step has alike is read from before the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.dims import is_outside
from dplc.flat.walk import with_blocks


def branch_by_scalars(bind: f.Bind, supply: f.Supply) -> list[f.Bind]:
    """A branch with results that are tuples -> one with their parts, and the tuples made of these."""
    pieces = Pieces(supply)
    after: list[f.Bind] = []
    outs = tuple([x for var in bind.vars for x in pieces.together(after, var)])

    def ending(block: f.Block) -> f.Block:
        binds = list(block.binds)
        parts = [x for result in block.results for x in pieces.apart(binds, result)]
        return f.Block(tuple(binds), tuple(parts))

    return [f.Bind(outs, with_blocks(bind.rhs, ending)), *after]


def loop_by_scalars(bind: f.Bind, supply: f.Supply) -> list[f.Bind]:
    """The loop, between code that takes its initial state apart and code that puts its final state together."""
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


def in_all_rows(row: f.Rhs | None, index: int, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    """The item of that number in a row that a loop has collected, if it is the same in all rows."""
    match row:
        case f.Op("index", (f.Var(rows), _)) if isinstance(loop := defs.get(rows), f.For | f.While) and loop.collect:
            item = loop.body.results[len(loop.state) + index]
            return item if is_outside(item, loop) else None
        case _:
            return None


class Pieces:
    """Takes tuples apart and builds them again; with the declarations, also data of a single constructor."""

    def __init__(self, supply: f.Supply, datas: Mapping[str, f.DataDecl] | None = None) -> None:
        self.supply = supply
        self.datas = datas or {}

    def apart(self, binds: list[f.Bind], atom: f.Atom, within: tuple[f.Type, ...] = ()) -> Sequence[f.Atom]:
        """The parts of a value, taken apart recursively."""
        parts: list[f.Atom] = []
        match atom.ty:
            case f.Tup(items):
                for i, ty in enumerate(items):
                    var = f.Var(self.supply.fresh("t"), ty)
                    binds.append(f.Bind((var,), f.TupGet(atom, i)))
                    parts += self.apart(binds, var, within)
                return parts
            case f.Data() as ty if ty not in within and (payload := self.single(ty)) is not None:
                var, inside = (f.Var(self.supply.fresh("t"), payload) for _ in range(2))
                binds.append(f.Bind((var,), f.Switch(atom, (f.Case(0, inside, f.Block((), (inside,))),), None)))
                return self.apart(binds, var, (*within, ty))
            case _:
                return [atom]

    def together(self, binds: list[f.Bind], var: f.Var, within: tuple[f.Type, ...] = ()) -> list[f.Var]:
        """New variables for the parts of `var`; bindings that build `var` from them."""
        match var.ty:
            case f.Tup(types):
                items = [f.Var(self.supply.fresh(var.name), ty) for ty in types]
                parts = [part for item in items for part in self.together(binds, item, within)]
                binds.append(f.Bind((var,), f.TupMake(tuple(items))))
                return parts
            case f.Data(name) as ty if ty not in within and (payload := self.single(ty)) is not None:
                inside = f.Var(self.supply.fresh(var.name), payload)
                parts = self.together(binds, inside, (*within, ty))
                binds.append(f.Bind((var,), f.ConMake(name, 0, inside)))
                return parts
            case _:
                return [var]

    def single(self, ty: f.Data) -> f.Type | None:
        """The payload type of a data type with a single constructor, else None."""
        decl = self.datas.get(ty.name)
        return decl.payloads[0] if decl is not None and len(decl.payloads) == 1 else None
