"""Runs that share a process (`forks.py`) do what each would do alone."""

import subprocess

import pytest

CASES = {
    "prints": 'do print (grad (fun x -> sin x * x) 2.0)\ndo print "done"\n',
    "warns": "let f (x : float) = let y = 1.0 in x\ndo print (f 2.0)\n",
    "is wrong": 'do print (1.0 + "a")\n',
    "fails": 'do print "before"\ndo print [1.0, 2.0][List.length Sys.args + 2]\n',
    "reads": "do print (Sys.read_line ())\n",
    "exits": "do print 1\ndo Sys.exit 7\n",
    "exits with 0": "do print 1\ndo Sys.exit 0\n",
}
WAYS = (("run", "--engine", "interp"), ("run", "--engine", "native"), ("check",), ("dump", "simplify"))


def test_runs_do_not_see_each_other(dpl, tmp_path) -> None:
    """Also those that come after a failure, an exit, or a run with a process of its own."""
    runs = []
    for name, text in CASES.items():
        file = tmp_path / f"{name}.dp"
        file.write_text(text, encoding="utf-8")
        runs += [(*way, file) for way in WAYS]
    alone = [told(dpl(*run, stdin="a b c\n", ALONE="1")) for run in runs]
    assert len({*alone}) > len(CASES) and any('Some "a b c"' in out for _, out, _ in alone)
    assert [told(dpl(*run, stdin="a b c\n")) for run in runs] == alone
    assert [told(dpl(*run, stdin="a b c\n")) for run in reversed(runs)] == alone[::-1]


def told(run: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return run.returncode, run.stdout, run.stderr


def test_what_takes_too_long_is_ended_and_the_next_run_begins(dpl, tmp_path) -> None:
    file = tmp_path / "forever.dp"
    file.write_text("let rec f x = f (x + 1)\ndo print (f 0)\n", encoding="utf-8")
    assert dpl("run", "-e", "1 + 1").stdout == "2\n"
    with pytest.raises(subprocess.TimeoutExpired):
        dpl("run", "--engine", "interp", file, timeout=0.5)
    assert dpl("run", "-e", "1 + 2").stdout == "3\n"


def test_what_is_set_for_one_run_holds_for_no_other(dpl) -> None:
    wrong = ("check", "-"), "do print (1 + true)\n"
    usual = dpl(*wrong[0], stdin=wrong[1]).stderr
    assert dpl("--message-format", "json", *wrong[0], stdin=wrong[1]).stderr.startswith("{")
    assert dpl(*wrong[0], stdin=wrong[1]).stderr == usual


def test_numbers_that_a_function_of_c_keeps_are_those_of_one_run(dpl, tmp_path) -> None:
    file = tmp_path / "rand.dp"
    file.write_text('extern "rand" draw : unit -> i32\ndo print (draw ())\n', encoding="utf-8")
    assert len({dpl("run", "--engine", "native", file).stdout for _ in range(3)}) == 1
