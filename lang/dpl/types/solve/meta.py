"""The unknowns of inference: type and effect variables that unification fills in.

They stand among the types of `core.ty`; whoever looks at a type prunes it first.  Unknown sizes are names in the
polynomials of `core.ty.Size`: `!3` is to be found out, `?3` is known only when the program runs, `n` is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.core import ty
from dpl.source import NOWHERE

PURE = ty.PURE


class Meta(ty.Hole):
    """An unknown type.  `rigid` names a variable of an annotation: it equals only itself, but gathers `classes`.

    `watchers` are the constraints to look at again when more is known about it, `place` is where something was last
    learnt."""

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
    """What is known of a type at its head."""
    while type(t) is Meta and t.link is not None:
        t = t.link
    return t


def prune_effect(effect: Effect) -> Effect:
    while type(effect) is EffectMeta and effect.link is not None:
        effect = effect.link
    return effect


def dimensions(t: Type) -> tuple[list[ty.Size], Type]:
    """The sizes of nested arrays, outermost first, and what is inside."""
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
    """Whether it is known to be no array: a scalar, or an unknown that can only be one."""
    t = prune(t)
    return (type(t) is ty.Con and not t.args) or (type(t) is Meta and "scalar" in t.classes)
