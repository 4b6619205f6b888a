"""The cotangents of what a function is given, by its Jacobian: products of slopes with the cotangents of its results.

    y = f(x, n), with the slope j         cx = cx + cy * j
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dplc.ad.builder import Builder
from dplc.ad.rules import bulk
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, Part, Zeros
from dplc.flat import term as f

Products = Iterator[tuple[int, int, Part]]
"""The number of a result, that of an argument, and what the first gives to the cotangent of the second."""


def products(b: Builder, jacobian: f.Atom, cts: Sequence[Part | None], zeros: Sequence[Zeros]) -> Products:
    """The contributions of the cotangents of results.  `zeros` says of each argument whether its slopes may be symbolic
    zeros.  These are not told from numbers that are 0.0: only where a product is NaN does it matter."""
    for row, ct in enumerate(cts):
        for k, known in enumerate(zeros):
            if ct is not None:
                slope = Part(b.get(jacobian, row * len(zeros) + k), known)
                yield row, k, product(b, ct, slope)


def product(b: Builder, ct: Part, slope: Part) -> Part:
    made: f.Atom = b.op("mul", ct.atom, slope.atom)
    for part in (ct, slope):
        if part.has_zeros:
            made = bulk.masked(b, part, made)
    if slope.has_zeros:
        return Part(made, MAYBE_ZERO)
    return ct.alike(made, MAYBE_ZERO) if ct.has_zeros else Part(made, NO_ZEROS)
