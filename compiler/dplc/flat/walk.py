"""Traversal of flat: the operands, inner blocks and binders of a right-hand side, and its reconstruction from others.

A pass handles the shapes that matter to it and leaves the rest to `rebuild`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dplc.flat import term as f


def atoms(rhs: f.Rhs) -> tuple[f.Atom, ...]:
    """The operands of a right-hand side, without those of its inner blocks."""
    match rhs:
        case f.Op(_, args) | f.Call(_, args) | f.Ad(_, _, args) | f.TupMake(args) | f.Map(_, args):
            return args
        case f.TupGet(one) | f.If(one) | f.Switch(one):
            return (one,)
        case f.Build(_, count, inner=inner):
            return (count, *[n for sizes in inner for n in sizes]) if inner else (count,)
        case f.ConMake(_, _, arg):
            return () if arg is None else (arg,)
        case f.For(_, count, _, inits):
            return (count, *inits)
        case f.While(_, inits):
            return inits


def blocks(rhs: f.Rhs) -> tuple[f.Block, ...]:
    """The inner blocks of a right-hand side."""
    match rhs:
        case f.If(_, then, else_):
            return (then, else_)
        case f.Switch(_, cases, None):
            return tuple([case.body for case in cases])
        case f.Switch(_, cases, f.Block() as default):
            return (*[case.body for case in cases], default)
        case f.For() | f.Build() | f.Map():
            return (rhs.body,)
        case f.While():
            return (rhs.cond, rhs.body)
        case _:
            return ()


def binders(rhs: f.Rhs) -> tuple[f.Var, ...]:
    """The variables that a right-hand side binds for its inner blocks."""
    match rhs:
        case f.Switch(_, cases):
            return tuple([case.payload for case in cases if case.payload is not None])
        case f.For(index, _, state):
            return (index, *state)
        case f.While(state):
            return state
        case f.Build(index):
            return (index,)
        case f.Map(params):
            return params
        case _:
            return ()


def rebuild(  # noqa: C901 -- one case per form
    rhs: f.Rhs, atom: Callable[[f.Atom], f.Atom], block: Callable[[f.Block], f.Block], binder: Callable[[f.Var], f.Var]
) -> f.Rhs:
    """The right-hand side with operands, inner blocks and binders replaced: binders first, then blocks."""

    def all_(args: tuple[f.Atom, ...]) -> tuple[f.Atom, ...]:
        return tuple([atom(a) for a in args])

    match rhs:
        case f.Op(op, args, attrs, span):
            return f.Op(op, all_(args), attrs, span)
        case f.Call(fn, args, span):
            return f.Call(fn, all_(args), span)
        case f.Ad(mode, fn, args, site, span):
            return f.Ad(mode, fn, all_(args), site, span)
        case f.TupMake(items):
            return f.TupMake(all_(items))
        case f.TupGet(tup, index):
            return f.TupGet(atom(tup), index)
        case f.ConMake(data, tag, arg):
            return f.ConMake(data, tag, None if arg is None else atom(arg))
        case f.If(cond, then, else_):
            return f.If(atom(cond), block(then), block(else_))
        case f.Switch(scrutinee, cases, default):
            new_cases = []
            for case in cases:
                payload = None if case.payload is None else binder(case.payload)
                new_cases.append(f.Case(case.tag, payload, block(case.body)))
            return f.Switch(atom(scrutinee), tuple(new_cases), None if default is None else block(default))
        case f.For(index, count, state, inits, body, collect):
            count, inits = atom(count), all_(inits)
            return f.For(binder(index), count, tuple([binder(s) for s in state]), inits, block(body), collect)
        case f.While(state, inits, cond, body, collect):
            inits = all_(inits)
            return f.While(tuple([binder(s) for s in state]), inits, block(cond), block(body), collect)
        case f.Build(index, count, body, span, inner):
            count, inner = atom(count), tuple([all_(sizes) for sizes in inner])
            return f.Build(binder(index), count, block(body), span, inner)
        case f.Map(params, inputs, body, ranks, span):
            inputs = all_(inputs)
            return f.Map(tuple([binder(p) for p in params]), inputs, block(body), ranks, span)


def with_blocks(rhs: f.Rhs, block: Callable[[f.Block], f.Block]) -> f.Rhs:
    """The right-hand side with its inner blocks replaced."""
    return rebuild(rhs, lambda a: a, block, lambda v: v) if blocks(rhs) else rhs


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


def every(block: f.Block) -> Iterator[f.Bind]:
    """All bindings of a block and its inner blocks, outer before inner."""
    for bind in block.binds:
        yield bind
        for inner in blocks(bind.rhs):
            yield from every(inner)


def bound(fn: f.Fn) -> Iterator[f.Var]:
    """All variables that a function binds, its parameters included."""
    yield from fn.params
    for bind in every(fn.body):
        yield from bind.vars
        yield from binders(bind.rhs)


def names(given: Iterable[f.Atom]) -> Iterator[str]:
    return (atom.name for atom in given if isinstance(atom, f.Var))


def mentions(block: f.Block) -> Iterator[str]:
    """The names of the variables that a block uses, with repetitions."""
    for bind in block.binds:
        yield from rhs_mentions(bind.rhs)
    yield from names(block.results)


def rhs_mentions(rhs: f.Rhs) -> Iterator[str]:
    yield from names(atoms(rhs))
    for block in blocks(rhs):
        yield from mentions(block)


def mentioned(block: f.Block) -> dict[str, f.Var]:
    """The variables that a block uses, by name."""
    found: dict[str, f.Var] = {}
    todo = [block]
    while todo:
        block = todo.pop()
        for atom in (*(a for bind in block.binds for a in atoms(bind.rhs)), *block.results):
            if isinstance(atom, f.Var):
                found[atom.name] = atom
        todo += [inner for bind in block.binds for inner in blocks(bind.rhs)]
    return found


def supply_for(program: f.Program) -> f.Supply:
    """A supply of names that do not occur in the program."""
    supply = f.Supply()
    for fn in program.fns.values():
        for name in (fn.name, *(var.name for var in bound(fn))):
            tail = name.rpartition(".")[2]
            if tail.isdigit():
                supply.count = max(supply.count, int(tail))
    return supply
