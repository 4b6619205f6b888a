"""Sizes that a function asks of its arguments, where these have told its type: run-time checks.

grad f xs           ->   Check(xs, dim(xs, 0) = 3)    f : float[3] -> float; xs : float[?1] is checked first
map (fun (r : float[3]) -> e) rows
                    ->   fun r -> let _ = Check(r, dim(r, 0) = 3) in e
"""

from __future__ import annotations

from dpl.core import term, ty
from dpl.syntax import tree
from dpl.types.solve.meta import Meta, Type, prune
from dpl.types.solve.scheme import rebuild
from dpl.types.state.context import Context
from dpl.types.state.deferred import Deferred


def asked(cx: Context, t: term.Term, of: Type, f: Type, wanted: Type) -> term.Term:
    """`t`, an argument for a parameter of type `of`, with the checks for another one: a function of type `f`, where one
    of type `wanted` stands."""
    f, wanted, expected = prune(f), prune(wanted), of
    while isinstance(wanted, ty.Fn) and isinstance(f, ty.Fn):
        if type(wanted.arg) is Meta:
            expected = _with(expected, prune(wanted.arg), f.arg)
        elif prune(of) == prune(wanted.arg):
            expected = f.arg
        f, wanted = prune(f.result), prune(wanted.result)
    return t if expected is of else cx.confirm(t, expected)


def _with(t: Type, old: Type, new: Type) -> Type:
    """`t` with another type in place of what is known of an unknown one."""
    if type(t) is Meta:
        return new if prune(t) is old else t
    return rebuild(t, lambda part: _with(part, old, new)) if isinstance(t, ty.Arr | ty.Tup) else t


def annotated(cx: Context, body: term.Term, param: term.Var, pattern: tree.Pattern, wanted: Type) -> term.Term:
    """`body`, preceded by a check that a parameter has the sizes of its annotation."""
    while isinstance(pattern, tree.PatAnnot):
        pattern = pattern.pattern
    checked = cx.confirm(term.Var(pattern.span, param.ty, param.name), wanted)
    return term.Let(param.span, body.ty, cx.unique("_"), (), checked, body)


def claimed(cx: Context, body: term.Term, param: term.Term, claims: list) -> term.Term:
    """`body`, preceded by a check that the sizes of a parameter equal the int parameters that they name."""
    pairs = tuple(
        (actual, expected, "the size of this argument is not the int that names it") for actual, expected in claims
    )
    check = Deferred(
        param.span,
        param.ty,
        lambda zonk: term.Check(
            param.span,
            zonk.type(param.ty),
            cx.unique("argument"),
            zonk(param),
            tuple((zonk(a), zonk(b), c) for a, b, c in pairs),
        ),
    )
    return term.Let(param.span, body.ty, cx.unique("_"), (), check, body)
