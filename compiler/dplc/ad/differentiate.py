"""Differentiation: flat -> flat without Ad.  Each derivative is written once for each activity.

    (y, dy) = jvp f (c, x, dx)          =>    (y, dy) = f.jvp(c, x, dx)
    (y, s) = jet f (c, n, x)            =>    (y, s) = f.jet(c, x, [1.0, 0.0, ...], n)
    (y, r) = vjp f (c, x)               =>    (y, k) = f.fwd(c, x);  r = (k, x)
    dx = pullback f (r, dy)             =>    cx = f.bwd(k, dy, 0);  dx = from_tan(cx, like x)

Innermost first: the derivatives inside a function are taken before it is differentiated (`body`).  So nested
derivatives are derivatives of ordinary code, without perturbation confusion.  All derivatives are memoised
(`ad/derivatives.py`).

What only some derivatives need is imported where they do: most programs take gradients, without rules of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace
from dpl.source import Span

from dplc.ad.derivatives import Derivatives, Forwarded, Mode, Reversed
from dplc.ad.primals import Primals, key_of
from dplc.ad.reverse import chosen, preaccumulation
from dplc.ad.reverse.steps import step
from dplc.ad.reverse.tape import Reverse
from dplc.ad.reverse.wider import Leaves, by_wider, covers
from dplc.ad.taken import takes_derivatives, without_rules
from dplc.ad.tangents import shape_check
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, Zeros, sent
from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.call_graph import callees
from dplc.flat.places import inside
from dplc.flat.walk import supply_for, with_binds, with_blocks, with_body, with_rhs


def differentiate(program: f.Program) -> f.Program:
    """The program without `Ad` and `Res`."""
    if not takes_derivatives(program):
        return without_rules(program)
    out = replace(
        program, fns=dict(program.fns), datas=dict(program.datas), residuals={}, checkpoints=set(program.checkpoints),
        rules=dict(program.rules),
    )  # fmt: skip
    derivatives = Differentiation(out, supply_for(program))
    for name in program.fns:
        out.fns[name] = derivatives.body(name)
    derivatives.finish()
    out.checkpoints, out.rules = set(), {}  # not needed any more
    return out


class Differentiation(Derivatives):
    def __init__(self, program: f.Program, supply: f.Supply) -> None:
        super().__init__(program, supply)
        self.primals = Primals(program)

    # ---- functions without Ad ------------------------------------------------------------------------------------

    def free(self, fn: f.Fn) -> f.Fn:
        with self.primals.function():
            return with_body(fn, self.block(fn.body))

    def block(self, block: f.Block) -> f.Block:
        b = Builder(self.supply)
        with self.primals.block(block):
            for bind in block.binds:
                match bind.rhs:
                    case f.Ad() as ad:
                        self.derive(b, ad, bind.vars, inside(ad.mode, ad.span))
                    case f.Call() as call if (later := self.primals.later(call)) is not None:
                        ad, vars_ = later
                        self.derive(b, replace(ad, span=call.span), vars_, call.span)
                        self.rename(b, bind.vars, self.primals.known[key_of(call)])
                    case f.Call() as call if key_of(call) in self.primals.known:
                        self.rename(b, bind.vars, self.primals.known[key_of(call)])
                    case rhs:
                        b.binds.append(with_rhs(bind, with_blocks(rhs, self.block)))
        return with_binds(block, b.binds)

    def derive(self, b: Builder, ad: f.Ad, vars_: tuple[f.Var, ...], call: Span) -> None:
        """Takes a derivative, unless a call has asked for it before.  `call` is the place of the function's call."""
        if self.primals.note(ad, vars_):
            here = Builder(self.supply, ad.span)
            self.site(here, ad, vars_, call)
            b.binds += here.binds

    def site(self, b: Builder, ad: f.Ad, vars_: tuple[f.Var, ...], call: Span) -> None:
        """One derivative that the program takes."""
        fn = self.body(ad.fn, ad.span)
        match ad.mode:
            case "jvp":
                shape_check.check(self.convert, b, ad.args[-1], ad.args[-2], "direction", ad.span)
                tangents = self.convert.to_tan(b, ad.args[-1])
                (y, *others), outs = self.beside(b, ad, self.first, ad.args[:-1], tangents, call)
                self.rename(b, vars_, (y, self.convert.from_tan(b, outs, y), *others))
            case "jet":
                from dplc.ad.taylor.jet import variable

                *captured, order, x = ad.args
                some = b.op("max", (order, integer(1)))  # at least 1: an empty array has no inner dimensions
                given = (variable(b, some, x), some)
                (y, *others), series = self.beside(b, ad, self.series, (*captured, x), given, call)
                self.rename(b, vars_, (y, self.coefficients.all(b, series, y, order, some), *others))
            case "vjp":
                made = self.pulled(ad)
                y, *others, kept = b.calls(made.fwd, ad.args, (*fn.results, made.residual), call)
                self.rename(b, vars_, (y, b.make((kept, *self.like(fn, ad.args[-1]), *self.formed(y))), *others))
            case "pullback":
                residual = (
                    f.Var(ad.args[0].name, self.residual_of(ad.site)) if isinstance(ad.args[0], f.Var) else ad.args[0]
                )
                self.pullback(b, ad, fn, residual, vars_)

    def beside(
        self, b: Builder, ad: f.Ad, mode: Mode, args: Sequence[f.Atom], tangents: Sequence[f.Atom], call: Span
    ) -> tuple[tuple[f.Var, ...], list[f.Var | None]]:
        """Calls f.jvp or f.jet.  Returns the results of f, and the tangents of the leaves of its first result."""
        fn = self.program.fns[ad.fn]
        made = self.forward(ad.fn, tuple((i, NO_ZEROS) for i in self.last_leaves(fn)), ad.span, mode)
        leaves = [leaf for ty in fn.results for leaf in mode.tangents.leaves(ty)]
        types = (*fn.results, *(leaves[i] for i in made.results))
        called = (made.name, (*args, *tangents)) if made.results else (ad.fn, args)
        values = b.calls(*called, types, call)
        outs = dict(zip(made.results, values[len(fn.results) :], strict=True))
        return values[: len(fn.results)], [outs.get(i) for i in range(len(mode.tangents.leaves(fn.results[0])))]

    def pullback(self, b: Builder, ad: f.Ad, fn: f.Fn, residual: f.Atom, vars_: tuple[f.Var, ...]) -> None:
        made = self.pulled(ad)
        x = fn.params[-1]
        types = self.tangents.leaves(x.ty)
        outs: list[f.Atom | None] = [None] * len(types)
        active = self.pulled_leaves(fn)
        start = len(self.param_nodes(fn)) - len(types)
        if shape_check.has_form(fn.results[0]):
            y = b.get(residual, 1 + len(self.like(fn, x)))
            shape_check.check(self.convert, b, ad.args[1], y, "cotangent", ad.span)
        if active:
            given = self.convert.to_tan(b, ad.args[1])
            cts = [given[i] for i in self.wanted_leaves(fn)]
            accs = [sent(b, None, types[i - start]) for i in active]
            for i, out in zip(
                active, b.calls(made.bwd, (b.get(residual, 0), *cts, *accs), [a.ty for a in accs], ad.span), strict=True
            ):
                outs[i - start] = out
        like = b.get(residual, 1) if self.like(fn, x) else f.Const(0.0, x.ty)
        self.rename(b, vars_, (self.convert.from_tan(b, outs, like),))

    def rename(self, b: Builder, vars_: Sequence[f.Var], atoms: Sequence[f.Atom]) -> None:
        """Binds variables to atoms, through a tuple."""
        tup = b.make(atoms)
        b.binds += [f.Bind((self.retype.var(var),), f.TupGet(tup, i)) for i, var in enumerate(vars_)]

    def finish(self) -> None:
        """Writes the silent functions that are still missing, drops dead functions, and replaces residual types."""
        while missing := self.silent.missing():
            for name in missing:
                self.silent.write(name)
        reached = self.reached()
        self.program.fns = {name: self.retype.fn(fn) for name, fn in self.program.fns.items() if name in reached}
        for name, decl in list(self.program.datas.items()):
            self.program.datas[name] = self.retype.data(decl)

    def reached(self) -> set[str]:
        """The functions that are called from outside, and those that they call."""
        todo = self.program.roots if self.program.main in self.program.fns else list(self.program.fns)
        found = set(todo)
        while todo:
            new = set(callees(self.program.fns[todo.pop()].body)) - found
            found |= new
            todo += new
        return found

    # ---- the writers ---------------------------------------------------------------------------------------------

    def write_forward(
        self, fn: f.Fn, made: Forwarded, active: tuple[tuple[int, Zeros], ...], mode: Mode
    ) -> list[Zeros]:
        if fn.name in self.program.rules:
            if mode is self.first:
                from dplc.ad.custom.rules import forward as by_rule
            else:
                from dplc.ad.taylor.custom_rules import series as by_rule
            by_rule(self, fn, made, active)
            return [MAYBE_ZERO] * len(made.results)
        if mode is self.first:
            from dplc.ad.forward.forward import Forward as Transform
        else:
            from dplc.ad.taylor.jet import Jet as Transform
        work = Transform(self, mode, self.graph(fn.name), active)
        self.program.fns[made.name], zeros = work.function(fn, made.name, made.results)
        return zeros

    def write_reverse(
        self, fn: f.Fn, made: Reversed, active: tuple[int, ...], wanted: tuple[tuple[int, Zeros], ...]
    ) -> list[Zeros]:
        if fn.name in self.program.rules:
            from dplc.ad.custom.rules import reverse

            reverse(self, fn, made, active, wanted)
            return [MAYBE_ZERO] * len(active)
        if fn.name in self.program.checkpoints:
            from dplc.ad.custom.checkpoint import checkpoint

            return checkpoint(self, fn, made, active, wanted)
        earlier = set(self._reverse)
        if preaccumulation.serves(self, fn, active, wanted):
            zeros = preaccumulation.preaccumulate(self, fn, self.graph(fn.name), made, active, wanted)
            calls_itself = made.assumption.called
        elif chosen.serves(fn, self.body(fn.name).body, active, wanted):
            return chosen.computed_again(self, fn, self.graph(fn.name), made, active, wanted)
        else:
            zeros = self.reversed(fn, made, active, wanted)
            calls_itself = self.boxed(f"res.{made.fwd}")
        more = self.wider(fn.name, (active, wanted), earlier)
        if more is None or calls_itself:
            return zeros
        self.program.datas.pop(f"res.{made.fwd}", None)
        return by_wider(self, fn, made, (active, wanted), self._reverse[fn.name, *more], more)

    def reversed(
        self, fn: f.Fn, made: Reversed, active: tuple[int, ...], wanted: tuple[tuple[int, Zeros], ...]
    ) -> list[Zeros]:
        """Writes f.fwd and f.bwd of a function that keeps what its backward code needs."""
        fns, graph, names = self.program.fns, self.graph(fn.name), (made.fwd, made.bwd, f"res.{made.fwd}")
        work = Reverse(self, graph, active, wanted, step)
        fns[made.fwd], fns[made.bwd], zeros = work.function(fn, *names)
        needed = work.overwritten.needed(fns[made.bwd].body)
        if len(needed) < len(work.overwritten.arrays):
            work = Reverse(self, graph, active, wanted, step, restored=needed)
            fns[made.fwd], fns[made.bwd], zeros = work.function(fn, *names)
        made.residual = fns[made.fwd].results[-1]
        return zeros

    def wider(self, name: str, less: Leaves, earlier: set[tuple]) -> Leaves | None:
        """The leaves of a derivative that the function needed for its own calls and that also serves for fewer."""
        others = ((key[1], key[2]) for key in self._reverse if key[0] == name and key not in earlier)
        return next((more for more in others if covers(more, less)), None)
