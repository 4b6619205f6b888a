"""flat -> the types of contents of those references that a derivative flows through.

    r = ref_new x;  ref_set r (mul x x);  y = ref_get r            f64, if y is differentiated by x

References are distinguished only by the types of their contents.  The graph (`ad/activity.py`) is that of the whole
program here.  It has a node for each leaf of each variable of each function, one node for all references of each
content, and edges from arguments to parameters and from results to the variables that calls bind.  A derivative (Ad) is
one operation whose results may all depend on all arguments.  A content is carried if an input of some derivative
reaches its node, and the node reaches an output of some derivative.

References from outside that a checkpoint can see, of any content, are carried too: its recomputation must find them
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dplc.ad.activity import Grapher, Node, reach
from dplc.ad.stores.effects import Effects, Holds
from dplc.ad.tangents.types import Tangents
from dplc.flat import term as f
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.retype import Retype
from dplc.flat.show import show_type
from dplc.flat.walk import every
from dplc.passes import NeedsInterpreter


def carried(program: f.Program) -> set[f.Type]:
    """The contents of references that must become values in a store, for derivatives to be correct."""
    taken = [b.rhs for fn in program.fns.values() for b in every(fn.body) if isinstance(b.rhs, f.Ad)]
    lasting = set(cells(program))
    contents = set(written(program)) - lasting if taken else set()
    if not contents:
        return contents
    flow = Flow(program)
    by = [node for ad in taken for node in flow.within(ad.fn, program.fns[ad.fn].params[-1:])]
    of = [node for ad in taken for node in flow.within(ad.fn, program.fns[ad.fn].body.results)]
    varied = reach(filter(None, by), flow.graph.targets)
    useful = reach(filter(None, of), flow.graph.sources)
    found = {content for content in contents if place(content) in varied & useful}
    found |= seen_by_checkpoints(program, contents - found)
    holds = Holds(program.datas)
    found |= {content for content in contents if holds.of(content) & found}  # what they hold become places
    if any(holds.of(cell) & found for cell in lasting):
        raise NeedsInterpreter("derivatives flow through a reference that lasts longer than the program")
    return found


def cells(program: f.Program) -> Iterator[f.Type]:
    """The contents of global cells.  No other reference has these contents (`flat/build.py`), and no derivative flows
    through them."""
    for fn in program.fns.values():
        for bind in every(fn.body):
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "state" and isinstance(cell := bind.vars[0].ty, f.Ref):
                yield cell.elem


def written(program: f.Program) -> Iterator[f.Type]:
    for fn in program.fns.values():
        for bind in every(fn.body):
            if isinstance(bind.rhs, f.Op) and Effect.WRITE in OPS[bind.rhs.op].effects:
                yield bind.rhs.args[-1].ty


def seen_by_checkpoints(program: f.Program, contents: set[f.Type]) -> set[f.Type]:
    if not program.checkpoints or not contents:
        return set()
    effects = Effects(program, contents)
    return {content for content in contents for name in program.checkpoints if effects.of(name, content)}


def place(content: f.Type) -> Node:
    """The node of all references with this content."""
    return (f"ref {show_type(content)}", 0)


class Flow(Grapher):
    """The graph of a program.  A node is named after the function and the variable."""

    def __init__(self, program: f.Program) -> None:
        # A residual counts as a float: only one leaf matters here.
        super().__init__(Tangents(dict(program.datas), Retype(lambda site: f.F64).type), {})
        self.program = program
        self.fn = ""
        for self.fn, fn in program.fns.items():
            self.block(fn.body)
        for name, rule in program.rules.items():
            for by in filter(None, (rule.fn, rule.pullback)):
                self.all_to_all(self.params(name), self.params(by))
                self.all_to_all(self.results(by), self.results(name))

    def leaves(self, var: f.Var) -> list[Node]:
        return [(f"{self.fn}/{var.name}", i) for i in range(len(self.tangents.leaves(var.ty)))]

    def within(self, fn: str, atoms: Sequence[f.Atom]) -> list[Node | None]:
        """The nodes of atoms of a function."""
        here, self.fn = self.fn, fn
        nodes = [node for atom in atoms for node in self.nodes(atom)]
        self.fn = here
        return nodes

    def params(self, fn: str) -> list[Node | None]:
        return self.within(fn, self.program.fns[fn].params)

    def results(self, fn: str) -> list[Node | None]:
        return self.within(fn, self.program.fns[fn].body.results)

    def each(self, sources: Sequence[Node | None], targets: Sequence[Node | None]) -> None:
        for source, target in zip(sources, targets, strict=False):
            self.edge(source, target)

    def all_to_all(self, sources: Sequence[Node | None], targets: Sequence[Node | None]) -> None:
        for source in sources:
            for target in targets:
                self.edge(source, target)

    def bind(self, bind: f.Bind) -> None:
        match bind.rhs:
            case f.Op("ref_new" | "ref_set", (*_, content)):
                self.all_to_all(self.nodes(content), [place(content.ty)])
            case f.Op("ref_get"):
                self.all_to_all([place(bind.vars[0].ty)], self.nodes(bind.vars[0]))
            case f.Ad(mode, fn, args):
                self.mix(args, bind.vars)
                if mode != "pullback":
                    self.each(self.within(self.fn, args), self.params(fn))
                    self.all_to_all(self.results(fn), self.within(self.fn, bind.vars))
            case f.While(cond=cond):
                self.block(cond)
                super().bind(bind)
            case _:
                super().bind(bind)

    def call(self, call: f.Call, vars_: Sequence[f.Var]) -> None:
        self.each(self.within(self.fn, call.args), self.params(call.fn))
        self.each(self.results(call.fn), self.within(self.fn, vars_))
