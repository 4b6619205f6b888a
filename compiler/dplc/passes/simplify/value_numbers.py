"""Value numbering: keys of right-hand sides, equal where the results are."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.passes.simplify.purity import shareable


def expression(rhs: f.Rhs) -> object | None:
    """A key that is equal for right-hand sides with equal results; None for those that must not be shared."""
    if isinstance(rhs, f.Op):
        return (rhs.op, rhs.attrs, *map(expression_of, rhs.args)) if shareable(rhs) else None
    if isinstance(rhs, f.TupGet):
        return ("get", rhs.index, expression_of(rhs.tup))
    if isinstance(rhs, f.TupMake):
        return ("make", *map(expression_of, rhs.items))
    return None


def expression_of(atom: f.Atom) -> object:
    """A key for an operand.  Constants that compare equal may differ: 0.0 and -0.0, 1 and true."""
    return atom.name if isinstance(atom, f.Var) else (repr(atom.value), atom.ty)
