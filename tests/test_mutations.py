"""Programs with a mistake in them: always a diagnostic that stands inside its text, never a traceback, never a hang.

Each mutant is a valid program with a token or two deleted, swapped, doubled or replaced, a name misspelt, a size
changed, or its text cut.  Many are still programs: that is fine.  `MUTANTS_FROM=7 pytest -k mutants` starts elsewhere.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
from functools import cache

import pytest
from conftest import ROOT, one_in
from dpl.diagnostics import Diagnostic, DplError, unmarked
from dpl.render import render
from dpl.source import Source, Span
from dpl.syntax.load import load
from dpl.types.check import check_all

FIRST = int(os.environ.get("MUTANTS_FROM", "0"))
BATCH = 100
SECONDS = 10  # for one mutant, on a machine that does much else
MOST_LINES, MOST_MESSAGES = 40, 25
LEXEME = re.compile(r"\s+|--[^\n]*|\w+'*|\"(?:[^\"\\]|\\.)*\"|[-+*/=<>|:!@&;.]+|.", re.DOTALL)
INTERNAL = re.compile(r"[!?][a-zA-Z]*\.?\d|Meta|\bNone of\b|<dpl|object at 0x")
MORE = """in let rec if then else match with fun -> = | ( ) [ ] { } , ; : :: 0 1.5 "s" x Some 'a λ @ + type do loop
    shift reset grad ref ! := float $"{ # end _ ? :>"""


@cache
def programs() -> list[str]:
    folders = ("tests/agree/programs", "tests/agree/gradients", "tests/agree/cases", "examples")
    texts = [p.read_text(encoding="utf-8") for folder in folders for p in sorted((ROOT / folder).glob("*.dp"))]
    return [text for text in texts if text.count("\n") <= MOST_LINES and "import" not in text]


def mutant(seed: int) -> str:
    """A valid program with one to three mistakes."""
    chance = random.Random(seed)
    text = chance.choice(programs())
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text = chance.choice(MISTAKES)(text, chance)
    return text


def tokens(text: str) -> list[str]:
    return LEXEME.findall(text)


def at_token(change):
    """A mistake at a random token that is no blank: `change(parts, i, chance)` may change them."""

    def mistake(text: str, chance: random.Random) -> str:
        parts = tokens(text)
        places = [i for i, part in enumerate(parts) if not part.isspace() and not part.startswith("--")]
        if places:
            change(parts, chance.choice(places), chance)
        return "".join(parts)

    return mistake


@at_token
def deleted(parts: list[str], i: int, chance: random.Random) -> None:
    parts[i] = ""


@at_token
def doubled(parts: list[str], i: int, chance: random.Random) -> None:
    parts[i] = f"{parts[i]} {parts[i]}"


@at_token
def swapped(parts: list[str], i: int, chance: random.Random) -> None:
    j = min(i + chance.choice((1, 2, 2, 4)), len(parts) - 1)
    parts[i], parts[j] = parts[j], parts[i]


@at_token
def replaced(parts: list[str], i: int, chance: random.Random) -> None:
    parts[i] = f" {chance.choice(MORE.split())} "


@at_token
def inserted(parts: list[str], i: int, chance: random.Random) -> None:
    parts[i] = f" {chance.choice(MORE.split())} {parts[i]}"


@at_token
def other_word(parts: list[str], i: int, chance: random.Random) -> None:
    """A name in the place of another."""
    words = [k for k, part in enumerate(parts) if part[:1].isalpha()]
    if words:
        parts[chance.choice(words)] = parts[chance.choice(words)]


@at_token
def misspelt(parts: list[str], i: int, chance: random.Random) -> None:
    words = [k for k, part in enumerate(parts) if part[:1].isalpha() and len(part) > 2]
    if words:
        k = chance.choice(words)
        at = chance.randrange(len(parts[k]))
        parts[k] = parts[k][:at] + parts[k][at + 1 :]


@at_token
def other_number(parts: list[str], i: int, chance: random.Random) -> None:
    """A size, an index or a count changed."""
    numbers = [k for k, part in enumerate(parts) if part.isdigit()]
    if numbers:
        parts[chance.choice(numbers)] = str(chance.choice((0, 1, 2, 3, 7, 2**63, 10**30)))


def cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def line_lost(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    del lines[chance.randrange(len(lines))]
    return "\n".join(lines)


MISTAKES = (deleted, doubled, swapped, replaced, inserted, other_word, misspelt, other_number, cut, line_lost)


# ---- what must hold


def examine(text: str) -> list[Diagnostic]:
    """The messages about a program; anything but messages fails."""
    source = Source("mutant.dp", text)
    sys.setrecursionlimit(100_000)  # of deep programs in deep stacks of pytest
    try:
        return check_all(load(source)).warnings
    except DplError as error:
        assert error.diagnostics
        return error.diagnostics


def is_well_formed(d: Diagnostic, text: str) -> None:
    assert re.fullmatch(r"[EW]\d{4}", d.code), d
    title = unmarked(d.title)
    assert title and "\n" not in title and not INTERNAL.search(title), title
    spans = [d.span, *(label.span for label in d.labels), *(edit.span for edit in d.edits)]
    assert d.span is not None, title
    for span in spans:
        assert isinstance(span, Span)
        inside = len(span.source.text) if span.source.name != "mutant.dp" else len(text)
        assert 0 <= span.start <= span.end <= inside, (title, span)
    assert d.span.source.name == "mutant.dp", (title, d.span)
    for width in (40, 100):
        render(d, width=width)


def run(seeds: range) -> None:
    for seed in seeds:
        text = mutant(seed)
        signal.alarm(SECONDS)
        try:
            messages = examine(text)
            for d in messages:
                is_well_formed(d, text)
            assert len(messages) <= MOST_MESSAGES and len({(d.title, d.span) for d in messages}) == len(messages)
        except BaseException as failure:
            raise AssertionError(f"mutant {seed}: {type(failure).__name__}: {failure}\n{text}") from failure
        finally:
            signal.alarm(0)


@pytest.fixture(autouse=True)
def no_hang():
    def stop(_signal, _frame):
        raise TimeoutError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_the_originals_are_programs() -> None:
    """The quick run has them in the tests of their folders."""
    for text in programs():
        assert not [d for d in examine(text) if d.severity == "error"], text


@pytest.mark.parametrize("batch", one_in(2, range(20)))
def test_mutants(batch: int) -> None:
    start = FIRST + batch * BATCH
    run(range(start, start + BATCH))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(20))
def test_many_mutants(batch: int) -> None:
    start = 100_000 + batch * 10 * BATCH
    run(range(start, start + 10 * BATCH))
