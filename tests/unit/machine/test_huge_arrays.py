"""Arrays whose sizes have a product that is too large: out of memory, whatever the product wraps to."""

from __future__ import annotations

import pytest
from dplc.tools.repl.loop import answer
from dplc.tools.repl.session import Session

N, M = 1 << 32, 1 << 61  # n * n elements, and m floats, are as many bytes as 0
HUGE = [
    "[for k < 1, i < n, j < n -> float (i + j)][0, 0, 5]",
    "[for k < 1, i < n, j < n, l < 3 -> float (i + j)][0, 0, 5, 0]",
    "[for k < 1, i < m -> float i][0, 5]",
    "[for k < 1, i < n, j < n -> [float i]][0, 0, 5, 0]",
    "zeros m",
    "fill m [1.0]",
    "fill (m / 2) 1.0",
    "outer (zeros n) (zeros n)",
    "sum (none :> float[0, 2305843009213693952])",
    "transpose (none :> float[0, 4294967296]) @ (none :> float[0, 4294967296])",
    "grad (fun x -> [for k < 1, i < n, j < n -> x * float i][0, 0, 5]) 1.0",
    "diff (fun x -> [for k < 1, i < n, j < n -> x * float i][0, 0, 5]) 1.0",
    "[for i < n * 1000 -> i]",
    "range (n * 1000)",
    "tabulate (n * 1000) (fun i -> [i])",
    "scan (fun s _ -> s) 0.0 (ones (n * 1000))",
]
KEPT = "grad (fun x -> loop s = x for _ < m do s * x) 1.0"  # by native code, which knows how much before it begins
SAFE = {
    "length (transpose (none :> float[0, 4294967296]))": 4294967296,
    "length (sum [for k < 0, i < 3, j < n -> [1.0, 2.0]])": 3,
}
NONE = "let none = [for i < 0 -> filter (fun x -> x > 1.0) [1.0]]"


@pytest.mark.parametrize("engine", ["native", "interp"])
def test_out_of_memory(capfd: pytest.CaptureFixture[str], engine: str) -> None:
    """Before anything is built, and with the place in the program."""
    session = Session(engine)
    for line in (f"let n = int (float {N})", f"let m = int (float {M})", NONE):
        assert answer(session, line)
    for text in [*HUGE, *([KEPT] if engine == "native" else [])]:
        capfd.readouterr()
        assert not answer(session, text), text
        told = capfd.readouterr().err
        assert "R0802" in told and ("^" in told or text == KEPT), text
    for text, wanted in SAFE.items():
        assert answer(session, text), text
        assert capfd.readouterr().out == f"it : int = {wanted}\n"


def test_a_shape_that_wraps() -> None:
    """No elements are not as many as the product of these sizes."""
    session = Session("native")
    assert answer(session, "let none = filter (fun x -> x > 1.0) [1.0]")
    assert not answer(session, f"((reshape none) : float[{N}, {N}])[7, 9]")
