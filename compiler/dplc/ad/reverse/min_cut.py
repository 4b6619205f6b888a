"""The lightest set of nodes of a graph that separates what is given from what is wanted.

    a --> b --> d*      d and e are wanted, a can only be given; each weighs 8: {a} is the cut, {b} the one taken
            --> e*

A node is an edge from its entry to its exit, as wide as the node is heavy, all other edges are infinitely wide: the cut
is where the greatest flow from the source to the sink fills nodes (Dinic).  Of several cuts of one weight, that nearest
to what is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

WIDE = 1 << 60
SOURCE, SINK = 0, 1


class Network:
    """Edges in pairs, there and back: edge k ^ 1 undoes edge k."""

    def __init__(self, places: int) -> None:
        self.edges: list[list[int]] = [[] for _ in range(places)]  # those that leave each place
        self.to: list[int] = []
        self.width: list[int] = []  # what more can flow

    def join(self, a: int, b: int, width: int) -> None:
        for start, end, wide in ((a, b, width), (b, a, 0)):
            self.edges[start].append(len(self.to))
            self.to.append(end)
            self.width.append(wide)

    def fill(self) -> None:
        """Lets flow what can."""
        while self.level():
            begin = [0] * len(self.edges)  # edges before this one lead nowhere
            while path := self.path(begin):
                least = min(self.width[k] for k in path)
                for k in path:
                    self.width[k] -= least
                    self.width[k ^ 1] += least

    def level(self) -> bool:
        """How far each place is from the source; whether the sink can be reached."""
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
        """Edges from the source to the sink, each one step farther; none if there is no such path any more."""
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
        """The places from which more could flow to the sink."""
        found, todo = {SINK}, [SINK]
        for place in todo:
            for k in self.edges[place]:
                if self.width[k ^ 1] and self.to[k] not in found:
                    found.add(self.to[k])
                    todo.append(self.to[k])
        return found


def cut(weights: Mapping[str, int], sources: Mapping[str, Iterable[str]], wanted: Iterable[str]) -> set[str]:
    """`weights` has all nodes; those that do not have `sources`, which may be none, can only be given."""
    entry = {node: 2 + 2 * k for k, node in enumerate(weights)}
    network = Network(2 + 2 * len(entry))
    for node, place in entry.items():
        network.join(place, place + 1, weights[node])
        if node not in sources:
            network.join(SOURCE, place, WIDE)
        for other in sources.get(node, ()):
            network.join(entry[other] + 1, place, WIDE)
    for node in wanted:
        network.join(entry[node] + 1, SINK, WIDE)
    network.fill()
    late = network.before_sink()
    return {node for node, place in entry.items() if place not in late and place + 1 in late}
