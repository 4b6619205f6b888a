"""`dpl check`: which programs it looks at; `--show-checks`: the sizes that only running can compare, and no others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT

UNKNOWN = "let big = filter (fun x -> x > 1.0) [1.0, 2.0, 3.0]\n"


@pytest.mark.parametrize(
    ("program", "places"),
    [
        (UNKNOWN + "let r = dot big [1.0, 2.0]", ["2:17"]),
        (UNKNOWN + "let ys : float[2] = big", ["2:21"]),
        (UNKNOWN + "let ys : float[2] list = [big; big]", ["2:27", "2:32"]),
        (UNKNOWN + "let p : float[2] * float[3] = (big, zeros 3)", ["2:31"]),
        (UNKNOWN + "type v = { a : float[2] }\nlet r = { a = big }", ["3:15"]),
        (UNKNOWN + "let h (x : float[2]) = sum x\nlet r = List.map h [big;]", ["3:21"]),
        (UNKNOWN + "let h (x : float[2]) = sum x\nlet r = grad h big", ["3:16"]),
        (UNKNOWN + "let h (x : float[2], y) = sum x + y\nlet r = value_and_grad h (big, 1.0)", ["3:26"]),
        (UNKNOWN + "let h (x : float[2]) = sum x\nlet r = Ad.hessian h big", ["3:22"]),
        (UNKNOWN + "let r = grad (fun (x : float[2]) -> sum x) big", ["2:20"]),
        (UNKNOWN + "let r = map (fun (x : float[2]) -> sum x) [big, big]", ["2:19"]),
        (UNKNOWN + "let r = grad (fun (x : float[?]) -> sum x) big", []),
        ("let h (x : float[2]) = sum x\nlet r = grad h [1.0, 2.0]", []),
        ("let f (xs : float[n, m]) = map (fun (x : float[m]) -> sum x) xs", []),
        ("let f (n : int) (xs : float[n]) = sum xs", ["1:17"]),
        ("let f (xs : float[n]) = (xs :> float[10])", ["1:26"]),
        (UNKNOWN + "let r = big + big", []),
        (UNKNOWN + "let r = map2 (fun a b -> a + b) big big", []),
        ("let f (a : float[n, m]) (b : float[m]) = a @ b\nlet r = f (fill 2 (zeros 3)) (zeros 3)", []),
        ("let f (xs : float[n]) (ks : float[k]) = [for i < n - k + 1 -> dot xs[i : i + k] ks]", []),
        ("let f (a : float[n]) (b : float[m]) = (a ++ b) + (a ++ b)", []),
        ("let f (a : float[n, m]) = transpose (transpose a) + a", []),
        ("let f (a : float[n, m]) : float[n, m] = reshape (flatten a)", []),
        (
            "let f (n : int) =\n  let rec go i (m : float[n, n]) : float[n, n] =\n"
            "    if i = n then m else go (i + 1) { m with [i, 0] = 1.0 } in\n  go 0 [for _ < n -> zeros n]",
            ["2:16"],
        ),
        ("let rec go (xs : float[?]) : float = if length xs < 2 then 1.0 else go (drop 2 xs) + go xs[1:]", []),
        ("let rec go i (xs : float[?]) : float[?] = if i = 0 then xs else go (i - 1) (take i xs)", []),
    ],
)
def test_what_remains(dpl, tmp_path: Path, program: str, places: list[str]) -> None:
    file = tmp_path / "it.dp"
    file.write_text(program + "\n", encoding="utf-8")
    run = dpl("check", "--show-checks", file)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert [line.split("it.dp:")[1].split(": ")[0] for line in lines] == places
    assert all(": checks that " in line for line in lines)


def test_the_examples_need_few(dpl) -> None:
    run = dpl("check", "--show-checks", *sorted((ROOT / "examples").glob("*.dp")))
    assert run.returncode == 0
    needed = Counter(Path(line.partition(":")[0]).stem for line in run.stdout.splitlines())
    assert needed == {
        "06_tree_model": 3, "control": 4, "meta_learning": 3, "ntm": 1, "pinn": 3, "resnet50": 4, "speech_ctc": 2,
        "squeezenet": 2,
    }  # fmt: skip


def test_standard_input(dpl) -> None:
    run = dpl("check", "-", stdin='let x = 1 + "a"\n')
    assert run.returncode == 1 and "<stdin>:1:11" in run.stderr


def test_a_folder_and_no_folder(dpl, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "wrong.dp").write_text('let x = 1 + "a"\n')
    (tmp_path / "right.dp").write_text("let y = 1\n")
    for paths in (["."], []):
        run = dpl("check", *paths, cwd=tmp_path)
        assert run.returncode == 1 and run.stderr.count("error[") == 1 and "inner/wrong.dp:1:11" in run.stderr
    assert dpl("check", "--types", "right.dp", cwd=tmp_path).stdout == "y : int\n"


def test_a_folder_without_programs(dpl, tmp_path: Path) -> None:
    run = dpl("check", tmp_path)
    assert run.returncode == 1 and run.stderr == "no programs found\n"
