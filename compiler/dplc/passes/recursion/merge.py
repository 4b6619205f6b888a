"""flat -> flat where the functions of an SCC become one function, whose first argument selects the one called.

    fn a(x, y)  ... b(y) ...                   fn c(which, x, y)
    fn b(y)     ... a(0, y + 1) ...     =>       switch which { 0: ... c(1, x, y) ...;  1: ... c(0, 0, y + 1) ... }

The functions share the places of parameters, and those of results.  A parameter that a function passes on unchanged
stays in its place.  A place that the callee does not use keeps its value.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.walk import every, supply_for
from dplc.passes.recursion.tail_calls import filler


def one_function(program: f.Program, scc: set[str]) -> tuple[f.Program, str]:
    """The program, and the function that replaces the SCC."""
    return (program, next(iter(scc))) if len(scc) == 1 else _Merged(program, scc).rewritten()


class _Merged:
    def __init__(self, program: f.Program, scc: set[str]) -> None:
        self.program = program
        self.supply = supply_for(program)
        self.entries = [
            bind.rhs.fn
            for name, fn in program.fns.items()
            for bind in every(fn.body)
            if name not in scc and isinstance(bind.rhs, f.Call) and bind.rhs.fn in scc
        ]
        self.places: list[f.Type] = []
        self.at: dict[str, list[int]] = {}  # function -> the places of its parameters
        self.lay(scc)
        self.results: list[f.Type] = []
        self.gives = {name: self.results_of(self.program.fns[name]) for name in self.at}
        self.order = {name: k for k, name in enumerate(self.at)}
        self.name = self.supply.fresh(next(iter(self.at)))

    # ---- places --------------------------------------------------------------------------------------------------

    def lay(self, scc: set[str]) -> None:
        """Gives places to the parameters of all functions.  A walk over the calls starts at a function that is called
        from outside."""
        first = self.entries[0]
        self.at[first] = self.places_for(self.program.fns[first], {}, (None,) * len(self.program.fns[first].params))
        todo = [first]
        while todo:
            caller = self.program.fns[todo.pop(0)]
            here = {p.name: place for p, place in zip(caller.params, self.at[caller.name], strict=True)}
            for bind in every(caller.body):
                if isinstance(bind.rhs, f.Call) and bind.rhs.fn in scc and bind.rhs.fn not in self.at:
                    self.at[bind.rhs.fn] = self.places_for(self.program.fns[bind.rhs.fn], here, bind.rhs.args)
                    todo.append(bind.rhs.fn)

    def places_for(self, fn: f.Fn, here: dict[str, int], args: Sequence[f.Atom | None]) -> list[int]:
        found: dict[int, int] = {}
        for i, arg in enumerate(args):  # passed on unchanged
            place = here.get(arg.name) if isinstance(arg, f.Var) else None
            if place is not None and place not in found.values():
                found[i] = place
        for i, p in enumerate(fn.params):
            if i not in found:
                found[i] = self.place(self.places, p.ty, set(found.values()))
        return [found[i] for i in range(len(fn.params))]

    def results_of(self, fn: f.Fn) -> list[int]:
        found: list[int] = []
        for ty in fn.results:
            found.append(self.place(self.results, ty, set(found)))
        return found

    def place(self, places: list[f.Type], ty: f.Type, taken: set[int]) -> int:
        free = next((k for k, there in enumerate(places) if there == ty and k not in taken), None)
        if free is None:
            places.append(ty)
            return len(places) - 1
        return free

    # ---- the function --------------------------------------------------------------------------------------------

    def rewritten(self) -> tuple[f.Program, str]:
        params = tuple([f.Var(self.supply.fresh("p"), ty) for ty in self.places])
        which = f.Var(self.supply.fresh("which"), f.I64)
        vars_ = tuple([f.Var(self.supply.fresh("r"), ty) for ty in self.results])
        cases = tuple([f.Case(k, None, self.part(name, params)) for name, k in self.order.items()])
        body = f.Block((f.Bind(vars_, f.Switch(which, cases, None)),), vars_)
        first = self.program.fns[next(iter(self.at))]
        one = f.Fn(self.name, (which, *params), tuple(self.results), body, first.label, first.span)
        others = {name: fn for name, fn in self.program.fns.items() if name not in self.at}
        doors = {name: self.door(self.program.fns[name]) for name in self.entries}
        return replace(self.program, fns=others | doors | {self.name: one}), self.name

    def part(self, name: str, params: tuple[f.Var, ...]) -> f.Block:
        """The body of one of the functions."""
        fn = self.program.fns[name]
        known = {p.name: params[place] for p, place in zip(fn.params, self.at[name], strict=True)}
        body = _Part(self, known, params).block(fn.body)
        binds = list(body.binds)
        given = dict(zip(self.gives[name], body.results, strict=True))
        results = [given.get(k) or filler(ty, binds, self.supply) for k, ty in enumerate(self.results)]
        return f.Block(tuple(binds), tuple(results))

    def door(self, fn: f.Fn) -> f.Fn:
        """The wrapper for calls from outside the SCC."""
        params = tuple([f.Var(self.supply.fresh(p.name), p.ty) for p in fn.params])
        binds: list[f.Bind] = []
        there = [filler(ty, binds, self.supply) for ty in self.places]
        self.call(fn.name, params, there, binds, outs := self.fresh(fn))
        return f.Fn(fn.name, params, fn.results, f.Block(tuple(binds), outs), fn.label, fn.span)

    def fresh(self, fn: f.Fn) -> tuple[f.Var, ...]:
        return tuple([f.Var(self.supply.fresh("r"), ty) for ty in fn.results])

    def call(
        self, name: str, args: Sequence[f.Atom], there: Sequence[f.Atom], out: list[f.Bind], outs: Sequence[f.Var]
    ) -> None:
        """A call of one of the functions.  Places that are not its parameters keep the values `there`."""
        given = dict(zip(self.at[name], args, strict=True))
        all_ = [given.get(k, a) for k, a in enumerate(there)]
        found = dict(zip(self.gives[name], outs, strict=True))
        vars_ = tuple([found.get(k) or f.Var(self.supply.fresh("r"), ty) for k, ty in enumerate(self.results)])
        which = f.Const(self.order[name], f.I64)
        out.append(f.Bind(vars_, f.Call(self.name, (which, *all_), self.program.fns[name].span)))


class _Part(Copier):
    """Copies a body, in which calls within the SCC become calls of the one function."""

    def __init__(self, merged: _Merged, known: dict[str, f.Var], there: tuple[f.Var, ...]) -> None:
        super().__init__(merged.supply, known)
        self.merged = merged
        self.there = there

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        out: list[f.Bind] = []
        for bind in binds:
            if isinstance(bind.rhs, f.Call) and bind.rhs.fn in self.merged.at:
                args = [self.atom(a) for a in bind.rhs.args]
                self.merged.call(bind.rhs.fn, args, self.there, out, [self.var(v) for v in bind.vars])
            else:
                out += super().binds((bind,))
        return tuple(out)
