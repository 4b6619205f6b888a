"""Every row of the primitive table, tested by the table: value, slopes and curvature in both engines.

Value: native against interpreter against the row's own `eval`.  Slope: reverse and forward against finite differences;
second derivatives likewise.  Rows that work on arrays are also taken elementwise.
"""

from __future__ import annotations

import pytest
from conftest import assert_same_output
from dpl.prims import TABLE, Row

ROWS = [row for row in TABLE.values() if row.samples]


def call(row: Row, args: list[str]) -> str:
    if row.op:
        return f"{args[0]} {row.op} {args[1]}"
    if row.name == "neg":
        return f"-{args[0]}"
    return f"{row.name} {' '.join(args)}"


def program(row: Row) -> str:
    names = ["a", "b", "c"][: len(row.samples[0])]
    pattern = names[0] if len(names) == 1 else f"({', '.join(names)})"
    zero = "let zero = float (List.length Sys.args)"  # not known when the program is compiled
    lines = [zero, f"let f {pattern} = {call(row, names)}", f"let total {pattern} = sum ({call(row, names)})"]
    for sample in row.samples:
        point = ", ".join(f"({x!r})" for x in sample)
        hidden = ", ".join(f"{x!r} + zero" for x in sample)
        array = ", ".join(f"[({x!r}), ({x!r})]" for x in sample)
        lines += [
            f"do print (f ({hidden}))",
            f"do print (Tree.flatten (grad f ({point})))",
            f"do print (Tree.flatten (grad total ({array})))",
        ]
        for i in range(len(sample)):
            unit = ", ".join("1.0" if i == j else "0.0" for j in range(len(sample)))
            shifted = [
                ", ".join(f"({x!r} + {step})" if i == j else f"({x!r})" for j, x in enumerate(sample))
                for step in ("1e-6", "-1e-6")
            ]
            lines += [
                f"do print (snd (jvp f ({point}) ({unit})))",
                f"do print ((f ({shifted[0]}) - f ({shifted[1]})) / 2e-6)",
                f"do print (Tree.flatten (snd (jvp (grad f) ({point}) ({unit}))))",
                f"do print ((Tree.flatten (grad f ({shifted[0]})) - Tree.flatten (grad f ({shifted[1]}))) / 2e-6)",
            ]
    return "\n".join(lines) + "\n"


def numbers(line: str) -> list[float]:
    return [float(x) for x in line.strip("[]").split(", ")]


def close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b)) or (a != a and b != b)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(dpl, row: Row, tmp_path) -> None:
    file = tmp_path / "row.dp"
    file.write_text(program(row), encoding="utf-8")
    native, interp = (dpl("run", "--engine", engine, file) for engine in ("native", "interp"))
    assert native.returncode == interp.returncode == 0, native.stderr + interp.stderr
    assert_same_output(native.stdout, interp.stdout, rel=1e-12)
    lines = iter(native.stdout.splitlines())
    for sample in row.samples:
        assert row.eval is not None
        assert close(float(next(lines)), row.eval(*sample), 1e-14)
        gradient = numbers(next(lines))
        elementwise = numbers(next(lines))
        assert all(close(x, gradient[i // 2], 1e-14) for i, x in enumerate(elementwise))
        for i in range(len(sample)):
            forward, slope = float(next(lines)), float(next(lines))
            assert close(forward, gradient[i], 1e-12)
            assert close(forward, slope, 1e-5)
            curvature, differences = numbers(next(lines)), numbers(next(lines))
            assert all(close(a, b, 1e-4) for a, b in zip(curvature, differences, strict=True))


def test_every_row_says_what_it_is() -> None:
    for row in TABLE.values():
        assert row.doc and "->" in row.type, row.name
        if row.linear is not None:
            assert len(row.linear) == row.arity, row.name
