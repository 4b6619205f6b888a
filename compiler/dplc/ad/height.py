"""Height reduction of the recurrence of a loop's derivative (Schlansker and Kathail 1993): a step multiplies once.

    for j < n state (c = c0) {                      for j < n state (c = c0) {
      u = mul c a;  v = mul c b;  w = mul u d         s = mul a d;  t = sub s b
      y = sub w v                             =>      y = mul c t
      yield y }                                       yield y }

Each step waits for the cotangent of the one after it, through all operations of its way back; in forward mode, for the
tangent of the one before it.  The slope of the step does not depend on that, so it is known before: steps overlap, and
one product is left to wait for.  This is preaccumulation (`reverse/preaccumulation.py`) of a step.  The product of the
slopes may leave the range of numbers where products one by one would not.  A cotangent that fades away is 0 sooner,
which is welcome: subnormal numbers may be rounded up at each step, so that they never fade, and take a hundred cycles
each.  Cotangents of f16 are left as they are: their range is small, and programs scale losses for it.

The cotangent must be the only one that goes from step to step on its way, and sums that are added to do not count.
Products may be guarded (`flat/nans.py`): zero if they are NaN and the cotangent is a symbolic zero, as a state tells.
Then the one product has this guard.  Where the state says so, the cotangent is 0.0, so each product with it is 0.0 or
NaN, and the sum is the offset in both forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from dpl.node import node, replace

from dplc.ad.rules import bulk
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.nans import guarded
from dplc.flat.remembered import remembered, remembered_given
from dplc.flat.walk import names, rhs_mentions

Guard = tuple[f.Atom, bool]  # as `bulk.guarded` takes them

SAVED = 2  # operations less to wait for, at least


@node
class _Linear:
    """A number that is the state times a slope, plus an offset; None for a slope of 1 and no offset.  `height`: the
    operations on its way from the state.  `guards`: what tells that the state is a symbolic zero."""

    slope: f.Atom | None
    offset: f.Atom | None
    height: int
    guards: frozenset[Guard] = frozenset()


def lowered(loop: f.For, states: Sequence[f.Var], supply: f.Supply) -> f.For:
    """The loop where those of these states that are recurrences by themselves are multiplied once."""
    for state in states:
        if state.ty in (f.F32, f.F64):
            body = _lowered(loop, loop.state.index(state), supply)
            loop = loop if body is None else replace(loop, body=body)
    return loop


def _lowered(loop: f.For, k: int, supply: f.Supply) -> f.Block | None:
    body, state, result, b = loop.body, loop.state[k], loop.body.results[k], Builder(supply)
    if not isinstance(result, f.Var) or not _goes_on(body, state.name, result.name) or _is_coupled(loop, k):
        return None
    known = {state.name: _Linear(None, None, 0)}
    varying = _varying(loop, k)
    for bind, uses in _uses(body):
        if varying.isdisjoint(uses):
            continue
        one = None
        if isinstance(bind.rhs, f.Op):
            one = _guarded(body, bind.rhs, known, varying) or _combined(b, bind.rhs, known, varying)
        if one is not None:
            known[bind.vars[0].name] = one
    found = known.get(result.name)
    if found is None or found.slope is None or len(found.guards) > 1:
        return None
    if found.height < SAVED + 1 + (found.offset is not None):
        return None
    end: f.Atom = b.op("mul", (state, found.slope))
    for absent, certain in found.guards:
        end = bulk.guarded(b, absent, end, certain)
    if found.offset is not None:
        end = b.op("add", (end, found.offset))
    results = (*body.results[:k], end, *body.results[k + 1 :])
    made = f.Block((*body.binds, *b.binds), results)
    return made if _live(made) - _live(body) <= found.height - 1 else None


def _goes_on(body: f.Block, state: str, result: str) -> bool:
    """True if a result comes from a state through nothing but operations, so that it may be linear in it.  Of most
    states it does not, which is seen without a look at the others."""
    made, seen, todo = _operations(body), set[str](), [result]
    while todo:
        name = todo.pop()
        if name == state:
            return True
        if name not in seen and name in made:
            seen.add(name)
            todo += names(made[name].args)
    return False


def _is_coupled(loop: f.For, k: int) -> bool:
    """True if a state takes in another one that depends on it, now or in later steps: it is no recurrence by itself."""
    taken = _states_taken(loop.body, tuple(names(loop.state)))
    results = [taken.get(result.name, 0) if isinstance(result, f.Var) else 0 for result in loop.body.results]
    following, before = 1 << k, 0
    while following != before:
        before = following
        for i, states in enumerate(results[: len(loop.state)]):
            if states & following:
                following |= 1 << i
    return bool(results[k] & following & ~(1 << k))


@remembered_given
def _states_taken(body: f.Block, states: tuple[str, ...]) -> dict[str, int]:
    """The states on which each name depends in a step, as bits."""
    taken = {state: 1 << i for i, state in enumerate(states)}
    for bind, uses in _uses(body):
        found = reduce(or_, [taken[name] for name in uses if name in taken], 0)
        if found:
            taken.update(dict.fromkeys(names(bind.vars), found))
    return taken


@remembered
def _operations(body: f.Block) -> dict[str, f.Op]:
    """The operations of a block, by what they give."""
    return {var.name: bind.rhs for bind in body.binds if isinstance(bind.rhs, f.Op) for var in bind.vars}


@remembered
def _uses(body: f.Block) -> list[tuple[f.Bind, frozenset[str]]]:
    """The bindings of a block with the names that they use: each of its states asks."""
    return [(bind, frozenset(rhs_mentions(bind.rhs))) for bind in body.binds]


def _varying(loop: f.For, k: int) -> set[str]:
    """The names that depend on state number `k`, in this step or in later ones."""
    varying = {loop.state[k].name}
    while True:
        before = len(varying)
        for bind, uses in _uses(loop.body):
            if not varying.isdisjoint(uses):
                varying.update(names(bind.vars))
        for state, result in zip(loop.state, loop.body.results, strict=False):
            if isinstance(result, f.Var) and result.name in varying:
                varying.add(state.name)
        if len(varying) == before:
            return varying


def _guarded(body: f.Block, op: f.Op, known: dict[str, _Linear], varying: set[str]) -> _Linear | None:
    """What is linear in the state, behind a guard."""
    found = guarded(_operations(body), op)
    if found is None or found[1].name not in known or (isinstance(found[0], f.Var) and found[0].name in varying):
        return None
    part = known[found[1].name]
    return replace(part, guards=part.guards | {(found[0], op.attr("certain", False))})


def _combined(b: Builder, op: f.Op, known: dict[str, _Linear], varying: set[str]) -> _Linear | None:
    """An operation on what is linear in the state; None if its result is not, as of a product with another sum."""
    parts = [known.get(a.name) if isinstance(a, f.Var) else None for a in op.args]
    if any(isinstance(a, f.Var) and a.name in varying and p is None for a, p in zip(op.args, parts, strict=True)):
        return None
    match op.op, op.args, parts:
        case "neg", _, [_Linear(slope, offset, height, guards)]:
            one = f.Const(-1.0, op.args[0].ty) if slope is None else b.op("neg", (slope,))
            return _Linear(one, offset and b.op("neg", (offset,)), height, guards)
        case "mul", (_, by), [_Linear() as part, None]:
            return _scaled(b, "mul", part, by)
        case "mul", (by, _), [None, _Linear() as part]:
            return _scaled(b, "mul", part, by)
        case "div", (_, by), [_Linear() as part, None]:
            return _scaled(b, "div", part, by)
        case "add" | "sub" | "acc_add" as name, (x, y), [left, right]:
            return _sum(b, name, (x, left), (y, right))
        case _:
            return None


def _scaled(b: Builder, name: str, part: _Linear, by: f.Atom) -> _Linear:
    if part.slope is not None:
        slope: f.Atom = b.op(name, (part.slope, by))
    else:
        slope = by if name == "mul" else b.op("div", (f.Const(1.0, by.ty), by))
    return _Linear(slope, part.offset and b.op(name, (part.offset, by)), part.height + 1, part.guards)


def _sum(b: Builder, name: str, left: tuple[f.Atom, _Linear | None], right: tuple[f.Atom, _Linear | None]) -> _Linear:
    """A sum or difference of two numbers, of which one at least is linear in the state."""
    one = f.Const(1.0, left[0].ty)
    slopes = [None if part is None else part.slope or one for _, part in (left, right)]
    offsets = [atom if part is None else part.offset for atom, part in (left, right)]
    parts = [part for _, part in (left, right) if part is not None]
    height, guards = 1 + max(part.height for part in parts), frozenset[Guard]().union(*(part.guards for part in parts))
    return _Linear(_either(b, name, *slopes), _either(b, name, *offsets), height, guards)


def _either(b: Builder, name: str, x: f.Atom | None, y: f.Atom | None) -> f.Atom | None:
    """A sum or difference, of one part if the other one is not there."""
    if y is None:
        return x
    if x is None:
        return b.op("neg", (y,)) if name == "sub" else y
    return b.op(name, (x, y))


def _live(body: f.Block) -> int:
    """How many bindings are needed for the results."""
    needed, count = set(names(body.results)), 0
    for bind in reversed(body.binds):
        if not needed.isdisjoint(names(bind.vars)):
            needed.update(rhs_mentions(bind.rhs))
            count += 1
    return count
