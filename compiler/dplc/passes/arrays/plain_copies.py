"""A function that was changed for its derivative stays as it was for plain calls.

    y = vjp f x          y = vjp f x
    z = f(x')      =>    z = f'(x')           where f' is f before the change

A call where the derivative is taken at the same place stays: it may take the value from there (`ad/primals.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.walk import every, with_binds, with_body, with_inner, with_rhs
from dplc.passes.simplify.callers import reachable

Call = tuple[str, tuple[f.Atom, ...]]  # a function and its arguments


def with_plain_copies(program: f.Program, changed: dict[str, f.Fn], derived: Set[str], supply: f.Supply) -> f.Program:
    """The program with the changed functions; `derived` are those that are differentiated, and what these call."""
    fns = program.fns | changed
    through = _callers({name for name, fn in changed.items() if fn is not program.fns[name]}, program, derived)
    plain = {name: supply.fresh(name) for name in program.fns if name in through}
    for name in program.fns.keys() - derived:
        kept = {place for bind in every(fns[name].body) for place in _places(bind.rhs)}
        fns[name] = with_body(fns[name], _calling(fns[name].body, plain, kept))
    for name, new in plain.items():
        before = program.fns[name]
        fns[new] = replace(before, name=new, body=_calling(before.body, plain, set()))
    exports = {name: plain.get(fn, fn) for name, fn in program.exports.items()}
    program = replace(program, fns=fns, exports=exports)
    unused = set(plain.values()) - reachable(program, fns)
    return replace(program, fns={name: fn for name, fn in fns.items() if name not in unused})


def _callers(found: set[str], program: f.Program, among: Set[str]) -> set[str]:
    """Those functions, and all that call them."""
    while more := {n for n in among - found if not found.isdisjoint(callees(program.fns[n].body))}:
        found = found | more
    return found


def _places(rhs: f.Rhs) -> Iterator[Call]:
    """The calls that give the value that a derivative computes beside it, and others."""
    if isinstance(rhs, f.Ad):
        yield from ((rhs.fn, rhs.args), (rhs.fn, rhs.args[:-1]))


def _calling(block: f.Block, plain: dict[str, str], kept: Set[Call]) -> f.Block:
    """The block with calls of the copies, except the kept calls."""
    if plain.keys().isdisjoint(callees(block)):
        return block

    def bind(bind: f.Bind) -> f.Bind:
        match bind.rhs:
            case f.Call(fn, args) as call if fn in plain and (fn, args) not in kept:
                return with_rhs(bind, replace(call, fn=plain[fn]))
            case _:
                return with_inner(bind, lambda block: _calling(block, plain, kept))

    return with_binds(block, [bind(b) for b in block.binds])
