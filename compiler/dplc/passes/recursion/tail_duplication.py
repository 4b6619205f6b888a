"""flat -> flat where what follows a recursive call in a branch is in the branch: tail duplication.

    r = if c { yield null } else { q = f rest; yield q }            c' = if c { t = (x, null);  k = :: t;  yield k }
    t = (x, r)                                              =>           else { q = f rest;  t = (x, q);  k = :: t
    k = :: t                                                                    yield k }
    return k                                                        return c'

The call is then a tail call modulo cons (`modulo_cons.py`).  Reverse functions of those along lists have such branches:
a cotangent may be null.  Only little code is copied: cells, their fields, and arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.walk import atoms, blocks, highest, mentioned, names, number_of, with_binds, with_body, with_branches
from dplc.passes.recursion.modulo_cons import gives_cells
from dplc.passes.simplify.purity import droppable

MOST = 24  # bindings that are copied


def tail_duplication(program: f.Program) -> f.Program:
    fns = {name: _Copies(fn).function() if gives_cells(fn) else fn for name, fn in program.fns.items()}
    return replace(program, fns=fns)


class _Copies:
    """What follows calls of one function."""

    def __init__(self, fn: f.Fn) -> None:
        self.fn = fn
        self.name = fn.name
        self.supply = f.Supply()

    def function(self) -> f.Fn:
        self.supply.count = max(highest(self.fn.body), *[number_of(p.name) for p in self.fn.params], 0)
        return with_body(self.fn, self.block(self.fn.body))

    def block(self, block: f.Block) -> f.Block:
        """A block whose results the function returns."""
        at = self.last_call(block)
        if at is None:
            return block
        bind, after = block.binds[at], block.binds[at + 1 :]
        before, dependent = apart(bind, after)
        if isinstance(bind.rhs, f.Call):
            return with_binds(block, (*block.binds[:at], *before, bind, *dependent)) if before else block
        if bind.vars == block.results:
            return with_binds(block, (*block.binds[:at], f.Bind(bind.vars, self.choice(bind.rhs))))
        tail = f.Block(tuple(dependent), block.results)
        if size(tail) > MOST:
            return block
        results = tuple([f.Var(self.supply.fresh("end"), result.ty) for result in block.results])
        made = f.Bind(results, self.choice(bind.rhs, tail, bind.vars))
        return f.Block((*block.binds[:at], *before, made), results)

    def choice(self, choice: f.Rhs, tail: f.Block | None = None, vars_: Sequence[f.Var] = ()) -> f.Rhs:
        """A choice, with a tail at the end of each arm, where the results of the arm are called `vars_`."""
        made = []
        for arm in blocks(choice):
            if tail is not None:
                known = dict(zip(names(vars_), arm.results, strict=True))
                copied = Copier(self.supply, known).block(tail)
                arm = f.Block((*arm.binds, *copied.binds), copied.results)
            made.append(self.block(arm))
        return with_branches(choice, made)

    def last_call(self, block: f.Block) -> int | None:
        """Where a call stands, or a choice with one at the end of an arm, after which there are only cells, their
        fields, and arithmetic."""
        for at in range(len(block.binds) - 1, -1, -1):
            rhs = block.binds[at].rhs
            if isinstance(rhs, f.Call):
                return at if rhs.fn == self.name else None
            if isinstance(rhs, f.If | f.Switch) and any(self.last_call(arm) is not None for arm in blocks(rhs)):
                return at
            if not is_light(block.binds[at]):
                return None
        return None


def apart(call: f.Bind, after: Sequence[f.Bind]) -> tuple[list[f.Bind], list[f.Bind]]:
    """What comes after a call: what does not depend on it, and what does."""
    given, before, dependent = set(names(call.vars)), list[f.Bind](), list[f.Bind]()
    for bind in after:
        used = set(names(atoms(bind.rhs))).union(*map(mentioned, blocks(bind.rhs)))
        if used & given:
            given.update(names(bind.vars))
            dependent.append(bind)
        else:
            before.append(bind)
    return before, dependent


def is_light(bind: f.Bind) -> bool:
    """True for cells, tuples, and arithmetic on numbers that cannot fail."""
    match bind.rhs:
        case f.TupMake() | f.TupGet() | f.ConMake():
            return True
        case f.Op(args=args):
            return all(isinstance(a.ty, f.Num) for a in (*args, *bind.vars)) and droppable(bind.rhs)
        case f.If() | f.Switch() as choice:
            return all(isinstance(v.ty, f.Num) for v in bind.vars) and all(
                is_light(inner) for block in blocks(choice) for inner in block.binds
            )
        case _:
            return False


def size(block: f.Block) -> int:
    return sum(1 + sum(map(size, blocks(bind.rhs))) for bind in block.binds)
