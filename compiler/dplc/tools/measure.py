"""Running a program that measures (`driver`), and what it says of each case; cases that fail are left out and told."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from dpl.diagnostics import DplError
from dpl.node import node
from dpl.source import Source

from dplc.machine.jit import Compiled, execute
from dplc.passes import NeedsInterpreter
from dplc.tools.cases import Case
from dplc.tools.driver import FIRST, Subject, program

Compile = Callable[[Source], Compiled]


@node
class Measured:
    """A definition's numbers, as its driver printed them: a row for each size, or more; or why there are none."""

    name: str
    rows: tuple[tuple[float, ...], ...]
    why: str = ""


def measure(
    subject: Subject, template: str, compile_: Compile, sizes_of: Callable[[Case], Sequence[int]]
) -> list[Measured]:
    """Each case of a subject, in order."""
    found = {name: Measured(name, (), case) for name, case in subject.cases if isinstance(case, str)}
    chosen = [case for _, case in subject.cases if isinstance(case, Case)]

    def compiled(some: Sequence[Case]) -> Compiled:
        return compile_(program(subject, some, template, [sizes_of(case) for case in some]))

    if chosen:
        chosen, code = compilable(chosen, compiled, found)
        if code is not None:
            for case, measured in zip(chosen, run(code, chosen), strict=True):
                found[case.name] = measured
    return [found[name] for name, _ in subject.cases]


def compilable(
    chosen: list[Case], compiled: Callable[[Sequence[Case]], Compiled], found: dict[str, Measured]
) -> tuple[list[Case], Compiled | None]:
    """The cases that can be compiled, and the program of them all; why the others cannot goes to `found`."""
    try:
        return chosen, compiled(chosen)
    except (DplError, NeedsInterpreter):
        good = []
        for case in chosen:
            try:
                compiled([case])
                good.append(case)
            except (DplError, NeedsInterpreter) as failure:
                found[case.name] = Measured(case.name, (), reason(failure))
        return good, compiled(good) if good else None


def reason(failure: DplError | NeedsInterpreter) -> str:
    return failure.reason if isinstance(failure, NeedsInterpreter) else failure.diagnostics[0].title


def run(code: Compiled, chosen: Sequence[Case]) -> list[Measured]:
    """What the cases say; where one fails, the program goes on with the next."""
    rows: list[list[tuple[float, ...]]] = [[] for _ in chosen]
    why = [""] * len(chosen)
    first = 0
    while first < len(chosen):
        failure, at = None, first
        with captured() as lines:
            try:
                with environment(FIRST, str(first)):
                    execute(code)
            except DplError as stopped:
                failure = stopped
        for line in lines:
            word, *rest = line.split()
            if word == "start":
                at = int(rest[0])
            else:
                rows[int(word)].append(tuple(map(float, rest)))
        if failure is None:
            break
        rows[at], why[at] = [], f"fails: {failure.diagnostics[0].title}"
        first = at + 1
    ended = "the program ends before it can be measured"
    return [Measured(case.name, tuple(r), w if r or w else ended) for case, r, w in zip(chosen, rows, why, strict=True)]


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """A variable of the environment, while something runs."""
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


@contextmanager
def captured() -> Iterator[list[str]]:
    """The lines that are written to standard output inside, known after it."""
    lines: list[str] = []
    sys.stdout.flush()
    before = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            with suppress(OSError):
                os.dup2(before, 1)
                os.close(before)
            file.seek(0)
            lines += file.read().decode("utf-8", "replace").splitlines()
