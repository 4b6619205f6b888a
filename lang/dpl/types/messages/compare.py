"""Compares two types and marks the parts that differ.

(float[3] * int, float[4] * int)   ->   `float[3] * int` and `float[4] * int`, with 3 and 4 marked
"""

from __future__ import annotations

from typing import Any

from dpl.core import ty
from dpl.types.messages.pretty import Highlighted, Printer
from dpl.types.solve.meta import EffectMeta, prune
from dpl.types.solve.scheme import rebuild

DEEPEST = 8  # differences nested deeper than this are marked as a whole


def side_by_side(p: Printer, a, b) -> tuple[str, str] | None:
    """Both types as text with the differences marked; None if they are equal or differ as a whole."""
    left, right = _compared(p, a, b)
    if isinstance(left, Highlighted) or isinstance(right, Highlighted) or left is prune(a):
        return None
    return p.type(left), p.type(right)


def _compared(p: Printer, a: Any, b: Any, depth: int = 0) -> tuple[Any, Any]:
    a, b = prune(a), prune(b)
    if _shown(p, a) == _shown(p, b):
        return a, b
    inside, other = ty.children(a), ty.children(b)
    alike = type(a) is type(b) and inside and len(inside) == len(other)
    if not alike or depth > DEEPEST or (isinstance(a, ty.Con) and isinstance(b, ty.Con) and a.name != b.name):
        return Highlighted(a), Highlighted(b)
    pairs = [_compared(p, x, y, depth + 1) for x, y in zip(inside, other)]
    return _with(a, [x for x, _ in pairs]), _with(b, [y for _, y in pairs])


def _with(t, parts: list):
    """`t` with its parts replaced by `parts`."""
    rest = iter(parts)
    return rebuild(t, lambda _: next(rest))


def _shown(p: Printer, t) -> str:
    if isinstance(t, ty.Size):
        return p.size(t)
    return "" if isinstance(t, ty.Pure | ty.Ctl | EffectMeta) or getattr(t, "sort", "") == "effect" else p.type(t)
