"""Failures of running programs: the places that may fail, numbered, and what to tell the user when one has.

Native code knows a place by its number only.  The table that gives the numbers their meaning travels with the object
code as JSON, so that a program from the cache can still point into its source.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from dpl.diagnostics import DplError
from dpl.source import NOWHERE, Source, Span


class Failure(IntEnum):
    """Why a program stopped: the first field of the record `@rt.failure`, {i64 code, i64 site, i64 a, i64 b, ptr text,
    i64 bytes}, that `@rt.fail` fills in before it jumps back to the entry.  `site` numbers a span of the program."""

    NONE = 0
    EXIT = 1  # a: the status
    MESSAGE = 2  # text: of `error` and the like; its code stands with the site
    INDEX = 3  # a: index, b: length
    SLICE = 4  # a: lo, b: hi
    NEGATIVE = 5  # a: the size asked for
    SHAPE = 6  # a, b: two lengths that should agree
    CHECK = 7  # a: actual, b: expected; what they are of stands with the site
    DIVIDE = 8  # of integers, by zero
    DEPTH = 9
    MEMORY = 10  # a: bytes asked for
    FILE = 11  # text: path and reason
    CODE_POINT = 12  # a: what is no code point
    FORMAT = 13  # text: a format that does not fit
    EMPTY = 14  # a reduction of nothing


class Sites:
    """Spans by number, each with a word more: the code of a message, or what a checked number is."""

    def __init__(self) -> None:
        self.entries: list[tuple[Span, str]] = []
        self._numbers: dict[tuple[Span, str], int] = {}

    def number(self, span: Span, extra: str = "") -> int:
        key = (span, extra)
        if key not in self._numbers:
            self._numbers[key] = len(self.entries)
            self.entries.append(key)
        return self._numbers[key]

    def to_json(self) -> str:
        sources: dict[int, int] = {}
        texts, rows = [], []
        for span, extra in self.entries:
            source = span.source
            if id(source) not in sources:
                sources[id(source)] = len(texts)
                text = None if source.path else source.text
                texts.append([source.name, str(source.path) if source.path else None, text])
            rows.append([sources[id(source)], span.start, span.end, extra])
        return json.dumps([texts, rows], ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Sites:
        texts, rows = json.loads(text)
        sources = [Source(name, content, Path(path) if path else None) for name, path, content in texts]
        sites = Sites()
        sites.entries = [(Span(sources[s], start, end), extra) for s, start, end, extra in rows]
        return sites


@dataclass(frozen=True, slots=True)
class Record:
    """What `@rt.fail` wrote down."""

    code: Failure
    site: int
    a: int
    b: int
    text: str


def error(record: Record, sites: Sites) -> DplError:
    """The message for a failure (not for EXIT, which is none)."""
    span, extra = sites.entries[record.site] if 0 <= record.site < len(sites.entries) else (NOWHERE, "")
    code, title, helps = describe(record, extra)
    return DplError.at(code, title, None if span == NOWHERE else span, helps=helps)


def describe(record: Record, extra: str) -> tuple[str, str, tuple[str, ...]]:
    """Code, title and ways out; `extra` is the site's word."""
    a, b, text = record.a, record.b, record.text
    match record.code:
        case Failure.MESSAGE:
            return extra or "R0706", text, ()
        case Failure.INDEX:
            return "R0705", f"index {a} is out of bounds for length {b}", ()
        case Failure.SLICE:
            return "R0705", f"the slice {a}:{b} is out of bounds" + (f" for length {text}" if text else ""), ()
        case Failure.NEGATIVE:
            return "R0702", f"an array cannot have {a} elements", ()
        case Failure.SHAPE:
            return "R0703", f"sizes {a} and {b} differ", ()
        case Failure.CHECK:
            return "R0703", f"{extra or 'size'}: {a} is not {b}", ()
        case Failure.DIVIDE:
            return "R0701", "division by zero", ()
        case Failure.DEPTH:
            helps = ("a function that calls itself last needs no stack; DPL_STACK sets the stack's size in MiB",)
            return "R0801", "recursion is too deep", helps
        case Failure.MEMORY:
            return "R0802", f"out of memory: {a} bytes asked for", ()
        case Failure.FILE:
            return "R0506", text, ()
        case Failure.CODE_POINT:
            return "R0501", f"{a} is not the number of a character", ()
        case Failure.FORMAT:
            return "R0502", text, ()
        case Failure.EMPTY:
            return "R0706", "an empty array has none", ()
    return "R0700", f"unknown failure {int(record.code)}", ()
