"""Sums of whole arrays, where the host runs, become Pars: a device that has the array adds it up, too.

    s = sum a          =>      n = dim a; s = par i < n to fold 0 { x = a[i]; yield x }
    d = dot a b        =>      the same for a[i] * b[i], once the lengths are compared

The order of sums is the same.  In the points of Pars, and in functions that they call, nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.ops.arrays import DIFFERENT
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import blocks, every, supply_for, with_binds, with_body, with_inner


def array_sums(program: f.Program) -> f.Program:
    """The program with Pars in place of such operations."""
    apart = called_by_points(program)
    made = program.copy()
    supply = supply_for(program)
    for name, fn in program.fns.items():
        if name not in apart:
            made.fns[name] = with_body(fn, block(fn.body, supply))
    return made


def called_by_points(program: f.Program) -> set[str]:
    """The functions that points call, directly or not."""
    todo = [par.body for fn in program.fns.values() for par in pars(fn.body)]
    found: set[str] = set()
    while todo:
        for bind in every(todo.pop()):
            if isinstance(bind.rhs, f.Call) and bind.rhs.fn not in found:
                found.add(bind.rhs.fn)
                todo.append(program.fns[bind.rhs.fn].body)
    return found


def pars(body: f.Block) -> Iterator[f.Par]:
    return (bind.rhs for bind in every(body) if isinstance(bind.rhs, f.Par))


def block(old: f.Block, supply: f.Supply) -> f.Block:
    binds: list[f.Bind] = []
    for bind in old.binds:
        if is_array_sum(bind.rhs):
            binds += _sum(bind, supply)
        elif isinstance(bind.rhs, f.Par) or not blocks(bind.rhs):
            binds.append(bind)
        else:
            binds.append(with_inner(bind, lambda inner: block(inner, supply)))
    return with_binds(old, binds)


def is_array_sum(rhs: f.Rhs) -> bool:
    """True for the sum of an array, over some of its first dimensions, and for the sum of products of two."""
    if not isinstance(rhs, f.Op) or not OPS[rhs.op].reduces or rhs.attr("masked"):
        return False
    array = rhs.args[0]
    return isinstance(array, f.Var) and isinstance(elem_of(array.ty), f.Num) and elem_of(array.ty) != f.BOOL


def _sum(bind: f.Bind, supply: f.Supply) -> list[f.Bind]:
    """The bindings in place of one."""
    op = bind.rhs
    assert isinstance(op, f.Op)
    b, (array, *others) = Builder(supply), op.args
    counts = [b.op("dim", [array], k=k) for k in range(rank_of(array.ty))]
    space = tuple([(b.var("i", f.I64), count) for count in counts])
    points = Builder(supply)
    values = [points.op("index", [a, *[i for i, _ in space]], unchecked=True) for a in op.args]
    value = points.op("mul", values) if others else values[0]
    rank = op.attr("rank", 0) if op.op == "sum_to" else rank_of(array.ty) - 1
    par = f.Par(space, block_of(points.binds, (value,)), (f.Out("fold", rank),), op.span)
    if others:
        b.effect("check_lengths", (counts[0], b.op("dim", others, k=0)), op.span, what=DIFFERENT)
    return [*block_of(b.binds, ()).binds, f.Bind(bind.vars, par)]
