"""The sizes that the types of arrays say, as ints, for where an array without rows cannot tell them.

[for x in xs -> [x, x]]   ->   sized(Build(k, length xs, ...), 2)
map f xs                  ->   map[float[m], float[2], n] with the sizes ((m), (2), ()) applied to f, xs

A size that nothing in scope tells (a `?`) is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpl.core import term, ty
from dpl.source import Span
from dpl.types.checks import compute, int_lit
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
