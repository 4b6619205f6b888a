"""Kernels that find the greatest or least number of an array.

    @rt.argmax.f64(a, n)   the index of the first greatest number, or of the first NaN; 0 if there are none

The array is read by blocks.  The greatest number of a block is found in vectors.  Only if it exceeds those of all
blocks before, the block is read again, for its place.  A short array is one block of shorter vectors; the last one of
them may overlap the one before.
"""

from __future__ import annotations

from dplc.machine.llvm.types import SCALARS, SIZES

LANES = 32
SHORT = 8  # lanes for arrays of at least so many elements, but fewer than LANES
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
        "begin:", f"%first = load {t}, ptr %a", f"%bad = {same}", "br i1 %bad, label %zero, label %good",
        "good:", f"%over = sub i64 %n, {SHORT}", f"%few = icmp ult i64 %over, {LANES - SHORT}",
        "br i1 %few, label %short, label %block",
        "zero:", "ret i64 0", *_short(t, beats, equal, is_float),
        "block:",
        "%i = phi i64 [ 0, %good ], [ %end, %next ]", "%best = phi i64 [ 0, %good ], [ %best.o, %next ]",
        f"%top = phi {t} [ %first, %good ], [ %top.o, %next ]",
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


def _splat(name: str, scalar: str, t: str, lanes: int = LANES) -> list[str]:
    v = f"<{lanes} x {t}>"
    return [f"{name}.e = insertelement {v} poison, {t} {scalar}, i32 0",
            f"{name} = shufflevector {v} {name}.e, {v} poison, <{lanes} x i32> zeroinitializer"]  # fmt: skip


def _short(t: str, beats: str, equal: str, is_float: bool) -> list[str]:
    """The place of the extremum, or of the first NaN, of an array that is shorter than a vector."""
    v, mask = f"<{SHORT} x {t}>", f"<{SHORT} x i1>"

    def hits(name: str, test: str) -> list[str]:
        nan = f"fcmp uno {v} {name}, {name}" if is_float else f"icmp ne {v} {name}, {name}"
        return [f"{name}.n = {nan}", *([f"{name}.m = {equal} {v} {name}, %s.ms"] if test else [])]

    return [
        "short:", *_splat("%s.all", "%first", t, SHORT), "br label %s.scan",
        "s.scan:", "%s.j = phi i64 [ 0, %short ], [ %s.j.next, %s.scan ]",
        f"%s.acc = phi {v} [ %s.all, %short ], [ %s.acc.next, %s.scan ]",
        f"%s.nan = phi {mask} [ zeroinitializer, %short ], [ %s.nan.next, %s.scan ]",
        "%s.from = call i64 @llvm.smin.i64(i64 %s.j, i64 %over)", f"%s.p = getelementptr {t}, ptr %a, i64 %s.from",
        f"%s.x = load {v}, ptr %s.p, align 1", *hits("%s.x", ""), f"%s.beats = {beats} {v} %s.x, %s.acc",
        f"%s.acc.next = select {mask} %s.beats, {v} %s.x, {v} %s.acc", f"%s.nan.next = or {mask} %s.nan, %s.x.n",
        f"%s.j.next = add nuw nsw i64 %s.j, {SHORT}", "%s.more = icmp slt i64 %s.j.next, %n",
        "br i1 %s.more, label %s.scan, label %s.folded",
        "s.folded:", *_fold("s.", "%s.acc.next", t, beats, SHORT), *_splat("%s.ms", "%s.m", t, SHORT),
        f"%s.nans = bitcast {mask} %s.nan.next to i{SHORT}", f"%s.any = icmp ne i{SHORT} %s.nans, 0",
        "br label %s.look",
        "s.look:", "%s.k = phi i64 [ 0, %s.folded ], [ %s.k.next, %s.look ]",
        "%s.at = call i64 @llvm.smin.i64(i64 %s.k, i64 %over)", f"%s.q = getelementptr {t}, ptr %a, i64 %s.at",
        f"%s.y = load {v}, ptr %s.q, align 1", *hits("%s.y", equal),
        f"%s.hit = select i1 %s.any, {mask} %s.y.n, {mask} %s.y.m", f"%s.hits = bitcast {mask} %s.hit to i{SHORT}",
        f"%s.there = icmp ne i{SHORT} %s.hits, 0", f"%s.k.next = add nuw nsw i64 %s.k, {SHORT}",
        "br i1 %s.there, label %s.found, label %s.look",
        "s.found:", f"%s.lane = call i{SHORT} @llvm.cttz.i{SHORT}(i{SHORT} %s.hits, i1 true)",
        f"%s.lane.w = zext i{SHORT} %s.lane to i64", "%s.place = add i64 %s.at, %s.lane.w", "ret i64 %s.place",
    ]  # fmt: skip


def _fold(name: str, value: str, t: str, beats: str, lanes: int) -> list[str]:
    """`%NAMEm`, the extremum of the lanes of a vector."""
    out: list[str] = []
    while lanes > 1:
        half = lanes // 2
        low, high = (", ".join(f"i32 {i + k}" for i in range(half)) for k in (0, half))
        ty, to = f"<{lanes} x {t}>", f"<{half} x {t}>"
        one, other, above, best = (f"%{name}{letter}{half}" for letter in "lhbm")
        out += [f"{one} = shufflevector {ty} {value}, {ty} poison, <{half} x i32> <{low}>",
                f"{other} = shufflevector {ty} {value}, {ty} poison, <{half} x i32> <{high}>",
                f"{above} = {beats} {to} {other}, {one}",
                f"{best} = select <{half} x i1> {above}, {to} {other}, {to} {one}"]  # fmt: skip
        value, lanes = best, half
    return [*out, f"%{name}m = extractelement <1 x {t}> {value}, i32 0"]


def _scan(t: str, beats: str, is_float: bool) -> list[str]:
    """The extremum of the vectors of a block, and whether there is a NaN among them: a comparison looks at two numbers.
    What it found is kept as whole numbers, as AVX2 has masks in vectors."""
    half = LANES // 2
    v, mask, bits = f"<{LANES} x {t}>", f"<{LANES} x i1>", f"<{half} x i{8 * SIZES[t]}>"
    low, high = (", ".join(f"i32 {i + k}" for i in range(half)) for k in (0, half))
    halves = [f"%x.{name} = shufflevector {v} %x, {v} poison, <{half} x i32> <{lanes}>"
              for name, lanes in (("l", low), ("h", high))]  # fmt: skip
    odd = [*halves, f"%odd = fcmp uno <{half} x {t}> %x.l, %x.h", f"%is.nan = sext <{half} x i1> %odd to {bits}",
           f"%nan.next = or {bits} %nan, %is.nan"]  # fmt: skip
    out = [
        "scan:", "%j = phi i64 [ %i, %block ], [ %j.next, %step ]",
        f"%acc = phi {v} [ %all, %block ], [ %acc.next, %step ]",
        f"%nan = phi {bits} [ zeroinitializer, %block ], [ %nan.next, %step ]",
        "%j.more = icmp slt i64 %j, %whole", "br i1 %j.more, label %step, label %folded",
        "step:", f"%p = getelementptr {t}, ptr %a, i64 %j", f"%x = load {v}, ptr %p, align 1",
        f"%beats = {beats} {v} %x, %acc", f"%acc.next = select {mask} %beats, {v} %x, {v} %acc",
        *(odd if is_float else [f"%nan.next = or {bits} %nan, zeroinitializer"]),
        f"%j.next = add nuw i64 %j, {LANES}", "br label %scan",
        "folded:",
    ]  # fmt: skip
    return [*out, *_fold("", "%acc", t, beats, LANES), f"%higher = {beats} {t} %m, %top",
            f"%nans = icmp ne {bits} %nan, zeroinitializer",
            f"%any.nan = call i1 @llvm.vector.reduce.or.v{half}i1(<{half} x i1> %nans)",
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
