"""Strongly connected components of a graph, by Tarjan's algorithm."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def components(roots: Iterable[Node], successors: Callable[[Node], Iterable[Node]]) -> Iterator[list[Node]]:
    """The strongly connected components reachable from `roots`, in reverse topological order: a component comes after
    its successors.  Not recursive, since graphs may be deep."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    closed: set[Node] = set()
    stack: list[Node] = []
    for root in roots:
        work = [] if root in index else [root]
        rest: dict[Node, Iterator[Node]] = {}
        while work:
            node = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                rest[node] = iter(successors(node))
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
