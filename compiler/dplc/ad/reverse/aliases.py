"""Which arrays of a function may be updated in place: may-alias classes of its variables (Steensgaard 1996).

    s' = for i < n state (s = a) { t = update s x i; yield t }        a, s, t and s' may be one array, which is updated
    b = build j < m { ... }                                           b is another one, which is only read

Arrays that come from elsewhere, or go there, may be updated there.  Those that the program gives to a derivative are
not: the backward code runs before that, and most derivatives keep their argument anyway.  A row is another array: an
update of it copies it.
"""

from __future__ import annotations

from collections.abc import Iterable

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, blocks, every


class Aliases:
    """The classes of a function's arrays: `above` leads from a variable to the one that stands for its class.  In those
    of `changed` an array is updated, or may be, as it is known elsewhere.  The program takes the derivative of a
    `root`: `given` are its parameters, and their fields."""

    def __init__(self, fn: f.Fn, root: bool = False) -> None:
        self.above: dict[str, str] = {}
        self.found: list[str] = []
        self.given = {p.name for p in fn.params} if root else set[str]()
        self.change((*(p for p in fn.params if p.name not in self.given), *fn.body.results))
        for bind in every(fn.body):
            self.bind(bind)
        self.changed = {self.top(name) for name in self.found}

    def only_read(self, array: f.Var) -> bool:
        """True if an array is the function's own, and is not updated."""
        return self.top(array.name) not in self.changed

    def bind(self, bind: f.Bind) -> None:
        match bind.rhs:
            case f.Op() as op:
                self.operation(bind.vars, op)
            case f.For() | f.While() as loop:
                ends = loop.body.results
                for state, init, end, var in zip(loop.state, loop.inits, ends, bind.vars, strict=False):
                    self.join(state, init, end, var)
            case f.If() | f.Switch():
                for arm in blocks(bind.rhs):
                    for var, end in zip(bind.vars, arm.results, strict=True):
                        self.join(var, end)
            case f.Build() | f.Map() | f.Par():
                pass  # makes new arrays
            case f.TupGet(f.Var(name)) if name in self.given:
                self.given.add(bind.vars[0].name)
            case _:
                self.change((*bind.vars, *atoms(bind.rhs)))

    def operation(self, vars_: tuple[f.Var, ...], op: f.Op) -> None:
        """Views join what they show; what is written, or given to an unknown effect, is changed."""
        row = OPS[op.op]
        if not (row.quiet or row.changes):
            self.change((*vars_, *op.args))
        if row.changes:
            self.change(op.args[:1])
            self.join(op.args[0], *vars_)
        elif not (row.fresh or row.elementwise):
            self.join(*[op.args[k] for k in row.own], *vars_)

    def change(self, some: Iterable[f.Atom]) -> None:
        """Notes arrays that may change."""
        self.found += [atom.name for atom in some if isinstance(atom, f.Var) and isinstance(atom.ty, f.Arr)]

    def join(self, *some: f.Atom) -> None:
        """Notes that some atoms may be one array: they are one class from now on (union-find)."""
        first, *others = [self.top(atom.name) for atom in some if isinstance(atom, f.Var)] or [""]
        self.above.update((other, first) for other in others if other != first)

    def top(self, name: str) -> str:
        """What stands for the class of a variable."""
        found = name
        while found in self.above:
            found = self.above[found]
        if found != name:
            self.above[name] = found
        return found
