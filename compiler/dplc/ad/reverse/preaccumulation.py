"""Preaccumulation (Griewank and Walther 2008, ch. 10): a recursion on few numbers returns its Jacobian with its value.

    fn f(x, n) -> (f64)                    fn f.fwd(x, n) -> (f64, (f64))
      ...                                    ...
      a = f(x, n - 1);  b = f(x, n - 2)      (a, ja) = f.fwd(x, n - 1);  (b, jb) = f.fwd(x, n - 2)
      y = mul a b                      =>    y = mul a b
      return y                               ca = b;  cb = a;  return y, (ca * ja + cb * jb)
                                           fn f.bwd((j), cy, cx) -> (f64)
                                             return cx + cy * j

An infinite cotangent is multiplied with the sum of the slopes of several paths; of these, one may be 0.0.

Else reverse mode keeps a record for each call of a tree of calls, until the last one has returned.  Here each call is
reversed as soon as its value is known, and what it kept is gone.  That costs a product for each number that varies and
each result, so these have to be few.

The backward code of the call follows its forward code in the same function.  What follows a branch is copied into its
arms, where the simplifier finds which way the backward code goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dplc.ad.activity import Graph
from dplc.ad.derivatives import Derivatives, Reversed
from dplc.ad.reverse.jacobian import products
from dplc.ad.reverse.steps import step
from dplc.ad.reverse.tape import Reverse
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, Zeros, by_sign, either, sent, total
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.call_graph import callees
from dplc.flat.copy import Copier
from dplc.flat.walk import blocks, every, names, with_branches
from dplc.passes.simplify.simplify import simplified

MOST = 8  # numbers of a Jacobian, which cost less than a record
SWEEPS = 2  # backward, one for each result
COPIES = 1024  # bindings in all copies of what follows a branch


def serves(d: Derivatives, fn: f.Fn, active: Sequence[int], wanted: Sequence[tuple[int, Zeros]]) -> bool:
    """True for a function that calls itself and of which few numbers vary.  A rule of the user runs when the cotangent
    is known, so it must not be met before."""
    ins, outs = leaves(d, fn)
    numbers = [*(ins[i] for i in active), *(outs[i] for i, _ in wanted)]
    if len(active) * len(wanted) > MOST or len(wanted) > SWEEPS or not all(map(f.is_float, numbers)):
        return False
    if len(set(numbers)) > 1:  # a slope has one format, and what is multiplied with it
        return False
    return fn.name in callees(d.body(fn.name).body) and d.program.rules.keys().isdisjoint(reached(d, fn.name))


def reached(d: Derivatives, name: str) -> Iterator[str]:
    """A function, and all that it calls."""
    todo, seen = [name], {name}
    while todo:
        yield (fn := todo.pop())
        new = set(callees(d.body(fn).body)) - seen
        seen |= new
        todo += new


def leaves(d: Derivatives, fn: f.Fn) -> tuple[list[f.Type], list[f.Type]]:
    """The types of the leaves of a function's parameters and results."""
    ins = [leaf for p in fn.params for leaf in d.tangents.leaves(p.ty)]
    return ins, [leaf for ty in fn.results for leaf in d.tangents.leaves(ty)]


def preaccumulate(
    d: Derivatives, fn: f.Fn, graph: Graph, made: Reversed, active: Sequence[int], wanted: Sequence[tuple[int, Zeros]]
) -> list[Zeros]:
    """Writes f.fwd, which keeps the Jacobian, and f.bwd.  Returns the known zeros of the accumulators."""
    ins, outs = leaves(d, fn)
    made.residual, made.jacobian = f.Tup(tuple(outs[r] for r, _ in wanted for _ in active)), True
    one = NO_ZEROS if len(wanted) == 1 else MAYBE_ZERO
    work = Reverse(d, graph, active, [(r, one) for r, _ in wanted], step, restored=())
    there, back, zeros = work.function(fn, made.fwd, made.bwd, f"res.{made.fwd}")
    rows = [[f.Const(1.0 if r == other else -0.0, outs[other]) for other, _ in wanted] for r, _ in wanted]
    d.program.fns[made.fwd] = at_once(d, there, back, rows, [f.Const(-0.0, ins[i]) for i in active])

    b = Builder(d.supply)
    param = b.var("res", made.residual)
    cts = [b.var("c", outs[r]) for r, _ in wanted]
    accs = [b.var("c", ins[i]) for i in active]
    ends = [by_sign(b, acc) for acc in accs]
    came = [by_sign(b, ct, asked) for ct, (_, asked) in zip(cts, wanted, strict=True)]
    for _, k, part in products(b, param, came, zeros):
        ends[k] = total(b, d.convert.add(b, ends[k].atom, part.atom), (ends[k], part))
    body = b.block(*[sent(b, end, acc.ty) for end, acc in zip(ends, accs, strict=True)])
    d.program.fns[made.bwd] = f.Fn(
        made.bwd, (param, *cts, *accs), tuple(acc.ty for acc in accs), body, back.label, fn.span
    )
    return [either([end]) for end in ends]


def at_once(d: Derivatives, there: f.Fn, back: f.Fn, rows: Sequence[Sequence[f.Atom]], accs: Sequence[f.Atom]) -> f.Fn:
    """One function of the forward code and, for each row of cotangents, the backward code.  It returns the Jacobian in
    place of the residual."""
    *ys, kept = there.body.results
    b = Builder(d.supply)
    slopes: list[f.Atom] = []
    for seeds in rows:
        given = dict(zip(names(back.params), (kept, *seeds, *accs), strict=True))
        copied = Copier(d.supply, given).block(back.body)
        b.binds += copied.binds
        slopes += copied.results
    jacobian = b.make(slopes)
    tail = b.block(*ys, jacobian)
    body = f.Block((*there.body.binds, *tail.binds), tail.results)
    if ends_of(there.body) * len(every(tail)) <= COPIES:
        body = spread(d.supply, f.Block(there.body.binds, ()), (), tail)
    made = f.Fn(there.name, there.params, (*there.results[:-1], jacobian.ty), body, there.label, there.span)
    return simplified(made, d.supply, d.program)


def ends_of(block: f.Block) -> int:
    """How many arms the last branch of a block has at its end, those of the branches in it included."""
    last = next((bind.rhs for bind in reversed(block.binds) if isinstance(bind.rhs, f.If | f.Switch)), None)
    return 1 if last is None else sum(map(ends_of, blocks(last)))


def spread(supply: f.Supply, block: f.Block, vars_: Sequence[f.Var], tail: f.Block) -> f.Block:
    """A block, then a tail in which its results are `vars_`.  What follows its last branch is in the arms."""
    copied = Copier(supply, dict(zip(names(vars_), block.results, strict=True))).block(tail)
    at = max((k for k, bind in enumerate(block.binds) if isinstance(bind.rhs, f.If | f.Switch)), default=None)
    if at is None:
        return f.Block((*block.binds, *copied.binds), copied.results)
    rest = f.Block((*block.binds[at + 1 :], *copied.binds), copied.results)
    bind = block.binds[at]
    arms = [spread(supply, arm, bind.vars, rest) for arm in blocks(bind.rhs)]
    ends = tuple([f.Var(supply.fresh("end"), result.ty) for result in copied.results])
    return f.Block((*block.binds[:at], f.Bind(ends, with_branches(bind.rhs, arms))), ends)
