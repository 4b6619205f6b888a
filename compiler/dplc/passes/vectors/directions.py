"""What follows from directions that are rows of an identity: all that depends on their elements, branches included."""

from __future__ import annotations

from collections.abc import Iterable

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.kinds import any_of, kinds
from dplc.flat.walk import BLOCKS, atoms, blocks, every, is_in, names, rhs_mentions

BRANCHES = any_of(f.If)


def following(program: f.Program) -> dict[str, set[str]]:
    """For each function, the names of the variables that depend on elements of an identity; functions without any are
    left out."""
    found = {name: ones for name, fn in program.fns.items() if (ones := elements(fn.body))}
    waiting = dict.fromkeys(found)
    while waiting:
        del waiting[name := next(iter(waiting))]
        fn, known = program.fns[name], found[name]
        results = is_any(fn.body.results, known)
        spread = _Spread(program, found, known)
        spread.block(fn.body)
        waiting |= dict.fromkeys(spread.reached)
        if not results and is_any(fn.body.results, known):
            waiting |= dict.fromkeys(user for user in found if name in callees(program.fns[user].body))
    return found


def is_any(atoms: Iterable[f.Atom], names: set[str]) -> bool:
    """True if one of these atoms is a variable with one of these names."""
    for atom in atoms:  # noqa: SIM110 -- called for each operation
        if isinstance(atom, f.Var) and atom.name in names:
            return True
    return False


def elements(body: f.Block) -> set[str]:
    """The numbers in a body that are 1.0 where two whole numbers are equal, else 0.0."""
    if not kinds(body) & BRANCHES:
        return set()
    equal = {bind.vars[0] for bind in every(body) if isinstance(bind.rhs, f.Op) and bind.rhs.op == "eq"}
    return {bind.vars[0].name for bind in every(body) if isinstance(bind.rhs, f.If) and is_element(bind.rhs, equal)}


def is_element(branch: f.If, equal: set[f.Var]) -> bool:
    match branch:
        case f.If(cond, f.Block((), (f.Const(1.0) as one,)), f.Block((), (f.Const(0.0),))):
            return cond in equal and f.is_float(one.ty)
        case _:
            return False


class _Spread:
    """One function: adds what depends on `found`, and the parameters of functions that get it, which are `reached`."""

    def __init__(self, program: f.Program, all_found: dict[str, set[str]], found: set[str]) -> None:
        self.program, self.all, self.found = program, all_found, found
        self.reached: list[str] = []

    def block(self, block: f.Block) -> None:
        found = self.found
        for bind in block.binds:
            rhs = bind.rhs
            if type(rhs) in BLOCKS or isinstance(rhs, f.Call):
                if not found.isdisjoint(rhs_mentions(rhs)):
                    found.update(self.results(bind))
            elif not is_any(bind.vars, found) and is_any(atoms(rhs), found):
                found.update(names(bind.vars))

    def results(self, bind: f.Bind) -> list[str]:
        """Which results of a call, or of a binding with inner blocks, depend on what is found."""
        rhs, results = bind.rhs, list(names(bind.vars))
        if isinstance(rhs, f.Call):
            return self.call(self.program.fns[rhs.fn], rhs.args, results)
        if isinstance(rhs, f.For | f.While):
            return self.loop(rhs, results)
        inner = blocks(rhs)
        for one in inner:
            self.block(one)
        if is_any(atoms(rhs), self.found):
            return results
        return [name for name, *column in zip(results, *(one.results for one in inner), strict=True)
                if is_any(column, self.found)]  # fmt: skip

    def loop(self, loop: f.For | f.While, results: list[str]) -> list[str]:
        found, given, size = self.found, loop.body.results, len(loop.state)
        asked = loop.cond.results if isinstance(loop, f.While) else (loop.count,)
        found.update(self.states(loop, loop.inits))
        grows = True
        while grows:
            for one in blocks(loop):
                self.block(one)
            new = set(names(loop.state) if is_any(asked, found) else self.states(loop, given))
            grows = not new <= found
            found |= new
        if is_any(asked, found):
            return results
        kept = results[size:] if is_any(given[size:], found) else []
        return [name for name, s in zip(results, loop.state, strict=False) if s.name in found] + kept

    def states(self, loop: f.For | f.While, given: Iterable[f.Atom]) -> list[str]:
        return [s.name for s, x in zip(loop.state, given, strict=False) if is_in(x, self.found)]

    def call(self, fn: f.Fn, args: tuple[f.Atom, ...], results: list[str]) -> list[str]:
        inside = self.all.setdefault(fn.name, set())
        given = {p.name for p, x in zip(fn.params, args, strict=True) if is_in(x, self.found)}
        if not given <= inside:
            inside |= given
            self.reached.append(fn.name)
        return [name for name, x in zip(results, fn.body.results, strict=True) if is_in(x, inside)]
