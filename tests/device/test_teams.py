"""Loops of small steps that a team does: one block of threads, inside of one launch."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from dpl.node import replace
from dpl.source import Source
from dplc.flat import interp
from dplc.flat import term as f
from dplc.flat.interp_ops import Failure
from dplc.flat.types import nothing
from dplc.machine.cuda.kernels import Kernels
from dplc.machine.cuda.ptx import ptx
from dplc.passes.device.kernels import Kernel
from dplc.passes.device.team_steps import is_team
from dplc.passes.kernels.independence import is_plain
from dplc.pipeline import Context, compile_to
from pars import Launch, compare
from stand_in import Server


class Teams(interp.Machine):
    """The evaluator of flat, as a device that does teams only, and compares.  `done` and `failed` count them."""

    def __init__(self, program: f.Program) -> None:
        super().__init__(program)
        self.done = self.failed = 0

    def par(self, par: f.Par, vars_: tuple[f.Var, ...], env: dict[str, Any]) -> tuple:
        if not is_team(par):
            none = any(out.kind == "done" for out in par.outs)
            return tuple([nothing(var.ty).value for var in vars_]) if none else super().par(par, vars_, env)
        kernels = Kernels(self.program)
        kernel = kernels.made(par)
        assert isinstance(kernel, Kernel), kernel
        if not all(is_plain(arg.ty) for arg in kernel.args):
            return tuple([nothing(var.ty).value for var in vars_])  # the runtime of the host copies data
        launch = Launch(kernel, ptx(kernels.text()), env)
        assert launch.suits()
        given = launch.run()
        body = f.Block(par.body.binds, par.body.results[1:])
        try:
            wanted = super().par(replace(par, outs=par.outs[1:], body=body), vars_[1:], env)
        except (Failure, AttributeError):  # null has no shape
            assert launch.failed
            wanted = ()
        if given is None:
            self.failed += 1
            return tuple([nothing(var.ty).value for var in vars_])
        self.done += 1
        compare(kernel, given, wanted)
        return (True, *wanted)


def run(text: str) -> Teams:
    program = compile_to("reference_counts", Source("test.dp", text), Context(device=True))[1]
    machine = Teams(program)
    machine.call(program.main)
    return machine


DONE = {
    "elementwise": """
do print (loop x = [for i < 300 -> float i] for k < 3 do [for i < 300 -> tanh (x[i] - x[299 - i])])""",
    "sums": """
let step (x : float[n]) = let s = sum x in let d = sum [for v in x -> (v - s) * (v - s)] in 0.5 * x + d / s
do print (loop x = [for i < 1100 -> float i] for k < 2 do step x)""",
    "few in order": """
do print (loop x = [for i < 15 -> 1e10 / float (i + 1)] for k < 4 do x + sum [for v in x -> v * v] * 1e-20)""",
    "ints, f32": """
let (a, b, c) = loop (a, b, c) = (7, [for i < 40 -> f32 (sin (float i))], [for i < 40 -> i]) for k < 3 do
  (a + sum c, [for i < 40 -> b[i] * b[39 - i] + f32 0.5 * sum b], [for i < 40 -> c[i] * 3 % 17])
do print (a, b, c)""",
    "a matrix": """
let (w, x) = loop (w, x) = ([for i < 12 -> [for j < 12 -> sin (float (i * j))]], [for i < 12 -> 1.0]) for k < 3 do
  let y = tanh (w @ x) in ([for i < 12 -> [for j < 12 -> w[i, j] - 0.1 * y[i] * x[j]]], y)
do print (w, x)""",
    "sums of rows": """
do print (loop x = [for i < 9 -> float i] for k < 3 do
  sum [for i < 50 -> [for j < 9 -> x[j] * cos (float (i + j))]])""",
    "rows that points drop": """
do print (loop u = [for i < 2 -> [for j < 20 -> float (i * j)]] for k < 4 do
  [for r in u -> [for j < 20 -> r[19 - j] - 0.5 * r[(j + 1) % 20]]])""",
    "updates": """
do print (loop x = [for i < 20 -> float i] for k < 6 do
  let y = [for i < 20 -> x[i] + x[k]] in { y with [k] = 2.0 * y[3] })""",
    "scattered": """
let at = [for i < 60 -> i * i % 7]
do print (loop x = [for i < 7 -> float i] for k < 3 do scatter_add (0.5 * x) at [for i < 60 -> x[i % 7] * 0.25])""",
    "scattered by many": """
let at = [for i < 300 -> i * i % 5]
do print (loop x = [for i < 5 -> float i] for k < 2 do scatter_add (0.5 * x) at [for i < 300 -> x[i % 5] * 0.25])""",
    "branches, loops": """
do print (loop (x, n) = ([for i < 30 -> float i], 0) while n < 5 && x[3] < 1e6 do
  let (y, _) = loop (y, e) = (x, 1.0) while e > 0.2 do ([for v in y -> v + e], e / 2.0) in
  if y[0] > 4.0 then ([for v in y -> v - 4.0], n + 1) else (y, n + 1))""",
    "both sweeps": """
let logp (xs : float[n, 2]) (m : float[3, 2]) = sum [for x in xs -> logsumexp [for j < 3 ->
  let y = exp m[j] * x in sum m[j] - 0.5 * dot y y]]
let xs = [for k < 30 -> [sin (float k), cos (1.3 * float k)]]
do print (loop m = [for a < 3 -> [sin (float a), 0.1]] for k < 2 do m + 0.01 * grad (logp xs) m)""",
    "points that give tuples": """
let train k = let x = loop x = [for i < 60 -> float (i + k)] for _ < 5 do [for i < 60 -> 0.5 * x[59 - i]] in (x, sum x)
do print [for k < length (filter (fun i -> i > 0) (range 2)) -> train k]""",
    "functions": """
let twice f x = f (f x)
let move (x : float[n]) : float[n] = [for i < n -> x[i] * 0.5 + x[n - 1 - i]]
let more (x : float[n]) : float[n] = let m = sum x in [for v in x -> v - m]
do print (loop x = [for i < 33 -> float i] for k < 4 do if k % 2 = 0 then twice move x else more (more x))""",
    "a gradient": """
let cell w x h = tanh (w @ h + x)
let run w h0 = loop (s, h) = (0.0, h0) for t < 4 do
  let h = cell w [for i < 6 -> sin (float (i + t))] h in (s + sum (h * h), h)
let f w = let (s, h) = run w [for i < 6 -> 0.1] in s + h[2]
do print (loop w = [for i < 6 -> [for j < 6 -> cos (float (i + 3 * j))]] for k < 2 do w - 0.1 * grad f w)""",
}  # fmt: skip
FAILING = """
let pick (x : float[n]) (at : int[n]) : float[n] = [for i < n -> x[at[i]]]
let go m = loop x = [for i < 20 -> float i] for k < 4 do pick x [for i < 20 -> i + (if k = m then 1 else 0)]
do print (sum (go 7))
"""
OTHERS = {
    "effects": "do print (loop x = [for i < 30 -> float i] for k < 3 do (print k; 2.0 * x))",
    "numbers": "do print (loop (x, y) = (0.1, 0.2) for k < 30 do (sin y, x + 1.0))",
    "strings": """
do print (loop (x, s) = ([for i < 30 -> float i], "") for k < 3 do (2.0 * x, s ++ "a"))""",
}


LONG = ("a gradient", "both sweeps")  # seconds, most of them for LLVM


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in DONE])
def test_a_team_does_what_the_host_does(name: str) -> None:
    machine = run(DONE[name])
    assert machine.done == 1 and not machine.failed


def test_the_host_does_a_loop_that_fails() -> None:
    assert run(FAILING).done == 1
    with pytest.raises(Failure):
        run(FAILING.replace("go 7", "go 2"))


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_remain(name: str) -> None:
    machine = run(OTHERS[name])
    assert (machine.done, machine.failed) == (0, 0)


COUNTED = """
let n = 40 + List.length Sys.args
let step (x : float[n]) s = let y = [for v in x -> tanh (v + s)] in (y, sum y)
let (x, s, t) = loop (x, s, t) = ([for i < n -> sin (float i)], 0.1, 2.0) for k < 5 do
  let (y, s) = step x s in (y, s, t * s)
do print (s, t)
"""


@pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux")
def test_the_host_launches_and_waits_once(dpl, tmp_path: Path) -> None:
    """A kernel makes the array that the loop begins with.  The numbers come with the record of failures."""
    server, log = Server(tmp_path), tmp_path / "log"
    (tmp_path / "test.dp").write_text(COUNTED, encoding="utf-8")
    env = {"DPL_DEVICE_LEAST": "1", "DPL_STAND_IN_LOG": str(log), **server.environment}
    there, here = (
        dpl("run", "--engine", "native", tmp_path / "test.dp", DPL_DEVICE=device, **env) for device in ("gpu", "cpu")
    )
    said = server.complaints()
    server.close()
    assert (there.returncode, there.stdout, said) == (0, here.stdout, "")
    done = Counter(line.split()[0] for line in log.read_text(encoding="utf-8").splitlines())
    assert (done["launch"], done["wait"]) == (2, 1)
