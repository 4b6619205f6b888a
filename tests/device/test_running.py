"""Running sums and other scans as kernels have the bits of the loop: tile by tile in the evaluator of flat, where tiles
are short, and on the stand-in.  The host does only the steps of tiles that it must."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dpl.node import replace
from dpl.source import Source
from dplc.flat import interp
from dplc.flat import term as f
from dplc.flat.types import nothing
from dplc.flat.walk import every
from dplc.passes.device import scan_tiles
from dplc.pipeline import Context, compile_to
from stand_in import Server

SHIFT = 3  # tiles of 8 steps


class Device(interp.Machine):
    """The evaluator, as a device that does all Pars.  `alone` counts the tiles whose steps the host does."""

    def __init__(self, program: f.Program) -> None:
        super().__init__(program)
        self.alone = 0

    def par(self, par: f.Par, vars_: tuple[f.Var, ...], env: dict[str, Any]) -> tuple:
        if par.outs[0].kind != "done":
            return super().par(par, vars_, env)
        outs = tuple([f.Out("keep") if out.kind == "last" else out for out in par.outs[1:]])
        body = f.Block(par.body.binds, par.body.results[1:])
        try:
            made = super().par(replace(par, outs=outs, body=body), vars_[1:], env)
        except interp.Failure:
            return tuple([nothing(var.ty).value for var in vars_])
        return (True, *[self.last(out, x, env) if out.kind == "last" else x
                        for out, x in zip(par.outs[1:], made, strict=True)])  # fmt: skip

    def last(self, out: f.Out, places: interp.Array, env: dict[str, Any]) -> interp.Array:
        made = [0] * interp.value(out.inner[0], env)
        for k, place in enumerate(places.items):
            made[place] = k + 1
        return interp.Array((len(made),), made)

    def call(self, name: str, *args: Any) -> tuple:
        self.alone += name.startswith("running sum of")
        return super().call(name, *args)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_tiles, "SHIFT", SHIFT)
    monkeypatch.setattr(scan_tiles, "TILE", 1 << SHIFT)


def output(machine: interp.Machine) -> str:
    machine.call(machine.program.main)
    return "".join(machine.outside.output)


def in_order(xs: list[float]) -> list[float]:
    made = xs[:1]
    for x in xs[1:]:
        made.append(made[-1] + x)
    return made


DRAW = random.Random(7)
GROWING = [DRAW.random() for _ in range(120)]
SINGLE = [struct.unpack("f", struct.pack("f", x))[0] for x in GROWING]
STEPS = [DRAW.choice([0.5, 1.0, 1.5, 2.0, 3.0, -1.0, 5.0]) for _ in range(120)]
SUMS = {  # numbers, and how many tiles the host does at most
    "growing": (GROWING, 8),
    "falling": ([100.0, *(-x for x in GROWING)], 4),
    "ties": ([float(1 << 53), *STEPS], 2),
    "around": ([DRAW.gauss(0.0, 1.0) for _ in range(40)], 5),
    "small": ([5e-324, *(x * 1e-310 for x in GROWING[:40])], 5),
    "large": ([x * 1e307 for x in GROWING[:80]], 10),
    "zeros": ([0.0] * 20 + [-0.0] * 20 + [1.0] + [-0.0] * 40, 1),
    "negative": ([-0.0] * 30 + [0.0] + [-0.0] * 30, 4),
    "one": ([1.5], 0),
    "none": ([0.0][:0], 0),
    "nan": ([*GROWING[:20], float("inf"), -float("inf"), *GROWING[:20]], 6),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_have_the_bits_of_the_loop(short: None, name: str) -> None:
    xs, most = SUMS[name]
    told = ", ".join(map(str, xs)).replace("-inf", "-(1.0 / 0.0)").replace("inf", "1.0 / 0.0")
    machine = Device(program_of(f"do print (cumsum ([{told}] : float[{len(xs)}]))"))
    assert output(machine) == f"{in_order(xs)}\n"
    assert machine.alone <= most


AT = "let at = [for i < 60 -> i * i % 23]\n"
LOOPS = {
    "scatter": AT + "do print (scatter [for i < 25 -> 0.5] at [for i < 60 -> float i])",
    "scatter rows": AT + "do print (scatter [for i < 23 -> [1, i]] at [for i < 60 -> [i, i * i]])",
    "scatter's gradient": AT + """
let f (x : float[25]) (v : float[60]) = let s = scatter x at v in dot s (s * s)
do print (grad (f [for i < 25 -> 0.5]) [for i < 60 -> sin (float i)])
do print (grad (fun x -> f x [for i < 60 -> 0.1]) [for i < 25 -> cos (float i)])""",
    "f32": "let xs = [for i < 90 -> f32 (sin (float i)) + f32 0.4]\ndo print (cumsum xs)",
    "filter": "do print (filter (fun x -> x > 3) [for i < 50 -> i * i % 7])",
    "filter none": "do print (filter (fun x -> x > 9) [for i < 20 -> i % 5])",
    "filter all": "do print (filter (fun x -> x < 9) [for i < 30 -> i * i % 7])",
    "places": """
let places (kept : bool[n]) = loop (count, at) = (0, fill n (-1)) for i < n do
  (if kept[i] then count + 1 else count, { at with [count] = i })
do print (places [for i < 50 -> i * i % 7 > 3])
do print (places [for i < 48 -> i * i % 7 > 3])
do print (places [for i < 46 -> i < 0])""",
    "places in a branch": """
let places (kept : bool[n]) = loop (count, at) = (0, fill n (-1)) for i < n do
  if kept[i] then (count + 1, { at with [count] = i }) else (count, at)
do print (places [for i < 50 -> i * i % 7 > 3])""",
    "filter's gradient": """
do print (grad (fun x -> sum (filter (fun y -> y > 0.0) (x * x * x))) [for i < 40 -> cos (float i)])""",
    "ints": "do print (cumsum [for i < 50 -> i * i % 7 - 3])",
    "bytes": "do print (cumsum [for i < 50 -> u8 (i * i)])",
    "products": "do print (cumprod [for i < 50 -> 2 * i + 1])",
    "greatest": "do print (scan max (-2.0) [for i < 50 -> if i = 30 then 0.0 / 0.0 else sin (float i) * float i])",
    "least": "do print (scan min 3 [for i < 50 -> 40 - i * i % 41])",
    "zeros": "do print (scan max (-0.0) [for i < 40 -> if i % 3 = 0 then 0.0 else -0.0])",
    "gradient": "do print (grad (fun x -> let c = cumsum x in dot c (x * c)) [for i < 60 -> cos (float i)])",
    "tangent": "do print (jvp (fun (x : float[60]) -> cumsum (x * x)) [for i < 60 -> float i] [for i < 60 -> 0.1])",
    "twice": """
let f (x : float[40]) = sum (cumsum (x * x) ** 2)
do print (jvp (grad f) [for i < 40 -> cos (float i)] [for i < 40 -> 1.0 / float (i + 1)])""",
    "written": """
let run (xs : float[n]) (ys : float[n]) =
  loop (s, a, b) = (0.5, ys, ys) for i < n do
    let t = s + exp (- xs[i]) in
    (t, { a with [i] = t * ys[i] + s }, { b with [n - 1 - i] = b[n - 1 - i] + t })
do print (run [for i < 70 -> sin (float i)] [for i < 70 -> float i])""",
}  # fmt: skip
OTHERS = {
    "recurrence": """
let xs = [for i < 30 -> float i]
do print (loop (s, a) = (0.0, xs) for i < 30 do let t = 0.5 * s + xs[i] in (t, { a with [i] = t }))""",
    "read": """
let xs = [for i < 30 -> float i]
do print (loop (s, a) = (0.0, xs) for i < 29 do let t = s + a[i] in (t, { a with [i + 1] = t }))""",
    "told": """
let at = [for i < 30 -> i * 7 % 30]
do print (loop (s, a) = (0.0, [for _ < 30 -> 0.0]) for i < 30 do let t = s + 1.0 in (t, { a with [at[i]] = t }))""",
    "scatters of sums": AT + """
do print (loop s = [for _ < 23 -> 1.0] for i < 60 do { s with [at[i]] = s[at[i]] * 2.0 })""",
    "not in order": """
let xs = [for i < 30 -> i]
do print (loop (m, a) = (0, xs) for i < 30 do if xs[i] % 3 = 0 then (m + 2, { a with [m] = i }) else (m, a))""",
    "other numbers": """
let xs = [for i < 30 -> i]
do print (loop (m, a) = (0, xs) for i < 30 do if xs[i] % 3 = 0 then (m + 1, { a with [m] = i * i }) else (m, a))""",
    "where it lists": """
let xs = [for i < 30 -> i]
do print (loop (m, a) = (0, xs) for i < 30 do if a[i] % 3 = 0 then (m + 1, { a with [m] = i }) else (m, a))""",
    "float products": "do print (cumprod [for i < 30 -> 1.0 + 1.0 / float (i + 1)])",
}  # fmt: skip


def program_of(text: str) -> f.Program:
    return compile_to("sweeps", Source("test.dp", text), Context(device=True))[1]


def scans(program: f.Program) -> int:
    """How many loops a device may do."""
    return sum(isinstance(bind.rhs, f.Par) and bind.rhs.outs[0].kind == "done"
               for fn in program.fns.values() for bind in every(fn.body))  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_devices_are_those_of_the_host(short: None, name: str) -> None:
    program = program_of(LOOPS[name])
    assert scans(program)
    assert output(Device(program)) == output(interp.Machine(program))


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_remain(name: str) -> None:
    """Their steps need what the step before has made, or change places that nobody knows before."""
    assert not scans(program_of(OTHERS[name]))


PROGRAM = """
let n = 300
let xs = [for i < n -> sin (float i) + 0.5]
let c = cumsum xs
let g = grad (fun x -> let c = cumsum x in dot c c) xs
do print (sum [for i < n -> c[i] * g[i]])
"""


FAILING = """
let at = [for i < 50 -> if i > 32 then i * 3 else i]
let put (xs : float[60]) = scatter xs at [for i < 50 -> float i]
do print (put [for i < 60 -> 0.0])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not shutil.which("cc") or sys.platform != "linux":
        pytest.skip("needs a C compiler, Linux")
    made = Server(tmp_path_factory.mktemp("device"))
    yield made
    made.close()


def on_both(dpl, server: Server, folder: Path, text: str) -> list[subprocess.CompletedProcess[str]]:
    """Runs a program on the stand-in, which keeps a log, and on the host."""
    program, log = folder / "test.dp", folder / "log"
    program.write_text(text, encoding="utf-8")
    env = {"DPL_DEVICE_LEAST": "1", "DPL_STAND_IN_LOG": str(log), **server.environment}
    made = [dpl("run", "--engine", "native", program, DPL_DEVICE=device, **env) for device in ("gpu", "cpu")]
    assert not server.complaints()
    return made


def test_arrays_stay_on_the_device(dpl, server: Server, tmp_path: Path) -> None:
    """The host has what it needs of each tile, and the terms of a few."""
    there, here = on_both(dpl, server, tmp_path, PROGRAM)
    assert (there.returncode, there.stdout) == (0, here.stdout), there.stderr
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    copied = [int(line.split()[-1]) for line in lines if line.startswith("down")]
    assert 0 < max(copied) <= 1024  # bytes; an array has 2400


def test_a_place_that_is_not_there(dpl, server: Server, tmp_path: Path) -> None:
    there, here = on_both(dpl, server, tmp_path, FAILING)
    assert there.returncode == 1 and "index 99" in there.stderr
    assert (there.stdout, there.stderr) == (here.stdout, here.stderr)
    assert "launch" in (tmp_path / "log").read_text(encoding="utf-8")
