"""mono core -> mono core without shift and reset: a function that captures its context takes it as an argument.

    f : a -{ctl r}-> b            f : a -> (b -> r) -> r
    1 + f x                       f x (fun v -> 1 + v)
    shift k -> e                  let k = fun v -> (the rest, with v) in e
    reset e                       e, with the empty continuation

This is a selective CPS transformation (Nielsen 2001; Rompf, Maier, Odersky 2009): only terms and functions whose types
say that they capture are written in continuation-passing style.  It takes one pass and leaves no administrative redexes
(Danvy and Filinski 1992): a continuation is a function of the compiler until the program needs it as a value.  The
metacontinuation, the context outside the nearest `reset`, is the machine's stack: applying a captured continuation is
an ordinary call, and all calls inside the `reset` are tail calls.

A named function of several parameters that computes nothing before it has the last one becomes a *worker*: it takes its
continuation with the last parameter only.  `arity` has these functions.  A mention without all arguments is wrapped.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.names import mentioned
from dpl.core.walk import changed, changed_pattern, subterms
from dpl.diagnostics import Bug
from dpl.source import Span

from dplc.narrow import expect_type
from dplc.passes.control.continuations import (
    Cont,
    Continuing,
    arity,
    captures_on_call,
    known,
    nothing,
    spine,
)
from dplc.passes.specialise.mono import bound, definitions, rebuilt
from dplc.passes.specialise.program import Mono

Terms = Sequence[c.Term]


def explicit_control(mono: Mono) -> Mono:
    """The program without control effects; the same program if nothing captures."""
    return Program(mono).run() if mono.control else mono


# ---- programs -------------------------------------------------------------------------------------------------------


class Program(Continuing):
    """`arity` says which definitions have workers."""

    def __init__(self, mono: Mono) -> None:
        super().__init__()
        self.mono = mono
        self.arity = {name: arity(e) for name, e in mono.functions.items()}

    def run(self) -> Mono:
        """Converts all functions and items."""
        mono = self.mono
        definitions = {name: Converter(self).definition(name, e) for name, e in mono.functions.items()}
        functions = {name: expect_type(c.Lam, e) for name, e in definitions.items()}
        items = [(name, Converter(self).term(e)) for name, e in mono.items]
        datas = {name: self.data(data) for name, data in mono.datas.items()}
        return Mono(functions, mono.calls, items, datas, exports=mono.exports)


# ---- definitions ----------------------------------------------------------------------------------------------------


class Converter:
    """Converts one definition.  `term` is for terms that capture nothing, `captured` for terms that may."""

    def __init__(self, up: Program) -> None:
        self.up = up
        self.type = up.type
        self.arity: ChainMap[str, int] = ChainMap({}, up.arity)  # local names are unique in a definition
        self.capturing: dict[int, bool] = {}

    def captures(self, e: c.Term) -> bool:
        """True if the evaluation of `e` may capture its context."""
        found = self.capturing.get(id(e))
        if found is None:
            found = self.capturing[id(e)] = self.look(e)
        return found

    def look(self, e: c.Term) -> bool:
        match e:
            case c.Shift():
                return True
            case c.Lam() | c.Reset():
                return False
            case c.App(_, _, fn, arg):
                if (calls := self.saturated(e)) is not None:
                    return captures_on_call(fn) or any([self.captures(call.arg) for call in calls])
                return captures_on_call(fn) or self.captures(fn) or self.captures(arg)
            case c.Let() | c.LetRec():
                self.note(e)
            case _:
                pass
        return any([self.captures(part) for part in subterms(e)])

    def note(self, e: c.Let | c.LetRec) -> None:
        for name, rhs in zip(bound(e), definitions(e), strict=True):
            self.arity[name] = arity(rhs)

    def saturated(self, e: c.App) -> list[c.App] | None:
        """The applications in a call that gives a worker all its arguments; None for any other call."""
        head, calls = spine(e)
        return calls if isinstance(head, c.Var) and 1 < self.arity.get(head.name, 1) == len(calls) else None

    # ---- functions --------------------------------------------------------------------------------------------------

    def definition(self, name: str, e: c.Term) -> c.Term:
        """The converted right-hand side of a definition: a worker, or an ordinary term."""
        return self.worker(expect_type(c.Lam, e), count) if (count := self.arity[name]) > 1 else self.term(e)

    def worker(self, e: c.Lam, count: int) -> c.Lam:
        if count == 1:
            return self.function(e)
        body = self.worker(expect_type(c.Lam, e.body), count - 1)
        return c.Lam(e.span, t.Fn(self.type(expect_type(t.Fn, e.ty).arg), t.PURE, body.ty), e.param, body, e.name)

    def function(self, e: c.Lam) -> c.Lam:
        ty = expect_type(t.Fn, self.type(e.ty))
        if not captures_on_call(e):
            return c.Lam(e.span, ty, e.param, self.term(e.body), e.name)
        taking = expect_type(t.Fn, ty.result)
        k = self.up.fresh("k", taking.arg, e.span)
        body = c.Lam(e.span, taking, k.name, self.captured(e.body, known(k)), e.name)
        return c.Lam(e.span, ty, e.param, body, e.name)

    def mention(self, e: c.Var) -> c.Term:
        """A mention of a name without all the arguments of its worker."""
        count = self.arity.get(e.name, 1)
        if count == 1:
            return c.Var(e.span, self.type(e.ty), e.name)
        return self.wrapped(c.Var(e.span, self.up.worker(e.ty, count), e.name), e.ty, count)

    def wrapped(self, worker: c.Term, ty: t.Ty, count: int) -> c.Term:
        """A worker as a function of its declared type."""
        if count == 1:
            return worker
        span, fn, whole = worker.span, expect_type(t.Fn, ty), expect_type(t.Fn, self.type(ty))
        x = self.up.fresh("x", whole.arg, span)
        given = self.wrapped(c.App(span, expect_type(t.Fn, worker.ty).result, worker, x), fn.result, count - 1)
        if isinstance(fn.eff, t.Ctl):
            taking = expect_type(t.Fn, whole.result)
            k = self.up.fresh("k", taking.arg, span)
            given = c.Lam(span, taking, k.name, known(k).then(given))
        return c.Lam(span, whole, x.name, given)

    # ---- what captures nothing --------------------------------------------------------------------------------------

    def term(self, e: c.Term) -> c.Term:
        match e:
            case c.Var():
                return self.mention(e)
            case c.Lam():
                return self.function(e)
            case c.Reset(_, ty, body):
                return self.captured(body, nothing(self.type(ty)))
            case c.Let() | c.LetRec():
                return self.lets(e)
            case c.App() if (calls := self.saturated(e)) is not None:
                return self.applied(calls, [self.term(call.arg) for call in calls])
            case _:
                return changed(e, self.term, self.type)

    def lets(self, e: c.Term) -> c.Term:
        chain = []
        while isinstance(e, c.Let | c.LetRec):
            chain.append((e, self.bound(e)))
            e = e.body
        body = self.term(e)
        for let, done in reversed(chain):
            body = rebuilt(let, done, "", body)
        return body

    def bound(self, e: c.Let | c.LetRec) -> list[c.Term]:
        """The converted right-hand sides of definitions that capture nothing."""
        self.note(e)
        return [self.definition(name, rhs) for name, rhs in zip(bound(e), definitions(e), strict=True)]

    def applied(self, calls: list[c.App], args: Terms) -> c.Term:
        """A worker applied to all its arguments."""
        head = expect_type(c.Var, calls[0].fn)
        fn: c.Term = c.Var(head.span, self.up.worker(head.ty, len(calls)), head.name)
        for call, arg in zip(calls, args, strict=True):
            fn = c.App(call.span, expect_type(t.Fn, fn.ty).result, fn, arg)
        return fn

    # ---- what may capture -------------------------------------------------------------------------------------------

    def value(self, k: Cont, ty: t.Ty, span: Span) -> c.Term:
        """A continuation for values of type `ty`, as a function value."""
        if k.value is not None:
            return k.value
        v = self.up.fresh("v", ty, span)
        return c.Lam(span, t.Fn(ty, t.PURE, k.answer), v.name, k.then(v))

    def shared(self, k: Cont, e: c.Term, write: Callable[[Cont], c.Term]) -> c.Term:
        """The result of `write`, which may use the continuation of `e` several times: it is bound to a name first."""
        if k.several:
            return write(k)
        function = self.value(k, self.type(e.ty), e.span)
        join = self.up.fresh("join", function.ty, e.span)
        return let(join.name, function, write(known(join)))

    def captured(self, e: c.Term, k: Cont) -> c.Term:
        """The code of `e`, followed by the continuation `k`."""
        if not self.captures(e):
            return k.then(self.term(e))
        match e:
            case c.Shift():
                return self.shift(e, k)
            case c.App():
                return self.application(e, k)
            case c.Let(_, _, name, (), rhs, body) if self.captures(rhs):
                return self.captured(rhs, k.after(lambda v: let(name, v, self.captured(body, k))))
            case c.Let() | c.LetRec():
                done = self.bound(e)
                return rebuilt(e, done, "", self.captured(e.body, k))
            case c.If():
                return self.shared(k, e, lambda k: self.conditional(e, k))
            case c.Match(_, _, scrutinee, arms):
                return self.shared(
                    k, e, lambda k: self.captured(scrutinee, k.after(lambda v: self.match(e.span, v, arms, k)))
                )
            case c.For():
                return self.operands([e.init, e.count], k, lambda done: self.count_loop(e, done[0], done[1], k))
            case c.While():
                return self.captured(e.init, k.after(lambda init: self.while_loop(e, init, k)))
            case c.Check():
                return self.captured(e.body, k.after(lambda v: k.then(self.checked(e, v))))
            case c.Build():
                raise Bug(f"a comprehension that captures its context: {e.span}")
            case _:
                return self.operands(subterms(e), k, lambda done: k.then(self.with_parts(e, done)))

    def application(self, e: c.App, k: Cont) -> c.Term:
        if (calls := self.saturated(e)) is not None:
            args = [call.arg for call in calls]
            return self.operands(args, k, lambda done: self.called(e, self.applied(calls, done), k))
        parts = [e.fn, e.arg]
        return self.operands(parts, k, lambda done: self.called(e, c.App(e.span, result_of(done[0]), *done), k))

    def conditional(self, e: c.If, k: Cont) -> c.Term:
        def choose(v: c.Term) -> c.Term:
            return c.If(e.span, k.answer, v, self.captured(e.then, k), self.captured(e.else_, k))

        return self.captured(e.cond, k.after(choose))

    def checked(self, e: c.Check, v: c.Term) -> c.Term:
        pairs = tuple([(self.term(a), self.term(b), what) for a, b, what in e.pairs])
        return c.Check(e.span, self.type(e.ty), e.name, v, pairs)

    def with_parts(self, e: c.Term, parts: Terms) -> c.Term:
        rest = iter(parts)
        return changed(e, lambda _: next(rest), self.type)

    def shift(self, e: c.Shift, k: Cont) -> c.Term:
        """`shift k -> k e` is e: a continuation that is called once and last need not be captured."""
        match e.body:
            case c.App(_, _, c.Var(_, _, name), arg) if name == e.name and name not in mentioned(arg):
                if not self.captures(arg):
                    return k.then(self.term(arg))
            case _:
                pass
        function = self.value(k, self.type(e.ty), e.span)
        return let(e.name, function, self.captured(e.body, nothing(k.answer)))

    def called(self, e: c.App, call: c.Term, k: Cont) -> c.Term:
        """A call.  It is given its continuation if it may capture."""
        if not captures_on_call(e.fn):
            return k.then(call)
        return c.App(e.span, k.answer, call, self.value(k, self.type(e.ty), e.span))

    def operands(self, parts: Terms, k: Cont, write: Callable[[list[c.Term]], c.Term]) -> c.Term:
        """The result of `write` on the values of `parts`, which are evaluated from left to right.  A value computed
        before a part that may capture gets a name."""
        last = max((i for i, part in enumerate(parts) if self.captures(part)), default=-1)

        def go(i: int, done: list[c.Term]) -> c.Term:
            if i > last:
                return write([*done, *(self.term(part) for part in parts[i:])])
            return self.captured(parts[i], k.after(lambda v: named(i, v, done)))

        def named(i: int, v: c.Term, done: list[c.Term]) -> c.Term:
            if i == last or isinstance(v, c.Var | c.Lit | c.Lam):
                return go(i + 1, [*done, v])
            x = self.up.fresh("v", v.ty, v.span)
            return let(x.name, v, go(i + 1, [*done, x]))

        return go(0, [])

    def match(self, span: Span, v: c.Term, arms: Sequence[c.Arm], k: Cont) -> c.Term:
        """The arms up to the first guard that may capture.  The arms after it become a function of unit, which is
        called if the guard is false."""
        special = next((i for i, arm in enumerate(arms) if arm.guard is not None and self.captures(arm.guard)), None)
        if special is None:
            return c.Match(span, k.answer, v, tuple([self.arm(arm, k) for arm in arms]))
        x = self.up.fresh("v", v.ty, span)
        arm, after = arms[special], arms[special + 1 :]
        fail = self.up.fresh("else", t.Fn(t.UNIT, t.PURE, k.answer), span)
        failed = c.App(span, k.answer, fail, c.Tuple(span, t.UNIT, ()))
        guard = arm.guard
        assert guard is not None

        def held(b: c.Term) -> c.Term:
            return c.If(span, k.answer, b, self.captured(arm.body, k), failed)

        tried = c.Arm(arm.span, self.pattern(arm.pattern), None, self.captured(guard, k.after(held)))
        otherwise = c.Arm(span, c.PWild(v.ty), None, failed)
        first = c.Match(span, k.answer, x, (*(self.arm(a, k) for a in arms[:special]), tried, otherwise))
        rest = c.Lam(span, fail.ty, self.up.fresh("unit", t.UNIT, span).name, self.match(span, x, after, k))
        return let(x.name, v, let(fail.name, rest, first))

    def arm(self, arm: c.Arm, k: Cont) -> c.Arm:
        guard = None if arm.guard is None else self.term(arm.guard)
        return c.Arm(arm.span, self.pattern(arm.pattern), guard, self.captured(arm.body, k))

    def pattern(self, p: c.Pattern) -> c.Pattern:
        return changed_pattern(p, self.type)

    # ---- loops ------------------------------------------------------------------------------------------------------

    def count_loop(self, e: c.For, init: c.Term, count: c.Term, k: Cont) -> c.Term:
        """A loop as a function that calls itself."""
        span = e.span
        index, state = c.Var(span, t.I64, e.index), c.Var(span, init.ty, e.state)
        number = self.up.fresh("n", t.I64, span)
        inner = t.Fn(init.ty, t.PURE, k.answer)
        again = self.up.fresh("loop", t.Fn(t.I64, t.PURE, inner), span)

        def turn(i: c.Term, s: c.Term) -> c.Term:
            return c.App(span, k.answer, c.App(span, inner, again, i), s)

        more = c.Prim(span, t.BOOL, "lt", (index, number))
        after = c.Prim(span, t.I64, "add", (index, c.Lit(span, t.I64, 1)))
        step = self.captured(e.body, k.after(lambda v: turn(after, v)))
        body = c.If(span, k.answer, more, step, k.then(state))
        function = c.Lam(span, again.ty, e.index, c.Lam(span, inner, e.state, body))
        start = turn(c.Lit(span, t.I64, 0), init)
        return let(number.name, count, c.LetRec(span, k.answer, (), ((again.name, function),), start))

    def while_loop(self, e: c.While, init: c.Term, k: Cont) -> c.Term:
        span, state = e.span, c.Var(e.span, init.ty, e.state)
        again = self.up.fresh("loop", t.Fn(init.ty, t.PURE, k.answer), span)

        def turn(s: c.Term) -> c.Term:
            return c.App(span, k.answer, again, s)

        def choose(b: c.Term) -> c.Term:
            return c.If(span, k.answer, b, self.captured(e.body, k.after(turn)), k.then(state))

        function = c.Lam(span, again.ty, e.state, self.captured(e.cond, k.after(choose)))
        return c.LetRec(span, k.answer, (), ((again.name, function),), turn(init))


def let(name: str, rhs: c.Term, body: c.Term) -> c.Term:
    return c.Let(rhs.span, body.ty, name, (), rhs, body)


def result_of(fn: c.Term) -> t.Ty:
    return expect_type(t.Fn, fn.ty).result
