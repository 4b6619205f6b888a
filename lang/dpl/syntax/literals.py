"""The text of a number -> its value and suffix: `1_000`, `0xffu8`, `2.5e-3f32`."""

from __future__ import annotations

import math
import re
import struct

from dpl.diagnostics import Diagnostic
from dpl.source import Span
from dpl.syntax.lexer import Token

_DECIMAL_SUFFIX = re.compile(r"([iuf])(\d+)$")
_RADIX_SUFFIX = re.compile(r"([iu])(\d+)$")
_DIGITS = re.compile(r"(?:0x|0b|0o)?0*")
_MANY = 100  # more digits than any type can hold in any notation
_HUGE = 2**400  # stands for every number with more digits than that
LARGEST = {"f16": "65504.0", "f32": "3.4028235e+38", "f64": "1.7976931348623157e+308"}
LARGEST["float"] = LARGEST["f64"]
_BITS = {"i": ("8", "16", "32", "64"), "u": ("8", "16", "32", "64"), "f": ("16", "32", "64")}


def number(token: Token, sign: int, span: Span) -> tuple[int | float, str, Diagnostic | None]:
    """The value (with its sign), the suffix, and an error or None."""
    text = str(token.value).replace("_", "").lower()
    radix = text[:2] in ("0x", "0b", "0o")
    suffix = ""
    if found := (_RADIX_SUFFIX if radix else _DECIMAL_SUFFIX).search(text):
        suffix, text = found.group(), text[: found.start()]
        if found.group(2) not in _BITS[found.group(1)]:
            return 0, "", Diagnostic("E0105", f"`{suffix}` is no type of numbers", span,
                                     helps=("there are i8 i16 i32 i64, u8 u16 u32 u64, f16 f32 f64",))  # fmt: skip
    if token.kind == "FLOAT":
        if suffix[:1] in ("i", "u"):
            title = f"`{token.value}` has a fraction, but {suffix} is a type of integers"
            return 0, suffix, Diagnostic("E0105", title, span)
        value = sign * float(text)
        return value, suffix, misfit(value, str(token.value), suffix, span)
    if len(_DIGITS.sub("", text, count=1)) > _MANY:
        return sign * _HUGE, suffix, out_of_range(f"{'-' * (sign < 0)}{abridged(str(token.value))}", suffix, span)
    try:
        value = sign * (int(text, 0) if radix else int(text))
    except ValueError:  # no digits
        return 0, suffix, Diagnostic("E0105", f"`{token.value}` is no number", span)
    return value, suffix, misfit(value, str(token.value), suffix, span)


def misfit(value: int | float, text: str, suffix: str, span: Span) -> Diagnostic | None:
    """The error of a number that is out of the range of its type."""
    if isinstance(value, float) or suffix.startswith("f"):
        return too_large("E0104", text, suffix or "float", span) if overflows(value, suffix) else None
    return None if fits(value, suffix) else out_of_range(str(value), suffix, span)


def abridged(text: str) -> str:
    return f"{text[:12]}…{text[-12:]}"


def bounds(suffix: str) -> tuple[int, int]:
    """The least and greatest value of a type of integers; without a suffix, of the widest types."""
    if not suffix:
        return -(2**63), 2**64 - 1
    bits = int(suffix[1:])
    return (0, 2**bits - 1) if suffix[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def fits(value: int, suffix: str) -> bool:
    low, high = bounds(suffix)
    return low <= value <= high


def overflows(value: float, name: str) -> bool:
    """Whether this type of floats has only an infinity for a number."""
    try:
        struct.pack({"f16": "<e", "f32": "<f"}.get(name, "<d"), float(value))
    except OverflowError:
        return True
    return math.isinf(value)


def too_large(code: str, value: str, name: str, span: Span) -> Diagnostic:
    """The error for a number that overflows in a type of floats."""
    note = f"the largest {name} is {LARGEST[name]}"
    return Diagnostic(code, f"{value} does not fit into {name}", span, note=note, helps=("infinity:  inf",))


def out_of_range(value: str, suffix: str, span: Span) -> Diagnostic:
    low, high = bounds(suffix)
    if suffix:
        return Diagnostic("E0104", f"{value} does not fit into {suffix}", span, note=f"{suffix} holds {low} to {high}")
    return Diagnostic("E0104", f"{value} fits into no type of integers", span,
                      helps=("write it with a decimal point to have a float",))  # fmt: skip
