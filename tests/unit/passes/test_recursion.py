"""Recursion over data: calls that fill a hole, and parameters that never vary."""

from __future__ import annotations

from dpl.source import Source
from dplc.flat import term as f
from dplc.passes.recursion.modulo_cons import with_holes
from dplc.pipeline import Context, compile_to

LISTS = """
let rec make n = if n = 0 then [] else float n :: make (n - 1)
let rec keep p xs = match xs with [] -> [] | x :: rest -> if p x then x :: keep p rest else keep p rest
let rec append xs ys = match xs with [] -> ys | x :: rest -> x :: append rest ys
let rec total xs = match xs with [] -> 0.0 | x :: rest -> x * x + total rest
"""


def flat(text: str, stage: str) -> f.Program:
    return compile_to(stage, Source("test.dp", text), Context())[1]


def named(program: f.Program, names: set[str]) -> set[str]:
    return {program.fns[name].label or name.split(".")[0] for name in names}


def test_calls_that_are_last_but_for_a_cell() -> None:
    text = LISTS + "do print (total (append (keep (fun x -> x > 2.0) (make 9)) (make 3)))"
    program = flat(text, "reference_counts")
    assert named(program, with_holes(program)) == {"make", "keep", "append"}


def test_derivatives_along_lists_leave_holes_too() -> None:
    """The forward function makes a list and a record; the cotangent of a list may be null."""
    scale = "let rec scale xs = match xs with [] -> [] | x :: rest -> sin x :: scale rest\n"
    text = LISTS + scale + "do print (grad (fun xs -> total (keep (fun x -> x > 0.2) (scale xs))) (make 9))"
    program = flat(text, "reference_counts")
    holed = {name.partition(".")[0] + name[name.rfind(".") :] for name in with_holes(program) if name.endswith("wd")}
    assert holed == {"scale.fwd", "scale.bwd", "keep.fwd", "keep.bwd", "total.bwd"}


def test_a_call_gives_other_results_too() -> None:
    """The list, the references that it holds, and their number."""
    text = """
    let f xs = List.fold (fun s (r, i) -> s + (!r)[i]) 0.0 (List.init 9 (fun i -> (ref xs, i)))
    do print (grad f (ones 9))
    """
    program = flat(text, "reference_counts")
    holed = [program.fns[name] for name in with_holes(program)]
    assert ("List.map", 3) in {(fn.label, len(fn.results)) for fn in holed}


def test_cotangents_that_never_vary_are_no_parameters() -> None:
    program = flat(LISTS + "do print (grad total [1.0; 2.0])", "simplify2")
    (reverse,) = [fn for name, fn in program.fns.items() if name.endswith(".bwd")]
    assert len(reverse.params) == 1  # what was kept: the result's cotangent is 1.0, the list has none so far


def test_a_parameter_that_varies_stays() -> None:
    text = """
    let rec power n x = if n = 0 then 1.0 else x * power (n - 1) x
    do print (power 3 2.0, power 4 2.0, power 4 3.0)
    """
    program = flat(text, "simplify2")
    assert [len(fn.params) for name, fn in program.fns.items() if name.startswith("power")] == [2]


def test_a_list_of_any_length_takes_no_stack(dpl, tmp_path) -> None:
    file = tmp_path / "long.dp"
    file.write_text(LISTS + "do print (List.length (append (keep (fun x -> x > 1e5) (make 300000)) (make 5)))\n")
    run = dpl("run", file, DPL_STACK="8")
    assert (run.stdout, run.stderr) == ("200005\n", "")


def test_nor_does_its_gradient(dpl, tmp_path) -> None:
    file = tmp_path / "long.dp"
    lines = [
        "let f xs = match keep (fun x -> x > 1e5) (append xs (make 5)) with x :: y :: _ -> x * y | _ -> 0.0",
        "do print (match grad f (make 300000) with x :: y :: _ -> (x, y) | _ -> (0.0, 0.0))",
    ]
    file.write_text(LISTS + "\n".join(lines) + "\n")
    run = dpl("run", file, DPL_STACK="8")
    assert (run.stdout, run.stderr) == ("(299999.0, 300000.0)\n", "")
