"""shift and reset in types: who may capture, and what the answer is."""

from __future__ import annotations

import pytest
from checking import check, deep, rejected, types


def test_control_shows_in_arrows() -> None:
    text = "let flip p = shift k -> p * k true + (1.0 - p) * k false"
    assert types(text + "\nlet run (p : float) = reset (if flip p then 1.0 else 0.0)", "run") == ["float -> float"]
    assert "-{ctl" in types(text, "flip")[0]


def test_functions_are_polymorphic_in_control() -> None:
    text = """
let apply f x = f x
let rec iter f xs = match xs with [] -> () | x :: rest -> f x; iter f rest
let a = reset (apply (fun x -> shift k -> k (x + 1)) 1)
let b = apply (fun x -> x + 1) 1
let c = reset (iter (fun x -> shift k -> x :: k ()) [1; 2]; [])"""
    assert types(text, "a", "b", "c") == ["int", "int", "int list"]


def test_the_answer_may_be_a_function() -> None:
    text = (
        "let get () = shift k -> fun s -> k s s\nlet run f = (reset (let x = f () in fun s -> x)) 3\nlet it = run get"
    )
    assert types(text, "it") == ["int"]


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("do print (shift k -> k 1)", "E0550"),
        ("let f x = shift k -> k x\ndo print (f 1)", "E0550"),
        ("let v = reset (map (fun x -> shift k -> k x) [1, 2])", "E0551"),
        ("do print (map (fun x -> shift k -> k x) [1, 2])", "E0551"),
        ("let v = reset (sum [for i < 3 -> shift k -> k i])", "E0551"),
        ("let v = reset (grad (fun x -> shift k -> k x) 1.0)", "E0551"),
        ('let v = reset (1 + shift k -> "abort")', "E0552"),
        ("let v = reset (let x = shift k -> [k 1; k 2] in [x])", "E0552"),
    ],
)
def test_rejected(program: str, code: str) -> None:
    rejected(program, code)


def test_long_programs() -> None:
    lines = "\n".join(f"  let x{i} = x{i - 1} + 1 in" for i in range(1, 3001))
    assert deep(lambda: len(check(f"let f (x0 : int) =\n{lines}\n  x3000").program.items)) == 1
    pairs = " ".join(f"let x{i} = (x{i - 1}, x{i - 1}) in" for i in range(1, 26))
    assert deep(lambda: check(f"let f () = let x0 = () in {pairs} fst x25").warnings) == []
