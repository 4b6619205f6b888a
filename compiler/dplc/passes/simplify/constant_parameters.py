"""flat -> flat without parameters that are the same constant in every call.

    fn f(x, acc) { ...; y = f(a, null); ... }         fn f(x) { ... null ...; y = f(a); ... }
    r = f(b, null)                               =>   r = f(b)

The backward code of a recursive function takes the cotangents that other uses of its arguments have added so far.  If
there are no other uses, these are null in every call, and need not be tested.

This is an optimistic fixpoint (sparse conditional constant propagation, Wegman and Zadeck 1991, between functions): all
parameters start as unknown; then the values that calls give are joined, until nothing changes.  A parameter that a
function passes on has the value that it was given; so has the rest of a list of cotangents, if the list is null.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.walk import blocks, every, supply_for, with_binds, with_blocks, with_body, with_rhs
from dplc.passes.simplify.value_numbers import expression_of

Param = tuple[str, str]  # function, parameter
Given = dict[Param, f.Const | None]  # its constant value; None: it varies; absent: no call is known yet


def constant_parameters(program: f.Program) -> f.Program:
    """The program itself if no parameter has one constant.  A differentiated function keeps its parameters."""
    given = gather(program) | dict.fromkeys(differentiated(program))
    same: dict[str, dict[str, f.Atom]] = {}
    for name, fn in program.fns.items():
        constants: dict[str, f.Atom] = {p.name: c for p in fn.params if (c := given.get((name, p.name))) is not None}
        if constants:
            same[name] = constants
    if not same:
        return program
    supply = supply_for(program)
    fns = {}
    for name, fn in program.fns.items():
        body = without(fn.body, program, same)
        fns[name] = with_body(fn, body)
        if name in same:
            left = tuple([p for p in fn.params if p.name not in same[name]])
            fns[name] = replace(fn, params=left, body=Copier(supply, same[name]).block(body))
    return replace(program, fns=fns)


def differentiated(program: f.Program) -> set[Param]:
    """The parameters by which derivatives are taken, also where that never runs."""
    taken = {bind.rhs.fn for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.Ad)}
    return {(name, program.fns[name].params[-1].name) for name in taken}


def fixed_functions(program: f.Program) -> set[str]:
    """Functions that are not only called by what the program says."""
    ruled = {name for key, rule in program.rules.items() for name in (key, rule.fn, rule.pullback) if name}
    return {*program.roots, *program.checkpoints, *ruled}


def gather(program: f.Program) -> Given:
    """What calls give to parameters, in functions that may run."""
    begin = fixed_functions(program)
    given: Given = {(name, p.name): None for name in begin for p in program.fns[name].params}
    todo = [name for name, fn in program.fns.items() if name in begin or not fn.params]
    done = set[str]()
    while todo:
        name = todo.pop()
        if name not in done:
            done.add(name)
            changed = _Calls(program, given).of(program.fns[name])
            done -= changed
            todo += changed
    return given


class _Calls:
    """What the calls in a function give to parameters, if its own have the values that are `given`.  Of a branch for
    which these decide, such as whether a parameter is null, only one side runs."""

    def __init__(self, program: f.Program, given: Given) -> None:
        self.program = program
        self.given = given
        self.known: dict[str, f.Const | None] = {}
        self.changed: set[str] = set()  # functions that get other values than before

    def of(self, fn: f.Fn) -> set[str]:
        self.known = {p.name: self.given[fn.name, p.name] for p in fn.params if (fn.name, p.name) in self.given}
        self.block(fn.body)
        return self.changed

    def value(self, atom: f.Atom) -> f.Const | None:
        return self.known.get(atom.name) if isinstance(atom, f.Var) else atom

    def block(self, block: f.Block) -> list[f.Const | None]:
        for bind in block.binds:
            values = self.values(bind.rhs)
            self.known.update((var.name, value) for var, value in zip(bind.vars, values, strict=False))
        return [self.value(atom) for atom in block.results]

    def values(self, rhs: f.Rhs) -> Sequence[f.Const | None]:
        match rhs:
            case f.Op("is_null", (atom,)):
                value = self.value(atom)
                return [f.Const(True, f.BOOL) if value is not None and value.value is None else None]
            case f.If(cond, then, else_):
                decided = self.value(cond)
                if decided is not None:
                    return self.block(then if decided.value else else_)
                sides = zip(self.block(then), self.block(else_), strict=True)
                return [x if x is not None and alike(y, x) else None for x, y in sides]
            case f.Call(fn, args):
                self.give(fn, [self.value(arg) for arg in args])
            case f.Ad(mode, fn, args) if mode != "pullback":
                captured = len(self.program.fns[fn].params) - 1
                self.give(fn, [*[self.value(arg) for arg in args[:captured]], None])
            case _:
                for inner in blocks(rhs):
                    self.block(inner)
        return ()

    def give(self, fn: str, values: Sequence[f.Const | None]) -> None:
        for param, value in zip(self.program.fns[fn].params, values, strict=True):
            key = (fn, param.name)
            before = self.given.get(key, value)
            now = value if value is not None and alike(before, value) else None
            if key not in self.given or (before is not None and now is None):
                self.given[key] = now
                self.changed.add(fn)


def alike(a: f.Const | None, b: f.Const) -> bool:
    return a is not None and expression_of(a) == expression_of(b)


def without(block: f.Block, program: f.Program, same: dict[str, dict[str, f.Atom]]) -> f.Block:
    """The code without the arguments for parameters in `same`."""

    def rewrite(rhs: f.Rhs) -> f.Rhs:
        if isinstance(rhs, f.Call | f.Ad) and rhs.fn in same and getattr(rhs, "mode", "") != "pullback":
            params = program.fns[rhs.fn].params  # where a derivative is taken, the others come first
            left = [a for p, a in zip(params, rhs.args, strict=False) if p.name not in same[rhs.fn]]
            return replace(rhs, args=(*left, *rhs.args[len(params) :]))
        return with_blocks(rhs, lambda inner: without(inner, program, same))

    return with_binds(block, [with_rhs(bind, rewrite(bind.rhs)) for bind in block.binds])
