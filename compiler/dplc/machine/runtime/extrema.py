"""Kernels that find the greatest or least number of an array.

    @rt.argmax.f64(a, n)   the index of the first greatest number, or of the first NaN; 0 if there are none

The array is read by blocks.  The greatest number of a block is found in vectors.  Only if it exceeds those of all
blocks before, the block is read again, for its place.
"""

from __future__ import annotations

from dplc.machine.llvm.types import SCALARS

LANES = 32
BLOCK = 2048  # elements, a multiple of LANES: a block stays in the first-level cache

GREATER = {"f": "fcmp ogt", "i": "icmp sgt", "u": "icmp ugt"}


def extremum(name: str, ty: str) -> str:
    """The text of `rt.argmax.TYPE` or `rt.argmin.TYPE`."""
    t, is_float = SCALARS[ty], ty[0] == "f"
    beats = GREATER[ty[0]] if name.endswith("max") else GREATER[ty[0]].replace("gt", "lt")
    equal = "fcmp oeq" if is_float else "icmp eq"
    same = f"fcmp uno {t} %first, %first" if is_float else "icmp eq i64 0, 1"
    lines = [
        "entry:", "%none = icmp slt i64 %n, 1", "br i1 %none, label %zero, label %begin",
        "begin:", f"%first = load {t}, ptr %a", f"%bad = {same}", "br i1 %bad, label %zero, label %block",
        "zero:", "ret i64 0",
        "block:",
        "%i = phi i64 [ 0, %begin ], [ %end, %next ]", "%best = phi i64 [ 0, %begin ], [ %best.o, %next ]",
        f"%top = phi {t} [ %first, %begin ], [ %top.o, %next ]",
        f"%ahead = add nuw i64 %i, {BLOCK}", "%end = call i64 @llvm.smin.i64(i64 %ahead, i64 %n)",
        "%size = sub i64 %end, %i", f"%vectors = and i64 %size, {-LANES}", "%whole = add i64 %i, %vectors",
        *_splat("%all", "%top", t), "br label %scan",
        *_scan(t, beats, is_float), *_locate(t, equal, is_float), *_rest(t, beats, is_float),
        "next:", "%more = icmp slt i64 %end, %n", "br i1 %more, label %block, label %done",
        "done:", "ret i64 %best.o",
    ]  # fmt: skip
    body = "\n".join(line if line.endswith(":") else f"  {line}" for line in lines)
    head = f"define internal i64 @rt.{name}.{ty}(ptr %a, i64 %n)"
    return f'{head} nounwind memory(argmem: read) "min-legal-vector-width"="512" {{\n{body}\n}}'


def _splat(name: str, scalar: str, t: str) -> list[str]:
    v = f"<{LANES} x {t}>"
    return [f"{name}.e = insertelement {v} poison, {t} {scalar}, i32 0",
            f"{name} = shufflevector {v} {name}.e, {v} poison, <{LANES} x i32> zeroinitializer"]  # fmt: skip


def _scan(t: str, beats: str, is_float: bool) -> list[str]:
    """The extremum of the vectors of a block, and whether there is a NaN among them."""
    v, mask = f"<{LANES} x {t}>", f"<{LANES} x i1>"
    out = [
        "scan:", "%j = phi i64 [ %i, %block ], [ %j.next, %step ]",
        f"%acc = phi {v} [ %all, %block ], [ %acc.next, %step ]",
        f"%nan = phi {mask} [ zeroinitializer, %block ], [ %nan.next, %step ]",
        "%j.more = icmp slt i64 %j, %whole", "br i1 %j.more, label %step, label %folded",
        "step:", f"%p = getelementptr {t}, ptr %a, i64 %j", f"%x = load {v}, ptr %p, align 1",
        f"%beats = {beats} {v} %x, %acc", f"%acc.next = select {mask} %beats, {v} %x, {v} %acc",
        f"%is.nan = fcmp uno {v} %x, %x" if is_float else f"%is.nan = icmp ne {v} %x, %x",
        f"%nan.next = or {mask} %nan, %is.nan", f"%j.next = add nuw i64 %j, {LANES}", "br label %scan",
        "folded:",
    ]  # fmt: skip
    value, lanes = "%acc", LANES
    while lanes > 1:
        half = lanes // 2
        low, high = (", ".join(f"i32 {i + k}" for i in range(half)) for k in (0, half))
        ty, to = f"<{lanes} x {t}>", f"<{half} x {t}>"
        out += [f"%l{half} = shufflevector {ty} {value}, {ty} poison, <{half} x i32> <{low}>",
                f"%h{half} = shufflevector {ty} {value}, {ty} poison, <{half} x i32> <{high}>",
                f"%b{half} = {beats} {to} %h{half}, %l{half}",
                f"%m{half} = select <{half} x i1> %b{half}, {to} %h{half}, {to} %l{half}"]  # fmt: skip
        value, lanes = f"%m{half}", half
    return [*out, f"%m = extractelement <1 x {t}> {value}, i32 0", f"%higher = {beats} {t} %m, %top",
            f"%nans = bitcast {mask} %nan to i{LANES}", f"%any.nan = icmp ne i{LANES} %nans, 0",
            "%found = or i1 %higher, %any.nan", "br i1 %found, label %locate, label %rest"]  # fmt: skip


def _locate(t: str, equal: str, is_float: bool) -> list[str]:
    """The place of the extremum that `scan` found, or of the first NaN, which ends the search."""
    v, mask = f"<{LANES} x {t}>", f"<{LANES} x i1>"
    hit = f"%is.m = {equal} {v} %y, %ms"
    hits = [hit, f"%no = fcmp uno {v} %y, %y", f"%hit = select i1 %any.nan, {mask} %no, {mask} %is.m"]
    return [
        "locate:", *_splat("%ms", "%m", t), "br label %look",
        "look:", "%k = phi i64 [ %i, %locate ], [ %k.next, %look ]",
        f"%q = getelementptr {t}, ptr %a, i64 %k", f"%y = load {v}, ptr %q, align 1",
        *(hits if is_float else [hit.replace("%is.m", "%hit")]),
        f"%hits = bitcast {mask} %hit to i{LANES}", f"%there = icmp ne i{LANES} %hits, 0",
        f"%k.next = add nuw i64 %k, {LANES}", "br i1 %there, label %at, label %look",
        "at:", f"%lane = call i{LANES} @llvm.cttz.i{LANES}(i{LANES} %hits, i1 true)",
        f"%lane.w = zext i{LANES} %lane to i64" , "%place = add i64 %k, %lane.w",
        f"%r = getelementptr {t}, ptr %a, i64 %place", f"%new = load {t}, ptr %r",
        "br i1 %any.nan, label %stop, label %rest", "stop:", "ret i64 %place",
    ]  # fmt: skip


def _rest(t: str, beats: str, is_float: bool) -> list[str]:
    """The elements after the last whole vector, one by one."""
    nan = f"%z.nan = fcmp uno {t} %z, %z" if is_float else "%z.nan = icmp eq i64 0, 1"
    return [
        "rest:", "%best.i = phi i64 [ %best, %folded ], [ %place, %at ]",
        f"%top.i = phi {t} [ %top, %folded ], [ %new, %at ]", "br label %one",
        "one:", "%o = phi i64 [ %whole, %rest ], [ %o.next, %go ]",
        "%best.o = phi i64 [ %best.i, %rest ], [ %best.n, %go ]",
        f"%top.o = phi {t} [ %top.i, %rest ], [ %top.n, %go ]",
        "%o.more = icmp slt i64 %o, %end", "br i1 %o.more, label %ask, label %next",
        "ask:", f"%pz = getelementptr {t}, ptr %a, i64 %o", f"%z = load {t}, ptr %pz", nan,
        "br i1 %z.nan, label %ends, label %go", "ends:", "ret i64 %o",
        "go:", f"%z.beats = {beats} {t} %z, %top.o", "%best.n = select i1 %z.beats, i64 %o, i64 %best.o",
        f"%top.n = select i1 %z.beats, {t} %z, {t} %top.o", "%o.next = add nuw i64 %o, 1", "br label %one",
    ]  # fmt: skip
