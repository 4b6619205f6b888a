"""Operations whose derivative is that of other operations: these are put in their place, in what is differentiated.

    y = sort a      =>      order = argsort a;  y = build i < dim a 0 { index a (index order i) }
"""

from __future__ import annotations

from dplc.ad.builder import Builder
from dplc.flat import term as f
from dplc.flat.walk import every, with_blocks


def expanded(fn: f.Fn, supply: f.Supply) -> f.Fn:
    if not any(isinstance(bind.rhs, f.Op) and bind.rhs.op == "sort" for bind in every(fn.body)):
        return fn

    def block(old: f.Block) -> f.Block:
        b = Builder(supply)
        for bind in old.binds:
            match bind.rhs:
                case f.Op("sort", (array,)):
                    b.binds.append(f.Bind(bind.vars, by_order(b, array)))
                case rhs:
                    b.binds.append(f.Bind(bind.vars, with_blocks(rhs, block)))
        return b.block(*old.results)

    return f.Fn(fn.name, fn.params, fn.results, block(fn.body), fn.label, fn.span)


def by_order(b: Builder, array: f.Atom) -> f.Build:
    order, count = b.op("argsort", array), b.op("dim", array, k=0)
    index, inner = b.fresh("i", f.I64), b.inner()
    place = inner.op("index", order, index, unchecked=True)
    return f.Build(index, count, inner.block(inner.op("index", array, place, unchecked=True)))
