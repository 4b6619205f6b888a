"""Facts about sizes in types, by the names of the cases they were translated from."""

from __future__ import annotations

import pytest

ACCEPTED = [
    ("SIZE-10", "let it p (xs : float[n]) = let ys = filter p xs in map2 (fun a b -> a + b) ys ys",
     "(float -> bool) -> float[n] -> float[?]"),
    ("SIZE-16 type", "let it (a : float[n, k]) (b : float[k, m]) : float[n, m] = a @ b",
     "float[n, k] -> float[k, m] -> float[n, m]"),
    ("SIZE-17 type", "let it (a : float[n, m]) = transpose a", "float[n, m] -> float[m, n]"),
    ("SIZE-18", "let unflatten (n : int) (m : int) (a : float[n * m]) : float[n, m] = reshape a\n"
     "let it (n : int) (m : int) (a : float[n * m]) = flatten (unflatten n m a)",
     "int -> int -> float[? * ?] -> float[? * ?]"),
    ("SIZE-24", "let empty : float[0, 3] = []\nlet it = transpose empty", "float[3, 0]"),
]  # fmt: skip

REJECTED = [
    ("SIZE-03", "let it (xs : float[n]) (ys : float[m]) = dot xs ys", "E0301", ("n", "m")),
    ("SIZE-13", "let it b = ((if b then range 2 else range 3) : int[2])", "E0301", ("2", "3")),
    ("SIZE-14", "let it = [[1, 2], [3;]]", "E0", ()),
    ("SIZE-14 ragged", "let it = [[1, 2], [3]]", "E0301", ("2", "1")),
    ("SIZE-16", "let a = fill 2 (zeros 3)\nlet it = a @ a", "E0303", ("3", "2")),
    ("SIZE-17", "let a = fill 2 (zeros 3)\nlet it = transpose a + a", "E0301", ("3", "2")),
    (
        "SIZE-23",
        "let it (n : int) (xs : int[n]) = let n = n + 1 in let ys : int[n] = range n in dot xs ys",
        "E0301",
        (),
    ),
]


@pytest.fixture
def check(dpl, tmp_path):
    def run(text: str):
        file = tmp_path / "it.dp"
        file.write_text(text + "\n", encoding="utf-8")
        return dpl("check", "--types", file)

    return run


@pytest.mark.parametrize(("text", "scheme"), [a[1:] for a in ACCEPTED], ids=[a[0] for a in ACCEPTED])
def test_accepted(check, text: str, scheme: str) -> None:
    run = check(text)
    assert run.returncode == 0, run.stderr
    assert f"it : {scheme}" in run.stdout.split("\n")


@pytest.mark.parametrize(("text", "code", "sizes"), [r[1:] for r in REJECTED], ids=[r[0] for r in REJECTED])
def test_rejected(check, text: str, code: str, sizes: tuple[str, ...]) -> None:
    run = check(text)
    assert run.returncode == 1 and run.stderr.startswith(f"error[{code}"), run.stderr
    title = run.stderr.split("\n")[0]
    assert all(size in title for size in sizes), title


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_no_rows_keep_their_columns(dpl, tmp_path, engine: str) -> None:  # SIZE-24
    file = tmp_path / "it.dp"
    file.write_text("let empty : float[0, 3] = []\nlet t = transpose empty\ndo print (length t, length t[0])\n")
    assert dpl("run", "--engine", engine, file).stdout == "(3, 0)\n"
