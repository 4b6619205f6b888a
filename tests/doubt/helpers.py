"""Functions without annotations over numbers and arrays, called at several ranks: operands lift each other."""

from __future__ import annotations

from doubt.scopes import FLOAT, Ty, array, rank
from doubt.writer import Hole, rule

STEPS = ("({} + {})", "({} - 0.4 * {})", "({} * {})", "({} / (1.5 + abs {}))", "(hypot {} {})", "(max {} {})")
SHAPES = ("(tanh {})", "(-{})", "({} ** 2)", "(sin {})", "(0.5 * {} + 0.3)")


def is_numbers(h: Hole) -> bool:
    return h.ty == FLOAT or rank(h.ty) > 0


def rows(ty: Ty) -> list[Ty]:
    """What fits a type: it, its rows, and its scalar."""
    return [ty, *(rows(ty.args[0]) if ty.name == "[]" else [])]


def body(h: Hole, names: list[str]) -> str:
    """An expression that mentions every name."""
    parts = [h.one("{}", *SHAPES).format(name) for name in names]
    parts += [h.one(*names) for _ in range(h.writer.below(3))]
    while len(parts) > 1:
        left, right = parts.pop(h.writer.below(len(parts))), parts.pop()
        made = h.one(*STEPS).format(left, right)
        parts.append(h.one("{}", "{}", *SHAPES).format(made))
    return parts[0]


def operands(h: Hole, ty: Ty, count: int) -> list[str]:
    """Of which one is of that type, and all fit it."""
    whole = h.writer.below(count)
    return [h(ty if k == whole else h.one(*rows(ty))) for k in range(count)]


@rule(4, is_numbers)
def helper(h: Hole) -> str:
    """Called, at other ranks too; given its arguments one by one, by another helper, or to one."""
    g, names = h.fresh("open"), [h.fresh("a") for _ in range(h.writer.below(3) + 1)]
    head = f"let {g} {' '.join(names)} = {body(h, names)} in"
    args = operands(h, h.ty, len(names))
    again = ""
    if h.often(40):
        at = h.one(*rows(h.ty))
        others = " ".join(operands(h, at, len(names)))
        again = f" + 0.1 * {total(at, f'({g} {others})')}"
    match h.writer.below(4):
        case 1:
            part, given = h.fresh("part"), h.writer.below(len(args))
            kept = " ".join([g, *args[:given]])
            return f"{head} let {part} = {kept} in {part} {' '.join(args[given:])}{again}"
        case 2:
            k = h.fresh("open")
            others = " ".join(names[1:] + names[:1])
            outer = f"let {k} {' '.join(names)} = {g} {' '.join(names)} - 0.2 * {g} {others} in"
            return f"{head} {outer} {k} {' '.join(args)}{again}"
        case 3:
            k, f = h.fresh("open"), h.fresh("f")
            given = " ".join(names)
            return f"{head} let {k} {f} {given} = {f} {given} + 0.5 in {k} {g} {' '.join(args)}{again}"
    return f"{head} {g} {' '.join(args)}{again}"


@rule(1, is_numbers)
def unused(h: Hole) -> str:
    """Values and functions inside of a helper that nothing uses: their types stay open."""
    g, names = h.fresh("open"), [h.fresh("a") for _ in range(h.writer.below(2) + 2)]
    u, f, x = h.fresh("_u"), h.fresh("_f"), h.fresh("x")
    value = h.one(body(h, names), f"({names[0]}, {body(h, names)})", f"Some {body(h, names)}", f"[{names[0]};]")
    inside = f"let {u} = {value} in let {f} {x} = {body(h, [x, names[-1]])} in {body(h, names)}"
    return f"let {g} {' '.join(names)} = {inside} in {g} {' '.join(operands(h, h.ty, len(names)))}"


@rule(3, is_numbers)
def tied(h: Hole) -> str:
    """A step whose operands fit the state of a recursion, a loop or a fold."""
    g, p, q = h.fresh("open"), h.fresh("p"), h.fresh("q")
    start, other, n, go = h(), h.fresh("o"), h.fresh("n"), h.fresh("go")
    head = f"let {g} {p} {q} = {body(h, [p, q])} in let {other} = {h(h.one(*rows(h.ty)))} in"
    match h.writer.below(3):
        case 1:
            return f"{head} loop {p} = {start} for _ < {h.count()} do tanh ({p} - 0.1 * {g} {p} {other})"
        case 2:
            step = f"(tanh ({p} - {q} * {g} {p} {q}))"
            rest = f"if {n} <= 0 then {p} else {go} {step} {q} ({n} - 1)"
            return f"{head} let rec {go} {p} {q} {n} = {rest} in {go} {start} {other} {h.writer.below(3)}"
    return f"{head} fold (fun {p} {q} -> tanh ({g} {p} {q})) {start} [{other}, {other}]"


@rule(2, lambda h: is_numbers(h) and h.scope.order < 2)
def derivative_of_helper(h: Hole) -> str:
    g, names = h.fresh("open"), [h.fresh("a") for _ in range(2)]
    head = f"let {g} {' '.join(names)} = {body(h, names)} in"
    x, other = h.fresh("x"), h.fresh("o")
    if h.often(50):
        whole = h.ty if rank(h.ty) else h.one(FLOAT, array(FLOAT, 2))
        slope = f"grad (fun {x} -> {total(whole, f'({g} {x} {other})')}) {h()}"
        return f"{head} let {other} = {h(whole)} in {slope}"
    return f"{head} let {other} = {h()} in diff (fun {x} -> {g} {x} {other}) {h(FLOAT)}"


def total(ty: Ty, text: str) -> str:
    return "sum (" * rank(ty) + text + ")" * rank(ty)
