"""Sizes of arrays: inferred, compared, and checked when the program runs where they are not known."""

from __future__ import annotations

import pytest
from checking import check, rejected, types
from dpl.core import term
from dpl.core import ty as t
from dpl.core.walk import subterms
from dpl.source import Source, Span
from dpl.types.state.checks import unlike


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("let it = zeros 3", "'s[3]"),
        ("let it n = fill n 1", ""),
        ("let it (xs : float[n]) = zeros (2 * n + 1)", "float[n] -> 'a[2 * n + 1] with 'a : real, 'a : scalar"),
        ("let it (xs : float[n]) = sum xs / float n", "float[n] -> float"),
        ("let it (a : float[n, k]) (b : float[k, m]) = a @ b", "float[n, k] -> float[k, m] -> float[n, m]"),
        ("let it (xs : float[n]) (ys : float[m]) = xs ++ ys", "float[n] -> float[m] -> float[m + n]"),
        ("let it = flatten (transpose [[1, 2, 3], [4, 5, 6]])", "int[6]"),
        ("let it (xs : float[n]) = xs[1:]", "float[n] -> float[n - 1]"),
        ("let it (xs : float[n, m]) = xs[:, 0:2]", "float[n, m] -> float[n, 2]"),
        ("let it = [for i < 3, j < 4 -> i + j]", "int[3, 4]"),
        ("let it xs = [for x in xs -> x + 1.0]", "'a[n] -> 'a[n] with 'a : real"),
        ("let it (p : float -> bool) xs = filter p xs", "(float -> bool) -> float[n] -> float[?]"),
        (
            "let it p xs = let ys = filter p xs in map2 (fun a b -> a + b) ys ys",
            "('a -> bool) -> 'a[n] -> 'a[?] with 'a : num",
        ),
        (
            "let wrap (n : int) (m : int) (xs : int[n * m]) : int[n, m] = reshape xs\nlet it x = flatten (wrap 2 3 x)",
            "",
        ),
        ("let it (xs : float[n, m]) : float[m, n] = transpose xs", "float[n, m] -> float[m, n]"),
        ("let it = transpose ([] : float[0, 3])", "float[3, 0]"),
        ("let it (n : int) : float[n] = zeros n", "int -> float[?]"),
        ("type (n, m) layer = { w : float[m, n]; b : float[m] }\nlet it (l : (n, m) layer) x = l.w @ x + l.b", ""),
        ("type n vec = float[n]\nlet it (v : 3 vec) = v", "float[3] -> float[3]"),
        ("let it xs = loop s = xs for i < 3 do map (fun x -> x + 1.0) s", "'a[n] -> 'a[n] with 'a : real"),
        (
            "let it (xs : float[n]) = let m = n + 1 in zeros m + (0.0 * zeros m : float[n + 1])",
            "float[n] -> float[n + 1]",
        ),
        ("let it = length", "'a[n] -> int"),
        ("let it xs = [for i < length xs -> xs[i] * 2.0]", "'a[n] -> 'a[n] with 'a : real"),
        ("let init (n : int) : float[n] = zeros n\nlet it = init 3", "float[3]"),
        ("let it = tabulate 4 float", "float[4]"),
        ("let it (xs : float[n]) = (take 2 xs, drop 2 xs)", "float[n] -> float[2] * float[n - 2]"),
        ("let it (xs : float[2 * n + 1]) = n", "float[2 * n + 1] -> int"),
        ("type t = { xs : float[?] }\nlet v = { xs = [1.0] }\nlet it : float[2] = v.xs", "float[2]"),
        ("let it a = match a with [x] -> x | [x, y] -> y | _ -> true", "bool[?] -> bool"),
        ("let it (xs : float[?]) = xs", "float[?] -> float[?]"),
    ],
)
def test_accepted(program: str, expected: str) -> None:
    (got,) = types(program, "it")
    assert not expected or got == expected or got == expected.replace("'s", "float"), got


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("let f (xs : float[n]) (ys : float[m]) = dot xs ys", "E0301"),
        ("let f b = if b then zeros 2 else zeros 3", "E0301"),
        ("let a = [[1; 2]; [3;]]\nlet b = [[1, 2], [3]]", "E0301"),
        ("let m = [[1, 2, 3], [4, 5, 6]]\nlet p = m @ m", "E0303"),
        ("let m = [[1, 2, 3], [4, 5, 6]]\nlet p = transpose m + m", "E0301"),
        ("let f (xs : float[n]) = let n = n + 1 in (zeros n : float[4])", "E0301"),
        ("let f (xs : float[n]) : float[10] = xs", "E0301"),
        ("let f (xs : float[n]) : float[n + n] = xs", "E0301"),
        ("let f xs = xs + (xs ++ xs)", "E0301"),
        ("let p = [1.0, 2.0] @ [1.0, 2.0]", "E0302"),
        ("let f xs = let [a, b] = xs in a + b\nlet c = f [1, 2, 3]", "E0301"),
        ("let r = reshape [1, 2, 3, 4]", "E0306"),
        ("let r : int[2, 2] = reshape [1, 2, 3]", "E0307"),
        ("let r = ([1.0, 2.0] :> float[3])", "E0301"),
        ("let f () : float[n] = [for i < n -> 0.0]", "E0305"),
    ],
)
def test_rejected(program: str, code: str) -> None:
    rejected(program, code)


def test_recursion_at_other_sizes() -> None:
    text = """
let rec total (xs : float[n]) : float = if n = 0 then 0.0 else xs[0] + total xs[1:]
let rec even (xs : float[n]) : bool = n = 0 || odd xs[1:]
and odd (xs : float[n]) : bool = n > 0 && even xs[1:]"""
    assert types(text, "total", "even", "odd") == ["float[n] -> float", "float[n] -> bool", "float[n] -> bool"]
    assert checks(text) == []


def checks(text: str) -> list[term.Check]:
    """The run-time checks in a program."""
    found, stack = [], [item.body for item in check(text).program.items]
    while stack:
        t = stack.pop()
        if isinstance(t, term.Check):
            found.append(t)
        stack += subterms(t)
    return found


def test_what_cannot_be_known_is_checked_when_it_runs() -> None:
    assert len(checks("let f (xs : float[n]) = (xs :> float[10])")) == 1
    assert len(checks("let f (xs : float[3]) = xs\nlet ys = f (filter (fun x -> x > 0.0) [1.0, 2.0])")) == 1
    assert len(checks("let ys : float[3] = filter (fun x -> x > 0.0) [1.0, 2.0]")) == 1
    assert len(checks("let f (xs : float[n]) : float[n] = filter (fun x -> x > 0.0) xs")) == 1
    assert checks("let f (xs : float[n]) (ys : float[n]) = xs + ys\nlet g = f [1.0] [2.0]") == []


def test_one_unknown_size_is_one_size() -> None:
    assert checks("let f p (xs : float[n]) = let ys = filter p xs in map2 (fun a b -> a + b) ys ys") == []


def test_branches_of_unknown_sizes() -> None:
    text = "let f p (xs : float[n]) = let ys = filter p xs in let zs = filter p ys in "
    assert types(text + "if n > 3 then ys else zs", "f") == ["(float -> bool) -> float[n] -> float[?]"]
    assert checks(text + "if n > 3 then ys else zs") == []
    assert checks(text + "match n with 0 -> ys | 1 -> [] | _ -> xs") == []
    assert checks(text + "ys = zs") == []
    assert checks(text + "[ys; zs]") == []


def test_products_are_compared_when_their_factors_are_known() -> None:
    f = "let f (a : float[n * m]) (b : float[n]) (c : float[m]) = sum a + sum b + sum c\n"
    assert checks(f + "let r = f (zeros 6) (zeros 3) (zeros 2)") == []
    rejected(f + "let r = f (zeros 6) (zeros 3) (zeros 3)", "E0301")
    rejected(f + "let g a = f a (zeros 4)\nlet r = g (zeros 6)", "E0301")
    assert len(checks(f + "let r = f (zeros 6) (zeros 3) (filter (fun x -> x > 0.0) [1.0])")) == 1


def test_an_equation_without_a_whole_solution() -> None:
    rejected("let f (a : float[n * m]) (b : float[n]) = sum a + sum b\nlet r = f (zeros 6) (zeros 4)", "E0301")
    rejected("let f (a : float[2 * n]) = sum a\nlet r = f (zeros 3)", "E0301")


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        (
            "let it (xs : float[n]) (ks : float[k]) = [for i < n - k + 1 -> dot xs[i : i + k] ks]",
            "float[n] -> float[k] -> float[n - k + 1]",
        ),
        (
            "let it xs ks = [for i < length xs - length ks + 1 -> xs[i] * ks[0]]",
            "'a[n] -> 'b[m] -> (lift 'a 'b)[n - m + 1] with 'a 'b : num",
        ),
        ("let it (a : float[n]) (b : float[m]) = a ++ b", "float[n] -> float[m] -> float[m + n]"),
        ("let it (a : float[n, m]) = flatten a", "float[n, m] -> float[m * n]"),
        ("let it (a : float[n, m]) : float[n, m] = reshape (flatten a)", "float[n, m] -> float[n, m]"),
        ("let it (a : float[n, m]) = transpose a", "float[n, m] -> float[m, n]"),
        ("let it (xs : float[n]) = xs[1:]", "float[n] -> float[n - 1]"),
        ("let it (xs : float[10]) = xs[2:5]", "float[10] -> float[3]"),
        (
            "let it (xs : float[n]) (b : int) = [for i < n / b -> xs[i * b : i * b + b]]",
            "float[n] -> int -> float[?, ?]",
        ),
        (
            "let f (xs : float[n]) (b : int) = [for i < n / b -> xs[i * b : i * b + b]]\nlet it = f (zeros 6) 2",
            "float[?, 2]",
        ),
        ("let it (xs : float[n]) (i : int) = xs[i : i + 2]", "float[n] -> int -> float[2]"),
        ("let it (xs : float[n]) = take 3 xs", "float[n] -> float[3]"),
        ("let it (xs : float[n]) = drop 3 xs", "float[n] -> float[n - 3]"),
        ("let it (a : float[n, m]) = a[:, 0]", "float[n, m] -> float[n]"),
        ("type n poly = { c : float[n + 1] }\nlet it = { c = [1.0, 2.0, 3.0] }", "2 poly"),
        ("let it = outer [1.0, 2.0] [1.0]", "float[2, 1]"),
    ],
)
def test_exact_sizes(program: str, shown: str) -> None:
    assert types(program, "it") == [shown]


def test_two_parameters_of_one_name_are_told_apart() -> None:
    source = Source("main", "fun b -> fun b -> b")
    ty = t.Arr(t.F64, t.Size(2))
    first, second = (term.Var(Span(source, at, at + 1), ty, f"b.{i}") for i, at in enumerate((4, 13)))
    assert unlike(second, 0, first) == "`b`'s size is not that of the other `b`"
