"""Matrix products by the runtime library, by NumPy (one thread) and, if they are small, by loops in C.

    python benchmarks/products.py [--type f64|f32] [--only SHAPE ...]

A row for each shape m x n x k (`t` after m or n: that factor is stored transposed), with 1e9 operations a second (two
for each pair of factors).  All take part in turn, and the least time counts.  NumPy is called from Python, which costs
it half a microsecond for each product.  `products.txt` is what it printed.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import ctypes
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from dplc.machine.object.assemble import assemble, module
from dplc.machine.runtime.library import library

SHAPES = (
    "4x4x4", "8x8x8", "8tx8x8", "8x8tx8", "16x16x16", "50x50x50", "50x1x50", "50tx1x50", "1x50x50", "1x50tx50",
    "50x50x1", "100x10x100", "512x10x256", "256tx10x512", "512x256x10", "512x256tx10", "100x120x400",
    "512x256x784", "784tx256x512", "64x64tx64", "16x1000tx100", "1000x1000x1000", "1000tx1000x1000",
    "1000x1000tx1000",
)  # fmt: skip
SMALL = 200_000  # operations of a product that C takes part in
ROUNDS = 7
ELEMENTS = {"f64": (np.float64, "double"), "f32": (np.float32, "float")}

C_LOOPS = """
void loops(long times, REAL *restrict c, const REAL *restrict a, const REAL *restrict b, long m, long n, long k,
            long ar, long ac, long br, long bc) {
    for (long t = 0; t < times; t++) {
        for (long i = 0; i < m; i++) {
            for (long j = 0; j < n; j++) c[i * n + j] = 0;
            if (bc == 1)
                for (long p = 0; p < k; p++)
                    for (long j = 0; j < n; j++) c[i * n + j] += a[i * ar + p * ac] * b[p * br + j];
            else
                for (long j = 0; j < n; j++) {
                    REAL total = 0;
                    for (long p = 0; p < k; p++) total += a[i * ar + p * ac] * b[p * br + j * bc];
                    c[i * n + j] = total;
                }
        }
        __asm__ volatile("" ::: "memory");
    }
}
"""

PRODUCTS = """
define void @products(i64 %times, ptr %c, ptr %a, ptr %b, i64 %m, i64 %n, i64 %k, i1 zeroext %ta, i1 zeroext %tb) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  call void @rt.matmul.TYPE(ptr %c, ptr %a, ptr %b, i64 %m, i64 %n, i64 %k, i1 %ta, i1 %tb, i1 false, i64 0)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %head, label %end
end:
  ret void
}
"""

Repeated = Callable[[int], None]


def loaded(ty: str, folder: str) -> ctypes.CDLL:
    """Both that repeat a product: `products` of the runtime library, and `loops` in C."""
    source, code, made = (Path(folder) / f"{ty}{end}" for end in (".c", ".o", ".so"))
    source.write_text(C_LOOPS.replace("REAL", ELEMENTS[ty][1]), encoding="utf-8")
    text = PRODUCTS.replace("TYPE", ty)
    code.write_bytes(assemble(module(text + library(text))))
    flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "-Wl,-z,notext"]
    subprocess.run(["cc", *flags, "-o", str(made), str(source), str(code), "-lm"], check=True)
    return ctypes.CDLL(str(made))


def sizes(*numbers: int) -> list[ctypes.c_int64]:
    return [ctypes.c_int64(x) for x in numbers]


def contestants(shape: str, ty: str, compiled: ctypes.CDLL) -> dict[str, Repeated]:
    found = re.fullmatch(r"(\d+)(t?)x(\d+)(t?)x(\d+)", shape)
    assert found, shape
    (m, n, k), ta, tb = (int(found[i]) for i in (1, 3, 5)), bool(found[2]), bool(found[4])
    kind, dice = ELEMENTS[ty][0], np.random.default_rng(1)
    a = dice.normal(size=(k, m) if ta else (m, k)).astype(kind)
    b = dice.normal(size=(n, k) if tb else (k, n)).astype(kind)
    left, right = a.T if ta else a, b.T if tb else b
    c = np.zeros((m, n), kind)
    places = [ctypes.c_void_p(x.ctypes.data) for x in (c, a, b)]
    strides = [1, m] if ta else [k, 1], [1, k] if tb else [n, 1]

    def by_numpy(times: int) -> None:
        for _ in range(times):
            np.matmul(left, right, out=c)

    def by_dpl(times: int) -> None:
        compiled.products(*sizes(times), *places, *sizes(m, n, k), ta, tb)

    made: dict[str, Repeated] = {"dpl": by_dpl, "numpy": by_numpy}
    if 2 * m * n * k <= SMALL:
        made["C"] = lambda times: compiled.loops(*sizes(times), *places, *sizes(m, n, k, *strides[0], *strides[1]))
    made["dpl"](1)
    assert np.allclose(c, left @ right, rtol=1e-3, atol=1e-3), shape
    return made


def rates(shape: str, made: dict[str, Repeated]) -> dict[str, float]:
    m, n, k = (int(x) for x in re.findall(r"\d+", shape))
    work = 2 * m * n * k
    times = max(1, 20_000_000 // work) if work > 4000 else 20_000
    best = dict.fromkeys(made, float("inf"))
    for _ in range(ROUNDS):
        for name, run in made.items():
            start = time.process_time()
            run(times)
            best[name] = min(best[name], time.process_time() - start)
    return {name: work * times / seconds / 1e9 for name, seconds in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--type", choices=ELEMENTS, action="append")
    parser.add_argument("--only", nargs="*", default=SHAPES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for ty in options.type or ELEMENTS:
            compiled = loaded(ty, folder)
            print(f"{ty:17}{'DPL':>8}{'NumPy':>8}{'C':>8}{'DPL/best':>10}")
            for shape in options.only:
                found = rates(shape, contestants(shape, ty, compiled))
                others = max(rate for name, rate in found.items() if name != "dpl")
                columns = "".join(f"{found[name]:8.1f}" if name in found else " " * 8 for name in ("dpl", "numpy", "C"))
                print(f"{shape:17}{columns}{found['dpl'] / others:10.2f}", flush=True)


if __name__ == "__main__":
    main()
