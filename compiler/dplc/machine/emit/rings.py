"""Loops that read the neighbours of their points on a ring, of length n: between the borders no index wraps.

    for i < n { j = mod (i + 1) n; k = mod (i + n - 1) n; ... }

    for i in 0, n - 1 { j = ...; k = ...; ... }          the borders
    for 1 <= i < n - 1 { j = i + 1; k = i - 1; ... }     LLVM makes vectors of it
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.build import integer

MOST = 64  # operations of a loop that is written twice
FAR = 2  # steps to a neighbour, on a ring of any length
NEAR = 5  # of a known length these are at most a fifth: most points lie between the borders


@node
class Ring:
    """What a loop does between the borders, and how many steps are at each of these."""

    binds: tuple[f.Bind, ...]
    low: int
    high: int


def on_ring(index: f.Var, binds: Sequence[f.Bind]) -> Ring | None:
    """The loop over `index` that does this, if it reads neighbours on a ring.  The length of the ring is that of the
    loop, as `arrays/bounds.py` has found."""
    if len(binds) > MOST:
        return None
    made = {var.name: bind.rhs for bind in binds for var in bind.vars}
    shifts: dict[str, int] = {}
    for bind in binds:
        if not (isinstance(bind.rhs, f.Op) and bind.rhs.op == "mod" and bind.rhs.attr("ring")):
            continue
        if (shift := _shift(bind.rhs.args[0], bind.rhs.args[1], index, made)) is not None:
            shifts[bind.vars[0].name] = shift
    if not any(shifts.values()):
        return None
    inside = [f.Bind(bind.vars, f.Op("add", (index, integer(shifts[bind.vars[0].name]))))
              if bind.vars and bind.vars[0].name in shifts else bind for bind in binds]  # fmt: skip
    return Ring(tuple(inside), max(0, -min(shifts.values())), max(0, max(shifts.values())))


def _shift(at: f.Atom, length: f.Atom, index: f.Var, made: dict[str, f.Rhs]) -> int | None:
    """The number c, if a number is index + c, modulo the length."""
    terms = _terms(at, index, length, made)
    if terms is None or terms[0] != 1:
        return None
    _, turns, constant = terms
    if isinstance(length, f.Const) and isinstance(length.value, int):
        constant += turns * length.value
        half = length.value // 2
        constant = (constant + half) % length.value - half
        return constant if NEAR * abs(constant) <= length.value else None
    return constant if abs(constant) <= FAR else None


def _terms(at: f.Atom, index: f.Var, length: f.Atom, made: dict[str, f.Rhs]) -> tuple[int, int, int] | None:
    """How often a sum has the index and the length, and its constant; None if there is something else."""
    if at == index:
        return 1, 0, 0
    if at == length:
        return 0, 1, 0
    if isinstance(at, f.Const) and isinstance(at.value, int):
        return 0, 0, at.value
    rhs = made.get(at.name) if isinstance(at, f.Var) else None
    if not isinstance(rhs, f.Op) or rhs.op not in ("add", "sub"):
        return None
    left, right = [_terms(one, index, length, made) for one in rhs.args]
    if left is None or right is None:
        return None
    sign = 1 if rhs.op == "add" else -1
    return left[0] + sign * right[0], left[1] + sign * right[1], left[2] + sign * right[2]
