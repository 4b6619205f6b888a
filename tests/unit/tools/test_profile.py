"""`dpl profile`: the line that takes the time is named, and the pictures can be read."""

import json
import xml.dom.minidom
from pathlib import Path

from dplc.tools.profile.flame import flame
from dplc.tools.profile.pictures import chrome, speedscope

PROGRAM = """let busy (x : float) =
  loop s = x for i < 6000000 do
    sin (s + float i)
let idle (x : float) = x + 1.0
do print (idle (busy 1.0) > 0.0)
"""
STACKS = [["main (a.dp:1)", "f (a.dp:2)"], ["main (a.dp:1)", "f (a.dp:2)"], ["main (a.dp:1)", "g <x> (a.dp:3)"]]


def test_the_busy_line(dpl, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text(PROGRAM)
    out = [tmp_path / name for name in ("flame.svg", "trace.json", "scope.json")]
    run = dpl("profile", "--flame", out[0], "--trace", out[1], "--speedscope", out[2], program)
    assert run.returncode == 0 and run.stdout in ("true\n", "false\n"), run.stderr
    lines = run.stderr.partition("line\n")[2].splitlines()
    assert "main.dp:3  sin (s + float i)" in lines[0] and "processor time" in run.stderr
    assert xml.dom.minidom.parse(str(out[0])) and json.loads(out[1].read_text()) and json.loads(out[2].read_text())


def test_failures_and_bad_programs(dpl, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text('do print 1\ndo error "no"\n')
    run = dpl("profile", program)
    assert (run.returncode, run.stdout) == (1, "1\n") and "error[R0706]: no" in run.stderr
    program.write_text("let x = (\n")
    assert dpl("profile", program).returncode == 1


def test_pictures() -> None:
    drawn = flame([[(name, "reverse sweep" if "f (" in name else "") for name in stack] for stack in STACKS], 0.001)
    assert "f (a.dp:2): 0.002 s, 66.7 %, reverse sweep" in drawn and "g &lt;x&gt;" in drawn
    boxes = [g for g in xml.dom.minidom.parseString(drawn).getElementsByTagName("g") if g.getAttribute("class") == "b"]
    widths = {g.getAttribute("data-n"): float(g.getAttribute("data-w")) for g in boxes}
    assert widths == {"all": 1200.0, "main (a.dp:1)": 1200.0, "f (a.dp:2)": 800.0, "g <x> (a.dp:3)": 400.0}
    spans = {(e["name"], e["ts"], e["dur"]) for e in json.loads(chrome(STACKS, 0.001))["traceEvents"]}
    assert spans == {("main (a.dp:1)", 0.0, 3000.0), ("f (a.dp:2)", 0.0, 2000.0), ("g <x> (a.dp:3)", 2000.0, 1000.0)}
    made = json.loads(speedscope(STACKS, 0.001))["profiles"][0]
    assert made["samples"] == [[0, 1], [0, 1], [0, 2]] and made["weights"] == [0.001] * 3
