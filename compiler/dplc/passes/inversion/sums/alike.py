"""Sums that one nest can have together, as they compute something in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar


class Alike(Protocol):
    """What is added, and can be added in one nest with others that are like it."""

    def is_like(self, other: Any) -> bool: ...


Part = TypeVar("Part", bound=Alike)


def together(parts: Iterable[Part]) -> list[list[Part]]:
    """In groups of those that are like each other."""
    groups: list[list[Part]] = []
    for one in parts:
        group = next((group for group in groups if group[0].is_like(one)), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    return groups
