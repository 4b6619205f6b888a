"""All that is prepared for a real GPU, in one command of at most ten minutes.

    python tests/device/on_gpu.py [FOLDER]      writes report.txt, and programs.json with the times, to FOLDER

First a sum; then the table of `benchmarks/gpu.py`; then three programs under compute-sanitizer, where that is
installed; then the programs of `tests/agree`, with every loop on the GPU, beside the CPU.  It needs DPL with LLVM
(`llvmlite`), and nothing else.  What is not reached in time is told.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
DPL = [sys.executable, "-m", "dplc.cli"]
SECONDS = 570
SANITIZED = ("comprehensions", "array_gradients", "sums")
TABLE = 300  # seconds for the table


class Report:
    """What is told, on standard output and in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.start = folder, time.monotonic()
        self.file = (folder / "report.txt").open("w", encoding="utf-8")
        self.failed = 0

    def left(self) -> float:
        return SECONDS - (time.monotonic() - self.start)

    def tell(self, text: str) -> None:
        line = f"{time.monotonic() - self.start:6.1f} s  {text}"
        print(line, flush=True)
        print(line, file=self.file, flush=True)

    def outcome(self, name: str, wrong: str) -> None:
        self.failed += bool(wrong)
        self.tell(f"{'WRONG' if wrong else 'right'}  {name}{': ' if wrong else ''}{wrong}")


def run(command: list[str], seconds: float, **env: str) -> tuple[int, str, str]:
    """The exit status of a command, its output and its errors."""
    path = os.pathsep.join(str(ROOT / part) for part in ("lang", "compiler"))
    whole = {**os.environ, "PYTHONPATH": path, "DPL_OPTIMISE": "never", **env}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(seconds, 1), env=whole, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return 124, "", f"stopped after {seconds:.0f} s"
    return done.returncode, done.stdout, done.stderr


def difference(program: Path, seconds: float) -> str:
    """How the output on the GPU differs from that on the CPU; empty if it does not."""
    command = [*DPL, "run", "--engine", "native", str(program)]
    code, ours, wrong = run(command, seconds, DPL_DEVICE="cpu")
    if code:
        return f"on the CPU: {wrong[-200:]}"
    code, others, wrong = run(command, seconds, DPL_DEVICE="gpu", DPL_DEVICE_LEAST="1")
    if code:
        return wrong[-300:]
    if ours == others:
        return ""
    sys.path.insert(0, str(ROOT / "tests"))
    from conftest import assert_same_output

    try:
        assert_same_output(others, ours)
    except AssertionError as error:
        return str(error)[:300]
    return ""


def programs() -> Iterator[Path]:
    for folder in ("cases", "programs"):
        yield from sorted((ROOT / "tests" / "agree" / folder).glob("*.dp"))


def sanitized(report: Report) -> None:
    """Memory and races, by NVIDIA's tool."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        report.tell("compute-sanitizer is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in SANITIZED:
            binary = str(Path(folder, name))
            source = str(ROOT / "tests" / "agree" / "programs" / f"{name}.dp")
            code, _, wrong = run([*DPL, "build", "--gpu", source, "-o", binary], 60)
            for check in ("memcheck", "racecheck") if code == 0 else ():
                command = [tool, "--tool", check, "--error-exitcode", "1", binary]
                code, out, wrong = run(command, 60, DPL_DEVICE="gpu", DPL_DEVICE_LEAST="1")
                report.outcome(f"{check} of {name}", (out + wrong)[-400:] if code else "")


def main(folder: str = ".") -> int:
    report = Report(Path(folder))
    code, out, wrong = run([*DPL, "run", "--device", "gpu", "-e", "sum [for i < 1000000 -> float i]"], 120)
    report.outcome("a sum", "" if out == "499999500000.0\n" else f"{code} {out}{wrong}"[-400:])
    if code:
        return 1
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--json", str(report.folder / "programs.json")]
    code, out, wrong = run(command, TABLE)
    report.tell(f"the table, exit status {code}\n{out}{wrong[-2000:] if code else ''}")
    sanitized(report)
    with ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 2) // 2)) as pool:
        found = [(program, pool.submit(difference, program, 60)) for program in programs()]
        for program, future in found:
            if report.left() < 30 and future.cancel():
                report.tell(f"not reached: {program.stem}")
            else:
                report.outcome(program.stem, future.result())
    report.tell(f"{report.failed} are wrong")
    return int(report.failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
