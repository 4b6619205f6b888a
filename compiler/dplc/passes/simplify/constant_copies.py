"""flat -> flat in which a function has a copy for each constant that its callers give, and that places need.

    a = layer(2, w, x)                     a = layer.1(w, x)          where layer.1(w, x) is layer(2, w, x)
    b = layer(4, v, a)              =>     b = layer.2(v, a)

A dilation, a stride, the side of a triangle: where such a layer reads follows from a number that each caller knows.  In
its copies that is a constant, so reverse mode can tell the places at which it adds, and makes sums of the additions
(`passes/inversion`).  This is interprocedural constant propagation with procedure cloning (Cooper, Hall and Kennedy
1993).  They copy where a goal gains by it.  Here a parameter gains if conditions in a loop are computed from it, or
factors of indices are, by arithmetic on whole numbers.  A number that is only added to an index gains nothing: the code
is the same for all of them.

A copy is the function with constants for parameters, and is called only where these are given, so all calls compute
what they did.  Only functions that are differentiated have copies, as plain loops need not know their places.  They
have at most MOST, are no longer than LONG, and do not call themselves, which would give a copy's number on.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.call_graph import callees, groups
from dplc.flat.copy import Copier
from dplc.flat.kinds import any_of, kinds
from dplc.flat.walk import every, names, supply_for, with_binds, with_body, with_inner, with_rhs
from dplc.passes.simplify.callers import differentiated, reachable
from dplc.passes.simplify.constant_parameters import fixed_functions
from dplc.passes.simplify.simplify import simplified
from dplc.passes.simplify.value_numbers import expression_of

MOST = 4  # copies of a function
LONG = 100  # bindings of a function that is copied
LOOPS = any_of(f.Build, f.For)
WHOLE = (f.I64, f.BOOL)
SCALING = ("mul", "div", "mod", "rem")

Given = tuple[f.Const | None, ...]  # for each parameter: the constant that a copy has
Key = tuple[object, ...]  # the same, by value


def constant_copies(program: f.Program) -> f.Program:
    """The program itself if no differentiated function asks for a constant."""
    derived = differentiated(program)
    if not derived:
        return program
    number, recursive = groups(program)
    fixed = fixed_functions(program)
    order = sorted(program.fns, key=number.__getitem__)
    asked: dict[str, set[int]] = {}
    for name in order:
        asked[name] = asked_of(program.fns[name], asked)
    found = {n: asked[n] for n in derived - fixed if asked[n] and number[n] not in recursive}
    if not found:
        return program
    copies = _Copies(program, found)
    for name in reversed(order):
        copies.add(name)  # after all functions that call it
    return copies.program()


def asked_of(fn: f.Fn, asked: dict[str, set[int]]) -> set[int]:
    """The numbers of the parameters that count; `asked` has those of the functions that it calls."""
    binds = every(fn.body)
    if len(binds) > LONG or not (kinds(fn.body) & LOOPS or any(map(asked.get, callees(fn.body)))):
        return set()
    inner = [bind for loop in binds if isinstance(loop.rhs, f.Build | f.For) for bind in every(loop.rhs.body)]
    places = {name for bind in inner for name in places_of(bind.rhs)}
    counts = {name for bind in inner if isinstance(bind.rhs, f.If) for name in names([bind.rhs.cond])}
    for bind in reversed(binds):
        match bind.rhs:
            case f.Call(name, args):
                counts.update(names([args[k] for k in asked.get(name, ())]))
            case f.Op(op, args) if all(arg.ty in WHOLE for arg in args):
                made = {var.name for var in bind.vars}
                if made & places:
                    (counts if op in SCALING else places).update(names(args))
                if made & counts:
                    counts.update(names(args))
            case _:
                pass
    return {k for k, param in enumerate(fn.params) if param.ty in WHOLE and param.name in counts}


def places_of(rhs: f.Rhs) -> Iterable[str]:
    """The whole numbers that are given with an array: indices, above all."""
    match rhs:
        case f.Op(args=(first, *others)) if isinstance(first.ty, f.Arr):
            return names([arg for arg in others if arg.ty == f.I64])
        case _:
            return ()


class _Copies:
    """`asked` are the parameters that count, of the functions that may have copies."""

    def __init__(self, program: f.Program, asked: dict[str, set[int]]) -> None:
        self.before, self.asked = program, asked
        self.supply = supply_for(program)
        self.fns: dict[str, f.Fn] = {}
        self.given: dict[str, dict[Key, Given]] = {}  # by the calls of a function
        self.made: dict[tuple[str, Key], str] = {}

    def add(self, name: str) -> None:
        """Adds a function, and its copies if callers give different constants."""
        fn, given = self.before.fns[name], self.given.get(name, {})
        self.note(fn)
        known = {key: values for key, values in given.items() if any(values)}
        if len(given) > 1 and len(known) <= MOST:
            for key, values in known.items():
                self.made[name, key] = copy = self.supply.fresh(name)
                self.note(simplified(self.copy(fn, copy, values), self.supply, self.before))

    def copy(self, fn: f.Fn, name: str, values: Given) -> f.Fn:
        """The function under another name, with constants for parameters."""
        copier = Copier(self.supply, {p.name: c for p, c in zip(fn.params, values, strict=True) if c is not None})
        params = tuple([copier.var(p) for p, c in zip(fn.params, values, strict=True) if c is None])
        return replace(fn, name=name, params=params, body=copier.block(fn.body))

    def note(self, fn: f.Fn) -> None:
        """Adds a function, and what it gives to others."""
        self.fns[fn.name] = fn
        for bind in every(fn.body):
            if isinstance(bind.rhs, f.Call) and bind.rhs.fn in self.asked:
                values = self.values(bind.rhs)
                self.given.setdefault(bind.rhs.fn, {})[key_of(values)] = values

    def values(self, call: f.Call) -> Given:
        asked = self.asked[call.fn]
        return tuple([arg if k in asked and isinstance(arg, f.Const) else None for k, arg in enumerate(call.args)])

    def program(self) -> f.Program:
        if not self.made:
            return self.before
        names = dict.fromkeys([*self.before.fns, *self.fns])  # in the order of before
        fns = {name: with_body(self.fns[name], self.calling(self.fns[name].body)) for name in names}
        reached = reachable(self.before, fns)
        return replace(self.before, fns={name: fn for name, fn in fns.items() if name in reached})

    def calling(self, block: f.Block) -> f.Block:
        """The block with calls of copies."""
        if self.asked.keys().isdisjoint(callees(block)):
            return block

        def bind(bind: f.Bind) -> f.Bind:
            match bind.rhs:
                case f.Call(name, args) as call if name in self.asked:
                    values = self.values(call)
                    copy = self.made.get((name, key_of(values)))
                    left = tuple([arg for arg, value in zip(args, values, strict=True) if value is None])
                    return bind if copy is None else with_rhs(bind, replace(call, fn=copy, args=left))
                case _:
                    return with_inner(bind, self.calling)

        return with_binds(block, [bind(b) for b in block.binds])


def key_of(values: Given) -> Key:
    return tuple([None if value is None else expression_of(value) for value in values])
