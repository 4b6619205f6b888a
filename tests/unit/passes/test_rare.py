"""Selections that matter for numbers that are none, as branches: the same values, the usual ones at once."""

from __future__ import annotations

import math

import pytest
from dplc.ad.rules.bulk import masked
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, Part
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.interp import Machine
from dplc.flat.verify import verify
from dplc.passes.simplify.nan_guards import branch_on_nan_guards


def program() -> f.Program:
    """f(t, p) = t p, but nothing if t is nothing and the product none."""
    supply = f.Supply()
    t, p = f.Var("t", f.F64), f.Var("p", f.F64)
    b = Builder(supply)
    result = masked(b, Part(t, MAYBE_ZERO), b.op("mul", (t, p)))
    return f.Program({"f": f.Fn("f", (t, p), (f.F64,), b.block(result))})


@pytest.mark.parametrize(
    ("t", "p", "result"), [(2.0, 3.0, 6.0), (0.0, 3.0, 0.0), (0.0, math.inf, 0.0), (2.0, math.inf, math.inf)]
)
def test_the_same_values(t: float, p: float, result: float) -> None:
    for made in (program(), branch_on_nan_guards(program())):
        assert Machine(verify(made)).call("f", t, p) == (result,)


def test_not_a_number_stays_none() -> None:
    (result,) = Machine(verify(branch_on_nan_guards(program()))).call("f", 1.0, math.nan)
    assert math.isnan(result)


def test_the_product_is_tested_and_nothing_else() -> None:
    body = branch_on_nan_guards(program()).fns["f"].body
    assert [getattr(bind.rhs, "op", "if") for bind in body.binds] == ["mul", "eq", "if"]


def test_what_looks_alike_stays() -> None:
    made = program()
    fn = made.fns["f"]
    changed = [f.Bind(b.vars, f.Op("select", (b.rhs.args[0], f.Const(1.0, f.F64), b.rhs.args[2])))
               if isinstance(b.rhs, f.Op) and b.rhs.op == "select" else b for b in fn.body.binds]  # fmt: skip
    made.fns["f"] = f.Fn("f", fn.params, fn.results, f.Block(tuple(changed), fn.body.results))
    assert branch_on_nan_guards(made).fns["f"] == made.fns["f"]
