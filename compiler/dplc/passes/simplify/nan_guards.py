"""flat -> flat where a guard against NaN becomes a cold branch instead of a selection.

    a = eq t 0.0;  n = ne p p;  m = and a n             o = eq p p
    y = select m 0.0 p                        =>        y = if o { yield p }
                                                               { a = eq t 0.0; z = select a 0.0 p; yield z }

Derivatives guard every product with a tangent that may be a symbolic zero (`ad/rules/bulk.py`).  Code after a predicted
branch need not wait for it, as it would for a selection: dependence chains of tangents become half as long.  The bodies
of parallel loops without control are left as they are, to be vectorised; so are blocks with many guards.

Several guards of a block have one branch (`guards_together.py`).
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, supply_for, with_binds, with_blocks, with_rhs
from dplc.passes.simplify.dead_code import drop_unused
from dplc.passes.simplify.guards_together import Guard, last_uses, stretches

PLAIN = f.Op | f.TupMake | f.TupGet
MANY = 32  # guards of a block that stay selections: wide code does not wait, and LLVM takes long for small blocks
MANY_TOGETHER = 256
FEW = 2  # guards that have a branch each


def branch_on_nan_guards(program: f.Program) -> f.Program:
    supply = supply_for(program)
    fns = {name: _Brancher(fn, supply).function(fn) for name, fn in program.fns.items()}
    return replace(program, fns=fns)


class _Brancher:
    """One function; `defs` has the operations that bind its variables."""

    def __init__(self, fn: f.Fn, supply: f.Supply) -> None:
        self.supply = supply
        self.defs = {b.vars[0].name: b.rhs for b in every(fn.body) if isinstance(b.rhs, f.Op) and len(b.vars) == 1}
        self.lanes = False  # in a loop whose points may be lanes (`machine/emit/varying.py`)
        self.changed = False

    def function(self, fn: f.Fn) -> f.Fn:
        body = self.block(fn.body)
        return replace(fn, body=drop_unused(body)) if self.changed else fn

    def block(self, block: f.Block) -> f.Block:
        guards = {bind.vars[0].name: found for bind in block.binds if (found := self.guarded(bind.rhs))}
        inner = [self.inside(bind) for bind in block.binds]
        if not guards or len(guards) > (MANY if self.lanes else MANY_TOGETHER):
            return with_binds(block, inner)
        self.changed = True
        if self.lanes or len(guards) <= FEW:
            return with_binds(block, self.alone(inner, guards))
        binds: list[f.Bind] = []
        uses = last_uses(with_binds(block, inner), guards)  # inner guards mention what their comparisons do
        for stretch in stretches(inner, guards):
            if len(stretch.guards) > FEW:
                binds += stretch.together(self.supply, uses)
            else:
                binds += self.alone(stretch.binds, guards)
        return with_binds(block, binds)

    def inside(self, bind: f.Bind) -> f.Bind:
        """The binding with its inner blocks changed."""
        if not isinstance(bind.rhs, f.Par):
            return with_rhs(bind, with_blocks(bind.rhs, self.block))
        body, outer = bind.rhs.body, self.lanes
        if all(isinstance(b.rhs, PLAIN) for b in body.binds):
            return bind
        self.lanes = not any(isinstance(b.rhs, f.While | f.Call) for b in every(body))
        changed = with_rhs(bind, with_blocks(bind.rhs, self.block))
        self.lanes = outer
        return changed

    def guarded(self, rhs: f.Rhs) -> Guard | None:
        """A guard; None if the right-hand side is something else."""
        match rhs:
            case f.Op("select", (f.Var() as mask, f.Const(0.0), f.Var(_, f.Num()) as part)) if f.is_float(part.ty):
                pass
            case _:
                return None
        both = self.defs.get(mask.name)
        if both is None or both.op != "and":
            return None
        absent, odd = (self.defs.get(a.name) if isinstance(a, f.Var) else None for a in both.args)
        if absent is None or odd is None or (odd.op, *odd.args) != ("ne", part, part):
            return None
        if not (OPS[absent.op].elementwise and OPS[absent.op].pure):  # it is computed in the branch
            return None
        return Guard(absent, part)

    def alone(self, binds: list[f.Bind], guards: dict[str, Guard]) -> list[f.Bind]:
        """Each guard has its own branch."""
        done: list[f.Bind] = []
        for bind in binds:
            guard = guards.get(bind.vars[0].name) if bind.vars else None
            done += [bind] if guard is None else self.branch(bind.vars[0], guard)
        return done

    def branch(self, var: f.Var, guard: Guard) -> list[f.Bind]:
        zero, part = guard.zero, guard.part
        sound, absent, masked = (
            f.Var(self.supply.fresh(h), t) for h, t in (("eq", f.BOOL), ("eq", f.BOOL), ("select", part.ty))
        )
        rare = f.Block(
            (f.Bind((absent,), zero), f.Bind((masked,), f.Op("select", (absent, f.Const(0.0, part.ty), part)))),
            (masked,),
        )
        test = f.Bind((sound,), f.Op("eq", (part, part)))
        return [test, f.Bind((var,), f.If(sound, f.Block((), (part,)), rare))]
