"""throughput.dp in NumPy."""

import numpy as np
from measure import bell, digest, run


def numbers(n: int, i: int) -> np.ndarray:
    return bell(1 + i, np.arange(n))


def recent(n: int, i: int) -> np.ndarray:
    xs = numbers(n, i)
    np.sum(xs)  # which reads them once, before the clock starts
    return xs


def narrow(n: int, i: int) -> np.ndarray:
    return numbers(n, i).astype(np.float32)


def positive(n: int, i: int) -> np.ndarray:
    return abs(numbers(n, i)) + 1e-3


def positive_narrow(n: int, i: int) -> np.ndarray:
    return abs(narrow(n, i)) + np.float32(1e-3)


def number(x: float) -> list[float]:
    return [float(x)]


run(
    {
        "exp": (numbers, np.exp, digest),
        "tanh": (numbers, np.tanh, digest),
        "log": (positive, np.log, digest),
        "exp f32": (narrow, np.exp, digest),
        "tanh f32": (narrow, np.tanh, digest),
        "log f32": (positive_narrow, np.log, digest),
        "sum": (recent, np.sum, number),
        "maximum": (recent, np.max, number),
        "argmax": (recent, np.argmax, number),
        "cumsum": (numbers, np.cumsum, digest),
        "sort": (numbers, np.sort, digest),
        "argsort": (numbers, lambda xs: np.argsort(xs, kind="stable"), digest),
    }
)
