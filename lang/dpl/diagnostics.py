"""What is said to the user: one shape of message, and the two kinds of failure.

A `DplError` is the user's to mend (exit code 1) and carries diagnostics; a `Bug` is ours (exit code 70).
The picture of a diagnostic is drawn in `render.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dpl.node import node
from dpl.source import Span

MARK, UNMARK = "\x0e", "\x0f"  # around the part of a text that matters


def marked(text: str) -> str:
    """Text to be highlighted within another."""
    return f"{MARK}{text}{UNMARK}"


def unmarked(text: str) -> str:
    """A text without its highlights."""
    return text.replace(MARK, "").replace(UNMARK, "")


@node
class Label:
    """A span to underline and what to say there."""

    span: Span
    text: str = ""


@node
class Call:
    """One step of a path: what was called, where that is written, and more about it (`x : float[3, 10], y : int`)."""

    name: str
    span: Span | None = None
    about: str = ""


@node
class Edit:
    """A change that mends the program: an editor may replace `span` by `text`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message.

    `code` is a class and a number (`E0301`; E01 syntax, E02 types, E03 sizes, E04 differentiation, E05 effects, modules
    and files, W likewise; R05 data, R06 numerics, R07 bounds and asserts, R08 memory), `title` says what is wrong in
    one line, `span` is where to change things (None: nowhere in a text), `note` is said at its caret, `labels` say
    where the conflicting facts came from, `helps` are ways out, `path` the calls that led here, outermost first,
    `facts` are named texts to compare (`expected`, `found`: two types whose differing parts are `marked`), and `edits`
    what would mend it for certain.
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
    denied: bool = False  # a warning that is to be an error

    @property
    def severity(self) -> str:
        return "warning" if self.code.startswith("W") and not self.denied else "error"


class DplError(Exception):
    """The program, its input or its files are at fault; carries what to say."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(diagnostics[0].title if diagnostics else "")
        self.diagnostics = list(diagnostics)

    @classmethod
    def at(cls, code: str, title: str, span: Span | None = None, **more) -> DplError:
        return cls(Diagnostic(code, title, span, **more))


class Bug(Exception):
    """DPL itself is at fault: an invariant does not hold.  `repeat` is a command that shows the failure again."""

    repeat: str = ""


@dataclass(slots=True)
class Warnings:
    """A place to put warnings while going on."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)
