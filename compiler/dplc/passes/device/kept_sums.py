"""Sums that stay on a device: a sum of which only points of other Pars make use is an array of one element there.

    s = par i < n to fold 0 { ... }            t = par i < n to fold 0 kept { ... }
    m = div s 10.0                        =>   ys = par j < m to keep {
    ys = par j < m to keep { ... m ... }         s = index t 0; m = div s 10.0; ... m ... }

So the host does not wait for it.  What is computed of such sums alone is computed by each point.  Elements that only
points use are read by them, too, where a device may have made the array, and no points write over it:

    x = index a 0                              ys = par j < m to keep {
    ys = par j < m to keep { ... x ... }  =>     x = index a 0; ... x ... }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of
from dplc.flat.walk import atoms, mentions, names, rhs_mentions, with_binds, with_inner, with_rhs
from dplc.passes.device.kernels import Devices
from dplc.passes.simplify.purity import droppable


class KeptSums:
    """A function's blocks that the host runs."""

    def __init__(self, devices: Devices, supply: f.Supply) -> None:
        self.devices, self.supply = devices, supply

    def block(self, block: f.Block) -> f.Block:
        binds = [bind if isinstance(bind.rhs, f.Par) else with_inner(bind, self.block)
                 for bind in block.binds]  # fmt: skip
        pars = any(isinstance(bind.rhs, f.Par) for bind in binds)
        kept = self.kept(binds, block.results) if pars else set()
        return with_binds(block, list(self.changed(binds, kept)) if kept else binds)

    def kept(self, binds: list[f.Bind], results: Iterable[f.Atom]) -> set[str]:
        """The sums and the elements that only points use, directly or by what is computed of them alone."""
        host, found = set(names(results)), set[str]()  # what the host uses
        own = set(names(unmoved(binds)))
        used = {name for bind in binds if isinstance(bind.rhs, f.Par) for name in mentions(bind.rhs.body)}
        for bind in reversed(binds):
            if isinstance(bind.rhs, f.Par) and not self.devices.why_not(bind.rhs):
                found.update(var.name for var in sums(bind) if var.name not in host)
                host.update(names(atoms(bind.rhs)))
            elif is_element(bind, own) and bind.vars[0].name not in host:
                found.update({bind.vars[0].name} & used)
            elif not is_small(bind) or bind.vars[0].name in host:
                host.update(rhs_mentions(bind.rhs))
            elif bind.vars[0].name in used:
                used.update(rhs_mentions(bind.rhs))
        return found

    def changed(self, binds: list[f.Bind], kept: set[str]) -> Iterator[f.Bind]:
        """The bindings, with what stays on the device."""
        arrays: dict[str, f.Var] = {}
        small: dict[str, f.Bind] = {}  # what is computed of sums, by each point
        for bind in binds:
            follows = is_small(bind) and any(name in arrays or name in small for name in rhs_mentions(bind.rhs))
            if follows or (isinstance(bind.rhs, f.Op) and bind.vars and bind.vars[0].name in kept):
                small[bind.vars[0].name] = bind
                continue
            if isinstance(bind.rhs, f.Par):
                bind = with_rhs(bind, self.reading(bind.rhs, arrays, small))
                arrays |= {var.name: f.Var(self.supply.fresh(var.name), f.Arr(var.ty, 1))
                           for var in sums(bind) if var.name in kept}  # fmt: skip
                bind = keeping(bind, arrays)
            yield bind

    def reading(self, par: f.Par, arrays: dict[str, f.Var], small: dict[str, f.Bind]) -> f.Par:
        """A Par whose points read the sums that they use, and compute what they use of these."""
        needed, todo = dict[str, f.Bind](), [name for name in mentions(par.body) if name in arrays or name in small]
        if not todo:
            return par
        while todo:
            name = todo.pop()
            if name in arrays:
                array = arrays[name]
                read = f.Op("index", (array, f.Const(0, f.I64)), (("unchecked", True),))
                needed[name] = f.Bind((f.Var(name, elem_of(array.ty)),), read)
            elif name in small:
                needed[name] = small[name]
                todo += rhs_mentions(small[name].rhs)
        copier = Copier(self.supply, {})
        before = copier.binds(tuple([needed[name] for name in (*arrays, *small) if name in needed]))
        body = copier.block(par.body)
        return replace(par, body=f.Block((*before, *body.binds), body.results))


def sums(bind: f.Bind) -> list[f.Var]:
    """The sums of numbers that a Par binds."""
    if not isinstance(bind.rhs, f.Par) or bind.rhs.ordered:
        return []
    return [var for var, out in zip(bind.vars, bind.rhs.outs, strict=True) if out.kind == "fold" and not out.rank]


def keeping(bind: f.Bind, arrays: dict[str, f.Var]) -> f.Bind:
    """A Par that gives arrays of one element in place of sums that are kept."""
    par = bind.rhs
    assert isinstance(par, f.Par)
    outs = tuple([replace(out, kept=True) if var.name in arrays else out
                  for var, out in zip(bind.vars, par.outs, strict=True)])  # fmt: skip
    return f.Bind(tuple([arrays.get(var.name, var) for var in bind.vars]), replace(par, outs=outs))


def unmoved(binds: list[f.Bind]) -> Iterator[f.Atom]:
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
    """True for an operation on numbers that every point may do again."""
    match bind:
        case f.Bind((f.Var(_, f.Num()),), f.Op(op)):
            return OPS[op].elementwise and droppable(bind.rhs)
        case _:
            return False
