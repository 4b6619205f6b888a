"""The cotangents at a point of the backward code.

Backward code runs in reverse order, so the cotangent of a variable is complete when its binding is
reached.  A scope holds the sums of the contributions so far.  An inner block has a scope of its own; the cotangents of
outer variables that it touches become results of the block (a branch) or state (a loop), so that they are updated,
never returned and added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dplc.ad.activity import Node
from dplc.ad.derivatives import Derivatives
from dplc.ad.reverse.covered import Filled, in_arms
from dplc.ad.tangents.symbolic_zeros import (
    MAYBE_ZERO,
    NO_ZEROS,
    ZERO_ELEMENTS,
    Part,
    after_branch,
    after_loop,
    atom_of,
    contributions,
    end_of,
    marks,
    total,
)
from dplc.ad.tangents.types import is_zero
from dplc.flat import term as f
from dplc.flat.build import Builder


class Scope:
    """`leaf` maps a node to the type of its cotangent; `active` tells whether it has one."""

    def __init__(
        self, derivatives: Derivatives, b: Builder, active: Callable[[Node], bool], leaf: dict[Node, f.Type]
    ) -> None:
        self.d = derivatives
        self.b = b
        self.active = active
        self.leaf = leaf
        self.parts: dict[Node, Part] = {}
        self.filled: dict[Filled, None] = {}  # parts of arrays without symbolic zeros

    def get(self, node: Node) -> Part | None:
        """The cotangent of a leaf at this point; None for a symbolic zero."""
        return self.parts.get(node)

    def set(self, node: Node, part: Part) -> None:
        """Replaces the cotangent of a leaf."""
        self.parts[node] = part

    def type(self, node: Node) -> f.Type:
        """The type of a leaf's cotangent."""
        return self.leaf[node]

    def add(self, node: Node | None, part: Part | None) -> None:
        """Adds a contribution to a node's cotangent."""
        if node is None or part is None or not self.active(node) or (part.zeros is MAYBE_ZERO and is_zero(part.atom)):
            return
        old = self.get(node)
        if old is None or is_zero(old.atom):
            self.set(node, part)
            return
        self.set(node, total(self.b, self.d.convert.add(self.b, old.atom, part.atom), (old, part)))

    def current(self, node: Node) -> f.Atom:
        """The current cotangent, or zero: passed to the next contributor."""
        return atom_of(self.get(node), self.leaf[node])


class Inner(Scope):
    """The scope of a block inside another.  `local` are the names bound in it.  All other names belong to the
    parent."""

    def __init__(self, parent: Scope, local: frozenset[str]) -> None:
        super().__init__(parent.d, parent.b.inner(), parent.active, parent.leaf)
        self.parent = parent
        self.local = local
        self.touched: list[Node] = []

    def get(self, node: Node) -> Part | None:
        if node not in self.parts and node[0] not in self.local and node not in self.touched:
            self.touched.append(node)
            part = self.first(node)
            if part is not None:
                self.parts[node] = part
        return self.parts.get(node)

    def set(self, node: Node, part: Part) -> None:
        self.get(node)
        self.parts[node] = part

    def first(self, node: Node) -> Part | None:
        """A branch begins with the cotangent from before it."""
        return self.parent.get(node)


class LoopScope(Inner):
    """The body of a loop: a cotangent from outside that it touches becomes state.  If that is a float that may be a
    symbolic zero, its contributions are counted."""

    def __init__(self, parent: Scope, local: frozenset[str]) -> None:
        super().__init__(parent, local)
        self.state: list[f.Var] = []
        self.counts: dict[Node, f.Var] = {}

    def first(self, node: Node) -> Part | None:
        before = self.parent.get(node)
        var = self.b.var("c", self.type(node))
        self.state.append(var)
        if before is not None and before.zeros is not MAYBE_ZERO:
            return Part(var, before.zeros)
        if f.is_float(var.ty):
            self.counts[node] = self.b.var("k", f.F64)
        return Part(var, MAYBE_ZERO, count=self.counts.get(node))

    def inits(self) -> list[f.Atom]:
        """What the state is before the loop."""
        counts = [contributions(self.parent.b, self.parent.get(node)) for node in self.counts]
        return [*map(self.parent.current, self.touched), *counts]

    def states(self) -> list[f.Var]:
        """The state of the backward loop: cotangents, and what counts steps."""
        return [*self.state, *self.counts.values()]

    def results(self) -> list[f.Atom]:
        """What the state is after a step."""
        counts = [contributions(self.b, end) if (end := self.parts[node]).exact else count
                  for node, count in self.counts.items()]  # fmt: skip
        return [*(self.parts[node].atom for node in self.touched), *counts]

    def close(self, outs: Sequence[f.Var], steps: f.Atom) -> None:
        """Gives the cotangents after the loop, which are `outs`, to the parent."""
        found = dict(zip(self.counts, outs[len(self.touched) :], strict=True))
        for node, out in zip(self.touched, outs, strict=False):
            ends = self.parent.get(node), self.parts[node]
            self.parent.set(node, after_loop(self.parent.b, out, found.get(node), steps, ends))


Write = Callable[[Inner], None]


def branch(
    scope: Scope, locals_: Sequence[frozenset[str]], writes: Sequence[Write], build: Callable[[list[f.Block]], f.Rhs],
    cond: f.Atom | None = None,
) -> None:  # fmt: skip
    """Backward code of alternatives, of which one runs.  Each `write` adds to cotangents in a scope of its own."""
    inners = [Inner(scope, local) for local in locals_]
    for inner, write in zip(inners, writes, strict=True):
        write(inner)
    touched = list(dict.fromkeys(node for inner in inners for node in inner.touched))
    if not touched:
        return
    scope.filled |= in_arms([inner.filled for inner in inners], cond)
    ends = [[inner.parts.get(node, scope.get(node)) for inner in inners] for node in touched]
    told = [marks([inner.b for inner in inners], came, cond, scope.get(node))
            for came, node in zip(ends, touched, strict=True)]  # fmt: skip
    blocks = [
        inner.b.block(
            *(end_of(i, came, scope.type(node)) for came, node in zip(ends, touched, strict=True)),
            *(mark[i] for mark in told if mark),
        )
        for i, inner in enumerate(inners)
    ]
    types = [*(scope.type(node) for node in touched), *(mark[0].ty for mark in told if mark)]
    vars_ = scope.b.bind(build(blocks), types, "c")
    more = iter(vars_[len(touched) :])
    for node, var, mark, came in zip(touched, vars_, told, ends, strict=False):
        scope.set(node, after_branch(scope.b, var, next(more) if mark else None, cond, came))


def if_there(scope: Scope, part: Part, write: Callable[[Scope, Part], None]) -> None:
    """Runs `write` with a part that is not null; at run time, the code is skipped for null.  (A 0.0 that may be a
    symbolic zero is not skipped: it may be an ordinary number, on which the derivative of this code depends.)"""
    if not part.nullable:
        write(scope, part)
        return
    known = Part(part.atom, ZERO_ELEMENTS if isinstance(part.atom.ty, f.Arr) else NO_ZEROS)
    unless(scope, scope.b.op("is_null", (part.atom,)), lambda inner: write(inner, known))


def unless(scope: Scope, nothing: f.Atom, write: Write) -> None:
    """The code of `write`, which runs only if `nothing` is false."""
    writes: list[Write] = [lambda inner: None, write]
    branch(scope, [frozenset(), frozenset()], writes, lambda blocks: f.If(nothing, *blocks), nothing)
