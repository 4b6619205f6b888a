"""Generalised definitions take the sizes that they need (`core/shapes.py`) as ints, before their own arguments.

map@3 f xs        at 'b = float[2]        =>        map@3 2 f xs      where  map@3 b f xs = sized [...] b
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.names import bound, mentioned
from dpl.core.shapes import NOTHING, Needs, innermost, rank
from dpl.core.walk import within
from dpl.source import NOWHERE

from dplc.narrow import a_type, expect_type
from dplc.passes.specialise.copier import Copier, Scope

Sizes = tuple[c.Term, ...]


def needs_in(copier: Copier, name: str, scope: Scope) -> Needs:
    """The parameters of a definition, and those of them whose sizes must be passed."""
    local = scope.locals.get(name)
    return copier.needs.of(name) if local is None else (local.params, local.needs)


def told(copier: Copier, needs: Needs, scope: Scope) -> list[str]:
    """Names for the sizes that a definition takes.  They are added to `scope`."""
    given = []
    for p in needs[0]:
        if p.name in needs[1] and p.sort == "type":
            own = [f"{p.name}.{k}.size{copier.fresh()}" for k in range(rank(copier.ty(p, scope)))]
            scope.sizes[p.name] = tuple([c.Var(NOWHERE, t.I64, name) for name in own])
            given += own
    return given


def functions(names: list[str], body: c.Term) -> c.Term:
    """A definition as a function of these ints."""
    for name in reversed(names):
        body = c.Lam(body.span, t.Fn(t.I64, t.PURE, body.ty), name, body)
    return body


def computed_once(copier: Copier, names: list[str], uses: list[Sizes], value: c.Term, body: c.Term) -> c.Term | None:
    """A value that takes sizes, computed where it is defined, if all its uses in `body` give the same ones and they are
    known there; otherwise each use computes it."""
    first, *others = uses
    agreed = all(key(given) == key(first) for given in others)
    if not agreed or not bound(body).isdisjoint(name for size in first for name in mentioned(size)):
        return None
    once = c.Var(value.span, value.ty, f"value{copier.fresh()}")
    made: c.Term = functions([f"{name}.told" for name in names], once)
    made = c.Let(value.span, made.ty, once.name, (), value, made)
    for name, size in zip(names, first, strict=True):
        made = c.Let(value.span, made.ty, name, (), size, made)
    return made


def key(given: Sizes) -> list[tuple[object, ...]]:
    """What sizes are, without their places in the text."""
    parts = (part for size in given for part in within(size))
    return [(type(part), *[getattr(part, name, None) for name in ("name", "value", "op")]) for part in parts]


def telling(copier: Copier, given: Sizes, mention: Callable[[t.Ty], c.Term], ty: t.Ty) -> c.Term:
    """A mention of a definition, applied to the sizes that it needs.  `ty` is its type after that."""
    for _ in given:
        ty = copier.intern(t.Fn(t.I64, t.PURE, ty))
    made = mention(ty)
    for size in given:
        ty = expect_type(t.Fn, ty).result
        made = c.App(made.span, ty, made, size)
    return made


def to_tell(copier: Copier, e: c.Var, scope: Scope) -> Sizes:
    """The sizes that a mention of a definition passes: those of the types that it is instantiated with."""
    params, needs = needs_in(copier, e.name, scope) if e.inst else NOTHING
    found: Sizes = ()
    for k, p in enumerate(params if needs else ()):
        if p.name in needs and p.sort == "type":
            found += of_type(copier, a_type(e.inst[k]), e.sizes[k] if e.sizes else (), scope)
    return found


def of_type(copier: Copier, ty: t.Ty, known: Sizes, scope: Scope) -> Sizes:
    """The sizes of an array's type.  `known` are those in its text; the sizes of a type variable come from the
    scope."""
    inner = innermost(ty)
    sizes = tuple([copier.term(n, scope) for n in known])
    if isinstance(inner, t.Var):
        sizes += scope.sizes.get(inner.name, ())
    missing = rank(copier.ty(ty, scope)) - len(sizes)
    return (*sizes, *[c.Lit(NOWHERE, t.I64, 0)] * missing)
