"""Facts about patterns, by the names of the cases they were translated from; and what they say of answer types."""

from __future__ import annotations

import re

import pytest

ROWS = [", ".join("true" if k == i else "_" for k in range(20)) for i in range(20)] + [", ".join(["false"] * 20)]

# program, codes of what is said, words of the first title
CASES = [
    ("PAT-01", "let f o = match o with Some x -> x", ["E0205"], "None"),
    ("PAT-02", "let f p = match p with (None, None) -> 1 | (Some _, Some _) -> 2", ["E0205"], "(None, Some _)"),
    ("PAT-05", "let rec merge p = match p with ([], ys) -> ys | (xs, []) -> xs\n"
     "  | (x :: xs, y :: ys) -> if x < y then x :: merge (xs, y :: ys) else y :: merge (x :: xs, ys)", [], ""),
    ("PAT-11", "let f n = match n with 0 -> 1 | 1 -> 2", ["E0205"], "2"),
    ("PAT-14", "let f x = match x with x when x > 0 -> 1 | x when x <= 0 -> 2", ["E0205"], "_"),
    ("PAT-19", "let f o = match o with _none -> 0 | Some x -> x", ["W0201"], "never reached"),
    ("PAT-22", "type t = A | B | C\nlet f x = match x with (A | B | A) -> 1 | C -> 2", ["W0201"], "alternative"),
    ("PAT-23", "let f g = let (Some x) = g () in x", ["E0205"], "None"),
    ("PAT-25", f"let f t = match t with {' | '.join(f'({row}) -> {i}' for i, row in enumerate(ROWS))}", [], ""),
    ("PAT-29", "let f = match 5 with", ["E0101"], ""),
    ("TYPE-65", "let p = reset (let x = shift k -> k in (x, x))\nlet it = (p 1, p true)", ["E0552"], "answer types"),
]  # fmt: skip

VALUES = [
    ("PAT-27", "let f xs = match xs with ((x :: (y :: _ as t)) as l) -> (x, y, List.length t, List.length l)"
     " | _ -> (0, 0, 0, 0)\ndo print (f [1; 2; 3])", "(1, 2, 2, 3)"),
    ("PAT-30", "do print (match -1 with -1 -> 1 | _ -> 0)\n"
     "do print (match nan with x when x = x -> 1 | _ -> 0)", "1\n0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "codes", "words"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_is_said(dpl, tmp_path, text: str, codes: list[str], words: str) -> None:
    file = tmp_path / "it.dp"
    file.write_text(text + "\n", encoding="utf-8")
    run = dpl("check", file, timeout=20)
    said = re.findall(r"^(?:error|warning)\[(.....)\]: (.*)$", run.stderr, re.MULTILINE)
    assert [code for code, _ in said] == codes, run.stderr
    assert run.returncode == any(code[0] == "E" for code in codes)
    assert not said or words in said[0][1]


@pytest.mark.parametrize("engine", ["interp", "native"])
@pytest.mark.parametrize(("text", "output"), [v[1:] for v in VALUES], ids=[v[0] for v in VALUES])
def test_values(dpl, tmp_path, text: str, output: str, engine: str) -> None:
    file = tmp_path / "it.dp"
    file.write_text(text + "\n", encoding="utf-8")
    assert dpl("run", "--engine", engine, file).stdout == output + "\n"
