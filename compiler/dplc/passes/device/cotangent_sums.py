"""Sums of two whole cotangents, where the host runs, become Pars: a device that has the arrays adds them, too.

    c = acc_add a b           =>      c = if a or b is null then acc_add a b
    d = acc_index c v n i                 else par k < n to keep in a { x = a[k] + b[k]; yield x }
                                      d = the same with v added where k is i, in one Par

An addition to one element of a sum, after it, is done by its points, and so is one to an element of what another Par
keeps: the host would need the whole array for it.
In the points of Pars, and in functions that they call, nothing changes.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, all_hold, block_of
from dplc.flat.copy import Copier
from dplc.flat.types import rank_of
from dplc.flat.walk import mentions, supply_for, with_binds, with_body, with_inner
from dplc.narrow import expect_type
from dplc.passes.device.array_sums import called_by_points


def cotangent_sums(program: f.Program) -> f.Program:
    """The program with Pars in place of such operations."""
    apart, supply = called_by_points(program), supply_for(program)
    made = program.copy()
    for name, fn in program.fns.items():
        if name not in apart:
            made.fns[name] = with_body(fn, _block(fn.body, supply, Counter(mentions(fn.body))))
    return made


def _block(block: f.Block, supply: f.Supply, uses: Counter[str]) -> f.Block:
    binds: list[f.Bind] = []
    rest = list(block.binds)
    while rest:
        bind = rest.pop(0)
        if is_cotangent_sum(bind.rhs):
            (total,) = bind.vars
            element = rest[0] if rest and uses[total.name] == 1 and is_element(rest[0].rhs, total) else None
            binds += _sum([bind, rest.pop(0)] if element else [bind], supply)
        elif isinstance(bind.rhs, f.Par):
            element = rest[0] if rest and is_kept(bind) and uses[bind.vars[0].name] == 1 else None
            if element is not None and is_element(element.rhs, bind.vars[0]):
                bind = _with_element(bind, rest.pop(0), supply)
            binds.append(bind)
        else:
            binds.append(with_inner(bind, lambda inner: _block(inner, supply, uses)))
    return with_binds(block, binds)


def is_cotangent_sum(rhs: f.Rhs) -> bool:
    """True for the sum of two arrays of numbers."""
    return isinstance(rhs, f.Op) and rhs.op == "acc_add" and all(
        isinstance(x, f.Var) and isinstance(x.ty, f.Arr) and f.is_float(x.ty.elem) for x in rhs.args
    )  # fmt: skip


def is_kept(bind: f.Bind) -> bool:
    """True for a Par that keeps one number of each of its points."""
    par = expect_type(f.Par, bind.rhs)
    one = len(par.outs) == 1 and par.outs[0].kind == "keep" and not par.ordered
    return one and f.is_float(par.body.results[0].ty) and rank_of(bind.vars[0].ty) == len(par.space)


def is_element(rhs: f.Rhs, array: f.Var) -> bool:
    """True if a number is added to an element of an array."""
    match rhs:
        case f.Op("acc_index", (to, f.Var(_, f.Num()) | f.Const(_, f.Num()), *dims)):
            return to == array and len(dims) == 2 * rank_of(array.ty)
        case _:
            return False


def _sum(host: list[f.Bind], supply: f.Supply) -> list[f.Bind]:
    """The bindings in place of a sum, and perhaps of an addition to an element of it."""
    b, (sum_, *more) = Builder(supply), [expect_type(f.Op, bind.rhs) for bind in host]
    one, other = sum_.args
    ty = host[-1].vars[0].ty
    null = b.op("or", [b.op("is_null", [x]) for x in sum_.args])
    with b.inside() as binds:
        space = tuple([(b.var("i", f.I64), b.op("dim", [one], k=k)) for k in range(rank_of(ty))])
        points, at = Builder(supply), [i for i, _ in space]
        value = points.op("add", [points.op("index", [x, *at], unchecked=True) for x in (one, other)])
        for op in more:
            value = with_element(points, value, op, at)
        outs = (f.Out("keep", target=one),)
        par = f.Par(space, block_of(points.binds, (value,)), outs, sum_.span)
        there = block_of(binds, (b.one(par, ty, "added"),))
    copier = Copier(supply, {})
    own = copier.binds(tuple(host))
    here = f.Block(own, own[-1].vars)
    return [*block_of(b.binds, ()).binds, f.Bind(host[-1].vars, f.If(null, here, there))]


def _with_element(bind: f.Bind, addition: f.Bind, supply: f.Supply) -> f.Bind:
    """A Par whose points do an addition to an element of what they keep."""
    par, b = expect_type(f.Par, bind.rhs), Builder(supply)
    b.binds += par.body.binds
    value = with_element(b, par.body.results[0], expect_type(f.Op, addition.rhs), [i for i, _ in par.space])
    return f.Bind(addition.vars, replace(par, body=block_of(b.binds, (value,))))


def with_element(b: Builder, value: f.Atom, op: f.Op, at: list[f.Var]) -> f.Var:
    """The value of a point, to which an operation adds a number if it is at the place of the point."""
    rank = len(at)
    here = all_hold(b, [b.op("eq", pair) for pair in zip(at, op.args[2 + rank :], strict=True)])
    return b.op("select", (here, b.op("add", (value, op.args[1])), value))
