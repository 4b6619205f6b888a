"""Functions: named and called, given to others, kept in data, returned, recursive with fuel."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT, Ty, array, function, list_of, mentions
from doubt.writer import Hole, rule

ANY = lambda _: True  # noqa: E731


@rule(4, ANY)
def named(h: Hole) -> str:
    """A function of this place: in a `reset` it may shift."""
    var, ty = h.named("p", h.some_type()), h.ty if h.often(60) else h.some_type()
    g = h.named("g", function(var[1], ty, h.scope.answer))
    return f"let {g[0]} {h.parameter(var)} = {h(ty, var)} in {h(h.ty, g)}"


@rule(2, ANY)
def of_two_parameters(h: Hole) -> str:
    """Applied to one argument, then to the other; or to both."""
    a, b = h.named("p", h.some_type()), h.named("p", h.writer.data_type(1))
    g, part = h.fresh("g"), h.named("g", function(b[1], h.ty))
    body = h.apart(h.ty, a, b)
    head = f"let {g} {h.parameter(a)} {h.parameter(b)} = {body} in"
    if h.often(60):
        return f"{head} let {part[0]} = {g} {h(a[1])} in {h(h.ty, part)}"
    return f"{head} {g} {h(a[1])} {h(b[1])}"


@rule(2, ANY)
def of_a_pair(h: Hole) -> str:
    """The parts of a tuple, each with its type."""
    a, b = h.named("p", h.some_type()), h.named("p", h.writer.data_type(1))
    g, (first, second) = h.fresh("g"), (h.component(a), h.component(b))
    return f"let {g} ({first}, {second}) = {h.apart(h.ty, a, b)} in {g} ({h(a[1])}, {h(b[1])})"


@rule(2, ANY)
def called(h: Hole) -> str:
    ty = h.some_type()
    return f"{h(function(ty, h.ty))} {h(ty)}"


@rule(3, ANY)
def given_to_another(h: Hole) -> str:
    argument = function(h.ty, h.ty, h.scope.answer)
    match h.writer.below(5):
        case 0:
            return f"twice {h(argument)} {h()}"
        case 1:
            return f"{h.one('repeat', 'iterate')} {h.count()} {h(argument)} {h()}"
        case 2:
            other = h.writer.data_type(1)
            return f"compose {h(function(other, h.ty))} {h(function(h.ty, other))} {h()}"
        case 3:
            return f"{h()} |> {h(argument)}"
    return f"(if {h(BOOL)} then {h(argument)} else {h(argument)}) {h()}"


@rule(3, ANY)
def folded(h: Hole) -> str:
    """Over an array, or a list; of data, or of functions."""
    item = h.writer.data_type(1) if h.often(80) else function(h.ty, h.ty)
    a, x = h.named("a", h.ty), h.named("x", item)
    body = h(h.ty, a, x)
    if h.often(50):
        return f"fold (fun {a[0]} {h.parameter(x)} -> {body}) {h()} {h(array(item, h.writer.below(3) + 1))}"
    if h.often(40):
        return f"List.fold_right (fun {h.parameter(x)} {a[0]} -> {body}) {h(list_of(item))} {h()}"
    return f"List.fold (fun {a[0]} {h.parameter(x)} -> {body}) {h()} {h(list_of(item))}"


@rule(1, lambda h: h.ty == FLOAT)
def summed(h: Hole) -> str:
    ty = h.some_type()
    return f"sum_by {h(function(ty, FLOAT, h.scope.answer))} {h(list_of(ty))}"


@rule(3, ANY)
def functions_in_data(h: Hole) -> str:
    """Several closures kept together, one of which is called in the end."""
    item = function(h.writer.data_type(1), h.ty)
    first, second, i = h(item), h(item), h.index(2)
    match h.writer.below(4):
        case 0:
            return f"([{first}, {second}])[{i}] {h(item.args[0])}"
        case 1:
            pair = h.named("g", item), h.named("g", item)
            return f"let ({pair[0][0]}, {pair[1][0]}) = ({first}, {second}) in {h(h.ty, *pair)}"
        case 2:
            f, a = h.named("g", item), h.named("a", h.ty)
            body = f"{f[0]} {h(item.args[0], a)}"
            return f"List.fold (fun ({a[0]} : {h.ty}) ({f[0]} : {item}) -> {body}) {h()} [{first}; {second}]"
    g, chosen = h.fresh("g"), h(BOOL)
    return f"let {g} = (if {chosen} then Some {first} else None) in match {g} with None -> {h()} | Some f -> f " + h(
        item.args[0]
    )


@rule(4, ANY)
def recursion(h: Hole) -> str:
    """A function that calls itself, with fuel: last, or not."""
    go, n, x, y = h.fresh("go"), h.named("n", INT), h.named("x", h.ty), h.named("y", h.ty)
    start, last = h(), h(h.ty, n, x)
    again, count = f"{go} ({n[0]} - 1)", h.count()
    match h.writer.below(3):
        case 0:
            rest = f"{again} {h(h.ty, n, x)}"
        case 1:
            rest = f"let {y[0]} = {again} {x[0]} in {h(h.ty, n, x, y)}"
        case _:
            z = h.named("z", h.ty)
            both, count = h(h.ty, y, z), min(count, 3)
            rest = f"let {y[0]} = {again} {x[0]} in let {z[0]} = {go} ({n[0]} - 2) {y[0]} in {both}"
    body = f"if {n[0]} <= 0 then {last} else {rest}"
    return f"let rec {go} {n[0]} ({x[0]} : {h.ty}) : {h.ty} = {body} in {go} {count} {start}"


@rule(2, lambda h: h.ty == FLOAT)
def recursion_on_numbers(h: Hole) -> str:
    """On up to eight numbers, some of which stay as they are: it may return its slopes with its value."""
    go, n, y = h.fresh("go"), h.named("n", INT), h.named("y", FLOAT)
    params = [h.named("p", FLOAT) for _ in range(h.writer.below(8) + 1)]
    p, q = params[0][0], params[-1][0]
    guard = h.one("", "", f'(if {n[0]} = 1 then print ("~", {q})); ')
    if h.writer.features.risky and h.often(10):
        guard = f'if {p} > {h(FLOAT)} then error $"too large at {{{n[0]}}}" else '

    def again() -> str:
        return " ".join([go, f"({n[0]} - {h.one(1, 1, 2)})", *[moved(name) for name, _ in params]])

    def moved(name: str) -> str:
        return h.one(name, name, f"(0.8 * {name})", f"(0.5 * {name} + 0.3 * {q})", f"(sin {p})", "0.7")

    last, rest, z = h.apart(FLOAT, n, *params), h.apart(FLOAT, y, *params), h.named("z", FLOAT)
    if h.often(40):
        both = h.one(f"{y[0]} * {z[0]} + {q}", f"if {z[0]} > {y[0]} then {rest} else {z[0]}")
        rest = f"let {z[0]} = {again()} in {both}"
    body = f"if {n[0]} <= 0 then {last} else let {y[0]} = {again()} in {rest}"
    given = " ".join(f"({name} : float)" for name, _ in params)
    start = " ".join(h.one(h(), "0.4", "(-0.2)") for _ in params)
    return f"let rec {go} {n[0]} {given} : float = {guard}{body} in {go} {h.writer.below(4)} {start}"


@rule(2, ANY)
def mutual_recursion(h: Hole) -> str:
    """Two functions that call each other, of two types."""
    other = h.writer.data_type(1)
    f, g, n, x, y = h.fresh("go"), h.fresh("go"), h.named("n", INT), h.named("x", h.ty), h.named("y", other)
    start, there, back, last = h(), h(other, n, x), h(h.ty, n, y), h(h.ty, x)
    return (
        f"let rec {f} {n[0]} ({x[0]} : {h.ty}) : {h.ty} = if {n[0]} <= 0 then {last} else {g} ({n[0]} - 1) {there} "
        f"and {g} {n[0]} ({y[0]} : {other}) : {h.ty} = {f} ({n[0]} - 1) {back} in {f} {h.count()} {start}"
    )


@rule(1, ANY)
def built_by_recursion(h: Hole) -> str:
    """A tower of closures, as high as the fuel."""
    go, n, x, k = h.fresh("go"), h.named("n", INT), h.named("x", h.ty), h.named("k", function(h.ty, h.ty))
    start, inner = h(), h.apart(h.ty, n, x, k)
    step = f"{go} ({n[0]} - 1) (fun ({x[0]} : {h.ty}) -> {inner})"
    return (
        f"let rec {go} {n[0]} ({k[0]} : {k[1]}) : {k[1]} = if {n[0]} <= 0 then {k[0]} else {step} "
        f"in {go} {h.count()} {h(k[1])} {start}"
    )


@rule(2, ANY)
def applied_by_recursion(h: Hole) -> str:
    """A function without types, of functions: it calls itself with functions made of these."""
    outer, inner = h.fresh("many"), h.fresh("go")
    step = h.one("fun z -> f (g z)", "fun z -> g (f z)", "f", "g")
    argument = function(h.ty, h.ty, h.scope.answer)
    return (
        f"let {outer} f x = let rec {inner} g y n = if n <= 0 then g y else {inner} ({step}) (f y) (n - 1) in "
        f"{inner} f x {h.count()} in {outer} {h(argument)} ({outer} {h(argument)} {h()})"
    )


@rule(1, lambda h: not mentions(h.ty, "->") and not mentions(h.ty, "ref"))
def polymorphic(h: Hole) -> str:
    """One function at two types."""
    other: Ty = h.writer.data_type(1)
    pair = h.fresh("g")
    return f"let {pair} a b = if {h(BOOL)} then (a, b) else (a, b) in fst ({pair} {h()} (snd ({pair} 1 {h(other)})))"
