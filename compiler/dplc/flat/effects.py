"""Effects: which blocks and functions of a program do more than compute a value or fail."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every

COUNTS = Effect.COUNTERS | Effect.OWNERS  # what is counted does not matter to a program


class Effects:
    """The effects of the functions of a program, found when they are asked for."""

    def __init__(self, program: f.Program) -> None:
        self.program = program
        self.known: dict[str, str | None] = {}

    def of(self, block: f.Block) -> str | None:
        """An operation with effects that the block or a function that it calls does; None if there is none."""
        for bind in every(block):
            rhs = bind.rhs
            if isinstance(rhs, f.Op):
                if OPS[rhs.op].effects & ~COUNTS:
                    return rhs.op
            elif isinstance(rhs, f.Call) and (found := self.of_function(rhs.fn)) is not None:
                return found
        return None

    def of_function(self, name: str) -> str | None:
        if name not in self.known:
            self.known[name] = None  # a recursive function has those that are found otherwise
            self.known[name] = self.of(self.program.fns[name].body)
        return self.known[name]
