"""A reversed function by a wider one: for more cotangents of results and more accumulators.

A recursive function may need a wider derivative for its own calls than its first caller asks for.  Written out, the
narrower one would be a copy of the first step, in each level of nested derivatives again.  So it calls the wider one:

    fn f.bwd(res, dy, c)      (c', _) = f.bwd.2(res, dy, null, c, 0.0);  return c'
"""

from __future__ import annotations

from dpl.node import replace

from dplc.ad.derivatives import Derivatives, Reversed
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, Part, Zeros, sent, signed
from dplc.flat import term as f
from dplc.flat.build import Builder

Leaves = tuple[tuple[int, ...], tuple[tuple[int, Zeros], ...]]  # the active ones of parameters, the wanted of results


def covers(more: Leaves, less: Leaves) -> bool:
    """True if a derivative serves for fewer leaves: it accepts symbolic zeros as cotangents of the others."""
    (active, wanted), (fewer, asked) = more, (less[0], dict(less[1]))
    return (
        set(active) >= set(fewer)
        and dict(wanted).keys() >= asked.keys()
        and all(zeros >= asked.get(i, MAYBE_ZERO) for i, zeros in wanted)
    )


def by_wider(d: Derivatives, fn: f.Fn, made: Reversed, less: Leaves, wide: Reversed, more: Leaves) -> list[Zeros]:
    """Replaces the two functions of `made` by calls of those of `wide`.  Returns the known zeros of the
    accumulators."""
    fns = d.program.fns
    types = (*fn.results, wide.residual)
    b = Builder(d.supply)
    body = b.block(*b.calls(wide.fwd, fns[made.fwd].params, types, fn.span))
    fns[made.fwd] = replace(fns[made.fwd], results=types, body=body)

    _, *given = fns[made.bwd].params
    seeds = {i: seed for (i, _), seed in zip(less[1], given, strict=False)}
    accs = dict(zip(less[0], given[len(seeds) :], strict=True))
    outs = [leaf for ty in fn.results for leaf in d.tangents.leaves(ty)]
    ins = [leaf for p in fn.params for leaf in d.tangents.leaves(p.ty)]
    b = Builder(d.supply)
    residual = b.var("res", wide.residual)
    asked = dict(less[1])
    args = [received(b, seeds[i], asked[i], zeros) if i in seeds else sent(b, None, outs[i]) for i, zeros in more[1]]
    args += [accs[i] if i in accs else sent(b, None, ins[i]) for i in more[0]]
    after = dict(zip(more[0], b.calls(wide.bwd, (residual, *args), [ins[i] for i in more[0]], fn.span), strict=True))
    body = b.block(*[after[i] for i in less[0]])
    fns[made.bwd] = replace(fns[made.bwd], params=(residual, *given), body=body)
    made.residual, made.jacobian = wide.residual, False
    zeros = dict(zip(more[0], wide.zeros, strict=True))
    return [zeros[i] for i in less[0]]


def received(b: Builder, seed: f.Atom, less: Zeros, more: Zeros) -> f.Atom:
    """A cotangent with the zeros `less` for a function that accepts `more`."""
    return signed(b, Part(seed), seed.ty) if less is NO_ZEROS and more is MAYBE_ZERO else seed
