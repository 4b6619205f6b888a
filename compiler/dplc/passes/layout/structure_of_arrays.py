"""An array of tuples to which loops add -> an array for each number in the tuples.

    c' = for k < m state (c = null) {               u', v' = for k < m state (u = null, v = null) {
      z = acc_zeros c n                               u1 = acc_index u x n i
      t = index z i                                   v1 = acc_index v y n i
      e = update z (0.0, 0.0) i           =>          yield u1, v1 }
      p = acc_add t.0 x                             c' = if is_null u' and is_null v' { null }
      q = acc_add t.1 y                                  else { build j < n { (u'[j], v'[j]) } }
      d = update e (p, q) i
      yield d }

The cotangent of an array of tuples or records is such an array.  What adds to arrays of numbers is an accumulator, so
the loop has no order, can be turned into sums and needs no check of owners.  The parts begin as null, in a loop or in
the arms of a branch, and go on through the bindings that only add, in the block of that; there the array is made where
something else reads it.  An array that is not null at the start of a loop stays as it is: taking it apart may cost more
than the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from dpl.node import node, record, replace

from dplc.flat import term as f
from dplc.flat.build import Builder, all_hold, block_of
from dplc.flat.types import elem_of, nothing, rank_of
from dplc.flat.walk import (
    blocks,
    bound,
    bound_inside,
    mentions,
    names,
    rhs_mentions,
    supply_for,
    with_binds,
    with_body,
    with_branches,
    with_inner,
)
from dplc.passes.simplify.fold import is_null, is_zero

Item = TypeVar("Item")
Atoms = tuple[f.Atom, ...]
Path = tuple[int, ...]  # to a part of a tuple


def structure_of_arrays(program: f.Program) -> f.Program:
    found = [fn for fn in program.fns.values() if any(_of_numbers(var.ty) for var in bound(fn))]
    if not found:
        return program
    parts = _Taken(supply_for(program))
    return replace(program, fns=program.fns | {fn.name: with_body(fn, parts.block(fn.body)) for fn in found})


def _of_numbers(ty: f.Type) -> bool:
    """True for arrays of tuples of floats; the tuples may be nested."""
    return isinstance(ty, f.Arr) and isinstance(ty.elem, f.Tup) and all(map(f.is_float, _leaves(ty.elem)))


def _leaves(ty: f.Type) -> Iterator[f.Type]:
    if isinstance(ty, f.Tup) and ty.items:
        for item in ty.items:
            yield from _leaves(item)
    else:
        yield ty


@node
class Parts:
    """The arrays in place of an array of tuples, one for each number, and its dimensions, once an addition tells."""

    arrays: Atoms
    dims: Atoms = ()


Link = tuple[f.Bind, f.Var, Parts]
"""A binding with an accumulator in parts, the variable that the accumulator became, and these parts."""


class _Taken:
    """Takes the accumulators of a function apart."""

    def __init__(self, supply: f.Supply) -> None:
        self.supply = supply

    def block(self, block: f.Block) -> f.Block:
        """The block with its accumulators in parts: first those that go furthest, then those that end inside."""
        made = self.outermost(block)
        return with_binds(made, [with_inner(bind, self.block) for bind in made.binds])

    def outermost(self, block: f.Block) -> f.Block:
        if not any(_may_begin(bind) for bind in block.binds):
            return block
        b, uses = Builder(self.supply), Counter(mentions(block))
        live: dict[f.Var, Parts] = {}
        for bind in block.binds:
            read, after = Counter(rhs_mentions(bind.rhs)), bind
            for var in [var for var in live if var.name in read]:
                parts = live.pop(var)
                link = self.link(after, var, parts) if read[var.name] == uses[var.name] else None
                if link is None:
                    whole(b, var, parts)
                else:
                    after, last, live[last] = link
            for link in self.links(after):
                after, last, live[last] = link
            b.binds.append(after)
        for var in [var for var in live if var in block.results]:
            whole(b, var, live[var])
        return block_of(b.binds, block.results)

    # ---- beginnings: accumulators that are null at first

    def links(self, bind: f.Bind) -> Iterator[Link]:
        """The accumulators that begin in a binding, one after the other."""
        for var in _may_begin(bind):
            link = self.beginning(bind, var)
            if link is not None:
                yield link
                bind = link[0]

    def beginning(self, bind: f.Bind, var: f.Var) -> Link | None:
        """A loop or branch in which the accumulator `var` begins; the others stay as they are."""
        k, start = bind.vars.index(var), Parts(_nulls(var.ty))
        loop = bind.rhs
        link = self.loop(bind, loop.state[k], start) if isinstance(loop, f.For) else self.in_arms(bind, k, start)
        return link if link is not None and link[2].dims else None

    def in_arms(self, bind: f.Bind, k: int, start: Parts) -> Link | None:
        """A branch in whose arms result number `k` begins, or is null."""
        arms = blocks(bind.rhs)
        found = [self.begun(arm, k) for arm in arms]
        done = [one for one in found if one is not None]
        return self.joined(bind, k, start, done) if len(done) == len(arms) else None

    def begun(self, block: f.Block, at: int) -> tuple[list[f.Bind], Parts] | None:
        """The bindings of a block in which result number `at` begins, or is null."""
        if is_null(block.results[at]):
            return list(block.binds), Parts(_nulls(block.results[at].ty))
        for n, bind in enumerate(block.binds):
            for var in _may_begin(bind):
                if (link := self.beginning(bind, var)) is not None:
                    made, now, parts = link
                    rest = self.follow(f.Block(block.binds[n + 1 :], block.results), now, at, parts)
                    if rest is not None and now.ty == block.results[at].ty:
                        return [*block.binds[:n], made, *rest[0]], rest[1]
        return None

    # ---- links: each is None if something other than additions happens to the accumulator ----

    def link(self, bind: f.Bind, now: f.Var, parts: Parts) -> Link | None:
        """A loop or branch that takes the accumulator `now`, and mentions it in no other way."""
        match bind.rhs:
            case f.For() as loop if loop.inits.count(now) == 1:
                return self.loop(bind, loop.state[loop.inits.index(now)], parts)
            case f.If() | f.Switch():
                return self.branch(bind, now, parts)
            case _:
                return None

    def loop(self, bind: f.Bind, state: f.Var, before: Parts) -> Link | None:
        """A loop whose state `state` is the accumulator."""
        loop = bind.rhs
        assert isinstance(loop, f.For)
        k, width = loop.state.index(state), len(loop.state)
        inside, last = self.fresh(before), self.fresh(before)
        found = self.follow(loop.body, state, k, Parts(inside, before.dims))
        if found is None:
            return None
        binds, after = found
        added = [i for i, array in enumerate(after.arrays) if array != inside[i]]
        results = loop.body.results
        body = f.Block(tuple(binds), (*_but(results[:width], k), *_chosen(after.arrays, added), *results[width:]))
        states, inits = [(*_but(old, k), *_chosen(parts, added))
                         for old, parts in ((loop.state, inside), (loop.inits, before.arrays))]  # fmt: skip
        made = replace(loop, state=states, inits=inits, body=body)
        vars_ = (*_but(bind.vars[:width], k), *_chosen(last, added), *bind.vars[width:])
        arrays = tuple([last[i] if i in added else array for i, array in enumerate(before.arrays)])
        return self.known_outside(loop, (f.Bind(vars_, made), bind.vars[k], Parts(arrays, after.dims)))

    def branch(self, bind: f.Bind, now: f.Var, before: Parts) -> Link | None:
        """A branch whose arms hand the accumulator on."""
        arms = blocks(bind.rhs)
        for k, var in enumerate(bind.vars):
            if var.ty != now.ty:
                continue
            found = [self.follow(arm, now, k, before) for arm in arms]
            done = [one for one in found if one is not None]
            if len(done) == len(arms):
                return self.joined(bind, k, before, done)
        return None

    def joined(self, bind: f.Bind, k: int, before: Parts, arms: list[tuple[list[f.Bind], Parts]]) -> Link | None:
        """A branch whose arms give result number `k` in parts; those to which no arm adds are none of its results."""
        added = [i for i, array in enumerate(before.arrays) if any(after.arrays[i] != array for _, after in arms)]
        bodies = [f.Block(tuple(binds), (*_but(arm.results, k), *_chosen(after.arrays, added)))
                  for arm, (binds, after) in zip(blocks(bind.rhs), arms, strict=True)]  # fmt: skip
        last = self.fresh(before)
        dims = next((after.dims for _, after in arms if after.dims), before.dims)
        made = f.Bind((*_but(bind.vars, k), *_chosen(last, added)), with_branches(bind.rhs, bodies))
        arrays = tuple([last[i] if i in added else array for i, array in enumerate(before.arrays)])
        return self.known_outside(bind.rhs, (made, bind.vars[k], Parts(arrays, dims)))

    def known_outside(self, rhs: f.Rhs, link: Link) -> Link | None:
        """The link, if the dimensions are known before the binding."""
        return link if {var.name for var in bound_inside(rhs)}.isdisjoint(names(link[2].dims)) else None

    def fresh(self, parts: Parts) -> tuple[f.Var, ...]:
        return tuple([f.Var(self.supply.fresh("c"), array.ty) for array in parts.arrays])

    def follow(self, block: f.Block, now: f.Var, at: int, parts: Parts) -> tuple[list[f.Bind], Parts] | None:
        """The bindings of a block that takes the accumulator `now` and gives it as result number `at`."""
        walk = _Walk(self, block, now, parts)
        if not all(map(walk.step, block.binds)):
            return None
        return walk.finish(block, at)


@record
class _Element:
    """An element that is taken out of an accumulator, `value`, and is added to."""

    value: f.Var
    at: Atoms


class _Walk:
    """Goes through a block along an accumulator.  `left` counts the uses of the variable that holds it now.  `paths`
    are the parts of the element that is taken out, `held` the variables that held the accumulator, `gone` the variables
    that are no longer bound."""

    def __init__(self, taken: _Taken, block: f.Block, now: f.Var, parts: Parts) -> None:
        self.taken, self.parts = taken, parts
        self.uses = Counter(mentions(block))
        self.defs = {bind.vars[0].name: bind.rhs for bind in block.binds if len(bind.vars) == 1}
        self.binds: list[f.Bind] = []
        self.gone: set[str] = set()
        self.held: set[str] = set()
        self.unread: Counter[str] = Counter()  # mentions in bindings that go
        self.element: _Element | None = None
        self.paths: dict[str, Path] = {}
        self.goes_on(now)

    def goes_on(self, now: f.Var) -> None:
        self.now, self.left = now, self.uses[now.name]
        self.held.add(now.name)

    def step(self, bind: f.Bind) -> bool:
        """Takes the next binding; False if the accumulator is used in another way."""
        if isinstance(get := bind.rhs, f.TupGet) and isinstance(get.tup, f.Var) and get.tup.name in self.paths:
            self.paths[bind.vars[0].name] = (*self.paths[get.tup.name], get.index)
            return self.goes(bind)
        read = Counter(rhs_mentions(bind.rhs))[self.now.name]
        self.left -= read
        match bind.rhs:
            case _ if not read:
                self.binds.append(bind)
                return True
            case f.Op("index", (first, *at)) if first == self.now and len(at) == rank_of(first.ty) and not self.element:
                self.element = _Element(bind.vars[0], tuple(at))
                self.paths[bind.vars[0].name] = ()
                return self.goes(bind)
            case _ if self.left:
                return False  # it is read elsewhere, too
            case f.Op("acc_zeros", (_, *dims)):
                self.parts = replace(self.parts, dims=self.parts.dims or tuple(dims))
                self.goes_on(bind.vars[0])
                return self.goes(bind)
            case f.Op("update", (first, value, *at)) if first == self.now != value:
                return self.update(bind, value, tuple(at))
            case _:
                link = None if self.element else self.taken.link(bind, self.now, self.parts)
                if link is None:
                    return False
                made, now, self.parts = link
                self.binds.append(made)
                self.goes_on(now)
                return True

    def goes(self, bind: f.Bind) -> bool:
        self.gone.add(bind.vars[0].name)
        self.unread.update(rhs_mentions(bind.rhs))
        return True

    def update(self, bind: f.Bind, value: f.Atom, at: Atoms) -> bool:
        """An element becomes zero while it is taken out, or comes back with what is added to it."""
        if self.element is None or self.element.at != at:
            return False
        self.goes_on(bind.vars[0])
        if self.is_zero(value):
            return self.goes(bind)
        added = self.added(value, self.element.value.ty, ())
        if added is None or not any(added) or not self.parts.dims:
            return False
        self.goes(bind)
        arrays = list(self.parts.arrays)
        for k, term in enumerate(added):
            if term is not None:
                op = f.Op("acc_index", (arrays[k], term, *self.parts.dims, *at), (("rank", len(at)),))
                arrays[k] = after = f.Var(self.taken.supply.fresh("c"), arrays[k].ty)
                self.binds.append(f.Bind((after,), op))
        self.parts = replace(self.parts, arrays=tuple(arrays))
        self.element = None
        return True

    def is_zero(self, value: f.Atom) -> bool:
        if not isinstance(value, f.Var):
            return is_zero(value)
        made = self.defs.get(value.name)
        if not isinstance(made, f.TupMake) or not all(map(self.is_zero, made.items)):
            return False
        return self.uses[value.name] > 1 or self.goes(f.Bind((value,), made))

    def added(self, value: f.Atom, ty: f.Type, path: Path) -> list[f.Atom | None] | None:
        """What is added to each number of the element, in the tuple `value` with the sums; None if it has others."""
        if not isinstance(value, f.Var):
            return None
        if self.paths.get(value.name) == path:
            return [None for _ in _leaves(ty)]
        match self.defs.get(value.name), ty:
            case f.TupMake(items) as made, f.Tup(types):
                both = enumerate(zip(items, types, strict=True))
                inner = [self.added(item, one, (*path, i)) for i, (item, one) in both]
                self.goes(f.Bind((value,), made))
                return None if None in inner else [term for one in inner if one is not None for term in one]
            case f.Op("acc_add", (f.Var(name), term)) as made, _ if self.paths.get(name) == path:
                self.goes(f.Bind((value,), made))
                self.unread.subtract(names((term,)))  # still read, by the addition
                return [term]
            case _:
                return None

    def finish(self, block: f.Block, at: int) -> tuple[list[f.Bind], Parts] | None:
        """The bindings without those that go, if nothing else reads what they give."""
        if block.results[at] != self.now or self.left != 1 or self.element:
            return None
        if any(self.uses[name] > self.unread[name] for name in self.gone - self.held):
            return None
        return [b for b in self.binds if len(b.vars) != 1 or b.vars[0].name not in self.gone], self.parts


# ---- the whole array again ----


def whole(b: Builder, var: f.Var, parts: Parts) -> None:
    """Binds `var` to the array of tuples; it is null where all parts are."""
    assert isinstance(var.ty, f.Arr)
    none = all_hold(b, [b.op("is_null", (array,)) for array in parts.arrays if not is_null(array)])
    with b.inside() as binds:
        there = [array if is_null(array) else b.op("acc_zeros", (array, *parts.dims)) for array in parts.arrays]
        made = _elements(b, var.ty, there, parts.dims, ())
    b.binds.append(f.Bind((var,), f.If(none, f.Block((), (f.Const(None, var.ty),)), block_of(binds, (made,)))))


def _elements(b: Builder, ty: f.Arr, arrays: list[f.Atom], dims: Atoms, at: Atoms) -> f.Atom:
    """The part of the whole array at some indices."""
    if len(at) == ty.rank:
        leaves = [nothing(elem_of(a.ty)) if is_null(a) else b.op("index", (a, *at), unchecked=True) for a in arrays]
        return _tuple(b, ty.elem, iter(leaves))
    index = b.var("i", f.I64)
    with b.inside() as binds:
        part = _elements(b, ty, arrays, dims, (*at, index))
    rest = tuple(dims[len(at) + 1 :])
    made = f.Build(index, dims[len(at)], block_of(binds, (part,)), inner=(rest,) if rest else ())
    return b.one(made, replace(ty, rank=ty.rank - len(at)), "c")


def _tuple(b: Builder, ty: f.Type, leaves: Iterator[f.Atom]) -> f.Atom:
    return b.make([_tuple(b, item, leaves) for item in ty.items]) if isinstance(ty, f.Tup) else next(leaves)


def _may_begin(bind: f.Bind) -> list[f.Var]:
    """What loops that are null at first give, and the results of branches that may begin in their arms: of those, the
    arrays of tuples of numbers."""
    match bind.rhs:
        case f.For(_, _, _, inits):
            return [var for var, init in zip(bind.vars, inits, strict=False) if is_null(init) and _of_numbers(var.ty)]
        case f.If() | f.Switch() as branch:
            arms = [arm.results for arm in blocks(branch)]
            return [var for var, *each in zip(bind.vars, *arms, strict=True)
                    if _of_numbers(var.ty) and any(map(is_null, each))]  # fmt: skip
        case _:
            return []


def _nulls(ty: f.Type) -> tuple[f.Const, ...]:
    assert isinstance(ty, f.Arr)
    return tuple([f.Const(None, f.Arr(leaf, ty.rank)) for leaf in _leaves(ty.elem)])


def _chosen(items: tuple[Item, ...], numbers: list[int]) -> tuple[Item, ...]:
    return tuple([items[i] for i in numbers])


def _but(items: tuple[Item, ...], k: int) -> tuple[Item, ...]:
    return items[:k] + items[k + 1 :]
