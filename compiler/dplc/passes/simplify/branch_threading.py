"""Branch threading (jump threading): flat -> flat where a cotangent is tested for null only once.

    v = if p { yield null }               v, w = if p { yield null, null }
           { m = ...; yield m }                  { m = ...; r = mul m x; yield m, r }
    n = is_null v                  =>
    w = if n { yield null }
           { r = mul v x; yield r }

The code that depends on one cotangent becomes straight-line code, in which elementwise operations can be fused and
products can be accumulated in place.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.kinds import any_of, kinds
from dplc.flat.walk import every, names, rhs_mentions, supply_for, with_binds, with_inner
from dplc.passes.simplify.dead_code import drop_unused
from dplc.passes.simplify.fold import is_null, solid

QUESTIONS = any_of("is_null")
BRANCHES = any_of(f.If)


def thread_branches(program: f.Program) -> f.Program:
    supply = supply_for(program)
    fns = {}
    for name, fn in program.fns.items():
        threader = _Threader(fn, supply) if kinds(fn.body) & QUESTIONS else None
        body = threader.block(fn.body) if threader else fn.body
        fns[name] = replace(fn, body=drop_unused(body)) if threader and threader.changed else fn
    return replace(program, fns=fns)


class _Threader:
    """One function; `defs` has the right-hand sides that bind a single variable."""

    def __init__(self, fn: f.Fn, supply: f.Supply) -> None:
        self.supply = supply
        self.defs = {bind.vars[0].name: bind.rhs for bind in every(fn.body) if len(bind.vars) == 1}
        self.changed = False

    def block(self, block: f.Block) -> f.Block:
        if not kinds(block) & BRANCHES:
            return block
        written: list[f.Bind] = []
        where: dict[str, int] = {}
        for bind in block.binds:
            if not self.merged(bind, written, where):
                where.update((var.name, len(written)) for var in bind.vars)
                written.append(bind)
        return with_binds(block, [with_inner(b, self.block) for b in written])

    def merged(self, bind: f.Bind, written: list[f.Bind], where: dict[str, int]) -> bool:
        """Moves a branch on `is_null v` into the branch that defines `v`.  Returns False if that is impossible."""
        second, asked = bind.rhs, self.asked(bind.rhs)
        at = where.get(asked.name, -1) if asked else -1
        if asked is None or at < 0:
            return False
        vars_, first = written[at].vars, written[at].rhs
        if not isinstance(first, f.If) or not isinstance(second, f.If):
            return False
        place = vars_.index(asked)
        then, else_ = first.then.results[place], first.else_.results[place]
        before = self.asked(first)  # the tested variable: null in the first arm, not null in the second
        nulls = is_null(then) or then == before, is_null(else_)
        solids = solid(then, self.defs), solid(else_, self.defs) or else_ == before
        if nulls[0] == nulls[1] or solids[0] == solids[1]:
            return False
        if any(where.get(name, -1) > at for arm in (second.then, second.else_) for name in _free(arm)):
            return False  # it needs values computed between the two branches
        arms = [
            self.extended(arm, vars_, second.then if null else second.else_)
            for arm, null in zip((first.then, first.else_), nulls, strict=True)
        ]
        written[at] = f.Bind((*vars_, *bind.vars), f.If(first.cond, *arms))
        where.update((var.name, at) for var in bind.vars)
        self.changed = True
        return True

    def asked(self, rhs: f.Rhs) -> f.Var | None:
        """The variable that a branch tests for null."""
        if not isinstance(rhs, f.If) or not isinstance(rhs.cond, f.Var):
            return None
        match self.defs.get(rhs.cond.name):
            case f.Op("is_null", (f.Var() as asked, *_)):
                return asked
            case _:
                return None

    def extended(self, arm: f.Block, variables: tuple[f.Var, ...], more: f.Block) -> f.Block:
        """An arm followed by `more`, in which the arm's results are called `variables`."""
        known = {var.name: atom for var, atom in zip(variables, arm.results, strict=True)}
        copy = Copier(self.supply, known).block(more)
        self.defs.update({b.vars[0].name: b.rhs for b in every(copy) if len(b.vars) == 1})
        return f.Block((*arm.binds, *copy.binds), (*arm.results, *copy.results))


def _free(block: f.Block) -> set[str]:
    """The names in a block.  Those that it binds itself do no harm, as names are unique."""
    return {name for bind in block.binds for name in rhs_mentions(bind.rhs)} | set(names(block.results))
