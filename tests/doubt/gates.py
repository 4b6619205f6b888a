"""Local functions without annotations, of records and data with a size, beside arrays whose types are not known yet.

These arrays are what the function around returns or takes, so their sizes are known only at its end.
"""

from __future__ import annotations

from doubt.scopes import FLOAT, Ty, array, rank
from doubt.writer import Hole, rule

GATE = "bias"  # what mentions it needs the type
GATE_TYPE = "type n gate = { left : float[n, n]; bias : float[n] }"
CELL = "cell"
CELL_TYPE = "type ('a, n) cell = Still of float[n] | Moved of 'a * float[n, n]"
PARTS = ("{g}.left @ {x}", "{x} @ {g}.left", "{g}.bias", "{x}", "sum {g}.bias * {x}", "tanh ({g}.left @ {x} + {x})")
STEPS = ("{} + {}", "{} - 0.4 * {}", "{} * {}", "hypot {} {}", "max {} {}")


def is_vector(h: Hole) -> bool:
    return rank(h.ty) == 1


def mixed(h: Hole, g: str, arrays: tuple[str, ...]) -> str:
    """An expression over a gate and arrays, all of one size; it mentions each of them."""
    parts = [f"({h.one(*PARTS).format(g=g, x=x)})" for x in arrays] + [f"{g}.bias"]
    parts += [f"({h.one(*PARTS).format(g=g, x=h.one(*arrays))})" for _ in range(h.writer.below(2))]
    while len(parts) > 1:
        left, right = parts.pop(h.writer.below(len(parts))), parts.pop()
        parts.append(f"({h.one(*STEPS).format(left, right)})")
    return f"tanh {parts[0]}"


def local(h: Hole, r: str, arrays: tuple[str, ...]) -> str:
    """A local function of a gate, and what it makes of the gate `r`."""
    f, g = h.fresh("step"), h.fresh("g")
    head = f"let {f} {g} = {mixed(h, g, arrays)} in"
    match h.writer.below(8):
        case 0:
            k, a = h.fresh("step"), h.fresh("g")
            return f"{head} let {k} {a} = {f} {a} - 0.3 * {mixed(h, a, arrays)} in {k} {r} + {f} {r}"
        case 1:
            inner, n = h.fresh("go"), h.fresh("n")
            last = h.one(f"{g}.bias", arrays[0])
            rest = mixed(h, g, (*arrays, f"({inner} {g} ({n} - 1))"))
            return f"let rec {inner} {g} {n} = if {n} <= 0 then {last} else {rest} in {inner} {r} {h.writer.below(3)}"
        case 2:
            other = h.fresh("step")
            pair = f"((fun {g} -> {mixed(h, g, arrays)}), fun {g} -> {mixed(h, g, arrays)})"
            return f"let ({f}, {other}) = {pair} in {f} {r} - {other} {r}"
        case 3:
            return f"{head} fold ( + ) {arrays[0]} [for {g} in [{r}, {{ {r} with bias = {f} {r} }}] -> {f} {g}]"
        case 4:
            return f"{head} {arrays[0]} * sum [for {g} in [{r}, {r}] -> let {f} {r} = {f} {r} in sum ({f} {g})]"
        case 5:
            y = h.fresh("y")
            return f"let {f} {g} {y} = {y} * {mixed(h, g, arrays)} in {f} {r} 0.7 + {f} {r} {arrays[0]}"
        case 6:
            other, y = h.fresh("step"), h.fresh("y")
            inner = local(h, g, (*arrays, y))
            return f"let {other} {g} = (let {y} = {arrays[0]} - {g}.bias in {inner}) in {other} {r}"
        case _:
            pass
    return f"{head} {f} {r} + 0.2 * {f} {{ {r} with bias = {arrays[-1]} }}"


def gate(h: Hole, ty: Ty) -> str:
    return f"{{ left = {h(array(ty, ty.size))}; bias = {h(ty)} }}"


@rule(3, is_vector)
def of_a_recursion(h: Hole) -> str:
    """The arrays are results of the function around."""
    go, r, n, x, y = h.fresh("go"), h.fresh("r"), h.fresh("n"), h.fresh("x"), h.fresh("y")
    size = h.fresh("k")
    head = f"{go} {h.one(r, r, f'({r} : {size} gate)', f'({r} : _ gate)')} {n}"
    again = f"({go} {r} ({n} - 1), {go} {{ {r} with bias = -{r}.bias }} ({n} - 2))"
    rest = f"let ({x}, {y}) = {again} in {local(h, r, (x, y))}"
    return f"let rec {head} = if {n} <= 0 then {r}.bias else {rest} in {go} {gate(h, h.ty)} {h.writer.below(3)}"


@rule(2, is_vector)
def of_a_parameter(h: Hole) -> str:
    """The arrays are arguments of the function around, of which nothing is said."""
    f, r, x, y = h.fresh("f"), h.fresh("r"), h.fresh("x"), h.fresh("y")
    return f"let {f} {r} {x} {y} = {local(h, r, (x, y))} in {f} {gate(h, h.ty)} {h()} {h()}"


@rule(2, is_vector)
def of_data(h: Hole) -> str:
    """A function over data with a size and a type that is a number or an array."""
    go, c, n, x, f, d = (h.fresh(stem) for stem in ("go", "c", "n", "x", "step", "d"))
    a, v, w = h.fresh("a"), h.fresh("v"), h.fresh("w")
    moved = h.one(f"{a} * ({w} @ {x})", f"{w} @ {x} - {a}", f"{a} + {x} * ({x} @ {w})", f"{x} @ {w} * {a} + {x}")
    arms = f"Still {v} -> tanh ({v} - {x}) | Moved ({a}, {w}) -> tanh ({moved})"
    last = f"match {c} with Still {v} -> {v} | Moved (_, {w}) -> {w}[0]"
    rest = f"let {x} = {go} {c} ({n} - 1) in let {f} {d} = (match {d} with {arms}) in {f} {c} + {f} (Still {x})"
    held = h.one(FLOAT, h.ty)
    start = h.one(f"Still {h()}", f"Moved ({h(held)}, {h(array(h.ty, h.ty.size))})")
    made = f"({start} : (({held}), {h.ty.size}) cell)"
    return f"let rec {go} {c} {n} = if {n} <= 0 then ({last}) else ({rest}) in {go} {made} {h.writer.below(3)}"
