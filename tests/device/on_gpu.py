"""All that is prepared for a real GPU, in one command of at most ten minutes.

    python tests/device/on_gpu.py build FOLDER      builds the programs; this needs DPL
    python FOLDER/on_gpu.py run FOLDER              runs them; this needs Python and the driver, nothing else
    python tests/device/on_gpu.py run FOLDER --stand-in         on the stand-in for the driver

First a sum; then some programs with every loop on the GPU, beside the CPU; then the table of `benchmarks/gpu.py`, with
JAX's times where it is installed; then programs under compute-sanitizer, where that is; then all programs of
`tests/agree` and `tests/device`.  FOLDER/report.md grows with each step.  What goes wrong in a step, or takes too long,
is told there, and the next step begins.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECONDS = 560.0
SANITIZED = ("comprehensions", "array_gradients", "array_functions")
QUICK = (*SANITIZED, "array_rows", "in_comprehension", "in_gradient", "in_map")
SUM = "do print (sum [for i < 1000000 -> float i])\n"
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|nan|-?inf")
NEAR = 1e-9
NAMES = {"name": 100, "driver_version": 30, "memory.total": 30, "clocks.sm": 30, "clocks.mem": 30}


# ---- building


def build(folder: Path) -> int:
    """Writes all programs to a folder, with this script."""
    root = HERE.parents[1]
    (folder / "programs").mkdir(parents=True, exist_ok=True)
    shutil.copy(__file__, folder)
    subprocess.run([sys.executable, str(root / "benchmarks" / "gpu.py"), "--build", str(folder)], check=True)
    (folder / "programs" / "a_sum.dp").write_text(SUM, encoding="utf-8")
    found = [path for part in ("agree/cases", "agree/programs", "golden/run_errors", "device/programs", "device/steps")
             for path in sorted((root / "tests" / part).glob("*.dp"))]  # fmt: skip

    def built(source: Path) -> str:
        out = str(folder / "programs" / source.stem)
        command = [sys.executable, "-m", "dplc.cli", "build", "--gpu", str(source), "-o", out]
        return subprocess.run(command, capture_output=True, text=True, cwd=root).stderr

    sources = [folder / "programs" / "a_sum.dp", *found]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, told in zip(sources, pool.map(built, sources), strict=True):
            if not (folder / "programs" / source.stem).exists():
                print(f"{source.stem} is left out: {told.splitlines()[0] if told else ''}", file=sys.stderr)
    return 0


# ---- what is told


class Report:
    """What is told, on standard output and in FOLDER/report.md."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.end = folder, time.monotonic() + seconds
        self.start = time.monotonic()
        self.wrong = self.right = 0
        self.file = (folder / "report.md").open("w", encoding="utf-8")

    def left(self) -> float:
        return self.end - time.monotonic()

    def tell(self, text: str) -> None:
        for file in (sys.stdout, self.file):
            print(text, file=file, flush=True)

    def step(self, title: str, work: Callable[[Report], None]) -> None:
        """Does a step, whatever happens in it."""
        self.tell(f"\n## {title} (after {time.monotonic() - self.start:.0f} s)\n")
        try:
            work(self)
        except Exception as error:
            self.wrong += 1
            self.tell(f"* WRONG: {title}: {type(error).__name__}: {error}")

    def outcome(self, name: str, wrong: str) -> None:
        if wrong:
            self.wrong += 1
            self.tell(f"* WRONG: {name}: {' '.join(wrong.split())[-600:]}")
        else:
            self.right += 1

    def count(self, before: int) -> None:
        self.tell(f"* {self.right - before} are right")


def run(command: list[str], seconds: float, env: Mapping[str, str]) -> tuple[int, str, str]:
    """The exit status of a command, its output and its errors.  When its time is over, what it has started ends, too:
    it would hold the GPU, and the pipes."""
    try:
        child = subprocess.Popen(command, text=True, errors="replace", start_new_session=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **env})  # fmt: skip
    except OSError as error:
        return 127, "", str(error)
    try:
        out, told = child.communicate(timeout=max(seconds, 1))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # a driver that hangs does not let it end
            child.communicate(timeout=5)
        return 124, "", f"stopped after {seconds:.0f} s"
    return child.returncode, out, told


# ---- steps


def machine(report: Report) -> None:
    """The card, the driver, and what else is there."""
    driver = ctypes.CDLL(os.environ.get("DPL_CUDA", "libcuda.so.1"))
    version, name = ctypes.c_int(), ctypes.create_string_buffer(100)
    driver.cuDriverGetVersion(ctypes.byref(version))
    if (code := driver.cuInit(0)) or (code := driver.cuDeviceGetName(name, 100, 0)):
        report.tell(f"* the driver gives error {code}")
    card = name.value.decode()
    report.tell(f"* {time.strftime('%Y-%m-%d')}: {card}, the driver knows CUDA {version.value / 1000:.1f}")
    if tool := shutil.which("nvidia-smi"):
        told = run([tool, f"--query-gpu={','.join(NAMES)}", "--format=csv,noheader"], 20, {})[1].strip()
        report.tell(f"* {told}")
    report.tell(f"* {os.cpu_count()} processors, Python {sys.version.split()[0]}")
    report.tell(f"* cuBLAS: {os.environ.get('DPL_CUBLAS', 'where libraries are')}")


def first_sum(report: Report) -> None:
    env = {"DPL_DEVICE": "gpu", "DPL_DEVICE_LEAST": "1", "DPL_DEVICE_TIMES": "1"}
    code, out, told = run([str(report.folder / "programs" / "a_sum")], 90, env)
    launched = "par_" in told
    report.outcome("a sum", "" if out == "499999500000.0\n" and launched else f"exit status {code}: {out}{told}")
    report.tell(f"```\n{out}{told}```")


def some(report: Report) -> None:
    compare(report, QUICK, 8)


def table(report: Report) -> None:
    """The table of `benchmarks/gpu.py`, as far as it goes in the time that it has."""
    limit = min(320.0, report.left() - 120)
    command = [sys.executable, str(report.folder / "gpu.py"), "--built", str(report.folder), "--limit", "40"]
    place = report.folder / "table.md"
    place.unlink(missing_ok=True)
    code, _, told = run(command, limit, {})
    text = place.read_text(encoding="utf-8") if place.exists() else ""
    report.tell(f"{text}\nexit status {code}\n{told[-2000:] if code else ''}")
    report.wrong += "NO: " in text


def sanitized(report: Report) -> None:
    """Memory and races, by NVIDIA's tool."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        report.tell("* compute-sanitizer is not installed")
        return
    before = report.right
    for name in SANITIZED:
        for check in ("memcheck", "racecheck"):
            if report.left() < 70:
                report.tell(f"* {check} of {name} was not reached")
                continue
            command = [tool, "--tool", check, "--error-exitcode", "9", str(report.folder / "programs" / name)]
            env = {"DPL_DEVICE": "gpu", "DPL_DEVICE_LEAST": "1"}
            code, out, told = run(command, min(40, report.left() - 60), env)
            report.outcome(f"{check} of {name}", f"exit status {code}: {out[-300:]} {told}" if code else "")
    report.count(before)


def all_programs(report: Report) -> None:
    names = sorted(path.name for path in (report.folder / "programs").iterdir() if not path.suffix)
    compare(report, [name for name in names if name not in QUICK], max(1, min(8, (os.cpu_count() or 2) // 2)))


def compare(report: Report, names: list[str] | tuple[str, ...], workers: int) -> None:
    """Runs programs on both devices."""
    before, late = report.right, 0
    with ThreadPoolExecutor(workers) as pool:
        found = [(name, pool.submit(difference, report, report.folder / "programs" / name)) for name in names]
        for name, future in found:
            if report.left() < 15 and future.cancel():
                late += 1
            else:
                report.outcome(name, future.result())
    report.count(before)
    if late:
        report.tell(f"* {late} were not reached")


def difference(report: Report, program: Path) -> str:
    """How what a program prints on the GPU differs from that on the CPU; empty if it does not."""
    here, there = (run([str(program)], min(90, report.left() - 5), {"DPL_DEVICE": device, "DPL_DEVICE_LEAST": "1"})
                   for device in ("cpu", "gpu"))  # fmt: skip
    if here[0] in (124, 127):
        return here[2]
    for ours, others in zip(map(str, here), map(str, there), strict=True):
        if not same(ours, others):
            return f"{others[-300:]} in place of {ours[-300:]}; {there[2][-300:] if there[0] != here[0] else ''}"
    return ""


def same(a: str, b: str) -> bool:
    """Equal texts, except that numbers may differ by a little."""
    if a == b:
        return True
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b)), strict=True)
    return all(x == y or (x != x and y != y) or abs(x - y) <= NEAR * max(abs(x), abs(y), 1.0) for x, y in pairs)


def blas() -> dict[str, str]:
    """Where cuBLAS is, if Python's packages have it and the system does not know."""
    with suppress(OSError):
        ctypes.CDLL("libcublas.so.13")
        return {}
    found = find_spec("nvidia")
    folders = (found.submodule_search_locations if found else None) or ()
    places = [str(path) for folder in folders for path in sorted(Path(folder).glob("*/lib/libcublas.so.*"))]
    return {"DPL_CUBLAS": places[-1]} if places else {}


@contextmanager
def device(stand_in: bool) -> Iterator[dict[str, str]]:
    """The variables by which programs find the device."""
    if not stand_in:
        yield blas()
        return
    from stand_in import Server

    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            yield server.environment
        finally:
            print(server.complaints(), end="", file=sys.stderr)
            server.close()


STEPS = (
    ("The machine", machine), ("A sum", first_sum), ("Some programs", some), ("Benchmarks", table),
    ("compute-sanitizer", sanitized), ("All programs", all_programs),
)  # fmt: skip


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("verb", choices=("build", "run"))
    asked.add_argument("folder", type=Path, metavar="FOLDER")
    asked.add_argument("--stand-in", action="store_true")
    asked.add_argument("--seconds", type=float, default=SECONDS)
    options = asked.parse_args()
    folder = options.folder.resolve()
    if options.verb == "build":
        return build(folder)
    with device(options.stand_in) as variables:
        os.environ.update(variables)
        report = Report(folder, options.seconds)
        for title, work in STEPS:
            report.step(title, work)
    report.tell(f"\n{report.wrong} are wrong")
    return int(report.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
