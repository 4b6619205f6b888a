"""`dpl repl` and what goes wrong: every mishap is told, and leaves the session as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from dplc.tools.repl.loop import answer
from dplc.tools.repl.session import Session

ENGINES = pytest.mark.parametrize("engine", ["native", "interp"])

MISHAPS = {
    ":nothing": "there is no `:nothing`",
    ":": "there is no `:`",
    ":t 1": "`:t` may be :type or :time",
    ":type": "the type of what?",
    ":type 1 +": "E0101",
    ":doc": "what is what for?",
    ":doc nowhere": "there is no `nowhere`",
    ":time": "the time of what?",
    ":engine steam": "which engine?  native or interp",
    ":dump sideways": "which stage?",
    ":reload": "no file was loaded",
    ":load": "which file?",
    ":load nowhere.dp": "E0510",
    ":load .": "E0511",
    ":load wrong.dp": "wrong.dp:2:5",
    "let a = 1\n  let b =": "E0101",
    "let a = 1; let = 2": "E0101",
    "let (a, kept) = (1, kept + 1.5)": "E0204",
    "kept[7]": "R0705",
    "1 / (kept[0] - kept[0])": "R0701",
    "assert (kept[0] = 100)": "R0707",
    'ignore (error "mine" : int)': "R0706",
    "let rec deep n = 1 + deep (n + 1) in deep 0": "R0801",
    "zeros 100000000000000": "R0802",
    "let add x = x + 300 in add 1u8": "E0214",
    "import Nowhere": "E0515",
    "type t = Missing of nowhere": "E0203",
    "(1 + [2": "E0102",
    '"half': "E01",
    "\N{PILE OF POO}": "E0105",
    "\x00": "E01",
}


@ENGINES
def test_the_session_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], engine: str
) -> None:
    (tmp_path / "wrong.dp").write_text("let b = 1\nlet = 2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPL_STACK", "64")
    session = Session(engine)
    assert answer(session, "let kept = [1, 2]")
    for i, (mishap, said) in enumerate(MISHAPS.items()):
        capfd.readouterr()
        assert not answer(session, mishap), mishap
        assert answer(session, f"kept[{i % 2}]")
        out, err = capfd.readouterr()
        assert (said in err, "internal error" in err, out) == (True, False, f"it : int = {i % 2 + 1}\n"), (mishap, err)
    for name in ("a", "b", "deep"):
        assert not session.enter(name)


@ENGINES
def test_an_open_bracket_at_the_end(dpl, engine: str) -> None:
    run = dpl("repl", "--engine", engine, stdin="1 + 1\nlet x = [1,\n")
    assert run.stdout == "it : int = 2\n" and run.stderr.count("error[E0102]") == 1 and run.returncode == 1


@ENGINES
def test_a_paste_with_an_error(dpl, engine: str) -> None:
    """Inputs before and after it are done, those that need it are not."""
    run = dpl("repl", "--engine", engine, stdin='let a = 1\nlet b = a + "x"\nlet c = b\nlet d = a + 1\n')
    assert run.stdout == "a : int = 1\nd : int = 2\n" and run.stderr.count("error[") == 2


@ENGINES
def test_types_that_are_declared_again(dpl, engine: str) -> None:
    """Old values keep the old type."""
    text = 'type t = { u : int }\nlet v = { u = 1 }\ntype t = { u : string }\nv\nlet w = { u = "s" }\nlet x : t = v\n'
    run = dpl("repl", "--engine", engine, stdin=text)
    assert run.stdout == 'v : t = { u = 1 }\nit : t = { u = 1 }\nw : t = { u = "s" }\n'
    assert "E0201" in run.stderr and run.returncode == 1


@ENGINES
def test_files_that_change(tmp_path: Path, capfd: pytest.CaptureFixture[str], engine: str) -> None:
    file = tmp_path / "it.dp"
    file.write_text("let x = 1\n")
    session = Session(engine)
    assert session.load(file) and session.enter("let mine = 5")
    for wrong in ("let = 3\n", "let x = [1][2]\n"):
        file.write_text(wrong)
        assert not session.reload(file) and session.enter("mine + x")  # all is as it was
    file.write_text("let x = 2\n")
    assert session.reload(file) and session.enter("x * 10") and not session.enter("mine")
    out, err = capfd.readouterr()
    assert out == "x : int = 1\nmine : int = 5\nit : int = 6\nit : int = 6\nx : int = 2\nit : int = 20\n"
    assert err.count("error[") == 3


def test_documentation(dpl) -> None:
    text = "-- | Twice\n-- as much.\nlet twice x = 2.0 * x\n:doc twice\n:doc (+)\n:doc Tree\n:doc Nobody\n"
    run = dpl("repl", stdin=text)
    assert "Twice\nas much.\n" in run.stdout and "\nsum\n" in run.stdout
    assert "Tree.axpy a x y : float -> 'a -> 'a -> 'a with 'a : diff\n" in run.stdout
    assert run.stderr == "there is no `Nobody`\n"


def test_fields_of_fields_are_offered() -> None:
    session = Session("interp")
    session.enter("type (n, m) layer = { w : float[n, m]; f : float }")
    session.enter("let l = { w = [[1.0, 2.0]]; f = 1.0 }")
    session.enter("type outer = { inner : (1, 2) layer; k : int }")
    session.enter("let o = { inner = l; k = 1 }")
    assert session.names("o") == {"inner": "(1, 2) layer", "k": "int"}
    assert session.names("l") == session.names("o.inner") == {"w": "float[1, 2]", "f": "float"}
    for nothing in ("o.k", "o.inner.w", "o.missing.f", "missing", "Plot.line", "Missing.x"):
        assert session.names(nothing) == {}


@ENGINES
def test_what_a_failed_print_began_is_dropped(dpl, engine: str) -> None:
    inputs = "let kept = filter (fun x -> x > 0.0) [1.0, -2.0, 3.0]\nprint (kept + [1.0, 2.0, 3.0])\nshow 1\n"
    run = dpl("repl", "--engine", engine, stdin=inputs)
    assert "R0703" in run.stderr and run.stdout.endswith('it : string = "1"\n')
