"""Export wrappers: the functions that C calls -> LLVM text.

int32_t model_loss(double *x, int64_t x_n, double *result)
    ==>
stores its arguments in a frame, and lets `rt.called` run the body on the program's own stack

body(frame)     turns the arguments into borrowed values, calls the function, and hands over the results
"""

from __future__ import annotations

from collections.abc import Iterator

from dpl.node import record

from dplc.flat import term as f
from dplc.interface import Array, Export, Number, Record, Shape, Text, Tuple
from dplc.machine.emit.launches.launching import plain_arrays
from dplc.machine.emit.module.emitter import Emitter
from dplc.machine.emit.module.layout import leaves, struct
from dplc.machine.emit.module.unit import Unit, symbol
from dplc.machine.entry import c_types
from dplc.machine.failure.tables import POINTERS
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values, Writer, function, typed
from dplc.machine.runtime.failure_codes import Failure
from dplc.passes.specialise.mono import exported

SLOT = 8  # bytes of an argument in a frame
MEMORY = 1 << 48  # bytes, more than any machine has


@record
class Fields:
    """Reads the members of a struct at `base`, one after the other from an offset on."""

    w: Writer
    base: str
    at: int = 0

    def take(self, size: int) -> str:
        self.at = -(-self.at // size) * size + size
        return self.w.at(self.base, self.at - size)

    def record(self, shape: Record) -> Fields:
        align = c_types.alignment(shape)
        start = -(-self.at // align) * align
        self.at = c_types.end(shape, start)
        return Fields(self.w, self.base, start)


@record
class Arguments:
    """Reads the arguments in a frame, one after the other.  With `results` they are pointers to where results go."""

    w: Writer
    frame: str
    results: bool = False
    count: int = 0

    def slot(self) -> str:
        self.count += 1
        return self.w.at(self.frame, SLOT * (self.count - 1))

    def take(self, _size: int) -> str:
        slot = self.slot()
        return self.w.load("ptr", slot) if self.results else slot

    def record(self, _shape: Record) -> Fields:
        return Fields(self.w, self.w.load("ptr", self.slot()))


Members = Fields | Arguments


class ExportWrapper(Emitter):
    """The wrapper of one exported function."""

    def __init__(self, unit: Unit, export: Export, prefix: str) -> None:
        super().__init__(unit)
        self.export = export
        self.name = f"{prefix}_{export.name}"
        self.body = f'@"body of {export.name}"'
        self.given = [(p.name, p.shape) for p in export.parameters or ()]
        self.result = export.result.shape

    def text(self) -> str:
        return self.outer() + self.inner()

    def outer(self) -> str:
        """The function that C calls."""
        types = [llvm_type(m) for name, shape in self.given for m in c_types.members(shape, name)]
        types += ["ptr" for _ in c_types.members(self.result, "result")]
        params = [f"{ty}{extension(ty)} %a{i}" for i, ty in enumerate(types)]
        w = Writer()
        if self.unit.device:
            w.do("call void @rt.device_enter()")
        frame = w.slot(f"[{SLOT * max(1, len(types))} x i8]")
        for i, ty in enumerate(types):
            w.store(ty, f"%a{i}", w.at(frame, SLOT * i))
        code = w.let(f'call i32 @rt.called(ptr {self.body}, ptr {frame}, ptr @"dpl program", {POINTERS})')
        w.do(f"ret i32 {code}")
        text = function(f"i32 @{self.name}({', '.join(params)})", w, end="")
        return text.replace("define internal", "define", 1)

    def inner(self) -> str:
        """The body, which runs on the program's own stack."""
        w, fn = self.w, self.unit.program.fns[self.unit.program.exports[exported(self.export.entry.name)]]
        self.require_places()
        arguments = Arguments(w, "%frame")
        values = [leaf for name, shape in self.given for leaf in self.read(shape, arguments, name)]
        if self.unit.device:
            self.keep_owners(fn, values)
        types = [leaf for p in fn.params for leaf in leaves(p.ty)]
        result, given = f.Tup(fn.results), typed(types, values)
        how = f"call {self.unit.convention(fn.name)}"
        # this function has no debug location, so code inlined into it would have none either
        apart = " noinline" if self.unit.debug else ""
        if self.unit.indirect(fn.name):
            out = w.slot(f"[{struct(result).size} x i8]")
            w.call((), symbol(fn.name), [f"ptr {out}", *given], how, apart)
            made = self.get(result, out)
        else:
            made = w.call(leaves(result), symbol(fn.name), given, how, apart)
        arguments.results = True
        self.write(self.result, arguments, iter(list(self.settled(self.result, iter(made)))), "the result")
        return function(f"void {self.body}(ptr %frame)", w)

    # ---- in

    def keep_owners(self, fn: f.Fn, values: Values) -> None:
        """Adds an owner to arrays that the caller holds, where the function will end one."""
        at = 0
        for i, param in enumerate(fn.params):
            for owner in plain_arrays(param.ty, at) if i not in fn.borrowed else ():
                self.w.do(f"call void @rt.retain(ptr {values[owner]})")
            at += len(leaves(param.ty))

    def require_places(self) -> None:
        """Results need a place to go; a null pointer is refused before the program runs."""
        first = sum(1 for name, shape in self.given for _ in c_types.members(shape, name))
        for i, member in enumerate(c_types.members(self.result, "result")):
            self.require_place(self.w.load("ptr", self.w.at("%frame", SLOT * (first + i))), member.name)

    def read(self, shape: Shape, members: Members, name: str) -> Values:
        """The leaves of an argument, a borrowed value."""
        w = self.w
        match shape:
            case Number("bool"):
                return [self.boolean(w.load("i8", members.take(1)), name)]
            case Number():
                return [w.load(SCALARS[shape.name], members.take(c_types.number_size(shape)))]
            case Text():
                data, size = w.load("ptr", members.take(8)), w.load("i64", members.take(8))
                owner, data, size = self.view(name, data, [size], 1)
                self.require_text(data, size, name)
                return [owner, data, size]
            case Array(element, sizes, labels):
                data = w.load("ptr", members.take(8))
                lengths = [
                    size if label is None else w.load("i64", members.take(8))
                    for size, label in zip(sizes, labels, strict=True)
                ]
                owner, data, *lengths = self.view(name, data, lengths, c_types.number_size(element))
                if self.unit.device:
                    owner, data = w.call(("ptr", "ptr"), "@rt.given", [f"ptr {data}"])
                    if element.name == "bool":
                        w.do(f"call void @rt.device_home(ptr {owner})")
                if element.name == "bool":
                    self.require_booleans(data, w.product(lengths), name)
                return [owner, data, *lengths]
            case Tuple(items):
                return [leaf for i, item in enumerate(items) for leaf in self.read(item, members, f"{name}_{i}")]
            case Record(_, fields):
                inside = members.record(shape)
                if isinstance(members, Arguments):
                    self.require_place(inside.base, name)
                return [leaf for field, part in fields for leaf in self.read(part, inside, f"{name}.{field}")]

    def view(self, name: str, data: str, lengths: list[str], size: int) -> Values:
        """An array or string in the caller's memory, with elements of `size` bytes.  Its data may be null only if it is
        empty."""
        w = self.w
        total = str(size)
        for length in lengths:
            at_least_none = w.let(f"icmp sge i64 {length}, 0")
            self.require(at_least_none, Failure.NEGATIVE, self.site(self.export.span, f"`{name}`"), length)
            product = w.let(f"call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 {total}, i64 {length})")
            total = w.let(f"extractvalue {{ i64, i1 }} {product}, 0")
            wraps = w.let(f"extractvalue {{ i64, i1 }} {product}, 1")
            bytes_ = w.let(f"select i1 {wraps}, i64 {MEMORY}, i64 {total}")
            fits = w.let(f"icmp ult i64 {bytes_}, {MEMORY}")
            self.require_given(fits, f"`{name}` has more elements than memory can have")
        somewhere = w.let(f"icmp ne ptr {data}, null")
        empty = w.let(f"icmp eq i64 {total}, 0")
        self.require_given(w.let(f"or i1 {somewhere}, {empty}"), f"the data of `{name}` is at a null pointer")
        return ["null", w.let(f'select i1 {somewhere}, ptr {data}, ptr @"empty"'), *lengths]

    def boolean(self, byte: str, name: str) -> str:
        fine = self.w.let(f"icmp ult i8 {byte}, 2")
        self.require_given(fine, f"the boolean `{name}` is {{a}}, neither 0 nor 1", self.widened(byte))
        return self.w.let(f"trunc i8 {byte} to i1")

    def require_booleans(self, data: str, count: str, name: str) -> None:
        (at,) = self.w.call(("i64",), "@rt.wrong_boolean", [f"ptr {data}", f"i64 {count}"])
        site = self.site(self.export.span, f"element {{b}} of `{name}` is {{a}}: of booleans, all are 0 or 1")

        def refuse() -> None:
            self.fail(Failure.ARGUMENT, site, self.widened(self.w.load("i8", self.w.at(data, at))), at)

        self.w.unless_cold(self.w.let(f"icmp slt i64 {at}, 0"), refuse)

    def require_text(self, data: str, size: str, name: str) -> None:
        (at,) = self.w.call(("i64",), "@rt.wrong_byte", [f"ptr {data}", f"i64 {size}"])
        text, length = self.unit.string(f"`{name}`")
        fails = (Failure.TEXT, self.site(self.export.span), at, "0", text, str(length))
        self.w.unless_cold(self.w.let(f"icmp slt i64 {at}, 0"), lambda: self.fail(*fails))

    def require_place(self, pointer: str, name: str) -> None:
        self.require_given(self.w.let(f"icmp ne ptr {pointer}, null"), f"`{name}` is a null pointer")

    def require_given(self, cond: str, otherwise: str, number: str = "0") -> None:
        """Fails unless `cond` holds.  `otherwise` says what the caller did wrong, with a hole `{a}` for a number."""
        self.require(cond, Failure.ARGUMENT, self.site(self.export.span, otherwise), number)

    def widened(self, byte: str) -> str:
        return self.w.let(f"zext i8 {byte} to i64")

    # ---- out

    def settled(self, shape: Shape, values: Iterator[str]) -> Iterator[str]:
        """The leaves of a result, copied where they lie in the caller's memory: other results may be written there."""
        w = self.w
        match shape:
            case Number():
                yield next(values)
            case Text():
                owner, data, size = next(values), next(values), next(values)
                yield from (*self.own(owner, data, size), size)
            case Array(number, sizes, _):
                owner, data, *lengths = next(values), next(values), *[next(values) for _ in sizes]
                size = w.scale(w.product(lengths), c_types.number_size(number))
                yield from (*self.own(owner, data, size), *lengths)
            case Tuple(items):
                for item in items:
                    yield from self.settled(item, values)
            case Record(_, fields):
                for _, part in fields:
                    yield from self.settled(part, values)

    def own(self, owner: str, data: str, size: str) -> Values:
        return self.w.call(("ptr", "ptr"), "@rt.settled", [f"ptr {owner}", f"ptr {data}", f"i64 {size}"])

    def write(self, shape: Shape, members: Members, values: Iterator[str], name: str) -> None:
        w = self.w
        match shape:
            case Number():
                w.store(SCALARS[shape.name], next(values), members.take(c_types.number_size(shape)))
            case Text():
                owner, data, size = next(values), next(values), next(values)
                place, room = members.take(8), members.take(8)
                self.fit(place, room, size, f"bytes of {name}")
                self.give(place, owner, data, size)
            case Array(number, sizes, labels):
                owner, data, *lengths = next(values), next(values), *[next(values) for _ in sizes]
                place = members.take(8)
                for size, label, length in zip(sizes, labels, lengths, strict=True):
                    if label is not None:
                        self.fit(place, members.take(8), length, f"size {size} of {name}")
                size = w.scale(w.product(lengths), c_types.number_size(number))
                self.give(place, owner, data, size, "hand_over" if self.unit.device else "give")
            case Tuple(items):
                for i, item in enumerate(items):
                    self.write(item, members, values, f"{name}_{i}")
            case Record(_, fields):
                inside = members.record(shape)
                for field, part in fields:
                    self.write(part, inside, values, f"`{field}` of {name}")

    def fit(self, place: str, room: str, length: str, what: str) -> None:
        """Checks that the caller's buffer is as long as the result, and writes back the length.  A null buffer only
        asks for the length."""
        w = self.w
        given = w.let(f"icmp ne ptr {w.load('ptr', place)}, null")
        expected = w.let(f"select i1 {given}, i64 {w.load('i64', room)}, i64 {length}")
        site = self.site(self.export.span, what)
        self.require(w.let(f"icmp eq i64 {length}, {expected}"), Failure.CHECK, site, length, expected)
        w.store("i64", length, room)

    def give(self, place: str, owner: str, data: str, size: str, how: str = "give") -> None:
        self.w.do(f"call void @rt.{how}(ptr {place}, ptr {owner}, ptr {data}, i64 {size})")


def llvm_type(member: c_types.Member) -> str:
    if member.pointer or member.struct:
        return "ptr"
    for name, c_name in c_types.C_NAMES.items():
        if c_name == member.type:
            return {"f16": "i16", "bool": "i8"}.get(name, SCALARS[name])
    return "i64"


def extension(ty: str) -> str:
    """The attributes with which C passes integers that are smaller than a register."""
    return " zeroext" if ty in ("i8", "i16") else ""
