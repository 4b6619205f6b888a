"""The body of a function under construction: its variables, and bindings in order.

A variable is the list of its leaves' operands.  `rhs` is abstract: files such as `loops.py` write one kind of
right-hand side and get at inner blocks through this class; `function.py` fills in `rhs`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.flat.ops.row import Dim
from dplc.flat.ops.table import OPS
from dplc.flat.places import outermost
from dplc.flat.walk import atoms, names, spans
from dplc.machine.emit.bodies import inplace
from dplc.machine.emit.bodies.loans import is_drop, loans
from dplc.machine.emit.bodies.local_arrays import MOST, ROOM, local_arrays
from dplc.machine.emit.module.debug import Seen, has_no_location
from dplc.machine.emit.module.emitter import Emitter, zeros
from dplc.machine.emit.module.layout import leaves
from dplc.machine.emit.module.unit import Unit
from dplc.machine.emit.scalars import function_groups
from dplc.machine.emit.scalars.function_groups import Group
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.writer import Loop, Values


class BodyEmitter(Emitter, ABC):
    """`w` takes the text, `env` has the values of variables."""

    def __init__(self, unit: Unit, fn: f.Fn) -> None:
        super().__init__(unit)
        self.fn = fn
        self.env: dict[str, Values] = {}
        self.scope = unit.scope(fn)
        self.ready: set[str] = set()  # variables whose arrays are unique and not null (`inplace.py`)
        self.separate: dict[str, str] = {}  # accumulators to which points add apart, with the mark of that
        self.loop: Loop = self.w.loop  # writes a loop of the program
        self.groups: list[str] = []  # metadata of the Pars around: accesses in different points do not overlap
        self.destinations: dict[str, str] = {}  # where rows are written, by the variables of Pars (`destinations.py`)
        self.home: dict[str, int] = {}  # how many of these Pars are around the definition of a variable
        self.in_points = False  # whether this is a part of the points of a Par
        self.spread = False  # whether this is a part of points that threads share (`threads.py`)
        self.span = f.NOWHERE  # of the binding that is being written
        self.marked = f.NOWHERE  # of the last binding that has a place
        self.at = f.NOWHERE  # for debuggers: of the binding that is being written, or of what is in it
        self.seen: list[Seen] = []  # variables, for debuggers
        self.local = frozenset[str]() if unit.device else local_arrays(fn)
        self.in_frame = False  # whether this binding makes such arrays
        self.lent = False  # whether this binding makes a row whose owner is not counted
        self.wide = False  # whether this is a part of a loop of which LLVM may make vectors
        self.room = ROOM

    @abstractmethod
    def rhs(self, bind: f.Bind) -> Values:
        """Writes a right-hand side; the leaves of the variables that it binds."""

    @abstractmethod
    def with_locations(self, lines: list[str]) -> list[str]:
        """Gives calls of our functions a location, so that LLVM keeps track of them when it inlines."""

    @abstractmethod
    def block_sums(self, types: Sequence[str], count: str) -> Any:
        """The sums of `count` numbers of each of some types, while a loop computes them (`points/sums.py`)."""

    @property
    def is_cold(self) -> bool:
        """True in functions that are not optimised."""
        return self.fn.name in self.unit.cold

    # ---- atoms

    def value(self, atom: f.Atom) -> Values:
        """The leaves of an atom."""
        if isinstance(atom, f.Var):
            return self.env[atom.name]
        match atom:
            case f.Const(None, ty):
                return zeros(ty)
            case f.Const(str(text), f.Str()):
                address, length = self.unit.string(text)
                return ["null", address, str(length)]
            case f.Const(int() | float() as value, f.Num(name)):
                return [number(value, name)]
            case f.Const(tuple(parts), f.Tup(items)):
                return [leaf for v, ty in zip(parts, items, strict=True) for leaf in self.value(f.Const(v, ty))]
            case _:
                raise Bug(f"no constant {atom}")

    def one(self, atom: f.Atom) -> str:
        """The register of a number."""
        (leaf,) = self.value(atom)
        return leaf

    def length_of(self, dim: Dim) -> str:
        """The register of a dimension."""
        if isinstance(dim, tuple):
            var, k = dim
            return self.value(var)[2 + k]
        return self.one(dim)

    def values(self, atoms: tuple[f.Atom, ...]) -> Values:
        """The registers of some atoms, one after the other."""
        return [leaf for atom in atoms for leaf in self.value(atom)]

    def define(self, variables: tuple[f.Var, ...], values: Values) -> None:
        """Gives variables their registers."""
        at = 0
        for var in variables:
            n = len(leaves(var.ty))
            self.env[var.name] = values[at : at + n]
            if self.unit.debug:
                self.seen.append(Seen(var, tuple(values[at : at + n]), self.at))
            if self.groups:
                self.home[var.name] = len(self.groups)
            at += n
        if at != len(values):
            raise Bug(f"{len(values)} leaves for {variables}")

    def keep_home(self, bind: f.Bind) -> None:
        """A part of an array is in memory as old as the array."""
        if self.groups and isinstance(bind.rhs, f.Op) and OPS[bind.rhs.op].views:
            whole = bind.rhs.args[0]
            self.home[bind.vars[0].name] = self.home.get(whole.name, 0) if isinstance(whole, f.Var) else 0

    def access(self, home: int) -> str:
        """The mark of an access to memory that is as old as the first `home` of the Pars around."""
        groups = self.groups[home:]
        if not groups:
            return ""
        return f", !llvm.access.group {groups[0] if len(groups) == 1 else self.unit.group_of(tuple(groups))}"

    def read_access(self, atom: f.Atom) -> str:
        """The mark of a load from an array.  Points do not write arrays that were there before."""
        return self.access(self.home.get(atom.name, 0)) if isinstance(atom, f.Var) and self.groups else ""

    def is_ready(self, atom: f.Atom) -> bool:
        """True if the array is known to be unique and not null."""
        return isinstance(atom, f.Var) and atom.name in self.ready

    # ---- blocks

    def block(self, block: f.Block) -> Values:
        """Writes a block; the values of its results."""
        self.run(block.binds)
        return self.values(block.results)

    def run(self, binds: Sequence[f.Bind]) -> None:
        """Writes bindings, in order; elementary functions side by side are one call of vectors."""
        outer = self.span, self.in_frame, self.at
        self.ready.update(inplace.settled(binds))
        groups = {} if self.wide or self.is_cold else function_groups.groups(binds, self.unit.vector_bytes)
        done = function_groups.moved(groups)
        lent = set[str]() if self.unit.device else loans(binds)  # a device copies what has no owner once, as constants
        for bind in binds:
            start, self.span = len(self.w.lines), getattr(bind.rhs, "span", f.NOWHERE)
            self.in_frame = bool(bind.vars) and all(var.name in self.local for var in bind.vars)
            self.lent = bool(lent and bind.vars) and bind.vars[0].name in lent
            if self.unit.debug:
                self.at = outermost(spans(bind)) if self.span == f.NOWHERE else self.span
            if lent and is_drop(bind) and lent.issuperset(names(atoms(bind.rhs))):
                continue
            if groups and bind.vars and bind.vars[0].name in groups:
                self.group(groups[bind.vars[0].name])
            elif not (done and bind.vars and bind.vars[0].name in done):
                self.define(bind.vars, self.rhs(bind))
                self.keep_home(bind)
            if self.unit.debug or self.unit.placed:
                self._mark(start, bind)
        (self.span, self.in_frame, self.at), self.lent = outer, False

    def group(self, group: Group) -> None:
        """Writes calls of a function as one."""
        for bind in group.before:
            self.define(bind.vars, self.rhs(bind))
        made = function_groups.call(self.w, group, self.unit.vector_bytes, self.one)
        for bind, value in zip(group.calls, made, strict=True):
            self.define(bind.vars, [value])

    def memory(self, size: str, elem: f.Type) -> Values:
        if not self.in_frame or not size.isdigit() or int(size) > min(MOST, self.room):
            return super().memory(size, elem)
        self.room -= int(size)
        return ["null", self.w.slot(f"[{size} x i8]", 64)]

    def place(self) -> str:
        span = self.span if self.span != f.NOWHERE else self.fn.span
        return self.place_of(span) if span != f.NOWHERE else ""

    def place_of(self, span: f.Span) -> str:
        """The debug location of a call at `span`."""
        if self.unit.debug:
            return self.unit.debug.location(self.scope, span)
        return self.unit.location(self.scope, self.site(span) + 1)

    def _mark(self, start: int, bind: f.Bind) -> None:
        """Adds the debug location to the instructions from line `start` on that have none."""
        span = getattr(bind.rhs, "span", f.NOWHERE)
        if self.unit.placed:  # a loop is where its own operations are, not those of functions that it calls
            span = outermost(spans(bind)) if span == f.NOWHERE else span
            span = self.marked = self.marked if span == f.NOWHERE else span
        if span != f.NOWHERE:
            place, lines = self.place_of(span), self.w.lines
            for i in range(start, len(lines)):
                if has_no_location(lines[i]):
                    lines[i] += place
