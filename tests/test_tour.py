"""docs/tour.md shows what the compiler makes of its program; `pytest --bless` writes the dumps anew."""

import re

from conftest import ROOT
from dpl.source import Source
from dplc.pipeline import Context, compile_to
from dplc.tools.dump import paragraphs

TOUR = ROOT / "docs" / "tour.md"
PROGRAM = re.compile(r"^```dpl\n(.*?)^```$", re.M | re.S)
DUMP = re.compile(r"^```text stage=(\S+) only=(\S+)\n(.*?)^```$", re.M | re.S)


def test_tour_is_true(golden) -> None:
    page = TOUR.read_text(encoding="utf-8")
    program = PROGRAM.search(page)
    assert program

    def dumped(block: re.Match[str]) -> str:
        stage, only = block[1], block[2]
        made, value = compile_to(stage, Source("main.dp", program[1]), Context())
        text = paragraphs(made.show(value), only)
        assert text, f"nothing in the dump after {stage} is about {only}"
        return f"```text stage={stage} only={only}\n{text}\n```"

    golden(TOUR, DUMP.sub(dumped, page))
