"""Ctrl-C while a model runs: `dpl.load` and the wheels of models."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from building import needs_cc, written
from conftest import ROOT

MODEL = """
export let quick (x : float) : float = x + 1.0
export let steps (n : int) : float = loop s = 0.0 for i < n do s + sin (float i)
export let whole (n : int) : int = loop s = 0 for i < n do s + i
export let grown (n : int) : float =
  loop s = 0.0 for i < n do s + sum (map exp [for j < 1000 -> float (i + j)])
export let until (n : int) : int = loop i = 0 while i < n do i + 1 - i % 2 + i % 2
export let fibonacci (n : int) : int = let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2) in fib n
export let parity (n : int) : bool =
  let rec even n = if n = 0 then true else odd (n - 1) and odd n = if n = 0 then false else even (n - 1) in even n
export let products (n : int) : float =
  let a = [for i < 200, j < 200 -> 0.001 * float (i + j)] in
  sum (sum (loop b = a for k < n do b @ a))
"""
LONG = 10**12
CALLS = {
    "steps": LONG, "whole": LONG, "grown": LONG, "until": LONG, "fibonacci": 90, "parity": LONG,
    "products": LONG,
}  # fmt: skip

SCRIPT = """
import os, signal, sys, threading, time
{load}

def interrupt():
    time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(work):
    threading.Thread(target=interrupt).start()
    try:
        work()
    except KeyboardInterrupt:
        assert model.quick(1.0) == 2.0 and model.fibonacci(10) == 55
        return True

for name, size in {calls}.items():
    assert interrupted(lambda: getattr(model, name)(size)), name
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

worker = threading.Thread(target=lambda: model.steps(5_000_000))  # who waits for a call is interrupted, not the call
worker.start()
assert interrupted(worker.join)
worker.join()

told = []
signal.signal(signal.SIGINT, lambda *more: told.append(1))  # who handles Ctrl-C himself, has it after the call
assert not interrupted(lambda: told.append(model.steps(5_000_000)))
while len(told) < 2:
    time.sleep(0.01)
print("all stopped")
"""


def run(script: str, path: list[Path], **env: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), **env},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "all stopped\n", done.stderr


def test_a_loaded_model(tmp_path, cache) -> None:
    load = f"import dpl; model = dpl.load({str(written(tmp_path, MODEL))!r})"
    run(SCRIPT.format(load=load, calls=CALLS), [ROOT / "lang", ROOT / "compiler"], DPL_CACHE=str(cache))


STATE = "let calls = ref 0\nexport let count () : int = calls := !calls + 1; !calls\n"


@needs_cc
@pytest.mark.parametrize("state", ["", STATE], ids=["worlds", "turns"])
def test_a_wheel(dpl, tmp_path, state) -> None:
    made = dpl("build", "--python", written(tmp_path, MODEL + state, "endless.dp"), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    zipfile.ZipFile(tmp_path / made.stdout.strip()).extractall(tmp_path)
    few = {name: CALLS[name] for name in ("steps", "parity")}
    run(SCRIPT.format(load="import endless as model", calls=few), [tmp_path, Path(np.__file__).parent.parent])
