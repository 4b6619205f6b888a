"""Data that hold what they seldom do: arrays of several lengths, functions in records, parameters in maps."""

from __future__ import annotations

from doubt.scopes import BOOL, FLOAT, INT, array
from doubt.writer import Hole, rule

ROW, ROW_TYPE = "Row", "type row = Row of float[?]"
LINE, LINE_TYPE = "across", "type line = { across : float[?] }"
ENTRY, ENTRY_TYPE = "Wrapped", "type 'a wrapped = Wrapped of 'a"
ACT, ACT_TYPE = "shape", "type act = { scale : float; shape : float -> float }"
SIGNAL = "Mild"
SIGNAL_TYPE = "type signal = Mild of (float * int) | Sharp of (int * float) | Both of (signal * signal) | Quiet"


@rule(2, lambda h: h.ty == FLOAT)
def of_several_sizes(h: Hole) -> str:
    """An array of data whose only field is an array: each has its own length.  Some rows are
    written over by longer ones, which the type of `wrapped` does not allow."""
    n, make = h.writer.below(4) + 1, h.one(ROW, ROW, ENTRY, LINE)
    begin, end = ("{ across =", "}") if make == LINE else (make, "")
    rows, a, b, r, i = (h.fresh(stem) for stem in "rabxi")
    j, k = h.named("j", INT), h.named("k", INT)
    size = h.one(i, f"{i} + 1", f"{n} - {i}", f"2 * {i}")
    row = f"{begin} [for {j[0]} < {size} -> {h.apart(FLOAT, (i, INT), j)}] {end}"
    old = f"{rows}[{h.one('0', k[0], f'{n - 1}')}]"
    other = f"match {old} with {begin} {b} {end} -> {begin} ({b} ++ [{h.apart(FLOAT, k)}]) {end}"
    count = 0 if make == ENTRY else h.writer.below(n + 1)
    steps = f"loop {rows} = {rows} for {k[0]} < {count} do {{ {rows} with [{k[0]}] = {other} }}" if count else rows
    used = h.one(f"sum ({a} * {a})", f"prod {a}", f"norm {a} * {h.apart(FLOAT)}", f"sum {a} + float (length {a})",
                 f"(if length {a} > 1 then {a}[1] * {a}[0] else 0.3)")  # fmt: skip
    total = f"sum [for {r} in {rows} -> match {r} with {begin} {a} {end} -> {used}]"
    return f"let {rows} = [for {i} < {n} -> {row}] in let {rows} = {steps} in {total}"


@rule(2, lambda h: h.ty == FLOAT)
def functions_in_records(h: Hole) -> str:
    """A list or an array of records with functions that have captured numbers; each is called, some are exchanged."""
    f, s, r = (h.fresh(stem) for stem in "fsr")
    x, i = h.named("x", FLOAT), h.named("i", INT)
    shape = [f"(fun {x[0]} -> {h.apart(FLOAT, x)})", "tanh", f"(fun {x[0]} -> {x[0]} * {s})", "sin"]
    items = [f"{{ scale = {h()}; shape = {h.one(*shape)} }}" for _ in range(h.writer.below(3) + 1)]
    called = f"{r}.shape ({r}.scale * {x[0]})"
    head = f"let {s} = {h()} in let {f} = "
    if h.often(50):
        listed = f"[{'; '.join(items)}]" if len(items) > 1 else f"[{items[0]};]"
        steps = f"List.map (fun {r} -> if {r}.scale > {s} then {{ {r} with scale = {s} }} else {r}) {f}"
        return f"{head}{listed} in List.fold (fun {x[0]} {r} -> {called}) {h()} ({h.one(f, steps)})"
    step = f"let {r} = {f}[({i[0]} + {h(INT)}) % {len(items)}] in {called}"
    return f"{head}[{', '.join(items)}] in loop {x[0]} = {h()} for {i[0]} < {h.count()} do {step}"


@rule(2, lambda h: h.ty == FLOAT)
def either_with_guards(h: Hole) -> str:
    """Patterns that match one of several forms, with guards that read what they bind."""
    go, t = h.fresh("go"), h.fresh("t")
    a, n, b = h.named("a", FLOAT), h.named("n", INT), h.named("b", FLOAT)
    signals = (f"Mild ({h()}, {h(INT)})", f"Sharp ({h(INT)}, {h()})", "Quiet")
    first, second, third = (h.one(*signals, f"Both ({signals[0]}, {signals[1]})") for _ in range(3))
    arms = [f"Mild ({a[0]}, {h.writer.below(3)}) | Sharp ({h.writer.below(3)}, {a[0]}) -> {h.apart(FLOAT, a)}",
            f"Mild ({a[0]}, {n[0]}) | Sharp ({n[0]}, {a[0]}) when {h.apart(BOOL, a, n)} -> {h.apart(FLOAT, a, n)}",
            f"Both (Mild ({a[0]}, _), Sharp (_, {b[0]})) | Both (Sharp (_, {b[0]}), Mild ({a[0]}, _))"
            f" when {a[0]} > {b[0]} -> {a[0]} * {b[0]}"]  # fmt: skip
    rest = [f"Mild ({a[0]}, _) | Sharp (_, {a[0]}) -> {a[0]} * {a[0]}", "Quiet -> 0.4",
            f"Both ({a[0]}, {b[0]}) -> {go} {a[0]} * {go} {b[0]}"]  # fmt: skip
    chosen = [arm for arm in arms if h.often(70)] + rest
    head = f"let rec {go} {t} = match {t} with {' | '.join(chosen)} in"
    return f"{head} sum (map {go} [{first}, {second}, Both ({second}, {third})])"


@rule(2, lambda h: h.ty == FLOAT and h.scope.order < 2)
def parameters_in_a_map(h: Hole) -> str:
    """A derivative by what a map holds, some of which is used, at keys that data tell."""
    p, m, v = h.fresh("p"), h.fresh("m"), h.fresh("v")
    item = h.one(FLOAT, array(FLOAT, 2))
    total = "sum " if item != FLOAT else ""
    entries = [f"({key}, {h(item)})" for key in range(h.writer.below(3) + 1)]
    made = f"Map.of_list [{entries[0]};]" if len(entries) == 1 else f"Map.of_list [{'; '.join(entries)}]"
    first, some = f"Map.get {h.small(item)} 0 {p}", f"Map.get {h.small(item)} ({h(INT)} % 4) {p}"
    loss = f"(fun {p} -> {total}({first} * {some}) + (let {v} = {some} in {h.apart(FLOAT, (v, item))}))"
    slope = f"List.fold (fun {p} {v} -> {p} + {total}({v} * {v})) 0.0 (Map.values (grad {loss} {m}))"
    return f"let {m} = {made} in {h.one(f'{loss} {m}', slope)}"
