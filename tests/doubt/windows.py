"""Loops over windows of arrays: around rings, cut off at both ends, under conditions, with strides shorter than a
window; and over arrays of several lengths."""

from __future__ import annotations

from doubt.arrays import is_vector
from doubt.scopes import BOOL, FLOAT, INT, array
from doubt.stencils import sized
from doubt.writer import Hole, rule


def length(h: Hole, least: int) -> int:
    """Of a loop: few steps, which become straight code, or so many that they are lanes of vectors."""
    return h.one(17, 33, 40) if h.often(25) else h.writer.below(5) + least


def weighted(h: Hole, weight: str, read: str, own: str, *named: tuple[str, object]) -> str:
    """What is added up of a window: a weight times what is read, or more than that."""
    return h.one(f"{weight} * {read}", f"{weight} * {read} * {own}", f"sin ({weight} * {read})",
                 f"(if {read} > {own} then {weight} * {read} else {own})", f"max ({weight} * {read}) {own}",
                 f"{weight} * {read} * {h.apart(FLOAT, *named)}")  # fmt: skip


@rule(2, lambda h: is_vector(h) or h.ty == FLOAT)
def ring(h: Hole) -> str:
    """Windows with coefficients, around a ring that may be shorter than they are."""
    n, m = h.ty.size if is_vector(h) else length(h, 1), h.writer.below(4) + 1
    (count, width), _ = sized(h, n, m)
    of, x, c = (h.fresh(stem) for stem in "gxc")
    i, k = h.named("i", INT), h.named("k", INT)
    at = h.one(f"{i[0]} + {k[0]}", f"{i[0]} - {k[0]}", f"{i[0]} + {count} - {k[0]}", f"2 * {i[0]} + {k[0]}",
               f"{i[0]} * {k[0]}", f"{k[0]} - {i[0]} - 1", f"{i[0]} + 2 * {k[0]}")  # fmt: skip
    term = weighted(h, f"{c}[{k[0]}]", f"{x}[({at}) % {count}]", f"{x}[{i[0]}]", i, k)
    total = f"sum [for {k[0]} < {width} -> {term}]"
    point = h.one(total, f"({total}) ** 2", f"tanh ({total}) * {x}[({i[0]} + 1) % {count}]")
    head = f"let {of} ({x} : float[{count}]) ({c} : float[{width}]) = [for {i[0]} < {count} -> {point}] in"
    made = f"{of} {h(array(FLOAT, n))} {h(array(FLOAT, m))}"
    return f"{head} {made}" if is_vector(h) else f"{head} sum ({made})"


@rule(2, lambda h: is_vector(h) or h.ty == FLOAT)
def cut_off(h: Hole) -> str:
    """Windows whose places beyond an end are the last one there."""
    n, m = h.ty.size if is_vector(h) else length(h, 1), h.writer.below(4) + 1
    (count, width), _ = sized(h, n, m)
    of, x, c = (h.fresh(stem) for stem in "gxc")
    i, k = h.named("i", INT), h.named("k", INT)
    there = h.one(f"{i[0]} + {k[0]} - {m // 2}", f"{i[0]} - {k[0]}", f"{i[0]} + {k[0]}", f"2 * {i[0]} - {k[0]}")
    at = h.one(f"max 0 (min ({count} - 1) ({there}))", f"min ({count} - 1) (max 0 ({there}))",
               f"max (min ({there}) ({count} - 1)) 0")  # fmt: skip
    term = weighted(h, f"{c}[{k[0]}]", f"{x}[{at}]", f"{x}[{i[0]}]", i, k)
    total = f"sum [for {k[0]} < {width} -> {term}]"
    point = h.one(total, f"({total}) ** 2", f"sin ({total}) * {x}[max 0 ({i[0]} - 1)]")
    head = f"let {of} ({x} : float[{count}]) ({c} : float[{width}]) = [for {i[0]} < {count} -> {point}] in"
    made = f"{of} {h(array(FLOAT, n))} {h(array(FLOAT, m))}"
    return f"{head} {made}" if is_vector(h) else f"{head} sum ({made})"


@rule(2, lambda h: h.ty == FLOAT)
def guarded(h: Hole) -> str:
    """Windows that go beyond a field, and rows that it does not have, under conditions that ask for what is there."""
    (rows, count), ty = sized(h, n := length(h, 1), m := length(h, 1))
    width, more, far = h.writer.below(7) + 1, h.one(0, 0, 2), h.one(1, 2, 3)
    of, x, c, w = (h.fresh(stem) for stem in "gxcw")
    i, j, k = (h.named(stem, INT) for stem in "ijk")
    at = f"{j[0]} {h.one('+', '-')} {far} * {k[0]} {h.one('+', '-')} {h.writer.below(4)}"
    there = [f"{at} >= 0", f"{at} < {count}", *([f"{i[0]} < {rows}"] if more else [])]
    there += [h.one(f"{at} <> {k[0]}", f"{c}[{j[0]}] > 0.3", h.apart(BOOL, i, j))] if h.often(25) else []
    term = weighted(h, f"{w}[{k[0]}]", f"{x}[{i[0]}, {at}]", f"{c}[{j[0]}]", i, j, k)
    window = f"sum [for {k[0]} < {width} -> if {' && '.join(there)} then {term} else 0.0]"
    point = h.one(window, f"{c}[{j[0]}] * {window}", f"({window}) ** 2")
    head = f"let {of} ({x} : {ty}) ({c} : float[{count}]) ({w} : float[{width}]) ="
    data = f"{h(array(array(FLOAT, m), n))} {h(array(FLOAT, m))} {h(array(FLOAT, width))}"
    return f"{head} sum (map sum [for {i[0]} < {rows} + {more}, {j[0]} < {count} -> {point}]) in {of} {data}"


@rule(2, lambda h: h.ty == FLOAT)
def grouped(h: Hole) -> str:
    """Parameters of groups and channels, which a quotient or a rest of the index tells, or both of them."""
    each, groups = h.one(3, 4, 8, 16), h.one(1, 2, 3)
    n, first = each * groups, h.writer.below(2)
    of, x, a, b = (h.fresh(stem) for stem in "gxab")
    i = h.named("i", INT)
    group, channel = f"{a}[{i[0]} / {each} + {first}]", f"{b}[{i[0]} % {each}]"
    both = f"{b}[({i[0]} / {each} + {i[0]} % {each}) / 2]"
    own = f"{x}[{i[0]}]"
    choice = f"if {own} > {channel} then {group} else {both} * {own}"
    term = h.one(f"{group} * {own} + {channel}", f"tanh ({own} * {group}) * {both}", f"{channel} * {h.apart(FLOAT, i)}",
                 f"{group} * {channel} * {own}", f"({choice})")  # fmt: skip
    head = f"let {of} ({x} : float[{n}]) ({a} : float[{groups + 1}]) ({b} : float[{each + groups}]) ="
    made = f"{of} {h(array(FLOAT, n))} {h(array(FLOAT, groups + 1))} {h(array(FLOAT, each + groups))}"
    return f"{head} sum [for {i[0]} < {n} -> {term}] in {made}"


@rule(2, lambda h: h.ty == FLOAT)
def pooled(h: Hole) -> str:
    """Windows of a line or of a field that overlap, or leave places out."""
    n, w, s = length(h, 4), h.writer.below(3) + 2, h.writer.below(3) + 1
    flat = h.often(50)
    m = h.writer.below(4) + 4
    (rows, columns), ty = sized(h, n, m)
    of, x, a, b = (h.fresh(stem) for stem in "gxab")
    i, j = h.named("i", INT), h.named("j", INT)
    pool = h.one("maximum", "sum", "mean", "minimum", "prod", "logsumexp")
    down = f"for {i[0]} < ({rows} - {w}) / {s} + 1"
    if flat:
        window = f"[for {a} < {w} -> {x}[{i[0]} * {s} + {a}, 0]]"
        row = f"{pool} {window} * {h.apart(FLOAT, i)}"
        body = f"sum [{down} -> {h.one(row, f'sum ({window} * {window}) * ({row})')}]"
    else:
        read = f"{x}[{s} * {i[0]} + {a}, {j[0]} * {s} + {b}]"
        window = h.one(f"{pool} [for {a} < {w} -> {pool} [for {b} < {w} -> {read}]]",
                       f"sum [for {a} < {w} -> sum [for {b} < {w} -> {read} * {x}[{a}, {b}]]]")  # fmt: skip
        cell = h.one(window, f"({window}) ** 2", f"({window}) * {h.apart(FLOAT, i, j)}")
        width = f"({columns} - {w}) / {s} + 1"
        body = f"sum (map sum [{down} -> [for {j[0]} < {width} -> {cell}]])"
    return f"let {of} ({x} : {ty}) = {body} in {of} {h(array(array(FLOAT, m), n))}"


@rule(2, lambda h: h.ty == FLOAT)
def two_arms(h: Hole) -> str:
    """Arms that read at different places, chosen by both indices of a square."""
    n = h.one(17, 20) if h.often(15) else h.writer.below(4) + 1
    (count, *_), _ = sized(h, n)
    of, u, v = (h.fresh(stem) for stem in "guv")
    (i, _), (j, _) = i_, j_ = h.named("i", INT), h.named("j", INT)
    tests = [h.one(f"{i} < {j}", f"({i} + {j}) % 2 = 0", f"{i} = {j}", f"{i} + {j} < {count}", f"{i} > {j} + 1",
                   f"{v}[{i}] > {v}[{j}]") for _ in range(2)]  # fmt: skip
    arms = [h.one(f"{u}[{i}, {j}] * {v}[{j}]", f"{u}[{j}, {i}] * {v}[{i}]", f"{v}[{i}] * {v}[{j}]",
                  f"sin {u}[{i}, {i}]", f"{u}[({i} + 1) % {count}, {j}] ** 2", f"{u}[{i}, {count} - 1 - {j}]",
                  h.apart(FLOAT, i_, j_)) for _ in range(3)]  # fmt: skip
    point = f"if {tests[0]} then {arms[0]} else if {tests[1]} then {arms[1]} else {arms[2]}"
    over = h.one(f"sum [for {i} < {count} -> sum [for {j} < {count} -> {point}]]",
                 f"sum (map sum [for {i} < {count}, {j} < {count} -> {point}])",
                 f"(loop {of} = 0.0 for {i} < {count} do loop {of} = {of} for {j} < {count} do {of} + ({point}))",
                 f"sum [for {i} < {count} -> tanh (sum [for {j} < {count} -> {point}])]")  # fmt: skip
    head = f"let {of} ({u} : float[{count}, {count}]) ({v} : float[{count}]) = {over} in"
    return f"{head} {of} {h(array(array(FLOAT, n), n))} {h(array(FLOAT, n))}"


@rule(2, lambda h: h.ty == FLOAT)
def several_lengths(h: Hole) -> str:
    """Arrays of different lengths in one comprehension."""
    n, m = length(h, 1), length(h, 1)
    (count, width), _ = sized(h, n, m)
    of, x, y, a = (h.fresh(stem) for stem in "gxya")
    (i, _), (j, _) = i_, j_ = h.named("i", INT), h.named("j", INT)
    both = h.one(f"(if {j} < {count} then {x}[{j}] else {y}[{i} % {width}])", f"{x}[{j} % {count}]",
                 f"(if {i} < {width} && {j} < {count} then {y}[{i}] * {x}[{j}] else 0.3)")  # fmt: skip
    part = h.one(f"{x}[{i}] * {y}[{j}]", f"sin ({x}[{i}] - {y}[{j}])", f"{y}[{j}]", h.apart(FLOAT, i_, j_))
    body = h.one(
        f"sum (map sum [for {i} < {count}, {j} < {width} -> {part} + {both}])",
        f"sum [for {i} < {count} -> sum [for {j} < {width} -> {part} * {both}]]",
        f"sum (map sum [for {a} in {x}, {j} < {width} -> {a} * {y}[{j}] * {x}[{j} % {count}]])",
        f"sum [for {i} < max {count} {width} -> (if {i} < {count} then {x}[{i}] else 0.4)"
        f" * (if {i} < {width} then {y}[{i}] else {h.apart(FLOAT, i_)})]",
        f"sum [for {i} < min {count} {width} -> {x}[{i}] * {y}[{i}] * {y}[{width} - 1 - {i}]]",
        f"sum ([for {i} < {count} -> {x}[{i}] * {y}[0]] ++ [for {j} < {width} -> {y}[{j}] * {x}[{j} % {count}]])",
    )
    head = f"let {of} ({x} : float[{count}]) ({y} : float[{width}]) = {body} in"
    return f"{head} {of} {h(array(FLOAT, n))} {h(array(FLOAT, m))}"


@rule(2, lambda h: h.ty == FLOAT)
def triangle(h: Hole) -> str:
    """Loops that count to indices of loops around them."""
    n = h.one(17, 20) if h.often(15) else h.writer.below(4) + 1
    (count, *_), _ = sized(h, n)
    of, u, v = (h.fresh(stem) for stem in "guv")
    (i, _), (j, _), (k, _) = i_, j_, k_ = [h.named(stem, INT) for stem in "ijk"]
    read = [f"{u}[{i}, {j}]", f"{u}[{j}, {i}]", f"{u}[{i}, {j}] * {u}[{j}, {i}]", f"{v}[{j}]", f"{v}[{i} - {j}]",
            f"{v}[{i}]"]  # fmt: skip
    inner = [f"{u}[{i}, {k}] * {u}[{j}, {k}]", f"{u}[{k}, {j}] * {v}[{k}]", f"{u}[{i}, {k}] ** 2",
             f"{v}[{j} - {k}] * {u}[{k}, {i}]", f"sin {u}[{k}, {i}]"]  # fmt: skip
    below = h.one(j, f"{j} + 1", j, f"min {j} 3")
    deeper = f"sum [for {k} < {below} -> {h.one(*inner)} * {h.one('1.5', h.apart(FLOAT, i_, j_, k_))}]"
    point = h.one(f"{h.one(*read)} * ({deeper})", f"{h.one(*read)} - {deeper}", f"{h.one(*read)} * {h.one(*read)}",
                  f"if {u}[{j}, {j}] > 0.3 then {h.one(*read)} * ({deeper}) else {h.one(*read)}")  # fmt: skip
    row = f"[for {j} < {h.one(i, f'{i} + 1', i)} -> {point}]"
    total = f"sum [for {i} < {count} -> {h.one(f'sum {row}', f'tanh (sum {row})', f'{v}[{i}] * sum {row}')}]"
    head = f"let {of} ({u} : float[{count}, {count}]) ({v} : float[{count}]) = {total} in"
    return f"{head} {of} {h(array(array(FLOAT, n), n))} {h(array(FLOAT, n))}"


@rule(2, lambda h: h.ty == FLOAT)
def nest_of_any(h: Hole) -> str:
    """Two or three loops over a line, a square and places that data tell, in any way: how far they go, what they keep,
    what they ask, and where they read."""
    n = h.one(17, 19) if h.often(15) else h.writer.below(4) + 2
    (count, *_), _ = sized(h, n)
    of, x, a, k = (h.fresh(stem) for stem in "gxak")
    total = any_loop(h, (x, a, k, count), (), h.writer.below(2) + 2)
    head = f"let {of} ({x} : float[{count}]) ({a} : float[{count}, {count}]) ({k} : int[{count}]) = {total} in"
    places = h.one(f"[for i < {n} -> (i * i + 1) % {n}]", f"[for i < {n} -> {n} - 1 - i]", f"[for i < {n} -> i / 2]")
    return f"{head} {of} {h(array(FLOAT, n))} {h(array(array(FLOAT, n), n))} {places}"


def any_loop(h: Hole, arrays: tuple[str, ...], around: tuple[str, ...], deep: int) -> str:
    """A number: a loop inside of others, with these indices, that adds up or multiplies what its steps give."""
    (*_, k, count), index = arrays, h.fresh("i")
    last = around[-1] if around else count
    steps = h.one(count, count, last, f"({count} - {last})", f"{k}[{last}]" if around else count, f"(min {last} 3)")
    point = any_point(h, arrays, (*around, index), deep - 1)
    s, kept = h.fresh("s"), f"{any_read(h, arrays, (*around, index))} > 0.1"
    return h.one(f"sum [for {index} < {steps} -> {point}]", f"sum [for {index} < {steps} -> {point}]",
                 f"(loop {s} = 0.0 for {index} < {steps} do {s} + {point})",
                 f"(loop {s} = 0.2 for {index} < {steps} do tanh ({s} * {point}))",
                 f"prod [for {index} < {steps} -> tanh {point} + 0.5]",
                 f"logsumexp ([for {index} < {steps} -> {point}] ++ [0.1])",
                 f"maximum ([for {index} < {steps} -> {point}] ++ [0.3])",
                 f"sum [for {index} < {steps} when {kept} -> {point}]")  # fmt: skip


def any_point(h: Hole, arrays: tuple[str, ...], around: tuple[str, ...], deep: int) -> str:
    read = any_read(h, arrays, around)
    inner = any_loop(h, arrays, around, deep) if deep else any_read(h, arrays, around)
    other, t = any_read(h, arrays, around), h.fresh("t")
    test = h.one(f"{other} > 0.3", f"{around[-1]} <> {around[0]}", f"{around[-1]} % 2 = 0", f"{around[0]} > 1")
    return h.one(f"({read} * {inner})", f"(if {test} then {read} * {inner} else {other})", f"(sin ({inner} - {read}))",
                 f"(let {t} = tanh {read} in {t} * {inner} + {t} * {other})", f"({inner} * {inner} + {read})",
                 f"(if {test} then {inner} else {read} * {other})",
                 f"({inner} * {h.apart(FLOAT, *[(index, INT) for index in around])})")  # fmt: skip


def any_read(h: Hole, arrays: tuple[str, ...], around: tuple[str, ...]) -> str:
    x, a, k, count = arrays

    def at() -> str:
        i, j = h.one(*around), h.one(*around)
        return h.one(i, i, i, f"({i} + {j}) % {count}", f"{count} - 1 - {i} % {count}", f"{k}[{i}]",
                     f"({i} + 1) % {count}", f"max ({i} - 1) 0", f"min ({count} - 1) ({i} + {j})", "0",
                     f"(2 * {i}) % {count}")  # fmt: skip

    i, j = h.one(*around), h.one(*around)
    guarded = f"(if {i} + {j} < {count} then {x}[{i} + {j}] else {h.one('0.4', f'{x}[0]')})"
    before = f"(if {i} >= {j} then {x}[{i} - {j}] else {h.one('0.4', f'{x}[{j}]')})"
    return h.one(f"{x}[{at()}]", f"{a}[{at()}, {at()}]", f"{a}[{at()}, {at()}]", guarded, before, f"{x}[{i}]")


@rule(1, lambda h: h.ty == FLOAT)
def dilated(h: Hole) -> str:
    """A layer that is called with several constants: how far apart it reads, or that and more."""
    n, m = length(h, 5), h.writer.below(3) + 2
    (count, width), _ = sized(h, n, m)
    of, d, x, c = (h.fresh(stem) for stem in "gdxc")
    i, k = h.named("i", INT), h.named("k", INT)
    at = h.one(f"{i[0]} - {d} * {k[0]}", f"{d} * {i[0]} + {k[0]}", f"{i[0]} + {k[0]} / {d}", f"{i[0]} + {d}")
    read = f"(if {at} >= 0 && {at} < {count} then {x}[{at}] else {h.one('0.0', '1.0', f'{x}[{i[0]}]')})"
    terms = [weighted(h, f"{c}[{k[0]}]", read, f"{x}[{i[0]}]", i, k) for _ in range(2)]
    total = f"sum [for {k[0]} < {width} -> {terms[0]}] * cos (sum [for {k[0]} < {width} -> {terms[1]}])"
    head = f"let {of} {d} ({c} : float[{width}]) ({x} : float[{count}]) = [for {i[0]} < {count} -> tanh ({total})] in"
    first, second, third = (h.writer.below(3) + 1 for _ in range(3))
    w = h(array(FLOAT, m))
    inner = f"{of} {first} {w} {h(array(FLOAT, n))}"
    return f"{head} sum ({of} {second} {w} ({inner})) + ({of} {third} {w} ({inner}))[0]"


@rule(2, lambda h: h.ty == FLOAT)
def parts_of_rows(h: Hole) -> str:
    """Parts of the rows of a matrix, as the gates of a recurrent cell are: slices, or read one by one; and what is done
    to their elements in two dimensions, and in one."""
    n, m, count = length(h, 1), length(h, 1), h.writer.below(3) + 2
    of, z, x, r, a, b, k = (h.fresh(stem) for stem in "gzxrabk")
    i, j = h.named("i", INT), h.named("j", INT)

    def part() -> str:
        at = h.writer.below(count) * m
        read = f"{z}[{i[0]}, {at} + {j[0]}]"
        return h.one(f"[for {r} in {z} -> {r}[{at} : {at + m}]]", f"[for {i[0]} < {n}, {j[0]} < {m} -> {read}]",
                     f"[for {i[0]} < {n} -> [for {j[0]} < {m} -> {read} * {h.apart(FLOAT, i, j)}]]")  # fmt: skip

    ty = f"float[{n}, {m}]"
    p, q = h.fresh("p"), h.fresh("q")
    gates = f"let {p} : {ty} = {part()} in let {q} : {ty} = {part()} in"
    both = h.one(f"tanh {p} * {x} + sin {q}", f"{p} * {q}", f"{x} - {p} * tanh {q}")
    flat = h.one(f"flatten {a} * flatten {q}", f"tanh (flatten {a}) + flatten {x}", f"flatten ({a} * {p})")
    turned = f"sum [for {k} < {n * m} -> {b}[{k}] * {b}[{n * m - 1} - {k}]]"
    total = h.one(f"sum {b}", f"sum {b} + sum (sum {a})", turned, f"sum (sum ((reshape {b} : {ty}) * {a}))")
    head = f"let {of} ({z} : float[{n}, {count * m}]) ({x} : {ty}) ="
    data = f"{h(array(array(FLOAT, count * m), n))} {h(array(array(FLOAT, m), n))}"
    return f"{head} {gates} let {a} = {both} in let {b} = {flat} in {total} in {of} {data}"
