"""Features that seldom meet: rows that change in place beside those that share them, windows inside of `match`, maps
with keys of text, recursion inside of comprehensions, loops with many results, reads whose places are data."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT, array, list_of
from doubt.writer import Hole, rule

TRACK, TRACK_TYPE = "Track", "type n track = Track of (float[n] * float * int)"
LANE, LANE_TYPE = "cells", "type lane = { cells : float[?]; gain : float; next : int option }"


@rule(2, lambda h: h.ty == FLOAT)
def mutable_rows(h: Hole) -> str:
    """References to arrays, some to the same one; steps write elements of one with those of others, or share it."""
    n, m = h.writer.below(3) + 1, h.writer.below(3) + 1
    rows, row, kept, s = (h.fresh(stem) for stem in "rvks")
    i, j, x = h.named("i", INT), h.named("j", INT), h.named("x", FLOAT)
    there = h.one(f"({i[0]} + 1) % {m}", f"{m - 1} - {i[0]} % {m}", f"({i[0]} * 2 + {h(INT)}) % {m}")
    read = h.one(f"!({rows}[{there}])[{i[0]} % {n}]", f"{kept}[{i[0]} % {n}]", f"!({rows}[{i[0]} % {m}])[0]")
    new = f"let {x[0]} = {read} in {h.apart(FLOAT, i, x)}"
    write = f"{rows}[{i[0]} % {m}] := {{ !({rows}[{i[0]} % {m}]) with [({i[0]} + {j[0]}) % {n}] = ({new}) }}"
    share = f"if {h.apart(BOOL, i)} then {rows}[{i[0]} % {m}] := !({rows}[{there}]) else ({write})"
    step = f"loop () = () for {j[0]} < {h.writer.below(2) + 1} do ({h.one(write, share)})"
    begin = f"let {row} = {h(array(FLOAT, n))} in let {rows} = [for {i[0]} < {m} -> ref {h.one(row, f'({row} * 0.5)')}]"
    total = f"sum [for {s} in {rows} -> sum (!{s} * {kept})]"
    return f"{begin} in let {kept} = !({rows}[{m - 1}]) in (loop () = () for {i[0]} < {h.count()} do {step}); {total}"


@rule(2, lambda h: h.ty == FLOAT and h.scope.order < 2)
def keyed_by_text(h: Hole) -> str:
    """A map with keys that are text, options or tuples, to which a loop adds what it finds there."""
    m, k, v = h.fresh("m"), h.named("k", INT), h.named("v", FLOAT)
    keys = h.one(('"a"', '"b"', '"é"', '""'), ("None", "(Some 1)", "(Some 0)", "(Some 1)"),
                 ('(1, "a")', '(0, "b")', '(1, "")', '(1, "a")'), ("[1; 2]", "[1;]", "[2;]", "[1; 2]"))  # fmt: skip
    made = f"Map.of_list [({keys[0]}, {h()}); ({keys[1]}, {h()})]"
    chosen = f"(match ({k[0]} + {h(INT)}) % 4 with 0 -> {keys[0]} | 1 -> {keys[1]} | 2 -> {keys[2]} | _ -> {keys[3]})"
    found = f"let {v[0]} = Map.get {h.small(FLOAT)} {chosen} {m} in {h.apart(FLOAT, k, v)}"
    total = f"loop {m} = {m} for {k[0]} < {h.count() + 1} do Map.add {h.one(chosen, keys[0])} ({found}) {m}"
    sum_up = f"List.fold (fun {v[0]} x -> {v[0]} * 0.7 + x) 0.1 (Map.values ({total}))"
    if h.often(40):
        slope = f"grad (fun {m} -> {sum_up}) ({made})"
        return f"List.fold (fun {v[0]} x -> {v[0]} + x * x) 0.0 (Map.values ({slope}))"
    return f"let {m} = {made} in {sum_up}"


@rule(2, lambda h: h.ty == FLOAT)
def recursion_in_rows(h: Hole) -> str:
    """A function that calls itself in each element of an array that it makes."""
    go, n, x = h.fresh("go"), h.named("n", INT), h.named("x", FLOAT)
    i, r = h.named("i", INT), h.fresh("r")
    last, onward = h.apart(FLOAT, x), h.apart(FLOAT, n, x, i)
    calls = h.one(f"[for {i[0]} < {n[0]} -> {go} {i[0]} {onward}]",
                  f"[for {i[0]} < 2 -> {go} ({n[0]} - 1 - {i[0]}) {onward}]",
                  f"map (fun {i[0]} -> {go} {i[0]} {onward}) (range {n[0]})",
                  f"[for {i[0]} in range {n[0]} when {h.apart(BOOL, x, i)} -> {go} ({n[0]} - 1) {onward}]")  # fmt: skip
    used = h.one(f"sum {r}", f"prod {r} + {x[0]}", f"fold (fun {x[0]} y -> {x[0]} * 0.5 + y) {x[0]} {r}",
                 f"sum ({r} * {r}) * {h.apart(FLOAT, n, x)}")  # fmt: skip
    body = f"if {n[0]} <= 0 then {last} else let {r} = {calls} in tanh ({used})"
    return f"let rec {go} {n[0]} ({x[0]} : float) : float = {body} in {go} {h.writer.below(3) + 1} {h()}"


@rule(2, lambda h: h.ty == FLOAT)
def windows_in_match(h: Hole) -> str:
    """Rows of data whose elements are windows, products or single reads of others, as their place and value tell."""
    n = h.writer.below(5) + 2
    of, t, x, i = h.fresh("g"), h.fresh("t"), h.fresh("x"), h.named("i", INT)
    k = h.named("k", INT)
    window = h.one(f"sum {x}[{i[0]} - 1:{i[0]} + 1]", f"prod {x}[0:{i[0]}]", f"maximum {x}[{i[0]}:]",
                   f"sum [for {k[0]} < 3 when {i[0]} + {k[0]} < length {x} -> {x}[{i[0]} + {k[0]}] * {k[0]}.0]"
                   .replace(f"{k[0]}.0", f"float {k[0]}"))  # fmt: skip
    arms = [f"(0, _) -> {x}[{i[0]}]", f"(1, true) -> {window}", f"(1, _) | (2, true) -> {h.apart(FLOAT, i)} * {x}[0]",
            f"_ -> {x}[{i[0]}] * {x}[length {x} - 1 - {i[0]}]"]  # fmt: skip
    cell = f"match ({i[0]} % 3, {x}[{i[0]}] > {h.small(FLOAT)}) with {' | '.join(arms)}"
    head = f"let {of} {t} = match {t} with Track ({x}, w, c) -> [for {i[0]} < length {x} -> w * ({cell})] in"
    tracks = [f"Track ({h(array(FLOAT, n))}, {h()}, {h(INT)})" for _ in range(h.writer.below(2) + 1)]
    used = h.one(f"sum {of}_", f"norm {of}_", f"sum ({of}_ * {of}_)").replace(f"{of}_", f"({of} {t})")
    total = f"fold (fun s {t} -> s * 0.6 + {used}) 0.2 [{', '.join(tracks)}]"
    return f"{head} {total}"


@rule(2, lambda h: h.ty == FLOAT)
def ragged_records(h: Hole) -> str:
    """Records with rows of several lengths, and a place where to go on; some rows and fields are written over."""
    n = h.writer.below(3) + 1
    rows, r, at, s = (h.fresh(stem) for stem in "rqas")
    i, j = h.named("i", INT), h.named("j", INT)
    to = h.one(f"Some (({i[0]} + 1) % {n})", f"(if {i[0]} % 2 = 0 then Some 0 else None)", "None")
    size = h.one(i[0], f"{i[0]} + 1", f"{n} - {i[0]}")
    made = f"{{ cells = [for {j[0]} < {size} -> {h.apart(FLOAT, i, j)}]; gain = {h.apart(FLOAT, i)}; next = {to} }}"
    other = f"{rows}[({i[0]} + 1) % {n}]"
    change = h.one(f"cells = {other}.cells", f"gain = {h.apart(FLOAT, i)} + sum {other}.cells", f"next = {other}.next",
                   f"gain = {other}.gain; cells = {other}.cells ++ [{h.apart(FLOAT, i)}]")  # fmt: skip
    step = f"{{ {rows} with [{i[0]}] = {{ {rows}[{i[0]}] with {change} }} }}"
    steps = f"loop {rows} = {rows} for {i[0]} < {h.writer.below(n + 1)} do {step}"
    add = f"{s} + {r}.gain * {h.one(f'sum {r}.cells', f'prod {r}.cells', f'float (length {r}.cells)')}"
    walk = f"let {r} = {rows}[{at}] in ({add}, match {r}.next with Some k -> k | None -> ({at} + 1) % {n})"
    total = f"fst (loop ({s}, {at}) = ({h()}, 0) for _ < {h.count()} do {walk})"
    return f"let {rows} = [for {i[0]} < {n} -> {made}] in let {rows} = {steps} in {total}"


@rule(2, lambda h: h.ty == FLOAT)
def several_results(h: Hole) -> str:
    """A loop with numbers, an array, a list, a count and a choice as state, of which some are used."""
    n = h.writer.below(3) + 1
    a, b, c = h.named("a", FLOAT), h.named("b", array(FLOAT, n)), h.named("c", INT)
    d, e, i = h.named("d", BOOL), h.named("e", list_of(FLOAT)), h.named("i", INT)
    inside = (a, b, c, d)
    row = h.one(f"{{ {b[0]} with [{c[0]} % {n}] = {h.apart(FLOAT, *inside)} }}", f"{b[0]} * {h.apart(FLOAT, *inside)}",
                h.apart(b[1], *inside), b[0])  # fmt: skip
    held = h.one(f"{h.apart(FLOAT, a, b)} :: {e[0]}", f"if {d[0]} then {a[0]} :: {e[0]} else {e[0]}", e[0], "[]")
    new = f"({h.apart(FLOAT, *inside)}, ({row}, {c[0]} + 1), ({h.apart(BOOL, a, c)}, {held}))"
    state = f"({a[0]}, ({b[0]}, {c[0]}), ({d[0]}, {e[0]}))"
    start = f"({h()}, ({h(b[1])}, {h.one('0', '1')}), ({h(BOOL)}, [{h()};]))"
    until = f"for {i[0]} < {h.count()}" if h.often(60) else f"while {c[0]} < {h.count()} && ({d[0]} || {a[0]} < 5.0)"
    used = h.one(a[0], f"sum {b[0]}", f"List.fold (fun x y -> x * 0.5 + y) {a[0]} {e[0]}",
                 f"(if {d[0]} then {a[0]} else {b[0]}[{c[0]} % {n}])", h.apart(FLOAT, *inside, e))  # fmt: skip
    return f"let {state} = loop {state} = {start} {until} do {new} in {used}"


@rule(2, lambda h: h.ty == FLOAT)
def read_where_data_say(h: Hole) -> str:
    """Reads at places that are computed from the numbers read before; out of range, if nothing guards them."""
    n = h.writer.below(4) + 1
    xs, p, s, k = h.named("xs", array(FLOAT, n)), h.named("p", INT), h.named("s", FLOAT), h.named("k", INT)
    place = h.one(f"int (4.0 * abs {xs[0]}[{p[0]}])", f"{p[0]} + int (3.0 * sin {s[0]})", f"{p[0]} * 2 + {k[0]}")
    onward = f"({place})" if h.writer.features.risky and h.often(50) else f"({place}) % {n}"
    read = f"{xs[0]}[{p[0]}]"
    if h.often(30):
        read = f"(if {p[0]} + {k[0]} < {n} then {xs[0]}[{p[0]} + {k[0]}] else {h.apart(FLOAT, k)})"
    step = f"({onward}, {s[0]} * {h.apart(FLOAT, k, s)} + {read})"
    if h.often(50):
        total = f"snd (loop ({p[0]}, {s[0]}) = ({h.writer.below(n)}, {h()}) for {k[0]} < {h.count()} do {step})"
    else:
        begin = f"let {p[0]} = {k[0]} % {n} in let {s[0]} = {xs[0]}[{p[0]}] in"
        total = f"sum [for {k[0]} < {h.count()} -> {begin} snd {step}]"
    return f"let {xs[0]} = {h(xs[1])} in {total}"
