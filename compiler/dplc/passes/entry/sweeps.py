"""core -> core for checkpoints of reverse sweeps: a loop that notes the cotangents of its state, and a part of a loop.

    loop s = start for i < n do body                 in a function that is differentiated; w is from outside

    loop (s, w) = (start, w) for i < n do            marked: the sweep notes cotangents of s and w
      let (s, w) = mark i s w in (body, w)

    let (_, pullback) = vjp (fun (s, w) -> loop (s, w) = (s, w) for i < n - k do (body at i + k, w)) (GIVEN, w) in
    pullback GIVEN                                         part: the sweep from step n back to step k

Values from outside are carried as state, as their cotangents may be the first that are not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.names import bound
from dpl.core.walk import changed, within
from dpl.node import replace

Names = Sequence[tuple[str, t.Ty]]


def from_outside(loop: c.For | c.While) -> dict[str, t.Ty]:
    """The local names that the steps of a loop read from outside, with their types."""
    steps = (loop.body,) if isinstance(loop, c.For) else (loop.cond, loop.body)
    own = bound(loop)
    return {part.name: part.ty for step in steps for part in within(step)
            if isinstance(part, c.Var) and not is_global(part.name) and part.name not in own}  # fmt: skip


def is_global(name: str) -> bool:
    """True for the names of definitions: those of modules and those of the main program."""
    return name[:1].isupper() or name.startswith("main.")


def same(ty: t.Ty) -> t.Ty:
    """The type as it is."""
    return ty


def renamed(term: c.Term, old: str, new: str) -> c.Term:
    """The term, with another name for a variable."""
    if isinstance(term, c.Var):
        return replace(term, name=new) if term.name == old else term
    return changed(term, lambda part: renamed(part, old, new), same)


def together(types: Sequence[t.Ty]) -> t.Ty:
    """The type of several values as one."""
    return types[0] if len(types) == 1 else t.Tup(tuple(types))


def joined(values: Sequence[c.Term]) -> c.Term:
    """Several values as one."""
    if len(values) == 1:
        return values[0]
    return c.Tuple(values[0].span, together([v.ty for v in values]), tuple(values))


def taken(whole: c.Term, names: Names, body: c.Term) -> c.Term:
    """`body` where the parts of a whole have these names."""
    parts = tuple(c.PVar(ty, name) for name, ty in names)
    pattern = parts[0] if len(parts) == 1 else c.PTuple(whole.ty, parts)
    return c.Match(body.span, body.ty, whole, (c.Arm(body.span, pattern, None, body),))


def carrying(loop: c.For, outside: Names, init: c.Term, mark: Callable[[c.Term, c.Term], c.Term] | None) -> c.For:
    """The loop whose state holds the values from outside, too.  `mark` takes what a step is given: state and others."""
    span, ty = loop.span, loop.init.ty
    whole = t.Tup((ty, others(outside)))
    body = loop.body
    now = [(within_steps(name), of) for name, of in outside]
    for (name, _), (inner, _) in zip(outside, now, strict=True):
        body = renamed(body, name, inner)
    kept = joined_or_unit(loop, [c.Var(span, of, name) for name, of in now])
    body = c.Tuple(span, whole, (body, kept))
    if now:
        body = taken(c.Var(span, others(outside), f"_.{loop.state}.others"), now, body)
    given: c.Term = c.Var(span, whole, f"_.{loop.state}.whole")
    if mark is not None:
        before = [(f"_.{loop.state}.before", ty), (f"_.{loop.state}.beside", others(outside))]
        given = taken(given, before, mark(*(c.Var(span, of, name) for name, of in before)))
    body = taken(given, [(loop.state, ty), (f"_.{loop.state}.others", others(outside))], body)
    return c.For(span, whole, f"_.{loop.state}.whole", init, loop.index, loop.count, body)


def within_steps(name: str) -> str:
    """Another core name for the same name of the program: `w.012` beside `w.12`."""
    base, _, number = name.rpartition(".")
    return f"{base}.0{number}"


def others(outside: Names) -> t.Ty:
    """The type of a tuple of what a loop reads from outside."""
    return together([ty for _, ty in outside]) if outside else t.UNIT


def joined_or_unit(loop: c.For, values: Sequence[c.Term]) -> c.Term:
    return joined(values) if values else c.Tuple(loop.span, t.UNIT, ())


def start(loop: c.For, outside: Names, state: c.Term) -> c.Term:
    """The state with the values from outside."""
    beside = joined_or_unit(loop, [c.Var(loop.span, ty, name) for name, ty in outside])
    return c.Tuple(loop.span, t.Tup((state.ty, beside.ty)), (state, beside))


def marked(loop: c.For, outside: Names, init: c.Term, mark: Callable[[c.Term, c.Term], c.Term]) -> c.Term:
    """The loop whose reverse sweep notes what flows."""
    made = carrying(loop, outside, start(loop, outside, init), mark)
    names = [(f"_.{loop.state}.last", loop.init.ty), (f"_.{loop.state}.unused", others(outside))]
    return taken(made, names, c.Var(loop.span, loop.init.ty, f"_.{loop.state}.last"))


def part(loop: c.For, outside: Names, steps: tuple[int, int], state: c.Term, cotangent: c.Term) -> c.Term:
    """The sweep of a loop from one step back to an earlier one, at whose state it begins.  The cotangent's type is
    closed, so that what flows out is looked at."""
    span, (first, end) = loop.span, steps
    whole = t.Tup((loop.init.ty, others(outside)))
    point = c.Var(span, whole, f"_.{loop.state}.point")
    later = c.Prim(span, t.I64, "add", (c.Var(span, t.I64, f"_.{loop.index}.rest"), c.Lit(span, t.I64, first)))
    inside = carrying(loop, outside, point, None)
    body = c.Let(span, whole, loop.index, (), later, inside.body)
    inside = replace(inside, index=f"_.{loop.index}.rest", count=c.Lit(span, t.I64, end - first), body=body)
    f = c.Lam(span, t.Fn(whole, t.PURE, whole), f"_.{loop.state}.point", inside, "loop")
    back = t.Fn(whole, t.PURE, whole)
    swept = c.Prim(span, t.Tup((whole, back)), "vjp", (f, start(loop, outside, state)))
    names = [(f"_.{loop.state}.end", whole), (f"_.{loop.state}.pullback", back)]
    return taken(swept, names, c.App(span, cotangent.ty, c.Var(span, back, f"_.{loop.state}.pullback"), cotangent))
