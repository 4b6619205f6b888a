"""The simplifier: flat -> equivalent flat with less work.

    fn half(x) { y = mul x 0.5; return y }        fn f(a, n)
    fn f(a, n)                                      y = mul a 0.5
      t = (a, n)                             =>     r = add y y
      x = t.0                                       return r
      y = half(x);  z = mul x 0.5
      r = add y z
      return r

One walk over each function, callees first, makes all changes that depend only on the code before: it inlines functions
that are small, or small for the constructors that they are given, propagates copies and constants, folds (`fold`),
resolves branches, eliminates common subexpressions, and moves loop-invariant code out of loops; calls of functions of
numbers are such code, too.  A function that is called once is walked where it is called, so a chain of these is walked
once, too.  A second walk follows if the first one shows which dimensions are equal (`hoist_dims`).  Then dead code is
eliminated (`dead_code`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import TypeVar

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import callees, groups
from dplc.flat.copy import Copier
from dplc.flat.dims import is_outside
from dplc.flat.inline import Inliner
from dplc.flat.local_names import replaced, with_bases
from dplc.flat.ops.table import OPS, result_type
from dplc.flat.types import rank_of
from dplc.flat.walk import (
    atoms,
    binders,
    blocks,
    changed,
    names,
    rebuild,
    remade,
    supply_for,
    unchanged,
    with_binds,
    with_body,
    with_rhs,
)
from dplc.passes.simplify.aggregates import branch_by_scalars, in_all_rows, loop_by_scalars
from dplc.passes.simplify.alike_branches import together
from dplc.passes.simplify.callers import called_once, calls, reachable
from dplc.passes.simplify.dead_code import drop_unused
from dplc.passes.simplify.fold import POWERS, fold, is_null, reduced
from dplc.passes.simplify.hoist_dims import hoist_dims
from dplc.passes.simplify.inlined import CHOSEN, SMALL, choice, decided, has_at_most, is_number, pays_in_loops
from dplc.passes.simplify.known_steps import constructor, known_steps, next_step, steps_given, walks
from dplc.passes.simplify.literals import alike
from dplc.passes.simplify.purity import droppable, movable
from dplc.passes.simplify.unmade import without_unmade
from dplc.passes.simplify.value_numbers import expression, expression_of

NOTHING: Mapping[str, f.Fn] = {}
SIMPLE = (f.Op, f.TupGet, f.TupMake, f.ConMake)

ONE = f.Const(1, f.I64)

Loop = TypeVar("Loop", f.For, f.While, f.Build, f.For | f.While)


def simplify(program: f.Program) -> f.Program:
    """Callees first.  A function that turns out to be small is inlined in all that follow."""
    program = without_unmade(program)
    supply = supply_for(program)
    number, recursive = groups(program)
    fixed, uses = set(program.checkpoints) | set(program.rules), calls(program)
    inline = {name: program.fns[name] for name in called_once(program) if number[name] not in recursive}
    done: dict[str, f.Fn] = {}
    inner: dict[str, f.Fn] = {}
    choosing: dict[str, f.Fn] = {}
    total: set[str] = set()
    for name in sorted([name for name in program.fns if name not in inline], key=number.__getitem__):
        fn = walked(program.fns[name], lambda: _Simplifier(supply, inline, program, inner, choosing))
        done[name] = fn = with_body(fn, drop_unused(fn.body, total))
        calls_itself = number[name] in recursive and bool(callees(fn.body))  # perhaps only for what is never given
        if not calls_itself and all(droppable(bind.rhs, total) for bind in fn.body.binds):
            total.add(name)
        if name not in fixed and not calls_itself:
            params = set(names(fn.params))
            if has_at_most(SMALL, fn.body):
                inline[name] = fn
            elif pays_in_loops(fn, inner, uses[name]):
                inner[name] = fn
            elif any(choice(bind.rhs, fn.params) is not None or walks(bind.rhs, params) for bind in fn.body.binds):
                choosing[name] = fn
    reached = reachable(program, done)
    fns = {name: fn for name, fn in done.items() if name in reached}
    rules = {name: rule for name, rule in program.rules.items() if name in reached}
    return replace(program, fns=fns, checkpoints=program.checkpoints & reached, rules=rules)


def simplified(fn: f.Fn, supply: f.Supply, program: f.Program, inline: Mapping[str, f.Fn] = NOTHING) -> f.Fn:
    """A function simplified alone; only `inline` is inlined."""
    body = _Simplifier(supply, inline, program).block(fn.body)
    fn = hoist_dims(with_body(fn, body), supply)
    return with_body(fn, drop_unused(fn.body))


def walked(fn: f.Fn, simplifier: Callable[[], _Simplifier]) -> f.Fn:
    """A function after the walk, and after another one if that shows which dimensions are equal or constants."""
    walk = simplifier()
    fn = with_bases(with_body(fn, walk.block(fn.body)), walk.bases)
    hoisted = hoist_dims(fn, walk.supply)
    return fn if hoisted is fn else with_body(fn, simplifier().block(hoisted.body))


class _Simplifier:
    """Walks one function.  `known` maps variables to their replacements; `defs` maps the other variables to their
    right-hand sides; `made` has the expressions computed so far, and `scopes` those of each enclosing block."""

    def __init__(
        self, supply: f.Supply, inline: Mapping[str, f.Fn], program: f.Program, inner: Mapping[str, f.Fn] = NOTHING,
        choosing: Mapping[str, f.Fn] = NOTHING,
    ) -> None:  # fmt: skip
        """`inline` are the functions to be inlined, `inner` those to be inlined in loops, `choosing` those that may be
        small where the constructors of their arguments are known."""
        self.supply = supply
        self.inline = inline
        self.inner = inner
        self.choosing = choosing
        self.loops = 0  # around the current place
        self.program = program
        self.known: dict[str, f.Atom] = {}
        self.bases: dict[str, str] = {}  # for debuggers (`flat/local_names.py`)
        self.defs: dict[str, f.Rhs] = {}
        self.made: dict[object, tuple[f.Var, ...]] = {}
        self.scopes: list[list[object]] = []
        self.numbers: dict[str, bool] = {}  # whether functions only compute numbers

    def atom(self, atom: f.Atom) -> f.Atom:
        while isinstance(atom, f.Var) and atom.name in self.known:
            atom = self.known[atom.name]
        return atom

    def block(self, block: f.Block) -> f.Block:
        out: list[f.Bind] = []
        self.scopes.append([])
        self.binds(block.binds, out)
        for key in self.scopes.pop():
            del self.made[key]
        return with_binds(block, out, changed(block.results, self.atom))

    def atoms(self, atoms: Sequence[f.Atom]) -> tuple[f.Atom, ...]:
        return tuple([self.atom(a) for a in atoms])

    def binds(self, binds: Sequence[f.Bind], out: list[f.Bind]) -> None:
        for bind in together(binds, self.atom):
            self.bind(bind, out)

    def same(self, vars_: Sequence[f.Var], atoms: Sequence[f.Atom]) -> None:
        for var, atom in zip(vars_, atoms, strict=True):
            self.known[var.name] = found = self.atom(atom)
            replaced(self.bases, var, found)

    def splice(self, vars_: Sequence[f.Var], block: f.Block, out: list[f.Bind]) -> None:
        """Splices a block that always runs into the surrounding one."""
        self.binds(block.binds, out)
        self.same(vars_, block.results)

    # ---- bindings ------------------------------------------------------------------------------------------------

    def bind(self, bind: f.Bind, out: list[f.Bind]) -> None:
        if isinstance(bind.rhs, SIMPLE):
            return self.simple(bind, out)
        match bind.rhs:
            case f.Call(fn, args) if (given := decided(self.program.fns[fn], self.atoms(args))) is not None:
                self.same(bind.vars, given)
            case f.Call(fn, args) if (callee := self.inlined(fn) or self.chosen(fn, args)) is not None:
                copied = Inliner(self.supply, callee, self.atoms(args), bind.rhs.span).block(callee.body)
                self.splice(bind.vars, copied, out)
            case f.Call(fn, args, span) if is_number(fn, self.program.fns, self.numbers):
                call = f.Call(fn, self.atoms(args), span)
                self.shared(with_rhs(bind, call), ("call", fn, *map(expression_of, call.args)), out)
            case f.If() | f.Switch() if any(isinstance(var.ty, f.Tup) for var in bind.vars):
                self.binds(branch_by_scalars(bind, self.supply), out)
            case f.If():
                self.if_(bind, bind.rhs, out)
            case f.Switch():
                self.switch(bind, bind.rhs, out)
            case f.For() | f.While():
                self.loop(bind, bind.rhs, out)
            case f.Build(index, count) as build if self.atom(count) == ONE:
                self.known[index.name] = f.Const(0, f.I64)
                self.binds(build.body.binds, out)
                for var, result in zip(bind.vars, build.body.results, strict=True):
                    self.simple(f.Bind((var,), f.Op("array", (result,), (), build.span)), out)
            case f.Build():
                rhs = self.repeated(bind.rhs)
                body = self.lifted(rhs.body, {rhs.index.name}, out)
                self.put(with_rhs(bind, remade(rhs, rhs.index, rhs.count, body, rhs.span, rhs.inner)), out)
            case rhs:
                self.put(with_rhs(bind, rebuild(rhs, self.atom, self.block, unchanged)), out)

    def inlined(self, name: str) -> f.Fn | None:
        """The function of that name, if its calls here are inlined."""
        return self.inline.get(name) or (self.inner.get(name) if self.loops else None)

    def chosen(self, name: str, args: tuple[f.Atom, ...]) -> f.Fn | None:
        """The function with only the arms for the constructors that it is given here, if it is small then."""
        if (callee := self.choosing.get(name)) is None:
            return None
        given = dict(zip(names(callee.params), self.atoms(args), strict=True))
        if any(steps_given(bind.rhs, given, self.defs) for bind in callee.body.binds):
            return callee
        binds = [with_rhs(bind, self.narrowed(bind.rhs, callee.params, args)) for bind in callee.body.binds]
        body = with_binds(callee.body, binds)
        return with_body(callee, body) if body is not callee.body and has_at_most(CHOSEN, body) else None

    def narrowed(self, rhs: f.Rhs, params: tuple[f.Var, ...], args: tuple[f.Atom, ...]) -> f.Rhs:
        number = choice(rhs, params)
        made = None if number is None else constructor(self.atom(args[number]), self.defs)
        if made is None or not isinstance(rhs, f.Switch):
            return rhs
        cases = tuple([case for case in rhs.cases if case.tag == made.tag])
        return f.Switch(rhs.scrutinee, cases, None if cases else rhs.default)

    def put(self, bind: f.Bind, out: list[f.Bind]) -> None:
        out.append(bind)
        if len(bind.vars) == 1:
            self.defs[bind.vars[0].name] = bind.rhs
        elif isinstance(bind.rhs, f.Build):
            self.defs.update((var.name, bind.rhs) for var in bind.vars)
        elif isinstance(bind.rhs, f.For | f.While) and bind.rhs.collect:
            self.defs[bind.vars[-1].name] = bind.rhs

    def simple(self, bind: f.Bind, out: list[f.Bind]) -> None:
        rhs = rebuild(bind.rhs, self.atom, self.block, unchanged)
        if isinstance(rhs, f.Op):
            row = OPS[rhs.op]
            if row.compares and alike(rhs.args, self.defs):
                return
            if row.scalar and type(bind.vars[0].ty) is f.Arr:
                rhs = self.unfilled(rhs, out)
            if rhs.op in POWERS:
                rhs = self.rooted(reduced(rhs), out)
        same = self.folded(rhs)
        if same is not None:
            self.same(bind.vars, (same,))
            return
        self.shared(with_rhs(bind, rhs), expression(rhs), out)

    def shared(self, bind: f.Bind, key: object | None, out: list[f.Bind]) -> None:
        """A binding, if none of the same expression is there."""
        if key is not None:
            before = self.made.setdefault(key, bind.vars)
            if before is not bind.vars:
                self.same(bind.vars, before)
                return
            self.scopes[-1].append(key)
        self.put(bind, out)

    def unfilled(self, op: f.Op, out: list[f.Bind]) -> f.Op:
        """An operation on arrays filled with one number -> the operation on the numbers, and a fill."""
        fills: dict[str, f.Op] = {}
        for a in op.args:
            made = self.defs.get(a.name) if isinstance(a, f.Var) else None
            if isinstance(a, f.Var) and isinstance(made, f.Op) and made.op == "fill" and not rank_of(made.args[1].ty):
                fills[a.name] = made
        if not fills:
            return op
        args = tuple([fills[a.name].args[1] if isinstance(a, f.Var) and a.name in fills else a for a in op.args])
        if max(rank_of(a.ty) for a in args) == max(rank_of(a.ty) for a in op.args):
            return f.Op(op.op, args, op.attrs, op.span)
        if any(rank_of(a.ty) for a in args):
            return op
        number = self.written(f.Op(op.op, args, op.attrs, op.span), out)
        return f.Op("fill", (next(iter(fills.values())).args[0], number), (), op.span)

    def written(self, op: f.Op, out: list[f.Bind]) -> f.Atom:
        """What an operation gives."""
        var = f.Var(self.supply.fresh(op.op), result_type(op.op, tuple([a.ty for a in op.args]), {}))
        self.simple(f.Bind((var,), op), out)
        return self.atom(var)

    def rooted(self, op: f.Op, out: list[f.Bind]) -> f.Op:
        """A power with exponent 1/2 -> a square root, which is not -0.0, and infinite at minus infinity."""
        match op:
            case f.Op("pow", (x, f.Const(0.5, half))):
                pass
            case _:
                return op

        def made(name: str, *args: f.Atom) -> f.Atom:
            return self.written(f.Op(name, args, (), op.span), out)

        root = made("sqrt", made("add", x, f.Const(0.0, half)))
        return f.Op("select", (made("eq", x, f.Const(-math.inf, half)), f.Const(math.inf, half), root), (), op.span)

    def folded(self, rhs: f.Rhs) -> f.Atom | None:
        match rhs:
            case f.Op():
                return fold(rhs, self.defs)
            case f.TupGet(f.Var(name), index):
                made = self.defs.get(name)
                same = made.items[index] if isinstance(made, f.TupMake) else in_all_rows(made, index, self.defs)
                return None if same is None else self.atom(same)
            case f.TupMake(()):
                return f.Const((), f.UNIT)
            case f.TupMake((f.Var(name), *_) as items):
                first = self.defs.get(name)
                if (
                    isinstance(first, f.TupGet)
                    and isinstance(first.tup.ty, f.Tup)
                    and len(first.tup.ty.items) == len(items)
                ):
                    if all(self.is_part(item, first.tup, i) for i, item in enumerate(items)):
                        return first.tup
            case _:
                return None

    def is_part(self, atom: f.Atom, tup: f.Atom, index: int) -> bool:
        made = self.defs.get(atom.name) if isinstance(atom, f.Var) else None
        return isinstance(made, f.TupGet) and made.tup == tup and made.index == index

    # ---- branches ------------------------------------------------------------------------------------------------

    def assuming(self, var: f.Atom, value: f.Const, block: f.Block) -> f.Block:
        """A block that runs only where the variable has this value."""
        if not isinstance(var, f.Var):
            return self.block(block)
        self.known[var.name] = value
        done = self.block(block)
        del self.known[var.name]
        return done

    def if_(self, bind: f.Bind, rhs: f.If, out: list[f.Bind]) -> None:
        cond = self.atom(rhs.cond)
        if isinstance(cond, f.Const):
            self.splice(bind.vars, rhs.then if cond.value else rhs.else_, out)
            return
        then = self.assuming(cond, f.Const(True, f.BOOL), rhs.then)
        else_ = self.assuming(cond, f.Const(False, f.BOOL), rhs.else_)
        self.joined(with_rhs(bind, remade(rhs, cond, then, else_)), out)

    def joined(self, bind: f.Bind, out: list[f.Bind]) -> None:
        """Writes a branch.  Results that are equal on every path, or that repeat the condition, are replaced by their
        values."""
        vars_, rhs = bind.vars, bind.rhs
        ends = [block.results for block in blocks(rhs)]
        for k, var in enumerate(vars_):
            given = {expression_of(end[k]) for end in ends}
            if len(given) == 1 and is_outside(ends[0][k], rhs):
                self.known[var.name] = ends[0][k]
            elif isinstance(rhs, f.If) and [end[k] for end in ends] == [f.Const(True, f.BOOL), f.Const(False, f.BOOL)]:
                self.known[var.name] = rhs.cond
            elif isinstance(rhs, f.If) and is_null(ends[0][k]) and self.asks(rhs.cond, ends[1][k]):
                self.known[var.name] = ends[1][k]
        if vars_ and all(var.name in self.known for var in vars_) and not any(block.binds for block in blocks(rhs)):
            return
        self.put(bind, out)

    def asks(self, cond: f.Atom, atom: f.Atom) -> bool:
        """True if a condition says whether an atom is null."""
        made = self.defs.get(cond.name) if isinstance(cond, f.Var) else None
        return isinstance(made, f.Op) and made.op == "is_null" and made.args[0] == atom

    def switch(self, bind: f.Bind, rhs: f.Switch, out: list[f.Bind]) -> None:
        scrutinee = self.atom(rhs.scrutinee)
        if isinstance(scrutinee, f.Var):
            made = constructor(scrutinee, self.defs)
        else:
            made = f.ConMake("", scrutinee.value, None) if isinstance(scrutinee.value, int) else None
        if made is not None:
            self.known_case(bind, rhs, made, out)
            return
        cases = []
        for case in rhs.cases:
            if isinstance(scrutinee, f.Var) and isinstance(scrutinee.ty, f.Data):
                if self.program.datas[scrutinee.ty.name].payloads[case.tag] is None:
                    cases.append(f.Case(case.tag, None, self.made_anew(scrutinee, case)))
                    continue
                before = self.defs.get(scrutinee.name)
                self.defs[scrutinee.name] = f.ConMake(scrutinee.ty.name, case.tag, case.payload)
                body = self.block(case.body)
                if before is None:
                    del self.defs[scrutinee.name]
                else:
                    self.defs[scrutinee.name] = before
            else:
                body = self.assuming(scrutinee, f.Const(case.tag, scrutinee.ty), case.body)
            cases.append(case if body is case.body else f.Case(case.tag, case.payload, body))
        default = None if rhs.default is None else self.block(rhs.default)
        same = rhs.cases if all(map(is_, cases, rhs.cases)) else tuple(cases)
        self.joined(with_rhs(bind, remade(rhs, scrutinee, same, default)), out)

    def made_anew(self, scrutinee: f.Var, case: f.Case) -> f.Block:
        """The arm of a constructor without payload.  Where it mentions the scrutinee, the constructor is made again, so
        the scrutinee is only read, and can be borrowed."""
        assert isinstance(scrutinee.ty, f.Data)
        same = f.Var(self.supply.fresh("c"), scrutinee.ty)
        make = f.Bind((same,), f.ConMake(scrutinee.ty.name, case.tag, None))
        self.known[scrutinee.name] = same
        body = self.block(f.Block((make, *case.body.binds), case.body.results))
        del self.known[scrutinee.name]
        return body

    def known_case(self, bind: f.Bind, rhs: f.Switch, made: f.ConMake, out: list[f.Bind]) -> None:
        """A Switch whose constructor is known."""
        for case in rhs.cases:
            if case.tag == made.tag and (case.payload is None or made.arg is not None):
                if case.payload is not None and made.arg is not None:
                    self.known[case.payload.name] = self.atom(made.arg)
                self.splice(bind.vars, case.body, out)
                return
        if rhs.default is not None and made.tag not in [case.tag for case in rhs.cases]:
            self.splice(bind.vars, rhs.default, out)
        else:
            self.put(with_rhs(bind, rebuild(rhs, self.atom, self.block, unchanged)), out)

    # ---- loops ---------------------------------------------------------------------------------------------------

    def repeated(self, loop: Loop) -> Loop:
        """A loop, simplified inside."""
        self.loops += 1
        made = rebuild(loop, self.atom, self.block, unchanged)
        self.loops -= 1
        assert isinstance(made, type(loop))
        return made

    def loop(self, bind: f.Bind, loop: f.For | f.While, out: list[f.Bind]) -> None:
        if any(isinstance(s.ty, f.Tup) for s in loop.state):
            self.binds(loop_by_scalars(bind, self.supply), out)
            return
        vars_, loop = self.fixed_state(bind.vars, loop)
        if isinstance(loop, f.While) and (steps := known_steps(loop, self.atoms(loop.inits), self.defs)):
            loop = self.peeled(loop, steps, out)
            if next_step(loop, loop.inits, self.defs) is False:
                return self.same(vars_, loop.inits)
        rhs = self.repeated(loop)
        if any(result == s for s, result in zip(rhs.state, rhs.body.results)):
            self.loop(f.Bind(vars_, rhs), rhs, out)  # again: invariant state shows only after the first pass
            return
        inner = {v.name for v in binders(rhs)}
        body = self.lifted(rhs.body, inner, out)
        if isinstance(rhs, f.For):
            rhs = remade(rhs, rhs.index, rhs.count, rhs.state, rhs.inits, body, rhs.collect)
        else:
            rhs = remade(rhs, rhs.state, rhs.inits, self.lifted(rhs.cond, inner, out), body, rhs.collect)
        self.put(with_rhs(bind, rhs, vars_), out)

    def peeled(self, loop: f.While, steps: int, out: list[f.Bind]) -> f.While:
        """What is left of a loop when some steps are written before it."""
        inits = self.atoms(loop.inits)
        while steps and next_step(loop, inits, self.defs):
            step = Copier(self.supply, dict(zip(names(loop.state), inits, strict=True))).block(loop.body)
            self.binds(step.binds, out)
            inits, steps = self.atoms(step.results), steps - 1
        return f.While(loop.state, inits, loop.cond, loop.body, loop.collect)

    def fixed_state(self, vars_: tuple[f.Var, ...], loop: f.For | f.While) -> tuple[tuple[f.Var, ...], f.For | f.While]:
        """A loop without its invariant state."""
        width = len(loop.state)
        fixed = [k for k in range(width) if loop.body.results[k] == loop.state[k]]
        if not fixed:
            return vars_, loop
        for k in fixed:
            self.known[loop.state[k].name] = self.known[vars_[k].name] = self.atom(loop.inits[k])

        def rest(items: Sequence) -> tuple:
            return tuple([item for k, item in enumerate(items) if k not in fixed])

        body = f.Block(loop.body.binds, rest(loop.body.results))
        if isinstance(loop, f.For):
            return rest(vars_), f.For(loop.index, loop.count, rest(loop.state), rest(loop.inits), body, loop.collect)
        return rest(vars_), f.While(rest(loop.state), rest(loop.inits), loop.cond, body, loop.collect)

    def movable(self, rhs: f.Rhs) -> bool:
        return movable(rhs) or (isinstance(rhs, f.Call) and is_number(rhs.fn, self.program.fns, self.numbers))

    def lifted(self, block: f.Block, inner: set[str], out: list[f.Bind]) -> f.Block:
        """The body of a loop, after loop-invariant code has moved before the loop.  `inner` are the loop's
        variables."""
        kept, names = [], set(inner)
        for bind in block.binds:
            if self.movable(bind.rhs) and not any(isinstance(a, f.Var) and a.name in names for a in atoms(bind.rhs)):
                out.append(bind)
            else:
                kept.append(bind)
                names.update(v.name for v in bind.vars)
        return with_binds(block, kept)
