"""Loops that read at places which their points find, or a table tells, that add to few places under conditions, and
that take arrays of tuples apart."""

from __future__ import annotations

from doubt.scopes import FLOAT, INT, array
from doubt.stencils import sized
from doubt.windows import length
from doubt.writer import Hole, rule


@rule(2, lambda h: h.ty == FLOAT)
def between(h: Hole) -> str:
    """Numbers between two elements, at a place that a number tells: delays, and fields under a map."""
    n, m = length(h, 2), h.writer.below(4) + 2
    (count, width), _ = sized(h, n, m)
    of, x, c, at, k, r = (h.fresh(stem) for stem in "gxcakr")
    (i, _), (j, _) = i_, j_ = h.named("i", INT), h.named("j", INT)
    place = h.one(f"float {i} + {c}[{j}]", f"2.0 + 3.0 * {x}[{i}]", f"{c}[{j}] * float {i} + 0.37",
                  f"3.0 * sin ({x}[{i}] + {c}[{j}])", f"float {i} - 1.5", h.apart(FLOAT, i_, j_))  # fmt: skip
    there = h.one(f"{k} >= 0 && {k} + 1 < {count}", f"{k} + 1 < {count} && {k} > 0", f"{k} >= -1 && {k} < {count} - 1")
    low = f"(if {k} >= 0 then {x}[{k}] else 0.2)" if "-1" in there else f"{x}[{k}]"
    value = h.one(f"(1.0 - {r}) * {low} + {r} * {x}[{k} + 1]", f"{c}[{j}] * {low} * {r}",
                  f"sin ({low} * {x}[{i}]) * {x}[{k} + 1] * {r}")  # fmt: skip
    other = h.one("0.0", f"{r} * {c}[{j}]", f"{x}[0] * {r}",
                  f"(if {k} < {count} - 1 then 0.1 else {x}[{count} - 1] * {r})")  # fmt: skip
    found = f"let {at} = {place} in let {k} = int (floor {at}) in let {r} = {at} - float {k} in"
    point = f"{found} if {there} then {value} else {other}"
    inner = h.one(f"sum [for {j} < {width} -> {point}]", f"(sum [for {j} < {width} -> {point}]) ** 2")
    body = h.one(f"sum [for {i} < {count} -> {inner}]", f"sum (map sum [for {i} < {count}, {j} < {width} -> {point}])",
                 f"sum [for {j} < {width} -> tanh (sum [for {i} < {count} -> {point}])]")  # fmt: skip
    head = f"let {of} ({x} : float[{count}]) ({c} : float[{width}]) = {body} in"
    return f"{head} {of} {h(array(FLOAT, n))} {h(array(FLOAT, m))}"


@rule(2, lambda h: h.ty == FLOAT)
def taps(h: Hole) -> str:
    """Filters whose taps are used from some step on; their output is an array, or written step by step."""
    n, m = length(h, 2), h.writer.below(3) + 1
    (count, width), _ = sized(h, n, m)
    of, x, c, y = (h.fresh(stem) for stem in "gxcy")
    i, _ = i_ = h.named("i", INT)
    back = h.writer.below(3) + 1
    fed = h.often(50)
    source = y if fed else x
    tap = f"(if {i} >= {back} then {c}[{width} - 1] * {source}[{i} - {back}] else {h.one('0.0', f'{c}[0]', '0.3')})"
    more = h.one("", f" + (if {x}[{i}] > 0.2 then {c}[0] * {x}[{i}] else 0.0)", f" - {c}[0] * {h.apart(FLOAT, i_)}")
    number = h.one(f"{x}[{i}] + {tap}{more}", f"tanh ({x}[{i}] * {tap}){more}")
    if fed:
        start = h.one(f"[for _ < {count} -> 0.0]", x)
        body = f"let {y} = loop {y} = {start} for {i} < {count} do {{ {y} with [{i}] = {number} }} in sum ({y} * {y})"
    else:
        body = f"let {y} = [for {i} < {count} -> {number}] in sum ({y} * {y}) + {y}[0]"
    head = f"let {of} ({x} : float[{count}]) ({c} : float[{width}]) = {body} in"
    return f"{head} {of} {h(array(FLOAT, n))} {h(array(FLOAT, m))}"


@rule(2, lambda h: h.ty == FLOAT)
def taken_apart(h: Hole) -> str:
    """An array of tuples that several comprehensions and sums take apart, some under conditions."""
    n = length(h, 2)
    (count, *_), _ = sized(h, n)
    of, x, z, a, b, s = (h.fresh(stem) for stem in "gxzabs")
    i, _ = i_ = h.named("i", INT)
    pair = h.one(f"({x}[{i}] * {x}[{count} - 1 - {i}], {x}[{i}] - 0.3)", f"(sin {x}[{i}], {h.apart(FLOAT, i_)})",
                 f"(if {x}[{i}] > 0.1 then ({x}[{i}], {x}[0]) else ({x}[0] * {x}[{i}], 0.5))")  # fmt: skip
    parts = [h.one(f"[for ({a}, _) in {z} -> {a}]", f"[for (_, {b}) in {z} -> {b}]",
                   f"[for ({a}, {b}) in {z} -> {a} * {b}]", f"[for {i} < {count} -> snd {z}[{i}] * {x}[{i}]]",
                   f"[for {i} < {count} -> fst {z}[{count} - 1 - {i}]]",
                   f"(if {x}[0] > 0.0 then [for ({a}, _) in {z} -> {a}] else {x})")
             for _ in range(h.writer.below(2) + 2)]  # fmt: skip
    total = " + ".join(f"{h.one('', '0.5 * ')}sum ({part} * {h.one(x, parts[0])})" for part in parts)
    again = h.one("", f" + fst {z}[0]", f" + (loop {s} = 0.0 for {i} < {count} do {s} + snd {z}[{i}])")
    head = f"let {of} ({x} : float[{count}]) = let {z} = [for {i} < {count} -> {pair}] in {total}{again} in"
    return f"{head} {of} {h(array(FLOAT, n))}"


@rule(2, lambda h: h.ty == FLOAT)
def neighbours(h: Hole) -> str:
    """Loops of points that read where a table says, alike for a row or not, in bounds or not."""
    n, m = length(h, 2), h.writer.below(3) + 1
    (count, width), _ = sized(h, n, m)
    of, x, near, s, o, c, p = (h.fresh(stem) for stem in "gxksocp")
    (i, _), (j, _) = i_, j_ = h.named("i", INT), h.named("j", INT)
    place = h.one(f"{near}[{j}, {c}]", f"{near}[{j}, {c}]", f"{near}[{j}, {i} % 2]",
                  f"({near}[{j}, {c}] + 1) % {count}")  # fmt: skip
    term = h.one(f"exp (-({x}[{i}] - {x}[{o}]) ** 2)", f"sin ({x}[{o}] * {x}[{i}]) * {x}[{o}]", h.apart(FLOAT, i_, j_))
    step = h.one(f"{s} + {term}", f"0.5 * {s} + {term} * {x}[{o}]",
                 f"loop {s} = {s} for {p} < {count} do {s} + {term} * {x}[{p}] * {x}[{o}]")  # fmt: skip
    loop = f"loop {s} = {h.one('0.0', f'{x}[{i}]')} for {c} < 2 do let {o} = {place} in {step}"
    body = f"sum (map sum [for {j} < {width}, {i} < {count} -> ({loop})])"
    rows = ", ".join(f"[{h.writer.below(n)}, {h.writer.below(n + h.often(5))}]" for _ in range(m))
    head = f"let {of} ({x} : float[{count}]) ({near} : int[{width}, 2]) = {body} in"
    return f"{head} {of} {h(array(FLOAT, n))} [{rows}]"
