"""Additions to arrays that are too large for copies have the bits of the loop: in the evaluator of flat, where small
arrays count as large, and on the stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dplc.flat import interp
from dplc.flat import term as f
from dplc.flat.walk import every
from dplc.passes.device import sorted_adds
from dplc.passes.device.merge_sort import SORTED
from stand_in import Server
from test_running import Device, on_both, output, program_of, server

__all__ = ["server"]
AT = "let at = [for k < 9 -> if k % 3 = 0 then 4 else k * k % 6]\nlet vs = [for k < 9 -> sin (float k)]\n"
XS = "let xs = [for i < 6, j < 2 -> float (i + j)]\nlet ys = [for i < 6 -> float i]\n"
ADDS = {  # a program, and how many arrays it adds to by sorting
    "numbers": ("print (scatter_add [for i < 6 -> float i] at vs)", 1),
    "none": ("print (grad (fun (x : float[6]) -> sum [for k < 9 -> x[at[k]] * x[at[k]] * vs[k]]) ys)", 1),
    "several": ("print (grad (fun (x : float[6, 2]) -> sum [for i in at -> x[i, 0] * x[5 - i, 1]]) xs)", 1),
    "rows": ("print (grad (fun (x : float[6, 2]) -> let y = gather x at in sum (sum (y * y))) xs)", 1),
    "a loop": ("print (loop s = vs for k < 9 do { s with [at[k]] = s[at[k]] + vs[k] })", 1),
    "two": ("print (jvp (grad (fun (x : float[6]) -> sum [for i in at -> x[i] * x[i]])) ys ys)", 2),
    "failing": ("print (grad (fun (x : float[4]) -> sum [for k < 9 -> x[at[k]] * vs[k]]) [1.0, 2.0, 3.0, 4.0])", 1),
    "own places": ("print (grad (fun (x : float[6, 2]) -> sum [for k < 6 -> x[k, 0] * x[k, 1]]) xs)", 0),
}  # fmt: skip


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_adds, "MOST", 3)


def arrays(program: f.Program) -> int:
    return sum(isinstance(bind.rhs, f.Call) and bind.rhs.fn == SORTED
               for fn in program.fns.values() for bind in every(fn.body))  # fmt: skip


def told(machine: interp.Machine) -> str:
    try:
        return output(machine)
    except interp.Failure as failure:
        return repr(failure)


@pytest.mark.parametrize("name", ADDS)
def test_sums_have_the_bits_of_the_loop(large: None, name: str) -> None:
    text, many = ADDS[name]
    program = program_of(f"{AT}{XS}do {text}")
    assert arrays(program) == many
    assert told(Device(program)) == told(interp.Machine(program))


def test_small_arrays_have_copies() -> None:
    assert not arrays(program_of(f"{AT}do {ADDS['numbers'][0]}"))


@pytest.mark.slow
def test_a_large_array(dpl, server: Iterator[Server], tmp_path: Path) -> None:
    there, here = on_both(dpl, server, tmp_path, """
let n = 600000
let at = [for k < 2000 -> if k % 3 = 0 then 7 else (k * 7919 + k * k) % n]
let s = scatter_add [for i < n -> float (i % 10)] at [for k < 2000 -> sin (float k)]
do print [for k in at -> s[k]]
""")  # fmt: skip
    assert (there.returncode, there.stdout) == (0, here.stdout), there.stderr
    copied = [int(line.split()[-1]) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()
              if line.startswith("down")]  # fmt: skip
    assert max(copied) <= 16000  # bytes: what is printed
