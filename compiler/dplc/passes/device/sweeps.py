"""Sweeps on a device: the forward and the backward sweep of points are one kernel where neither is one alone.

    kept = par k < n to keep { ... }           done, c = par k < n to done, add { ...; ... }
    ...                                   =>   kept = if done then null else par k < n to keep { ... }
    c = par k < n to add { kept[k] ... }       ...
                                               c' = if done then c else par k < n to add { kept[k] ... }

What points keep for their backward sweep, such as records of a recursion, stays in the memory of their threads.  On the
host the two loops remain what they are: so what fails fails in its order, and `done` is false there.

An array to which points add has the lengths that it is given later, where it is null if nothing was added.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.types import nothing
from dplc.flat.walk import (
    every,
    needed,
    own_reads,
    rhs_mentions,
    supply_for,
    with_binds,
    with_blocks,
    with_body,
    with_inner,
    with_rhs,
)
from dplc.passes.device.array_sums import array_sums, called_by_points
from dplc.passes.device.carried_sums import CarriedSums
from dplc.passes.device.cotangent_sums import cotangent_sums
from dplc.passes.device.kept_sums import KeptSums, Needs
from dplc.passes.device.kernels import Devices
from dplc.passes.device.scans import scans
from dplc.passes.device.sorted_adds import sorted_adds
from dplc.passes.device.teams import teams
from dplc.passes.device.unread import unread
from dplc.passes.parallel.join import Joiner, is_check


def sweeps(program: f.Program) -> f.Program:
    """A chain of passes: sums, scans, joined kernels, teams.  Their order matters: each finds what others have made."""
    program = cotangent_sums(array_sums(unread(program)))
    fns = {name: with_body(fn, with_lengths(fn.body)) for name, fn in program.fns.items()}
    program = scans(replace(program, fns=fns))
    supply, devices = supply_for(program), Devices(program)
    joined = {name: with_body(fn, _Sweeps(fn, devices, supply).block(fn.body)) if has_pars(fn) else fn
              for name, fn in program.fns.items()}  # fmt: skip
    program = teams(replace(program, fns=joined))
    return sorted_adds(with_kept_sums(program))


def with_kept_sums(program: f.Program) -> f.Program:
    """The program, in which sums stay on the device.  What points call is done by their threads."""
    needs, supply, apart = Needs(Devices(program)), supply_for(program), called_by_points(program)
    carried, kept = CarriedSums(needs, supply), KeptSums(needs, supply)
    fns = {name: with_body(fn, kept.block(carried.body(fn.body))) if has_pars(fn) and name not in apart else fn
           for name, fn in program.fns.items()}  # fmt: skip
    return replace(program, fns=fns)


def has_pars(fn: f.Fn) -> bool:
    return any(isinstance(bind.rhs, f.Par) for bind in every(fn.body))


# ---- lengths of what is added to


def with_lengths(block: f.Block) -> f.Block:
    """The block, in which the Pars that the host runs know the lengths of the arrays that they add to."""
    binds: list[f.Bind] = []
    for at, bind in enumerate(block.binds):
        match bind.rhs:
            case f.Par(outs=outs) as par:
                told = [with_length(out, var, block.binds[at + 1 :]) for out, var in zip(outs, bind.vars, strict=True)]
                same = all(a is b for a, b in zip(told, outs, strict=True))
                binds.append(bind if same else with_rhs(bind, replace(par, outs=tuple(told))))
            case rhs:
                binds.append(with_rhs(bind, with_blocks(rhs, with_lengths)))
    return with_binds(block, binds)


def with_length(out: f.Out, var: f.Var, later: tuple[f.Bind, ...]) -> f.Out:
    """An out with the lengths that its array is given if it is null, where these are known before the Par."""
    if out.kind != "add" or not isinstance(out.target, f.Const):
        return out
    own: set[str] = {var.name}
    for bind in later:
        match bind.rhs:
            case f.Op("acc_zeros", (array, *dims)) if array == var:
                known = not any(isinstance(dim, f.Var) and dim.name in own for dim in dims)
                return replace(out, inner=tuple(dims)) if known else out
            case _:
                own.update(made.name for made in bind.vars)
    return out


# ---- two sweeps


class _Sweeps(Joiner):
    """One function."""

    def __init__(self, fn: f.Fn, devices: Devices, supply: f.Supply) -> None:
        super().__init__(fn)
        self.devices, self.supply = devices, supply

    def harmless(self, rhs: f.Rhs) -> bool:
        return True  # what fails on a device is done again

    def movable(self, bind: f.Bind) -> bool:
        return self.is_quiet(bind)

    def block(self, block: f.Block) -> f.Block:
        done: list[f.Bind] = []
        for bind in block.binds:
            if isinstance(bind.rhs, f.Par):
                done = self.pair(done, bind)
            else:
                done.append(with_inner(bind, self.block))
        return with_binds(block, done)

    def pair(self, done: list[f.Bind], bind: f.Bind) -> list[f.Bind]:
        """The bindings, and then a Par; the two sweeps that it is the second of are one where a device does them."""
        par, uses = bind.rhs, Counter(self.uses)
        assert isinstance(par, f.Par)
        found = self.joint(done, bind) if any(reads_data(par)) else None
        self.uses = uses
        if found is None:
            return [*done, bind]
        at, both, _, _ = found
        first, between = done[at], done[at + 1 :]
        early = needed(between, rhs_mentions(both.rhs))
        whole = self.whole(both)
        if any(is_check(b) for b in between) or not all(map(self.movable, early)):
            return [*done, bind]
        if not self.helps(first.rhs, par, whole.rhs):
            return [*done, bind]
        given = dict(zip((var.name for var in both.vars), whole.vars[1:], strict=True))
        rest = [b for b in between if b not in early]
        return [*done[:at], *early, whole, chosen(whole.vars[0], first, given), *rest,
                chosen(whole.vars[0], bind, given)]  # fmt: skip

    def whole(self, both: f.Bind) -> f.Bind:
        """Both sweeps under names of their own."""
        par = both.rhs
        assert isinstance(par, f.Par)
        body = f.Block(par.body.binds, (f.Const(True, f.BOOL), *par.body.results))
        copier = Copier(self.supply, {})
        made = copier.rhs(replace(par, body=body, outs=(f.Out("done"), *par.outs)))
        done = f.Var(self.supply.fresh("done"), f.BOOL)
        return f.Bind((done, *[copier.var(var) for var in both.vars]), made)

    def helps(self, first: f.Rhs, second: f.Rhs, whole: f.Rhs) -> bool:
        """True if a device can do both sweeps, but not each alone."""
        why_not = self.devices.why_not
        assert isinstance(first, f.Par) and isinstance(second, f.Par) and isinstance(whole, f.Par)
        return bool(why_not(first) or why_not(second)) and not why_not(whole)


def reads_data(par: f.Par) -> list[f.Var]:
    """The arrays that the points of a Par read at their own places."""
    return [array for array, _ in own_reads(par.body, tuple([index for index, _ in par.space]))]


def chosen(done: f.Var, bind: f.Bind, given: dict[str, f.Var]) -> f.Bind:
    """A sweep, unless the device has done it: then its results are those that are `given`; the others are not used."""
    there = tuple([given.get(var.name, nothing(var.ty)) for var in bind.vars])
    own = tuple([f.Var(f"{var.name}'host", var.ty) for var in bind.vars])
    return f.Bind(bind.vars, f.If(done, f.Block((), there), f.Block((f.Bind(own, bind.rhs),), own)))
