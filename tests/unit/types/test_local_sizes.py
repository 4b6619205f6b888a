"""Local functions of what has a size, beside arrays of the function around whose types are not known yet."""

from __future__ import annotations

import pytest
from checking import check, rejected, types

GATE = """
type h gate = { left : float[h, h]; bias : float[h] }
let apply g x y = g.left @ x + y + g.bias
let two = { left = [[1.0, 0.0], [0.0, 1.0]]; bias = [1.0, 0.0] }
let three = { left = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]; bias = [1.0, 0.0, 2.0] }
"""
GO = GATE + "let rec go m t = if t = 0 then m.bias else let x = go m 0 in "


@pytest.mark.parametrize(
    "rest",
    [
        "let f g = apply g x x in f m",
        "let f = fun g -> apply g x x in let h = f in f m + h m",
        "let f g = tanh (apply g x x) in f m * f { m with bias = x }",
        "let f (g : k gate) = apply g x x in f m",
        "let f g = { g with bias = g.bias + x } in (f (f m)).left @ x",
        "let f a g = apply g (a * x) in f 1.0 m x + f x m x",
        "let f g = float (length g.bias) * x + g.bias in f m",
        "let f g = (g.bias + x) ** x + x ** 2 + g.bias in f m",
        "let f g = sum (g.left @ x + x + g.bias) in x * f m",
        "let f g = sum (grad (fun y -> sum (apply g y x)) x + g.bias) in x * f m",
        "let f g = loop s = g.bias for i < 3 do g.left @ s + x in f m",
        "let f g = (let r = ref g.bias in r := !r + x; !r) in f m",
        "let (f, h) = ((fun g -> apply g x x), fun g -> g.bias - x) in f m + h m",
        "let rec f g k = if k = 0 then g.bias else apply g x (f g (k - 1)) in f m 3",
        "let rec f g k = if k = 0 then g.bias else apply g x (h g (k - 1)) "
        "and h g k = if k = 0 then g.bias + x else g.left @ x + f g (k - 1) in f m 3",
        "let f gs = sum [for g in gs -> apply g x x] in f [m, m]",
        "[for row in m.left -> let f g = sum (apply g x row) in f m]",
        "fold ( + ) x (map (fun k -> let f g = k * apply g x x in f m) x)",
        "let f a = (let y = x + a in let g r = apply r x y in let h r = g r + y in h m) in f 1.0 + f m.bias",
        "let f a = (let g r = apply r x a in fun r -> g r + a + x) in f 1.0 m + f m.bias m",
    ],
)
def test_the_size_is_that_of_the_recursion(rest: str) -> None:
    (shown,) = types(GO + rest, "go")
    size = shown[: shown.index(" ")]
    assert shown.startswith(f"{size} gate -> 'a -> float[{size}]"), shown


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        (
            "type ('a, h) box = { value : 'a; row : float[h] }\n"
            "let rec it b t = if t = 0 then b.row else let x = it b 0 in let f c = c.value * x + c.row in f b",
            "('a, m) box -> 'b -> float[m] with 'a fits float[m], 'b : num, 'b : scalar",
        ),
        (
            "type h cell = Still of float[h] | Moved of float[h, h]\n"
            "let rec it c t = match c with Moved w -> w[0] | Still b -> if t = 0 then b else let x = it c 0 in "
            "let f d = (match d with Still a -> a + x | Moved w -> w @ x + x) in f c",
            "m cell -> 'a -> float[m] with 'a : num, 'a : scalar",
        ),
        (
            "type h chain = End of float[h] | Link of h gate * h chain\n"
            "let rec it c = match c with End b -> b | Link (g, r) -> let x = it r in let f k = apply k x x in f g",
            "m chain -> float[m]",
        ),
        (
            "type (i, o) dense = { w : float[o, i]; b : float[o] }\nlet rec it d e t = if t = 0 then (d.b, e.b) "
            "else let (x, y) = it d e 0 in let f l v = tanh (l.w @ v + l.b) in (f d y, f e x)",
            "(k, p) dense -> (p, k) dense -> 'a -> float[p] * float[k] with 'a : num, 'a : scalar",
        ),
        ("let it x = let f g = g.bias + x in (f two, f three)",
         "'a -> float[2] * float[3] with 'a fits float[2], 'a fits float[3]"),
        ("let it m = m.bias |> (fun x -> let f g = apply g x x in f m)", "m gate -> float[m]"),
        ("let it = (fun x -> let f g = apply g x x in f two) [1.0, 2.0]", "float[2]"),
    ],
)  # fmt: skip
def test_types(program: str, shown: str) -> None:
    assert types(GATE + program, "it") == [shown]


def test_one_array_serves_each_size_if_it_is_a_number() -> None:
    text = "let f x = let g r = r.bias + x in (g two, g three)\n"
    check(GATE + text + "do print (f 1.0)")
    rejected(GATE + text + "do print (f [1.0, 2.0])", "E0301")


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("let f x = let g r = r.left @ x in (g two, g three)\ndo print (f [1.0, 2.0])", "E0303"),
        ("let f x = let g r = r.left @ x + r.bias in g\ndo print (f [1.0, 2.0] three)", "E0301"),
        (
            "let f x = let g r = r.bias + x in let h r = r.left @ x in (g two, h three)\ndo print (f [1.0, 2.0])",
            "E0303",
        ),
        ("let f (x : float[3]) = let g r = apply r x x in g two", "E0303"),
        ("let f (x : float[n]) = let g (r : m gate) = apply r x x in g two", "E0303"),
        ("let f y = let x = [1.0, 2.0] in let g (r : n gate) = apply r x y in g two", "E0303"),
        ("let f c x = let g (a : float[n]) = (if c then a else x) in (g [1.0], g [1.0, 2.0])", "E0301"),
        ("let f c x = let g (a : float[n]) = (if c then a else x) in g\ndo print (f true [1.0, 2.0] [1.0])", "E0301"),
        ("let f x = let g (a : float[n]) = a + x in g\ndo print (f [1.0, 2.0] [1.0])", "E0301"),
    ],
)
def test_rejected(program: str, code: str) -> None:
    rejected(GATE + program, code)


def test_a_local_size_hides_no_other_error() -> None:
    """The size of the annotation is that of `x`, where the call is followed."""
    (found,) = rejected(
        GATE + 'let f x = let g (r : n gate) = apply r x x in g two\ndo print (f [1.0, 2.0] + "s")', "E0201"
    )
    assert found.span is not None and found.span.text == "+"


def test_constraints_do_not_multiply() -> None:
    """Each local function calls the one before twice; what they need of `x` is said once."""
    chain = "".join(f"let g{k + 1} r = g{k} r + g{k} r in " for k in range(12))
    (shown,) = types(f"{GATE}let it x = let g0 r = r.left @ x + x + r.bias in {chain}g12", "it")
    assert shown.count("@") == 1
