"""Warns of derivatives that are taken, or begin, at a kink: where a function has no slope, or an infinite one.

    grad (fun x -> abs x) 0.0                                 the slope of `abs` at 0 is taken as 0
    Optim.minimize (Optim.sgd 0.1) loss { w = zeros 3 } 100   where `loss` has  relu (x @ p.w)

This is constant propagation on core: what is known of a number, or of all elements of an array, is their common value,
and the kinks that it went through.  Programs are followed from their first definition, so that a starting point may
have a name, or come from a function.  Both are certain: where paths meet, only what is known on all of them stays, so a
warning is never a guess; and where the analysis cannot follow, it is silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from dpl.core import term
from dpl.core.term import Def, Do, Program, Term
from dpl.core.walk import subterms
from dpl.diagnostics import Diagnostic, Label
from dpl.node import field, node, record
from dpl.prims import TABLE, evaluation
from dpl.source import Source, Span
from dpl.types.warnings.activity import OPERATORS, has_float

STARTS = {name: (0, 1) for name in OPERATORS} | {
    "Optim.minimize": (1, 2), "Optim.descend": (2, 3), "Optim.lbfgs": (1, 2), "Optim.cg": (1, 2),
    "Optim.newton": (1, 2), "Optim.newton_cg": (1, 2), "Optim.levenberg_marquardt": (1, 2),
    "Optim.gauss_newton": (1, 2),
}  # fmt: skip
BUDGET = 20_000  # terms followed for one item of the program
DEEPEST = 60  # calls of a function within itself
ROUNDS = 8
SAME = (
    "stop_grad", "index", "sized", "flatten", "reshape", "transpose", "reverse", "slice", "f64", "f32",
    "convert", "to_like",
)  # fmt: skip
PRODUCTS = ("mul", "matmul", "dot")
FLAT = "the derivative there is taken as 0"
STEEP = "its slope there is infinite"
SLOPES = {"abs": FLAT, "relu": FLAT, "sqrt": STEEP, "pow": STEEP, "hypot": FLAT, "norm": FLAT}
SMOOTH = {
    "abs": "sqrt (x * x + 1e-6)  for  abs x",
    "relu": "softplus x  for  relu x",
    "sqrt": "sqrt (x + 1e-6)  for  sqrt x",
    "pow": "(x + 1e-6) ** p  for  x ** p",
    "hypot": "sqrt (x * x + y * y + 1e-6)  for  hypot x y",
    "norm": "sqrt (sum (x * x) + 1e-6)  for  norm x",
    "max": "logsumexp [a, b]  for  max a b",
    "min": "-logsumexp [-a, -b]  for  min a b",
}
OPERATOR = {"pow": "**"}  # as it is written

Kinks = frozenset[tuple[str, Span]]
NO_KINKS: Kinks = frozenset()


@node
class Number:
    """A number, or all elements of an array (any other data: nothing is known).  `value` is None if it is not known;
    `active` if the derivative may flow to it.  `some` are values that certainly are among the elements."""

    value: float | int | bool | None = None
    active: bool = False
    kinks: Kinks = NO_KINKS
    some: frozenset[float] = frozenset()

    @property
    def found(self) -> frozenset[float]:
        return self.some if self.value is None else frozenset({self.value})


@node
class Parts:
    """A tuple, or the content of a constructor."""

    items: tuple[Abstract, ...]
    tag: int = 0


@node
class Closure:
    param: str
    body: Term
    env: Mapping[str, Abstract]


@node
class Partial:
    """A derivative or an optimiser, applied to some of its arguments."""

    name: str
    args: tuple[Abstract, ...]


Abstract = Number | Parts | Closure | Partial
UNKNOWN = Number()


class GivenUp(Exception):
    """The budget is spent."""


def warnings(program: Program, own: set[Source]) -> Iterator[Diagnostic]:
    """Follows values from where derivatives begin.  Each derivative is told with its first kink in the text."""
    follower = Follower({item.name: item for item in program.items if isinstance(item, Def)}, program.library)
    for item in program.items:
        if isinstance(item, Def | Do) and item.body.span.source in own:
            follower.follow(item)
    for span, kinks in follower.found.items():
        if span.source in own:
            yield from (message(span, name, place, own) for name, place in sorted(kinks, key=lambda k: k[1].start)[:1])


def message(span: Span, name: str, place: Span, own: set[Source]) -> Diagnostic:
    what = SLOPES.get(name, "the derivative there is that of one side")
    where = "two equal operands" if name in ("max", "min") else "0"
    ways = "start at small random numbers"
    ways = f"{ways}, or smooth it:  {SMOOTH[name]}" if name in SMOOTH else ways
    name = OPERATOR.get(name, name)
    labels = (Label(place, f"`{name}` of {where} here"),) if place.source in own and place != span else ()
    return Diagnostic(
        "W0404", f"this derivative starts at a kink: `{name}` of {where}", span, note=what, labels=labels, helps=(ways,)
    )


@record
class Follower:
    globals: Mapping[str, Def]
    library: Mapping[str, Def]
    values: dict[str, Abstract] = field(default_factory=dict)  # of definitions
    found: dict[Span, Kinks] = field(default_factory=dict)  # by the points where derivatives are taken
    seen: int = 0
    unsure: int = 0  # conditions around that are not known
    deep: dict[int, int] = field(default_factory=dict)  # calls that are open, by the identity of the body

    def follow(self, item: Def | Do) -> None:
        self.seen, self.unsure, self.deep = 0, 0, {}
        try:
            value = self.eval(item.body, {})
        except GivenUp:
            value = UNKNOWN
        if isinstance(item, Def):
            self.values[item.name] = value

    def eval(self, t: Term, env: Mapping[str, Abstract]) -> Abstract:
        self.seen += 1
        if self.seen > BUDGET:
            raise GivenUp
        match t:
            case term.Var(name=name):
                return env[name] if name in env else self.outside(name)
            case term.Lit(value=value):
                return Number(value) if isinstance(value, int | float) else UNKNOWN
            case term.Lam(param=param, body=body):
                return Closure(param, body, env)
            case term.App(fn=fn, arg=arg):
                given = self.eval(arg, env)
                answer = self.call(self.eval(fn, env), given, t.span)
                if isinstance(fn, term.Var) and fn.name == "Prelude.norm" and is_kink("norm", [flat(given)]):
                    return Number(0.0, True, frozenset({("norm", t.span)}))
                return self.as_of_call(fn, answer, t.span) if isinstance(answer, Number) and answer.kinks else answer
            case term.Let(name=name, rhs=rhs, body=body):
                return self.eval(body, {**env, name: self.eval(rhs, env)})
            case term.LetRec(bindings=bindings, body=body):
                inner = dict(env)
                for name, f in bindings:
                    inner[name] = Closure(f.param, f.body, inner) if isinstance(f, term.Lam) else UNKNOWN
                return self.eval(body, inner)
            case term.If() | term.Match() | term.For() | term.While():
                return self.control(t, env)
            case _:
                return self.data(t, env)

    def control(self, t: Term, env: Mapping[str, Abstract]) -> Abstract:
        match t:
            case term.If(cond=cond, then=then, else_=other):
                known = self.number(cond, env).value
                if known is not None:
                    return self.eval(then if known else other, env)
                return self.perhaps([(then, env), (other, env)])
            case term.Match(scrutinee=scrutinee, arms=arms):
                return self.match(self.eval(scrutinee, env), arms, env)
            case term.For(state=state, init=init, index=index, count=count, body=body):
                self.eval(count, env)
                return self.loop(state, self.eval(init, env), body, {**env, index: UNKNOWN})
            case term.While(state=state, init=init, cond=cond, body=body):
                begin = self.eval(init, env)
                is_sure = self.number(cond, {**env, state: begin}).value is True
                self.unsure += not is_sure
                after = self.loop(state, begin, body, env)
                self.unsure -= not is_sure
                return after if is_sure else join(begin, after)
            case _:
                raise AssertionError(t)

    def data(self, t: Term, env: Mapping[str, Abstract]) -> Abstract:
        match t:
            case term.Tuple(items=items):
                return Parts(tuple(self.eval(item, env) for item in items))
            case term.Con(tag=tag, arg=arg):
                return Parts((self.eval(arg, env),) if arg is not None else (), tag)
            case term.Field(record=of, index=index):
                return field_of(self.eval(of, env), index)
            case term.Update(record=of, fields=fields):
                return with_fields(self.eval(of, env), {index: self.eval(value, env) for index, value in fields})
            case term.Build(index=index, count=count, body=body):
                self.eval(count, env)
                return flat(self.eval(body, {**env, index: UNKNOWN}))
            case term.ArrayLit(items=items):
                found = [flat(self.eval(item, env)) for item in items]
                kinks = NO_KINKS.union(*(x.kinks for x in found))
                same = found and all(x.value == found[0].value for x in found)
                some = frozenset[float]() if same else frozenset[float]().union(*(x.found for x in found))
                return Number(found[0].value if same else None, any(x.active for x in found), kinks, some)
            case term.Prim(op="jvp" | "vjp", args=(f, point, *_)):
                self.start(self.eval(f, env), self.eval(point, env), point.span)
                return Number(active=True)
            case term.Prim(args=args):
                return self.primitive(t, [flat(self.eval(a, env)) for a in args])
            case term.Check(body=body):
                return self.eval(body, env)
            case _:
                for part in subterms(t):
                    self.eval(part, env)
                return UNKNOWN

    def number(self, t: Term, env: Mapping[str, Abstract]) -> Number:
        return flat(self.eval(t, env))

    def outside(self, name: str) -> Abstract:
        """A global name."""
        if name not in self.values:
            found = self.globals.get(name) or self.library.get(name)
            body = found.body if isinstance(found, Def) else None
            self.values[name] = Closure(body.param, body.body, {}) if isinstance(body, term.Lam) else UNKNOWN
        value = self.values[name]
        return Partial(name, ()) if name in STARTS else value

    def as_of_call(self, fn: Term, answer: Number, span: Span) -> Number:
        """A result, with kinks inside a library function attributed to its call."""
        while isinstance(fn, term.App):
            fn = fn.fn
        if not isinstance(fn, term.Var) or fn.name in self.globals or fn.name not in self.library:
            return answer
        name = fn.name.removeprefix("Prelude.")
        kinks = frozenset(k if k[1].source == span.source else (name, span) for k in answer.kinks)
        return Number(answer.value, answer.active, kinks)

    def call(self, f: Abstract, arg: Abstract, span: Span) -> Abstract:
        match f:
            case Closure(param, body, env):
                depth = self.deep.get(id(body), 0)
                if depth > DEEPEST or (depth and self.unsure):
                    return Number(active=True)
                self.deep[id(body)] = depth + 1
                answer = self.eval(body, {**env, param: arg})
                self.deep[id(body)] = depth
                return answer
            case Partial(name, args):
                of, start = STARTS[name]
                args = (*args, arg)
                if len(args) <= start:
                    return Partial(name, args)
                self.start(args[of], args[start], span)
                return Number(active=any(flat(a).active for a in args))
            case _:
                return Number(active=flat(f).active or flat(arg).active)

    def start(self, f: Abstract, point: Abstract, span: Span) -> None:
        """A derivative of `f` is taken at a point: for certain, if all conditions around are known."""
        answer = flat(self.call(f, activated(point), span))
        if answer.kinks and not self.unsure:
            self.found.setdefault(span, answer.kinks)

    def perhaps(self, ways: Sequence[tuple[Term, Mapping[str, Abstract]]]) -> Abstract:
        """The value of one of several terms."""
        self.unsure += 1
        found = [self.eval(t, env) for t, env in ways]
        self.unsure -= 1
        return reduce(join, found)

    def match(self, value: Abstract, arms: tuple, env: Mapping[str, Abstract]) -> Abstract:
        possible = [arm for arm in arms if may_match(arm.pattern, value)]
        ways = [(arm.body, {**env, **dict(variables(arm.pattern, value))}) for arm in possible]
        sure = may_match(possible[0].pattern, value) == "always" and possible[0].guard is None
        return self.eval(*ways[0]) if sure else self.perhaps(ways)

    def loop(self, state: str, init: Abstract, body: Term, env: Mapping[str, Abstract]) -> Abstract:
        """The state after one or more steps.  The first one is certain."""
        now, after = init, self.eval(body, {**env, state: init})
        self.unsure += 1
        for _ in range(ROUNDS):
            wider = join(now, after)
            if wider == now:
                break
            now, after = wider, self.eval(body, {**env, state: wider})
        else:
            raise GivenUp
        self.unsure -= 1
        return after

    def primitive(self, t: term.Prim, args: list[Number]) -> Number:
        row = TABLE.get(t.op)  # `dim` is not in the table
        value, some = result(t.op, [a.value for a in args]), elements(t.op, args)
        if row is None or t.op == "stop_grad" or not has_float(t.ty):
            return Number(value, some=some)
        rules = row.linear or (True,) * len(args)
        flows = [a for a, rule in zip(args, rules) if rule]
        kinks = NO_KINKS.union(*(a.kinks for a in flows if not is_flat(t.op, args, a)))
        if is_kink(t.op, args):
            kinks |= {(t.op, t.span)}
        return Number(value, any(a.active for a in flows), kinks, some)


def is_kink(op: str, args: list[Number]) -> bool:
    """Whether an operation is at a kink: at some elements is enough, if the other operand is the same for all."""
    if not any(a.active for a in args) or sum(a.value is None for a in args) > (op != "norm"):
        return False
    if op in ("max", "min"):
        return not args[0].found.isdisjoint(args[1].found)
    if op == "pow":  # a root
        power = args[1].value
        return args[0].active and 0 in args[0].found and power is not None and 0 < power < 1
    return op in SLOPES and all(0 in a.found for a in args)


def is_flat(op: str, args: list[Number], to: Number) -> bool:
    """Whether the slope of a product or a power to one of its operands is 0, as in `abs x * x` at 0: what the slopes
    further in are taken as makes no difference then, if they are finite."""
    if len(args) != 2 or any(SLOPES.get(name) == STEEP for name, _ in to.kinks):
        return False
    base, other = args
    if op == "pow":
        return to is base and base.value == 0 and other.value is not None and other.value > 1
    return op in PRODUCTS and (other if to is base else base).value == 0


def result(op: str, values: list) -> float | int | bool | None:
    """The value of an operation, where that of its operands is enough to know it."""
    if op in PRODUCTS and 0 in values:
        return 0.0
    if op in SAME:
        return values[0]
    if op == "sum":
        return 0.0 if values[0] == 0 else None
    if op in ("zeros", "ones"):
        return float(op == "ones")
    if op == "fill":
        return values[1]
    if op in ("append", "update"):
        return values[0] if values[0] == values[1] else None
    if not values or any(v is None for v in values):
        return None
    try:
        return evaluation(op, "f64")(*values) if op in TABLE and TABLE[op].elementwise else None
    except (ArithmeticError, ValueError, TypeError):
        return None


def elements(op: str, args: list[Number]) -> frozenset[float]:
    """Values that are among the elements of a result."""
    mixed = [a for a in args if a.some]
    if len(mixed) != 1 or any(a.value is None for a in args if a is not mixed[0]):
        return frozenset()
    if op in SAME:
        return mixed[0].some if op not in ("index", "slice") else frozenset()
    found = (result(op, [x if a is mixed[0] else a.value for a in args]) for x in mixed[0].some)
    return frozenset(x for x in found if x is not None) if op in TABLE and TABLE[op].elementwise else frozenset()


def activated(value: Abstract) -> Abstract:
    """The argument of a derivative."""
    match value:
        case Number(known):
            return Number(known, True, some=value.some)
        case Parts(items, tag):
            return Parts(tuple(map(activated, items)), tag)
        case _:
            return value


def flat(value: Abstract) -> Number:
    """Of a tuple only whether it is active, and its kinks."""
    match value:
        case Number():
            return value
        case Parts(items):
            parts = [flat(item) for item in items]
            return Number(None, any(p.active for p in parts), NO_KINKS.union(*(p.kinks for p in parts)))
        case _:
            return UNKNOWN


def join(a: Abstract, b: Abstract) -> Abstract:
    """What is known of a value that is one of two."""
    match a, b:
        case Parts(some, tag), Parts(others, other) if len(some) == len(others) and tag == other:
            return Parts(tuple(map(join, some, others)), tag)
        case Number(), Number():
            value = a.value if a.value == b.value else None
            some = frozenset[float]() if value is not None else a.found & b.found
            return Number(value, a.active or b.active, a.kinks & b.kinks, some)
        case _:
            return Number(None, flat(a).active or flat(b).active) if a is not b else a


def field_of(value: Abstract, index: int) -> Abstract:
    match value:
        case Parts((Parts(items),)):
            return items[index]
        case Parts(items) if len(items) == 1 and index == 0:
            return items[0]
        case _:
            return Number(None, flat(value).active)


def with_fields(value: Abstract, fields: Mapping[int, Abstract]) -> Abstract:
    match value:
        case Parts((Parts(items),)):
            return Parts((Parts(tuple(fields.get(index, item) for index, item in enumerate(items))),), value.tag)
        case Parts(items) if len(items) == 1 and 0 in fields:
            return Parts((fields[0],), value.tag)
        case _:
            return flat(Parts((value, *fields.values())))


def may_match(p: term.Pattern, value: Abstract) -> str:
    """Whether a pattern matches: "always", "perhaps", or "" for never."""
    match p, value:
        case ((term.PWild() | term.PVar()), _):
            return "always"
        case term.PAs(pattern=inner), _:
            return may_match(inner, value)
        case term.PTuple(items=items), Parts(parts):
            return least(may_match(i, part) for i, part in zip(items, parts))
        case term.PCon(tag=tag, arg=arg), Parts(parts, actual):
            if tag != actual:
                return ""
            return may_match(arg, parts[0]) if arg is not None and parts else "always"
        case term.PLit(value=wanted), Number(known) if known is not None:
            return "always" if wanted == known else ""
        case term.PTuple(items=items), _:
            return least(may_match(i, UNKNOWN) for i in items)
        case _:
            return "perhaps"


def least(found: Iterator[str]) -> str:
    return min(found, key=("", "perhaps", "always").index, default="always")


def variables(p: term.Pattern, value: Abstract) -> Iterator[tuple[str, Abstract]]:
    """The variables of a pattern, each with what is known of it."""
    match p:
        case term.PVar(name=name):
            yield name, value
        case term.PAs(pattern=inner, name=name):
            yield name, value
            yield from variables(inner, value)
        case term.PTuple(items=items):
            parts = value.items if isinstance(value, Parts) else (unknown_part(value),) * len(items)
            for item, part in zip(items, parts):
                yield from variables(item, part)
        case term.PArray(items=items):
            for item in items:
                yield from variables(item, value)
        case term.PCon(arg=arg) if arg is not None:
            content = value.items[0] if isinstance(value, Parts) and value.items else unknown_part(value)
            yield from variables(arg, content)
        case term.POr(left=left):
            yield from variables(left, unknown_part(value))
        case _:
            pass


def unknown_part(value: Abstract) -> Number:
    """A part of data of which only this is known."""
    return Number(None, flat(value).active)
