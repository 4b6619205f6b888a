"""Messages to the user: `Diagnostic`, and the two kinds of failure.

A `DplError` is an error of the user's (exit code 1) and carries diagnostics; a `Bug` is an error of DPL (exit code 70).
`render.py` draws a diagnostic as text.
"""

from __future__ import annotations

import re

from dpl.node import field, node, record
from dpl.regex import regex
from dpl.source import Span

MARK, UNMARK = "\x0e", "\x0f"  # delimit the highlighted part of a text


def marked(text: str) -> str:
    """A part of a text, to be highlighted."""
    return f"{MARK}{text}{UNMARK}"


def unmarked(text: str) -> str:
    """A text without its highlights."""
    return text.replace(MARK, "").replace(UNMARK, "")


@node
class Label:
    """A span to underline, with a text."""

    span: Span
    text: str = ""


@node
class Call:
    """One step of a call path: the name of the function, the span of the call, and more about it, such as its arguments
    (`x : float[3, 10], y : int`)."""

    name: str
    span: Span | None = None
    about: str = ""


@node
class Edit:
    """A change that corrects the program: an editor may replace `span` by `text`."""

    span: Span
    text: str


@node
class Diagnostic:
    """One message.

    code      a class and a number, such as `E0301`: E01 syntax, E02 types, E03 sizes, E04 differentiation, E05 effects,
              modules and files; W for warnings, with the same numbers; R05 data, R06 numerics, R07 bounds and asserts,
              R08 memory
    title     the error in one line
    span      the place to change (None: no place in a text), and `note` the text at its caret
    labels    the places where the conflicting facts come from
    helps     suggestions
    path      the calls that led here, outermost first
    facts     named texts to compare (`expected`, `found`: two types whose differing parts are `marked`)
    edits     changes that are certain to correct the error
    """

    code: str
    title: str
    span: Span | None = None
    note: str = ""
    labels: tuple[Label, ...] = ()
    helps: tuple[str, ...] = ()
    path: tuple[Call, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    edits: tuple[Edit, ...] = ()
    denied: bool = False  # a warning that counts as an error

    @property
    def severity(self) -> str:
        """Warnings that the options deny are errors."""
        return "warning" if self.code.startswith("W") and not self.denied else "error"


class DplError(Exception):
    """An error in the program, its input or its files, with its diagnostics."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(diagnostics[0].title if diagnostics else "")
        self.diagnostics = list(diagnostics)

    @classmethod
    def at(cls, code: str, title: str, span: Span | None = None, **more) -> DplError:
        """An error of one message."""
        return cls(Diagnostic(code, title, span, **more))


def foreign(symbol: str, declaration: Span) -> DplError:
    """The error of both engines for a derivative of a C function, at its declaration: `extern "cbrt" root : ...`."""
    declared = re.match(r"""extern\s*"[^"]*"\s*([\w']+)""", declaration.text)
    name = declared[1] if declared else symbol
    rule = f"give it one:  let rec {name}' x = with_jvp {name} (fun x dx -> ({name}' x, ... * dx)) x"
    title = f"`{name}` is a C function, of which no derivative is known"
    return DplError.at("E0404", title, declaration, helps=(rule,))


CALL_AND_NUMBER = regex(r"([a-z_][\w.']*(?: [\w.']+)*) ([\w.']+) ([-+]) ?(\d[\w.]*)")


def tighter(text: str) -> tuple[str, ...]:
    """A help if a text begins with a call from which a number is subtracted, such as `go n - 1`."""
    if not (found := CALL_AND_NUMBER.match(text)):
        return ()
    call, last, sign, number = found.groups()
    negative = f"  or  {call} {last} (-{number})" if found[0].endswith(f" -{number}") else ""
    meant = f"{call} ({last} {sign} {number}){negative}"
    return (f"`{found[0]}` is  ({call} {last}) {sign} {number} : was  {meant}  meant?",)


class Bug(Exception):
    """An error in DPL itself: an invariant does not hold.  `repeat` is a command that reproduces the failure."""

    repeat: str = ""


@record
class Warnings:
    """Collects warnings while the check continues."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)
