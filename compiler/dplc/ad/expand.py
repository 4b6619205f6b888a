"""Operations whose derivative is that of other operations: these are put in their place, in what is differentiated.

    y = sort a      =>      order = argsort a;  y = build i < dim a 0 { index a (index order i) }

A guard against NaN is a choice, where what it guards is certainly a symbolic zero if it is absent (`ad/rules/bulk.py`):

    n = ne p p;  m = and a n;  y = select certain=true m 0.0 p      =>      y = select a 0.0 p
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.nans import guarded
from dplc.flat.walk import every, with_blocks


def expanded(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function, in which a `sort` reads its elements by their order, and a guarded part is chosen by its guard."""
    if not any(isinstance(bind.rhs, f.Op) and is_other(bind.rhs) for bind in every(fn.body)):
        return fn
    defs = {var.name: bind.rhs for bind in every(fn.body) if isinstance(bind.rhs, f.Op) for var in bind.vars}

    def block(old: f.Block) -> f.Block:
        b = Builder(supply)
        for bind in old.binds:
            match bind.rhs:
                case f.Op("sort", (array,)):
                    b.binds.append(f.Bind(bind.vars, by_order(b, array)))
                case f.Op() as op if is_other(op) and (guard := guarded(defs, op)) is not None:
                    absent, part = guard
                    b.binds.append(f.Bind(bind.vars, f.Op("select", (absent, op.args[1], part), (), op.span)))
                case rhs:
                    b.binds.append(f.Bind(bind.vars, with_blocks(rhs, block)))
        return b.block(*old.results)

    return f.Fn(fn.name, fn.params, fn.results, block(fn.body), fn.label, fn.span)


def is_other(op: f.Op) -> bool:
    """True for an operation that becomes others."""
    return op.op == "sort" or bool(op.attr("certain"))


def by_order(b: Builder, array: f.Atom) -> f.Build:
    order, count = b.op("argsort", (array,)), b.op("dim", (array,), k=0)
    index, inner = b.var("i", f.I64), b.inner()
    place = inner.op("index", (order, index), unchecked=True)
    return f.Build(index, count, inner.block(inner.op("index", (array, place), unchecked=True)))
