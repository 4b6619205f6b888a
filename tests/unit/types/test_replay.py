"""Errors in calls are explained along the calls, with the types of each."""

from __future__ import annotations

from checking import rejected
from dpl.diagnostics import Diagnostic

LAYERS = """
type (n, m) layer = { w : float[m, n]; b : float[m] }
let apply l x = tanh (l.w @ x + l.b)
"""
DATA = """
let l1 = { w = fill 12 (zeros 10); b = zeros 12 }
let l2 = { w = fill 1 (zeros 14); b = zeros 1 }
"""


def path(found: Diagnostic) -> list[str]:
    return [call.name for call in found.path]


def marked(found: Diagnostic) -> list[str]:
    """What the labels stand at."""
    return [label.span.source.text[label.span.start : label.span.end] for label in found.labels]


def test_the_path_leads_to_the_product() -> None:
    (found,) = rejected(
        LAYERS
        + "let model (a, b) x = apply b (apply a x)\n"
        + "let cost ls x = sum (model ls x)\nlet step ls x = grad (fun p -> cost p x) ls"
        + DATA
        + "do print (step (l1, l2) (zeros 10))",
        "E0303",
    )
    assert path(found) == ["step", "cost", "model", "apply"]
    assert found.path[-1].about == "l : (14, 1) layer, x : float[12]"
    assert "14" in found.title and "12" in found.title
    assert {"14", "12"} <= set(marked(found))


def test_a_function_given_to_grad_by_name_is_followed() -> None:
    (found,) = rejected(
        LAYERS + "let cost (a, b) = sum (apply b (apply a (zeros 10)))" + DATA + "let g = grad cost (l1, l2)", "E0303"
    )
    assert path(found) == ["cost", "apply"]


def test_local_functions_are_followed() -> None:
    (found,) = rejected("let loss w = let dotw v = dot w v in dotw [1.0, 2.0]\nlet r = loss [1.0, 2.0, 3.0]", "E0301")
    assert path(found) == ["loss", "dotw"]


def test_recursion_ends() -> None:
    (found,) = rejected(
        "let rec f n x = if n = 0 then x @ [1.0, 2.0] else f (n - 1) x\nlet r = f 3 [[1.0], [2.0]]", "E0303"
    )
    assert path(found)[0] == "f"


def test_names_mean_what_they_meant_at_the_definition() -> None:
    (found,) = rejected(
        "let w = [1.0, 2.0]\nlet f x = dot w x\nlet w = 3\nlet dot a b = a\nlet r = f [1.0, 2.0, 3.0]", "E0301"
    )
    assert "float[3]" in found.title and "[1.0, 2.0]" in marked(found)


def test_a_wrong_argument_is_marked_at_the_call_and_at_what_wants_another() -> None:
    (found,) = rejected('let inc x = x + 1\nlet both x = (x, inc x)\nlet r = both "a"', "E0201")
    assert found.span is not None and found.span.source.text[found.span.start : found.span.end] == '"a"'
    assert path(found) == ["both", "inc"] and "+" in marked(found)


def test_an_annotation_is_where_a_size_comes_from() -> None:
    (found,) = rejected("let f (x : float[3]) = sum x\nlet r = f [1.0]", "E0301")
    assert marked(found) == ["3"] and not found.path


def test_many_calls_are_not_followed_for_ever() -> None:
    lines = ["let f0 x = x @ [1.0, 2.0]", *(f"let f{i} x = (f{i - 1} x, f{i - 1} x)" for i in range(1, 12))]
    rejected("\n".join([*lines, "let r = f11 [[1.0]]"]), "E0303")
