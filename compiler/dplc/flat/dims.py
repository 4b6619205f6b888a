"""Which arrays have the dimensions of which others: `roots(fn)["b"] == a` if `b` surely has the dimensions of `a`.

    b = update a v i                        b has those of a
    c = mul b 2.0                           c too
    d = for i < n state (s = c) { t = update s ...; yield t }          s and d too: each step keeps them

Loops are taken to keep their state's dimensions until one is seen that does not.
"""

from __future__ import annotations

from dpl.prims import TABLE

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.flat.walk import blocks

KEEP = frozenset({"update", "stop_grad", "cast"})  # have the dimensions of their first operand


def roots(body: f.Block) -> dict[str, f.Var]:
    found: dict[str, f.Var] = {}
    _block(body, found)
    return found


def root(atom: f.Atom, found: dict[str, f.Var]) -> f.Atom:
    return found.get(atom.name, atom) if isinstance(atom, f.Var) else atom


def _block(block: f.Block, found: dict[str, f.Var]) -> None:
    for bind in block.binds:
        match bind.rhs:
            case f.Op(op, args) if bind.vars and isinstance(bind.vars[0].ty, f.Arr):
                _same(bind.vars[0], _like(op, args, rank_of(bind.vars[0].ty)), found)
            case f.For() | f.While():
                _loop(bind, bind.rhs, found)
            case f.If() | f.Switch():
                for inner in blocks(bind.rhs):
                    _block(inner, found)
                for k, var in enumerate(bind.vars):
                    found.pop(var.name, None)
                    first, *rest = [root(inner.results[k], found) for inner in blocks(bind.rhs)]
                    if all(r == first for r in rest) and isinstance(var.ty, f.Arr) and not _inside(first, bind.rhs):
                        _same(var, first, found)
            case rhs:
                for inner in blocks(rhs):
                    _block(inner, found)


def _like(op: str, args: tuple[f.Atom, ...], rank: int) -> f.Atom | None:
    """The operand whose dimensions an operation's result has."""
    if op in KEEP:
        return args[0]
    if op in TABLE and TABLE[op].elementwise:
        return next((a for a in args if rank_of(a.ty) == rank and isinstance(a, f.Var)), None)
    return None


def _same(var: f.Var, like: f.Atom | None, found: dict[str, f.Var]) -> None:
    if isinstance(like, f.Var):
        found[var.name] = found.get(like.name, like)


def _inside(atom: f.Atom, rhs: f.Rhs) -> bool:
    return any(atom in bind.vars for block in blocks(rhs) for bind in block.binds)


def _loop(bind: f.Bind, loop: f.For | f.While, found: dict[str, f.Var]) -> None:
    arrays = [k for k, s in enumerate(loop.state) if isinstance(s.ty, f.Arr) and isinstance(loop.inits[k], f.Var)]
    while True:
        for k in arrays:
            _same(loop.state[k], loop.inits[k], found)
        for inner in blocks(loop):
            _block(inner, found)
        kept = [k for k in arrays if root(loop.body.results[k], found) == root(loop.inits[k], found)]
        if kept == arrays:
            break
        for k in arrays:
            found.pop(loop.state[k].name, None)
        arrays = kept
    for var in bind.vars:
        found.pop(var.name, None)
    for k in arrays:
        _same(bind.vars[k], loop.inits[k], found)
