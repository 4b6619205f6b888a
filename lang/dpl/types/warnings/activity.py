"""Warns of gradients that are zero everywhere: the function's result does not depend smoothly on its argument.

let loss x = floor x * 2.0 in grad loss 1.5   ->   `loss` depends on `x` only through `floor`

This is an abstract interpretation of core.  The abstract value says whether the value may depend smoothly on the
argument (`active`), and which steps break the dependence otherwise (`steps`: rounding, comparison, conversion to an
integer).  Functions are closures.  Calls are followed; recursion is iterated to a fixed point.  Where the analysis
cannot know (references, continuations, unknown functions), it answers "active", so it warns only of certain zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpl.core import term, ty
from dpl.core.term import Def, Program, Term
from dpl.core.walk import subterms
from dpl.diagnostics import Diagnostic, Label
from dpl.node import field, node, record
from dpl.prims import TABLE
from dpl.source import Source, Span
from dpl.types.messages.pretty import NAMES

OPERATORS = (
    {f"Prelude.{name}" for name in ("grad", "value_and_grad", "diff")}
    | {
        f"Ad.{name}{prime}"
        for name in (
            "grad",
            "gradv",
            "diff",
            "diff2",
            "jacobian",
            "jacobianT",
            "jacobianv",
            "hessian",
            "hessianv",
            "laplacian",
        )
        for prime in ("", "'")
    }
    | {"Ad.diff2''"}
)
BUDGET = 10_000  # terms evaluated for one derivative
ROUNDS = 8  # most iterations of a fixed point
ITSELF = -1  # stands for a function's number inside its own signature


@node
class Dependence:
    """`active` if a value may depend smoothly on the argument; `steps` are the steps whose derivative is zero."""

    active: bool = False
    steps: frozenset[tuple[str, Span]] = frozenset()

    def __or__(self, other: Dependence) -> Dependence:
        if self is other or other is NONE:
            return self
        return other if self is NONE else Dependence(self.active or other.active, self.steps | other.steps)

    def as_of(self, step: str, span: Span) -> Dependence:
        """The same dependence, with steps in other sources attributed to this call."""
        here = frozenset(s if s[1].source == span.source else (step, span) for s in self.steps)
        return Dependence(self.active, here)

    def through(self, step: str, span: Span) -> Dependence:
        """The dependence after a step whose derivative is zero."""
        return Dependence(False, self.steps | {(step, span)}) if self.active else Dependence(False, self.steps)


NONE, ACTIVE = Dependence(), Dependence(True)


@node
class Closure:
    param: str
    body: Term
    env: Mapping


Abstract = Dependence | Closure


class Unknown(Exception):
    """The analysis gave up: the budget is spent, or a form is not supported."""


def warnings(program: Program, own: set[Source]) -> Iterator[Diagnostic]:
    """Yields a warning for every derivative in the sources `own` that is always zero."""
    globals_ = {item.name: item for item in program.items if isinstance(item, Def)}
    known: dict[int, Dependence | None] = {}
    for item in program.items:
        locals_ = local_functions(item.body)
        stack = [item.body]
        while stack:
            t = stack.pop()
            stack += subterms(t)
            match t:
                case term.App(span, _, term.Var(name=operator), f) if operator in OPERATORS:
                    yield from judge(Analysis(globals_, program.library, locals_), f, span, own, known)
                case term.Prim(span, _, "jvp" | "vjp", (f, *_)):
                    yield from judge(Analysis(globals_, program.library, locals_), f, span, own, known)
                case _:
                    pass


def judge(
    analysis: Analysis, f: Term, span: Span, own: set[Source], known: dict[int, Dependence | None]
) -> Iterator[Diagnostic]:
    """`known` holds what was found of functions before, by identity; None if the analysis gave up."""
    name, taken = "", f.ty  # at this use, where its definition may be of any type
    if isinstance(f, term.Var):
        name = f.name.rpartition(".")[2].partition("#")[0] if f.name in analysis.globals else f.name.partition(".")[0]
        defined = analysis.globals.get(f.name)
        f = defined.body if defined is not None else analysis.locals.get(f.name, f)
    if not isinstance(f, term.Lam) or not isinstance(taken, ty.Fn):
        return
    if not has_float(taken.arg):
        if not f.param.startswith("_"):
            yield of_no_float(name, span)
        return
    if id(f) not in known:
        known[id(f)] = analysis.attempt(f)
    result = known[id(f)]
    if result is None or result.active or f.param.startswith("_"):
        return
    if all(step != "stop_grad" for step, _ in result.steps):
        yield message(name, f.param, result, span, own, f.param in analysis.names(f.body))


def local_functions(body: Term) -> dict[str, Term]:
    """The functions that are bound within a term, by name."""
    found: dict[str, Term] = {}
    stack = [body]
    while stack:
        t = stack.pop()
        stack += subterms(t)
        match t:
            case term.Let(name=name, rhs=term.Lam() as rhs):
                found[name] = rhs
            case term.LetRec(bindings=bindings):
                found.update(bindings)
            case _:
                pass
    return found


def reach(
    f: term.Lam, globals_: Mapping[str, Def], library: Mapping[str, Def], locals_: Mapping[str, Term]
) -> list[tuple[str, Dependence | None]]:
    """The arguments of a function that hold floats, each with how the result depends on it: None if that is not
    known."""
    names, inner = list[tuple[str, bool]](), f
    while isinstance(inner, term.Lam):
        assert isinstance(inner.ty, ty.Fn)
        names.append((inner.param.partition(".")[0], has_float(inner.ty.arg) and not isinstance(inner.ty.arg, ty.Fn)))
        inner = inner.body
    return [
        (name, Analysis(globals_, library, locals_).attempt(f, number, len(names)))
        for number, (name, is_smooth) in enumerate(names)
        if is_smooth
    ]


def message(name: str, core: str, result: Dependence, span: Span, own: set[Source], used: bool) -> Diagnostic:
    """`used` if the function mentions its argument."""
    param = core.partition(".")[0]
    shown = f"`{param}`" if param not in ("param", "operand") else "its argument"
    who = f"`{name}`" if name else "the function"
    steps = sorted({step for step, _ in result.steps})
    how = f" only through {' and '.join(f'`{step}`' for step in steps)}" if steps else ""
    verb = "depends on" if steps else "does not depend smoothly on" if used else "does not depend on"
    places = [(step, place) for step, place in result.steps if place.source in own]
    places.sort(key=lambda found: (found[1].source.name, found[1].start))
    labels = tuple(Label(place, f"`{step}` has derivative zero") for step, place in places[:3])
    title = f"this derivative is always zero: {who} {verb} {shown}{how}"
    help_ = "counts, conditions and what reaches no result have derivative zero" if used else "is a name misspelt?"
    help_ = "use something smooth in its place, or give it a rule with  with_vjp" if steps else help_
    return Diagnostic("W0402", title, span, labels=labels, helps=(help_,))


def of_no_float(name: str, span: Span) -> Diagnostic:
    """The warning for a function of integers, booleans or strings."""
    who = f"`{name}`" if name else "the function"
    title = f"this derivative is always zero: {who} takes what holds no float"
    return Diagnostic("W0402", title, span, helps=("differentiate by a float:  grad (fun x -> f x n) x",))


def has_float(t: ty.Ty, depth: int = 0) -> bool:
    """False only if values of type `t` contain no float.  True for deeply nested types, which may be huge."""
    match t:
        case ty.Con(name, ()):
            return name not in (*ty.INTS, "bool", "string")
        case ty.Tup(items):
            return depth > 10 or any(has_float(i, depth + 1) for i in items)
        case ty.Arr(elem, _):
            return has_float(elem, depth)
        case _:
            return True


# ---- the interpretation ---------------------------------------------------------------------------------------------


@record
class Analysis:
    """`assumed` holds the results that calls have within themselves: nothing at first, then the results of the previous
    iteration.  `open` holds the calls that are being analysed, `relied` those whose assumed result was used."""

    globals: Mapping[str, Def]
    library: Mapping[str, Def]
    locals: Mapping[str, Term]
    assumed: dict = field(default_factory=dict)
    found: dict = field(default_factory=dict)
    open: set = field(default_factory=set)
    relied: set = field(default_factory=set)
    mentioned: dict[int, frozenset[str]] = field(default_factory=dict)
    seen: int = 0
    signatures: dict[int, tuple[Closure, int]] = field(default_factory=dict)  # by identity; the closure is kept alive
    numbers: dict[tuple, int] = field(default_factory=dict)  # numbers given to signatures

    def attempt(self, f: term.Lam, number: int = 0, count: int = 1) -> Dependence | None:
        """The dependence of the result of `f` on an argument, with `count` of them; None if the analysis gives up."""
        try:
            return self.result(f, number, count)
        except Unknown:
            return None

    def result(self, f: term.Lam, number: int, count: int) -> Dependence:
        for _ in range(ROUNDS):
            self.found, self.relied = {}, set()
            value = self.eval(f, {})
            for i in range(count):
                value = self.call(value, ACTIVE if i == number else NONE)
            answer = flat(value)
            if all(self.assumed.get(key, NONE) == self.found[key] for key in self.relied):
                return answer
            self.assumed = self.found
        raise Unknown

    def call(self, f: Abstract, arg: Abstract) -> Abstract:
        if isinstance(f, Dependence):
            return f | flat(arg)
        if not isinstance(arg, Dependence) or isinstance(f.body, term.Lam):
            return self.eval(f.body, {**f.env, f.param: arg})
        key = self.signature(f, ())[0], arg
        if key in self.found:
            return self.found[key]
        if key in self.open:
            self.relied.add(key)
            return self.assumed.get(key, NONE)
        self.open.add(key)
        answer = self.eval(f.body, {**f.env, f.param: arg})
        if isinstance(answer, Closure):
            raise Unknown
        self.open.remove(key)
        self.found[key] = answer
        return answer

    def signature(self, f: Closure, around: tuple[Closure, ...]) -> tuple[int, int]:
        """A number that identifies a closure by its body and captured values, and the index of the first closure in
        `around` (the enclosing ones) that it mentions, or `len(around)`.

        A closure that mentions none of them has the same number everywhere, so its calls are analysed once.  Mutually
        recursive functions share one environment; within each other they are identified by their bodies alone."""
        if (known := self.signatures.get(id(f))) is not None:
            return known[1], len(around)
        for i, other in enumerate(around):
            if f.body is other.body:
                return ITSELF, i
            if f.env is other.env:
                return self.numbers.setdefault((id(f.body),), len(self.numbers)), i
        first, captured = len(around), []
        for name, value in sorted(f.env.items()):
            if isinstance(value, Closure):
                value, mentioned = self.signature(value, (*around, f))
                first = min(first, mentioned)
            captured.append((name, value))
        number = self.numbers.setdefault((id(f.body), *captured), len(self.numbers))
        if first == len(around):
            self.signatures[id(f)] = f, number
        return number, first

    def eval(self, t: Term, env: Mapping) -> Abstract:
        self.seen += 1
        if self.seen > BUDGET:
            raise Unknown
        answer = self.form(t, env)
        if isinstance(answer, Dependence) and answer.active and not has_float(t.ty):
            return answer.through(step_of(t), t.span)
        return answer

    def flat(self, t: Term, env: Mapping) -> Dependence:
        return flat(self.eval(t, env))

    def form(self, t: Term, env: Mapping) -> Abstract:  # noqa: C901 -- one case per form
        match t:
            case term.Var(_, _, name):
                return env[name] if name in env else self.outside(name)
            case term.Lit():
                return NONE
            case term.Lam(_, _, param, body):
                return Closure(param, body, {n: env[n] for n in self.names(t) if n in env})
            case term.App(span, _, fn, arg):
                answer = self.call(self.eval(fn, env), self.eval(arg, env))
                head = self.library_function(fn)
                return answer.as_of(head, span) if head and isinstance(answer, Dependence) else answer
            case term.Let(_, _, name, _, rhs, body):
                return self.eval(body, {**env, name: self.eval(rhs, env)})
            case term.LetRec(_, _, _, bindings, body):
                return self.eval(body, recursive(bindings, env))
            case term.If(_, _, cond, then, other):
                return merge(self.control(cond, env), self.eval(then, env), self.eval(other, env))
            case term.Match(_, _, scrutinee, arms):
                return self.match(self.flat(scrutinee, env), arms, env)
            case term.For(_, _, state, init, index, count, body):
                return self.loop(state, init, body, {**env, index: self.control(count, env)}, NONE)
            case term.While(_, _, state, init, cond, body):
                now = self.loop(state, init, body, env, NONE)
                return now | self.control(cond, {**env, state: now})
            case term.Build(_, _, index, count, body):
                return self.control(count, env) | self.flat(body, {**env, index: NONE})
            case term.Prim(_, _, op, args):
                return self.primitive(t, op, [self.eval(a, env) for a in args])
            case term.Shift() | term.Reset() | term.Extern():
                raise Unknown
            case term.Check(_, _, name, body, _):
                return self.flat(body, env)
            case _:
                return union([self.flat(part, env) for part in subterms(t)])

    def names(self, t: Term) -> frozenset[str]:
        """The names that a term mentions."""
        if id(t) not in self.mentioned:
            own = {t.name} if isinstance(t, term.Var) else set()
            self.mentioned[id(t)] = frozenset(own.union(*[self.names(part) for part in subterms(t)]))
        return self.mentioned[id(t)]

    def library_function(self, fn: Term) -> str:
        """The name of the library function that is applied, or ""."""
        while isinstance(fn, term.App):
            fn = fn.fn
        if isinstance(fn, term.Var) and fn.name not in self.globals and fn.name in self.library:
            return fn.name.removeprefix("Prelude.")
        return ""

    def outside(self, name: str) -> Abstract:
        """A global or outer local name.  It depends on the argument only when it is applied to it."""
        found = self.globals.get(name) or self.library.get(name)
        body = found.body if found is not None else self.locals.get(name)
        return self.eval(body, {}) if isinstance(body, term.Lam) else NONE

    def control(self, t: Term, env: Mapping) -> Dependence:
        """A condition or a count.  The choice that it makes has derivative zero."""
        found = self.flat(t, env)
        return Dependence(False, found.steps)

    def match(self, value: Dependence, arms: tuple, env: Mapping) -> Abstract:
        results: list[Abstract] = [Dependence(False, value.steps)]
        for arm in arms:
            inner = {**env, **dict(variables(arm.pattern, value))}
            if arm.guard is not None:
                results.append(self.control(arm.guard, inner))
            results.append(self.eval(arm.body, inner))
        return merge(*results)

    def loop(self, state: str, init: Term, body: Term, env: Mapping, now: Dependence) -> Dependence:
        now = self.flat(init, env)
        for _ in range(ROUNDS):
            after = now | self.flat(body, {**env, state: now})
            if after == now:
                return now
            now = after
        raise Unknown

    def primitive(self, t: Term, op: str, args: list[Abstract]) -> Dependence:
        if op in ("ref", "deref", "assign"):
            raise Unknown
        whole = union([flat(a) for a in args])
        if any(isinstance(a, Closure) for a in args) and (whole.active or whole.steps):
            return ACTIVE
        if op in ("length", "dim"):
            return NONE
        if op == "stop_grad":
            return whole.through(op, t.span)
        linear = TABLE[op].linear
        if linear is None:
            return whole
        parts = [flat(a) if rule else flat(a).through(step_of(t), t.span) for a, rule in zip(args, linear)]
        return union(parts)


def recursive(bindings: tuple, env: Mapping) -> dict:
    inner = dict(env)
    for name, value in bindings:
        assert isinstance(value, term.Lam)
        inner[name] = Closure(value.param, value.body, inner)
    return inner


def variables(p: term.Pattern, value: Dependence) -> Iterator[tuple[str, Dependence]]:
    """The variables of a pattern, each with its dependence."""
    match p:
        case term.PVar(t, name):
            yield name, value if has_float(t) else Dependence(False, value.steps)
        case term.PAs(_, inner, name):
            yield name, value
            yield from variables(inner, value)
        case term.PTuple(_, items) | term.PArray(_, items):
            for item in items:
                yield from variables(item, value)
        case term.PCon(_, _, _, arg) if arg is not None:
            yield from variables(arg, value)
        case term.POr(_, left, _):
            yield from variables(left, value)
        case _:
            pass


def flat(value: Abstract) -> Dependence:
    """The dependence of a whole value; for a closure, the union of its captured values."""
    whole, todo, seen = NONE, [value], set[int]()
    while todo:
        value = todo.pop()
        if isinstance(value, Dependence):
            whole |= value
        elif id(value) not in seen:
            seen.add(id(value))
            todo += value.env.values()
    return whole


def union(parts) -> Dependence:
    whole = NONE
    for part in parts:
        whole |= part
    return whole


def merge(*values: Abstract) -> Abstract:
    """One of several values.  Raises Unknown if any of them is a function."""
    if any(isinstance(v, Closure) for v in values):
        raise Unknown
    return union([flat(v) for v in values])


def step_of(t: Term) -> str:
    """The name that messages use for a step whose result has no float."""
    match t:
        case term.Prim(_, _, op):
            return TABLE[op].op or NAMES.get(op, op)
        case _:
            return "an integer"
