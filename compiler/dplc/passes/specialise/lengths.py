"""What the types of parameters say of lengths becomes part of the program, as types lose their sizes.

    fun (u : float[n, n]) -> e     =>     fun v -> let u = sized v (dim v 0) (dim v 0) in e

So later stages know which lengths are equal, and which are constants.  Only the outermost length of an array stands for
a size: an array without rows need not tell those of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from dpl.core import term as c
from dpl.core import ty as t
from dpl.node import replace
from dpl.source import Span

from dplc.passes.specialise.program import dimensions

# Arrays of which the sizes in types are the lengths, by the names of sizes; None in the entry of an exported function,
# which asks whether what it is given has the lengths of its types.
Lengths = Mapping[str, c.Var] | None
Ground = Callable[[t.Ty], t.Ty]
LEAST = 2  # dimensions: of a vector, little would become known
NUMBERS = (*t.FLOATS, *t.INTS)
GIVEN = ".given"  # ends the name of a parameter that the function does not use directly


def of_function(e: c.Lam, known: Lengths, ground: Ground) -> tuple[c.Lam, Lengths]:
    """A function that tells the lengths of its parameter, and what is known in it.  `ground` gives types that have no
    variables."""
    bound = {e.param: e.ty.arg} if isinstance(e.ty, t.Fn) else {}
    body, told, known = _telling(e.body, bound, known, ground)
    return (replace(e, param=e.param + GIVEN, body=body) if told else e), known


def of_parts(e: c.Match, known: Lengths, ground: Ground) -> tuple[c.Match, Lengths]:
    """The same of what takes a tuple apart."""
    match e.arms:
        case (c.Arm(guard=None, pattern=c.PTuple() as pattern) as arm,):
            body, told, known = _telling(arm.body, _variables(pattern), known, ground)
            arm = replace(arm, pattern=_renamed(pattern, told), body=body) if told else arm
            return (replace(e, arms=(arm,)) if told else e), known
        case _:
            return e, known


def _variables(pattern: c.Pattern) -> dict[str, t.Ty]:
    match pattern:
        case c.PVar(ty, name):
            return {name: ty}
        case c.PTuple(_, items):
            return {name: ty for item in items for name, ty in _variables(item).items()}
        case _:
            return {}


def _renamed(pattern: c.Pattern, told: Collection[str]) -> c.Pattern:
    match pattern:
        case c.PVar(name=name) if name in told:
            return replace(pattern, name=name + GIVEN)
        case c.PTuple(_, items):
            return replace(pattern, items=tuple([_renamed(item, told) for item in items]))
        case _:
            return pattern


def _telling(
    body: c.Term, bound: Mapping[str, t.Ty], known: Lengths, ground: Ground
) -> tuple[c.Term, Collection[str], Lengths]:
    """A body in which variables have the lengths of their types; which ones these are, and what is known in it."""
    if known is None:
        return body, (), None
    found = dict(known)
    told: dict[str, c.Prim] = {}
    for name, ty in bound.items():
        sizes = _sizes(ty, ground)
        given = c.Var(body.span, ty, name + GIVEN)
        own = _name(sizes[0]) if sizes else None
        inside = found if own is None or own in found else {**found, own: given}
        lengths = [length for size in sizes if (length := _length(size, inside, body.span))]
        if len(sizes) >= LEAST and len(lengths) == len(sizes):
            told[name] = c.Prim(body.span, ty, "sized", (given, *lengths))
        if own is not None:
            found.setdefault(own, c.Var(body.span, ty, name))
    for name, made in reversed(told.items()):
        body = c.Let(made.span, body.ty, name, (), made, body)
    return body, told, found


def _sizes(ty: t.Ty, ground: Ground) -> list[t.Size]:
    """The sizes of an array of numbers, the outermost first."""
    sizes, inner = dimensions(ty)
    number = ground(inner) if sizes else None
    return sizes if isinstance(number, t.Con) and number.name in NUMBERS else []


def _name(size: t.Size) -> str | None:
    match size:
        case t.Size(0, (((name,), 1),)) if name[0] != "?":
            return name
        case _:
            return None


def _length(size: t.Size, known: Mapping[str, c.Var], span: Span) -> c.Term | None:
    """A size as a term."""
    if not size.terms:
        return c.Lit(span, t.I64, size.const)
    array = known.get(_name(size) or "")
    return c.Prim(span, t.I64, "dim", (array, c.Lit(span, t.I64, 0))) if array else None
