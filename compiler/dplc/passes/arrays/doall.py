"""Loops whose steps write an array at their own places only: flat -> flat where they are comprehensions (DOALL loops),
and loops that write one place only carry what is there (scalar replacement; Callahan, Carr and Kennedy 1990).

    c' = for i < n state (c = a) {                  c' = build i < n {
      x' = for k < m state (d = c) {                  x = index a i
        x = index d i; y = add x k           =>       x' = for k < m state (x = x) { y = add x k; yield y }
        e = update d y i; yield e } ... }             yield x' }

The array must have as many elements as the loop has steps, and a step may read it at its own place only.  A row that is
written must be known to be as long as the one before it: an update would fail otherwise.  Loops are rewritten from the
inside to the outside, so a loop over the elements of a row becomes an update of that row, which may be the own place of
the loop around it.  This comes before differentiation: points have no order in reverse either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.build import Builder, block_of
from dplc.flat.copy import Renamed
from dplc.flat.dims import dims_of
from dplc.flat.effects import Effects
from dplc.flat.kinds import any_of, kinds
from dplc.flat.types import elem_of, of_rank, rank_of
from dplc.flat.walk import (
    blocks,
    bound_inside,
    every,
    names,
    rebuild,
    rhs_mentions,
    supply_for,
    with_binds,
    with_body,
    with_inner,
)
from dplc.passes.simplify.simplify import simplify

SURE = (("unchecked", True),)
UPDATES = any_of("update")

Place = tuple[f.Atom, ...]


def doall(program: f.Program) -> f.Program:
    writing = [name for name, fn in program.fns.items() if writes_in_loops(fn.body)]
    if not writing:
        return program
    supply, effects = supply_for(program), Effects(program)
    made = {}
    for name in writing:
        fn = program.fns[name]
        made[name] = with_body(fn, _Loops(supply, effects, fn.body).block(fn.body))
    if all(made[name] is program.fns[name] for name in writing):
        return program
    return simplify(replace(program, fns=program.fns | made))


def writes_in_loops(body: f.Block) -> bool:
    return bool(kinds(body) & UPDATES) and any(map(writes, every(body)))


def writes(bind: f.Bind) -> bool:
    """True for a loop with an update in it."""
    return isinstance(bind.rhs, f.For) and any(is_update(inner.rhs) for inner in every(bind.rhs.body))


def is_update(rhs: f.Rhs) -> bool:
    return isinstance(rhs, f.Op) and rhs.op == "update"


class Unfit(Exception):
    """The array is used in another way."""


@node
class Own:
    """State number `k` of a loop, an array that is written at one place in each step."""

    k: int
    place: Place


class _Loops:
    """The loops of one function."""

    def __init__(self, supply: f.Supply, effects: Effects, body: f.Block) -> None:
        self.supply = supply
        self.effects = effects
        self.affine = Affine(dims_of(body))

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            self.affine.define(bind)
            if isinstance(bind.rhs, f.For | f.Build):
                self.affine.loop(bind.rhs.index, bind.rhs.count)
            bind = with_inner(bind, self.block)
            binds += self.loop(bind, bind.rhs) if isinstance(bind.rhs, f.For) else [bind]
        return with_binds(block, binds)

    def loop(self, bind: f.Bind, loop: f.For) -> Sequence[f.Bind]:
        """The bindings in place of a loop."""
        own = [one for k in range(len(loop.state)) if (one := self.own(loop, k)) is not None]
        try:
            if self.each_once(loop, own) and self.effects.of(loop.body) is None:
                return self.comprehension(bind, loop, own)
            if fixed := [one for one in own if loop.index not in one.place]:
                return self.replaced(bind, loop, fixed)
        except Unfit:
            pass
        return [bind]

    # ---- which places

    def own(self, loop: f.For, k: int) -> Own | None:
        """State number `k`, if it is written at a place that is known before the step, and is there."""
        array = loop.state[k]
        if not isinstance(array.ty, f.Arr) or not isinstance(loop.inits[k], f.Var):
            return None
        place = next(written(loop.body, array), None)
        if place is None or not {var.name for var in bound_inside(loop)}.isdisjoint(
            name for name in names(place) if name != loop.index.name
        ):
            return None
        there = all(self.affine.fits(at, loop.inits[k], number) for number, at in enumerate(place))
        return Own(k, place) if there else None

    def each_once(self, loop: f.For, own: list[Own]) -> bool:
        """True if a loop only writes arrays, each at all of its places (in one dimension)."""
        if loop.collect or len(own) < len(loop.state) or not own:
            return False
        for one in own:
            *before, last = one.place
            length = self.affine.length(self.affine.dims.of(loop.inits[one.k], len(before)))
            if last != loop.index or loop.index in before or length != self.affine.sum(loop.count):
                return False
        return True

    # ---- the code

    def comprehension(self, bind: f.Bind, loop: f.For, own: list[Own]) -> Sequence[f.Bind]:
        b = Builder(self.supply)
        body, parts, reads, inner = loop.body, list[f.Var](), list[f.Bind](), list[Place]()
        for one in own:
            parts.append(self.part(loop, one))
            reads.append(f.Bind((parts[-1],), f.Op("index", (loop.inits[one.k], *one.place), SURE)))
            body = self.at_place(body, loop, one, parts[-1])
        for one, x in zip(own, parts, strict=True):
            depth = len(one.place)
            inner.append(tuple([b.op("dim", (loop.inits[one.k],), k=depth + k) for k in range(rank_of(x.ty))]))
        body = f.Block((*reads, *body.binds), body.results)
        build = f.Build(loop.index, loop.count, body, inner=tuple(inner) if any(inner) else ())
        made = [var if len(one.place) == 1 else self.part(loop, replace(one, place=one.place[:-1]))
                for var, one in zip(bind.vars, own, strict=True)]  # fmt: skip
        b.binds.append(f.Bind(tuple(made), build))
        for var, row, one in zip(bind.vars, made, own, strict=True):
            if row is not var:
                b.binds.append(f.Bind((var,), f.Op("update", (loop.inits[one.k], row, *one.place[:-1]), SURE)))
        return block_of(b.binds, ()).binds

    def replaced(self, bind: f.Bind, loop: f.For, fixed: list[Own]) -> Sequence[f.Bind]:
        """The loop, with what is at the places that do not change as its state."""
        b, vars_ = Builder(self.supply), list(bind.vars)
        state, inits = list(loop.state), list(loop.inits)
        body = loop.body
        for one in fixed:
            k = one.k
            state[k], vars_[k] = self.part(loop, one), self.part(loop, one)
            inits[k] = b.op("index", (loop.inits[k], *one.place), unchecked=True)
            body = self.at_place(body, loop, one, state[k])
        made = replace(loop, state=tuple(state), inits=tuple(inits), body=body)
        b.binds.append(f.Bind(tuple(vars_), made))
        for one in fixed:
            again = f.Op("update", (loop.inits[one.k], vars_[one.k], *one.place), SURE)
            b.binds.append(f.Bind((bind.vars[one.k],), again))
        return block_of(b.binds, ()).binds

    def part(self, loop: f.For, one: Own) -> f.Var:
        """A variable for what is at a place of an array; it has the lengths of the array's last dimensions."""
        init, depth = loop.inits[one.k], len(one.place)
        x = f.Var(self.supply.fresh("x"), of_rank(elem_of(init.ty), rank_of(init.ty) - depth))
        for k in range(rank_of(x.ty)):
            self.affine.dims.set(x.name, k, self.affine.dims.of(init, depth + k))
        return x

    def at_place(self, block: f.Block, loop: f.For, one: Own, part: f.Var) -> f.Block:
        """The body of a loop, with what is at one place of an array in place of the array."""
        array, init, dims = loop.state[one.k], loop.inits[one.k], self.affine.dims

        def fits(value: f.Atom) -> bool:
            """True for a number, and for a row that is known to be as long as the one before it."""
            return all(dims.equal(dims.of(value, k), dims.of(part, k)) for k in range(rank_of(value.ty)))

        made, is_array = _AtPlace(one.place, init, {array.name: part}, fits, self.supply).arm(block)
        if is_array != tuple([j == one.k for j in range(len(block.results))]):
            raise Unfit
        return made


def written(block: f.Block, array: f.Var) -> Iterator[Place]:
    """The places at which a block writes an array."""
    for bind in block.binds:
        match bind.rhs:
            case f.Op("update", (one, _, *place)) if one == array:
                yield tuple(place)
            case f.If() | f.Switch():
                for arm in blocks(bind.rhs):
                    yield from written(arm, array)
            case _:
                pass


class _AtPlace(Renamed):
    """`now` has the part that stands for each value of the array, which has the lengths of `init`; `fits` tells what
    can be written."""

    def __init__(
        self, place: Place, init: f.Atom, now: dict[str, f.Atom], fits: Callable[[f.Atom], bool], supply: f.Supply
    ) -> None:
        super().__init__({})
        self.place, self.init, self.now, self.fits, self.supply = place, init, now, fits, supply

    def atom(self, atom: f.Atom) -> f.Atom:
        if isinstance(atom, f.Var) and atom.name in self.now:
            raise Unfit
        return super().atom(atom)

    def operands(self, atoms: tuple[f.Atom, ...]) -> tuple[f.Atom, ...]:
        return tuple(map(self.atom, atoms))

    def value(self, atom: f.Atom) -> f.Atom:
        if not isinstance(atom, f.Var) or atom.name not in self.now:
            raise Unfit
        return self.now[atom.name]

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        made: list[f.Bind] = []
        for bind in binds:
            if self.now.keys().isdisjoint(rhs_mentions(bind.rhs)):
                made.append(f.Bind(bind.vars, self.rhs(bind.rhs)) if self.atoms else bind)
                continue
            match bind.rhs:
                case f.Op("index", (f.Var(name), *at)) if name in self.now and self.is_own(at):
                    self.read(bind, bind.rhs, at, made)
                case f.Op("dim", (f.Var(name),)) as op if name in self.now:
                    made.append(f.Bind(bind.vars, replace(op, args=(self.init,))))
                case f.Op("update", (f.Var(name), value, *at)) if name in self.now and self.is_part(at, value):
                    self.now[bind.vars[0].name] = self.atom(value)
                case f.If() | f.Switch() as branch:
                    made.append(self.branch(bind, branch))
                case rhs:
                    made.append(f.Bind(bind.vars, self.rhs(rhs)))
        return tuple(made)

    def is_own(self, at: list[f.Atom]) -> bool:
        return tuple(at[: len(self.place)]) == self.place

    def is_part(self, at: list[f.Atom], value: f.Atom) -> bool:
        """True if a value that is written is the part from there on."""
        return tuple(at) == self.place and self.fits(value)

    def read(self, bind: f.Bind, op: f.Op, at: list[f.Atom], made: list[f.Bind]) -> None:
        """A read of the part, or of an element of it."""
        part, rest = self.value(op.args[0]), at[len(self.place) :]
        if not rest:
            self.atoms[bind.vars[0].name] = part
            return
        attrs = tuple([pair for pair in op.attrs if pair[0] == "unchecked"])
        made.append(f.Bind(bind.vars, f.Op("index", (part, *self.operands(tuple(rest))), attrs, op.span)))

    def branch(self, bind: f.Bind, branch: f.If | f.Switch) -> f.Bind:
        """A branch, some of whose results may be the array."""
        told = list[tuple[bool, ...]]()

        def arm(block: f.Block) -> f.Block:
            made, is_array = self.arm(block)
            told.append(is_array)
            return made

        made = rebuild(branch, self.atom, arm, self.var)
        if any(is_array != told[0] for is_array in told):
            raise Unfit
        return f.Bind(tuple(map(self.result, bind.vars, told[0])), made)

    def arm(self, block: f.Block) -> tuple[f.Block, tuple[bool, ...]]:
        """A block with the part in place of the array in its results, and which of them are."""
        binds = self.binds(block.binds)
        is_array = tuple([isinstance(atom, f.Var) and atom.name in self.now for atom in block.results])
        results = [self.value(atom) if array else self.atom(atom)
                   for atom, array in zip(block.results, is_array, strict=True)]  # fmt: skip
        return f.Block(binds, tuple(results)), is_array

    def result(self, var: f.Var, is_array: bool) -> f.Var:
        """A result of a branch.  A part is a number: rows would be copied where a branch leaves them as they are."""
        if not is_array:
            return var
        if rank_of(var.ty) > len(self.place):
            raise Unfit
        part = f.Var(self.supply.fresh("x"), elem_of(var.ty))
        self.now[var.name] = part
        return part
