"""What points in lanes read: the values of variables, which may vary by rows and lanes, and elements of arrays.

    if lt k 0 { 0.0 } else { index a k }    =>    select (lt k 0) 0.0 (lanes of a[k ...], masked by not (lt k 0))

Branches are selections, so both arms are done, and a mask protects what an arm reads.
"""

from __future__ import annotations

from functools import partial, reduce

from dplc.flat import term as f
from dplc.flat.walk import names, rhs_mentions
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.points.lane_memory import Memory, splat
from dplc.machine.emit.points.lane_places import Place, Places, is_cut
from dplc.machine.emit.points.varying import BY_LANE, BY_ROW, Varying
from dplc.machine.emit.scalars.vectors import vector_type
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type


def num(ty: f.Type) -> str:
    """The name of a number's type."""
    return expect_type(f.Num, ty).name


class Reads(Memory):
    """Points that vary as `how` says.  `parts` has the values of varying variables: one for each row if they vary by
    rows; `places` has indices that are cut off."""

    def __init__(self, e: BodyEmitter, width: int, how: Varying) -> None:
        super().__init__(e, width)
        self.how = how
        self.rows = 1
        self.parts: dict[str, Values] = {}
        self.places: dict[str, list[Place]] = {}
        self.under: list[tuple[f.Atom, bool]] = []  # the conditions of the arms that are written, and what they are

    def varies(self, atom: f.Atom, bit: int) -> bool:
        """True if an atom differs between rows, or between lanes."""
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
        return value if self.varies(atom, BY_LANE) else splat(self.w, self.width, SCALARS[num(atom.ty)], value)

    def whole(self, atom: f.Atom, row: int) -> str:
        """The vector of a whole number, which may be that of the lane, plus something."""
        if isinstance(atom, f.Var) and atom.name in self.places:
            return self.place(atom, row).all()
        first = splat(self.w, self.width, "i64", self.of_row(atom, row)[0])
        if not self.varies(atom, BY_LANE):
            return first
        return self.w.let(f"add <{self.width} x i64> {first}, <{', '.join(f'i64 {i}' for i in range(self.width))}>")

    def varied(self, atom: f.Atom, var: f.Var, row: int) -> str:
        """A number in a row: a vector if a variable varies by lanes."""
        return self.in_lanes(atom, row) if self.how.of(var) & BY_LANE else self.of_row(atom, row)[0]

    def scalar(self, bind: f.Bind, names: set[str], row: int) -> str:
        """A number that varies by rows only, or the first of the lanes' numbers."""
        for name in names & self.parts.keys():
            self.e.env[name] = [self.parts[name][row if self.how.how[name] & BY_ROW else 0]]
        self.e.run([bind])
        return self.e.one(bind.vars[0])

    # ---- elements

    def read(self, var: f.Var, op: f.Op, row: int) -> str:
        """The elements of an array that the lanes read, zeros where the conditions of an arm do not hold."""
        outer, self.mask = self.mask, self.asked(var, row)
        made = self.elements(num(var.ty), op, row)
        self.mask = outer
        return made

    def elements(self, ty: str, op: f.Op, row: int) -> str:
        array, at = arrays.array_of(op.args[0].ty, self.e.value(op.args[0])), op.args[1:]
        k = next(k for k, i in enumerate(at) if self.varies(i, BY_LANE))
        stride, lane = self.w.product(array.dims[k + 1 :]), expect_type(f.Var, at[k])
        place = self.place(lane, row) if lane.name in self.places else None

        def of(first: str) -> str:
            indices = [first if i is lane else self.of_row(i, row)[0] for i in at]
            return self.element(array, indices)

        def together(first: str) -> str:
            if k + 1 == len(array.dims):
                return self.load(ty, of(first), array.size)
            return self.gather(ty, of(first), stride, array.size)

        if place is None:
            return together(self.of_row(lane, row)[0])
        beside = Places(self.w, self.width).side_by_side(place)
        types = [vector_type(ty, self.width)]
        return self.w.choose(beside, types, lambda: [together(place.first)],
                             lambda: [self.gather_at(ty, of("0"), place.all(), stride, array.size)])[0]  # fmt: skip

    def place(self, atom: f.Var, row: int) -> Place:
        return self.places[atom.name][row if self.varies(atom, BY_ROW) else 0]

    def place_of(self, bind: f.Bind, op: f.Op, row: int) -> Place:
        """An index that is cut off or goes around a ring."""
        places = Places(self.w, self.width)
        if op.op == "mod":
            return places.around(self.scalar(bind, set(names(op.args)), row), self.e.one(op.args[1]))
        lane, other = op.args if self.varies(op.args[0], BY_LANE) else op.args[::-1]
        start = expect_type(f.Var, lane)
        given = self.place(start, row) if start.name in self.places else places.of_number(self.of_row(start, row)[0])
        return (places.cut if is_cut(op) else places.moved)(op.op, given, self.of_row(other, row)[0])

    # ---- reads under conditions

    def asked(self, var: f.Var, row: int) -> str:
        """The mask of the lanes in which the conditions of the arms hold that are written; in any row, if a variable
        is the same in all of them."""
        by_row = any(self.varies(cond, BY_ROW) for cond, _ in self.under) and not self.varies(var, BY_ROW)
        return reduce(partial(self.logic, "or"), [self.asked_in(k) for k in (range(self.rows) if by_row else (row,))])

    def asked_in(self, row: int) -> str:
        mask, flags = self.mask, vector_type("bool", self.width)
        for cond, truth in self.under:
            given = self.in_lanes(cond, row)
            given = given if truth else self.w.let(f"xor {flags} {given}, splat (i1 true)")
            mask = self.logic("and", mask, given) if mask else given
        return mask

    def logic(self, name: str, a: str, b: str) -> str:
        return self.w.let(f"{name} {vector_type('bool', self.width)} {a}, {b}")

    def careful(self, bind: f.Bind, row: int) -> str:
        """A read that is alike in all lanes, if the conditions hold in any of them."""
        w, (var,) = self.w, bind.vars
        bits = w.let(f"bitcast {vector_type('bool', self.width)} {self.asked(var, row)} to i{self.width}")
        nothing = "false" if var.ty == f.BOOL else number(0.0, num(var.ty))
        asks, names = w.let(f"icmp ne i{self.width} {bits}, 0"), set(rhs_mentions(bind.rhs))
        made = w.choose(asks, (SCALARS[num(var.ty)],), lambda: [self.scalar(bind, names, row)], lambda: [nothing])
        return made[0]
