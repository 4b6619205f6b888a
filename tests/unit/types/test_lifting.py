"""Helpers without annotations: what their operands are stays open, and each use says it."""

from __future__ import annotations

import pytest
from checking import check, rejected, types

AXPY = "let axpy a x y = a * x + y\n"
V, M = "[1.0, 2.0, 3.0]", "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("let it a x y = a * x + y", "'a -> 'b -> 'c -> lift 'a 'b 'c with 'a 'b 'c : num"),
        ("let it x mu s = exp (-0.5 * ((x - mu) / s) ** 2)", "'a -> 'b -> 'c -> lift 'a 'b 'c with 'a 'b 'c : real"),
        ("let it a b t = a + (b - a) * t", "'a -> 'b -> 'c -> lift 'a 'b 'c with 'a 'b 'c : num"),
        ("let it x w b = x @ w + b", "'a -> 'b -> 'c -> lift 'd 'c with 'a @ 'b = 'd, 'c 'd : num"),
        ("let it x y = x * y + y * x - x", "'a -> 'b -> lift 'a 'b with 'a 'b : num"),
        ("let it x = x * x + x", "'a -> 'a with 'a : num"),
        ("let it p y = sum ((p - y) ** 2)", "'a -> 'b -> 'c with lift 'a 'b = 'c[n], 'a 'b 'c : num"),
        ("let it x = (x - mean x) / std x", "'a[n] -> 'a[n] with 'a : real"),
        ("let it c a b = if c then a else a + b", "bool -> 'a -> 'b -> 'a with 'b fits 'a, 'a : num"),
        ("let it a b = loop s = a for i < 3 do s + b * s", "'a -> 'b -> 'a with 'b fits 'a, 'a : num"),
        ("let it (a : float[n]) b = a * b", "float[n] -> 'a -> float[n] with 'a fits float[n]"),
        ("let it a b : float[2] = a + b", "'a -> 'b -> float[2] with lift 'a 'b = float[2], 'a 'b : num"),
        ("let it a b : float = a + b", "float -> float -> float"),
        ("let it a b = (a + b, a < b)", "'a -> 'a -> 'a * bool with 'a : num"),
        ("let it f a b = f (a + b)", "(lift 'a 'b -> 'c) -> 'a -> 'b -> 'c with 'a 'b : num"),
        ("let it x y = max x (atan2 y x)", "'a -> 'b -> lift 'a 'b with 'a 'b : real"),
        ("let it x n = x ** n", "'a -> 'b -> 'c with 'a ** 'b = 'c, 'a 'c : num"),
        (
            "let rec it f p rate n = if n = 0 then p else it f (p - rate * grad f p) rate (n - 1)",
            "('a -> 'b) -> 'a -> 'c -> 'd -> 'a with 'c fits 'a, 'a 'd : num, 'b : real, 'b 'd : scalar",
        ),
        (
            "let it f t y h = let k = f t y in y + h / 2.0 * (k + f (t + h) (y + h * k))",
            "('a -> 'b -> 'c) -> 'a -> 'b -> 'd -> 'b with 'd fits 'a, 'd fits 'b, 'c fits 'b, 'a 'b : real",
        ),
        (
            "let rec it n f (p, v) = if n = 0 then (p, v) else it (n - 1) f (p - 0.1 * v, v + p)",
            "'a -> 'b -> 'c * 'c -> 'c * 'c with 'a : num, 'a : scalar, 'c : real",
        ),
        ("let it x v dt = loop (x, v) = (x, v) for i < 3 do (x + dt * v, v - dt * x)",
         "'a -> 'a -> 'b -> 'a * 'a with 'b fits 'a, 'a : num"),
    ],
)  # fmt: skip
def test_types(text: str, expected: str) -> None:
    assert types(text, "it") == [expected]


@pytest.mark.parametrize(
    "use, expected",
    [
        ("axpy 1 2 3", "int"),
        (f"axpy 2.0 {V} 1.0", "float[3]"),
        (f"axpy {V} 2.0 {M}", "float[2, 3]"),
        (f"axpy {V} {M} {V}", "float[2, 3]"),
        (f"let g = axpy {V} in (g 1.0 1.0, g {M} 1.0)", "float[3] * float[2, 3]"),
        ("let g = axpy 2.0 in (g 1.0 1.0, g [1.0] 1.0)", "float * float[1]"),
        (f"map (fun r -> axpy r 2.0 1.0) {M}", "float[2, 3]"),
        (f"fold (axpy 0.5) {V} {M}", "float[3]"),
        (f"map2 axpy {V} {V} |> map (fun f -> f 1.0)", "float[3]"),
        (f"max {V} {M}", "float[2, 3]"),
        (f"atan2 {V} {M}", "float[2, 3]"),
        (f"let h = hypot {V} in h {M}", "float[2, 3]"),
        (f"xlogy 1.0 {V}", "float[3]"),
        (f"logaddexp {V} {M}", "float[2, 3]"),
    ],
)  # fmt: skip
def test_uses(use: str, expected: str) -> None:
    assert types(f"{AXPY}let it = {use}", "it") == [expected]


def test_functions_in_data_stay_open() -> None:
    text = f"{AXPY}let (f, n) = (axpy, 1)\nlet it = (f n 2 3, f 1.0 2.0 [1.0], f {M} {V} 1.0)"
    assert types(text, "it") == ["int * float[1] * float[2, 3]"]


def test_local_helpers_take_operands_from_around_them() -> None:
    text = "let f x = let g y = x * y + x in (g 2.0, g [1.0, 2.0])\nlet a = f 1.0\nlet b = f [1.0, 2.0]"
    assert types(text, "f", "a", "b") == [
        "'a -> 'a * 'b[2] with 'a fits 'b[2], 'a : 'b or array of it, 'b : real, 'b : scalar",
        "float * float[2]",
        "float[2] * float[2]",
    ]


def test_elements_are_of_one_kind() -> None:
    rejected(f"{AXPY}let it = axpy 1i64 2.0 3.0", "E0201")
    rejected(f"{AXPY}let it = axpy {V} 1.0 true", "E0201")
    rejected(f"{AXPY}let it = axpy 2.0f32 {V} (float 1)", "E0201")


def test_a_mismatch_is_told_at_the_operator() -> None:
    """With both operands, and the call that made them what they are."""
    (found,) = rejected(f"{AXPY}let loss p = sum (axpy p [1.0, 2.0] {V})\ndo print (loss 1.0)", "E0301")
    assert found.span is not None and found.span.text == "+"
    assert {label.text for label in found.labels} >= {"float[2]", "float[3]"}
    assert [call.name for call in found.path] == ["axpy"]


def test_a_local_chain_of_names() -> None:
    """The operands of what is called are flattened: nothing grows with the depth of calls."""
    text = "let h0 a b c = a * b + c\n"
    for k in range(6):
        calls = " * ".join(f"h{k} {order}" for order in ("a b c", "b c a", "c a b", "(a + b) c b"))
        text += f"let h{k + 1} a b c = {calls}\n"
    (shown,) = types(text, "h6")
    assert shown == "'a -> 'b -> 'c -> lift 'a 'b 'c with 'a 'b 'c : num"


def test_what_stays_free_is_a_scalar() -> None:
    checked = check(f'{AXPY}let f u = axpy (error "a") (error "b") (error "c")\ndo print (axpy 1 2 (error ""))')
    assert not checked.warnings
