"""Failure tables: from them an executable or library reports its failures by itself (`rt/report.rt`).

@"dpl kinds"     for each kind of failure {code, title, word, help}
@"dpl places"    {word, picture of the place}, first for an unknown place, then for each site
@"dpl texts"     the texts, each ended by a NUL; the other tables hold offsets into them
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.diagnostics import Diagnostic, DplError
from dpl.eval.machine.failure import RuntimeFailure, Site, for_user, located
from dpl.eval.values.indexing import BACKWARDS
from dpl.node import replace
from dpl.regex import regex
from dpl.render import render
from dpl.source import NOWHERE, Span

from dplc.flat import places
from dplc.machine.failure.failures import KINDS, Kind, Sites, out_of_bounds
from dplc.machine.llvm.literals import escape
from dplc.machine.runtime.failure_codes import Failure

# the second help for deep recursion: who runs an executable cannot look at a path of calls, nor change the program
MORE_STACK = "if not: the environment variable DPL_STACK chooses the stack, in mebibytes (2048)"
# the tables as arguments of the runtime's functions
POINTERS = 'ptr @"dpl kinds", ptr @"dpl places", ptr @"dpl texts"'


class Texts:
    """Texts one after the other, without duplicates."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.offsets: dict[str, int] = {}

    def offset(self, text: str) -> int:
        if text not in self.offsets:
            self.offsets[text] = len(self.data)
            self.data += text.encode("utf-8", "replace") + b"\0"
        return self.offsets[text]


def tables(sites: Sites) -> str:
    """The tables of a program, as LLVM text."""
    texts = Texts()
    known = {int(failure): kind for failure, kind in KINDS.items()}  # the index into the table is the code
    kinds = [known.get(code, Kind("", "")) for code in range(max(Failure) + 1)]
    told = [texts.offset(text) for kind in kinds for text in (kind.code, kind.title, kind.word, helped(kind))]
    entries = [(NOWHERE, ""), *sites.entries]
    places = [texts.offset(text) for span, word in entries for text in (word, picture(span, word))]
    return (
        f'@"dpl kinds" = private constant {numbers(told)}\n@"dpl places" = private constant {numbers(places)}\n'
        f'@"dpl texts" = private constant [{len(texts.data)} x i8] c"{escape(bytes(texts.data))}"\n'
    )


def numbers(values: Sequence[int]) -> str:
    return f"[{len(values)} x i32] [{', '.join(f'i32 {v}' for v in values)}]"


def helped(kind: Kind) -> str:
    helps = (kind.help, MORE_STACK) if kind is KINDS[Failure.DEPTH] else (kind.help,)
    return "".join(f"  = help: {help}\n" for help in helps if help)


IF_BACKWARDS = regex(rf"(?m)(^ *\|\n)?^ *= help: {BACKWARDS}\n")  # the last lines of a picture

# private-use characters stand for the holes while the picture is drawn
HOLES = {"a": "\ue00a", "b": "\ue00b", "c": "\ue00c"}


def picture(span: Span, word: str) -> str:
    """The message below its first line: the place in the source, and the user's own call if the failure is in the
    library.  It may have holes, as titles have; braces of the text are written as {{}.  What follows {>} is told if
    hole a is greater than b."""
    if span == NOWHERE:
        return ""
    calls = [Site(label, place) for label, place in places.path(span)]
    failure = located(out_of_bounds(word, "", HOLES) or DplError.at("R", ""), span)
    bare = RuntimeFailure(failure, calls)
    own = {s.source for s in (span, *(c.span for c in calls)) if not s.source.in_library}
    told: Diagnostic = replace(for_user(bare, own).diagnostics[0], path=())
    drawn = "".join(f"{line}\n" for line in render(told).split("\n")[1:]).replace("{", "{{}")
    for hole, character in HOLES.items():
        drawn = drawn.replace(character, f"{{{hole}}}")
    return IF_BACKWARDS.sub(r"{>}\g<0>", drawn)
