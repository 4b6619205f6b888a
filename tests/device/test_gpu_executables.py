"""Executables with code for both: without a GPU, with the stand-in, and all that is prepared for a real GPU."""

from __future__ import annotations

import importlib.util
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import on_gpu
import pytest
from conftest import ROOT
from stand_in import Server

pytestmark = pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux")

PROGRAM = """let xs = [for i < 1000 -> float i]
let ys = [for x in xs -> sqrt (x * x) + 1.0]
do print (sum ys)
do print (sum [for x in take 40 xs -> sum [for j < 40 -> x * float j]])
do print xs[List.length Sys.args + 999]
"""
OUTPUT = "500500.0\n608400.0\n999.0\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("device"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    (folder / "sums.dp").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "dplc.cli", "build", "--gpu", "sums.dp", "-o", "sums"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "sums"


def run(executable: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([executable, *args], env={**os.environ, **env}, capture_output=True, text=True, check=False)


def test_without_a_gpu(executable: Path) -> None:
    made = run(executable, DPL_CUDA="/nowhere/libcuda.so.1", DPL_DEVICE_LEAST="1")
    assert (made.returncode, made.stdout, made.stderr) == (0, OUTPUT, "")


def test_that_must_have_a_gpu(executable: Path) -> None:
    made = run(executable, DPL_CUDA="/nowhere/libcuda.so.1", DPL_DEVICE="gpu")
    assert (made.returncode, made.stdout) == (1, "") and "R0511" in made.stderr and "/nowhere" in made.stderr


def test_on_a_device(executable: Path, server: Server, tmp_path: Path) -> None:
    log = tmp_path / "log"
    made = run(executable, DPL_DEVICE_LEAST="1", DPL_STAND_IN_LOG=str(log), **server.environment)
    assert (made.returncode, made.stdout, made.stderr) == (0, OUTPUT, "")
    assert log.read_text(encoding="utf-8").count("launch par_") >= 1
    assert not server.complaints()


def test_failures_on_a_device(executable: Path, server: Server) -> None:
    made = run(executable, "one", DPL_DEVICE="gpu", DPL_DEVICE_LEAST="1", **server.environment)
    assert made.returncode == 1 and "index 1000 " in made.stderr


def test_a_device_that_is_too_old(executable: Path, server: Server) -> None:
    """`auto` is never an error."""
    old = {"DPL_STAND_IN_OLD": "1", "DPL_DEVICE_LEAST": "1", **server.environment}
    made = run(executable, **old)
    assert (made.returncode, made.stdout, made.stderr) == (0, OUTPUT, "")
    made = run(executable, DPL_DEVICE="gpu", **old)
    assert made.returncode == 1 and "R0511" in made.stderr and "801" in made.stderr


def test_little_memory(executable: Path, server: Server) -> None:
    """What has no room on the device is done by the host."""
    made = run(executable, DPL_DEVICE="gpu", DPL_DEVICE_LEAST="1", DPL_STAND_IN_MEMORY="4096", **server.environment)
    assert (made.returncode, made.stdout, made.stderr) == (0, OUTPUT, "")


def test_static_executables_load_no_driver(dpl) -> None:
    """Thread-local variables of a library are not there in a static executable, so a driver would crash it."""
    made = dpl("build", "--gpu", "--static", "examples/hello.dp")
    assert made.returncode == 2 and "driver's library, which a static" in made.stderr


@pytest.mark.parametrize("args", [("--lib",), ("--target", "x86_64-windows"), ("--emit", "ptx")])
def test_only_executables_for_linux(dpl, args: tuple[str, ...]) -> None:
    made = dpl("build", "--gpu", *args, "examples/hello.dp")
    assert made.returncode == 2 and "--gpu is for" in made.stderr


def test_all_that_is_prepared(executable: Path, tmp_path: Path) -> None:
    """`on_gpu.py` runs what was built, and goes on when something is missing."""
    (tmp_path / "programs").mkdir()
    shutil.copy(executable, tmp_path / "programs" / "comprehensions")
    script = ROOT / "tests" / "device" / "on_gpu.py"
    made = subprocess.run([sys.executable, script, "run", tmp_path, "--stand-in"], capture_output=True, text=True)
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert made.returncode == 1 and made.stdout == report
    assert "* 1 are right" in report and "No such file" in report
    assert "WRONG: a sum" in report and "## All programs" in report


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`benchmarks/gpu.py`, as on a machine with a GPU."""
    spec = importlib.util.spec_from_file_location("gpu", ROOT / "benchmarks" / "gpu.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gpu", made)
    spec.loader.exec_module(made)
    monkeypatch.setattr(made, "device", lambda: nullcontext(({}, True)))
    return made


def test_programs_of_the_table_are_chosen_by_name(gpu: ModuleType) -> None:
    assert {row.mode for row in gpu.chosen(list(gpu.ROWS), ["kmeans"])} == {"function", "gradient"}
    with pytest.raises(SystemExit, match="no program k_means; there are stream, launches, product"):
        gpu.chosen(list(gpu.ROWS), ["kmeans", "k_means"])


def test_a_row_of_the_table_says_what_is_wrong(
    gpu: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that prints no numbers, and one that is missing, as JAX is; the other rows are there."""
    (tmp_path / "bin").mkdir()
    odd = tmp_path / "bin" / gpu.ROWS[0].name
    odd.write_text("#!/bin/sh\necho no numbers\n", encoding="utf-8")
    odd.chmod(0o755)
    first, last = gpu.run(tmp_path, [gpu.ROWS[0], gpu.ROWS[-1]], 1, 20.0)
    assert first.agrees.startswith("NO: ValueError") and "No such file" in last.agrees and "JAX: " in last.notes
    assert (table := (tmp_path / "table.md").read_text(encoding="utf-8")).count("NO: ") == 2
    out, err = capsys.readouterr()
    assert out == table and f"{first.name}, {first.mode}: size {first.small}, on the CPU" in err


def test_what_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    """It would hold the GPU during the next steps, and its output open."""
    place = tmp_path / "number"
    made = on_gpu.run(["sh", "-c", f"sleep 60 & echo $! > {place}; wait"], 1, {})
    assert made == (124, "", "stopped after 1 s")
    try:
        process = os.pidfd_open(int(place.read_text(encoding="utf-8")))
    except ProcessLookupError:
        return
    with os.fdopen(process, "rb", buffering=0):  # it was told to end: it does so when it gets a processor
        assert select.select([process], [], [], 30)[0]
