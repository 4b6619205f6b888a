"""What differs between the points of a Par that are computed together (`lanes.py`).

    par j < m, k < n to keep {
      s = par u < p to fold 0 {         in all points alike (uniform): u, y
        x = index a u k                 by lanes, that is by k:        x
        y = index b u                   by rows, that is by j:         v
        v = index c j u
        ... }                           by both:                       x * v, s
      yield s }

A Par fits if its points do arithmetic on floats and sum it up in loops that are alike in all points, and what the lanes
read lies side by side, or is little beside the arithmetic on it.  What can fail must be uniform: then it fails in the
first point, as it should.  Sums of elementary functions are vectors otherwise, so few points of these are not worth it.

Guards against NaN (`passes/simplify/nan_guards.py`) can wait: if a NaN that a guard would stop goes on into a result,
the result is NaN, and is computed again.  What only guards ask for does not matter until then.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.elementary import is_function
from dplc.flat.nans import passes_nan
from dplc.flat.types import rank_of
from dplc.flat.walk import every, is_in, names, rhs_mentions
from dplc.machine.emit.points.lane_loops import with_loops
from dplc.machine.emit.points.lane_operations import (
    FLOATS,
    arms_fit,
    has_functions,
    is_cell,
    is_plain,
    reads,
    selects,
)
from dplc.machine.emit.points.lane_places import is_cut
from dplc.machine.emit.points.least_values import with_least_values
from dplc.machine.emit.points.row_sums import with_row_sums
from dplc.machine.emit.points.rows import Row, in_pieces, with_fields
from dplc.machine.emit.scalars.maths import COMPARISONS
from dplc.passes.simplify.purity import droppable

UNIFORM, BY_ROW, BY_LANE = 0, 1, 2  # a set, as bits
GATHERED = 8  # operations, at least, for each read of a step that gathers what does not lie side by side
LITTLE = 24  # bindings that differ, at most, of points of which four vectors are computed together
FUNCTION = 8  # operations that an elementary function is


@node
class Varying:
    """How the variables of a body vary (uniform ones are left out), which of them are indices of lanes that need not
    lie side by side, how many numbers a vector has, how many vectors are worth it, the results of guards that can wait,
    and what is NaN if one was needed."""

    binds: tuple[f.Bind, ...]  # of the body, without rows
    pieces: dict[int, Row]  # results
    how: dict[str, int]
    cut: frozenset[str]
    lanes: int
    several: int
    guards: frozenset[str]
    guarded: frozenset[str]
    functions: bool  # some sum is of elementary functions, of which LLVM makes vectors otherwise
    accs: frozenset[str]  # arrays that points add to
    masked: bool  # some arms of branches add to arrays or read tuples
    chosen: frozenset[str] = frozenset()  # whole numbers of lanes that are any; they are kept only

    def of(self, atom: f.Atom) -> int:
        """How an atom varies: not, by rows, by lanes, or by both.  Constants do not."""
        return self.how.get(atom.name, UNIFORM) if isinstance(atom, f.Var) else UNIFORM

    def is_lane(self, var: f.Var) -> bool:
        """True for the lane's number plus something."""
        return var.ty == f.I64 and var.name not in self.chosen

    def of_rhs(self, rhs: f.Rhs) -> int:
        """How what a right-hand side gives varies."""
        return how_in(self.how, rhs)

    def adds(self, rhs: f.Rhs) -> bool:
        """True if a right-hand side adds to an accumulator."""
        return not self.accs.isdisjoint(rhs_mentions(rhs))


def how_in(how: dict[str, int], rhs: f.Rhs) -> int:
    """How the result of a right-hand side varies: in each way in which one of the variables that it mentions does."""
    found = UNIFORM
    for name in rhs_mentions(rhs):
        found |= how.get(name, UNIFORM)
    return found


def varying(par: f.Par, masks: bool) -> Varying | None:
    """How a Par varies, if its points can be computed in lanes, and this is worth it: there are sums in it.  The lanes
    are points of the innermost dimension, the rows are of the next one.  With `masks`, arms of branches may read."""
    plain = all((out.kind == "keep" and not out.target) or out.kind == "add" for out in par.outs)
    if par.ordered or not plain or not any(isinstance(bind.rhs, f.Par | f.For) for bind in par.body.binds):
        return None
    par = with_row_sums(with_loops(par))
    binds, pieces = in_pieces(par)
    binds, pieces = with_fields(tuple(with_least_values(par, binds)), pieces)
    found = _Finder(par, masks)
    if len(pieces) < sum(out.kind == "keep" for out in par.outs):
        return None
    if not found.fits(binds, [item for row in pieces.values() for item in row.items]):
        return None
    guards, guarded = map(frozenset, (found.guards, found.guarded) if found.can_wait else ((), ()))
    return Varying(
        binds, pieces, found.how, frozenset(found.cut), found.lanes, several(par, found, pieces), guards, guarded,
        found.functions, frozenset(found.accs), found.masked, frozenset(found.chosen),
    )  # fmt: skip


def varying_step(par: f.Par) -> Varying | None:
    """How the points of a Par's last dimension vary, if vectors do them, and what they give is kept, summed or added to
    arrays."""
    if par.ordered or any(isinstance(bind.rhs, f.Par | f.For | f.While) for bind in par.body.binds):
        return None
    binds, pieces = with_fields(*in_pieces(par))
    kept = [items[0] for row in pieces.values() if len(items := row.items) == 1]
    summed = [x for x, out in zip(par.body.results, par.outs, strict=True) if out.kind == "fold" and x.ty in FLOATS]
    found = _Finder(replace(par, space=par.space[-1:]), len(kept) < len(par.outs))  # LLVM masks what is only kept
    known = len(kept) + len(summed) + len(found.results) == len(par.outs)
    if not known or not found.fits_step(par.space[-1][0], binds, [*kept, *summed]):
        return None
    none, accs = frozenset[str](), frozenset(found.accs)
    cut = frozenset(found.cut)
    return Varying(binds, pieces, found.how, cut, found.lanes, 1, none, none, False, accs, found.masked)


def several(par: f.Par, found: _Finder, pieces: dict[int, Row]) -> int:
    """How many vectors are worth computing together, where there are no rows: a step of little work waits for the one
    before, and what all lanes add at one place is summed once.  A call of an elementary function leaves no vector in
    its register."""
    rows = len(par.space) > 1 and not found.accs
    apart = not found.side_by_side or any(len(row.items) > 1 for row in pieces.values())
    if rows or apart or has_functions(par.body.binds):
        return 1
    work = sum(any(var.name in found.how for var in bind.vars) for bind in every(par.body))
    most = 4 if work <= LITTLE else 2 if work <= 2 * LITTLE else 1
    count = par.space[-1][1]
    if not (isinstance(count, f.Const) and isinstance(count.value, int)):
        return min(most, 2)
    vectors = -(-count.value // found.lanes)
    return next(k for k in (4, 2, 1) if k <= most and (k == 1 or -(-vectors // k) * k * 16 <= vectors * 17))


class _Misfit(Exception):
    """Something cannot be computed in lanes."""


class _Finder:
    def __init__(self, par: f.Par, masks: bool) -> None:
        self.masks, self.masked, self.inside = masks, False, False
        self.chosen: set[str] = set()  # whole numbers of lanes that are any
        self.how = {par.space[-1][0].name: BY_LANE}
        self.numbers = {par.space[-1][0].name}  # the lane's number plus something
        self.cut: set[str] = set()  # such numbers that are cut off or go around a ring
        if len(par.space) > 1:
            self.how[par.space[-2][0].name] = BY_ROW
        self.lanes = 16
        self.sums = 0
        self.adds = False  # whether loops add to arrays
        self.side_by_side = True  # whether all that lanes read, and add to places of their own, is
        self.step: set[str] | None = None  # what the step of a loop binds
        self.gathered = 0  # reads of such a step that are not side by side
        self.sound: dict[str, f.Atom] = {}  # whether a number is not NaN
        self.odd: dict[str, f.Atom] = {}  # whether a number is NaN, and something else
        self.guards: set[str] = set()
        self.guarded: set[str] = set()
        self.asked: set[str] = set()  # conditions on what is guarded
        self.can_wait = True
        self.functions = False
        self.accs = {out.acc.name for out in par.outs if out.acc}
        self.kept: set[str] = set()  # arrays of what the steps of a loop keep, and tuples of these
        self.cells: set[str] = set()  # tuples of numbers that are elements of arrays
        self.results = [x for x, out in zip(par.body.results, par.outs, strict=True) if out.acc]

    def fits(self, binds: Sequence[f.Bind], results: Sequence[f.Atom]) -> bool:
        try:
            self.block(f.Block(tuple(binds), tuple(results)))
        except _Misfit:
            return False
        if any(x.ty not in (*FLOATS, f.BOOL) and not self.is_chosen(x) for x in results):
            return False
        worth = self.sums > 0 or (self.adds and self.side_by_side)
        return worth and all(map(self.is_acc, self.results))

    def fits_step(self, index: f.Var, binds: Sequence[f.Bind], results: Sequence[f.Atom]) -> bool:
        """True if points without loops fit."""
        if any(x.ty not in (*FLOATS, f.BOOL) for x in results):
            return False
        try:
            self.steps([index], f.Block(tuple(binds), tuple(results)))
        except _Misfit:
            return False
        return all(map(self.is_acc, self.results))

    def of(self, atom: f.Atom) -> int:
        return self.how.get(atom.name, UNIFORM) if isinstance(atom, f.Var) else UNIFORM

    def block(self, block: f.Block) -> None:
        for bind in block.binds:
            if self.step is not None:
                self.step.update(var.name for var in bind.vars)
            how = how_in(self.how, bind.rhs)
            if not self.chosen.isdisjoint(rhs_mentions(bind.rhs)):
                raise _Misfit
            if how or not (self.accs | self.kept).isdisjoint(rhs_mentions(bind.rhs)):
                self.bind(bind, how)
            elif self.inside and not droppable(bind.rhs):
                raise _Misfit
        for x in block.results:
            if self.is_whole(x):
                raise _Misfit

    def bind(self, bind: f.Bind, how: int) -> None:
        match bind.rhs:
            case f.Par() | f.For() as loop:
                self.sum(bind, loop) if isinstance(loop, f.Par) else self.loop(bind, loop)
                return
            case f.Op("drop", (f.Var(name),)) if name in self.kept:
                return
            case f.Op("acc_index" | "acc_zeros", (f.Var(name), *_)) as op if name in self.accs:
                fits = op.op == "acc_zeros" or self.addition(op)
                self.accs.add(bind.vars[0].name)
                how = UNIFORM
            case f.Op("index", (f.Var(name), step)) if name in self.kept:
                fits, how = not self.of(step), BY_LANE
                self.kept.add(bind.vars[0].name)
            case f.TupGet(f.Var(name)) if name in self.kept:
                fits, how = True, BY_LANE
            case f.Op("index", (array, *at)) if is_cell(bind.vars[0].ty):
                fits = not self.of(array) and rank_of(array.ty) == len(at) and self.cell(bind.vars[0], at)
            case f.TupGet(f.Var(name)) if name in self.cells:
                fits = self.field(bind.vars[0], name)
            case f.If() as branch:
                fits = self.branch(bind, branch)
            case f.Op() as op if droppable(op) and len(bind.vars) == 1 and self.kept.isdisjoint(names(op.args)):
                self.note_nan(bind.vars[0], op)
                fits = self.in_lanes(bind.vars[0], op) if how & BY_LANE else isinstance(bind.vars[0].ty, f.Num)
            case _:
                fits = False
        if not fits:
            raise _Misfit
        if how:
            self.how.update({var.name: how for var in bind.vars if var.name not in self.accs})

    def addition(self, op: f.Op) -> bool:
        """True if lanes can add to an array: all at one place, or each at its own, which may be cut off.  Then no
        points are done again."""
        self.can_wait = False
        _, value, *rest = op.args
        dims, at = rest[: op.attr("rank")], rest[op.attr("rank") :]
        by_lane = [i for i in at if self.of(i) & BY_LANE]
        self.side_by_side &= not by_lane or by_lane[0] is at[-1]
        if value.ty == f.F64:
            self.lanes = 8
        fits = value.ty in FLOATS and not self.of_all(dims) and rank_of(op.args[0].ty) == len(at)
        return fits and len(by_lane) < 2 and all(map(self.is_whole, by_lane))

    def note_nan(self, var: f.Var, op: f.Op) -> None:
        """Notes what an operation does with a NaN that a guard should have stopped."""
        match op:
            case f.Op("eq", (a, b)) if a == b:
                self.sound[var.name] = a
            case f.Op("ne", (a, b)) if a == b:
                self.odd[var.name] = a
            case f.Op("and", (_, f.Var(name))) if name in self.odd:
                self.odd[var.name] = self.odd[name]
            case f.Op("select", (f.Var(name), f.Const(0.0), x)) if self.odd.get(name) == x:
                self.guards.add(var.name)
                self.guarded.add(var.name)
                return
            case _:
                pass
        asks = any(isinstance(a, f.Var) and a.name in self.asked for a in op.args)
        if not asks and not any(map(self.is_guarded, op.args)):
            return
        if var.ty == f.BOOL:
            self.asked.add(var.name)
        else:
            self.can_wait &= passes_nan(op) and not asks
            self.guarded.add(var.name)

    def branch(self, bind: f.Bind, branch: f.If) -> bool:
        """True for a branch that can be a selection: both arms are done, and masks protect what they read."""
        if not selects(branch):
            return self.masks and arms_fit(branch) and self.arms(bind, branch)
        if not self.masks and reads(branch) and self.of(branch.cond):
            return False
        whole = self.sound.get(branch.cond.name) if isinstance(branch.cond, f.Var) else None
        guards = whole is not None and branch.then == f.Block((), (whole,))
        can_wait = self.can_wait
        for arm in (branch.then, branch.else_):
            self.block(arm)
        if guards:
            self.guards.add(bind.vars[0].name)
            self.guarded.add(bind.vars[0].name)
            self.can_wait = can_wait
        else:
            self.chosen_of(bind, branch)
        return all(var.ty in (*FLOATS, f.BOOL) for var in bind.vars)

    def chosen_of(self, bind: f.Bind, branch: f.If) -> None:
        """Notes what a selection gives of a NaN that a guard should have stopped: it is NaN if that is chosen."""
        self.can_wait &= not is_in(branch.cond, self.asked)
        for var, *given in zip(bind.vars, branch.then.results, branch.else_.results, strict=True):
            if any(map(self.is_guarded, given)):
                self.guarded.add(var.name)
            if any(is_in(x, self.asked) for x in given):
                self.asked.add(var.name)

    def arms(self, bind: f.Bind, branch: f.If) -> bool:
        """True for a branch whose arms add to arrays or read tuples: each is done by those lanes that are to do it."""
        outer, self.masked = self.inside, True
        self.inside |= bool(self.of(branch.cond) & BY_LANE)
        for arm in (branch.then, branch.else_):
            self.block(arm)
        self.inside = outer
        self.can_wait &= not any(name in self.guarded or name in self.asked for name in rhs_mentions(branch))
        for var, yes, no in zip(bind.vars, branch.then.results, branch.else_.results, strict=True):
            if self.is_acc(yes) and self.is_acc(no):
                self.accs.add(var.name)
        return all(var.ty in (*FLOATS, f.BOOL) or var.name in self.accs for var in bind.vars)

    def in_lanes(self, var: f.Var, op: f.Op) -> bool:
        """True if an operation on what varies by lanes can be written."""
        if op.op == "cast" and var.ty == f.I64 and op.args[0].ty == f.F64:
            self.chosen.add(var.name)
            return self.step is None
        if var.ty == f.I64:
            return self.number(var, op)
        if self.is_power(op):
            fits = True
        elif op.op != "index" and any(map(self.is_whole, op.args)):
            fits = self.of_number(var, op)
        elif op.op == "index":
            array, *at = op.args
            read = rank_of(array.ty) == len(at) and not self.of(array) and self.places(at)
            fits = read and (var.ty in FLOATS or (var.ty == f.BOOL and bool(self.of(at[-1]) & BY_LANE)))
        else:
            known = op.op not in COMPARISONS or op.args[0].ty in FLOATS
            fits = (is_plain(op) or is_function(op)) and var.ty in (*FLOATS, f.BOOL) and known
        if var.ty == f.F64:
            self.lanes = 8
        return fits

    def is_power(self, op: f.Op) -> bool:
        """True for a power whose exponent is not a constant: a lane's number, or alike in all lanes."""
        if op.op != "powi" or op.args[0].ty != f.F64 or isinstance(op.args[1], f.Const) or self.is_number(op.args[0]):
            return False
        return self.is_number(op.args[1]) or not self.of(op.args[1]) & BY_LANE

    def of_number(self, var: f.Var, op: f.Op) -> bool:
        """True for comparisons of the lanes' numbers with each other or with what is alike in all lanes, and for a
        conversion to a float."""
        compared = op.op in COMPARISONS and all(self.is_whole(a) or not self.of(a) & BY_LANE for a in op.args)
        return compared or (op.op == "cast" and var.ty in FLOATS)

    def is_chosen(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.chosen

    def is_number(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.numbers

    def is_whole(self, atom: f.Atom) -> bool:
        return self.is_number(atom) or (isinstance(atom, f.Var) and atom.name in self.cut)

    def places(self, at: Sequence[f.Atom]) -> bool:
        """True if lanes can read at these indices, of which one is the number of the lane plus something."""
        by_lane = [self.of(i) & BY_LANE for i in at]
        self.side_by_side &= bool(by_lane[-1])
        if not by_lane[-1] and self.step is not None and not self.step.isdisjoint(names(at)):
            self.gathered += 1
        return sum(map(bool, by_lane)) == 1

    def cell(self, var: f.Var, at: Sequence[f.Atom]) -> bool:
        """True if points can read a tuple at these indices, of which at most one varies by lanes."""
        self.cells.add(var.name)
        self.side_by_side = False
        by_lane = [i for i in at if self.of(i) & BY_LANE]
        return len(by_lane) < 2 and all(map(self.is_number, by_lane))

    def field(self, var: f.Var, cell: str) -> bool:
        """Notes the part of a tuple; numbers of several lanes do not lie side by side."""
        if isinstance(var.ty, f.Tup):
            self.cells.add(var.name)
        elif self.step is not None and cell in self.step and self.how[cell] & BY_LANE:
            self.gathered += 1
        if var.ty == f.F64:
            self.lanes = 8
        return True

    def of_all(self, atoms: Sequence[f.Atom]) -> int:
        found = UNIFORM
        for atom in atoms:
            found |= self.of(atom)
        return found

    def number(self, var: f.Var, op: f.Op) -> bool:
        """Notes that an index is the number of the lane plus something, or that this is cut off or goes around a ring;
        False if it is no such number."""
        by_lane = [a for a in op.args if self.of(a) & BY_LANE]
        cuts, of_number = is_cut(op), self.is_number(by_lane[0])
        match op.op:
            case "add":
                fits = True
            case "sub":
                fits = by_lane[0] is op.args[0]
            case _:
                fits = cuts and (of_number or op.op != "mod")
        (self.numbers if of_number and not cuts else self.cut).add(var.name)
        return fits and len(by_lane) == 1

    def steps(self, indices: Sequence[f.Var], body: f.Block) -> None:
        """The step of a loop.  It must not gather much for little arithmetic."""
        outer = self.step, self.gathered
        self.step, self.gathered = {index.name for index in indices}, 0
        self.block(body)
        varied = [bind for bind in body.binds if any(var.name in self.how for var in bind.vars)]
        work = sum(FUNCTION if is_function(bind.rhs) else 1 for bind in varied)
        if self.gathered * GATHERED > work:
            raise _Misfit
        self.step, self.gathered = outer

    def loop(self, bind: f.Bind, loop: f.For) -> None:
        """A loop in order, whose state varies as its steps make it vary.  It hands on what it adds to."""
        state = list(zip(loop.state, loop.inits, loop.body.results, strict=False))
        handed = [(s, x, var) for (s, init, x), var in zip(state, bind.vars, strict=False) if self.is_acc(init)]
        self.accs.update([s.name for s, *_ in handed])
        self.adds |= bool(handed)
        state = [(s, init, x) for s, init, x in state if s.name not in self.accs]
        kept = loop.body.results[len(loop.state) :]
        if self.of(loop.count) or any(x.ty not in (*FLOATS, f.BOOL) for x, *_ in state):
            raise _Misfit
        before = [self.of(init) for _, init, _ in state]
        while True:
            self.how.update({s.name: how for (s, *_), how in zip(state, before, strict=True) if how})
            self.steps([loop.index], loop.body)
            after = [how | self.of(x) for how, (*_, x) in zip(before, state, strict=True)]
            odd = {s.name for s, _, x in state if self.is_guarded(x)}
            if after == before and odd <= self.guarded:
                break
            self.guarded |= odd
            before = after
        variables = [var for var, s in zip(bind.vars, loop.state, strict=False) if s.name not in self.accs]
        for var, (*_, x), how in zip(variables, state, after, strict=True):
            self.made(var, x, how)
        if any(x.ty not in FLOATS for x in kept) or not all(self.is_acc(x) for _, x, _ in handed):
            raise _Misfit
        self.accs.update([var.name for *_, var in handed])
        if kept:
            self.kept.add(bind.vars[-1].name)
            self.can_wait = False

    def is_acc(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.accs

    def is_guarded(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.guarded

    def made(self, var: f.Var, x: f.Atom, how: int) -> None:
        """Notes how the result of a loop varies, which is `x` in its steps."""
        if self.is_guarded(x):
            self.guarded.add(var.name)
        if how:
            self.how[var.name] = how
            self.sums += how & BY_LANE
        if var.ty == f.F64:
            self.lanes = 8

    def sum(self, bind: f.Bind, par: f.Par) -> None:
        counts = self.of_all([count for _, count in par.space])
        outs = zip(par.outs, par.body.results, strict=True)
        if counts or par.ordered or any(out.kind != "fold" or out.rank or x.ty not in FLOATS for out, x in outs):
            raise _Misfit
        self.steps([index for index, _ in par.space], par.body)
        self.functions |= any(is_function(bind.rhs) for bind in par.body.binds)
        for var, x in zip(bind.vars, par.body.results, strict=True):
            self.made(var, x, self.of(x))
