"""docs/tour.md shows what each stage makes of its program; `pytest --bless` writes the dumps anew."""

import re
import textwrap

from conftest import ROOT
from dpl.source import Source
from dplc.pipeline import STAGES, Context, compile_from
from dplc.tools.dump import paragraphs

TOUR = ROOT / "docs" / "tour.md"
PROGRAM = re.compile(r"^```dpl\n(.*?)^```$", re.M | re.S)
DUMP = re.compile(r"^```text stage=(\S+) only=(\S+)\n(.*?)^```$", re.M | re.S)
UNCHANGED = re.compile(r"^```text unchanged\n(.*?)^```$", re.M | re.S)
NOT_SHOWN = {"load", "llvm"}  # they only change the form of the program, and the second is long


def dumps(program: str) -> dict[str, str]:
    """The program after each stage that shows it."""
    made, before, value = dict[str, str](), "", Source("main.dp", program)
    for stage in STAGES[:-1]:
        value = compile_from(before, value, stage.name, Context())[1]
        before, made[stage.name] = stage.name, stage.show(value)
    return made


def test_tour_is_true(golden) -> None:
    page = TOUR.read_text(encoding="utf-8")
    program = PROGRAM.search(page)
    assert program
    made = dumps(program[1])

    def dumped(block: re.Match[str]) -> str:
        stage, only = block[1], block[2]
        text = paragraphs(made[stage], only)
        assert text, f"nothing in the dump after {stage} is about {only}"
        return f"```text stage={stage} only={only}\n{text}\n```"

    texts = ["", *made.values()]
    unchanged = [name for before, (name, text) in zip(texts, made.items(), strict=False) if text == before]
    assert {block[1] for block in DUMP.finditer(page)} | NOT_SHOWN == made.keys() - {*unchanged}
    listed = textwrap.fill(", ".join(unchanged), 120)
    golden(TOUR, UNCHANGED.sub(lambda _: f"```text unchanged\n{listed}\n```", DUMP.sub(dumped, page)))
