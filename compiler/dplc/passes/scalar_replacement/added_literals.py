"""What is added at constants to nothing, and is then a row, or an operand of elementwise operations, is a literal.

    a = acc_index null x 3 2                 p = add 0.0 x;  q = add 0.0 y
    b = acc_index a y 3 0             =>     b = array q 0.0 p
    c = add b 0.0                            c = add b 0.0

A cotangent that is added to another one stays: its numbers are added there, one by one (`accumulate`).
"""

from __future__ import annotations

from collections import Counter

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, mentions, names, with_binds, with_body, with_inner

FEW = 16  # elements of such a literal


def added_literals(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function; the same object if it has none."""
    adds = [bind.rhs for bind in every(fn.body) if isinstance(bind.rhs, f.Op) and bind.rhs.op == "acc_index"]
    return with_body(fn, _Literals(fn, supply).block(fn.body)) if adds else fn


def asked(rhs: f.Rhs) -> tuple[f.Atom, ...]:
    """What a right-hand side uses as numbers, or as a part of a row or tuple."""
    match rhs:
        case f.Op(op, args) if OPS[op].elementwise or op in ("array", "index"):
            return args
        case f.TupMake(items):
            return items
        case f.Build():
            return rhs.body.results
        case _:
            return ()


class _Literals:
    """`uses` counts all uses of variables, `plain` those that ask for the numbers."""

    def __init__(self, fn: f.Fn, supply: f.Supply) -> None:
        self.supply = supply
        self.uses = Counter(mentions(fn.body))
        self.plain = Counter(name for bind in every(fn.body) for name in names(asked(bind.rhs)))
        self.made: dict[str, dict[int, list[f.Atom]]] = {}  # by places, what was added there

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            match bind:
                case f.Bind((var,), f.Op("acc_index", (to, more, f.Const(int(n)), f.Const(int(k)))) as op) if (
                    self.fits(more, n, k) and (before := self.before(to)) is not None
                ):
                    self.made[var.name] = before | {k: [*before.get(k, ()), more]}
                    if 0 < self.uses[var.name] == self.plain[var.name]:
                        binds += self.literal(var, n, op)
                        continue
                case _:
                    pass
            binds.append(with_inner(bind, self.block))
        return with_binds(block, binds)

    def fits(self, more: f.Atom, n: int, k: int) -> bool:
        number = isinstance(more, f.Var) or (isinstance(more, f.Const) and more.value is not None)
        return number and isinstance(more.ty, f.Num) and 0 <= k < n <= FEW

    def before(self, to: f.Atom) -> dict[int, list[f.Atom]] | None:
        """What an accumulator that is used once has, by places."""
        if isinstance(to, f.Var):
            return self.made.get(to.name) if self.uses[to.name] == 1 else None
        return {} if to.value is None else None

    def literal(self, var: f.Var, n: int, op: f.Op) -> list[f.Bind]:
        b, ty = Builder(self.supply), op.args[1].ty
        items: list[f.Atom] = []
        for k in range(n):
            total: f.Atom = f.Const(0.0, ty)
            for more in self.made[var.name].get(k, ()):
                total = b.op("add", (total, more), op.span)
            items.append(total)
        return [*block_of(b.binds, ()).binds, f.Bind((var,), f.Op("array", tuple(items), (), op.span))]
