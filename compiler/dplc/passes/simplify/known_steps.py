"""Loops over lists that are written out: how many steps they take.

    terms = (1.0, a) :: (2.0, b) :: []
    y = while state (y = y0, xs = terms) { go = switch xs { case 0: false; case 1: true } } do { ... yield z, rest }

takes two steps.  The simplifier writes them one after the other, and the list is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dplc.flat import term as f
from dplc.flat.types import elem_of
from dplc.flat.walk import blocks, every, is_in

STEPS, BINDINGS = 12, 160  # that are written out, at most

Defs = Mapping[str, f.Rhs]


def known_steps(loop: f.While, inits: Sequence[f.Atom], defs: Defs) -> int:
    """How many steps a loop takes, if it walks down a list, or other data, of few known constructors, and computes
    floats; otherwise 0."""
    walker, computes = walking_state(loop), any(f.is_float(elem_of(s.ty)) for s in loop.state)
    if walker is None or loop.collect or not computes:
        return 0
    made, steps = constructor(inits[walker], defs), 0
    while made is not None and steps <= STEPS:
        if not goes_on(loop, made):
            return steps if steps * len(every(loop.body)) <= BINDINGS else 0
        made, steps = rest(made, loop.state[walker].ty, defs), steps + 1
    return 0


def steps_given(rhs: f.Rhs, given: Mapping[str, f.Atom], defs: Defs) -> int:
    """How many steps a loop of a function takes if its parameters are given these, and the loop walks down one."""
    if not isinstance(rhs, f.While) or not walks(rhs, given):
        return 0
    return known_steps(rhs, [given.get(x.name, x) if isinstance(x, f.Var) else x for x in rhs.inits], defs)


def next_step(loop: f.While, given: Sequence[f.Atom], defs: Defs) -> bool | None:
    """Whether there is another step for states that are given these; None if that is not known."""
    walker = walking_state(loop)
    made = None if walker is None else constructor(given[walker], defs)
    return None if made is None else goes_on(loop, made)


def walks(rhs: f.Rhs, params: Iterable[str]) -> bool:
    """True for a loop that walks down a parameter of its function."""
    if not isinstance(rhs, f.While) or (walker := walking_state(rhs)) is None:
        return False
    return is_in(rhs.inits[walker], params)


def walking_state(loop: f.While) -> int | None:
    """The number of the state whose constructor alone decides whether a loop goes on."""
    match loop.cond:
        case f.Block((f.Bind((go,), f.Switch(f.Var() as asked) as switch),), (result,)) if result == go:
            decides = all(is_constant(arm) for arm in blocks(switch))
            return loop.state.index(asked) if decides and asked in loop.state else None
        case _:
            return None


def is_constant(arm: f.Block) -> bool:
    """True for an arm that gives constants; it may make a constructor that nothing uses."""
    unused = all(isinstance(bind.rhs, f.ConMake) for bind in arm.binds)
    return unused and all(isinstance(result, f.Const) for result in arm.results)


def goes_on(loop: f.While, made: f.ConMake) -> bool:
    """What the condition of such a loop is for a constructor."""
    switch = loop.cond.binds[0].rhs
    assert isinstance(switch, f.Switch)
    arm = next((case.body for case in switch.cases if case.tag == made.tag), switch.default)
    return arm is not None and arm.results[0] == f.Const(True, f.BOOL)


def constructor(atom: f.Atom | None, defs: Defs) -> f.ConMake | None:
    """The construction of a value, if it is known."""
    made = defs.get(atom.name) if isinstance(atom, f.Var) else None
    return made if isinstance(made, f.ConMake) else None


def rest(made: f.ConMake, ty: f.Type, defs: Defs) -> f.ConMake | None:
    """The constructor that another one holds; none if it holds several of its type, as a tree does."""
    held = defs.get(made.arg.name) if isinstance(made.arg, f.Var) else None
    parts = held.items if isinstance(held, f.TupMake) else (made.arg,)
    found = [part for part in parts if part is not None and part.ty == ty]
    return constructor(found[0], defs) if len(found) == 1 else None
