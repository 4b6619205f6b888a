"""Checks that a rule given to `with_jvp` is linear in its tangent.  If it is not, the program fails at run time.

    rule(x, t):  a = mul t x; b = add a c; return b      rule.linear(x, t):  a = mul t x; <fails unless c = 0>; ...

Only a linear rule is a derivative and can be transposed.  Values that depend on the tangent may be added, multiplied
and divided by other values, and selected.  A number that does not depend on the tangent may be added to them, or take
their place in a branch, only if it is zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpl.source import Span

from dplc.ad.activity import Node
from dplc.ad.derivatives import Derivatives
from dplc.ad.rules import bulk
from dplc.ad.tangents.types import zero
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of
from dplc.flat.walk import rebuild, unchanged

MESSAGE = f.Const("the rule given to `with_jvp` is not linear in its tangent", f.STR)


def checked(d: Derivatives, name: str, tangents: frozenset[int], wanted: frozenset[int]) -> str:
    """A copy of a function that fails at run time unless the wanted leaves of its results are linear in the leaves
    `tangents` of its parameters.  Returns the name of the copy."""
    key = (name, tangents, wanted)
    if key not in d.linear:
        fn = d.differentiable(name)  # of which the graph is
        new = d.linear[key] = d.fresh(name, "linear")
        graph = d.graph(name)
        active = graph.varied(tangents) & graph.useful(wanted)
        work = Checking(d, active, fn.span)
        if name in d.program.checkpoints:
            d.program.checkpoints.add(new)
        d.program.fns[new] = f.Fn(new, fn.params, fn.results, work.results(fn.body, wanted), fn.label, fn.span)
    return d.linear[key]


class Checking:
    def __init__(self, d: Derivatives, active: set[Node], span: Span) -> None:
        self.d = d
        self.active = active
        self.span = span

    def depends(self, atom: f.Atom) -> bool:
        return any(node in self.active for node in self.d.nodes((atom,)))

    # ---- blocks --------------------------------------------------------------------------------------------------

    def block(self, block: f.Block, like: Sequence[f.Var] = ()) -> f.Block:
        """A checked block.  `like` are the variables that take its results."""
        b = self.binds(block)
        for atom, var in zip(block.results, like, strict=False):
            self.meet(b, atom, self.depends(var))
        return b.block(*block.results)

    def results(self, block: f.Block, wanted: Iterable[int]) -> f.Block:
        """The body of a function; `wanted` numbers the leaves of all its results."""
        b, start = self.binds(block), 0
        for atom in block.results:
            count = len(self.d.tangents.leaves(atom.ty))
            self.meet(b, atom, not set(range(start, start + count)).isdisjoint(wanted))
            start += count
        return b.block(*block.results)

    def binds(self, block: f.Block) -> Builder:
        b = Builder(self.d.supply)
        for bind in block.binds:
            b.binds.append(f.Bind(bind.vars, self.rhs(b, bind)))
        return b

    def rhs(self, b: Builder, bind: f.Bind) -> f.Rhs:
        match bind.rhs:
            case f.Op() as op:
                return self.op(b, op) if any(map(self.depends, bind.vars)) else op
            case f.Call() as call:
                return self.call(call, bind.vars)
            case f.For(_, _, state, inits) | f.While(state, inits):
                for init, var in zip(inits, state, strict=True):
                    self.meet(b, init, self.depends(var))
                return self.inside(bind.rhs, state)
            case f.If() | f.Switch():
                return self.inside(bind.rhs, bind.vars)
            case f.Build():
                return self.inside(bind.rhs, ())
            case rhs:
                return rhs

    def inside(self, rhs: f.Rhs, like: Sequence[f.Var]) -> f.Rhs:
        return rebuild(rhs, unchanged, lambda inner: self.block(inner, like), unchanged)

    # ---- operations ----------------------------------------------------------------------------------------------

    def op(self, b: Builder, op: f.Op) -> f.Op:
        """Checks an operation whose result depends on the tangent."""
        on = [i for i in bulk.flows(op) if self.depends(op.args[i])]
        derivative = OPS[op.op].derivative
        if len([i for i in derivative.bilinear if i in on]) > 1 or any(i in on for i in derivative.curved):
            return f.Op("fail", (MESSAGE,), (("code", "R0504"),), op.span)
        for i in derivative.sums if on else ():
            self.meet(b, op.args[i], True)
        return op

    def call(self, call: f.Call, vars_: Sequence[f.Var]) -> f.Call:
        given = frozenset(i for i, node in enumerate(self.d.nodes(call.args)) if node in self.active)
        wanted = frozenset(i for i, node in enumerate(self.d.nodes(vars_)) if node in self.active)
        if not (given and wanted) or call.fn in self.d.program.rules:  # the author of a rule answers for it
            return call
        return f.Call(checked(self.d, call.fn, given, wanted), call.args, call.span)

    def meet(self, b: Builder, atom: f.Atom, tangent: bool) -> None:
        """Where a tangent is expected, a number that does not depend on it must be zero: adds a check of that."""
        numbers = isinstance(atom.ty, f.Num | f.Arr) and f.is_float(elem_of(atom.ty))
        if not (tangent and numbers) or self.depends(atom) or (isinstance(atom, f.Const) and not atom.value):
            return
        size = self.size(b, atom) if isinstance(atom.ty, f.Arr) else atom
        failing = b.inner()
        failing.bind(f.Op("fail", (MESSAGE,), (("code", "R0504"),), self.span), ())
        b.bind(f.If(b.op("ne", (size, f.Const(0.0, size.ty))), failing.block(), f.Block((), ())), ())

    def size(self, b: Builder, array: f.Atom) -> f.Var:
        """The sum of the absolute values; 0 for null."""
        some = b.inner()
        total = some.op("sum_to", (some.op("abs", (array,)),), rank=0)
        return b.choose(b.op("is_null", (array,)), f.Block((), (zero(total.ty),)), some.block(total))[0]
