"""flat -> flat where a guard against NaN becomes a cold branch instead of a selection.

    a = eq t 0.0;  n = ne p p;  m = and a n             o = eq p p
    y = select m 0.0 p                        =>        y = if o { yield p }
                                                               { a = eq t 0.0; z = select a 0.0 p; yield z }

Derivatives guard every product with a tangent that may be a symbolic zero (`ad/rules/bulk.py`).  Code after a predicted
branch need not wait for it, as it would for a selection: dependence chains of tangents become half as long.  The bodies
of parallel loops, with borders perhaps, are left without such branches, to be vectorised, and blocks with many guards.
A product with the tangent is zero or NaN there, so zero is selected without asking for NaN, which is one instruction of
a vector:

    y = select m 0.0 p,  p = mul t x                    =>        b = ne t 0.0;  y = select b p 0.0

So it is where t is a choice, as that of a rectifier, and a says that it is not chosen or zero: then t is zero.

If a loop has not computed a, vectors need not combine two conditions:

    y = select m 0.0 p                                  =>        z = select a 0.0 nan;  y = select n z p

But points that are computed in lanes first leave out the guards that they know (`machine/emit/points/varying.py`).

Several guards of a block have one branch (`guards_together.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from math import nan

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.kinds import any_of, kinds
from dplc.flat.nans import guarded
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, names, rhs_mentions, supply_for, with_binds, with_inner, with_rhs
from dplc.narrow import expect_type
from dplc.passes.simplify.dead_code import drop_unused
from dplc.passes.simplify.guards_together import Guard, last_uses, stretches

PLAIN = f.Op | f.TupMake | f.TupGet
MANY = 32  # guards of a block that stay selections: wide code does not wait, and LLVM takes long for small blocks
MANY_TOGETHER = 1024  # more of them are not worth the time to compile them twice
DEEP = 4  # factors that are looked for
FEW = 2  # guards that have a branch each
GATHERED = 8  # operations, at least, for each read of what does not lie side by side, of points that are lanes
GUARDS = any_of("select")


def branch_on_nan_guards(program: f.Program) -> f.Program:
    supply = supply_for(program)
    fns = {name: _Brancher(fn, supply).function(fn) for name, fn in program.fns.items()}
    return replace(program, fns=fns)


def sums_in_lanes(par: f.Par) -> bool:
    """True for points that only keep what they compute, with sums, for which they may be lanes: most of what these read
    lies side by side in the points.  Points that keep what loops in them make are no lanes."""
    lane, kept = par.space[-1][0], set(names(par.body.results))
    loops = [bind for bind in par.body.binds if isinstance(bind.rhs, f.Par | f.For)]
    rows = any(isinstance(var.ty, f.Arr) and var.name in kept for bind in loops for var in bind.vars)
    if not loops or rows or any(out.kind != "keep" for out in par.outs):
        return False
    varying, work, apart = {lane.name}, 0, 0
    for bind in every(par.body):
        if not varying.isdisjoint(rhs_mentions(bind.rhs)):
            varying.update(var.name for var in bind.vars)
            work += isinstance(bind.rhs, f.Op)
            apart += isinstance(bind.rhs, f.Op) and bind.rhs.op == "index" and lane in bind.rhs.args[1:-1]
    return apart * GATHERED <= work


class _Brancher:
    """One function; `defs` has the operations that bind its variables."""

    def __init__(self, fn: f.Fn, supply: f.Supply) -> None:
        self.supply = supply
        self.defs = {b.vars[0].name: b.rhs for b in every(fn.body) if isinstance(b.rhs, f.Op) and len(b.vars) == 1}
        self.lanes = False  # in a loop whose points may be lanes (`machine/emit/points/varying.py`)
        self.kept = False  # in a loop whose points are lanes and keep what they compute: guards are left out there
        self.changed = False

    def function(self, fn: f.Fn) -> f.Fn:
        body = self.block(fn.body)
        return replace(fn, body=drop_unused(body)) if self.changed else fn

    def block(self, block: f.Block) -> f.Block:
        if not kinds(block) & GUARDS:
            return block
        guards = {bind.vars[0].name: found for bind in block.binds if (found := self.guarded(bind.rhs))}
        inner = [self.inside(bind) for bind in block.binds]
        if not guards or len(guards) > (MANY if self.lanes else MANY_TOGETHER):
            return self.without_questions(with_binds(block, inner))
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
            return with_inner(bind, self.block)
        body = bind.rhs.body
        if all(isinstance(b.rhs, PLAIN | f.If) for b in every(body)) and self.asks_places(body):
            return with_inner(bind, self.plain)
        outer = self.lanes, self.kept
        self.lanes = not any(isinstance(b.rhs, f.While | f.Call) for b in every(body))
        self.kept |= sums_in_lanes(bind.rhs)
        changed = with_inner(bind, self.block)
        self.lanes, self.kept = outer
        return changed

    def asks_places(self, body: f.Block) -> bool:
        """True if conditions of branches are of whole numbers: between the borders of a loop there are none."""
        asked = [bind.rhs.cond for bind in every(body) if isinstance(bind.rhs, f.If)]
        data = {var.name for bind in every(body) for var in bind.vars if isinstance(bind.rhs, f.Op) and var.ty == f.BOOL
                and (bind.rhs.op == "index" or any(f.is_float(arg.ty) for arg in bind.rhs.args))}  # fmt: skip
        before = -1
        while before != len(data):
            before = len(data)
            for bind in every(body):
                if any(var.ty == f.BOOL for var in bind.vars) and not data.isdisjoint(rhs_mentions(bind.rhs)):
                    data.update(var.name for var in bind.vars)
        return data.isdisjoint(names(tuple(asked)))

    def plain(self, block: f.Block, around: Collection[str] = ()) -> f.Block:
        """Points that only compute, in branches at borders too, which vectors have as masks.  They bind the names in
        `around`."""
        made = {*around, *[var.name for bind in block.binds for var in bind.vars]}
        binds = [with_inner(bind, lambda arm: self.plain(arm, made)) for bind in block.binds]
        return self.without_questions(with_binds(block, binds), around)

    def without_questions(self, block: f.Block, around: Collection[str] = ()) -> f.Block:
        """Guards of products with what may be zero are selections that do not ask for NaN."""
        done: list[f.Bind] = []
        present: dict[str, f.Var] = {}  # whether a tangent is not zero, by its name
        made = {*around, *[var.name for bind in block.binds for var in bind.vars]}
        for bind in block.binds:
            guard = None if self.kept else self.guarded(bind.rhs)
            tangent = None if guard is None else self.scaled(guard)
            if guard is None or tangent is None:
                done += [bind] if guard is None else self.asked_before(bind, guard, made)
                continue
            self.changed = True
            if tangent.name not in present:
                present[tangent.name] = f.Var(self.supply.fresh("ne"), f.BOOL)
                done.append(f.Bind((present[tangent.name],), replace(guard.zero, op="ne")))
            zero = f.Const(0.0, guard.part.ty)
            done.append(with_rhs(bind, f.Op("select", (present[tangent.name], guard.part, zero))))
        return with_binds(block, done)

    def asked_before(self, bind: f.Bind, guard: Guard, made: set[str]) -> list[f.Bind]:
        """A guard that all points of a loop have alike chooses what NaN becomes, before the loop."""
        assert isinstance(bind.rhs, f.Op)
        both = self.defs[expect_type(f.Var, bind.rhs.args[0]).name]
        absent, odd = both.args
        if not isinstance(absent, f.Var) or absent.name in made:
            return [bind]
        self.changed = True
        instead = f.Var(self.supply.fresh("select"), guard.part.ty)
        choice = f.Op("select", (absent, f.Const(0.0, guard.part.ty), f.Const(nan, guard.part.ty)))
        return [f.Bind((instead,), choice), with_rhs(bind, f.Op("select", (odd, instead, guard.part)))]

    def scaled(self, guard: Guard) -> f.Var | None:
        """The tangent that may be zero, if what is guarded is a product with it."""
        match guard.zero:
            case f.Op("eq", (f.Var() as tangent, f.Const(0.0))) if self.scales(guard.part, tangent, DEEP):
                return tangent
            case _:
                return None

    def scales(self, part: f.Atom, tangent: f.Atom, deep: int) -> bool:
        """True if a number is a product with the tangent: where that is zero, it is zero or NaN."""
        if part == tangent:
            return True
        match self.defs.get(part.name) if deep and isinstance(part, f.Var) else None:
            case f.Op("mul", (a, b)):
                return self.scales(a, tangent, deep - 1) or self.scales(b, tangent, deep - 1)
            case f.Op("div", (a, _)) | f.Op("neg", (a,)):
                return self.scales(a, tangent, deep - 1)
            case _:
                return False

    def guarded(self, rhs: f.Rhs) -> Guard | None:
        """A guard; None if the right-hand side is something else."""
        found = guarded(self.defs, rhs)
        if found is None or not isinstance(found[1].ty, f.Num):
            return None
        condition, part = found
        absent = self.defs.get(condition.name) if isinstance(condition, f.Var) else None
        if absent is not None and absent.op == "or" and (choice := self.choice(condition, part, DEEP)) is not None:
            absent = f.Op("eq", (choice, f.Const(0.0, choice.ty)))
        if absent is None or not (OPS[absent.op].elementwise and OPS[absent.op].pure):
            absent = f.Op("and", (condition, f.Const(True, f.BOOL)))  # it is known before, as a state of a loop
        return Guard(absent, part)  # it is computed in the branch

    def choice(self, condition: f.Atom, part: f.Atom, deep: int) -> f.Var | None:
        """The factor of a part that is zero if, and only if, a condition holds."""
        if not deep or not isinstance(part, f.Var):
            return None
        if self.is_zero_where(condition, part):
            return part
        match self.defs.get(part.name):
            case f.Op("mul", (a, b)):
                return self.choice(condition, a, deep - 1) or self.choice(condition, b, deep - 1)
            case f.Op("div", (a, _)) | f.Op("neg", (a,)):
                return self.choice(condition, a, deep - 1)
            case _:
                return None

    def is_zero_where(self, condition: f.Atom, x: f.Atom) -> bool:
        """True if a condition says that a number is zero: by asking, or by asking the choices that it is."""
        nothing = f.Const(0.0, x.ty)
        asked = self.defs.get(condition.name) if isinstance(condition, f.Var) else None
        made = self.defs.get(x.name) if isinstance(x, f.Var) else None
        match asked, made:
            case f.Op("eq", args), _ if args == (x, nothing):
                return True
            case f.Op("or", conditions), f.Op("select", (chosen, one, other)) if nothing in (one, other):
                rest = one if other == nothing else other
                for first, second in (conditions, conditions[::-1]):
                    away = first == chosen if one == nothing else self.denies(first, chosen)
                    if away and self.is_zero_where(second, rest):
                        return True
                return False
            case _:
                return False

    def denies(self, condition: f.Atom, other: f.Atom) -> bool:
        """True if a condition is that another one does not hold."""
        asked = self.defs.get(condition.name) if isinstance(condition, f.Var) else None
        return isinstance(asked, f.Op) and asked.op == "not" and asked.args == (other,)

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
