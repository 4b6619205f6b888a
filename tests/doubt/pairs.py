"""Sums over all pairs of points, whose two parts are opposites of each other, or nearly: energies and distances."""

from __future__ import annotations

from doubt.scopes import FLOAT, INT, array
from doubt.stencils import sized
from doubt.windows import length
from doubt.writer import Hole, rule


@rule(2, lambda h: h.ty == FLOAT)
def interactions(h: Hole) -> str:
    """The energy of a pair is a number, its force a row."""
    n = length(h, 2)
    (count,), _ = sized(h, n)
    of, x, w, a, b = (h.fresh(stem) for stem in "gxwab")
    (i, _), (j, _) = i_, j_ = h.named("i", INT), h.named("j", INT)
    away = h.one(f"{x}[{i}] - {x}[{j}]", f"{x}[{j}] - {x}[{i}]", f"{w}[{i}] * {x}[{i}] - {w}[{j}] * {x}[{j}]",
                 f"{x}[{i}] * {x}[{j}]", f"sin {x}[{i}] + {w}[{j}]")  # fmt: skip
    other = h.one(f"{w}[{i}] - {w}[{j}]", f"{a} * {a}", f"{w}[{i}] * {w}[{j}]", f"abs {a}", h.apart(FLOAT, i_, j_))
    value = h.one(f"{w}[{i}] * {w}[{j}] / sqrt ({a} * {a} + {b} * {b} + 0.1)", f"exp (-{a} ** 2) * {b}",
                  f"{w}[{j}] * tanh {a}", f"{b} / (1.0 + {a} * {a})", f"(if {a} > 0.1 then {a} * {b} else {b})",
                  f"max {a} {b}", f"{a} * {h.apart(FLOAT, i_, j_, (a, FLOAT), (b, FLOAT))}")  # fmt: skip
    pair = f"let {a} = {away} in let {b} = {other} in {value}"
    asked = h.one("", f"if {i} = {j} then 0.0 else ", f"if {j} <> {i} then 0.3 * {x}[{i}] else ",
                  f"if {j} < {i} then 0.0 else ")  # fmt: skip
    inner = f"sum [for {j} < {count} -> {asked}{pair}]"
    row = h.one(f"[{value}, {b}]", f"{w}[{j}] * [{value}, {b}, {a} * {b}]")
    forces = f"sum [for {j} < {count} -> let {a} = {away} in let {b} = {other} in {row}]"
    outer = h.one(inner, f"tanh ({inner})", f"{w}[{i}] * {inner}", f"sum ({forces})", f"({forces})[1] * {w}[{i}]")
    head = f"let {of} ({x} : float[{count}]) ({w} : float[{count}]) = sum [for {i} < {count} -> {outer}] in"
    return f"{head} {of} {h(array(FLOAT, n))} {h(array(FLOAT, n))}"
