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
from dplc.flat.copy import Copier
from dplc.flat.inline import Inliner
from dplc.flat.walk import every, supply_for, with_blocks


def merge_mutual_recursion(program: f.Program) -> f.Program:
    hosts = called_once(program)
    if not hosts:
        return program
    merging = Merging(program, hosts, supply_for(program))
    fns = {
        name: replace(fn, body=merging.block(fn.body)) if name in merging.hosting else fn
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
    for name in list(hosts):  # one of each SCC stays
        at = hosts.get(name)
        while at is not None and at != name:
            at = hosts.get(at)
        if at == name:
            del hosts[name]
    return hosts


class Merging:
    def __init__(self, program: f.Program, hosts: dict[str, str], supply: f.Supply) -> None:
        self.program = program
        self.hosts = hosts
        self.hosting = set(hosts.values())
        self.supply = supply

    def block(self, block: f.Block) -> f.Block:
        """A block where calls of merged functions are replaced by their bodies."""
        binds: list[f.Bind] = []
        known: dict[str, f.Atom] = {}
        for bind in block.binds:
            match bind.rhs:
                case f.Call(callee, args, span) if callee in self.hosts:
                    fn = self.program.fns[callee]
                    body = self.block(Inliner(self.supply, fn, args, span).block(fn.body))
                    binds += body.binds
                    for var, result in zip(bind.vars, body.results, strict=True):
                        known[var.name] = known.get(result.name, result) if isinstance(result, f.Var) else result
                case rhs:
                    binds.append(f.Bind(bind.vars, with_blocks(rhs, self.block)))
        if not known:
            return f.Block(tuple(binds), block.results)
        return Renamed(known).block(f.Block(tuple(binds), block.results))


class Renamed(Copier):
    """Copies code with some variables replaced.  All other names are kept."""

    def __init__(self, known: dict[str, f.Atom]) -> None:
        super().__init__(f.Supply(), known)

    def var(self, var: f.Var) -> f.Var:
        return var
