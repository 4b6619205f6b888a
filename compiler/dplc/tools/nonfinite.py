"""`dpl run --nan`: finds the first number that is not finite, and says which operation and which inputs made it."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence, Set

from dpl.core import term as c
from dpl.core.promising import is_repeatable
from dpl.debug.inspect import Position
from dpl.debug.nonfinite import Origin, Results
from dpl.debug.run import Ended, Run
from dpl.debug.values import type_text
from dpl.debug.why import chain
from dpl.diagnostics import Call, Diagnostic, DplError, Label
from dpl.eval.derivatives.derive import is_float
from dpl.eval.machine.outside import Writable
from dpl.eval.values.value import Value, number
from dpl.node import replace
from dpl.source import Source, Span

from dplc.passes.entry.finite import FOUND, results
from dplc.tools.report import warn

HELPS = {
    "sqrt": "guard the input of `sqrt`, not its result:  sqrt (max s 1e-12)",
    "log": "guard the input of `log`, not its result:  log (max x 1e-12)",
    "div": "guard the divisor, not the quotient",
    "pow": "guard the base, not the power:  (max x 1e-12) ** p",
    "exp": "subtract the largest exponent first, as `logsumexp` and `log_softmax` do",
}
HUGE = 1e100  # of a number that has grown without bound
GROWN = "the numbers grow without bound before this: a smaller rate, or a limit, as Optim.clipped has"
WRITTEN = {"div": "/", "pow": "**"}
INSIDE = "`{}` is inside of what stands here, or of its derivative: guard what that is given"
ALSO = "dpl debug --at nonfinite FILE  goes there, and back through what led to it"


NOBODY = "no operation made it: it is written in the program, or what the program reads holds it"


class Nowhere:
    """A file that keeps nothing: a run is repeated, and has printed already."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None: ...


class After:
    """Standard output for a program that runs again: so many lines are left out, which it has printed before."""

    def __init__(self, lines: int) -> None:
        self.lines = lines

    def write(self, text: str) -> int:
        shown = text
        while self.lines and "\n" in shown:
            shown, self.lines = shown.partition("\n")[2], self.lines - 1
        return sys.stdout.write("" if self.lines else shown)

    def flush(self) -> None:
        sys.stdout.flush()


def interpret(program: c.Program, own: Set[Source], args: Sequence[str], mode: str, out: Writable = sys.stdout) -> int:
    """Run a program in the interpreter; `mode` is trap or warn, and `own` are the user's sources.  Returns its exit
    code, or raises DplError: R0601 if a call gives a number that is not finite and the mode is trap."""
    program, calls = results(program, own)
    run = Run(program, args, out)
    run.results = calls
    run.begin()
    finite = Results(run)
    finite.watch(True)
    while True:
        found = run.forward()
        if isinstance(found, Origin):
            told = made_by(run, finite, found)
            if mode == "trap":
                raise DplError(told)
            warn([replace(told, code="W0601")])
            finite.pass_by()
            finite.watch(False)
        elif isinstance(found, Ended):
            run.journal.flush()
            if found.error:
                raise found.error
            return found.code & 0xFF


def made_by(run: Run, finite: Results, origin: Origin) -> Diagnostic:
    """The message for the origin of what a call has given.  The program runs again up to there."""
    run.go_to(0)
    finite.clear()
    finite.wanted = origin
    finite.watch(True)
    found = run.forward()
    return diagnostic(run, found if isinstance(found, Origin) else origin)


def explain(program: c.Program, own: Set[Source], args: Sequence[str], given: Mapping[str, Value]) -> DplError | None:
    """The error for a native run that ended because a call gave a number that was not finite, found in the interpreter
    without printing; None if no operation since the beginning has made that number."""
    program, calls = results(program, own)
    run = Run(program, args, Nowhere(), given)
    run.results = calls
    run.begin()
    finite = Results(run, first=True)
    finite.watch(True)
    found = run.forward()
    return DplError(made_by(run, finite, found)) if isinstance(found, Origin) else None


def run_again(program: c.Program, own: Set[Source], args: Sequence[str], lines: int, failure: DplError) -> int:
    """Run a program in the interpreter that has printed so many lines natively, until the failure.  If it cannot do the
    same again, the failure is told."""
    if is_repeatable(program):
        return interpret(program, own, args, "trap", After(lines))
    first, *rest = failure.diagnostics
    raise explain(program, own, args, {}) or DplError(replace(first, code="R0601", note=NOBODY), *rest)


def is_ours(failure: DplError) -> bool:
    """Whether a native program failed because of a check of `passes/entry/finite.py`."""
    return failure.diagnostics[0].title == FOUND


def diagnostic(run: Run, origin: Origin) -> Diagnostic:
    """The message for a number that is not finite: the operation, its chain, and the calls."""
    calls = [
        Call(f.name, f.place.span, ", ".join(f"{v.name} : {type_text(v.ty)}" for v in f.arguments()))
        for f in Position(run).frames()
        if f.function.params
    ]
    span = origin.place.span if origin.place else None
    labels: list[Label] = []
    for text, at in chain(run, origin):
        if at and at != span and all(at != label.span for label in labels):
            labels.append(Label(at, text))
    ways, path = helps(origin, span), tuple(calls[::-1])
    return Diagnostic("R0601", origin.title, span, origin.equation, tuple(labels[:3]), ways, path)


def helps(origin: Origin, span: Span | None) -> tuple[str, ...]:
    """A guard for the operation, unless its operands have grown without bound: a guard would be no help there."""
    if any(HUGE < abs(number(x)) < math.inf for x in origin.operands if is_float(x)):
        return GROWN, ALSO
    if origin.name not in HELPS:
        return (ALSO,)
    is_inside = span is not None and WRITTEN.get(origin.name, "") not in span.text
    return INSIDE.format(origin.name) if is_inside else HELPS[origin.name], ALSO
