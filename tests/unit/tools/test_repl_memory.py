"""What a session keeps: all to which a name leads, and nothing else."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from dplc.machine.run.execute import Loaded
from dplc.tools.repl.interpreted import Interpreted
from dplc.tools.repl.session import Session

ENGINES = pytest.mark.parametrize("engine", ["native", "interp"])
INPUTS = ("i + 1", "[for k < 1000 -> float k]", 'let a = "abc" ++ show i', "let f x = x + i", "(it, [1, 2])")

STILL_THERE = """
let x = [1.0, 2.0]
let f y = y + x
let s = "abc"
let t = s
let x = [5.0, 6.0]
let x = x + 1.0
let x = x + 1.0
let r = ref "ab"
let q = (ref ["k"; t], 1)
let both = (r, q)
r := "assigned later"
(fst q) := ["one"; "two"]
let both = 1
do (r := "and then a failure"; print (error "stop"))
let s = "def"
let s = t ++ s
"gh" ++ "i"
let s = s ++ error "stop"
let (u, v) = (s, [it; "k"])
let u = 1
it ++ "j"
it ++ "k"
do print_string "done"
f [1.0, 1.0]
(x, t, s, v, it, !r, !(fst q))
"""
LAST = '([7.0, 8.0], "abc", "abcdef", ["ghi"; "k"], [2.0, 3.0], "and then a failure", ["one"; "two"])'


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPL_CACHE", str(cache))


def resident() -> int:
    """Kilobytes of memory in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def enter(session: Session, rounds: int) -> int:
    """The number of objects afterwards."""
    for _ in range(rounds):
        for text in INPUTS:
            assert session.enter(text)
    gc.collect()
    return len(gc.get_objects())


@ENGINES
def test_what_has_lost_its_name_goes(fresh_heap, engine: str) -> None:
    session = Session(engine)
    assert session.enter("let i = 1")
    before, memory = enter(session, 1), resident() if Path("/proc/self/statm").exists() else 0
    after = enter(session, 3)
    assert after - before < 3 * len(INPUTS) * 20
    assert len(session.program.items) < 8
    assert sum(isinstance(o, Loaded) for o in gc.get_objects()) < 12
    if memory:
        assert resident() - memory < 3 * len(INPUTS) * 80


@ENGINES
def test_what_a_name_leads_to_stays(engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    session = Session(engine)
    for text in STILL_THERE.strip().splitlines():
        assert session.enter(text) == ("error" not in text), text
    assert capfd.readouterr().out.strip().endswith(LAST)


def test_the_interpreter_drops_old_values() -> None:
    """Those of definitions whose names others took, at all of their instances."""
    session = Session("interp")
    assert session.enter("let none = []\nlet both = (1 :: none, 1.0 :: none)")
    for _ in range(40):
        assert session.enter("let big = [for i < 1000 -> i]\nlet none = []\nlet both = (1 :: none, 1.0 :: none)")
    assert isinstance(session.engine, Interpreted)
    own = [key for key in session.engine.interpreter._values if key[0].startswith("main.")]
    assert 0 < len(own) < 20
