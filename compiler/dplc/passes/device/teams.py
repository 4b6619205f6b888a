"""Teams: a loop of small steps is done inside of one launch, by one block of threads.

    s = for i < n state (s = a) {                  done, all = par t < 1 to done, keep {
      x = par j < m to keep { ... s[j] ... }         s = for i < n state (s = a) { x = par ...; ...; yield y }
      ...; yield y }                           =>    yield true, s }
                                                   s = if done then index all 0 else for i < n ...

The steps of a recurrence, or of training a small model, would each be some launches, which take longer than their
points.  A loop that no device does as a team is done step by step by the host, as before.  `team_steps.py` says what a
team can do.  What comes after a loop is done with it where the loop's own results cannot leave the device, such as the
records that a backward sweep reads.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.types import elem_of, is_numbers, rank_of
from dplc.flat.walk import mentions, supply_for, with_binds, with_body, with_inner
from dplc.passes.device.array_sums import called_by_points
from dplc.passes.device.kernels import Devices
from dplc.passes.device.place import in_turn
from dplc.passes.device.team_steps import works

MOST = 60  # bindings of a block that a team does


def teams(program: f.Program) -> f.Program:
    """The program, in which teams of a device do such loops of the host."""
    apart, devices, supply = called_by_points(program), Devices(program), supply_for(program)
    made = program.copy()
    for name, fn in program.fns.items():
        if name not in apart:
            made.fns[name] = with_body(fn, _Walk(devices, supply).block(fn.body))
    return made


class _Walk:
    """A walk through the blocks that the host runs, outermost loops first."""

    def __init__(self, devices: Devices, supply: f.Supply) -> None:
        self.devices, self.supply = devices, supply

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        at = 0
        while at < len(block.binds):
            bind = block.binds[at]
            found = self.team(block, at) if is_loop(bind) else None
            if found is None:
                binds.append(with_inner(bind, self.block) if self.by_host(bind.rhs) else bind)
                at += 1
            else:
                at, made = found
                binds += made
        return with_binds(block, binds)

    def by_host(self, rhs: f.Rhs) -> bool:
        """True unless a device may do all of it.  The host does the points of a Par that gives records, in turn."""
        return not isinstance(rhs, f.Par) or (in_turn(rhs) and bool(self.devices.why_not(rhs)))

    def team(self, block: f.Block, first: int) -> tuple[int, list[f.Bind]] | None:
        """A team for the bindings from a loop on: the fewest whose results a device can give, such as the forward and
        the backward sweep of a gradient.  Gives the number of the binding after them, and what comes in their place."""
        end = self.devices.steps_of_team(block.binds, first)
        for last in range(first + 1, min(end, first + MOST) + 1):
            part = block.binds[first:last]
            wanted = given(part, f.Block(block.binds[last:], block.results))
            fine = all(isinstance(var.ty, f.Num | f.Arr) and is_numbers(elem_of(var.ty)) for var in wanted)
            if fine and (made := Attempt(self.devices, self.supply, part, wanted).binds()):
                return last, made
        return None


class Attempt:
    """A team for some bindings, which give the variables that are `wanted`."""

    def __init__(
        self, devices: Devices, supply: f.Supply, part: tuple[f.Bind, ...], wanted: list[f.Var]
    ) -> None:  # fmt: skip
        self.devices, self.supply, self.part, self.wanted = devices, supply, part, wanted
        self.arrays = [var for var in wanted if isinstance(var.ty, f.Arr)]
        self.kept = Kept([var for var in wanted if isinstance(var.ty, f.Num)])

    def binds(self) -> list[f.Bind]:
        """What comes in place of the bindings; nothing if no device can do them."""
        b = Builder(self.supply)
        par = self.par(b)
        if self.devices.why_not(par):
            return []
        done, *whole = b.bind(par, [f.BOOL, *[one_more(row.ty) for row in par.body.results[1:]]], "team")
        there = Builder(self.supply)
        known = self.kept.read(there, whole) | {
            var.name: there.op("index", (row, integer(0)), unchecked=True)
            for var, row in zip(self.arrays, whole[len(self.kept.types) :], strict=True)
        }
        by_team = block_of(there.binds, tuple([known[var.name] for var in self.wanted]))
        copier = Copier(self.supply, {})
        by_host = f.Block(copier.binds(self.part), copier.operands(tuple(self.wanted)))
        return [*block_of(b.binds, ()).binds, f.Bind(tuple(self.wanted), f.If(done, by_team, by_host))]

    def par(self, b: Builder) -> f.Par:
        """The only point of a Par, and before it the lengths of arrays.  An array of a loop's state is taken to keep
        the lengths that it begins with: if it does not, the team fails, and the host does the loop."""
        copier, own = Copier(self.supply, {}), Builder(self.supply)
        own.binds += copier.binds(self.part)
        rows = (*self.kept.rows(own, copier), *copier.operands(tuple(self.arrays)))
        told = [*[() for _ in self.kept.types], *[self.told(b, var) for var in self.arrays]]
        outs = (f.Out("done", team=True), *[f.Out("keep", inner=dims) for dims in told])
        body = block_of(own.binds, (f.Const(True, f.BOOL), *rows))
        return f.Par(((b.var("t", f.I64), integer(1)),), body, outs)

    def told(self, b: Builder, array: f.Var) -> tuple[f.Atom, ...]:
        """The lengths that an array of a loop's state begins with, if that is known before."""
        made = {var.name for bind in self.part for var in bind.vars}
        for bind in self.part:
            if isinstance(bind.rhs, f.For | f.While) and array in bind.vars:
                init = bind.rhs.inits[bind.vars.index(array)] if bind.vars.index(array) < len(bind.rhs.inits) else None
                if isinstance(init, f.Var) and init.name not in made:
                    return tuple([b.op("dim", (init,), k=k) for k in range(rank_of(init.ty))])
        return ()


def is_loop(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.For | f.While) and works(f.Block((bind,), ()))


def given(part: tuple[f.Bind, ...], rest: f.Block) -> list[f.Var]:
    """The variables of some bindings that the rest uses."""
    used = set(mentions(rest))
    return [var for bind in part for var in bind.vars if var.name in used]


class Kept:
    """Numbers that a team gives: those of one type are an array, so that the host fetches them together."""

    def __init__(self, numbers: list[f.Var]) -> None:
        self.types = {var.ty: [other for other in numbers if other.ty == var.ty] for var in numbers}

    def rows(self, b: Builder, copier: Copier) -> list[f.Var]:
        """The arrays, of numbers under other names."""
        return [b.op("array", copier.operands(tuple(vars_))) for vars_ in self.types.values()]

    def read(self, b: Builder, arrays: list[f.Var]) -> dict[str, f.Atom]:
        """The numbers, by name, where the arrays have one dimension more."""
        return {var.name: b.op("index", (array, integer(0), integer(k)), unchecked=True)
                for array, vars_ in zip(arrays, self.types.values(), strict=False)
                for k, var in enumerate(vars_)}  # fmt: skip


def one_more(ty: f.Type) -> f.Arr:
    assert isinstance(ty, f.Arr)
    return f.Arr(ty.elem, ty.rank + 1)
