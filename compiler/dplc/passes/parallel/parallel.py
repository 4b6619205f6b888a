"""flat -> flat where loops whose steps have no order are a `Par`.

    b = build i < n { ...; yield x }           b = par i < n to keep { ...; yield x }

    c, d = for i < n                           c, d = par i < n to keep, fold 0 {
        state (c = null, d = 0.0) {      =>      ...
      ...                                        yield v, w }
      c' = acc_index c v n i
      d' = acc_add d w
      yield c', d' }

What is only added to (`additive.py`) becomes the sum of what each point adds: a number is folded; an array to which
each point adds at its own place is kept; to other arrays the points add in place.  A `Map` becomes a Par over the
dimensions of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.copy import Renamed
from dplc.flat.dims import dims_of
from dplc.flat.effects import Effects
from dplc.flat.known_sizes import KnownSizes, known_sizes
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import (
    atoms,
    blocks,
    bound_inside,
    every,
    mentions,
    rhs_mentions,
    supply_for,
    with_binds,
    with_blocks,
    with_body,
    with_rhs,
)
from dplc.passes.parallel.added_parts import added_parts
from dplc.passes.parallel.added_rows import added_directly
from dplc.passes.parallel.additive import Additive, Trail
from dplc.passes.parallel.begun_sums import begun_sums
from dplc.passes.parallel.checks import checked_before
from dplc.passes.parallel.copied_rows import copied_rows
from dplc.passes.parallel.elementwise import Elementwise, fills_of_rows, parts_of_arrays
from dplc.passes.parallel.flat_nests import placed
from dplc.passes.parallel.forwards import forwards
from dplc.passes.parallel.other_rows import other_rows
from dplc.passes.parallel.read_copies import without_copies
from dplc.passes.parallel.scatters import scatters
from dplc.passes.parallel.solid import Solid, without_questions
from dplc.passes.simplify.fold import zero_of
from dplc.passes.simplify.hoist_dims import hoist_lengths_of_rows, without_known_lengths


def parallel(program: f.Program) -> f.Program:
    program = replace(program, fns={name: without_copies(fn) for name, fn in program.fns.items()})
    program = scatters(program)
    sizes, supply = known_sizes(program), supply_for(program)
    known = {name: without_known_lengths(fn, supply, sizes.dims(fn)) for name, fn in program.fns.items()}
    made = _Program(replace(program, fns=known), sizes)
    program = replace(program, fns=known)
    return replace(program, fns={name: made.function(fn) for name, fn in program.fns.items()})


class _Program:
    def __init__(self, program: f.Program, sizes: KnownSizes) -> None:
        self.supply = supply_for(program)
        self.sizes = sizes
        self.effects = Effects(program)
        self.additive = Additive(program)

    def function(self, fn: f.Fn) -> f.Fn:
        if not any(loops(fn.body)):
            return fn
        body = added_directly(added_parts(_Fn(self, fn).body(), self.supply), self.supply)
        fn = copied_rows(with_body(fn, checked_before(self.supply, body)), self.supply)
        return hoist_lengths_of_rows(fn, self.supply) if any(map(reads_lengths, every(fn.body))) else fn


def reads_lengths(bind: f.Bind) -> bool:
    """True for points that read a length, as that of a row: all rows have that of the matrix."""
    read = every(bind.rhs.body) if isinstance(bind.rhs, f.Par) else ()
    return any(isinstance(one.rhs, f.Op) and one.rhs.op == "dim" for one in read)


def loops(block: f.Block) -> Iterator[bool]:
    for bind in every(block):
        yield isinstance(bind.rhs, f.Map | f.Build | f.For)
        yield isinstance(bind.rhs, f.Op) and bind.rhs.op == "acc_add"


class _Fn:
    def __init__(self, program: _Program, fn: f.Fn) -> None:
        self.program = program
        self.look_at(fn)
        self.change(other_rows(fn.body, program.supply))
        unordered = {index for index, trails in self.known.items() if trails is not None}
        body = begun_sums(self.fn.body, program.supply, lambda: program.sizes.dims(self.fn), self.solid, self.in_order)
        self.change(forwards(body, Affine(dims_of(body)), unordered))
        self.change(without_questions(self.fn.body, self.solid))

    def change(self, body: f.Block) -> None:
        """Goes on with another body of the function."""
        if body is not self.fn.body:
            changed = with_body(self.fn, body)
            self.program.additive.changed(changed)
            self.look_at(changed)

    def look_at(self, fn: f.Fn) -> None:
        self.fn = fn
        self.known = {bind.rhs.index.name: self.trails(bind.rhs)
                      for bind in every(fn.body) if isinstance(bind.rhs, f.For)}  # fmt: skip
        self.solid = Solid(fn.body, lambda loop: self.known[loop.index.name])
        self.varying = set(bound_in_loops(fn.body))

    def body(self) -> f.Block:
        self.fills, self.parts = fills_of_rows(self.fn.body), parts_of_arrays(self.fn.body)
        self.dims = self.program.sizes.dims(self.fn)
        return self.block(self.fn.body)

    def block(self, block: f.Block, state: tuple[f.Var, ...] = ()) -> f.Block:
        """The block with its loops as Pars.  Backwards, as a Map may overwrite an input that is not used later: what
        the block has bound, or the `state` of the loop whose body it is."""
        free = {var.name for vars_ in (state, *(bind.vars for bind in block.binds)) for var in vars_}
        free.difference_update(mentions(f.Block((), block.results)))
        pieces: list[tuple[f.Bind, ...]] = []
        for bind in reversed(block.binds):
            pieces.append(self.bind(bind, free))
            free.difference_update(rhs_mentions(bind.rhs))
        return with_binds(block, [bind for piece in reversed(pieces) for bind in piece])

    def bind(self, bind: f.Bind, free: set[str]) -> tuple[f.Bind, ...]:
        """The bindings in place of one.  `free` are the block's variables that are not used later; it changes."""
        match bind.rhs:
            case f.Map() as fused:
                return self.elementwise(fused, bind.vars, free)
            case f.Op("acc_add", args) if all(a in self.solid for a in args):
                return self.sum(bind, free)
            case f.Build() as build:
                return (f.Bind(bind.vars, self.build(build)),)
            case f.For() as loop if (made := self.loop(bind, loop, free)) is not None:
                return made
            case f.For() | f.While() as loop:
                return (with_rhs(bind, with_blocks(loop, lambda inner: self.inside(loop, inner))),)
            case rhs:
                return (with_rhs(bind, with_blocks(rhs, self.block)),)

    def inside(self, loop: f.For | f.While, block: f.Block) -> f.Block:
        return self.block(block, loop.state if block is loop.body else ())

    def elementwise(self, fused: f.Map, variables: tuple[f.Var, ...], free: set[str]) -> tuple[f.Bind, ...]:
        return Elementwise(self.program.supply, fused, variables, free, self.fills, self.parts, self.dims).binds()

    def sum(self, bind: f.Bind, free: set[str]) -> tuple[f.Bind, ...]:
        """The sum of two arrays that are there is elementwise."""
        op = bind.rhs
        assert isinstance(op, f.Op)
        if not (rank := rank_of(op.args[0].ty)):
            return (bind,)
        params = tuple([f.Var(self.program.supply.fresh("element"), elem_of(a.ty)) for a in op.args])
        total = f.Var(self.program.supply.fresh("sum"), params[0].ty)
        body = f.Block((f.Bind((total,), f.Op("acc_add", params, (), op.span)),), (total,))
        return self.elementwise(f.Map(params, op.args, body, (rank,), op.span), bind.vars, free)

    # ---- comprehensions

    def build(self, build: f.Build) -> f.Par:
        body = self.block(build.body)
        sizes = build.inner or ((),) * len(body.results)
        outs = tuple([f.Out("keep", inner=inner) for inner in sizes])
        ordered = self.program.effects.of(build.body) is not None
        return merged(f.Par(((build.index, build.count),), body, outs, build.span, ordered))

    # ---- loops with accumulators

    def in_order(self, loop: f.For, k: int) -> Trail | None:
        """How a loop whose steps have an order adds to its state number `k`; None if it does something else with it."""
        ordered = self.known[loop.index.name] is None
        return self.program.additive.trail(self.fn, loop, k) if ordered else None

    def trails(self, loop: f.For) -> tuple[Trail, ...] | None:
        """How a loop adds to its state, if it has one; None if it does something else, or nothing."""
        found = [self.program.additive.trail(self.fn, loop, k) for k in range(len(loop.state))]
        if not (loop.state or loop.collect) or self.program.effects.of(loop.body) is not None:
            return None
        trails = tuple([trail for trail in found if trail is not None])
        return trails if len(trails) == len(found) else None

    def loop(self, bind: f.Bind, loop: f.For, free: set[str]) -> tuple[f.Bind, ...] | None:
        trails = self.known[loop.index.name]
        if trails is None:
            return None
        short = isinstance(loop.count, f.Var) and loop.count.name in self.varying
        made = _Loop(self.program.supply, loop, bind.vars, trails, self.solid, short).binds(self.block)
        return tuple([part for one in made for part in (self.sum(one, free) if self.adds(one) else (one,))])

    def adds(self, bind: f.Bind) -> bool:
        """True for a sum of an array that is there and of what a loop has added."""
        return isinstance(bind.rhs, f.Op) and bind.rhs.op == "acc_add" and bind.rhs.args[0] in self.solid


class _Loop:
    """A loop with accumulators, as it becomes a Par.  `atoms` has what stands for variables of the body.  A `short` one
    has fewer steps in some steps of a loop around it than in others."""

    def __init__(
        self, supply: f.Supply, loop: f.For, variables: tuple[f.Var, ...], trails: tuple[Trail, ...], solid: Solid,
        short: bool = False,
    ) -> None:  # fmt: skip
        self.supply, self.solid, self.short = supply, solid, short
        self.loop = loop
        self.vars = variables
        self.outs: list[f.Out] = []
        self.atoms: dict[str, f.Atom] = {}
        self.owned: set[str] = set()  # what additions at the own place bind
        self.lengths: dict[int, f.Atom] = {}  # of arrays that are kept, by the number of the variable
        for k, trail in enumerate(trails):
            self.accumulator(k, trail)

    def accumulator(self, k: int, trail: Trail) -> None:
        state = self.loop.state[k]
        if isinstance(state.ty, f.Num):
            self.outs.append(f.Out("fold"))
            self.atoms[state.name] = f.Const(0.0, state.ty)
        elif self.solid.is_kept(self.loop, k, trail) and not self.longer(k, trail):
            rank = rank_of(state.ty)
            dims = atoms(trail[0].rhs)[2 : 2 + rank]
            self.outs.append(f.Out("keep", inner=dims[1:]))
            self.atoms[state.name] = zero_of(added_type(trail[0].rhs))
            self.owned.update([bind.vars[0].name for bind in trail])
            if rank == 1:
                self.lengths[k] = dims[0]
        else:
            self.outs.append(f.Out("add", target=self.loop.inits[k], acc=state))

    def longer(self, k: int, trail: Trail) -> bool:
        """True for an array of numbers that is there before, and longer than a short loop.  What is kept would be made
        as long by zeros, and a sum of both goes over all of it: in a factorisation, three times as much as is added."""
        length = atoms(trail[0].rhs)[2]
        there = rank_of(self.loop.state[k].ty) == 1 and not is_empty(self.loop.inits[k])
        return self.short and there and length != self.loop.count

    def binds(self, block: Callable[[f.Block], f.Block]) -> tuple[f.Bind, ...]:
        """The Par, and what adds its results to the loop's initial state."""
        loop = self.loop
        plain = self.numbers(loop.body)
        body = block(Renamed(self.atoms).block(plain))
        outs, variables = list(self.outs), []
        if loop.collect:
            kept = f.Var(self.supply.fresh("kept"), f.Tup(tuple([a.ty for a in body.results[-loop.collect :]])))
            tuple_ = f.Bind((kept,), f.TupMake(body.results[-loop.collect :]))
            body = f.Block((*body.binds, tuple_), (*body.results[: -loop.collect], kept))
            outs.append(f.Out("keep"))
        par = f.Par(((loop.index, loop.count),), body, tuple(outs))
        after: list[f.Bind] = []
        for k, var in enumerate(self.vars):
            if k >= len(loop.state):
                variables.append(var)
                continue
            variables.append(self.result(k, var, after))
        return (f.Bind(tuple(variables), merged(par)), *after)

    def numbers(self, body: f.Block) -> f.Block:
        """The body, in which an array that is kept is the number at the own place.  Nothing is added to zero."""
        binds = []
        for bind in body.binds:
            match bind:
                case f.Bind((f.Var(name),), f.Op("acc_index", (left, right, *_)) as op) if name in self.owned:
                    before, added = self.atom(left), self.atom(right)
                case f.Bind((f.Var(_, f.Num()),), f.Op("acc_add", (left, right)) as op):
                    before, added = sorted(map(self.atom, (left, right)), key=lambda a: isinstance(a, f.Var))
                case _:
                    binds.append(bind)
                    continue
            if before == zero_of(added.ty):
                self.atoms[bind.vars[0].name] = added
                continue
            number = f.Var(bind.vars[0].name, added.ty)
            self.atoms[number.name] = number
            binds.append(f.Bind((number,), f.Op("acc_add", (before, added), (), op.span)))
        return f.Block(tuple(binds), body.results)

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.atoms.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def result(self, k: int, var: f.Var, after: list[f.Bind]) -> f.Var:
        """The variable that the Par binds; `after` gets what makes of it the variable of the loop."""
        out, init = self.outs[k], self.loop.inits[k]
        if out.kind == "add":
            return var
        made, final = var, var
        if not is_empty(init):
            made = f.Var(self.supply.fresh(var.name), var.ty)
            after.append(f.Bind((var,), f.Op("acc_add", (init, made))))
            final = made
        if k in self.lengths and self.lengths[k] != self.loop.count:
            short = f.Var(self.supply.fresh(var.name), var.ty)
            after.insert(0, f.Bind((final,), f.Op("acc_extend", (short, self.lengths[k]))))
            return short
        return made


def bound_in_loops(block: f.Block) -> Iterator[str]:
    """The variables that loops bind, which may differ from step to step."""
    for bind in block.binds:
        if isinstance(bind.rhs, f.For | f.While):
            yield from (var.name for var in bound_inside(bind.rhs))
        else:
            for inner in blocks(bind.rhs):
                yield from bound_in_loops(inner)


def is_empty(init: f.Atom) -> bool:
    """True for nothing that was added before."""
    return isinstance(init, f.Const) and init.value in (None, 0.0)


def added_type(rhs: f.Rhs) -> f.Type:
    """The type of what an operation adds."""
    return atoms(rhs)[1].ty


def merged(par: f.Par) -> f.Par:
    """One Par for two that are perfectly nested."""
    match par.body:
        case f.Block((f.Bind(variables, f.Par() as inner),), results) if variables == results:
            pass
        case _:
            return par
    counts = tuple([count for _, count in inner.space])
    if any(out.kind != "keep" or out.target is not None for out in (*par.outs, *inner.outs)):
        return par
    if any(index in counts for index, _ in par.space) or par.ordered or inner.ordered:
        return par
    told = [(out.inner, (*counts, *one.inner)) for out, one in zip(par.outs, inner.outs, strict=True)]
    if any(outer not in ((), whole) for outer, whole in told):
        return par
    return f.Par((*par.space, *inner.space), inner.body, inner.outs, placed(inner, par))
