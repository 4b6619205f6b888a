"""Calls of one elementary function, whose operands are all there, are one call for a vector of them.

    a = sigmoid x
    b = sigmoid y         =>      <4 x double> v = sigmoid <x, y, z, z>
    c = sigmoid z                 a, b, c = v[0], v[1], v[2]

LLVM makes such vectors of as many calls as a vector has lanes, and leaves the others.  In loops of which it makes
vectors, calls stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.prims.elementary import VECTORS

from dplc.flat import term as f
from dplc.flat.walk import names
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values, Writer
from dplc.machine.runtime.elementary import vector_lengths
from dplc.narrow import expect_type

Key = tuple[str, str]  # a function and its type


def groups(binds: Sequence[f.Bind], width: int) -> dict[str, list[f.Bind]]:
    """The groups of calls, by the first variable; `width` is that of a vector, in bytes."""
    made, open_ = dict[str, list[f.Bind]](), dict[Key, list[f.Bind]]()
    place = {var.name: i for i, bind in enumerate(binds) for var in bind.vars}
    start = dict[Key, int]()
    for i, bind in enumerate(binds):
        if (key := _function(bind)) is None:
            continue
        group = open_.get(key)
        needs = max((place.get(name, -1) for name in names(bind.rhs.args)), default=-1)
        if group is None or len(group) == max(vector_lengths(*key, width), default=0) or needs >= start[key]:
            open_[key] = made[bind.vars[0].name] = group = []
            start[key] = i
        group.append(bind)
        place[bind.vars[0].name] = start[key]
    return {name: group for name, group in made.items() if len(group) > 1}


def _function(bind: f.Bind) -> Key | None:
    match bind.rhs:
        case f.Op(name, (f.Var(_, f.Num(ty)), *_)) if name in VECTORS and ty in ("f32", "f64"):
            return name, ty
    return None


def call(w: Writer, group: Sequence[f.Bind], width: int, value: Callable[[f.Atom], str]) -> Values:
    """Writes the call of a group; the results."""
    key, ops = _function(group[0]), [expect_type(f.Op, bind.rhs) for bind in group]
    assert key
    lanes = min(n for n in vector_lengths(*key, width) if n >= len(group))
    leaf = SCALARS[key[1]]
    t = f"<{lanes} x {leaf}>"

    def vector(of: Sequence[f.Atom]) -> str:
        made = "poison"
        for i in range(lanes):
            made = w.let(f"insertelement {t} {made}, {leaf} {value(of[min(i, len(of) - 1)])}, i64 {i}")
        return f"{t} {made}"

    operands = [vector(of) for of in zip(*[op.args for op in ops], strict=True)]
    made = w.let(f"call {t} @rt.{'.'.join(key)}.v{lanes}({', '.join(operands)})")
    return [w.let(f"extractelement {t} {made}, i64 {i}") for i in range(len(group))]
