"""flat -> flat where a recursion that makes references for its own calls becomes two loops, and the references become
values.

    fn step(y, dy: ref, n)                          (y', kept) = while n > 0 keep y { yield sin y, n - 1 }
      if n > 0                                      dz = for the rows of kept, last first, state (dz = 1.0)
        dz = ref_new 0.0                    =>        { yield dz * cos y }
        step(sin y, dz, n - 1)
        ref_set dy (ref_get dz * cos y)

A loop whose body says `shift k -> (...; k y; ...)` is such a recursion: its continuation calls the next step, and does
the rest after the call has returned.  For each SCC of the call graph there are four steps:

1. a function that is called in several places, such as the continuation after a branch, is copied into its callers;
2. references that do not escape are passed by value and returned (`by_value`);
3. mutually recursive functions become one (`merge`);
4. linear recursion becomes two loops: one for the code before the call, one for the code after it (`two_loops`).

Only SCCs that pass references of their own are changed.  This happens before differentiation, which then finds no
references, or fewer.
"""

from __future__ import annotations

from collections import Counter

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.walk import atoms, every, names, supply_for, with_blocks
from dplc.passes.recursion.mutual import Merging
from dplc.passes.recursion.promote import promote
from dplc.passes.simplify.aggregates import Pieces
from dplc.passes.simplify.constant_parameters import constant_parameters
from dplc.passes.simplify.simplify import simplify

COPIES = 128  # bindings that copies of continuations may add to an SCC
LARGE = 160  # bindings of an SCC, with copies; a larger one is left as it is


def linear_recursion_to_loops(program: f.Program) -> f.Program:
    for scc in sccs(program):
        if any(hands_on(program.fns[name], scc) for name in scc):
            program = scc_to_loops(program, scc) or program
    return program


def scc_to_loops(program: f.Program, scc: set[str]) -> f.Program | None:
    """The program with an SCC as loops.  None if that is impossible, or would be too much code."""
    from dplc.passes.recursion.by_value import references_by_value  # few programs need it

    supply = supply_for(program)
    program = simplify(joined(apart(program, scc, supply), scc, supply))
    program, made = references_by_value(program, scc & program.fns.keys())
    program = simplify(constant_parameters(promote(program)))
    for new in sccs(program):
        if new & made:
            if sum(work(program.fns[name].body) for name in new) > LARGE:
                return None
            program = in_two_loops(program, new)
    return simplify(program) if made else None


def in_two_loops(program: f.Program, scc: set[str]) -> f.Program:
    """The program with an SCC as loops; the same program if that is impossible."""
    from dplc.passes.recursion.merge import one_function
    from dplc.passes.recursion.two_loops import two_loops

    try:
        return two_loops(*one_function(program, scc)) or program
    except ValueError:  # some type has no placeholder value
        return program


def sccs(program: f.Program) -> list[set[str]]:
    """The recursive SCCs of the call graph, except those whose functions derivatives or rules refer to."""
    number, recursive = groups(program)
    fixed = {program.main, *program.checkpoints, *program.rules}
    for rule in program.rules.values():
        fixed |= {rule.fn, rule.pullback}
    fixed |= {bind.rhs.fn for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.Ad)}
    found: dict[int, set[str]] = {}
    for name in program.fns:
        if number[name] in recursive:
            found.setdefault(number[name], set()).add(name)
    return [scc for scc in found.values() if not scc & fixed]


def hands_on(fn: f.Fn, scc: set[str]) -> bool:
    """True if a function makes a reference and passes it to a function of its SCC."""
    own: set[str] = set()
    for bind in every(fn.body):
        match bind.rhs:
            case f.Op("ref_new"):
                own.add(bind.vars[0].name)
            case f.TupMake(items) if own.intersection(names(items)):
                own.add(bind.vars[0].name)
            case f.Call(callee) if callee in scc and own.intersection(names(atoms(bind.rhs))):
                return True
            case _:
                pass
    return False


def apart(program: f.Program, chosen: set[str], supply: f.Supply) -> f.Program:
    """Scalar replacement of the arguments of the chosen functions: tuples, and the captures of single closures."""
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


def joined(program: f.Program, scc: set[str], supply: f.Supply) -> f.Program:
    """The program where functions that only others of the SCC call are inlined into them, cheapest first, up to a limit
    on the new code."""
    room = COPIES
    while True:
        calls = [(name, bind.rhs.fn) for name, fn in program.fns.items() for bind in every(fn.body)
                 if isinstance(bind.rhs, f.Call) and bind.rhs.fn in scc]  # fmt: skip
        sites = Counter(callee for _, callee in calls)
        kept = {callee for caller, callee in calls if caller not in scc or caller == callee}
        costs = {name: (sites[name] - 1) * work(program.fns[name].body) for name in scc & program.fns.keys() - kept}
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
    """The number of bindings of a body, without tuples (which disappear later)."""
    return sum(not isinstance(bind.rhs, f.TupMake | f.TupGet) for bind in every(body))
