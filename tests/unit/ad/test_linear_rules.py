"""What `with_jvp` is given is linear in the tangent, or the program says so, in both engines and modes."""

from __future__ import annotations

import pytest

NOT_LINEAR = [
    ("a product", "t * t"),
    ("a call", "let rec square n = if n = 0 then t * t else square (n - 1) in square 3"),
    ("a sum", "t + x"),
    ("a sum of arrays", "sum ([1.0, x] + t)"),
    ("a constant", "x"),
    ("a literal", "1.0"),
    ("a branch", "if x > 2.0 then t * cos x else 1.0"),
    ("a loop", "loop s = 1.0 for _ < 3 do s * t"),
    ("a quotient", "x / t"),
    ("a bend", "max t 0.0"),
]
LINEAR = [
    ("0.0", "0.0"),
    ("t + (x - x)", "1.0"),
    ("if x > 0.5 then t * x else t * t", "1.0"),
    ("if x > 0.5 then t * x else 1.0", "1.0"),
    ("loop s = 0.0 for _ < 3 do s + t * x", "3.0"),
    ("let _unused = t * t in 2.0 * t", "2.0"),
    ("List.fold (fun a b -> a + b) 0.0 [t; 2.0 * t]", "3.0"),
    ("sum ([1.0, x] * t)", "2.0"),
    ("(Linalg.solve [[2.0, x], [0.0, 1.0]] [t, 2.0 * t])[0]", "-0.5"),
    ("-t + t - 2.0 * t", "-2.0"),
]


@pytest.mark.parametrize("engine", ["interp", "native"])
@pytest.mark.parametrize("tangent", [r[1] for r in NOT_LINEAR], ids=[r[0] for r in NOT_LINEAR])
def test_rules_that_are_not_linear(dpl, tmp_path, tangent: str, engine: str) -> None:
    file = tmp_path / "it.dp"
    rule = f"let f = with_jvp sin (fun x t -> (sin x, {tangent}))"
    for derivative in ("grad", "diff"):
        file.write_text(f'{rule}\ndo print "before"\ndo print ({derivative} f 1.0)\n', encoding="utf-8")
        run = dpl("run", "--engine", engine, file)
        assert (run.returncode, run.stdout) == (1, "before\n")
        assert run.stderr.startswith("error[R0504]: the rule given to `with_jvp` is not linear"), run.stderr


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_rules_that_are_linear(dpl, tmp_path, engine: str) -> None:
    file = tmp_path / "it.dp"
    rules = "\n".join(f"let f{i} = with_jvp sin (fun x t -> (sin x, {t}))" for i, (t, _) in enumerate(LINEAR))
    prints = "\n".join(f"do print (grad f{i} 1.0, diff f{i} 1.0)" for i in range(len(LINEAR)))
    file.write_text(f"{rules}\n{prints}\n", encoding="utf-8")
    run = dpl("run", "--engine", engine, file)
    assert run.stdout == "".join(f"({slope}, {slope})\n" for _, slope in LINEAR), run.stderr
