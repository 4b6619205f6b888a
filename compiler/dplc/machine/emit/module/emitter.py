"""The base of all emitters of LLVM text for flat: loads and stores of values, reference counts, failures, outlined
helpers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dplc.flat import term as f
from dplc.machine.emit.module.layout import HEADER, counted, leaves, struct
from dplc.machine.emit.module.unit import Unit
from dplc.machine.llvm.writer import Values, Writer, function, result_type, typed
from dplc.machine.runtime.failure_codes import Failure

NEVER = '@"never unique"'  # a header whose count is not 1: read instead of the header of a null owner
OPERATIONS, BYTES = '@"operations"', '@"bytes"'  # counters, in programs that count (`flat/operation_counts.py`)
ACCESS = ", !llvm.access.group !1"  # marks loads and stores of a loop whose steps are independent


class Emitter:
    """A function under construction: `w` takes its text, `unit` is the module."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.w = Writer()
        self.apart = unit.apart  # whether several threads may run this at the same time

    # ---- memory

    def put(self, ty: f.Type, values: Values, address: str, mark: str = "") -> None:
        """Stores the leaves of a value."""
        shape = struct(ty)
        for leaf, offset, value in zip(shape.leaves, shape.offsets, values, strict=True):
            self.w.store(leaf, value, self.w.at(address, offset), mark)

    def get(self, ty: f.Type, address: str, mark: str = "") -> Values:
        """Loads the leaves of a value."""
        shape = struct(ty)
        return [
            self.w.load(leaf, self.w.at(address, offset), mark)
            for leaf, offset in zip(shape.leaves, shape.offsets, strict=True)
        ]

    def allocated(self, size: str) -> None:
        """Counts the bytes of a new array or cell, in programs that count."""
        if self.unit.counting:
            self.count(BYTES, size)

    def memory(self, size: str, elem: f.Type) -> Values:
        """The owner and the address of a new block for an array of such elements."""
        both = self.w.let(f"call {{ ptr, ptr }} @rt.array(i64 {size}){self.place()}")
        return [self.w.let(f"extractvalue {{ ptr, ptr }} {both}, {i}") for i in (0, 1)]

    def cell(self, content: f.Type, values: Values, head: int = 1) -> str:
        """A new cell with a header and content."""
        size = HEADER + struct(content).size
        self.allocated(str(size))
        cell = self.w.let(f"call ptr @rt.cell(i64 {size})")
        if head != 1:
            self.w.store("i64", str(head), cell)
        self.put(content, values, self.w.at(cell, HEADER))
        return cell

    def place(self) -> str:
        """The debug location of an allocation, if it is known: a failure reports it."""
        return ""

    # ---- elements, which several threads may share (`cuda/team.py`)

    def once(self, elem: f.Type, write: Callable[[], object]) -> None:
        """Writes a few elements of an array."""
        write()

    def each(self, elem: f.Type, count: str, write: Callable[[str], object], mark: str = "") -> None:
        """Writes `count` elements of an array: `write` is given the number of each."""
        self.w.repeat(count, write, mark)

    def copy(self, elem: f.Type, to: str, source: str, count: str) -> None:
        """Copies `count` elements, without counting owners."""
        self.w.copy(to, source, self.w.mul(count, str(struct(elem).size)))

    def clear(self, elem: f.Type, to: str, count: str) -> None:
        """Fills `count` elements with zero bytes."""
        size = self.w.mul(count, str(struct(elem).size))
        self.w.do(f"call void @llvm.memset.p0.i64(ptr {to}, i8 0, i64 {size}, i1 false)")

    def library(self, name: str, args: str) -> None:
        """Calls a function of the runtime library that writes elements of an array."""
        self.w.do(f"call void @rt.{name}({args})")

    # ---- counters

    def count(self, counter: str, more: str) -> None:
        """Adds to a counter of `dpl bench`."""
        self.w.store("i64", self.w.add(self.w.load("i64", counter), more), counter)

    # ---- owners

    def dup(self, ty: f.Type, values: Values) -> None:
        """Counts one more owner of a value."""
        if counted(ty):
            self.unit.droppers.dup(self.w, ty, values, self.apart)

    def drop(self, ty: f.Type, values: Values) -> None:
        """Counts one owner less, and frees what had only this one."""
        if counted(ty):
            self.unit.droppers.drop(self.w, ty, values)

    def unique(self, owner: str) -> str:
        """Tests that an owner is not null and that its block has no other owner: then it may be written."""
        alone = self.is_unique(owner)
        if self.unit.device is not None:
            leave = f"call void @rt.device_leave(ptr {owner})"
            self.w.choose(alone, (), lambda: self.w.do(leave) or [], list)
        return alone

    def is_unique(self, owner: str) -> str:
        """Whether a block has one owner.  Null is never unique: a header is read in its place."""
        none = self.w.let(f"icmp eq ptr {owner}, null")
        cell = self.w.let(f"select i1 {none}, ptr {NEVER}, ptr {owner}")
        return self.w.let(f"icmp eq i64 {self.w.let(f'load i64, ptr {cell}')}, 1")

    # ---- failures

    def site(self, span: f.Span, extra: str = "") -> int:
        """The number of the place at which an operation can fail."""
        return self.unit.sites.number(span, extra)

    def fail(
        self, code: Failure, site: int | str, a: str = "0", b: str = "0", text: str = "null", size: str = "0"
    ) -> None:
        """Fails here: the runtime says what, with the numbers `a` and `b` or a text.  Nothing after it runs."""
        self.w.do(f"call void @rt.fail(i64 {int(code)}, i64 {site}, i64 {a}, i64 {b}, ptr {text}, i64 {size}) nomerge")

    def require(self, cond: str, code: Failure, site: int | str, a: str = "0", b: str = "0") -> None:
        """Fails unless `cond` holds."""
        self.w.unless_cold(cond, lambda: self.fail(code, site, a, b))

    # ---- out of line

    def outlined(
        self,
        name: str,
        types: Sequence[str],
        args: Values,
        results: Sequence[str],
        body: Callable[[Emitter, Values], Values],
        inline: bool = False,
    ) -> Values:
        """A call of a helper function, which is written when it is first called.  `name` must tell helpers with
        different bodies apart.  LLVM may not inline it unless `inline`, as most of them do what happens rarely."""
        helpers = self.unit.helpers
        if name not in helpers:
            helpers[name] = ""  # it may be recursive
            inner = Emitter(self.unit)
            values = body(inner, [f"%p{i}" for i in range(len(types))])
            inner.w.give(results, values)
            params = ", ".join(f"{t} %p{i}" for i, t in enumerate(types))
            how = "" if inline else " noinline"
            helpers[name] = function(f'fastcc {result_type(results)} @"{name}"({params}){how}', inner.w, end="")
        return self.w.call(results, f'@"{name}"', typed(types, args), "call fastcc", self.place())


def zeros(ty: f.Type) -> Values:
    """The leaves of zero, or null."""
    zero = {"ptr": "null", "half": "0xH0000", "float": "0.0", "double": "0.0", "i1": "false"}
    return [zero.get(leaf, "0") for leaf in leaves(ty)]
