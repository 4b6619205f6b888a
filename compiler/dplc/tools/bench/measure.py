"""Runs the measuring program (`driver`) and reads its results.  A case that fails gets a reason instead."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dpl.diagnostics import DplError
from dpl.node import node
from dpl.source import Source

from dplc.machine.object.compiled import Compiled
from dplc.machine.run.linked import linked
from dplc.passes import NeedsInterpreter
from dplc.tools.bench.cases import Case
from dplc.tools.bench.driver import FIRST, Subject, program

LIMIT = 10.0  # seconds
START = 20.0  # additional seconds for the program to start
Compile = Callable[[Source], Compiled]


@node
class Measured:
    """The numbers that the measuring program printed for a definition: one or more rows for each size.  `why` says why
    rows are missing."""

    name: str
    rows: tuple[tuple[float, ...], ...]
    why: str = ""


def measure(
    subject: Subject, template: str, compile_: Compile, sizes_of: Callable[[Case], Sequence[int]], limit: float = LIMIT
) -> list[Measured]:
    """The results for each case of a subject, in order.  A call may take at most `limit` seconds."""
    found = {name: Measured(name, (), case) for name, case in subject.cases if isinstance(case, str)}
    chosen = [case for _, case in subject.cases if isinstance(case, Case)]

    def compiled(some: Sequence[Case]) -> Compiled:
        return compile_(program(subject, some, template, list(map(sizes_of, some))))

    if chosen:
        chosen, code = compilable(chosen, compiled, found)
        if code is not None:
            for case, measured in zip(chosen, run(code, chosen, list(map(sizes_of, chosen)), limit), strict=True):
                found[case.name] = measured
    return [found[name] for name, _ in subject.cases]


def compilable(
    chosen: list[Case], compiled: Callable[[Sequence[Case]], Compiled], found: dict[str, Measured]
) -> tuple[list[Case], Compiled | None]:
    """The cases that can be compiled, and the program of all these.  The reasons for the others are put in `found`."""
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


def run(code: Compiled, chosen: Sequence[Case], sizes: Sequence[Sequence[int]], limit: float) -> list[Measured]:
    """Run the cases at their sizes.  After a failure, the program is started again at the next call; after a call that
    takes too long, at the next case."""
    rows: list[list[tuple[float, ...]]] = [[] for _ in chosen]
    why = [""] * len(chosen)
    calls = [case for case, at in enumerate(sizes) for _ in at]
    first = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program"
        file.write_bytes(pickle.dumps(linked(code)))
        while first < len(calls):
            process = Process(file, first, limit)
            for number, row in process.rows():
                rows[number].append(row)
            if not process.why:
                break
            if process.size is None:
                why = [w or process.why for w in why]
                break
            failed = calls[process.call]
            why[failed] = process.why
            first = process.call + 1
            while process.too_long and first < len(calls) and calls[first] == failed:
                first += 1
    ended = "the program ends before it can be measured"
    return [Measured(case.name, tuple(r), w if r or w else ended) for case, r, w in zip(chosen, rows, why, strict=True)]


class Process:
    """A run of the program from call number `first` on.  It is killed if a call exceeds the limit.  Afterwards, if it
    ended early, `why` is the reason and `call` the number of the last call."""

    def __init__(self, file: Path, first: int, limit: float) -> None:
        self.file = file
        self.environment = {**os.environ, FIRST: str(first), "PYTHONPATH": os.pathsep.join(sys.path)}
        self.limit = limit
        self.call = first
        self.size: int | None = None  # until the first call begins
        self.too_long = False
        self.why = ""

    def rows(self) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Pairs of a case's number and a row that it printed."""
        command = [sys.executable, "-m", "dplc.tools.bench.measuring", str(self.file)]
        with (
            self.file.with_name("errors").open("w+b") as errors,
            subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=errors) as process,
        ):
            yield from self.told(process)
            code = process.wait()
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().split("\n")[-1]
        if self.too_long:
            where = "before it is called" if self.size is None else f"at size {self.size}"
            self.why = f"takes more than {self.limit:g} s {where}"
        elif code:
            self.why = f"fails: {said}"

    def told(self, process: subprocess.Popen[bytes]) -> Iterator[tuple[int, tuple[float, ...]]]:
        def stop() -> None:
            self.too_long = True
            process.kill()

        timer = threading.Timer(START + self.limit, stop)
        timer.start()
        try:
            for line in process.stdout or ():
                word, *rest = line.split()
                if word == b"start":
                    self.call += self.size is not None
                    self.size = int(rest[0])
                    timer.cancel()
                    timer = threading.Timer(self.limit, stop)
                    timer.start()
                else:
                    yield int(word), tuple(map(float, rest))
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
