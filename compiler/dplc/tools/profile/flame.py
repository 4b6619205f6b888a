"""A flame graph that can be looked into (B. Gregg, "The flame graph", 2016): an SVG in which a click zooms, a search
finds names and adds up their shares, and colours say what phase a function is in.  It is dark where pages are."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dpl.node import field, node, record

WIDTH, ROW, TOP = 1200, 17, 52
LETTER = 6.7  # pixels
SMALLEST = 0.3  # pixels
KINDS = {"": "function", "forward sweep": "forward", "reverse sweep": "reverse", "outside": "outside"}
LEGEND = (("", "function"), ("forward sweep", "forward sweep"), ("reverse sweep", "reverse sweep"),
          ("outside", "runtime and libraries"))  # fmt: skip
Names = Sequence[tuple[str, str]]  # outermost first, each with its kind: a key of KINDS
Stacks = Sequence[tuple[Names, int]]  # each with its weight: samples or bytes

STYLE = """
:root { --paper: #fff; --ink: #1b1b1b; --function: #f0a35e; --forward: #7fc08a; --reverse: #7fa8dd;
  --outside: #c3bfb8; --found: #e05fd0 }
@media (prefers-color-scheme: dark) { :root { --paper: #17181c; --ink: #e8e6e1; --function: #9a5a1e; --forward: #2f7040;
  --reverse: #2f5c96; --outside: #55524d; --found: #a02f92 } }
svg { background: var(--paper); font: 11px monospace } text { fill: var(--ink); pointer-events: none }
.b { cursor: pointer } .b rect { stroke: var(--paper); stroke-width: 0.6 } .b:hover rect { stroke: var(--ink) }
.function { fill: var(--function) } .forward { fill: var(--forward) } .reverse { fill: var(--reverse) }
.outside { fill: var(--outside) } .found rect { fill: var(--found) } .dim { opacity: 0.45 }
.button { cursor: pointer; pointer-events: auto; text-decoration: underline }
"""

# What a reader can do: `zoom` shows a box as wide as the picture, `find` marks the names that hold a text.
SCRIPT = """
const boxes = [...document.querySelectorAll('.b')], wide = %d, letter = %s
const at = b => [+b.dataset.x, +b.dataset.w, +b.dataset.l]
function zoom(box) {
  const [left, width, level] = at(box), scale = wide / width
  for (const b of boxes) {
    const [x, w, l] = at(b), below = l < level && x <= left + 1e-6 && x + w >= left + width - 1e-6
    const from = below ? 0 : (x - left) * scale, long = below ? wide : w * scale
    const shown = below || (from > -1e-3 && from + long < wide + 1e-3 && long > 0.3)
    b.style.display = shown ? '' : 'none'
    b.classList.toggle('dim', below && b !== box)
    const [rect, text] = [b.querySelector('rect'), b.querySelector('text')], room = Math.floor((long - 4) / letter)
    rect.setAttribute('x', from); rect.setAttribute('width', long); text.setAttribute('x', from + 3)
    const name = b.dataset.n
    text.textContent = name.length <= room ? name : room > 3 ? name.slice(0, room - 1) + '…' : ''
  }
}
function find(asked) {
  const ranges = []
  for (const b of boxes) {
    const met = asked && b.dataset.n.toLowerCase().includes(asked.toLowerCase())
    b.classList.toggle('found', !!met)
    if (met) ranges.push(at(b))
  }
  let total = 0, end = -1
  for (const [x, w] of ranges.sort((a, b) => a[0] - b[0])) {
    total += Math.max(0, x + w - Math.max(x, end)); end = Math.max(end, x + w)
  }
  document.getElementById('share').textContent = asked ? `${asked}: ${(100 * total / wide).toFixed(1)} %%` : ''
}
for (const b of boxes) b.addEventListener('click', () => zoom(b))
document.getElementById('all').addEventListener('click', () => zoom(boxes[0]))
document.getElementById('search').addEventListener('click', () => find(prompt('Find', '') || ''))
addEventListener('keydown', e => {
  if (e.key === 'Escape') { zoom(boxes[0]); find('') }
  if (e.key === '/' || (e.key === 'f' && e.ctrlKey)) { e.preventDefault(); find(prompt('Find', '') || '') }
})
"""


@node
class Amount:
    """What a weight of 1 stands for."""

    unit: str
    each: float

    def text(self, weight: int) -> str:
        return f"{weight * self.each:,.{3 if self.unit == 's' else 0}f} {self.unit}"


@record
class Tree:
    """Weights by common callers."""

    name: str
    kind: str = ""
    count: int = 0
    inside: dict[tuple[str, str], Tree] = field(default_factory=dict)

    def depth(self) -> int:
        return 1 + max((part.depth() for part in self.inside.values()), default=0)


def tree(stacks: Stacks) -> Tree:
    root = Tree("all", count=sum(weight for _, weight in stacks))
    for names, weight in stacks:
        at = root
        for name, kind in names:
            at = at.inside.setdefault((name, kind), Tree(name, kind))
            at.count += weight
    return root


def flame(stacks: Stacks, amount: Amount) -> str:
    """A flame graph: callers below, and the width is the time, or the memory."""
    root = tree(stacks)
    height = TOP + ROW * root.depth() + 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%"><style>{STYLE}</style>',
        *head(),
    ]
    todo = [(root, 0.0, 0)]
    while todo:
        part, x, level = todo.pop()
        width = WIDTH * part.count / max(root.count, 1)
        if width < SMALLEST:
            continue
        parts.append(box(part, x, width, level, height, amount.text(part.count), root.count))
        for inner in sorted(part.inside.values(), key=lambda n: n.name):
            todo.append((inner, x, level + 1))
            x += WIDTH * inner.count / root.count
    script = f"<script><![CDATA[{SCRIPT % (WIDTH, LETTER)}]]></script>"
    return "\n".join([*parts, script, "</svg>", ""])


def head() -> list[str]:
    """What the colours mean, and the buttons."""
    parts, x = [], 8
    for kind, text in LEGEND:
        parts += [f'<rect class="{KINDS[kind]}" x="{x}" y="8" width="12" height="12"/>',
                  f'<text x="{x + 17}" y="18">{text}</text>']  # fmt: skip
        x += 40 + int(LETTER * len(text))
    return [*parts, f'<text class="button" id="all" x="{WIDTH - 200}" y="18">whole run (Esc)</text>',
            f'<text class="button" id="search" x="{WIDTH - 80}" y="18">find (/)</text>',
            f'<text id="share" x="{WIDTH - 300}" y="38"></text>']  # fmt: skip


def box(part: Tree, x: float, width: float, level: int, height: int, amount: str, total: int) -> str:
    room = int((width - 4) / LETTER)
    text = part.name if len(part.name) <= room else f"{part.name[: room - 1]}…" if room > 3 else ""
    about = f"{part.name}: {amount}, {100 * part.count / max(total, 1):.1f} %"
    about += f", {part.kind}" if part.kind else ""
    y = height - 6 - ROW * (level + 1)
    return (
        f'<g class="b" data-x="{x:.3f}" data-w="{width:.3f}" data-l="{level}" data-n="{escape(part.name)}">'
        f'<title>{escape(about)}</title><rect class="{KINDS[part.kind]}" x="{x:.2f}" y="{y}" width="{width:.2f}" '
        f'height="{ROW - 1}"/><text x="{x + 3:.2f}" y="{y + 12}">{escape(text)}</text></g>'
    )
