"""Hindley-Milner with let-polymorphism: what is accepted with which type, and what is rejected."""

from __future__ import annotations

import pytest
from checking import check, rejected, type_of, types


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("fun x -> x", "'a -> 'a"),
        ("fun f g x -> f (g x)", "('a -> 'b) -> ('c -> 'a) -> 'c -> 'b"),
        ("fun f x y -> f y x", "('a -> 'b -> 'c) -> 'b -> 'a -> 'c"),
        ("(fun f g x -> f (g x), fun f x y -> f y x)",
         "(('a -> 'b) -> ('c -> 'a) -> 'c -> 'b) * (('d -> 'e -> 'f) -> 'e -> 'd -> 'f)"),
        ("let id = fun x -> x in (id 1, id true)", "int * bool"),
        ("let f x = let g y = (x, y) in (g 1i64, g true) in f", "'a -> ('a * int) * ('a * bool)"),
        ("let f = fun x -> x in let g = f in (g 1, g \"s\")", "int * string"),
        ("let rec go x = go x in go", "'a -> 'b"),
        ("fun (x : int) -> x", "int -> int"),
        ("[]", "'a list"),
        ("[[]; [1;]]", "int list list"),
        ("fun x -> (x, [x; x])", "'a -> 'a * 'a list"),
        ("fun b -> if b then 1 else 2", "bool -> int"),
        ("fun r -> !r", "'a ref -> 'a with 'a : content"),
        ("let f = (fun x -> x) (fun x -> x) in (f 1, f true)", "int * bool"),
        ("fun xs -> match xs with [] -> None | x :: _ -> Some x", "'a list -> 'a option"),
        ("$\"{1 + 2:5d} and {true}\"", "string"),
        ("List.fold ( && ) true", "bool list -> bool"),
        ("( :: )", "'a -> 'a list -> 'a list"),
        ("( !)", "'a ref -> 'a"),
        ("( ** )", "'a -> 'b -> 'c with 'a ** 'b = 'c, 'a : num"),
        ("fun f -> f (fun x -> x)", "(('a -> 'a) -> 'b) -> 'b"),
    ],
)  # fmt: skip
def test_accepted(expression: str, expected: str) -> None:
    got = type_of(expression)
    assert got == expected.replace(" with 'a : content", "") or got == expected


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        ("do print ((fun id -> (id 1, id true)) (fun x -> x))", "E0201", "bool"),
        ("type 'a t = 'a\nlet f = fun g s -> ((g : 'a * 'b -> 'a t -> 'a) s s)", "E0206", "infinite"),
        ("let y = fun f -> (fun x -> f (x x)) (fun x -> f (x x))", "E0206", "infinite"),
        ("let rec f x = x and g () = (f 1, f true)", "E0201", "bool"),
        ("let l = [1; true]", "E0201", "bool"),
        ('let f b = if b then 1 else "x"', "E0201", "string"),
        ("do print (let f x y = x + y in f 1 2 3)", "E0207", "2 arguments"),
        ("let f x = y", "E0202", "`y`"),
        ("do print (match 1 with Foo -> 2)", "E0203", "Foo"),
        ("type t = A of int * int\nlet f v = match v with A (x, y, z) -> x", "E0208", "3 components"),
        ("let f o = match o with (Some x | None) -> 1", "E0208", "both sides"),
        ("type t = t list", "E0209", "infinite"),
        ("let f = ((fun x -> x + 1) : bool -> int)", "E0201", "bool"),
        ("do print (grad (fun (n : int) -> n + 1) 3)", "E0401", "int"),
        ("do print (fst (jvp (fun (n : int) -> n + 1) 3 1))", "E0403", "float"),
        ("do print ((fun x -> x) = (fun x -> x))", "E0204", "compared"),
        ("let Some x = None", "E0205", "None"),
        ("do print (jvp (fun (x, y) -> x * y) (1.0, 2.0) 1.0)", "E0201", "float"),
        ("let f x = match x with 0 -> 1 | 1 -> 2", "E0205", "2"),
        ("let rec x = x + 1", "E0212", "functions"),
        ("let f (x, x) = x", "E0208", "twice"),
        ("let f (x : 'a) : 'a = x + 1.0 ++ \"s\"", "E0210", "string"),
        ("let f : 'a -> 'a = fun x -> x + 1", "E0210", "a number"),
        ("let f (x : 'a) (y : 'b) : 'a = y", "E0210", "'a"),
        ("export let f x = x + 1.0", "E0215", "annotated"),
        ("export let f (x : 'a) : 'a = x", "E0215", "one type"),
        ("let rec f x = f (x, x)", "E0206", "recursive"),
        ("let x : 'a = 3", "E0210", "any type"),
        ("let f y = let x : 'a = y in x", "E0210", "any type"),
        ("let r : 'a list ref = ref []", "E0210", "any type"),
        ("do print (u8 1 + 300)", "E0214", "300"),
        ("do print (List.mapp id [1;])", "E0561", "map"),
        ("let r = ref (fun x -> x)", "E0204", "reference"),
        ("do 3", "E0201", "unit"),
        ("type t = { a : int }\nlet f r = r.b", "E0203", "`b`"),
        ("type t = { a : int; b : int }\nlet r = { a = 1 }", "E0203", "missing"),
    ],
)
def test_rejected(program: str, code: str, words: str) -> None:
    (found,) = rejected(program, code)
    text = " ".join([found.title, found.note, *found.helps])
    assert words in text, text


def test_recursive_types() -> None:
    fix = "type 'a mu = Roll of ('a mu -> 'a)\nlet fix f = let w = (fun (Roll x as r) a -> f (x r) a) in w (Roll w)"
    assert types(fix, "fix") == ["(('a -> 'b) -> 'a -> 'b) -> 'a -> 'b"]
    forest = """
type t = Leaf | Node of f and f = Nil | Cons of t * f
let rec st t = match t with Leaf -> 1 | Node f -> sf f
and sf f = match f with Nil -> 0 | Cons (t, f) -> st t + sf f"""
    assert types(forest, "st", "sf")[0].startswith("t -> ")


def test_annotated_variables() -> None:
    text = "let id : 'a -> 'a = fun x -> x\nlet none : 'a list = []\nlet f x = let g (y : 'a) : 'a = y in (g x, g 1i64)"
    assert types(text, "id", "none", "f") == ["'a -> 'a", "'a list", "'a -> 'a * int"]


def test_patterns_at_the_top() -> None:
    """Each name is as polymorphic as the value, in sizes too; and a pattern gives the type of an error its form."""
    text = "let (n, (f, id)) = (3, ((fun xs -> sum xs), fun x -> x))\nlet s = (f [1.0], f [1i64, 2], id n, id true)"
    assert types(text, "f", "s") == ["'a[n] -> 'a with 'a : num", "float * int * int * bool"]
    assert types('let (p, q) = error "boom"\nlet r = p + 1i64', "r") == ["int"]
    rejected("let f x = unbound x\nlet (p, q) = f 2\nlet [a, b] = f 3\nlet r = p + a", "E0202")


def test_value_restriction() -> None:
    assert types("let r = ref []\ndo r := 1 :: !r", "r") == ["int list ref"]
    rejected("let r = ref []\ndo r := 1 :: !r\ndo r := true :: !r", "E0201")
    rejected(
        "let make () = let r = ref [] in fun x -> r := x :: !r; !r\nlet f = make ()\ndo print (f 1)\ndo print (f true)",
        "E0201",
    )
    assert types('let say x = print "said"; x\nlet f = say (fun x -> x)\ndo print (f 1)', "f") == ["int -> int"]


def test_a_failed_definition_is_told_once() -> None:
    rejected("let f x = x + nothing\nlet g y = f y + 1\nlet h = f 1 2 3\nlet k = 1 + true", "E0202", "E0201")


def test_shadowing() -> None:
    text = 'let f x = x + 1\nlet f x = (f x, x)\nlet ( + ) a b = a ++ b\nlet s = "a" + "b"\nlet v = f 1'
    assert types(text, "s", "v") == ["string", "int * int"]
    names = [item.name for item in check(text).program.items]
    assert names == ["main.f", "main.f#2", "main.+", "main.s", "main.v"]


def test_records_by_the_type_that_is_known() -> None:
    text = """
type a = { x : float; y : int }
type b = { x : string }
let last r = r.x
let known (r : a) = r.x
let made : a = { x = 1.0; y = 2 }
let again = { made with y = 3 }"""
    assert types(text, "last", "known", "made", "again") == ["b -> string", "a -> float", "a", "a"]


def test_numbers() -> None:
    assert types("let f x = x + 1\nlet g x = 2.0 * x\nlet n = 3\nlet h x y = x * y", "f", "g", "n", "h") == [
        "'a -> 'a with 'a : num",
        "'a -> 'a with 'a : real",
        "int",
        "'a -> 'b -> lift 'a 'b with 'a 'b : num",
    ]
    assert types("let eps = 1e-5\nlet f (x : f32) = let eps = 1e-5 in x + eps", "eps", "f") == ["float", "f32 -> f32"]
    assert types("let a = float 1\nlet b = f32 [1, 2]\nlet f x = float x", "a", "b", "f")[:2] == ["float", "f32[2]"]
    assert types("let p x = x ** 2\nlet q = 2.0 ** 3\nlet r = 2.0 ** 0.5", "p", "q", "r") == [
        "'a -> 'a with 'a : num", "float", "float",
    ]  # fmt: skip


def test_lifting() -> None:
    text = "let xs = [1.0, 2.0, 3.0, 4.0]\nlet f w = w * xs\nlet a = f 2.0\nlet b = f xs\nlet m = [xs, xs] + xs"
    assert types(text, "f", "a", "b", "m") == [
        "'a -> float[4] with 'a fits float[4]",
        "float[4]",
        "float[4]",
        "float[2, 4]",
    ]
    rejected("let xs = [1.0, 2.0]\nlet f w = w * xs\nlet b = f [1.0, 2.0, 3.0]", "E0301")
    rejected("let c = [1.0, 2.0] + [1i64, 2]", "E0204")
    rejected("let c = [1.0, 2.0] + (1, 2)", "E0201")


def test_products_of_unknown_rank() -> None:
    text = (
        "let layer (w : float[3, 2]) (b : float[2]) x = tanh (x @ w + b)\nlet one = layer (fill 3 (zeros 2)) (zeros 2)"
    )
    text += "\nlet a = one (zeros 3)\nlet b = one (fill 7 (zeros 3))"
    assert types(text, "a", "b") == ["float[2]", "float[7, 2]"]


def test_modules_and_privacy() -> None:
    assert types("open List\nlet r = rev [1; 2]", "r") == ["int list"]
    rejected("let x = Nowhere.f 1", "E0560")


def test_warnings() -> None:
    found = check("let f x = match x with _ -> 1 | 2 -> 3").warnings
    assert [w.code for w in found] == ["W0201"]
