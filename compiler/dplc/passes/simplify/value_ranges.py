"""flat -> flat where comparisons that the ranges of their operands decide are constants (value range propagation).

    build i < n { low = lt i 0                    build i < n { last = eq i n - 1
                  last = eq i n - 1        =>                   x = if last { ... }
                  x = if low { ... } ...                            else { ... }
        ... else { m = add i 1                                  }
                   out = ge m n; ... } }

A program that asks at each point of a grid whether its neighbours exist asks it of points, too, that do.  A condition
costs a loop little; but derivatives remember which way each branch went, and what it kept.  What only one value of an
index decides, as at an edge, is an equality: i > 0 is i <> 0.  An element at an index that is cut off there is one of
two, so that the others lie side by side:

    k = max 0 (sub i 1)                           c = eq (sub i 1) -1
    x = index a k                        =>       x = if c { index a 0 } else { index a (sub i 1) }

`clip` is the least of a greatest number, if its limits are in order.  A neighbour that may be at the other end is a
place on a ring:

    c = eq i 0                                    d = sub i 1
    k = if c { sub n 1 } else { sub i 1 }   =>    k = mod d n
"""

from __future__ import annotations

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import DEEP, ONE, Affine, Sum, combined
from dplc.flat.conditions import Conditions
from dplc.flat.dims import dims_of
from dplc.flat.kinds import any_of, kinds
from dplc.flat.walk import changed, every, names, rebuild, supply_for, unchanged, with_binds, with_body, with_rhs
from dplc.passes.simplify.purity import droppable
from dplc.passes.simplify.simplify import simplified

LOOPS = any_of(f.For, f.Build)


def value_ranges(program: f.Program) -> f.Program:
    supply = supply_for(program)
    fns = {}
    for name, fn in program.fns.items():
        known = decided(fn, supply)
        fns[name] = simplified(known, supply, program) if known is not fn else fn
    return replace(program, fns=fns)


def decided(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """A function where constants replace what the known comparisons of its loops gave."""
    if not kinds(fn.body) & LOOPS:
        return fn
    if not any(isinstance(bind.rhs, f.For | f.Build) and compares(bind.rhs.body) for bind in every(fn.body)):
        return fn
    return with_body(fn, _Ranges(Conditions(Affine(dims_of(fn.body))), supply).block(fn.body))


def compares(body: f.Block) -> bool:
    """True if a body may compare whole numbers, or cut them off."""
    found = [bind.rhs for bind in every(body) if is_boolean(bind) or is_cut_off(bind.rhs) or is_clip(bind.rhs)]
    return any(isinstance(rhs, f.Op) and rhs.args and rhs.args[0].ty == f.I64 for rhs in found)


def is_cut_off(rhs: f.Rhs) -> bool:
    return excess(rhs) is not None and isinstance(rhs, f.Op) and rhs.args[0].ty == f.I64


def is_clip(rhs: f.Rhs) -> bool:
    return isinstance(rhs, f.Op) and rhs.op == "clip" and rhs.args[0].ty == f.I64


def is_boolean(bind: f.Bind) -> bool:
    return len(bind.vars) == 1 and bind.vars[0].ty == f.BOOL


def excess(rhs: f.Rhs) -> str | None:
    """How a number that is cut off compares with the limit."""
    match rhs:
        case f.Op("max"):
            return "lt"
        case f.Op("min"):
            return "gt"
        case _:
            return None


@node
class Cut:
    """An index that is `number`; but where a condition holds, `limit`."""

    condition: f.Var
    limit: f.Atom
    number: f.Atom


class _Ranges:
    """One function.  `constants` has what numbers are of which that is decided: results of comparisons, and numbers
    that may be cut off; `limits` has those that are, somewhere."""

    def __init__(self, conditions: Conditions, supply: f.Supply) -> None:
        self.conditions, self.supply = conditions, supply
        self.affine = conditions.affine
        self.constants: dict[str, f.Atom] = {}
        self.limits: dict[str, f.Op] = {}
        self.indices: dict[f.Var, f.Atom] = {}  # those of the loops around, with their counts
        self.cuts: dict[str, Cut] = {}
        self.before: list[f.Bind] = []  # what goes before the present binding

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            before = self.before = list[f.Bind]()
            after = self.bind(bind)
            binds += [*before, after]
        return with_binds(block, binds, changed(block.results, self.atom))

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.constants.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def bind(self, bind: f.Bind) -> f.Bind:
        match bind.rhs:
            case f.Op() as op:
                op = self.clipped(op)
                bind = with_rhs(bind, op)
                self.affine.define(bind)
                if is_boolean(bind):
                    bind = self.compared(bind, op)
                elif is_cut_off(op):
                    self.cut(bind.vars[0], op)
                elif op.op == "index":
                    op = replace(op, args=changed(op.args, self.atom))
                    bind = with_rhs(bind, self.read(bind.vars[0], op))
            case f.For(index, count) | f.Build(index, count) as loop:
                self.indices[index] = count
                bind = self.conditions.steps(
                    loop, lambda: with_rhs(bind, rebuild(loop, self.atom, self.block, unchanged))
                )
                del self.indices[index]
                self.affine.define(bind)
                self.conditions.define(bind)
                return bind
            case f.If() as branch:
                if (place := self.on_ring(bind, branch)) is not None:
                    return place
                bind = with_rhs(bind, self.conditions.branches(branch, self.block))
                self.conditions.define(bind)
                return with_rhs(bind, rebuild(bind.rhs, self.atom, unchanged, unchanged))
            case _:
                pass
        bind = with_rhs(bind, rebuild(bind.rhs, self.atom, self.block, unchanged))
        self.conditions.define(bind)
        return bind

    def clipped(self, op: f.Op) -> f.Op:
        """The lesser of two numbers in place of one that is cut off at both ends, if these are in order."""
        if not is_clip(op):
            return op
        x, low, high = map(self.atom, op.args)
        if not self.at_most(low, high):
            return op
        least = replace(op, op="max", args=(x, low))
        above = self.made(least, f.I64)
        self.cut(above, least)
        return replace(op, op="min", args=(self.atom(above), high))

    def compared(self, bind: f.Bind, op: f.Op) -> f.Bind:
        """A comparison, which may be decided, or an equality."""
        if (truth := self.conditions.decided(op)) is not None:
            self.constants[bind.vars[0].name] = f.Const(truth, f.BOOL)
        elif (equality := self.equality(op)) is not None:
            return with_rhs(bind, equality)
        return bind

    def on_ring(self, bind: f.Bind, branch: f.If) -> f.Bind | None:
        """A place on a ring in place of a neighbour of an index that is at the other end where it would be outside."""
        known = self.conditions.defined.get(branch.cond.name) if isinstance(branch.cond, f.Var) else None
        op = known[0] if known else None
        if [var.ty for var in bind.vars] != [f.I64] or not isinstance(op, f.Op) or op.op not in ("eq", "ne"):
            return None
        arms = (branch.then, branch.else_) if op.op == "eq" else (branch.else_, branch.then)
        inside = [one for arm in arms for one in arm.binds]
        if not all(droppable(one.rhs) for one in inside):
            return None
        for one in inside:
            self.affine.define(one)
        turned, beside = [self.affine.sum(arm.results[0]) for arm in arms]
        for index, count in self.indices.items():
            step = combined(beside, {index.name: 1}, -1).get(ONE)
            if step in (1, -1) and self.is_turn(op, index, count, step, turned, beside):
                place = f.Op("mod", (self.plus(index, step), count), (("ring", True),))
                bind = f.Bind(bind.vars, place)
                self.affine.define(bind)
                return bind
        return None

    def is_turn(self, op: f.Op, index: f.Var, count: f.Atom, step: int, turned: Sum, beside: Sum) -> bool:
        """True if an index and a step is `beside`, but where it would be outside, which is asked: `turned`."""
        zero: Sum = {}
        last = combined(self.affine.sum(count), {ONE: 1}, -1)
        edge, other = (last, zero) if step == 1 else (zero, last)
        here: Sum = {index.name: 1}
        asked = self.affine.difference(op)
        border = combined(here, edge, -1)
        places = ((turned, other), (beside, combined(here, {ONE: step}, 1)))
        return asked in (border, combined({}, border, -1)) and all(not combined(a, b, -1) for a, b in places)

    def equality(self, op: f.Op) -> f.Op | None:
        """An equality in place of a comparison that only one value of an index decides."""
        found = self.conditions.equality(op)
        if found is None:
            return None
        name, shift = found
        left, right = op.args
        return replace(op, op=name, args=(left, self.plus(right, shift)))

    def plus(self, atom: f.Atom, shift: int) -> f.Atom:
        """The sum of a number and a constant, computed before the present binding."""
        if not shift:
            return atom
        if isinstance(atom, f.Const) and isinstance(atom.value, int):
            return f.Const(atom.value + shift, f.I64)
        return self.made(f.Op("add", (atom, f.Const(shift, f.I64))), f.I64)

    def made(self, op: f.Op, ty: f.Type) -> f.Var:
        bind = f.Bind((f.Var(self.supply.fresh(op.op), ty),), op)
        self.affine.define(bind)
        self.conditions.define(bind)
        self.before.append(bind)
        return bind.vars[0]

    def cut(self, var: f.Var, op: f.Op) -> None:
        """Notes a number that is cut off nowhere, or at one value of an index."""
        op = replace(op, args=changed(op.args, self.atom))
        for one, other in (op.args, op.args[::-1]):
            if self.at_most(one, other):
                self.constants[var.name] = one if op.op == "min" else other
                return
        self.limits[var.name] = op
        for number, limit in (op.args, op.args[::-1]):
            asked = f.Op(excess(op) or op.op, (number, limit), op.attrs, op.span)
            equality = None if isinstance(number, f.Const) else self.equality(asked)
            if equality is not None and equality.op == "eq":
                self.cuts[var.name] = Cut(self.made(equality, f.BOOL), limit, number)
                return

    def at_most(self, one: f.Atom, other: f.Atom, deep: int = 0) -> bool:
        """True if a number is known to be at most another one, either of which may be cut off."""
        if deep < DEEP:
            ones, others = [self.limits.get(x.name) if isinstance(x, f.Var) else None for x in (one, other)]
            if ones is not None:
                asked = (self.at_most(x, other, deep + 1) for x in ones.args)
                return any(asked) if ones.op == "min" else all(asked)
            if others is not None:
                asked = (self.at_most(one, x, deep + 1) for x in others.args)
                return all(asked) if others.op == "min" else any(asked)
        return self.is_least(one, other) or any(self.is_least(one, i) and self.is_least(i, other) for i in self.indices)

    def is_least(self, one: f.Atom, other: f.Atom) -> bool:
        return self.conditions.decided(f.Op("le", (one, other))) is True

    def read(self, var: f.Var, op: f.Op) -> f.Rhs:
        """A read of an array, at one of two indices where one is cut off."""
        cut = next((self.cuts[name] for name in names(op.args[1:]) if name in self.cuts), None)
        if cut is None or not isinstance(var.ty, f.Num):
            return op
        arms = []
        for atom in (cut.limit, cut.number):
            args = [atom if isinstance(a, f.Var) and self.cuts.get(a.name) is cut else a for a in op.args]
            x = f.Var(self.supply.fresh(var.name), var.ty)
            arms.append(f.Block((f.Bind((x,), self.read(x, replace(op, args=tuple(args)))),), (x,)))
        return f.If(cut.condition, *arms)
