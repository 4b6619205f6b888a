"""core -> code: each term becomes Python closures, once.

    n * fact (n - 1)
      operands:  n, directly;  fact (n - 1), a call: a frame keeps the environment and n;  then multiply

Most terms combine the values of operands (compiler.py).  Calls are in calls.py, pattern matching in matching.py, loops
in loops.py, captured continuations and derivatives in control.py; functions and bindings are here.
"""
# ruff: noqa: RUF005 (environments grow by concatenation: it is the fastest way)

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.names import bound, mentioned
from dpl.core.shapes import Needs, needed, rank
from dpl.core.values import is_value, uses
from dpl.diagnostics import Bug, DplError
from dpl.eval.code import calls, control, loops, matching, names, sizes
from dpl.eval.code.code import Code, Direct, Poly, Run, Scope, at_once, maker
from dpl.eval.code.compiler import Compiler
from dpl.eval.machine.machine import FunctionCode
from dpl.eval.machine.primitives import implementation
from dpl.eval.values import arrays
from dpl.eval.values.instance import Types, staged, type_params
from dpl.eval.values.scalar import fitted
from dpl.eval.values.value import Closure, Con, Value
from dpl.prims import TABLE


class TermCompiler(Compiler):
    """Compiles every form of term."""

    def compile(self, term: c.Term, scope: Scope) -> Code:  # noqa: C901 -- one case per form
        match term:
            case c.Var():
                return at_once(names.variable(self, term, scope))
            case c.Lit():
                return at_once(self.literal(term))
            case c.Lam():
                return at_once(self.function(term, scope))
            case c.App():
                return calls.compile_call(self, term, scope)
            case c.Let() | c.LetRec():
                return self.bindings(term, scope)
            case c.Tuple(items=items):
                return self.make(items, scope, lambda *values: values)
            case c.Con(name=name, tag=tag, arg=arg):
                return self.constructor(Con(tag, name), arg, scope)
            case c.Field(record=record, index=i):
                alone = self.surroundings.datas.has_lone_field(record.ty)
                return self.make((record,), scope, (lambda r: r.arg) if alone else (lambda r: r.arg[i]))
            case c.Update(record=record, fields=fields):
                return self.update(record, fields, scope)
            case c.ArrayLit(span=span, items=items):
                return self.make(items, scope, lambda *values: arrays.stack(list(values), 1), span)
            case c.Prim():
                return self.primitive(term, scope)
            case c.If():
                return self.conditional(term, scope)
            case c.Match():
                return matching.compile_match(self, term, scope)
            case c.For():
                return loops.compile_for(self, term, scope)
            case c.While():
                return loops.compile_while(self, term, scope)
            case c.Build():
                return loops.compile_build(self, term, scope)
            case c.Shift() | c.Reset():
                return control.compile_delimited(self, term, scope)
            case c.Check():
                return self.check(term, scope)
            case c.Extern():
                foreign = self.foreign(term)
                return at_once(lambda env: foreign)
            case c.Hole():
                raise Bug(f"no such term: {term!r}")

    # ---- constants ------------------------------------------------------------------------------------------------

    def literal(self, term: c.Lit) -> Direct:
        """A literal; a number of a type that is known only at run time is made then."""
        value = term.value
        if isinstance(value, (bool, str)):
            return lambda env: value

        constant, later = staged((term.ty,), lambda types: fitted(types[0], value))
        return later or (lambda env: constant)

    def constructor(self, alone: Con, arg: c.Term | None, scope: Scope) -> Code:
        """All uses of a constructor without an argument share one value, `alone`."""
        if arg is None:
            return at_once(lambda env: alone)
        tag, name = alone.tag, alone.name
        return self.make((arg,), scope, lambda value: Con(tag, name, value))

    def update(self, record: c.Term, fields: Sequence[tuple[int, c.Term]], scope: Scope) -> Code:
        """A record with other fields.  One with a lone field is that field's value."""
        alone = self.surroundings.datas.has_lone_field(record.ty)
        places = [index for index, _ in fields]

        def updated(old: Con, *values: Value) -> Con:
            if alone:
                return Con(old.tag, old.name, values[-1])
            parts = list(old.arg)
            for index, value in zip(places, values):
                parts[index] = value
            return Con(old.tag, old.name, tuple(parts))

        return self.make((record, *(value for _, value in fields)), scope, updated)

    # ---- functions ------------------------------------------------------------------------------------------------

    def function(self, term: c.Lam, scope: Scope) -> Direct:
        """A closure holds the values of the names that its body mentions."""
        captured = self.captured([term], scope)
        code, take = self.code(term, scope.inside(captured)), scope.taking(captured)
        return lambda env: Closure(code, take(env))

    def captured(self, functions: Sequence[c.Lam], scope: Scope) -> list[str]:
        """The local names of `scope` that `functions` mention, in the order of their binding."""
        names = {name for f in functions for name in self.mentioned.by(f) if scope.has(name)}
        return sorted(names, key=lambda name: (scope.slots.get(name, -1), name))

    def code(self, term: c.Lam, inside: Scope) -> FunctionCode:
        """The code of a function.  Nested lambdas become one function of several arguments."""
        params, body = [term.param], term.body
        while isinstance(body, c.Lam):
            params.append(body.param)
            body = body.body
        inner = inside.bind(*params)

        def compile_body() -> tuple[Run, Direct | None]:
            code = self.top(body, inner)
            return code.run, code.direct

        return FunctionCode(len(params), term.name, compile_body)

    # ---- bindings -------------------------------------------------------------------------------------------------

    def bindings(self, term: c.Term, scope: Scope) -> Code:
        """A chain of bindings.  Direct ones run one after the other; the first that is not direct gets a frame."""
        steps: list[Callable[[tuple], tuple]] = []
        while isinstance(term, (c.Let, c.LetRec)):
            if isinstance(term, c.LetRec):
                step, scope = self.recursive(term, scope)
                steps.append(step)
            elif type_params(term.params):
                needs = self.local_needs(term.params, [term.rhs], scope)
                steps.append(self.generalised(term, needs, scope))
                scope = scope.bind(term.name, needs=needs)
            else:
                rhs = self.compile(term.rhs, scope)
                scope = scope.bind(term.name)
                if not rhs.direct:
                    return _after(steps, Code(self._bound(rhs.run, term, self.compile(term.body, scope).run)))
                steps.append(_extend(rhs.direct))
            term = term.body
        return _after(steps, self.compile(term, scope))

    def _bound(self, rhs: Run, term: c.Let, body: Run) -> Run:
        def resume(value: Value, frame: tuple) -> tuple:
            return body(frame[1] + (value,), frame[2])

        self.note(resume, term.rhs)
        return lambda env, k: rhs(env, (resume, env, k))

    def generalised(self, let: c.Let, needs: Needs, scope: Scope) -> Callable[[tuple], tuple]:
        """Bind a Poly: the right-hand side runs once its types are known.  If it is more than a value, it runs here for
        the first use at types that are known here: if it fails, it does so before anything that follows."""
        code = self.compile(let.rhs, scope)
        first = None if is_value(let.rhs) else self.first_instance(let, needs, scope)

        def step(env: tuple) -> tuple:
            def make(types) -> Value:
                inner = (types, *env[1:])
                return code.direct(inner) if code.direct else self.machine.finish(code.run, inner, self.machine.end)

            poly = Poly(make)
            if first:
                poly.at(first(env))
            return env + (poly,)

        return step

    def first_instance(self, let: c.Let, needs: Needs, scope: Scope) -> Callable[[tuple], Types] | None:
        """The types of the first use whose types and sizes are known at the definition."""
        for use in uses((let.name,), [let.body]):
            if all(
                scope.has(name) for given in use.sizes for size in given for name in {*mentioned(size)} - bound(size)
            ):
                return names.instance(use, needs, sizes.handed(self, use, needs, scope))
        return None

    def local_needs(self, params: tuple[t.Var, ...], bodies: list[c.Term], scope: Scope) -> Needs:
        return params, needed(params, bodies, lambda name: scope.polys.get(name) or self.needs(name))

    def recursive(self, term: c.LetRec, scope: Scope) -> tuple[Callable[[tuple], tuple], Scope]:
        """Bind recursive functions.  They share their captured values but do not hold themselves or each other: a body
        makes the closures again where it mentions them (`Scope.group`).  So closures form no reference cycles, and are
        freed with their last use."""
        functions = {name: rhs for name, rhs in term.bindings if isinstance(rhs, c.Lam)}
        generalised = bool(type_params(term.params))
        needs = self.local_needs(term.params, list(functions.values()), scope) if generalised else None
        captured = [name for name in self.captured(list(functions.values()), scope) if name not in functions]
        take, group = scope.taking(captured), {}
        for name, rhs in functions.items():
            group[name] = self.code(rhs, scope.inside(captured, group))
        makers = [maker(code, generalised) for code in group.values()]

        def step(env: tuple) -> tuple:
            held = take(env)
            return env + tuple([make(held) for make in makers])

        return step, scope.bind(*group, needs=needs)

    # ---- choices --------------------------------------------------------------------------------------------------

    def conditional(self, term: c.If, scope: Scope) -> Code:
        """An if; it is direct if all parts are."""
        cond, then, else_ = (self.compile(part, scope) for part in (term.cond, term.then, term.else_))
        if test := cond.direct:
            if (yes := then.direct) and (no := else_.direct):
                return at_once(lambda env: yes(env) if test(env) else no(env))
            first, second = then.run, else_.run
            return Code(lambda env, k: first(env, k) if test(env) else second(env, k))
        first, second = then.run, else_.run
        return Code(
            self.gather([cond], [term.cond], lambda env, values, k: first(env, k) if values[0] else second(env, k))
        )

    # ---- primitives and checks ------------------------------------------------------------------------------------

    def primitive(self, term: c.Prim, scope: Scope) -> Code:
        """A primitive, by the file that knows it."""
        op = term.op
        if op == "sized":
            return sizes.compile_sized(self, term, scope)
        if op in control.PRIMITIVES:
            return control.compile_primitive(self, term, scope)
        types = (*(arg.ty for arg in term.args), term.ty)
        ready, later = staged(types, lambda types: self.implementation(term, types))
        span = None if op in TABLE and TABLE[op].elementwise and TABLE[op].pure and rank(term.ty) == 0 else term.span
        if later is None:
            return self.make(term.args, scope, ready, span)
        codes = [at_once(later), *(self.compile(arg, scope) for arg in term.args)]
        return self.combine(codes, (term, *term.args), lambda run, *values: run(*values), term.span)

    def implementation(self, term: c.Prim, types: tuple[t.Ty, ...]) -> Callable:
        """The function that computes a primitive at closed types."""
        return implementation(term.op, types, self.surroundings)

    def foreign(self, term: c.Extern) -> Value:
        """A function of C."""
        return control.extern(term)

    def check(self, term: c.Check, scope: Scope) -> Code:
        """A check of sizes that inference has only assumed."""
        inner = scope.bind(term.name)
        pairs = [(self.size(a, inner), self.size(b, inner), text) for a, b, text in term.pairs]

        def verify(env: tuple, value: Value) -> Value:
            inside = env + (value,)
            for actual, expected, text in pairs:
                if (found := actual(inside)) != (wanted := expected(inside)):
                    raise DplError.at("R0703", f"{text}: {found} is not {wanted}", term.span)
            return value

        body = self.compile(term.body, scope)
        if direct := body.direct:
            return at_once(lambda env: verify(env, direct(env)))
        return Code(self.gather([body], [term.body], lambda env, values, k: (k[0], verify(env, values[0]), k)))


def _extend(rhs: Direct) -> Callable[[tuple], tuple]:
    return lambda env: env + (rhs(env),)


def _after(steps: list[Callable[[tuple], tuple]], code: Code) -> Code:
    """`code`, run in the environment that the steps produce."""
    if not steps:
        return code
    before = steps[0] if len(steps) == 1 else _chain(steps)
    run = code.run
    return Code(lambda env, k: run(before(env), k), (direct := code.direct) and (lambda env: direct(before(env))))


def _chain(steps: list[Callable[[tuple], tuple]]) -> Callable[[tuple], tuple]:
    def chained(env: tuple) -> tuple:
        for step in steps:
            env = step(env)
        return env

    return chained
