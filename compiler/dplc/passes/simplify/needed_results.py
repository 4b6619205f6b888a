"""flat -> flat in which functions compute the results that their callers use.

    (y, kept) = f.fwd(x)          kept = f.1(x)
    dx = f.bwd(kept)         =>   dx = f.bwd(kept)        where f.1 is f.fwd without y, and without what y alone needs

Who takes a gradient seldom wants the value.  A function that is called once is inlined, and what is not used of it is
dead code; one that is called at several places is not.  Results that no caller uses go.  Callers that use less than
others call a copy, if that is much less work (procedure cloning; Cooper, Hall and Kennedy 1993).
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import callees, groups
from dplc.flat.walk import every, mentions, supply_for, with_binds, with_body, with_inner, with_rhs
from dplc.passes.simplify.callers import reachable
from dplc.passes.simplify.constant_parameters import fixed_functions
from dplc.passes.simplify.dead_code import drop_unused, pick, with_results
from dplc.passes.simplify.inlined import SMALL, has_at_most
from dplc.passes.simplify.simplify import simplified

Used = tuple[int, ...]  # the numbers of the results that a call uses

MUCH = 2  # a copy has at most one of so many bindings


def needed_results(program: f.Program) -> f.Program:
    number, recursive = groups(program)
    several = {name for name, fn in program.fns.items() if len(fn.results) > 1 and number[name] not in recursive}
    if not several:
        return program
    needed = _Needed(program, several)
    for name in sorted(program.fns, key=number.__getitem__, reverse=True):
        needed.add(program.fns[name])  # after all functions that call it
    return needed.program()


class _Needed:
    """`several` are the functions of several results, none of them recursive."""

    def __init__(self, program: f.Program, several: set[str]) -> None:
        self.before, self.several = program, several
        self.fixed = fixed_functions(program)
        self.supply = supply_for(program)
        self.fns: dict[str, f.Fn] = {}
        self.used: dict[str, set[Used]] = {}  # by calls of a function
        self.less: dict[str, dict[Used, tuple[str, Used]]] = {}  # what such a call is instead, and what that gives

    def add(self, fn: f.Fn) -> None:
        """Adds a function, or what is left of it, and its copies."""
        wanted, whole = self.used.get(fn.name, set()), tuple(range(len(fn.results)))
        left = whole if fn.name in self.fixed or not wanted else tuple(sorted({k for used in wanted for k in used}))
        calls = {used: (fn.name, left) for used in wanted}
        room = whole_size = len(every(fn.body))
        copies = {used: giving(fn, used) for used in wanted - {left}}
        sizes = {used: len(every(copy.body)) for used, copy in copies.items()}
        for used in sorted(copies, key=lambda used: (sizes[used], used)):
            if sizes[used] * MUCH <= whole_size and sizes[used] <= room:
                room -= sizes[used]  # all copies together are at most as long as the function
                calls[used] = self.supply.fresh(fn.name), used
                self.note(replace(copies[used], name=calls[used][0]))
        self.note(fn if left == whole else giving(fn, left))
        if any(call != (fn.name, whole) for call in calls.values()):
            self.less[fn.name] = calls

    def note(self, fn: f.Fn) -> None:
        """Adds a function, and what it uses of others."""
        if not self.several.isdisjoint(callees(fn.body)):
            fn = with_body(fn, drop_unused(fn.body))
            names = set(mentions(fn.body))
            for bind in every(fn.body):
                if isinstance(bind.rhs, f.Call) and bind.rhs.fn in self.several:
                    self.used.setdefault(bind.rhs.fn, set()).add(used_of(bind, names))
        self.fns[fn.name] = fn

    def program(self) -> f.Program:
        if not self.less:
            return self.before
        names = dict.fromkeys([*self.before.fns, *self.fns])  # in the order of before
        program = replace(self.before, fns={name: self.calling(self.fns[name]) for name in names})
        called = {name for calls in self.less.values() for name, _ in calls.values()}
        fns, small = dict(program.fns), dict[str, f.Fn]()
        number, _ = groups(program)
        for name in sorted(names, key=number.__getitem__):  # what is inline in a function counts for its own size
            if not self.less.keys().isdisjoint(callees(self.fns[name].body)):
                fns[name] = simplified(fns[name], self.supply, program, small)
            if name in called and has_at_most(SMALL, fns[name].body):
                small[name] = fns[name]
        reached = reachable(program, fns)
        return replace(program, fns={name: fn for name, fn in fns.items() if name in reached})

    def calling(self, fn: f.Fn) -> f.Fn:
        """The function with calls of those that give less."""
        if self.less.keys().isdisjoint(callees(fn.body)):
            return fn
        names = set(mentions(fn.body))

        def block(inner: f.Block) -> f.Block:
            return with_binds(inner, [bind(b) for b in inner.binds])

        def bind(bind: f.Bind) -> f.Bind:
            match bind.rhs:
                case f.Call(name) as call if name in self.less:
                    other, given = self.less[name][used_of(bind, names)]
                    return with_rhs(bind, replace(call, fn=other), pick(bind.vars, given))
                case _:
                    return with_inner(bind, block)

        return with_body(fn, block(fn.body))


def giving(fn: f.Fn, results: Used) -> f.Fn:
    """The function that gives only these results."""
    body = drop_unused(with_results(fn.body, results))
    return replace(fn, results=pick(fn.results, results), body=body)


def used_of(bind: f.Bind, mentioned: set[str]) -> Used:
    return tuple([k for k, var in enumerate(bind.vars) if var.name in mentioned])
