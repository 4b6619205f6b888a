"""match -> code: arms in order, each with a binder, an optional guard and a body.

If everything is direct, the match is one loop over the arms; otherwise each arm calls the next if it does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpl.core import term as c
from dpl.diagnostics import Bug
from dpl.eval.code.code import Code, Direct, Run, Scope, at_once
from dpl.eval.code.compiler import Compiler
from dpl.eval.code.patterns import binder, variables
from dpl.eval.values.value import Value


def compile_match(compiler: Compiler, term: c.Match, scope: Scope) -> Code:
    """A match -> code that tries the arms in order.  It is direct if the scrutinee and all arms are."""
    scrutinee = compiler.compile(term.scrutinee, scope)
    arms = []
    for arm in term.arms:
        inner = scope.bind(*variables(arm.pattern))
        guard = compiler.compile(arm.guard, inner) if arm.guard else None
        arms.append((binder(arm.pattern), guard, compiler.compile(arm.body, inner)))
    if scrutinee.direct and all(body.direct and (not guard or guard.direct) for _, guard, body in arms):
        return at_once(_directly(scrutinee.direct, arms))
    choose = _arms(compiler, arms, term)
    return Code(compiler.gather([scrutinee], [term.scrutinee], lambda env, values, k: choose(values[0], env, k)))


def _arms(compiler: Compiler, arms: list, term: c.Match) -> Callable[[Value, tuple, tuple], tuple]:
    def choose(value: Value, env: tuple, k: tuple) -> tuple:
        raise Bug(f"no case fits at {term.span}")

    for (bind, guard, body), arm in zip(reversed(arms), reversed(term.arms), strict=True):
        choose = _arm(compiler, bind, guard, body.run, arm, choose)
    return choose


def _arm(
    compiler: Compiler, bind: Callable, guard: Code | None, body: Run, arm: c.Arm, otherwise: Callable
) -> Callable:
    if guard is None or arm.guard is None:

        def choose(value: Value, env: tuple, k: tuple) -> tuple:
            inner = bind(value, env)
            return otherwise(value, env, k) if inner is None else body(inner, k)

        return choose

    def resume(holds: Value, frame: tuple) -> tuple:
        value, env, inner = frame[1]
        return body(inner, frame[2]) if holds else otherwise(value, env, frame[2])

    compiler.note(resume, arm.guard)

    def choose_guarded(value: Value, env: tuple, k: tuple) -> tuple:
        inner = bind(value, env)
        if inner is None:
            return otherwise(value, env, k)
        return guard.run(inner, (resume, (value, env, inner), k))

    return choose_guarded


def _directly(scrutinee: Direct, arms: list) -> Direct:
    plain: list[Any] = [(bind, guard and guard.direct, body.direct) for bind, guard, body in arms]

    def direct(env: tuple) -> Value:
        value = scrutinee(env)
        for bind, guard, body in plain:
            inner = bind(value, env)
            if inner is not None and (guard is None or guard(inner)):
                return body(inner)
        raise Bug("no case fits")

    return direct
