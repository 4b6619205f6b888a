"""Numbers that a loop computes of sums, and hands on to its next step, stay on the device if only points use them.

    x = for k < n state (x = 0.1) {              (xs) = par i < 1 to keep { yield 0.1 }
      s = par ... to fold 0 { ... x ... }        xs = for k < n state (xs = xs) {
      y = sub x s                                  x = index xs 0
      yield y }                             =>     s = par ... to fold 0 { ... x ... }
                                                   y = sub x s
                                                   ys = par i < 1 to keep { yield y }
                                                   yield ys }
                                                 x = index xs 0

`kept_sums` then keeps the sum there, and the points compute y.  So a loop that fits some numbers does not wait in each
step.  Numbers of which no sum is a part, as a rate that falls from step to step, are the host's.  Sums that branches of
the host give are handed on in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import integer
from dplc.flat.walk import blocks, is_in, names, rhs_mentions, with_binds, with_branches, with_inner, with_rhs
from dplc.passes.device.kept_sums import Needs, first_of, is_small


class CarriedSums:
    """The blocks of functions that the host runs."""

    def __init__(self, needs: Needs, supply: f.Supply) -> None:
        self.needs, self.supply = needs, supply
        self.elements: set[str] = set()  # numbers that loops and branches give in arrays

    def body(self, body: f.Block) -> f.Block:
        """A function's body, with arrays of one element in place of such numbers."""
        return self.branches(self.loops(body))

    def loops(self, block: f.Block) -> f.Block:
        """The block with such arrays in its loops, inner loops first."""
        binds: list[f.Bind] = []
        for bind in block.binds:
            if not isinstance(bind.rhs, f.Par):
                bind = with_inner(bind, self.loops)
            binds += self.loop(bind, bind.rhs) if isinstance(bind.rhs, f.For | f.While) else [bind]
        return with_binds(block, binds)

    def branches(self, block: f.Block) -> f.Block:
        """The block with such arrays from its branches, outer branches first."""
        binds: list[f.Bind] = []
        moving = self.moving(block)
        for bind in block.binds:
            made = self.branch(bind, bind.rhs, moving) if isinstance(bind.rhs, f.If | f.Switch) else [bind]
            binds += made if isinstance(bind.rhs, f.Par) else [with_inner(one, self.branches) for one in made]
        return with_binds(block, binds)

    def branch(self, bind: f.Bind, branch: f.If | f.Switch, moving: set[str]) -> list[f.Bind]:
        """A branch, with what comes after it."""
        given = [k for k, var in enumerate(bind.vars) if var.name in moving]
        if not given or is_small(bind):
            return [bind]
        arms: list[f.Block] = []
        for arm in blocks(branch):
            after, results = self.stored([arm.results[k] for k in given])
            arms.append(f.Block((*arm.binds, after), changed(arm.results, given, results)))
        return self.reading(bind, with_branches(branch, arms), given)

    def loop(self, bind: f.Bind, loop: f.For | f.While) -> list[f.Bind]:
        """A loop, with what comes before and after it."""
        carried = self.carried(loop)
        if not carried:
            return [bind]
        before, inits = self.stored([loop.inits[k] for k in carried])
        state = [self.array(loop.state[k]) for k in carried]
        read = [first_of(array, loop.state[k]) for k, array in zip(carried, state, strict=True)]
        after, results = self.stored([loop.body.results[k] for k in carried])
        body = f.Block((*read, *loop.body.binds, after), changed(loop.body.results, carried, results))
        step = replace(loop, state=changed(loop.state, carried, state), inits=changed(loop.inits, carried, inits),
                       body=body)  # fmt: skip
        return [before, *self.reading(bind, step, carried)]

    def reading(self, bind: f.Bind, rhs: f.Rhs, at: list[int]) -> list[f.Bind]:
        """A binding that has arrays at some places, and the reads of their elements."""
        made = [self.array(bind.vars[k]) for k in at]
        self.elements.update(bind.vars[k].name for k in at)
        read = [first_of(array, bind.vars[k]) for k, array in zip(at, made, strict=True)]
        return [with_rhs(bind, rhs, changed(bind.vars, at, made)), *read]

    def carried(self, loop: f.For | f.While) -> list[int]:
        """Which parts of the state, by number."""
        asked = self.needs.of(loop.cond) if isinstance(loop, f.While) else set[str]()
        found = [k for k, var in enumerate(loop.state) if isinstance(var.ty, f.Num)]
        while found:
            others = [atom for k, atom in enumerate(loop.body.results) if k not in found]
            body = f.Block(loop.body.binds, tuple(others))
            host = asked | self.needs.of(body)
            moving = self.moving(body, [(loop.state[k].name, loop.body.results[k]) for k in found])
            fine = [k for k in found if host.isdisjoint((loop.state[k].name, *names((loop.body.results[k],))))
                    and is_in(loop.body.results[k], moving)]  # fmt: skip
            if fine == found:
                return found
            found = fine
        return []

    def moving(self, block: f.Block, carried: Iterable[tuple[str, f.Atom]] = ()) -> set[str]:
        """What a device has of the numbers of a block, of those that the host does not need: sums that stay there, and
        what is computed of them.  What is `carried` is that of the step before."""
        host, kept = self.needs.of(block), self.needs.kept(block)
        found = {var.name for bind in block.binds for var in bind.vars
                 if var.name in self.elements or (var.name in kept and isinstance(bind.rhs, f.Par))}  # fmt: skip
        while True:
            size = len(found)
            found.update(name for name, after in carried if is_in(after, found))
            for bind in block.binds:
                if is_small(bind):
                    if not found.isdisjoint(rhs_mentions(bind.rhs)):
                        found.update(var.name for var in bind.vars)
                elif isinstance(bind.rhs, f.If | f.Switch):
                    found.update(self.given(bind, bind.rhs, found))
            found -= host
            if len(found) == size:
                return found

    def given(self, bind: f.Bind, branch: f.If | f.Switch, outside: set[str]) -> Iterator[str]:
        """The numbers that a branch gives of which a device has one."""
        numbers = [k for k, var in enumerate(bind.vars) if isinstance(var.ty, f.Num) and var.name not in outside]
        if not numbers:
            return
        for arm in blocks(branch):
            others = f.Block(arm.binds, tuple([x for k, x in enumerate(arm.results) if k not in numbers]))
            own = self.moving(others)
            yield from (bind.vars[k].name for k in numbers if is_in(arm.results[k], own | outside))

    def stored(self, numbers: list[f.Atom]) -> tuple[f.Bind, list[f.Var]]:
        """Arrays of one element each, made by one point."""
        arrays = [f.Var(self.supply.fresh("carried"), f.Arr(x.ty, 1)) for x in numbers]
        space = ((f.Var(self.supply.fresh("i"), f.I64), integer(1)),)
        par = f.Par(space, f.Block((), tuple(numbers)), tuple([f.Out("keep") for _ in numbers]))
        return f.Bind(tuple(arrays), par), arrays

    def array(self, var: f.Var) -> f.Var:
        return f.Var(self.supply.fresh(var.name), f.Arr(var.ty, 1))


def changed(items: tuple, at: list[int], others: list[f.Var]) -> tuple:
    """Items, with others at some places."""
    there = dict(zip(at, others, strict=True))
    return tuple([there.get(k, item) for k, item in enumerate(items)])
