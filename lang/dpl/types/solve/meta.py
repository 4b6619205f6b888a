"""Metavariables: the unknown types and effects that unification solves.

They stand among the types of `core.ty`; prune a type before you inspect it.  Unknown sizes are names in the polynomials
of `core.ty.Size`: `!3` is inferred, `?3` is known only when the program runs, `n` is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.core import ty
from dpl.source import NOWHERE

PURE = ty.PURE


class Meta(ty.Hole):
    """An unknown type.  `rigid` names a variable of an annotation: it equals only itself, but collects `classes`.

    `watchers` are the constraints to retry when more is known about it; `place` is the origin of the latest fact."""

    __slots__ = ("classes", "level", "link", "place", "rigid", "watchers")

    def __init__(self, level: int, classes: frozenset[str] = frozenset(), rigid: str = "") -> None:
        self.level = level
        self.link: Type | None = None
        self.classes = classes
        self.watchers: list = []
        self.rigid = rigid
        self.place = NOWHERE


class EffectMeta(ty.Hole):
    """An unknown effect; `lowers <= self <= uppers`, where pure is below everything."""

    __slots__ = ("level", "link", "lowers", "uppers")

    def __init__(self, level: int) -> None:
        self.level = level
        self.link: Effect | None = None
        self.lowers: list[Effect] = []
        self.uppers: list[Effect] = []


Type = ty.Ty
Effect = ty.Effect


def prune(t: Type) -> Type:
    """`t` with solved metavariables at its head replaced.  A chain of links becomes short for the next time."""
    if type(t) is not Meta or t.link is None:
        return t
    first, t = t, t.link
    while type(t) is Meta and t.link is not None:
        t = t.link
    while type(first) is Meta and first.link is not t and first.link is not None:
        first.link, first = t, first.link
    return t


def prune_effect(effect: Effect) -> Effect:
    """The same for effects."""
    if type(effect) is not EffectMeta or effect.link is None:
        return effect
    first, effect = effect, effect.link
    while type(effect) is EffectMeta and effect.link is not None:
        effect = effect.link
    while type(first) is EffectMeta and first.link is not effect and first.link is not None:
        first.link, first = effect, first.link
    return effect


def dimensions(t: Type) -> tuple[list[ty.Size], Type]:
    """The sizes of nested arrays, outermost first, and the type inside."""
    sizes = []
    t = prune(t)
    while type(t) is ty.Arr:
        sizes.append(t.size)
        t = prune(t.elem)
    return sizes, t


def array(sizes: Sequence[ty.Size], inner: Type) -> Type:
    """The inverse of `dimensions`."""
    for size in reversed(sizes):
        inner = ty.Arr(inner, size)
    return inner


def is_scalar(t: Type) -> bool:
    """True if `t` cannot be an array: a scalar type, or an unknown of class scalar."""
    t = prune(t)
    return (type(t) is ty.Con and not t.args) or (type(t) is Meta and "scalar" in t.classes)
