"""flat program -> which functions call each other in circles (strongly connected components, after Tarjan)."""

from __future__ import annotations

from collections.abc import Iterator

from dplc.flat import term as f
from dplc.flat.traverse import blocks


def groups(program: f.Program) -> tuple[dict[str, int], set[int]]:
    """The number of each function's group, and the groups that are recursive."""
    calls = {name: list(dict.fromkeys(callees(fn.body))) for name, fn in program.fns.items()}
    number: dict[str, int] = {}
    recursive: set[int] = set()
    for group, members in enumerate(components(calls)):
        number.update(dict.fromkeys(members, group))
        if len(members) > 1 or members[0] in calls[members[0]]:
            recursive.add(group)
    return number, recursive


def components(graph: dict[str, list[str]]) -> Iterator[list[str]]:
    """Strongly connected components, callees first; without recursion, as call graphs may be deep."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    closed: set[str] = set()
    stack: list[str] = []
    for root in graph:
        work = [] if root in index else [root]
        rest: dict[str, Iterator[str]] = {}
        while work:
            node = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                rest[node] = iter(graph[node])
            follower = next((n for n in rest[node] if n not in closed), None)
            if follower is None:
                work.pop()
                if work:
                    low[work[-1]] = min(low[work[-1]], low[node])
                if low[node] == index[node]:
                    members = [stack.pop()]
                    while members[-1] != node:
                        members.append(stack.pop())
                    closed.update(members)
                    yield members
            elif follower in index:
                low[node] = min(low[node], index[follower])
            else:
                work.append(follower)


def callees(block: f.Block) -> Iterator[str]:
    """The functions that a block calls."""
    for bind in block.binds:
        if isinstance(bind.rhs, f.Call):
            yield bind.rhs.fn
        for inner in blocks(bind.rhs):
            yield from callees(inner)
