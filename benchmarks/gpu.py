"""Programs on a GPU, beside the CPU: do they compile, assemble, give the same numbers, and how long do they take?

    python benchmarks/gpu.py [NAME ...] [--rounds N] [--sm 90] [--json FILE]

Without a GPU the kernels are interpreted by the stand-in of `tests/device`, at small sizes, and no times are told.
With one, times are the least of N repetitions after a first one, and include waiting for the results; the CPU's are
those of the same program with all processors.  JAX's stand beside them where it finds the GPU (`gpu/beside_jax.py`).
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
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
DPL = [sys.executable, "-m", "dplc.cli"]
NEAR = 1e-9  # products of matrices and additions to one place have an order of their own


@dataclass(slots=True)
class Row:
    """A program and the sizes at which it runs; `floor` is what the card cannot be faster than (ms, of an H200)."""

    name: str
    small: int
    large: int
    floor: str
    mode: str = "gradient"
    kernels: int = 0
    registers: int = 0
    spills: int = 0
    agrees: str = ""
    cpu: float = 0.0
    gpu: float = 0.0
    jax: float = 0.0


ROWS = (
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
    Row("lenet", 3, 512, ""),
    Row("char_rnn", 4, 512, ""),
    Row("trees", 6, 1024, ""),
)


def has_gpu() -> bool:
    with suppress(OSError):
        return ctypes.CDLL(os.environ.get("DPL_CUDA", "libcuda.so.1")).cuInit(0) == 0
    return False


def ran(row: Row, size: int, rounds: int, **env: str) -> list[list[float]]:
    """What the program prints: for each repetition processor time, time, and its results."""
    command = [*DPL, "run", "-O2", "--engine", "native", str(HERE / "gpu" / f"{row.name}.dp"), row.mode]
    done = subprocess.run([*command, str(size), str(rounds)], env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def assemble(row: Row, sm: int) -> None:
    """Notes the kernels of a program, and what the assembler says of them."""
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder, "kernels.ptx")
        command = [*DPL, "build", "--emit", "ptx", "--cpu", f"sm_{sm}", str(HERE / "gpu" / f"{row.name}.dp")]
        subprocess.run([*command, "-o", str(ptx)], check=True, capture_output=True)
        row.kernels = ptx.read_text(encoding="utf-8").count(".entry ")
        if tool := shutil.which("ptxas"):
            command = [tool, f"-arch=sm_{sm}", "-v", str(ptx), "-o", str(Path(folder, "kernels.cubin"))]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
            row.registers = max(map(int, re.findall(r"Used (\d+) registers", told)), default=0)
            row.spills = sum(map(int, re.findall(r"(\d+) bytes spill stores", told)))


def compare(row: Row, device: dict[str, str]) -> None:
    """Notes whether the results at the small size are those of the CPU."""
    ours, others = ran(row, row.small, 1, DPL_DEVICE="cpu"), ran(row, row.small, 1, DPL_DEVICE_LEAST="1", **device)
    pairs = list(zip(ours[0][2:], others[0][2:], strict=True))
    if all(a == b for a, b in pairs):
        row.agrees = "bit for bit"
    else:
        error = max(abs(a - b) / max(abs(a), abs(b)) for a, b in pairs)
        row.agrees = f"to {error:.0e}" if error < NEAR else f"NO: {error:.0e}"


def measure(row: Row, rounds: int, device: dict[str, str]) -> None:
    """Notes the least times at the large size, in milliseconds."""
    row.gpu = 1e3 * min(line[1] for line in ran(row, row.large, rounds + 1, **device)[1:])
    row.cpu = 1e3 * min(line[1] for line in ran(row, row.large, 2, DPL_DEVICE="cpu")[1:])
    command = [sys.executable, str(HERE / "gpu" / "beside_jax.py"), row.name, row.mode, str(row.large), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True)
    row.jax = float(done.stdout) if done.returncode == 0 and done.stdout.strip() else 0.0


def table(rows: list[Row]) -> str:
    """The rows, as Markdown."""
    head = "| program | size | kernels | registers | spilled | as the CPU | CPU, ms | GPU, ms | JAX, ms | floor, ms |"
    lines = [head, "|---" * 10 + "|"]
    for r in rows:
        times = [f"{t:.3g}" if t else "" for t in (r.cpu, r.gpu, r.jax)]
        cells = [f"{r.name}, {r.mode}", str(r.large if r.gpu else r.small), str(r.kernels), str(r.registers or "")]
        cells += [str(r.spills) if r.registers else "", r.agrees, *times, r.floor]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("names", nargs="*", metavar="NAME")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--sm", type=int, default=90)
    asked.add_argument("--json", type=Path)
    options = asked.parse_args()
    rows = [row for row in ROWS if not options.names or row.name in options.names]
    if has_gpu():
        fill(rows, options, {"DPL_DEVICE": "gpu"}, times=True)
    else:
        sys.path.insert(0, str(HERE.parent / "tests" / "device"))
        from stand_in import Server

        with tempfile.TemporaryDirectory() as folder:
            server = Server(Path(folder))
            try:
                fill(rows, options, {"DPL_DEVICE": "gpu", **server.environment}, times=False)
            finally:
                print(server.complaints(), end="", file=sys.stderr)
                server.close()
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    return int(any(not row.agrees or row.agrees.startswith("NO") for row in rows))


def fill(rows: list[Row], options: argparse.Namespace, device: dict[str, str], times: bool) -> None:
    for row in rows:
        print(f"{row.name}, {row.mode} ...", file=sys.stderr, flush=True)
        try:
            assemble(row, options.sm)
            compare(row, device)
            if times:
                measure(row, options.rounds, device)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            row.agrees = f"NO: {getattr(error, 'stderr', '') or error}".replace("\n", " ")[:80]


if __name__ == "__main__":
    sys.exit(main())
