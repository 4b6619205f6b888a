"""Exchanges of numbers between the 32 threads of a warp, as LLVM text.

    @rt.across.f64(x, k)    the x of the thread whose number differs from this one's in the bits of k
    @rt.from.f64(x, k)      the x of thread k
    @rt.warp.f64(x, n)      the sum of all, in the order of `dpl/prims/sums.py`, where a block had n numbers

All threads of the warp must call them.  The hardware exchanges 32 bits at a time.
"""

from __future__ import annotations

from dpl.prims.sums import FEW, LANES
from dpl.regex import regex

from dplc.machine.llvm.types import SCALARS, SIZES

SYMBOL = regex(r"rt\.(across|from|warp)\.([fiu]\d+)")
HOW = {"across": "bfly", "from": "idx"}


def shuffle(symbol: str) -> str | None:
    """The text of one of these functions; None if it is none."""
    match = SYMBOL.fullmatch(symbol)
    if match is None:
        return None
    name, ty = match.groups()
    return warp(ty) if name == "warp" else exchange(name, ty)


def exchange(name: str, ty: str) -> str:
    t = SCALARS[ty]
    bits = 8 * SIZES[t]

    def moved(what: str) -> str:
        return f"call i32 @llvm.nvvm.shfl.sync.{HOW[name]}.i32(i32 -1, i32 {what}, i32 %k, i32 31)"

    if bits == 64:
        lines = [f"%v = bitcast {t} %x to <2 x i32>"]
        for i in (0, 1):
            lines += [f"%p{i} = extractelement <2 x i32> %v, i32 {i}", f"%m{i} = {moved(f'%p{i}')}"]
        lines += ["%w0 = insertelement <2 x i32> poison, i32 %m0, i32 0"]
        lines += ["%w1 = insertelement <2 x i32> %w0, i32 %m1, i32 1", f"%r = bitcast <2 x i32> %w1 to {t}"]
    else:
        lines = [f"%v = bitcast {t} %x to i{bits}", *([] if bits == 32 else [f"%wide = zext i{bits} %v to i32"])]
        lines += [f"%m = {moved('%v' if bits == 32 else '%wide')}"]
        lines += [*([] if bits == 32 else [f"%part = trunc i32 %m to i{bits}"])]
        lines += [f"%r = bitcast i{bits} {'%m' if bits == 32 else '%part'} to {t}"]
    lines += [f"ret {t} %r"]
    body = "\n".join("  " + line for line in lines)
    return f"define internal {t} @rt.{name}.{ty}({t} %x, i32 %k) alwaysinline convergent nounwind {{\n{body}\n}}"


def warp(ty: str) -> str:
    """Few numbers are added in order; of more, those of the upper half of the threads to those of the lower half."""
    t, plus, zero = SCALARS[ty], *(("fadd", "0.0") if ty[0] == "f" else ("add", "0"))
    lines = [
        "entry:", f"%few = icmp slt i64 %n, {FEW}", "br i1 %few, label %one, label %halves",
        "one:", "%i = phi i64 [ 0, %entry ], [ %i.next, %step ]",
        f"%s = phi {t} [ {zero}, %entry ], [ %s.next, %step ]",
        "%more = icmp slt i64 %i, %n", "br i1 %more, label %step, label %done",
        "step:", "%k = trunc i64 %i to i32", f"%other = call {t} @rt.from.{ty}({t} %x, i32 %k)",
        f"%s.next = {plus} {t} %s, %other", "%i.next = add i64 %i, 1", "br label %one",
        "done:", f"ret {t} %s", "halves:",
    ]  # fmt: skip
    value, half = "%x", LANES // 2
    while half:
        lines += [f"%o{half} = call {t} @rt.across.{ty}({t} {value}, i32 {half})"]
        lines += [f"%s{half} = {plus} {t} {value}, %o{half}"]
        value, half = f"%s{half}", half // 2
    lines += [f"ret {t} {value}"]
    body = "\n".join(line if line.endswith(":") else f"  {line}" for line in lines)
    return f"define internal {t} @rt.warp.{ty}({t} %x, i64 %n) alwaysinline convergent nounwind {{\n{body}\n}}"
