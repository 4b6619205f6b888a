"""Breakpoints: what they match, in the text and in time.

model.dp:12            before line 12            model.dp:12:rev    when a reverse sweep passes back through line 12
loss                   when `loss` is called     rev                when a reverse sweep begins
error                  before an error unwinds   nonfinite          at the first NaN or infinity
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dpl import host
from dpl.debug.points import Places, Point
from dpl.eval.machine.failure import shown_name
from dpl.node import entity
from dpl.regex import regex
from dpl.source import Source

LINE = regex(r"(?:(?P<file>.*):)?(?P<line>\d+)(?::(?P<mode>rev|fwd))?")
EVENTS = ("error", "nonfinite", "rev")


class Refused(Exception):
    """The debugger cannot do what it was asked for, with the reason."""


@entity
class Breakpoint:
    """`points` are where it stops; `event` is one of EVENTS, or empty.  It stops at every hit from number `hits` on for
    which the `condition` holds.  With a `message` it prints that and goes on."""

    number: int
    text: str
    points: frozenset[Point]
    event: str = ""
    is_reverse: bool = False
    condition: str = ""
    hits: int = 1
    message: str = ""
    moved: str = ""  # why it is not at the line that was asked for
    met: int = 0

    def __str__(self) -> str:
        more = f" if {self.condition}" if self.condition else ""
        times = f", from hit {self.hits} on" if self.hits > 1 else ""
        return f"breakpoint {self.number}: {self.text}{more}{times}"


def moved(text: str, points: Iterable[Point]) -> str:
    """What is to be said of a breakpoint that stands at another line than was asked for."""
    found = LINE.fullmatch(text.strip())
    if not found or int(found["line"]) in {point.line for point in points}:
        return ""
    return f"line {found['line']} has no code; "


def located(places: Places, main: Source, text: str) -> tuple[frozenset[Point], str, bool, str]:
    """What a breakpoint's text means: points, event, whether it is for the reverse sweep, and its text in full.  Raises
    Refused."""
    text = text.strip()
    if text in EVENTS:
        return frozenset(), text, text == "rev", text
    if found := LINE.fullmatch(text):
        source = source_named(places, main, found["file"])
        line = line_with_code(places, source, int(found["line"]))
        points = frozenset(p for p in places.by_source[source] if p.line == line)
        is_reverse = found["mode"] == "rev"
        return points, "", is_reverse, f"{source.name}:{line}{':rev' if is_reverse else ''}"
    name, _, mode = text.partition(":")
    named = [p for points in places.by_source.values() for p in points if shown_name(p.function.name) == name]
    if not named or mode not in ("", "rev", "fwd"):
        known = sorted({shown_name(f.name) for f in places.functions() if f.params} - {"<fun>"})
        raise Refused(f"no line and no function `{text}`; the functions are {', '.join(known) or 'none'}")
    if mode == "rev":
        return frozenset(named), "", True, text
    return frozenset(p for p in named if p.is_entry) or frozenset(named), "", False, name


def source_named(places: Places, main: Source, name: str | None) -> Source:
    """The source that a path or the end of one means."""
    if not name:
        return main
    for source in (main, *places.by_source):
        if source.name == name or source.name.endswith(f"/{name}"):
            return source
        if source.path and host.current.real(source.path) == host.current.real(Path(name)):
            return source
    raise Refused(f"{name} is not a file of this program; its files are {', '.join(s.name for s in places.by_source)}")


def line_with_code(places: Places, source: Source, line: int) -> int:
    """The first line from this one on at which the program can stop."""
    lines = places.lines(source)
    for found in lines:
        if found >= line:
            return found
    last = f"; the last line with code is {lines[-1]}" if lines else ""
    raise Refused(f"there is no code at or after line {line} of {source.name}{last}")
