"""Rematerialisation of rows: a nest that reads what an inner loop of its point has kept computes it again, if it is
little arithmetic.

    d = par k < m to keep { x = index a (i + k); y = sub x u; yield y }
    c' = par k < m to add (c) { y = index d k; ... }    =>    c' = par k < m to add (c) { x = index a (i + k)
                                                                                          y = sub x u; ... }

The second loop then needs nothing of the point but its numbers, so it can be parted from it (`kept_numbers.py`).
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.walk import names, needed, rhs_mentions, with_binds, with_inner

MOST = 6  # operations of an element

Element = tuple[f.Par, f.Atom, tuple[f.Bind, ...]]  # the loop, what it keeps, and the code of that


def elements(bind: f.Bind) -> dict[str, Element]:
    """The arrays of numbers that a Par keeps and whose elements are little work, by their names."""
    found: dict[str, Element] = {}
    match bind.rhs:
        case f.Par() as par if not par.ordered:
            for var, out, x in zip(bind.vars, par.outs, par.body.results, strict=True):
                code = little(par.body, x) if out.kind == "keep" and isinstance(x.ty, f.Num) else None
                if code is not None:
                    found[var.name] = par, x, code
        case _:
            pass
    return found


def little(body: f.Block, result: f.Atom) -> tuple[f.Bind, ...] | None:
    """The code of one result, if it is little arithmetic."""
    code = needed(body.binds, names((result,)))
    plain = all(isinstance(op := bind.rhs, f.Op) and (OPS[op.op].quick or is_read(op)) for bind in code)
    return tuple(code) if plain and len(code) <= MOST else None


def is_read(op: f.Op) -> bool:
    return op.op == "index" and bool(op.attr("unchecked"))


def again(bind: f.Bind, rows: dict[str, Element], supply: f.Supply) -> f.Bind:
    """The nest, which computes elements of these rows where it reads them."""
    if rows.keys().isdisjoint(rhs_mentions(bind.rhs)):
        return bind
    return with_inner(bind, lambda block: _Again(rows, supply).block(block))


class _Again(Copier):
    """Copies code, with elements in place of reads."""

    def __init__(self, rows: dict[str, Element], supply: f.Supply) -> None:
        super().__init__(supply, {})
        self.rows = rows

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        made: list[f.Bind] = []
        for bind in binds:
            match bind.rhs:
                case f.Op("index", (f.Var(name), *at)) if name in self.rows and isinstance(bind.vars[0].ty, f.Num):
                    par, x, code = self.rows[name]
                    own = {index.name: self.atom(place) for (index, _), place in zip(par.space, at, strict=True)}
                    element = Copier(self.supply, own)
                    made += element.binds(code)
                    self.atoms[bind.vars[0].name] = element.atom(x)
                case _:
                    made += super().binds((bind,))
        return tuple(made)

    def block(self, block: f.Block) -> f.Block:
        return with_binds(block, self.binds(block.binds), tuple(map(self.atom, block.results)))
