"""Steps that are indented as if they belonged to the body above them, as GCC's -Wmisleading-indentation finds them.

The body of a loop and the branches of an `if` are one expression, and end at the next `;`.
"""

from __future__ import annotations

from dpl.diagnostics import Diagnostic, Label
from dpl.source import Span
from dpl.syntax import tree

STEPS = "several steps of a body are put in parentheses:  (a; b)"


def ends_at_semicolon(e: tree.Expr) -> bool:
    """Whether an expression ends at a `;`, and not at a parenthesis."""
    return e.span.source.text[e.span.end :].lstrip().startswith(";")


def misleading(first: tree.Expr, second: tree.Expr) -> Diagnostic | None:
    """The warning for `first; second` if the second step stands below a body with which the first one ends."""
    step = second.first if isinstance(second, tree.Seq) else second
    line, column = place(step.span)
    if line == first.span.line or not begins_line(step.span) or not ends_at_semicolon(first):
        return None
    owner: tree.Expr | None = first
    while owner is not None:
        body = last_part(owner)
        is_body = isinstance(owner, (tree.LoopFor, tree.LoopWhile, tree.If))
        if body is not None and is_body and begins_line(body.span) and place(body.span)[1] == column:
            where = "this branch" if isinstance(owner, tree.If) else "the body of this loop"
            title = f"this step is indented like {where}, but comes after it"
            helps = (STEPS, "or line it up with what it follows")
            labels = (Label(owner.span, "this ends before the `;`"),)
            return Diagnostic("W0208", title, step.span, labels=labels, helps=helps)
        owner = body
    return None


def last_part(e: tree.Expr) -> tree.Expr | None:
    """The part with which an expression ends, if it reaches as far as it can."""
    match e:
        case tree.LoopFor() | tree.LoopWhile():
            return e.body
        case tree.If():
            return e.else_ or e.then
        case tree.Assign():
            return e.value
        case tree.Binary():
            return e.right
        case _:
            return None


def place(span: Span) -> tuple[int, int]:
    return span.source.position(span.start)


def begins_line(span: Span) -> bool:
    """Whether nothing stands before it on its line."""
    line, column = place(span)
    return not span.source.line(line)[: column - 1].strip()
