"""Which functions of a running program repay optimising: processor time by samples, beside what LLVM will need.

An online decision, as whether to rent or to buy skis (Karlin et al. 1988): functions are optimised when they have taken
about as long as that will, so that not much more than the least time is spent.  The time of earlier runs counts.

This module imports little: a program from the cache should start quickly.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from struct import unpack_from

from dplc.machine.llvm.sampler import MOST, SAMPLES, SIZE
from dplc.machine.object import elf
from dplc.machine.run.execute import ENTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dplc.machine.run.program import LoadedImage, Program

START = 0.2  # seconds that the optimiser's process needs to begin and to end
LINE, OTHER_LINE = 1e-4, 1e-5  # seconds for each line of LLVM that is optimised, and for each that is not
SHARE = 0.8  # of the time of an optimisation that its functions must have taken; a program may run again
LEAST = 0.2  # of the time for one function, if an optimisation is worth it at all


class Code:
    """The functions of an object in memory: where they are."""

    def __init__(self, code: bytes, entry: int) -> None:
        """`entry` is the address of the program's entry."""
        places = elf.functions(code, ".text")
        base = entry - next(start for start, _, name in places if name == ENTRY)
        self.starts = [base + start for start, _, _ in places]
        self.ends = [base + start + size for start, size, _ in places]
        self.names = [name for _, _, name in places]

    def function(self, address: int) -> str:
        """The function at an address; "" if there is none."""
        i = bisect_right(self.starts, address) - 1
        return self.names[i] if i >= 0 and address < self.ends[i] else ""


class Profile:
    """Seconds of processor time that functions of a running program took since they were compiled as they are.  Time in
    the runtime is that of the function that called it."""

    def __init__(self, loaded: LoadedImage, start: float) -> None:
        """`start` is the processor time when the program began."""
        self.memory, self.at = loaded.memory, loaded.image.exports[SAMPLES]
        self.codes: list[Code] = []
        self.seconds: dict[str, float] = {}
        self.count, self.clock = 0, start

    def add(self, code: bytes, entry: int) -> None:
        """Another object is in memory."""
        self.codes.append(Code(code, entry))

    def read(self) -> None:
        """Count the samples that are new."""
        (count,) = unpack_from("<q", self.memory, self.at)
        new, now = count - self.count, time.process_time()
        if new <= 0:
            return
        weight = (now - self.clock) / new
        for n in range(max(self.count, count - MOST), count):
            if name := self.function(n % MOST):
                self.seconds[name] = self.seconds.get(name, 0.0) + weight
        self.count, self.clock = count, now

    def function(self, row: int) -> str:
        """The function where a sample was taken, or the one that had called the runtime."""
        for address in unpack_from(f"<{SIZE // 8}Q", self.memory, self.at + 8 + row * SIZE):
            for code in self.codes:
                if name := code.function(address):
                    return name
        return ""


def repaying(program: Program, seconds: dict[str, float]) -> list[str]:
    """The functions to optimise now, if any: they have taken long enough."""
    lines = program.lines
    new = [
        name for name, time in seconds.items()
        if name in lines and name not in program.hot and time >= LEAST * LINE * lines[name]
    ]  # fmt: skip
    optimised = sum(lines[name] for name in (*new, *program.hot))
    cost = START + LINE * optimised + OTHER_LINE * sum(lines.values())
    return new if sum(seconds[name] for name in new) >= SHARE * cost else []


def everything(program: Program, seconds: float) -> list[str]:
    """All functions, if the program has run long enough, where there are no samples that tell which are hot."""
    cost = START + LINE * sum(program.lines.values())
    return [] if program.hot or seconds < SHARE * cost else list(program.lines)
