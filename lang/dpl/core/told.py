"""core -> core: a failed assertion shows the values of both sides.

    assert (a = b)      =>      let l = a in let r = b in if l = r then () else refuted $"{l} = {r} does not hold"

The sides are converted to text only on failure.
"""

from __future__ import annotations

from dpl.core import term as c
from dpl.core import ty as t
from dpl.node import replace
from dpl.source import Span

COMPARED = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def told(e: c.Term) -> c.Term:
    """A term of type unit that stops the program unless `e` holds.  For a failed comparison it reports both sides; for
    `a && b`, the one that fails."""
    match e:
        case c.Prim(span, _, op, (left, right)) if op in COMPARED:
            return compared(span, op, left, right)
        case c.If(span, _, cond, then, c.Lit(_, _, False)):
            return c.Let(span, t.UNIT, "_", (), told(cond), told(then))
        case c.If(_, _, _, then, other):
            return replace(e, ty=t.UNIT, then=told(then), else_=told(other))
        case c.Let(body=body) | c.LetRec(body=body):
            return replace(e, ty=t.UNIT, body=told(body))
        case c.Match(_, _, _, arms):
            return replace(e, ty=t.UNIT, arms=tuple(replace(arm, body=told(arm.body)) for arm in arms))
        case _:
            return c.Prim(e.span, t.UNIT, "assert", (e,))


def compared(span: Span, op: str, left: c.Term, right: c.Term) -> c.Term:
    sides = [c.Var(side.span, side.ty, name) for side, name in ((left, "left."), (right, "right."))]
    quote = '"' if left.ty == t.STRING else ""
    texts = [c.Prim(side.span, t.STRING, "show", (side,)) for side in sides]
    between = c.Lit(span, t.STRING, f"{quote} {COMPARED[op]} {quote}")
    said: c.Term = c.Lit(span, t.STRING, quote)
    for part in (texts[0], between, texts[1], c.Lit(span, t.STRING, f"{quote} does not hold")):
        said = c.Prim(span, t.STRING, "append", (said, part))
    holds = c.Prim(span, t.BOOL, op, tuple(sides))
    body: c.Term = c.If(span, t.UNIT, holds, c.Tuple(span, t.UNIT, ()), c.Prim(span, t.UNIT, "refuted", (said,)))
    for side, value in reversed(list(zip(sides, (left, right), strict=True))):
        body = c.Let(span, t.UNIT, side.name, (), value, body)
    return body
