"""The screen of a terminal -> SVG."""

from __future__ import annotations

from itertools import groupby
from xml.sax.saxutils import escape

import pyte

WIDE, HIGH, MARGIN = 8.4, 18, 14  # of a cell; around all
INK, PAPER = "#d8dee9", "#1e2229"
COLOURS = {
    "black": "#3b4252", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "blue": "#61afef",
    "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d8dee9",
    "brightblack": "#7f8694", "brightred": "#ff7b86", "brightgreen": "#b5e890", "brightbrown": "#ffd68a",
    "brightblue": "#82c4ff", "brightmagenta": "#dd97f2", "brightcyan": "#7fd6e0", "brightwhite": "#ffffff",
}  # fmt: skip


def picture(screen: pyte.Screen) -> str:
    rows = [[screen.buffer[y][x] for x in range(screen.columns)] for y in range(screen.lines)]
    while rows and all(cell.data == " " and cell.bg == "default" for cell in rows[-1]):
        rows.pop()
    width, height = screen.columns * WIDE + 2 * MARGIN, len(rows) * HIGH + 2 * MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">\n'
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>\n'
    )
    return head + "".join(drawn(row, y) for y, row in enumerate(rows)) + "</svg>\n"


def drawn(row: list[pyte.screens.Char], y: int) -> str:
    """Stretches of one style and kind each, as wide as their cells whatever the font."""
    out, x = "", 0
    for ((ink, paper, bold), kind), cells in groupby(row, lambda cell: (style(cell), kind_of(cell.data))):
        text = "".join(cell.data for cell in cells)
        left, top, width = MARGIN + x * WIDE, MARGIN + y * HIGH, len(text) * WIDE
        x += len(text)
        if paper != PAPER:
            out += f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{HIGH}" fill="{paper}"/>\n'
        if kind == "dots":
            out += f'<path d="{dots(text, left, top)}" stroke="{ink}" stroke-width="2.4" stroke-linecap="round"/>\n'
        elif kind != "blank":
            more = ' font-weight="bold"' if bold else ""
            out += (
                f'<text x="{left:.1f}" y="{top + 13.5}" textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs" '
                f'fill="{ink}"{more}>{escape(text)}</text>\n'
            )
    return out


def kind_of(sign: str) -> str:
    if sign.isspace():
        return "blank"
    return "dots" if "\u2800" <= sign <= "\u28ff" else "lines" if "\u2500" <= sign <= "\u25ff" else "letters"


def dots(text: str, left: float, top: float) -> str:
    """The points of Braille, which few fonts place evenly."""
    places = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
    return "".join(
        f"M{left + (k + 0.25 + 0.5 * x) * WIDE:.1f} {top + (y + 0.5) * HIGH / 4:.1f}h0"
        for k, sign in enumerate(text)
        for bit, (x, y) in enumerate(places)
        if ord(sign) >> bit & 1
    )


def style(cell: pyte.screens.Char) -> tuple[str, str, bool]:
    ink, paper = colour(cell.fg, INK), colour(cell.bg, PAPER)
    return (paper, ink, cell.bold) if cell.reverse else (ink, paper, cell.bold)


def colour(name: str, default: str) -> str:
    return default if name == "default" else COLOURS.get(name, f"#{name}")
