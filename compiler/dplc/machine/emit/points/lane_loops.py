"""Loops in the points of a Par that are computed in lanes: what they keep is read step by step.

    r, s = par c < 16 to keep, fold 0 {          k = for c < 16 collect { ...; yield x }
      ...; yield x, x }                   =>     s = par c < 16 to fold 0 { t = index k c; t.0 }
    z = par c < 16 to fold 0 {                   z = par c < 16 to fold 0 {
      y = index r c; ... }                         t = index k c; y = t.0; ... }

Lanes keep a vector for each step (`lane_memory.py`).  What only adds to arrays is a loop in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.walk import atoms, blocks, every, mentions, names, rhs_mentions, with_blocks, with_inner

FEW = 64  # steps of a loop that keeps vectors: more need not fit the nearest cache


def with_loops(par: f.Par) -> f.Par:
    """A Par in whose points Pars that keep numbers, or add to arrays only, are loops in order.  What only adds stays as
    it is beside loops that have vectors without lanes."""
    binds = par.body.binds
    for variables in [bind.vars for bind in binds if isinstance(bind.rhs, f.Par)]:
        bind = next(bind for bind in binds if bind.vars == variables)  # it may read what another one keeps by now
        if isinstance(bind.rhs, f.Par) and keeps(bind, bind.rhs, binds, par.body.results):
            binds = with_kept(bind, bind.rhs, binds)
    loops = [bind.rhs for bind in binds if isinstance(bind.rhs, f.Par | f.For)]
    if any(isinstance(loop, f.For) for loop in loops) or all(map(only_adds, loops)):
        binds = tuple([in_order(bind) for bind in binds])
    return par if binds is par.body.binds else replace(par, body=replace(par.body, binds=binds))


def only_adds(loop: f.Rhs) -> bool:
    return isinstance(loop, f.Par) and all(out.acc for out in loop.outs)


def in_order(bind: f.Bind) -> f.Bind:
    match bind.rhs:
        case f.Par(((index, count),), body, outs) if outs and all(out.acc for out in outs):
            accs, targets = zip(*[(out.acc, out.target) for out in outs], strict=True)
            return f.Bind(bind.vars, f.For(index, count, accs, targets, body))
        case _:
            return bind


def is_few(count: f.Atom) -> bool:
    """True for a loop of a known, small number of steps."""
    return isinstance(count, f.Const) and isinstance(count.value, int) and 0 < count.value <= FEW


def keeps(bind: f.Bind, par: f.Par, binds: Sequence[f.Bind], results: Sequence[f.Atom]) -> bool:
    """True for a loop that keeps few numbers, whose elements are read in the point and nowhere else.  It may add some
    up."""
    kinds = {(out.kind, out.target, out.rank) for out in par.outs}
    plain = kinds <= {("keep", None, 0), ("fold", None, 0)} and ("keep", None, 0) in kinds and not par.ordered
    if not plain or len(par.space) > 1 or not is_few(par.space[0][1]):
        return False
    arrays = [var for var, out in zip(bind.vars, par.outs, strict=True) if out.kind == "keep"]
    read = all(reads_elements(one.rhs, array) or is_drop(one.rhs, array) for array in arrays for one in binds
               if one is not bind and array.name in rhs_mentions(one.rhs))  # fmt: skip
    numbers = all(f.is_float(x.ty) for x in par.body.results)
    return read and numbers and {array.name for array in arrays}.isdisjoint(names(results))


def with_kept(bind: f.Bind, par: f.Par, binds: Sequence[f.Bind]) -> tuple[f.Bind, ...]:
    """The bindings, with a loop that collects numbers in place of a Par, and another Par for its sums."""
    ((index, count),), body = par.space, par.body
    both = list(zip(bind.vars, par.outs, body.results, strict=True))
    rows = f.Var(f"{bind.vars[0].name} rows", f.Arr(f.Tup(tuple([x.ty for x in body.results])), 1))
    made = [f.Bind((rows,), f.For(index, count, (), (), body, len(both)))]
    folds = [(k, var, out) for k, (var, out, _) in enumerate(both) if out.kind == "fold"]
    if folds:
        at, row = f.Var(f"{index.name} again", f.I64), f.Var(f"{rows.name} row", expect_row(rows.ty))
        terms = [f.Var(f"{var.name} term", var.ty) for _, var, _ in folds]
        reads = [f.Bind((row,), f.Op("index", (rows, at), (("unchecked", True),)))]
        reads += [f.Bind((term,), f.TupGet(row, k)) for (k, *_), term in zip(folds, terms, strict=True)]
        sums = f.Par(((at, count),), f.Block(tuple(reads), tuple(terms)), tuple([out for *_, out in folds]), par.span)
        made.append(f.Bind(tuple([var for _, var, _ in folds]), sums))
    after: list[f.Bind] = []
    for one in binds:
        if one is bind:
            after += made
            continue
        rhs = one.rhs
        for k, (var, out, _) in enumerate(both):
            if out.kind == "keep":
                rhs = from_rows(rhs, var, rows, k)
        if not any(is_drop(one.rhs, var) for var in bind.vars):
            after.append(one if rhs is one.rhs else f.Bind(one.vars, rhs))
    return (*after, f.Bind((), f.Op("drop", (rows,))))


def expect_row(ty: f.Type) -> f.Type:
    assert isinstance(ty, f.Arr)
    return ty.elem


def reads_elements(rhs: f.Rhs, array: f.Var) -> bool:
    """True for a loop that does nothing with a vector but read its elements."""
    uses = [bind.rhs for block in blocks(rhs) for bind in every(block) if array in atoms(bind.rhs)]
    read = all(isinstance(op, f.Op) and op.op == "index" and len(op.args) == 2 for op in uses)
    inside = sum(mentions(block).count(array.name) for block in blocks(rhs))
    return bool(uses) and read and inside == len(uses) and array not in atoms(rhs)


def is_drop(rhs: f.Rhs, array: f.Var) -> bool:
    """True for an operation that gives up this array."""
    return isinstance(rhs, f.Op) and rhs.op == "drop" and rhs.args == (array,)


def from_rows(rhs: f.Rhs, array: f.Var, rows: f.Var, k: int) -> f.Rhs:
    """The same, which reads number `k` of the tuples that a loop has collected in place of an array's elements."""
    if array.name not in rhs_mentions(rhs):
        return rhs

    def block(inner: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in inner.binds:
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "index" and bind.rhs.args[0] == array:
                row = f.Var(f"{bind.vars[0].name} row", expect_row(rows.ty))
                binds.append(f.Bind((row,), replace(bind.rhs, args=(rows, *bind.rhs.args[1:]))))
                binds.append(f.Bind(bind.vars, f.TupGet(row, k)))
            else:
                binds.append(with_inner(bind, block))
        return f.Block(tuple(binds), inner.results)

    return with_blocks(rhs, block)
