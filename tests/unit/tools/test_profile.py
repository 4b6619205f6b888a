"""`dpl profile`: the line that takes the time is named, and the pictures can be read."""

import json
import os
import signal
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

from dplc.tools.profile.flame import Amount, flame
from dplc.tools.profile.pictures import chrome, speedscope
from dplc.tools.profile.profile import COARSE

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


SHARED = """let work n = sum [for i < n -> sin (cos (sin (float i)))]
do print (work (2000000 + List.length Sys.args) > 0.0)
"""


def test_threads_are_met_too(dpl, tmp_path: Path) -> None:
    """What a second thread does of a loop is not lost, and has the callers of the loop."""
    program = tmp_path / "main.dp"
    program.write_text(SHARED)
    run = dpl("profile", program, DPL_THREADS="2")
    assert run.returncode == 0, run.stderr
    head = run.stderr.split()
    count, seconds = int(head[0]), float(head[2])
    assert count > (120 if COARSE in run.stderr else 185) * seconds, run.stderr
    total = next(line for line in run.stderr.splitlines() if "main.dp:2 " in line).split()[2]
    assert float(total) > 60, run.stderr


def test_failures_and_bad_programs(dpl, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text('do print 1\ndo error "no"\n')
    run = dpl("profile", program)
    assert (run.returncode, run.stdout) == (1, "1\n") and "error[R0706]: no" in run.stderr
    program.write_text("let x = (\n")
    assert dpl("profile", program).returncode == 1
    assert "--trace shows time" in dpl("profile", "--memory", "--trace", "t.json", program).stderr


def test_pictures_that_cannot_be_written(dpl, tmp_path: Path) -> None:
    """The table comes first: the run is not lost."""
    program = tmp_path / "main.dp"
    program.write_text("do print 1\n")
    run = dpl("profile", "--flame", tmp_path / "none" / "flame.svg", program)
    assert (run.returncode, run.stdout) == (1, "1\n")
    assert "too short for samples" in run.stderr and "flame.svg: No such file" in run.stderr


MAKES = """let squares n = [for i < n -> float (i * i)]
let list n = List.init n float
let work n =
  let xs = squares n in
  sum xs + xs[n / 2] + sum (squares (2 * n))
do print (work (1000 + List.length Sys.args) > 0.0)
do print (List.length (list 50))
do print (work (2000 + List.length Sys.args) > 0.0)
"""


def test_memory(dpl, tmp_path: Path) -> None:
    """The lines that make blocks are named, with all their bytes and those that lived at the peak."""
    program, out = tmp_path / "main.dp", tmp_path / "flame.svg"
    program.write_text(MAKES)
    run = dpl("profile", "--memory", "--flame", out, program)
    assert (run.returncode, run.stdout) == (0, "true\n50\ntrue\n"), run.stderr
    rows = {line.split("main.dp:")[1][0]: line.split() for line in run.stderr.splitlines() if "main.dp:" in line}
    at_peak, made = " ".join(rows["1"][:2]), " ".join(rows["1"][2:4])
    assert (at_peak, made) == ("16.0 kB", "24.1 kB"), run.stderr  # the second `squares` of a sum makes no array
    assert " bytes, " in out.read_text() and xml.dom.minidom.parse(str(out))


TREE = """\
type tree = Leaf of float | Node of tree * tree
let rec build n x = if n = 0 then Leaf x else Node (build (n - 1) (x * 0.9), build (n - 1) (x + 0.1))
let rec total t = match t with
  | Leaf x -> sin x
  | Node (l, r) -> tanh (total l + total r)
let t = build 14 0.5
do print (match grad total t with Leaf x -> x | Node _ -> 1.0)
"""


def test_makers_in_a_tree(dpl, tmp_path: Path) -> None:
    """Each path through a tree is a chain of calls of its own; all blocks are found, still.  Each has a line: a
    gradient in the form of its argument is made where it is asked for."""
    program = tmp_path / "main.dp"
    program.write_text(TREE)
    run = dpl("profile", "--memory", program)
    _, lines, functions = run.stderr.split("self   total  ")
    for table in (lines, functions):
        shares = [float(row.split("%")[0].split()[-1]) for row in table.splitlines() if "%" in row]
        assert run.returncode == 0 and 98 < sum(shares) < 102, table
    assert "grad" in functions and "top level" not in functions  # what the compiler has made has its function's name


def test_no_memory(dpl, tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text("let x = 1.5\n")
    run = dpl("profile", "--memory", program)
    assert run.returncode == 0 and "no memory was asked for" in run.stderr


def test_makers_of_blocks_that_come_and_go(dpl, tmp_path: Path) -> None:
    """The table of blocks grows, and forgets those that are freed: nothing lives in the end but what is used."""
    program = tmp_path / "main.dp"
    program.write_text("""let build n = List.init n float
let go n = loop s = 0.0 for i < n do s + List.sum (build 3000)
do print (go 20)
let kept = build 50000
do print (List.sum kept)
""")
    run = dpl("profile", "--memory", program)
    assert run.returncode == 0, run.stderr
    head = run.stderr.splitlines()[0]
    bytes_all, _, _, blocks = head.split()[:4]
    assert int(blocks.replace(",", "")) >= 20 * 3000 + 50000 and "at most" in head, head
    assert float(bytes_all) > 2 * float(head.split("at most ")[1].split()[0]) - 1, head


LOADED = """
import os, dpl
dpl.load("heavy.dp").heavy(1.0)
with open(f"/tmp/perf-{os.getpid()}.map") as map:
    rows = [line.split(maxsplit=2) for line in map]
os.remove(map.name)
print(any("heavy" in name and int(size, 16) > 0 and int(start, 16) > 0 for start, size, name in rows))
"""


def test_map_for_perf(dpl, tmp_path: Path) -> None:
    """`perf` finds the functions of `dpl.load` in a map, if it is asked for."""
    text = "export let heavy (x : float) : float = loop s = x for i < 3 do s + sin (float i)\n"
    (tmp_path / "heavy.dp").write_text(text)
    run = subprocess.run([sys.executable, "-c", LOADED], cwd=tmp_path, env={**os.environ, "DPL_PERF": "1"}, timeout=60,
                         capture_output=True, text=True, check=False)  # fmt: skip
    assert run.stdout == "True\n", run.stderr


def test_pictures() -> None:
    coloured = [([(name, "reverse sweep" if "f (" in name else "") for name in stack], 1) for stack in STACKS]
    drawn = flame(coloured, Amount("s", 0.001))
    assert "f (a.dp:2): 0.002 s, 66.7 %, reverse sweep" in drawn and "g &lt;x&gt;" in drawn
    boxes = [g for g in xml.dom.minidom.parseString(drawn).getElementsByTagName("g") if g.getAttribute("class") == "b"]
    widths = {g.getAttribute("data-n"): float(g.getAttribute("data-w")) for g in boxes}
    assert widths == {"all": 1200.0, "main (a.dp:1)": 1200.0, "f (a.dp:2)": 800.0, "g <x> (a.dp:3)": 400.0}
    spans = {(e["name"], e["ts"], e["dur"]) for e in json.loads(chrome(STACKS, 0.001))["traceEvents"]}
    assert spans == {("main (a.dp:1)", 0.0, 3000.0), ("f (a.dp:2)", 0.0, 2000.0), ("g <x> (a.dp:3)", 2000.0, 1000.0)}
    made = json.loads(speedscope(STACKS, [0.001] * 3, "seconds"))["profiles"][0]
    assert made["samples"] == [[0, 1], [0, 1], [0, 2]] and made["weights"] == [0.001] * 3


def test_ctrl_c_ends_a_profile_with_its_table(tmp_path: Path) -> None:
    program = tmp_path / "main.dp"
    program.write_text('let rec f n = if n < 0 then n else f (n + 1)\ndo print "started"\ndo print (f 0)\n')
    command = [sys.executable, "-m", "dplc.cli", "profile", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout and run.stderr and run.stdout.readline() == "started\n"
        run.send_signal(signal.SIGINT)
        told = run.stderr.read()
    assert run.returncode == 130 and "samples" in told and "interrupted" in told


LATE = """
import signal
from dplc.machine.run.ticks import handling
with handling(signal.SIGTRAP, signal.SIG_IGN, late=True):
    pass
signal.raise_signal(signal.SIGTRAP)
print("alive")
"""


def test_a_late_sample_does_not_end_the_program() -> None:
    """The signal of a sample may reach a thread after sampling has ended."""
    run = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "alive\n"), run.stderr
