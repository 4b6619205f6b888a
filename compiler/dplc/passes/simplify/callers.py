"""Uses in the call graph: the functions that are called once, that the roots of the program reach, and that are
differentiated."""

from __future__ import annotations

from collections import Counter

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.walk import every
from dplc.passes.simplify.unmade import ruled


def calls(program: f.Program) -> Counter[str]:
    """How many calls of each function there are."""
    return Counter(callee for fn in program.fns.values() for callee in callees(fn.body))


def called_once(program: f.Program) -> list[str]:
    """The functions of which one call is the only use."""
    uses = calls(program)
    other = {*program.roots, *program.checkpoints, *program.rules}
    other.update(fn for name in program.rules for fn in ruled(program, name))
    other.update(bind.rhs.fn for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.Ad))
    return [name for name in program.fns if uses[name] == 1 and name not in other]


def reachable(program: f.Program, fns: dict[str, f.Fn]) -> set[str]:
    """The functions that the roots of the program call, directly or not."""
    todo = program.roots if program.main in fns else list(fns)
    reached = set(todo)
    while todo:
        name = todo.pop()
        wanted = [bind.rhs.fn for bind in every(fns[name].body) if isinstance(bind.rhs, (f.Call, f.Ad))]
        if name in program.rules:
            rule = program.rules[name]
            wanted += [rule.fn, *([rule.pullback] if rule.pullback else [])]
        for callee in wanted:
            if callee not in reached:
                reached.add(callee)
                todo.append(callee)
    return reached


def differentiated(program: f.Program) -> set[str]:
    """The functions that are differentiated, and those that they call."""
    todo = [bind.rhs.fn for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.Ad)]
    found = set[str]()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += callees(program.fns[name].body)
    return found
