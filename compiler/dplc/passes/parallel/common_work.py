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
        self.points: dict[int, _Numbered] = {}  # by the identity of what was numbered, or of what goes on from there

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
        binds = par.body.binds
        begun = self.points.pop(id(binds), None) or _Numbered(par.space)
        point, found = begun.point, begun.found
        for bind in binds[len(begun.binds) :]:
            if isinstance(bind.rhs, f.Call) or blocks(bind.rhs):
                return frozenset()
            key = result_of(point.rhs(bind.rhs))
            if key is None:
                continue
            number = self.numbers.setdefault(key, len(self.numbers))
            point.atoms[bind.vars[0].name] = f.Var(f"={number}", bind.vars[0].ty)
            if isinstance(bind.rhs, f.Op) and bind.rhs.op not in ("index", "dim"):
                found.add(number)
        begun.binds = binds
        self.points[id(binds)] = begun
        return frozenset(found)

    def goes_on(self, binds: tuple[f.Bind, ...], more: tuple[f.Bind, ...]) -> None:
        """The code of a point has become longer: what is numbered is not numbered again."""
        if (begun := self.points.pop(id(binds), None)) is not None:
            self.points[id(more)] = begun


class _Numbered:
    """How far the code of a point is numbered."""

    def __init__(self, space: tuple[tuple[f.Var, f.Atom], ...]) -> None:
        self.binds: tuple[f.Bind, ...] = ()
        self.point = Renamed({index.name: f.Var(f"#{place}", index.ty) for place, (index, _) in enumerate(space)})
        self.found = set[int]()


def result_of(rhs: f.Rhs) -> object | None:
    """A key that is equal for equal results; None for what must not be shared.  Whether a read is checked changes
    nothing: it is read where the other one is."""
    if isinstance(rhs, f.Op) and rhs.op == "index" and rhs.attr("unchecked"):
        return expression(replace(rhs, attrs=()))
    return expression(rhs)


class ComputedOnce:
    """Joins blocks, so that equal expressions are computed once.  What was joined before is not gone through again."""

    def __init__(self, common: CommonWork) -> None:
        self.common = common
        self.known: dict[int, tuple[tuple[f.Bind, ...], _Once]] = {}  # by the identity of the bindings

    def joined(self, first: f.Block, second: f.Block) -> f.Block:
        binds, once = self.known.pop(id(first.binds), (None, None))
        if binds is None or once is None:
            once = _Once()
            binds = once.binds(first.binds)
        whole = (*binds, *once.binds(second.binds))
        if binds is first.binds:
            self.common.goes_on(binds, whole)
        self.known[id(whole)] = whole, once
        return f.Block(whole, tuple([once.atom(x) for x in (*first.results, *second.results)]))


class _Once(Renamed):
    """`made` has the expressions computed so far, and `scopes` those of each enclosing block."""

    def __init__(self) -> None:
        super().__init__({})
        self.made: dict[object, f.Var] = {}
        self.scopes: list[list[object]] = [[]]

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
