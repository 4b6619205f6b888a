"""Expressions of numbers and truths.  Most functions are bounded, so that values stay moderate and differences mean
something."""

from __future__ import annotations

from doubt.scopes import BOOL, F32, FLOAT, INT, STRING, array, list_of
from doubt.writer import NUMBERS, Hole, rule

TAME = (
    "sin", "tanh", "cos", "atan", "-", "damp", "sigmoid", "softplus", "erf", "abs", "relu", "square", "twice sin",
    "compose exp sin", "compose cbrt (fun v -> 3.0 + sin v)", "compose sqrt softplus",
)  # fmt: skip


def is_float(h: Hole) -> bool:
    return h.ty == FLOAT


@rule(6, is_float)
def applied(h: Hole) -> str:
    return f"{h.one(*TAME)} {h()}"


@rule(8, is_float)
def arithmetic(h: Hole) -> str:
    return f"{h()} {h.one('*', '+', '-', '*', '+', '<+>')} {h()}"


@rule(3, is_float)
def within_domain(h: Hole) -> str:
    match h.writer.below(6):
        case 0:
            return f"{h()} / (1.5 + {h()} ** 2)"
        case 1:
            return f"sqrt (1.0 + {h()} ** 2)"
        case 2:
            return f"log (2.0 + {h()} ** 2)"
        case 3:
            return f"(1.2 + cos {h()}) ** {h()}"
        case 4:
            return f"{h()} % {h.one(*NUMBERS)}"
    return f"clip {h()} (-1.0) 1.5"


@rule(2, is_float)
def of_two(h: Hole) -> str:
    return f"{h.one('max', 'min', 'hypot', 'atan2', 'logaddexp')} {h()} {h()}"


@rule(2, is_float)
def power(h: Hole) -> str:
    return f"{h()} ** {h.one('2', '3', '0', '1', '2.0')}"


@rule(2, is_float)
def from_others(h: Hole) -> str:
    if h.writer.features.singles and h.often(60):
        return f"float {h(F32)}"
    return f"float {h(INT)}"


@rule(1, lambda h: h.ty == FLOAT and h.writer.features.stops)
def stopped(h: Hole) -> str:
    return f"stop_grad {h()}"


@rule(5, lambda h: h.ty == F32)
def single(h: Hole) -> str:
    match h.writer.below(4):
        case 0:
            return f"f32 {h(FLOAT)}"
        case 1:
            return f"{h()} {h.one('+', '*', '-')} {h()}"
        case 2:
            return f"{h.one('sin', 'tanh', '-', 'abs')} {h()}"
    return f"{h.one('sum', 'mean', 'maximum')} {h(array(F32, h.writer.below(3) + 1))}"


@rule(2, lambda h: h.ty == FLOAT and h.writer.features.singles)
def slope_of_single_tree(h: Hole) -> str:
    """Functions of trees convert single numbers, and what flows back."""
    t, x = h.fresh("t"), h.named("x", FLOAT)
    mapped = h.one(f"Tree.map (fun {x[0]} -> {h.apart(FLOAT, x)}) {t}", f"Tree.axpy {h(FLOAT)} {t} {t}", t)
    total = h.one(f"Tree.dot ({mapped}) {t}", f"Tree.norm ({mapped})", f"sum (Tree.flatten ({mapped}))")
    slope = f"grad (fun ({t} : f32 * f32) -> {total}) ({h(F32)}, {h(F32)})"
    return f"let ({t}, {x[0]}) = {slope} in float {t} + 2.0 * float {x[0]}"


@rule(3, lambda h: h.ty == FLOAT and h.writer.features.singles)
def of_both_precisions(h: Hole) -> str:
    """Loops that read numbers of both precisions, and add in either."""
    n = h.one(17, 33) if h.often(20) else h.writer.below(4) + 1
    xs, ys, i = h.fresh("xs"), h.fresh("ys"), h.named("i", INT)
    x, y = f"{xs}[{i[0]}]", f"{ys}[{h.one(i[0], f'({i[0]} + 1) % {n}')}]"
    term = h.one(f"float {x} * {y}", f"float ({x} * f32 {y})", f"float (tanh {x}) * {y} + {h.apart(FLOAT, i)}",
                 f"(if {i[0]} % 2 = 0 then float {x} * {y} else {y} ** 2)", f"float (max {x} (f32 {y}))")  # fmt: skip
    total = h.one(f"sum [for {i[0]} < {n} -> {term}]", f"float (sum [for {i[0]} < {n} -> f32 ({term})])",
                  f"sum (float {xs} * {ys})", f"float (dot {xs} (f32 {ys}))")  # fmt: skip
    return f"let ({xs}, {ys}) = ({h(array(F32, n))}, {h(array(FLOAT, n))}) in {total}"


WRAPPED = (" + 9223372036854775805", " * 4611686018427387904")  # beyond 64 bits for some indices of a loop


@rule(8, lambda h: h.ty == INT)
def integer(h: Hole) -> str:
    match h.writer.below(9):
        case 0 | 1:
            return f"{h()} {h.one('+', '-', '*')} {h()}"
        case 2:
            divisor = h() if h.writer.features.risky else str(h.writer.below(4) + 2)
            return f"{h()} {h.one('/', '%')} {divisor}"
        case 3:
            return f"{h.one('max', 'min')} {h()} {h()}"
        case 4:
            return f"int (3.0 * tanh {h(FLOAT)})"
        case 5:
            return f"length {h(array(h.writer.data_type(1), h.writer.below(3) + 1))}"
        case 6:
            return f"List.length {h(list_of(h.writer.data_type(1)))}"
        case 7:
            return f"{h.one('argmax', 'argmin')} {h(array(FLOAT, 3))}"
    return f"sum {h(array(INT, 3))}"


@rule(10, lambda h: h.ty == BOOL)
def truth(h: Hole) -> str:
    match h.writer.below(6):
        case 0 | 1:
            return f"{h(FLOAT)} {h.one('<', '>', '<=')} {h(FLOAT)}"
        case 2:
            return f"{h(INT)}{h.one('', '', '', *WRAPPED)} {h.one('<', '=', '<>', '>=')} {h(INT)}"
        case 3:
            return f"{h()} {h.one('&&', '||')} {h()}"
        case 4:
            return f"not {h()}"
    ty = h.writer.data_type(1)
    return f"{h(ty)} {h.one('=', '<', '<>')} {h(ty)}" if ty not in (FLOAT, STRING) else f"{h(FLOAT)} < {h(FLOAT)}"
