"""Facts about correct differentiable languages, by the names of the cases they were translated from.

Programs `FAMILY.dp` print a line for each case; `FAMILY.out` has what is right.  Types are in the table below.  Where
systems differ, DPL's answer is that of its conventions (integer division floors, minus binds looser than power).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output

HERE = Path(__file__).parent
FAMILIES = sorted(HERE.glob("*.dp"))
LONG = ("rob_long",)  # for the interpreter
RUNS = [(path, engine) for path in FAMILIES for engine in ("interp", "native")]

ACCEPTED = [
    ("TYPE-01", "let it = fun x -> x", "'a -> 'a"),
    ("TYPE-03", "let it = (fun f g x -> f (g x), fun f x y -> f y x)",
     "(('a -> 'b) -> ('c -> 'a) -> 'c -> 'b) * (('d -> 'e -> 'f) -> 'e -> 'd -> 'f)"),
    ("TYPE-04", "let it = let id = fun x -> x in (id 1, id true)", "int * bool"),
    ("TYPE-06", "let it x = let g y = (x, y) in (g 1, g true)", "'a -> ('a * int) * ('a * bool)"),
    ("TYPE-13", "type 'a mu = Roll of ('a mu -> 'a)\n"
     "let it f = let w = (fun r -> fun a -> match r with Roll x -> f (x r) a) in w (Roll w)",
     "(('a -> 'b) -> 'a -> 'b) -> 'a -> 'b"),
    ("TYPE-34", "let rec it x = it x", "'a -> 'b"),
    ("TYPE-36", 'let it = let f = fun x -> x in let g = f in (g 1, g "s")', "int * string"),
    ("TYPE-48", "type t = Leaf | Node of f and f = Nil | Cons of t * f\n"
     "let rec it x = match x with Leaf -> 1 | Node f -> sf f\n"
     "and sf x = match x with Nil -> 0 | Cons (t, f) -> it t + sf f",
     "t -> int"),
    ("TYPE-50", "let it = fun (x : int) -> x", "int -> int"),
]  # fmt: skip

REJECTED = [
    ("TYPE-05", "do print ((fun id -> (id 1, id true)) (fun x -> x))", "E02"),
    ("TYPE-11", "type 'a t = 'a\nlet it = fun (g : ('a * 'b -> 'a t -> 'a)) s -> g s s", "E02"),
    ("TYPE-12", "let it = fun f -> (fun x -> f (x x)) (fun x -> f (x x))", "E02"),
    ("TYPE-15", "let rec f x = x and g () = (f 1, f true)", "E02"),
    ("TYPE-19", "let it = [1; true]", "E02"),
    ("TYPE-20", 'let it = fun b -> if b then 1 else "x"', "E02"),
    ("TYPE-23", "let it = let f x y = x + y in f 1 2 3", "E02"),
    ("TYPE-24", "let it = fun x -> y", "E02"),
    ("TYPE-25", "let it = match 1 with Foo -> 2", "E02"),
    ("TYPE-26", "type t = A of int * int\nlet it = match A (1, 2) with A (x, y, z) -> x", "E02"),
    ("TYPE-30", "let it o = match o with (Some x | None) -> 1", "E02"),
    ("TYPE-47", "type t = t list", "E02"),
    ("TYPE-52", "let it = ((fun x -> x + 1) : bool -> int)", "E02"),
    ("TYPE-57", "let it = diff (fun n -> n + 1) (3 : int)", "E0"),
    ("TYPE-63", "let it = reset (let x = shift k -> [k 1; k 2] in [x;])", "E0"),  # answer-type modification
    ("TYPE-66", "let rec it xs = match xs with [] -> shift k -> k | h :: t -> h :: it t", "E0"),
    ("TYPE-70", "let it = (fun x -> x) = (fun x -> x)", "E02"),
    ("PERT-20", "let g = diff (fun x -> fun y -> x * x * y) 3.0\ndo print (g 2.0, g 5.0)", "E04"),  # gives a function
    ("API-35", "let it = snd (vjp (fun (v : float[3]) -> v) [1.0, 2.0, 3.0]) [1.0, 2.0]", "E03"),
    ("API-36", "let it = jvp (fun (x, y) -> x * y) (1.0, 2.0) 1.0", "E02"),
    ("ROB-42", "let rec = 1", "E01"),
    ("ROB-42 a keyword", "let match = 2", "E01"),
]

FAILING = [
    (
        "API-35 an unknown size",
        "let some (v : float[n]) = filter (fun x -> x > 0.0) v\n"
        "do print (snd (vjp (fun v -> 2.0 * some v) [1.0, 2.0, 3.0]) (some [1.0, 2.0]))",
        "sizes 2 and 3 differ",
    ),
    ("API-35 a list", "do print (snd (vjp (List.map sin) [1.0; 2.0]) [1.0;])", "constructor"),
    (
        "API-35 in data",
        "type t = L of float[?] | N of t * t | M of (int * float[?])[?]\n"
        "let rec same t = match t with L x -> L (2.0 * x) | N (a, b) -> N (same a, same b) | M xs -> M xs\n"
        "let some (v : float[n]) = filter (fun x -> x > 0.0) v\n"
        "let at n = N (L (some [1.0, 2.0]), M [(1, some (zeros n + 1.0))])\n"
        "do print (snd (vjp same (at 2)) (at 3))",
        "sizes 3 and 2 differ",
    ),
    (
        "API-36 an unknown size",
        "let some (v : float[n]) = filter (fun x -> x > 0.0) v\n"
        "do print (jvp (fun v -> 2.0 * v) (some [1.0, 2.0, 3.0]) (some [1.0, 2.0]))",
        "sizes 2 and 3 differ",
    ),
    (
        "a rule's cotangent",
        "let f = with_vjp (fun x -> sum x) (fun x -> (sum x, fun dy -> [for i < int x[0] -> dy]))\n"
        "do print (grad f [2.0, 1.0, 1.0])",
        "sizes 2 and 3 differ",
    ),
    (
        "a rule's cotangent, forward",
        "let f = with_vjp (fun x -> sum x) (fun x -> (sum x, fun dy -> [for i < int x[0] -> dy]))\n"
        "do print (jvp f [2.0, 1.0, 1.0] [1.0, 0.0, 0.0])",
        "sizes 2 and 3 differ",
    ),
    (
        "a rule's tangent",
        "let f = with_jvp (fun x -> x) (fun x dx -> (x, [for i < int x[0] -> dx[0]]))\n"
        "do print (jvp f [2.0, 1.0, 1.0] [1.0, 0.0, 0.0])",
        "sizes 2 and 3 differ",
    ),
    ("API-36 a list", "do print (jvp (List.map sin) [1.0; 2.0] [1.0;])", "constructor"),
    ("ROB-24", "do print (1 / 0)", "division by zero"),
    ("ROB-24 remainder", "do print (1 % 0)", "division by zero"),
    ("ROB-34", "do print (maximum (zeros 0))", "maximum"),
    ("ROB-35", "do print [1, 2, 3][3]", "index 3"),
    ("ROB-35 negative", "do print [1, 2, 3][-1]", "index -1"),
    ("ROB-35 huge", "do print [1, 2, 3][max_int]", "index 9223372036854775807"),
    ("ROB-36", "do print (diff (fun x -> [x][1]) 1.0)", "index 1"),
    ("ROB-36 reverse", "do print (grad (fun x -> [x][1]) 1.0)", "index 1"),
    ("ROB-40", "let rec f x = 1 + f x\ndo print (f 1)", "deep"),
]


def run_of(program: Path, engine: str):
    marks = [pytest.mark.slow] if engine == "interp" and program.stem in LONG else []
    return pytest.param(program, engine, id=f"{program.stem}-{engine}", marks=marks)


@pytest.mark.parametrize(("program", "engine"), [run_of(*run) for run in RUNS])
def test_values(dpl, program: Path, engine: str) -> None:
    run = dpl("run", "--engine", engine, program.relative_to(ROOT), timeout=300)
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, program.with_suffix(".out").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("text", "scheme"), [a[1:] for a in ACCEPTED], ids=[a[0] for a in ACCEPTED])
def test_accepted(dpl, tmp_path, text: str, scheme: str) -> None:
    file = tmp_path / "it.dp"
    file.write_text(text + "\n", encoding="utf-8")
    run = dpl("check", "--types", file)
    assert run.returncode == 0, run.stderr
    assert f"it : {scheme}" in run.stdout.split("\n")


@pytest.mark.parametrize(("text", "code"), [r[1:] for r in REJECTED], ids=[r[0] for r in REJECTED])
def test_rejected(dpl, tmp_path, text: str, code: str) -> None:
    file = tmp_path / "it.dp"
    file.write_text(text + "\n", encoding="utf-8")
    run = dpl("check", file)
    assert run.returncode == 1 and not run.stdout
    assert run.stderr.startswith(f"error[{code}") and "it.dp:" in run.stderr, run.stderr


@pytest.mark.parametrize("engine", ["interp", "native"])
@pytest.mark.parametrize(("text", "words"), [f[1:] for f in FAILING], ids=[f[0] for f in FAILING])
def test_failing(dpl, tmp_path, text: str, words: str, engine: str) -> None:
    file = tmp_path / "it.dp"
    file.write_text(text + "\n", encoding="utf-8")
    run = dpl("run", "--engine", engine, file, DPL_STACK="16")
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith("error[R0") and words in run.stderr and "it.dp:" in run.stderr, run.stderr


def test_many_constructors(dpl, tmp_path) -> None:  # ROB-15
    names = [f"C{i}" for i in range(1000)]
    arms = " ".join(f"| {name} -> {i}" for i, name in enumerate(names))
    file = tmp_path / "it.dp"
    declared = f"type t = {' | '.join(names)}\n"
    file.write_text(f"{declared}let f x = match x with {arms}\ndo print (f C999, f C0)\n", encoding="utf-8")
    for engine in ("interp", "native"):
        run = dpl("run", "--engine", engine, file)
        assert run.stdout == "(999, 0)\n", run.stderr


def test_many_lets(dpl, tmp_path) -> None:  # ROB-49
    lets = "\n".join(f"let x{i} = x{i - 1} + 1" for i in range(1, 10_000))
    file = tmp_path / "it.dp"
    file.write_text(f"let x0 = 1\n{lets}\ndo print x9999\n", encoding="utf-8")
    assert dpl("run", file).stdout == "10000\n"


def test_the_same_every_time(dpl) -> None:  # ROB-50
    program = (HERE / "cont.dp").relative_to(ROOT)
    first, second = (dpl("run", "--no-cache", program, PYTHONHASHSEED=seed).stdout for seed in ("1", "2"))
    assert first == second
    first, second = (dpl("dump", "reference_counts", program, PYTHONHASHSEED=seed).stdout for seed in ("1", "2"))
    assert first == second


@pytest.mark.slow
def test_windows_in_two_dimensions_are_the_same_every_time(dpl) -> None:
    program = "benchmarks/arrays/lenet_sums.dp"
    first, second = (dpl("dump", "join", program, PYTHONHASHSEED=seed).stdout for seed in ("1", "2"))
    assert first and first == second
