"""diagnostic -> text with excerpts of the source.

    error[E0201]: expected int, found string
     --> a.dp:2:13
      |
    1 | let n : int = 3
      |         --- because of this annotation
    2 | let m = n + "three"
      |             ^^^^^^^ this is a string
      |
      = help: ...

The text has plain characters only, laid out in the columns of a terminal (`columns.py`).  Highlighted parts of the
texts to compare are coloured, or underlined with `~` where there is no colour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from dpl.columns import pictures, width_of
from dpl.diagnostics import MARK, UNMARK, Call, Diagnostic, unmarked
from dpl.node import node
from dpl.regex import regex
from dpl.source import NOWHERE, Source, Span

_LABELS, _HELPS = 4, 2  # more would distract
_LONGEST_PATH = 12
_NEAR = 4  # excerpts of a line are taken from so many widths of the terminal on both sides of the mark
_RED, _YELLOW, _BLUE, _BOLD, _RESET = "\033[1;31m", "\033[1;33m", "\033[1;34m", "\033[1m", "\033[0m"


def short(diagnostic: Diagnostic) -> str:
    """One line: `file:line:col: error[E0301]: title`."""
    place = f"{diagnostic.span}: " if _is_somewhere(diagnostic.span) else ""
    return f"{place}{diagnostic.severity}[{diagnostic.code}]: {unmarked(diagnostic.title)}"


def render(diagnostic: Diagnostic, width: int = 100, color: bool = False) -> str:
    """The whole text, without a newline at its end."""
    paint = _Paint(color, _YELLOW if diagnostic.severity == "warning" else _RED)
    head = paint.alarm(f"{diagnostic.severity}[{diagnostic.code}]") + paint.bold(f": {unmarked(diagnostic.title)}")
    marks = list(_marks(diagnostic))
    margin = len(str(max((m.line for m in marks), default=0)))
    bar = paint.frame(" " * margin + " |")
    lines = [head]
    if _is_somewhere(diagnostic.span):
        lines.append(f"{' ' * margin}{paint.frame('-->')} {diagnostic.span}")
        lines += _excerpts(diagnostic, marks, margin, width, paint)
    room = width - margin - len(" = help: ")  # `note` and `path` are as long
    said_nowhere = [] if marks or not diagnostic.note else [("note", _lines(diagnostic.note, room))]
    helps = [("help", _lines(h, room)) for h in diagnostic.helps[:_HELPS]]
    path = _path(diagnostic.path, room)
    notes = [*_facts(diagnostic.facts, width - margin - 3, paint), *said_nowhere, *helps, *path]
    if marks and notes:
        lines.append(bar)
    for kind, texts in notes:
        start = f"= {kind}: "
        lines.append(f"{' ' * margin} {paint.frame('=')} {paint.bold(kind)}: {texts[0]}")
        lines += [" " * (margin + 1 + len(start)) + text for text in texts[1:]]
    return "\n".join(line.rstrip() for line in lines)


@node
class _Paint:
    on: bool
    alarm_color: str

    def __call__(self, color: str, text: str) -> str:
        return f"{color}{text}{_RESET}" if self.on and text and color else text

    def alarm(self, text: str) -> str:
        return self(self.alarm_color, text)

    def alarm_in(self, text: str) -> str:
        """A text with its highlighted parts in the colour of the alarm."""
        return text.replace(MARK, self.alarm_color).replace(UNMARK, _RESET)

    def bold(self, text: str) -> str:
        return self(_BOLD, text)

    def frame(self, text: str) -> str:
        return self(_BLUE, text)


# ---- marks --------------------------------------------------------------------------------------------------------


@node
class _Mark:
    """Characters `first` to `last` (exclusive, 0-based) of one line, with a text."""

    source: Source
    line: int
    first: int
    last: int
    text: str
    primary: bool


def _is_somewhere(span: Span | None) -> bool:
    return span is not None and span.source is not NOWHERE.source


def _marks(diagnostic: Diagnostic) -> Iterator[_Mark]:
    if diagnostic.span and _is_somewhere(diagnostic.span):
        yield from _mark(diagnostic.span, diagnostic.note, True)
        for label in diagnostic.labels[:_LABELS]:
            if _is_somewhere(label.span):
                yield from _mark(label.span, label.text, False)


def _mark(span: Span, text: str, primary: bool) -> Iterator[_Mark]:
    """One mark; for a span over several lines, one on its first line and one, with the text, on its last."""
    source = span.source
    first_line, first = source.position(span.start)
    last_line, last = source.position(max(span.end, span.start))
    while last_line > first_line and not source.line(last_line)[: last - 1].strip():  # no text of that line
        last_line -= 1
        last = len(source.line(last_line)) + 1
    if first_line == last_line:
        yield _Mark(source, first_line, first - 1, max(last - 1, first), text, primary)
        return
    yield _Mark(source, first_line, first - 1, max(len(source.line(first_line).rstrip()), first), "", primary)
    line = source.line(last_line)
    yield _Mark(source, last_line, len(line) - len(line.lstrip()), last - 1, text, primary)


# ---- excerpts -----------------------------------------------------------------------------------------------------


def _excerpts(diagnostic: Diagnostic, marks: list[_Mark], margin: int, width: int, paint: _Paint) -> Iterator[str]:
    """The lines with marks, source by source, beginning with the source of the diagnostic's own span."""
    bar = paint.frame(" " * margin + " |")
    sources: list[Source] = []
    for mark in marks:
        if mark.source not in sources:
            sources.append(mark.source)
    for source in sources:
        own = [m for m in marks if m.source == source]
        if not source.text:
            continue
        if source != sources[0]:
            yield f"{' ' * margin}{paint.frame(':::')} {source.name}:{own[0].line}:{own[0].first + 1}"
        yield bar
        previous = None
        for number in sorted({m.line for m in own}):
            if previous is not None and number == previous + 2:
                between = _Line(source, number - 1, [], width - margin - 3)
                yield f"{paint.frame(f'{number - 1:>{margin}} |')} {between.shown}"
            elif previous is not None and number > previous + 2:
                yield "..."
            here = [m for m in own if m.line == number]
            line = _Line(source, number, here, width - margin - 3)
            yield f"{paint.frame(f'{number:>{margin}} |')} {line.shown}"
            for row in line.rows(here, paint):
                yield f"{bar} {row}"
            previous = number


class _Line:
    """A line of the text as shown: `columns[i]` is the column of its character `skipped + i`.  If a line is too long,
    only the part around its marks is shown, and little more is read: the whole program may be one line."""

    def __init__(self, source: Source, number: int, marks: list[_Mark], room: int) -> None:
        near = _NEAR * room
        start = min((m.first for m in marks), default=0)
        self.skipped = max(0, start - near)
        text = source.line(number, self.skipped, start + near)
        shown, self.columns = pictures(text.rstrip("\r"))
        self.shown = "".join(shown)
        self.ends = not source.line(number, start + near, start + near + 1)  # true if its end is shown
        if self.columns[-1] > room:
            self._shorten(shown, start, max((m.last for m in marks), default=0), room)

    def _shorten(self, shown: list[str], start: int, last: int, room: int) -> None:
        columns = self.columns
        cut = 0
        if self.column(last) > room - 3:
            cut = max(0, min(start - self.skipped, len(shown)) - max(room // 4, 8))
        end = cut
        while end < len(shown) and columns[end + 1] - columns[cut] <= room - 6:
            end += 1
        self.ends &= end == len(shown)
        before, after = "..." if cut else "", "" if self.ends else "..."
        self.shown = before + "".join(shown[cut:end]) + after
        limit = columns[end] - columns[cut] + len(before) + len(after)
        self.columns = [min(max(c - columns[cut], 0) + len(before), limit) for c in columns]

    def column(self, character: int) -> int:
        past = character - self.skipped - (len(self.columns) - 1)
        return self.columns[character - self.skipped] if past <= 0 else self.columns[-1] + past * self.ends

    def rows(self, marks: list[_Mark], paint: _Paint) -> Iterator[str]:
        """The underlines and the texts: the last text beside its underline, the others below."""
        places = [(self.column(m.first), self.column(m.last), m) for m in marks]
        places.sort(key=lambda p: (p[0], p[1], not p[2].primary))
        underline = [" "] * max(end for _, end, _ in places)
        for start, end, mark in sorted(places, key=lambda p: p[2].primary):
            for column in range(start, max(end, start + 1)):
                underline[column : column + 1] = ["^" if mark.primary else "-"]
        beside = max(places, key=lambda p: (p[1], p[0]))
        hanging = [(start, mark.text, mark.primary) for start, _, mark in places if mark.text and mark is not beside[2]]
        color = {"^": paint.alarm_color, "-": _BLUE}
        row = "".join(paint(color.get(c, ""), "".join(run)) for c, run in groupby(underline))
        yield f"{row} {self._say(beside[2].text, beside[2].primary, paint)}"
        yield from self._hang(hanging, paint)

    def _hang(self, hanging: list[tuple[int, str, bool]], paint: _Paint) -> Iterator[str]:
        if hanging:
            yield _strokes({start for start, _, _ in hanging}, paint)
        while hanging:
            start, text, primary = hanging.pop()
            left = _strokes({s for s, _, _ in hanging if s < start}, paint)
            yield left + " " * (start - _visible(left)) + self._say(text, primary, paint)

    def _say(self, text: str, primary: bool, paint: _Paint) -> str:
        return paint.alarm(unmarked(text)) if primary else paint.frame(unmarked(text))


def _strokes(columns: Iterable[int], paint: _Paint) -> str:
    row = ""
    at = 0
    for column in sorted(columns):
        row += " " * (column - at) + paint.frame("|")
        at = column + 1
    return row


def _visible(text: str) -> int:
    return len(re.sub(r"\033\[[0-9;]*m", "", text))


# ---- prose ---------------------------------------------------------------------------------------------------------


_WORD = regex(r" *(?:`[^`]*`|[^ ])+")  # with the space before it; code in backquotes is one word


def _lines(text: str, room: int) -> list[str]:
    """The lines of a text; long ones are broken between words.  Indented lines are code and stay as they are."""
    lines = []
    for line in text.split("\n"):
        if width_of(line) <= room or line.startswith(" "):
            lines.append(line)
            continue
        broken = [""]
        for word in _WORD.findall(line):
            if broken[-1] and width_of(broken[-1] + word) > room:
                broken.append(word.lstrip())
            else:
                broken[-1] += word
        lines += broken
    return lines


# ---- texts to compare ----------------------------------------------------------------------------------------------


def _facts(facts: tuple[tuple[str, str], ...], room: int, paint: _Paint) -> list[tuple[str, list[str]]]:
    """The facts one below the other, with their names aligned on the right."""
    longest = max((len(name) for name, _ in facts), default=0)
    rows = []
    for name, text in facts:
        text = _shortened(text, room - longest - len("= : "))
        if paint.on:
            texts = [paint.alarm_in(text)]
        else:
            texts = [unmarked(text), _underlined(text)] if MARK in text else [text]
        rows.append((name.rjust(longest), texts))
    return rows


def _underlined(text: str) -> str:
    """A row with `~` below the highlighted parts."""
    row, mark = "", " "
    for char in text:
        if char in (MARK, UNMARK):
            mark = "~" if char == MARK else " "
        else:
            row += mark * width_of(char)
    return row.rstrip()


def _shortened(text: str, room: int) -> str:
    """The part of a long text around its first highlight."""
    if width_of(unmarked(text)) <= room:
        return text
    first, last = text.find(MARK), text.find(UNMARK)
    start = max(0, min(first - room // 3, last + 1 - room + 6))
    cut = text[start : start + room - 6 + 2]
    cut += UNMARK if cut.count(MARK) > cut.count(UNMARK) else ""
    return ("..." if start else "") + cut + ("..." if start + room - 4 < len(text) else "")


# ---- the call path ------------------------------------------------------------------------------------------------


def _path(path: tuple[Call, ...], room: int) -> list[tuple[str, list[str]]]:
    """The calls with growing indentation, and places and arguments in columns.  A long path shows only its ends."""
    if not path:
        return []
    half = _LONGEST_PATH // 2
    left_out = len(path) - 2 * half
    rows: list[tuple[str, str, str]] = []
    for number, call in enumerate(path):
        if left_out > 1 and half <= number < len(path) - half:
            if number == half:
                rows.append((f"... {left_out} more", "", ""))
            continue
        place = f"{call.span.source.name}:{call.span.line}" if call.span and _is_somewhere(call.span) else ""
        rows.append(("  " * min(len(rows), _LONGEST_PATH) + call.name, place, call.about))
    names, places = (max(width_of(row[k]) for row in rows) for k in (0, 1))
    indent = names + 2 + places + 2
    longest = max((width_of(part) for _, _, about in rows for part in _arguments(about)), default=0)
    beside = longest <= room - indent
    texts = []
    for name, place, about in rows:
        first, *more = _wrapped(about, room - indent) if beside else ["", *_wrapped(about, room - 4)]
        texts.append(f"{_padded(name, names)}  {_padded(place, places)}  {first}".rstrip())
        texts += [" " * (indent if beside else 4) + line for line in more]
    return [("path", texts)]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def _arguments(text: str) -> list[str]:
    """Split `x : float[3, 4], y : int` at the commas outside of brackets."""
    parts = [""]
    for part in text.split(", "):
        open_ = sum(parts[-1].count(c) for c in "([{") - sum(parts[-1].count(c) for c in ")]}")
        if open_:
            parts[-1] += f", {part}"
        else:
            parts = [*parts, part] if parts[-1] else [part]
    return parts


def _wrapped(text: str, room: int) -> list[str]:
    """`x : float[3], y : int` on several lines if it does not fit on one."""
    lines = [""]
    for part in _arguments(text):
        joined = f"{lines[-1]}, {part}" if lines[-1] else part
        if width_of(joined) > room and lines[-1]:
            lines[-1] += ","
            lines.append(part)
        else:
            lines[-1] = joined
    return lines
