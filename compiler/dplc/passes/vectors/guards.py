"""Guards: what is checked of the arguments of a call before it is made, where the call moves to an earlier one.

    same_shape u x                             same_shape u x
    (y, a) = f(x, u)                           ok = eq (dim v) (dim x)
    same_shape v x                     =>      w = if ok then v else u
    (z, b) = f(x, v)                           (y, a, b) = f.2(x, u, w)
                                               same_shape v x

A derivative trusts that a direction has the shape of its point.  So a direction that may have another one is left out:
the call gets that of the first call, which was checked, and the check fails afterwards, as it did before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dplc.flat import term as f
from dplc.flat.build import Builder, all_hold
from dplc.flat.dims import Dims
from dplc.flat.ops.row import Dim
from dplc.flat.types import rank_of
from dplc.flat.walk import atoms, blocks, every, names, rhs_mentions
from dplc.passes.simplify.purity import HERE, droppable, natural


def guards(binds: Iterable[f.Bind], holders: Callable[[str], Iterator[str]], given: set[str]) -> list[f.Bind]:
    """The bindings that check a part of what a call is given.  `holders` are a variable and the tuples it is a part of,
    and `given` are the arguments with the parts that they are made of."""
    checks = [bind for bind in binds if all(var.ty == f.UNIT for var in bind.vars)]
    return [b for b in checks if any(not given.isdisjoint(holders(name)) for name in rhs_mentions(b.rhs))]


class Shapes:
    """What is known of shapes after the checks in `passed`."""

    def __init__(self, dims: Dims, passed: Iterable[f.Bind]) -> None:
        self.dims = dims
        self.equal: dict[Dim | None, Dim | None] = {}
        for bind in passed:
            if is_shape_check(bind.rhs):
                for one, other in self.pairs(bind.rhs):
                    if one != other:
                        self.equal[one] = other

    def pairs(self, check: f.Rhs) -> Iterator[tuple[Dim | None, Dim | None]]:
        """The dimensions that a check compares."""
        one, other = atoms(check)
        for k in range(rank_of(one.ty)):
            yield self.length(self.dims.of(one, k)), self.length(self.dims.of(other, k))

    def length(self, dim: Dim | None) -> Dim | None:
        """What is equal for dimensions that are known to be equal."""
        dim = self.dims.read(dim)
        while dim in self.equal:
            dim = self.equal[dim]
        return dim

    def holds(self, check: f.Bind) -> bool:
        """True if a check of shapes cannot fail."""
        return is_shape_check(check.rhs) and all(one == other for one, other in self.pairs(check.rhs))


def is_shape_check(rhs: f.Rhs) -> bool:
    """True for a comparison of the shapes of two variables."""
    return isinstance(rhs, f.Op) and rhs.op == "same_shape" and all(isinstance(a, f.Var) for a in rhs.args)


def fitting(b: Builder, checks: Sequence[f.Bind]) -> f.Atom:
    """True if all these checks of shapes hold."""
    pairs = [(one, other, k) for one, other in (atoms(c.rhs) for c in checks) for k in range(rank_of(one.ty))]
    same = [b.op("eq", (b.op("dim", (one,), k=k), b.op("dim", (other,), k=k))) for one, other, k in pairs]
    return all_hold(b, same)


def either(b: Builder, ok: f.Atom, one: f.Atom, other: f.Atom) -> f.Var:
    """`one` if `ok` holds, else `other`."""
    return b.one(f.If(ok, f.Block((), (one,)), f.Block((), (other,))), one.ty)


def can_go_first(rhs: f.Rhs, lengths: set[str]) -> bool:
    """True for a comprehension, an array of numbers or a branch that cannot fail, so it may be done before a call that
    may.  `lengths` are names of numbers that are not negative."""
    if isinstance(rhs, f.Op):
        return rhs.op == "array" and all(isinstance(a.ty, f.Num) for a in rhs.args)
    if not isinstance(rhs, f.If | f.Build):
        return False
    if isinstance(rhs, f.Build) and not natural(rhs.count) and lengths.isdisjoint(names((rhs.count,))):
        return False
    return all(can_stand(bind.rhs) for block in blocks(rhs) for bind in every(block))


def can_stand(rhs: f.Rhs) -> bool:
    """True if it cannot fail at any place."""
    return droppable(rhs) and not (isinstance(rhs, f.Op) and rhs.attr("unchecked") == HERE)
