"""Operands, and rows, of which some sizes must be equal and the types do not show it: these are compared.

xs + ys    ->   let x = xs in let y = ys in x + Check(y, dim(x, 0) = dim(y, 0))      xs : float[?1], ys : float[3]
m @ xs     ->   let x = m in let y = xs in x @ Check(y, dim(x, 1) = dim(y, 0))
[xs, ys]   ->   let x = xs in let y = ys in [x, Check(y, dim(x, 0) = dim(y, 0))]

The operation compares them, too, when it is computed.  It may not be: nothing may need its value, as where a gradient
is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.core import term as c
from dpl.core import ty as t
from dpl.prims import TABLE
from dpl.source import Span

from dplc.flat.ops.arrays import DIFFERENT, RAGGED, UNEQUAL, UNFIT
from dplc.passes.specialise.copier import Copier, Scope
from dplc.passes.specialise.program import dimensions

TEXTS = {"dot": DIFFERENT, "matmul": UNFIT, "append": UNEQUAL}


def has_several(e: c.Prim | c.ArrayLit) -> bool:
    """True for an operation of several operands that gives an array, or a sum, and for a literal of several items."""
    if isinstance(e, c.ArrayLit):
        return len(e.items) > 1
    if e.op in TEXTS:
        return all(isinstance(arg.ty, t.Arr) for arg in e.args)
    return len(e.args) > 1 and e.op in TABLE and TABLE[e.op].elementwise and isinstance(e.ty, t.Arr)


def copied(copier: Copier, e: c.Prim | c.ArrayLit, scope: Scope) -> c.Term:
    """The copy of such a term, with comparisons before it."""
    ty = copier.ty(e.ty, scope)
    if isinstance(e, c.ArrayLit):
        lets, items = compared(copier, e, e.items, [copier.term(item, scope) for item in e.items], 0, RAGGED)
        return within(lets, c.ArrayLit(e.span, ty, items))
    args = [copier.term(arg, scope) for arg in e.args]
    if e.op in TEXTS:
        return product(copier, e, c.Prim(e.span, ty, e.op, tuple(args)))
    ranks = [len(dimensions(arg.ty)[0]) for arg in args]
    lets, operands = compared(copier, e, e.args, args, ranks.index(max(ranks)), "")
    return within(lets, c.Prim(e.span, ty, e.op, operands))


def compared(
    copier: Copier, e: c.Term, written: Sequence[c.Term], parts: Sequence[c.Term], whole: int, text: str
) -> tuple[list[tuple[str, c.Term]], tuple[c.Term, ...]]:
    """The copies of the operands of a term, and the variables for them.  What may not have the last sizes of one of
    them, the whole, is checked; `text` is the message."""
    known = [k == whole or not isinstance(part.ty, t.Arr) for k, part in enumerate(parts)]
    doubtful = [k for k in range(len(parts)) if not (known[k] or agree(written[whole].ty, written[k].ty))]
    if not doubtful:
        return [], tuple(parts)
    names = [f"operand@{copier.fresh()}" for _ in parts]
    operands: list[c.Term] = [c.Var(part.span, part.ty, name) for part, name in zip(parts, names)]
    for k in doubtful:
        operands[k] = checked(copier, operands[k], operands[whole], text, e.span)
    return list(zip(names, parts)), tuple(operands)


def product(copier: Copier, e: c.Prim, made: c.Prim) -> c.Term:
    """The copy of a product, or of two arrays one after the other, of which some sizes must be equal."""
    (own, _), (others, _) = (dimensions(arg.ty) for arg in e.args)
    rows = e.op == "append"
    places = [(k, k) for k in range(1, len(own))] if rows else [(len(own) - 1, 0)]
    doubtful = [(i, j) for i, j in places if own[i] != others[j]]
    if not doubtful:
        return made
    names = [f"operand@{copier.fresh()}" for _ in made.args]
    first, second = (c.Var(part.span, part.ty, name) for part, name in zip(made.args, names))
    sizes = [(dim(first, i), dim(second, j)) for i, j in doubtful]
    if rows:
        sizes = [(unless_empty(n, m, first, second), m) for n, m in sizes]
    value = f"checked@{copier.fresh()}"
    after = c.Check(e.span, second.ty, value, second, tuple((n, m, TEXTS[e.op]) for n, m in sizes))
    return within(list(zip(names, made.args)), c.Prim(e.span, made.ty, e.op, (first, after)))


def unless_empty(n: c.Term, m: c.Term, *arrays: c.Term) -> c.Term:
    """`n`; `m`, if one of the arrays has no rows: then there is nothing to compare."""
    for array in arrays:
        none = c.Prim(n.span, t.BOOL, "eq", (dim(array, 0), c.Lit(n.span, t.I64, 0)))
        n = c.Prim(n.span, t.I64, "select", (none, m, n))
    return n


def within(lets: Sequence[tuple[str, c.Term]], body: c.Term) -> c.Term:
    for name, rhs in reversed(lets):
        body = c.Let(body.span, body.ty, name, (), rhs, body)
    return body


def agree(whole: t.Ty, part: t.Ty) -> bool:
    """True if the types say that an operand has the last sizes of another."""
    mine, others = dimensions(part)[0], dimensions(whole)[0]
    return 0 < len(mine) <= len(others) and others[len(others) - len(mine) :] == mine


def checked(copier: Copier, operand: c.Term, whole: c.Term, text: str, span: Span) -> c.Term:
    """An operand, with a check that it has the last sizes of another."""
    rank = len(dimensions(operand.ty)[0])
    value = c.Var(span, operand.ty, f"checked@{copier.fresh()}")
    lifted = len(dimensions(whole.ty)[0]) - rank
    pairs = [(dim(whole, lifted + k), dim(value, k), text) for k in range(rank)]
    return c.Check(span, operand.ty, value.name, operand, tuple(pairs))


def dim(array: c.Term, k: int) -> c.Term:
    return c.Prim(array.span, t.I64, "dim", (array, c.Lit(array.span, t.I64, k)))
