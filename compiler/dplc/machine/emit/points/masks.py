"""Loops whose branches become masks: LLVM makes vectors of them, though its own estimate may be against that.

    for i < n {                                    for 4 points at a time {
      c = eq i 0                                     c = eq i 0
      x = if c { yield 0.0 }                  =>     x = select c 0.0 (masked load a (i - 1))
             else { yield index a (i - 1) }          ...
      ...

LLVM takes each arm to run every second time, and an arm for NaN never, so a loop of many branches seems to be fast as
it is.  But branches are mispredicted, and an arm of arithmetic costs a vector little.  That holds where all that a loop
does of its own index is quick on vectors, and what it reads lies side by side.  A loop with a second exit has no
vectors, and LLVM would tell the user so.  Reads and divisions that may fail are such exits.  So is a condition that
holds at the last step only: LLVM's level 2 lets its arm leave the loop itself (jump threading).
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.flat.affine import ONE, combined
from dplc.flat.nans import tells_nan
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import every, mentions, names, rhs_mentions
from dplc.machine.emit.points.borders import numbers_of
from dplc.passes.simplify.purity import droppable

FLOATS = (f.F32, f.F64)
POWERS = (2, 3, 4)
MOST = 400  # operations of a loop


def has_masks(index: f.Var, count: f.Atom, binds: Sequence[f.Bind], body: f.Block) -> bool:
    """True for a loop over `index` with branches that are quick as masks, besides those for NaN.  `body` is that of the
    function."""
    block = f.Block(tuple(binds), ())
    inside = every(block)
    sound = set[str]()
    for bind in inside:
        if isinstance(bind.rhs, f.Op) and bind.rhs.args and tells_nan(bind.rhs, sound):
            sound.add(bind.vars[0].name)
    branches = any(isinstance(bind.rhs, f.If) and sound.isdisjoint(names((bind.rhs.cond,))) for bind in inside)
    quick = branches and len(inside) <= MOST and _Step(index).is_quick(block)
    return quick and not tells_last(index, count, inside, body)


def tells_last(index: f.Var, count: f.Atom, binds: Sequence[f.Bind], body: f.Block) -> bool:
    """True if a comparison of a loop's index changes at the last step, or one beside it."""
    affine = numbers_of(body, [*names((count,)), *mentions(f.Block(tuple(binds), ()))])
    for bind in binds:
        affine.define(bind)
        apart = affine.difference(bind.rhs) if isinstance(bind.rhs, f.Op) and bind.vars[0].ty == f.BOOL else None
        if apart is None or abs(factor := apart.get(index.name, 0)) != 1:
            continue
        step = combined({index.name: 1}, apart, -factor)  # at which the numbers are equal
        left = combined(affine.sum(count), step, -1)
        if set(left) <= {ONE} and 0 <= left.get(ONE, 0) <= 2:
            return True
    return False


class _Step:
    """A step of a loop.  `near` are its index and what is a constant from it, `varying` all that depends on it."""

    def __init__(self, index: f.Var) -> None:
        self.near, self.varying = {index.name}, {index.name}

    def is_quick(self, block: f.Block, inside: bool = False) -> bool:
        """True if vectors do a block as quickly for each number; `inside` of a branch."""
        return all(self.takes(bind, inside) for bind in block.binds)

    def takes(self, bind: f.Bind, inside: bool) -> bool:
        if self.varying.isdisjoint(rhs_mentions(bind.rhs)):
            read = isinstance(bind.rhs, f.Op) and bind.rhs.op == "index"
            return droppable(bind.rhs) and not (inside and read)
        self.varying.update(var.name for var in bind.vars)
        match bind.rhs:
            case f.If(_, then, else_):
                return self.is_quick(then, True) and self.is_quick(else_, True)
            case f.Op("index", (array, *at)):
                number = rank_of(array.ty) == len(at) and bind.vars[0].ty in FLOATS
                return number and bool(bind.rhs.attr("unchecked")) and self.side_by_side(at)
            case f.Op(name, args) if args[0].ty == f.I64:
                return self.whole(bind.vars[0], name, args)
            case f.Op("powi", (_, f.Const(power))):
                return power in POWERS
            case f.Op(name, args):
                return (OPS[name].quick or name == "acc_add") and all(isinstance(a.ty, f.Num) for a in args)
            case _:
                return False

    def side_by_side(self, at: Sequence[f.Atom]) -> bool:
        """True if points that follow each other read numbers that do."""
        *outer, last = at
        return self.is_near(last) and not any(map(self.varies, outer))

    def whole(self, var: f.Var, name: str, args: Sequence[f.Atom]) -> bool:
        """True for what vectors do with whole numbers: they have no products of 64 bits."""
        left, right = args[0], args[-1]
        if name in ("add", "sub") and self.is_near(left) and not self.varies(right):
            self.near.add(var.name)
        if name == "add" and self.is_near(right) and not self.varies(left):
            self.near.add(var.name)
        return OPS[name].cheap and name not in ("mul", "cast")

    def is_near(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.near

    def varies(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.varying
