"""Execution frequency: which functions run a few times only, and which loops repay LLVM's optimiser.

    let w = train data 0.1        `main` runs once, and so does `train` if this is its only call
    let train xs rate = ...       its loop runs long

Optimising pays in loops, recursion and operations on arrays.  It does not pay in code that runs once, nor in functions
that format values: they spend their time in the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.remembered import remembered
from dplc.flat.walk import blocks, every

FEW = 16  # runs of a function that are not worth an optimisation
SHORT = 4  # steps of a loop that are not worth one, if its body has no loop and no call


class Frequency:
    """What is known of the functions of a program.

    rare         they run at most FEW times when the program runs once
    cold         they are not optimised: they format values, or run rarely and have no loop that repays it
    recursive    they call themselves, directly or not"""

    def __init__(self, program: f.Program) -> None:
        self.program = program
        number, recursive = groups(program)
        self.calls = {name: list(calls(fn.body, False)) for name, fn in program.fns.items()}
        self.recursive = {name for name in program.fns if number[name] in recursive}
        runs = dict.fromkeys(program.fns, 0) | dict.fromkeys(self.recursive, FEW + 1)
        runs |= dict.fromkeys(program.exports.values(), FEW + 1)  # callers outside may call them in a loop
        runs[program.main] = 1
        for name in sorted(program.fns, key=number.__getitem__, reverse=True):  # callers before callees
            for callee, often in self.calls[name]:
                runs[callee] += FEW + 1 if often else runs[name]
        self.rare = {name for name, times in runs.items() if times <= FEW}
        self.cold = {
            name
            for name, fn in program.fns.items()
            if formats(fn) or (name in self.rare and not any(repays(bind) for bind in every(fn.body)))
        }

    def replaceable(self) -> set[str]:
        """The functions that take up their work anew where it pays: those called by functions that are not optimised,
        and recursive ones."""
        called = {callee for name in self.cold for callee, _ in self.calls[name]}
        return (called | self.recursive) - self.cold

    def kernels(self) -> set[str]:
        """The functions that the stage `outline` made of one loop that may run long."""
        fns = self.program.fns
        return {name for name in self.rare - self.cold if any(is_long(bind.rhs) for bind in fns[name].body.binds)}


def calls(block: f.Block, often: bool) -> Iterator[tuple[str, bool]]:
    """The calls in a block, each with whether it is in a loop."""
    for bind in block.binds:
        if isinstance(bind.rhs, f.Call):
            yield bind.rhs.fn, often
        for inner in blocks(bind.rhs):
            yield from calls(inner, often or isinstance(bind.rhs, f.For | f.While | f.Par))


def is_long(rhs: f.Rhs) -> bool:
    """True for a loop that may run long.  That of a Par without inner loops is limited by memory."""
    if isinstance(rhs, f.Par):
        return any(isinstance(bind.rhs, f.For | f.While | f.Par | f.Call) for bind in every(rhs.body))
    return isinstance(rhs, f.For | f.While)


def effort(program: f.Program) -> int:
    """LLVM's level for a program that runs once: 2, or 0 if nothing in it repays optimising."""
    if Frequency(program).cold != set(program.fns):
        return 2
    return 2 if any(heavy(bind) for fn in program.fns.values() for bind in every(fn.body)) else 0


def heavy(bind: f.Bind) -> bool:
    """True for an operation on arrays whose code comes with the program, such as a matrix product."""
    match bind.rhs:
        case f.Op(name, args):
            return not OPS[name].light and any(isinstance(x.ty, f.Arr) for x in (*args, *bind.vars))
        case _:
            return False


def formats(fn: f.Fn) -> bool:
    """True for a generated function that shows values of some type."""
    return not fn.label and fn.name.startswith("show")


def repays(bind: f.Bind) -> bool:
    """True if a right-hand side is, or contains, a loop that repays optimising although it runs once."""
    match bind.rhs:
        case f.Par(outs=()):
            return False  # it is there to fail
        case f.For() | f.While() | f.Par() as loop:
            inside = blocks(loop)
            if any(map(works, inside)):
                return True
            return not (is_short(loop) or any(writes(inner) for block in inside for inner in every(block)))
        case f.Op(name, args):
            row = OPS[name]
            over = args[1:] if row.accumulates else bind.vars
            return row.loops and any(isinstance(x.ty, f.Arr) for x in over)
        case _:
            return False


@remembered
def works(block: f.Block) -> bool:
    """True if a block, or one inside of it, has a call or what repays optimising.

    It is a loop, as an exception (`facts_of`) takes as long as there are generators around it."""
    for bind in block.binds:
        if isinstance(bind.rhs, f.Call) or repays(bind) or any(map(works, blocks(bind.rhs))):
            return True
    return False


def is_short(loop: f.For | f.While | f.Par) -> bool:
    """True if a loop is known to have a few steps only."""
    if isinstance(loop, f.While):
        return False
    steps = 1
    for count in [loop.count] if isinstance(loop, f.For) else [count for _, count in loop.space]:
        if not (isinstance(count, f.Const) and isinstance(count.value, int)):
            return False
        steps *= count.value
    return steps <= SHORT


def writes(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.Op) and Effect.APPEND in OPS[bind.rhs.op].effects
