"""Rows that points add to an accumulator are added as they are computed.

    par i < n to add (c) {                         par i < n to add (c) {
      r = par j < m to keep { ...; yield x }         c' = par j < m to add (b = c) {
      c' = acc_index c r n m i                =>       ...; b' = acc_index b x n m i j; yield b' }
      yield c' }                                     yield c' }

So no row is made, and the nest may be inverted.  Several rows may be added to one accumulator, one after the other: a
point then adds its element of each.  These lie in one column, which no other point adds to, so the order is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from dpl.node import field, record, replace

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.flat.walk import every, mentions, names, rhs_mentions, with_binds, with_inner
from dplc.passes.simplify.purity import droppable, natural


def added_directly(body: f.Block, supply: f.Supply) -> f.Block:
    """The body of a function, without rows that are made only to be added."""
    if not any(out.acc for bind in every(body) if isinstance(bind.rhs, f.Par) for out in bind.rhs.outs):
        return body
    return _Rows(body, supply).block(body, set())


@record
class _Row:
    """An array of a Par's results: that of out number `k`, `length` long if it is longer than the Par."""

    par: _Made
    k: int
    length: f.Atom | None = None


@record
class _Made:
    """A Par that makes rows, the bindings of which go, and what these are added to."""

    vars: tuple[f.Var, ...]
    par: f.Par
    gone: list[str]
    rows: int  # how many outs are added
    added: dict[int, tuple[f.Var, f.Op, f.Var, f.Atom | None]] = field(default_factory=dict)


class _Rows:
    def __init__(self, body: f.Block, supply: f.Supply) -> None:
        self.supply = supply
        self.uses = Counter(mentions(body))
        self.lengths = {bind.vars[0].name for bind in every(body)
                        if isinstance(bind.rhs, f.Op) and bind.rhs.op == "dim"}  # fmt: skip
        self.extended = {name for bind in every(body) if isinstance(bind.rhs, f.Op) and bind.rhs.op == "acc_extend"
                         for name in names(bind.rhs.args[:1])}  # fmt: skip

    def block(self, block: f.Block, accs: set[str]) -> f.Block:
        """The block; `accs` are the accumulators of the Par around it."""
        binds: dict[str, f.Bind] = {}  # by the name of the first variable
        rows: dict[str, _Row] = {}
        waiting: dict[str, _Made] = {}  # for additions of other outs, by the names of all that is not added
        given = set(added_names(block))
        for number, bind in enumerate(block.binds):
            name = bind.vars[0].name if bind.vars else f"{number}"
            bind = self.inside(bind, accs)
            for read in [read for read in rhs_mentions(bind.rhs) if read in waiting]:
                if not self.goes_on(bind.rhs, read, rows):
                    waiting[read].gone.clear()  # a sum is used before all are there
            match bind.rhs:
                case f.Par() as par if wanted := self.rows_of(bind, par, given):
                    made = _Made(bind.vars, par, [name], len(wanted))
                    waiting.update({var.name: made for k, var in enumerate(bind.vars) if k not in wanted})
                    rows.update({bind.vars[k].name: _Row(made, k) for k in wanted})
                case f.Op("acc_extend", (f.Var(short), length)) if short in rows and self.uses[name] == 1:
                    rows[name] = replace(rows[short], length=length)
                    rows[short].par.gone.append(name)
                case f.Op() as op if (added := addition(op, accs)) is not None:
                    accs.add(name)
                    acc, term = added
                    if term.name in rows and (made := rows[term.name].par).gone:
                        row = rows[term.name]
                        made.added[row.k] = bind.vars[0], op, acc, row.length
                        if len(made.added) == made.rows:
                            for one in made.gone:
                                del binds[one]
                            bind = self.adding(made)
                        else:
                            waiting[name] = made
                            made.gone.append(name)
                case _:
                    pass
            binds[name] = bind
        return with_binds(block, tuple(binds.values()))

    def inside(self, bind: f.Bind, accs: set[str]) -> f.Bind:
        own = {out.acc.name for out in bind.rhs.outs if out.acc} if isinstance(bind.rhs, f.Par) else set(accs)
        return with_inner(bind, lambda inner: self.block(inner, set(own)))

    def goes_on(self, rhs: f.Rhs, sum_: str, rows: dict[str, _Row]) -> bool:
        """True if a right-hand side adds another row of the same Par to a sum that nothing else reads."""
        if not isinstance(rhs, f.Op) or self.uses[sum_] != 1 or (added := addition(rhs, [sum_])) is None:
            return False
        if added[1].name not in rows:
            return False
        before = [op for var, op, _, _ in rows[added[1].name].par.added.values() if var.name == sum_]
        return bool(before) and all(op.op != "acc_slice" for op in (*before, rhs))

    def rows_of(self, bind: f.Bind, par: f.Par, given: set[str]) -> list[int]:
        """The numbers of the outs that are arrays of numbers, used once, to be added, if the points cannot fail.  Nor
        can their length, which is that of an array, or the number of a loop's steps."""
        looped = any(var.name in self.extended for var in bind.vars)
        counted = looped or all(natural(n) or (isinstance(n, f.Var) and n.name in self.lengths) for _, n in par.space)
        if par.ordered or not counted or not all(droppable(one.rhs) for one in par.body.binds):
            return []
        outs = enumerate(zip(bind.vars, par.body.results, par.outs, strict=True))
        return [k for k, (var, x, out) in outs if out.kind == "keep" and f.is_float(x.ty)
                and self.uses[var.name] == 1 and var.name in given]  # fmt: skip

    def adding(self, made: _Made) -> f.Bind:
        """The points of rows, which add to accumulators."""
        par, binds, results = made.par, list(made.par.body.binds), list(made.par.body.results)
        variables, outs = list(made.vars), list(par.outs)
        ends: dict[str, int] = {}  # by the names of sums, the numbers of their outs
        gone: set[int] = set()  # outs whose sums are added to again
        for k, (var, op, acc, length) in made.added.items():
            after = f.Var(self.supply.fresh(acc.name), acc.ty)
            places, rank = tuple([index for index, _ in par.space]), rank_of(acc.ty)
            dims = tuple([count for _, count in par.space]) if length is None else (length,)
            if op.op == "acc_index":
                dims, places = op.args[2 : 2 + rank], (*op.args[2 + rank :], *places)
            elif op.op == "acc_slice":
                first = f.Var(self.supply.fresh("row"), f.I64)
                binds.append(f.Bind((first,), f.Op("add", (places[0], op.args[2 + rank]))))
                dims, places = op.args[2 : 2 + rank], (first, *places[1:])
            if (before := ends.get(acc.name)) is None:
                inner = f.Var(self.supply.fresh(acc.name), acc.ty)
                outs[k] = f.Out("add", target=acc, acc=inner)
            else:
                inner, outs[k] = results[before], outs[before]
            args = (inner, results[k], *dims, *places)
            binds.append(f.Bind((after,), f.Op("acc_index", args, (("rank", rank),), op.span)))
            variables[k], results[k], ends[var.name] = var, after, k
            if before is not None:
                gone.add(before)
        kept = [k for k in range(len(outs)) if k not in gone]
        body = f.Block(tuple(binds), tuple([results[k] for k in kept]))
        par = replace(par, body=body, outs=tuple([outs[k] for k in kept]))
        return f.Bind(tuple([variables[k] for k in kept]), par)


def addition(op: f.Op, accs: Iterable[str]) -> tuple[f.Var, f.Var] | None:
    """The accumulator and the array that an operation adds to it."""
    match op:
        case f.Op("acc_add", (f.Var(a, f.Arr()) as one, f.Var() as other)):
            return (one, other) if a in accs else (other, one) if other.name in accs else None
        case f.Op("acc_index" | "acc_slice", (f.Var(a) as acc, f.Var(_, f.Arr()) as added, *_)) if a in accs:
            return acc, added
        case _:
            return None


def added_names(block: f.Block) -> Iterator[str]:
    """What is added to something, or made longer for that, in a block."""
    for bind in block.binds:
        if isinstance(bind.rhs, f.Op) and bind.rhs.op in ("acc_add", "acc_index", "acc_slice", "acc_extend"):
            yield from names(bind.rhs.args[:2])
