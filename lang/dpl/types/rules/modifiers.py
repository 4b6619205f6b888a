"""Definitions that read like those of another language: `let mut x = 1` and `let float x = 1.0` define functions, and
`fib n-1` in `fib` calls `fib n` again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpl.core import term, ty
from dpl.diagnostics import Diagnostic, Edit
from dpl.source import Span
from dpl.syntax import tree
from dpl.syntax.foreign import without_modifier
from dpl.types.messages.parts import is_number
from dpl.types.rules.quiet import is_quiet
from dpl.types.solve.meta import Type, prune
from dpl.types.state.context import Context


def modified(b: tree.Binding) -> Diagnostic | None:
    """The warning for a function that has the name of a modifier or of a type, and does not use its only parameter."""
    if not (isinstance(b.pattern, tree.PatVar) and len(b.params) == 1 and isinstance(b.params[0], tree.PatVar)):
        return None
    word, name = b.pattern.name, b.params[0].name
    helps = without_modifier(word, name)
    if not helps or name.startswith("_") or re.search(rf"(?<![\w']){re.escape(name)}(?![\w'])", b.body.span.text):
        return None
    title = f"this defines a function `{word}`, which does not use its parameter `{name}`"
    edits = (Edit(Span(b.span.source, b.pattern.span.start, b.params[0].span.start), ""),)
    return Diagnostic("W0212", title, b.pattern.span, helps=helps, edits=edits)


def endless(cx: Context, b: tree.Binding, name: str, value: term.Term) -> Diagnostic | None:
    """The warning for `let rec fib n = ... fib n-1 ...`: it is `(fib n) - 1`, and `fib` calls itself without end.
    Where something changes between two calls, as in `... Some _ -> rest file + 1`, they may end."""
    if not (ends_in_number(value.ty) and is_quiet(cx, value)):
        return None
    plain = [p.pattern if isinstance(p, tree.PatAnnot) else p for p in b.params]
    params = [p.name for p in plain if isinstance(p, tree.PatVar)]
    parts = list(inside(b.body))
    other = any(isinstance(p, tree.PatVar) and p.name in params for p in parts)  # another value may have the name
    changes = any(isinstance(p, tree.Unary) and p.op == "!" for p in parts)
    if not params or len(params) != len(plain) or other or changes:
        return None
    from dpl.syntax.formatter.shape import spine

    for e in parts:
        if isinstance(e, tree.Binary) and e.op in "+-" and isinstance(e.right, tree.Lit):
            head, args = spine(last_operand(e.left))
            own = isinstance(head, tree.Var) and head.name == name
            if own and [a.name if isinstance(a, tree.Var) else "" for a in args] == params:
                at = Span(e.span.source, head.span.start, e.right.span.end)
                given = Span(e.span.source, args[-1].span.start, e.right.span.end)
                call = Span(e.span.source, at.start, given.start + len(params[-1]))
                title = f"this is  ({call.text}) {e.op} {e.right.span.text}"
                right = " ".join((name, *params[:-1], f"({given.text})"))
                helps = (f"a sum as an argument is put in parentheses:  {right}",)
                return Diagnostic("W0214", f"{title} : `{name}` calls itself with what it was given, without end", at,
                                  helps=helps, edits=(Edit(given, f"({given.text})"),))  # fmt: skip
    return None


def ends_in_number(t: Type) -> bool:
    """Whether the last parameter is a number, and none is a function, which may change something."""
    last, t = ty.UNIT, prune(t)
    while type(t) is ty.Fn:
        last = prune(t.arg)
        if type(last) is ty.Fn:
            return False
        t = prune(t.result)
    return is_number(last)


def last_operand(e: tree.Expr) -> tree.Expr:
    while isinstance(e, tree.Binary):
        e = e.right
    return e


def inside(part: object) -> Iterator[tree.Node]:
    """A tree and all its parts, from left to right."""
    if isinstance(part, tuple):
        for one in part:
            yield from inside(one)
    elif isinstance(part, tree.Node):
        yield part
        for name in part.__match_args__:
            yield from inside(getattr(part, name))
