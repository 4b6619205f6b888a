"""Functions with rules of their own, in both modes, and checkpoints."""

from __future__ import annotations

import pytest
from dplc.flat import term as f
from dplc.flat.interp_ops import Failure
from flatly import Builder, F, expanded, fn, num, with_ad

SEVEN = num(7.0)  # the rules here are wrong on purpose, so that it shows who was asked


def square(b: Builder, x: f.Var) -> f.Atom:
    return b.op("mul", (x, x))


def vjp_rule(supply: f.Supply) -> f.Program:
    rule = fn("rule", (F,), lambda b, x: (b.op("mul", (x, x)), b.make((SEVEN,))), supply)
    pull = fn("pull", (f.Tup((F,)), F), lambda b, k, dy: b.op("mul", (b.get(k, 0), dy)), supply)
    fns = {"f": fn("f", (F,), square, supply), "rule": rule, "pull": pull}
    return f.Program(fns, rules={"f": f.Rule("vjp", "rule", "pull")})


def jvp_rule(supply: f.Supply) -> f.Program:
    rule = fn("rule", (F, F), lambda b, x, dx: (b.op("mul", (x, x)), b.op("mul", (SEVEN, dx))), supply)
    return f.Program({"f": fn("f", (F,), square, supply), "rule": rule}, rules={"f": f.Rule("jvp", "rule")})


@pytest.mark.parametrize("made", [vjp_rule, jvp_rule])
def test_a_rule_serves_both_modes(made) -> None:
    supply = f.Supply()
    program = made(supply)
    program.fns["g"] = fn("g", (F,), lambda b, x: b.op("sin", (b.calls("f", (x,), (F,))[0],)), supply)
    machine = expanded(with_ad(program, "g", supply))
    (value,) = machine.call("g", 0.5)
    for mode in "JV":
        y, derivative = machine.call(f"g.{mode}", 0.5, 1.0)
        assert y == value and abs(derivative - 7.0 * 0.9689124217106447) < 1e-12


@pytest.mark.parametrize("mode", "JV")
def test_a_rule_that_multiplies_tangents_fails(mode: str) -> None:
    supply = f.Supply()
    program = jvp_rule(supply)
    program.fns["rule"] = fn("rule", (F, F), lambda b, x, dx: (b.op("mul", (x, x)), b.op("mul", (dx, dx))), supply)
    machine = expanded(with_ad(program, "f", supply))
    with pytest.raises(Failure, match="R0504"):
        machine.call(f"f.{mode}", 0.5, 1.0)


def test_a_checkpoint_prints_once() -> None:
    supply = f.Supply()

    def inner(b: Builder, x: f.Var) -> f.Atom:
        b.bind(f.Op("write", (f.Const("here ", f.STR),)), ())
        return b.op("sin", (b.op("mul", (x, x)),))

    def outer(b: Builder, x: f.Var) -> f.Atom:
        return b.op("mul", (b.calls("inner", (x,), (F,))[0], x))

    program = f.Program({"inner": fn("inner", (F,), inner, supply), "f": fn("f", (F,), outer, supply)})
    plain = expanded(with_ad(f.Program(dict(program.fns)), "f", supply)).call("f.V", 0.7, 1.0)
    program.checkpoints = {"inner"}
    machine = expanded(with_ad(program, "f", supply))
    assert machine.call("f.V", 0.7, 1.0) == plain
    assert machine.outside.output == ["here "]
