"""`dpl run --nan`: finds the first number that is not finite, and says which operation and which inputs made it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from dpl.core import term as c
from dpl.debug.inspect import Position
from dpl.debug.nonfinite import Finite, Origin
from dpl.debug.run import Ended, Run
from dpl.debug.values import type_text
from dpl.debug.why import chain
from dpl.diagnostics import Call, Diagnostic, DplError, Label
from dpl.eval.values.value import Value
from dpl.node import replace

from dplc.passes.entry.finite import FOUND
from dplc.tools.report import warn

HELPS = {
    "sqrt": "guard the input of `sqrt`, not its result:  sqrt (max s 1e-12)",
    "log": "guard the input of `log`, not its result:  log (max x 1e-12)",
    "div": "guard the divisor, not the quotient",
    "exp": "subtract the largest exponent first, as `log_sum_exp` and `log_softmax` do",
}
ALSO = "dpl debug --at nonfinite FILE  goes there, and back through what led to it"


class Nowhere:
    """A file that keeps nothing: a run is repeated, and has printed already."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None: ...


def interpret(
    program: c.Program, args: Sequence[str], mode: str, out: TextIO = sys.stdout,
    given: Mapping[str, Value] | None = None,
) -> int:  # fmt: skip
    """Run a program in the interpreter; `mode` is trap or warn.  Returns its exit code, or raises DplError: R0601 if a
    number is not finite and the mode is trap."""
    run = Run(program, args, out, given)
    run.begin()
    finite = Finite(run)
    finite.watch(True)
    while True:
        found = run.forward()
        if isinstance(found, Origin):
            told = diagnostic(run, found)
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


def explain(program: c.Program, args: Sequence[str], given: Mapping[str, Value] | None = None) -> DplError | None:
    """The error for a native run that ended because a number was not finite, found in the interpreter."""
    nowhere: TextIO = Nowhere()  # pyrefly: ignore[bad-assignment]
    try:
        interpret(program, args, "trap", nowhere, given)
    except DplError as error:
        return error
    return None


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
    helps = (HELPS[origin.name], ALSO) if origin.name in HELPS else (ALSO,)
    return Diagnostic("R0601", origin.title, span, origin.equation, tuple(labels[:3]), helps, tuple(calls[::-1]))
