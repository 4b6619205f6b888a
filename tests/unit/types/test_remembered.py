"""Modules that have not changed are neither parsed nor checked again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dpl.diagnostics import DplError
from dpl.eval.run import run
from dpl.syntax import load as loading
from dpl.system import kept
from dpl.types import check as checking
from dpl.types.library import library

BASE = "let scale = 2.0\nlet apply w x = let unused = 1 in w @ x\n"
MODEL = 'import "base.dp" as Base\nlet twice w x = Base.apply w (Base.apply w x)\nlet double x = Base.scale * x\n'
MAIN = 'import "model.dp" as Model\ndo print (Model.double 4.0)\n'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    library()  # in its own cache, before the folder changes
    monkeypatch.setenv("DPL_CACHE", str(tmp_path / "cache"))
    for name, text in (("base", BASE), ("model", MODEL), ("main", MAIN)):
        (tmp_path / f"{name}.dp").write_text(text, encoding="utf-8")
    return tmp_path / "main.dp"


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which files are parsed, and which modules checked, from here on."""
    seen: list[str] = []
    parse, check = loading.parse, checking.check_module

    def noted_parse(source):
        seen.append(f"parse {Path(source.name).stem}")
        return parse(source)

    def noted_check(name, *rest):
        seen.append(f"check {name}")
        return check(name, *rest)

    monkeypatch.setattr(loading, "parse", noted_parse)
    monkeypatch.setattr(checking, "check_module", noted_check)
    return seen


def check(main: Path) -> checking.Checked:
    return checking.check_all(loading.load(main))


def test_only_what_changed(program: Path, looked_at: list[str]) -> None:
    first = check(program)
    assert sorted(looked_at) == ["check Base", "check Model", "check main", "parse base", "parse main", "parse model"]
    looked_at.clear()
    again = check(program)
    assert looked_at == ["parse main", "check main"]
    assert [w.title for w in again.warnings] == [w.title for w in first.warnings] == ["`unused` is never used"]
    looked_at.clear()
    model = program.with_name("model.dp")
    model.write_text(MODEL + "let more = 1\n", encoding="utf-8")
    check(program)
    assert sorted(looked_at) == ["check Model", "check main", "parse main", "parse model"]
    looked_at.clear()
    program.with_name("base.dp").write_text(BASE.replace("2.0", "3.0"), encoding="utf-8")
    check(program)
    assert "check Base" in looked_at and "check Model" in looked_at  # it may depend on it


def test_what_is_recalled_runs(program: Path, capsys: pytest.CaptureFixture) -> None:
    for _ in range(2):
        run(check(program).program)
        assert capsys.readouterr().out == "8.0\n"


def test_an_error_is_explained_in_a_recalled_module(program: Path) -> None:
    program.write_text(MAIN + "let w = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]\ndo print (Model.twice w [1.0, 2.0, 3.0])\n")
    found = []
    for _ in range(2):
        with pytest.raises(DplError) as caught:
            check(program)
        (error,) = caught.value.diagnostics
        found.append(error)
        assert error.code == "E0303" and [c.name for c in error.path] == ["Model.twice", "Base.apply"]
        assert error.span is not None and error.span.source.name.endswith("base.dp")
    assert found[0].title == found[1].title and found[0].path == found[1].path


@pytest.mark.parametrize("damage", [b"", b"rubbish", b"\x80\x05N."])
def test_a_damaged_entry_costs_only_time(program: Path, looked_at: list[str], damage: bytes) -> None:
    check(program)
    for folder in ("modules", "imports"):
        for entry in (kept.cache_dir() / folder).iterdir():
            entry.write_bytes(damage)
    looked_at.clear()
    assert not [w for w in check(program).warnings if w.severity == "error"]
    assert "check Base" in looked_at


def test_without_a_place_to_write(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPL_CACHE", os.devnull)
    check(program)
    check(program)
