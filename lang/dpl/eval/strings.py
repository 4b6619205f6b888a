"""String primitives by name: code points, numbers read and formatted, as native code does it."""

from __future__ import annotations

import re
from collections.abc import Callable

from dpl.core import ty as t
from dpl.diagnostics import DplError
from dpl.eval.show import scalar_text
from dpl.eval.value import Array, Value, number

INTEGER = re.compile(r"[+-]?[0-9]+(_[0-9]+)*")
FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*([e][+-]?[0-9]+)?|\.[0-9]+([e][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
SPACE = " \t\n\r\v\f"
SPEC = re.compile(r"(.?[<>=^])?[+ -]?0?[0-9]*,?(\.[0-9]+)?([efgds%]?)", re.DOTALL)
SUITED = {"int": ("", "d", "e", "f", "g", "%"), "float": ("", "e", "f", "g", "%"), "text": ("", "s")}


def codes(text: str) -> Array:
    return Array((len(text),), [ord(c) for c in text])


def of_codes(xs: Array) -> str:
    for code in xs.data:
        if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
            raise DplError.at("R0501", f"{code} is not the number of a character")
    return "".join(map(chr, xs.data))


def to_int(text: str) -> tuple[int, bool]:
    """Decimal, within the range of `int`."""
    text = text.strip(SPACE)
    if INTEGER.fullmatch(text) and -(1 << 63) <= (n := int(text)) < 1 << 63:
        return n, True
    return 0, False


def to_float(text: str) -> tuple[float, bool]:
    text = text.strip(SPACE)
    return (float(text), True) if FLOAT.fullmatch(text) else (0.0, False)


def format_(spec: str, value: Value, ty: t.Ty, show: Callable[[Value, t.Ty], str]) -> str:
    """After Python's `[[fill]align][sign][0][width][,][.precision][letter]`; what is no number is padded as text."""
    kind = ty.name if isinstance(ty, t.Con) else ""
    sort = "int" if kind in t.INTS else "float" if kind in t.FLOATS else "text"
    found = SPEC.fullmatch(spec)
    if not found or found[3] not in SUITED[sort]:
        raise DplError.at("R0502", f"the format `{spec}` does not suit {kind or 'this value'}")
    plain = number(value) if sort != "text" else show(value, ty)
    if sort == "float" and not found[2] and not found[3]:
        plain = float(scalar_text(plain, kind))  # the digits that show gives, at a precision of their own
    try:
        return format(plain, spec)
    except ValueError:
        raise DplError.at("R0502", f"the format `{spec}` does not suit {kind or 'this value'}") from None
