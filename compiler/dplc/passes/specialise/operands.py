"""Operands of elementwise operations whose sizes the types do not show to be equal: these are compared before.

xs + ys   ->   let x = xs in let y = ys in (Check(x, dim(x, 0) = dim(y, 0)) + y)      xs : float[?1], ys : float[3]

The operation compares them, too, when it is computed.  It may not be: nothing may need its value.
"""

from __future__ import annotations

from dpl.core import term as c
from dpl.core import ty as t

from dplc.passes.specialise.copier import Copier, Scope


def compared(copier: Copier, e: c.Prim, scope: Scope) -> c.Term:
    """The copy of an elementwise operation of several operands."""
    args = [copier.term(arg, scope) for arg in e.args]
    ty = copier.ty(e.ty, scope)
    ranks = [rank(arg.ty) for arg in args]
    top = ranks.index(max(ranks))
    doubtful = [k for k in range(len(args)) if k != top and ranks[k] and not agree(e.args[top].ty, e.args[k].ty)]
    if not doubtful:
        return c.Prim(e.span, ty, e.op, tuple(args))
    names = [f"operand@{copier.fresh()}" for _ in args]
    operands: list[c.Term] = [c.Var(e.span, arg.ty, name) for arg, name in zip(args, names)]
    for k in doubtful:
        operands[k] = checked(copier, operands[k], operands[top], ranks[top] - ranks[k])
    made: c.Term = c.Prim(e.span, ty, e.op, tuple(operands))
    for name, arg in reversed(list(zip(names, args))):
        made = c.Let(e.span, ty, name, (), arg, made)
    return made


def rank(ty: t.Ty) -> int:
    """The number of dimensions of a type."""
    found = 0
    while isinstance(ty, t.Arr):
        ty, found = ty.elem, found + 1
    return found


def sizes(ty: t.Ty) -> list[t.Size]:
    found = []
    while isinstance(ty, t.Arr):
        found.append(ty.size)
        ty = ty.elem
    return found


def agree(whole: t.Ty, part: t.Ty) -> bool:
    """True if the types say that an operand has the last sizes of another."""
    mine, others = sizes(part), sizes(whole)
    return rank(part) > 0 and others[len(others) - len(mine) :] == mine


def checked(copier: Copier, operand: c.Term, whole: c.Term, lifted: int) -> c.Term:
    """An operand, with a check that it has the sizes of another after its first `lifted` ones."""
    value = c.Var(operand.span, operand.ty, f"checked@{copier.fresh()}")
    pairs = [(dim(whole, lifted + k), dim(value, k), "") for k in range(rank(operand.ty))]
    return c.Check(operand.span, operand.ty, value.name, operand, tuple(pairs))


def dim(array: c.Term, k: int) -> c.Term:
    return c.Prim(array.span, t.I64, "dim", (array, c.Lit(array.span, t.I64, k)))
