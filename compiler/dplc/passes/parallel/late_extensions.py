"""Zeros after an array are made late: flat -> flat.

    c = acc_extend a n                         m = dim a
    d = par i < n to keep in c {               b = par i < m to keep in a {
      x = index c i                       =>     x = index a i
      y = add x 0.0;  yield y }                  y = add x 0.0;  yield y }
                                               d = acc_extend b n

The points add nothing to zeros, so these follow after them, and the points may be joined with those that make the
array.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.walk import every, mentions, with_binds, with_body, with_inner
from dplc.narrow import expect_type


def late_extensions(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function; one that has none of these is given back."""
    if not any(isinstance(bind.rhs, f.Op) and bind.rhs.op == "acc_extend" for bind in every(fn.body)):
        return fn
    return with_body(fn, _Late(supply, Counter(mentions(fn.body))).block(fn.body))


class _Late:
    """One function; `uses` tells how often each variable is mentioned in it."""

    def __init__(self, supply: f.Supply, uses: Counter[str]) -> None:
        self.supply, self.uses = supply, uses

    def block(self, block: f.Block) -> f.Block:
        extended = {bind.vars[0].name: bind for bind in block.binds if self.moves(bind.rhs)}
        binds: list[f.Bind] = []
        for bind in block.binds:
            match bind.rhs:
                case f.Par() as par if longer := extended.get(self.positive(par)):
                    binds.remove(longer)
                    binds += self.later(bind.vars, par, expect_type(f.Op, longer.rhs))
                case _:
                    binds.append(with_inner(bind, self.block))
        return with_binds(block, binds)

    def moves(self, rhs: f.Rhs) -> bool:
        match rhs:
            case f.Op("acc_extend", (f.Var(short), _)):
                return self.uses[short] == 1
            case _:
                return False

    def positive(self, par: f.Par) -> str:
        """The array to whose elements a Par adds 0.0, in place, if nothing else mentions it; else no name."""
        match par:
            case f.Par(((i, _),), f.Block((read, added), (result,)), (f.Out("keep", _, f.Var(array)),)):
                pass
            case _:
                return ""
        match read.rhs, added.rhs:
            case f.Op("index", (f.Var(name), at)), f.Op("add", (x, f.Const(0.0))) if name == array and at == i:
                own = x == read.vars[0] and result == added.vars[0] and self.uses[array] == 2
                return array if own else ""
            case _:
                return ""

    def later(self, made: tuple[f.Var, ...], par: f.Par, extend: f.Op) -> list[f.Bind]:
        """The points before the zeros."""
        short, length = extend.args
        count, before = f.Var(self.supply.fresh("dim"), f.I64), f.Var(self.supply.fresh("a"), short.ty)
        body = Copier(self.supply, {expect_type(f.Var, par.outs[0].target).name: short}).block(par.body)
        par = replace(par, space=((par.space[0][0], count),), body=body, outs=(replace(par.outs[0], target=short),))
        return [
            f.Bind((count,), f.Op("dim", (short,), (("k", 0),))),
            f.Bind((before,), par),
            f.Bind(made, replace(extend, args=(before, length))),
        ]
