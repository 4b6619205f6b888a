"""A call -> the body of the called function."""

from __future__ import annotations

from dpl.node import replace
from dpl.source import Span

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.places import Inlining

PLACED = (f.Call, f.Ad, f.Build, f.Map, f.Par)


class Inliner(Copier):
    """Copies a body to the place of a call.  Its operations remember the call, for messages."""

    def __init__(self, supply: f.Supply, callee: f.Fn, args: tuple[f.Atom, ...], caller: Span) -> None:
        super().__init__(supply, dict(zip((p.name for p in callee.params), args, strict=True)))
        self.place = Inlining(callee.label, caller)

    def rhs(self, rhs: f.Rhs) -> f.Rhs:
        if isinstance(rhs, f.Op):
            return f.Op(rhs.op, self.operands(rhs.args), rhs.attrs, self.place.span(rhs.span))
        rhs = super().rhs(rhs)
        if isinstance(rhs, PLACED):
            return replace(rhs, span=self.place.span(rhs.span))
        return rhs
