"""What the points of several Pars compute alike.

Numbers stand for values: two operations have one number if they are the same operation on operands of equal numbers
(value numbering).  The indices of a Par are numbered by their places, so different Pars can be compared.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Renamed
from dplc.flat.walk import blocks, with_rhs
from dplc.passes.simplify.value_numbers import expression


class CommonWork:
    """Numbers of what Pars compute, for a whole function."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.found: dict[int, tuple[f.Par, frozenset[int]]] = {}

    def between(self, first: f.Par, second: f.Par) -> bool:
        """True if the points of two Pars have arithmetic in common.  Bodies must be without branches, loops and calls:
        then the loop that does the work of both can be vectorised as both can."""
        return not self.of(first).isdisjoint(self.of(second))

    def of(self, par: f.Par) -> frozenset[int]:
        if id(par) not in self.found:
            self.found[id(par)] = par, self.numbered(par)
        return self.found[id(par)][1]

    def numbered(self, par: f.Par) -> frozenset[int]:
        """The numbers of the arithmetic of a point; none if its code is not straight."""
        known: dict[str, f.Atom] = {}
        for place, (index, _) in enumerate(par.space):
            known[index.name] = f.Var(f"#{place}", index.ty)
        point, found = Renamed(known), set[int]()
        for bind in par.body.binds:
            if isinstance(bind.rhs, f.Call) or blocks(bind.rhs):
                return frozenset()
            key = result_of(point.rhs(bind.rhs))
            if key is None:
                continue
            number = self.numbers.setdefault(key, len(self.numbers))
            point.atoms[bind.vars[0].name] = f.Var(f"={number}", bind.vars[0].ty)
            if isinstance(bind.rhs, f.Op) and bind.rhs.op not in ("index", "dim"):
                found.add(number)
        return frozenset(found)


def result_of(rhs: f.Rhs) -> object | None:
    """A key that is equal for equal results; None for what must not be shared.  Whether a read is checked changes
    nothing: it is read where the other one is."""
    if isinstance(rhs, f.Op) and rhs.op == "index" and rhs.attr("unchecked"):
        return expression(replace(rhs, attrs=()))
    return expression(rhs)


def computed_once(body: f.Block) -> f.Block:
    """The block, in which equal expressions are computed once."""
    return _Once().block(body)


class _Once(Renamed):
    """`made` has the expressions computed so far, and `scopes` those of each enclosing block."""

    def __init__(self) -> None:
        super().__init__({})
        self.made: dict[object, f.Var] = {}
        self.scopes: list[list[object]] = []

    def block(self, block: f.Block) -> f.Block:
        self.scopes.append([])
        done = super().block(block)
        for key in self.scopes.pop():
            del self.made[key]
        return done

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        kept: list[f.Bind] = []
        for bind in binds:
            rhs = self.rhs(bind.rhs)
            key = result_of(rhs)
            if key in self.made:
                self.atoms[bind.vars[0].name] = self.made[key]
                continue
            kept.append(with_rhs(bind, rhs))
            if key is not None:
                self.made[key] = bind.vars[0]
                self.scopes[-1].append(key)
        return tuple(kept)
