"""What an inner loop computes of its own index, in each step of the outer loops, is computed once, before the nest.

    par i < n {                            e = par k < m to keep { y = index b k; exp y }
      s = par j < m to fold 0 {            par i < n {
        y = index b j                 =>     s = par j < m to fold 0 {
        z = exp y                              z = index e j
        ... z ... } }                          ... z ... } }

This is loop-invariant code motion from a loop that is not the innermost one; inner loops move as well.  Only what takes
longer than reading it again is kept, and only what cannot fail is moved.  A nest without points computes nothing.  A
read may be in bounds since another one, in the nest, was checked.  Then zeros are kept where it is not: there the nest
fails before it uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, all_hold, block_of, integer, number_zero
from dplc.flat.copy import Copier, Renamed
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, bound_inside, every, mentions, needed, rhs_mentions
from dplc.narrow import expect_type
from dplc.passes.layout.strides import is_long
from dplc.passes.simplify.purity import HERE, droppable, natural, pure, takes_over


def computed_once(supply: f.Supply, bind: f.Bind, par: f.Par) -> Iterable[f.Bind]:
    """The bindings in place of that of a Par: what is computed once, and then the Par."""
    if par.ordered or (len(par.space) == 1 and not any(isinstance(inner.rhs, f.Par) for inner in par.body.binds)):
        return (bind,)
    work = _Invariants(supply, par)
    made = work.par(par, ())
    return (bind,) if made is par else (*block_of(work.b.binds, ()).binds, f.Bind(bind.vars, made))


class _Invariants:
    """One outermost Par."""

    def __init__(self, supply: f.Supply, par: f.Par) -> None:
        self.b = Builder(supply)
        self.own = {var.name for var in bound_inside(par)}
        self.checks = any(is_checked(bind.rhs) for bind in every(par.body))

    def outside(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Const) or atom.name not in self.own

    def par(self, par: f.Par, outer: tuple[f.Atom, ...]) -> f.Par:
        """A Par inside of loops of the counts `outer`."""
        counts = (*outer, *[count for _, count in par.space])
        if not all(map(self.outside, counts)):
            return par
        body = self.body(par.body, par.space[-1][0], counts) if len(counts) > 1 and is_long(counts[-1]) else par.body
        binds = tuple([replace(bind, rhs=self.par(bind.rhs, counts)) if isinstance(bind.rhs, f.Par) else bind
                       for bind in body.binds])  # fmt: skip
        if body is par.body and all(new.rhs is old.rhs for new, old in zip(binds, body.binds, strict=True)):
            return par
        return replace(par, body=f.Block(binds, body.results))

    def body(self, body: f.Block, index: f.Var, counts: tuple[f.Atom, ...]) -> f.Block:
        """A body without what is computed once of its index."""
        alone: dict[str, f.Bind] = {}
        for bind in body.binds:
            others = self.own.intersection(rhs_mentions(bind.rhs)) - {index.name}
            if self.is_moved(bind) and alone.keys() >= others.difference(var.name for var in bound_inside(bind.rhs)):
                alone[bind.vars[0].name] = bind
        if not any(takes_long(bind.rhs) for bind in alone.values()):
            return body
        moved = tuple(alone.values())
        rest = f.Block(tuple([bind for bind in body.binds if name_of(bind) not in alone]), body.results)
        used = set(mentions(rest))
        wanted = [bind for name, bind in alone.items() if name in used and isinstance(bind.vars[0].ty, f.Num)
                  and any(takes_long(one.rhs) for one in needed(moved, [name_of(bind)]))]  # fmt: skip
        if not wanted:
            return body
        columns = self.columns(wanted, needed(moved, map(name_of, wanted)), index, counts)
        reads: list[f.Bind] = []
        atoms_: dict[str, f.Atom] = {}
        for bind, column in zip(wanted, columns, strict=True):
            x = self.b.var("x", bind.vars[0].ty)
            self.own.add(x.name)  # inner loops may not take it out of this one
            reads.append(f.Bind((x,), f.Op("index", (column, index), (("unchecked", True),))))
            atoms_[bind.vars[0].name] = x
        still = [alone[name] for name in used if name in alone and name not in atoms_]
        gone = alone.keys() - {name_of(bind) for bind in needed(moved, map(name_of, still))}
        binds = tuple([bind for bind in body.binds if name_of(bind) not in gone])
        left = Renamed(atoms_).block(f.Block(binds, body.results))
        return f.Block((*reads, *left.binds), left.results)

    def is_moved(self, bind: f.Bind) -> bool:
        """True for an operation, or a loop with one result, that cannot fail and may run before the nest: its reads are
        in bounds there, too."""
        rhs = bind.rhs
        if isinstance(rhs, f.Par):
            checked = any(self.stands_on_check(one.rhs) for one in every(rhs.body))
            return len(bind.vars) == 1 and droppable(rhs) and not checked
        if not isinstance(rhs, f.Op) or not pure(rhs) or not OPS[rhs.op].repeatable or takes_over(rhs):
            return False
        return not self.stands_on_check(rhs) or rhs.op in ("index", "slice")

    def stands_on_check(self, rhs: f.Rhs) -> bool:
        """True for a read that may be in bounds only since the nest checked another one."""
        return self.checks and isinstance(rhs, f.Op) and rhs.attr("unchecked") == HERE

    def columns(
        self, wanted: list[f.Bind], needed: list[f.Bind], index: f.Var, counts: tuple[f.Atom, ...]
    ) -> tuple[f.Var, ...]:
        """Arrays of what these bindings give for all values of the index."""
        b, i, count = self.b, self.b.var("k", f.I64), counts[-1]
        for outer in dict.fromkeys(counts[:-1]):
            if not isinstance(outer, f.Const) and outer != count:
                count = b.op("select", (b.op("eq", (outer, integer(0))), integer(0), count))
        copied = Copier(b.supply, {index.name: i})
        binds = copied.binds(tuple(needed))
        results = [copied.atom(bind.vars[0]) for bind in wanted]
        with b.inside() as body:
            results = self.in_bounds(binds, results)
        par = f.Par(((i, count),), block_of(body, results), (f.Out("keep"),) * len(wanted))
        return b.bind(par, [f.Arr(bind.vars[0].ty, 1) for bind in wanted], "column")

    def in_bounds(self, binds: Sequence[f.Bind], results: Sequence[f.Atom]) -> Sequence[f.Atom]:
        """Writes bindings, those that stand on a check and what needs them in a branch.  Gives the results, zeros where
        such a read is not in bounds."""
        b, checked, later, waiting = self.b, list[f.Bind](), list[f.Bind](), set[str]()
        for bind in binds:
            if not waiting.isdisjoint(rhs_mentions(bind.rhs)):
                later.append(bind)
            elif self.stands_on_check(bind.rhs):
                checked.append(bind)
            else:
                b.binds.append(bind)
                continue
            waiting.add(name_of(bind))
        if not checked:
            return results
        there = all_hold(b, [one for bind in checked for one in self.bounds(bind.rhs)])
        with b.inside() as inner:
            b.binds += checked
            values = self.in_bounds(later, results)
        none = f.Block((), tuple([number_zero(value.ty) for value in results]))
        return b.bind(f.If(there, block_of(inner, values), none), [value.ty for value in results], "x")

    def bounds(self, rhs: f.Rhs) -> list[f.Atom]:
        """What holds where an index or a slice is in bounds."""
        b, (array, *at) = self.b, atoms(rhs)
        if expect_type(f.Op, rhs).op == "slice":
            low, high = at
            return [b.op("le", pair) for pair in ((integer(0), low), (low, high), (high, b.op("dim", (array,), k=0)))]
        lower = [b.op("le", (integer(0), i)) for i in at if not natural(i)]
        return [*lower, *[b.op("lt", (i, b.op("dim", (array,), k=k))) for k, i in enumerate(at)]]


def is_checked(rhs: f.Rhs) -> bool:
    return isinstance(rhs, f.Op) and OPS[rhs.op].fails is Fails.BOUNDS and not rhs.attr("unchecked")


def name_of(bind: f.Bind) -> str:
    return bind.vars[0].name if bind.vars else ""


def takes_long(rhs: f.Rhs) -> bool:
    """True for what takes longer than a read.  Whole numbers are places: whoever reads at one that is computed knows
    more than of one that is read."""
    if isinstance(rhs, f.Par):
        return True
    return isinstance(rhs, f.Op) and rhs.args[0].ty != f.I64 and not (OPS[rhs.op].cheap or OPS[rhs.op].light)
