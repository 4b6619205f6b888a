"""What is compared: programs, their modes (function, gradient, ...) and their sizes."""

from __future__ import annotations

from dataclasses import dataclass

NESTED = ("FF", "FR", "RF", "RR")
BOTH = ("forward", "reverse")


@dataclass(frozen=True)
class Row:
    """A program in DPL, `FOLDER/NAME.dp`, and the same in C, with hand-derived gradients."""

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
    "gmm_matrix": Row(1000, 20, c="gmm"),
    "gmm_points": Row(1000, 20, c="gmm"),
    "black_scholes": Row(1_000_000, 100),
    "black_scholes_maps": Row(1_000_000, 100, c="black_scholes"),
    "nbody": Row(1000, 20),
    "kmeans": Row(100_000, 100, modes=("function", "gradient", "hvp")),
    "hand": Row(20, 1),
    "ensemble": Row(10_000, 20),
    "newton": Row(1_000_000, 10, modes=("forward", "reverse", "whole"), folder="control"),
    "lotka": Row(1_000_000, 10, modes=BOTH, folder="control"),
    "tree": Row(30, 5, modes=BOTH, folder="control"),
    "logistic": Row(10_000_000, 10, modes=BOTH, folder="control"),
    "saddle": Row(1000, 1, modes=NESTED, folder="control"),
    "particle": Row(1000, 1, modes=NESTED, folder="control"),
    "checkpoint": Row(100_000, 100, modes=("reverse",), folder="control"),
}
