"""Derivatives inside of expressions, of every kind, so that those of the whole are nested."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT, Ty, array, function, list_of, rank
from doubt.writer import Hole, rule

DEEPEST = 2  # derivatives inside of each other, besides those of the whole: each multiplies the code by some number


NAMED = "gh"  # how names of functions begin


def shallow(h: Hole) -> bool:
    return h.scope.order < DEEPEST


def is_point(h: Hole) -> bool:
    """Whether what is wanted may be the gradient of something."""
    return shallow(h) and h.writer.fits_point(h.ty)


def is_float(h: Hole) -> bool:
    return shallow(h) and h.ty == FLOAT


def made(h: Hole, a: Ty, b: Ty) -> str:
    """A function to differentiate: written here, or one that has a name.  Not what a loop or a recursion hands on: that
    may be its own derivative, to an order known only when it runs."""
    known = [name for name in h.scope.differentiated().of(function(a, b)) if name[0] in NAMED]
    if known and h.often(30):
        return h.one(*known)
    x = h.named("x", a)
    return f"(fun ({x[0]} : {a}) -> {h.differentiated(b, x)})"


@rule(6, is_point)
def gradient(h: Hole) -> str:
    return f"grad {made(h, h.ty, FLOAT)} {h()}"


@rule(3, is_point)
def derivative(h: Hole) -> str:
    return f"diff {made(h, FLOAT, h.ty)} {h(FLOAT)}"


@rule(4, is_point)
def forward(h: Hole) -> str:
    a = h.writer.point_type(1)
    x = h.fresh("x")
    return f"let {x} = {h(a)} in snd (jvp {made(h, a, h.ty)} {x} (Tree.map (fun v -> cos (2.0 * v)) {x}))"


@rule(3, is_point)
def gradient_used(h: Hole) -> str:
    """By parts."""
    a = h.writer.point_type(1)
    value, g = h.named("y", FLOAT), h.named("d", a)
    return f"let ({value[0]}, {g[0]}) = value_and_grad {made(h, a, FLOAT)} {h(a)} in {h(h.ty, value, g)}"


@rule(3, shallow)
def pullback(h: Hole) -> str:
    """Kept and called as is liked; of two functions at one place of the program, too."""
    a, b = h.writer.point_type(1), h.writer.rigid_type()
    back, y, f = h.named("b", function(b, a)), h.named("y", b), h.fresh("f")
    match h.writer.below(3):
        case 0 | 1:
            return f"let ({y[0]}, {back[0]}) = vjp {made(h, a, b)} {h(a)} in {h(h.ty, y, back)}"
    several = h.named("b", list_of(back[1]))
    head = f"let {f} = {made(h, a, b)} in let {several[0]} = [snd (vjp {f} {h(a)}); snd (vjp {f} {h(a)})] in"
    return f"{head} {h(h.ty, several)}"


@rule(3, is_point)
def pulled_back(h: Hole) -> str:
    if h.often(50):
        b = h.writer.rigid_type()
        return f"snd (vjp {made(h, h.ty, b)} {h()}) {h(b)}"
    y, back, b = h.fresh("y"), h.fresh("b"), h.writer.point_type(1)
    return f"let ({y}, {back}) = vjp {made(h, h.ty, b)} {h()} in {back} (Tree.map (fun v -> cos (2.0 * v)) {y})"


@rule(3, is_float)
def several(h: Hole) -> str:
    """Derivatives of one function at one point, which native code takes together."""
    a, f, x, b = h.writer.point_type(1), h.fresh("f"), h.fresh("x"), h.fresh("b")
    head = f"let {f} = {made(h, a, FLOAT)} in let {x} = {h(a)} in"
    if h.often(50):
        along = [f"snd (jvp {f} {x} (Tree.map (fun v -> cos ({k}.0 * v)) {x}))" for k in range(h.writer.below(3) + 2)]
        return f"{head} {' * '.join(along)}"
    return f"{head} let {b} = snd (vjp {f} {x}) in Tree.dot ({b} 0.5) ({b} {h(FLOAT)})"


@rule(2, is_point)
def recomputed(h: Hole) -> str:
    a = h.writer.point_type(1)
    if h.often(70):
        return f"checkpoint {made(h, a, h.ty)} {h(a)}"
    i, s = h.named("i", INT), h.named("s", h.ty)
    step = f"(fun {i[0]} ({s[0]} : {h.ty}) -> {h.differentiated(h.ty, i, s)})"
    return f"checkpoint_loop {h.writer.below(3) + 1} {h.writer.below(4) + 1} {step} {h()}"


@rule(3, is_point)
def own_rule(h: Hole) -> str:
    """A function with a derivative by hand, or one that is asked for; both are right."""
    a, f, x, d = h.writer.point_type(1), h.fresh("f"), h.fresh("x"), h.fresh("d")
    match h.writer.below(5 if h.ty == FLOAT else 2):
        case 0:
            return f"let {f} = {made(h, a, h.ty)} in with_jvp {f} (fun {x} {d} -> jvp {f} {x} {d}) {h(a)}"
        case 1:
            return f"let {f} = {made(h, a, h.ty)} in with_vjp {f} (fun {x} -> vjp {f} {x}) {h(a)}"
        case 2:
            return f"with_jvp (fun {x} -> sin {x}) (fun {x} {d} -> (sin {x}, cos {x} * {d})) {h()}"
        case 3:  # along two arguments, of which one may be constant
            y, e, c = h.fresh("y"), h.fresh("e"), h.fresh("c")
            part = f"let (_, {c}) = jvp (fun {x} -> {x} * sin {y}) {x} {d} in"
            rule = f"fun ({x}, {y}) ({d}, {e}) -> {part} ({x} * sin {y}, {c} + {x} * cos {y} * {e})"
            given = (h(), "0.75") if h.often(50) else ("1.25", h())
            return f"with_jvp (fun ({x}, {y}) -> {x} * sin {y}) ({rule}) ({', '.join(given)})"
    return f"with_vjp (fun {x} -> {x} * {x}) (fun {x} -> ({x} * {x}, fun {d} -> 2.0 * {x} * {d})) {h()}"


@rule(2, lambda h: is_float(h) and h.scope.order < DEEPEST - 1)
def of_captured(h: Hole) -> str:
    """Nested, where the inner function mixes its variable with that of the outer one."""
    x, y = h.named("x", FLOAT), h.named("y", FLOAT)
    outer, inner = (h.one("grad", "diff", "forward") for _ in range(2))
    point = h.differentiated(FLOAT, x)
    return f"{outer} (fun {x[0]} -> {x[0]} * {inner} (fun {y[0]} -> {h.differentiated(FLOAT, x, y)}) {point}) {h()}"


@rule(1, lambda h: is_float(h) and h.scope.order < DEEPEST - 1)
def of_operator(h: Hole) -> str:
    """By an operator that has a name of its own, alone or in a pair."""
    d, x = h.fresh("d"), h.named("x", FLOAT)
    f = f"(fun {x[0]} -> {h.differentiated(FLOAT, x)})"
    forms = (f"{d} = OF", d), (f"({d}, _) = (OF, 1)", d), (f"{d} = (1, OF)", f"(snd {d})")
    named, use = forms[sum(map(ord, d)) % len(forms)]
    return f"let {named.replace('OF', h.one('grad', 'diff'))} in {use} ({use} {f}) {h()}"


@rule(1, is_float)
def of_order(h: Hole) -> str:
    """Known when it runs."""
    match h.writer.below(4):
        case 0:
            return f"Ad.diffn {h.writer.below(3)} {made(h, FLOAT, FLOAT)} {h()}"
        case 1:  # of a power, whose series grow at the front
            t = h.named("t", FLOAT)
            power = f"{h.differentiated(FLOAT, t)} * {t[0]} ** {h.writer.below(3) + 2}"
            return f"Ad.diffn {h.writer.below(3) + 1} (fun {t[0]} -> {power}) {h()}"
        case 2:
            return f"sum (Ad.jet 2 {made(h, FLOAT, FLOAT)} {h()})"
    return f"Ad.diff2 {made(h, FLOAT, FLOAT)} {h()}"


@rule(2, lambda h: shallow(h) and rank(h.ty) == 1)
def of_vectors(h: Hole) -> str:
    """By names of the library."""
    m = array(FLOAT, h.writer.below(2) + 1)
    match h.writer.below(4):
        case 0:
            return f"Ad.hessianv {made(h, h.ty, FLOAT)} {h()} {h()}"
        case 1:
            return f"Ad.jacobian {made(h, m, h.ty)} {h(m)} @ {h(m)}"
        case 2:
            return f"Ad.jacobianTv {made(h, h.ty, m)} {h()} {h(m)}"
    return f"Ad.hessian {made(h, h.ty, FLOAT)} {h()} @ {h()}"


@rule(1, lambda h: shallow(h) and h.ty == array(array(FLOAT, 2), 2))
def of_many_directions(h: Hole) -> str:
    v = h.ty.args[0]
    return f"{h.one(f'Ad.jacobian {made(h, v, v)}', f'Ad.hessian {made(h, v, FLOAT)}')} {h(v)}"


@rule(1, is_float)
def of_returned_function(h: Hole) -> str:
    """The derivative is itself a value: kept, chosen, mapped."""
    g, c = h.fresh("g"), h(BOOL)
    f = made(h, FLOAT, FLOAT)
    return f"let {g} = (if {c} then grad {f} else diff (fun v -> v * sin v)) in {g} ({g} {h()})"
