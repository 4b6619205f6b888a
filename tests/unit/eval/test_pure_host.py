"""The language runs without the compiler, without threads and without libraries in C, as in a browser."""

import subprocess
import sys

from conftest import ROOT

FORBIDDEN = ("ctypes", "threading", "numpy", "llvmlite", "fcntl", "resource", "dplc")
PROGRAM = """
import Linalg
type shape = Dot | Box of float * float
let area s = match s with | Dot -> 0.0 | Box (a, b) -> a * b
do print (area (Box (2.0, 3.0)))
do print (grad (fun x -> sum (map sin [x, 2.0 * x])) 0.5)
do print (Linalg.solve [[2.0, 0.0], [1.0, 4.0]] [2.0, 9.0])
do print (reset (1 + (shift k -> k (k 10))))
do print (0.1f32 * 3.0f32, length (filter (fun x -> x > 1) [1, 2, 3]))
"""
SCRIPT = """
import logging, sys  # Lark wants logging, which wants threading and starts none
threading = sys.modules["threading"]
for name in {forbidden}: sys.modules[name] = None
sys.path.insert(0, {lang!r})
from dpl.core.verify import verify
from dpl.eval.run import run
from dpl.source import Source
from dpl.syntax.load import load
from dpl.types.check import check_program
program, _ = check_program(load(Source("main.dp", {program!r})))
run(program)
sys.modules["threading"] = threading
"""


def test_a_program_is_parsed_checked_and_run() -> None:
    script = SCRIPT.format(forbidden=FORBIDDEN, lang=str(ROOT / "lang"), program=PROGRAM)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["6.0", "1.9581871736266523", "[1.0, 2.0]", "12", "(0.3, 2)"]
