"""What works at every type: choices, names, calls, taking apart, effects that can be seen."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT, STRING, Ty, array, function, list_of, mentions, option, ref, tuple_of
from doubt.writer import Hole, rule

ANY = lambda _: True  # noqa: E731


@rule(3, ANY)
def choice(h: Hole) -> str:
    return f"if {h(BOOL)} then {h()} else {h()}"


@rule(1, ANY)
def asked_again(h: Hole) -> str:
    """Branches on one condition that follow each other; the second one may use what the first gives."""
    c, v = h.named("c", BOOL), h.named("v", h.some_type())
    first = f"let {v[0]} = if {c[0]} then {h(v[1])} else {h(v[1])} in"
    return f"let {c[0]} = {h(BOOL)} in {first} if {c[0]} then {h(h.ty, v)} else {h(h.ty, v)}"


@rule(4, ANY)
def let(h: Hole) -> str:
    var = h.named("v", h.some_type())
    return f"let {var[0]} = {h(var[1])} in {h(h.ty, var)}"


@rule(5, ANY)
def taken_apart(h: Hole) -> str:
    """Some data made, or found, and matched."""
    w = h.writer
    open_to = {"*", "list", "option", "[]", "ref", *w.declared}
    found = [var.ty for var in reversed(h.scope.vars) if var.ty.name in open_to]
    return match(h, w.one(*found) if found and not w.often(40) else w.any_type())


@rule(1, ANY)
def alternatives(h: Hole) -> str:
    """An or-pattern that tests now one part of a pair and now the other, perhaps so often that its tree is divided."""
    w, y = h.writer, h.named("y", INT)
    tests = " | ".join(f"({i}, {y[0]}) | ({y[0]}, {i})" for i in range(w.one(1, 2, 12)))
    if h.often(25):  # beside each other: all pairs of them, or a test for each
        nine = " | ".join(map(str, range(9)))
        tests = f"(({nine}), ({nine}) as {y[0]}) | (0 | 9, {y[0]})"
    guard = f" when {h(BOOL, y)}" if h.often(70) else ""
    return f"match ({h(INT)}, {h(INT)}) with {tests}{guard} -> {h(h.ty, y)} | _ -> {h()}"


def match(h: Hole, ty: Ty) -> str:
    """A value of type `ty`, in parts."""
    w, value = h.writer, h(ty)
    match ty.name:
        case "*":
            names = [h.named("v", item) for item in ty.args]
            return f"let ({', '.join(n for n, _ in names)}) = {value} in {h(h.ty, *names)}"
        case "list":
            x, rest = h.named("x", ty.args[0]), h.named("t", ty)
            if h.often(20):
                return f"match {value} with {x[0]} :: _ -> {h(h.ty, x)} | _ -> {h()}"
            return f"match {value} with [] -> {h()} | {x[0]} :: {rest[0]} -> {h(h.ty, x, rest)}"
        case "option":
            x = h.named("x", ty.args[0])
            if h.often(30):
                return f"match {value} with Some {x[0]} when {h(BOOL, x)} -> {h(h.ty, x)} | _ -> {h()}"
            return f"match {value} with None -> {h()} | Some {x[0]} -> {h(h.ty, x)}"
        case "[]" if ty.size < 4:
            names = [h.named("v", ty.args[0]) for _ in range(ty.size)]
            return f"let [{', '.join(n for n, _ in names)}] = {value} in {h(h.ty, *names)}"
        case "ref":
            x = h.named("v", ty.args[0])
            return f"let {x[0]} = !{value} in {h(h.ty, x)}"
        case _ if w.is_record(ty):
            names = [h.named("v", item) for _, item in w.parts(ty) if item]
            fields = "; ".join(f"{field} = {name}" for (field, _), (name, _) in zip(w.parts(ty), names))
            return f"let {{ {fields} }} = {value} in {h(h.ty, *names)}"
        case _ if w.is_data(ty):
            return f"match {value} with {' | '.join(arm(h, name, inside) for name, inside in w.parts(ty))}"
    x = h.named("v", ty)
    return f"let {x[0]} = {value} in {h(h.ty, x)}"


def arm(h: Hole, constructor: str, inside: Ty | None) -> str:
    if inside is None:
        return f"{constructor} -> {h()}"
    if inside.name == "*":
        names = [h.named("v", item) for item in inside.args]
        return f"{constructor} ({', '.join(n for n, _ in names)}) -> {h(h.ty, *names)}"
    x = h.named("v", inside)
    return f"{constructor} {x[0]} -> {h(h.ty, x)}"


@rule(2, lambda h: bool(h.scope.vars))
def field_or_content(h: Hole) -> str:
    """A field of a record, or what a reference holds."""
    w = h.writer
    fields = [
        f"{var.name}.{field}"
        for var in h.scope.vars
        if w.is_record(var.ty)
        for field, item in w.parts(var.ty)
        if item == h.ty
    ]
    contents = [f"!{name}" for name in h.scope.of(ref(h.ty))] if not mentions(h.ty, "->") else []
    return h.one(*fields, *contents) if fields or contents else h()


@rule(2, ANY)
def projected(h: Hole) -> str:
    other = h.some_type()
    pick = h.writer.below(3)
    if pick == 0:
        return f"fst ({h()}, {h(other)})"
    return f"snd (swap ({h()}, {h(other)}))" if pick == 1 else f"choose {h(BOOL)} {h()} {h()}"


@rule(2, ANY)
def element(h: Hole) -> str:
    if mentions(h.ty, "ref"):
        return h()
    n = h.writer.below(3) + 1
    return f"{h(array(h.ty, n))}[{h.index(n)}]"


@rule(3, lambda h: any(var.ty.name == "->" and var.ty.args[1] == h.ty for var in h.scope.vars))
def call_of_known(h: Hole) -> str:
    callable_here = [
        var
        for var in reversed(h.scope.vars)
        if var.ty.name == "->" and var.ty.args[1] == h.ty and var.ty.answer in (None, h.scope.answer)
    ]
    if not callable_here:
        return h()
    var = h.one(*callable_here)
    return f"{var.name} {h(var.ty.args[0])}"


@rule(1, ANY)
def seen(h: Hole) -> str:
    """What can be seen to happen, in the order in which it happens; in risky programs also what ends them."""
    what = h.writer.below(5 if h.writer.features.risky else 3)
    match what:
        case 0:
            first = f'print ("~", {h(h.writer.data_type(1))})'
        case 1:
            first = f"let {h.fresh('_u')} = {h(h.some_type())} in ()"
        case 2:
            first = f'print ("~", {h(h.some_type())})'
        case 3:
            first = f"assert {h(BOOL)}"
        case _:
            first = f"if {h(BOOL)} then error {h(STRING)}"
    return f"({first}); {h()}"


@rule(1, lambda h: h.ty == STRING)
def text(h: Hole) -> str:
    match h.writer.below(3):
        case 0:
            return f"show {h(h.some_type())}"
        case 1:
            return f"{h()} ++ {h()}"
    return f'$"<{{{h(INT)}}}|{{{h()}}}|{{{h(FLOAT)}:.3f}}>"'


@rule(1, lambda h: h.ty == STRING)
def formatted(h: Hole) -> str:
    """Numbers by a format, inside of data too, and texts."""
    form = h.one("5", "05", "<4", "^7", "*>6", "+", " d", "x", "#b", "_", ",", ".1f", "+.2e", "08.1f", "%")
    ty = h.one(INT, array(INT, 2), option(INT), tuple_of(INT, STRING, INT), list_of(tuple_of(INT, BOOL)))
    text = f"{{({h()}):{h.one('8', '>6', '^5.2', '-<9', '.1')}}}"
    return f'$"{text}|{{({h(ty)}):{form}}}"'


@rule(6, lambda h: h.ty.name == "->")
def abstraction(h: Hole) -> str:
    var = h.named("p", h.ty.args[0])
    answer = h.ty.answer
    body = h.delimited(answer)(h.ty.args[1], var) if answer else h.apart(h.ty.args[1], var)
    return f"fun {h.parameter(var)} -> {body}"


@rule(3, lambda h: h.ty.name == "->" and h.ty.answer is None)
def composed(h: Hole) -> str:
    """A function made of functions, at times one that is not applied in full."""
    a, b = h.ty.args
    match h.writer.below(4):
        case 0:
            middle = h.writer.data_type(1)
            return f"compose {h(function(middle, b))} {h(function(a, middle))}"
        case 1 if a == b:
            return f"{h.one('twice', 'iterate 2', 'repeat 2')} {h()}"
        case 2:
            first = h.some_type()
            x, y = h.named("p", first), h.named("p", a)
            return f"(fun {h.parameter(x)} {h.parameter(y)} -> {h.apart(b, x, y)}) {h(first)}"
    return f"choose {h(BOOL)} {h()} {h()}"
