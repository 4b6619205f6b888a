"""Functions of the library beside NumPy and SciPy, and their gradients beside themselves: the table of `library.md`.

    python benchmarks/library.py [NAME ...]

Each is a function of one array of numbers from 0.5 to 1.5, or of a square matrix of them whose diagonal is large, as
`dpl bench` makes them.  Times are the least of 15, on one thread.  On a busy machine only those below a millisecond can
be trusted.  Nothing but this needs SciPy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "DPL_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 (they read how many threads there are)
from scipy import fft, integrate, interpolate, linalg, signal, special, stats  # noqa: E402

ROOT = Path(__file__).parent.parent
SIZES, SQUARE = (1000,), 100
TOGETHER = 6  # functions in a program: of very large ones less is optimised
Peer = Callable[[np.ndarray], object]

# Name: the function in DPL, of x or of a matrix a; the peer.
VECTORS: dict[str, tuple[str, Peer | None]] = {
    "sum": ("sum x", np.sum),
    "mean": ("mean x", np.mean),
    "std": ("std x", np.std),
    "norm": ("norm x", np.linalg.norm),
    "cumsum": ("cumsum x", np.cumsum),
    "cumprod": ("cumprod x", np.cumprod),
    "maximum": ("maximum x", np.max),
    "sort": ("sort x", np.sort),
    "logsumexp": ("logsumexp x", special.logsumexp),
    "softmax": ("softmax x", special.softmax),
    "log_softmax": ("log_softmax x", special.log_softmax),
    "Stats.median": ("Stats.median x", np.median),
    "Stats.variance": ("Stats.variance x", lambda x: np.var(x, ddof=1)),
    "Stats.skewness": ("Stats.skewness x", stats.skew),
    "Stats.kurtosis": ("Stats.kurtosis x", stats.kurtosis),
    "Stats.correlation": ("Stats.correlation x (reverse x)", lambda x: np.corrcoef(x, x[::-1])),
    "Stats.ranks": ("Stats.ranks x", stats.rankdata),
    "Stats.histogram": ("(snd (Stats.histogram 100 x) : float[?])", lambda x: np.histogram(x, 100)),
    "Stats.line": ("Stats.line (cumsum x) x", lambda x: stats.linregress(np.cumsum(x), x)),
    "Quad.trapezoid": ("Quad.trapezoid x x", lambda x: np.trapezoid(x, x)),
    "Quad.cumulative_trapezoid": ("Quad.cumulative_trapezoid x x", lambda x: integrate.cumulative_trapezoid(x, x)),
    "Fft.rfft": ("Fft.rfft x", np.fft.rfft),
    "Fft.fft": ("Fft.fft (x, x)", lambda x: np.fft.fft(x + 1j * x)),
    "Fft.dct": ("Fft.dct x", fft.dct),
    "Fft.convolve": ("Fft.convolve x x", lambda x: signal.fftconvolve(x, x)),
    "Interp.linear": (
        "let f = Interp.linear (cumsum x) x in [for i < n -> f (0.9 * float i)]",
        lambda x: np.interp(0.9 * np.arange(len(x)), np.cumsum(x), x),
    ),
    "Interp.cubic": (
        "let f = Interp.cubic (cumsum x) x in [for i < n -> f (0.9 * float i)]",
        lambda x: interpolate.CubicSpline(np.cumsum(x), x)(0.9 * np.arange(len(x))),
    ),
    "Special.gamma": ("map Special.gamma x", special.gamma),
    "Special.digamma": ("map Special.digamma x", special.digamma),
    "Special.erfc": ("map Special.erfc x", special.erfc),
    "Special.erfinv": ("map (fun t -> Special.erfinv (0.6 * t)) x", lambda x: special.erfinv(0.6 * x)),
    "Special.gammainc": ("map (Special.gammainc 1.5) x", lambda x: special.gammainc(1.5, x)),
    "Special.betainc": (
        "map (fun t -> Special.betainc 1.5 2.5 (0.6 * t)) x",
        lambda x: special.betainc(1.5, 2.5, 0.6 * x),
    ),
    "Special.bessel_j": ("map (Special.bessel_j 1) x", lambda x: special.jv(1, x)),
    "Dist.logpdf of normal": ("map (Dist.logpdf (Dist.Normal (1.0, 2.0))) x", lambda x: stats.norm.logpdf(x, 1.0, 2.0)),
    "Dist.logpdf of gamma": ("map (Dist.logpdf (Dist.Gamma (1.5, 2.0))) x", lambda x: stats.gamma.logpdf(x, 1.5)),
    "Dist.cdf of student": (
        "map (Dist.cdf (Dist.Student_t (4.5, 1.0, 2.0))) x",
        lambda x: stats.t.cdf(x, 4.5, 1.0, 2.0),
    ),
    "Dist.quantile of normal": (
        "map (fun t -> Dist.quantile (Dist.Normal (1.0, 2.0)) (0.6 * t)) x",
        lambda x: stats.norm.ppf(0.6 * x, 1.0, 2.0),
    ),
    "Nn.gelu": ("Nn.gelu x", lambda x: x * special.ndtr(x)),
    "Nn.huber": ("Nn.huber 0.3 x (reverse x)", lambda x: np.mean(special.huber(0.3, x - x[::-1]))),
    "Nn.bce": ("Nn.bce x (0.5 * reverse x)", None),
    "Nn.layer_norm": ("Nn.layer_norm (Nn.norm n) x", lambda x: (x - x.mean()) / np.sqrt(x.var() + 1e-5)),
    "Transform.ordered": ("fst (Transform.ordered x)", None),
    "Transform.shares": ("fst (Transform.shares x)", None),
}
MATRICES: dict[str, tuple[str, Peer | None]] = {
    "Linalg.trace": ("Linalg.trace a", np.trace),
    "Linalg.solve": ("Linalg.solve a a[0]", lambda a: np.linalg.solve(a, a[0])),
    "Linalg.inverse": ("Linalg.inverse a", np.linalg.inv),
    "Linalg.det": ("Linalg.logdet a", np.linalg.slogdet),
    "Linalg.cholesky": ("Linalg.cholesky (a + transpose a)", lambda a: np.linalg.cholesky(a + a.T)),
    "Linalg.qr": ("Linalg.qr a", np.linalg.qr),
    "Linalg.lu": ("let (l, u, _) = Linalg.lu a in (l, u)", linalg.lu),
    "Linalg.lstsq": ("Linalg.lstsq a a[0]", lambda a: linalg.lstsq(a, a[0])),
    "Linalg.eigh": ("Linalg.eigh (a + transpose a)", lambda a: np.linalg.eigh(a + a.T)),
    "Linalg.svd": ("Linalg.svd a", np.linalg.svd),
    "Linalg.expm": ("Linalg.expm (0.01 * a)", lambda a: linalg.expm(0.01 * a)),
    "Linalg.pinv": ("Linalg.pinv a", np.linalg.pinv),
    "Linalg.norm1": ("Linalg.norm1 a", lambda a: np.linalg.norm(a, 1)),
    "Linalg.norm_frobenius": ("Linalg.norm_frobenius a", np.linalg.norm),
    "Stats.cov": ("Stats.cov a", np.cov),
    "Fft.fft2": ("Fft.fft2 (a, a)", lambda a: np.fft.fft2(a + 1j * a)),
    "Nn.self_attention": ("Nn.self_attention (Nn.attention (Random.key 1) n) 4 (fun _ _ -> true) (0.01 * a)", None),
}


def in_dpl(rows: dict[str, tuple[str, Peer | None]], argument: str, size: int) -> list[tuple[float | None, ...]]:
    """The least times of the functions and of their gradients, by a program for each few; none where `dpl bench` skips
    one."""
    if len(rows) > TOGETHER:
        names = list(rows)
        few, others = ({name: rows[name] for name in part} for part in (names[:TOGETHER], names[TOGETHER:]))
        return in_dpl(few, argument, size) + in_dpl(others, argument, size)
    text = "".join(f"let row{i} ({argument}) = {body}\n" for i, (body, _) in enumerate(rows.values()))
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "rows.dp")
        program.write_text(text)
        command = [sys.executable, "-m", "dplc.cli", "bench", program, "--size", str(size), "--json"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.splitlines()
    found = {row["name"]: row for row in map(json.loads, lines)}
    measured = [found[f"row{i}"] for i in range(len(rows))]
    return [tuple(row[what]["low"] if row.get(what) else None for what in ("value", "gradient")) for row in measured]


def least(peer: Peer, given: np.ndarray) -> float:
    timer = timeit.Timer(lambda: peer(given))
    count = max(1, timer.autorange(lambda n, spent: None)[0] // 200)
    return min(timer.repeat(15, count)) / count


def report(rows: dict[str, tuple[str, Peer | None]], argument: str, size: int, given: np.ndarray) -> None:
    for (name, (_, peer)), (value, gradient) in zip(rows.items(), in_dpl(rows, argument, size), strict=True):
        if value is None:
            print(f"| `{name}` | {size:,} | too long | | | |", flush=True)
            continue
        slope = "" if gradient is None else f"{gradient / value:.1f}"
        other = least(peer, given) if peer else None
        beside = f"{other * 1e6:,.1f} | {value / other:.2f}" if other else " | "
        print(f"| `{name}` | {size:,} | {value * 1e6:,.1f} | {beside} | {slope} |", flush=True)


def main(wanted: list[str]) -> None:
    def chosen(rows: dict[str, tuple[str, Peer | None]]) -> dict[str, tuple[str, Peer | None]]:
        return {name: row for name, row in rows.items() if not wanted or any(name.startswith(w) for w in wanted)}

    random = np.random.default_rng(1)
    print(
        "| function | numbers | DPL, µs | NumPy or SciPy, µs | ratio | gradient / function |\n|---|---|---|---|---|---|"
    )
    if rows := chosen(VECTORS):
        for size in SIZES:
            report(rows, "x : float[n]", size, random.uniform(0.5, 1.5, size))
    if rows := chosen(MATRICES):
        square = random.uniform(0.5, 1.5, (SQUARE, SQUARE)) + 2 * SQUARE * np.eye(SQUARE)
        report(rows, "a : float[n, n]", SQUARE, square)


if __name__ == "__main__":
    main(sys.argv[1:])
