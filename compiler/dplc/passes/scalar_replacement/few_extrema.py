"""The place and the value of the greatest or least of few numbers, known in number, one by one.

    best = argmin a                x0 = index a 0;  x1 = index a 1
    y = index a best         =>    keep = le x0 x1 or ne x0 x0;  best = select keep 0 1;  y = min x0 x1

The array need not be in memory then (`small_arrays`).  One that a comprehension makes is in memory; its chosen element
is found by `chosen_elements`.
"""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, with_blocks
from dplc.passes.simplify.purity import HERE


def few_extrema(fn: f.Fn, length: Callable[[f.Atom], int | None], supply: f.Supply) -> f.Fn:
    """`length` is that of an array of few numbers, if it is known."""
    built = {bind.vars[0].name for bind in every(fn.body) if isinstance(bind.rhs, f.Build)}
    found = {
        op.args[0].name
        for op in (bind.rhs for bind in every(fn.body))
        if isinstance(op, f.Op) and OPS[op.op].finds
        if isinstance(op.args[0], f.Var) and length(op.args[0])
    }
    if found <= built:
        return fn
    values: dict[tuple[str, str], f.Atom] = {}  # of an array and the index of its extremum

    def block(old: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in old.binds:
            match bind.rhs:
                case f.Op(op, (f.Var(name) as array,)) if OPS[op].finds and name in found - built:
                    (best,), n = bind.vars, length(array) or 0
                    values[name, best.name] = chain(binds, supply, op, array, n, best)
                case f.Op("index", (f.Var(name), f.Var(at))) if (name, at) in values:
                    renamed(binds, supply, bind.vars[0], values[name, at])
                case rhs:
                    binds.append(f.Bind(bind.vars, with_blocks(rhs, block)))
        return f.Block(tuple(binds), old.results)

    return f.Fn(fn.name, fn.params, fn.results, block(fn.body), fn.label, fn.span, fn.borrowed)


def chain(binds: list[f.Bind], supply: f.Supply, op: str, array: f.Var, n: int, best: f.Var) -> f.Atom:
    """Binds `best` to the place of the extremum.  Returns its value."""
    assert isinstance(array.ty, f.Arr)
    elem = array.ty.elem

    def write(name: str, ty: f.Type, *args: f.Atom, **attrs: object) -> f.Var:
        var = f.Var(supply.fresh(name), ty)
        binds.append(f.Bind((var,), f.Op(name, args, tuple(attrs.items()))))
        return var

    choose = OPS[op].finds
    place: f.Atom = f.Const(0, f.I64)
    value = write("index", elem, array, place, unchecked=HERE)
    for i in range(1, n):
        index = f.Const(i, f.I64)
        other = write("index", elem, array, index, unchecked=HERE)
        keep = write(OPS[choose].keeps, f.BOOL, value, other)
        if f.is_float(elem):
            keep = write("or", f.BOOL, keep, write("ne", f.BOOL, value, value))
        place = write("select", f.I64, keep, place, index)
        value = write(choose, elem, value, other)
    renamed(binds, supply, best, place)
    return value


def renamed(binds: list[f.Bind], supply: f.Supply, var: f.Var, value: f.Atom) -> None:
    """Binds a variable to an atom; `simplify` puts the atom in its place."""
    tup = f.Var(supply.fresh("t"), f.Tup((var.ty,)))
    binds += [f.Bind((tup,), f.TupMake((value,))), f.Bind((var,), f.TupGet(tup, 0))]
