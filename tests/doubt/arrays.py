"""Arrays: comprehensions, map, scan, slices, updates, products, and what makes a number of one."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT, array, list_of, mentions, rank, tuple_of
from doubt.writer import Hole, rule


def is_array(h: Hole) -> bool:
    return h.ty.name == "[]"


def is_vector(h: Hole) -> bool:
    return rank(h.ty) == 1


def is_matrix(h: Hole) -> bool:
    return rank(h.ty) == 2


def short(h: Hole) -> int:
    return h.writer.below(3) + 1


# ---- from arrays to numbers ----


@rule(6, lambda h: h.ty == FLOAT)
def reduced(h: Hole) -> str:
    v = array(FLOAT, 19 if h.often(3) else short(h))
    match h.writer.below(8):
        case 0 | 1:
            return f"{h.one('sum', 'mean', 'prod')} {h(v)}"
        case 2:
            return f"{h.one('norm', 'maximum', 'minimum', 'logsumexp', 'var', 'std')} {h(v)}"
        case 3:
            return f"dot {h(v)} {h(v)}"
        case 4:
            return f"{h(v)}[{h.index(v.size)}]"
        case 5:
            return f"sum ({h(array(v, short(h)))} @ {h(v)})"
        case 6:
            matrix = array(v, short(h))
            return f"{h(matrix)}[{h.index(matrix.size)}, {h.index(v.size)}]"
    deep = array(array(v, 2), short(h))
    return f"sum (sum (sum {h(deep)}))"


@rule(2, lambda h: h.ty == FLOAT)
def reduced_by_function(h: Hole) -> str:
    v = array(FLOAT, short(h))
    x, y = h.named("a", FLOAT), h.named("x", FLOAT)
    match h.writer.below(5):
        case 0:
            operator, start = h.one(("+", "0.0"), ("*", "1.0"))
            return f"reduce (fun {x[0]} {y[0]} -> {x[0]} {operator} {y[0]}) {start} {h(v)}"
        case 1:  # associative, with neutral element 0
            return f"reduce (fun {x[0]} {y[0]} -> {x[0]} + {y[0]} + 0.3 * {x[0]} * {y[0]}) 0.0 {h(v)}"
        case 2:
            return f"sum (filter (fun {x[0]} -> {h.apart(BOOL, x)}) {h(v)})"
        case 3:  # affine functions, one after the other
            pairs = h(array(tuple_of(FLOAT, FLOAT), v.size))
            compose = "(fun (a, b) (c, d) -> (a * c, b * c + d)) (1.0, 0.0)"
            return h.one(f"snd (reduce {compose} {pairs})", f"sum (map snd (scan {compose} {pairs}))")
    return f"reduce (fun {x[0]} {y[0]} -> max {x[0]} {y[0]}) (-9.0) {h(v)}"


@rule(3, lambda h: h.ty in (FLOAT, INT))
def chosen(h: Hole) -> str:
    """Of what a condition keeps, in a comprehension, and of how much that is."""
    item = h.writer.data_type(1)
    x, i, n = h.named("x", item), h.named("i", INT), short(h)
    xs = h(array(item, n))
    if h.ty == INT:
        return f"length [for {x[0]} in {xs} when {h.apart(BOOL, x)} -> {h.apart(item, x)}]"
    match h.writer.below(4):
        case 0:
            return f"sum [for {i[0]} < {n} when {h.apart(BOOL, i)} -> {h.apart(FLOAT, i)}]"
        case 1:
            inner = f"sum [for {x[0]} in {xs} when {h.apart(BOOL, i, x)} -> {h.apart(FLOAT, i, x)}]"
            return f"sum [for {i[0]} < {n} -> {inner}]"
        case 2:
            a = h.named("a", FLOAT)
            kept = f"[for {x[0]} in {xs} when {h.apart(BOOL, x)} -> {h.apart(item, x)}]"
            return f"fold (fun {a[0]} {h.parameter(x)} -> {h(FLOAT, a, x)}) {h()} {kept}"
    return f"sum [for {x[0]} in {xs} when {h.apart(BOOL, x)} -> {h.apart(FLOAT, x)}]"


@rule(1, lambda h: h.ty in (BOOL, FLOAT))
def of_two_lengths(h: Hole) -> str:
    """Of two arrays whose lengths are known when the program runs.  Now and then they do not fit, and only the lengths
    of what is made of them are needed."""
    x, a, b = h.named("x", FLOAT), h.fresh("a"), h.fresh("b")
    kept = f"[for {x[0]} in {h(array(FLOAT, short(h)))} when {h.apart(BOOL, x)} -> {h.apart(FLOAT, x)}]"
    head = f"let {a} = {kept} in let {b} = filter (fun {x[0]} -> {h.apart(BOOL, x)}) {h(array(FLOAT, short(h)))} in"
    if h.ty == BOOL:
        return f"({head} {a} {h.one('=', '<>')} {b})"
    used = h.one(f"dot {a} {b}", f"sum ([{a}] @ {b})", f"float (length [dot {a} {b}])", f"float (length ([{a}] @ {b}))")
    return f"({head} {used if h.often(10) else f'if length {a} = length {b} then {used} else {h()}'})"


@rule(2, lambda h: h.ty == FLOAT)
def nest(h: Hole) -> str:
    """A sum over pairs of rows.  Branches leave some out, and protect reads from loops that are too long."""
    n, m = 8 + h.writer.below(3), 8 + h.writer.below(3)
    rows, weights = array(array(FLOAT, 2), n), array(FLOAT, m)
    a, w, i, j = h.named("a", rows), h.named("w", weights), h.named("i", INT), h.named("j", INT)
    (k, column), far = (h.one("0", "1", f"{h.apart(INT)} % 2") for _ in range(2)), m + h.writer.below(2)
    inside = [f"{j[0]} < {n}", f"{j[0]} < {m}", h.one(f"{i[0]} <> {j[0]}", f"{i[0]} > {j[0]}", h.apart(BOOL, i, j))]
    read = f"{w[0]}[{j[0]}] {h.one('*', '-')} tanh ({a[0]}[{i[0]}, {k}] - {a[0]}[{j[0]}, {column}])"
    point = f"if {' && '.join(inside)} then {read} * {h.apart(FLOAT, i, j)} else {h.apart(FLOAT, i, j)}"
    total = f"sum [for {i[0]} < {n} -> sum [for {j[0]} < {far} -> {point}]]"
    return f"(let ({a[0]}, {w[0]}) = ({h(rows)}, {h(weights)}) in {total})"


@rule(1, lambda h: h.ty == FLOAT)
def patterned_rows(h: Hole) -> str:
    """A matrix for each row of another one: numbers, elements of that row, and constants; rows of its elements.  Some
    is read.  The loops are so long that they stay."""
    n, d, below = 9 + h.writer.below(2), 2, h.writer.below
    rows = array(array(FLOAT, d), n)
    m, i, r, j = h.named("m", rows), h.named("i", INT), h.named("r", INT), h.named("j", INT)
    c, t, u = h.fresh("c"), h.fresh("t"), h.fresh("u")
    other = f"if {c} < {r[0]} then {m[0]}[{i[0]}, {below(d)}] else {h.one('0.0', '1.0', f'float {i[0]}')}"
    element = f"if {r[0]} = {c} then {h.apart(FLOAT, i, r)} else {other}"
    made = f"[for {i[0]} < {n} -> [for {r[0]} < {d} -> [for {c} < {d} -> {element}]]]"
    of_it = [f"{t}[{j[0]}, {below(d)}, {below(d)}]" for _ in range(3)]
    again = f"[for {j[0]} < {n} -> [{of_it[0]}, 0.5, {h.apart(FLOAT, j)} * {of_it[1]}]]"
    read = h.one(of_it[2], f"{u}[{j[0]}, {below(3)}]")
    total = f"sum [for {j[0]} < {n - below(2)} -> {read} + {h.apart(FLOAT, j)} * {u}[{j[0]}, {below(3)}]]"
    total += f" + {t}[{below(n)}, 0, {below(d)}]"
    return f"(let {m[0]} = {h(rows)} in let {t} = {made} in let {u} = {again} in {total})"


@rule(1, lambda h: h.ty == FLOAT)
def of_unknown_types(h: Hole) -> str:
    """A function without annotations: the type of its value follows from those of its arguments.  The value is read in
    a branch inside of loops, or by a function that is called there."""
    f, w, x, v, r, i, j, y = (h.fresh(name) for name in ("f", "w", "x", "v", "r", "i", "j", "y"))
    k, n = 1 + h.writer.below(3), 1 + h.writer.below(4)
    rows = f"[for {r} in {x} -> {w} @ {r}]"
    if h.writer.below(2):
        read = f"dot {v}[{i}] {v}[{j}]"
    else:
        rows = f"(let {y} = 0.5 * {w} in fun {r} -> [for {j} in {r} -> {y} @ {j}])"
        read = f"sum (map sum ({v} [{x}[{i}], {x}[{j}]]))"
    count, other = f"length {x}", h.one("0.5", f"{x}[{i}, 0]")
    total = f"sum [for {i} < {count} -> sum [for {j} < {count} -> if {j} <= {i} then {read} else {other}]]"
    given = f"{h(array(array(FLOAT, k), 2))} {h(array(array(FLOAT, k), n))}"
    return f"(let {f} {w} {x} = let {v} = {rows} in {total} in {f} {given})"


@rule(1, lambda h: h.ty in (FLOAT, array(FLOAT, 2)))
def of_a_regular_matrix(h: Hole) -> str:
    u = h.fresh("u")
    matrix = f"(let {u} = tanh {h(array(FLOAT, 2))} in outer {u} {u} + [[1.5, 0.2], [-0.1, 2.0]])"
    if h.ty == FLOAT:
        return f"Linalg.{h.one('det', 'logdet')} {matrix}"
    return f"Linalg.solve {matrix} {h()}"


# ---- arrays of anything ----


@rule(3, is_array)
def written_out(h: Hole) -> str:
    if h.ty.size > 4:
        return comprehension(h)
    return f"[{', '.join(h(h.ty.args[0]) for _ in range(h.ty.size))}]"


@rule(5, is_array)
def comprehension(h: Hole) -> str:
    i = h.named("i", INT)
    return f"[for {i[0]} < {h.ty.size} -> {h.apart(h.ty.args[0], i)}]"


@rule(3, lambda h: h.ty.name == "[]" and h.ty.args[0] == FLOAT)
def windows(h: Hole) -> str:
    """Sums at each place: over windows, and over rows or columns.  Some are so long that they stay loops."""
    n, k = h.ty.size, 17 if h.often(3) else short(h)
    (i, _), (u, _) = h.named("i", INT), h.named("u", INT)
    (x, _), (w, _) = h.named("x", FLOAT), h.named("w", FLOAT)
    at = h.one(f"{i} + {u}", f"{i} + {u}", f"{u} + {n - 1} - {i}", f"2 * {i} + {u}")
    length = 2 * n + k if at.startswith("2") else n + k - 1
    match h.writer.below(3):
        case 0 | 1:
            inputs = f"({h(array(FLOAT, length))}, {h(array(FLOAT, k))})"
            term = f"{w}[{u}] * {x}[{at}]"
        case _:
            a, b = h.one((n, k), (k, n))
            inputs = f"({h(array(array(FLOAT, b), a))}, {h(array(FLOAT, k))})"
            term = f"{x}[{f'{i}, {u}' if a == n else f'{u}, {i}'}] * {w}[{u}]"
    return f"(let ({x}, {w}) = {inputs} in [for {i} < {n} -> sum [for {u} < {k} -> {term}]])"


@rule(1, lambda h: h.ty == FLOAT)
def windows_as_rows(h: Hole) -> str:
    """Some rows of an array for each place: neighbours, which lie one after the other, or not."""
    n, k, w = h.writer.below(3) + 1, h.writer.below(4) + 1, h.writer.below(3) + 1
    (i, _), (v, _), x, b = h.named("i", INT), h.named("v", INT), h.fresh("x"), h.fresh("b")
    at = h.one(f"{i} + {v}", f"{v} + {i}", f"{k} * {i} + {v}", f"{i} + 2 * {v}", f"{v}")
    rows = h(array(array(FLOAT, w), n * k + n + 2 * k))
    some = f"sum [for r in {b} -> sum r[{k - 1}]]"
    used = h.one(f"sum (flatten (flatten {b}))", f"sum (flatten (sum ({b} * {b})))", some)
    return f"(let {x} = {rows} in let {b} = [for {i} < {n} -> [for {v} < {k} -> {x}[{at}]]] in {used})"


@rule(1, is_array)
def every_other(h: Hole) -> str:
    (item,), n = h.ty.args, h.ty.size
    i = h.named("i", INT)
    return f"([for {i[0]} < {2 * n} when {i[0]} % 2 = {h.writer.below(2)} -> {h.apart(item, i)}] :> {h.ty})"


@rule(5, is_array)
def mapped(h: Hole) -> str:
    (item,), n = h.ty.args, h.ty.size
    x, i = h.named("x", h.writer.data_type(1)), h.named("i", INT)
    match h.writer.below(6):
        case 0 | 1:
            return f"map (fun {h.parameter(x)} -> {h.apart(item, x)}) {h(array(x[1], n))}"
        case 2:
            return f"[for {x[0]} in {h(array(x[1], n))} -> {h.apart(item, x)}]"
        case 3:
            return f"mapi (fun {i[0]} {h.parameter(x)} -> {h.apart(item, i, x)}) {h(array(x[1], n))}"
        case 4:
            y = h.named("y", item)
            body = h.apart(item, x, y)
            return f"map2 (fun {h.parameter(x)} {h.parameter(y)} -> {body}) {h(array(x[1], n))} {h()}"
    return f"tabulate {n} (fun {i[0]} -> {h.apart(item, i)}) :> {h.ty}"


@rule(4, is_array)
def rearranged(h: Hole) -> str:
    (item,), n = h.ty.args, h.ty.size
    x, y = h.named("x", item), h.named("y", item)
    match h.writer.below(9):
        case 0:
            return f"reverse {h()}"
        case 1:
            return f"fill {n} {h(item)}"
        case 2:
            return f"{h(array(item, n + 2))}[1:{n + 1}]"
        case 3 if n > 1:
            k = h.writer.below(n - 1) + 1
            return f"{h(array(item, k))} ++ {h(array(item, n - k))}"
        case 4:
            return f"scan (fun {x[0]} {y[0]} -> {y[0]}) {h(item)} {h()}"
        case 5:
            return f"gather {h(array(item, 3))} (map (fun {x[0]} -> {x[0]} % 3) {h(array(INT, n))})"
        case 6:
            return f"scatter {h()} [{h.index(n)}, {n - 1}] {h(array(item, 2))}"
        case 7:
            return f"[for {x[0]} in zip {h()} {h()} -> {h.one('fst', 'snd')} {x[0]}]"
    return f"map {h.one('fst', 'snd')} (zip {h()} {h()})"


@rule(1, is_array)
def looked_up(h: Hole) -> str:
    """Elements at places that data tell, some of which are refused; now and then a place is far away."""
    n, p, xs = h.ty.size, h.named("p", INT), h.named("xs", h.ty)
    far = n if h.writer.below(12) else n + 10**9
    refused = f'if {p[0]} = {h.one("77", "-5", "3 - 90")} then error $"{{{p[0]}}} is refused" else ()'
    body = f"let () = {refused} in {xs[0]}[{p[0]} % {far}]"
    return f"(let {xs[0]} = {h()} in [for {p[0]} in {h(array(INT, n))} -> {body}])"


@rule(3, is_array)
def updated(h: Hole) -> str:
    return f"{{ {h()} with [{h.index(h.ty.size)}] = {h(h.ty.args[0])} }}"


@rule(2, is_array)
def updated_in_a_loop(h: Hole) -> str:
    """Filled by a loop that reads what it writes."""
    (item,), n = h.ty.args, h.ty.size
    a, i, z = h.named("a", h.ty), h.named("i", INT), h.named("z", item)
    body = h(item, a, i, z)
    to = f"({i[0]} + {h.writer.below(3)}) % {n}"
    return (
        f"loop {a[0]} = {h()} for {i[0]} < {h.count()} do "
        f"let {z[0]} = {a[0]}[{i[0]} % {n}] in {{ {a[0]} with [{to}] = {body} }}"
    )


# ---- arrays of floats ----


@rule(6, lambda h: rank(h.ty) > 0)
def elementwise(h: Hole) -> str:
    match h.writer.below(5):
        case 0:
            return f"{h.one('sin', 'tanh', '-', 'damp', 'relu', 'square')} {h()}"
        case 1 | 2:
            return f"{h()} {h.one('+', '*', '-')} {h()}"
        case 3:
            lower = h.one(FLOAT, h.ty.args[0])
            return f"{h(lower)} {h.one('*', '+', '-')} {h()}"
    return f"{h.one('max', 'min', 'hypot')} {h()} {h.one(h, lambda: h(FLOAT))()}"


@rule(5, is_vector)
def vector(h: Hole) -> str:
    n, k = h.ty.size, short(h)
    match h.writer.below(9):
        case 0:
            return f"{h(array(array(FLOAT, k), n))} @ {h(array(FLOAT, k))}"
        case 1:
            return f"{h(array(FLOAT, k))} @ {h(array(array(FLOAT, n), k))}"
        case 2:
            return f"{h.one('sum', 'mean', 'maximum', 'prod')} {h(array(h.ty, k))}"
        case 3:
            return f"{h.one('softmax', 'log_softmax', 'cumsum', 'cumprod')} {h()}"
        case 4:
            return f"sort {h()}"
        case 5:
            return f"{h(array(array(FLOAT, k), n))}[:, {h.index(k)}]"
        case 6:
            if h.often(70):
                return f"scatter_add {h()} [{h.index(n)}, {n - 1}] {h(array(FLOAT, 2))}"
            i = h.named("i", INT)  # so many that a device does it, which adds in groups
            if h.often(30):
                s = h.fresh("s")  # which is read while it is added to
                return f"(let {s} = {h()} in scatter_add {s} [for {i[0]} < {n} -> ({i[0]} * {i[0]} + 1) % {n}] {s})"
            return f"scatter_add {h()} [for {i[0]} < 40 -> ({i[0]} * {i[0]} + 1) % {n}] {h(array(FLOAT, 40))}"
        case 7:
            x, y = h.fresh("a"), h.fresh("x")
            return f"scan (fun {x} {y} -> {x} + {y} + 0.3 * {x} * {y}) 0.0 {h()}"
    return f"gather {h(array(FLOAT, k))} [for {h.fresh('_i')} < {n} -> {h.index(k)}]"


@rule(5, is_matrix)
def matrix(h: Hole) -> str:
    n, (row,) = h.ty.size, h.ty.args
    m, k = row.size, short(h)
    match h.writer.below(5):
        case 0:
            return f"{h(array(array(FLOAT, k), n))} @ {h(array(array(FLOAT, m), k))}"
        case 1:
            return f"transpose {h(array(array(FLOAT, n), m))}"
        case 2:
            return f"outer {h(array(FLOAT, n))} {h(row)}"
        case 3:
            return f"{{ {h()} with [{h.index(n)}, {h.index(m)}] = {h(FLOAT)} }}"
    i, j = h.named("i", INT), h.named("j", INT)
    return f"[for {i[0]} < {n}, {j[0]} < {m} -> {h.apart(FLOAT, i, j)}]"


@rule(1, lambda h: is_array(h) and not mentions(h.ty, "->"))
def from_list(h: Hole) -> str:
    (item,), n = h.ty.args, h.ty.size
    first = " :: ".join(h(item) for _ in range(n))
    return f"(List.to_array ({first} :: {h(list_of(item))}))[0:{n}] :> {h.ty}"
