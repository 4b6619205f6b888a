"""Checkpoints: f.fwd keeps its arguments alone; f.bwd runs the true f.fwd, without what it prints, and then f.bwd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dplc.ad.builder import Builder
from dplc.ad.tangents.symbolic_zeros import Presence
from dplc.flat import term as f
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, with_blocks

if TYPE_CHECKING:
    from dplc.ad.differentiate import Derivatives, Reversed


def checkpoint(
    d: Derivatives, fn: f.Fn, made: Reversed, active: tuple[int, ...], wanted: tuple[tuple[int, Presence], ...]
) -> list[Presence]:
    """Writes f.fwd and f.bwd of a checkpoint."""
    there, back = Builder(d.supply), Builder(d.supply)
    ys = there.call(fn.name, fn.params, fn.results, fn.span)
    value = there.make(fn.params)
    made.residual = value.ty
    inside = f.Fn(d.fresh(fn.name, "inside"), fn.params, fn.results, fn.body, fn.label, fn.span)
    d.program.fns[inside.name] = inside
    true = d.reverse(inside.name, active, wanted, fn.span)
    types = [leaf for ty in fn.results for leaf in d.tangents.leaves(ty)]
    params = [leaf for p in fn.params for leaf in d.tangents.leaves(p.ty)]
    param = back.fresh("res", value.ty)
    seeds = [back.fresh("c", types[i]) for i, _ in wanted]
    accs = [back.fresh("c", params[i]) for i in active]
    args = [back.get(param, i) for i in range(len(fn.params))]
    *_, residual = back.call(silent(d, true.fwd), args, (*fn.results, true.residual), fn.span)
    totals = back.call(true.bwd, (residual, *seeds, *accs), [a.ty for a in accs], fn.span)
    d.program.fns[made.fwd] = f.Fn(
        made.fwd, fn.params, (*fn.results, value.ty), there.block(*ys, value), fn.label, fn.span
    )
    d.program.fns[made.bwd] = f.Fn(
        made.bwd, (param, *seeds, *accs), tuple(a.ty for a in accs), back.block(*totals), fn.label, fn.span
    )
    return true.presence


def silent(d: Derivatives, name: str) -> str:
    """The name of a function that does the same and prints nothing; `quieten` makes it when it is wanted."""
    quiet = f"{name}.silent"
    d.quiet.setdefault(quiet, name)
    return quiet


def quieten(d: Derivatives, quiet: str) -> None:
    name = d.quiet[quiet]
    old = d.program.fns[name]
    if prints(d, name):
        body = quiet_block(d, old.body)
    else:
        vars_ = tuple(f.Var(d.supply.fresh("v"), ty) for ty in old.results)
        body = f.Block((f.Bind(vars_, f.Call(name, old.params)),), vars_)
    d.program.fns[quiet] = f.Fn(quiet, old.params, old.results, body, old.label, old.span)


def prints(d: Derivatives, name: str) -> bool:
    reached = {name}
    todo = [name]
    while todo:
        for bind in every(d.program.fns[todo.pop()].body):
            match bind.rhs:
                case f.Op(op) if Effect.OUTPUT in OPS[op].effects:
                    return True
                case f.Call(fn) if fn not in reached and fn in d.program.fns:
                    reached.add(fn)
                    todo.append(fn)
                case _:
                    pass
    return False


def quiet_block(d: Derivatives, block: f.Block) -> f.Block:
    binds = []
    for bind in block.binds:
        match bind.rhs:
            case f.Op(op) if Effect.OUTPUT in OPS[op].effects:
                pass
            case f.Call(fn, args, span):
                binds.append(f.Bind(bind.vars, f.Call(silent(d, fn), args, span)))
            case rhs:
                binds.append(f.Bind(bind.vars, with_blocks(rhs, lambda inner: quiet_block(d, inner))))
    return f.Block(tuple(binds), block.results)
