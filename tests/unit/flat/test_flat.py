"""Verify, show and the evaluator on a small program."""

import pytest
from dpl.diagnostics import Bug
from dplc.flat import term as f
from dplc.flat.interp import Machine
from dplc.flat.show import show_fn
from dplc.flat.verify import verify

x, n, s, t, y, r, i = (f.Var(name, f.F64) for name in "xnstyri")
n, i = f.Var("n", f.I64), f.Var("i", f.I64)

POWER = f.Fn("power", (x, n), (f.F64,), f.Block((
    f.Bind((y,), f.Op("mul", (x, x))),
    f.Bind((r,), f.For(i, n, (s,), (y,), f.Block((f.Bind((t,), f.Op("mul", (s, x))),), (t,)))),
), (r,)))  # fmt: skip


def program(*fns: f.Fn) -> f.Program:
    return f.Program({fn.name: fn for fn in fns})


def test_run() -> None:
    assert Machine(verify(program(POWER))).call("power", 2.0, 3) == (32.0,)


def test_show() -> None:
    assert show_fn(POWER).splitlines() == [
        "fn power(x: f64, n: i64) -> (f64)",
        "  y: f64 = mul x x",
        "  r: f64 = for i < n state (s: f64 = y)",
        "    t: f64 = mul s x",
        "    yield t",
        "  return r",
    ]


@pytest.mark.parametrize("body", [
    f.Block((), (y,)),
    f.Block((f.Bind((x,), f.Op("neg", (x,))),), (x,)),
    f.Block((f.Bind((y,), f.Op("lt", (x, x))),), (y,)),
    f.Block((f.Bind((y,), f.Call("g", (x,))),), (y,)),
])  # fmt: skip
def test_wrong(body: f.Block) -> None:
    with pytest.raises(Bug):
        verify(program(f.Fn("wrong", (x,), (f.F64,), body)))
