"""flat -> flat without parameters that are the same constant in every call.

    fn f(x, acc) { ...; y = f(a, null); ... }         fn f(x) { ... null ...; y = f(a); ... }
    r = f(b, null)                               =>   r = f(b)

The backward code of a recursive function takes the cotangents that other uses of its arguments have added so far.  If
there are no other uses, these are null in every call, and need not be tested.

This is an optimistic fixpoint (interprocedural constant propagation): all parameters start as unknown; then the values
that calls give are joined, until nothing changes.  A parameter that a function passes on has the value that it was
given.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.walk import every, supply_for, with_binds, with_blocks, with_body, with_rhs
from dplc.passes.simplify.value_numbers import expression_of

Param = tuple[str, str]  # function, parameter
Given = dict[Param, f.Const | None]  # its constant value; None: it varies; absent: no call is known yet


def constant_parameters(program: f.Program) -> f.Program:
    given = gather(program)
    fixed = program.checkpoints | set(program.rules)
    fixed |= {name for rule in program.rules.values() for name in (rule.fn, rule.pullback)}
    same: dict[str, dict[str, f.Atom]] = {}
    for name, fn in program.fns.items():
        constants: dict[str, f.Atom] = {p.name: c for p in fn.params if (c := given.get((name, p.name))) is not None}
        if constants and name not in fixed:
            same[name] = constants
    if not same:
        return program
    supply = supply_for(program)
    fns = {}
    for name, fn in program.fns.items():
        body = without(fn.body, program, same)
        fns[name] = with_body(fn, body)
        if name in same:
            left = tuple([p for p in fn.params if p.name not in same[name]])
            fns[name] = replace(fn, params=left, body=Copier(supply, same[name]).block(body))
    return replace(program, fns=fns)


def gather(program: f.Program) -> Given:
    calls: list[tuple[f.Fn, f.Call]] = []
    given: Given = {}
    for fn in program.fns.values():
        for bind in every(fn.body):
            rhs = bind.rhs
            if isinstance(rhs, f.Call):
                calls.append((fn, rhs))
            elif isinstance(rhs, f.Ad):  # the derivative calls it with other arguments
                given |= {(rhs.fn, p.name): None for p in program.fns[rhs.fn].params}
    params = {name: {p.name for p in fn.params} for name, fn in program.fns.items()}
    while True:
        before = dict(given)
        for caller, call in calls:
            for param, arg in zip(program.fns[call.fn].params, call.args, strict=True):
                if isinstance(arg, f.Var) and arg.name in params[caller.name] and (caller.name, arg.name) not in given:
                    continue
                value = given.get((caller.name, arg.name)) if isinstance(arg, f.Var) else arg
                if value is not None and alike(given.get((call.fn, param.name), value), value):
                    given[call.fn, param.name] = value
                else:
                    given[call.fn, param.name] = None
        if given == before:
            return given


def alike(a: f.Const | None, b: f.Const) -> bool:
    return a is not None and expression_of(a) == expression_of(b)


def without(block: f.Block, program: f.Program, same: dict[str, dict[str, f.Atom]]) -> f.Block:
    """The code without the arguments for parameters in `same`."""

    def rewrite(rhs: f.Rhs) -> f.Rhs:
        if isinstance(rhs, f.Call) and rhs.fn in same:
            params = program.fns[rhs.fn].params
            args = [a for p, a in zip(params, rhs.args, strict=True) if p.name not in same[rhs.fn]]
            return replace(rhs, args=tuple(args))
        return with_blocks(rhs, lambda inner: without(inner, program, same))

    return with_binds(block, [with_rhs(bind, rewrite(bind.rhs)) for bind in block.binds])
