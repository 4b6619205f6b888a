"""Sizes in types at run time: the inner sizes of arrays without rows, and of the types that type variables stand for.
A definition receives the sizes that it needs (`core/shapes.py`) together with its types."""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.shapes import Needs, innermost
from dpl.eval.code.code import Code, Scope
from dpl.eval.code.compiler import Compiler
from dpl.eval.values.arrays import sized
from dpl.eval.values.instance import Handed

Sizes = Callable[[tuple], tuple[int, ...]]  # from the environment


def handed(compiler: Compiler, use: c.Var, needs: Needs | None, scope: Scope) -> Handed | Callable[[tuple], Handed]:
    """The sizes that a use passes to a definition: the sizes themselves if they are fixed, otherwise a function from
    the environment to them."""
    if needs is None or not needs[1]:
        return ()
    wanted = [k for k, p in enumerate(needs[0]) if p.name in needs[1] and p.sort == "type"]
    each = [
        (needs[0][k].name, of_type(compiler, use.inst[k], use.sizes[k] if use.sizes else (), scope)) for k in wanted
    ]
    fixed = [(name, known) for name, (known, _) in each if known is not None]
    if len(fixed) == len(each):
        return tuple(fixed)
    return lambda env: tuple([(name, sizes(env)) for name, (_, sizes) in each])


def of_type(compiler: Compiler, ty, terms: tuple[c.Term, ...], scope: Scope) -> tuple[tuple[int, ...] | None, Sizes]:
    """The sizes of an array type: (the sizes if they are fixed, a function from the environment to them).  `terms` are
    the sizes written in the type."""
    inner = innermost(ty)
    codes = [compiler.size(n, scope) for n in terms]
    if isinstance(inner, t.Var):
        return None, lambda env: (*[code(env) for code in codes], *env[0].sizes.get(inner.name, ()))
    fixed = tuple([int(n.value) for n in terms if isinstance(n, c.Lit)])
    return fixed if len(fixed) == len(terms) else None, lambda env: tuple([code(env) for code in codes])


def compile_sized(compiler: Compiler, term: c.Prim, scope: Scope) -> Code:
    """An array that may have no rows -> the same, with the sizes that its missing rows would have."""
    array, *terms = term.args
    assert isinstance(term.ty, t.Arr)
    _, sizes = of_type(compiler, term.ty.elem, tuple(terms), scope)
    code = compiler.compile(array, scope)
    if direct := code.direct:
        run = lambda env: sized(direct(env), sizes(env))  # noqa: E731
        return Code(lambda env, k: (k[0], run(env), k), run)
    return Code(compiler.gather([code], [array], lambda env, values, k: (k[0], sized(values[0], sizes(env)), k)))
