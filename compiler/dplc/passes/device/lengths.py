"""Lengths of what the points of a Par make, as the host knows them before.

    c = par k < n to add (c' = null) {
      m = dim 0 row                                      m is dimension 1 of a
      row = index a k; g = ...                           g has the length m
      v = acc_index null x m j; w = acc_add v g          so w has it, whichever of v and g is null
      yield acc_add c' w }                               and so has c
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.dims import dims_of
from dplc.flat.ops.row import Dim
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import every


class Lengths:
    """Those in a body, whose variables are `own`."""

    def __init__(self, body: f.Block, own: set[str]) -> None:
        self.body, self.own = body, own
        self.known = dims_of(body)
        self.made = {var.name: bind.rhs for bind in every(body) for var in bind.vars}

    def of(self, array: f.Atom, k: int) -> Dim | None:
        """Dimension k of an array, if it is not null; None if it is not known outside."""
        found = self.outside(self.known.of(array, k))
        match self.made.get(array.name) if isinstance(array, f.Var) else None:
            case f.Op("acc_add", args) if found is None:
                return next((dim for arg in args if (dim := self.inside(arg, k)) is not None), None)
            case _:
                return found

    def inside(self, array: f.Atom, k: int) -> Dim | None:
        """The same, of an array that is made in the body: one from outside may be null, and has no lengths then."""
        return self.of(array, k) if isinstance(array, f.Var) and array.name in self.own else None

    def outside(self, dim: Dim | None) -> Dim | None:
        """A dimension by what is known outside."""
        while isinstance(dim, f.Var):
            match self.made.get(dim.name):
                case f.Op("dim", (array,)) as op if (found := self.known.of(array, op.attr("k", 0))) != dim:
                    dim = found
                case _:
                    break
        return None if name_of(dim) in self.own else dim

    def all_of(self, array: f.Atom) -> tuple[Dim, ...]:
        """All dimensions of an array that is made in the body; none if one is not known."""
        found = [self.inside(array, k) for k in range(rank_of(array.ty))]
        return tuple([dim for dim in found if dim is not None]) if None not in found else ()

    def added(self, names: set[str], body: f.Block | None = None) -> tuple[Dim, ...]:
        """The dimensions of an array that is known by these names, by what is added to it; none if unknown, or if
        branches tell others."""
        for bind in every(body or self.body):
            found: tuple[Dim | None, ...] = ()
            match bind.rhs:
                case f.If(_, then, other):
                    if len({told for arm in (then, other) if (told := self.added(names, arm))}) > 1:
                        return ()
                case f.Op(op, (f.Var(name), *rest)) as add if name in names and OPS[op].accumulates:
                    found = tuple(map(self.outside, rest[1 : 1 + add.attr("rank")]))
                case f.Op(op, (f.Var(name), *_)) if name in names and OPS[op].cubic:
                    found = self.all_of(bind.vars[0])
                case f.Op("acc_add", (f.Var(name), f.Var() as other)) if name in names:
                    found = self.all_of(other)
                case f.Par(_, _, outs):
                    names = names | {o.acc.name for o in outs
                                     if o.acc and isinstance(o.target, f.Var) and o.target.name in names}  # fmt: skip
                case f.For() | f.While() as loop:
                    names = names | {s.name for s, a in zip(loop.state, loop.inits, strict=True)
                                     if isinstance(a, f.Var) and a.name in names}  # fmt: skip
                case _:
                    pass
            if found and None not in found:
                return tuple([dim for dim in found if dim is not None])
        return ()


def name_of(dim: Dim | None) -> str:
    var = dim[0] if isinstance(dim, tuple) else dim
    return var.name if isinstance(var, f.Var) else ""
