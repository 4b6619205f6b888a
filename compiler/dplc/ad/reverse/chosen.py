"""A function of few numbers that chooses between arms, as the kernel of a spline does, keeps these numbers alone.

    fn f(x) -> (f64)                              fn f.fwd(x) -> (f64, (f64))
      e = lt x 2.0                                  ...;  return y, (x)
      y = if e { yield mul x x }          =>      fn f.bwd((x), cy, cx) -> (f64)
          else { yield sin x }                      e = lt x 2.0
      return y                                      c = if e { ...;  yield 2 x cy } else { ...;  yield cy * cos x }

Else each call would keep a record of its branches; f.bwd computes them again.  The slope would be as short, but may
leave the range of numbers where the products of a cotangent, one by one, do not.  One number varies, so little is
computed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.ad.activity import Graph
from dplc.ad.derivatives import Derivatives, Reversed
from dplc.ad.reverse.preaccumulation import COPIES, ends_of, spread
from dplc.ad.reverse.steps import step
from dplc.ad.reverse.tape import Reverse
from dplc.ad.tangents.symbolic_zeros import Zeros
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.copy import Copier
from dplc.flat.walk import every
from dplc.passes.simplify.inlined import is_on_numbers
from dplc.passes.simplify.purity import shareable
from dplc.passes.simplify.simplify import simplified

FEW = 4  # numbers that are kept in place of a record


def serves(fn: f.Fn, body: f.Block, active: Sequence[int], wanted: Sequence[tuple[int, Zeros]]) -> bool:
    """True for a function of numbers with branches, and nothing else that takes time, if one number varies."""
    few = len(fn.params) <= FEW and all(isinstance(param.ty, f.Num) for param in fn.params)
    if not (few and len(active) == len(wanted) == 1):
        return False
    return any(isinstance(bind.rhs, f.If) for bind in every(body)) and all(map(is_plain, every(body)))


def is_plain(bind: f.Bind) -> bool:
    """True for a branch, and for what gives the same numbers again."""
    if isinstance(bind.rhs, f.Op) and not shareable(bind.rhs):
        return False
    return isinstance(bind.rhs, f.If) or is_on_numbers(bind)


def computed_again(
    d: Derivatives, fn: f.Fn, graph: Graph, made: Reversed, active: Sequence[int], wanted: Sequence[tuple[int, Zeros]]
) -> list[Zeros]:
    """Writes f.fwd, which keeps the numbers, and f.bwd.  Returns the known zeros of the accumulators."""
    work = Reverse(d, graph, active, wanted, step, restored=())
    there, back, zeros = work.function(fn, made.fwd, made.bwd, f"res.{made.fwd}")
    b = Builder(d.supply)
    ys = b.calls(fn.name, fn.params, fn.results, fn.span)
    value = b.make(fn.params)
    made.residual = value.ty
    d.program.fns[made.fwd] = f.Fn(made.fwd, fn.params, (*fn.results, value.ty), b.block(*ys, value), fn.label, fn.span)

    b = Builder(d.supply)
    kept, *cts = back.params
    param = b.var("res", value.ty)
    given = dict[str, f.Atom]({p.name: b.get(param, k) for k, p in enumerate(fn.params)})
    again = Copier(d.supply, given).block(there.body)
    tail = Copier(d.supply, {kept.name: again.results[-1]}).block(back.body)
    body = f.Block((*b.binds, *again.binds, *tail.binds), tail.results)
    if ends_of(again) * len(every(tail)) <= COPIES:
        body = spread(d.supply, f.Block((*b.binds, *again.binds), ()), (), tail)
    whole = f.Fn(made.bwd, (param, *cts), back.results, body, back.label, fn.span)
    d.program.fns[made.bwd] = simplified(whole, d.supply, d.program)
    return zeros
