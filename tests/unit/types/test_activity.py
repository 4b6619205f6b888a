"""Derivatives that are zero throughout are warned of; no others."""

from __future__ import annotations

import pytest
from checking import check
from dpl.diagnostics import Diagnostic
from dpl.types.warnings.activity import Analysis


def warned(text: str) -> list[Diagnostic]:
    return [w for w in check(text).warnings if w.code == "W0402"]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("let f x = floor x * 2.0\nlet d = grad f 1.5", "`f` depends on `x` only through `floor`"),
        ("let d = diff (fun x -> if x > 0.0 then 1.0 else 2.0) 1.0", "only through `>`"),
        ("let d = grad (fun x -> float (int x)) 1.0", "only through `int`"),
        ("let f x = 3.0\nlet d = grad f 1.0", "`f` does not depend on `x`"),
        ("let rec f x n = if n = 0 then round x else f x (n - 1)\nlet d = grad (fun x -> f x 3) 1.0", "`round`"),
        ("let d (xs : float[n]) = grad (fun (v : float[n]) -> float (argmax v)) xs", "only through `argmax`"),
        ("let d xs = grad (fun v -> sum (map (fun x -> ceil x) v)) xs", "only through `ceil`"),
        ("let d = grad (fun x -> loop s = 0.0 for i < 3 do s + sign x) 1.0", "only through `sign`"),
        ("let f y = let h x = y * 2.0 + floor x in grad h 1.0", "`h` depends on `x` only through `floor`"),
        ("let d = value_and_grad (fun (a, b) -> floor a + round b) (1.0, 2.0)", "`floor` and `round`"),
        ("let d = snd (vjp (fun x -> floor x) 1.0) 1.0", "only through `floor`"),
        ("let apply f x = f x\nlet d = grad (fun x -> apply floor x) 1.0", "only through `floor`"),
    ],
)
def test_zero(program: str, words: str) -> None:
    (found,) = warned(program)
    assert words in found.title


@pytest.mark.parametrize(
    "program",
    [
        "let d = grad (fun x -> x * floor x) 1.5",
        "let d = grad (fun x -> if x > 0.0 then x else 0.0) 1.5",
        "let d xs = grad (fun v -> sum (map (fun x -> x * x) v)) xs",
        "let d = grad (fun x -> stop_grad x) 1.0",  # it says so
        "let d = grad (fun _x -> 1.0) 1.0",
        "let d = grad (List.fold (fun a x -> a + x) 0.0) [1.0; 2.0]",
        "type t = Leaf of float | Node of t * t\n"
        "let rec f t = match t with Leaf x -> x | Node (l, r) -> f l * f r\nlet d = grad f (Leaf 1.0)",
        "let f g x = grad (fun y -> g y) x",
        "let d = diff (fun x -> grad (fun y -> x * y) x) 1.0",
        "let rec f x n = if n = 0 then 0.0 else g x n and g x n = x + f x (n - 1)\nlet d = grad (fun x -> f x 3) 1.0",
        "let d = grad (fun x -> (fun k -> k x) (fun y -> y * y)) 1.0",
        "let d = grad (fun x -> let r = ref 0.0 in (r := x; !r)) 1.0",
        "let d = grad (fun x -> reset (2.0 * (shift k -> k x))) 1.0",
        "let d = grad (fun x -> fst (List.nth [(x, 1); (1.0, 2)] 0)) 1.0",
        "let twice f x = f (f x)\nlet d = grad (twice (fun x -> x * x)) 1.0",
        "let pick n = if n > 0 then (fun x -> x) else floor\nlet d = grad (fun x -> (pick 1) x) 1.0",
        "let rec iter f n x = if n = 0 then x else iter f (n - 1) (f x)\nlet d = grad (iter sqrt 5) 2.0",
        "let compose f g = fun x -> f (g x)\nlet d = grad (compose sin (compose cos exp)) 2.0",
    ],
)
def test_not_zero(program: str) -> None:
    assert not warned(program)


NESTED = "".join(f"let rec g{i} x k = if k = 0 then x else g{i} (g{i - 1} x 1) (k - 1) in\n" for i in range(1, 30))
TOGETHER = "".join(f" and g{i} x k = if k = 0 then x else g{(i + 1) % 12} (x * 0.9) (k - 1)" for i in range(1, 12))


@pytest.mark.parametrize(
    "functions",
    [
        f"let g0 x k = floor x + k in {NESTED} g29 x 2",
        f"let rec g0 x k = if k = 0 then floor x else g1 (sin x) (k - 1){TOGETHER} in g0 x 5",
    ],
    ids=["in each other", "together"],
)
def test_functions_that_capture_many_are_looked_at_once(monkeypatch, functions: str) -> None:
    asked = []
    signature = Analysis.signature
    monkeypatch.setattr(Analysis, "signature", lambda *args: asked.append(args) or signature(*args))
    warned(f"let f x = {functions.replace('+ k', '+ float (k + 0)')}\nlet d = grad f 1.5")
    assert 0 < len(asked) < 20_000  # twice as many for each, or all orders of them, would be millions
