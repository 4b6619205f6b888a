"""Sums of variables with whole factors: what is known of the indices of arrays."""

from __future__ import annotations

LARGEST = 1 << 32  # constants in a sum, so that it cannot overflow

Sum = dict[object, int]  # terms and their factors; the constant is that of 1
ONE = 1


def combined(a: Sum, b: Sum, factor: int) -> Sum:
    """a + factor * b"""
    made = dict(a)
    for term, n in b.items():
        made[term] = made.get(term, 0) + factor * n
    return {term: n for term, n in made.items() if n}
