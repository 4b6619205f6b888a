"""A row of the scalar table and its operands -> LLVM text.

    scalar("mul", "f32", ["%x", "%y"], fresh)     %1 = fmul float %x, %y
    scalar("exp", "f32", ["%x"], fresh)           %1 = call float @rt.exp.f32(float %x)

Elementary functions are those of `runtime/elementary.py`, of every type.  Other rows name in their column `llvm` a
function of doubles (`rt.lgamma`) or an intrinsic (`llvm.floor`), or are written as instructions here.

The results are those of the rows' `eval`, bit for bit.  What has functions of doubles only is rounded once to `f16` and
`f32` (for + - * / sqrt the narrow instruction gives the same).
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.diagnostics import Bug
from dpl.prims import TABLE, elementary

from dplc.machine.llvm.rounding import rounded
from dplc.machine.llvm.types import SCALARS

INTEGER = {
    "add": "add", "sub": "sub", "mul": "mul", "bit_and": "and", "bit_or": "or", "bit_xor": "xor",
    "and": "and", "or": "or",
}  # fmt: skip
FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
DIVISIONS = ("div", "mod", "quot", "rem")


class Lines:
    """LLVM instructions under construction."""

    def __init__(self, fresh: Callable[[], str]) -> None:
        self.fresh = fresh
        self.lines: list[str] = []

    def op(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        return name


def scalar(row: str, ty: str, args: list[str], fresh: Callable[[], str], site: int = 0) -> tuple[list[str], str]:
    """The instructions for a row at scalar type `ty`, and the name of the result.  `ty` is the type of the operands: of
    the last ones for `select` and `polygamma`, of the first for `powi`.  `site` is where a division by zero is
    reported."""
    out = Lines(fresh)
    if row == "select":
        result = out.op(f"select i1 {args[0]}, {SCALARS[ty]} {args[1]}, {SCALARS[ty]} {args[2]}")
    elif row in ("to_like", "stop_grad"):
        result = args[0]
    elif ty in ("f16", "f32", "f64"):
        result = _float(row, ty, args, out)
    else:
        result = _integer(row, ty, args, out, site)
    return out.lines, result


def cast(source: str, target: str, operand: str, fresh: Callable[[], str], wide: bool) -> tuple[list[str], str]:
    """Conversion of scalars: integers wrap, floats truncate and saturate, NaN gives 0, booleans 0 and 1.  With `wide`,
    vectors are 64 bytes long."""
    out = Lines(fresh)
    return out.lines, _cast(source, target, operand, out, wide)


def widen(value: str, ty: str, out: Lines) -> str:
    """A float of type `ty` as an `f64`."""
    return value if ty == "f64" else out.op(f"fpext {SCALARS[ty]} {value} to double")


# ---- floats -----------------------------------------------------------------------------------------------------


def _float(row: str, ty: str, args: list[str], out: Lines) -> str:
    t = SCALARS[ty]
    if row in FLOAT:
        return out.op(f"{FLOAT[row]} {t} {args[0]}, {args[1]}")
    if row in elementary.NAMES:
        return _elementary(row, ty, args, out)
    if row in COMPARISONS:
        ordered = "u" if row == "ne" else "o"
        return out.op(f"fcmp {ordered}{row} {t} {args[0]}, {args[1]}")
    if (intrinsic := TABLE[row].llvm).startswith("llvm."):
        return out.op(f"call {t} @{intrinsic}.{ty}({t} {args[0]})")
    if row == "neg":
        return out.op(f"fneg {t} {args[0]}")
    if row in ("max", "min"):
        first = out.op(f"fcmp {'oge' if row == 'max' else 'ole'} {t} {args[0]}, {args[1]}")
        nan = out.op(f"fcmp uno {t} {args[0]}, {args[0]}")
        return out.op(f"select i1 {out.op(f'or i1 {first}, {nan}')}, {t} {args[0]}, {t} {args[1]}")
    if row == "clip":
        return _clip("fcmp olt", "fcmp ogt", t, args, out)
    if row == "sign":
        nan = out.op(f"fcmp uno {t} {args[0]}, {args[0]}")
        up = out.op(f"fcmp ogt {t} {args[0]}, 0.0")
        down = out.op(f"fcmp olt {t} {args[0]}, 0.0")
        step = out.op(f"select i1 {down}, {t} -1.0, {t} 0.0")
        step = out.op(f"select i1 {up}, {t} 1.0, {t} {step}")
        return out.op(f"select i1 {nan}, {t} {args[0]}, {t} {step}")
    if row == "relu":
        return out.op(f"select i1 {out.op(f'fcmp ugt {t} {args[0]}, 0.0')}, {t} {args[0]}, {t} 0.0")
    return _in_double(row, ty, args, out)


def _elementary(row: str, ty: str, args: list[str], out: Lines) -> str:
    """A call of `runtime/elementary.py`; LLVM makes one for vectors of it.  At f16, it is that of f32."""
    if ty != "f16":
        t = SCALARS[ty]
        return out.op(f"call {t} @rt.{row}.{ty}({', '.join(f'{t} {arg}' for arg in args)})")
    wide = [out.op(f"fpext half {arg} to float") for arg in args]
    return out.op(f"fptrunc float {_elementary(row, 'f32', wide, out)} to half")


def _in_double(row: str, ty: str, args: list[str], out: Lines) -> str:
    """Rows that are computed in double precision at every type."""
    if row == "powi":
        if ty == "f32" and args[1] == "2":
            return out.op(f"fmul float {args[0]}, {args[0]}")
        return rounded(_powi(widen(args[0], ty, out), args[1], out), ty, out.op)
    if row == "polygamma":
        x = widen(args[1], ty, out)
        return rounded(out.op(f"call double @rt.polygamma(i64 {args[0]}, double {x})"), ty, out.op)
    wide = [widen(arg, ty, out) for arg in args]
    name = TABLE[row].llvm
    if not name:
        raise Bug(f"no lowering of `{row}` at {ty}")
    return rounded(out.op(f"call double @{name}({', '.join(f'double {x}' for x in wide)})"), ty, out.op)


def _powi(x: str, n: str, out: Lines) -> str:
    """The small powers that `dpl.prims.meaning` multiplies out, if the exponent is constant; else a call."""
    match n:
        case "-1":
            return out.op(f"fdiv double 1.0, {x}")
        case "0":
            return "1.0"
        case "1":
            return x
        case "2" | "3" | "4":
            square = out.op(f"fmul double {x}, {x}")
            return square if n == "2" else out.op(f"fmul double {square}, {x if n == '3' else square}")
        case _:
            return out.op(f"call double @rt.powi(double {x}, i64 {n})")


# ---- integers ---------------------------------------------------------------------------------------------------


def _integer(row: str, ty: str, args: list[str], out: Lines, site: int) -> str:
    t, signed, bits = SCALARS[ty], ty[0] == "i", int(SCALARS[ty][1:])
    s = "s" if signed else "u"
    if row in INTEGER:
        return out.op(f"{INTEGER[row]} {t} {args[0]}, {args[1]}")
    if row in COMPARISONS:
        sign = "" if row in ("eq", "ne") else s
        return out.op(f"icmp {sign}{row} {t} {args[0]}, {args[1]}")
    if row in DIVISIONS:
        known = args[1].removeprefix("-").isdigit() and int(args[1]) != 0
        return out.op(f"call {t} @rt.{row}{'_by' * known}.{ty}({t} {args[0]}, {t} {args[1]}, i64 {site})")
    if row == "not":
        return out.op(f"xor i1 {args[0]}, true")
    if row == "neg":
        return out.op(f"sub {t} 0, {args[0]}")
    if row == "abs":
        return out.op(f"call {t} @llvm.abs.{t}({t} {args[0]}, i1 false)") if signed else args[0]
    if row in ("max", "min"):
        return out.op(f"call {t} @llvm.{s}{row}.{t}({t} {args[0]}, {t} {args[1]})")
    if row == "clip":
        return _clip(f"icmp {s}lt", f"icmp {s}gt", t, args, out)
    if row == "sign":
        up = out.op(f"zext i1 {out.op(f'icmp {s}gt {t} {args[0]}, 0')} to {t}")
        down = out.op(f"zext i1 {out.op(f'icmp {s}lt {t} {args[0]}, 0')} to {t}")
        return out.op(f"sub {t} {up}, {down}")
    if row == "powi":
        base = _cast(ty, "i64" if signed else "u64", args[0], out, wide=False)
        power = out.op(f"call i64 @rt.{'ipow' if signed else 'upow'}(i64 {base}, i64 {args[1]})")
        return _cast("i64", ty, power, out, wide=False)
    if row in ("shift_left", "shift_right"):
        return _shift(row, ty, bits, args, out)
    raise Bug(f"no lowering of `{row}` at {ty}")


def _shift(row: str, ty: str, bits: int, args: list[str], out: Lines) -> str:
    """Shifts by the width or more, as if there were infinitely many bits."""
    t = SCALARS[ty]
    fits = out.op(f"icmp ult {t} {args[1]}, {bits}")
    if row == "shift_right" and ty[0] == "i":
        count = out.op(f"select i1 {fits}, {t} {args[1]}, {t} {bits - 1}")
        return out.op(f"ashr {t} {args[0]}, {count}")
    count = out.op(f"select i1 {fits}, {t} {args[1]}, {t} 0")
    shifted = out.op(f"{'shl' if row == 'shift_left' else 'lshr'} {t} {args[0]}, {count}")
    return out.op(f"select i1 {fits}, {t} {shifted}, {t} 0")


def _clip(less: str, greater: str, t: str, args: list[str], out: Lines) -> str:
    x, lo, hi = args
    above = out.op(f"{greater} {t} {x}, {hi}")
    upper = out.op(f"select i1 {above}, {t} {hi}, {t} {x}")
    below = out.op(f"{less} {t} {x}, {lo}")
    return out.op(f"select i1 {below}, {t} {lo}, {t} {upper}")


# ---- conversions ------------------------------------------------------------------------------------------------


def _cast(source: str, target: str, x: str, out: Lines, wide: bool) -> str:
    s, t = SCALARS[source], SCALARS[target]
    if s == t:
        return x
    from_float, to_float = source[0] == "f", target[0] == "f"
    if from_float and to_float:
        if source == "f64":
            return rounded(x, target, out.op)
        return out.op(f"{'fpext' if target == 'f64' or source == 'f16' else 'fptrunc'} {s} {x} to {t}")
    if from_float:
        sign = "s" if target[0] == "i" else "u"
        double = widen(x, source, out)
        if wide and target == "i64":
            return _saturated(double, out)
        return out.op(f"call {t} @llvm.fpto{sign}i.sat.{t}.f64(double {double})")
    if to_float:
        exact = out.op(f"{'sitofp' if source[0] == 'i' else 'uitofp'} {s} {x} to double")
        return rounded(exact, target, out.op)
    if int(s[1:]) > int(t[1:]):
        return out.op(f"trunc {s} {x} to {t}")
    return out.op(f"{'sext' if source[0] == 'i' else 'zext'} {s} {x} to {t}")


def _saturated(x: str, out: Lines) -> str:
    """A double to an `i64`, in steps that AVX-512 has for vectors; LLVM takes its own saturation apart into numbers."""
    largest, end = "0x43DFFFFFFFFFFFFF", "0x43E0000000000000"  # the last number below 2^63, and 2^63
    below = out.op(f"select i1 {out.op(f'fcmp olt double {x}, {largest}')}, double {x}, double {largest}")
    near = out.op(f"fcmp ogt double {below}, 0xC3E0000000000000")
    inside = out.op(f"select i1 {near}, double {below}, double 0xC3E0000000000000")
    whole = out.op(f"fptosi double {inside} to i64")
    fits = out.op(f"fcmp ult double {x}, {end}")
    whole = out.op(f"select i1 {fits}, i64 {whole}, i64 {2**63 - 1}")
    return out.op(f"select i1 {out.op(f'fcmp ord double {x}, {x}')}, i64 {whole}, i64 0")
