"""Elementary functions, each described once, for both engines and all scalar types.

    function("exp", "f64")    a Python function of floats
    described("exp", "f64")   its steps, of which the compiler makes LLVM text

`exponential.py` and its neighbours have the descriptions.  They are read when a function is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpl.prims.elementary.steps import Steps

# name: the module that describes it, and its number of arguments
NAMES = {
    name: (module, count)
    for module, count, names in (
        ("exponential", 1, "exp exp2 expm1 sinh cosh tanh sigmoid sech2 bell"),
        ("exponential", 2, "share overlap"),
        ("logarithm", 1, "log log1p log2 log10 asinh acosh atanh softplus"),
        ("logarithm", 2, "xlogy logaddexp"),
        ("trigonometric", 1, "sin cos tan sin_far cos_far tan_far"),
        ("inverse", 1, "asin acos atan"),
        ("inverse", 2, "atan2 hypot squares cosine turn"),
        ("powers", 1, "cbrt"),
        ("powers", 2, "pow"),
        ("error", 1, "erf"),
    )
    for name in names.split()
}
FAR = {"sin_far", "cos_far", "tan_far"}  # they are called by others, where those are far from 0
VECTORS = NAMES.keys() - FAR


def arity(name: str) -> int:
    return NAMES[name][1]


def types(name: str) -> tuple[str, ...]:
    return "f64", "f32"


def has_vectors(name: str, type_: str) -> bool:
    """True if there are functions for vectors.  Far from 0, f64 reads tables."""
    return name not in FAR or type_ == "f32"


@cache
def described(name: str, type_: str) -> Steps:
    from dpl.prims.elementary.steps import record

    module, count = NAMES[name]
    description = getattr(import_module(f"dpl.prims.elementary.{module}"), name)
    return record(name, description, type_, count)


@cache
def function(name: str, type_: str = "f64") -> Callable[..., float]:
    from dpl.prims.elementary.python import compiled

    return compiled(described(name, type_), function)


def late(name: str) -> Callable[..., float]:
    """The function at f64, which is made when it is first called."""
    return lambda *args: function(name)(*args)
