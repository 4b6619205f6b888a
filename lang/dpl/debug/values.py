"""Values as the debugger shows them: one line, with the type at its actual sizes, and a summary where there is much."""

from __future__ import annotations

import math
from typing import Any

from dpl.core import ty as t
from dpl.eval.code.code import Poly
from dpl.eval.values.instance import ANY_SIZE, Types, is_type
from dpl.eval.values.scalar import FIT
from dpl.eval.values.show import Shower, scalar_text
from dpl.eval.values.value import Array, Con, Value, number
from dpl.types.messages.pretty import show as show_type

UNKNOWN = t.Size(0, ((("?",), 1),))
WIDTH = 90  # of a value's text, before it is abridged
ROWS, COLUMNS = 4, 5
BARS = "▁▂▃▄▅▆▇█"


def concrete(ty: t.Ty, value: Any, types: Types) -> t.Ty:
    """The type of a value, with the sizes that it has."""
    return _sized(types.resolve(ty), value)


def _sized(ty: t.Ty, value: Any) -> t.Ty:
    match ty:
        case t.Arr():
            shape = value.shape if isinstance(value, Array) else ()
            inner, ranks = ty, 0
            while isinstance(inner, t.Arr):
                inner, ranks = inner.elem, ranks + 1
            sizes = [t.Size(n) for n in shape[:ranks]] or [UNKNOWN] * ranks
            found = _sized(inner, None)
            for size in reversed(sizes):
                found = t.Arr(found, size)
            return found
        case t.Tup(items):
            parts = value if isinstance(value, tuple) and len(value) == len(items) else [None] * len(items)
            return t.Tup(tuple(map(_sized, items, parts)))
        case t.Con(name, args):
            return t.Con(name, tuple(_sized(a, None) if is_type(a) else _known(a) for a in args))
        case t.Fn(arg, _, result):
            return t.Fn(_sized(arg, None), t.PURE, _sized(result, None))
        case _:
            return ty


def _known(size: Any) -> Any:
    return UNKNOWN if size == ANY_SIZE or getattr(size, "terms", ()) else size


def type_text(ty: t.Ty) -> str:
    return show_type(ty)


class Describer:
    """Texts for values of one program."""

    def __init__(self, shower: Shower) -> None:
        self.shower = shower

    def full(self, value: Value, ty: t.Ty) -> str:
        """As `print` shows it."""
        return self.shower.show(value, ty, abridged=True)

    def brief(self, value: Value, ty: t.Ty) -> str:
        """In one line: long arrays have a picture and their range."""
        if isinstance(value, Poly) or isinstance(ty, t.Fn):
            return "<fun>"
        if isinstance(value, Array) and len(value.data) > ROWS * COLUMNS and is_numeric(ty):
            return summary(value, ty)
        if isinstance(value, tuple) and isinstance(ty, t.Tup):
            return f"({', '.join(self.brief(v, i) for v, i in zip(value, ty.items, strict=True))})"
        if isinstance(value, Con) and isinstance(ty, t.Con) and self.shower.datas.data(ty).fields:
            fields = self.shower.datas.fields(ty, value)
            return f"{{ {'; '.join(f'{name} = {self.brief(v, i)}' for name, v, i in fields)} }}"
        text = self.full(value, ty).replace("\n", "\\n")
        return text if len(text) <= WIDTH else f"{text[: WIDTH - 30]} ... {text[-25:]}"

    def table(self, value: Value, ty: t.Ty) -> str:
        """A value by itself: a matrix is a small table, an array of numbers has its summary below."""
        if not isinstance(value, Array) or not is_numeric(ty) or len(value.data) <= ROWS * COLUMNS:
            return self.full(value, ty)
        kind = element(ty)
        width = value.shape[-1]
        rows = [value.data[i : i + width] for i in range(0, len(value.data), max(width, 1))]
        shown = [cells(row, kind, COLUMNS) for row in abridged(rows, ROWS)]
        widths = [max(len(row[j]) if j < len(row) else 0 for row in shown) for j in range(max(map(len, shown)))]
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=False)) for row in shown]
        return "\n".join([*lines, summary(value, ty)])


def element(ty: t.Ty) -> str:
    while isinstance(ty, t.Arr):
        ty = ty.elem
    return ty.name if isinstance(ty, t.Con) else ""


def is_numeric(ty: t.Ty) -> bool:
    return isinstance(ty, t.Arr) and element(ty) in FIT


def abridged(items: list, most: int) -> list:
    """The items, with None for those left out in the middle."""
    return items if len(items) <= most else [*items[: most - 1], None, items[-1]]


def cells(row: list | None, kind: str, most: int) -> list[str]:
    if row is None:
        return ["..."]
    return ["..." if x is None else short_number(x, kind) for x in abridged(row, most)]


def short_number(value: Value, kind: str = "f64") -> str:
    """A number with at most six digits."""
    plain = number(value)
    return f"{plain:.6g}" if isinstance(plain, float) else scalar_text(plain, kind)


def summary(value: Array, ty: t.Ty) -> str:
    """An array of numbers in a line: its shape, range and mean, and a strip of its magnitudes."""
    data = [float(number(x)) for x in value.data]
    finite = [x for x in data if math.isfinite(x)]
    shape = "x".join(map(str, value.shape))
    bad = len(data) - len(finite)
    if not finite:
        return f"[{shape}: no finite number]"
    low, high, mean = min(finite), max(finite), sum(finite) / len(finite)
    also = f", {bad} not finite" if bad else ""
    return f"[{shape}: {low:.4g} .. {high:.4g}, mean {mean:.4g}{also}] {strip(data)}"


def strip(data: list[float], width: int = 24) -> str:
    """A picture of numbers in a row: the mean of each part, as a bar."""
    n = min(width, len(data))
    parts = [data[i * len(data) // n : (i + 1) * len(data) // n] for i in range(n)]
    means = [sum(p) / len(p) for p in parts]
    finite = [m for m in means if math.isfinite(m)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((m - low) * scale)] if math.isfinite(m) else "!" for m in means)
