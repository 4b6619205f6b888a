"""A binding -> the step that reverses it.  Each kind of step has a file of its own."""

from __future__ import annotations

from collections.abc import Sequence

from dplc.ad.activity import Node, component
from dplc.ad.reverse.branch import Branch
from dplc.ad.reverse.control import Build, Call, Loop
from dplc.ad.reverse.straight import Con, Op, Plain, Update
from dplc.ad.reverse.tape import Reverse, Step, Tape
from dplc.flat import term as f


def step(tape: Tape, bind: f.Bind) -> Step:
    """The step for a binding: `Plain` if it is not active, so that the backward sweep has nothing to do for it."""
    reverse = tape.reverse
    if not any(node in reverse.active for var in bind.vars for node in reverse.nodes(var)):
        return Plain(bind)
    match bind.rhs:
        case f.Op("reshape", (array, *_)) as op if op.attr("told"):
            return renamed(reverse, bind, reverse.nodes(array))
        case f.Op() as op:
            views = tuple(reverse.seen_through(op.args))
            whole = (views[-1] if views else op).args[:1]
            store = reverse.place_in_store(whole[0]) if op.op == "index" else None
            made = Op(reverse, op, bind.vars[0], views, store)
            old = reverse.overwritten.updates.get(made.y.name)
            return made if old is None else Update(made, tape.own(old))
        case f.TupMake(items):
            return renamed(reverse, bind, [node for item in items for node in reverse.nodes(item)])
        case f.TupGet(tup, index):
            return renamed(reverse, bind, component(reverse.tangents, tup, reverse.nodes(tup), index))
        case f.ConMake() as con:
            return Con(reverse, bind.vars[0], con)
        case f.Call() as call:
            return Call(reverse, tape, call, bind.vars)
        case f.If() | f.Switch():
            return Branch(reverse, tape, bind)
        case f.For() | f.While():
            return Loop(reverse, tape, bind)
        case f.Build():
            return Build(reverse, tape, bind)
        case _:
            raise AssertionError(bind)


def renamed(reverse: Reverse, bind: f.Bind, sources: Sequence[Node | None]) -> Step:
    """A tuple that is made or taken apart, an array whose dimensions are told: leaves only get other names, so there is
    no backward code."""
    reverse.sources.update(((bind.vars[0].name, i), source) for i, source in enumerate(sources))
    return Plain(bind)
