"""flat -> flat where mutually recursive functions are merged: a function called in one place only is inlined there.

    fn even(n)  ... odd(n - 1)                 fn even(n)
    fn odd(n)   ... even(n - 1)          =>      m = sub n 1
                                                 ... even(m - 1)

The continuations of a loop's steps are such functions (an SCC of the call graph).  After merging, they call themselves,
and become a loop if all these calls are tail calls (`tail_calls`).
"""

from __future__ import annotations

from collections import Counter

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.inline import Inliner
from dplc.flat.walk import every, rebuild, supply_for, unchanged


def merge_mutual_recursion(program: f.Program) -> f.Program:
    hosts = called_once(program)
    if not hosts:
        return program
    supply, hosting = supply_for(program), set(hosts.values())
    fns = {
        name: replace(fn, body=Merging(program, hosts, supply).block(fn.body)) if name in hosting else fn
        for name, fn in program.fns.items()
        if name not in hosts
    }
    return replace(program, fns=fns)


def called_once(program: f.Program) -> dict[str, str]:
    """The functions to be merged, each with its only caller, which is in the same SCC."""
    number, recursive = groups(program)
    uses: Counter[str] = Counter()
    caller: dict[str, str] = {}
    fixed = {program.main, *program.checkpoints, *program.rules}
    for rule in program.rules.values():
        fixed |= {rule.fn, rule.pullback}
    for name, fn in program.fns.items():
        for bind in every(fn.body):
            match bind.rhs:
                case f.Call(callee):
                    uses[callee] += 1
                    caller[callee] = name
                case f.Ad(_, callee):
                    fixed.add(callee)
                case _:
                    pass
    hosts = {
        name: host
        for name, host in caller.items()
        if uses[name] == 1 and name not in fixed and number[name] in recursive and number[name] == number[host]
    }
    for name in stays(hosts):
        del hosts[name]
    return hosts


def stays(hosts: dict[str, str]) -> list[str]:
    """One function of each circle of callers: the first."""
    number, seen, found = {name: i for i, name in enumerate(hosts)}, set[str](), []
    for name in hosts:
        way: list[str] = []
        while name in hosts and name not in seen:
            seen.add(name)
            way.append(name)
            name = hosts[name]
        if name in way:
            found.append(min(way[way.index(name) :], key=number.__getitem__))
    return found


class Merging:
    """Replaces the calls of merged functions in one function by their bodies.  `known` maps the results of these calls
    to what they are."""

    def __init__(self, program: f.Program, hosts: dict[str, str], supply: f.Supply) -> None:
        self.program = program
        self.hosts = hosts
        self.supply = supply
        self.known: dict[str, f.Atom] = {}

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.known.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            rhs = rebuild(bind.rhs, self.atom, self.block, unchanged)
            if isinstance(rhs, f.Call) and rhs.fn in self.hosts:
                fn = self.program.fns[rhs.fn]
                body = self.block(Inliner(self.supply, fn, rhs.args, rhs.span).block(fn.body))
                binds += body.binds
                self.known |= {var.name: result for var, result in zip(bind.vars, body.results, strict=True)}
            else:
                binds.append(f.Bind(bind.vars, rhs))
        return f.Block(tuple(binds), tuple(map(self.atom, block.results)))
