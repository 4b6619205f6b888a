"""Addresses of machine code -> the calls that were running, in terms of the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dpl.node import node, replace
from dpl.source import NOWHERE, Span

from dplc.flat import places
from dplc.machine.failure.failures import Sites, shown
from dplc.machine.failure.trace import Traces
from dplc.machine.run.execute import ENTRY
from dplc.machine.run.program import LoadedImage, Program, sites_of

POINTS = " points "  # in the name of the code that threads share: `F points 3` is a loop of F (`emit/threads.py`)


@node
class Where:
    """A function (empty: one that the compiler has made), the line of it that was running (None: not known), and its
    phase if that is known."""

    function: str
    span: Span | None
    phase: str = ""

    @property
    def line(self) -> str:
        return f"{self.span.source.name}:{self.span.line}" if self.span else "?"

    @property
    def text(self) -> str:
        """The line with its text; empty for the library's."""
        if self.span is None or self.span.source.in_library:
            return ""
        return f"{self.line}  {self.span.source.line(self.span.line).strip()[:70]}"

    def __str__(self) -> str:
        """The function with its line, and the file without its folders."""
        return f"{self.function} ({self.line.rpartition('/')[2]})" if self.span else self.function


@node
class Stack:
    """Calls, outermost first, where the machine was (`code`, `runtime` or `library`), and how much was found there:
    samples or bytes."""

    calls: tuple[Where, ...]
    place: str
    weight: int = 1

    @property
    def phase(self) -> str:
        """What the innermost function is for which that is known: the function itself, or a sweep of a derivative."""
        return next((where.phase for where in reversed(self.calls) if where.phase), "function")


Code = tuple[str, list[Where]]  # a function of flat, and the calls inside it


class Reader:
    """Reads the addresses of a program that is loaded."""

    def __init__(self, program: Program, loaded: LoadedImage) -> None:
        self.traces, self.sites = Traces(loaded.parts(program), ENTRY), sites_of(program)
        self.known: dict[int, Code] = {}
        self.outer: dict[str, list[Code]] = {}  # the callers of code that threads share, as last seen

    def at(self, address: int) -> Code:
        """The function there (empty: none of the program's), and the calls that were inlined into it."""
        if address not in self.known:
            frames = self.traces.at(address)
            found = [where for frame in frames for where in inlined(frame.function, frame.site, self.sites)]
            self.known[address] = (frames[0].function if frames else "", found)
        return self.known[address]

    def read(self, addresses: Iterable[int]) -> list[Code]:
        """The functions at addresses, outermost first, that are the program's."""
        return self.joined([code for address in addresses if (code := self.at(address))[0]])

    def joined(self, codes: list[Code], *more: Code) -> list[Code]:
        """All of them.  Notes who calls the code that threads share."""
        found = [*codes, *more]
        for i, (name, _) in enumerate(found):
            if i and POINTS in name:
                self.outer[name] = found[:i]
        return found

    def whole(self, codes: Sequence[Code]) -> tuple[Where, ...]:
        """All calls.  A thread that does a part of a loop has none outside: they are those of the thread that shares
        the loop out.  What the compiler has made for a function, such as a map over data, has the function's name."""
        outer = self.outer.get(codes[0][0], []) if codes else []
        calls: list[Where] = []
        for where in (where for _, inside in [*outer, *codes] for where in inside):
            name = where.function or (calls[-1].function if calls else "top level")
            calls.append(replace(where, function=name))
        return tuple(calls)


def inlined(function: str, site: int, sites: Sites) -> Iterator[Where]:
    """A function at a site, and those that flat has inlined there, outermost first."""
    span, _ = sites.place(site)
    own = function.partition(POINTS)[0].removesuffix(" loop")  # a kernel's loop is apart
    name = shown(sites.labels.get(own, ""))
    phase = "reverse sweep" if ".bwd" in function else "forward sweep" if ".fwd" in function else ""
    if span == NOWHERE:
        if POINTS not in function:  # else the loop's place is where it was shared out
            yield Where(name, None, phase)
        return
    for called, call in places.path(span):
        yield Where(name, call if call != NOWHERE else None, phase)
        name = shown(called)
        phase = "reverse sweep" if name.startswith("reverse of") else phase
    yield Where(name, span, phase)
