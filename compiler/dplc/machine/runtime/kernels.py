"""Array kernels, generated for an element type and a vector width.

    @rt.block.f64       the sum of at most 1024 numbers, in the order of `dpl/prims/sums.py`
    @rt.block_dot.f64   the inner product of at most 1024 numbers
    @rt.sum.i64         sums and inner products of integers, in any order
    @rt.dots.f64        the inner products of four rows of a matrix with a vector

Those of matrix products are in `tiles.py`; `rt/sums.each.rt` and `rt/matmul.each.rt` call them.  Sums and products do
not depend on the width of the vectors; only on machines without fused multiply-add do products round once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dpl.prims.sums import FEW, LANES

from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.runtime.shapes import Shape, Vectors, function

ROWS = 4  # of a matrix that `dots` takes at a time


def definition(symbol: str, machine: Vectors) -> str | None:
    """The text of a kernel; None if there is no kernel of this name."""
    if not symbol.startswith("rt."):
        return None
    from dplc.machine.runtime import tiles  # only programs that link no shared library need it

    for pattern, make in (*KERNELS, *tiles.KERNELS):
        if match := re.fullmatch(pattern, symbol):
            return make(machine, *match.groups())
    return None


# ---- sums and inner products --------------------------------------------------------------------------------------


def integers(machine: Vectors, name: str, ty: str) -> str:
    """`sum` or `dot` of integers."""
    dot = name == "dot"
    head = f"{SCALARS[ty]} @rt.{name}.{ty}(ptr %a, {'ptr %b, ' if dot else ''}i64 %n)"
    return function(head, _one_by_one(ty, dot, "entry"))


def block(machine: Vectors, name: str, ty: str) -> str:
    """`block` or `block_dot`: few numbers in order, more in lanes."""
    dot = name == "block_dot"
    head = f"{SCALARS[ty]} @rt.{name}.{ty}(ptr %a, {'ptr %b, ' if dot else ''}i64 %n)"
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
    out += ["br i1 %checked, label %check, label %write0", "check:"]
    out += [f"%odd{r} = fcmp uno {t} %sum{r}, %sum{r + 1}" for r in range(0, ROWS, 2)]
    out += ["%odd = or i1 %odd0, %odd2", "br i1 %odd, label %again, label %write0", "again:", "ret i1 true"]
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
    head = f"i1 @rt.dots.{ty}(ptr %c, ptr %a, ptr %x, i64 %rows, i64 %k, i1 %acc, i1 %checked)"
    return function(head, [*out, "end:", "ret i1 false"])


def extremum(machine: Vectors, name: str, ty: str) -> str:
    from dplc.machine.runtime.extrema import extremum

    return extremum(name, ty)


KERNELS: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"rt\.(sum|dot)\.([iu]\d+)", integers),
    (r"rt\.(block|block_dot)\.(f\d+)", block),
    (r"rt\.(argmax|argmin)\.([iuf]\d+)", extremum),
    (r"rt\.dots\.(f32|f64)", dots),
)
