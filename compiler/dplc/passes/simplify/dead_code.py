"""Dead code elimination, by liveness: flat -> flat without unused bindings, results of branches and state of loops.

(a, b) = if c { yield x, y } else { yield z, w }          a = if c { yield x } else { yield z }
u = mul a a                                         =>    return a
return a
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.dims import Dims
from dplc.flat.walk import BLOCKS, atoms, changed, remade, with_binds, with_blocks, with_inner, with_rhs
from dplc.passes.simplify.purity import droppable, natural
from dplc.passes.simplify.row_shapes import differing

NOTHING = f.Const(False, f.BOOL)


def drop_unused(block: f.Block, total: Collection[str] = ()) -> f.Block:
    """The block without dead code.  Calls of the functions in `total` only compute."""
    return Drop(total).block(block, set())


class Drop:
    def __init__(self, total: Collection[str]) -> None:
        self.total = total
        self.wanted: dict[int, set[int]] = {}  # a loop or Par -> what of it is live, as far as is known

    def block(self, block: f.Block, live: set[str]) -> f.Block:
        """The block without dead bindings.  Adds the variables that it uses to `live`."""
        use(live, block.results)
        kept: list[f.Bind] = []
        for bind in reversed(block.binds):
            for var in bind.vars:
                if var.name in live:
                    break
            else:
                if droppable(bind.rhs, self.total):
                    continue
            if type(bind.rhs) in BLOCKS:
                bind = self.bind(bind, live)
            use(live, atoms(bind.rhs))
            kept.append(bind)
        kept.reverse()
        return with_binds(block, kept)

    def bind(self, bind: f.Bind, live: set[str]) -> f.Bind:
        match bind.rhs:
            case f.If() | f.Switch() | f.Build():
                wanted = [k for k, v in enumerate(bind.vars) if v.name in live]
                if isinstance(bind.rhs, f.Build):
                    wanted = with_compared(bind.rhs, wanted)
                    if not wanted:
                        return self.checks(bind.rhs, live)
                rhs = with_blocks(bind.rhs, lambda b: self.block(with_results(b, wanted), live))
                if isinstance(rhs, f.Switch):
                    rhs = without_payloads(rhs, live)
                if isinstance(rhs, f.Build) and len(wanted) < len(rhs.inner):
                    rhs = replace(rhs, inner=pick(rhs.inner, wanted))
                return with_rhs(bind, rhs, pick(bind.vars, wanted))
            case f.For() | f.While():
                return self.loop(bind, bind.rhs, live)
            case f.Par():
                return self.par(bind, bind.rhs, live)
            case f.Map():
                return with_inner(bind, lambda b: self.block(b, live))
            case _:
                return bind

    def checks(self, build: f.Build, live: set[str]) -> f.Bind:
        """A comprehension without its results, which is there only because it may fail."""
        if natural(build.count):
            body = self.block(f.Block(build.body.binds, ()), live)
            return f.Bind((), f.For(build.index, build.count, (), (), body))
        body = self.block(f.Block(build.body.binds, (NOTHING,)), live)
        unused = f.Var(f"{build.index.name}.checked", f.Arr(f.BOOL, 1))
        return f.Bind((unused,), f.Build(build.index, build.count, body, build.span))

    def par(self, bind: f.Bind, par: f.Par, live: set[str]) -> f.Bind:
        """An accumulator that the body hands to what stays, such as a call that also keeps something, stays too."""
        ends = [k for k, v in enumerate(bind.vars) if v.name in live]
        wanted = self.begun(par, set(with_compared(par, ends))) or set(range(len(par.outs))[:1])
        while True:
            inner: set[str] = set()
            chosen = sorted(wanted)
            body = self.block(with_results(par.body, chosen), inner)
            more = {k for k, out in enumerate(par.outs) if out.acc is not None and out.acc.name in inner}
            if more <= wanted:
                break
            wanted |= more
        live |= inner
        less = remade(par, par.space, body, pick(par.outs, chosen), par.span, par.ordered)
        return with_rhs(bind, less, pick(bind.vars, chosen))

    def begun(self, rhs: f.Par | f.For | f.While, live: set[int]) -> set[int]:
        """The results with which to begin.  What was live when a loop around had less of its state is so still: to find
        it again each time would take twice as long with each loop around."""
        wanted = self.wanted.setdefault(id(rhs), set())
        wanted |= live
        return wanted

    def loop(self, bind: f.Bind, loop: f.For | f.While, live: set[str]) -> f.Bind:
        width = len(loop.state)
        keeps = any(v.name in live for v in bind.vars[width:])
        collect = loop.collect if keeps else 0
        extra = list(range(width, width + collect))
        cond_live: set[str] = set()
        cond = self.block(loop.cond, cond_live) if isinstance(loop, f.While) else None
        ends = {k for k in range(width) if bind.vars[k].name in live or loop.state[k].name in cond_live}
        wanted = self.begun(loop, ends)
        while True:
            inner = set(cond_live)
            chosen = sorted(wanted)
            body = self.block(with_results(loop.body, chosen + extra), inner)
            more = {k for k in range(width) if loop.state[k].name in inner}
            if more <= wanted:
                break
            wanted |= more
        live |= inner
        vars_ = pick(bind.vars, chosen) + (bind.vars[width:] if keeps else ())
        state, inits = pick(loop.state, chosen), pick(loop.inits, chosen)
        if isinstance(loop, f.For):
            return with_rhs(bind, remade(loop, loop.index, loop.count, state, inits, body, collect), vars_)
        assert cond is not None
        return with_rhs(bind, remade(loop, state, inits, cond, body, collect), vars_)


def use(live: set[str], used: Iterable[f.Atom]) -> None:
    for atom in used:
        if isinstance(atom, f.Var):
            live.add(atom.name)


def pick(items: tuple, wanted: Sequence[int]) -> tuple:
    """The wanted items, in order; the same tuple if these are all."""
    return items if len(wanted) == len(items) else tuple([items[k] for k in wanted])


def with_compared(rhs: f.Build | f.Par, wanted: Sequence[int], dims: Dims | None = None) -> Sequence[int]:
    """Also the unused results whose rows are compared when they are kept."""
    unused = set(range(len(rhs.body.results))) - set(wanted)
    return sorted({*wanted, *differing(rhs, unused, dims)}) if unused else wanted


def with_results(block: f.Block, wanted: Sequence[int]) -> f.Block:
    """The block with only these results, by their positions."""
    return with_binds(block, block.binds, pick(block.results, wanted))


def without_payloads(switch: f.Switch, live: set[str]) -> f.Switch:
    """Payloads that no branch uses are not bound."""

    def without(case: f.Case) -> f.Case:
        return case if case.payload is None or case.payload.name in live else f.Case(case.tag, None, case.body)

    return remade(switch, switch.scrutinee, changed(switch.cases, without), switch.default)
