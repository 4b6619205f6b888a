"""Teams: a loop of small steps is done inside of one launch, by one block of threads.

    s = for i < n state (s = a) {                  done, all = par t < 1 to done, keep {
      x = par j < m to keep { ... s[j] ... }         s = for i < n state (s = a) { x = par ...; ...; yield y }
      ...; yield y }                           =>    yield true, s }
                                                   s = if done then index all 0 else for i < n ...

The steps of a recurrence, or of training a small model, would each be some launches, which take longer than their
points.  A loop that no device does as a team is done step by step by the host, as before.  `team_steps.py` says what a
team can do.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.types import rank_of
from dplc.flat.walk import supply_for, with_binds, with_body, with_inner
from dplc.passes.device.array_sums import called_by_points
from dplc.passes.device.kernels import Devices


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
        for bind in block.binds:
            found = self.loop(bind, bind.rhs) if isinstance(bind.rhs, f.For | f.While) else []
            binds += found or [bind if isinstance(bind.rhs, f.Par) else with_inner(bind, self.block)]
        return with_binds(block, binds)

    def loop(self, bind: f.Bind, loop: f.For | f.While) -> list[f.Bind]:
        """What comes in place of a loop; nothing if it stays.  An array of its state is taken to keep the lengths that
        it begins with: if it does not, the team fails, and the host does the loop."""
        numbers = [var for var in bind.vars if isinstance(var.ty, f.Num)]
        arrays = [var for var in bind.vars if isinstance(var.ty, f.Arr)]
        if loop.collect or len(numbers) + len(arrays) < len(bind.vars):
            return []
        b, kept = Builder(self.supply), Kept(numbers)
        copier = Copier(self.supply, {})
        own = Builder(self.supply)
        own.binds += copier.binds((bind,))
        rows = (*kept.rows(own, copier), *copier.operands(tuple(arrays)))
        told = [lengths(b, init) for var, init in zip(bind.vars, loop.inits, strict=False) if var in arrays]
        outs = (f.Out("done"), *[f.Out("keep") for _ in kept.types], *[f.Out("keep", inner=dims) for dims in told])
        body = block_of(own.binds, (f.Const(True, f.BOOL), *rows))
        par = f.Par(((b.var("t", f.I64), integer(1)),), body, outs)
        if self.devices.why_not(par):
            return []
        done, *all_ = b.bind(par, [f.BOOL, *[one_more(row.ty) for row in rows]], "team")
        there = Builder(self.supply)
        known = kept.read(there, all_) | {
            var.name: there.op("index", (whole, integer(0)), unchecked=True)
            for var, whole in zip(arrays, all_[len(kept.types) :], strict=True)
        }
        given = block_of(there.binds, tuple([known[var.name] for var in bind.vars]))
        host = tuple([b.var(var.name, var.ty) for var in bind.vars])
        here = f.Block((f.Bind(host, bind.rhs),), host)
        return [*b.binds, f.Bind(bind.vars, f.If(done, given, here))]


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


def lengths(b: Builder, array: f.Atom) -> tuple[f.Atom, ...]:
    """The lengths of an array before a loop; none of null."""
    if not isinstance(array, f.Var):
        return ()
    return tuple([b.op("dim", (array,), k=k) for k in range(rank_of(array.ty))])


def one_more(ty: f.Type) -> f.Arr:
    assert isinstance(ty, f.Arr)
    return f.Arr(ty.elem, ty.rank + 1)


