"""What a team can do: one block of threads, which all go through the same steps.

    x = par j < m to keep { ... }     the points are shared among the threads
    s = index x 0; t = mul s s        each thread does this, with the same numbers
    y = update x t 1                  one of them writes

Control, numbers, data and arrays of data are each thread's own, and are the same in all.  The elements of arrays of
numbers are there once.  So a team can do what either writes no such elements, or writes them together (`Row.spread`).
A function whose operands or results have such arrays is done in line.
"""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.show import show_type
from dplc.flat.walk import atoms, blocks
from dplc.passes.device.values import is_local, is_shared

MOST_BINDINGS = 2000  # of a team's text, with functions in line


class TeamSteps:
    """Looks at steps.  `alone` says why threads cannot do the points of a Par, `called` why not a function;
    `recursive` are functions that call themselves."""

    def __init__(
        self, program: f.Program, alone: Callable[[f.Par], str], called: Callable[[str], str], recursive: set[str]
    ) -> None:
        self.program, self.alone, self.called, self.recursive = program, alone, called, recursive
        self.count = 0
        self.done: set[str] = set()  # what says that a device has done a Par: a team has

    def block(self, block: f.Block) -> str:
        """The reason why a team cannot do a block; "" if it can."""
        for bind in block.binds:
            self.count += 1
            if self.count > MOST_BINDINGS:
                return "its steps are too long"
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "fail":
                return ""  # the host fails in its place
            if reason := self.bind(bind):
                return reason
        return ""

    def bind(self, bind: f.Bind) -> str:
        if strange := [x for x in (*bind.vars, *atoms(bind.rhs)) if not is_local(x.ty)]:
            return f"its steps use {show_type(strange[0].ty)}"
        match bind.rhs:
            case f.Par() as par:
                self.done.update(var.name for var, out in zip(bind.vars, par.outs, strict=True) if out.kind == "done")
                return self.par(par)
            case f.If(f.Var(name), then) if name in self.done:
                return self.block(then)
            case f.Op() as op:
                return self.op(op, bind.vars)
            case f.Call(name):
                return self.call(name)
            case f.While(collect=collect) if collect:
                return "its steps keep an array that grows"
            case rhs:
                return next(filter(None, map(self.block, blocks(rhs))), "")

    def par(self, par: f.Par) -> str:
        if any(out.kind == "last" for out in par.outs):
            return "its steps write to places of arrays"
        return self.block(par.body) if is_team(par) else self.alone(par)

    def op(self, op: f.Op, made: tuple[f.Var, ...]) -> str:
        row = OPS[op.op]
        if row.shared or row.effects not in (Effect.NONE, Effect.OWNERS):
            return f"its steps do {op.op}"
        if any(is_shared(var.ty) for var in made) and not (row.spread or row.views):
            return f"its steps do {op.op}"
        if row.reduces and any(isinstance(var.ty, f.Arr) for var in made):
            return f"its steps do {op.op}"
        return ""

    def call(self, name: str) -> str:
        fn = self.program.fns[name]
        if not any(map(is_shared, (*[var.ty for var in fn.params], *fn.results))):
            return self.called(name)
        if name in self.recursive:
            return "its steps call a function that calls itself"
        return self.block(fn.body)


def works(block: f.Block) -> bool:
    """True if there is something to share: the points of a Par, or a product of matrices."""
    return any(isinstance(bind.rhs, f.Par) or (isinstance(bind.rhs, f.Op) and OPS[bind.rhs.op].cubic)
               or any(map(works, blocks(bind.rhs))) for bind in block.binds)  # fmt: skip


def is_team(par: f.Par) -> bool:
    """True for a Par of one point that a team does."""
    return any(out.team for out in par.outs)
