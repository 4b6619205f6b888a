"""Inferred terms -> core: solved types are substituted, deferred terms built, matches checked for exhaustiveness.

Remaining unknowns are defaulted: a number becomes an int or a float, any other type unit, an effect pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpl.core import term, ty
from dpl.core.told import told
from dpl.core.walk import changed_pattern
from dpl.diagnostics import Diagnostic, DplError, Warnings
from dpl.node import replace
from dpl.source import Span
from dpl.types.messages.parts import LARGEST, overflows
from dpl.types.messages.pretty import NAMES
from dpl.types.rules.matches import judge
from dpl.types.rules.shaped import inner_sizes
from dpl.types.solve.meta import EffectMeta, Meta, dimensions, prune, prune_effect
from dpl.types.solve.scheme import rebuild
from dpl.types.solve.unify import Solver
from dpl.types.state.env import Group

RANGES = {
    f"{s}{b}": (-(1 << b - 1) if s == "i" else 0, (1 << (b - 1 if s == "i" else b)) - 1)
    for s in "iu"
    for b in (8, 16, 32, 64)
}


class Zonk:
    """Zonks the terms of one definition.  It is callable, so that deferred terms can use it."""

    def __init__(self, solver: Solver, datas, warnings: Warnings, span: Span) -> None:
        self.span = span  # that of the whole definition
        self.solver, self.datas, self.warnings = solver, datas, warnings
        self.memo: dict = {}
        self.problems: list[Diagnostic] = []

    # ---- types

    def type(self, t: Any) -> Any:
        """The type with solutions in place of unknowns."""
        t: Any = prune_effect(t) if type(t) is EffectMeta else prune(t)
        kind = type(t)
        if kind is ty.Var or (kind is ty.Con and not t.args):
            return t
        if kind is Meta:
            return self.default(t)
        if kind is EffectMeta:
            t.link = ty.PURE
            return ty.PURE
        if kind is ty.Size:
            return self.size(t)
        found = self.memo.get(id(t))
        if found is None:
            self.memo[id(t)] = found = (rebuild(t, self.type), t)
        return found[0]

    def default(self, meta: Meta):
        """What an unknown is of which nothing more will be known."""
        if meta.rigid:
            raise DplError.at(
                "E0210",
                f"the annotation says '{meta.rigid}, any type, but this is not a function that works for any",
                self.span,
                helps=("write the actual type in the annotation, or make it a function",),
            )
        classes = meta.classes
        t = ty.F64 if classes & {"real", "active"} else ty.I64 if classes & {"num", "integer", "scalar"} else ty.UNIT
        self.solver.link(meta, t)
        return t

    def size(self, size: ty.Size) -> ty.Size:
        """The size with its unknowns solved; those that remain become run-time sizes (`?`)."""
        size = self.solver.sizes.norm(size)
        open_ = [n for key, _ in size.terms for n in key if n[0] == "!"]
        for n in open_:
            if n not in self.solver.sizes.links:
                self.solver.sizes.links[n] = self.solver.unknown_size()
        return self.solver.sizes.norm(size) if open_ else size

    def instance(self, inst: tuple) -> tuple:
        if len(inst) == 1 and isinstance(inst[0], Group):
            group = inst[0]
            return tuple(self.parameter(p) for p in group.params)
        return tuple(self.type(i) for i in inst)

    def parameter(self, p: ty.Var):
        return ty.Size(0, (((p.name,), 1),)) if p.sort == "size" else p

    # ---- terms

    def __call__(self, t: Any) -> Any:  # noqa: C901 -- one case per form
        match t:
            case term.Var(_, _, _, inst) if inst:
                return self.used(t, inst)
            case term.Var(span, u, name):
                return term.Var(span, self.type(u), name)
            case term.Lit(span, u, value):
                return self.literal(span, self.type(u), value)
            case term.Let():
                return self.chain(t)
            case term.Lam(span, u, param, body, name):
                return term.Lam(span, self.type(u), param, self(body), name)
            case term.App(span, u, fn, arg):
                return term.App(span, self.type(u), self(fn), self(arg))
            case term.LetRec(span, u, params, bindings, body):
                return term.LetRec(span, self.type(u), params, tuple((n, self(v)) for n, v in bindings), self(body))
            case term.Prim(_, _, "assert", (fact,)):
                return replace(told(self(fact)), span=t.span)
            case term.Prim(span, u, op, args):
                return term.Prim(span, self.type(u), op, tuple([self(a) for a in args]))
            case term.If(span, u, cond, then, else_):
                return term.If(span, self.type(u), self(cond), self(then), self(else_))
            case term.Match(span, u, scrutinee, arms):
                return self.match(span, self.type(u), self(scrutinee), arms)
            case term.Tuple(span, u, items):
                return term.Tuple(span, self.type(u), tuple([self(i) for i in items]))
            case term.Con():
                return self.constructor(t)
            case term.Field(span, u, record, index):
                return term.Field(span, self.type(u), self(record), index)
            case term.Update(span, u, record, fields):
                return term.Update(span, self.type(u), self(record), tuple([(i, self(v)) for i, v in fields]))
            case term.ArrayLit(span, u, items):
                return term.ArrayLit(span, self.type(u), tuple([self(i) for i in items]))
            case _:
                pass
        return self.rare(t)

    def used(self, t: term.Var, inst: tuple) -> term.Term:
        """A use of a generalised name, with the sizes of its type arguments that are arrays."""
        told: Any = t.sizes
        new = self.instance(inst)
        pairs = [(i, known, late) for i in new for known, late in told]
        sizes = tuple([inner_sizes(self, i, e, late, t.span) if type(i) is ty.Arr else () for i, e, late in pairs])
        return term.Var(t.span, self.type(t.ty), t.name, new, sizes if any(sizes) else ())

    def rare(self, t):
        match t:
            case term.For(span, u, state, init, index, count, body):
                return term.For(span, self.type(u), state, self(init), index, self(count), self(body))
            case term.While(span, u, state, init, cond, body):
                return term.While(span, self.type(u), state, self(init), self(cond), self(body))
            case term.Build(span, u, index, count, body):
                return term.Build(span, self.type(u), index, self(count), self(body))
            case term.Shift(span, u, name, body):
                return term.Shift(span, self.type(u), name, self(body))
            case term.Reset(span, u, body):
                return term.Reset(span, self.type(u), self(body))
            case term.Extern(span, u, symbol):
                return term.Extern(span, self.type(u), symbol)
            case term.Check():
                return t  # only deferred terms make these, already zonked
            case _:
                pass
        return t.build(self)

    def chain(self, t: term.Term) -> term.Term:
        """A chain of lets, without recursion."""
        steps = []
        while isinstance(t, term.Let):
            steps.append((t, self(t.rhs)))
            t = t.body
        result = self(t)
        for let, rhs in reversed(steps):
            result = term.Let(let.span, self.type(let.ty), let.name, let.params, rhs, result)
        return result

    def constructor(self, t: term.Con) -> term.Term:
        """A constructor.  Long lists nest in their tails, so these are handled without recursion."""
        spine: list[tuple[term.Con, term.Tuple, term.Term]] = []
        while isinstance(t.arg, term.Tuple) and len(t.arg.items) == 2 and isinstance(t.arg.items[1], term.Con):
            spine.append((t, t.arg, self(t.arg.items[0])))
            t = t.arg.items[1]
        result = term.Con(t.span, self.type(t.ty), t.name, t.tag, None if t.arg is None else self(t.arg))
        for cell, pair, head in reversed(spine):
            pair = term.Tuple(pair.span, self.type(pair.ty), (head, result))
            result = term.Con(cell.span, self.type(cell.ty), cell.name, cell.tag, pair)
        return result

    def literal(self, span: Span, t, value) -> term.Lit:
        """A number that fits its type.  Raises an error if it does not."""
        if problem := unfit(value, t, span):
            if problem.severity == "error":
                raise DplError(problem)
            self.warnings.add(problem)
        return term.Lit(span, t, float(value) if type(t) is ty.Con and t.name in ty.FLOATS else value)

    def judge_literals(self, holders: Sequence[tuple[int | float, Any, Span]]) -> None:
        """Notes the literals of definitions that do not fit into the types of their uses."""
        for value, t, span in holders:
            problem = unfit(value, dimensions(t)[1], span, f"the definition used here has {value} at this type")
            if problem is not None:
                told = self.problems if problem.severity == "error" else self.warnings.diagnostics
                if problem not in told:
                    told.append(problem)

    # ---- matches

    def match(self, span: Span, t, scrutinee: term.Term, arms) -> term.Term:
        made = tuple(
            term.Arm(a.span, self.pattern(a.pattern, a.span), None if a.guard is None else self(a.guard), self(a.body))
            for a in arms
        )
        self.problems += judge(self.datas, span, scrutinee.ty, made, self.warnings)
        return term.Match(span, t, scrutinee, made)

    def pattern(self, p: term.Pattern, arm: Span) -> term.Pattern:
        return changed_pattern(p, self.type, lambda t, value: self.literal(arm, t, value).value)


def unfit(value: Any, t, span: Span, why: str = "") -> Diagnostic | None:
    """The error if an integer has a type that does not hold it, the warning if it is infinite in a type of floats."""
    if type(t) is not ty.Con:
        return None
    name = NAMES.get(t.name, t.name)
    if t.name in ty.FLOATS and overflows(value, t.name):
        title = f"this number is infinite: the largest {name} is {LARGEST[t.name]}"
        return Diagnostic("W0211", title, span, why, helps=("if that is meant, say so:  inf",))
    if t.name in RANGES:
        low, high = RANGES[t.name]
        if not low <= value <= high:
            range_ = f"{name} goes from {low} to {high}"
            return Diagnostic("E0214", f"{value} does not fit into {name}", span, f"{why}; {range_}" if why else range_)
    return None
