"""Places that are in bounds only because something before was checked: in a backward sweep those of the forward sweep.

    for i < n { k = index at i; x = index a k }            fails if some k is no place in a
    par i < n to add c { k = index unchecked at i; ... acc_index c v m k }

Nothing is checked in the Par, so it must not be done before the loop.  A place that is in bounds for every step of the
loops around it, as index i of the m elements of an array is for i < m, stands on nothing.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, combined
from dplc.flat.conditions import Conditions
from dplc.flat.dims import Dims, dims_of
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks, every
from dplc.passes.simplify.purity import pure


class CheckedPlaces:
    """The places of one function; `dims` are its arrays' lengths, if more of them are known than its code tells."""

    def __init__(self, body: f.Block, dims: Dims | None = None) -> None:
        self.affine = Affine(dims or dims_of(body))
        self.conditions = Conditions(self.affine)
        self.standing = False
        for bind in every(body):
            self.define(bind)

    def may_fail(self, rhs: f.Rhs) -> bool:
        """True for code that may end the program."""
        match rhs:
            case f.Op(name):
                fails = OPS[name].fails
                if fails is Fails.COUNT and self.affine.is_natural(self.affine.exact(rhs.args[0])):
                    return False
                return fails not in (Fails.NEVER, Fails.SHAPES) and not pure(rhs)
            case f.Call():
                return True
            case _:
                return any(self.may_fail(bind.rhs) for block in blocks(rhs) for bind in block.binds)

    def stands(self, rhs: f.Rhs) -> bool:
        """True if code reads, writes or adds at places that are not known to be there wherever the code is."""
        self.standing = False
        self.inner(rhs)
        return self.standing

    def inner(self, rhs: f.Rhs) -> None:
        if isinstance(rhs, f.If):
            self.conditions.branches(rhs, self.block)
            return
        for block in blocks(rhs):
            self.block(block)

    def block(self, block: f.Block) -> f.Block:
        for bind in block.binds:
            self.define(bind)
            if isinstance(bind.rhs, f.Op):
                self.standing |= not self.fits(bind.rhs)
            else:
                self.inner(bind.rhs)
        return block

    def define(self, bind: f.Bind) -> None:
        self.conditions.define(bind)
        self.affine.define(bind)
        self.affine.loops(bind.rhs)

    def fits(self, op: f.Op) -> bool:
        """True for an operation whose places are in bounds by themselves."""
        if op.op == "acc_index":
            rank = op.attr("rank")
            lengths, at = op.args[2 : 2 + rank], op.args[2 + rank :]
            return all(self.within(i, length) for i, length in zip(at, lengths, strict=False))
        if OPS[op.op].fails is Fails.BOUNDS:
            at = op.args[2:] if op.op == "update" else op.args[1:]
            known = op.op in ("index", "update")
            return known and all(self.affine.fits(i, op.args[0], k) for k, i in enumerate(at))
        return not OPS[op.op].accumulates

    def within(self, index: f.Atom, length: f.Atom) -> bool:
        at = self.affine.sum(index)
        rest = combined(self.affine.exact(length), combined(at, {ONE: 1}, 1), -1)
        return self.affine.is_natural(at) and self.affine.is_natural(rest)
