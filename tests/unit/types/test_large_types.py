"""Types that share their parts may be exponentially larger than the program: checking and messages are not."""

from __future__ import annotations

import pytest
from checking import check, rejected
from dpl.core.walk import within
from dpl.source import Source
from dpl.syntax.load import load
from dpl.types.check import check_all
from dpl.types.messages.pretty import show_scheme

DEPTH = 25
PAIRS = " ".join(f"let x{i} = (x{i - 1}, x{i - 1}) in" for i in range(1, DEPTH + 1))


def test_pairs_of_pairs() -> None:
    check(f"let f x0 = {PAIRS} ()\nlet y0 = (1, 2)\nlet g () = let x0 = y0 in {PAIRS} fst x{DEPTH}")


def test_pairs_at_the_top() -> None:
    lines = [f"let x{i} = (x{i - 1}, x{i - 1})" for i in range(1, DEPTH + 1)]
    check("\n".join(["let x0 = 1.0", *lines]))


def test_functions_of_pairs() -> None:
    lines = [f"let p{i} y = p{i - 1} (p{i - 1} y)" for i in range(1, 5)]
    check("\n".join(["let p0 y = (y, y)", *lines]))


def test_its_text_is_cut() -> None:
    checked = check_all(load(Source("main.dp", f"let it x0 = {PAIRS} x{DEPTH}")))
    shown = show_scheme(checked.exports["main"].values["it"].scheme)
    assert len(shown) < 5000 and "..." in shown


def test_an_error_in_it() -> None:
    (found,) = rejected(f"let f x0 = {PAIRS} x{DEPTH} + 1.0", "E0204")
    assert len(found.title) < 5000
    rejected(f"let f x0 = {PAIRS} x{DEPTH}\nlet g (y : float) = y\nlet r = g (f 1.0)", "E0201")


def test_a_derivative_with_it() -> None:
    check(f"let d = grad (fun x0 -> {PAIRS} x0) 1.0")


@pytest.mark.parametrize("element", ["{}", "{}.5", "sin {}.5"])
def test_a_list_has_few_types_for_any_number_of_elements(element: str) -> None:
    """All that follows looks once at each type, which a list literal wrote down for each of its elements."""

    def types(n: int) -> int:
        elements = "; ".join(element.format(i) for i in range(n))
        program = check_all(load(Source("main.dp", f"let xs = [{elements}]"))).program
        return len({id(term.ty) for item in program.items for term in within(item.body)})

    assert types(40) == types(10) < 10
