"""`dpl build --target`: executables and libraries for other machines.  Slow: zig builds a C library for each, once.

    pip install -e '.[dev,cross]' && pytest -m slow tests/outside/test_targets.py

They are run where something here can: by node, by qemu (Debian: qemu-user-static), by wine.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from building import done, written
from conftest import ROOT, assert_same_output

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ziglang") is None, reason="the Python package ziglang is not installed"
    ),
]

PROGRAM = """
let rec depth n = if n = 0 then 0 else 1 + depth (n - 1)
let product (a : float[n, n]) = a @ transpose a
do (match Sys.args with
  | ["fail";] -> print ([1, 2][String.length (show (depth 10))])
  | ["exit";] -> Sys.exit 7
  | ["read"; path] -> print (String.length (Data.read_text path))
  | ["write"; path] -> Data.write_text path "two\\nlines"
  | args ->
      print args;
      print (depth 2000);
      print (map (fun x -> exp (sin x) / 3.0) [0.0, 1.0, 1e10]);
      print (show 1e-300 ++ show 1.5f32 ++ $"{3.14159:.3f}");
      print (sum (product [for i < 40, j < 40 -> float (i * j % 7)]));
      print (grad (fun x -> sum (sum (tanh (x @ x)))) [[0.1, 0.2], [0.3, 0.4]]);
      print (Sys.time () > 1.7e9))
"""

WASI = """
import { WASI } from 'node:wasi'
import { readFileSync } from 'node:fs'
const [file, ...args] = process.argv.slice(2)
const wasi = new WASI({ version: 'preview1', args: [file, ...args], env: {}, preopens: { '/': '/' } })
const made = await WebAssembly.instantiate(await WebAssembly.compile(readFileSync(file)), wasi.getImportObject())
process.exitCode = wasi.start(made)
"""
RUNNERS = {
    "x86_64-linux-musl": [],
    "aarch64-linux-musl": ["qemu-aarch64-static"],
    "x86_64-windows": ["wine"],
    "wasm32": ["node", "--no-warnings", "wasi.mjs"],
}


@pytest.mark.parametrize("target", RUNNERS)
def test_programs_run(dpl, tmp_path: Path, target: str) -> None:
    runner = RUNNERS[target]
    if runner and not shutil.which(runner[0]):
        pytest.skip(f"there is no {runner[0]}")
    written(tmp_path, WASI, "wasi.mjs")
    file = written(tmp_path, PROGRAM, "program.dp")
    run = dpl("build", "--target", target, file, cwd=tmp_path, timeout=900)
    assert run.returncode == 0, run.stderr

    def ran(*args: str, code: int = 0) -> str:
        env = {**os.environ, "WINEDEBUG": "-all", "WINEPREFIX": str(tmp_path / "wine")}
        command = [*runner, f"./{run.stdout.strip()}", *args]
        got = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=300, check=False)
        assert got.returncode == code, got.stderr
        assert code == 0 or not got.stdout
        return (got.stderr if code else got.stdout).decode()

    wanted = dpl("run", file, "a b", "ü").stdout
    assert_same_output(ran("a b", "ü"), wanted, rel=1e-12)
    assert "error[R0705]: index 2 is out of bounds for length 2" in ran("fail", code=1)
    ran("exit", code=7)
    place = str(tmp_path / "öut.txt") if target != "x86_64-windows" else "öut.txt"
    ran("write", place)
    assert (tmp_path / "öut.txt").read_bytes() == b"two\nlines"
    assert ran("read", place) == "9\n"
    assert "cannot read" in ran("read", "/nowhere/x", code=1)


@pytest.mark.parametrize(
    ("target", "magic"),
    [
        ("aarch64-linux", b"\x7fELF"), ("aarch64-macos", b"\xcf\xfa\xed\xfe"), ("x86_64-macos", b"\xcf\xfa\xed\xfe"),
        ("x86_64-windows", b"MZ"),
    ],
)  # fmt: skip
def test_files_of_the_right_kind(dpl, tmp_path: Path, target: str, magic: bytes) -> None:
    """Those that nothing here can run, and libraries."""
    hello = ROOT / "examples" / "hello.dp"
    model = ROOT / "examples" / "embed" / "curve.dp"
    for options in ((hello,), ("--lib", model), ("--python", model)):
        run = dpl("build", "--target", target, *options, cwd=tmp_path, timeout=900)
        assert run.returncode == 0, run.stderr
        made = tmp_path / run.stdout.split("\n")[0]
        assert made.read_bytes().startswith(b"PK" if "--python" in options else magic)


def test_without_libraries(dpl, tmp_path: Path) -> None:
    """Where there is no `cc`, zig links for this machine, too."""
    for options in ((), ("--static",)):
        run = dpl("build", *options, ROOT / "examples" / "hello.dp", cwd=tmp_path, timeout=900, CC="no-such-compiler")
        assert run.returncode == 0, run.stderr
        assert done([tmp_path / "hello"], tmp_path).stdout == "Hello, world!\n"
