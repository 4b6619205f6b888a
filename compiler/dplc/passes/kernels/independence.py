"""Independent points: the loops whose points may be computed in any order, and by several threads.

    [for i < n -> exp x[i]]             each point reads what is outside, and gives a value of its own
    [for i < n -> (print i; x[i])]      lines have an order, so these points do, too

By the language, the points of a comprehension may be computed in any order if they have no effects.  They may fail.
Threads have no cells of their own (`rt/memory.rt`) and a small stack, so the points of a loop that is spread over
threads make no constructors, and call no recursive functions.  All that they use from outside, and all that they give,
is made of numbers and of arrays of numbers.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, is_numbers
from dplc.flat.walk import atoms, blocks


class Independence:
    """What is known of the functions of a program."""

    def __init__(self, program: f.Program) -> None:
        self.program = program
        self.known: dict[str, bool] = {}
        self.callees: set[str] = set()  # functions that points of loops call
        for fn in program.fns.values():
            self.look(fn.body)

    def look(self, block: f.Block) -> None:
        """Finds the functions that the points of outermost comprehensions call."""
        for bind in block.binds:
            if isinstance(bind.rhs, f.Par):
                self.points(bind.rhs.body)
            else:
                for inner in blocks(bind.rhs):
                    self.look(inner)

    def points(self, body: f.Block) -> bool:
        """True if a loop with this body has independent points.  A row is copied into the result, so that the result
        holds nothing from outside."""
        return gives_numbers(body) and self.block(body)

    def block(self, block: f.Block) -> bool:
        return all(self.bind(bind) for bind in block.binds)

    def bind(self, bind: f.Bind) -> bool:
        rhs = bind.rhs
        if not all(is_plain(x.ty) for x in (*bind.vars, *atoms(rhs)) if isinstance(x, f.Var)):
            return False
        match rhs:
            case f.Op(op):
                return not OPS[op].shared and OPS[op].effects in (Effect.NONE, Effect.OWNERS)
            case f.Call(name):
                return self.function(name)
            case f.ConMake():
                return False
            case _:
                return all(self.block(inner) for inner in blocks(rhs))

    def function(self, name: str) -> bool:
        """True if points may call this function."""
        if name not in self.known:
            self.known[name] = False  # while it is looked at: a recursive function stays so
            self.known[name] = self.block(self.program.fns[name].body)
        if self.known[name]:
            self.callees.add(name)
        return self.known[name]


def gives_numbers(body: f.Block) -> bool:
    """True if points give only numbers and arrays of numbers; others are done by one thread of the host."""
    return all(is_numbers(elem_of(atom.ty)) for atom in body.results)


def is_plain(ty: f.Type) -> bool:
    """True for numbers, arrays of numbers, and tuples of these."""
    match ty:
        case f.Tup(items):
            return all(map(is_plain, items))
        case f.Arr(elem, _):
            return is_numbers(elem)
        case _:
            return isinstance(ty, f.Num)
