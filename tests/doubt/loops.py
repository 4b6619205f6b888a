"""Loops, which count or have fuel, and references: local, captured, in data, written in loops."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT, Ty, array, function, mentions, ref
from doubt.writer import Hole, rule

BOX = "box"
BOX_TYPE = "type box = { xs : float[?]; total : float }"
GROW = "let grow (b : box) x = { xs = b.xs ++ [x]; total = 0.5 * b.total + x }"
FRONT = "let grow_front (b : box) x = { xs = [x] ++ b.xs; total = 0.5 * b.total + x }"
SHRINK = """\
let rec shrink (b : box) =
  if length b.xs = 0 then b.total else b.xs[0] * tanh (shrink { b with xs = drop 1 b.xs }) + 0.1"""
HOLD = "let rec hold n a : box list = if n <= 0 then [] else { xs = a; total = float n } :: hold (n - 1) a"
HOLD_BY = """\
let rec hold_by n (a : float[?]) = if n <= 0 then [] else (fun x -> x * tanh a[n % length a]) :: hold_by (n - 1) a"""


def has_refs(h: Hole) -> bool:
    return h.writer.features.refs


def no_functions(h: Hole) -> bool:
    return h.writer.features.refs and not h.writer.reaches(h.ty, "->", "ref")


@rule(4, lambda _: True)
def counted(h: Hole) -> str:
    s, i = h.named("s", h.ty), h.named("i", INT)
    return f"loop {s[0]} = {h()} for {i[0]} < {h.count()} do {h(h.ty, s, i)}"


@rule(3, lambda _: True)
def conditional(h: Hole) -> str:
    """A state of several parts, one of which is fuel."""
    s, other, fuel, out = h.named("s", h.ty), h.named("s", h.some_type()), h.named("n", INT), h.fresh("o")
    start, other_start = h(), h(other[1])
    test = f"{fuel[0]} > 0" + (f" && {h.small(BOOL, s, other, fuel)}" if h.often(50) else "")
    state = f"({h(h.ty, s, other, fuel)}, {h(other[1], s, other, fuel)}, {fuel[0]} - 1)"
    return (
        f"let ({out}, _, _) = (loop ({s[0]}, {other[0]}, {fuel[0]}) = ({start}, {other_start}, {h.count()}) "
        f"while {test} do {state}) in {out}"
    )


@rule(2, lambda h: h.ty == FLOAT)
def forced(h: Hole) -> str:
    """Recurrences of many steps, in which elementary functions depend on the step alone, or on the state."""
    n = h.one(str(h.writer.below(12) + 6), "40", "513") if h.often(50) else f"({h.count()} + 8)"
    s, i = h.named("s", FLOAT), h.named("i", INT)
    alone = h.one(f"sin (0.3 * float {i[0]})", f"exp (-(0.1 * float {i[0]}))", f"tanh (float {i[0]} - 3.0)")
    push = h.one(alone, f"{h.apart(FLOAT, i)} * {alone}", f"sin ({alone} * {h.small(FLOAT, s)})", f"{alone} * {alone}")
    step = h.one(f"0.7 * {s[0]} + {push}", f"cos ({s[0]} + {push})", f"if {s[0]} > 0.2 then {push} else -{s[0]}")
    return f"(loop {s[0]} = {h()} for {i[0]} < {n} do {step})"


@rule(2, lambda h: h.ty == FLOAT)
def substituted(h: Hole) -> str:
    """Sums that grow with the loop around them, as in substitutions and factorisations."""
    n = h.one(str(h.writer.below(4) + 2), str(h.writer.below(14) + 12))
    of, a, y, i, k = (h.fresh(stem) for stem in "gayik")
    term = h.one(f"{a}[{i}, {k}] * {y}[{k}]", f"{y}[{k}] * {y}[{i} - 1 - {k}]", f"{a}[{k}, {i}] - {y}[{k}] / 1.5",
                 f"sin ({a}[{i}, {k}] * {y}[{k}])")  # fmt: skip
    more = h.one("", f" + {h.apart(FLOAT, (i, INT))}")
    step = f"{{ {y} with [{i}] = 0.3 * ({a}[{i}, 0] - sum [for {k} < {i} -> 0.2 * {term}]){more} }}"
    made = f"loop {y} = [for _ < {n} -> {h()}] for {i} < {n} do {step}"
    field = f"[for {i} < {n}, {k} < {n} -> sin (0.3 * float ({i} + 2 * {k})) * {h.apart(FLOAT, (i, INT))}]"
    return f"(let {of} ({a} : float[{n}, {n}]) = (let {y} = ({made}) in sum ({y} * {y})) in {of} {field})"


@rule(2, lambda h: h.ty == FLOAT)
def grown(h: Hole) -> str:
    """An array in a record, which grows in a loop, or in a function that is repeated."""
    b, i = h.named("b", Ty(BOX)), h.named("i", INT)
    start = f"({{ xs = {h(array(FLOAT, h.writer.below(3) + 1))}; total = {h()} }} : box)"
    of_box, grow = f"{b[0]}.total + tanh (sum {b[0]}.xs)", h.writer.one("grow", "grow_front")
    if h.often(50):
        made = f"iterate {h.count()} (fun ({b[0]} : box) -> {grow} {b[0]} (tanh ({of_box} + {h.apart(FLOAT)}))) {start}"
    else:
        step = f"{grow} {b[0]} (tanh ({of_box} * {h.apart(FLOAT, i)}))"
        made = f"loop {b[0]} = {start} for {i[0]} < {h.count()} do {step}"
    return f"(let {b[0]} = ({made}) in {of_box} + {b[0]}.xs[length {b[0]}.xs - 1])"


@rule(2, lambda h: h.ty == FLOAT)
def held(h: Hole) -> str:
    """An array that many records or functions hold, or that a recursion takes apart."""
    s, xs = h.fresh("s"), h(array(FLOAT, h.writer.below(3) + 1))
    match h.writer.below(3):
        case 0:
            step = f"fun {s} (b : box) -> {s} * tanh b.xs[0] + sum b.xs / b.total"
            return f"List.fold ({step}) {h()} (hold {h.count()} {xs})"
        case 1:
            return f"List.fold (fun {s} g -> tanh ({s} + g {s})) {h()} (hold_by {h.count()} {xs})"
        case _:
            return f"shrink ({{ xs = {xs}; total = {h()} }} : box)"


@rule(2, lambda h: h.ty == FLOAT)
def converging(h: Hole) -> str:
    """Until it no longer moves: how many steps depends on numbers, the result nearly not."""
    x, n, inside = h.fresh("x"), h.fresh("n"), h()
    return (
        f"fst (loop ({x}, {n}) = (0.5, 60) while {n} > 0 && abs ({x} - cos (0.4 * {x} + 0.3 * tanh {inside})) > 1e-13 "
        f"do (cos (0.4 * {x} + 0.3 * tanh {inside}), {n} - 1))"
    )


@rule(3, lambda h: h.ty == FLOAT)
def in_place(h: Hole) -> str:
    """Loops over a matrix that they write: at their own place, one beside it, or one again and again; all of it, a
    triangle, or where a condition holds."""
    n, m = h.writer.below(3) + 1, h.writer.below(3) + 1
    c = h.named("c", array(array(FLOAT, m), n))
    i, j, k, x = h.named("i", INT), h.named("j", INT), h.named("k", INT), h.named("x", FLOAT)
    start = h.one(f"fill {n} (zeros {m})", h(c[1]))
    there = h.one(f"{i[0]}, {j[0]}", f"{i[0]}, {j[0]}", f"({i[0]} + 1) % {n}, {j[0]}", f"{i[0]}, 0")
    written = f"{{ {c[0]} with [{there}] = {h.one(x[0], f'0.5 * {x[0]}')} + {h(FLOAT, i, j, x, *h.one([], [c]))} }}"
    step = f"let {x[0]} = {c[0]}[{there}] in {written}"
    if h.often(30):
        step = f"if {h.small(BOOL, i, j)} then ({step}) else {c[0]}"
    if h.often(40):
        step = f"loop {c[0]} = {c[0]} for {k[0]} < {h.count()} do ({step})"
    inner, outer = h.one(f"{m}", f"{m}", f"min {m} {i[0]}"), h.one(f"{n}", f"{n}", f"{n} - 1")
    row = f"loop {c[0]} = {c[0]} for {j[0]} < {inner} do ({step})"
    whole = f"{{ {c[0]} with [{i[0]}] = {h(c[1].args[0], i, c)} }}"
    row = h.one(row, row, row, whole)
    if h.often(70):
        made = f"loop {c[0]} = {start} for {i[0]} < {outer} do {row}"
    else:
        made = f"fst (loop ({c[0]}, {i[0]}) = ({start}, 0) while {i[0]} < {outer} do ({row}, {i[0]} + 1))"
    return f"(let {c[0]} = ({made}) in {h(FLOAT, c)} + sum (map sum {c[0]}))"


@rule(2, lambda h: h.ty == FLOAT)
def written_far(h: Hole) -> str:
    """Steps that read an element and write others, of which each step has another number: some, none, half of them."""
    n = h.writer.below(5) + 3
    y, i, j, t = (h.fresh(stem) for stem in "yijt")
    data = "[" + ", ".join(str(h.writer.below(9)) for _ in range(n)) + "]"
    places = f"{data}[{i}]"
    rest = f"{places} % ({i} + 1)"
    steps = h.one(f"({rest})", f"({rest})", f"({i} / 2)", f"(min {i} {places})", f"({n} - {rest})", i)
    to = h.one(j, j, j, f"{n} - 1 - {j}", f"(2 * {j}) % {n}", f"({i} + {j}) % {n}")
    step = f"loop {y} = {y} for {j} < {steps} do {{ {y} with [{to}] = {h.one('0.5', t)} * {y}[{to}] + {t} }}"
    read = h.one(f"{y}[{i}]", f"{y}[{i}]", f"{y}[{n} - 1 - {i}]", f"{y}[{i} / 2]")
    made = f"loop {y} = {h(array(FLOAT, n))} for {i} < {n} do (let {t} = {read} * sin {read} in {step})"
    return f"sum ({made})"


@rule(2, lambda h: h.ty == FLOAT)
def eliminated(h: Hole) -> str:
    """Rows of a matrix from which others are taken: complete ones, those that a later step writes, or the own one; and
    a vector that steps multiply by it, in sums that are written out."""
    n = h.writer.below(3) + 3
    a, v = h.named("a", array(array(FLOAT, n), n)), h.named("v", array(FLOAT, n))
    i, j, k = h.named("i", INT), h.named("j", INT), h.named("k", INT)
    to = h.one(f"{k[0]} + 1 + {i[0]}", f"{k[0]} + 1 + {i[0]}", f"{n} - 1 - {i[0]}")
    at = h.one(f"{k[0]}, {j[0]}", f"{k[0]}, {j[0]}", f"{k[0]} + 1, {j[0]}", f"{j[0]}, {k[0]}")
    taken = f"{a[0]}[{to}, {j[0]}] - 0.3 * {a[0]}[{at}] * tanh ({a[0]}[{k[0]}, {k[0]}] + {h(FLOAT, i, j, k)})"
    row = f"loop {a[0]} = {a[0]} for {j[0]} < {n} do {{ {a[0]} with [{to}, {j[0]}] = {taken} }}"
    rows = f"loop {a[0]} = {a[0]} for {i[0]} < {n} - 1 - {k[0]} do {row}"
    made = f"loop {a[0]} = {h(a[1])} for {k[0]} < {n} - 1 do {rows}"
    read = h.one(f"{a[0]}[{i[0]}, {j[0]}]", f"{a[0]}[{j[0]}, {i[0]}]")
    total = f"sum [for {j[0]} < {n} -> {read} * {v[0]}[{j[0]}]] + {h(FLOAT, i, k)}"
    step = f"[for {i[0]} < {n} -> {h.one('sin', 'tanh', '0.2 *')} ({total})]"
    return f"(let {a[0]} = ({made}) in sum (loop {v[0]} = {a[0]}[{n} - 1] for {k[0]} < {h.count()} + 8 do {step}))"


@rule(1, lambda h: h.ty == FLOAT)
def chosen_products(h: Hole) -> str:
    """A vector is multiplied by one after the other of several small matrices, which data choose, in sums that are
    written out: reverse mode adds to rows of the matrix, and sums for the vector."""
    n, m = h.writer.below(5) + 3, h.writer.below(2) + 2
    a, v = h.named("a", array(array(FLOAT, n), n)), h.named("v", array(FLOAT, n))
    i, j, k, ms, at = h.named("i", INT), h.named("j", INT), h.named("k", INT), h.fresh("m"), h.fresh("c")
    chosen = "[" + ", ".join(str(h.writer.below(m)) for _ in range(3)) + "]"
    read = h.one(f"{i[0]}, {j[0]}", f"{j[0]}, {i[0]}")
    term = f"{v[0]}[{i[0]}] * {ms}[{at}[{k[0]} % 3], {read}] * {h.one('1.0', '0.3', h.small(FLOAT, i, j, k))}"
    total = f"sum [for {i[0]} < {n} -> {h.one(term, term, f'sin ({term})')}]"
    step = f"[for {j[0]} < {n} -> {h.one(total, total, f'tanh ({total})')}]"
    made = f"loop {v[0]} = {h(v[1])} for {k[0]} < {h.count()} + 9 do {step}"
    matrices = f"[for {k[0]} < {m} -> (1.0 + 0.1 * float {k[0]}) * {a[0]}]"
    inner = f"let {at} = {chosen} in let {ms} = {matrices} in sum ({made})"
    return f"(let {a[0]} = [for {i[0]} < {n} -> tanh {h(a[1])}[{i[0]}]] in {inner})"


@rule(4, no_functions)
def local_reference(h: Hole) -> str:
    """Made, written, read."""
    q = h.named("q", ref(h.ty))
    return f"let {q[0]} = ref {h()} in {q[0]} := {h(h.ty, q)}; {h(h.ty, q)}"


@rule(5, lambda h: has_refs(h) and any(var.ty.name == "ref" for var in h.scope.vars))
def assigned(h: Hole) -> str:
    """A reference in scope gets another content, before the rest."""
    q = h.one(*(var for var in reversed(h.scope.vars) if var.ty.name == "ref"))
    value = h(q.ty.args[0])
    match h.writer.below(4):
        case 0:
            return f"(if {h(BOOL)} then {q.name} := {value}); {h()}"
        case 1:
            i = h.fresh("_i")
            return f"(loop () = () for {i} < {h.count()} do {q.name} := {value}); {h()}"
        case _:
            return f"{q.name} := {value}; {h()}"


@rule(4, has_refs)
def captured_reference(h: Hole) -> str:
    """By a function that writes it, and says what was in it."""
    content, argument = h.writer.data_type(1), h.writer.data_type(1)
    q, p = h.named("q", ref(content)), h.named("p", argument)
    bump = h.named("g", function(argument, content))
    start, new, old = h(content), h.apart(content, q, p), h.fresh("v")
    body = f"let {old} = !{q[0]} in {q[0]} := {new}; {h.one(old, '!' + q[0])}"
    return f"let {q[0]} = ref {start} in let {bump[0]} {h.parameter(p)} = {body} in {h(h.ty, q, bump)}"


@rule(3, no_functions)
def accumulated_reference(h: Hole) -> str:
    """Written by each step of a loop, read after it."""
    q, i = h.named("q", ref(h.ty)), h.named("i", INT)
    start, new = h(), h(h.ty, q, i)
    return f"let {q[0]} = ref {start} in (loop () = () for {i[0]} < {h.count()} do {q[0]} := {new}); !{q[0]}"


@rule(2, lambda h: has_refs(h) and h.ty == FLOAT)
def updated_reference(h: Hole) -> str:
    """An array in a reference, of which single elements are written and read."""
    n = h.writer.below(3) + 1
    v = array(FLOAT, n)
    q, i, x = h.named("q", ref(v)), h.named("i", INT), h.named("x", FLOAT)
    start, to = h(v), f"({i[0]} + {h.writer.below(3)}) % {n}"
    step = f"let {x[0]} = (!{q[0]})[{i[0]} % {n}] in {q[0]} := {{ !{q[0]} with [{to}] = {h(FLOAT, q, i, x)} }}"
    return (
        f"let {q[0]} = ref {start} in (loop () = () for {i[0]} < {h.count()} do ({step})); {h(FLOAT, q)} + sum !{q[0]}"
    )


@rule(2, lambda h: has_refs(h) and not mentions(h.ty, "ref"))
def references_in_data(h: Hole) -> str:
    """Several references, of which it is found when it runs which is meant; two may be the same."""
    content = FLOAT if h.often(60) else h.writer.data_type(1)
    a, b, c = (h.named("q", ref(content)) for _ in range(3))
    first, second = h(content), h(content)
    other = a[0] if h.often(30) else f"ref {second}"
    chosen = f"let {c[0]} = if {h(BOOL)} then {a[0]} else {b[0]} in {c[0]} := {h(content, a, b, c)};"
    return f"let ({a[0]}, {b[0]}) = (let r = ref {first} in (r, {other.replace(a[0], 'r')})) in {chosen} " + h(
        h.ty, a, b, c
    )
