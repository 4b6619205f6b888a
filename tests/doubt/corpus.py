"""The programs that every run of the tests judges: few, chosen by `distil.py` from many random ones.

A file of `corpus/` holds some of them, each under a line of comment that says how it is judged:

    -- 7.31 native; roads: forward, reverse; features: refs
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from doubt.programs import Program
from doubt.writer import Features

FOLDER = Path(__file__).parent / "corpus"
HEAD = re.compile(r"^-- (\d+\.\d+) (\w+); roads: (.*); features: (.*)$\n", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A program, the engine beside the interpreter, and where it was drawn: batch and number in it."""

    drawn: str
    engine: str
    program: Program

    @property
    def text(self) -> str:
        features = ", ".join(name for name, on in asdict(self.program.features).items() if on)
        roads = ", ".join(self.program.roads)
        return f"-- {self.drawn} {self.engine}; roads: {roads}; features: {features}\n{self.program.body}"


def read(file: Path) -> list[Case]:
    _, *parts = HEAD.split(file.read_text(encoding="utf-8"))
    return [case(*parts[i : i + 5]) for i in range(0, len(parts), 5)]


def case(drawn: str, engine: str, roads: str, features: str, body: str) -> Case:
    chosen = Features(**dict.fromkeys(filter(None, features.split(", ")), True))
    return Case(drawn, engine, Program(body, tuple(roads.split(", ")), chosen))


def write(file: Path, cases: Iterable[Case]) -> None:
    file.write_text("".join(case.text for case in cases), encoding="utf-8")
