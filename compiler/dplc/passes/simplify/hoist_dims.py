"""flat -> flat where dimensions are read right after their array is made.

    c = fill n 0.0                      m = dim 0 a
    b = update a v i                    c = fill n 0.0
    k = dim 0 c                 =>      b = update a v i
    m = dim 0 b                         ... n instead of k
    check_equal m m

An array whose dimension is read late is live until then, and a live array cannot be updated in place.  A dimension that
is known from the code (`flat/dims.py`) is not read at all; the others are hoisted.  Nor is an array reshaped to the
dimensions that it has.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.dims import Dim, Dims, dims_of
from dplc.flat.ops.table import OPS
from dplc.flat.walk import BLOCKS, binders, changed, every, rebuild, unchanged, with_binds, with_body, with_rhs


def hoist_dims(fn: f.Fn, supply: f.Supply, dims: Dims | None = None) -> f.Fn:
    """`dims` are the dimensions of the function, if they are known better than from its code.  The code still tells
    them: who asks later knows no more than that."""
    reads, reshaped = dims_read(fn.body), reshapes(fn.body)
    if not reads and not reshaped:
        return fn
    own = dims_of(fn.body)
    dims = dims or own
    wanted: dict[str, dict[int, f.Var]] = {}
    same = {var.name: op.args[0] for var, op in reshaped if keeps_shape(op, own if op.attr("told") else dims)}
    for read, array, k in reads:
        match dims.of(array, k):
            case (first, k):
                at = wanted.setdefault(first.name, {})
                same[read.name] = at.setdefault(k, f.Var(supply.fresh("dim"), f.I64))
            case f.Var() | f.Const() as length:
                same[read.name] = length
            case None:
                pass
    if not same:
        return fn
    body = _Hoister(wanted, same, supply).block(fn.body, fn.params)
    return with_body(fn, body)


def without_known_lengths(fn: f.Fn, supply: f.Supply, dims: Dims) -> f.Fn:
    """The function, of these dimensions, with numbers in place of the lengths that it reads and that are known."""
    known = any(isinstance(dims.of(array, k), f.Const) for _, array, k in dims_read(fn.body))
    return hoist_dims(fn, supply, dims) if known else fn


def hoist_lengths_of_rows(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The lengths of rows are read of the arrays that have these, once for all.  This also holds when accumulators have
    become null: these have no dimensions before something is added."""
    return hoist_dims(fn, supply, _Rows(fn.body))


class _Rows(Dims):
    """The dimensions of rows are those of their arrays; others are their own."""

    def __init__(self, body: f.Block) -> None:
        self.read_from = {bind.vars[0].name: bind.rhs.args for bind in every(body)
                          if isinstance(bind.rhs, f.Op) and bind.rhs.op == "index"}  # fmt: skip

    def of(self, array: f.Atom, k: int) -> Dim | None:
        while isinstance(array, f.Var) and array.name in self.read_from:
            array, *at = self.read_from[array.name]
            k += len(at)
        return (array, k) if isinstance(array, f.Var) else None

    def equal(self, one: Dim | None, other: Dim | None) -> bool:
        return False


def dims_read(body: f.Block) -> list[tuple[f.Var, f.Var, int]]:
    """The variables that are dimensions of arrays, with the array and the number of the dimension."""
    return [
        (bind.vars[0], bind.rhs.args[0], bind.rhs.attr("k")) for bind in every(body)
        if isinstance(bind.rhs, f.Op) and bind.rhs.op == "dim" and isinstance(bind.rhs.args[0], f.Var)
    ]  # fmt: skip


def reshapes(body: f.Block) -> list[tuple[f.Var, f.Op]]:
    """The variables that have other dimensions of an array of as many, with the operation."""
    return [(bind.vars[0], bind.rhs) for bind in every(body) if isinstance(bind.rhs, f.Op)
            and bind.rhs.op == "reshape" and bind.vars[0].ty == bind.rhs.args[0].ty]  # fmt: skip


def keeps_shape(op: f.Op, dims: Dims) -> bool:
    """True if an array is known to have the dimensions to which it is reshaped."""
    array, *wanted = op.args
    return all(dims.equal(dims.of(array, k), n) for k, n in enumerate(wanted))


class _Hoister:
    """`wanted`: the dimensions of each array that are read.  `same`: maps variables to their replacements."""

    def __init__(self, wanted: dict[str, dict[int, f.Var]], same: dict[str, f.Atom], supply: f.Supply) -> None:
        self.wanted = wanted
        self.same = same
        self.supply = supply

    def atom(self, atom: f.Atom) -> f.Atom:
        while isinstance(atom, f.Var) and atom.name in self.same:
            atom = self.same[atom.name]
        return atom

    def taken(self, vars_: tuple[f.Var, ...]) -> list[f.Bind]:
        return [
            f.Bind((dim,), f.Op("dim", (var,), (("k", k),)))
            for var in vars_
            for k, dim in self.wanted.get(var.name, {}).items()
        ]

    def block(self, block: f.Block, params: tuple[f.Var, ...]) -> f.Block:
        binds = self.taken(params)
        for bind in block.binds:
            if bind.vars and bind.vars[0].name in self.same:
                continue
            rhs = self.rhs(bind.rhs)
            if isinstance(rhs, f.Op) and OPS[rhs.op].compares and rhs.args[0] == rhs.args[1]:
                continue
            binds.append(with_rhs(bind, rhs))
            binds += self.taken(bind.vars)
        return with_binds(block, binds, changed(block.results, self.atom))

    def rhs(self, rhs: f.Rhs) -> f.Rhs:
        if type(rhs) not in BLOCKS:
            return rebuild(rhs, self.atom, unchanged, unchanged)
        match rhs:
            case f.Switch(scrutinee, cases, default):
                inner = []
                for case in cases:
                    payload = (case.payload,) if case.payload is not None else ()
                    inner.append(f.Case(case.tag, case.payload, self.block(case.body, payload)))
                other = None if default is None else self.block(default, ())
                return f.Switch(self.atom(scrutinee), tuple(inner), other)
            case f.While(state, inits, cond, body, collect):
                starts = tuple([self.atom(a) for a in inits])
                return f.While(state, starts, self.again(state).block(cond, state), self.block(body, state), collect)
            case _:
                params = binders(rhs)
                return rebuild(rhs, self.atom, lambda b: self.block(b, params), unchanged)

    def again(self, vars_: tuple[f.Var, ...]) -> _Hoister:
        """A hoister for a second block with the same parameters, with other names for their dimensions."""
        new = {v.name: {k: f.Var(self.supply.fresh("dim"), f.I64) for k in self.wanted.get(v.name, {})} for v in vars_}
        names = {self.wanted[array][k].name: dim for array, dims in new.items() for k, dim in dims.items()}
        return _Hoister({**self.wanted, **new}, {**self.same, **names}, self.supply)
