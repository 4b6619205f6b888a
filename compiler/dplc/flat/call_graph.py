"""flat program -> the SCCs of its call graph."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.remembered import remembered
from dplc.flat.walk import every
from dplc.graph import components


def groups(program: f.Program) -> tuple[dict[str, int], set[int]]:
    """The number of each function's SCC, and the numbers of the recursive SCCs."""
    return grouped({name: list(dict.fromkeys(callees(fn.body))) for name, fn in program.fns.items()})


def grouped(calls: dict[str, list[str]]) -> tuple[dict[str, int], set[int]]:
    """The same, given the callees of each function."""
    number: dict[str, int] = {}
    recursive: set[int] = set()
    for group, members in enumerate(components(calls, calls.__getitem__)):
        number.update(dict.fromkeys(members, group))
        if len(members) > 1 or members[0] in calls[members[0]]:
            recursive.add(group)
    return number, recursive


@remembered
def callees(block: f.Block) -> tuple[str, ...]:
    """The functions that a block calls, once for each call."""
    return tuple([bind.rhs.fn for bind in every(block) if isinstance(bind.rhs, f.Call)])
