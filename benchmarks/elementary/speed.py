"""Elementary functions on arrays, beside NumPy, in one run: millions of results a second.

python benchmarks/elementary/speed.py [NAME...]
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "lang"), str(ROOT / "compiler")]

import numpy as np  # noqa: E402
from dpl.prims import elementary  # noqa: E402
from dplc.machine.llvm import api, target  # noqa: E402
from dplc.machine.llvm.types import SCALARS  # noqa: E402
from dplc.machine.object.assemble import assemble, module  # noqa: E402
from dplc.machine.runtime.library import library  # noqa: E402

PEERS = {name: f"arc{name[1:]}" for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}
RANGES = {"exp": (-5, 5), "expm1": (-5, 5), "exp2": (-5, 5), "log": (0.1, 100), "tanh": (-4, 4), "sin": (-30, 30),
          "cos": (-30, 30), "erf": (-4, 4), "acosh": (1, 9), "atan": (-5, 5)}  # fmt: skip
ROUNDS = 25


def loop(name: str, ty: str) -> str:
    t = SCALARS[ty]
    return f"""define void @{name}.{ty}(ptr noalias %from, ptr noalias %to, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr {t}, ptr %from, i64 %i
  %x = load {t}, ptr %p
  %y = call {t} @rt.{name}.{ty}({t} %x)
  %q = getelementptr {t}, ptr %to, i64 %i
  store {t} %y, ptr %q
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def compiled(names: list[str]) -> Callable[[str], Callable]:
    symbols = [f"{name}.{ty}" for name in names for ty in ("f64", "f32")]
    text = "".join(loop(*symbol.split(".")) for symbol in symbols)
    elements = [(api.OBJECT, assemble(module(text + library(text)))), api.PROCESS]
    linked = api.Linked(api.Jit(target.host()), "speed", elements, symbols)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return lambda symbol: lambda *args: kind(linked.addresses[symbol])(*args)


def least(runs: list[Callable[[], object]], times: int) -> list[float]:
    """The least time of each, taken in turns."""
    found = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for i, run in enumerate(runs):
            begin = time.perf_counter()
            for _ in range(times):
                run()
            found[i] = min(found[i], (time.perf_counter() - begin) / times)
    return found


def row(name: str, ty: str, run: Callable) -> str:
    kind = np.float64 if ty == "f64" else np.float32
    peer = getattr(np, PEERS.get(name, name), None)
    cells = []
    for size, times in ((16_384, 30), (1_000_000, 1)):
        xs = np.random.default_rng(1).uniform(*RANGES.get(name, (0.1, 0.9)), size).astype(kind)
        ys, zs = np.empty_like(xs), np.empty_like(xs)
        ours, places = run, (xs.ctypes.data, ys.ctypes.data, size)
        runs: list[Callable[[], object]] = [lambda f=ours, p=places: f(*p)]
        if peer is not None:
            runs.append(lambda f=peer, x=xs, z=zs: f(x, z))
        seconds = least(runs, times)
        cells.append(f"{size / seconds[0] / 1e6:.0f}")
        cells.append(f"{seconds[1] / seconds[0]:.2f}" if peer is not None else "-")
    return f"| `{name}` {ty} | {' | '.join(cells)} |"


def main() -> None:
    names = sys.argv[1:] or sorted(name for name in elementary.VECTORS if elementary.arity(name) == 1)
    run = compiled(names)
    print("| | in the cache | of NumPy's rate | 10^6 | of NumPy's rate |\n|---|---|---|---|---|")
    for name in names:
        for ty in ("f64", "f32"):
            print(row(name, ty, run(f"{name}.{ty}")), flush=True)


if __name__ == "__main__":
    main()
