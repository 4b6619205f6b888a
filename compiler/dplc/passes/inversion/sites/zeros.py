"""Whether straight code gives zero where some of its operands are zero.

    z = mul x y; n = ne z z; e = eq x 0.0; b = and e n; r = select b 0.0 z          r is 0 if x is, whatever y is

A product with zero is zero or NaN; the mask makes it zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f


def gives_zero(code: Sequence[tuple[f.Var, f.Op]], value: f.Atom, zeros: set[str]) -> bool:
    """True if the value is zero if all of these variables are."""
    return noted(code, zeros).is_zero(value)


def gives_zero_or_nan(code: Sequence[tuple[f.Var, f.Op]], value: f.Atom, zeros: set[str]) -> bool:
    """True if the value is zero or NaN if all of these variables are zero."""
    return noted(code, zeros).is_maybe(value)


def noted(code: Sequence[tuple[f.Var, f.Op]], zeros: set[str]) -> _Zeros:
    known = _Zeros(set(zeros))
    for var, op in code:
        known.note(var, op)
    return known


class _Zeros:
    """Variables that are zero, zero or NaN (`maybe`), true, false, and true if another variable is NaN (`nan`)."""

    def __init__(self, zero: set[str]) -> None:
        self.zero = zero
        self.maybe: set[str] = set()
        self.true: set[str] = set()
        self.false: set[str] = set()
        self.nan: dict[str, str] = {}

    def is_zero(self, atom: f.Atom) -> bool:
        return atom.name in self.zero if isinstance(atom, f.Var) else atom.value == 0.0

    def is_maybe(self, atom: f.Atom) -> bool:
        return self.is_zero(atom) or (isinstance(atom, f.Var) and atom.name in self.maybe)

    def note(self, var: f.Var, op: f.Op) -> None:
        match op.op, op.args:
            case "neg" | "acc_add" | "add" | "sub", args if all(map(self.is_zero, args)):
                self.zero.add(var.name)
            case "mul", args if any(map(self.is_maybe, args)):
                self.maybe.add(var.name)
            case "div", (a, _) if self.is_zero(a):
                self.maybe.add(var.name)
            case "select", (_, a, b) if self.is_zero(a) and self.is_zero(b):
                self.zero.add(var.name)
            case "select", (f.Var(c), a, f.Var(b)) if self.is_zero(a) and self.nan.get(c) == b:
                self.zero.add(var.name)
            case _:
                self.note_condition(var, op)

    def note_condition(self, var: f.Var, op: f.Op) -> None:
        match op.op, op.args:
            case "eq" | "le" | "ge", args if all(map(self.is_zero, args)):
                self.true.add(var.name)
            case "lt" | "gt", args if all(map(self.is_zero, args)):
                self.false.add(var.name)
            case "not", (f.Var(a),) if a in self.false:
                self.true.add(var.name)
            case "ne", (f.Var(a), f.Var(b)) if a == b and a in self.maybe:
                self.nan[var.name] = a
            case "and", (f.Var(a), f.Var(b)) if a in self.true and b in self.nan:
                self.nan[var.name] = self.nan[b]
            case "and", (f.Var(a), f.Var(b)) if b in self.true and a in self.nan:
                self.nan[var.name] = self.nan[a]
            case _:
                pass
