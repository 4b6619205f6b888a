"""flat -> flat in which equal functions are one function.

    fn f.fwd(x) { y = sin x; return y, x }                        fn f.fwd(x) { y = sin x; return y, x }
    fn f.fwd.2(z) { t = sin z; return t, z }                =>
    a = f.fwd(1.0);  b = f.fwd.2(2.0)                             a = f.fwd(1.0);  b = f.fwd(2.0)

Derivatives are written for activities (`ad/derivatives.py`): two forward sweeps may keep the same numbers for backward
sweeps that differ.  Each copy would be inlined, tupled and optimised again.

Functions are equal if they differ only in names of variables and in calls of equal functions, itself included: the
coarsest such partition, by refinement (Hopcroft 1971).  Equal operations have equal places, as messages name these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.walk import atoms, binders, blocks, every, with_binds, with_blocks, with_body, with_rhs
from dplc.passes.simplify.constant_parameters import fixed_functions


def equal_functions(program: f.Program) -> f.Program:
    same = merged(program)
    if not same:
        return program
    fns = {name: calling(fn, same) for name, fn in program.fns.items() if name not in same}
    return replace(program, fns=fns)


def merged(program: f.Program) -> dict[str, str]:
    """The functions that go, each with the first one that is equal."""
    fixed = fixed_functions(program)
    rough = {name: outline(fn) for name, fn in program.fns.items() if name not in fixed}
    count = Counter(rough.values())
    forms = {name: (form(program.fns[name]), callees(program.fns[name].body))
             for name, kind in rough.items() if count[kind] > 1}  # fmt: skip
    numbers = dict[Any, int]()
    group = {name: numbers.setdefault(one, len(numbers)) for name, (one, _) in forms.items()}
    while True:
        before, numbers = len(numbers), {}
        group = {name: numbers.setdefault((group[name], *[group.get(fn, fn) for fn in called]), len(numbers))
                 for name, (_, called) in forms.items()}  # fmt: skip
        if len(numbers) == before:
            break
    first = dict[int, str]()
    return {name: one for name, number in group.items() if (one := first.setdefault(number, name)) != name}


def outline(fn: f.Fn) -> tuple:
    """What equal functions have alike, and what is quickly told."""
    return fn.span, fn.results, len(fn.params), tuple([type(bind.rhs) for bind in every(fn.body)])


def form(fn: f.Fn) -> tuple:
    """The function with numbers for the names of variables, and without the names of callees."""
    numbers = dict[str, int]()

    def bound(vars_: tuple[f.Var, ...]) -> tuple:
        numbers.update([(var.name, number) for number, var in enumerate(vars_, len(numbers))])
        return tuple([var.ty for var in vars_])

    def used(atom: f.Atom) -> object:
        return numbers[atom.name] if isinstance(atom, f.Var) else (repr(atom.value), atom.ty)

    def block(one: f.Block) -> tuple:
        return tuple([bind(b) for b in one.binds]), tuple(map(used, one.results))

    def bind(one: f.Bind) -> tuple:
        operands = tuple(map(used, atoms(one.rhs)))
        inner = bound(binders(one.rhs)), tuple(map(block, blocks(one.rhs)))
        return type(one.rhs), operands, inner, static(one.rhs), bound(one.vars)

    return fn.label, bound(fn.params), fn.results, block(fn.body)


def static(rhs: f.Rhs) -> tuple:
    """What a right-hand side says besides its operands, blocks and binders."""
    match rhs:
        case f.Op(op, _, attrs, span):
            return op, repr(attrs), span
        case f.Call(_, _, span):
            return (span,)
        case f.TupGet(_, index):
            return (index,)
        case f.ConMake(data, tag, arg):
            return data, tag, arg is None
        case f.Switch(_, cases, default):
            return tuple([(case.tag, case.payload is None) for case in cases]), default is None
        case f.For() | f.While():
            return (rhs.collect,)
        case f.Build(span=span, inner=inner):
            return span, tuple(map(len, inner))
        case f.If() | f.TupMake():
            return ()
        case _:
            return (id(rhs),)  # of another kind, which is equal to itself only


def calling(fn: f.Fn, same: Mapping[str, str]) -> f.Fn:
    """The function with calls of the functions that are left."""
    if same.keys().isdisjoint(callees(fn.body)):
        return fn

    def block(inner: f.Block) -> f.Block:
        return with_binds(inner, [with_rhs(bind, rhs(bind.rhs)) for bind in inner.binds])

    def rhs(one: f.Rhs) -> f.Rhs:
        return replace(one, fn=same.get(one.fn, one.fn)) if isinstance(one, f.Call) else with_blocks(one, block)

    return with_body(fn, block(fn.body))
