"""Taylor series of a function with a custom rule: along x(t), the rule gives the slope of the result.

    y(t) = f x(t)     y'(t) = the tangent part of f.jvp (x(t), x'(t)),  to one order less;  y is its integral

So f.jet is made of (f.jvp).jet; to order 1 it is f.jvp.  A rule that calls f itself needs one order less each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.ad.derivatives import Derivatives, Forwarded
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, ZERO_ELEMENTS, Part, Zeros, sent, signed
from dplc.ad.tangents.types import zero
from dplc.ad.taylor.jet import innermost, outermost
from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.types import elem_of
from dplc.passes import NeedsInterpreter


def series(d: Derivatives, fn: f.Fn, made: Forwarded, active: Sequence[tuple[int, Zeros]]) -> None:
    """Writes f.jet of a function with a rule."""
    b, order = Builder(d.supply), f.Var(d.supply.fresh("n"), f.I64)
    at = {i: ty for i, ty in zip(indices(d, fn.params), leaves(d, fn.params), strict=True)}
    given = [b.var("d", at[i]) for i, _ in active]
    ends = leaves(d, fn.results)
    types = [ends[i] for i in made.results]
    if not all(isinstance(ty, f.Arr) and f.is_float(ty.elem) for ty in (*types, *(xs.ty for xs in given))):
        raise NeedsInterpreter("Taylor series of data in a function with a rule of its own", fn.span)
    first = d.forward(fn.name, tuple([(i, slope_zeros(d, fn, i, zeros)) for i, zeros in active]), fn.span)
    parts = [parted(b, xs, zeros) for xs, (_, zeros) in zip(given, active, strict=True)]
    jvp = d.program.fns[first.name]
    slopes = tuple(part[1] for part in parts)
    once, more = b.inner(), b.inner()
    values = once.calls(jvp.name, (*fn.params, *slopes), jvp.results, fn.span)
    width = len(fn.results)
    alone = once.block(*values[:width], *(joined(once, dy, None, order) for dy in values[width:]))
    outs = b.bind(
        f.If(b.op("eq", (order, integer(1))), alone, followed(d, more, fn, jvp, active, parts, order)),
        (*fn.results, *types),
    )
    d.program.fns[made.name] = f.Fn(
        made.name, (*fn.params, *given, order), tuple(a.ty for a in outs), b.block(*outs), fn.label, fn.span
    )


def followed(
    d: Derivatives, b: Builder, fn: f.Fn, jvp: f.Fn, active: Sequence[tuple[int, Zeros]],
    parts: Sequence[tuple[f.Atom, f.Atom, f.Atom]], order: f.Var,
) -> f.Block:  # fmt: skip
    """The results of f, and their series, for orders above 1."""
    start = len(d.param_nodes(fn))
    both = (*active, *((start + k, zeros) for k, (_, zeros) in enumerate(active)))
    inner = d.forward(jvp.name, both, fn.span, d.series)
    shorts, slopes, rates = zip(*parts, strict=True)
    ends = leaves(d, jvp.results)
    args = (*fn.params, *slopes)
    if inner.results:
        more = (*shorts, *rates, b.op("sub", (order, integer(1))))
        called = b.calls(inner.name, (*args, *more), (*jvp.results, *(ends[i] for i in inner.results)), fn.span)
    else:
        called = b.calls(jvp.name, args, jvp.results, fn.span)
    series_of = dict(zip(inner.results, called[len(jvp.results) :], strict=True))
    width, before = len(fn.results), len(leaves(d, fn.results))
    tangents = called[width : len(jvp.results)]
    return b.block(*called[:width], *(joined(b, dy, series_of.get(before + k), order) for k, dy in enumerate(tangents)))


def indices(d: Derivatives, params: Sequence[f.Var]) -> range:
    return range(sum(len(d.tangents.leaves(p.ty)) for p in params))


def leaves(d: Derivatives, of: Sequence[f.Var] | Sequence[f.Type]) -> list[f.Type]:
    """The types of the leaves of series, for variables or types."""
    return [leaf for a in of for leaf in d.series.tangents.leaves(a.ty if isinstance(a, f.Var) else a)]


def slope_zeros(d: Derivatives, fn: f.Fn, i: int, zeros: Zeros) -> Zeros:
    """The zeros of a slope, given those of its series."""
    types = [leaf for p in fn.params for leaf in d.tangents.leaves(p.ty)]
    return MAYBE_ZERO if zeros is ZERO_ELEMENTS and f.is_float(types[i]) else zeros


def parted(b: Builder, xs: f.Var, zeros: Zeros) -> tuple[f.Atom, f.Atom, f.Atom]:
    """Splits a series of x: the series without its last coefficient, the slope, and the series of the slope."""
    assert isinstance(xs.ty, f.Arr)
    some = b.inner()
    full = outermost(some, xs)
    count = some.op("sub", (some.op("dim", (full,), k=0), integer(1)))
    slope = some.op("index", (full, integer(0)), unchecked=True)
    short = some.op("slice", (full, integer(0), count), unchecked=True)
    rest = innermost(some, some.op("slice", (full, integer(1), some.op("dim", (full,), k=0)), unchecked=True))
    slope = sent(some, Part(slope, NO_ZEROS if zeros is NO_ZEROS else MAYBE_ZERO), slope.ty)
    there = (innermost(some, short), slope, some.op("mul", (rest, numbers(some, count, 2, xs))))
    if zeros is not MAYBE_ZERO:
        b.binds += some.binds
        return there
    nothing = f.Block((), tuple(signed(b, None, a.ty) for a in there))
    short, slope, rates = b.choose(b.op("is_null", (xs,)), nothing, some.block(*there))
    return short, slope, rates


def joined(b: Builder, dy: f.Atom, dys: f.Atom | None, order: f.Atom) -> f.Atom:
    """The integral: the series of a value, given its slope `dy` and the series of the slope."""
    some = b.inner()
    rest = zero(f.Arr(elem_of(dy.ty), len(some.dims(dy)) + 1)) if dys is None else dys
    solid = some.op("acc_zeros", (rest, *some.dims(dy), some.op("sub", (order, integer(1)))))
    full = innermost(some, some.op("concat", (some.op("array", (dy,)), outermost(some, solid))))
    there = some.op("div", (full, numbers(some, order, 1, dy)))
    if f.is_float(dy.ty):
        b.binds += some.binds
        return there
    return b.choose(b.op("is_null", (dy,)), f.Block((), (zero(there.ty),)), some.block(there))[0]


def numbers(b: Builder, count: f.Atom, start: int, like: f.Atom) -> f.Var:
    """`count` consecutive numbers from `start`, of the float type of `like`."""
    elem = elem_of(like.ty)
    assert isinstance(elem, f.Num)
    k, inner = b.var("k", f.I64), b.inner()
    body = inner.block(inner.op("cast", (inner.op("add", (k, integer(start))),), to=elem.name))
    return b.bind(f.Build(k, count, body), (f.Arr(elem, 1),))[0]
