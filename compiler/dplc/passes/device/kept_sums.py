"""Sums that stay on a device: a sum of which only points of other Pars make use is an array of one element there.

    s = par i < n to fold 0 { ... }            t = par i < n to fold 0 kept { ... }
    m = div s 10.0                        =>   ys = par j < m to keep {
    ys = par j < m to keep { ... m ... }         s = index t 0; m = div s 10.0; ... m ... }

So the host does not wait for it.  What is computed of such sums alone is computed by each point.  Elements that only
points use are read by them, too, where a device may have made the array, and no points write over it:

    x = index a 0                              ys = par j < m to keep {
    ys = par j < m to keep { ... x ... }  =>     x = index a 0; ... x ... }

What the host needs in a branch only, as to print it in some steps, is read there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.copy import Copier, Renamed
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of
from dplc.flat.walk import atoms, blocks, every, mentions, names, rhs_mentions, with_binds, with_blocks, with_rhs
from dplc.passes.device.kernels import Devices
from dplc.passes.simplify.purity import droppable

Known = Mapping[str, f.Bind]  # what stays on the device, by name: how its value is read or computed there


class Needs:
    """What the host needs in the blocks that it runs."""

    def __init__(self, devices: Devices) -> None:
        self.devices = devices
        self.known: dict[int, tuple[f.Block, set[str], set[str]]] = {}  # by block
        self.launched: dict[int, tuple[f.Par, bool]] = {}  # whether a Par can be a kernel

    def of(self, block: f.Block) -> set[str]:
        """The variables that the host needs to run a block, those from outside included."""
        return self.both(block)[1]

    def kept(self, block: f.Block) -> set[str]:
        """The block's sums and elements that only points and branches use, directly or by what is computed of them
        alone."""
        return self.both(block)[2]

    def both(self, block: f.Block) -> tuple[f.Block, set[str], set[str]]:
        if id(block) not in self.known:
            self.known[id(block)] = (block, *self.found(block))
        return self.known[id(block)]

    def found(self, block: f.Block) -> tuple[set[str], set[str]]:
        host, found = set(names(block.results)), set[str]()
        own, used = set(names(unmoved(block.binds))), set(read_later(block))
        for bind in reversed(block.binds):
            mine = {var.name for var in bind.vars}
            if isinstance(bind.rhs, f.Par) and self.is_kernel(bind.rhs):
                found.update(var.name for var in sums(bind) if var.name not in host)
                host.update(names(atoms(bind.rhs)))
            elif is_element(bind, own) and host.isdisjoint(mine):
                found |= mine & used
            elif is_literal(bind):
                used.update(rhs_mentions(bind.rhs))
            elif not is_small(bind):
                host.update(self.by(bind.rhs))
            elif not host.isdisjoint(mine):
                host.update(rhs_mentions(bind.rhs))
            elif not used.isdisjoint(mine):
                used.update(rhs_mentions(bind.rhs))
        return host, found

    def by(self, rhs: f.Rhs) -> Iterable[str]:
        """The variables that the host needs for a right-hand side: branches read by themselves what they need."""
        match rhs:
            case f.If() | f.Switch():
                return names(atoms(rhs))
            case f.For() | f.While():
                return {*names(atoms(rhs))}.union(*map(self.of, blocks(rhs)))
            case _:
                return rhs_mentions(rhs)

    def is_kernel(self, par: f.Par) -> bool:
        """True if a device can do a Par."""
        if id(par) not in self.launched:
            self.launched[id(par)] = par, not self.devices.why_not(par)
        return self.launched[id(par)][1]


class KeptSums:
    """The blocks of functions that the host runs."""

    def __init__(self, needs: Needs, supply: f.Supply) -> None:
        self.needs, self.supply = needs, supply

    def block(self, block: f.Block, outside: Known | None = None) -> f.Block:
        """A block, with what stays on the device; `outside` has what does so of the blocks around it."""
        kept, known = self.needs.kept(block), dict(outside or {})
        binds: list[f.Bind] = []
        for bind in block.binds:
            follows = is_small(bind) and not known.keys().isdisjoint(rhs_mentions(bind.rhs))
            if follows or (isinstance(bind.rhs, f.Op) and bind.vars and bind.vars[0].name in kept):
                known |= {var.name: bind for var in bind.vars}
            elif isinstance(bind.rhs, f.Par):
                bind = with_rhs(bind, self.reading(bind.rhs, known))
                arrays = {var.name: f.Var(self.supply.fresh(var.name), f.Arr(var.ty, 1))
                          for var in sums(bind) if var.name in kept}  # fmt: skip
                known |= {var.name: first_of(arrays[var.name], var) for var in bind.vars if var.name in arrays}
                binds.append(keeping(bind, arrays))
            elif is_literal(bind) and not known.keys().isdisjoint(rhs_mentions(bind.rhs)):
                binds += self.literal(bind, known)
            else:
                binds.append(with_rhs(bind, self.inside(bind.rhs, known)))
        return with_binds(block, binds)

    def inside(self, rhs: f.Rhs, known: Known) -> f.Rhs:
        """A right-hand side of the host, with its inner blocks."""
        if isinstance(rhs, f.If | f.Switch):
            return with_blocks(rhs, lambda arm: self.block(self.arm(arm, known), known))
        return with_blocks(rhs, lambda block: self.block(block, known))

    def arm(self, arm: f.Block, known: Known) -> f.Block:
        """A branch of the host, which first reads what it needs."""
        wanted = self.needs.of(arm) & known.keys()
        if not wanted:
            return arm
        before, copier = self.copied(wanted, known)
        body = Renamed(copier.atoms).block(arm)
        return f.Block((*before, *body.binds), body.results)

    def reading(self, par: f.Par, known: Known) -> f.Par:
        """A Par whose points read the sums that they use, and compute what they use of these."""
        wanted = known.keys() & mentions(par.body)
        if not wanted:
            return par
        before, copier = self.copied(wanted, known)
        body = copier.block(par.body)
        return replace(par, body=f.Block((*before, *body.binds), body.results))

    def literal(self, bind: f.Bind, known: Known) -> list[f.Bind]:
        """An array of numbers, made by one point."""
        (array,), b, index = bind.vars, Builder(self.supply), f.Var(self.supply.fresh("i"), f.I64)
        par = f.Par(((index, integer(1)),), f.Block((bind,), bind.vars), (f.Out("keep"),))
        rows = b.one(self.reading(par, known), f.Arr(elem_of(array.ty), 2), "rows")
        count = integer(len(atoms(bind.rhs)))
        return [*b.binds, with_rhs(bind, f.Op("reshape", (rows, count), (("unchecked", True),)))]

    def copied(self, wanted: set[str], known: Known) -> tuple[tuple[f.Bind, ...], Copier]:
        """Bindings of variables that are wanted, and of what they are computed of, under new names."""
        needed, todo = set[str](), list(wanted)
        while todo:
            name = todo.pop()
            if name in known and name not in needed:
                needed.add(name)
                todo += rhs_mentions(known[name].rhs)
        binds = dict.fromkeys(bind for name, bind in known.items() if name in needed)
        copier = Copier(self.supply, {})
        return copier.binds(tuple(binds)), copier


def first_of(array: f.Var, var: f.Var) -> f.Bind:
    """The binding of the only element of an array."""
    return f.Bind((var,), f.Op("index", (array, f.Const(0, f.I64)), (("unchecked", True),)))


def read_later(block: f.Block) -> Iterator[str]:
    """The variables that points and branches in a block use."""
    for bind in every(block):
        match bind.rhs:
            case f.Par(_, body):
                yield from mentions(body)
            case f.If() | f.Switch() as branch:
                for arm in blocks(branch):
                    yield from mentions(arm)
            case _:
                pass


def sums(bind: f.Bind) -> list[f.Var]:
    """The sums of numbers that a Par binds.  Those of a Par that says whether it is done come to the host with that."""
    if not isinstance(bind.rhs, f.Par) or bind.rhs.ordered or any(out.kind == "done" for out in bind.rhs.outs):
        return []
    return [var for var, out in zip(bind.vars, bind.rhs.outs, strict=True) if out.kind == "fold" and not out.rank]


def keeping(bind: f.Bind, arrays: dict[str, f.Var]) -> f.Bind:
    """A Par that gives arrays of one element in place of sums that are kept."""
    par = bind.rhs
    assert isinstance(par, f.Par)
    outs = tuple([replace(out, kept=True) if var.name in arrays else out
                  for var, out in zip(bind.vars, par.outs, strict=True)])  # fmt: skip
    return f.Bind(tuple([arrays.get(var.name, var) for var in bind.vars]), replace(par, outs=outs))


def unmoved(binds: Iterable[f.Bind]) -> Iterator[f.Atom]:
    """The arrays that the host has just made, and those that points may write over while others still read."""
    for bind in binds:
        if isinstance(bind.rhs, f.Op) and not OPS[bind.rhs.op].views:
            yield from bind.vars
        elif isinstance(bind.rhs, f.Par):
            yield from (out.target for out in bind.rhs.outs if out.target is not None)


def is_element(bind: f.Bind, own: set[str]) -> bool:
    """True for a read that cannot fail, of an array that is not one of the host's `own`."""
    match bind:
        case f.Bind((f.Var(_, f.Num()),), f.Op("index", (f.Var(name), *_)) as op):
            return name not in own and bool(op.attr("unchecked"))
        case _:
            return False


def is_small(bind: f.Bind) -> bool:
    """True for an operation on numbers that every point may do again, and for a choice between such operations."""
    if not bind.vars or not all(isinstance(var.ty, f.Num) for var in bind.vars):
        return False
    match bind.rhs:
        case f.Op(_, args):
            return all(isinstance(x.ty, f.Num) for x in args) and droppable(bind.rhs)
        case f.If(_, then, else_):
            return all(map(is_small, (*then.binds, *else_.binds)))
        case _:
            return False


def is_literal(bind: f.Bind) -> bool:
    """True for an array of numbers that are given one by one."""
    match bind.rhs:
        case f.Op("array", args):
            return all(isinstance(x.ty, f.Num) for x in args)
        case _:
            return False
