"""Explains type errors in calls: checks the called functions again, at the argument types of the call.

let apply l x = l.w @ x
let cost (l1, l2) x = sum (apply l2 (apply l1 x))
do print (cost model x)   ->   the product in `apply` does not fit, by way of cost and apply, with types at each

Principal types show that a call does not fit, but not the reason.  Only after such an error, the declaration is checked
once more, and its calls are followed into the definitions of the user's own functions.  Myia's inference does so from
the start (van Merriënboer, Breuleux, Bergeron, Lamblin: Automatic differentiation in ML, 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

from dpl.core import term, ty
from dpl.diagnostics import Call, Diagnostic, DplError, Label, Warnings
from dpl.node import field, record, replace
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.messages import recursion
from dpl.types.messages.parts import Why, both, printer
from dpl.types.rules.annotations import Flexible, resolve
from dpl.types.rules.apply import spine
from dpl.types.rules.bindings import lambdas
from dpl.types.rules.expressions import is_ragged
from dpl.types.rules.order import by_ranks, exchanged, in_order, kind_of, takes_in_order, types_wanted
from dpl.types.solve.meta import Type, prune
from dpl.types.state.context import Arg, Context
from dpl.types.state.env import Primitive, Value
from dpl.types.state.scope import Ambient, Definition, Frame

FOLLOWED = 400  # most calls that are followed
SWAPPED = ("module", "modules", "layers", "owned", "history", "horizon", "locals", "trail", "evidence", "frames",
           "ambient", "claims", "tied", "pending", "defining")  # fmt: skip


@record
class Replay:
    """The calls being followed (`open`), and the calls that were found to fit."""

    open: list[str] = field(default_factory=list)
    fitting: set[tuple[str, str]] = field(default_factory=set)
    budget: int = FOLLOWED

    def follow(
        self, cx: Context, entry: Value, name: str, args: list[Arg], expected: Type | None, head: Span
    ) -> list[Arg]:
        """Checks the called function at these arguments and raises the error found there.

        Returns the arguments; those that need not wait for a parameter's type are inferred."""
        definition = cx.definition(entry)
        args = [inferred(cx, arg) for arg in args]
        if definition is None or self.open.count(entry.name) > 1 or self.budget <= 0:
            return args
        known = [arg.value.ty if isinstance(arg.value, term.Node) else cx.solver.fresh() for arg in args]
        spans = [arg.value.span for arg in args] or [head]
        known += parameters(expected)
        p = printer(cx)
        key = entry.name, " ".join(p.type(t) for t in known)
        if known and key not in self.fitting:
            self.budget -= 1
            self.check_again(cx, definition, entry, name, known, spans)
            self.fitting.add(key)
        return args

    def check_again(
        self, cx: Context, definition: Definition, entry: Value, name: str, known: list[Type], spans: list[Span]
    ) -> None:
        binding = definition.binding
        params, body = definition.function
        if not params:
            return
        known = [*known, *(cx.solver.fresh() for _ in params)][: len(params)]
        wanted: Type = cx.solver.fresh()
        for t in reversed(known):
            wanted = ty.Fn(t, cx.solver.effect(), wanted)
        with within(cx, definition):
            for number, (param, t, span) in enumerate(zip(params, known, spans)):
                if isinstance(param, tree.PatAnnot):
                    ways = partial(self.exchanged, cx, entry, name, known, spans, number)
                    why = Why(f"argument {number + 1} of `{name}`", param.type.span, "as annotated", help=ways)
                    cx.unify(t, resolve(cx, param.type, Flexible.ALL), span, why)
            self.open.append(entry.name)
            try:
                lambdas(cx, params, body, binding.annot, binding.span, name, wanted, Flexible.ALL)
            except DplError as error:
                if not error.diagnostics:
                    raise
                guessed = name if entry.name in definition.home.guessed else ""
                result = recursion.outcome(entry.scheme.ty)
                first = recursion.with_helps(cx, error, error.__cause__, guessed, result).diagnostics[0]
                call = Call(name, spans[-1] if spans else None, described(cx, params, known))
                raise DplError(replace(first, path=(call, *first.path))) from None
            self.open.pop()

    @staticmethod
    def exchanged(cx: Context, entry: Value, name: str, known: list[Type], spans: list[Span], number: int) -> str:
        given, wanted, texts = known[: len(spans)], types_wanted(entry.scheme.ty), [span.text for span in spans]
        kinds = [kind_of(t) for t in given], [kind_of(t) for t in wanted]
        takes = partial(takes_in_order, cx, name, given)
        way = exchanged(name, *kinds, texts, number, takes) or by_ranks(name, given, wanted, texts, number, takes)
        return way or in_order(name, *kinds, texts, number, takes)


@contextmanager
def within(cx: Context, definition: Definition) -> Generator[None]:
    """Restores the scope of a definition: names mean what they meant there."""
    kept = {name: getattr(cx, name) for name in SWAPPED}
    home = definition.home
    for name in ("module", "modules", "layers", "owned", "history"):
        setattr(cx, name, getattr(home, name))
    cx.horizon = definition.horizon
    cx.locals = {name: list(stack) for name, stack in definition.locals.items()}
    cx.evidence = dict(home.global_evidence)
    cx.frames = [*definition.frames, Frame(cx.solver.level)]
    cx.ambient = Ambient(cx.solver.effect(), "fun")
    cx.trail, cx.claims, cx.tied, cx.pending, cx.defining = [], [], {}, [], ""
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(cx, name, value)


def inferred(cx: Context, arg: Arg) -> Arg:
    """The argument with its type inferred, unless it is better to wait for the parameter's type."""
    if isinstance(arg.value, term.Node) or waits(cx, arg.value):
        return arg
    return Arg(cx.infer(arg.value), arg.span)


def waits(cx: Context, e: tree.Expr) -> bool:
    """True if an argument is better inferred once its parameter's type is known, as functions are."""
    if isinstance(e, tree.Fun) or (isinstance(e, tree.ListLit) and (not e.items or is_ragged(e.items))):
        return True
    head, given = spine(e)
    entry = cx.find(head.name) if isinstance(head, tree.Var) else None
    if isinstance(entry, Primitive):
        return len(given) < entry.row.arity
    if not isinstance(entry, Value) or not entry.scheme.params:
        return False
    definition = cx.definition(entry)
    if definition is None:
        return not given and type(prune(entry.scheme.ty)) is ty.Fn
    return len(given) < len(definition.function[0])


def parameters(t: Type | None) -> list[Type]:
    """The types of the parameters of a function of type `t`."""
    found = []
    while t is not None and type(t := prune(t)) is ty.Fn:
        found.append(t.arg)
        t = t.result
    return found


def described(cx: Context, params: tuple, types: list[Type]) -> str:
    """Parameters with their types, for a message: `x : float[3], (a, b) : float * int`."""
    p = printer(cx)
    return ", ".join(f"{pattern(param)} : {p.type(t)}" for param, t in zip(params, types))


def pattern(p: tree.Pattern) -> str:
    match p:
        case tree.PatVar(_, name):
            return name
        case tree.PatAnnot(_, inner, _):
            return pattern(inner)
        case tree.PatTuple(_, items):
            return f"({', '.join(pattern(i) for i in items)})"
        case tree.PatAs(_, _, name):
            return name
        case _:
            return "_"


# ---- the message ----------------------------------------------------------------------------------------------------


def explained(cx: Context, error: DplError, again: Callable[[], None]) -> DplError:
    """The error found by following the calls, or else `error`; `again` checks the declaration once more."""
    if not error.diagnostics or error.diagnostics[0].code[:3] not in ("E02", "E03", "E04"):
        return error
    first, *rest = error.diagnostics
    warnings, cx.warnings = cx.warnings, Warnings()
    cx.replay = Replay()
    try:
        again()
    except DplError as found:
        return DplError(combined(first, found.diagnostics[0]), *rest) if found.diagnostics else error
    finally:
        cx.replay, cx.warnings = None, warnings
    return error


def combined(error: Diagnostic, deeper: Diagnostic) -> Diagnostic:
    """Combines both errors.  A size error points to the operation that fails; a type error, to the outer call."""
    if deeper.code[:3] not in ("E02", "E03", "E04"):
        return error
    if not deeper.path or deeper.code[:3] != "E02" or deeper.span is None or not error.note:
        return deeper
    label = Label(deeper.span, deeper.note or deeper.title)
    path = deeper.path if len(deeper.path) > 1 else ()
    labels = both(error.span or deeper.span, error.labels, (label,))
    return replace(error, labels=labels, path=path, helps=error.helps or deeper.helps)
