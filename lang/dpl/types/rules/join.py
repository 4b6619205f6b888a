"""The type of several branches: that of the first, with new unknown sizes where sizes need not be equal.

if c then (ys : float[?1]) else (zs : float[?2])   ->   float[?3]
"""

from __future__ import annotations

from dpl.core import ty
from dpl.types.solve import sizes
from dpl.types.solve.meta import EffectMeta, Meta, Type, prune, prune_effect
from dpl.types.solve.scheme import rebuild
from dpl.types.state.context import Context


def join(cx: Context, a: Type, b: Type) -> Type:
    """The common type of two branches; if there is none, a later unification reports it."""
    a, b = prune(a), prune(b)
    match a, b:
        case ty.Arr(x, p), ty.Arr(y, q):
            return ty.Arr(join(cx, x, y), _join_sizes(cx, p, q))
        case ty.Tup(xs), ty.Tup(ys) if len(xs) == len(ys) and a is not b:
            return ty.Tup(tuple(join(cx, x, y) for x, y in zip(xs, ys)))
        case _:
            return a


def _join_sizes(cx: Context, p: ty.Size, q: ty.Size) -> ty.Size:
    marks = {name[0] for name in sizes.names(sizes.sub(cx.solver.sizes.norm(p), cx.solver.sizes.norm(q)))}
    return cx.solver.unknown_size() if "?" in marks and "!" not in marks else p


def open_sizes(cx: Context, t: Type) -> Type:
    """`t` with each size replaced by an unknown."""
    t = prune(t)
    if type(t) is ty.Arr:
        return ty.Arr(open_sizes(cx, t.elem), cx.solver.size())
    return t if type(t) is Meta else rebuild(t, lambda part: _opened(cx, part))


def _opened(cx: Context, part):
    if type(part) is ty.Size:
        return cx.solver.size()
    effect = isinstance(prune_effect(part), EffectMeta | ty.Pure | ty.Ctl) or (
        type(part) is ty.Var and part.sort == "effect"
    )
    return part if effect else open_sizes(cx, part)
