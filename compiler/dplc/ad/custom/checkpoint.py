"""Checkpoints (Griewank 1992): f.fwd keeps only its arguments.  f.bwd runs the ordinary f.fwd again, without
printing, then the ordinary f.bwd."""

from __future__ import annotations

from dplc.ad.derivatives import Derivatives, Reversed
from dplc.ad.tangents.symbolic_zeros import Zeros
from dplc.flat import term as f
from dplc.flat.build import Builder


def checkpoint(
    d: Derivatives, fn: f.Fn, made: Reversed, active: tuple[int, ...], wanted: tuple[tuple[int, Zeros], ...]
) -> list[Zeros]:
    """Writes f.fwd and f.bwd of a checkpoint."""
    there, back = Builder(d.supply), Builder(d.supply)
    ys = there.calls(fn.name, fn.params, fn.results, fn.span)
    value = there.make(fn.params)
    made.residual = value.ty
    inside = f.Fn(d.fresh(fn.name, "inside"), fn.params, fn.results, fn.body, fn.label, fn.span)
    d.program.fns[inside.name] = inside
    true = d.reverse(inside.name, active, wanted, fn.span)
    types = [leaf for ty in fn.results for leaf in d.tangents.leaves(ty)]
    params = [leaf for p in fn.params for leaf in d.tangents.leaves(p.ty)]
    param = back.var("res", value.ty)
    seeds = [back.var("c", types[i]) for i, _ in wanted]
    accs = [back.var("c", params[i]) for i in active]
    args = [back.get(param, i) for i in range(len(fn.params))]
    *_, residual = back.calls(d.silent.name(true.fwd), args, (*fn.results, true.residual), fn.span)
    totals = back.calls(true.bwd, (residual, *seeds, *accs), [a.ty for a in accs], fn.span)
    d.program.fns[made.fwd] = f.Fn(
        made.fwd, fn.params, (*fn.results, value.ty), there.block(*ys, value), fn.label, fn.span
    )
    d.program.fns[made.bwd] = f.Fn(
        made.bwd, (param, *seeds, *accs), tuple(a.ty for a in accs), back.block(*totals), fn.label, fn.span
    )
    return true.zeros
