"""Steps -> a Python function of floats.

Steps that are used once are written into the expression that uses them.  Results of type f32 are rounded by an array
of one element, after each step; the result is the one of arithmetic in f32, as an f64 has more than twice the digits.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import Any

from dpl.prims.elementary.steps import Steps

MAGIC = 1.5 * 2.0**52  # adding it leaves no digits behind the point
LOWEST = -1074
POWERS = [2.0**k for k in range(LOWEST, 1024)]
ROOT = {"f64": math.sqrt(0.5), "f32": float.fromhex("0x1.6a09e6p-1")}

FORMS = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "div": "({} / {})", "neg": "(-{})", "abs": "abs({})",
    "lt": "({} < {})", "le": "({} <= {})", "eq": "({} == {})", "ne": "({} != {})", "and": "({} and {})",
    "or": "({} or {})", "select": "({1} if {0} else {2})", "sqrt": "sqrt({})", "copysign": "copysign({}, {})",
    "two_to": f"POWERS[int({{}}) + {-LOWEST}]", "first": "{}[0]", "second": "{}[1]", "scaled": "scaled({}, int({}))",
    "widen": "{}", "narrow": "{}", "unbound": "({0} if {0} != {0} else {2})",
}  # fmt: skip
ROUNDS = ("add", "sub", "mul", "div", "sqrt", "scaled", "narrow")  # of type f32, these are rounded


def split(x: float, root: float) -> tuple[float, float]:
    """See `steps.split`; 1 stands for what is not positive, or not finite."""
    if not 0.0 < x < math.inf:
        return 0.0, 1.0
    m, k = math.frexp(x)
    return (float(k), m) if m >= root else (k - 1.0, m + m)


def scaled(p: float, k: int) -> float:
    """See `steps.scaled`; the first product is exact."""
    return p * POWERS[k // 2 - LOWEST] * POWERS[k - k // 2 - LOWEST]


def compiled(steps: Steps, other: Callable[[str, str], Callable]) -> Callable:
    """The function; `other` gives the functions that it calls, by names and types."""
    names: dict[str, Any] = {
        "POWERS": POWERS, "sqrt": math.sqrt, "copysign": math.copysign, "split": split, "scaled": scaled,
        "array": array, "inf": math.inf, "nan": math.nan,
    }  # fmt: skip
    writer = _Writer(steps, names, other)
    exec(compile(writer.text(), f"<{steps.name} {steps.type}>", "exec"), names)
    return names[steps.name]


class _Writer:
    def __init__(self, steps: Steps, names: dict, other: Callable[[str, str], Callable]) -> None:
        self.steps = steps
        self.names = names
        self.other = other
        self.lines: list[str] = []

    def text(self) -> str:
        steps, uses = self.steps, self.steps.uses()
        texts: list[str] = []
        rounding = any(step.type == "f32" and step.op in ROUNDS for step in steps.steps)
        for i, step in enumerate(steps.steps):
            text = self.expression(i, [texts[arg] for arg in step.args])
            if step.type == "f32" and step.op in ROUNDS:
                self.lines.append(f"r[0] = {text}")
                text = "r[0]"
            elif uses[i] < 2 or step.op in ("constant", "argument"):
                texts.append(text)
                continue
            self.lines.append(f"t{i} = {text}")
            texts.append(f"t{i}")
        params = ", ".join(f"x{i}" for i in range(steps.arity))
        start = ["r = array('f', (0.0,))"] if rounding else []
        body = [*start, *self.lines, f"return {texts[steps.result]}"]
        return "\n    ".join([f"def {steps.name}({params}):", *body]) + "\n"

    def expression(self, number: int, args: list[str]) -> str:
        step = self.steps.steps[number]
        match step.op:
            case "constant":
                return repr(float.fromhex(str(step.detail)))
            case "argument":
                return f"x{step.detail}"
            case "nearest":
                return f"(({args[0]} + {MAGIC}) - {MAGIC})"
            case "bit":
                return f"(int({args[0]}) & {step.detail} != 0)"
            case "split":
                return f"split({args[0]}, {ROOT[self.steps.steps[step.args[0]].type]})"
            case "entry":
                self.names[f"table{number}"] = step.detail
                return f"table{number}[int({args[0]})]"
            case "rarely":
                name = f"function{number}"
                self.names[name] = self.other(str(step.detail), step.type)
                return f"({name}({', '.join(args[2:])}) if {args[0]} else {args[1]})"
            case op:
                return FORMS[op].format(*args)
