"""The shape check of tangents from the user: the direction of jvp and the argument of a pullback must have the form of
their primal, or the program fails.

    direction_form.tree(dx : tree, x : tree)      a run-time error unless constructors and sizes are the same

The type checker has compared the sizes that it knows.  The others are compared here, arrays in constant time.
"""

from __future__ import annotations

from dpl.source import NOWHERE, Span

from dplc.ad.tangents.convert import Conversions
from dplc.flat import term as f
from dplc.flat.build import UNIT_ATOM, Builder, integer

MISFITS = {
    "direction": "the direction of a derivative does not fit its point",
    "cotangent": "the cotangent does not fit the result",
    "rule_tangent": "the tangent that a rule gives does not fit its value",
    "rule_cotangent": "the cotangent that a rule gives does not fit its argument",
}


def has_form(ty: f.Type) -> bool:
    """True if two values of a type can differ in form."""
    match ty:
        case f.Tup(items):
            return any(map(has_form, items))
        case f.Arr() | f.Data():
            return True
        case _:
            return False


def check(convert: Conversions, b: Builder, given: f.Atom, like: f.Atom, role: str, span: Span = NOWHERE) -> None:
    """Code that fails if `given` has not the form of its primal `like`.  `role` names in the message what is given."""
    match like.ty:
        case f.Tup(items):
            for i, ty in enumerate(items):
                if has_form(ty):
                    check(convert, b, b.get(given, i), b.get(like, i), role, span)
        case f.Arr(elem) if not has_form(elem):
            check_sizes(b, given, like, role, span)
        case f.Arr() | f.Data():

            def write(inner: Builder, given: f.Var, like: f.Var) -> f.Atom:
                return (inside_data if isinstance(like.ty, f.Data) else inside_array)(convert, inner, given, like, role)

            name = convert.helper(f"{role}_form", like.ty, (like.ty, like.ty), f.UNIT, write)
            b.calls(name, (given, like), (f.UNIT,), span)
        case _:
            pass


def check_sizes(b: Builder, given: f.Atom, like: f.Atom, role: str, span: Span = NOWHERE) -> None:
    b.bind(f.Op("same_shape", (given, like), (("what", MISFITS[role]),), span), ())


def inside_data(convert: Conversions, b: Builder, given: f.Var, like: f.Var, role: str) -> f.Atom:
    assert isinstance(like.ty, f.Data)
    name = like.ty.name

    def case(tag: int, payload: f.Type | None) -> f.Case:
        outer, inner = b.inner(), b.inner()
        p, q = (None if payload is None else b.var(hint, payload) for hint in "pq")
        if p is not None and q is not None:
            check(convert, inner, q, p, role)
        other = convert.misfit(b, name, f.UNIT, MISFITS[role])
        done = outer.bind(f.Switch(given, (f.Case(tag, q, inner.block(UNIT_ATOM)),), other), (f.UNIT,))
        return f.Case(tag, p, outer.block(*done))

    cases = tuple(case(*tagged) for tagged in enumerate(convert.program.datas[name].payloads))
    return b.bind(f.Switch(like, cases, None), (f.UNIT,))[0]


def inside_array(convert: Conversions, b: Builder, given: f.Var, like: f.Var, role: str) -> f.Atom:
    check_sizes(b, given, like, role)

    def level(b: Builder, dims: tuple[f.Var, ...], at: tuple[f.Var, ...]) -> None:
        if not dims:
            check(convert, b, b.op("index", (given, *at)), b.op("index", (like, *at)), role)
            return
        index, count, inner = b.var("i", f.I64), b.var("n", f.I64), b.inner()
        level(inner, dims[1:], (*at, index))
        b.bind(f.For(index, dims[0], (count,), (integer(0),), inner.block(count)), (f.I64,))

    level(b, b.dims(like), ())
    return UNIT_ATOM
