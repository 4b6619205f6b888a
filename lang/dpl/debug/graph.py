"""The recorded operations of one gradient as a picture, for Graphviz or as SVG.

Operations of one line are one box, so a graph of a million numbers is as readable as its program.
"""

from __future__ import annotations

from html import escape

from dpl.debug.sweeps import Sweep
from dpl.eval.values.active import Active, Node
from dpl.node import record

MOST = 200  # boxes
WIDE = 32  # characters in a box
WIDTH, HEIGHT, GAP_X, GAP_Y = 230, 44, 30, 36


@record
class Box:
    """The operations of one visit of one line."""

    label: str
    names: dict[str, int]
    rank: int = 0

    @property
    def operations(self) -> str:
        """The operations of a box, each with how often it was done."""
        return ", ".join(f"{name} x{n}" if n > 1 else name for name, n in self.names.items())


def boxes(sweep: Sweep) -> tuple[list[Box], list[tuple[int, int]]]:
    """The boxes in the order of the program, and the arrows between them."""
    number: dict[object, int] = {}
    found: list[Box] = []
    arrows: dict[tuple[int, int], None] = {}
    at: dict[int, int] = {}
    for node in reversed(sweep.nodes):
        key = box_key(node)
        if key not in number:
            number[key] = len(found)
            found.append(Box(label(node), {}))
        here = at[id(node)] = number[key]
        name = operation(node)
        found[here].names[name] = found[here].names.get(name, 0) + 1
        for parent in node.parents:
            if (source := at[id(parent)]) != here:
                arrows[source, here] = None
                found[here].rank = max(found[here].rank, found[source].rank + 1)
    return found, list(arrows)


def box_key(node: Node) -> object:
    if node.step is None:
        return "inputs"
    return node.visit and node.visit[0], node.place and (node.place.span.source, node.place.span.line)


def label(node: Node) -> str:
    if node.step is None:
        return "inputs"
    if node.place is None:
        return "the library"
    span = node.place.span
    return f"{span.line}: {span.source.line(span.line).strip()}"


def operation(node: Node) -> str:
    return node.step.name if isinstance(node.step, Active) else "input" if node.step is None else "rule"


def dot(sweep: Sweep) -> str:
    """The graph in the language of Graphviz."""
    found, arrows = boxes(sweep)
    lines = ["digraph gradient {", "  node [shape=box, fontname=monospace];"]
    for i, box in enumerate(found):
        text = f"{box.label}\n{box.operations}".replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'  n{i} [label="{text}"];')
    lines += [f"  n{a} -> n{b};" for a, b in arrows]
    return "\n".join([*lines, "}", ""])


def svg(sweep: Sweep) -> str:
    """The graph as a picture: a row for each rank, inputs at the top."""
    found, arrows = boxes(sweep)
    found = found[:MOST]
    rows: dict[int, list[int]] = {}
    for i, box in enumerate(found):
        rows.setdefault(box.rank, []).append(i)
    place = {
        i: (GAP_X + column * (WIDTH + GAP_X), GAP_Y + row * (HEIGHT + GAP_Y))
        for row, members in enumerate(rows[rank] for rank in sorted(rows))
        for column, i in enumerate(members)
    }
    width = max((x for x, _ in place.values()), default=0) + WIDTH + GAP_X
    height = max((y for _, y in place.values()), default=0) + HEIGHT + GAP_Y
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="monospace" '
        'font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for a, b in arrows:
        if a in place and b in place:
            (x1, y1), (x2, y2) = place[a], place[b]
            parts.append(
                f'<line x1="{x1 + WIDTH / 2}" y1="{y1 + HEIGHT}" x2="{x2 + WIDTH / 2}" y2="{y2}" stroke="#888"/>'
            )
    for i, (x, y) in place.items():
        parts.append(f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="#eef" stroke="#446"/>')
        for text, down in ((found[i].label, 17), (found[i].operations, 34)):
            parts.append(f'<text x="{x + 6}" y="{y + down}">{escape(clipped(text))}</text>')
    return "\n".join([*parts, "</svg>", ""])


def clipped(text: str) -> str:
    """A text that fits into the box of a node."""
    return text if len(text) <= WIDE else text[: WIDE - 3] + "..."
