"""One branch for several guards against NaN (`nan_guards.py`): what they guard is computed without them at first.  Only
where a result is NaN is it computed again, with the guards.

    m = ...  y = select m 0.0 p                         q = add p b
             z = add y b                      =>        o = eq q q
                                                        z = if o { yield q }
                                                               { m = ...; y = select m 0.0 p; x = add y b; yield x }

If no result is NaN, no guard would have changed anything, as NaN goes from operands to results.  What would not tell,
such as a comparison, has its operands tested.  So a step has no branches inside, and LLVM makes vectors of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.nans import passes_nan
from dplc.flat.ops.table import OPS
from dplc.flat.types import is_numbers
from dplc.flat.walk import atoms, names, rhs_mentions

AT_END = 1 << 60


@node
class Guard:
    """A guard: its comparison with zero, and the value that it selects otherwise."""

    zero: f.Op
    part: f.Var


def last_uses(block: f.Block, guards: Mapping[str, Guard]) -> dict[str, int]:
    """The last binding of a block that mentions a variable, by name.  A guard mentions what its comparison does."""
    uses: dict[str, int] = {}
    for at, bind in enumerate(block.binds):
        guard = guards.get(bind.vars[0].name) if bind.vars else None
        mentioned = rhs_mentions(bind.rhs) if guard is None else names((*guard.zero.args, guard.part))
        uses |= dict.fromkeys(mentioned, at)
    return uses | dict.fromkeys(names(block.results), AT_END)


def stretches(binds: Sequence[f.Bind], guards: Mapping[str, Guard]) -> Iterator[Stretch]:
    """The bindings of a block in parts.  What depends on the guards of a part, and is in it, can be repeated."""
    stretch = Stretch(0)
    for at, bind in enumerate(binds):
        if not stretch.takes(bind, guards):
            yield stretch
            stretch = Stretch(at)
            stretch.takes(bind, guards)
    yield stretch


class Stretch:
    """Bindings of a block, from number `start` on."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.binds: list[f.Bind] = []
        self.guards: dict[str, Guard] = {}
        self.dependent: dict[str, f.Var] = {}  # what depends on the guards, and the guards
        self.passed: set[str] = set()  # where it is NaN, something that depends on it is

    def takes(self, bind: f.Bind, guards: Mapping[str, Guard]) -> bool:
        """Adds a binding; False if it depends on guards here and cannot be repeated."""
        guard = guards.get(bind.vars[0].name) if bind.vars else None
        if guard is not None:
            self.guards[bind.vars[0].name] = guard
            if guard.part.name in self.dependent:
                self.passed.add(guard.part.name)
        used = [name for name in rhs_mentions(bind.rhs) if name in self.dependent]
        if used and not repeatable(bind):
            return False
        if used or guard is not None:
            self.dependent |= {var.name: var for var in bind.vars}
        if isinstance(bind.rhs, f.Op) and passes_nan(bind.rhs):
            self.passed.update(used)
        self.binds.append(bind)
        return True

    def together(self, supply: f.Supply, uses: Mapping[str, int]) -> list[f.Bind]:
        """The bindings with one branch.  `uses` has the last use of each variable in the block."""
        end = self.start + len(self.binds)
        results = [var for name, var in self.dependent.items() if uses.get(name, -1) >= end]
        tested = [var for name, var in self.dependent.items() if name not in self.passed and f.is_float(var.ty)]
        quick, slow = Copier(supply, {}), Copier(supply, {})
        binds, again = [], []
        for bind in self.binds:
            guard = self.guards.get(bind.vars[0].name) if bind.vars else None
            if guard is not None:
                quick.atoms[bind.vars[0].name] = quick.atom(guard.part)
                again += self.guard(bind.vars[0], guard, slow)
            elif all(var.name not in self.dependent for var in bind.vars):
                binds.append(bind)
            else:
                binds += quick.binds((bind,))
                again += slow.binds((bind,))
        sound = all_sound(supply, [quick.atom(var) for var in tested if var.name in uses], binds)
        rare = f.Block(tuple(again), tuple(map(slow.atom, results)))
        common = f.Block((), tuple(map(quick.atom, results)))
        return [*binds, f.Bind(tuple(results), f.If(sound, common, rare))] if results else binds

    def guard(self, var: f.Var, guard: Guard, slow: Copier) -> list[f.Bind]:
        """A guard as it was, where NaN is likely."""
        zero, part = slow.rhs(guard.zero), slow.atom(guard.part)
        absent, odd, both = (f.Var(slow.supply.fresh(hint), f.BOOL) for hint in ("eq", "ne", "and"))
        return [
            f.Bind((absent,), zero),
            f.Bind((odd,), f.Op("ne", (part, part))),
            f.Bind((both,), f.Op("and", (absent, odd))),
            f.Bind((slow.var(var),), f.Op("select", (both, f.Const(0.0, part.ty), part))),
        ]


def repeatable(bind: f.Bind) -> bool:
    """True for an operation on numbers without effects that cannot fail, and for tuples of numbers.  Those with cells
    come after the branch, where calls that give cells for them may be the last ones."""
    match bind.rhs:
        case f.Op() as op:
            row = OPS[op.op]
            plain = (row.pure and row.elementwise) or op.op == "acc_add"
            return plain and all(isinstance(x.ty, f.Num) for x in (*bind.vars, *atoms(op)))
        case f.TupMake() | f.TupGet():
            return all(map(is_numbers, (var.ty for var in bind.vars)))
        case _:
            return False


def all_sound(supply: f.Supply, numbers: Sequence[f.Atom], binds: list[f.Bind]) -> f.Atom:
    """Adds bindings that find out if no number is NaN."""
    sound: f.Atom = f.Const(True, f.BOOL)
    for x in dict.fromkeys(numbers):
        one = f.Var(supply.fresh("eq"), f.BOOL)
        binds.append(f.Bind((one,), f.Op("eq", (x, x))))
        if isinstance(sound, f.Var):
            both = f.Var(supply.fresh("and"), f.BOOL)
            binds.append(f.Bind((both,), f.Op("and", (sound, one))))
            one = both
        sound = one
    return sound
