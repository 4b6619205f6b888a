"""flat -> flat where a guard against NaN becomes a cold branch instead of a selection.

    a = eq t 0.0;  n = ne p p;  m = and a n             o = eq p p
    y = select m 0.0 p                        =>        y = if o { yield p }
                                                               { a = eq t 0.0; z = select a 0.0 p; yield z }

Derivatives guard every product with a tangent that may be a symbolic zero (`ad/rules/bulk.py`).  Code after a predicted
branch need not wait for it, as it would for a selection: dependence chains of tangents become half as long.  The bodies
of parallel loops without control are left as they are, to be vectorised; so are blocks with many guards.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.walk import every, supply_for, with_binds, with_blocks, with_rhs
from dplc.passes.simplify.dead_code import drop_unused

PLAIN = f.Op | f.TupMake | f.TupGet
MANY = 32  # guards of a block that stay selections: wide code does not wait, and LLVM takes long for small blocks


def branch_on_nan_guards(program: f.Program) -> f.Program:
    supply = supply_for(program)
    fns = {name: _Brancher(fn, supply).function(fn) for name, fn in program.fns.items()}
    return replace(program, fns=fns)


class _Brancher:
    """One function; `defs` has the operations that bind its variables."""

    def __init__(self, fn: f.Fn, supply: f.Supply) -> None:
        self.supply = supply
        self.defs = {b.vars[0].name: b.rhs for b in every(fn.body) if isinstance(b.rhs, f.Op) and len(b.vars) == 1}
        self.changed = False

    def function(self, fn: f.Fn) -> f.Fn:
        body = self.block(fn.body)
        return replace(fn, body=drop_unused(body)) if self.changed else fn

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        guards = [self.guarded(bind.rhs) for bind in block.binds]
        many = sum(1 for guard in guards if guard) > MANY
        for bind, guard in zip(block.binds, guards, strict=True):
            found = None if many else guard
            if found is not None:
                binds += self.branch(bind.vars[0], *found)
            else:
                plain = isinstance(bind.rhs, f.Par) and all(isinstance(b.rhs, PLAIN) for b in bind.rhs.body.binds)
                binds.append(bind if plain else with_rhs(bind, with_blocks(bind.rhs, self.block)))
        return with_binds(block, binds)

    def guarded(self, rhs: f.Rhs) -> tuple[f.Op, f.Var] | None:
        """For a guard: its comparison with zero, and the value that it selects otherwise.  None if the right-hand side
        is no guard."""
        match rhs:
            case f.Op("select", (f.Var() as mask, f.Const(0.0), f.Var(_, f.Num()) as part)) if f.is_float(part.ty):
                pass
            case _:
                return None
        both = self.defs.get(mask.name)
        if both is None or both.op != "and":
            return None
        absent, odd = (self.defs.get(a.name) if isinstance(a, f.Var) else None for a in both.args)
        if absent is None or absent.op != "eq" or odd is None or (odd.op, *odd.args) != ("ne", part, part):
            return None
        return absent, part

    def branch(self, var: f.Var, zero: f.Op, part: f.Var) -> list[f.Bind]:
        self.changed = True
        sound, absent, masked = (
            f.Var(self.supply.fresh(h), t) for h, t in (("eq", f.BOOL), ("eq", f.BOOL), ("select", part.ty))
        )
        rare = f.Block(
            (f.Bind((absent,), zero), f.Bind((masked,), f.Op("select", (absent, f.Const(0.0, part.ty), part)))),
            (masked,),
        )
        test = f.Bind((sound,), f.Op("eq", (part, part)))
        return [test, f.Bind((var,), f.If(sound, f.Block((), (part,)), rare))]
