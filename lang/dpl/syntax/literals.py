"""The text of a number -> its value and suffix: `1_000`, `0xffu8`, `2.5e-3f32`."""

from __future__ import annotations

from dpl.diagnostics import Diagnostic
from dpl.regex import regex
from dpl.source import Span
from dpl.syntax.lexer import Token

_DECIMAL_SUFFIX = regex(r"([iuf])(\d+)$")
_RADIX_SUFFIX = regex(r"([iu])(\d+)$")
_DIGITS = regex(r"(?:0x|0b|0o)?0*")
_MANY = 100  # more digits than any type can hold in any notation
_HUGE = 2**400  # stands for every number with more digits than that
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
        return sign * float(text), suffix, None
    if len(_DIGITS.sub("", text, count=1)) > _MANY:
        return sign * _HUGE, suffix, out_of_range(f"{'-' * (sign < 0)}{abridged(str(token.value))}", suffix, span)
    try:
        value = sign * (int(text, 0) if radix else int(text))
    except ValueError:  # no digits
        return 0, suffix, Diagnostic("E0105", f"`{token.value}` is no number", span)
    return value, suffix, None if fits(value, suffix) else out_of_range(str(value), suffix, span)


def abridged(text: str) -> str:
    return f"{text[:12]}…{text[-12:]}"


def bounds(suffix: str) -> tuple[int, int]:
    """The least and greatest value of a type of integers; without a suffix, of the widest types."""
    if not suffix:
        return -(2**63), 2**64 - 1
    bits = int(suffix[1:])
    return (0, 2**bits - 1) if suffix[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def fits(value: int | float, suffix: str) -> bool:
    """True if a value is in the range of the suffix's type.  Floats hold every value, rounded."""
    if suffix.startswith("f"):
        return True
    low, high = bounds(suffix)
    return low <= value <= high


def out_of_range(value: str, suffix: str, span: Span) -> Diagnostic:
    """E0104 for a number that no type, or not the suffix's, holds."""
    low, high = bounds(suffix)
    if suffix:
        return Diagnostic("E0104", f"{value} does not fit into {suffix}", span, note=f"{suffix} holds {low} to {high}")
    return Diagnostic("E0104", f"{value} fits into no type of integers", span,
                      helps=("write it with a decimal point to have a float",))  # fmt: skip
