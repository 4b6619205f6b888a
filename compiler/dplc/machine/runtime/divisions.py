"""Integer division, generated for each type: checked, floored or truncated."""

from __future__ import annotations

from dplc.machine.llvm.types import SCALARS
from dplc.machine.runtime.failure_codes import Failure


def definition(name: str, ty: str) -> str:
    """The function `@rt.<name>.<ty>(a, b, site)`.  It fails for b = 0, and does not trap at min_int / -1.  That of
    `<name>_by` is for b that are never 0, and cannot fail."""
    t, signed = SCALARS[ty], ty[0] == "i"
    name, by, _ = name.partition("_by")
    lines = [f"define internal {t} @rt.{name}{by}.{ty}({t} %a, {t} %b, i64 %site) alwaysinline {{"]
    if not by:
        lines += [
            f"  %zero = icmp eq {t} %b, 0",
            "  br i1 %zero, label %bad, label %good",
            "bad:",
            f"  call void @rt.fail(i64 {int(Failure.DIVIDE)}, i64 %site, i64 0, i64 0, ptr null, i64 0)",
            "  unreachable",
            "good:",
        ]
    if not signed:
        lines += [f"  %q = {'udiv' if name in ('div', 'quot') else 'urem'} {t} %a, %b", f"  ret {t} %q", "}"]
        return "\n".join(lines)
    lines += [
        f"  %minus = icmp eq {t} %b, -1",
        f"  %d = select i1 %minus, {t} 1, {t} %b",
        f"  %q = sdiv {t} %a, %d",
        f"  %r = srem {t} %a, %d",
        f"  %n = sub {t} 0, %a",
        f"  %mixed = xor {t} %r, %d",
        f"  %opposite = icmp slt {t} %mixed, 0",
        f"  %some = icmp ne {t} %r, 0",
        "  %adjust = and i1 %opposite, %some",
    ]
    match name:
        case "quot":
            lines += [f"  %x = select i1 %minus, {t} %n, {t} %q"]
        case "rem":
            lines += [f"  %x = add {t} %r, 0"]
        case "div":
            lines += [
                f"  %down = sext i1 %adjust to {t}",
                f"  %f = add {t} %q, %down",
                f"  %x = select i1 %minus, {t} %n, {t} %f",
            ]
        case _:
            lines += [f"  %up = select i1 %adjust, {t} %d, {t} 0", f"  %x = add {t} %r, %up"]
    return "\n".join([*lines, f"  ret {t} %x", "}"])
