"""Names -> code: a local is read from the environment; a global is looked up once if its types are known."""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term as c
from dpl.core.shapes import Needs
from dpl.eval.code.code import Direct, Scope
from dpl.eval.code.compiler import Compiler
from dpl.eval.code.sizes import handed
from dpl.eval.values.instance import Handed, Types, staged, type_args, type_params, types_of
from dpl.eval.values.value import Value


def variable(compiler: Compiler, term: c.Var, scope: Scope) -> Direct:
    """A variable -> its value; a polymorphic one is instantiated at the types of this use."""
    if not scope.has(term.name):
        value, later = constant(compiler, term, scope)
        return later or (lambda env: value)
    local = scope.local(term.name)
    needs = scope.polys.get(term.name)
    if needs is None:
        return local
    types = instance(term, needs, handed(compiler, term, needs, scope))
    return lambda env: local(env).at(types(env))


def instance(use: c.Var, needs: Needs, told: Handed | Callable[[tuple], Handed]) -> Callable[[tuple], Types]:
    """The types, with what is told of sizes, at which a generalised local is used, from the environment."""
    names, types = type_params(needs[0]), type_args(needs[0], use.inst)
    if callable(told):
        return lambda env: env[0].extend(names, tuple(map(env[0].resolve, types)), told(env))
    key = object()

    def remembered(env: tuple) -> Types:
        memo = env[0].memo
        if key not in memo:
            memo[key] = env[0].extend(names, tuple(map(env[0].resolve, types)), told)
        return memo[key]

    return remembered


def constant(compiler: Compiler, term: c.Var, scope: Scope) -> tuple[Value, Callable | None]:
    """(value, None) for a global whose types and sizes are known; otherwise (None, a function from the environment to
    the value)."""
    told = handed(compiler, term, compiler.needs(term.name) if term.inst else None, scope)
    if not callable(told):
        return staged(types_of(term.inst), lambda closed: compiler.lookup(term.name, closed, told))
    known, later = staged(types_of(term.inst), lambda closed: closed)
    return None, lambda env: compiler.lookup(term.name, later(env) if later else known, told(env))
