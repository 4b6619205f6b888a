"""`dpl run --engine`: what native code does not know is run by the interpreter, unless native code is asked for."""

from __future__ import annotations

import pytest

LARGE = """\
let p x = (x, x)
let f x = p (p (p (p x)))
let _large = f (f (f (f 1.0)))
do print "run"
"""
ORDERS = """\
let rec nth n f = if n = 0 then f else nth (n - 1) (diff f)
do print (if nth 4 (fun x -> x ** 5) 1.0 = 120.0 then "run" else "wrong")
"""
NESTED = """\
type 'a nested = Nil | Cons of 'a * ('a * 'a) nested
let _pairs = Cons (1, Cons ((2, 3), Nil))
do print "run"
"""
MUTUAL = """\
type 'a here = A | Here of 'a option there
and 'a there = B | There of string * 'a here
type holder = { place : int here; n : int }
let count (h : holder) = h.n
do (if count { place = Here (There ("x", A)); n = 3 } = 3 then print "run")
"""
PHANTOM = """\
type 'a deep = End | Deep of 'a list deep
do print (match (Deep (Deep End) : int deep) with End -> "wrong" | Deep _ -> "run")
"""
DIFFERENTIATED = """\
type 'a nested = Nil | Cons of 'a * ('a list) nested
let first x = match Cons (x, Cons ([x * x;], Nil)) with Cons (_, Cons ([y;], _)) -> y | _ -> x
do print (if grad first 3.0 = 6.0 && diff first 3.0 = 6.0 then "run" else "wrong")
"""
STREAM = """\
type 'a stream = Stop | Next of 'a * (unit -> ('a * 'a) stream)
do print (match Next (1, fun () -> Next ((2, 3), fun () -> Stop)) with
  | Next (_, rest) -> (match rest () with Next (_, _) -> "run" | Stop -> "wrong")
  | Stop -> "wrong")
"""
PROGRAMS = {
    "large": LARGE, "orders": ORDERS, "nested": NESTED, "mutual": MUTUAL, "phantom": PHANTOM,
    "differentiated": DIFFERENTIATED, "stream": STREAM,
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize(("engine", "code", "printed", "told"), [
    ((), 0, "run\n", "warning[W0219]: native code does not know this: "),
    (("--engine", "native"), 1, "", "error[W0219]: native code does not know this: "),
    (("--engine", "interp"), 0, "run\n", ""),
])  # fmt: skip
def test_a_program_that_native_code_does_not_know(
    dpl, tmp_path, program: str, engine, code: int, printed: str, told: str
) -> None:
    file = tmp_path / "it.dp"
    file.write_text(program, encoding="utf-8")
    run = dpl("run", *engine, file)
    assert (run.returncode, run.stdout) == (code, printed), run.stderr
    assert run.stderr.startswith(told) and bool(run.stderr) == bool(told), run.stderr


@pytest.mark.parametrize("program", [NESTED, MUTUAL, PHANTOM], ids=["nested", "mutual", "phantom"])
def test_nothing_is_built_of_types_without_end(dpl, tmp_path, program: str) -> None:
    (tmp_path / "it.dp").write_text(program, encoding="utf-8")
    run = dpl("build", "--emit", "obj", "it.dp", cwd=tmp_path)
    assert run.returncode == 1 and not (tmp_path / "it.o").exists()
    assert run.stderr.startswith("error[E0573]: ") and "of ever larger types" in run.stderr and "^" in run.stderr
