"""Outcomes -> whether they agree: engines with each other, forward with reverse, both with finite differences.

judge(program, ask, engine) raises `Crashed`, `EnginesDiffer` or `RoadsDiffer`, or says how the program was judged
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from math import copysign, isfinite

from conftest import NUMBER

from doubt.oracle import DONE, INTERP, OUT_OF_TIME, Outcome
from doubt.programs import MARK, SECOND, STEPS, Program

NEGATIVE = re.compile(r"\((-[\w.+-]+)\)")  # a constructor's argument has parentheses if it is less than zero

ORDER = "to an order known only when it runs"  # of differentiation: the one refusal that random programs may meet

OF_MEMORY = ("R0801", "R0802")  # each engine runs out of its own memory at a place of its own

ENGINES, SINGLES = 1e-7, 1e-3  # relative differences that rounding explains
FIRST_ORDER, SECOND_ORDER = 1e-8, 1e-7
DIFFERENCE, KINK = 1e-4, 1e-3
ROUNDING = 2.0**-50  # of a value, with what was rounded on the way to it


class Crashed(AssertionError):
    """A crash, a hang, a rejection or a refusal that is not allowed."""


@cache
def kind(text: str) -> type[Crashed]:
    """Crashes of each kind are a class of their own, so that shrinking one does not end with another."""
    return type("Crashed", (Crashed,), {"__doc__": text})


def crashed(engine: str, outcome: Outcome) -> Crashed:
    lines = f"{outcome.end} {outcome.why}".strip().splitlines()
    text = re.sub(r"`.*?`|\d+", "_", lines[-1] if outcome.end == "crashed" else lines[0])
    return kind(text)(f"{engine}: {outcome.end} {outcome.why}")


class EnginesDiffer(AssertionError):
    pass


class RoadsDiffer(AssertionError):
    pass


def judge(program: Program, ask: Callable[..., Outcome], engine: str) -> str:
    """What was found: `failed` alike on both, `infinite`, `rough`, or `agreed`; `slow`, a program whose loops and
    recursion double something so often that nobody can tell; or `interpreted`, one whose order of differentiation
    is known only when it runs, which `dpl run` leaves to the interpreter: its derivatives were compared with each other
    only."""
    interp = ask(INTERP, program.text)
    if (interp.end, interp.why) == ("killed", OUT_OF_TIME):
        return "slow"
    if interp.end == "rejected" and program.features.bare:
        return "rejected"
    if interp.end not in (DONE, "failed"):
        raise crashed("the interpreter", interp)
    native = ask(engine, program.text, program.only_interpreted)
    refused = native.end == "refused" and native.why.endswith(ORDER)
    if native.end not in (DONE, "failed") and not refused:
        raise crashed("native code", native)
    if not refused:
        compare(program, interp, native)
    if interp.end == "failed":
        return f"failed with {interp.why}"
    verdict = roads_meet(sections(interp.output), program)
    return "interpreted" if refused else verdict


def sections(output: str) -> dict[str, str]:
    """What was printed before the measurements, under the empty name, and by each of them."""
    found, name = {"": ""}, ""
    for line in output.splitlines(keepends=True):
        if line.startswith(MARK):
            name = line.removeprefix(MARK).strip()
            found[name] = ""
        else:
            found[name] += line
    return found


def compare(program: Program, interp: Outcome, native: Outcome) -> None:
    """The native program has fewer measurements; where one of them fails, the interpreter fails in it too."""
    ours, theirs = sections(interp.output), sections(native.output)
    rel = SINGLES if program.features.singles else ENGINES
    for name, text in theirs.items():
        if name not in ours and interp.end == "failed":
            break
        if not same(ours.get(name, ""), text, rel):
            raise EnginesDiffer(f"{name}: the interpreter says\n{ours.get(name)}\nnative code\n{text}")
    if native.end == "failed" and (interp.end != "failed" or interp.why != native.why):
        raise EnginesDiffer(f"native code: {native.end} {native.why}, the interpreter: {interp.end} {interp.why}")
    if native.end == "failed" and native.why not in OF_MEMORY and interp.message != native.message:
        raise EnginesDiffer(f"native code says: {native.message}\nthe interpreter: {interp.message}")


def same(a: str, b: str, rel: float) -> bool:
    """Equal texts, except that numbers may differ by a little.  Zeros have one sign."""
    a, b = (NEGATIVE.sub(r"\1", text) for text in (a, b))
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b)), strict=True)
    return all(same_number(x, y, rel) for x, y in pairs)


def same_number(x: float, y: float, rel: float) -> bool:
    if x == y:
        return copysign(1.0, x) == copysign(1.0, y)
    return (x != x and y != y) or close(x, y, rel)


def close(a: float, b: float, rel: float) -> bool:
    return abs(a - b) <= rel * max(1.0, abs(a), abs(b))


def roads_meet(found: dict[str, str], program: Program) -> str:
    """Forward, reverse and nested derivatives are the same numbers, and differences agree where they can be trusted."""
    slope = number(found["forward"])
    curvatures = {name: number(found[name]) for name in SECOND}
    values, slopes = (numbers(found[name]) for name in ("values near", "slopes near"))
    if not all(map(isfinite, [slope, *curvatures.values(), *values, *slopes])):
        return "infinite"
    rel = SINGLES if program.features.singles else 0.0
    agree("forward", slope, "reverse", number(found["reverse"]), rel or FIRST_ORDER)
    (first, curvature), *others = curvatures.items()
    for name, other in others:
        agree(first, curvature, name, other, rel or SECOND_ORDER)
    if program.features.special or program.features.stops or rel:
        return "agreed, without differences"
    trusted = [difference(values), difference(slopes)]
    for name, exact, estimate in zip(("slope", "curvature"), (slope, curvature), trusted):
        if estimate is not None:
            agree(name, exact, "finite differences", estimate, DIFFERENCE)
    return "rough" if None in trusted else "agreed"


def agree(name: str, a: float, other: str, b: float, rel: float) -> None:
    if not close(a, b, rel):
        raise RoadsDiffer(f"{name} says {a}, {other} {b}")


def number(text: str) -> float:
    """The last line: what a function prints when it is differentiated comes before."""
    return float(text.splitlines()[-1])


def numbers(text: str) -> list[float]:
    return [float(item) for item in text.splitlines()[-1].strip("[]").split(", ")]


def difference(values: list[float]) -> float | None:
    """The derivative by central differences, if both sides and two steps agree on it, and rounding leaves it."""
    at, up, down, further_up, further_down = values
    h, far = STEPS[1], STEPS[3]
    near, wide = (up - down) / (2 * h), (further_up - further_down) / (2 * far)
    left, right = (at - down) / h, (up - at) / h
    rounding = max(map(abs, values)) * ROUNDING / h
    steady = (
        close(near, wide, DIFFERENCE / 10) and close(left, right, KINK) and close(near, near + rounding, DIFFERENCE)
    )
    return near if steady else None
