"""Minimum cut: the lightest set of nodes of a graph that separates the given nodes from the wanted ones.

    a --> b --> d*      d and e are wanted, a can only be given; each weighs 8: {a} is the cut, {b} the one taken
            --> e*

A node becomes an edge from its entry to its exit, with the node's weight as its capacity.  A node that can be computed
has an edge from the source to its entry, with the cost of that as its capacity.  All other edges have infinite
capacity.  The cut consists of the nodes that a maximum flow from the source to the sink saturates (Dinic's
algorithm).  Of several cuts of one weight, the nearest to the wanted nodes is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

WIDE = math.inf  # costs of loops in loops exceed any number
SOURCE, SINK = 0, 1


class Network:
    """A flow network.  Edges come in pairs, there and back: edge k ^ 1 undoes edge k."""

    def __init__(self, places: int) -> None:
        self.edges: list[list[int]] = [[] for _ in range(places)]  # the edges that leave each place
        self.to: list[int] = []
        self.width: list[float] = []  # the remaining capacity of each edge

    def join(self, a: int, b: int, width: float) -> None:
        """An edge with a capacity, and the edge back, which has none yet."""
        for start, end, wide in ((a, b, width), (b, a, 0)):
            self.edges[start].append(len(self.to))
            self.to.append(end)
            self.width.append(wide)

    def fill(self) -> None:
        """Finds a maximum flow."""
        while self.level():
            begin = [0] * len(self.edges)  # edges before this one lead nowhere
            while path := self.path(begin):
                least = min(self.width[k] for k in path)
                for k in path:
                    self.width[k] -= least
                    self.width[k ^ 1] += least

    def level(self) -> bool:
        """Computes the distance of each place from the source.  Returns True if the sink can be reached."""
        self.far = [-1] * len(self.edges)
        self.far[SOURCE] = 0
        todo = [SOURCE]
        for place in todo:
            for k in self.edges[place]:
                if self.width[k] and self.far[self.to[k]] < 0:
                    self.far[self.to[k]] = self.far[place] + 1
                    todo.append(self.to[k])
        return self.far[SINK] >= 0

    def path(self, begin: list[int]) -> list[int]:
        """A path of edges from the source to the sink, each one step farther from the source.  Empty if there is
        none."""
        path: list[int] = []
        place = SOURCE
        while place != SINK:
            if begin[place] == len(self.edges[place]):
                if not path:
                    return []
                place = self.to[path.pop() ^ 1]
                begin[place] += 1
                continue
            k = self.edges[place][begin[place]]
            if self.width[k] and self.far[self.to[k]] == self.far[place] + 1:
                path.append(k)
                place = self.to[k]
            else:
                begin[place] += 1
        return path

    def before_sink(self) -> set[int]:
        """The places from which the flow to the sink could still grow."""
        found, todo = {SINK}, [SINK]
        for place in todo:
            for k in self.edges[place]:
                if self.width[k ^ 1] and self.to[k] not in found:
                    found.add(self.to[k])
                    todo.append(self.to[k])
        return found


def cut(
    weights: Mapping[str, float],
    sources: Mapping[str, Iterable[str]],
    wanted: Iterable[str],
    costs: Mapping[str, int] | None = None,
) -> set[str]:
    """The minimum cut.  `weights` has all nodes.  A node with `sources` (possibly none) can be computed from them, at a
    cost (default: none); all other nodes can only be given."""
    entry = {node: 2 + 2 * k for k, node in enumerate(weights)}
    network = Network(2 + 2 * len(entry))
    for node, place in entry.items():
        network.join(place, place + 1, weights[node])
        if node not in sources:
            network.join(SOURCE, place, WIDE)
        elif costs and costs.get(node):
            network.join(SOURCE, place, costs[node])
        for other in sources.get(node, ()):
            network.join(entry[other] + 1, place, WIDE)
    for node in wanted:
        network.join(entry[node] + 1, SINK, WIDE)
    network.fill()
    late = network.before_sink()
    return {node for node, place in entry.items() if place not in late and place + 1 in late}
