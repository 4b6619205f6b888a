"""Updates that write what is there go, and copies that were made for them.

    r = index c i; v = copy r                  v = index c i
    x = sum v                           =>     x = sum v
    b = update c v i                           d = acc_index c w n j
    d = acc_index b w n j

Reverse mode takes a part out of a cotangent where it reverses an update, and often adds the same part again.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.copy import Renamed
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, names, rhs_mentions, with_binds


def without_idle_updates(body: f.Block) -> f.Block:
    """The body of a function without such updates."""
    parts = {bind.vars[0].name: bind.rhs for bind in every(body)
             if isinstance(bind.rhs, f.Op) and bind.rhs.op in ("index", "copy")}  # fmt: skip
    idle = {bind.vars[0].name: bind.rhs.args[0] for bind in every(body)
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "update" and writes_same(bind.rhs, parts)}  # fmt: skip
    if not idle:
        return body
    for name, array in idle.items():  # in the order of the code
        idle[name] = idle.get(array.name, array) if isinstance(array, f.Var) else array
    return _Without(idle).block(body)


def writes_same(update: f.Op, parts: dict[str, f.Op]) -> bool:
    """True for an update by the part of the array that is at this place."""
    array, value, *place = update.args
    made = parts.get(value.name) if isinstance(value, f.Var) else None
    if made is not None and made.op == "copy" and isinstance(made.args[0], f.Var):
        made = parts.get(made.args[0].name)
    return made is not None and made.op == "index" and made.args == (array, *place)


class _Without(Renamed):
    """`atoms` has the arrays that idle updates give."""

    def block(self, block: f.Block) -> f.Block:
        idle = [bind.vars[0].name for bind in block.binds if len(bind.vars) == 1 and bind.vars[0].name in self.atoms]
        done = super().block(block)
        return without_copies(done, set(names([self.atoms[name] for name in idle]))) if idle else done

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        return super().binds(tuple([b for b in binds if not (len(b.vars) == 1 and b.vars[0].name in self.atoms)]))


def without_copies(block: f.Block, arrays: set[str]) -> f.Block:
    """The block in which copies of parts of these arrays are the parts, if the arrays change after all uses."""
    rows: dict[str, str] = {}
    same: dict[str, f.Atom] = {}
    for at, bind in enumerate(block.binds):
        match bind.rhs:
            case f.Op("index", (f.Var(array), *_)) if array in arrays:
                rows[bind.vars[0].name] = array
            case f.Op("copy", (f.Var(row) as part,)) if row in rows:
                later, copy = block.binds[at + 1 :], bind.vars[0]
                before = next((k for k, other in enumerate(later) if hands_on(other.rhs, rows[row])), 0)
                used = any(copy.name in rhs_mentions(other.rhs) for other in later[before:])
                if not used and copy not in block.results:
                    same[copy.name] = part
            case _:
                pass
    if not same:
        return block
    kept = [bind for bind in block.binds if not (len(bind.vars) == 1 and bind.vars[0].name in same)]
    return Renamed(same).block(with_binds(block, kept))


def hands_on(rhs: f.Rhs, array: str) -> bool:
    """True for code that may change an array."""
    reads = isinstance(rhs, f.Op) and (OPS[rhs.op].reads or OPS[rhs.op].views) and not OPS[rhs.op].changes
    return not reads and array in rhs_mentions(rhs)
