"""Facts about delimited control that are rejections, by the names of the cases they were translated from.

What needs a `shift` to change the answer type of its `reset` is a type error that says so; the values that such
programs would have, with an answer that is data, are in `cont.dp`.  A derivative is a barrier for `shift`.
"""

from __future__ import annotations

import pytest

MODIFIES_THE_ANSWER = [
    ("CONT-15 sum", "let f = reset (5 * (shift k -> k) + 3 * 4)"),
    ("CONT-15 text", 'let f = reset ((if (shift k -> k) then "hello" else "hi") ++ " world")'),
    ("CONT-15 pair", "let f = reset (fst (let x = (shift k -> k) in (x, x)))"),
    ("CONT-15 length", 'let f = reset (String.length ("x" ++ show (shift k -> k)))'),
    ("CONT-17", "let rec append xs = match xs with [] -> (shift k -> k) | x :: rest -> x :: append rest\n"
     "let a = reset (append [1; 2])\ndo print (a [3;])"),
    ("CONT-20", "let rec visit xs = match xs with\n  | [] -> (shift _k -> [])\n"
     "  | h :: t -> h :: (shift k -> k [] :: reset (k (visit t)))\ndo print (reset (visit [1; 2; 3]))"),
    ("CONT-24", "let fmt conv = shift k -> fun x -> k (conv x)\n"
     'do print ((reset (fmt (fun (i : int) -> show i) ++ "-" ++ fmt (fun (b : bool) -> show b) ++ "!")) 1 true)'),
    ("CONT-38", "let k1 = reset (1 + (shift k -> k))\ndo print (k1 10 + k1 20)"),
    ("CONT-39", "let c = reset (let x = (shift k -> k) in let y = (shift j -> j) in 10 * x + y)\ndo print ((c 5) 2)"),
    ("CONT-40", "let rec go i s = if i > 3 then s else go (i + 1) (s + (shift c -> c))\n"
     "let r = reset (go 1 0)\ndo print (((r 1) 2) 3)"),
    ("CONT-41", "let ks = List.map (fun i -> reset (i * (shift k -> k))) [1; 10; 100]\n"
     "do print (List.map (fun k -> k 7) (List.rev ks))"),
    ("CONT-56", 'do print (reset (1 + (shift _k -> "abort")))'),
    ("CONT-57", "let g = reset (2 * (shift k -> k))\nlet abort v = shift _k -> v\n"
     "do print (3 * reset (5 * abort (g 7)))"),
    ("CONT-58", "do print (reset (100 + (let k = reset (1 + (shift k -> k)) in k (shift j -> j 1 * j 2))))"),
    ("CONT-79", "do print (reset (shift k -> k) 7)"),
    ("CONT-80", "do print (100 + (reset (1 + (shift k -> k))) 5)"),
]  # fmt: skip

CROSSES_A_DERIVATIVE = [
    ("CAD-27", "do print (reset (1.0 + diff (fun x -> (shift k -> k (k x))) 2.0))"),
    ("CAD-27 reverse", "do print (reset (1.0 + grad (fun x -> (shift k -> k (k x))) 2.0))"),
    ("CAD-27 inside a call", "let twice x = shift k -> k (k x)\nlet f x = 2.0 * twice x\n"
     "do print (reset (1.0 + grad f 2.0))"),
    ("CAD-27 pullback", "do print (reset (let (y, _) = vjp (fun x -> (shift k -> k (k x))) 2.0 in y + 1.0))"),
]  # fmt: skip


@pytest.fixture
def rejection(dpl, tmp_path):
    """What is said of a program that is rejected."""

    def check(text: str) -> str:
        file = tmp_path / "it.dp"
        file.write_text(text + "\n", encoding="utf-8")
        run = dpl("check", file)
        assert run.returncode == 1 and not run.stdout
        return run.stderr

    return check


@pytest.mark.parametrize("text", [c[1] for c in MODIFIES_THE_ANSWER], ids=[c[0] for c in MODIFIES_THE_ANSWER])
def test_answer_types_are_equal(rejection, text: str) -> None:
    said = rejection(text)
    assert said.startswith("error[E0552]") and "answer-type modification" in said, said


@pytest.mark.parametrize("text", [c[1] for c in CROSSES_A_DERIVATIVE], ids=[c[0] for c in CROSSES_A_DERIVATIVE])
def test_a_derivative_is_pure_of_control(rejection, text: str) -> None:
    assert rejection(text).startswith("error[E0551]")
