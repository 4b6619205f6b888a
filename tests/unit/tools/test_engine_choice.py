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


@pytest.mark.parametrize("program", [LARGE, ORDERS], ids=["large", "orders"])
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
