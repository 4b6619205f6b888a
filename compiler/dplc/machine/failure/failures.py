"""Failures of running programs: the sites that may fail, numbered, and the message for each kind of failure.

Native code knows a site by its number only.  The table of sites travels with the object code as JSON, so that a program
from the cache can still point into its source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dpl.diagnostics import Bug, DplError
from dpl.node import node
from dpl.source import NOWHERE, Source, Span

from dplc.flat import places
from dplc.machine.runtime.failure_codes import Failure

if TYPE_CHECKING:
    from dpl.eval.machine.failure import Site
    from dpl.eval.values.indexing import OutOfBounds

    from dplc.machine.failure.trace import Frame

SIZES = "sizes [{a}] and [{b}] do not fit together"


class Sites:
    """Numbered spans, each with a word: the code of its message, or the name of what is checked there."""

    def __init__(self) -> None:
        self.entries: list[tuple[Span, str]] = []
        self.labels: dict[str, str] = {}  # names in messages, by function of flat
        self.externs: dict[str, int] = {}  # C functions, each with a site that calls it
        self._numbers: dict[tuple[Span, str], int] = {}

    def number(self, span: Span, extra: str = "") -> int:
        key = (span, extra)
        if key not in self._numbers:
            self._numbers[key] = len(self.entries)
            self.entries.append(key)
        return self._numbers[key]

    def place(self, number: int) -> tuple[Span, str]:
        return self.entries[number] if 0 <= number < len(self.entries) else (NOWHERE, "")

    def to_json(self) -> str:
        """Spans are numbered, each after its caller, so that inlined ones share the path of calls."""
        texts: dict[int, tuple[int, Source]] = {}
        spans: list[list] = []
        numbers: dict[Span, int] = {}

        def pack(span: Span) -> int:
            if span not in numbers:
                text, _ = texts.setdefault(id(span.source), (len(texts), span.source))
                inside = [span.label, pack(span.caller)] if isinstance(span, places.Inlined) else []
                numbers[span] = len(spans)
                spans.append([text, span.start, span.end, *inside])
            return numbers[span]

        rows = [[pack(span), word] for span, word in self.entries]
        sources = [[s.name, str(s.path) if s.path else None, None if s.path else s.text] for _, s in texts.values()]
        return json.dumps([sources, spans, rows, self.labels, self.externs], ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Sites:
        packed, positions, rows, labels, externs = json.loads(text)
        nowhere = NOWHERE.source
        sources = [
            nowhere if name == nowhere.name else Source(name, content, Path(path) if path else None)
            for name, path, content in packed
        ]
        spans: list[Span] = []
        for number, start, end, *inside in positions:
            label, caller = inside or ("", 0)
            source = sources[number]
            spans.append(
                places.Inlined(source, start, end, label, spans[caller]) if inside else Span(source, start, end)
            )
        sites = Sites()
        sites.entries = [(spans[number], word) for number, word in rows]
        sites.labels, sites.externs = labels, externs
        return sites


@node
class Record:
    """The record that `@rt.fail` makes of a failure."""

    code: Failure
    site: int
    a: int
    b: int
    c: int
    text: str

    @property
    def holes(self) -> dict[str, object]:
        """The values for the holes of a title."""
        return {"a": self.a, "b": self.b, "c": self.c, "t": self.text}


def error(record: Record, frames: Sequence[Frame], sites: Sites, unknown: int = 0) -> DplError:
    """The message for a failure (not for EXIT, which is none), with the path of calls.  Between the frames `unknown`
    more were not recorded."""
    from dpl.eval.machine.failure import RuntimeFailure, for_user, located

    span, word = sites.place(record.site)
    if span == NOWHERE and frames:  # out of memory: the innermost call says where
        span, _ = sites.place(frames[-1].site)
    code, title, helps = describe(record, word)
    calls: list[Site] = []
    for frame, inner in pairwise(frames):
        at, _ = sites.place(frame.site)
        calls += [call(label, place) for label, place in places.path(at)]
        if label := sites.labels.get(inner.function):
            calls.append(call(label, at))
    calls += [call(label, place) for label, place in places.path(span)]
    if span == NOWHERE:  # in a function that the compiler generated: at its call
        span = next((at for frame in reversed(frames[:-1]) if (at := sites.place(frame.site)[0]) != NOWHERE), NOWHERE)
    bare = DplError.at(code, title, helps=helps)
    if record.code == Failure.DEPTH and calls and calls[-1].span != NOWHERE:
        span = calls[-1].span  # the call that is one too many, as in the interpreter; the site is the function
    if span != NOWHERE:
        bare = located(out_of_bounds(word, title, record.holes) or bare, span)
    mentioned = {span.source, *(call.span.source for call in calls)}
    own = {source for source in mentioned if not source.in_library}
    return for_user(RuntimeFailure(bare, [call for call in calls if call.span != NOWHERE], unknown), own)


def call(label: str, span: Span) -> Site:
    """A call as the path names it: forward mode runs the function itself, with numbers that have tangents."""
    from dpl.eval.machine.failure import Site

    return Site(label.removeprefix("derivative of "), span)


def missing(symbol: str, sites: Sites) -> DplError:
    """The message for a C function that no library defines."""
    span, _ = sites.place(sites.externs[symbol])
    return DplError.at("R0507", f"no C library in use has a function `{symbol}`", None if span == NOWHERE else span)


def shown(label: str) -> str:
    """`reverse of main.loss#2` -> `reverse of loss`"""
    words, space, name = label.rpartition(" ")
    return words + space + name.partition("#")[0].removeprefix("main.").removeprefix("Prelude.")


@node
class Kind:
    """The message of a kind of failure: its code (empty: the word is the code), its title with holes, the word used if
    the site has none, and a help line.  Holes are the numbers a, b and c, the text t and the site's word w.  For an
    index or slice, also how to write it and the length of the array."""

    code: str
    title: str
    word: str = ""
    help: str = ""
    value: str = ""
    length: str = ""


KINDS = {
    Failure.MESSAGE: Kind("", "{t}", "R0706"),
    Failure.INDEX: Kind("R0705", "index {a} is out of bounds for length {b}", value="{a}", length="{b}"),
    Failure.SLICE: Kind("R0705", "the slice {a}:{b} is out of bounds for length {c}", value="{a}:{b}", length="{c}"),
    Failure.NEGATIVE: Kind("R0702", "{w} cannot have {a} elements", "an array"),
    Failure.SHAPE: Kind("R0703", "{w}", SIZES),
    Failure.CHECK: Kind("R0703", "{w}: {a} is not {b}", "size"),
    Failure.DIVIDE: Kind("R0701", "division by zero"),
    Failure.DEPTH: Kind("R0801", "recursion is too deep", help="is there a recursion that does not end?"),
    Failure.MEMORY: Kind("R0802", "out of memory", help="{a} bytes were asked for at once"),
    Failure.FILE: Kind("R0506", "{t}"),
    Failure.CODE_POINT: Kind("R0501", "{a} is not the number of a character"),
    Failure.FORM: Kind("R0503", "{w}: sizes {a} and {b} differ"),
    Failure.TEXT: Kind(
        "R0509",
        "{t} is not UTF-8 text: the byte at offset {a} begins no character",
        help="text in Latin-1 is converted by  iconv -f latin1 -t utf8;  a file of bytes is read by  Bytes.read",
    ),
    Failure.ARGUMENT: Kind("R0510", "{w}"),
    Failure.NO_DRIVER: Kind(
        "R0511",
        "there is no GPU: its driver's library `{t}` was not found, or is too old",
        help="the environment variable DPL_CUDA names another library",
    ),
    Failure.NO_DEVICE: Kind("R0511", "there is no GPU: its driver's library `{t}` reports error {a}"),
    Failure.NO_KERNELS: Kind(
        "R0511", "this executable has no code for a GPU", help="one with code for both is made by  dpl build --gpu"
    ),
    Failure.DEVICE: Kind("R0512", "the GPU's driver reports error {a}: {t}"),
    Failure.MPI: Kind("R0513", "{t}"),
}


HOLED = (Failure.SHAPE, Failure.ARGUMENT)  # the words of their sites have holes, too


def describe(record: Record, word: str) -> tuple[str, str, tuple[str, ...]]:
    """Code, title and help lines, worded as in the interpreter; `word` is the site's."""
    if record.code not in KINDS:
        raise Bug(f"no failure: {record.code}")
    kind = KINDS[record.code]
    word = word or kind.word
    holes = record.holes
    title = kind.title.format(w=word.format(**holes) if record.code in HOLED else word, **holes)
    return kind.code or word, title, (kind.help.format(**holes),) if kind.help else ()


def bounds_word(failure: Failure, back: int = 0) -> str:
    """The word of a site that may be out of bounds; `back` counts the indices written after the one that is checked."""
    return f"{failure.name} {back}"


def out_of_bounds(word: str, title: str, holes: Mapping[str, object]) -> OutOfBounds | None:
    """The failure of an index or a slice at a site with this word; None for other sites."""
    from dpl.eval.values.indexing import OutOfBounds

    name, _, back = word.partition(" ")
    if name not in (Failure.INDEX.name, Failure.SLICE.name):
        return None
    kind = KINDS[Failure[name]]
    return OutOfBounds(title, kind.value.format(**holes), kind.length.format(**holes), int(back))
