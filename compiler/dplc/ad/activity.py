"""Activity analysis (Hascoët and Pascual 2013): dependences between leaves decide which have tangents or cotangents.

    fn f(x: f64, n: i64)                   return.0 <- s', s' <- y, s;  s <- y, t
      y = mul x x                          y.0 <- x.0
      s' = for i < n state (s = y) { t = mul s x; yield t }        t.0 <- s.0, x.0

A node is a leaf of a variable (`ad/tangents/types.py`).  There is an edge where a derivative can flow: not through
`floor`, a comparison, an index, `stop_grad`.  A leaf is *varied* if an active parameter reaches it, *useful* if it
reaches a result that has a cotangent, and *active* if it is both.  Only active leaves have cotangents; the others are
symbolic zeros.  Loops are cycles in the graph: no fixpoint is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpl.node import field, record

from dplc.ad.rules.bulk import flows
from dplc.ad.tangents.types import Tangents
from dplc.flat import term as f

Node = tuple[str, int]
Deps = tuple[frozenset[int], ...]  # for each leaf of a function's results, the leaves of parameters it depends on


@record
class Graph:
    params: list[Node] = field(default_factory=list)
    results: list[Node | None] = field(default_factory=list)
    sources: dict[Node, list[Node]] = field(default_factory=dict)
    targets: dict[Node, list[Node]] = field(default_factory=dict)
    callees: set[str] = field(default_factory=set)

    def varied(self, active: Iterable[int]) -> set[Node]:
        """The leaves that depend on some leaves of the parameters, by their numbers."""
        return reach((self.params[i] for i in active), self.targets)

    def useful(self, wanted: Iterable[int]) -> set[Node]:
        """The leaves on which some leaves of the results depend."""
        return reach((node for node in (self.results[i] for i in wanted) if node is not None), self.sources)

    def deps(self) -> Deps:
        """For each leaf of the results, the leaves of the parameters on which it depends."""
        number = {node: i for i, node in enumerate(self.params)}
        return tuple(
            frozenset(number[n] for n in self.useful([i]) if n in number) if node is not None else frozenset()
            for i, node in enumerate(self.results)
        )


def reach(start: Iterable[Node], edges: dict[Node, list[Node]]) -> set[Node]:
    """The nodes that can be reached along the edges, those at the start included."""
    seen = set(start)
    todo = list(seen)
    while todo:
        for node in edges.get(todo.pop(), ()):
            if node not in seen:
                seen.add(node)
                todo.append(node)
    return seen


class Grapher:
    """Builds the graph of one function.  `deps` are those of the functions that it calls, as far as known."""

    def __init__(self, tangents: Tangents, deps: dict[str, Deps]) -> None:
        self.tangents = tangents
        self.deps = deps
        self.graph = Graph()
        self.known: dict[str, list[Node]] = {}  # the leaves of each variable

    def draw(self, fn: f.Fn) -> Graph:
        """The graph of a function."""
        for param in fn.params:
            self.graph.params += self.leaves(param)
        self.graph.results = [node for result in fn.body.results for node in self.nodes(result)]
        self.block(fn.body)
        return self.graph

    def leaves(self, var: f.Var) -> list[Node]:
        known = self.known.get(var.name)
        if known is None:
            known = self.known[var.name] = [(var.name, i) for i in range(len(self.tangents.leaves(var.ty)))]
        return known

    def nodes(self, atom: f.Atom) -> Sequence[Node | None]:
        """The leaves of an atom.  A constant has none."""
        return self.leaves(atom) if isinstance(atom, f.Var) else [None] * len(self.tangents.leaves(atom.ty))

    def edge(self, source: Node | None, target: Node | None) -> None:
        """Notes that a leaf depends on another one."""
        if source is not None and target is not None:
            self.graph.sources.setdefault(target, []).append(source)
            self.graph.targets.setdefault(source, []).append(target)

    def flow(self, source: f.Atom, target: f.Atom) -> None:
        """Edges between corresponding leaves of two values of one type."""
        for s, t in zip(self.nodes(source), self.nodes(target), strict=True):
            self.edge(s, t)

    def mix(self, sources: Sequence[f.Atom], targets: Sequence[f.Atom]) -> None:
        """Edges from every source leaf to every target leaf."""
        for target in targets:
            for t in self.nodes(target):
                for source in sources:
                    for s in self.nodes(source):
                        self.edge(s, t)

    def edges(self, sources: Sequence[Node | None], target: f.Atom) -> None:
        """An edge from each source to the leaf of the target at the same place."""
        for s, t in zip(sources, self.nodes(target), strict=True):
            self.edge(s, t)

    def block(self, block: f.Block, results: Sequence[f.Atom] = ()) -> None:
        """Reads a block, whose results become others, as those of an arm do."""
        for bind in block.binds:
            self.bind(bind)
        for source, target in zip(block.results, results, strict=False):
            self.flow(source, target)

    def bind(self, bind: f.Bind) -> None:
        match bind.rhs:
            case f.Op() as op:
                self.mix([op.args[i] for i in flows(op)], bind.vars)
            case f.Call() as call:
                self.call(call, bind.vars)
            case f.TupMake(items):
                self.edges([node for item in items for node in self.nodes(item)], bind.vars[0])
            case f.TupGet(tup, index):
                self.edges(component(self.tangents, tup, self.nodes(tup), index), bind.vars[0])
            case f.ConMake(_, _, arg):
                self.mix([arg] if arg is not None else [], bind.vars)
            case f.If(_, then, else_):
                self.block(then, bind.vars)
                self.block(else_, bind.vars)
            case f.Switch() as switch:
                self.switch(switch, bind.vars)
            case f.For(_, _, state, inits, body, _) | f.While(state, inits, _, body, _):
                self.loop(state, inits, body, bind.vars)
            case f.Build(_, _, body):
                self.block(body)
                for source, target in zip(body.results, bind.vars, strict=True):
                    self.mix([source], [target])
            case _:
                pass

    def switch(self, switch: f.Switch, results: Sequence[f.Atom]) -> None:
        for case in switch.cases:
            if case.payload is not None:
                self.mix([switch.scrutinee], [case.payload])
            self.block(case.body, results)
        if switch.default is not None:
            self.block(switch.default, results)

    def loop(self, state: Sequence[f.Var], inits: Sequence[f.Atom], body: f.Block, vars_: Sequence[f.Var]) -> None:
        """Each state depends on its start and on what a step gives; what is collected on all leaves of a step."""
        self.block(body, state)
        for s, init, result in zip(state, inits, vars_, strict=False):
            self.flow(init, s)
            self.flow(s, result)
        self.mix(body.results[len(state) :], vars_[len(state) :])

    def call(self, call: f.Call, vars_: Sequence[f.Var]) -> None:
        """Results depend on arguments as those of the function do."""
        self.graph.callees.add(call.fn)
        sources = [node for arg in call.args for node in self.nodes(arg)]
        targets = [node for var in vars_ for node in self.nodes(var)]
        for target, deps in zip(targets, self.deps.get(call.fn, ()), strict=False):
            for i in deps:
                self.edge(sources[i], target)


def component(tangents: Tangents, tup: f.Atom, leaves: Sequence, index: int) -> Sequence:
    """The leaves of one component, from the leaves of a tuple."""
    assert isinstance(tup.ty, f.Tup)
    starts = tangents.starts(tup.ty)
    return leaves[starts[index] : starts[index + 1]]
