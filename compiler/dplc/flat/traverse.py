"""The variables that flat mentions, as often as it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dplc.flat import term as f
from dplc.flat.walk import atoms, blocks


def names(given: Iterable[f.Atom]) -> Iterator[str]:
    return (atom.name for atom in given if isinstance(atom, f.Var))


def mentions(block: f.Block) -> Iterator[str]:
    for bind in block.binds:
        yield from rhs_mentions(bind.rhs)
    yield from names(block.results)


def rhs_mentions(rhs: f.Rhs) -> Iterator[str]:
    yield from names(atoms(rhs))
    for block in blocks(rhs):
        yield from mentions(block)
