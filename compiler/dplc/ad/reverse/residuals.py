"""The choice of residuals, the variables that forward code keeps for backward code, by a minimum cut
(rematerialisation; Moses et al. 2021).

Backward code mentions variables of the forward code by name.  What is kept costs memory; what is computed again costs
time (`ad/repeats.py`).  The cheapest choice is taken, such that everything that is needed is there:

    t = mul 3.7 s;  u = sub 1.0 s;  y = mul t u         t, u and y are needed: s is kept
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from dpl.node import field, record

from dplc.ad.repeats import bytes_of
from dplc.ad.reverse.min_cut import WIDE, cut
from dplc.flat import term as f
from dplc.flat.walk import atoms, blocks, bound_inside, mentioned

Price = Callable[[f.Bind], int | None]
"""The cost of repeating a binding; None if it cannot be repeated."""
Reading = Callable[[f.Var], int | None]
"""The cost of reading an array from outside of the block again; None if it is not there any more."""


def choose(
    block: f.Block, local: Collection[str], given: Collection[str], binds: Sequence[f.Bind], price: Price,
    reading: Reading, there: Mapping[str, int],
) -> tuple[list[f.Var], list[f.Bind]]:  # fmt: skip
    """The residuals of a forward block that binds the names `local`, for the backward code `block`: the variables to
    keep, and the bindings to repeat, in order.  `binds` are bindings of the forward block.  The names `given` are
    available; those in `there` are kept elsewhere already, and have another weight."""
    needed = {name: var for name, var in mentioned(block).items() if name in local and name not in given}
    if not needed:
        return [], []
    cone = Cone(set(local) - set(given), {var.name: bind for bind in binds for var in bind.vars}, price, reading)
    cone.grow(needed)
    weights = {name: there.get(name, weight) for name, weight in cone.weights.items()}
    keep = cut(weights, cone.sources, needed, cone.costs)
    again = repeated(needed, keep, cone.sources)
    kept = [var for name, var in cone.found.items() if name in keep and name in local]
    return kept, [bind for bind in binds if not again.isdisjoint(var.name for var in bind.vars)]


@record
class Cone:
    """What is needed, and what it can be computed from: the nodes of the graph that is cut.  A binding of several
    variables is a node too, which has to be computed."""

    local: Collection[str]
    makers: Mapping[str, f.Bind]
    price: Price
    reading: Reading
    found: dict[str, f.Var] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    costs: dict[str, int] = field(default_factory=dict)

    def grow(self, needed: Mapping[str, f.Var]) -> None:
        todo = list(needed.values())
        self.found.update(needed)
        while todo:
            var = todo.pop()
            self.weights[var.name] = bytes_of(var.ty)
            bind = self.makers.get(var.name)
            if bind is None:
                continue
            node = var.name if len(bind.vars) == 1 else f"{bind.vars[0].name} and others"
            if (node in self.sources or self.enter(node, bind, todo)) and node != var.name:
                self.sources[var.name] = [node]

    def enter(self, node: str, bind: f.Bind, todo: list[f.Var]) -> bool:
        """Adds a binding that can be repeated."""
        cost = self.price(bind)
        if cost is None:
            return False
        used = list(operands(bind.rhs))
        outside = [var for var in used if var.name not in self.local and isinstance(var.ty, f.Arr)]
        reads = {var.name: self.reading(var) for var in outside if var.name not in self.weights}
        if any(weight is None for weight in reads.values()):
            return False
        self.weights.update((name, weight) for name, weight in reads.items() if weight is not None)
        new = [var for var in used if var.name in self.local and var.name not in self.found]
        self.found.update((var.name, var) for var in new)
        todo += new
        self.costs[node] = cost
        self.weights.setdefault(node, WIDE)
        self.sources[node] = [var.name for var in used if var.name in self.local or var.name in self.weights]
        return True


def operands(rhs: f.Rhs) -> Iterable[f.Var]:
    """The variables from outside that a right-hand side uses."""
    used = {atom.name: atom for atom in atoms(rhs) if isinstance(atom, f.Var)}
    if inner := blocks(rhs):
        inside = {var.name for var in bound_inside(rhs)}
        for block in inner:
            used.update((name, var) for name, var in mentioned(block).items() if name not in inside)
    return used.values()


def repeated(needed: Collection[str], keep: Collection[str], sources: Mapping[str, Collection[str]]) -> set[str]:
    """The names that are computed again if those in `keep` are kept."""
    again, todo = set[str](), list(needed)
    while todo:
        name = todo.pop()
        if name not in keep and name not in again:
            again.add(name)
            todo += sources.get(name, ())
    return again
