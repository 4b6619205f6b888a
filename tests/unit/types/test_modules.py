"""Modules, the cached library, and names that are private."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import types
from dpl.core.verify import verify
from dpl.diagnostics import DplError
from dpl.syntax.load import load
from dpl.system import kept
from dpl.types import library
from dpl.types.check import check_all
from dpl.types.messages.pretty import show_scheme

MODEL = """
type 'a box = { v : 'a }
type shape = Circle of float | Square of float
let _secret = 3
let make x = { v = x }
let area s = match s with Circle r -> r * r | Square a -> a * a
"""
MAIN = """
import "lib/model.dp" as M
let b = M.make 3.0
let s : M.shape = M.Circle 1.0
let f (b : float M.box) = b.v
let g s = match s with M.Circle r -> r | M.Square _ -> 0.0
open M
let h = area (Square 2.0)
"""


@pytest.fixture
def program(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "model.dp").write_text(MODEL)

    def write(text: str) -> Path:
        main = tmp_path / "main.dp"
        main.write_text(text)
        return main

    return write


def test_names_of_another_module(program) -> None:
    checked = check_all(load(program(MAIN)))
    verify(checked.program)
    values = checked.exports["main"].values
    shown = {name: show_scheme(values[name].scheme).split(".")[-1] for name in ("f", "h")}
    assert shown == {"f": "box -> float", "h": "float"}


def test_private_and_missing_names(program) -> None:
    with pytest.raises(DplError) as caught:
        check_all(load(program(MAIN + "let x = M._secret\nlet y = M.nothing\nlet z = _secret")))
    assert [d.code for d in caught.value.diagnostics] == ["E0561", "E0561", "E0202"]


def test_the_library_survives_a_damaged_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library.library.cache_clear()
    first = library.library()
    (cached,) = cache.glob("stdlib-*.bin")
    whole, damaged = cached.read_bytes(), tmp_path / cached.name
    data = kept.read(cached)
    damaged.write_bytes(whole[:1000])
    monkeypatch.setattr(library, "packed_library", lambda: data)  # to check it takes seconds
    monkeypatch.setenv("DPL_CACHE", str(tmp_path))
    library.library.cache_clear()
    again = library.library()
    assert set(again.modules) == set(first.modules) and set(again.definitions) == set(first.definitions)
    assert len(damaged.read_bytes()) > 1000
    library.library.cache_clear()


def test_the_whole_library_is_well_formed() -> None:
    checked = check_all([])
    verify(checked.program, library=True)


def test_open_shadows_what_was_declared_before() -> None:
    assert types("let rev x = x\nopen List\nlet a = rev [1;]\nlet rev x = (x, x)\nlet b = rev 1", "a", "b") == [
        "int list",
        "int * int",
    ]


def test_operators_of_a_module_that_is_opened(program, tmp_path) -> None:
    (tmp_path / "lib" / "operators.dp").write_text("let ( +. ) a b = a ++ b\n")
    main = program('import "lib/operators.dp" as Operators\nopen Operators\nlet it = [1.0] +. [2.0]')
    assert show_scheme(check_all(load(main)).exports["main"].values["it"].scheme) == "float[2]"
