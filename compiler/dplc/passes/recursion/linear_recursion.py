"""flat -> flat where a recursion that makes references for its own calls is two loops, and the references are values.

    fn step(y, dy: ref, n)                          (y', kept) = while n > 0 keep y { yield sin y, n - 1 }
      if n > 0                                      dz = for the rows of kept, last first, state (dz = 1.0)
        dz = ref_new 0.0                    =>        { yield dz * cos y }
        step(sin y, dz, n - 1)
        ref_set dy (ref_get dz * cos y)

That is what a loop is whose body says `shift k -> (...; k y; ...)`: its continuation calls the next step, which comes
back and does what is left to be done.  In four steps: what is called in several places, such as the continuation after
a branch, is part of its callers; references that nobody keeps go in and come out as their contents (`cells`); functions
that are called in a circle become one (`union`); what is done before its call of itself is a loop, and what is done
after it another (`sweeps`).

Only circles that hand on references of their own are looked at, and it is done before derivatives are taken: what is
left to differentiate has no references, or fewer.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.walk import atoms, every, names, supply_for, with_blocks
from dplc.passes.recursion.by_value import contents_for_cells
from dplc.passes.recursion.merge import one_function
from dplc.passes.recursion.mutual import Merging
from dplc.passes.recursion.promote import promote
from dplc.passes.recursion.two_loops import two_sweeps
from dplc.passes.simplify.constant_parameters import constant_parameters
from dplc.passes.simplify.loop_state import Pieces
from dplc.passes.simplify.simplify import simplify

COPIES = 128  # bindings that copies of continuations may add to a circle
LARGE = 160  # bindings of a circle, copies and all, that is left as it is


def frames(program: f.Program) -> f.Program:
    for circle in circles(program):
        if any(hands_on(program.fns[name], circle) for name in circle):
            program = without_frames(program, circle) or program
    return program


def without_frames(program: f.Program, circle: set[str]) -> f.Program | None:
    """The program with a circle as loops; None if that cannot be, or would be too much code."""
    supply = supply_for(program)
    program = simplify(joined(apart(program, circle, supply), circle, supply))
    program, made = contents_for_cells(program, circle & program.fns.keys())
    program = simplify(constant_parameters(promote(program)))
    for new in circles(program):
        if new & made:
            if sum(work(program.fns[name].body) for name in new) > LARGE:
                return None
            program = swept(program, new)
    return simplify(program) if made else None


def swept(program: f.Program, circle: set[str]) -> f.Program:
    """The program with a circle as loops, or as it was if that cannot be."""
    try:
        return two_sweeps(*one_function(program, circle)) or program
    except ValueError:  # of some type, nothing could stand for a value that is not there
        return program


def circles(program: f.Program) -> list[set[str]]:
    """The functions that call each other, without what has a meaning of its own elsewhere: derivatives, rules."""
    number, recursive = groups(program)
    fixed = {program.main, *program.checkpoints, *program.rules}
    for rule in program.rules.values():
        fixed |= {rule.fn, rule.pullback}
    fixed |= {bind.rhs.fn for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.Ad)}
    found: dict[int, set[str]] = {}
    for name in program.fns:
        if number[name] in recursive:
            found.setdefault(number[name], set()).add(name)
    return [circle for circle in found.values() if not circle & fixed]


def hands_on(fn: f.Fn, circle: set[str]) -> bool:
    """Whether a function gives a reference that it makes to one of its circle."""
    own: set[str] = set()
    for bind in every(fn.body):
        match bind.rhs:
            case f.Op("ref_new"):
                own.add(bind.vars[0].name)
            case f.TupMake(items) if own.intersection(names(items)):
                own.add(bind.vars[0].name)
            case f.Call(callee) if callee in circle and own.intersection(names(atoms(bind.rhs))):
                return True
            case _:
                pass
    return False


def apart(program: f.Program, chosen: set[str], supply: f.Supply) -> f.Program:
    """The chosen functions take the parts of tuples, and what single closures have captured."""
    pieces = Pieces(supply, program.datas)

    def block(block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            rhs = with_blocks(bind.rhs, rewritten)
            if isinstance(rhs, f.Call) and rhs.fn in chosen:
                rhs = replace(rhs, args=tuple([x for a in rhs.args for x in pieces.apart(binds, a)]))
            binds.append(f.Bind(bind.vars, rhs))
        return f.Block(tuple(binds), block.results)

    rewritten = block
    fns = {}
    for name, fn in program.fns.items():
        body, begin, params = block(fn.body), list[f.Bind](), fn.params
        if name in chosen:
            params = tuple([x for p in fn.params for x in pieces.together(begin, p)])
        fns[name] = replace(fn, params=params, body=f.Block((*begin, *body.binds), body.results))
    return replace(program, fns=fns)


def joined(program: f.Program, circle: set[str], supply: f.Supply) -> f.Program:
    """A circle in which functions that are called by others of it only are part of these, as long as that is not much
    more code."""
    room = COPIES
    while True:
        calls = [(name, bind.rhs.fn) for name, fn in program.fns.items() for bind in every(fn.body)
                 if isinstance(bind.rhs, f.Call) and bind.rhs.fn in circle]  # fmt: skip
        sites = Counter(callee for _, callee in calls)
        kept = {callee for caller, callee in calls if caller not in circle or caller == callee}
        costs = {name: (sites[name] - 1) * work(program.fns[name].body) for name in circle & program.fns.keys() - kept}
        cheapest = min(costs, key=lambda name: (costs[name], name), default=None)
        if cheapest is None or costs[cheapest] > room:
            return program
        room -= costs[cheapest]
        merging = Merging(program, {cheapest: ""}, supply)
        callers = {caller for caller, callee in calls if callee == cheapest}
        fns = {
            name: replace(fn, body=merging.block(fn.body)) if name in callers else fn
            for name, fn in program.fns.items()
            if name != cheapest
        }
        program = replace(program, fns=fns)


def work(body: f.Block) -> int:
    """How many bindings a body has, tuples (which go) apart."""
    return sum(not isinstance(bind.rhs, f.TupMake | f.TupGet) for bind in every(body))
