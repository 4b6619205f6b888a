"""The cotangents of what a function is given, by its Jacobian: products of slopes with the cotangents of its results.

y = f(x, n), with the slope j         cx = cx + cy * j
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dplc.ad.rules import bulk
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, Part, Zeros, absence, all_certain, by_sign
from dplc.flat import term as f
from dplc.flat.build import Builder

Products = Iterator[tuple[int, int, Part]]
"""The number of a result, that of an argument, and what the first gives to the cotangent of the second."""


def products(b: Builder, jacobian: f.Atom, cts: Sequence[Part | None], zeros: Sequence[Zeros]) -> Products:
    """The contributions of the cotangents of results.  `zeros` says of each argument whether its slopes may be symbolic
    zeros."""
    for row, ct in enumerate(cts):
        for k, known in enumerate(zeros):
            if ct is not None:
                slope = by_sign(b, b.get(jacobian, row * len(zeros) + k), known)
                yield row, k, product(b, ct, slope)


def product(b: Builder, ct: Part, slope: Part) -> Part:
    """A cotangent times a slope.  It is a symbolic zero where one of them is."""
    made: f.Atom = b.op("mul", (ct.atom, slope.atom))
    having = [part for part in (ct, slope) if part.has_zeros]
    for part in having:
        made = bulk.masked(b, part, made)
    if len(having) < 2:
        return having[0].alike(made, MAYBE_ZERO) if having else Part(made, NO_ZEROS)
    absent = b.op("or", (absence(b, ct), absence(b, slope))) if ct.exact else None
    return Part(made, MAYBE_ZERO, absent, certain=all_certain(having))
