"""Effects: which blocks and functions of a program do more than compute a value or fail.

    if x < 0.0 { buf_str 'negative: '; buf_num x; t = buf_take; fail t }           has none

What is added to the buffer of text before a certain failure is its message: nothing reads the buffer later.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.dims import fails
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks

COUNTS = Effect.COUNTERS | Effect.OWNERS  # what is counted does not matter to a program
TEXT = Effect.APPEND | Effect.TAKE


class Effects:
    """The effects of the functions of a program, found when they are asked for."""

    def __init__(self, program: f.Program) -> None:
        self.program = program
        self.known: dict[tuple[str, Effect], str | None] = {}

    def of(self, block: f.Block, ignored: Effect = COUNTS) -> str | None:
        """An operation with effects that the block or a function that it calls does; None if there is none."""
        if fails(block):
            ignored |= TEXT
        return next(filter(None, (self.of_bind(bind.rhs, ignored) for bind in block.binds)), None)

    def of_bind(self, rhs: f.Rhs, ignored: Effect) -> str | None:
        match rhs:
            case f.Op(op):
                return op if OPS[op].effects & ~ignored else None
            case f.Call(fn):
                return self.of_function(fn, ignored)
            case _:
                return next(filter(None, (self.of(block, ignored) for block in blocks(rhs))), None)

    def of_function(self, name: str, ignored: Effect = COUNTS) -> str | None:
        """The first effect of a function, in words; None if it has none besides the `ignored` ones."""
        if (name, ignored) not in self.known:
            self.known[name, ignored] = None  # a recursive function has those that are found otherwise
            self.known[name, ignored] = self.of(self.program.fns[name].body, ignored)
        return self.known[name, ignored]
