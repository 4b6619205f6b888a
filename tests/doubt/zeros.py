"""Cotangents that are zero: those of what is not taken, and those of what is taken with a weight of zero."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT
from doubt.writer import Hole, rule

# Their loops have arrays as states, or read some elements of rows, among which native code does not tell zeros apart
# (docs/sharp-bits.md).
STATES = {
    "grid", "line", "edged", "column", "partly_made", "places", "swept", "updated_in_a_loop", "grown", "patterned_rows",
    "in_place", "mutable_rows", "ragged_records", "several_results",
}  # fmt: skip


@rule(1, lambda h: h.ty == FLOAT and not STATES & h.writer.used)
def weighed(h: Hole) -> str:
    """The derivative of a number is infinite: whoever takes it gets NaN, also with a weight of zero."""
    z, i, s, y = h.fresh("z"), h.named("i", INT), h.named("s", FLOAT), h.fresh("y")
    head = f"let {z} = sqrt (0.0 * {h(FLOAT)}) in"
    used = h.one(f"0.0 * {z}", f"0.0 * {z} * {z}", f"sin {z}")
    inner = f"if {h(BOOL)} then {used} else {h.one('0.3', h())}"
    match h.writer.below(6):
        case 0:
            body = f"if {h(BOOL)} then ({inner}) + {h()} else {h()}"
        case 1:
            step = f"if {h.apart(BOOL, i)} then {s[0]} + {used} else {s[0]}"
            body = f"loop {s[0]} = {h()} for {i[0]} < {h.writer.below(3) + 1} do {step}"
        case 2:
            body = f"sum [for {i[0]} < {h.writer.below(3) + 1} -> if {h.apart(BOOL, i)} then {used} else 0.1]"
        case 3:
            made = f"if {h(BOOL)} then Some {z} else None"
            body = f"match ({made}) with Some {y} -> ({h.one(f'0.0 * {y}', h())}) | None -> {h()}"
        case 4:
            list_ = f"List.fold (fun {s[0]} {y} -> if {h.apart(BOOL, s)} then {s[0]} + 0.0 * {y} else 0.9 * {s[0]})"
            body = f"{list_} {h()} [{h()}; {z}]"
        case _:
            body = f"max ({used}) ({inner})"
    return f"{head} {body}"
