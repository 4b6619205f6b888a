"""Branch records: the residuals of a recursive function whose body ends in a branch, one kind of record per path.

    fn f(x, n) -> (f64)              data res = res0 | res1 (f64, f64, res, res)
      if lt n 2                      fn f.fwd(x, n) -> (f64, res)
        yield x                =>      if lt n 2 { yield x, res0 } else { ...; yield y, res1 (a, b, ra, rb) }
      else                           fn f.bwd(r, ...)
        a = ..; b = ..                 switch r  case res0 { ... }  case res1 (a, b, ra, rb) { ... }
        yield mul a b

Each path keeps only its own residuals; the constructor tells which path ran.  A path without residuals takes no memory.
What the code before the branch defines is kept by the paths that use it.  If the backward code uses it outside of the
branch, all paths keep it, first in each record.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import record

from dplc.ad.reverse.cotangents import Scope
from dplc.ad.reverse.tape import Reverse, Tape
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.copy import Renamed
from dplc.flat.walk import blocks as inner_blocks
from dplc.flat.walk import mentioned, with_branches


def fits(tape: Tape, bind: f.Bind, scope: Scope) -> bool:
    """True if the function is recursive, and the backward code in `scope` uses no variable bound by the branch or after
    it."""
    reverse = tape.reverse
    if reverse.records is not None or not reverse.d.boxed(reverse.box) or scope is not reverse.scope:
        return False
    before = {p.name for p in tape.params}
    for other in tape.block.binds:
        if other is bind:
            break
        before |= {var.name for var in other.vars}
    return mentioned(f.Block(tuple(scope.b.binds), ())).keys().isdisjoint(tape.names - before)


def decided(block: f.Block, branch: f.Rhs, tag: int) -> dict[str, f.Atom]:
    """The number that a path tells: the one that its condition compares with, such as the size 1 of a matrix."""
    conds = {bind.vars[0]: bind.rhs for bind in block.binds if len(bind.vars) == 1}
    match branch, conds.get(branch.cond) if isinstance(branch, f.If) and isinstance(branch.cond, f.Var) else None:
        case f.If(), f.Op("eq" | "ne" as op, (f.Var(name, f.Num()) as one, f.Const() as number)):
            return {name: number} if (op == "ne") == bool(tag) and not f.is_float(one.ty) else {}
        case _:
            return {}


@record
class BranchRecords:
    """The records of the branch `bind`.  `param` is the record in f.bwd; `kept` has the variables that each path
    keeps."""

    reverse: Reverse
    bind: f.Bind
    param: f.Var
    kept: list[list[f.Var]]
    backward: f.Switch

    @property
    def name(self) -> str:
        return self.reverse.box

    @staticmethod
    def of(tape: Tape, bind: f.Bind, tapes: Sequence[Tape], blocks: Sequence[f.Block]) -> BranchRecords:
        """The records of a branch in `tape`, given the tapes of its paths and their backward code."""
        reverse, kept, cases = tape.reverse, [], []
        param = f.Var(reverse.d.supply.fresh("res"), f.Data(reverse.box))
        for tag, (block, path) in enumerate(zip(blocks, tapes, strict=True)):
            needed, again = reverse.choose(block, path)
            kept.append(needed)
            whole = f.Block((*again, *block.binds), block.results)
            cases.append(f.Case(tag, None, Renamed(decided(tape.block, bind.rhs, tag)).block(whole)))
        return BranchRecords(reverse, bind, param, kept, f.Switch(param, tuple(cases), None))

    def residual(
        self, outer: Sequence[f.Var], forward: Sequence[f.Bind], body: f.Block
    ) -> tuple[list[f.Bind], f.Atom, f.Var, f.Block]:
        """Like `Reverse.residual`.  `outer` are the variables that are kept from the code before the branch."""
        d = self.reverse.d
        outer = self.parted(outer, body)
        payloads = tuple(f.Tup(tuple(v.ty for v in (*outer, *kept))) if outer or kept else None for kept in self.kept)
        names = tuple(f"{self.name}.{tag}" for tag in range(len(payloads)))
        d.program.datas[self.name] = f.DataDecl(self.name, payloads, names)
        record = f.Var(d.supply.fresh("res"), self.param.ty)
        forward = [self.filled(bind, record, outer) if bind.vars == self.bind.vars else bind for bind in forward]
        binds = [self.opened(bind, len(outer)) if bind.rhs is self.backward else bind for bind in body.binds]
        if outer:
            binds.insert(0, f.Bind(tuple(outer), self.shared(outer)))
        return forward, record, self.param, f.Block(tuple(binds), body.results)

    def parted(self, outer: Sequence[f.Var], body: f.Block) -> list[f.Var]:
        """Leaves to each path what only paths use of `outer`, and returns the rest."""
        rest = tuple([bind for bind in body.binds if bind.rhs is not self.backward])
        shared = mentioned(f.Block(rest, body.results))
        for kept, case in zip(self.kept, self.backward.cases, strict=True):
            used = mentioned(case.body)
            kept[:0] = [var for var in outer if var.name in used and var.name not in shared]
        return [var for var in outer if var.name in shared]

    def filled(self, bind: f.Bind, record: f.Var, outer: Sequence[f.Var]) -> f.Bind:
        """The forward branch, which also returns the record."""
        blocks = []
        for tag, (block, kept) in enumerate(zip(inner_blocks(bind.rhs), self.kept, strict=True)):
            b = Builder(self.reverse.d.supply)
            arg = b.make((*outer, *kept)) if outer or kept else None
            value = b.con(self.name, tag, arg)
            blocks.append(f.Block((*block.binds, *b.binds), (*block.results, value)))
        return f.Bind((*bind.vars, record), with_branches(bind.rhs, blocks))

    def opened(self, bind: f.Bind, at: int) -> f.Bind:
        """The backward branch.  Each path reads its kept variables, from field `at` on.  What several paths keep has
        other names in the later ones."""
        cases, bound = [], set[str]()
        for case, kept in zip(self.backward.cases, self.kept, strict=True):
            new = {var.name: f.Var(self.reverse.d.supply.fresh(var.name), var.ty) for var in kept if var.name in bound}
            body = Renamed(new).block(case.body) if new else case.body
            payload, gets = self.fields(case.tag, [new.get(var.name, var) for var in kept], at)
            cases.append(f.Case(case.tag, payload, f.Block((*gets, *body.binds), body.results)))
            bound |= {var.name for var in kept}
        return f.Bind(bind.vars, f.Switch(self.param, tuple(cases), None))

    def shared(self, outer: Sequence[f.Var]) -> f.Switch:
        """A Switch that reads the fields that all records have."""
        supply, cases = self.reverse.d.supply, []
        for tag in range(len(self.kept)):
            vars_ = [f.Var(supply.fresh("kept"), var.ty) for var in outer]
            payload, gets = self.fields(tag, vars_, 0)
            cases.append(f.Case(tag, payload, f.Block(tuple(gets), tuple(vars_))))
        return f.Switch(self.param, tuple(cases), None)

    def fields(self, tag: int, vars_: Sequence[f.Var], at: int) -> tuple[f.Var | None, list[f.Bind]]:
        """The payload of a record, and bindings that read some of its fields."""
        d = self.reverse.d
        ty = d.program.datas[self.name].payloads[tag]
        if ty is None or not vars_:
            return None, []
        payload = f.Var(d.supply.fresh("p"), ty)
        return payload, [f.Bind((var,), f.TupGet(payload, at + k)) for k, var in enumerate(vars_)]
