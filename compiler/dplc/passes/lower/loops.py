"""Loops and comprehensions -> flat.

for i < n with s = a do e        For i < n, the leaves of s as state
"""

from __future__ import annotations

from dpl.core import term as c

from dplc.flat import term as f
from dplc.flat.values import Value, block_of, leaves
from dplc.passes.lower.body import Body


def build(body: Body, e: c.Build, inner: tuple[c.Term, ...] = ()) -> Value:
    """A comprehension.  `inner` are the inner sizes of its value, needed when the loop makes no step."""
    number, var = body.atom(e.count), body.b.var(e.index, f.I64)
    sizes = tuple([body.atom(n) for n in inner])
    with body.b.inside() as binds:
        body.bind(e.index, var, e.body)
        element = body.atom(e.body)
    rhs = f.Build(var, number, block_of(binds, (element,)), e.span, (sizes,) if sizes else ())
    return body.b.one(rhs, body.flat(e), "built")


def count_loop(body: Body, e: c.For) -> Value:
    """`loop x = e for i < n do ...` -> a For, whose state is the leaves of `x`."""
    init = body.term(e.init)
    count = body.atom(e.count)
    state, vars_ = body.b.fresh_like(init, e.state)
    index = body.b.var(e.index, f.I64)
    with body.b.inside() as binds:
        body.env[e.state] = state
        body.bind(e.index, index, e.body)
        step = tuple(leaves(body.term(e.body)))
    result, bound = body.b.fresh_like(init, e.state)
    loop = f.For(index, count, vars_, tuple(leaves(init)), block_of(binds, step))
    body.b.binds.append(f.Bind(bound, loop))
    return result


def while_loop(body: Body, e: c.While) -> Value:
    """A while loop -> a While, whose state is the leaves of the variable."""
    init = body.term(e.init)
    state, vars_ = body.b.fresh_like(init, e.state)
    body.env[e.state] = state
    with body.b.inside() as tests:
        cond = body.atom(e.cond)
    with body.b.inside() as binds:
        step = tuple(leaves(body.term(e.body)))
    result, bound = body.b.fresh_like(init, e.state)
    loop = f.While(vars_, tuple(leaves(init)), block_of(tests, (cond,)), block_of(binds, step))
    body.b.binds.append(f.Bind(bound, loop))
    return result
