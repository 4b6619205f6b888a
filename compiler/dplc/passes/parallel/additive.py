"""Accumulators: variables to which a loop only adds.

    for i < n state (c = c0, d = 0.0) {
      c' = acc_index c v n i               both are accumulators: the order of the steps does not matter
      d' = acc_add d w
      yield c', d' }

An accumulator goes through additions, and through inner loops, branches and calls that do nothing else with it; each
variable that holds it is used once on each path.  Reverse mode makes such loops of comprehensions.
"""

from __future__ import annotations

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of
from dplc.flat.walk import arms, atoms, blocks

Trail = list[f.Bind]  # the bindings that hand on an accumulator


@node
class Use:
    """A use of a variable: operand number `k` of a binding in a block, or result number `k` of the block."""

    block: f.Block
    bind: f.Bind | None
    k: int


class Uses:
    """Where the variables of a function are used."""

    def __init__(self, body: f.Block) -> None:
        self.of: dict[str, list[Use]] = {}
        self.parent: dict[int, tuple[f.Block, f.Bind]] = {}
        self._block(body)

    def _block(self, block: f.Block) -> None:
        for bind in block.binds:
            self._atoms(block, bind, atoms(bind.rhs))
            for inner in blocks(bind.rhs):
                self.parent[id(inner)] = block, bind
                self._block(inner)
        self._atoms(block, None, block.results)

    def _atoms(self, block: f.Block, bind: f.Bind | None, used: tuple[f.Atom, ...]) -> None:
        for k, atom in enumerate(used):
            if isinstance(atom, f.Var):
                self.of.setdefault(atom.name, []).append(Use(block, bind, k))

    def inside(self, block: f.Block, use: Use) -> tuple[f.Bind | None, f.Block]:
        """The binding of a block in which a use is, and the inner block of this binding (or the block itself).  Two
        bindings may share one inner block: then only one of them is known, and the use may seem to be elsewhere."""
        bind, inner = use.bind, use.block
        while inner is not block:
            if id(inner) not in self.parent:
                return None, inner
            outer, bind = self.parent[id(inner)]
            if outer is block:
                return bind, inner
            inner = outer
        return bind, block


class Additive:
    """Answers for the functions of a program, as they are now."""

    def __init__(self, program: f.Program) -> None:
        self.fns = dict(program.fns)
        self.uses: dict[str, Uses] = {}
        self.open: dict[tuple[str, int], int] = {}  # parameters that are being asked for, and guesses of their results
        self.asked: set[tuple[str, int]] = set()  # those whose guess was needed
        self.known: dict[tuple[str, int], int | None] = {}  # the results of parameters, found without a guess of others

    def uses_of(self, fn: f.Fn) -> Uses:
        if fn.name not in self.uses:
            self.uses[fn.name] = Uses(fn.body)
        return self.uses[fn.name]

    def changed(self, fn: f.Fn) -> None:
        """Takes a function as it is now."""
        self.fns[fn.name] = fn
        self.uses.pop(fn.name, None)
        self.known.clear()

    def trail(self, fn: f.Fn, loop: f.For, k: int) -> Trail | None:
        """The bindings of a loop's body that hand on its state variable number `k`; None if it is no accumulator."""
        state = loop.state[k]
        if isinstance(elem := elem_of(state.ty), f.Num) and not f.is_float(elem):
            return None  # an integer that only passes through the loop
        found: Trail = []
        uses = self.uses_of(fn)
        name = state.name
        return found if self.follow(uses, loop.body, uses.of.get(name, []), found) == k else None

    def follow(self, uses: Uses, block: f.Block, at: list[Use], trail: Trail) -> int | None:
        """The result of a block that an accumulator becomes, which is used `at` these places; None if something else
        happens to it."""
        while at:
            places = [uses.inside(block, use) for use in at]
            bind = places[0][0]
            if any(other is not bind for other, _ in places) or (bind is None and places[0][1] is not block):
                return None
            if bind is None:
                return at[0].k if len(at) == 1 else None
            if places[0][1] is block:
                after = self.through(uses, bind, at[0].k) if len(at) == 1 else None
            else:
                inside = [(use, inner) for use, (_, inner) in zip(at, places, strict=True)]
                after = self.branch(uses, bind, inside)
            if after is None:
                return None
            trail.append(bind)
            at = uses.of.get(bind.vars[after].name, [])
        return None

    def branch(self, uses: Uses, bind: f.Bind, at: list[tuple[Use, f.Block]]) -> int | None:
        match bind.rhs:
            case f.If(_, then, else_):
                bodies = (then, else_)
            case f.Switch() as switch:
                bodies = arms(switch)
            case _:
                return None
        ends = {self.follow(uses, body, [use for use, inner in at if inner is body], []) for body in bodies}
        return ends.pop() if len(ends) == 1 else None

    def through(self, uses: Uses, bind: f.Bind, k: int) -> int | None:
        """The variable of a binding that an accumulator becomes, which is operand number `k`."""
        match bind.rhs:
            case f.Op("acc_add"):
                return 0
            case f.Op(op):
                return 0 if k == 0 and (OPS[op].accumulates or op in ("matmul_acc", "acc_zeros")) else None
            case f.For(_, _, state, _, body) | f.While(state, _, _, body) if k >= (first := first_init(bind.rhs)):
                inner = state[k - first].name
                after = self.follow(uses, body, uses.of.get(inner, []), [])
                return after if after == k - first else None
            case f.Call(name):
                return self.through_call(name, k)
            case _:
                return None

    def through_call(self, name: str, k: int) -> int | None:
        """The result of a function that its parameter number `k` becomes.  Where a recursive function calls itself, it
        is guessed.  A guess from which itself follows is right: a call that ends has finitely many calls inside."""
        key = name, k
        if key in self.open:
            self.asked.add(key)
            return self.open[key]
        if key in self.known:
            return self.known[key]
        found = self.result(name, k)
        if not self.asked:
            self.known[key] = found
        return found

    def result(self, name: str, k: int) -> int | None:
        callee, key = self.fns[name], (name, k)
        uses, inner = self.uses_of(callee), callee.params[k].name
        for guess in [i for i, ty in enumerate(callee.results) if ty == callee.params[k].ty]:
            self.open[key] = guess
            found = self.follow(uses, callee.body, uses.of.get(inner, []), [])
            del self.open[key]
            alone = key not in self.asked
            self.asked.discard(key)
            if found == guess or alone:
                return found
        return None


def first_init(loop: f.For | f.While) -> int:
    """The number of a loop's operands before its initial state."""
    return 1 if isinstance(loop, f.For) else 0
