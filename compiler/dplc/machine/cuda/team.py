"""Teams: one block of threads, which all go through the same steps.

    x = par j < m to keep { ... }         (barrier)  thread k does points k, k + 256, ...  (barrier)
    c = matmul a b                        (barrier)  thread k does elements k, k + 256, ...  (barrier)
    y = update x t 1                      (barrier)  the first thread writes  (barrier)
    s = index x 0; t = mul s s            each thread, with the same numbers

The elements of arrays of numbers are in memory of the team.  All else is each thread's own, and the same in all:
numbers, control, headers of arrays, data, arrays of data (`rt/device/team.rt`).  So control needs no exchange.
`team_par.py` writes Pars, `team_kernel.py` the other steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dplc.flat import term as f
from dplc.machine.cuda.kernel import KernelEmitter
from dplc.machine.emit.module.emitter import Emitter, zeros
from dplc.machine.emit.module.layout import counted, struct
from dplc.machine.emit.module.unit import Unit
from dplc.machine.llvm.writer import Values
from dplc.passes.device.kernels import Kernel

CHECK = "call void @rt.check_team()"  # ends the thread if one of the others has failed


class Team(KernelEmitter):
    """A team's kernel under construction.  `may_fail` says whether a text may leave a record of a failure."""

    def __init__(self, unit: Unit, kernel: Kernel, may_fail: Callable[[str], bool]) -> None:
        super().__init__(unit, kernel)
        self.may_fail = may_fail
        self.alone = False  # whether a thread does what others do not
        self.framed = False  # whether what is being written is in the frames of threads
        self.diverges = False  # whether threads may fail where others do not
        self.thread = self.threads = self.first = ""  # a thread's number, their count, whether it is the first

    def begin(self) -> None:
        """Asks which thread of the team this is, and how many there are."""
        self.thread = self.w.let("call i64 @rt.thread()")
        self.first = self.w.let(f"icmp eq i64 {self.thread}, 0")
        self.threads = self.w.let("call i64 @rt.threads()")
        self.w.do("call void @rt.begin_team()")

    # ---- what threads do together

    def together(self, write: Callable[[], object]) -> None:
        """What is written by some threads, between barriers: before, others may still read what was there."""
        barrier = "call void @llvm.nvvm.barrier0()"
        self.w.do(barrier)
        start, self.alone = len(self.w.lines), True
        write()
        self.alone = False
        self.w.do(barrier)
        self.w.do(CHECK)
        self.diverges = self.diverges or self.may_fail("\n".join(self.w.lines[start:]))

    def checked(self) -> None:
        """Takes the questions after barriers out again, if no thread can fail alone: what fails outside of `together`
        fails in all threads."""
        if not self.diverges:
            self.w.lines = [line for line in self.w.lines if line.strip() != CHECK]

    def is_own(self, elem: f.Type) -> bool:
        """Whether each thread has such elements for itself, or writes those of a point."""
        return self.alone or self.framed or counted(elem)

    def once(self, elem: f.Type, write: Callable[[], object]) -> None:
        def now() -> Values:
            write()
            return []

        if self.is_own(elem):
            write()
        else:
            self.together(lambda: self.w.choose(self.first, (), now, list))

    def each(self, elem: f.Type, count: str, write: Callable[[str], object], mark: str = "") -> None:
        w = self.w

        def step(state: Values) -> Values:
            write(state[0])
            return [w.let(f"add nuw nsw i64 {state[0]}, {self.threads}")]

        def mine() -> None:
            w.loop(("i64",), [self.thread], lambda state: w.let(f"icmp slt i64 {state[0]}, {count}"), step)

        if self.is_own(elem):
            super().each(elem, count, write, mark)
        else:
            self.together(mine)

    def copy(self, elem: f.Type, to: str, source: str, count: str) -> None:
        def element(i: str) -> None:
            size = struct(elem).size
            self.put(elem, self.get(elem, self.w.element(source, i, size)), self.w.element(to, i, size))

        if self.is_own(elem):
            super().copy(elem, to, source, count)
        else:
            self.each(elem, count, element)

    def clear(self, elem: f.Type, to: str, count: str) -> None:
        if self.is_own(elem):
            super().clear(elem, to, count)
        else:
            self.each(elem, count, lambda i: self.put(elem, zeros(elem), self.w.element(to, i, struct(elem).size)))

    def library(self, name: str, args: str) -> None:
        if self.alone:
            super().library(name, args)
        else:
            self.together(lambda: self.w.do(f"call void @rt.team_{name}({args})"))

    # ---- memory

    def memory(self, size: str, elem: f.Type) -> Values:
        if self.is_own(elem):
            return super().memory(size, elem)
        both = self.w.let(f"call {{ ptr, ptr }} @rt.team_array(i64 {size})")
        return [self.w.let(f"extractvalue {{ ptr, ptr }} {both}, {i}") for i in (0, 1)]

    def begin_point(self) -> None:
        """The arena of a thread has the headers of the team's arrays."""

    # ---- out of line

    def outlined(
        self, name: str, types: Sequence[str], args: Values, results: Sequence[str],
        body: Callable[[Emitter, Values], Values], inline: bool = False,
    ) -> Values:  # fmt: skip
        """Helper functions know nothing of a team, so they are in line."""
        return super().outlined(name, types, args, results, body, inline) if self.alone else body(self, list(args))
