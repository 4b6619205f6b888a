"""Writes `corpus/`: few of the small random programs, which reach all branches of lang/ and compiler/ that all of them
reach, and use all of their rules (corpus distillation, as libFuzzer does by `-merge=1`).

    .venv/bin/pip install coverage
    cd tests && ../.venv/bin/python -m doubt.distil      an hour on two cores

Choose again after a new pass, or after rules for a new feature.  A program that fails here is a found bug.
"""

from __future__ import annotations

import heapq
import os
import pickle
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path

from dplc.stack import on_large_stack
from hypothesis import settings

from doubt import corpus, oracle
from doubt.agreement import judge
from doubt.test_random_programs import BATCHES, drawn, small_engine

FILES = 20
ROOTS = [str(corpus.FOLDER.parents[2] / name) for name in ("lang", "compiler")]
CASE = 0.05  # seconds that any program costs


@dataclass(frozen=True)
class Reach:
    """The branches that a program reaches and the rules that wrote it: a bit for each."""

    case: corpus.Case
    seconds: float
    bits: int


class Here:
    """Asks in this process, which is traced."""

    def __init__(self) -> None:
        self.output = os.memfd_create("output")
        os.dup2(self.output, 1)

    def ask(self, engine: str, text: str, left_out: Collection[int] = ()) -> oracle.Outcome:
        os.ftruncate(self.output, 0)
        os.lseek(1, 0, os.SEEK_SET)
        end, _, why = oracle.ended(lambda: oracle.answered(engine, text, left_out)).partition("\n")
        return oracle.Outcome(oracle.content(self.output), end, why)


def traced(batch: int) -> list[tuple[corpus.Case, float, list]]:
    """The programs of a batch: seconds, branches as (file, from line, to line), and names of rules."""
    import coverage

    programs = enumerate(drawn(batch))
    cases = [corpus.Case(f"{batch}.{n}", small_engine(batch, program), program) for n, program in programs]
    trace = coverage.Coverage(data_file=None, branch=True, include=[f"{root}/*" for root in ROOTS], config_file=False)
    here, seconds = Here(), []
    trace.start()
    for number, case in enumerate(cases):
        trace.switch_context(str(number))
        begun = time.process_time()
        judge(case.program, here.ask, case.engine)
        seconds.append(time.process_time() - begun)
    trace.stop()
    data, found = trace.get_data(), []
    for number, case in enumerate(cases):
        data.set_query_context(str(number))
        branches = [(file, *branch) for file in data.measured_files() for branch in data.arcs(file) or ()]
        found.append((case, seconds[number], [*branches, *case.program.rules]))
    return found


def measured(batch: int) -> list[tuple[corpus.Case, float, list]]:
    """A batch, in a process of its own."""
    with tempfile.NamedTemporaryFile() as file:
        child = os.fork()
        if child == 0:
            try:
                Path(file.name).write_bytes(pickle.dumps(on_large_stack(lambda: traced(batch))))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return pickle.loads(Path(file.name).read_bytes())  # nothing is there if a program failed


def reaches() -> Iterator[Reach]:
    number: dict = defaultdict(lambda: len(number))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(measured, range(BATCHES)):
            for case, seconds, things in found:
                yield Reach(case, seconds, reduce(or_, (1 << number[thing] for thing in things)))


def chosen(found: Sequence[Reach]) -> list[Reach]:
    """A cover of all that they reach, by what is new in a program for its time (greedy, as Chvatal 1979)."""
    left = reduce(or_, (one.bits for one in found))
    taken: list[Reach] = []

    def worth(one: Reach) -> float:
        return (one.bits & left).bit_count() / (one.seconds + CASE)

    queue = [(-worth(one), place) for place, one in enumerate(found)]
    heapq.heapify(queue)
    while left:
        _, place = heapq.heappop(queue)
        now = -worth(found[place])  # it may be less than when it was last asked
        if queue and now > queue[0][0]:
            heapq.heappush(queue, (now, place))
        else:
            taken.append(found[place])
            left &= ~found[place].bits
    return taken


def main() -> None:
    settings.register_profile("same", derandomize=True, database=None)
    settings.load_profile("same")
    on_large_stack(oracle.warm_up)
    found = list(reaches())
    taken = chosen(found)
    corpus.FOLDER.mkdir(exist_ok=True)
    for number in range(FILES):
        corpus.write(corpus.FOLDER / f"{number:02}.dp", [one.case for one in taken[number::FILES]])
    sys.stderr.write(f"{len(taken)} of {len(found)} programs\n")


if __name__ == "__main__":
    main()
