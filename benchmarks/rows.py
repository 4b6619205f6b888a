"""What is compared: programs, their modes (function, gradient, ...) and their sizes."""

from __future__ import annotations

from dataclasses import dataclass

NESTED = ("FF", "FR", "RF", "RR")
BOTH = ("forward", "reverse")
THROUGHPUT = (
    *("exp", "tanh", "log", "exp f32", "tanh f32", "log f32"),
    *("sum", "maximum", "argmax", "cumsum", "sort", "argsort"),
)


@dataclass(frozen=True)
class Row:
    """A program in DPL, `FOLDER/NAME.dp`, and the same in C, with hand-derived gradients, or in NumPy."""

    size: int
    quick: int  # a small size, where only the results are compared
    modes: tuple[str, ...] = ("function", "gradient")
    folder: str = "arrays"
    c: str = ""  # the program in C, if it is called otherwise
    flags: tuple[str, ...] = ()  # for the compiler of C
    agree: float = 1e-7  # relative: C computes with -ffast-math, and where it stops may depend on the last bit


F32 = ("-DREAL=float",)
ROWS = {
    "mlp_f64": Row(100, 10, c="mlp"),
    "mlp_f32": Row(100, 10, c="mlp", flags=F32, agree=2e-4),
    "lenet_conv2d": Row(100, 2, c="lenet", agree=1e-3),
    "lenet_im2col": Row(100, 2, c="lenet", agree=1e-3),
    "lenet_sums": Row(20, 2, c="lenet", agree=1e-3),
    "gmm_matrix": Row(1000, 20, c="gmm"),
    "gmm_points": Row(1000, 20, c="gmm"),
    "black_scholes": Row(1_000_000, 100),
    "black_scholes_maps": Row(1_000_000, 100, c="black_scholes"),
    "nbody": Row(1000, 20),
    "kmeans": Row(100_000, 100, modes=("function", "gradient", "hvp")),
    "hand": Row(5, 1),
    "lstm": Row(1024, 10),
    "ba": Row(31_843, 100),
    "tree_lstm": Row(100, 2, modes=("function", "gradient", "train"), agree=1e-3),
    "ensemble": Row(10_000, 20),
    "det": Row(8, 4),
    "log_sum_exp": Row(1_000_000, 100),
    "least_squares": Row(10_000, 100),
    "throughput": Row(1_000_000, 1000, modes=THROUGHPUT, agree=1e-5),
    "read_csv": Row(100_000, 10, modes=("read",)),
    "newton": Row(1_000_000, 10, modes=("forward", "reverse", "whole"), folder="control"),
    "lotka": Row(1_000_000, 10, modes=BOTH, folder="control"),
    "tree": Row(30, 5, modes=BOTH, folder="control"),
    "logistic": Row(10_000_000, 10, modes=BOTH, folder="control"),
    "saddle": Row(200, 1, modes=NESTED, folder="control"),
    "particle": Row(200, 1, modes=NESTED, folder="control"),
    "checkpoint": Row(100_000, 100, modes=("reverse",), folder="control"),
}
