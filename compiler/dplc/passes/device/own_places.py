"""Accumulators to which each point adds at its own places: threads can add in place, in any order.

c' = for i < n state (c) { d = acc_index c v n m i j; ...; yield d }        row i is the point's own
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, names


def own_places(par: f.Par, out: f.Out, result: f.Atom) -> bool:
    """True if points only add to an accumulator where the first index is their own."""
    if out.acc is None or len(par.space) != 1:
        return False
    own = _Own(par.space[0][0], {out.acc.name})
    return own.block(par.body) and own.has(result)


class _Own:
    """Follows an accumulator through a body: `names` are those of its values."""

    def __init__(self, index: f.Var, names: set[str]) -> None:
        self.index = index
        self.names = names

    def has(self, atom: f.Atom | None) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.names

    def block(self, block: f.Block) -> bool:
        return all(map(self.bind, block.binds))

    def bind(self, bind: f.Bind) -> bool:
        rhs = bind.rhs
        match rhs:
            case f.Op(op, (first, added, *rest)) if self.has(first) and OPS[op].accumulates:
                self.names.add(bind.vars[0].name)
                return op == "acc_index" and not self.has(added) and rest[rhs.attr("rank")] == self.index
            case f.Op("dim"):
                return True
            case f.If(_, then, else_):
                return self.branches(bind, (then, else_))
            case f.Switch(_, cases, default):
                return self.branches(bind, (*[case.body for case in cases], *([default] if default else [])))
            case f.For(state=state, inits=inits, body=body) | f.While(state=state, inits=inits, body=body):
                return self.loop(bind, state, inits, body)
            case f.Par(_, body, outs):
                states = [out.acc or f.Var("", f.UNIT) for out in outs]
                inits = [out.target if out.acc else None for out in outs]
                given = not any(self.has(out.target) and not out.acc for out in outs)
                return given and self.loop(bind, states, inits, body)
            case _:
                return not self.names.intersection(names(atoms(rhs)))

    def branches(self, bind: f.Bind, arms: tuple[f.Block, ...]) -> bool:
        """The arms of a choice give it back all, or none does."""
        if not all(map(self.block, arms)):
            return False
        for i, var in enumerate(bind.vars):
            given = [self.has(arm.results[i]) for arm in arms]
            if any(given) and not all(given):
                return False
            if all(given):
                self.names.add(var.name)
        return True

    def loop(self, bind: f.Bind, state: Sequence[f.Var], inits: Sequence[f.Atom | None], body: f.Block) -> bool:
        """A loop that changes it gives it back at the same place."""
        places = [k for k, init in enumerate(inits) if self.has(init)]
        self.names.update([state[k].name for k in places])
        fine = self.block(body) and all(self.has(atom) == (k in places) for k, atom in enumerate(body.results))
        self.names.update([bind.vars[k].name for k in places])
        return fine
