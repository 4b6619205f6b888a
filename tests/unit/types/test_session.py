"""Programs that grow declaration by declaration."""

from __future__ import annotations

import pytest
from dpl.diagnostics import DplError
from dpl.source import Source
from dpl.syntax.load import load
from dpl.types.messages.pretty import show_scheme
from dpl.types.session import Session


def added(session: Session, *texts: str) -> list[str]:
    """The names in core of what the last text defines."""
    names: list[str] = []
    for text in texts:
        items = session.add(load(Source("<input>", text)))
        names = [getattr(item, "name", type(item).__name__) for item in items]
        session.settle()
    return names


def types(session: Session) -> dict[str, str]:
    return {name: show_scheme(value.scheme) for name, value in session.exports().values.items()}


def test_redefinition() -> None:
    session = Session()
    assert added(session, "let f x = x + 1") == ["main.f"]
    assert added(session, "let y = f 2", "let f = y * 2") == ["main.f#2"]
    assert types(session) == {"f": "int", "y": "int"}


def test_a_type_declared_again() -> None:
    session = Session()
    added(session, "type t = A | B", "let old = A", "type t = A of float", "let new = A 1.0")
    with pytest.raises(DplError):
        added(session, "let same = [old; new]")
    assert added(session, "let r = match new with A x -> x") == ["main.r"]


@pytest.mark.parametrize("bad", ["let y = x + nowhere", "type u = C of nowhere", "let z = 1 let x = 2 + true", "let ="])
def test_errors_leave_nothing_behind(bad: str) -> None:
    session = Session()
    added(session, "let x = 1", "type t = A of int")
    before = types(session), set(session.datas)
    with pytest.raises(DplError):
        added(session, bad)
    assert (types(session), set(session.datas)) == before
    assert added(session, "let w = x + (match A 2 with A n -> n)") == ["main.w"]


def test_open_and_import(tmp_path) -> None:
    (tmp_path / "mine.dp").write_text("let two = 2\nlet _one = 1\n", encoding="utf-8")
    session = Session()
    source = Source("<input>", "import Mine\nlet four = Mine.two * 2", tmp_path / "session.dp")
    assert [item.name for item in session.add(load(source))] == ["Mine.two", "Mine._one", "main.four"]
    added(session, "open List")
    assert added(session, "let n = length [1; 2] + Mine.two") == ["main.n"]
    assert added(session, "import List as L\nlet m = L.length [1; 2]") == ["main.m"]  # a module of the library
