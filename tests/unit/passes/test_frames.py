"""Recursion that makes references for its own calls, as the continuations of Lantern's loops are: no frame and no
reference is left for each step."""

from __future__ import annotations

import pytest
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.walk import blocks, every
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack

LANTERN = """
let less n = n - 1
open Lantern
let until (step : num -> num -> num) (x : num) =
  let (y, _) = loop (y, n) = (x, 9) while n > 0 do (step y x, less n) in y
let f (x : num) = {}
do print (Lantern.grad f 0.3)
"""
STEPS = {
    "plain": "until (fun y x -> sin (y * x)) x",
    "both arms": "until (fun y x -> if y.x > 1.0 then sin (y * x) else y + x) x",
    "one arm": "until (fun y x -> if y.x > 1.0 then x else y + x) x",
    "nested": "until (fun y x -> if y.x > 1.0 then (if y.x > 1.2 then y * x else sin y) else y + x) x",
    "something after": "until (fun y x -> let z = if y.x > 1.0 then y * x else y + x in z * x) x",
    "match": "loop y = x for i < 9 do (match (i % 2, y.x > 1.0) with (0, true) -> y * x | (0, _) -> x | _ -> y + x)",
    "loop in a loop": "loop y = x for i < 9 do loop z = y for j < i do (if j > 3 then z * x else z + y)",
    "early": "let (y, _) = loop (y, n) = (x, 9) while n > 0 do (if y.x > 2.0 then (y, 0) else (y + x, less n)) in y",
}


def flat(text: str, stage: str) -> f.Program:
    return on_large_stack(lambda: compile_to(stage, Source("it.dp", text), Context(verify=True))[1])


def in_loops(program: f.Program) -> set[str]:
    """The operations in loops."""
    loops = [
        bind.rhs for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.For | f.While)
    ]
    inside = [bind.rhs for loop in loops for block in blocks(loop) for bind in every(block)]
    return {rhs.op for rhs in inside if isinstance(rhs, f.Op)}


@pytest.mark.parametrize("step", STEPS)
def test_a_loop_of_steps_that_come_back_is_two_loops(step: str) -> None:
    program = flat(LANTERN.replace("{}", STEPS[step]), "simplify2")
    assert not groups(program)[1], "a function calls itself"
    made = in_loops(program)
    assert "index" in made and "ref_new" not in made
    assert not {"ref_get", "ref_set"} & made


@pytest.mark.parametrize("step", STEPS)
def test_references_of_those_who_call_the_loops_are_values_too(step: str) -> None:
    program = flat(LANTERN.replace("{}", STEPS[step]) + "do print (Lantern.grad f 0.4)\n", "simplify2")
    assert not {"ref_get", "ref_set"} & in_loops(program)


def test_which_way_a_step_went_takes_a_byte() -> None:
    fns = flat(LANTERN.replace("{}", STEPS["one arm"]), "simplify2").fns.values()
    kept = [bind.vars[-1].ty for fn in fns for bind in every(fn.body) if getattr(bind.rhs, "collect", 0)]
    assert kept == [f.Arr(f.Tup((f.Num("u8"),)), 1)]


def test_what_a_step_keeps_is_what_grad_keeps() -> None:
    text = LANTERN.replace("{}", STEPS["both arms"].replace("sin (y * x)", "y * x"))
    fns = flat(text, "simplify2").fns.values()
    kept = [bind.vars[-1].ty for fn in fns for bind in every(fn.body) if getattr(bind.rhs, "collect", 0)]
    assert kept == [f.Arr(f.Tup((f.F64,)), 1)]  # the state: it says which way was taken


def test_references_that_data_holds_stay() -> None:
    text = """
    let rec chain n (last : float ref) all =
      if n = 0 then List.iter (fun r -> r := !r + 1.0) (last :: all)
      else (let next = ref 0.5 in chain (n - 1) next (last :: all); last := !last + !next)
    do (let r = ref 2.0 in chain 4 r []; print !r)
    """
    assert any(name.startswith("chain") for name in flat(text, "linear_recursion").fns)


def test_much_code_stays_as_it_is() -> None:
    """What follows a branch is not copied without end."""
    branches = "".join(f"let y = if y.x > 1.0 then sin y * x else y + x * num {i}.0 in " for i in range(30))
    before, after = (
        flat(LANTERN.replace("{}", f"until (fun y x -> {branches} y) x"), s) for s in ("simplify", "linear_recursion")
    )
    assert after.fns.keys() == before.fns.keys()


def test_steps_take_no_stack(dpl, tmp_path) -> None:
    file = tmp_path / "steps.dp"
    step = "if y.x > 1.0 then y * x else y + x"
    file.write_text(LANTERN.replace("{}", f"loop y = x for _ < 1000000 do ({step})"), encoding="utf-8")
    run = dpl("run", file, DPL_STACK="8")
    assert (run.stdout.strip() != "", run.stderr) == (True, "")
