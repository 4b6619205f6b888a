"""Outer products that the steps of a loop add to a matrix are added some at a time, as one product of matrices.

    c' = for j < n state (c = a) {             c1, x1, y1, k1 = for j < n state (c = a, x = null, y = null, k = 0) {
      ...                                        ...
      u = reshape v p 1                          x2 = acc_index x v SOME p k
      t = reshape w q 1                 =>       y2 = acc_index y w SOME q k
      c = matmul_acc tb=true c u t               k2 = add k 1
      yield c }                                  c, x, y, k = if k2 >= SOME { c2 = matmul_acc ta=true c x2 y2
                                                                              yield c2, null, null, 0 }
                                                                       else { yield c, x2, y2, k2 }
                                                 yield c, x, y, k }
                                               c' = if k1 > 0 { the same with the first k1 rows } else { yield c1 }

The gradient of weights that a loop multiplies with its state comes like this.  An outer product reads and writes all of
the matrix, for one multiplication each; a product of matrices does so once for all rows that were collected (delayed
rank-one updates).

A function that calls itself, as the gradient of a model of trees does, takes and returns what is collected, too.  To
others it is a function that begins with nothing, and adds what is left:

    f a v = ... c = matmul_acc tb=true c u t ...; c' = f c w; yield c'
 =>
    f.rows a x y k v = ... as above ...; c', x', y', k' = f.rows c x y k w; yield c', x', y', k'
    f a v = c1, x1, y1, k1 = f.rows a null null 0 v; as after the loop
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import block_of
from dplc.flat.call_graph import callees
from dplc.passes.accumulate.collected_rows import Collector, Through, Unfit, columns_of
from dplc.passes.accumulate.written_products import by_vectors

FEW = 8  # steps for which it does not pay
MATRICES = (f.Arr(f.F64, 2), f.Arr(f.Num("f32"), 2))


def loop_updated_late(bind: f.Bind, supply: Callable[[], f.Supply]) -> list[f.Bind]:
    """The loop with its outer products collected, and what follows it."""
    loop = bind.rhs
    assert isinstance(loop, f.For)
    few = isinstance(loop.count, f.Const) and isinstance(loop.count.value, int) and loop.count.value < FEW
    after: list[f.Bind] = []
    for k in [k for k, var in enumerate(loop.state) if var.ty in MATRICES and not few]:
        bind, *last = _collected(bind, k, supply)
        after += last
    return [bind, *after]


def _collected(bind: f.Bind, k: int, supply: Callable[[], f.Supply]) -> tuple[f.Bind, ...]:
    """The loop with the outer products for state number `k` collected, and what follows it; those that are written as
    nests of loops, too."""
    loop = bind.rhs
    assert isinstance(loop, f.For)
    for write in (by_vectors, lambda body, matrix, supply: body):
        body = write(loop.body, loop.state[k], supply)
        if columns := columns_of(body):
            try:
                made = f.Bind(bind.vars, replace(loop, body=body))
                return _loop(made, k, Collector(columns, loop.state[k].ty, supply()))
            except Unfit:
                pass
    return (bind,)


def _loop(bind: f.Bind, k: int, collector: Collector) -> tuple[f.Bind, ...]:
    """The loop whose state variable `k` is the matrix."""
    b, total = collector.b, collector.b.var("c", collector.ty)
    outs = tuple([total if i == k else var for i, var in enumerate(bind.vars)])
    with b.inside() as binds:
        rows = collector.loop(f.Bind(outs, bind.rhs), k, collector.nothing)
        collector.rest(bind.vars[k], total, rows)
    return block_of(binds, ()).binds


def recursion_updated_late(fn: f.Fn, supply: Callable[[], f.Supply]) -> list[f.Fn]:
    """The function; if it calls itself and adds outer products to matrices that go through it, it is two for each."""
    columns = columns_of(fn.body) if fn.name in callees(fn.body) else {}
    outer: list[f.Fn] = []
    for param, var in enumerate(fn.params if columns else ()):
        for result in [i for i, ty in enumerate(fn.results) if ty == var.ty and ty in MATRICES]:
            through = Through(fn.name, f"{fn.name}.rows", param, result)
            try:
                others, fn = _recursion(fn, through, Collector(columns, var.ty, supply(), through))
            except Unfit:
                continue
            outer.append(others)
            break
    return [*outer, fn]


def _recursion(fn: f.Fn, through: Through, collector: Collector) -> tuple[f.Fn, f.Fn]:
    """What others call, and what calls itself."""
    b, rows = collector.b, collector.fresh()
    with b.inside() as binds:
        last = collector.block(fn.body, fn.params[through.param], through.result, rows)
    inner = replace(
        fn, name=through.inner, params=(*fn.params, *rows.vars()), results=(*fn.results, *[x.ty for x in rows.atoms()]),
        body=block_of(binds, (*fn.body.results, *last.atoms())),
    )  # fmt: skip
    params = tuple([b.var(var.name, var.ty) for var in fn.params])
    outs = [b.var("c", ty) for ty in fn.results]
    total = b.var("c", collector.ty)
    with b.inside() as binds:
        left = collector.bound(tuple(outs), f.Call(inner.name, (*params, *collector.nothing.atoms()), fn.span))
        collector.rest(total, outs[through.result], left)
    outs[through.result] = total
    return replace(fn, params=params, body=block_of(binds, outs)), inner
