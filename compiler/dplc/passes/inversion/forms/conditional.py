"""Additions under conditions become additions of numbers that are zero elsewhere, where their places are there anyway.

    c' = if g { z = mul x y                    z' = if g { z = mul x y; yield z } else { yield 0.0 }
                yield acc_index c z n i }  =>  c' = acc_index c z' n i
         else { yield c }

So a nest that asks whether a pixel is in its image is summed as others are (`interchange.py`).
"""

from __future__ import annotations

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.walk import every, is_in, names, rhs_mentions
from dplc.narrow import expect_type
from dplc.passes.inversion.nests import Unfit


def unconditional(par: f.Par, affine: Affine, supply: f.Supply) -> f.Par:
    """The nest without conditions around additions."""
    accs = {out.acc.name for out in par.outs if out.acc is not None}
    return _Hoist(affine, supply).par(par, accs)


@node
class Arm:
    """An arm of a branch: what it computes, what it adds, and what holds each accumulator after it."""

    binds: list[f.Bind]
    added: list[f.Op]
    after: dict[str, str]  # the name of the accumulator before the branch


class _Hoist:
    def __init__(self, affine: Affine, supply: f.Supply) -> None:
        self.affine, self.supply = affine, supply

    def par(self, par: f.Par, accs: set[str]) -> f.Par:
        self.affine.loops(par)
        return replace(par, body=replace(par.body, binds=tuple(self.binds(par.body.binds, accs))))

    def binds(self, binds: tuple[f.Bind, ...], accs: set[str]) -> list[f.Bind]:
        """The bindings, with additions in place of branches that add; `accs` are the accumulators, and grow."""
        made: list[f.Bind] = []
        for bind in binds:
            self.affine.define(bind)
            match bind.rhs:
                case f.Par(outs=outs) as inner if any(is_in(out.target, accs) for out in outs):
                    own = {out.acc.name for out in outs if out.acc is not None}
                    made.append(f.Bind(bind.vars, self.par(inner, own)))
                    accs.update(var.name for var, out in zip(bind.vars, outs, strict=True) if is_in(out.target, accs))
                case f.If() as branch if not accs.isdisjoint(rhs_mentions(branch)):
                    made += self.branch(bind, branch, accs)
                case f.Op(_, (acc, *_)) if is_in(acc, accs):
                    accs.update(var.name for var in bind.vars)
                    made.append(bind)
                case _:
                    made.append(bind)
        return made

    def branch(self, bind: f.Bind, branch: f.If, accs: set[str]) -> list[f.Bind]:
        arms = [self.arm(block, accs) for block in (branch.then, branch.else_)]
        both = list(zip(bind.vars, branch.then.results, branch.else_.results, strict=True))
        values = [(var, yes, no) for var, yes, no in both if not is_in(yes, arms[0].after.keys())]
        added: list[f.Bind] = []
        holds: dict[str, f.Atom] = {}
        for k, op in [(k, op) for k, arm in enumerate(arms) for op in arm.added]:
            number = f.Var(self.supply.fresh("added"), op.args[1].ty)
            zero = f.Const(0.0, number.ty)
            values.append((number, op.args[1], zero) if k == 0 else (number, zero, op.args[1]))
            before = arms[k].after[name_of(op.args[0])]
            acc = holds.get(before, f.Var(before, op.args[0].ty))
            after = f.Var(self.supply.fresh(before), op.args[0].ty)
            added.append(f.Bind((after,), replace(op, args=(acc, number, *op.args[2:]))))
            holds[before] = after
        renamed = {}
        for var, yes, no in both:
            if is_in(yes, arms[0].after.keys()):
                before = arms[0].after[name_of(yes)]
                if arms[1].after.get(name_of(no)) != before or before not in holds:
                    raise Unfit
                renamed[name_of(holds[before])] = var
                accs.add(var.name)
        blocks = [f.Block(tuple(arm.binds), tuple([value[k] for value in values]))
                  for k, arm in enumerate(arms, 1)]  # fmt: skip
        chosen = f.Bind(tuple([var for var, *_ in values]), f.If(branch.cond, *blocks))
        return [chosen, *[f.Bind((renamed.get(one.vars[0].name, one.vars[0]),), one.rhs) for one in added]]

    def arm(self, block: f.Block, accs: set[str]) -> Arm:
        after = {name: name for name in accs}
        added, rest = list[f.Op](), list[f.Bind]()
        for bind in self.binds(block.binds, set(accs)):
            match bind.rhs:
                case f.Op("acc_index", (f.Var(name), value, *_)) as op if name in after:
                    if not isinstance(value.ty, f.Num) or not self.is_there(op):
                        raise Unfit
                    added.append(op)
                    after[bind.vars[0].name] = after[name]
                case rhs if not after.keys().isdisjoint(rhs_mentions(rhs)):
                    raise Unfit
                case _:
                    rest.append(bind)
        inside = {var.name for bind in every(f.Block(tuple(rest), ())) for var in bind.vars}
        if any(not inside.isdisjoint(names(op.args[2:])) for op in added):
            raise Unfit
        return Arm(rest, added, after)

    def is_there(self, op: f.Op) -> bool:
        """True if an array has a place whatever conditions say."""
        rest = op.args[2:]
        return self.affine.is_place(rest[: len(rest) // 2], rest[len(rest) // 2 :])


def name_of(atom: f.Atom) -> str:
    return expect_type(f.Var, atom).name
