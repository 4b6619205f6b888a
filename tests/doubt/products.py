"""Products of a matrix and of its transpose with vectors, by blocks of rows where running tells how many there are."""

from __future__ import annotations

from doubt.scopes import FLOAT, INT, array
from doubt.writer import Hole, rule


@rule(2, lambda h: h.ty == FLOAT)
def there_and_back(h: Hole) -> str:
    """The transpose times what is made of the rows' products: each of its own row, or of others, too."""
    of, a, x, y, e, n, m, s, j = (h.fresh(stem) for stem in "gaxyenmsj")
    i, _ = i_ = h.named("i", INT)
    wide = h.often(6)  # several blocks of 16 rows each
    width = 1100 if wide else h.writer.below(4) + 1
    rows = f"{16 if wide else h.writer.below(3)} + (if {h()} > 0.2 then 1 else {h.writer.below(3)})"
    own = h.one(f"{y}[{i}] * {h.small(FLOAT)}", f"tanh {y}[{i}] * {a}[{i}, 0]", f"{y}[{i}] + {h.apart(FLOAT, i_)}",
                f"(if {y}[{i}] > 0.3 then {y}[{i}] ** 2 else {h.apart(FLOAT, i_)})")  # fmt: skip
    point = own if h.often(75) else h.one(f"{y}[{n} - 1 - {i}] * {own}", f"({own}) / (1.0 + dot {y} {y})")
    back = h.one(f"(transpose {a} @ {e})", f"({e} @ {a})")
    total = h.one(f"sum {back}", f"dot {back} {x}", f"sum {back} + 0.1 * dot {y} {y}", f"dot {e} {e} * norm {back}")
    model = f"let {y} = {a} @ {x} in let {e} = [for {i} < {n} -> {point}] in {total}"
    head = f"let {of} ({a} : float[{n}, {m}]) ({x} : float[{m}]) = {model} in"
    matrix = f"[for {i} < {rows} -> [for {j} < {width} -> {s} * sin (float ({i} * {width} + {j}))]]"
    vector = f"[for {j} < {width} -> {s} * cos (float {j})]" if wide else h(array(FLOAT, width))
    return f"{head} let {s} = {h()} in {of} {matrix} {vector}"
