"""Array kernels, generated for an element type and a vector width.

    @rt.sum.f64(a, n)   @rt.dot.f64(a, b, n)     in a fixed order: element i is added to lane i mod 32
    @rt.dots.f64        the inner products of four rows of a matrix with a vector
    @rt.outer.f64       the product of a column and a row
    @rt.tile8.f64       eight rows of a matrix product, three vectors wide, kept in registers

`rt/matmul.each.rt` calls the last three.  Sums and products do not depend on the width of the vectors; only on machines
without fused multiply-add do products round once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dpl.node import node

from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.runtime.extrema import extremum

LANES = 32  # of a reduction
ROWS = 4  # of a matrix that `dots` takes at a time
TILE_VECTORS = 3  # width of a tile
FEW = 16  # elements that are added one by one


@node
class Vectors:
    """The vector unit: bytes in a vector, and whether it has fused multiply-add."""

    bytes: int = 64
    fused: bool = True

    @staticmethod
    def of(features: dict[str, bool]) -> Vectors:
        """From a host's features, by LLVM's names."""
        width = 64 if features.get("avx512f") else 32 if features.get("avx") else 16
        return Vectors(width, features.get("fma", False) or features.get("neon", False))


def definition(symbol: str, machine: Vectors) -> str | None:
    """The text of a kernel; None if there is no kernel of this name."""
    for pattern, make in KERNELS:
        if match := re.fullmatch(pattern, symbol):
            return make(machine, *match.groups())
    return None


class Shape:
    """Vectors of one element type, in LLVM text."""

    def __init__(self, ty: str, lanes: int, machine: Vectors) -> None:
        self.ty = ty
        self.lanes = lanes
        self.elem = SCALARS[ty]
        self.bytes = SIZES[self.elem]
        self.type = f"<{lanes} x {self.elem}>"
        self.suffix = f"v{lanes}{ty}"
        self.mask = f"<{lanes} x i1>"
        self.fused = machine.fused

    def load(self, place: str) -> str:
        return f"load {self.type}, ptr {place}, align {self.bytes}"

    def masked_load(self, place: str, mask: str) -> str:
        args = f"ptr align {self.bytes} {place}, {self.mask} {mask}, {self.type} zeroinitializer"
        return f"call {self.type} @llvm.masked.load.{self.suffix}.p0({args})"

    def store(self, value: str, place: str) -> str:
        return f"store {self.type} {value}, ptr {place}, align {self.bytes}"

    def masked_store(self, value: str, place: str, mask: str) -> str:
        args = f"{self.type} {value}, ptr align {self.bytes} {place}, {self.mask} {mask}"
        return f"call void @llvm.masked.store.{self.suffix}.p0({args})"

    def at(self, base: str, index: str) -> str:
        return f"getelementptr {self.elem}, ptr {base}, i64 {index}"

    def add_product(self, out: list[str], name: str, a: str, b: str, total: str) -> None:
        if self.fused:
            args = ", ".join(f"{self.type} {x}" for x in (a, b, total))
            out.append(f"{name} = call {self.type} @llvm.fma.{self.suffix}({args})")
        else:
            out.append(f"{name}.p = fmul {self.type} {a}, {b}")
            out.append(f"{name} = fadd {self.type} {name}.p, {total}")

    def splat(self, out: list[str], name: str, scalar: str) -> None:
        out.append(f"{name}.e = insertelement {self.type} poison, {self.elem} {scalar}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        out.append(f"{name} = shufflevector {self.type} {name}.e, {self.type} poison, {zeros}")

    def tail_mask(self, out: list[str], name: str, count: str) -> None:
        """A mask of the lanes below `count`."""
        vector = f"<{self.lanes} x i64>"
        lanes = "<" + ", ".join(f"i64 {i}" for i in range(self.lanes)) + ">"
        out.append(f"{name}.e = insertelement {vector} poison, i64 {count}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        out.append(f"{name}.s = shufflevector {vector} {name}.e, {vector} poison, {zeros}")
        out.append(f"{name} = icmp sgt {vector} {name}.s, {lanes}")

    def fold(self, out: list[str], name: str, vector: str) -> None:
        """The sum of the lanes in a fixed order: the upper half is added to the lower half, again and again."""
        value, lanes = vector, self.lanes
        while lanes > 1:
            half = lanes // 2
            low = "<" + ", ".join(f"i32 {i}" for i in range(half)) + ">"
            high = "<" + ", ".join(f"i32 {i + half}" for i in range(half)) + ">"
            ty, to = f"<{lanes} x {self.elem}>", f"<{half} x {self.elem}>"
            out.append(f"{name}.l{half} = shufflevector {ty} {value}, {ty} poison, <{half} x i32> {low}")
            out.append(f"{name}.h{half} = shufflevector {ty} {value}, {ty} poison, <{half} x i32> {high}")
            out.append(f"{name}.s{half} = fadd {to} {name}.l{half}, {name}.h{half}")
            value, lanes = f"{name}.s{half}", half
        out.append(f"{name} = extractelement <1 x {self.elem}> {value}, i32 0")


def function(head: str, lines: list[str]) -> str:
    body = "\n".join(line if line.endswith(":") else f"  {line}" for line in lines)
    return f'define internal {head} nounwind "min-legal-vector-width"="512" {{\n{body}\n}}'


# ---- sums and inner products --------------------------------------------------------------------------------------


def reduction(machine: Vectors, name: str, ty: str) -> str:
    """`sum` or `dot`: few elements in sequence, more in 32 lanes."""
    dot = name == "dot"
    head = f"{SCALARS[ty]} @rt.{name}.{ty}(ptr %a, {'ptr %b, ' if dot else ''}i64 %n)"
    if ty not in ("f32", "f64"):
        return function(head, _one_by_one(ty, dot, "entry"))
    shape = Shape(ty, LANES, machine)
    v = shape.type
    out = ["entry:", f"%few = icmp slt i64 %n, {FEW}", "br i1 %few, label %single, label %vectors", "single:"]
    out += _one_by_one(ty, dot, "single")
    out += ["vectors:", f"%whole = and i64 %n, {-LANES}", "br label %head", "head:"]
    out += [
        "%i = phi i64 [ 0, %vectors ], [ %i.next, %body ]",
        f"%acc = phi {v} [ zeroinitializer, %vectors ], [ %acc.next, %body ]",
        "%more = icmp slt i64 %i, %whole",
        "br i1 %more, label %body, label %tail",
        "body:",
        f"%pa = {shape.at('%a', '%i')}",
        f"%va = {shape.load('%pa')}",
    ]
    if dot:
        out += [f"%pb = {shape.at('%b', '%i')}", f"%vb = {shape.load('%pb')}", f"%term = fmul {v} %va, %vb"]
    out += [f"%acc.next = fadd {v} %acc, {'%term' if dot else '%va'}", f"%i.next = add i64 %i, {LANES}"]
    out += ["br label %head", "tail:", "%rest = sub i64 %n, %i"]
    shape.tail_mask(out, "%mask", "%rest")
    out += [f"%ta = {shape.at('%a', '%i')}", f"%ra = {shape.masked_load('%ta', '%mask')}"]
    if dot:
        out += [f"%tb = {shape.at('%b', '%i')}", f"%rb = {shape.masked_load('%tb', '%mask')}"]
        out += [f"%last = fmul {v} %ra, %rb"]
    out += [f"%all = fadd {v} %acc, {'%last' if dot else '%ra'}"]
    shape.fold(out, "%total", "%all")
    return function(head, [*out, f"ret {shape.elem} %total"])


def _one_by_one(ty: str, dot: bool, entry: str) -> list[str]:
    """A sequential loop; LLVM vectorises it for integers."""
    t = SCALARS[ty]
    add, mul, zero = ("fadd", "fmul", "0.0") if ty[0] == "f" else ("add", "mul", "0")
    loads = [f"%o.pa = getelementptr {t}, ptr %a, i64 %o.i", f"%o.a = load {t}, ptr %o.pa"]
    if dot:
        loads += [f"%o.pb = getelementptr {t}, ptr %b, i64 %o.i", f"%o.b = load {t}, ptr %o.pb"]
        loads += [f"%o.t = {mul} {t} %o.a, %o.b"]
    return [
        *(["entry:"] if entry == "entry" else []),
        "br label %one",
        "one:",
        f"%o.i = phi i64 [ 0, %{entry} ], [ %o.next, %step ]",
        f"%o.sum = phi {t} [ {zero}, %{entry} ], [ %o.more, %step ]",
        "%o.c = icmp slt i64 %o.i, %n",
        "br i1 %o.c, label %step, label %done",
        "step:",
        *loads,
        f"%o.more = {add} {t} %o.sum, {'%o.t' if dot else '%o.a'}",
        "%o.next = add i64 %o.i, 1",
        "br label %one",
        "done:",
        f"ret {t} %o.sum",
    ]


def dots(machine: Vectors, ty: str) -> str:
    """Inner products of `rows` <= 4 rows of `a` with `x`, written to `c` or added to it."""
    shape = Shape(ty, 64 // SIZES[SCALARS[ty]], machine)
    v, t = shape.type, shape.elem
    out = ["entry:", f"%whole = and i64 %k, {-shape.lanes}"]
    for r in range(ROWS):  # missing rows read the first row again
        out += [f"%has{r} = icmp slt i64 {r}, %rows", f"%skip{r} = mul i64 %k, {r}"]
        out += [f"%off{r} = select i1 %has{r}, i64 %skip{r}, i64 0", f"%row{r} = {shape.at('%a', f'%off{r}')}"]
    out += ["br label %head", "head:", "%i = phi i64 [ 0, %entry ], [ %i.next, %body ]"]
    out += [f"%acc{r} = phi {v} [ zeroinitializer, %entry ], [ %next{r}, %body ]" for r in range(ROWS)]
    out += ["%more = icmp slt i64 %i, %whole", "br i1 %more, label %body, label %tail", "body:"]
    out += [f"%px = {shape.at('%x', '%i')}", f"%vx = {shape.load('%px')}"]
    for r in range(ROWS):
        out += [f"%p{r} = {shape.at(f'%row{r}', '%i')}", f"%v{r} = {shape.load(f'%p{r}')}"]
        shape.add_product(out, f"%next{r}", f"%v{r}", "%vx", f"%acc{r}")
    out += [f"%i.next = add i64 %i, {shape.lanes}", "br label %head", "tail:", "%rest = sub i64 %k, %i"]
    shape.tail_mask(out, "%mask", "%rest")
    out += [f"%tx = {shape.at('%x', '%i')}", f"%lx = {shape.masked_load('%tx', '%mask')}"]
    for r in range(ROWS):
        out += [f"%t{r} = {shape.at(f'%row{r}', '%i')}", f"%l{r} = {shape.masked_load(f'%t{r}', '%mask')}"]
        shape.add_product(out, f"%all{r}", f"%l{r}", "%lx", f"%acc{r}")
        shape.fold(out, f"%sum{r}", f"%all{r}")
    out += ["br label %write0"]
    for r in range(ROWS):
        out += [
            f"write{r}:",
            f"br i1 %has{r}, label %do{r}, label %end",
            f"do{r}:",
            f"%pc{r} = {shape.at('%c', str(r))}",
        ]
        out += [f"br i1 %acc, label %add{r}, label %set{r}", f"add{r}:", f"%old{r} = load {t}, ptr %pc{r}"]
        out += [f"%new{r} = fadd {t} %old{r}, %sum{r}", f"br label %set{r}", f"set{r}:"]
        out += [f"%out{r} = phi {t} [ %sum{r}, %do{r} ], [ %new{r}, %add{r} ]", f"store {t} %out{r}, ptr %pc{r}"]
        out += [f"br label %{f'write{r + 1}' if r + 1 < ROWS else 'end'}"]
    head = f"void @rt.dots.{ty}(ptr %c, ptr %a, ptr %x, i64 %rows, i64 %k, i1 %acc)"
    return function(head, [*out, "end:", "ret void"])


# ---- matrix products ----------------------------------------------------------------------------------------------


def tile(machine: Vectors, rows: str, ty: str) -> str:
    """`rows` rows of a product, c = a b or c + a b, of at most three vectors of columns.

    `a` has strides `ar` and `ac`; rows of b and c have strides `br` and `cr`.  All columns of b may be read; c has `n`.
    """
    shape = Shape(ty, machine.bytes // SIZES[SCALARS[ty]], machine)
    v, t, count, vectors = shape.type, shape.elem, int(rows), range(TILE_VECTORS)
    out = ["entry:"]
    for q in vectors:
        out.append(f"%left{q} = sub i64 %n, {q * shape.lanes}")
        shape.tail_mask(out, f"%mask{q}", f"%left{q}")
    for r in range(count):
        out += [f"%ra{r} = mul i64 %ar, {r}", f"%a{r} = {shape.at('%a', f'%ra{r}')}"]
    out += ["br label %loop", "loop:", "%k = phi i64 [ 0, %entry ], [ %k.next, %loop ]"]
    for r in range(count):
        out += [f"%s{r}.{q} = phi {v} [ zeroinitializer, %entry ], [ %t{r}.{q}, %loop ]" for q in vectors]
    out += ["%rb = mul i64 %k, %br", f"%pb = {shape.at('%b', '%rb')}", "%ka = mul i64 %k, %ac"]
    for q in vectors:
        out.append(f"%pb{q} = {shape.at('%pb', str(q * shape.lanes))}")
        # a single row reads b in place, so its last columns are masked
        out.append(f"%b{q} = {shape.masked_load(f'%pb{q}', f'%mask{q}') if count == 1 else shape.load(f'%pb{q}')}")
    for r in range(count):
        out += [f"%pa{r} = {shape.at(f'%a{r}', '%ka')}", f"%x{r} = load {t}, ptr %pa{r}"]
        shape.splat(out, f"%v{r}", f"%x{r}")
        for q in vectors:
            shape.add_product(out, f"%t{r}.{q}", f"%v{r}", f"%b{q}", f"%s{r}.{q}")
    out += ["%k.next = add i64 %k, 1", "%more = icmp slt i64 %k.next, %depth", "br i1 %more, label %loop, label %end"]
    out += ["end:", "br i1 %acc, label %add, label %set"]
    for label in ("set", "add"):
        out.append(f"{label}:")
        for r in range(count):
            out += [f"%rc.{label}{r} = mul i64 %cr, {r}", f"%c.{label}{r} = {shape.at('%c', f'%rc.{label}{r}')}"]
            for q in vectors:
                place, value = f"%pc.{label}{r}.{q}", f"%t{r}.{q}"
                out.append(f"{place} = {shape.at(f'%c.{label}{r}', str(q * shape.lanes))}")
                if label == "add":
                    out.append(f"%old{r}.{q} = {shape.masked_load(place, f'%mask{q}')}")
                    out.append(f"%new{r}.{q} = fadd {v} %old{r}.{q}, {value}")
                    value = f"%new{r}.{q}"
                out.append(shape.masked_store(value, place, f"%mask{q}"))
        out.append("ret void")
    params = "ptr %a, i64 %ar, i64 %ac, ptr %b, i64 %br, ptr %c, i64 %cr, i64 %depth, i64 %n, i1 %acc"
    return function(f"void @rt.tile{rows}.{ty}({params})", out)


def outer(machine: Vectors, ty: str) -> str:
    """c = a b or c + a b, of a column `a` of `m` and a row `b` of `n` elements, row by row.  The last few of a row are
    written one by one: a masked store would delay the load of the next row, which begins in the same vector."""
    shape = Shape(ty, machine.bytes // SIZES[SCALARS[ty]], machine)
    one = Shape(ty, 1, machine)
    out = ["entry:", f"%whole = and i64 %n, {-shape.lanes}", "br label %rows", "rows:"]
    out += ["%i = phi i64 [ 0, %entry ], [ %i.next, %end ]", "%i.more = icmp slt i64 %i, %m"]
    out += ["br i1 %i.more, label %row, label %done", "row:", f"%pa = {shape.at('%a', '%i')}"]
    out += [f"%x = load {shape.elem}, ptr %pa"]
    shape.splat(out, "%v.x", "%x")
    one.splat(out, "%s.x", "%x")
    out += ["%skip = mul i64 %i, %n", f"%pc = {shape.at('%c', '%skip')}", "br label %v.head"]
    _outer_columns(out, shape, "v", "row", "%whole", "s.head")
    _outer_columns(out, one, "s", "v.head", "%n", "end")
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
        shape.store(f"%{p}.ab", f"%{p}.pc"),
        f"br label %{p}.head",
        f"{p}.add:",
        f"%{p}.c = {shape.load(f'%{p}.pc')}",
    ]
    shape.add_product(out, f"%{p}.sum", f"%{p}.x", f"%{p}.b", f"%{p}.c")
    out += [shape.store(f"%{p}.sum", f"%{p}.pc"), f"br label %{p}.head"]


def plain_matmul(machine: Vectors, ty: str) -> str:
    """For element types without tiles: multiples of rows of b are added to a row of c."""
    t = SCALARS[ty]
    add, mul, zero = ("fadd", "fmul", "0.0") if ty[0] == "f" else ("add", "mul", "0")
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
%xy = {mul} {t} %x, %y
%sum.next = {add} {t} %sum, %xy
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
    head = f"void @rt.matmul.{ty}(ptr %c, ptr %a, ptr %b, i64 %m, i64 %n, i64 %k, i1 %ta, i1 %tb, i1 %acc)"
    return function(head, lines.split("\n"))


def panel(machine: Vectors, ty: str) -> str:
    """The number of columns of a tile."""
    columns = TILE_VECTORS * machine.bytes // SIZES[SCALARS[ty]]
    return function(f"i64 @rt.panel.{ty}()", ["entry:", f"ret i64 {columns}"]).replace("nounwind", "alwaysinline", 1)


def tallest(machine: Vectors) -> str:
    """The number of rows of a tile that fit the registers."""
    rows = 8 if machine.bytes == 64 else 4
    return function("i64 @rt.tallest()", ["entry:", f"ret i64 {rows}"]).replace("nounwind", "alwaysinline", 1)


KERNELS: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"rt\.(sum|dot)\.([iuf]\d+)", reduction),
    (r"rt\.(argmax|argmin)\.([iuf]\d+)", lambda machine, name, ty: extremum(name, ty)),
    (r"rt\.dots\.(f32|f64)", dots),
    (r"rt\.outer\.(f32|f64)", outer),
    (r"rt\.tile([1248])\.(f32|f64)", tile),
    (r"rt\.panel\.(f32|f64)", panel),
    (r"rt\.tallest", tallest),
    (r"rt\.matmul\.([iu]\d+|f16)", plain_matmul),
)
