"""What is done to each element of an array in other dimensions is done as its numbers are made.

    c = par i < n to keep of (2) {                 c = par i < n to keep of (2) {
      ...; r = array x y; yield r }                  ...; v = mul x k; w = mul y k
    v = reshape c m                          =>      r = array v w; yield r }
    d = par i < m to keep in v {                   d = reshape c m
      x = index v i
      y = mul x k; yield y }

So it takes no pass over the array.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.copy import Copier
from dplc.flat.dims import Dims, dims_of
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, mentions, names, with_binds, with_body, with_inner
from dplc.narrow import expect_type
from dplc.passes.simplify.purity import droppable

VIEWS = ("reshape", "slice")


def late_views(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function; one that has none of these is given back."""
    if not any(isinstance(bind.rhs, f.Op) and bind.rhs.op in VIEWS for bind in every(fn.body)):
        return fn
    return with_body(fn, _Late(supply, Counter(mentions(fn.body)), dims_of(fn.body)).block(fn.body))


class _Late:
    """One function; `uses` tells how often each variable is mentioned in it."""

    def __init__(self, supply: f.Supply, uses: Counter[str], dims: Dims) -> None:
        self.supply, self.uses, self.dims = supply, uses, dims

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            view = self.seen(binds, bind.rhs) if isinstance(bind.rhs, f.Par) else None
            maker = None if view is None else self.made(binds, view)
            if view is None or maker is None:
                binds.append(with_inner(bind, self.block))
                continue
            at, k = maker
            done = expect_type(f.Par, bind.rhs).body
            later = {var.name for one in binds[at:] for var in one.vars} - {binds[view].vars[0].name}
            if not later.isdisjoint(mentions(done)):
                binds.append(bind)
                continue
            binds[at] = self.added(binds[at], k, done)
            binds[view] = f.Bind(bind.vars, binds[view].rhs)
        return with_binds(block, binds)

    def seen(self, binds: list[f.Bind], par: f.Par) -> int | None:
        """The number of the binding of the array whose elements a Par changes, all of them, if nothing else mentions
        it."""
        match par:
            case f.Par(space, f.Block((read, *others), (made,)), (f.Out("keep", _, target),)) if others:
                pass
            case _:
                return None
        indices = [index for index, _ in space]
        match read.rhs:
            case f.Op("index", (f.Var(name) as array, *at)) if at == indices and target in (None, array):
                own = self.uses[name] == (1 if target is None else 2) and all(map(is_arithmetic, others))
                own = own and made.ty == read.vars[0].ty  # the view keeps its type
                whole = target or all(self.dims.of(array, k) == n for k, (_, n) in enumerate(space))
                if own and whole and set(names(indices)).isdisjoint(mentions(f.Block(tuple(others), par.body.results))):
                    return place_of(binds, name)
            case _:
                pass
        return None

    def made(self, binds: list[f.Bind], view: int) -> tuple[int, int] | None:
        """Which binding is that of the Par that has made the elements of a view, which nothing else mentions, and which
        of its results they are."""
        match binds[view].rhs:
            case f.Op(op, (f.Var(name), *_)) if op in VIEWS and self.uses[name] == 1:
                at = place_of(binds, name)
                if at is None or not isinstance(par := binds[at].rhs, f.Par):
                    return None if at is None else self.made(binds, at)
                k = [var.name for var in binds[at].vars].index(name)
                return (at, k) if par.outs[k].kind == "keep" and self.pieces(par, k) else None
            case _:
                return None

    def pieces(self, par: f.Par, k: int) -> tuple[f.Atom, ...]:
        """The numbers that a point keeps."""
        literals, numbers = literals_in(par.body), (par.body.results[k],)
        while isinstance(numbers[0].ty, f.Arr):
            if any(x not in literals or self.uses[expect_type(f.Var, x).name] > 1 for x in numbers):
                return ()
            numbers = tuple([x for array in numbers for x in literals[array]])
        return numbers if all(isinstance(x.ty, f.Num) for x in numbers) else ()

    def added(self, bind: f.Bind, k: int, done: f.Block) -> f.Bind:
        """The Par with this done to these numbers."""
        par = expect_type(f.Par, bind.rhs)
        literals, b, gone = literals_in(par.body), Builder(self.supply), set[f.Atom]()

        def changed(x: f.Atom) -> f.Atom:
            if isinstance(x.ty, f.Arr):
                gone.add(x)
                return b.op("array", [changed(item) for item in literals[x]])
            copier = Copier(self.supply, {done.binds[0].vars[0].name: x})
            b.binds += copier.binds(done.binds[1:])
            return copier.atom(done.results[0])

        results = tuple([changed(x) if i == k else x for i, x in enumerate(par.body.results)])
        kept = [one for one in par.body.binds if gone.isdisjoint(one.vars)]
        return f.Bind(bind.vars, replace(par, body=f.Block((*kept, *block_of(b.binds, ()).binds), results)))


def literals_in(body: f.Block) -> dict[f.Atom, tuple[f.Atom, ...]]:
    """What the arrays in a body are made of that are written element by element."""
    return {bind.vars[0]: bind.rhs.args for bind in body.binds
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "array"}  # fmt: skip


def is_arithmetic(bind: f.Bind) -> bool:
    """True for an operation on numbers that cannot fail."""
    op = bind.rhs
    return isinstance(op, f.Op) and (OPS[op.op].elementwise or op.op == "acc_add") and droppable(op) and all(
        isinstance(x.ty, f.Num) for x in (*op.args, *bind.vars))  # fmt: skip


def place_of(binds: list[f.Bind], name: str) -> int | None:
    """The number of the binding of a variable in a block."""
    return next((at for at, bind in enumerate(binds) if any(var.name == name for var in bind.vars)), None)
