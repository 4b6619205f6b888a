"""Type schemes: instantiation and generalisation.

!1 -> !2[!3] at the end of a definition   ->   forall 'a 'b n. 'a -> 'b[n]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dpl.core import ty
from dpl.node import field, node, record
from dpl.source import NOWHERE, Span
from dpl.types.solve.constraints import Constraint, Lift, Within
from dpl.types.solve.meta import EffectMeta, Meta, Type, is_scalar, prune, prune_effect
from dpl.types.solve.sizes import name as size_name
from dpl.types.solve.sizes import names as size_names
from dpl.types.solve.unify import Solver

NOTHING: Mapping = {}


@node
class Scheme:
    """A type scheme: `params` are quantified, `classes` gives their classes, `constraints` relates them.

    `lifts` are the types that elementwise operations on them produce.  Each use makes new sizes for `unknowns`, except
    that `counts` maps some of them to the arguments whose values they are.  `large` has literals whose types are
    parameters, and which do not fit into each type."""

    params: tuple[ty.Var, ...]
    ty: Type
    classes: dict[str, frozenset[str]] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    unknowns: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    lifts: tuple[ty.Lift, ...] = ()
    large: dict[str, list[int | float]] = field(default_factory=dict)

    @property
    def relations(self) -> tuple[Constraint, ...]:
        """The constraints of a use: those of the scheme, and one for each lift."""
        return (*(Lift((*lift.items, lift), NOWHERE) for lift in self.lifts), *self.constraints)


def mono(t: Type) -> Scheme:
    """A type that is not generalised."""
    return Scheme((), t)


def instantiate(
    s: Solver,
    scheme: Scheme,
    emit: Callable[[Constraint], None],
    span: Span,
    sizes: Mapping[str, ty.Size] = NOTHING,
    operands: tuple[Span, ...] = (),
) -> tuple[Type, tuple]:
    """A fresh instance of a scheme, and the values of its parameters; `sizes` gives unknown sizes that are known here.

    `emit` receives the constraints of the instance."""
    if not scheme.params and not scheme.unknowns and not scheme.lifts:
        return scheme.ty, ()
    env: dict = {}
    for p in scheme.params:
        env[p.name] = (
            s.size()
            if p.sort == "size"
            else s.effect()
            if p.sort == "effect"
            else s.fresh(*scheme.classes.get(p.name, ()))
        )
    for unknown in scheme.unknowns:
        env[unknown] = sizes.get(unknown) or s.unknown_size()
    for lift in scheme.lifts:
        env[lift.name] = s.fresh(*scheme.classes.get(lift.name, ()))
    memo: dict = {}
    t = replace(scheme.ty, env, memo)
    for constraint in scheme.relations:
        emit(constraint.mapped(lambda part: replace(part, env, memo), span, operands))
    return t, tuple(env[p.name] for p in scheme.params)


def replace(t: Any, env: dict, memo: dict) -> Any:
    """`t` with quantified variables replaced as `env` says.  Sharing in `t` is preserved."""
    kind = type(t)
    if kind is Meta:
        t = prune(t)
        kind = type(t)
        if kind is Meta:
            return t
    elif kind is EffectMeta:
        t = prune_effect(t)
        kind = type(t)
        if kind is EffectMeta:
            return t
    if kind is ty.Var or (kind is ty.Lift and t.name in env):
        return env.get(t.name, t)
    if kind is ty.Size:
        return ty.substitute(t, env) if t.terms else t
    found = memo.get(id(t))
    if found is None:
        memo[id(t)] = found = (rebuild(t, lambda part: replace(part, env, memo)), t)  # keeps t, and so its id
    return found[0]


def rebuild(t: Any, change: Callable) -> Any:
    """One level of a type with its parts changed; the type itself if no part changes."""
    parts = ty.children(t)
    if not parts:
        return t
    new = tuple(change(part) for part in parts)
    if all(a is b for a, b in zip(parts, new)):
        return t
    match t:
        case ty.Con(n, _):
            return ty.Con(n, new)
        case ty.Tup(_):
            return ty.Tup(new)
        case ty.Arr():
            return ty.Arr(*new)
        case ty.Fn():
            return ty.Fn(*new)
        case ty.Lift(name, _):
            return ty.lifted(name, list(new))
        case _:
            pass
    return ty.Ctl(*new)


# ---- generalisation -----------------------------------------------------------------------------------------------


@record
class Free:
    """The unknowns in some types: sets, in order of appearance."""

    metas: dict[Meta, None] = field(default_factory=dict)
    effects: dict[EffectMeta, None] = field(default_factory=dict)
    sizes: dict[str, None] = field(default_factory=dict)
    bare: dict[Meta, None] = field(default_factory=dict)  # those outside functions
    is_tied: bool = False  # to unknown types of an outer level

    def add(self, unknown: Meta | EffectMeta, level: int, inside: bool) -> None:
        if unknown.level <= level:
            self.is_tied |= type(unknown) is Meta
        elif type(unknown) is EffectMeta:
            self.effects[unknown] = None
        elif type(unknown) is Meta:
            self.metas[unknown] = None
            if not inside:
                self.bare[unknown] = None


def free(s: Solver, types, level: int) -> Free:
    """The unknowns in `types` whose level is deeper than `level`."""
    found, seen = Free(), set()

    def visit(t: Any, inside: bool) -> None:
        t = prune_effect(t) if type(t) is EffectMeta else prune(t)
        if type(t) is Meta or type(t) is EffectMeta:
            found.add(t, level, inside)
        elif type(t) is ty.Size:
            for n in sorted(size_names(s.sizes.norm(t))) if t.terms else ():
                if s.sizes.levels.get(n, -1) > level:
                    found.sizes[n] = None
        elif (parts := ty.children(t)) and (id(t), inside) not in seen:
            seen.add((id(t), inside))
            inside = inside or type(t) is ty.Fn
            for part in parts:
                visit(part, inside)

    for t in types:
        visit(t, False)
    return found


Open = list[tuple[Constraint, Free]]  # open constraints, and their unknowns


def _taken(t: Type) -> Iterator[Type]:
    """The parameter types of a function, and its final result type."""
    while type(t := prune(t)) is ty.Fn:
        yield t.arg
        t = t.result
    yield t


def generalise(
    s: Solver, types: list[Type], pending: list[Constraint], taken: dict[str, int]
) -> tuple[list[Scheme], list]:
    """Generalises the `types` of a group, once the level is back at the outer one.

    Returns their schemes, and the constraints left over.  The unknowns are linked to their variables, so terms that
    mention them follow."""
    level = s.level
    found = free(s, types, level)
    kept, _, _ = _related(s, found, pending)
    lifts, kept = _eliminated(s, found, kept, level)
    above = _settled(s, types, found, level)
    params, classes = _linked(found, lifts, level, taken)
    bounds = [Within((var, high), NOWHERE) for effect, highs in above.items()
              if type(var := prune_effect(effect)) is ty.Var for high in highs]  # fmt: skip
    params += _size_params(s, found.sizes, taken)
    memo: dict = {}
    final = [closed(s, t, memo) for t in types]
    constraints = tuple(c.mapped(lambda t: closed(s, t, memo)) for c in (*kept, *bounds))
    for c in kept:
        c.done = True
    unknowns = tuple(n for n in found.sizes if n[0] == "?")
    made = [closed(s, result, memo) for result, _ in lifts]
    for (result, _), t in zip(lifts, made):
        result.link = t  # each is put together once, though others are made of it
    used = _needed(made, [*final, *(t for c in constraints for t in c.types)])
    schemes = [
        Scheme(tuple(params), t, classes, constraints, unknowns if type(t) is ty.Fn else (), (), used) for t in final
    ]
    return schemes, [c for c in pending if not c.done]


def _settled(s: Solver, types: list[Type], found: Free, level: int) -> dict:
    """Settles the effects that are free in the types, and adds what their bounds mention to `found`.  Returns the
    effects above each of them."""
    taking = free(s, [part for t in types for part in _taken(t)], level).effects
    s.effects.relax(found.effects, lambda e: e.level <= level or e in taking)
    limited = s.effects.limited(found.effects, level)
    above = {
        effect: s.effects.bounds(effect, level, lambda e: e in found.effects) if effect in limited else []
        for effect in found.effects
    }
    within = free(s, [high for highs in above.values() for high in highs], level)
    found.metas |= within.metas
    found.sizes |= within.sizes
    for effect in found.effects:
        s.effects.settle(effect, level, lambda low: low in found.effects)
    return above


def _linked(
    found: Free, lifts: list[tuple[Meta, tuple[Type, ...]]], level: int, taken: dict[str, int]
) -> tuple[list[ty.Var], dict[str, frozenset[str]]]:
    """Links unknown types and effects to variables.  Returns these, and the classes of those that have some."""
    params: list[ty.Var] = []
    classes: dict[str, frozenset[str]] = {}
    for meta in found.metas:
        var = ty.Var(fresh_name(meta.rigid, "abcdefghijklmopqrtuvwxyz", taken))
        if meta.classes:
            classes[var.name] = meta.classes
        meta.link = var
        params.append(var)
    for result, operands in lifts:
        name = fresh_name("", ("r",), taken)
        if result.classes:
            classes[name] = result.classes
        result.link = ty.Lift(name, operands)
    for effect in found.effects:
        if prune_effect(effect) is effect and effect.level > level:  # settling may have unified it with an outer effect
            effect.link = ty.Var(fresh_name("", ("e",), taken), "effect")
            params.append(effect.link)
    return params, classes


def _size_params(s: Solver, unknowns: Iterable[str], taken: dict[str, int]) -> Iterator[ty.Var]:
    """Parameters for unknown sizes, which are linked to them; sizes known only at run time (`?`) have none."""
    for unknown in unknowns:
        if unknown[0] == "!":
            var = ty.Var(fresh_name("", "nmkpqijl", taken), "size")
            s.sizes.links[unknown] = size_name(var.name)
            yield var
        elif unknown[0] != "?":
            yield ty.Var(unknown, "size")


def _eliminated(
    s: Solver, found: Free, kept: list[Constraint], level: int
) -> tuple[list[tuple[Meta, tuple[Type, ...]]], list[Constraint]]:
    """Removes unknowns that are lifts of others from the variables.

    Returns them with their operands, and the remaining constraints."""
    made: dict[Meta, tuple[Type, ...]] = {}
    mentioned: set[Meta] = set()  # in these operands
    rest: list[Constraint] = []
    for c in kept:
        result = prune(c.types[-1])
        if type(c) is not Lift or type(result) is not Meta or result.rigid or result.level <= level or result in made:
            rest.append(c)
            continue
        inside = dict(free(s, c.types[:-1], level).metas)
        mentioned |= inside.keys()
        stack = list(inside) if result in mentioned else []  # otherwise no operand is made of it
        while stack and result not in inside:
            new = free(s, made.get(stack.pop(), ()), level).metas.keys() - inside.keys()
            inside.update(dict.fromkeys(new))
            stack += new
        if result in inside:
            rest.append(c)
        else:
            made[result] = tuple(t for t in c.types[:-1] if not is_scalar(t))
            c.done = True
    for meta in made:
        found.metas.pop(meta, None)
    return list(made.items()), rest


def _needed(lifts: list[Type], types: list[Type]) -> tuple[ty.Lift, ...]:
    """The lifts that `types` mention, and those whose operands no other kept lift contains."""
    mentioned: set[str] = set()
    stack, seen = list(types), set()
    while stack:
        t = stack.pop()
        if id(t) not in seen:
            seen.add(id(t))
            mentioned |= {t.name} if type(t) is ty.Lift else set()
            stack += ty.children(t)
    found: list[tuple[ty.Lift, set]] = []
    for lift in sorted(
        (t for t in lifts if type(t) is ty.Lift), key=lambda t: (t.name not in mentioned, -len(t.items))
    ):
        items = set(lift.items)
        if lift.name in mentioned or not any(items <= others for _, others in found):
            found.append((lift, items))
    return tuple(lift for lift, _ in found)


def unrelated(s: Solver, types: list[Type], pending: list[Constraint]) -> list[Constraint]:
    """The open constraints that are connected neither to the unknowns of `types` nor to those of an outer level."""
    rest, tied = _related(s, free(s, types, s.level), pending)[1:]
    return [c for c, _ in rest if c not in tied]


def _related(s: Solver, found: Free, pending: list[Constraint]) -> tuple[list[Constraint], Open, set[Constraint]]:
    """The constraints on generalised unknowns, the other constraints, and those of all that are tied to an outer level.

    The other unknowns in a constraint on generalised ones are generalised too, and added to `found`.  A constraint that
    relates a generalised size to an outer unknown is one of these, because each use has a size of its own."""
    rest = [(c, free(s, c.types, s.level)) for c in pending if not c.done]
    tied = _tied(rest)
    kept: list[Constraint] = []
    grown = True
    while grown:
        grown = False
        later: Open = []
        for c, inner in rest:
            if any(m in found.metas for m in inner.metas) or (c in tied and any(n in found.sizes for n in inner.sizes)):
                kept.append(c)
                found.metas |= inner.metas
                found.sizes |= inner.sizes
                found.effects |= inner.effects
                grown = True
            else:
                later.append((c, inner))
        rest = later
    return kept, rest, tied


def _tied(open_: Open) -> set[Constraint]:
    """The constraints that mention an unknown type of an outer level, directly or through other constraints."""
    tied = {c for c, inner in open_ if inner.is_tied}
    reached = {m for c, inner in open_ if c in tied for m in inner.metas}
    while more := [(c, inner) for c, inner in open_ if c not in tied and not reached.isdisjoint(inner.metas)]:
        tied.update(c for c, _ in more)
        reached.update(m for _, inner in more for m in inner.metas)
    return tied


def fresh_name(wish: str, letters: Sequence[str], taken: dict[str, int]) -> str:
    """A new name: `wish`, or else one of `letters`, or else one with a number.  `taken` holds the last numbers."""
    candidates = [wish] if wish else letters
    for name in candidates:
        if name not in taken:
            taken[name] = 0
            return name
    stem = candidates[0]
    number = taken[stem] + 1
    while f"{stem}{number}" in taken:
        number += 1
    taken[stem] = number
    taken[f"{stem}{number}"] = 0
    return f"{stem}{number}"


def closed(s: Solver, t: Any, memo: dict) -> Any:
    """`t` with all solved unknowns replaced."""
    t = prune_effect(t) if type(t) is EffectMeta else prune(t)
    if type(t) is ty.Size:
        return s.sizes.norm(t)
    if type(t) in (Meta, EffectMeta, ty.Var):
        return t
    found = memo.get(id(t))
    if found is None:
        memo[id(t)] = found = (rebuild(t, lambda part: closed(s, part, memo)), t)
    return found[0]
