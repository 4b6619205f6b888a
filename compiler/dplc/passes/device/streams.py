"""Streams: comprehensions in a kernel's points of which only a search or a sum of rows is wanted are never stored.

    ds = par j < n to keep { ...; yield d }          k, least = for j < n state (k = 0, least = 0.0)
    k = argmin ds                              =>      ...; yield the better of (j, d) and (k, least)

    rows = par j < n to keep { ...; yield array x y }        s, t = for blocks of 1024 rows ... s + x, t + y
    r = sum rows                                       =>    r = array s t

Threads have little memory.  Results have the same bits, as a search finds the same place, and rows are added in the
order of `dpl/prims/sums.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dpl.prims.sums import BLOCK

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, every, mentions, with_blocks

SEARCHES = tuple(name for name, row in OPS.items() if row.finds)


def streamed(block: f.Block) -> f.Block:
    """The block, with the comprehensions in it as loops where that is possible."""
    uses = Counter(mentions(block))
    return _Streams(block, uses).block(block) if any(candidates(block)) else block


def candidates(block: f.Block) -> Iterator[f.Bind]:
    return (bind for bind in every(block) if isinstance(bind.rhs, f.Par) and of_one_array(bind.rhs))


def of_one_array(par: f.Par) -> bool:
    """True for a comprehension of one dimension and one result."""
    return len(par.space) == 1 and len(par.outs) == 1 and par.outs[0] == f.Out("keep", inner=par.outs[0].inner)


def asks_little(op: f.Op) -> bool:
    """True if an operation on an array needs no more of it than its length."""
    return op.op == "drop" or (op.op == "dim" and not op.attr("k", 0))


class _Streams:
    """Replaces comprehensions in a body.  `found` has what stands for operations on them."""

    def __init__(self, body: f.Block, uses: Counter[str]) -> None:
        self.uses = uses
        self.ops: dict[str, list[f.Op]] = {}  # operations on an array, by its name
        self.lengths: set[f.Atom] = set()  # of arrays: they are not negative
        for bind in every(body):
            if isinstance(bind.rhs, f.Op):
                self.lengths.update(bind.vars if bind.rhs.op == "dim" else ())
                for atom in atoms(bind.rhs):
                    if isinstance(atom, f.Var) and isinstance(atom.ty, f.Arr):
                        self.ops.setdefault(atom.name, []).append(bind.rhs)
        self.searched: dict[str, f.Var] = {}
        self.summed: dict[str, tuple[f.Var, ...]] = {}
        self.counts: dict[str, f.Atom] = {}

    def block(self, block: f.Block) -> f.Block:
        return f.Block(tuple([made for bind in block.binds for made in self.bind(bind)]), block.results)

    def bind(self, bind: f.Bind) -> tuple[f.Bind, ...]:
        match bind.rhs:
            case f.Op(_, (f.Var(name), *_)) if name in self.counts:
                return self.instead(bind, bind.rhs, name)
            case f.Par() as par if of_one_array(par):
                made = self.search(bind.vars[0], par) or self.rows(bind.vars[0], par)
                if made is not None:
                    return made
            case _:
                pass
        return (f.Bind(bind.vars, with_blocks(bind.rhs, self.block)),)

    def instead(self, bind: f.Bind, op: f.Op, name: str) -> tuple[f.Bind, ...]:
        """An operation on an array that is no more."""
        match op.op:
            case "drop":
                return ()
            case "dim":
                return (f.Bind(bind.vars, f.Op("add", (self.counts[name], f.Const(0, f.I64)))),)
            case "sum":
                return (f.Bind(bind.vars, f.Op("array", self.summed[name])),)
            case _:
                return (f.Bind(bind.vars, f.Op("add", (self.searched[name], f.Const(0, f.I64)))),)

    def only(self, var: f.Var, wanted: tuple[str, ...]) -> set[str]:
        """The wanted operations on an array; none if anything else uses it, or lengths of its rows."""
        ops = self.ops.get(var.name, [])
        fine = len(ops) == self.uses[var.name] and all(op.op in wanted or asks_little(op) for op in ops)
        return {op.op for op in ops if op.op in wanted} if fine else set()

    # ---- searches

    def search(self, var: f.Var, par: f.Par) -> tuple[f.Bind, ...] | None:
        """A loop that finds the place of the least or greatest number."""
        found, (x,) = self.only(var, SEARCHES), par.body.results
        if len(found) != 1 or not isinstance(x.ty, f.Num):
            return None
        (index, count), ty = par.space[0], x.ty
        best, most, place, value = (f.Var(f"{var.name}'{hint}", t) for hint, t in
                                    (("best", f.I64), ("most", ty), ("place", f.I64), ("value", ty)))  # fmt: skip
        body = self.block(par.body)
        names = Names(var.name)
        better = names.scalar("lt" if "argmin" in found else "gt", x, most)
        if f.is_float(ty):
            nan = names.scalar("and", names.scalar("ne", x, x), names.scalar("eq", most, most))
            better = names.scalar("or", better, nan)
        take = names.scalar("or", better, names.scalar("eq", index, f.Const(0, f.I64)))
        results = names.scalar("select", take, index, best, ty=f.I64), names.scalar("select", take, x, most, ty=ty)
        zero = f.Const(0.0 if f.is_float(ty) else 0, ty)
        loop = f.For(index, count, (best, most), (f.Const(0, f.I64), zero),
                     f.Block((*body.binds, *names.binds), results))  # fmt: skip
        self.counts[var.name], self.searched[var.name] = count, place
        return (*self.checked(count, var.name), f.Bind((place, value), loop))

    # ---- sums of rows

    def rows(self, var: f.Var, par: f.Par) -> tuple[f.Bind, ...] | None:
        """A loop that adds up rows of a few numbers, block by block."""
        made = {bind.vars[0]: bind for bind in par.body.binds if isinstance(bind.rhs, f.Op) and bind.rhs.op == "array"}
        (row,) = par.body.results
        at = made.get(row) if isinstance(row, f.Var) else None
        if at is None or self.only(var, ("sum",)) != {"sum"} or self.uses[at.vars[0].name] != 1:
            return None
        items = atoms(at.rhs)
        if not all(isinstance(item.ty, f.Num) for item in items):
            return None
        (index, count), names = par.space[0], Names(var.name)
        whole = self.block(f.Block(tuple([bind for bind in par.body.binds if bind is not at]), items))
        zeros = tuple([f.Const(0.0 if f.is_float(a.ty) else 0, a.ty) for a in items])

        def sums(hint: str) -> tuple[f.Var, ...]:
            return tuple([f.Var(f"{var.name}'{hint}{i}", item.ty) for i, item in enumerate(items)])

        inner, outer, block, totals = sums("inner"), sums("outer"), sums("block"), sums("total")
        number, local = f.Var(f"{var.name}'block", f.I64), f.Var(f"{var.name}'row", f.I64)
        first = names.scalar("mul", number, f.Const(BLOCK, f.I64), ty=f.I64)
        rest = names.scalar("min", names.scalar("sub", count, first, ty=f.I64), f.Const(BLOCK, f.I64), ty=f.I64)
        adding = Names(f"{var.name}'")
        after = tuple([adding.scalar("add", s, x, ty=x.ty) for s, x in zip(inner, whole.results, strict=True)])
        here = f.Bind((index,), f.Op("add", (first, local)))
        loop = f.For(local, rest, inner, zeros, f.Block((here, *whole.binds, *adding.binds), after))
        closing = Names(f"{var.name}''")
        sums_after = tuple([closing.scalar("add", s, x, ty=x.ty) for s, x in zip(outer, block, strict=True)])
        body = f.Block((*names.binds, f.Bind(block, loop), *closing.binds), sums_after)
        before = Names(f"{var.name}'''")
        up = before.scalar("add", count, f.Const(BLOCK - 1, f.I64), ty=f.I64)
        blocks_ = before.scalar("shift_right", up, f.Const(BLOCK.bit_length() - 1, f.I64), ty=f.I64)
        self.counts[var.name], self.summed[var.name] = count, totals
        whole_loop = f.Bind(totals, f.For(number, blocks_, outer, zeros, body))
        return (*self.checked(count, var.name), *before.binds, whole_loop)

    def checked(self, count: f.Atom, name: str) -> tuple[f.Bind, ...]:
        """A comprehension fails if its length is negative, and a loop does not."""
        if count in self.lengths or (isinstance(count, f.Const) and isinstance(count.value, int) and count.value >= 0):
            return ()
        names = Names(f"{name}'length")
        negative = names.scalar("lt", count, f.Const(0, f.I64))
        failing = f.Block((f.Bind((), f.Op("fail", (f.Const("", f.STR),))),), ())
        return (*names.binds, f.Bind((), f.If(negative, failing, f.Block((), ()))))


class Names:
    """Operations on numbers under construction, with names that begin alike."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.binds: list[f.Bind] = []

    def scalar(self, op: str, *args: f.Atom, ty: f.Type = f.BOOL) -> f.Var:
        var = f.Var(f"{self.prefix}'{len(self.binds)}", ty)
        self.binds.append(f.Bind((var,), f.Op(op, args)))
        return var
