"""Going through flat: the blocks inside a right-hand side, and the variables that it mentions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dpl.node import replace

from dplc.flat import term as f


def blocks(rhs: f.Rhs) -> tuple[f.Block, ...]:
    """The blocks directly inside."""
    match rhs:
        case f.If(_, then, else_):
            return then, else_
        case f.Switch(_, cases, default):
            return (*(case.body for case in cases), *((default,) if default else ()))
        case f.While(_, _, cond, body):
            return cond, body
        case f.For() | f.Build() | f.Map():
            return (rhs.body,)
    return ()


def with_blocks(rhs: f.Rhs, block: Callable[[f.Block], f.Block]) -> f.Rhs:
    """The same with the blocks directly inside rewritten; a Map's body, which holds scalar operations only, is not."""
    match rhs:
        case f.If(cond, then, else_):
            return f.If(cond, block(then), block(else_))
        case f.Switch(scrutinee, cases, default):
            cases = tuple(replace(case, body=block(case.body)) for case in cases)
            return f.Switch(scrutinee, cases, default and block(default))
        case f.While() as loop:
            return replace(loop, cond=block(loop.cond), body=block(loop.body))
        case f.For() | f.Build() as loop:
            return replace(loop, body=block(loop.body))
    return rhs


def operands(rhs: f.Rhs) -> tuple[f.Atom, ...]:
    """The atoms outside the blocks inside."""
    match rhs:
        case f.Op(_, args) | f.Call(_, args) | f.Ad(_, _, args) | f.TupMake(args) | f.Map(_, args):
            return args
        case f.TupGet(atom, _) | f.If(atom) | f.Switch(atom) | f.Build(_, atom):
            return (atom,)
        case f.ConMake(_, _, arg):
            return () if arg is None else (arg,)
        case f.For(_, count, _, inits):
            return (count, *inits)
        case f.While(_, inits):
            return inits
    raise TypeError(rhs)


def names(atoms: Iterable[f.Atom]) -> Iterator[str]:
    return (atom.name for atom in atoms if isinstance(atom, f.Var))


def mentions(block: f.Block) -> Iterator[str]:
    """The variables that a block mentions, as often as it does."""
    for bind in block.binds:
        yield from rhs_mentions(bind.rhs)
    yield from names(block.results)


def rhs_mentions(rhs: f.Rhs) -> Iterator[str]:
    yield from names(operands(rhs))
    for block in blocks(rhs):
        yield from mentions(block)
