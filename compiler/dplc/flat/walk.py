"""Traversal of flat: the operands, inner blocks and binders of a right-hand side, and its reconstruction from others.

A pass handles the shapes that matter to it and leaves the rest to `rebuild`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter, is_
from typing import Any, TypeVar

from dpl.node import replace
from dpl.source import NOWHERE, Span

from dplc.flat import term as f
from dplc.flat.remembered import remembered


def atoms(rhs: f.Rhs) -> tuple[f.Atom, ...]:
    """The operands of a right-hand side, without those of its inner blocks."""
    return ATOMS[type(rhs)](rhs)


ATOMS: dict[type, Callable[[Any], tuple[f.Atom, ...]]] = {
    f.Op: attrgetter("args"),
    f.Call: attrgetter("args"),
    f.Ad: attrgetter("args"),
    f.TupMake: attrgetter("items"),
    f.TupGet: lambda rhs: (rhs.tup,),
    f.ConMake: lambda rhs: () if rhs.arg is None else (rhs.arg,),
    f.If: lambda rhs: (rhs.cond,),
    f.Switch: lambda rhs: (rhs.scrutinee,),
    f.For: lambda rhs: (rhs.count, *rhs.inits),
    f.While: attrgetter("inits"),
    f.Build: lambda rhs: (rhs.count, *chain.from_iterable(rhs.inner)),
    f.Map: attrgetter("inputs"),
    f.Par: lambda rhs: (*[count for _, count in rhs.space], *chain.from_iterable(map(operands_of, rhs.outs))),
}


def operands_of(out: f.Out) -> tuple[f.Atom, ...]:
    """The operands of one output of a Par: what it adds to, if anything, and what the points begin with."""
    return out.inner if out.target is None else (out.target, *out.inner)


def blocks(rhs: f.Rhs) -> tuple[f.Block, ...]:
    """The inner blocks of a right-hand side."""
    inner = BLOCKS.get(type(rhs))
    return () if inner is None else inner(rhs)


def arms(switch: f.Switch) -> tuple[f.Block, ...]:
    """The blocks of a switch, the default last."""
    bodies = tuple([case.body for case in switch.cases])
    return bodies if switch.default is None else (*bodies, switch.default)


BLOCKS: dict[type, Callable[[Any], tuple[f.Block, ...]]] = {
    f.If: attrgetter("then", "else_"),
    f.Switch: arms,
    f.For: lambda rhs: (rhs.body,),
    f.While: attrgetter("cond", "body"),
    f.Build: lambda rhs: (rhs.body,),
    f.Map: lambda rhs: (rhs.body,),
    f.Par: lambda rhs: (rhs.body,),
}


def binders(rhs: f.Rhs) -> tuple[f.Var, ...]:
    """The variables that a right-hand side binds for its inner blocks."""
    bound_inside = BINDERS.get(type(rhs))
    return () if bound_inside is None else bound_inside(rhs)


BINDERS: dict[type, Callable[[Any], tuple[f.Var, ...]]] = {
    f.Switch: lambda rhs: tuple([case.payload for case in rhs.cases if case.payload is not None]),
    f.For: lambda rhs: (rhs.index, *rhs.state),
    f.While: attrgetter("state"),
    f.Build: lambda rhs: (rhs.index,),
    f.Map: attrgetter("params"),
    f.Par: lambda rhs: (*[index for index, _ in rhs.space], *accumulators(rhs)),
}


def overwritten(rhs: f.Rhs) -> list[f.Atom]:
    """The arrays whose elements a Par replaces, if they have no other owner; its points may read them."""
    outs = rhs.outs if isinstance(rhs, f.Par) else ()
    return [out.target for out in outs if out.kind == "keep" and out.target is not None]


def own_reads(body: f.Block, own: tuple[f.Var, ...]) -> Iterator[tuple[f.Var, f.Bind]]:
    """The arrays that a body reads at its own point."""
    for bind in every(body):
        match bind.rhs:
            case f.Op("index", (f.Var() as array, *indices)) if tuple(indices[: len(own)]) == own:
                yield array, bind
            case _:
                pass


def accumulators(par: f.Par) -> tuple[f.Var, ...]:
    """What the body of a Par calls the arrays that it adds to."""
    return tuple([out.acc for out in par.outs if out.acc is not None])


Atoms = Callable[[f.Atom], f.Atom]
Blocks = Callable[[f.Block], f.Block]
Binders = Callable[[f.Var], f.Var]
Item = TypeVar("Item")
Made = TypeVar("Made", bound=f.Rhs | f.Out | f.Fn | f.Type)


def rebuild(rhs: f.Rhs, atom: Atoms, block: Blocks, binder: Binders) -> f.Rhs:
    """The right-hand side with operands, inner blocks and binders replaced: binders first, then blocks.  Returns the
    same object if nothing changes."""
    return REBUILD[type(rhs)](rhs, atom, block, binder)


def unchanged(item: Item) -> Item:
    """For `rebuild`: these are as before."""
    return item


def changed(items: tuple[Item, ...], change: Callable[[Item], Item]) -> tuple[Item, ...]:
    """All items changed; the same tuple if none is, as most often."""
    if change is unchanged:
        return items
    for i, item in enumerate(items):
        made = change(item)
        if made is not item:
            return (*items[:i], made, *map(change, items[i + 1 :]))
    return items


def remade(one: Made, *fields: Any) -> Made:
    """A node with other fields; the same object if they are the same."""
    for name, field in zip(one.__match_args__, fields, strict=False):  # the last may have defaults
        if getattr(one, name) is not field:
            return type(one)(*fields)
    return one


def _op(op: f.Op, atom: Atoms, block: Blocks, binder: Binders) -> f.Op:
    args = changed(op.args, atom)
    return op if args is op.args else f.Op(op.op, args, op.attrs, op.span)


def _call(call: f.Call, atom: Atoms, block: Blocks, binder: Binders) -> f.Call:
    args = changed(call.args, atom)
    return call if args is call.args else f.Call(call.fn, args, call.span)


def _ad(ad: f.Ad, atom: Atoms, block: Blocks, binder: Binders) -> f.Ad:
    args = changed(ad.args, atom)
    return ad if args is ad.args else f.Ad(ad.mode, ad.fn, args, ad.site, ad.span)


def _tuple(make: f.TupMake, atom: Atoms, block: Blocks, binder: Binders) -> f.TupMake:
    items = changed(make.items, atom)
    return make if items is make.items else f.TupMake(items)


def _part(get: f.TupGet, atom: Atoms, block: Blocks, binder: Binders) -> f.TupGet:
    tup = atom(get.tup)
    return get if tup is get.tup else f.TupGet(tup, get.index)


def _data(make: f.ConMake, atom: Atoms, block: Blocks, binder: Binders) -> f.ConMake:
    arg = None if make.arg is None else atom(make.arg)
    return make if arg is make.arg else f.ConMake(make.data, make.tag, arg)


def _if(branch: f.If, atom: Atoms, block: Blocks, binder: Binders) -> f.If:
    return remade(branch, atom(branch.cond), block(branch.then), block(branch.else_))


def _switch(switch: f.Switch, atom: Atoms, block: Blocks, binder: Binders) -> f.Switch:
    cases = []
    for case in switch.cases:
        payload = None if case.payload is None else binder(case.payload)
        body = block(case.body)
        cases.append(case if body is case.body and payload is case.payload else f.Case(case.tag, payload, body))
    same = switch.cases if all(map(is_, cases, switch.cases)) else tuple(cases)
    default = None if switch.default is None else block(switch.default)
    return remade(switch, atom(switch.scrutinee), same, default)


def _for(loop: f.For, atom: Atoms, block: Blocks, binder: Binders) -> f.For:
    count, inits = atom(loop.count), changed(loop.inits, atom)
    index, state = binder(loop.index), changed(loop.state, binder)
    return remade(loop, index, count, state, inits, block(loop.body), loop.collect)


def _while(loop: f.While, atom: Atoms, block: Blocks, binder: Binders) -> f.While:
    inits = changed(loop.inits, atom)
    state = changed(loop.state, binder)
    return remade(loop, state, inits, block(loop.cond), block(loop.body), loop.collect)


def _build(build: f.Build, atom: Atoms, block: Blocks, binder: Binders) -> f.Build:
    count, inner = atom(build.count), changed(build.inner, lambda sizes: changed(sizes, atom))
    return remade(build, binder(build.index), count, block(build.body), build.span, inner)


def _map(fused: f.Map, atom: Atoms, block: Blocks, binder: Binders) -> f.Map:
    inputs = changed(fused.inputs, atom)
    params = changed(fused.params, binder)
    return remade(fused, params, inputs, block(fused.body), fused.ranks, fused.span)


def _par(par: f.Par, atom: Atoms, block: Blocks, binder: Binders) -> f.Par:
    def dimension(one: tuple[f.Var, f.Atom]) -> tuple[f.Var, f.Atom]:
        made = binder(one[0]), atom(one[1])
        return one if all(map(is_, one, made)) else made

    def out(one: f.Out) -> f.Out:
        target = None if one.target is None else atom(one.target)
        acc = None if one.acc is None else binder(one.acc)
        return remade(one, one.kind, one.rank, target, acc, changed(one.inner, atom), one.kept, one.team, one.order)

    space, outs = changed(par.space, dimension), changed(par.outs, out)
    return remade(par, space, block(par.body), outs, par.span, par.ordered)


REBUILD: dict[type, Callable[[Any, Atoms, Blocks, Binders], f.Rhs]] = {
    f.Op: _op,
    f.Call: _call,
    f.Ad: _ad,
    f.TupMake: _tuple,
    f.TupGet: _part,
    f.ConMake: _data,
    f.If: _if,
    f.Switch: _switch,
    f.For: _for,
    f.While: _while,
    f.Build: _build,
    f.Map: _map,
    f.Par: _par,
}


def with_blocks(rhs: f.Rhs, block: Callable[[f.Block], f.Block]) -> f.Rhs:
    """The right-hand side with its inner blocks replaced."""
    return REBUILD[type(rhs)](rhs, unchanged, block, unchanged) if type(rhs) in BLOCKS else rhs


def with_inner(bind: f.Bind, block: Callable[[f.Block], f.Block]) -> f.Bind:
    """The binding with the inner blocks of its right-hand side replaced; the same object if they are the same."""
    rhs = bind.rhs
    if type(rhs) not in BLOCKS:
        return bind
    made = REBUILD[type(rhs)](rhs, unchanged, block, unchanged)
    return bind if made is rhs else f.Bind(bind.vars, made)


def with_rhs(bind: f.Bind, rhs: f.Rhs, vars_: tuple[f.Var, ...] | None = None) -> f.Bind:
    """The binding with another right-hand side, and variables if given; the same object if they are the same."""
    vars_ = bind.vars if vars_ is None else vars_
    return bind if rhs is bind.rhs and vars_ is bind.vars else f.Bind(vars_, rhs)


def with_binds(block: f.Block, binds: Sequence[f.Bind], results: tuple[f.Atom, ...] | None = None) -> f.Block:
    """The block with other bindings, and results if given; the same object if they are the same."""
    results = block.results if results is None else results
    return block if same(binds, block.binds) and same(results, block.results) else f.Block(tuple(binds), results)


def same(items: Sequence[object], others: Sequence[object]) -> bool:
    """True if two sequences have the same objects."""
    return items is others or (len(items) == len(others) and all(map(is_, items, others)))


def with_body(fn: f.Fn, body: f.Block) -> f.Fn:
    """The function with another body; the same object if it is the same."""
    return fn if body is fn.body else replace(fn, body=body)


def with_branches(rhs: f.Rhs, blocks: Sequence[f.Block]) -> f.Rhs:
    """An If or a Switch with other blocks."""
    match rhs:
        case f.If(cond):
            return f.If(cond, blocks[0], blocks[1])
        case f.Switch(scrutinee, cases, default):
            changed = tuple(f.Case(c.tag, c.payload, block) for c, block in zip(cases, blocks, strict=False))
            return f.Switch(scrutinee, changed, None if default is None else blocks[-1])
        case _:
            raise AssertionError(rhs)


@remembered
def every(block: f.Block) -> tuple[f.Bind, ...]:
    """All bindings of a block and its inner blocks, outer before inner.  Takes the same time at any depth."""
    found: list[f.Bind] = []
    rest = [iter(block.binds)]
    while rest:
        for bind in rest[-1]:
            found.append(bind)
            inner = BLOCKS.get(type(bind.rhs))
            if inner is not None:
                rest += [iter(block.binds) for block in reversed(inner(bind.rhs))]
                break
        else:
            rest.pop()
    return tuple(found)


SPANNED = f.Op | f.Call | f.Par


def spans(bind: f.Bind) -> Iterator[Span]:
    """The known spans of a binding and of the bindings in it."""
    for one in (bind, *(one for block in blocks(bind.rhs) for one in every(block))):
        if isinstance(one.rhs, SPANNED) and one.rhs.span != NOWHERE:
            yield one.rhs.span


def bound(fn: f.Fn) -> Iterator[f.Var]:
    """All variables that a function binds, its parameters included."""
    yield from fn.params
    for bind in every(fn.body):
        yield from bind.vars
        yield from binders(bind.rhs)


def bound_inside(rhs: f.Rhs) -> Iterator[f.Var]:
    """All variables that are bound in the inner blocks of a right-hand side, and for them."""
    yield from binders(rhs)
    for block in blocks(rhs):
        for bind in every(block):
            yield from bind.vars
            yield from binders(bind.rhs)


def names(given: Iterable[f.Atom]) -> Iterator[str]:
    """The names of the variables among these atoms."""
    return (atom.name for atom in given if isinstance(atom, f.Var))


def is_in(atom: f.Atom | None, names: Iterable[str]) -> bool:
    """True for a variable with one of these names."""
    return isinstance(atom, f.Var) and atom.name in names


@remembered
def mentions(block: f.Block) -> list[str]:
    """The names of the variables that a block uses, with repetitions."""
    return [atom.name for atom in used(block) if isinstance(atom, f.Var)]


def rhs_mentions(rhs: f.Rhs) -> Iterable[str]:
    """The names of the variables that a right-hand side uses, inner blocks included, with repetitions."""
    own = [atom.name for atom in ATOMS[type(rhs)](rhs) if isinstance(atom, f.Var)]
    return chain(own, *map(mentions, BLOCKS[type(rhs)](rhs))) if type(rhs) in BLOCKS else own


def needed(binds: Sequence[f.Bind], wanted: Iterable[str]) -> list[f.Bind]:
    """The bindings on which variables depend, in order (a backward slice; Weiser 1981)."""
    live, found = set(wanted), list[f.Bind]()
    for bind in reversed(binds):
        if not live.isdisjoint([var.name for var in bind.vars]):
            found.append(bind)
            live.update(rhs_mentions(bind.rhs))
    return found[::-1]


def used(block: f.Block) -> list[f.Atom]:
    """The atoms that a block and its inner blocks use, with repetitions."""
    found: list[f.Atom] = []
    rest = [block]
    while rest:
        block = rest.pop()
        for bind in block.binds:
            rhs = bind.rhs
            found += ATOMS[type(rhs)](rhs)
            if type(rhs) in BLOCKS:
                rest += BLOCKS[type(rhs)](rhs)
        found += block.results
    return found


def mentioned(block: f.Block) -> dict[str, f.Var]:
    """The variables that a block uses, by name."""
    return {atom.name: atom for atom in used(block) if isinstance(atom, f.Var)}


def supply_for(program: f.Program) -> f.Supply:
    """A supply of names that do not occur in the program."""
    supply = f.Supply()
    for fn in program.fns.values():
        own = [number_of(name) for name in (fn.name, *names(fn.params))]
        supply.count = max(supply.count, highest(fn.body), *own)
    return supply


@remembered
def highest(block: f.Block) -> int:
    """The highest number at the end of a name that a block binds."""
    bound: list[f.Var] = []
    found = [0]
    for bind in block.binds:
        rhs = bind.rhs
        bound += bind.vars
        if type(rhs) in BLOCKS:
            bound += binders(rhs)
            found += map(highest, BLOCKS[type(rhs)](rhs))
    found += [number_of(var.name) for var in bound]
    return max(found)


@lru_cache(maxsize=1 << 16)
def number_of(name: str) -> int:
    """The number at the end of a name such as `x.12`; 0 if there is none."""
    tail = name.rpartition(".")[2]
    return int(tail) if tail.isdigit() else 0
