"""Kernels of matrix products, which `rt/matmul.each.rt` calls.

    @rt.tile.f64        a tile of a product, kept in registers: up to eight rows of three vectors, or one of up to eight
    @rt.window.f64      the same, where the elements of the left factor are found by tables: windows of an image
    @rt.outer.f64       the product of a column and a row
    @rt.add_rows8.f64   rows of a matrix, each times a number, added to sums in memory
    @rt.matmul.i32      the whole product, for element types without tiles
    @rt.block.64        eight rows and columns of a matrix, transposed
    @rt.add.f64         up to a vector, added to what is there
    @rt.pack.f64        rows side by side, as whole vectors

With `checked`, a tile writes nothing and returns true if one of its sums is NaN.
"""

from __future__ import annotations

from collections.abc import Callable

from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.runtime.shapes import Shape, Vectors, function

TILES = tuple((rows, vectors) for rows in (1, 2, 4, 8) for vectors in range(1, 9 if rows == 1 else 4))
"""Rows and vectors in a row."""
BLOCK = 8  # rows and columns of a block that is transposed

PARAMS = {
    "a": "ptr", "ar": "i64", "ac": "i64", "b": "ptr", "br": "i64", "c": "ptr", "cr": "i64",
    "depth": "i64", "n": "i64", "acc": "i1", "checked": "i1",
}  # fmt: skip
HEADS = {"tile": ", ".join(f"{ty} %{name}" for name, ty in PARAMS.items())}
HEADS["window"] = HEADS["tile"].replace("i64 %ar, i64 %ac", "ptr %ar, ptr %ac")


def any_tile(machine: Vectors, kind: str, ty: str) -> str:
    """The tile of `rows` rows and `vectors` vectors."""
    head = HEADS[kind]
    out = ["entry:", "%key = mul i64 %rows, 16", "%which = add i64 %key, %vectors"]
    cases = " ".join(f"i64 {16 * rows + vectors}, label %t{rows}x{vectors}" for rows, vectors in TILES)
    out.append(f"switch i64 %which, label %none [ {cases} ]")
    for rows, vectors in TILES:
        call = f"tail call i1 @rt.{kind}{rows}x{vectors}.{ty}({head})"
        out += [f"t{rows}x{vectors}:", f"%r{rows}x{vectors} = {call}", f"ret i1 %r{rows}x{vectors}"]
    return function(f"i1 @rt.{kind}.{ty}(i64 %rows, i64 %vectors, {head})", [*out, "none:", "unreachable"])


def tile(machine: Vectors, kind: str, rows: str, width: str, ty: str) -> str:
    """`rows` rows of a product, c = a b or c + a b, of `width` vectors of columns.

    `a` has strides `ar` and `ac`, or tables of offsets if it is of windows; rows of b and c have strides `br` and `cr`.
    Columns of b beyond `n` are read only if the machine has no masked loads; c has `n`.
    """
    shape = Shape(ty, machine.bytes // SIZES[SCALARS[ty]], machine)
    v, t, count, vectors = shape.type, shape.elem, int(rows), range(int(width))
    partial = [vectors[-1]]  # the others are whole
    masked = partial if machine.masks or count == 1 else []
    out = ["entry:"]
    for q in partial:
        out.append(f"%left{q} = sub i64 %n, {q * shape.lanes}")
        shape.tail_mask(out, f"%mask{q}", f"%left{q}")
    for r in range(count):
        skip = [f"%ra{r} = mul i64 %ar, {r}"] if kind == "tile" else _entry(f"%ra{r}", "%ar", str(r))
        out += [*skip, f"%a{r} = {shape.at('%a', f'%ra{r}')}"]
    out += ["br label %loop", "loop:", "%k = phi i64 [ 0, %entry ], [ %k.next, %loop ]"]
    for r in range(count):
        out += [f"%s{r}.{q} = phi {v} [ zeroinitializer, %entry ], [ %t{r}.{q}, %loop ]" for q in vectors]
    out += ["%rb = mul i64 %k, %br", f"%pb = {shape.at('%b', '%rb')}"]
    out += ["%ka = mul i64 %k, %ac"] if kind == "tile" else _entry("%ka", "%ac", "%k")
    for q in vectors:
        out.append(f"%pb{q} = {shape.at('%pb', str(q * shape.lanes))}")
        out.append(f"%b{q} = {shape.masked_load(f'%pb{q}', f'%mask{q}') if q in masked else shape.load(f'%pb{q}')}")
    for r in range(count):
        out += [f"%pa{r} = {shape.at(f'%a{r}', '%ka')}", f"%x{r} = load {t}, ptr %pa{r}"]
        shape.splat(out, f"%v{r}", f"%x{r}")
        for q in vectors:
            shape.add_product(out, f"%t{r}.{q}", f"%v{r}", f"%b{q}", f"%s{r}.{q}")
    out += ["%k.next = add i64 %k, 1", "%more = icmp slt i64 %k.next, %depth", "br i1 %more, label %loop, label %end"]
    out += ["end:", "br i1 %checked, label %check, label %write"]
    _check(out, shape, count, vectors, partial)
    _write(out, shape, count, vectors)
    return function(f"i1 @rt.{kind}{rows}x{width}.{ty}({HEADS[kind]})", out)


def _write(out: list[str], shape: Shape, rows: int, vectors: range) -> None:
    """A part of a tile: the last vector of a row is masked.  Where masked stores are slow (on AMD's Zen 3 they are 42
    operations), this is so only if it is not whole."""
    out += ["write:", "br i1 %acc, label %add, label %set"]
    for label in ("set", "add"):
        out.append(f"{label}:")
        if shape.whole_masks:
            out += [
                f"%whole.{label} = icmp sge i64 %left{vectors[-1]}, {shape.lanes}",
                f"br i1 %whole.{label}, label %{label}.all, label %{label}.some",
            ]
            _write_rows(out, shape, rows, vectors, f"{label}.all", "")
            label = f"{label}.some"
        _write_rows(out, shape, rows, vectors, label, f"%mask{vectors[-1]}")


def _write_rows(out: list[str], shape: Shape, rows: int, vectors: range, label: str, mask: str) -> None:
    """The block of this name, if it has not begun yet: sums are written, or added, and the tile is done."""
    if "." in label:
        out.append(f"{label}:")
    for r in range(rows):
        out += [f"%rc.{label}{r} = mul i64 %cr, {r}", f"%c.{label}{r} = {shape.at('%c', f'%rc.{label}{r}')}"]
        for q in vectors:
            masked, place, value = mask and q == vectors[-1], f"%pc.{label}{r}.{q}", f"%t{r}.{q}"
            out.append(f"{place} = {shape.at(f'%c.{label}{r}', str(q * shape.lanes))}")
            if label.startswith("add"):
                old, new = f"%old.{label}{r}.{q}", f"%new.{label}{r}.{q}"
                out.append(f"{old} = {shape.masked_load(place, mask) if masked else shape.load(place)}")
                out.append(f"{new} = fadd {shape.type} {old}, {value}")
                value = new
            out.append(shape.masked_store(value, place, mask) if masked else shape.store(value, place))
    out.append("ret i1 false")


def _entry(name: str, table: str, at: str) -> list[str]:
    return [f"{name}.p = getelementptr i64, ptr {table}, i64 {at}", f"{name} = load i64, ptr {name}.p"]


def _check(out: list[str], shape: Shape, rows: int, vectors: range, partial: list[int]) -> None:
    """A part of a tile: returns true if one of the sums is NaN.  A comparison looks at two of them."""
    out.append("check:")
    odd = []
    for q in vectors:
        found = []
        for r in range(0, rows, 2):
            found.append(f"%odd{r}.{q}")
            out.append(f"{found[-1]} = fcmp uno {shape.type} %t{r}.{q}, %t{min(r + 1, rows - 1)}.{q}")
        _any(out, shape, f"%some{q}", found)
        odd.append(f"%some{q}")
        if q in partial:
            odd[-1] = f"%odd{q}"
            out.append(f"%odd{q} = and {shape.mask} %some{q}, %mask{q}")
    _any(out, shape, "%all", odd)
    out += [
        f"%any = call i1 @llvm.vector.reduce.or.v{shape.lanes}i1({shape.mask} %all)",
        "br i1 %any, label %again, label %write", "again:", "ret i1 true",
    ]  # fmt: skip


def _any(out: list[str], shape: Shape, name: str, masks: list[str]) -> None:
    """`name`: the lanes in which one of the masks is set."""
    total = "zeroinitializer"
    for i, mask in enumerate(masks):
        made = name if i == len(masks) - 1 else f"{name}.{i}"
        out.append(f"{made} = or {shape.mask} {total}, {mask}")
        total = made


def outer(machine: Vectors, ty: str) -> str:
    """c = a b or c + a b, of a column `a` of `m` and a row `b` of `n` elements, row by row.  The last few of a row are
    written by vectors of a half, a quarter, ...: a masked store would delay the load of the next row, which begins in
    the same vector."""
    widest = machine.bytes // SIZES[SCALARS[ty]]
    shapes = [Shape(ty, widest >> k, machine) for k in range(widest.bit_length())]
    out = ["entry:", *(f"%end{s.lanes} = and i64 %n, {-s.lanes}" for s in shapes), "br label %rows", "rows:"]
    out += ["%i = phi i64 [ 0, %entry ], [ %i.next, %end ]", "%i.more = icmp slt i64 %i, %m"]
    out += ["br i1 %i.more, label %row, label %done", "row:", f"%pa = {shapes[0].at('%a', '%i')}"]
    out += [f"%x = load {shapes[0].elem}, ptr %pa"]
    for shape in shapes:
        shape.splat(out, f"%w{shape.lanes}.x", "%x")
    out += ["%skip = mul i64 %i, %n", f"%pc = {shapes[0].at('%c', '%skip')}", f"br label %w{widest}.head"]
    entry = "row"
    for shape in shapes:
        after = f"w{shape.lanes // 2}.head" if shape.lanes > 1 else "end"
        _outer_columns(out, shape, f"w{shape.lanes}", entry, f"%end{shape.lanes}", after)
        entry = f"w{shape.lanes}.head"
    out += ["end:", "%i.next = add i64 %i, 1", "br label %rows", "done:", "ret void"]
    return function(f"void @rt.outer.{ty}(ptr %c, ptr %a, ptr %b, i64 %m, i64 %n, i1 %acc)", out)


def _outer_columns(out: list[str], shape: Shape, p: str, entry: str, end: str, after: str) -> None:
    """A part of a row, up to `end`: from 0, or from where the part before stopped."""
    first = "0" if entry == "row" else f"%{entry.split('.')[0]}.j"
    out += [f"{p}.head:", f"%{p}.j = phi i64 [ {first}, %{entry} ], [ %{p}.next, %{p}.set ], [ %{p}.next, %{p}.add ]"]
    out += [
        f"%{p}.more = icmp slt i64 %{p}.j, {end}",
        f"br i1 %{p}.more, label %{p}.step, label %{after}",
        f"{p}.step:",
    ]
    out += [f"%{p}.pb = {shape.at('%b', f'%{p}.j')}", f"%{p}.pc = {shape.at('%pc', f'%{p}.j')}"]
    out += [f"%{p}.b = {shape.load(f'%{p}.pb')}", f"%{p}.next = add i64 %{p}.j, {shape.lanes}"]
    out += [f"br i1 %acc, label %{p}.add, label %{p}.set", f"{p}.set:", f"%{p}.ab = fmul {shape.type} %{p}.x, %{p}.b"]
    out += [
        f"%{p}.zero = fadd {shape.type} %{p}.ab, zeroinitializer",  # -0.0 becomes 0.0, with which sums begin
        shape.store(f"%{p}.zero", f"%{p}.pc"),
        f"br label %{p}.head",
        f"{p}.add:",
        f"%{p}.c = {shape.load(f'%{p}.pc')}",
    ]
    shape.add_product(out, f"%{p}.sum", f"%{p}.x", f"%{p}.b", f"%{p}.c")
    out += [shape.store(f"%{p}.sum", f"%{p}.pc"), f"br label %{p}.head"]


def plain_matmul(machine: Vectors, ty: str) -> str:
    """For element types without tiles: each element is a loop."""
    t = SCALARS[ty]
    add, mul, zero = ("fadd", "fmul", "0.0") if ty[0] == "f" else ("add", "mul", "0")
    mask = MASKED_TERM.replace("TYPE", t) if ty[0] == "f" else ""
    lines = f"""entry:
%ar = select i1 %ta, i64 1, i64 %k
%ac = select i1 %ta, i64 %m, i64 1
%br = select i1 %tb, i64 1, i64 %n
%bc = select i1 %tb, i64 %k, i64 1
br label %rows
rows:
%i = phi i64 [ 0, %entry ], [ %i.next, %columns.end ]
%i.more = icmp slt i64 %i, %m
br i1 %i.more, label %columns, label %end
columns:
%j = phi i64 [ 0, %rows ], [ %j.next, %store ]
%j.more = icmp slt i64 %j, %n
br i1 %j.more, label %start, label %columns.end
start:
%row = mul i64 %i, %n
%place = add i64 %row, %j
%pc = getelementptr {t}, ptr %c, i64 %place
br i1 %acc, label %old, label %depth.start
old:
%before = load {t}, ptr %pc
br label %depth.start
depth.start:
%first = phi {t} [ {zero}, %start ], [ %before, %old ]
br label %depth
depth:
%p = phi i64 [ 0, %depth.start ], [ %p.next, %term ]
%sum = phi {t} [ {zero}, %depth.start ], [ %sum.next, %term ]
%p.more = icmp slt i64 %p, %k
br i1 %p.more, label %term, label %store
term:
%a.i = mul i64 %i, %ar
%a.p = mul i64 %p, %ac
%a.at = add i64 %a.i, %a.p
%pa = getelementptr {t}, ptr %a, i64 %a.at
%x = load {t}, ptr %pa
%b.p = mul i64 %p, %br
%b.j = mul i64 %j, %bc
%b.at = add i64 %b.p, %b.j
%pb = getelementptr {t}, ptr %b, i64 %b.at
%y = load {t}, ptr %pb
%xy = {mul} {t} %x, %y{mask}
%sum.next = {add} {t} %sum, {"%part" if mask else "%xy"}
%p.next = add i64 %p, 1
br label %depth
store:
%all = {add} {t} %first, %sum
store {t} %all, ptr %pc
%j.next = add i64 %j, 1
br label %columns
columns.end:
%i.next = add i64 %i, 1
br label %rows
end:
ret void"""
    head = f"void @rt.matmul.{ty}(ptr %c, ptr %a, ptr %b, i64 %m, i64 %n, i64 %k, i1 %ta, i1 %tb, i1 %acc, i64 %masked)"
    return function(head, lines.split("\n"))


MASKED_TERM = """
%no.x = fcmp oeq TYPE %x, 0.0
%no.y = fcmp oeq TYPE %y, 0.0
%bit.y = select i1 %no.y, i64 2, i64 0
%bits = select i1 %no.x, i64 1, i64 0
%no = or i64 %bits, %bit.y
%wins = and i64 %no, %masked
%zero = icmp ne i64 %wins, 0
%odd = fcmp uno TYPE %xy, %xy
%absent = and i1 %zero, %odd
%part = select i1 %absent, TYPE 0.0, TYPE %xy"""


def block(machine: Vectors, bits: str) -> str:
    """Transposes eight rows and columns.  Rows lie `step` elements apart, those of the result `to_step`.

    Three times, the elements of rows i and i + 4 are interleaved: their position is a number of six bits, three for
    the row and three for the column, which are rotated by one."""
    t, v = f"i{bits}", f"<{BLOCK} x i{bits}>"
    halves = [[x for i in range(4 * h, 4 * h + 4) for x in (i, i + BLOCK)] for h in (0, 1)]
    orders = ["<" + ", ".join(f"i32 {x}" for x in half) + ">" for half in halves]
    out = ["entry:"]
    for r in range(BLOCK):
        out += [f"%skip{r} = mul i64 %step, {r}", f"%p{r} = getelementptr {t}, ptr %from, i64 %skip{r}"]
        out.append(f"%v0.{r} = load {v}, ptr %p{r}, align {int(bits) // 8}")
    for turn in range(3):
        for r in range(BLOCK):
            pair = f"{v} %v{turn}.{r // 2}, {v} %v{turn}.{r // 2 + 4}"
            out.append(f"%v{turn + 1}.{r} = shufflevector {pair}, <{BLOCK} x i32> {orders[r % 2]}")
    for r in range(BLOCK):
        out += [f"%to.skip{r} = mul i64 %to_step, {r}", f"%q{r} = getelementptr {t}, ptr %to, i64 %to.skip{r}"]
        out.append(f"store {v} %v3.{r}, ptr %q{r}, align {int(bits) // 8}")
    return function(f"void @rt.block.{bits}(ptr %to, i64 %to_step, ptr %from, i64 %step)", [*out, "ret void"])


def add(machine: Vectors, ty: str) -> str:
    """Adds `count` numbers, at most a vector, to those that are there: where masked stores are slow, by vectors of a
    half, a quarter, ..."""
    widest = machine.bytes // SIZES[SCALARS[ty]]
    shape, head = Shape(ty, widest, machine), f"void @rt.add.{ty}(ptr %to, ptr %data, i64 %count)"
    out = ["entry:"]
    if machine.bytes == 64:
        shape.tail_mask(out, "%mask", "%count")
        out += [f"%new = {shape.masked_load('%data', '%mask')}", f"%old = {shape.masked_load('%to', '%mask')}"]
        out += [f"%sum = fadd {shape.type} %old, %new", shape.masked_store("%sum", "%to", "%mask")]
    before, at = "entry", "0"
    for n in [widest >> k for k in range(widest.bit_length())] if machine.bytes < 64 else []:
        part = Shape(ty, n, machine)
        out += [f"%bit{n} = and i64 %count, {n}", f"%has{n} = icmp ne i64 %bit{n}, 0"]
        out += [f"br i1 %has{n}, label %do{n}, label %after{n}", f"do{n}:", f"%p{n} = {part.at('%data', at)}"]
        out += [f"%q{n} = {part.at('%to', at)}", f"%new{n} = {part.load(f'%p{n}')}", f"%old{n} = {part.load(f'%q{n}')}"]
        out += [f"%sum{n} = fadd {part.type} %old{n}, %new{n}", part.store(f"%sum{n}", f"%q{n}")]
        out += [f"%next{n} = add i64 {at}, {n}", f"br label %after{n}", f"after{n}:"]
        out.append(f"%at{n} = phi i64 [ {at}, %{before} ], [ %next{n}, %do{n} ]")
        before, at = f"after{n}", f"%at{n}"
    return function(head, [*out, "ret void"]).replace("nounwind", "alwaysinline", 1)


def pack(machine: Vectors, ty: str) -> str:
    """Copies `depth` rows of so many columns side by side, each as whole vectors: zeros follow the last column."""
    shape = Shape(ty, machine.bytes // SIZES[SCALARS[ty]], machine)
    out = [
        "entry:",
        "%last = sub i64 %vectors, 1",
        f"%skip = mul i64 %last, {shape.lanes}",
        "%left = sub i64 %columns, %skip",
    ]
    shape.tail_mask(out, "%mask", "%left")
    out += [
        f"%width = mul i64 %vectors, {shape.lanes}", "br label %row",
        "row:", "%p = phi i64 [ 0, %entry ], [ %p.next, %end ]", "%from = phi ptr [ %b, %entry ], [ %from.next, %end ]",
        "%into = phi ptr [ %to, %entry ], [ %into.next, %end ]", "br label %head",
        "head:", "%j = phi i64 [ 0, %row ], [ %j.next, %whole ]", "%more = icmp slt i64 %j, %skip",
        f"%x = {shape.at('%from', '%j')}", f"%y = {shape.at('%into', '%j')}", "br i1 %more, label %whole, label %end",
        "whole:", f"%v = {shape.load('%x')}", shape.store("%v", "%y"), f"%j.next = add i64 %j, {shape.lanes}",
        "br label %head",
        "end:", f"%rest = {shape.masked_load('%x', '%mask')}", shape.store("%rest", "%y"),
        f"%from.next = {shape.at('%from', '%stride')}", f"%into.next = {shape.at('%into', '%width')}",
        "%p.next = add i64 %p, 1", "%rows = icmp slt i64 %p.next, %depth", "br i1 %rows, label %row, label %done",
        "done:", "ret void",
    ]  # fmt: skip
    return function(f"void @rt.pack.{ty}(ptr %to, ptr %b, i64 %stride, i64 %depth, i64 %columns, i64 %vectors)", out)


def add_rows(machine: Vectors, rows: str, ty: str) -> str:
    """Adds so many rows of b, of `n` columns, to `sums`: each times an element of `a`, whose stride is `ac`.  The sums
    are whole vectors."""
    shape, each = Shape(ty, machine.bytes // SIZES[SCALARS[ty]], machine), range(int(rows))
    out = ["entry:", f"%whole = and i64 %n, {-shape.lanes}", "%left = sub i64 %n, %whole"]
    shape.tail_mask(out, "%mask", "%left")
    for r in each:
        out += [f"%ra{r} = mul i64 %ac, {r}", f"%pa{r} = {shape.at('%a', f'%ra{r}')}"]
        out += [f"%x{r} = load {shape.elem}, ptr %pa{r}", f"%rb{r} = mul i64 %br, {r}"]
        out.append(f"%b{r} = {shape.at('%b', f'%rb{r}')}")
        shape.splat(out, f"%v{r}", f"%x{r}")
    out += ["br label %head", "head:", "%j = phi i64 [ 0, %entry ], [ %j.next, %body ]"]
    out += ["%more = icmp slt i64 %j, %whole", "br i1 %more, label %body, label %tail"]
    for label, after in ("body", "br label %head"), ("some", "ret void"):
        out += [f"{label}:", f"%{label}.ps = {shape.at('%sums', '%j')}", f"%{label}.s0 = {shape.load(f'%{label}.ps')}"]
        for r in each:
            place, row = f"%{label}.p{r}", f"%{label}.b{r}"
            out.append(f"{place} = {shape.at(f'%b{r}', '%j')}")
            out.append(f"{row} = {shape.load(place) if label == 'body' else shape.masked_load(place, '%mask')}")
            shape.add_product(out, f"%{label}.s{r + 1}", f"%v{r}", row, f"%{label}.s{r}")
        out.append(shape.store(f"%{label}.s{len(each)}", f"%{label}.ps"))
        out += [f"%j.next = add i64 %j, {shape.lanes}"] if label == "body" else []
        out.append(after)
    out += ["tail:", "%any = icmp ne i64 %left, 0", "br i1 %any, label %some, label %done", "done:", "ret void"]
    head = f"void @rt.add_rows{rows}.{ty}(ptr %sums, ptr %a, i64 %ac, ptr %b, i64 %br, i64 %n)"
    return function(head, out)


def lanes(machine: Vectors, ty: str) -> str:
    """The number of elements of a vector."""
    return _fact(f"i64 @rt.lanes.{ty}()", machine.bytes // SIZES[SCALARS[ty]])


def tallest(machine: Vectors) -> str:
    """The number of rows of a tile of two vectors or more that fits the registers."""
    return _fact("i64 @rt.tallest()", 8 if machine.bytes == 64 else 4)


def masks(machine: Vectors) -> str:
    """Whether tiles read no column of b beyond the last one."""
    return _fact("i1 @rt.masks()", int(machine.masks))


def _fact(head: str, value: int) -> str:
    """A function that is a constant of the machine."""
    result, _, _ = head.partition(" ")
    return function(head, ["entry:", f"ret {result} {value}"]).replace("nounwind", "alwaysinline", 1)


KERNELS: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"rt\.outer\.(f32|f64)", outer),
    (r"rt\.(tile|window)\.(f32|f64)", any_tile),
    (r"rt\.(tile|window)(\d)x(\d)\.(f32|f64)", tile),
    (r"rt\.add_rows(\d)\.(f32|f64)", add_rows),
    (r"rt\.block\.(8|16|32|64)", block),
    (r"rt\.add\.(f32|f64)", add),
    (r"rt\.pack\.(f32|f64)", pack),
    (r"rt\.lanes\.(f32|f64)", lanes),
    (r"rt\.tallest", tallest),
    (r"rt\.masks", masks),
    (r"rt\.matmul\.([iu]\d+|f16)", plain_matmul),
)
