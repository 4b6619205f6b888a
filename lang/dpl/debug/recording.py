"""The interpreter of programs that look at their own sweeps: every number knows where it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from dpl.core import term as c
from dpl.debug.compiler import Instruments
from dpl.debug.journal import Unwritten
from dpl.debug.points import Places
from dpl.debug.run import Debugged


class Recording(Debugged):
    def __init__(self, program: c.Program, args: Sequence[str] = (), out: TextIO | None = None) -> None:
        self.places = Places()
        super().__init__(program, args, out)
        journal = Unwritten(self.world.out)
        self._compiler.instruments = Instruments(self.places, journal, {}, {}, lambda *_: None)  # pyrefly: ignore[missing-attribute]

    def add(self, items: Sequence[c.Def | c.Do | c.Expect]) -> None:
        super().add(items)
        for item in items:
            self.places.add(item)
