"""flat -> flat where comparisons that the ranges of their operands decide are constants (value range propagation).

    build i < n { low = lt i 0                    build i < n { last = eq i n - 1
                  last = eq i n - 1        =>                   x = if last { ... }
                  x = if low { ... } ...                            else { ... }
        ... else { m = add i 1                                  }
                   out = ge m n; ... } }

A program that asks at each point of a grid whether its neighbours exist asks it of points, too, that do.  A condition
costs a loop little; but derivatives remember which way each branch went, and what it kept.  What only one value of an
index decides, as at an edge, is an equality: i > 0 is i <> 0.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.conditions import Conditions
from dplc.flat.dims import dims_of
from dplc.flat.walk import changed, every, rebuild, supply_for, unchanged, with_body, with_rhs
from dplc.passes.simplify.simplify import simplified


def value_ranges(program: f.Program) -> f.Program:
    supply = supply_for(program)
    fns = {}
    for name, fn in program.fns.items():
        known = decided(fn)
        fns[name] = simplified(known, supply, program) if known is not fn else fn
    return replace(program, fns=fns)


def decided(fn: f.Fn) -> f.Fn:
    """A function where constants replace what the known comparisons of its loops gave."""
    if not any(isinstance(bind.rhs, f.For | f.Build) and compares(bind.rhs.body) for bind in every(fn.body)):
        return fn
    return with_body(fn, _Ranges(Conditions(Affine(dims_of(fn.body)))).block(fn.body))


def compares(body: f.Block) -> bool:
    """True if a body may compare whole numbers."""
    found = [bind.rhs for bind in every(body) if is_boolean(bind)]
    return any(isinstance(rhs, f.Op) and rhs.args and rhs.args[0].ty == f.I64 for rhs in found)


def is_boolean(bind: f.Bind) -> bool:
    return len(bind.vars) == 1 and bind.vars[0].ty == f.BOOL


class _Ranges:
    """One function.  `constants` has the results of comparisons that are decided."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.affine = conditions.affine
        self.constants: dict[str, f.Const] = {}

    def block(self, block: f.Block) -> f.Block:
        binds = changed(block.binds, self.bind)
        results = changed(block.results, self.atom)
        return block if binds is block.binds and results is block.results else f.Block(binds, results)

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.constants.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def bind(self, bind: f.Bind) -> f.Bind:
        match bind.rhs:
            case f.Op() as op:
                self.affine.define(bind)
                if is_boolean(bind) and (truth := self.conditions.decided(op)) is not None:
                    self.constants[bind.vars[0].name] = f.Const(truth, f.BOOL)
                elif is_boolean(bind) and (equality := self.conditions.equality(op)) is not None:
                    bind = with_rhs(bind, equality)
            case f.For(index, count) | f.Build(index, count):
                self.affine.loop(index, count)
            case f.If() as branch:
                bind = with_rhs(bind, self.conditions.branches(branch, self.block))
                self.conditions.define(bind)
                return with_rhs(bind, rebuild(bind.rhs, self.atom, unchanged, unchanged))
            case _:
                pass
        bind = with_rhs(bind, rebuild(bind.rhs, self.atom, self.block, unchanged))
        self.conditions.define(bind)
        return bind
