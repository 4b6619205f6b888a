"""The judge of random programs is awake: a fault that is planted in what an engine says is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from doubt.agreement import ORDER, Crashed, EnginesDiffer, RoadsDiffer, difference, judge
from doubt.oracle import DONE, INTERP, NATIVE, OUT_OF_TIME, Oracle, Outcome
from doubt.programs import FIRST, MEASURE, OF_NUMBER, SECOND, Program
from doubt.writer import Features

F = "let f (x : float) : float = x * sin x\nlet x0 : float = 0.7\n"
Fault = Callable[[str, Outcome], Outcome]


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


def verdict(oracle: Oracle, body: str, fault: Fault = lambda _, outcome: outcome) -> str:
    program = Program(body + MEASURE + OF_NUMBER, tuple(FIRST | SECOND), Features())
    return judge(program, lambda engine, *asked: fault(engine, oracle.ask(engine, *asked)), NATIVE)


def wrong(*names: str, by: float, engines: tuple[str, ...] = (INTERP, NATIVE)) -> Fault:
    """The first number under those names is off by that factor."""

    def planted(engine: str, outcome: Outcome) -> Outcome:
        output = outcome.output
        for name in names if engine in engines else ():
            output = re.sub(
                rf"(?<=^== {name}\n)([(\[]?)([-\d.e]+)", lambda m: f"{m[1]}{float(m[2]) * by}", output, flags=re.M
            )
        return replace(outcome, output=output)

    return planted


def test_good_programs_agree(oracle: Oracle) -> None:
    assert verdict(oracle, F) == "agreed"
    assert verdict(oracle, F.replace("x * sin x", "sqrt (0.0 * x)")) == "infinite"
    assert verdict(oracle, F.replace("x * sin x", "x + float ([1, 2])[2]")) == "failed with R0705"


@pytest.mark.parametrize("name", [*FIRST, *SECOND])
def test_engines_that_differ(oracle: Oracle, name: str) -> None:
    with pytest.raises(EnginesDiffer, match=name):
        verdict(oracle, F, wrong(name, by=1 + 1e-6, engines=(NATIVE,)))


def test_messages_that_differ(oracle: Oracle) -> None:
    def reworded(engine: str, outcome: Outcome) -> Outcome:
        return replace(outcome, message=f"{engine}: {outcome.message}")

    with pytest.raises(EnginesDiffer, match="is out of bounds for length 2: "):
        verdict(oracle, F.replace("x * sin x", "x + float ([1, 2])[2]"), reworded)


@pytest.mark.parametrize("name", ["forward", "reverse", *SECOND])
def test_roads_that_differ(oracle: Oracle, name: str) -> None:
    with pytest.raises(RoadsDiffer):
        verdict(oracle, F, wrong(name, by=1 + 1e-6))


@pytest.mark.parametrize("names", [("forward", "reverse"), tuple(SECOND)])
def test_differences_that_differ(oracle: Oracle, names: tuple[str, ...]) -> None:
    with pytest.raises(RoadsDiffer, match="finite differences"):
        verdict(oracle, F, wrong(*names, by=1.01))


def test_differences_that_are_rounded_away() -> None:
    assert difference([6e8] * 5) is None
    assert difference([1.0, 1.0 + 1e-5, 1.0 - 1e-5, 1.0 + 2e-5, 1.0 - 2e-5]) == pytest.approx(1.0)


def test_only_native_code_must_be_in_time(oracle: Oracle) -> None:
    def late(engine: str) -> Callable[[str, Outcome], Outcome]:
        return lambda by, outcome: replace(outcome, end="killed", why=OUT_OF_TIME) if by == engine else outcome

    assert verdict(oracle, F, late(INTERP)) == "slow"
    with pytest.raises(Crashed):
        verdict(oracle, F, late(NATIVE))


def test_what_the_interpreter_runs_alone_has_one_derivative(oracle: Oracle) -> None:
    def refused(by: str, outcome: Outcome) -> Outcome:
        return replace(outcome, end="refused", why=f"it, {ORDER}") if by == NATIVE else outcome

    assert verdict(oracle, F, refused) == "interpreted"
    with pytest.raises(RoadsDiffer):
        verdict(oracle, F, lambda by, outcome: refused(by, wrong("forward", by=1.01)(by, outcome)))


@pytest.mark.parametrize("engine", [INTERP, NATIVE])
@pytest.mark.parametrize("end", ["crashed", "killed", "refused", "rejected"])
def test_ends_that_are_not_good(oracle: Oracle, engine: str, end: str) -> None:
    with pytest.raises(Crashed):
        verdict(oracle, F, lambda by, outcome: replace(outcome, end=end if by == engine else DONE))
