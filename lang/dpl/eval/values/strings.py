"""String primitives: conversion to and from code points, and reading numbers; native code must agree."""

from __future__ import annotations

import re

from dpl.diagnostics import DplError
from dpl.eval.values.value import Array
from dpl.regex import regex

INTEGER = regex(r"[+-]?[0-9]+(_[0-9]+)*")
FLOAT = regex(r"[+-]?([0-9]+\.?[0-9]*([e][+-]?[0-9]+)?|\.[0-9]+([e][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
SPACE = " \t\n\r\v\f"


def codes(text: str) -> Array:
    """The code points of a text."""
    return Array((len(text),), [ord(c) for c in text])


def of_codes(xs: Array) -> str:
    """The text with these code points.  Raises R0501 for a number that is none, or is a surrogate."""
    for code in xs.data:
        if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
            raise DplError.at("R0501", f"{code} is not the number of a character")
    return "".join(map(chr, xs.data))


def to_bytes(text: str) -> Array:
    """The text in UTF-8, as numbers from 0 to 255."""
    data = text.encode("utf-8")
    return Array((len(data),), list(data))


def of_bytes(xs: Array) -> tuple[str, bool]:
    """(text, True) for bytes that are UTF-8; otherwise ("", False)."""
    try:
        return bytes(xs.data).decode("utf-8"), True
    except UnicodeDecodeError:
        return "", False


def to_int(text: str) -> tuple[int, bool]:
    """(n, True) for a decimal number within the range of `int`; otherwise (0, False)."""
    text = text.strip(SPACE)
    if INTEGER.fullmatch(text) and -(1 << 63) <= (n := int(text)) < 1 << 63:
        return n, True
    return 0, False


def to_float(text: str) -> tuple[float, bool]:
    """The number that a text is, and whether it is one.  Space around it is allowed."""
    text = text.strip(SPACE)
    return (float(text), True) if FLOAT.fullmatch(text) else (0.0, False)


def to_table(text: str) -> tuple[Array, int, bool]:
    """The numbers of a table in text, row by row, how many are in a row, and whether the text is a table: see
    `Data.read_csv`."""
    rows: list[list[float]] = []
    for number, line in enumerate(text.split("\n")):
        if not line.strip(SPACE):
            continue
        cells = [to_float(cell) for cell in line.split(",")]
        if all(good for _, good in cells):
            rows.append([value for value, _ in cells])
        elif number or "\xa0" in line:
            return Array((0,), []), 0, False
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        return Array((0,), []), 0, False
    numbers = [value for row in rows for value in row]
    return Array((len(numbers),), numbers), max(widths, default=0), True
