"""What is no symbolic zero in cotangents of arrays: what steps of loops fill, and whether that is all of an array."""

from __future__ import annotations

from dpl.node import replace

from dplc.ad.reverse.cotangents import Scope
from dplc.ad.reverse.covered import Filled, Guard, Intervals, Steps, whole_where
from dplc.ad.reverse.tape import Reverse
from dplc.ad.tangents.symbolic_zeros import NO_ZEROS, Part
from dplc.flat import term as f
from dplc.flat.build import integer
from dplc.flat.ops.row import Dim

MOST = 32  # parts of one array that are looked at


def fill(r: Reverse, scope: Scope, part: Filled) -> None:
    """Notes that there are numbers in the cotangent of an array, or of its part at some indices, and no symbolic
    zeros."""
    if part.at:
        scope.filled[part] = None
        *outer, last = part.at
        count = r.sizes.of(part.array, len(outer))
        if isinstance(last, f.Const) and isinstance(count, f.Const) and isinstance(count.value, int):
            if all(replace(part, at=(*outer, integer(k))) in scope.filled for k in range(count.value)):
                fill(r, scope, replace(part, at=tuple(outer)))
    elif not part.guards:
        (node,) = r.nodes(part.array)
        assert node is not None
        scope.set(node, Part(scope.b.op("acc_zeros", (scope.current(node), *r.dims(part.array))), NO_ZEROS))


def fill_over(r: Reverse, scope: Scope, step: Scope, index: f.Var, count: f.Atom) -> None:
    """The same after a loop whose steps have the scope `step`: where these fill all places, or a place that is the same
    in all steps."""
    alike: dict[tuple[f.Atom, tuple[f.Atom, ...]], list[Filled]] = {}  # the parts of one array
    for part in step.filled:
        if is_outside(r, part.array, index):
            alike.setdefault((part.array, part.at[:-1]), []).append(part)
    for (array, at), parts in alike.items():
        for guards in whole_where(places(r, parts[:MOST], index, count), length_of(r, array, len(at))):
            fill(r, scope, Filled(array, at, guards))


def places(
    r: Reverse, parts: list[Filled], index: f.Var, count: f.Atom
) -> list[tuple[frozenset[Guard], Intervals | None]]:  # fmt: skip
    """Where each part of an array is filled, under which conditions that the steps have alike; None for all of it."""
    array, k = parts[0].array, len(parts[0].at) - 1
    length, many = length_of(r, array, k), number(r.length(count))
    steps = None if many is None else Steps(r.makers, r.affine, index, many)
    found: list[tuple[frozenset[Guard], Intervals | None]] = []
    for part in parts:
        outer = frozenset([guard for guard in part.guards if is_outside(r, guard[0], index)])
        inner = part.guards - outer
        if not inner and part.at[-1] == index and r.length_is(array, k, count):
            found.append((outer, None))
        elif steps is not None and length is not None:
            some = steps.places(part.at[-1], inner, length)
            if some is not None:
                found.append((outer, some))
    return found


def length_of(r: Reverse, array: f.Atom, k: int) -> int | None:
    """A dimension, if it is a known number."""
    return number(r.sizes.of(array, k))


def number(dim: Dim | None) -> int | None:
    return dim.value if isinstance(dim, f.Const) and isinstance(dim.value, int) else None


def is_outside(r: Reverse, atom: f.Atom, index: f.Var) -> bool:
    """True for what is bound outside of the loop of an index."""
    if not isinstance(atom, f.Var):
        return True
    home, tape = r.home.get(atom.name), r.home[index.name].around
    while tape is not None and tape is not home:
        tape = tape.around
    return tape is not None
