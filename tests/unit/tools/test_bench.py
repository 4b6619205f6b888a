"""`dpl bench`: what it counts, what it times, and what it says of what cannot be measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from dplc.tools.bench import cost as command
from dplc.tools.bench.cost import Cost, Report, costs

PROGRAM = """
let by_loop (a : float[n]) = loop s = 0.0 for i < n do s + a[i]
let smooth xs = [for x in xs -> sin x]
let first (a : float[n]) = a[0]
let rec repeat x n = if n = 0 then x else repeat (0.5 * sin x + 0.1 * x * cos x) (n - 1)
type tree = Leaf of float | Node of tree * tree
let rec total t = match t with Leaf x -> x | Node (l, r) -> total l + total r
let apply (f : float -> float) x = f x * 2.0
let rotate (m : float[n, n]) v = m @ v
let ( <+> ) a b = 2.0 * a + b
let waves (x : float[n]) = loop y = x for _ < 4 do map sin y
let name x = show (x + 1.0)
let table = [1.0, 2.0]
let broken (a : float[n]) = if a[0] > 0.0 then error "no" else a[0]
let last = by_loop table
do print "never"
expect "nor this" = false
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bench") / "program.dp"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def reports(program: Path) -> dict[str, Report]:
    return {report.name: report for report in costs(str(program), sizes=(4, 8, 16), squares=(8, 16))}


def test_operations_are_counted_exactly(reports: dict[str, Report]) -> None:
    """An addition and a read for each element, and for its gradient a read and an addition more each way, and an
    addition that makes zeros positive."""
    found = reports["by_loop"].costs
    assert [(c.size, c.floats, c.operations, c.bytes) for c in found] == [(n, n + 1, 2 * n, 0) for n in (4, 8, 16)]
    assert all(2 * c.size < c.gradient_operations <= 6 * c.size + 1 and c.gradient_bytes == 8 * c.size for c in found)


def test_a_gradient_is_neither_left_out_nor_shared(reports: dict[str, Report]) -> None:
    for cost in reports["smooth"].costs:
        assert cost.gradient_operations >= 2 * cost.operations > 0
        assert cost.bytes == 8 * cost.size  # what it gives


def test_what_the_sweep_keeps(reports: dict[str, Report]) -> None:
    """The operand of each sine, an array at a time, or none of what can be computed again."""
    for cost in reports["waves"].costs:
        assert 8 * cost.size <= cost.kept <= 5 * 8 * cost.size + 16 * 8  # and a few bytes that say where
    assert all(cost.kept == 0 for cost in reports["by_loop"].costs)


def test_a_gradient_writes_what_goes_in(reports: dict[str, Report]) -> None:
    for cost in reports["first"].costs:
        assert cost.operations == 1
        assert cost.gradient_operations >= cost.size
        assert cost.ratio < 3


def test_arguments_of_all_kinds_are_made(reports: dict[str, Report]) -> None:
    for name in ("repeat", "total", "apply", "rotate", "<+>"):
        assert reports[name].costs, reports[name].why
        assert not reports[name].grows
    assert [c.floats for c in reports["total"].costs] == [5, 9, 17]  # a balanced tree of so many leaves, and the sum
    assert [c.floats for c in reports["rotate"].costs] == [n * n + 2 * n for n in (8, 16)]


def test_what_cannot_be_measured_is_told(reports: dict[str, Report]) -> None:
    why = {name: report.why for name, report in reports.items() if not report.costs}
    assert why == {
        "name": "its result holds no floats",
        "table": "no function",
        "broken": "fails: no",
        "last": "no function",
    }


def test_growth_is_told() -> None:
    def report(*gradients: int) -> Report:
        sizes = zip((1, 2, 4), gradients, strict=True)
        return Report("f", tuple(Cost(n, 0, 100 * n, 0, g, 8 * n, 0) for n, g in sizes))

    assert report(300, 600, 1200).grows == []
    assert report(300, 900, 1200).grows == []
    assert report(300, 1200, 4800).grows == ["ratio"]


@pytest.mark.parametrize(("gradients", "code"), [((300, 600, 1200), 0), ((300, 1200, 4800), 1)])
def test_growth_is_a_failure(monkeypatch, capsys, gradients, code: int) -> None:
    rows = tuple(Cost(n, 0, 100 * n, 0, g, 8 * n, 0) for n, g in zip((1, 2, 4), gradients, strict=True))
    monkeypatch.setattr(command, "costs", lambda target, names, limit: [Report("f", rows)])
    monkeypatch.setattr(command, "seconds", lambda target, names, limit: {})
    assert command.tell_costs("it.dp", (), 1.0, False) == code
    assert ("grows" in capsys.readouterr().out) == bool(code)


@pytest.mark.parametrize(("most", "code"), [(3.0, 0), (2.9, 1), (None, 0)])
def test_a_ratio_above_the_most_is_a_failure(monkeypatch, capsys, most: float | None, code: int) -> None:
    rows = tuple(Cost(n, 0, 100 * n, 0, 300 * n, 8 * n, 0) for n in (1, 2, 4))
    monkeypatch.setattr(command, "costs", lambda target, names, limit: [Report("f", rows)])
    monkeypatch.setattr(command, "seconds", lambda target, names, limit: {})
    assert command.tell_costs("it.dp", (), 1.0, False, most=most) == code
    told = "the gradient of f costs 3.00 functions, not 2.9 at most\n"
    assert capsys.readouterr().err == (told if code else "")


def test_the_command_prints_a_table(dpl, program: Path) -> None:
    run = dpl("bench", "--cost", program, "by_loop", "name")
    assert run.returncode == 0, run.stderr
    head, line, skipped = run.stdout.splitlines()
    wanted = ["size", "operations", "gradient", "bytes", "gradient", "ratio", "by", "size", "size", "time", "ratio"]
    assert head.split() == wanted
    assert line.split()[:3] == ["by_loop", "256", "512"]
    assert re.fullmatch(r"by_loop( +[\d.]+){5}( +[\d.]+){5} +1000 +[\d.]+ [mun]?s \+- \d+ % +[\d.]+", line), line
    assert skipped == "not measured: name (its result holds no floats)"


def test_the_command_prints_objects(dpl, program: Path) -> None:
    run = dpl("bench", "--cost", "--json", program, "by_loop", "name")
    assert run.returncode == 0, run.stderr
    found, skipped = map(json.loads, run.stdout.splitlines())
    assert found["name"] == "by_loop"
    assert found["grows"] == []
    assert [cost["size"] for cost in found["costs"]] == [16, 32, 64, 128, 256]
    assert found["costs"][0]["operations"] == 32
    assert set(found["costs"][0]["gradient"]) == {"operations", "bytes", "kept"}
    assert found["time"]["size"] == 1000 and set(found["time"]) == {"size", "value", "gradient"}
    assert skipped == {"name": "name", "skipped": "its result holds no floats"}


def test_times(dpl, program: Path) -> None:
    run = dpl("bench", "--json", "--size", 2000, program, "smooth")
    assert run.returncode == 0, run.stderr
    (found,) = map(json.loads, run.stdout.splitlines())
    assert found["size"] == 2000
    for what in ("value", "gradient"):
        assert found[what]["low"] <= found[what]["median"] <= found[what]["high"]
    assert found["value"]["low"] > 1e-6  # two thousand sines take longer than that
    assert found["gradient"]["low"] > 1e-6


ENDLESS = """
let rec branching (n : int) (x : float) : float = if n < 2 then x else branching (n - 1) x + branching (n - 2) x
let rec endless (x : float) : float = if x > -1.0 then endless (x + 1.0) else x
let quick (a : float[n]) = sum a
let small (a : float[n]) = if n < 50 then error "too small" else a[0]
"""


def test_what_takes_too_long_is_stopped_and_told(dpl, tmp_path: Path) -> None:
    file = tmp_path / "endless.dp"
    file.write_text(ENDLESS, encoding="utf-8")
    run = dpl("bench", "--limit", 2, file)  # much longer than `small` and `quick` take, also on a busy machine
    assert run.returncode == 0, run.stderr
    sizes = {words[0]: words[1] for words in map(str.split, run.stdout.splitlines()[1:4])}
    assert sizes == {"branching": "10", "quick": "1000", "small": "1000"}
    assert run.stdout.splitlines()[4:] == [
        "note: branching takes more than 2 s at size 100",
        "note: small fails: too small",
        "not measured: endless (takes more than 2 s at size 10)",
    ]
    run = dpl("bench", "--cost", "--json", "--limit", 0.5, file, "endless", "quick")
    skipped, found = map(json.loads, run.stdout.splitlines())
    assert skipped == {"name": "endless", "skipped": "takes more than 0.5 s at size 16"}
    assert [cost["size"] for cost in found["costs"]] == [16, 32, 64, 128, 256] and "limited" not in found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cost", "nowhere.dp"], "nowhere.dp is neither a file nor a module of the standard library"),
        (["Lists"], "Lists is neither a file nor a module of the standard library"),
        (["List", "mapp"], "List defines no `mapp`; did you mean `map`?"),
        (["--cost", "--size", "5", "List"], "--cost measures at several sizes; leave out --size"),
        (["--size", "0", "List"], "0 is not in the range"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage(dpl, arguments: list[str], message: str) -> None:
    run = dpl("bench", *arguments)
    assert run.returncode == 2
    assert message in run.stderr


def test_a_program_with_errors(dpl, tmp_path: Path) -> None:
    file = tmp_path / "wrong.dp"
    file.write_text('let f (x : float) = x + "no"\n')
    run = dpl("bench", "--cost", file)
    assert run.returncode == 1
    assert "error" in run.stderr
    assert run.stdout == ""


def test_a_name_of_a_module_may_be_left_out(dpl) -> None:
    for name in ("map", "List.map"):
        run = dpl("bench", "--cost", "--json", "List", name)
        assert run.returncode == 0, run.stderr
        (found,) = map(json.loads, run.stdout.splitlines())
        assert found["name"] == "List.map"
