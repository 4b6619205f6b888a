"""Reference counts: counting owners, and freeing memory when the last one goes.

    drop x : tree      call fastcc void @"drop tree"(ptr %x)      decrements the count, or calls @"free tree"
    dup x : float[n]   increments the count in the header; constants (null owners) are not counted

The functions `drop T` and `free T` are generated for each type that is dropped.  A cell frees its last field by a tail
call, so that freeing a list of any length needs no stack.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.machine.emit.module.layout import HEADER, TAG, TAG_BITS, boxed, counted, has_nullary, leaves, struct
from dplc.machine.llvm.writer import Values, Writer, function

FREED = '@"freed"'  # a counter of bytes, in programs that count (`flat/operation_counts.py`)
SINK = '@"no owner"'  # counts of uncounted values are written here


def parts(ty: f.Type, at: int = 0) -> Iterator[tuple[int, f.Type]]:
    """The counted parts of a value: the number of the leaf that is the owner, and the type of the part."""
    match ty:
        case f.Tup(items):
            for item in items:
                yield from parts(item, at)
                at += len(leaves(item))
        case f.Num():
            pass
        case _:
            yield at, ty


def type_name(ty: f.Type) -> str:
    """A name that is the same for types that are dropped alike."""
    match ty:
        case f.Arr(elem, _):
            return f"{part_name(elem)}[]" if counted(elem) else "block"
        case f.Str():
            return "block"
        case f.Tup(items):
            return "(" + " * ".join(part_name(item) for item in items) + ")"
        case f.Data(name):
            return name.replace('"', "'").replace("\\", "/")
        case f.Ref(elem):
            return f"{part_name(elem)} ref"
        case f.Num(name):
            return name
        case f.Res():
            raise Bug(f"no layout for {ty}")


def part_name(ty: f.Type) -> str:
    """The same for a part of a larger value: it must also be laid out alike, so arrays have their rank."""
    match ty:
        case f.Arr(_, rank):
            return f"{type_name(ty)}{rank}"
        case f.Str():
            return "block1"
        case _:
            return type_name(ty)


def tag_of(w: Writer, cell: str) -> str:
    """The tag in the header of a cell, of several constructors that are cells."""
    return w.let(f"zext i{TAG_BITS} {w.load(f'i{TAG_BITS}', w.at(cell, TAG // 8))} to i64")


class Droppers:
    """The functions that drop, by type, generated on demand."""

    def __init__(self, program: f.Program) -> None:
        self.datas = program.datas
        self.wanted: dict[str, f.Type] = {}
        self.counting = False  # whether the bytes that are freed are counted

    def freed(self, w: Writer, size: str) -> None:
        """Counts freed bytes for `dpl bench`."""
        if self.counting:
            w.store("i64", w.add(w.load("i64", FREED), size), FREED)

    def free_block(self, w: Writer, owner: str) -> None:
        """Frees an array or a string, whose header has the size."""
        if self.counting:
            self.freed(w, w.load("i64", w.at(owner, 8)))
        w.do(f"call void @rt.free(ptr {owner})")

    def bound(self, ty: f.Type) -> int:
        """Pointers below this are null, or constructors without payload."""
        if isinstance(ty, f.Data) and has_nullary(self.datas[ty.name]):
            return 2 * len(self.datas[ty.name].payloads)
        return 1

    def uncounted(self, w: Writer, ty: f.Type, owner: str) -> str:
        bound = self.bound(ty)
        if bound == 1:
            return w.let(f"icmp eq ptr {owner}, null")
        return w.let(f"icmp ult ptr {owner}, inttoptr (i64 {bound} to ptr)")

    # ---- in line

    def dup(self, w: Writer, ty: f.Type, values: Values, apart: bool = False) -> None:
        """Increments counts.  `apart`: without a place that all threads share."""
        for i, part in parts(ty):
            if values[i] == "null":
                continue
            none = self.uncounted(w, part, values[i])
            if apart:
                w.choose(none, (), list, lambda owner=values[i]: self._more(w, owner))
            else:
                self._more(w, w.let(f"select i1 {none}, ptr {SINK}, ptr {values[i]}"))

    def _more(self, w: Writer, cell: str) -> Values:
        count = w.let(f"load i64, ptr {cell}")
        w.do(f"store i64 {w.let(f'add i64 {count}, 1')}, ptr {cell}")
        return []

    def one_less(self, w: Writer, cell: str) -> None:
        """Decrements the count of a cell that has more owners."""
        owners = w.let(f"load i64, ptr {cell}")
        w.do(f"store i64 {w.let(f'sub i64 {owners}, 1')}, ptr {cell}")

    def drop(self, w: Writer, ty: f.Type, values: Values) -> None:
        """Calls the functions that drop the blocks of a value; null needs none."""
        for i, part in parts(ty):
            if values[i] != "null":
                w.do(f"call fastcc void {self.name('drop', part)}(ptr {values[i]})")

    def name(self, verb: str, ty: f.Type) -> str:
        """The name of the function that drops or frees values of a type, which is written at the end."""
        key = type_name(ty)
        self.wanted.setdefault(key, ty)
        return f'@"{verb} {key}"'

    # ---- the functions

    def text(self) -> str:
        """The functions that were asked for, and those that these need."""
        done: dict[str, str] = {}
        while missing := [key for key in self.wanted if key not in done]:
            for key in missing:
                ty = self.wanted[key]
                done[key] = self._drop(ty) + self._free(ty)
        head = f"{SINK} = internal global [2 x i64] zeroinitializer\n"
        return head + "".join(done.values())

    def _drop(self, ty: f.Type) -> str:
        w = Writer()
        w.choose(self.uncounted(w, ty, "%p"), (), list, lambda: self._less(w, ty))
        inline = "" if isinstance(ty, f.Data) else " noinline"  # cells are dropped in the hottest loops
        return function(f"fastcc void {self.name('drop', ty)}(ptr %p){inline}", w)

    def _less(self, w: Writer, ty: f.Type) -> Values:
        """Decrements the count of the block at %p."""
        count = w.let("load i64, ptr %p")

        def free() -> Values:
            if type_name(ty) == "block":
                self.free_block(w, "%p")
            else:
                w.do(f"call tailcc void {self.name('free', ty)}(ptr %p)")
            return []

        def less() -> Values:
            w.do(f"store i64 {w.let(f'sub i64 {count}, 1')}, ptr %p")
            return []

        return w.choose(self._is_last(w, ty, count), (), free, less)

    def _is_last(self, w: Writer, ty: f.Type, count: str) -> str:
        """Whether a block has one owner, by its first word."""
        if not isinstance(ty, f.Data) or len(boxed(self.datas[ty.name])) == 1:
            return w.let(f"icmp eq i64 {count}, 1")
        return w.let(f"icmp eq i64 {w.let(f'shl i64 {count}, {TAG_BITS}')}, {1 << TAG_BITS}")

    def _free(self, ty: f.Type) -> str:
        w = Writer()
        match ty:
            case f.Arr(elem, _) if counted(elem):
                self._free_elements(w, elem)
            case f.Ref(elem):
                self._free_fields(w, elem)
            case f.Data(name):
                self._free_cell(w, self.datas[name])
            case _:
                return ""
        return function(f"tailcc void {self.name('free', ty)}(ptr %p) noinline", w, end="")

    def _free_elements(self, w: Writer, elem: f.Type) -> None:
        shape = struct(elem)
        room = w.load("i64", w.at("%p", 8))
        count = w.let(f"udiv i64 {room}, {shape.size}")
        data = w.let("call ptr @rt.data(ptr %p)")

        def step(i: str) -> None:
            address = w.element(data, i, shape.size)
            for k, part in parts(elem):
                owner = w.load("ptr", w.at(address, shape.offsets[k]))
                w.do(f"call fastcc void {self.name('drop', part)}(ptr {owner})")

        w.repeat(count, step)
        self.free_block(w, "%p")
        w.do("ret void")

    def _free_cell(self, w: Writer, decl: f.DataDecl) -> None:
        kinds = boxed(decl)
        if len(kinds) == 1:
            self._free_fields(w, kinds[0][1])
            return
        tag = tag_of(w, "%p")
        labels = [w.block("tag") for _ in kinds]
        other = w.block("other")
        arms = " ".join(f"i64 {t}, label %{label}" for (t, _), label in zip(kinds, labels, strict=True))
        w.do(f"switch i64 {tag}, label %{other} [ {arms} ]")
        for (_, payload), label in zip(kinds, labels, strict=True):
            w.start(label)
            self._free_fields(w, payload)
        w.start(other)
        w.do("unreachable")

    def _free_fields(self, w: Writer, content: f.Type) -> None:
        """Drops the fields of a cell and frees it; the last field is dropped by a tail call."""
        shape = struct(content)
        fields = [(w.load("ptr", w.at("%p", HEADER + shape.offsets[k])), part) for k, part in parts(content)]
        self.freed(w, str(HEADER + shape.size))
        w.do(f"call void @rt.cell.free(ptr %p, i64 {HEADER + shape.size})")
        for owner, part in fields[:-1]:
            w.do(f"call fastcc void {self.name('drop', part)}(ptr {owner})")
        if not fields:
            w.do("ret void")
            return
        owner, part = fields[-1]
        if type_name(part) == "block":
            w.do(f"call fastcc void {self.name('drop', part)}(ptr {owner})")
            w.do("ret void")
            return
        done, some, last, less = (w.block(hint) for hint in ("done", "some", "last", "less"))
        w.branch(self.uncounted(w, part, owner), done, some)
        w.start(some)
        count = w.let(f"load i64, ptr {owner}")
        w.branch(self._is_last(w, part, count), last, less)
        w.start(last)
        w.do(f"tail call tailcc void {self.name('free', part)}(ptr {owner})")
        w.do("ret void")
        w.start(less)
        w.do(f"store i64 {w.let(f'sub i64 {count}, 1')}, ptr {owner}")
        w.jump(done)
        w.start(done)
        w.do("ret void")
