"""Literals: arrays of few numbers that are given one by one."""

from __future__ import annotations

from collections.abc import Mapping

from dplc.flat import term as f
from dplc.flat.types import rank_of


def literal(atom: f.Atom, defs: Mapping[str, f.Rhs]) -> tuple[f.Atom, ...] | None:
    """The numbers of an array, if it is a literal of numbers."""
    made = defs.get(atom.name) if isinstance(atom, f.Var) else None
    if isinstance(made, f.Op) and made.op == "array" and not rank_of(made.args[0].ty):
        return made.args
    return None


def alike(atoms: tuple[f.Atom, ...], defs: Mapping[str, f.Rhs]) -> bool:
    """True for equal atoms, and for literals of as many numbers."""
    one, *others = atoms
    sizes = {len(found) if (found := literal(atom, defs)) is not None else None for atom in atoms}
    return all(other == one for other in others) or (len(sizes) == 1 and None not in sizes)
