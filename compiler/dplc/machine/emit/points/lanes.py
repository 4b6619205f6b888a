"""Points with sums in them, in lanes: several points are computed together, as the lanes of a vector and as rows.

    par j < m, k < n to keep {            for j by ROWS, for k by lanes
      s = par u < p to fold 0 {             s0, s1, ... = vectors of zeros
        x = index a u k               =>    for u < p
        y = index b j u                       x = lanes of a[u][k ...]
        z = mul x y                           s0 = s0 + x * b[j][u];  s1 = s1 + x * b[j + 1][u]; ...
        yield z }                           lanes of out[j][k ...] = s0;  lanes of out[j + 1][k ...] = s1; ...
      yield s }

LLVM would make vectors of the inner loop only, whose sum has an order.  Here each lane adds in the order of its own
sum (`dpl/prims/sums.py`), so results are those of single points.  `varying.py` says which Pars fit.  Rows past the last
one repeat it; lanes past the last one are masked.  Where guards against NaN were left out, a strip of points with a NaN
is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.elementary import is_function
from dplc.flat.walk import every, names, rhs_mentions
from dplc.machine.emit.bodies import arrays, interrupts
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.layout import leaves, struct
from dplc.machine.emit.points.lane_arms import Arms
from dplc.machine.emit.points.lane_memory import splat
from dplc.machine.emit.points.lane_operations import is_read, reads, selects
from dplc.machine.emit.points.lane_places import Place, Places
from dplc.machine.emit.points.lane_reads import num
from dplc.machine.emit.points.lane_sums import SumLoop
from dplc.machine.emit.points.varying import BY_LANE, BY_ROW, Varying, varying
from dplc.machine.emit.scalars.vectors import function, of_numbers, power, powers, powi, vector, vector_type, whole
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import LIKELY, Values
from dplc.narrow import expect_type

SHORT = 8  # bindings, at most, of a sum that is written without a loop
LEAST = 16  # bytes of the shortest vectors, of which so many lanes fill enough
NARROW = 4  # lanes, at least
ROWS = 4  # points of the dimension before the last one that are computed together


def lanes_of(e: BodyEmitter, par: f.Par, counts: Sequence[str]) -> Lanes | None:
    """The writer of a Par's points in lanes, if they fit.  `counts` are those of its dimensions."""
    found = varying(par, e.unit.has_masks)
    return Lanes(e, par, found, counts) if found else None


def narrowed(width: int, how: Varying, count: str) -> int:
    """The width of the lanes: of few points, the other half of a vector would only be masked.  To what all lanes add at
    one place, that half adds -0.0, so the sum is the same without it."""
    while not how.functions and count.isdigit() and NARROW <= int(count) <= width // 2:
        width //= 2
    return width


@node
class Term:
    """A row of what a sum adds up, with its LLVM type."""

    of: f.Atom
    row: int
    type: str


@node
class Cell:
    """A tuple in memory: its address in the first lane, and how many numbers further that of the next lane is."""

    at: str
    stride: str


class Lanes(Arms):
    """A Par whose points are written in lanes."""

    def __init__(self, e: BodyEmitter, par: f.Par, how: Varying, counts: Sequence[str]) -> None:
        fit = how.several if how.accs else max(1, min(how.several, e.unit.vector_bytes // LEAST))
        super().__init__(e, narrowed(how.lanes * fit, how, counts[-1]), how)
        self.par = par
        self.count = counts[-1]
        self.row_count = counts[-2] if len(counts) > 1 else ""
        self.rows = self.how_many_rows()
        self.base = "0"  # the number of the first point of the innermost dimension
        self.rooms: dict[str, list[Array]] = {}  # for what the steps of a loop keep
        self.steps: dict[str, tuple[list[Array], str]] = {}  # what was kept, by the number of the step
        self.cells: dict[str, list[Cell]] = {}  # tuples that are elements of arrays, one for each row
        self.quick = True  # without guards

    def how_many_rows(self) -> int:
        """Fewer where there are several sums, as each row has its own in registers; one if points add to arrays,
        or read them in branches.  A loop that goes on with the sum of another one has the same register."""
        if self.how.accs or self.how.masked:
            return 1
        loops = [bind for bind in self.how.binds if isinstance(bind.rhs, f.Par | f.For)]
        resumed = {name for bind in loops if isinstance(bind.rhs, f.For) for name in names(bind.rhs.inits)}
        sums = sum(var.name not in resumed for bind in loops for var in bind.vars)
        least = int(self.row_count) if self.row_count.isdigit() else ROWS
        return max(1, min(ROWS // max(sums, 1), least)) if self.row_count else 1

    @property
    def dimensions(self) -> int:
        """How many of the innermost dimensions `points` computes."""
        return 2 if self.row_count else 1

    @property
    def size(self) -> int:
        """How many points of the outer one of these a tile has."""
        return self.rows if self.row_count else self.width

    def or_else(self, types: Sequence[str], lanes: Callable[[], Values], points: Callable[[], Values]) -> Values:
        """Writes the points in lanes; where their sums are vectors otherwise, only if half of the lanes have points.
        Both give values of these types."""
        least = self.width // 2 if self.how.functions else 0
        if least and not self.count.isdigit():
            return self.w.choose(self.w.let(f"icmp uge i64 {self.count}, {least}"), types, lanes, points)
        return lanes() if not least or int(self.count) >= least else points()

    def tiles(self) -> str:
        """The number of tiles."""
        return self.up_to(self.row_count or self.count, self.size)

    def up_to(self, count: str, size: int) -> str:
        """How many pieces of a size there are, with one that is not whole."""
        if count.isdigit():
            return str(-(-int(count) // size))
        return self.w.let(f"udiv i64 {self.w.add(count, str(size - 1))}, {size}") if size > 1 else count

    def run(self, base: str, kept: dict[int, Array]) -> None:
        """Writes the points of the only dimension, from number `base` on, into the arrays `kept`."""
        self.base = base
        self.w.repeat(self.tiles(), lambda at: self.tile("0", at, kept))

    def tile(self, number: str, at: str, kept: dict[int, Array]) -> None:
        """Writes tile number `at` of the row of points whose number is `number`, into the arrays `kept`."""
        w = self.w
        if not self.row_count:
            first = w.let(f"mul nuw nsw i64 {at}, {self.width}")
            self.strip(first, [w.mul(number, self.count) if number != "0" else "0"], kept)
            return
        first = w.let(f"mul nuw nsw i64 {at}, {self.rows}") if self.rows > 1 else at
        last = w.let(f"sub i64 {self.row_count}, 1")
        rows = [first]
        for row in range(1, self.rows):
            rows.append(w.let(f"call i64 @llvm.umin.i64(i64 {w.add(first, str(row))}, i64 {last})"))
        self.parts[self.par.space[-2][0].name] = rows
        outer = w.mul(number, self.row_count) if number != "0" else "0"
        starts = [w.mul(w.add(outer, row), self.count) for row in rows]

        def strip(at: str) -> None:
            self.strip(w.let(f"mul nuw nsw i64 {at}, {self.width}"), starts, kept)

        w.repeat(self.up_to(self.count, self.width), strip)

    def strip(self, lane: str, starts: Values, kept: dict[int, Array]) -> None:
        """Writes the points of a strip of lanes, the first of which is `lane`; `starts` has the number of the first
        point of each row."""
        w = self.w
        self.parts[self.par.space[-1][0].name] = [self.w.add(self.base, lane)]
        left = w.let(f"sub nuw i64 {self.count}, {lane}")
        few = w.let(f"call i64 @llvm.umin.i64(i64 {left}, i64 {self.width})")

        def part() -> Values:
            self.mask = self.lower(few)
            odd = self.points(lane, starts, kept)
            self.mask = ""
            return odd

        def full() -> Values:
            return self.points(lane, starts, kept)

        def again() -> Values:
            self.quick = False
            part()
            self.quick = True
            return []

        if self.count.isdigit() and int(self.count) % self.width == 0:
            odd = full()
        elif self.count.isdigit() and int(self.count) < self.width:
            odd = part()
        else:
            whole = w.let(f"icmp eq i64 {few}, {self.width}")
            odd = w.choose(whole, ("i1",) if self.how.guards else (), full, part)
        if odd:
            w.choose(w.let(f"xor i1 {odd[0]}, true"), (), lambda: [], again, LIKELY)

    def lower(self, count: str) -> str:
        """The mask of the first lanes."""
        w, lanes = self.w, range(self.width)
        places = f"<{', '.join(f'i32 {i}' for i in lanes)}>"
        most = splat(w, self.width, "i32", w.let(f"trunc i64 {count} to i32"))
        return w.let(f"icmp ult <{self.width} x i32> {places}, {most}")

    def points(self, lane: str, starts: Values, kept: dict[int, Array]) -> Values:
        """Writes the points of a strip.  If guards are left out: whether the strip must be computed again."""
        w, flags, odd = self.w, vector_type("bool", self.width), "zeroinitializer"
        outer, self.e.env = self.e.env, dict(self.e.env)
        self.binds(self.how.binds)
        for item, value in self.store_points(lane, starts, kept):
            if isinstance(item, f.Var) and item.name in self.how.guarded:
                t = vector_type(num(item.ty), self.width)
                odd = w.let(f"or {flags} {odd}, {w.let(f'fcmp uno {t} {value}, {value}')}")
        self.e.env = outer
        if not self.how.guards or not self.quick:
            return []
        bits = w.let(f"bitcast {flags} {odd} to i{self.width}")
        return [w.let(f"icmp ne i{self.width} {bits}, 0")]

    def store_points(self, lane: str, starts: Values, kept: dict[int, Array]) -> list[tuple[f.Atom, str]]:
        """Stores what the points of a strip keep; the numbers, with their vectors."""
        stored: list[tuple[f.Atom, str]] = []
        for k, array in kept.items():
            items = self.how.pieces[k].items
            for row, start in enumerate(starts):
                values = [self.in_lanes(item, row) for item in items]
                size = struct(items[0].ty).size
                at = self.w.element(array.data, self.w.mul(self.w.add(start, lane), str(len(items))), size)
                self.store(num(items[0].ty), values, at, size)
                stored += zip(items, values, strict=True)
        return stored

    # ---- bindings

    def binds(self, binds: Sequence[f.Bind]) -> None:
        """Writes bindings for all rows and lanes.  What is uniform is written once."""
        for bind in binds:
            how = self.how.of_rhs(bind.rhs)
            rows = range(self.rows if how & BY_ROW else 1)
            match bind.rhs:
                case _ if self.in_memory(bind) or self.of_edges(bind, rows):
                    pass
                case _ if not how:
                    self.e.run([bind])
                case f.Par() as par:
                    self.sums(bind.vars, par)
                case f.For() as loop:
                    self.loop(bind.vars, loop)
                case f.If() as branch:
                    self.branch(bind.vars, branch, rows)
                case f.Op("index", (array, *at)) if isinstance(bind.vars[0].ty, f.Tup):
                    self.cells[bind.vars[0].name] = [self.cell(array, at, row) for row in rows]
                case f.TupGet(f.Var(name) as cell, k) if name in self.cells:
                    self.field(bind.vars[0], cell, k)
                case f.Op(_, args) if self.quick and bind.vars[0].name in self.how.guards:
                    self.parts[bind.vars[0].name] = [self.varied(args[-1], bind.vars[0], row) for row in rows]
                case f.Op() as op if how & BY_LANE and not self.how.is_lane(bind.vars[0]):
                    self.parts[bind.vars[0].name] = [self.vector(bind.vars[0], op, row) for row in rows]
                case rhs:
                    self.parts[bind.vars[0].name] = [self.scalar(bind, set(rhs_mentions(rhs)), row) for row in rows]

    def in_memory(self, bind: f.Bind) -> bool:
        """Writes what is added to arrays, and what steps have kept; False for other bindings."""
        match bind.rhs:
            case f.Op("acc_index", (f.Var(name), *_)) as op if name in self.how.accs:
                self.addition(bind.vars[0], op)
            case f.Op("acc_zeros", (f.Var(name) as acc, *_)) if name in self.how.accs:
                self.e.define(bind.vars, self.e.value(acc))
            case f.For() as loop if self.how.adds(loop):
                self.loop(bind.vars, loop)
            case f.If() as branch if self.how.adds(branch):
                self.arms(bind.vars, branch)
            case f.Op("index", (f.Var(name), step)) if name in self.rooms:
                self.steps[bind.vars[0].name] = self.rooms[name], self.e.one(step)
            case f.TupGet(f.Var(name), k) if name in self.steps:
                rooms, step = self.steps[name]
                self.parts[bind.vars[0].name] = [self.kept(rooms[k], step)]
            case f.Op("drop", (f.Var(name),)) if name in self.rooms:
                self.release(self.rooms[name])
            case _:
                return False
        return True

    def of_edges(self, bind: f.Bind, rows: range) -> bool:
        """Notes an index that is cut off, and reads what is alike in all lanes in an arm, and in branches there; False
        for other bindings."""
        match bind.rhs:
            case f.Op() as op if bind.vars and bind.vars[0].name in self.how.cut:
                self.places[bind.vars[0].name] = [self.place_of(bind, op, row) for row in rows]
            case f.Op("index") as op if self.under and not self.how.of_rhs(op) & BY_LANE and is_read(op):
                self.define(bind.vars, [self.careful(bind, row) for row in rows])
            case f.If() as branch if self.under and not self.how.of_rhs(branch) and reads(branch):
                self.branch(bind.vars, branch, rows)
            case _:
                return False
        return True

    def branch(self, variables: tuple[f.Var, ...], branch: f.If, rows: range) -> None:
        """Writes a branch as a selection, if its arms only compute; a guard that can wait as what it guards."""
        if not selects(branch):
            self.arms(variables, branch)
            return
        if not self.how.of(branch.cond) and self.is_much(branch):
            self.either(variables, branch)
            return
        wait = self.quick and variables[0].name in self.how.guards
        if not wait:
            for arm, truth in ((branch.then, True), (branch.else_, False)):
                self.under.append((branch.cond, truth))
                self.binds(arm.binds)
                self.under.pop()
        for var, yes, no in zip(variables, branch.then.results, branch.else_.results, strict=True):
            if wait:
                self.define((var,), [self.varied(yes, var, row) for row in rows])
                continue
            lanes = self.how.of(var) & BY_LANE
            t = vector_type(num(var.ty), self.width) if lanes else SCALARS[num(var.ty)]
            flag = vector_type("bool", self.width) if lanes else "i1"
            self.define((var,), [
                self.w.let(f"select {flag} {self.varied(branch.cond, var, row)}, "
                           f"{t} {self.varied(yes, var, row)}, {t} {self.varied(no, var, row)}")
                for row in rows
            ])  # fmt: skip

    def vector(self, var: f.Var, op: f.Op, row: int) -> str:
        if is_function(op):
            operands = [self.in_lanes(a, row) for a in op.args]
            return function(self.w, op.op, num(var.ty), self.width, operands, self.e.unit.vector_bytes)
        if var.name in self.how.chosen:
            return whole(self.w, self.width, self.in_lanes(op.args[0], row))
        if op.op == "powi":
            x, exponent = self.in_lanes(op.args[0], row), op.args[1]
            if self.varies(exponent, BY_LANE):
                return powers(self.w, self.width, x, self.whole(exponent, row), self.e.unit.vector_bytes)
            if not isinstance(exponent, f.Const):
                return power(self.w, self.width, x, self.of_row(exponent, row)[0], self.e.unit.vector_bytes)
            return powi(self.w, num(var.ty), self.width, x, expect_type(int, exponent.value))
        if op.op != "index" and op.args[0].ty == f.I64:
            return of_numbers(self.w, op.op, num(var.ty), self.width, [self.whole(a, row) for a in op.args])
        if op.op != "index":
            return vector(self.w, op.op, num(op.args[-1].ty), self.width, [self.in_lanes(a, row) for a in op.args])
        return self.read(var, op, row)

    def cell(self, a: f.Atom, at: Sequence[f.Atom], row: int) -> Cell:
        array = arrays.array_of(a.ty, self.e.value(a))
        place = self.element(array, [self.of_row(i, row)[0] for i in at])
        by_lane = [k for k, i in enumerate(at) if self.varies(i, BY_LANE)]
        width = str(len(leaves(array.elem)))
        return Cell(place, self.w.product([*array.dims[by_lane[0] + 1 :], width]) if by_lane else "0")

    def field(self, var: f.Var, cell: f.Var, k: int) -> None:
        """Reads a part of a tuple."""
        before = f.Tup(expect_type(f.Tup, cell.ty).items[:k])
        size = struct(cell.ty).align
        found = [Cell(self.after(c.at, str(len(leaves(before))), size), c.stride) for c in self.cells[cell.name]]
        if isinstance(var.ty, f.Tup):
            self.cells[var.name] = found
        elif self.varies(var, BY_LANE):
            self.parts[var.name] = [self.gather(num(var.ty), c.at, c.stride, size) for c in found]
        else:
            self.parts[var.name] = [self.w.let(f"load {SCALARS[num(var.ty)]}, ptr {c.at}, align {size}") for c in found]

    def addition(self, var: f.Var, op: f.Op) -> None:
        """Adds a number of each point to an array."""
        acc, value, *rest = op.args
        array, at = arrays.array_of(acc.ty, self.e.value(acc)), rest[op.attr("rank") :]
        by_lane = next((k for k, i in enumerate(at) if self.varies(i, BY_LANE)), None)
        self.e.define((var,), array.values)
        vector, lane = self.in_lanes(value, 0), None if by_lane is None else expect_type(f.Var, at[by_lane])

        def places(first: str) -> Values:
            return [first if i is lane else self.of_row(i, 0)[0] for i in at]

        if by_lane is None or lane is None or lane.name not in self.places:
            self.add_at(array, [self.of_row(i, 0)[0] for i in at], by_lane, vector)
            return
        place, k = self.place(lane, 0), by_lane

        def together() -> Values:
            self.add_at(array, places(place.first), k, vector)
            return []

        def apart() -> Values:
            if place.grows:
                self.add_grown(array, places, k, place, vector)
            else:
                self.add_each(array, places("0"), self.w.product(array.dims[k + 1 :]), place.all(), vector)
            return []

        self.w.choose(Places(self.w, self.width).side_by_side(place), (), together, apart)

    def add_grown(self, array: Array, places: Callable[[str], Values], k: int, place: Place, vector: str) -> None:
        """Adds at places that grow by 0 or 1: the lanes that are cut off at either end together, the others side by
        side."""
        w, outer, flags, every = self.w, self.mask, vector_type("bool", self.width), place.all()

        def at(end: str) -> str:
            return w.let(f"icmp eq <{self.width} x i64> {every}, {splat(w, self.width, 'i64', end)}")

        low = at(place.first)
        high = self.logic("and", at(place.last), w.let(f"xor {flags} {low}, splat (i1 true)"))
        middle = w.let(f"xor {flags} {self.logic('or', low, high)}, splat (i1 true)")
        alike = w.let(f"zext i{self.width} {self.bits(low)} to i64") if self.width < 64 else self.bits(low)
        before = w.let(f"sub i64 {place.first}, {w.let(f'call i64 @llvm.ctpop.i64(i64 {alike})')}")
        parts = (low, place.first, None), (high, place.last, None), (middle, w.add(before, "1"), k)
        for part, number, by_lane in parts:
            self.mask = mask = self.logic("and", outer, part) if outer else part

            def add(number: str = number, by_lane: int | None = by_lane) -> Values:
                self.add_at(array, places(number), by_lane, vector)
                return []

            w.choose(w.let(f"icmp ne i{self.width} {self.bits(mask)}, 0"), (), add, lambda: [])
        self.mask = outer

    def bits(self, flags: str) -> str:
        """A mask as a whole number, with a bit for each lane."""
        return self.w.let(f"bitcast {vector_type('bool', self.width)} {flags} to i{self.width}")

    # ---- loops

    def term_of(self, var: f.Var, x: f.Atom) -> list[Term]:
        """The rows of what becomes a variable; they are vectors if it varies by lanes."""
        how = self.how.of(var)
        t = vector_type(num(var.ty), self.width) if how & BY_LANE else SCALARS[num(var.ty)]
        return [Term(x, row, t) for row in range(self.rows if how & BY_ROW else 1)]

    def terms(self, terms: Sequence[Term]) -> Values:
        return [self.in_lanes(one.of, one.row) if one.type[0] == "<" else self.of_row(one.of, one.row)[0]
                for one in terms]  # fmt: skip

    def loop(self, variables: tuple[f.Var, ...], loop: f.For) -> None:
        """Writes a loop in order, which hands on what it adds to."""
        e, count, size = self.e, self.e.one(loop.count), len(loop.state)
        triples = list(zip(loop.state, variables, loop.inits, loop.body.results, strict=False))
        same = [(inside, after, e.value(init)) for inside, after, init, _ in triples if inside.name in self.how.accs]
        pairs = [one for one in triples if one[0].name not in self.how.accs]
        starts = [term for var, _, init, _ in pairs for term in self.term_of(var, init)]
        ends = [term for var, _, _, result in pairs for term in self.term_of(var, result)]
        rooms = [self.room_for(expect_type(f.Num, x.ty), count) for x in loop.body.results[size:]]

        def step(i: str, state: Values) -> Values:
            outer, e.env = e.env, dict(e.env)
            e.define((loop.index,), [i])
            for inside, _, values in same:
                e.define((inside,), values)
            self.define([var for var, *_ in pairs], state)
            self.binds(loop.body.binds)
            for room, x in zip(rooms, loop.body.results[size:], strict=True):
                self.keep(room, i, self.in_lanes(x, 0))
            after = self.terms(ends)
            e.env = outer
            return after

        types, short = [term.type for term in starts], interrupts.is_short(loop.body)
        made = interrupts.count_to(e, count, step, types, self.terms(starts), short=short)
        self.define([after for _, after, *_ in pairs], made)
        for _, after, values in same:
            e.define((after,), values)
        if rooms:
            self.rooms[variables[-1].name] = rooms

    def sums(self, variables: tuple[f.Var, ...], par: f.Par) -> None:
        """Writes sums that vary: each row has its own, and they are vectors if they vary by lanes."""
        e = self.e
        counts = arrays.checked_counts(e, [(e.one(n), arrays.site_of(e, par)) for _, n in par.space])
        pairs = zip(variables, par.body.results, strict=True)
        terms = [term for var, x in pairs for term in self.term_of(var, x)]

        def term() -> Values:
            outer, e.env = e.env, dict(e.env)
            self.binds(par.body.binds)
            values = self.terms(terms)
            e.env = outer
            return values

        space, types = [index for index, _ in par.space], [one.type for one in terms]
        points = SumLoop(e, space, counts, types, term, len(every(par.body)) <= SHORT)
        self.define(variables, points.totals(any(isinstance(bind.rhs, f.Par) for bind in par.body.binds)))
