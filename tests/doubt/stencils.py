"""Loops over arrays with borders, masks, columns and places: what becomes parallel loops in gradients."""

from __future__ import annotations

from collections.abc import Callable

from doubt.arrays import is_matrix, is_vector
from doubt.scopes import BOOL, FLOAT, INT, array
from doubt.writer import Hole, rule

MARK = """\
type mark = Leaf of float | Pair of (mark * mark) | Chain of (float * mark) | Cells of float[?] | Far of mark list
let rec weigh t =
  match t with
  | Leaf x -> x
  | Pair (a, b) -> let x = weigh a in x * weigh b - 0.1 * x
  | Chain (x, rest) -> sin x * weigh rest
  | Cells xs -> sum xs
  | Far all -> List.fold (fun a t -> a + weigh t) 0.3 all"""
PAIRS = "let rec mark_pairs n x = if n <= 0 then Leaf x else Pair (mark_pairs (n - 1) (sin x), mark_pairs (n - 2) x)"
CHAIN = "let rec mark_chain n x = if n <= 0 then Leaf x else Chain (0.7 * x, mark_chain (n - 1) (tanh x))"


def sized(h: Hole, *sizes: int) -> tuple[list[str], str]:
    """What loops count to, and the type of an array that tells it: numbers, or lengths that the call tells."""
    names = [str(n) for n in sizes] if h.often(50) else [h.fresh("n") for _ in sizes]
    return names, f"float[{', '.join(names)}]"


@rule(3, lambda h: is_matrix(h) or h.ty == FLOAT)
def grid(h: Hole) -> str:
    """Steps of a field whose border is another case, as of waves."""
    n, m = (h.ty.size, h.ty.args[0].size) if is_matrix(h) else (h.writer.below(3) + 3, h.writer.below(3) + 3)
    (rows, columns), ty = sized(h, n, m)
    field = array(array(FLOAT, m), n)
    step, c, u, i, j = (h.fresh(stem) for stem in "gcuij")
    border = f"{i} = 0 || {j} = 0 || {i} = {rows} - 1 || {j} = {columns} - 1"
    around = f"{u}[{i} - 1, {j}] + {u}[{i} + 1, {j}] {h.one('+', '*')} {u}[{i}, {j} - 1] - {u}[{i}, {j} + 1]"
    upwind = f"(if {c}[{i}, {j}] > 0.3 then {u}[{i} - 1, {j}] else sin {u}[{i}, {j} + 1])"
    inside = h.one(f"0.2 * ({around})", f"0.3 * {upwind} * {u}[{i}, {j}]", f"tanh ({around}) * {upwind}")
    last = h.one("0.0", f"{u}[{i}, {j}]", h.apart(FLOAT, (i, INT), (j, INT)))
    point = f"if {border} then {last} else {c}[{i}, {j}] ** 2 * {inside} + {h.apart(FLOAT, (i, INT), (j, INT))}"
    over = h.one(f"[for {i} < {rows}, {j} < {columns} -> {point}]",
                 f"[for {i} < {rows} -> [for {j} < {columns} -> {point}]]")  # fmt: skip
    head = f"let {step} ({c} : {ty}) ({u} : {ty}) = {over} in"
    wave = f"let {c} = {h(field)} in loop {u} = {h(field)} for _ < {h.writer.below(3) + 1} do {step} {c} {u}"
    return f"{head} {wave}" if is_matrix(h) else f"{head} sum (map sum ({wave}))"


@rule(2, lambda h: h.ty == FLOAT)
def regression(h: Hole) -> str:
    """Functions of rows times parameters, added up: its gradient adds what functions give to the parameters."""
    n, m = h.writer.below(4) + 2, h.writer.below(3) + 2
    (rows, columns), ty = sized(h, n, m)
    loss, x, w, i, z = (h.fresh(stem) for stem in "gxwiz")
    read = h.one(f"dot {x}[{i}] {w}", f"{w}[{i} * 7 % {columns}] * {x}[{i}, 0]", f"sum ({x}[{i}] * {w}) + {w}[0]")
    value = h.one(f"exp (tanh {z})", f"softplus {z} - {x}[{i}, 1] * {z}", f"if {z} > 0.3 then sin {z} else {z} ** 2",
                  f"sigmoid {z} * {h.apart(FLOAT, (i, INT), (z, FLOAT))}")  # fmt: skip
    total = f"sum [for {i} < {rows} -> let {z} = {read} in {value}]"
    data, start = h(array(array(FLOAT, m), n)), h(array(FLOAT, m))
    return f"let {loss} ({x} : {ty}) ({w} : float[{columns}]) = {total} in {loss} {data} {start}"


@rule(2, lambda h: is_vector(h) or h.ty == FLOAT)
def line(h: Hole) -> str:
    """The same in one dimension, of which ends are read elsewhere or not at all."""
    n = h.ty.size if is_vector(h) else h.writer.below(4) + 2
    (count,), ty = sized(h, n)
    step, u, i, d = (h.fresh(stem) for stem in "guid")
    k = h.fresh("k")
    far = h.one("1", f"{count} / 2", "1_000_000_000_000")
    under = h.one(f"if {k} > 1 then {u}[{far}] else 0.1", f"if {k} < {i} then {u}[{i} - {k}] else {u}[{far}]")
    first = h.one(f"if {i} > 0 then {u}[{i}] - {u}[{i} - 1] else {h.apart(FLOAT, (i, INT))}",
                  f"if {i} = 0 then {u}[{count} - 1] else {u}[{i} - 1]",
                  f"if {i} + 1 < {count} && {u}[{i}] > 0.2 then {u}[{i} + 1] else 0.5",
                  f"if {far} <= {i} then {u}[{far}] * {u}[{i}] else {h.one('0.5', f'{u}[0]')}",
                  f"sum [for {k} < 5 -> {u}[{i}] * (if {far} <= {i} && {u}[{i}] > 0.2 then {under} else 0.3)]",
                  beside(h, lambda at: f"{u}[{at}]", i, count), asked(h, u, i, count))  # fmt: skip
    point = h.one(f"{u}[{i}] * {d}", f"if {u}[{i}] > 0.4 then sin {u}[{i}] * {d} else {u}[{i}] + {d} ** 2",
                  f"{u}[{i}] + 0.1 * {d} * {h.apart(FLOAT, (i, INT), (d, FLOAT))}")  # fmt: skip
    head = f"let {step} ({u} : {ty}) = [for {i} < {count} -> let {d} = {first} in {point}] in"
    steps = f"loop {u} = {h(array(FLOAT, n))} for _ < {h.writer.below(3) + 1} do {step} {u}"
    return f"{head} {steps}" if is_vector(h) else f"{head} sum ({steps})"


def beside(h: Hole, read: Callable[[str], str], i: str, count: str) -> str:
    """What is read at a neighbour; beyond an end at the last place, around a ring, or at the place itself."""
    there, at = h.one((f"{i} > 0", f"{i} - 1"), (f"{i} <> 0", f"{i} - 1"), (f"not (1 > {i})", f"{i} - 1"),
                      (f"{i} < {count} - 1", f"{i} + 1"), (f"{i} + 1 < {count}", f"{i} + 1"))  # fmt: skip
    beyond = f"if {there} then {read(at)} else {read(h.one('0', f'{count} - 1', i))}"
    turned = h.one(f"if {i} = 0 then {count} - 1 else {i} - 1", f"if {i} + 1 <> {count} then {i} + 1 else 0",
                   f"if {there} then {at} else {h.one('0', f'{count} - 1')}")  # fmt: skip
    far = f"{i} {h.one('+', '-')} {h.writer.below(3)}"
    both = h.one(f"clip ({far}) 0 ({count} - 1)", f"min ({count} - 1) (max 0 ({far}))",
                 f"clip (2 * {i} - {count} / 2) 0 ({count} - 1)", f"max (min (2 - {i}) ({count} - 1)) 0")  # fmt: skip
    return h.one(
        beyond, beyond, read(f"({turned})"), read(f"max ({i} - 1) 0"), read(f"min ({count} - 1) ({i} + 1)"), read(both)
    )


@rule(2, lambda h: is_matrix(h) or h.ty == FLOAT)
def edged(h: Hole) -> str:
    """Steps of a field that reads elsewhere beyond its edges, where data decide what is taken."""
    n, m = (h.ty.size, h.ty.args[0].size) if is_matrix(h) else (h.writer.below(3) + 1, h.writer.below(3) + 1)
    (rows, columns), ty = sized(h, n, m)
    step, u, i, j, a, b = (h.fresh(stem) for stem in "guijab")
    across, down = [f"let {one} = {beside(h, read, at, count)} in" for one, read, at, count in (
        (a, lambda at: f"{u}[{i}, {at}]", j, columns), (b, lambda at: f"{u}[{at}, {j}]", i, rows))]  # fmt: skip
    here, test = f"{u}[{i}, {j}]", h.one(f"{u}[{i}, {j}] > 0.3", h.apart(BOOL, (i, INT), (j, INT)))
    point = h.one(f"0.3 * ({a} - {here}) + sin {b}", f"if {test} then {a} * {here} else {b} - {here}",
                  f"(if {test} then {a} else {b}) * {h.apart(FLOAT, (a, FLOAT), (i, INT))}")  # fmt: skip
    head = f"let {step} ({u} : {ty}) = [for {i} < {rows}, {j} < {columns} -> {across} {down} {point}] in"
    steps = f"loop {u} = {h(array(array(FLOAT, m), n))} for _ < {h.writer.below(2) + 1} do {step} {u}"
    return f"{head} {steps}" if is_matrix(h) else f"{head} sum (map sum ({steps}))"


def asked(h: Hole, u: str, i: str, count: str) -> str:
    """Neighbours that a function reads, which asks whether they exist: some do at every place."""
    at, k = h.fresh("at"), h.fresh("k")
    outside = h.one(f"{k} < 0 || {k} >= {count}", f"not (0 <= {k} && {k} <= {count} - 1)", f"{k} <> {k} % {count}")
    places = [f"{at} ({h.one(f'{i} - 1', f'{i} + 1', i, f'{count} - 1 - {i}', f'2 * {i}')})" for _ in range(3)]
    return f"let {at} {k} = if {outside} then 0.3 else {u}[{k}] in {places[0]} * {places[1]} - {places[2]}"


@rule(2, lambda h: is_vector(h) or h.ty == FLOAT)
def masked(h: Hole) -> str:
    """Infinities that are computed, then not taken: their products have cotangents that are zero."""
    n = h.ty.size if is_vector(h) else h.writer.below(3) + 1
    x, y, i = h.named("x", array(FLOAT, n)), h.named("y", array(FLOAT, n)), h.named("i", INT)
    at, large = f"{x[0]}[{i[0]}]", f"{y[0]}[{i[0]}]"
    made = h.one(f"exp (900.0 * {at})", f"1.0 / (0.5 * (abs {at} - {at}))", f"exp ({at} * {at} * 2000.0) * {at}")
    product = f"{large} * {h.one(at, h.apart(FLOAT, i))}"
    taken = h.one(f"if {large} < 1e300 then {product} else {at}", f"max (-2.5) (min ({product}) 2.5) * {at}",
                  f"(if abs {large} < 9.0 then {product} else 0.3) * {h.apart(FLOAT, i)}")  # fmt: skip
    arrays = f"let {x[0]} = {h(x[1])} in let {y[0]} = [for {i[0]} < {n} -> {made}] in"
    return f"{arrays} {'' if is_vector(h) else 'sum '}[for {i[0]} < {n} -> {taken}]"


@rule(2, lambda h: h.ty == FLOAT)
def column(h: Hole) -> str:
    """A nest of three loops, whose middle one computes what the innermost one reads."""
    a, b, c = (h.writer.below(3) + 2 for _ in range(3))
    (planes, rows), ty = sized(h, a, b)
    of, w, col, one = (h.fresh(stem) for stem in ("g", "w", "col", "one"))
    k, i, j, p = (h.named(stem, INT) for stem in "kijp")
    cell = f"{w}[{k[0]}, {i[0]}] * {h.apart(FLOAT, k, p)} + {h.one('0.2', h.apart(FLOAT, p))}"
    test = h.one(f"{i[0]} <> {j[0]}", f"sin (0.7 * float ({i[0]} + {j[0]})) > 0.1", h.apart(BOOL, i, j))
    read = f"{col}[{h.one(j[0], f'({i[0]} + {j[0]}) % {c}', h.index(c))}]"
    point = f"if {test} then {read} * {one} else {h.apart(FLOAT, k, j)}"
    middle = f"let {col} = [for {p[0]} < {c} -> {cell}] in let {one} = {h.apart(FLOAT, i)} in"
    inner = f"[for {j[0]} < {c} -> {point}]"
    whole = h.often(50)
    nest = f"[for {k[0]} < {planes} -> [for {i[0]} < {rows} -> {middle} {inner if whole else 'sum ' + inner}]]"
    body = f"sum (map (fun {w} -> sum (map sum {w})) {nest})" if whole else f"sum (map sum {nest})"
    return f"let {of} ({w} : {ty}) = {body} in {of} {h(array(array(FLOAT, b), a))}"


@rule(2, lambda h: h.ty == FLOAT)
def rolling(h: Hole) -> str:
    """Windows that are measured, then read again: what is added at each place is gathered, from rows kept or not."""
    m = h.one(2, 3, 17)
    n = m + h.one(2, 4, 9)
    (count,), ty = sized(h, n)
    of, x, y, mu, i, k = (h.fresh(stem) for stem in ("g", "x", "y", "mu", "i", "k"))
    at = h.one(f"{i} + {k}", f"{k} + {i}", f"{i} + {k} + 1")
    read = f"{x}[{at}]"
    mean = h.one(f"sum [for {k} < {m} -> {x}[{i} + {k}]] / {m}.0", f"sin {x}[{i}]", f"({y}[{i} + 1] - {y}[{i}])", "0.4")
    term = h.one(f"({read} - {mu}) ** 2", f"({read} - {mu}) * {y}[{k}]", f"sin ({read} * {mu})", f"{read} * {mu}",
                 f"(if {i} = 0 then {read} else {read} - {mu})",
                 f"({read} - {mu}) ** 3 * {h.apart(FLOAT, (k, INT))}")  # fmt: skip
    total = f"sum [for {k} < {m} -> {term}]"
    used = h.one(f"tanh ({total})", f"sqrt (1.0 + ({total}) ** 2) * {mu}",
                 f"({total}) * sum [for {k} < {m} -> {read} ** 2]")  # fmt: skip
    summed = h.one(f"cumsum {x}", x, f"[for {i} < {count} -> {x}[{i}] * {h.apart(FLOAT, (i, INT))}]")
    body = f"let {y} = {summed} in sum [for {i} < {count} - {m} -> let {mu} = {mean} in {used}]"
    return f"let {of} ({x} : {ty}) = {body} in {of} {h(array(FLOAT, n))}"


@rule(2, lambda h: h.ty == FLOAT)
def opposite(h: Hole) -> str:
    """Elements of a square field, and those on the other side of its diagonal, some of which are left out."""
    n = h.writer.below(3) + 2
    (count, *_), _ = sized(h, n)
    of, u, i, j = (h.fresh(stem) for stem in "guij")
    here, there = f"{u}[{i}, {j}]", f"{u}[{h.one(f'{j}, {i}', f'{j}, {i}', f'{count} - 1 - {i}, {j}')}]"
    value = h.one(f"{here} - {there}", f"sin {here} - {there} * {here}", f"{there} + 0.3 * {here}")
    test = h.one(f"{i} = {j}", f"{i} <= {j}", f"{i} > {j}", h.apart(BOOL, (i, INT), (j, INT)))
    point = h.one(value, *[f"if {test} then {h.one('0.0', h.apart(FLOAT, (i, INT)))} else {value}"] * 3)
    field = h.one(f"[for {i} < {count} -> [for {j} < {count} -> {point}]]",
                  f"[for {i} < {count}, {j} < {count} -> {point}]")  # fmt: skip
    weighed = f"{field} * [for {i} < {count} -> [for {j} < {count} -> {h.apart(FLOAT, (i, INT), (j, INT))}]]"
    head = f"let {of} ({u} : float[{count}, {count}]) = sum (sum ({weighed})) in"
    return f"{head} {of} {h(array(array(FLOAT, n), n))}"


@rule(2, lambda h: h.ty == FLOAT)
def covaried(h: Hole) -> str:
    """Sums over pairs of columns, of what is left when something of each column is taken away."""
    n, m = h.writer.below(3) + 1, h.writer.below(3) + 1
    (rows, columns), ty = sized(h, n, m)
    of, a, mu, c, i, j, k = (h.fresh(stem) for stem in ("g", "a", "mu", "c", "i", "j", "k"))
    mean = h.one(f"sum [for {k} < {rows} -> {a}[{k}, {j}]] / {n}.0", f"sin {a}[0, {j}]", "0.2")
    left, right = (f"({a}[{k}, {x}] - {mu}[{x}])" for x in (i, j))
    point = h.one(f"{left} * {right}", f"{left} * {right} * {a}[{k}, {i}]", f"sin {left} * {right}",
                  f"if {left} < 0.3 then {left} * {right} else {right}")  # fmt: skip
    total = f"sum [for {k} < {rows} -> {point}]"
    pair = h.one(total, f"{total} / {n}.0", f"tanh ({total})", f"{total} * {mu}[{j}]")
    over = h.one(f"[for {i} < {columns}, {j} < {columns} -> {pair}]",
                 f"[for {i} < {columns} -> [for {j} < {columns} -> {pair}]]")  # fmt: skip
    used = f"sum [for {i} < {columns} -> sum [for {j} < {columns} -> {c}[{i}, {j}] * {c}[{j}, {i}]]]"
    body = f"let {mu} = [for {j} < {columns} -> {mean}] in let {c} = {over} in {used}"
    return f"let {of} ({a} : {ty}) = {body} in {of} {h(array(array(FLOAT, m), n))}"


@rule(2, lambda h: h.ty == FLOAT)
def eliminated(h: Hole) -> str:
    """A multiple of a row is taken from others, in place, element by element."""
    n, m = h.writer.below(3) + 1, h.writer.below(3) + 1
    (rows, columns), ty = sized(h, n, m)
    of, c, r, g, i, j, k = (h.fresh(stem) for stem in ("g", "c", "r", "f", "i", "j", "k"))
    other = h.one(k, k, f"({k} + 1) % {rows}", f"{rows} - 1 - {k}")
    read = f"{c}[{other}, {h.one(j, j, f'{columns} - 1 - {j}')}]"
    taken = h.one(f"- {g} * {read}", f"+ sin ({g} * {read})", f"* {read}", f"- {g} * {read} * {c}[{i}, {j}]")
    line = f"loop {c} = {c} for {j} < {h.one(columns, columns, k)} do {{ {c} with [{i}, {j}] = {c}[{i}, {j}] {taken} }}"
    row = f"let {g} = {h.one(f'{c}[{i}, {k} % {columns}]', f'tanh {c}[{i}, 0]', h())} in {line}"
    step = h.one(f"loop {c} = {c} for {i} < {rows} do if {i} = {k} then {c} else ({row})",
                 f"loop {c} = {c} for {i} < {rows} do if {i} <> {k} then ({row}) else {c}",
                 f"loop {c} = {c} for {r} < {rows} - {k} - 1 do (let {i} = {r} + {k} + 1 in {row})",
                 f"loop {c} = {c} for {i} < {rows} do ({row})")  # fmt: skip
    body = f"sum (map sum (loop {c} = {c} for {k} < {rows} do ({step})))"
    return f"let {of} ({c} : {ty}) = {body} in {of} {h(array(array(FLOAT, m), n))}"


@rule(2, lambda h: h.ty == FLOAT)
def reduced(h: Hole) -> str:
    """Steps that take rows of a matrix from others, as elimination and reflections do: rows beside their sums, vectors
    of a known number of lanes and a rest."""
    n, m, steps = h.writer.below(3) + 2, h.one(3, 5, 8, 17, 30), h.writer.below(2) + 1
    (rows, columns), ty = sized(h, n, m)
    of, a, k, i, j, t, v = (h.fresh(stem) for stem in ("g", "a", "k", "i", "j", "t", "v"))
    here, other = f"{a}[{i}, {j}]", f"{a}[{k} % {n}, {j}]"
    factor = h.one(f"{a}[{i}, {k} % {m}] / (1.5 + {a}[{k} % {n}, 0] ** 2)", f"tanh {a}[{i}, {m - 1}]")
    cell = h.one(f"{here} - {t} * {other}", f"tanh ({here} * {t})", f"(if {here} > {t} then {here} else {t} * {other})",
                 f"0.3 * ({here} - {t}) * {h.apart(FLOAT, (j, INT))}")  # fmt: skip
    total = h.one(f"sum [for {j} < {columns} -> {here} * {other}]", f"sum [for {j} < {columns} -> sin {here}]", factor)
    row = f"let {t} = 0.2 * {total} in [for {j} < {columns} -> {cell}]"
    below = f"if {i} > {k} then {a}[{i}] - {factor} * {a}[{k} % {n}] else {a}[{i}]"
    sums = f"[for {j} < {columns} -> sum [for {i} < {rows} -> {v}[{i}] * {here}]]"
    reflected = f"let {t} = {sums} in [for {i} < {rows}, {j} < {columns} -> 0.5 * {here} - {v}[{i}] * {t}[{j}]]"
    step = h.one(f"[for {i} < {rows} -> {row}]", f"[for {i} < {rows} -> {below}]",
                 f"let {v} = [for {i} < {rows} -> {h.one('0.3', '0.1')} * {factor}] in {reflected}")  # fmt: skip
    body = f"sum (map sum (loop {a} = {a} for {k} < {steps} do ({step})))"
    return f"let {of} ({a} : {ty}) = {body} in {of} {h(array(array(FLOAT, m), n))}"


@rule(2, lambda h: h.ty == FLOAT)
def left_out(h: Hole) -> str:
    """Steps that sum up all points but some, or choose the best one: Jacobi's iteration, Viterbi's algorithm."""
    n = h.one(3, 5, 17, 20)
    (count,), _ = sized(h, n)
    of, a, x, i, k = (h.fresh(stem) for stem in "gaxik")
    read = h.one(f"{a}[{i}, {k}] * {x}[{k}]", f"{a}[{k}, {i}] * sin {x}[{k}]", f"{a}[{i}, {k}] * {a}[{k}, {i}]")
    test = h.one(f"{k} = {i}", f"{k} < {i}", f"{i} + 1 < {k}", f"{x}[{k}] > 0.2", f"{i} > 0", f"{k} <> 0 && {i} > {k}")
    other = h.one("0.0", f"{a}[{i}, {i}]", f"{a}[0, {k}] * {x}[{k}]", h.apart(FLOAT, (i, INT), (k, INT)),
                  f"(if {i} > 0 then {a}[{i} - 1, {k}] else 0.5)",
                  f"(if {k} > {i} then {x}[{k} - 1] * {x}[{i}] else 0.1)")  # fmt: skip
    term = h.one(f"if {test} then {other} else {read}", f"if {test} then {read} else {other}")
    best = h.one(f"{x}[{k}] + {a}[{k}, {i}]", f"{read} - 0.3 * {x}[{k}]", f"{read} + {x}[{i}]")
    total = h.one(f"sum [for {k} < {count} -> {term}]", f"sum [for {k} < {count} -> {term}]",
                  f"{h.one('maximum', 'minimum')} [for {k} < {count} -> {best}]")  # fmt: skip
    point = h.one(f"tanh ({total})", f"0.3 * {total} + {x}[{i}]",
                  f"0.1 * ({x}[{i}] - {total}) / (2.0 + {a}[{i}, {i}] ** 2)")  # fmt: skip
    body = f"sum (loop {x} = {x} for _ < {h.writer.below(2) + 1} do [for {i} < {count} -> {point}])"
    head = f"let {of} ({a} : float[{count}, {count}]) ({x} : float[{count}]) = {body} in"
    return f"{head} {of} {h(array(array(FLOAT, n), n))} {h(array(FLOAT, n))}"


@rule(2, lambda h: h.ty == FLOAT)
def padded(h: Hole) -> str:
    """Windows over a row or a field, which reach beyond its ends: what is outside is left out, or is a number."""
    n, m, steps = h.one(2, 5, 9), h.one(2, 3, 9), h.one(1, 1, 2)
    (count, few), _ = sized(h, n, m)
    of, x, w, i, k, q = (h.fresh(stem) for stem in ("g", "x", "w", "i", "k", "q"))
    inside = h.one(f"{q} >= 0 && {q} < {count}", f"{q} < {count} && not (0 > {q})", f"{q} > 0 && {q} < {count} - 1")
    term = h.one(f"{x}[{q}] * {w}[{k}]", f"({x}[{q}] - {x}[{i}]) * {w}[{k}]", f"sin {x}[{q}] * {w}[{k}] ** 2",
                 f"{x}[{q}] * {w}[{k}] * {h.apart(FLOAT, (k, INT))}")  # fmt: skip
    other = h.one("0.0", "0.0", "0.3", f"{w}[{k}]")
    total = f"sum [for {k} < {few} -> let {q} = {steps} * {i} + {k} - {m // 2} in if {inside} then {term} else {other}]"
    point = h.one(total, f"relu ({total} - 0.1)", f"tanh ({total}) * {h.apart(FLOAT, (i, INT))}")
    head = f"let {of} ({x} : float[{count}]) ({w} : float[{few}]) = sum [for {i} < {count} -> {point}] in"
    return f"{head} {of} {h(array(FLOAT, n))} {h(array(FLOAT, m))}"


@rule(2, lambda h: h.ty == FLOAT)
def sampled(h: Hole) -> str:
    """Every second, third ... place, and some after it, of a series or of both indices of a field."""
    stride, n = h.one(2, 2, 3, 4), h.writer.below(9) + 9
    (count,), ty = sized(h, n)
    of, x, w, i, k = (h.fresh(stem) for stem in ("g", "x", "w", "i", "k"))
    last = h.one(0, 1, stride - 1, stride, stride + 2)
    at = [f"{x}[{stride} * {i}{h.one('', f' + {h.writer.below(last + 1)}')}]" for _ in range(3)]
    taps = last + 1
    window = f"sum [for {k} < {taps} -> {w}[{k}] * {x}[{stride} * {i} + {k}]]"
    point = h.one(window, f"{at[0]} * {at[1]}", f"max {at[0]} (max {at[1]} {at[2]})", f"sin {at[0]} * {window}",
                  f"if {i} = 0 then {h.one(at[0], f'{x}[0]')} else {x}[{stride} * {i} - 1] * {at[1]}",
                  f"(if {at[0]} > 0.2 then {at[1]} else {at[2]}) * {h.apart(FLOAT, (i, INT))}")  # fmt: skip
    steps = h.one(f"({count} - {taps}) / {stride} + 1", f"({count} - {last}) / {stride}", str((n - last) // stride))
    total = h.one(f"sum [for {i} < {steps} -> ({point}) ** 2]", f"sum (tanh [for {i} < {steps} -> {point}])")
    series = f"let {of} ({x} : {ty}) ({w} : float[{taps}]) = {total} in"
    j, m = h.fresh("j"), n // 2
    cells = [f"{x}[2 * {i}{a}, {h.one('2 * ', '')}{j}{b}]" for a in ("", " + 1") for b in ("", " + 1")]
    cell = h.one("0.25 * ({} + {} + {} + {})", "max {} {} * max {} {}", "{} * sin {} - {} * {}").format(*cells)
    over = h.one(f"sum [for {i} < {m} -> sum [for {j} < {m} -> {cell}]]",
                 f"sum (map sum (tanh [for {i} < {m}, {j} < {m} -> {cell}]))")  # fmt: skip
    field = f"let {of} ({x} : float[{count}, {count}]) {w} = {over} in"
    weights = h(array(FLOAT, taps))
    if h.often(60):
        return f"{series} {of} {h(array(FLOAT, n))} {weights}"
    return f"{field} {of} {h(array(array(FLOAT, n), n))} {weights}"


@rule(2, lambda h: is_vector(h) or h.ty == FLOAT)
def finer(h: Hole) -> str:
    """Elements that ask which half, third or fourth of their index they are, or whether it is even."""
    n, few, stride = h.ty.size if is_vector(h) else h.writer.below(9) + 1, h.writer.below(3) + 2, h.one(2, 2, 3, 4)
    (count,), ty = sized(h, few)
    of, x, i, j = (h.fresh(stem) for stem in ("g", "x", "i", "j"))
    moved = h.one(i, i, i, f"({i} + {h.writer.below(4)})")
    read = f"{x}[{moved} / {stride} % {count}]"
    test = h.one(f"{i} % {stride} = {h.writer.below(stride)}", f"{moved} % {stride} > 0", f"{i} % 2 = 0")
    other = h.one("0.0", f"sin {read}", f"{x}[({i} / {stride} + 1) % {count}] * {read}", h.apart(FLOAT, (i, INT)))
    point = h.one(f"if {test} then {read} else {other}", f"{read} * float ({moved} % {stride}) + {other}",
                  f"(if {read} > 0.2 then {read} else {other}) * {h.apart(FLOAT, (i, INT))}")  # fmt: skip
    long = h.one(str(n), str(n), f"{stride} * {count}")
    row = f"[for {i} < {long} -> {point}]"
    if is_vector(h):
        return f"let {of} ({x} : {ty}) = [for {i} < {n} -> {point}] in {of} {h(array(FLOAT, few))}"
    some = h.writer.below(n) + 1 if long == str(n) else count
    first = f"sum (let {j} = {row} in [for {i} < {some} -> {j}[{i}] * 3.0])"
    used = h.one(f"sum {row}", f"sum (tanh {row})", f"maximum {row} * sum {row}", first,
                 f"sum (map sum [for {j} < {few} -> map (fun {i} -> {i} * {x}[{j}]) {row}])")  # fmt: skip
    return f"let {of} ({x} : {ty}) = {used} in {of} {h(array(FLOAT, few))}"


@rule(2, lambda h: h.ty == FLOAT)
def lagged(h: Hole) -> str:
    """Products of a series and the same some steps later, by places or by parts: how far apart is known as it runs."""
    n, more = h.one(5, 11, 19), h.writer.below(3)
    (count,), ty = sized(h, n)
    of, x, w, k, t = (h.fresh(stem) for stem in ("g", "x", "w", "k", "t"))
    here, there = f"{x}[{t}]", f"{x}[{t} + {k}{h.one('', f' + {more}')}]"
    steps = f"{count} - {k} - {more}"
    term = h.one(f"{here} * {there}", f"({here} - {w}) * ({there} - {w})", f"({there} - {here}) ** 2 * {w}",
                 f"sin {here} * {there}", f"(if {here} > {w} then {there} else {here}) * {w}",
                 f"{there} * {x}[{t} + {more}] * {here}")  # fmt: skip
    pair = h.one(f"{x}[{t}] * {x}[{k}]", f"({x}[{t}] - {x}[{k}]) ** 2", f"exp {x}[{t}] * {x}[({t} + {k}) % {n}]")
    total = h.one(f"sum [for {t} < {steps} -> {term}]", f"sum [for {t} < {steps} -> {term}]",
                  f"dot (take ({steps}) {x}) (drop ({k} + {more}) {x})",
                  f"sum [for {t} < {count} -> if {t} {h.one('<', '<=', '<>', '>')} {steps} - 1 then {pair} else 0.0]",
                  )  # fmt: skip
    used = h.one(f"({total}) ** 2", f"{total} * {h.apart(FLOAT, (k, INT))}", f"tanh ({total})")
    body = f"let {w} = {h.one('0.2', f'sum {x} / {n}.0')} in sum [for {k} < {n - more} -> {used}]"
    return f"let {of} ({x} : {ty}) = {body} in {of} {h(array(FLOAT, n))}"


@rule(2, lambda h: h.ty == FLOAT)
def fields(h: Hole) -> str:
    """Points whose loops read arrays of tuples, and that give tuples themselves."""
    n, m = h.writer.below(4) + 1, h.one(2, 9, 17)
    ts, xs, ps, a, i, k, u, v, w = (h.fresh(stem) for stem in ("ts", "xs", "ps", "a", "i", "k", "u", "v", "w"))
    both, given = h.one((f"({u}, {v})", f"({{0}}, {xs}[{i}])"), (f"({u}, ({v}, {w}))", f"(1.0, ({{0}}, {xs}[{i}]))"))
    made = f"[for {i} < {n} -> {given.format(h.apart(FLOAT, (i, INT)))}]"
    step = h.one(f"tanh ({u} * {a}) + {v}", f"if {a} > 0.2 then {u} * {a} else {v} - {a}", f"{u} * sin {a} ** 3 - {v}",
                 f"clip ({u} * {a} + {v}) (-1.0) 1.0", f"if {i} = {k} then {a} else {u} * {a} + {v}",
                 f"0.3 * {a} + {v} * float ({k} - {i})")  # fmt: skip
    inner = h.one(f"loop {a} = {ps}[{k}] for {i} < {n} do let {both} = {ts}[{i}] in {step}",
                  f"let {a} = {ps}[{k}] in sum [for {i} < {n} -> let {both} = {ts}[{i}] in {step}]",
                  f"fold (fun {a} {both} -> let {i} = 1 in {step}) {ps}[{k}] {ts}",
                  f"let {a} = {ps}[{k}] in let {both} = {ts}[{k} % {n}] in sum [for {i} < 3 -> {step}]")  # fmt: skip
    pairs = f"[for {k} < {m} -> let {a} = {inner} in ({a}, {a} * {ps}[{k}])]"
    point = h.one(f"sum [for {k} < {m} -> {inner}]", f"sum (map snd {pairs})",
                  f"sum [for ({u}, {v}) in {pairs} -> {u} - {v}]")  # fmt: skip
    head = f"let {xs} = {h(array(FLOAT, n))} in let {ps} = [for {k} < {m} -> {h.apart(FLOAT, (k, INT))}] in"
    return f"{head} let {ts} = {made} in {point}"


@rule(2, lambda h: h.ty == FLOAT)
def softened(h: Hole) -> str:
    """Points that compute a few numbers each, and something of the greatest or of all of them."""
    n, m = h.one(2, 9, 17), h.writer.below(4) + 1
    xs, ws, r, top, i, c = (h.fresh(stem) for stem in ("xs", "ws", "r", "top", "i", "c"))
    cell = h.one(f"sin ({xs}[{i}] * {ws}[{c}])", f"{ws}[{c}] - {xs}[{i}] ** 2", h.apart(FLOAT, (i, INT), (c, INT)),
                 f"(if {c} = {i} then {xs}[{i}] else {ws}[{c}] * float {i})")  # fmt: skip
    row = f"[for {c} < {m} -> {cell}]"
    given = f"let {r} = {row} in"
    weighted = f"sum [for {c} < {m} -> exp ({r}[{c}] - {top})]"
    point = h.one(f"logsumexp {row}", f"{given} let {top} = maximum {r} in {top} + log ({weighted}) * {r}[0]",
                  f"{given} minimum {r} * sum {r}", f"{given} let {top} = sum {r} in {weighted}",
                  f"{given} dot (softmax {r}) {ws}")  # fmt: skip
    over = h.one(f"sum [for {i} < {n} -> {point}]", f"logsumexp [for {i} < {n} -> {point}]",
                 f"sum (loop {xs} = {xs} for _ < 2 do [for {i} < {n} -> 0.3 * ({point})])")  # fmt: skip
    head = f"let {xs} = [for {i} < {n} -> {h.apart(FLOAT, (i, INT))}] in"
    return f"{head} let {ws} = {h(array(FLOAT, m))} in {over}"


@rule(2, lambda h: h.ty == FLOAT)
def partly_read(h: Hole) -> str:
    """Weighted sums over some columns of an array that may be longer than what is read, as of attention by heads."""
    n, d, more, few = (h.writer.below(most) + 1 for most in (5, 4, 3, 3))
    (rows, *_), ty = sized(h, n, d)
    longer = n + h.one(0, more)
    _, wider = sized(h, longer, few + more)
    go, q, v, p, i, j, c = (h.fresh(stem) for stem in ("go", "q", "v", "p", "i", "j", "c"))
    score = f"{q}[{i}, 0] * {q}[{j}, {d - 1}] + {h.apart(FLOAT, (i, INT), (j, INT))}"
    scores = h.one(score, f"if {j} <= {i} then {score} else -inf")
    weights = h.one("softmax ", "exp ") + f"[for {j} < {rows} -> {scores}]"
    cell = f"sum [for {j} < {rows} -> {p}[{j}] * {v}[{j}, {c}{h.one('', f' + {more}')}]]"
    point = f"let {p} = {weights} in [for {c} < {few} -> {cell}]"
    head = f"let {go} ({q} : {ty}) ({v} : {wider}) = [for {i} < {rows} -> {point}] in"
    given = h(array(array(FLOAT, d), n)), h(array(array(FLOAT, few + more), longer))
    return f"{head} sum (map sum ({go} {given[0]} {given[1]}))"


@rule(2, lambda h: h.ty == FLOAT)
def partly_made(h: Hole) -> str:
    """Of data with more constructors than the program makes, or makes none of."""
    few = h.writer.below(4)
    match h.writer.below(6):
        case 0:
            return f"weigh (Leaf {h()})"
        case 1:
            return f"weigh (mark_pairs {few} {h()})"
        case 2:
            return f"weigh (mark_chain {few} {h()})"
        case 3:
            return f"weigh (Cells {h(array(FLOAT, few + 1))})"
        case 4:
            return f"weigh (Far [mark_chain {few} {h()}; Leaf {h()}])"
    t = h.fresh("t")
    return f"List.fold (fun a {t} -> a * weigh {t}) {h()} ([] : mark list)"


@rule(2, lambda h: h.ty == FLOAT)
def far_places(h: Hole) -> str:
    """Sums over points with some arithmetic that read at places they find, perhaps also beside these, or far away on a
    ring of known length."""
    n = h.writer.below(12) + 5
    xs, at, s, i = h.named("xs", array(FLOAT, n)), h.fresh("at"), h.fresh("s"), h.named("i", INT)
    steps = h.one("1", f"{n - 1}", f"{n - 2}", f"{n}", "3", f"{2 * n - 1}", "(-2)", f"(-{n})")
    place = h.one(f"({i[0]} + {steps}) % {n}", f"{at}[{i[0]}]", f"{at}[({i[0]} + {steps}) % {n}]")
    work = f"sin {s} * exp (cos {s}) + tanh (2.0 * {s}) * log (1.0 + {s} * {s}) + {h.apart(FLOAT, i)}"
    found = f"[for {i[0]} < {n} -> ({i[0]} * {i[0]} + {h.writer.below(5)}) % {n}]"
    k = h.fresh("k")
    there, after, last = (f"{xs[0]}[{k}{more}]" for more in ("", " + 1", " + 2"))
    beside = f"(let {k} = {at}[{i[0]}] % {n - 2} in {there} + 0.3 * ({after} - {there}) * {last})"
    point = f"let {s} = {h.one(f'{xs[0]}[{place}]', beside)} in {work}"
    return f"let ({at}, {xs[0]}) = ({found}, {h(xs[1])}) in sum [for {i[0]} < {n} -> {point}]"


@rule(2, is_vector)
def places(h: Hole) -> str:
    """Added at places, of which some are the same, by a function or by steps, to what is read there."""
    n, m = h.ty.size, h.one(h.ty.size, 3, 7)
    at, s, xs, k = h.fresh("at"), h.named("s", h.ty), h.named("xs", array(FLOAT, m)), h.named("k", INT)
    made = h.one(f"[for {k[0]} < {m} -> ({k[0]} * {k[0]} + 1) % {n}]",
                 f"[for {k[0]} < {m} -> {h.apart(INT, k)} % {n}]")  # fmt: skip
    there = f"{s[0]}[{at}[{k[0]}]]"
    more = h.one(f"{xs[0]}[{k[0]}]", f"2.0 * {xs[0]}[{m} - 1 - {k[0]}]", f"{xs[0]}[{k[0]}] * {h.apart(FLOAT, k)}",
                 f"0.3 * tanh {there}")  # fmt: skip
    steps = f"loop {s[0]} = {s[0]} for {k[0]} < {m} do {{ {s[0]} with [{at}[{k[0]}]] = {there} + {more} }}"
    added = h.one(f"scatter_add {s[0]} {at} {xs[0]}", f"scatter_add {s[0]} {at} (gather {s[0]} {at} * {xs[0]})", steps,
                  f"(loop {s[0]} = {s[0]} for _ < 2 do tanh (scatter_add {s[0]} {at} (gather {s[0]} {at})))",
                  )  # fmt: skip
    given = f"let ({s[0]}, {xs[0]}) = ({h()}, {h(xs[1])}) in"
    return f"let {at} = {made} in {given} {added}"


@rule(2, is_vector)
def swept(h: Hole) -> str:
    """Elements are overwritten one after the other, by what all of them give; perhaps in a loop, perhaps two."""
    n = h.ty.size
    s, i, j, k, xs = (h.fresh(stem) for stem in ("s", "i", "j", "k", "xs"))
    one = h.one(f"tanh ({s}[{j}] * {s}[{i}])", f"sin {s}[{j}] * {xs}[{j} % {n}]", f"{s}[{j}] * {s}[19 - {j}]",
                f"if {j} = {i} then 0.0 else {s}[{j}] * {s}[{j}]")  # fmt: skip
    mean = f"0.05 * sum [for {j} < 20 -> {one}]"
    place = h.one(i, f"({i} * 7 + 3) % 20", f"19 - {i}")
    step = h.one(
        f"{{ {s} with [{place}] = {mean} }}",
        f"{{ {s} with [{place}] = {s}[{i}] + {mean} * {xs}[{i} % {n}] }}",
        f"let {s} = {{ {s} with [{place}] = {mean} }} in {{ {s} with [{i}] = cos {s}[{i}] * {mean} }}",
        f"if {s}[{i}] > 0.2 then {{ {s} with [{place}] = {mean} }} else {s}",
    )
    sweep = f"loop {s} = {s} for {i} < {h.one('20', str(h.writer.below(4)))} do {step}"
    whole = h.one(sweep, f"loop {s} = {s} for {k} < 2 do ({sweep})", f"loop {s} = {s} for {k} < 2 do 0.9 * ({sweep})")
    read = h.one("", f" + {s}[{i}]")
    long = f"[for {i} < 20 -> {xs}[{i} % {n}] * (1.0 - 0.04 * float {i})]"
    return f"let {xs} = {h()} in let {s} = {long} in let {j} = {whole} in [for {i} < {n} -> {j}[{i}]{read}]"
