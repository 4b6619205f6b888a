"""Programs of the tests, as flat after each stage."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from conftest import ROOT
from dpl.diagnostics import DplError
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.walk import with_blocks
from dplc.passes import NeedsInterpreter
from dplc.pipeline import NAMES, READABLE, Context, compile_from, compile_to
from dplc.stack import on_large_stack

COUNTS = ("dup", "drop", "take")


def programs() -> list[Path]:
    """All that can be compiled, more or less."""
    folders = [ROOT / "tests" / "golden" / name for name in NAMES]
    folders += [ROOT / "tests" / "agree" / name for name in ("programs", "gradients", "jets")]
    found = [path for folder in folders for path in sorted(folder.glob("*.dp"))]
    return found + sorted((ROOT / "examples").glob("*.dp"))


def sample(every: int) -> list[Path]:
    return programs()[::every]


def called(path: Path) -> str:
    return "-".join(path.relative_to(ROOT).with_suffix("").parts[-2:])


@lru_cache(maxsize=2)
def flat_stages(path: Path) -> list[tuple[str, f.Program]]:
    """The program after each stage that gives flat; none if it is one for the interpreter, or none at all."""
    return on_large_stack(lambda: list(_flat_stages(path)))


def _flat_stages(path: Path) -> Iterator[tuple[str, f.Program]]:
    context = Context()
    try:
        value = compile_to(READABLE[0], Source(str(path), path.read_text(encoding="utf-8")), context)[1]
    except (DplError, NeedsInterpreter):
        return
    yield READABLE[0], value.copy()
    for before, name in pairwise(READABLE):
        value = compile_from(before, value, name, context)[1]
        yield name, value.copy()


def counting(block: f.Block) -> int:
    """How many reference counts are changed in a block, at how many places."""
    edit = Edit(-1, 1)
    edit.block(block)
    return edit.seen


class Edit:
    """Has the `number`-th change of a reference count done `times` times."""

    def __init__(self, number: int, times: int) -> None:
        self.number = number
        self.times = times
        self.seen = 0

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            if isinstance(bind.rhs, f.Op) and bind.rhs.op in COUNTS:
                binds += [bind] * (self.times if self.seen == self.number else 1)
                self.seen += 1
            else:
                binds.append(f.Bind(bind.vars, with_blocks(bind.rhs, self.block)))
        return f.Block(tuple(binds), block.results)
