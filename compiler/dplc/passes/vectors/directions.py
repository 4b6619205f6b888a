"""What follows from directions that are rows of an identity: all that depends on their elements, branches included."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.kinds import any_of, kinds
from dplc.flat.walk import atoms, blocks, every, is_in, names, rhs_mentions

BRANCHES = any_of(f.If)


def following(program: f.Program) -> dict[str, set[str]]:
    """For each function, the names of the variables that depend on elements of an identity; functions without any are
    left out."""
    found = {name: ones for name, fn in program.fns.items() if (ones := elements(fn.body))}
    size = 0
    while size != (size := sum(map(len, found.values()))):
        for name in list(found):
            _Spread(program, found, name).block(program.fns[name].body)
    return found


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
    """One function: adds what depends on `found`, and the parameters of functions that get it."""

    def __init__(self, program: f.Program, found: dict[str, set[str]], name: str) -> None:
        self.program, self.all, self.found = program, found, found[name]

    def block(self, block: f.Block) -> None:
        for bind in block.binds:
            for var, follows in zip(bind.vars, self.results(bind), strict=True):
                if follows:
                    self.found.add(var.name)

    def results(self, bind: f.Bind) -> list[bool]:
        """Which results of a binding depend on an element."""
        rhs = bind.rhs
        inner = blocks(rhs)
        for one in inner:
            self.block(one)
        match rhs:
            case f.Call(fn, args):
                return self.call(self.program.fns[fn], args, len(bind.vars))
            case f.For() | f.While():
                return self.loop(rhs, len(bind.vars))
            case _ if not inner:
                return [not self.found.isdisjoint(rhs_mentions(rhs))] * len(bind.vars)
            case _:
                asked = not self.found.isdisjoint(names(atoms(rhs)))
                columns = zip(*(one.results for one in inner), strict=True)
                return [asked or any(is_in(x, self.found) for x in column) for column in columns]

    def loop(self, loop: f.For | f.While, count: int) -> list[bool]:
        results, size = loop.body.results, len(loop.state)
        asked = loop.cond.results if isinstance(loop, f.While) else (loop.count,)
        every = any(is_in(x, self.found) for x in asked)
        for s, init, x in zip(loop.state, loop.inits, results, strict=False):
            if every or is_in(init, self.found) or is_in(x, self.found):
                self.found.add(s.name)
        kept = every or any(is_in(x, self.found) for x in results[size:])
        return [*[s.name in self.found for s in loop.state], *[kept] * (count - size)]

    def call(self, fn: f.Fn, args: tuple[f.Atom, ...], count: int) -> list[bool]:
        given = {p.name for p, x in zip(fn.params, args, strict=True) if is_in(x, self.found)}
        if not given:
            return [False] * count
        inside = self.all.setdefault(fn.name, set())
        inside |= given
        return [not inside.isdisjoint(names((x,))) for x in fn.body.results]
