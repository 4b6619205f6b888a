"""Errors of `shift` and `reset`: calls that capture their context, and answer types."""

from __future__ import annotations

from dpl.core import ty
from dpl.diagnostics import Call, DplError, Label
from dpl.source import Span
from dpl.types.messages.parts import Why, both, made, phrase, printer
from dpl.types.messages.pretty import Printer
from dpl.types.solve.meta import prune, prune_effect
from dpl.types.solve.unify import Clash

ANSWER = "a `shift` and its `reset` must have one answer type (answer-type modification is not supported)"
MIXED = {"Control.generator", "Prob.tree"}  # the answers of two modules
OF_PROB = "in a model of `Prob`:  Prob.observe c  for  Control.require c , Prob.uniform xs  for  Control.choose xs"


def answer(cx, p: Printer) -> str:
    """The answer type that a `shift` has here, or "" if none is known."""
    effect = prune_effect(cx.ambient.effect)
    return p.type(effect.answer) if type(effect) is ty.Ctl else ""


def answers(cx, one, other, span: Span, why: Why) -> DplError:
    """The error for two different answer types."""
    p = printer(cx)
    left, right = phrase(one) or p.type(one), phrase(other) or p.type(other)
    return cx.fail(
        "E0552",
        f"the answer types differ: {left} and {right}",
        span,
        note=f"{why.what} is {left}" if why.what else "",
        labels=both(span, why.labels(), made(one, left, span), made(other, right, span)),
        helps=(OF_PROB,) if {getattr(prune(t), "name", "") for t in (one, other)} == MIXED else (ANSWER,),
    )


def effect(cx, clash: Clash, span: Span, what: str) -> DplError:
    """The error for a call that captures its context where this is not allowed."""
    if clash.kind == "answer":
        return answers(cx, clash.left, clash.right, span, Why())
    effects = [prune_effect(e) for e in (clash.left, clash.right)]
    ctl = next((e for e in effects if type(e) is ty.Ctl), None)
    who = f"`{what}`" if what else "this"
    match cx.ambient.reason:
        case "bulk":
            return cx.fail(
                "E0551",
                f"{who} captures its context by `shift`, which a comprehension cannot allow",
                span,
                labels=(Label(cx.ambient.span, "its elements may be computed in parallel"),),
                helps=("use `List.map`, `fold` or `loop`, which run in order",),
                path=captured(cx, what),
            )
        case "top":
            shown = printer(cx).type(ctl.answer) if ctl is not None else "'a"
            answer = "" if shown.startswith("'") else f"; its answer type is {shown}"
            return cx.fail(
                "E0550",
                f"{who} uses `shift` with no `reset` around it",
                span,
                note=f"captured up to here{answer}",
                helps=("put the part that is to be captured in  reset (...)",),
                path=captured(cx, what),
            )
        case _:
            pass
    return wanted_pure(cx, span, who)


def wanted_pure(cx, span: Span, what: str) -> DplError:
    """The error for a function that captures its context where a pure one is wanted."""
    text = span.source.text[span.start : span.end]
    name, labels = text, ()
    if name not in cx.captures and cx.defining in cx.captures:
        name, place = cx.captures[cx.defining]
        labels = (Label(place, f"`{name}` captures here" if name else "captured here"),) if span.contains(place) else ()
    path = captured(cx, name)
    if path and path[-1].span is not None:
        labels = (*labels, Label(path[-1].span, "captured here"))
    bulk = not any(name in what for name in ("grad", "jvp", "vjp", "diff", "Ad."))
    other = ", or use `List.map`, `fold` or `loop`, which take any function" if bulk else ""
    return cx.fail(
        "E0551",
        "a function that captures its context by `shift` stands where a pure one is wanted",
        span,
        note=f"{what or 'this'} must not capture its context",
        labels=labels,
        path=path,
        helps=(f"put a `reset` inside the function{other}",),
    )


def captured(cx, what: str) -> tuple[Call, ...]:
    """The calls from `what` to the `shift` that captures."""
    steps = []
    while what in cx.captures and len(steps) < 20:
        called, span = cx.captures[what]
        steps.append(Call(what, span, f"calls {called}" if called else "shift"))
        what = called
    return tuple(steps)
