"""Value numbering with signs: numbers that are opposites of each other when two indices change places.

    x = index v i; y = index v j; d = sub x y; z = mul d w; r = div 1.0 d        with i for j and j for i, z is -z

A number has two names: its value to the last bit, and its value without sign, where 0.0 is -0.0.  Sums, products and
quotients of opposites are opposites: rounding is symmetric.  Of everything else, such as a divisor or a condition, only
the first name counts, because 1 / 0.0 and 1 / -0.0 differ.  So r becomes a number that is neither r nor -r.  A number
and its opposite have the same square, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.ops.table import OPS

SWAPPED = ("add", "acc_add", "mul", "eq", "ne", "and", "or")  # operands may change places


@node
class Name:
    """The value of a number to the last bit (`exact`), and without its sign (`size`).  The sign is 1 or -1."""

    exact: int
    sign: int
    size: int


def is_number(op: f.Op, var: f.Var) -> bool:
    """True for arithmetic, sums of cotangents that are numbers, and what is read."""
    if op.op == "acc_add":
        return isinstance(var.ty, f.Num)
    return OPS[op.op].repeatable and (OPS[op.op].elementwise or op.op == "index")


class Names:
    """The names of what blocks compute.  Equal names are equal numbers."""

    def __init__(self) -> None:
        self.table: dict[object, int] = {}
        self.zero = self.number("zero")

    def of_binds(self, binds: Iterable[f.Bind], around: Mapping[str, Name]) -> dict[str, Name]:
        """The names of what is bound, and those of what is bound around."""
        names = dict(around)
        for bind in binds:
            match bind.rhs:
                case f.Op() as op:
                    names[bind.vars[0].name] = self.of_op(op, bind.vars[0], names)
                case f.If() as branch:
                    self.of_branch(bind, branch, names)
                case _:
                    names.update((var.name, self.named(object())) for var in bind.vars)
        return names

    def of_branch(self, bind: f.Bind, branch: f.If, names: dict[str, Name]) -> None:
        """Names what a branch gives: numbers that depend on the condition, and on those of the arms."""
        asked = self.of_atom(branch.cond, names).exact
        then, other = [self.of_binds(arm.binds, names) for arm in (branch.then, branch.else_)]
        for var, yes, no in zip(bind.vars, branch.then.results, branch.else_.results, strict=True):
            a, b = self.of_atom(yes, then), self.of_atom(no, other)
            sign = b.sign if a.size == self.zero else a.sign
            same = a.sign == b.sign or self.zero in (a.size, b.size)
            exact = self.number(("if", asked, a.exact, b.exact))
            names[var.name] = Name(exact, sign, self.number(("if without signs", asked, a.size, b.size, same)))

    def of_op(self, op: f.Op, var: f.Var, names: Mapping[str, Name]) -> Name:
        if not is_number(op, var):
            return self.named(object())
        args = [self.of_atom(arg, names) for arg in op.args]
        parts = [arg.exact for arg in args]
        if op.op == "mul" and f.is_float(var.ty) and parts[0] == parts[1]:
            parts = [-1, args[0].size]
        attrs = () if op.op == "index" else op.attrs  # whether it is checked makes no difference
        name = self.named((op.op, attrs, *(sorted(parts) if op.op in SWAPPED else parts)))
        return self.signed(op.op, args, name) if f.is_float(var.ty) else name

    def signed(self, op: str, args: list[Name], name: Name) -> Name:
        """The name of a result, with its value without sign; `name` has its value to the last bit."""
        match op, args:
            case "neg", [a]:
                return Name(name.exact, -a.sign, a.size)
            case "mul", [a, b]:
                return Name(name.exact, a.sign * b.sign, self.number((op, *sorted([a.size, b.size]))))
            case "div", [a, b]:
                return Name(name.exact, a.sign, self.number((op, a.size, b.exact)))
            case "add" | "acc_add" | "sub", [a, b]:
                signs = {1: a.sign, 2: -b.sign if op == "sub" else b.sign}
                (one, first), (two, second) = sorted([(a.size, signs[1]), (b.size, signs[2])])
                return Name(name.exact, first, self.number(("sum", one, two, first == second)))
            case _:
                return name

    def of_atom(self, atom: f.Atom, names: Mapping[str, Name]) -> Name:
        if isinstance(atom, f.Var):
            return names.get(atom.name) or self.named(atom.name)
        name = self.named((repr(atom.value), atom.ty))
        return Name(name.exact, 1, self.zero) if f.is_float(atom.ty) and atom.value == 0.0 else name

    def named(self, key: object) -> Name:
        """The name of a number that has this key.  Its sign is 1."""
        exact = self.number(key)
        return Name(exact, 1, self.number(("to the last bit", exact)))

    def number(self, key: object) -> int:
        return self.table.setdefault(key, len(self.table))
