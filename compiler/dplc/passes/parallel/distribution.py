"""flat -> flat where elementary functions that the steps of a loop in order compute without its state are computed
before them, in vectors (loop distribution, Allen and Kennedy 1984; strip mining, Loveman 1977).

    s = for i < n state (s = 0.0) {       s = for b < n / 512 + 1 state (s = 0.0) {
      x = index a i                         first = mul b 512; rest = sub n first; k = min rest 512
      e = exp x                             es = par j < k to keep { i = add first j; x = index a i
      d = mul s 0.5                   =>                             e = exp x; yield e }
      t = add d e                           s = for j < k state (s = s) {
      yield t }                               i = add first j; e = index es j
                                              d = mul s 0.5; t = add d e
                                              yield t }
                                            yield s }

The last block may have no steps; n + 511 would overflow where a loop of any number of steps ends by an error.  A short
loop, and one that collects what its steps give, has one block.  What is moved cannot fail, and reads only where
the loop's index tells.  So it may be done for steps that are never reached.  Loops in the points of a Par are left
alone: there, points are the lanes of vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.node import record, replace
from dpl.source import NOWHERE

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.elementary import is_function
from dplc.flat.kinds import any_of, kinds
from dplc.flat.known_sizes import known_sizes
from dplc.flat.walk import (
    blocks,
    names,
    needed,
    rhs_mentions,
    spans,
    supply_for,
    with_binds,
    with_body,
    with_inner,
)
from dplc.passes.parallel.checked_places import CheckedPlaces
from dplc.passes.simplify.purity import droppable, shareable

LEAST = 8  # steps of a loop for which vectors pay
BLOCK = 512  # steps whose numbers are computed together: they stay in the nearest cache
MOST = 4  # numbers that a step is handed
LOOPS = any_of(f.For)


def distribution(program: f.Program) -> f.Program:
    if not any(map(has_steps_with_functions, program.fns.values())):
        return program
    sizes, supply, fns = known_sizes(program), supply_for(program), dict(program.fns)
    for name, fn in program.fns.items():
        if has_steps_with_functions(fn):
            work = _Distribution(CheckedPlaces(fn.body, sizes.dims(fn)), supply)
            fns[name] = with_body(fn, work.block(fn.body))
    return replace(program, fns=fns)


def has_steps_with_functions(fn: f.Fn) -> bool:
    """True for a function with a loop in order whose steps call elementary functions, but for loops in points."""
    return bool(kinds(fn.body) & LOOPS) and any(map(in_steps, outside_points(fn.body)))


def in_steps(rhs: f.Rhs) -> bool:
    return isinstance(rhs, f.For) and any(is_function(bind.rhs) for bind in rhs.body.binds)


def outside_points(block: f.Block) -> Iterator[f.Rhs]:
    """What a block and its inner blocks do, without the points of Pars."""
    for bind in block.binds:
        yield bind.rhs
        if not isinstance(bind.rhs, f.Par):
            for inner in blocks(bind.rhs):
                yield from outside_points(inner)


@record
class _Parts:
    """A loop, what gives the numbers that are `kept` for its steps, and what the steps do with them."""

    loop: f.For
    ahead: Sequence[f.Bind]
    kept: Sequence[f.Var]
    second: Sequence[f.Bind]

    def steps(self, b: Builder, count: f.Atom, inits: tuple[f.Atom, ...], first: f.Atom | None = None) -> f.For:
        """Writes the numbers for the steps from `first` on; gives these steps."""
        loop, index = self.loop, f.Var(b.supply.fresh(self.loop.index.name), f.I64)
        copier = Copier(b.supply, {loop.index.name: index})
        points = f.Block(self.moved(index, first, self.ahead), tuple(self.kept))
        made = b.bind(f.Par(((index, count),), copier.block(points), (f.Out("keep"),) * len(self.kept), b.span),
                      [f.Arr(var.ty, 1) for var in self.kept], "ahead")  # fmt: skip
        number = loop.index if first is None else f.Var(b.supply.fresh(loop.index.name), f.I64)
        reads = [f.Bind((var,), f.Op("index", (array, number), (("unchecked", True),)))
                 for var, array in zip(self.kept, made, strict=True)]  # fmt: skip
        body = with_binds(loop.body, [*reads, *self.moved(number, first, self.second)])
        return replace(loop, index=number, count=count, inits=inits, body=body)

    def moved(self, index: f.Var, first: f.Atom | None, binds: Sequence[f.Bind]) -> tuple[f.Bind, ...]:
        """The bindings, behind that of the loop's own index where steps are counted from `first` on."""
        return tuple(binds) if first is None else (f.Bind((self.loop.index,), f.Op("add", (first, index))), *binds)

    def blocks(self, b: Builder) -> f.For:
        """The steps, a block at a time."""
        loop, block = self.loop, b.var("block", f.I64)
        count = b.op("add", (b.op("div", (loop.count, integer(BLOCK))), integer(1)))
        state = tuple([b.var(var.name, var.ty) for var in loop.state])
        with b.inside() as binds:
            first = b.op("mul", (block, integer(BLOCK)))
            here = b.op("min", (b.op("sub", (loop.count, first)), integer(BLOCK)))
            results = b.bind(self.steps(b, here, state, first), [var.ty for var in state], "state")
        return f.For(block, count, state, loop.inits, block_of(binds, results))


class _Distribution:
    """The loops of one function."""

    def __init__(self, places: CheckedPlaces, supply: f.Supply) -> None:
        self.places, self.supply = places, supply

    def block(self, block: f.Block) -> f.Block:
        binds = list[f.Bind]()
        for bind in block.binds:
            made = bind if isinstance(bind.rhs, f.Par) else with_inner(bind, self.block)
            binds += self.parts(made, made.rhs) if isinstance(made.rhs, f.For) else [made]
        return with_binds(block, binds)

    def parts(self, bind: f.Bind, loop: f.For) -> Sequence[f.Bind]:
        """A loop with what is computed before it, or as it is."""
        steps = loop.count.value if isinstance(loop.count, f.Const) and isinstance(loop.count.value, int) else None
        if (steps is not None and steps < LEAST) or (loop.collect and not self.is_natural(loop.count)):
            return [bind]
        short = steps is not None and steps <= 2 * BLOCK
        ahead = self.without_state(loop)
        rest = [one for one in loop.body.binds if not any(one is other for other in ahead)]
        wanted = {name for one in rest for name in rhs_mentions(one.rhs)} | set(names(loop.body.results))
        kept = [var for var in functions(ahead) if var.name in wanted]
        if not 0 < len(kept) <= MOST or not all(f.is_float(var.ty) for var in kept):
            return [bind]
        numbers = {var.name for var in kept}
        again = needed([one for one in ahead if one.vars[0].name not in numbers], wanted - numbers)
        second = [one for one in loop.body.binds if any(one is other for other in (*again, *rest))]
        parts = _Parts(loop, needed(ahead, numbers), kept, second)
        b = Builder(self.supply)
        with b.at(next(spans(bind), NOWHERE)):
            whole = parts.steps(b, loop.count, loop.inits) if short or loop.collect else parts.blocks(b)
        return block_of([*b.binds, f.Bind(bind.vars, whole)], ()).binds

    def is_natural(self, count: f.Atom) -> bool:
        return self.places.affine.is_natural(self.places.affine.sum(count))

    def without_state(self, loop: f.For) -> list[f.Bind]:
        """What a step computes without the state, wherever it may be done."""
        found, carried = list[f.Bind](), {var.name for var in loop.state}
        for bind in loop.body.binds:
            if carried.isdisjoint(rhs_mentions(bind.rhs)) and self.may_move(bind):
                found.append(bind)
            else:
                carried.update(var.name for var in bind.vars)
        return found

    def may_move(self, bind: f.Bind) -> bool:
        """True for arithmetic that cannot fail, and for a read that is in bounds wherever it is done."""
        match bind:
            case f.Bind((f.Var(ty=f.Num()),), f.Op() as op) if droppable(op) and shareable(op):
                return op.op != "index" or self.places.fits(op)
            case _:
                return False


def functions(ahead: Sequence[f.Bind]) -> list[f.Var]:
    """The variables that depend on elementary functions."""
    found = list[f.Var]()
    known = set[str]()
    for bind in ahead:
        if is_function(bind.rhs) or not known.isdisjoint(rhs_mentions(bind.rhs)):
            found += bind.vars
            known.update(var.name for var in bind.vars)
    return found
