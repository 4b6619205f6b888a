"""The tables of `dpl profile`: shares by phase, line and function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from dplc.tools.profile.stacks import Stack, Where

PHASES = ("function", "forward sweep", "reverse sweep")
Key = Callable[[Where], str]


def phases(stacks: Sequence[Stack], total: int) -> list[str]:
    """The share of each phase in a total."""
    found = Counter[str]()
    for stack in stacks:
        found[stack.phase] += stack.weight
    return [f"{share(found[name], total)}  {name}" for name in PHASES if found[name]]


def by_line_and_function(stacks: Sequence[Stack], top: int) -> list[str]:
    """Two tables of the `top` lines and functions: their own share, and that with what they call."""
    lines = ["   self   total  line", *rows(stacks, top, lambda where: where.text)]
    return [*lines, "", "   self   total  function", *rows(stacks, top, lambda where: where.function)]


def rows(stacks: Sequence[Stack], top: int, key: Key) -> list[str]:
    """The largest rows of a table."""
    own, whole = sums(stacks, key)
    total = weight(stacks)
    best = sorted(whole, key=lambda k: (-own[k], -whole[k], k))[:top]
    return [f"{share(own[k], total)} {share(whole[k], total)}  {k}" for k in best]


def sums(stacks: Sequence[Stack], key: Key) -> tuple[Counter[str], Counter[str]]:
    """What belongs to each key itself, and with what it calls.  What the library does belongs to the line that called
    it."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for stack in stacks:
        keys = [k for where in stack.calls if (k := key(where))]
        if keys:
            own[keys[-1]] += stack.weight
        for k in set(keys):
            whole[k] += stack.weight
    return own, whole


def weight(stacks: Sequence[Stack]) -> int:
    return sum(stack.weight for stack in stacks)


def share(part: int, total: int) -> str:
    """A part of the whole in percent."""
    return f"{100 * part / max(total, 1):5.1f} %"
