"""The sizes that the types of arrays say, as ints, for where an array without rows cannot tell them.

[for x in xs -> [x, x]]   ->   sized(Build(k, length xs, ...), 2)
map f xs                  ->   map[float[m], float[2], n] with the sizes ((m), (2), ()) applied to f, xs

A size that nothing in scope tells (a `?`) is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpl.core import term, ty
from dpl.source import Span
from dpl.types.checks import compute, dim, int_lit
from dpl.types.deferred import Deferred
from dpl.types.meta import dimensions

if TYPE_CHECKING:
    from dpl.types.context import Context


def inner_sizes(zonk: Any, t: Any, evidence: dict[str, term.Term], span: Span) -> tuple[term.Term, ...]:
    """Those of a type, outermost first; none of what is no array."""
    return tuple([zonk(_size(zonk.size(size), evidence, span)) for size in dimensions(t)[0]])


def _size(size: ty.Size, evidence: dict[str, term.Term], span: Span) -> term.Term:
    found = compute(size, evidence, span)
    if found is None:
        return int_lit(span, 0)
    if size.const < 0 or any(factor < 0 for _, factor in size.terms):  # a count that was never asked for
        return term.Prim(span, ty.I64, "max", (found, int_lit(span, 0)))
    return found


def sized(cx: Context, array: term.Term) -> term.Term:
    """An array that may have no rows, with the inner sizes that its type says."""
    evidence = cx.known_sizes() if cx.ints else dict(cx.evidence)

    def build(zonk: Any) -> term.Term:
        t = zonk.type(array.ty)
        if not isinstance(t.elem, ty.Arr | ty.Var):
            return zonk(array)
        return term.Prim(array.span, t, "sized", (zonk(array), *inner_sizes(zonk, t.elem, evidence, array.span)))

    return Deferred(array.span, array.ty, build, (array,))


def agreeing(cx: Context, operation: term.Prim) -> term.Term:
    """An operation on two arrays whose sizes are to agree, which inference could not tell: where one has no rows, its
    inner sizes may be no more than a guess, and are then those of the other."""
    a, b = [term.Var(t.span, t.ty, cx.unique("operand")) for t in operation.args]
    ranks = [len(dimensions(t.ty)[0]) for t in (a, b)]
    if operation.op == "matmul":
        fitted = _like(a, ranks[0], [None] * (ranks[0] - 1) + [dim(b, 0, b.span)] if ranks[1] else []), b
    else:
        sizes = [[dim(t, k, t.span) for k in range(rank)] for t, rank in zip((a, b), ranks)]
        others = [
            [None] * max(0, p - q) + sizes[1 - i][max(0, q - p) :] for i, (p, q) in enumerate((ranks, ranks[::-1]))
        ]
        fitted = tuple([_like(t, rank, other) for t, rank, other in zip((a, b), ranks, others)])
    made: term.Term = term.Prim(operation.span, operation.ty, operation.op, fitted)
    for variable, t in reversed(list(zip((a, b), operation.args))):
        made = term.Let(operation.span, operation.ty, variable.name, (), t, made)
    return made


def _like(array: term.Var, rank: int, others: list) -> term.Term:
    """An array with inner sizes that are known of another, if it has no rows."""
    if rank < 2 or not any(other is not None for other in others[1:]):
        return array
    own = [dim(array, k, array.span) for k in range(rank)]
    sizes = [
        n if other is None else term.Prim(array.span, ty.I64, "max", (n, other))
        for n, other in list(zip(own, others))[1:]
    ]
    return term.Prim(array.span, array.ty, "sized", (array, *sizes))
