"""Stacks of samples as pictures: a flame graph in SVG, and files for Chrome's tracing, Perfetto and speedscope."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from dpl.node import field, record

WIDTH, ROW = 1200, 17
SMALLEST = 0.5  # pixels
WARM = ("#e8743b", "#ed9a4a", "#f0b95f", "#e9893f")
Stacks = Sequence[Sequence[str]]


@record
class Tree:
    """Samples by common callers."""

    name: str
    count: int = 0
    inside: dict[str, Tree] = field(default_factory=dict)

    def depth(self) -> int:
        return 1 + max((part.depth() for part in self.inside.values()), default=0)


def tree(stacks: Stacks) -> Tree:
    root = Tree("all", len(stacks))
    for stack in stacks:
        at = root
        for name in stack:
            at = at.inside.setdefault(name, Tree(name))
            at.count += 1
    return root


def flame(stacks: Stacks, interval: float) -> str:
    """A flame graph: callers below, and the width is the time."""
    root = tree(stacks)
    height = ROW * (root.depth() + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="monospace" '
        'font-size="11"><rect width="100%" height="100%" fill="white"/>'
    ]
    todo = [(root, 0.0, 0)]
    while todo:
        node, x, level = todo.pop()
        width = WIDTH * node.count / max(root.count, 1)
        if width < SMALLEST:
            continue
        parts.append(box(node, x, width, height - ROW * (level + 1), node.count * interval, root.count))
        for inner in sorted(node.inside.values(), key=lambda n: n.name):
            todo.append((inner, x, level + 1))
            x += WIDTH * inner.count / root.count
    return "\n".join([*parts, "</svg>", ""])


def box(node: Tree, x: float, width: float, y: float, seconds: float, total: int) -> str:
    text = node.name if len(node.name) * 6.7 < width else node.name[: max(int(width / 6.7) - 1, 0)]
    colour = WARM[sum(map(ord, node.name)) % len(WARM)]
    about = f"{node.name}: {seconds:.3f} s, {100 * node.count / total:.1f} %"
    return (
        f'<g><title>{escape(about)}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" '
        f'fill="{colour}" stroke="white" stroke-width="0.5"/>'
        f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(text) if width > 20 else ""}</text></g>'
    )


def chrome(stacks: Stacks, interval: float) -> str:
    """The run as nested spans, for chrome://tracing and ui.perfetto.dev.  Neighbouring samples are one span as far as
    their callers agree."""
    events: list[dict] = []
    running: list[tuple[str, int]] = []  # name and first sample, outermost first
    for n, stack in enumerate([*stacks, ()]):
        same = next((i for i, (name, _) in enumerate(running) if i >= len(stack) or stack[i] != name), len(running))
        for name, start in running[same:]:
            span = {"ts": start * interval * 1e6, "dur": (n - start) * interval * 1e6}
            events.append({"name": name, "ph": "X", "pid": 1, "tid": 1, **span})
        running[same:] = [(name, n) for name in stack[same:]]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, ensure_ascii=False)


def speedscope(stacks: Stacks, interval: float) -> str:
    """The samples for speedscope.app."""
    numbers: dict[str, int] = {}
    samples = [[numbers.setdefault(name, len(numbers)) for name in stack] for stack in stacks]
    return json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": name} for name in numbers]},
        "profiles": [{
            "type": "sampled", "name": "dpl", "unit": "seconds", "startValue": 0,
            "endValue": len(stacks) * interval, "samples": samples, "weights": [interval] * len(samples),
        }],
    }, ensure_ascii=False)  # fmt: skip
