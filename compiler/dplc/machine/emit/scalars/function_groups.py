"""Calls of one elementary function, whose operands can all be there, are one call for a vector of them.

    a = sigmoid x
    b = sigmoid y         =>      u = mul z 0.5
    u = mul z 0.5                 <4 x double> v = sigmoid <x, y, u, u>
    c = sigmoid u                 a, b, c = v[0], v[1], v[2]

LLVM makes such vectors of as many calls as a vector has lanes, and leaves the others.  It also vectorises whole loops:
in those, calls stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.node import field, record
from dpl.prims.elementary import VECTORS

from dplc.flat import term as f
from dplc.flat.walk import names
from dplc.machine.emit.scalars.vectors import PLAIN
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values, Writer
from dplc.machine.runtime.elementary import vector_lengths
from dplc.narrow import expect_type

DEEP = 4  # operations, at most, that an operand takes which come early
Key = tuple[str, str]  # a function and its type


@record
class Group:
    """Calls of one function, the first of which was number `start`, and the arithmetic that comes before them."""

    key: Key
    start: int
    most: int
    calls: list[f.Bind] = field(default_factory=list)
    before: list[f.Bind] = field(default_factory=list)


def groups(binds: Sequence[f.Bind], width: int) -> dict[str, Group]:
    """The groups of calls, by the first variable; `width` is that of a vector, in bytes."""
    calls = [(i, key) for i, bind in enumerate(binds) if (key := _function(bind))] if width else []
    if len(calls) < 2:
        return {}
    place = {var.name: i for i, bind in enumerate(binds) for var in bind.vars}
    made, last = list[Group](), dict[Key, Group]()
    for i, key in calls:
        group, bind = last.get(key), binds[i]
        early = _early(binds, place, bind, group.start) if group and len(group.calls) < group.most else None
        if group is None or early is None:
            group = last[key] = Group(key, i, max(vector_lengths(*key, width), default=0))
            made.append(group)
        group.before += early or []
        group.calls.append(bind)
        place.update({var.name: group.start for one in (*(early or []), bind) for var in one.vars})
    return {group.calls[0].vars[0].name: group for group in made if len(group.calls) > 1}


def moved(groups: dict[str, Group]) -> set[str]:
    """The variables that groups define in another place than their own."""
    own = {var.name for group in groups.values() for bind in (*group.before, *group.calls) for var in bind.vars}
    return own - groups.keys()


def _early(binds: Sequence[f.Bind], place: dict[str, int], bind: f.Bind, start: int) -> list[f.Bind] | None:
    """The arithmetic that must come before number `start`, if a call does; None if that is not possible."""
    found: dict[int, f.Bind] = {}
    wanted = [bind]
    while wanted:
        for name in names(expect_type(f.Op, wanted.pop().rhs).args):
            at = place.get(name, -1)
            if at < start or at in found:
                continue
            needed = binds[at]
            if len(found) == DEEP or not _may_be_early(needed):
                return None
            found[at] = needed
            wanted.append(needed)
    return [found[at] for at in sorted(found)]


def _may_be_early(bind: f.Bind) -> bool:
    """True for arithmetic on numbers, and for reads of a number that are in bounds wherever they are."""
    match bind.rhs:
        case f.Op("index") as op:
            return op.attr("unchecked") is True and isinstance(bind.vars[0].ty, f.Num)
        case f.Op(name):
            return name in PLAIN and isinstance(bind.vars[0].ty, f.Num)
        case _:
            return False


def _function(bind: f.Bind) -> Key | None:
    match bind.rhs:
        case f.Op(name, (f.Var(_, f.Num(ty)), *_)) if name in VECTORS and ty in ("f32", "f64"):
            return name, ty
        case _:
            return None


def call(w: Writer, group: Group, width: int, value: Callable[[f.Atom], str]) -> Values:
    """Writes the call of a group; the results."""
    ops = [expect_type(f.Op, bind.rhs) for bind in group.calls]
    lanes = min(n for n in vector_lengths(*group.key, width) if n >= len(ops))
    leaf = SCALARS[group.key[1]]
    t = f"<{lanes} x {leaf}>"

    def vector(of: Sequence[f.Atom]) -> str:
        made = "poison"
        for i in range(lanes):
            made = w.let(f"insertelement {t} {made}, {leaf} {value(of[min(i, len(of) - 1)])}, i64 {i}")
        return f"{t} {made}"

    operands = [vector(of) for of in zip(*[op.args for op in ops], strict=True)]
    made = w.let(f"call {t} @rt.{'.'.join(group.key)}.v{lanes}({', '.join(operands)})")
    return [w.let(f"extractelement {t} {made}, i64 {i}") for i in range(len(ops))]
