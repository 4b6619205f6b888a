"""Programs on a GPU, beside the CPU: do they assemble, give the same numbers, and how long do they take?

    python benchmarks/gpu.py [NAME ...]                    builds them and runs them
    python benchmarks/gpu.py [NAME ...] --build FOLDER     builds them only
    python FOLDER/gpu.py [NAME ...] --built FOLDER         runs them: Python and the driver are enough

Without a GPU the kernels are interpreted by the stand-in of `tests/device`, at small sizes, and no times are told.
With one, times are the least of N repetitions after a first one, and include waiting for the results; the CPU's are
those of the same program with all processors.  JAX's stand beside them where it finds the GPU (`gpu/beside_jax.py`).
Each step of a program has a limit.  What is being done is told on the terminal; the table is printed row by row, and so
is FOLDER/table.md written.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).parent
DPL = [sys.executable, "-m", "dplc.cli"]
NEAR = 1e-9  # products of matrices and additions to one place have an order of their own
PROCESSOR = "x86-64-v3"


@dataclass(slots=True)
class Row:
    """A program and the sizes at which it runs; `floor` is what the card cannot be faster than (ms, of an H200)."""

    name: str
    small: int
    large: int
    floor: str
    mode: str = "gradient"
    least: str = "1"  # operations that are worth a launch at the small size: long points take long to interpret
    kernels: int = 0
    registers: int = 0
    spills: int = 0
    agrees: str = ""
    cpu: float = 0.0
    gpu: float = 0.0
    jax: float = 0.0
    notes: str = ""


ROWS = (
    Row("stream", 1000, 100_000_000, "0.37", "function"),
    Row("launches", 50, 1000, "2.5", "function"),
    Row("product", 40, 4096, "2.1", "function"),
    Row("black_scholes", 2000, 100_000_000, "1.3", "function"),
    Row("black_scholes", 2000, 100_000_000, "3.5"),
    Row("ensemble", 64, 1_000_000, "0.4", "function"),
    Row("ensemble", 64, 1_000_000, ""),
    Row("gmm", 64, 100_000, ""),
    Row("nbody", 48, 65_536, "33"),
    Row("kmeans", 500, 1_000_000, "0.008", "function"),
    Row("kmeans", 500, 1_000_000, ""),
    Row("mlp", 2, 512, "0.35"),
    Row("mlp", 2, 65_536, "10"),
    Row("lenet", 3, 512, "", least="2000"),
    Row("char_rnn", 4, 512, ""),
    Row("trees", 6, 1024, ""),
)


# ---- what is being done


START = time.monotonic()


def tell(what: str) -> None:
    """Says what is being done, and since when."""
    print(f"{time.monotonic() - START:6.0f} s  {what}", file=sys.stderr, flush=True)


# ---- building


def build(rows: list[Row], folder: Path, sm: int) -> None:
    """Writes the programs to a folder, with all that is needed to run them."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "gpu").mkdir(exist_ok=True)
    shutil.copy(__file__, folder / "gpu.py")
    shutil.copy(HERE / "gpu" / "beside_jax.py", folder / "gpu")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = dict(zip(names := sorted({row.name for row in rows}), pool.map(lambda n: built(n, folder, sm), names)))
    for row in rows:
        row.kernels, row.registers, row.spills, row.agrees = made[row.name]
    (folder / "rows.json").write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


def built(name: str, folder: Path, sm: int) -> tuple[int, int, int, str]:
    """Builds a program: its kernels, the most registers of one, the bytes that they spill, and what went wrong."""
    tell(f"{name}: compiling and assembling ...")
    source, ptx = str(HERE / "gpu" / f"{name}.dp"), folder / "bin" / f"{name}.ptx"
    try:
        command = [*DPL, "build", "--gpu", "--cpu", PROCESSOR, source, "-o", str(folder / "bin" / name)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        command = [*DPL, "build", "--emit", "ptx", "--cpu", f"sm_{sm}", source, "-o", str(ptx)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        kernels, told = ptx.read_text(encoding="utf-8").count(".entry "), ""
        if (tool := shutil.which("ptxas")) and kernels:
            command = [tool, f"-arch=sm_{sm}", "-v", str(ptx), "-o", os.devnull]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    except subprocess.CalledProcessError as error:
        return 0, 0, 0, f"NO: {error.stderr[:200]}"
    finally:
        ptx.unlink(missing_ok=True)
    registers = max(map(int, re.findall(r"Used (\d+) registers", told)), default=0)
    return kernels, registers, sum(map(int, re.findall(r"(\d+) bytes spill stores", told))), ""


# ---- running


@dataclass(slots=True)
class Runner:
    """What runs the built programs: `device` are the variables by which they find the GPU or the stand-in."""

    folder: Path
    device: dict[str, str]
    real: bool
    rounds: int
    limit: float  # seconds for a step

    def ran(self, row: Row, size: int, rounds: int, **env: str) -> tuple[list[list[float]], str]:
        """What a program has printed within the limit: for each repetition processor time, time and results; and what
        went wrong."""
        command = [str(self.folder / "bin" / row.name), row.mode, str(size), str(rounds)]
        out, told = output(command, self.limit, env)
        lines = [line.split() for line in out.splitlines(keepends=True) if line.endswith("\n")]
        return [[float(word) for word in line] for line in lines], told

    def fill(self, row: Row) -> None:
        """Runs a program, and notes what came of it."""
        if row.agrees:
            return  # it was not built
        on_device = {"DPL_DEVICE": "gpu", **self.device}
        what = f"{row.name}, {row.mode}"
        tell(f"{what}: size {row.small}, on the CPU ...")
        ours = self.ran(row, row.small, 1, DPL_DEVICE="cpu")
        tell(f"{what}: size {row.small}, {'on the GPU' if self.real else 'interpreted'} ...")
        row.agrees = agreement(ours, self.ran(row, row.small, 1, DPL_DEVICE_LEAST=row.least, **on_device))
        if self.real:
            tell(f"{what}: size {row.large}, on the GPU ...")
            gpu = self.ran(row, row.large, self.rounds + 1, **on_device)
            tell(f"{what}: size {row.large}, on the CPU ...")
            cpu = self.ran(row, row.large, 2, DPL_DEVICE="cpu")
            row.gpu, row.cpu = least(gpu[0]), least(cpu[0])
            row.notes = next(filter(None, (gpu[1], "" if cpu[0] else f"CPU: {cpu[1]}")), "")
            if gpu[0] and cpu[0]:
                row.agrees += f"; {agreement(cpu, gpu)}"
            tell(f"{what}: size {row.large}, by JAX ...")
            row.jax, told = self.beside(row)
            row.notes = "; ".join(filter(None, (row.notes, told)))

    def beside(self, row: Row) -> tuple[float, str]:
        """JAX's milliseconds; 0, and why, if it cannot do the program."""
        script = str(HERE / "gpu" / "beside_jax.py")
        command = [sys.executable, script, row.name, row.mode, str(row.large), str(self.rounds)]
        out, told = output(command, self.limit, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
        try:
            return float(out.split()[-1]), ""
        except (IndexError, ValueError):
            return 0.0, f"JAX: {(told or out or 'no output').splitlines()[-1][:100]}"

    def kernels(self, row: Row) -> str:
        """The times of a program's kernels and copies in two repetitions."""
        command = [str(self.folder / "bin" / row.name), row.mode, str(row.large), "2"]
        env = {"DPL_DEVICE": "gpu", "DPL_DEVICE_TIMES": "1", **self.device}
        _, told = output(command, self.limit, env, always=True)
        return f"{row.name}, {row.mode}, {row.large}\n{told}\n"


def output(command: list[str], limit: float, env: dict[str, str], always: bool = False) -> tuple[str, str]:
    """What a command has printed within the limit, and what it says if it fails, or `always`."""
    try:
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(), f"stopped after {limit:.0f} s"
    except OSError as error:
        return "", str(error)
    told = done.stderr.strip() or f"exit status {done.returncode}"
    return done.stdout, told if done.returncode or always else ""


def least(lines: list[list[float]]) -> float:
    """The least milliseconds after the first repetition; those of the first if there is no other."""
    return 1e3 * min((line[1] for line in lines[1:] or lines), default=0.0)


def agreement(ours: tuple[list[list[float]], str], others: tuple[list[list[float]], str]) -> str:
    """How near the results of two runs are, in the repetitions that both have."""
    if wrong := next((told for lines, told in (ours, others) if not lines), ""):
        return f"NO: {' '.join(wrong.split())[-160:]}"
    pairs = [pair for a, b in zip(ours[0], others[0], strict=False) for pair in zip(a[2:], b[2:], strict=True)]
    if all(a == b for a, b in pairs):
        return "bit for bit"
    error = max(abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0 for a, b in pairs)
    return f"to {error:.0e}" if error < NEAR else f"NO: {error:.0e}"


NAMES = ("program", "size", "as the CPU", "CPU, ms", "GPU, ms", "JAX, ms", "floor, ms", "kernels", "registers",
         "spilled", "")  # fmt: skip
HEAD = f"| {' | '.join(NAMES)} |\n{'|---' * len(NAMES)}|"


def line(r: Row) -> str:
    """A row of the table, as Markdown."""
    times = [f"{t:.3g}" if t else "" for t in (r.cpu, r.gpu, r.jax)]
    cells = [f"{r.name}, {r.mode}", str(r.large if r.gpu else r.small), r.agrees or "not reached", *times, r.floor]
    cells += [str(r.kernels), str(r.registers or ""), str(r.spills) if r.registers else "", r.notes]
    return f"| {' | '.join(cell.replace('|', '/').replace(chr(10), ' ') for cell in cells)} |"


# ---- the GPU, or what stands in for it


def has_gpu() -> bool:
    with suppress(OSError):
        return ctypes.CDLL(os.environ.get("DPL_CUDA", "libcuda.so.1")).cuInit(0) == 0
    return False


@contextmanager
def device() -> Iterator[tuple[dict[str, str], bool]]:
    """The variables by which programs find a device, and whether it is a real one."""
    if has_gpu():
        yield {}, "DPL_STAND_IN" not in os.environ
        return
    tests = HERE.parent / "tests" / "device"
    if not tests.exists():
        sys.exit("there is no GPU: its driver's library `libcuda.so.1` was not found, or finds none")
    sys.path.insert(0, str(tests))
    from stand_in import Server

    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            yield server.environment, False
        finally:
            print(server.complaints(), end="", file=sys.stderr)
            server.close()


def chosen(rows: list[Row], names: list[str]) -> list[Row]:
    """The rows of these programs; all if there are no names."""
    if missing := sorted(set(names) - {row.name for row in rows}):
        there = ", ".join(dict.fromkeys(row.name for row in rows))
        sys.exit(f"there is no program {', '.join(missing)}; there are {there}")
    return [row for row in rows if not names or row.name in names]


def run(folder: Path, rows: list[Row], rounds: int, limit: float, sm: int = 0) -> list[Row]:
    """Runs programs, each after it was built if `sm` tells for which GPU.  The table grows with each."""
    (folder / "kernels.txt").write_text("", encoding="utf-8")
    (folder / "table.md").write_text(HEAD + "\n", encoding="utf-8")
    print(HEAD, flush=True)
    with device() as (variables, real):
        runner = Runner(folder, variables, real, rounds, limit)
        for _, some in groupby(rows, lambda row: row.name):
            group = list(some)
            if sm:
                build(group, folder, sm)
            for row in group:
                try:
                    runner.fill(row)
                except Exception as error:  # a program that prints something else: the others are still to come
                    row.agrees = f"NO: {type(error).__name__}: {error}"
                print(line(row), flush=True)
                with (folder / "table.md").open("a", encoding="utf-8") as file:
                    file.write(line(row) + "\n")
                if real:
                    with (folder / "kernels.txt").open("a", encoding="utf-8") as file:
                        file.write(runner.kernels(row))
    return rows


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("names", nargs="*", metavar="NAME")
    asked.add_argument("--build", type=Path, metavar="FOLDER")
    asked.add_argument("--built", type=Path, metavar="FOLDER")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--limit", type=float, default=60.0, help="seconds for each step of a program")
    asked.add_argument("--sm", type=int, default=90)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.built or options.build or Path(temporary)).resolve()
        there = list(ROWS)
        if options.built:
            there = [Row(**row) for row in json.loads((folder / "rows.json").read_text(encoding="utf-8"))]
        rows = chosen(there, options.names)
        if options.build:
            build(rows, folder, options.sm)
            return 0
        run(folder, rows, options.rounds, options.limit, 0 if options.built else options.sm)
    return int(any("NO" in row.agrees for row in rows))


if __name__ == "__main__":
    sys.exit(main())
