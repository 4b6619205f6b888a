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
one repeat it; lanes past the last one are masked.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.walk import rhs_mentions
from dplc.machine.emit import arrays
from dplc.machine.emit.arrays import Array
from dplc.machine.emit.body import BodyEmitter
from dplc.machine.emit.lane_sums import SumLoop
from dplc.machine.emit.varying import BY_LANE, BY_ROW, Varying, varying
from dplc.machine.emit.vectors import vector, vector_type
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type

ROWS = 4  # points of the dimension before the last one that are computed together


def lanes_of(e: BodyEmitter, par: f.Par, counts: Sequence[str]) -> Lanes | None:
    """The writer of a Par's points in lanes, if they fit.  `counts` are those of its dimensions."""
    found = varying(par)
    return Lanes(e, par, found, counts) if found else None


def num(ty: f.Type) -> str:
    return expect_type(f.Num, ty).name


@node
class Term:
    """A row of what a sum adds up, with its LLVM type."""

    of: f.Atom
    row: int
    type: str


class Lanes:
    """A Par whose points are written in lanes.  `parts` has the values of varying variables: one for each row if they
    vary by rows."""

    def __init__(self, e: BodyEmitter, par: f.Par, how: Varying, counts: Sequence[str]) -> None:
        self.e, self.w, self.par, self.how = e, e.w, par, how
        self.count = counts[-1]
        self.row_count = counts[-2] if len(counts) > 1 else ""
        self.rows = self.how_many_rows()
        self.width = how.lanes
        self.parts: dict[str, Values] = {}
        self.mask = ""

    def how_many_rows(self) -> int:
        """Fewer where there are several sums, as each row has its own in registers."""
        sums = sum(len(bind.vars) for bind in self.par.body.binds if isinstance(bind.rhs, f.Par))
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

    def tiles(self) -> str:
        """The number of tiles."""
        return self.up_to(self.row_count or self.count, self.size)

    def up_to(self, count: str, size: int) -> str:
        """How many pieces of a size there are, with one that is not whole."""
        if count.isdigit():
            return str(-(-int(count) // size))
        return self.w.let(f"udiv i64 {self.w.add(count, str(size - 1))}, {size}") if size > 1 else count

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
        self.parts[self.par.space[-1][0].name] = [lane]
        left = w.let(f"sub nuw i64 {self.count}, {lane}")
        whole = w.let(f"icmp uge i64 {left}, {self.width}")

        def part() -> Values:
            few = w.let(f"call i64 @llvm.umin.i64(i64 {left}, i64 {self.width})")
            self.mask = self.lower(few)
            self.points(lane, starts, kept)
            self.mask = ""
            return []

        def full() -> Values:
            self.points(lane, starts, kept)
            return []

        if self.count.isdigit() and int(self.count) % self.width == 0:
            full()
        elif self.count.isdigit() and int(self.count) < self.width:
            part()
        else:
            w.choose(whole, (), full, part)

    def lower(self, count: str) -> str:
        """The mask of the first lanes."""
        w, lanes = self.w, range(self.width)
        places = f"<{', '.join(f'i32 {i}' for i in lanes)}>"
        most = self.splat("i32", w.let(f"trunc i64 {count} to i32"))
        return w.let(f"icmp ult <{self.width} x i32> {places}, {most}")

    def points(self, lane: str, starts: Values, kept: dict[int, Array]) -> None:
        outer, self.e.env = self.e.env, dict(self.e.env)
        self.binds(self.par.body.binds)
        for k, array in kept.items():
            result = self.par.body.results[k]
            size, t = array.size, vector_type(num(result.ty), self.width)
            for row, start in enumerate(starts):
                value = self.in_lanes(result, row)
                at = self.w.at(array.data, self.w.scale(self.w.add(start, lane), size))
                self.store(t, value, at, size)
        self.e.env = outer

    # ---- memory

    def store(self, t: str, value: str, at: str, align: int) -> None:
        if not self.mask:
            self.w.do(f"store {t} {value}, ptr {at}, align {align}")
            return
        mask = f"<{self.width} x i1> {self.mask}"
        self.w.do(f"call void @llvm.masked.store.{self.suffix(t)}.p0({t} {value}, ptr {at}, i32 {align}, {mask})")

    def load(self, t: str, at: str, align: int) -> str:
        if not self.mask:
            return self.w.let(f"load {t}, ptr {at}, align {align}")
        mask = f"<{self.width} x i1> {self.mask}"
        given = f"ptr {at}, i32 {align}, {mask}, {t} zeroinitializer"
        return self.w.let(f"call {t} @llvm.masked.load.{self.suffix(t)}.p0({given})")

    def suffix(self, t: str) -> str:
        """The name of a vector type in an intrinsic."""
        return f"v{self.width}f{64 if t.endswith('double>') else 32}"

    # ---- operands

    def varies(self, atom: f.Atom, bit: int) -> bool:
        return bool(self.how.of(atom) & bit)

    def of_row(self, atom: f.Atom, row: int) -> Values:
        """The leaves of an atom in a row."""
        if isinstance(atom, f.Var) and atom.name in self.parts:
            parts = self.parts[atom.name]
            return [parts[row if self.varies(atom, BY_ROW) else 0]]
        return self.e.value(atom)

    def in_lanes(self, atom: f.Atom, row: int) -> str:
        """The vector of a number's values in a row."""
        (value,) = self.of_row(atom, row)
        return value if self.varies(atom, BY_LANE) else self.splat(SCALARS[num(atom.ty)], value)

    def splat(self, leaf: str, value: str) -> str:
        if not value.startswith("%"):
            return f"splat ({leaf} {value})"
        t = f"<{self.width} x {leaf}>"
        one = self.w.let(f"insertelement {t} poison, {leaf} {value}, i64 0")
        return self.w.let(f"shufflevector {t} {one}, {t} poison, <{self.width} x i32> zeroinitializer")

    # ---- bindings

    def binds(self, binds: Sequence[f.Bind]) -> None:
        for bind in binds:
            how = self.how.of_rhs(bind.rhs)
            rows = range(self.rows if how & BY_ROW else 1)
            match bind.rhs:
                case _ if not how:
                    self.e.run([bind])
                case f.Par() as par:
                    self.sums(bind.vars, par)
                case f.Op() as op if how & BY_LANE and bind.vars[0].ty != f.I64:
                    self.parts[bind.vars[0].name] = [self.vector(bind.vars[0], op, row) for row in rows]
                case rhs:
                    self.parts[bind.vars[0].name] = [self.scalar(bind, set(rhs_mentions(rhs)), row) for row in rows]

    def scalar(self, bind: f.Bind, names: set[str], row: int) -> str:
        """A number that varies by rows only, or the first of the lanes' numbers."""
        for name in names & self.parts.keys():
            self.e.env[name] = [self.parts[name][row if self.how.how[name] & BY_ROW else 0]]
        self.e.run([bind])
        return self.e.one(bind.vars[0])

    def vector(self, var: f.Var, op: f.Op, row: int) -> str:
        if op.op != "index":
            return vector(self.w, op.op, num(op.args[-1].ty), self.width, [self.in_lanes(a, row) for a in op.args])
        array = arrays.array_of(op.args[0].ty, self.e.value(op.args[0]))
        at = arrays.address(self.e, array, [self.of_row(i, row)[0] for i in op.args[1:]])
        return self.load(vector_type(num(var.ty), self.width), at, array.size)

    # ---- sums

    def sums(self, variables: tuple[f.Var, ...], par: f.Par) -> None:
        """Writes sums that vary: each row has its own, and they are vectors if they vary by lanes."""
        e = self.e
        counts = arrays.checked_counts(e, [(e.one(n), e.site(par.span)) for _, n in par.space])
        terms = []
        for var, x in zip(variables, par.body.results, strict=True):
            how = self.how.of(x)
            t = vector_type(num(var.ty), self.width) if how & BY_LANE else SCALARS[num(var.ty)]
            terms += [Term(x, row, t) for row in range(self.rows if how & BY_ROW else 1)]

        def term() -> Values:
            outer, e.env = e.env, dict(e.env)
            self.binds(par.body.binds)
            values = [self.in_lanes(one.of, one.row) if one.type[0] == "<" else self.of_row(one.of, one.row)[0]
                      for one in terms]  # fmt: skip
            e.env = outer
            return values

        points = SumLoop(e, [index for index, _ in par.space], counts, [one.type for one in terms], term)
        made = points.totals(any(isinstance(bind.rhs, f.Par) for bind in par.body.binds))
        for var in variables:
            rows = self.rows if self.how.of(var) & BY_ROW else 1
            self.parts[var.name], made = made[:rows], made[rows:]
