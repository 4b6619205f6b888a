"""Records a session with `dpl debug`, which goes back through a NaN:  python examples/session/debugger.py

It types what SESSION says and writes `debugger.svg` beside itself: the terminal as it changed, played again and again.
"""

from __future__ import annotations

import os
import sys
from itertools import groupby

import pexpect
import record
from record import ENTER, HERE, Recording
from screen import HIGH, MARGIN, PAPER, WIDE, drawn

PROGRAM = HERE / "nan.dp"
COLUMNS, ROWS = 100, 30
SESSION = (  # what is typed, what is to be seen then, and for how many seconds it is shown
    ("break nonfinite", "breakpoint 1", 2.0),
    ("continue", "> 2 |", 4.0),
    ("why nan", "an input of the function", 7.0),
    ("print d v", "[0.5", 3.0),
    ("back", "> 8 |", 3.5),
    ("print d far", "0.0", 3.0),
    ("back", "> 8 |", 3.5),
    ("print far", "0.0", 4.0),
)
TYPING = 0.7  # seconds for which a command is seen before it is done


def main() -> None:
    record.COLUMNS, record.ROWS = COLUMNS, ROWS
    environment = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
    environment.pop("NO_COLOR", None)
    child = pexpect.spawn(
        sys.executable, ["-m", "dplc.cli", "debug", PROGRAM.name], env=environment, encoding="utf-8",
        dimensions=(ROWS, COLUMNS), cwd=str(HERE),
    )  # fmt: skip
    child.delaybeforesend = None
    recording = Recording(child)
    recording.wait("(dpl)")
    recording.read(1.0)
    frames = [(lines(recording), 1.5)]
    for typed, awaited, seconds in SESSION:
        recording.type(typed)
        recording.read(0.5)
        frames.append((lines(recording), TYPING))
        recording.type(ENTER)
        recording.wait(awaited)
        recording.read(1.0)
        frames.append((lines(recording), seconds))
    child.sendeof()
    child.close()
    (HERE / "debugger.svg").write_text(film(frames), encoding="utf-8")


def lines(recording: Recording) -> list[str]:
    """The rows of the screen, as SVG."""
    screen = recording.screen
    return [drawn([screen.buffer[y][x] for x in range(screen.columns)], y) for y in range(screen.lines)]


def film(frames: list[tuple[list[str], float]]) -> str:
    """Frames and their seconds -> SVG with an animation.  A row that stays for several frames is there once."""
    width, height = COLUMNS * WIDE + 2 * MARGIN, ROWS * HIGH + 2 * MARGIN
    ends = [sum(seconds for _, seconds in frames[: i + 1]) for i in range(len(frames))]
    whole, styles, shown = ends[-1], dict[tuple[float, float], str](), ""
    for y in range(ROWS):
        for text, same in groupby(range(len(frames)), lambda i, y=y: frames[i][0][y]):
            if text:
                first, *_ = some = list(same)
                span = (ends[first - 1] if first else 0.0, ends[some[-1]])
                name = styles.setdefault(span, f"t{len(styles)}")
                shown += f'<g class="{name}">{text}</g>\n'
    rules = "".join(rule(name, *span, whole) for span, name in styles.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">\n'
        f"<style>\n{rules}</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>\n{shown}</svg>\n'
    )


def rule(name: str, begin: float, end: float, whole: float) -> str:
    """The style of what is seen from `begin` to `end` of a film."""
    from_, to = 100 * begin / whole, 100 * end / whole
    steps = [(0.0, begin == 0), (from_, True), *([(to, False)] if end < whole else []), (100.0, end == whole)]
    texts = "".join(f"{at:.2f}%{{visibility:{'visible' if seen else 'hidden'}}}" for at, seen in steps)
    return f".{name}{{animation:{name} {whole:g}s step-end infinite}}@keyframes {name}{{{texts}}}\n"


if __name__ == "__main__":
    main()
