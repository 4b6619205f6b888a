"""Lengths of what the points of a Par make, as the host knows them before.

    c = par k < n to add (c' = null) {
      m = dim 0 row                                      m is dimension 1 of a
      row = index a k; g = ...                           g has the length m
      v = acc_index null x m j; w = acc_add v g          so w has it, whichever of v and g is null
      yield acc_add c' w }                               and so has c

What a function adds to an array that it is handed is looked for in its body, whose parameters are the arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dplc.flat import term as f
from dplc.flat.dims import dims_of
from dplc.flat.ops.row import Dim
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import bound_inside, every

DEEPEST = 8  # calls in calls that are looked into


class Lengths:
    """Those in a body, whose variables are `own`."""

    depth = 0

    def __init__(self, body: f.Block, own: set[str], fns: Mapping[str, f.Fn]) -> None:
        self.body, self.own, self.fns = body, own, fns
        self.known = dims_of(body)
        self.made = {var.name: bind.rhs for bind in every(body) for var in bind.vars}
        self.equal = {pair for bind in body.binds for pair in self.compared(bind.rhs)}

    def of(self, array: f.Atom, k: int) -> Dim | None:
        """Dimension k of an array, if it is not null; None if it is not known outside."""
        found = self.outside(self.known.of(array, k))
        match self.made.get(array.name) if isinstance(array, f.Var) else None:
            case f.Op("acc_add", args) if found is None:
                return next((dim for arg in args if (dim := self.inside(arg, k)) is not None), None)
            case _:
                return found

    def inside(self, array: f.Atom, k: int) -> Dim | None:
        """The same, of an array that is made in the body: one from outside may be null, and has no lengths then."""
        return self.of(array, k) if isinstance(array, f.Var) and array.name in self.own else None

    def outside(self, dim: Dim | None) -> Dim | None:
        """A dimension by what is known outside."""
        while isinstance(dim, f.Var):
            match self.made.get(dim.name):
                case f.Op("dim", (array,)) as op if (found := self.known.of(array, op.attr("k", 0))) != dim:
                    dim = found
                case _:
                    break
        if isinstance(dim, tuple):
            match self.made.get(dim[0].name):
                case f.TupGet(tup, i) if (there := self.item(tup, i)) and (found := there[0].of(there[1], dim[1])):
                    return found
                case f.Op(op, (_, _, *lengths)) as add if OPS[op].accumulates and add.attr("rank"):
                    return self.outside(lengths[dim[1]])  # that of what is added to, unless nothing is added
                case _:
                    pass
        return self.told(dim)

    def told(self, dim: Dim | None) -> Dim | None:
        """A dimension that the body does not make, or one to which it is compared; None if there is none."""
        if name_of(dim) not in self.own:
            return dim
        return next((other for one, other in self.equal if one == dim and name_of(other) not in self.own), None)

    def compared(self, rhs: f.Rhs) -> Iterator[tuple[Dim, Dim]]:
        """Lengths that are the same, or else the body fails."""
        match rhs:
            case f.Op("dot", (a, b)):
                found = self.known.of(a, 0), self.known.of(b, 0)
            case f.Op("check_lengths", found):
                pass
            case _:
                return
        one, other = found
        if one is not None and other is not None:
            yield from ((one, other), (other, one))

    def item(self, tup: f.Atom, i: int) -> tuple[Lengths, f.Atom] | None:
        """Item i of a tuple, and the body that has it, if it is known."""
        match self.made.get(tup.name) if isinstance(tup, f.Var) else None:
            case f.TupMake(items):
                return self, items[i]
            case f.TupGet(outer, k) if there := self.item(outer, k):
                return there[0].item(there[1], i)
            case _:
                return None

    def all_of(self, array: f.Atom) -> tuple[Dim, ...]:
        """All dimensions of an array that is made in the body; none if one is not known."""
        found = [self.inside(array, k) for k in range(rank_of(array.ty))]
        return tuple([dim for dim in found if dim is not None]) if None not in found else ()

    def added(self, names: set[str], body: f.Block | None = None) -> tuple[Dim, ...]:
        """The dimensions of an array that is known by these names, by what is added to it; none if unknown, or if
        branches tell others."""
        for bind in every(body or self.body):
            found: tuple[Dim | None, ...] = ()
            match bind.rhs:
                case f.If(_, then, other):
                    if len({told for arm in (then, other) if (told := self.added(names, arm))}) > 1:
                        return ()
                case f.Op(op, (f.Var(name), *rest)) as add if name in names and OPS[op].accumulates:
                    found = tuple(map(self.outside, rest[1 : 1 + add.attr("rank")]))
                case f.Op(op, (f.Var(name), *_)) if name in names and OPS[op].cubic:
                    found = self.all_of(bind.vars[0])
                case f.Op("acc_add", (f.Var(name), f.Var() as other)) if name in names:
                    found = self.all_of(other)
                case f.Call(name, args) if self.depth < DEEPEST:
                    found = self.handed(names, self.fns[name], args)
                case f.Par(_, _, outs):
                    names = names | {o.acc.name for o in outs
                                     if o.acc and isinstance(o.target, f.Var) and o.target.name in names}  # fmt: skip
                case f.For() | f.While() as loop:
                    names = names | {s.name for s, a in zip(loop.state, loop.inits, strict=True)
                                     if isinstance(a, f.Var) and a.name in names}  # fmt: skip
                case _:
                    pass
            if found and None not in found:
                return tuple([dim for dim in found if dim is not None])
        return ()

    def handed(self, names: set[str], fn: f.Fn, args: Sequence[f.Atom]) -> tuple[Dim, ...]:
        """The same, of what a function adds to an array that it is handed."""
        for param, arg in zip(fn.params, args, strict=True):
            if isinstance(arg, f.Var) and arg.name in names:
                return _Called(self, fn, args).added({param.name})
        return ()


class _Called(Lengths):
    """Those in a function that a body calls, by what is known outside of that body."""

    def __init__(self, caller: Lengths, fn: f.Fn, args: Sequence[f.Atom]) -> None:
        own = {var.name for bind in every(fn.body) for var in (*bind.vars, *bound_inside(bind.rhs))}
        super().__init__(fn.body, own, caller.fns)
        self.caller, self.depth = caller, caller.depth + 1
        self.given = {param.name: arg for param, arg in zip(fn.params, args, strict=True)}

    def inside(self, array: f.Atom, k: int) -> Dim | None:
        given = self.given.get(array.name) if isinstance(array, f.Var) else None
        return super().inside(array, k) if given is None else self.caller.inside(given, k)

    def told(self, dim: Dim | None) -> Dim | None:
        match dim:
            case f.Var(name) if name in self.given:
                return self.caller.outside(self.given[name])
            case (array, k) if array.name in self.given:
                return self.caller.of(self.given[array.name], k)
            case _:
                return super().told(dim)

    def item(self, tup: f.Atom, i: int) -> tuple[Lengths, f.Atom] | None:
        given = self.given.get(tup.name) if isinstance(tup, f.Var) else None
        return super().item(tup, i) if given is None else self.caller.item(given, i)


def name_of(dim: Dim | None) -> str:
    var = dim[0] if isinstance(dim, tuple) else dim
    return var.name if isinstance(var, f.Var) else ""
