"""flat -> flat where arrays are measured where they are born.

    b = update a v i                  n = dim 0 a
    m = dim 0 b               =>      b = update a v i
    n = dim 0 a

An array measured late lives long, and what lives cannot be updated in place.  A dimension is taken from the first array
that surely has the same (`flat/dims.py`), right after it is bound.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.dims import root, roots
from dplc.flat.walk import binders, every, rebuild


def measure(fn: f.Fn, supply: f.Supply) -> f.Fn:
    found = roots(fn.body)
    wanted: dict[str, dict[int, f.Var]] = {}
    same: dict[str, f.Var] = {}
    for bind in every(fn.body):
        match bind.rhs:
            case f.Op("dim", (f.Var() as array, *_)) as op:
                first, k = root(array, found), op.attr("k")
                assert isinstance(first, f.Var) and isinstance(k, int)
                same[bind.vars[0].name] = wanted.setdefault(first.name, {}).setdefault(
                    k, f.Var(supply.fresh("dim"), f.I64)
                )
            case _:
                pass
    if not wanted:
        return fn
    body = _Measure(wanted, same, supply).block(fn.body, fn.params)
    return f.Fn(fn.name, fn.params, fn.results, body, fn.label, fn.span)


class _Measure:
    def __init__(self, wanted: dict[str, dict[int, f.Var]], same: dict[str, f.Var], supply: f.Supply) -> None:
        self.wanted = wanted
        self.same = same
        self.supply = supply

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.same.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def taken(self, vars_: tuple[f.Var, ...]) -> list[f.Bind]:
        return [
            f.Bind((dim,), f.Op("dim", (var,), (("k", k),)))
            for var in vars_ for k, dim in self.wanted.get(var.name, {}).items()
        ]  # fmt: skip

    def block(self, block: f.Block, params: tuple[f.Var, ...]) -> f.Block:
        binds = self.taken(params)
        for bind in block.binds:
            if bind.vars and bind.vars[0].name in self.same:
                continue
            binds.append(f.Bind(bind.vars, self.rhs(bind.rhs)))
            binds += self.taken(bind.vars)
        return f.Block(tuple(binds), tuple([self.atom(a) for a in block.results]))

    def rhs(self, rhs: f.Rhs) -> f.Rhs:
        match rhs:
            case f.Switch(scrutinee, cases, default):
                inner = []
                for case in cases:
                    inner.append(
                        f.Case(case.tag, case.payload, self.block(case.body, (case.payload,) if case.payload else ()))
                    )
                other = None if default is None else self.block(default, ())
                return f.Switch(self.atom(scrutinee), tuple(inner), other)
            case f.While(state, inits, cond, body, collect):
                starts = tuple([self.atom(a) for a in inits])
                return f.While(state, starts, self.again(state).block(cond, state), self.block(body, state), collect)
            case _:
                pass
        params = binders(rhs)
        return rebuild(rhs, self.atom, lambda b: self.block(b, params), lambda v: v)

    def again(self, vars_: tuple[f.Var, ...]) -> _Measure:
        """For a second block with these parameters: other names for their dimensions."""
        new = {v.name: {k: f.Var(self.supply.fresh("dim"), f.I64) for k in self.wanted.get(v.name, {})} for v in vars_}
        names = {self.wanted[array][k].name: dim for array, dims in new.items() for k, dim in dims.items()}
        same = {name: names.get(dim.name, dim) for name, dim in self.same.items()}
        return _Measure({**self.wanted, **new}, same, self.supply)
