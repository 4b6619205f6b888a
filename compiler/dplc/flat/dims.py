"""The dimensions of arrays, as far as they are known from the code.

    b = update a v i                        b has the dimensions of a
    c = matmul b d                          c has dimension 0 of b, that is of a, and dimension 1 of d
    e = fill n c                            e has n, and those of c
    s' = for i < n state (s = e) { t = update s ...; yield t }          s and s' have those of e

A dimension is an atom, or dimension k of an array about which nothing is known.  Loops are assumed to keep the
dimensions of their state; if a step does not, the assumption is dropped.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.ops.row import Dim
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import binders, blocks


class Dims:
    def __init__(self, body: f.Block) -> None:
        self.found: dict[tuple[str, int], Dim] = {}
        self.block(body)

    def of(self, array: f.Atom, k: int) -> Dim | None:
        """Dimension k of an array; None for null, which has no dimensions."""
        if not isinstance(array, f.Var):
            return None
        return self.found.get((array.name, k), (array, k))

    def block(self, block: f.Block) -> None:
        for bind in block.binds:
            match bind.rhs:
                case f.Op() as op:
                    made = OPS[op.op].dims
                    for var in bind.vars:
                        for k in range(rank_of(var.ty)):
                            self.set(var, k, made(self.of, op, rank_of(var.ty), k))
                case f.For() | f.While():
                    self.loop(bind, bind.rhs)
                case rhs:
                    for inner in blocks(rhs):
                        self.block(inner)
                    self.joined(bind)

    def set(self, var: f.Var, k: int, dim: Dim | None) -> None:
        if dim is None:
            self.found.pop((var.name, k), None)
        else:
            self.found[(var.name, k)] = dim

    def joined(self, bind: f.Bind) -> None:
        """The dimensions of the results of branches, where these agree, and of comprehensions."""
        for i, var in enumerate(bind.vars):
            for k in range(rank_of(var.ty)):
                match bind.rhs:
                    case f.Build(_, count, _) if k == 0:
                        self.set(var, k, count)
                    case f.Par(space, _, outs) if outs[i].kind == "keep" and k < len(space):
                        self.set(var, k, space[k][1])
                    case f.Par(_, _, outs) if isinstance(target := outs[i].target, f.Var):
                        self.set(var, k, self.of(target, k))
                    case f.If() | f.Switch():
                        first, *rest = [self.of(inner.results[i], k) for inner in blocks(bind.rhs)]
                        same = all(dim == first for dim in rest) and not inside(first, bind.rhs)
                        self.set(var, k, first if same else None)
                    case _:
                        self.set(var, k, None)

    def loop(self, bind: f.Bind, loop: f.For | f.While) -> None:
        keys = [
            (i, k) for i, s in enumerate(loop.state) for k in range(rank_of(s.ty)) if isinstance(loop.inits[i], f.Var)
        ]
        while True:
            for i, k in keys:
                self.set(loop.state[i], k, self.of(loop.inits[i], k))
            for inner in blocks(loop):
                self.block(inner)
            kept = [(i, k) for i, k in keys if self.of(loop.body.results[i], k) == self.of(loop.inits[i], k)]
            if kept == keys:
                break
            for i, k in keys:
                self.set(loop.state[i], k, None)
            keys = kept
        for i, var in enumerate(bind.vars):
            for k in range(rank_of(var.ty)):
                self.set(var, k, self.of(loop.inits[i], k) if (i, k) in keys else None)


def inside(dim: Dim | None, rhs: f.Rhs) -> bool:
    """True if a dimension depends on a variable bound inside a right-hand side."""
    var = dim[0] if isinstance(dim, tuple) else dim
    return var in binders(rhs) or any(var in bind.vars for block in blocks(rhs) for bind in block.binds)
