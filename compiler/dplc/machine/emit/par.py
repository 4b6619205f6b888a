"""Par -> a nest of loops over contiguous memory.

    z, s = par i < n, j < m to keep, fold 0 {          for i < n { for blocks of j < m {
      ...; yield x, y }                          =>      ...; z[i*m + j] = x; buffer[k] = y } }

A Par whose body ends in another Par of a known length is one nest: the matrix `[for i < n, j < m -> e]` has no rows of
its own.  Points are independent, and LLVM is told so, to vectorise the innermost loop.  A result overwrites its target
if that is unique.  `points/rows.py` writes results that are rows, `points/sums.py` sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import accumulate
from typing import Any

from dpl.node import replace
from dpl.prims.sums import BLOCK, FEW

from dplc.flat import term as f
from dplc.machine.emit import threads
from dplc.machine.emit.bodies import arrays, inplace, interrupts
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.emitter import zeros
from dplc.machine.emit.module.layout import leaves
from dplc.machine.emit.points.borders import Middle, middle
from dplc.machine.emit.points.destinations import rows_there
from dplc.machine.emit.points.lanes import Lanes, lanes_of
from dplc.machine.emit.points.marks import marked, masks
from dplc.machine.emit.points.own_places import adds_apart
from dplc.machine.emit.points.row_sums import with_row_sums
from dplc.machine.emit.points.rows import Row, Rows, addresses, in_pieces, shape_of
from dplc.machine.emit.points.straight import straight
from dplc.machine.emit.points.strips import Strips, in_parts
from dplc.machine.emit.points.sums import BlockSums, RowSums, Steps, few
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Bordered, Halves, Mark, Values
from dplc.narrow import expect_type
from dplc.passes.kernels.nest import nest
from dplc.passes.kernels.work import Work, times
from dplc.passes.simplify.purity import droppable


def par(e: BodyEmitter, outer: f.Par, variables: tuple[f.Var, ...]) -> Values:
    """A Par on the host or, where a launch pays, on the device.  What only the device does gives zeros on the host."""
    nest = _Nest(e, outer, variables)
    for_device = any(out.kind == "done" for out in outer.outs)
    on_host = partial(zeros, f.Tup(tuple([var.ty for var in variables]))) if for_device else nest.write
    if e.unit.device is None:
        return on_host()
    from dplc.machine.emit.launches.launch import launched

    return launched(e, outer, nest.counts, variables, on_host)


class _Nest:
    """A Par under construction.  The state of its loops: that of the sums of floats, of rows, and of each other out."""

    def __init__(self, e: BodyEmitter, outer: f.Par, variables: tuple[f.Var, ...]) -> None:
        self.e, self.vars = e, variables
        self.levels = nest(outer, with_sums=True)
        self.leaf = with_row_sums(self.levels[-1].par)
        self.space = [dimension for level in self.levels for dimension in level.par.space]
        given = [(e.one(atom), arrays.site_of(e, level.par)) for level in self.levels for _, atom in level.par.space]
        self.counts = arrays.checked_counts(e, given)
        self.values = list(zip(self.leaf.outs, self.leaf.body.results, strict=True))
        self.kept: dict[int, Array] = {}
        self.rooms: dict[int, Array] = {}  # for rows that Pars in the points write there
        self.targets: dict[int, Array] = {}
        self.row_sums: dict[int, RowSums] = {}
        self.state: dict[int, tuple[str, ...]] = {}  # types of the part of the state that belongs to an out
        self.same: tuple[tuple[f.Var, f.Atom], ...] = ()  # what results of branches are between the borders

    # ---- what becomes of the results

    def write(self) -> Values:
        e, w, inits = self.e, self.e.w, list[str]()
        self.floats: list[int] = []  # those that are summed from vectors
        total = w.product(self.counts)
        self.row_base: dict[int, str] = {}  # the number of the first point of the row that is added to
        self.find_rows()
        self.chains = self.changed_in_place()
        self.independent = not (self.has_rows or self.leaf.ordered) and self.adds_apart()
        alone = len(self.levels) == 1 and self.may_be_in_lanes()
        in_vectors = not few(total) or (alone and straight(e, self.leaf, self.counts[-1]) is not None)
        for k, (out, x) in enumerate(self.values):
            match out.kind:
                case "keep" if k in self.there:
                    elem, dims = expect_type(f.Arr, x.ty).elem, [e.one(n) for n in self.leaf.outs[k].inner]
                    self.rooms[k] = self.place_for(k, replace(out, target=None), elem, dims)
                case "keep" if not self.has_rows:
                    self.kept[k] = self.place_for(k, out, self.pieces[k].elem, self.pieces[k].dims)
                case "fold" if out.rank:
                    cut = len(self.counts) - out.rank
                    self.row_sums[k] = RowSums(e, x.ty, self.counts[cut:], w.product(self.counts[:cut]))
                case "fold" if f.is_float(x.ty) and in_vectors:
                    self.floats.append(k)
                case "keep" | "fold":
                    one = self.vars[k].ty if out.kind == "keep" else x.ty  # a sum that is kept is an array
                    self.state[k] = leaves(one)
                    inits += zeros(one)
                case "add":
                    self.state[k] = leaves(x.ty)
                    assert out.target is not None
                    inits += e.value(out.target)
                case "done" | "last":
                    pass  # only a device does such a Par
        alone = self.may_be_in_lanes()
        plain = alone and not self.leaf.ordered and all(self.values[k][0].acc for k in self.state)
        self.straight = straight(e, self.leaf, self.counts[-1]) if plain else None
        self.sums = {0: self.sums_at(0)} if self.floats else {}
        self.lanes = lanes_of(e, self.leaf, self.counts[-len(self.leaf.space) :]) if alone and not self.sums else None
        self.brief = not alone and few(total) and self.may_be_in_lanes(sums=True)
        apart = (alone or self.brief) and not self.lanes and not self.straight
        parts = in_parts(self.leaf, self.binds, e.unit.has_masks) if apart else None
        self.strips = Strips(e, parts, FEW if self.brief else BLOCK) if parts and (alone or parts.adds) else None
        self.binds = self.strips.parts.second if self.strips else self.binds
        in_order = any(out.kind == "fold" and k in self.state for k, (out, _) in enumerate(self.values))
        self.wide = not in_order and interrupts.is_short(f.Block(tuple(self.binds), ()))  # for LLVM's vectors
        self.middle = self.between_borders()
        inits = self.ready(inits, total)
        if self.sums:
            inits = [*self.sums[0].START, *inits]
        last = self.loops(inits)
        return self.results(last, total)

    def find_rows(self) -> None:
        """Which results are written by their elements, which are rows that Pars in the points write, or else copied."""
        keeps = {k for k, (out, _) in enumerate(self.values) if out.kind == "keep"}
        self.binds, self.pieces = in_pieces(self.leaf)
        self.there = rows_there(self.leaf) if len(self.pieces) < len(keeps) and self.e.unit.device is None else ()
        if self.there:
            numbers = {k: self.values[k][1] for k in sorted(keeps.difference(self.there))}
            self.pieces = {k: Row(x.ty, (x,), ()) for k, x in numbers.items()}
        self.has_rows = len(self.pieces) + len(self.there) < len(keeps)
        self.in_rows = sorted(keeps) if self.has_rows else []
        results = tuple([self.values[k][1] for k in self.in_rows])
        self.rows = Rows(self.e, results, tuple(self.counts), self.levels[0].par.span)

    def between_borders(self) -> Middle | None:
        """What points do between the borders of the space, if that is written apart (`borders.py`).  Sums read their
        numbers as vectors at once: those that begin at a border would not be the ones that a short row has written."""
        if not (self.independent and self.wide) or self.state or self.strips or self.straight or self.e.is_cold:
            return None
        before = [bind for level in self.levels[:-1] for bind in level.before]
        rows = bool(self.sums) and (len(self.counts) > 1 or bool(masks(self.e, self.leaf.space[-1], self.binds)))
        return middle(self.space, before, self.binds, not rows, self.e.fn.body)

    def place_for(self, k: int, out: f.Out, elem: f.Type, row: list[str]) -> Array:
        """The array to write: where it stays, the target if that is unique, or a new one."""
        e, w = self.e, self.e.w
        if there := e.destinations.pop(self.vars[k].name, ""):
            return Array(elem, "null", there, tuple(shape_of(e, self.levels, self.counts, k, row)))
        if out.target is None:
            made = arrays.new_outer(e, elem, self.counts[0], [*self.counts[1:], *row], e.site(self.levels[0].par.span))
            shape = shape_of(e, self.levels, self.counts, k, row) if len(self.levels) > 1 or row else made.dims
            return Array(elem, made.owner, made.data, tuple(shape))
        self.targets[k] = target = arrays.array_of(out.target.ty, e.value(out.target))

        def fresh() -> Values:
            return arrays.new_array(e, elem, self.counts).values[:2]

        owner, data = w.choose(e.unique(target.owner), ("ptr", "ptr"), lambda: [target.owner, target.data], fresh)
        return Array(elem, owner, data, tuple(self.counts))

    def changed_in_place(self) -> dict[int, inplace.Chain]:
        """The accumulators that points add to and do nothing else with, by the numbers of the outs."""
        accs = [(k, out.acc, x) for k, (out, x) in enumerate(self.values) if out.acc is not None]
        counts, own = [n for level in self.levels for _, n in level.par.space], {i.name for i, _ in self.leaf.space}
        chains = inplace.chains_in(self.leaf.body, [(acc, x) for _, acc, x in accs], own)
        known = [(accs[chain.index][0], chain) for chain in chains]
        return {k: one for k, one in known if self.is_ready(k) or inplace.is_filled(one, self.leaf.body, counts)}

    def is_ready(self, k: int) -> bool:
        target = self.values[k][0].target
        return target is not None and self.e.is_ready(target)

    def may_be_in_lanes(self, sums: bool = False) -> bool:
        """True if points only keep numbers, add them up, and add to arrays that are ready; `sums`: perhaps in order."""
        adds = {k for k, (out, _) in enumerate(self.values) if out.acc}
        others = {k for k in self.state if not (sums and self.values[k][0].kind == "fold")}
        plain = not (self.has_rows or self.leaf.ordered or self.row_sums or self.e.unit.apart)
        return plain and self.chains.keys() >= adds >= others

    def adds_apart(self) -> bool:
        """True if no two points add to one place."""
        known = all(k in self.chains for k, (out, _) in enumerate(self.values) if out.acc is not None)
        return known and all(adds_apart(self.leaf, chain.variables) for chain in self.chains.values())

    def ready(self, inits: Values, total: str) -> Values:
        """The initial state, with the arrays that every point adds to made unique."""
        e, w = self.e, self.e.w
        if not self.chains:
            return inits
        types = [leaf for k in self.state for leaf in self.state[k]]

        def made() -> Values:
            state = list(inits)
            for k, chain in self.chains.items():
                part, acc = self.part(k), self.values[k][0].acc
                assert acc is not None
                e.ready.update(chain.variables)
                if self.is_ready(k):
                    continue
                dims = [e.one(n) for n in chain.dims]
                state[part] = inplace.ready(e, expect_type(f.Arr, acc.ty), state[part], dims)
            return state

        return w.choose(w.let(f"icmp sgt i64 {total}, 0"), types, made, lambda: inits)

    def part(self, k: int) -> slice:
        """The place of an out in the state, without that of the sums."""
        start = sum(len(types) for other, types in self.state.items() if other < k)
        return slice(start, start + len(self.state[k]))

    # ---- the loops

    def sums_at(self, level: int) -> Any:
        """The sums of a level of the nest, none of which is complete."""
        if self.straight and level + 1 == len(self.levels):
            return self.straight
        before = sum(len(one.par.space) for one in self.levels[:level])
        counts = self.counts[before : before + len(self.levels[level].par.space)]
        types = [expect_type(f.Num, self.values[k][1].ty).name for k in self.floats]
        return self.e.block_sums(types, self.e.w.product(counts))

    def loops(self, inits: Values) -> Values:
        e, self.own = self.e, [leaf for types in self.state.values() for leaf in types]
        self.whole = [*(self.sums[0].TYPES if self.sums else ()), *self.own]
        if self.independent:
            e.groups.append(e.unit.metadata("distinct !{}"))
        last = self.run(0, 0, "0", inits)
        if self.independent:
            e.groups.pop()
        return last

    def run(self, level: int, inside: int, number: str, state: Values) -> Values:
        """The loop over dimension `inside` of a level; `number` is that of the points of the outer loops."""
        e, par = self.e, self.levels[level].par
        depth = sum(len(one.par.space) for one in self.levels[:level]) + inside
        for k, sums in self.row_sums.items():
            if len(sums.rows.dims) == len(self.counts) - depth:
                sums.start_row(number)
                self.row_base[k] = e.w.mul(number, e.w.product(self.counts[depth:])) if number != "0" else "0"
        writer = self.straight or self.lanes
        if writer and depth + writer.dimensions == len(self.counts):
            return self.in_vectors(level, inside, number, state)
        (index, _), count = par.space[inside], self.counts[depth]
        last, end_of_level = depth + 1 == len(self.counts), inside + 1 == len(par.space)

        def step(i: str, state: Values) -> Values:
            e.define((index,), [i])
            here = e.w.add(e.w.mul(number, count), i) if number != "0" else i
            if last:
                if self.strips:
                    self.strips.resume(i, self.own_access())
                return self.point(here, state)
            if not end_of_level:
                return self.row(index, i, count, self.whole, partial(self.run, level, inside + 1, here, state))
            e.run(self.levels[level].before)
            totals = [SCALARS[expect_type(f.Num, self.values[k][1].ty).name] for k in self.floats]
            types = [*totals, *self.whole[len(self.sums[0].TYPES) :]] if self.sums else self.whole
            state = self.row(index, i, count, types, partial(self.inner, level + 1, here, state))
            e.run(self.levels[level].after)
            return state

        mark = self.bordered(index, count, self.mark()) if last else ""
        if end_of_level and self.sums:
            self.define_accs(state[len(self.sums[level].TYPES) :])
            begin = self.strips.begin if self.strips and last else lambda first, number: None
            steps = Steps(step, begin, mark, self.own_access() if last else "")
            if depth == 0 and (work := self.work_of_threads(count)) is not None:
                return self.blocks(self.sums[level], count, steps, work)
            return self.sums[level].run(count, steps, self.own, state)
        if last and self.strips:
            return self.in_strips(Steps(step, self.strips.begin, mark, ""), count, depth, state)
        short = not last or (interrupts.is_short(self.leaf.body) and not self.has_rows)
        if depth == 0 and not self.sums and (work := self.work_of_threads(count)) is not None:
            points = threads.Points(count, work, lambda i: step(i, []), short, self.fresh(), mark)
            threads.spread(e, par.body, points)
            return []
        return interrupts.count_to(e, count, step, self.whole, state, mark, short)

    def row(self, index: f.Var, i: str, count: str, types: Sequence[str], write: Callable[[], Values]) -> Values:
        """Step i of an outer loop, values of these types: `write` writes the inner ones, as they are if it is at a
        border (`borders.py`)."""
        w, between = self.e.w, self.middle
        low, high = between.borders[index.name] if between else (0, 0)
        if not (low or high):
            return write()

        def border() -> Values:
            self.middle = None
            made = write()
            self.middle = between
            return made

        return w.choose(w.is_between(i, str(low), w.let(f"sub i64 {count}, {high}")), types, write, border)

    def inner(self, level: int, number: str, state: Values) -> Values:
        """The loops of an inner level: what it adds up, then the state of the others."""
        if not self.sums:
            return self.run(level, 0, number, state)
        self.sums[level] = sums = self.sums_at(level)
        last = self.run(level, 0, number, [*sums.START, *state])
        size = len(sums.TYPES)
        return [*sums.totals(last[:size]), *last[size:]]

    def in_vectors(self, level: int, inside: int, number: str, state: Values) -> Values:
        """The loops over the innermost dimensions in vectors, if that pays; they give sums, if any, and what they add
        to, which stays what it is."""
        if self.straight:
            own = state[len(self.straight.TYPES) :]
            self.define_accs(own)
            return [*self.straight.write(number, self.kept), *own]
        lanes, self.lanes = expect_type(Lanes, self.lanes), None
        tiles = partial(self.tiles, lanes, number, len(self.counts) - lanes.dimensions, state)
        made = lanes.or_else(self.whole, tiles, partial(self.run, level, inside, number, state))
        self.lanes = lanes
        return made

    def tiles(self, lanes: Lanes, number: str, depth: int, state: Values) -> Values:
        """The loop over the innermost dimensions, in lanes.  The state, arrays that points add to, stays what it is."""
        count = lanes.tiles()
        self.define_accs(state)

        def step(at: str, _: Values | None = None) -> Values:
            lanes.tile(number, at, self.kept)
            return []

        if depth == 0 and (work := self.work_of_threads(self.counts[0])) is not None:
            points = threads.Points(count, times(work, {(): float(lanes.size)}), step, False, self.fresh())
            threads.spread(self.e, self.levels[0].par.body, points)
        else:
            interrupts.count_to(self.e, count, step, short=False)
        return state

    def in_strips(self, steps: Steps, count: str, depth: int, state: Values) -> Values:
        """The innermost loop, in strips whose points have two parts.  The state stays what it is, but sums in order."""
        if self.brief:
            steps.begin("0", count)
            return interrupts.count_to(self.e, count, steps.at, self.whole, state, steps.mark)
        self.define_accs(state)
        w = self.e.w
        pieces = w.let(f"udiv i64 {w.add(count, str(BLOCK - 1))}, {BLOCK}")

        def strip(at: str, _: Values | None = None) -> Values:
            first = w.let(f"mul nuw nsw i64 {at}, {BLOCK}")
            few = w.let(f"call i64 @llvm.umin.i64(i64 {w.let(f'sub i64 {count}, {first}')}, i64 {BLOCK})")
            steps.begin(first, few)
            w.repeat(few, lambda i: steps.at(w.let(f"add nuw nsw i64 {first}, {i}"), state), steps.mark)
            return []

        if depth == 0 and (work := self.work_of_threads(count)) is not None:
            points = threads.Points(pieces, times(work, {(): float(BLOCK)}), strip, False, self.fresh())
            threads.spread(self.e, self.levels[0].par.body, points)
        else:
            interrupts.count_to(self.e, pieces, strip, short=False)
        return state

    def work_of_threads(self, count: str) -> Work | None:
        """The work of a step of the outermost loop, if threads may share them.  What a point overwrites could not be
        computed again if it failed."""
        outermost = self.levels[0].par
        if self.state or self.row_sums or self.rooms or outermost.ordered:
            return None
        if self.targets and not all(droppable(bind.rhs) for bind in outermost.body.binds):
            return None
        each = threads.pays(self.e, outermost.body, count)
        inner = self.counts[1 : len(outermost.space)]
        works: list[threads.Work] = [{(n,): 1.0} for n in inner]
        return None if each is None else reduce(times, works, each)

    def fresh(self) -> list[str]:
        """The addresses of new arrays."""
        return [array.data for k, array in self.kept.items() if k not in self.targets]

    def blocks(self, sums: BlockSums, count: str, steps: Steps, work: Work) -> Values:
        """The loop of a sum whose blocks threads share; the state of the sums."""
        work, block = times(work, {(): float(BLOCK)}), partial(sums.block, length=count, steps=steps)
        points = threads.Points(sums.blocks, work, block, False, self.fresh())
        threads.spread(self.e, self.levels[0].par.body, points)
        return ["0", sums.blocks]

    def mark(self) -> str | Halves:
        """The metadata of the innermost loop."""
        return marked(self.e, self.leaf.space[-1], self.binds, self.wide) if self.independent else ""

    def bordered(self, index: f.Var, count: str, mark: str | Halves) -> Mark:
        """The metadata of an innermost loop that is another one between the borders (`borders.py`)."""
        between, plain = self.middle, (self.binds, self.same)
        if between is None:
            return mark

        def inside(begins: bool) -> None:
            self.binds, self.same = (between.binds, between.same) if begins else plain

        inside(True)
        mark = self.mark()
        inside(False)
        edge = self.e.unit.loop_mark(self.e.unit.metadata('!{!"llvm.loop.vectorize.enable", i1 false}'))
        low, high = between.borders[index.name]
        return Bordered(count, low, high, between.in_order, edge, mark, inside)

    def own_access(self) -> str:
        """The mark of accesses to what this Par makes."""
        return self.e.access(len(self.e.groups) - 1) if self.independent else ""

    def define_accs(self, state: Values) -> None:
        for k, (out, _) in enumerate(self.values):
            if out.acc is not None:
                self.e.define((out.acc,), state[self.part(k)])

    def point(self, number: str, state: Values) -> Values:
        """One point: the body, its stores, and the next state, after the numbers to add up."""
        e, w = self.e, self.e.w
        self.define_accs(state)
        own = self.own_access()
        e.separate.update({name: own for chain in self.chains.values() for name in chain.variables})
        e.wide = self.wide
        for k, room in self.rooms.items():
            start = w.mul(number, w.product(room.dims[len(self.counts) :])) if number != "0" else "0"
            e.destinations[expect_type(f.Var, self.values[k][1]).name] = w.element(room.data, start, room.size)
        e.run(self.binds)
        for var, atom in self.same:
            e.define((var,), e.value(atom))
        e.wide = False
        for k, array in self.kept.items():
            row, out = self.pieces[k], self.values[k][0]
            places = addresses(e, out, row, array.data, number, [index for index, _ in self.space], self.counts)
            for at, atom in zip(places, row.items, strict=True):
                e.put(array.elem, e.value(atom), at, own)
        adds_first = self.strips and not self.strips.parts.adds
        in_first = {k for k, (out, _) in enumerate(self.values) if adds_first and out.acc}
        in_place = {*self.kept, *self.rooms, *in_first}
        made = {k: e.value(x) for k, (_, x) in enumerate(self.values) if k not in in_place}
        for k, sums in self.row_sums.items():
            place = number if self.row_base[k] == "0" else w.let(f"sub i64 {number}, {self.row_base[k]}")
            sums.add(place, made[k][0], own)
        after: Values = [made[k][0] for k in self.floats]
        placed = self.place_rows(number, state)
        for k, types in self.state.items():
            old = state[self.part(k)]
            match self.values[k][0].kind:
                case "keep":
                    after += placed[k]
                case "add":
                    after += made.get(k, old)
                case _:
                    plus = "fadd" if f.is_float(self.values[k][1].ty) else "add"
                    after.append(w.let(f"{plus} {types[0]} {old[0]}, {made[k][0]}"))
        return after

    def place_rows(self, number: str, state: Values) -> dict[int, Values]:
        """Writes results that are rows; the next part of the state of each of them."""
        if not self.in_rows:
            return {}
        made = self.rows.place(number, [leaf for k in self.in_rows for leaf in state[self.part(k)]])
        sizes = [len(self.state[k]) for k in self.in_rows]
        ends = list(accumulate(sizes))
        return {k: made[end - size : end] for k, size, end in zip(self.in_rows, sizes, ends, strict=True)}

    # ---- results

    def results(self, last: Values, total: str) -> Values:
        e = self.e
        totals: dict[int, str] = {}
        if self.sums:
            size = len(self.sums[0].TYPES)
            totals = dict(zip(self.floats, self.sums[0].totals(last[:size]), strict=True))
            last = last[size:]
        if self.in_rows:
            given = [leaf for k in self.in_rows for leaf in last[self.part(k)]]
            variables = [self.vars[k] for k in self.in_rows]
            shapes = partial(shape_of, e, self.levels, self.counts)
            whole = self.rows.or_empty(given, total, variables, lambda i, row: shapes(self.in_rows[i], row))
            last = list(last)
            for k in self.in_rows:
                size = len(self.state[k])
                last[self.part(k)], whole = whole[:size], whole[size:]
        values: Values = []
        for k, (out, x) in enumerate(self.values):
            if k in (made := self.kept | self.rooms):
                values += made[k].values
            elif k in self.row_sums:
                values += self.row_sums[k].result().values
            else:
                total_ = [totals[k]] if k in totals else last[self.part(k)]
                values += arrays.array_of_one(e, expect_type(f.Num, x.ty), total_) if out.kept else total_
        for k in (*self.in_rows, *self.rooms):
            if (unused := self.values[k][0].target) is not None:
                e.drop(unused.ty, e.value(unused))
        for k, target in self.targets.items():
            same = e.w.let(f"icmp eq ptr {target.owner}, {self.kept[k].owner}")
            owner = e.w.let(f"select i1 {same}, ptr null, ptr {target.owner}")
            e.drop(target.type, [owner, *target.values[1:]])
        return values
