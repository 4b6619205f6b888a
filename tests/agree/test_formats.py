"""Formats in interpolated strings: what their page says, and Python's `format` for whatever format and number.

All of it is one program, which both engines run.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from pathlib import Path
from random import Random

import pytest
from dpl import resources
from dpl.core import formats

ROW = re.compile(r"^\| `(\{.*\})` \| `(.*)` \|$", re.MULTILINE)
FILLS = ["", "", "", "<", ">", "^", "*>", "é^", "0<", "-=", "0="]
BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}


def page() -> list[tuple[str, str]]:
    rows = ROW.findall((resources.codes() / "E0220.md").read_text(encoding="utf-8"))
    assert len(rows) > 25
    return rows


def spec(dice: Random, letters: str) -> str:
    parts = (
        FILLS,
        ["", "", "+", "-", " "],
        ["", "", "", "#"],
        ["", "", "0"],
        ["", "", "7", "15", "24"],
        ["", "", ",", "_"],
        ["", "", ".0", ".1", ".3", ".12"],
        ["", *letters],
    )
    return "".join(dice.choice(part) for part in parts)


def integer(dice: Random) -> tuple[str, int]:
    kind = dice.choice(list(BITS))
    low, high = (0, 1 << BITS[kind]) if kind[0] == "u" else (-1 << BITS[kind] - 1, 1 << BITS[kind] - 1)
    n = dice.choice([low, high - 1, dice.randrange(low, high), dice.randrange(low, high) >> dice.randrange(BITS[kind])])
    return f"{n}{'' if kind == 'i64' else kind}", n


def number(dice: Random) -> tuple[str, float]:
    x = dice.choice([0.0, -0.0, 0.5, dice.uniform(-10, 10), dice.uniform(-1, 1) * 10 ** dice.randint(-12, 20)])
    if dice.random() < 0.3:
        (single,) = struct.unpack("f", struct.pack("f", x))
        return f"{single!r}f32", single
    return repr(x), x


def words(dice: Random) -> tuple[str, str]:
    word = dice.choice(["", "abc", "größer", "日本語 €"])
    return f'"{word}"', word


def drawn(seed: int, count: int) -> list[tuple[str, str]]:
    """Values with formats, and what Python writes."""
    dice = Random(seed)
    made: list[tuple[str, str]] = []
    while len(made) < count:
        draw, kind, letters = dice.choice(
            [(integer, "int", "dboxXeEfFgG%"), (number, "float", "eEfFgG%"), (words, "", "s")]
        )
        (text, value), form = draw(dice), spec(dice, letters)
        try:
            read = formats.read(form)
            expected = format(value, form)
        except ValueError:
            continue
        if (
            form
            and formats.suits(read, frozenset({kind}) - {""}, bool(kind))
            and (read.letter or read.precision or not text.endswith("f32"))
        ):
            made.append((f"{{({text}):{form}}}", expected))
    return made


@cache
def rows() -> list[tuple[str, str]]:
    return [*page(), *drawn(1, 400)]


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_formats(dpl, tmp_path: Path, engine: str) -> None:
    program = tmp_path / "main.dp"
    program.write_text("".join(f'do print $"{hole}|"\n' for hole, _ in rows()), encoding="utf-8")
    run = dpl("run", "--engine", engine, program)
    assert run.returncode == 0, run.stderr
    for (hole, expected), line in zip(rows(), run.stdout.splitlines(), strict=True):
        assert line == f"{expected}|", hole


def test_the_same_in_data(dpl, tmp_path: Path) -> None:
    """Each number inside as Python writes it."""
    dice = Random(2)
    floats = [number(dice) for _ in range(8)]
    wide = [(text, x) for text, x in floats if not text.endswith("f32")]
    texts, values = ", ".join(text for text, _ in wide), [x for _, x in wide]
    forms = [form for form in (".2f", "+.3e", "010.1f", "_.0f", ">12.4g", ".1%") if form]
    program = tmp_path / "main.dp"
    program.write_text("".join(f'do print $"{{[{texts}]:{form}}}"\n' for form in forms), encoding="utf-8")
    run = dpl("run", program)
    assert run.stdout.splitlines() == [f"[{', '.join(format(x, form) for x in values)}]" for form in forms]
