"""Small arrays that a step of a loop makes for itself lie in the stack frame.

    for i < n {
      r = array x y z; m = reshape r 3 1            r and m: in the frame
      p = matmul a m; s = dot p p                   p too
      q = array s x; t = (q, s); ... }              q may live longer: on the heap

They have no owner, like arrays that are lent to points of a Par: they are not counted, freed or written in place.
"""

from __future__ import annotations

from collections.abc import Iterable

from dplc.flat import term as f
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.walk import arms, atoms, blocks

MOST = 512  # bytes of an array
ROOM = 8192  # bytes of a frame


def local_arrays(fn: f.Fn) -> frozenset[str]:
    """The variables of arrays of numbers that are made in loops, and do not leave the block that makes them."""
    there = candidates(fn.body, False)
    if not there:
        return frozenset()
    found = _Escapes()
    found.block(fn.body)
    found.leave(fn.body.results)
    gone = found.all()
    return frozenset(name for name in there if name not in gone)


def candidates(block: f.Block, inside: bool) -> list[str]:
    found = []
    for bind in block.binds:
        if inside and is_small(bind):
            found += [var.name for var in bind.vars]
        loop = isinstance(bind.rhs, f.Par | f.For | f.While)
        for inner in blocks(bind.rhs):
            found += candidates(inner, inside or loop)
    return found


def is_small(bind: f.Bind) -> bool:
    """True for a new array of numbers that may have a known size."""
    if not bind.vars or not all(isinstance(var.ty, f.Arr) and isinstance(var.ty.elem, f.Num) for var in bind.vars):
        return False
    match bind.rhs:
        case f.Op(op):
            return OPS[op].framed
        case f.Par(space, body, outs):
            numbers = all(isinstance(x.ty, f.Num) for x in body.results)
            return numbers and all(out.kind == "keep" for out in outs) and all(
                isinstance(n, f.Const) for _, n in space)  # fmt: skip
        case _:
            return False


class _Escapes:
    """Where the arrays of a function go; `sources` has the arrays that a variable may be a part of."""

    def __init__(self) -> None:
        self.sources: dict[str, list[str]] = {}
        self.left: set[str] = set()

    def all(self) -> set[str]:
        """The arrays that may live longer than their block, by way of any part."""
        waiting, found = list(self.left), set(self.left)
        while waiting:
            for name in self.sources.get(waiting.pop(), ()):
                if name not in found:
                    found.add(name)
                    waiting.append(name)
        return found

    def leave(self, given: Iterable[f.Atom]) -> None:
        self.left.update(atom.name for atom in given if isinstance(atom, f.Var) and not isinstance(atom.ty, f.Num))

    def alias(self, var: f.Var, atom: f.Atom) -> None:
        if isinstance(atom, f.Var) and isinstance(atom.ty, f.Arr):
            self.sources.setdefault(var.name, []).append(atom.name)

    def block(self, block: f.Block) -> None:
        for bind in block.binds:
            for inner in blocks(bind.rhs):
                self.block(inner)
            self.bind(bind)

    def bind(self, bind: f.Bind) -> None:
        match bind.rhs:
            case f.Op() as op:
                self.op(bind, op)
            case f.Par(body=body, outs=outs):  # what is kept is copied
                for out, result in zip(outs, body.results, strict=True):
                    if out.kind == "add":
                        self.leave((result, *([out.target] if out.target else [])))
            case f.If(_, then, other):
                self.branches(bind, (then, other))
            case f.Switch(scrutinee) as switch:
                self.leave((scrutinee,))
                self.branches(bind, arms(switch))
            case rhs:
                self.leave(atoms(rhs))
                for inner in blocks(rhs):
                    self.leave(inner.results)

    def branches(self, bind: f.Bind, bodies: Iterable[f.Block]) -> None:
        for body in bodies:
            for var, result in zip(bind.vars, body.results, strict=False):
                self.alias(var, result)

    def op(self, bind: f.Bind, op: f.Op) -> None:
        row, arrays = OPS[op.op], any(not isinstance(var.ty, f.Num) for var in bind.vars)
        if op.op == "matmul" or op.op in ("drop", "dup"):
            return
        if row.views:
            self.alias(bind.vars[0], op.args[0])
        elif op.op == "acc_index":
            self.leave(op.args[:1])
        elif arrays or row.effects is not Effect.NONE:
            self.leave(op.args)
