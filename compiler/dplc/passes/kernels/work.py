"""The work of a loop's points: how many operations they do, as far as this is known before they run.

    [for i < n -> sum [for j < m -> x[i] * y[j]]]        3 m + 1 for each point

The number is a polynomial in what is known outside of the loop: counts, and the lengths of arrays, also of those that
the points make.  Loops of unknown length count as GUESS steps.  The rows of operations say what these cost
(`Row.cost`); one that is not cheap counts as DEAR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from dplc.flat import term as f
from dplc.flat.dims import Dims, dims_of
from dplc.flat.ops.row import Measure
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import blocks

GUESS = 8
DEAR = 10
DEEP = 4  # calls in calls that are looked at

Known = Callable[[f.Var, int], str | None]  # the operand of a number (-1), or of a length of an array
Work = dict[tuple[str, ...], float]  # the factor of each product of operands


def of_block(program: f.Program, block: f.Block, known: Known) -> Work:
    """The work of a block; `known` has the values of variables from outside."""
    return _Meter(program, known, dims_of(block)).block(block)


def number(value: float) -> Work:
    """Work that is known."""
    return {(): value}


def plus(a: Work, b: Work) -> Work:
    """The work of two parts, one after the other."""
    return {key: a.get(key, 0.0) + b.get(key, 0.0) for key in (*a, *(key for key in b if key not in a))}


def times(a: Work, b: Work) -> Work:
    """The work of a part that is done so many times."""
    total: Work = {}
    for x, p in a.items():
        for y, q in b.items():
            key = tuple(sorted((*x, *y)))
            total[key] = total.get(key, 0.0) + p * q
    return total


class _Meter:
    """Adds up costs.  It stands for the emitter of code that counts, so that the rows' costs give polynomials."""

    def __init__(self, program: f.Program, known: Known, dims: Dims, depth: int = 0) -> None:
        self.program = program
        self.known = known
        self.dims = dims
        self.depth = depth
        self.lengths: dict[str, Work] = {}  # variables that have the length of an array

    def block(self, block: f.Block) -> Work:
        total = number(0.0)
        for bind in block.binds:
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "dim":
                self.lengths[bind.vars[0].name] = self.dim(bind.rhs.args[0], bind.rhs.attr("k", 0))
            total = plus(total, self.rhs(bind.rhs))
        return total

    def rhs(self, rhs: f.Rhs) -> Work:
        match rhs:
            case f.Op(name):
                row = OPS[name]
                cost = self.work(row.cost(cast(Measure, self), rhs))
                return times(cost, number(DEAR)) if row.elementwise and not row.cheap else cost
            case f.For(_, count):
                return times(self.work(count), plus(number(1.0), self.block(rhs.body)))
            case f.Par(space, body):
                return times(self.product(*[count for _, count in space]), plus(number(1.0), self.block(body)))
            case f.While():
                return times(number(GUESS), plus(self.block(rhs.cond), self.block(rhs.body)))
            case f.If() | f.Switch():
                arms = [self.block(inner) for inner in blocks(rhs)]
                return times(number(1 / len(arms)), self.sum(arms))
            case f.Call(name):
                return self.call(name)
            case _:
                return number(0.0)

    def sum(self, works: list[Work]) -> Work:
        total = number(1.0)
        for work in works:
            total = plus(total, work)
        return total

    def call(self, name: str) -> Work:
        if self.depth == DEEP:
            return number(GUESS)
        body = self.program.fns[name].body
        return _Meter(self.program, lambda var, k: None, dims_of(body), self.depth + 1).block(body)

    def work(self, amount: object) -> Work:
        """A number, a variable or a polynomial as a polynomial."""
        match amount:
            case f.Const(int(value)) | int(value):
                return number(float(value))
            case f.Var(name) if name in self.lengths:
                return self.lengths[name]
            case f.Var():
                operand = self.known(amount, -1)
                return {(operand,): 1.0} if operand else number(GUESS)
            case dict():
                return amount
            case _:
                return number(GUESS)

    # ---- the costs of operations

    def elements(self, array: f.Atom) -> Work:
        total = number(1.0)
        for k in range(rank_of(array.ty)):
            total = times(total, self.dim(array, k))
        return total

    def dim(self, array: f.Atom, k: int) -> Work:
        match self.dims.of(array, k):
            case (there, dim):
                operand = self.known(there, dim)
                if operand is None:
                    return number(GUESS)
                return number(float(operand)) if operand.isdigit() else {(operand,): 1.0}
            case length:
                return number(GUESS) if length is None else self.work(length)

    def made(self, array: f.Atom, dims: tuple[f.Atom, ...]) -> Work:
        return self.product(*dims) if isinstance(array, f.Const) else number(0.0)

    def op(self, name: str, left: object, right: object) -> Work:
        a, b = self.work(left), self.work(right)
        match name:
            case "mul":
                return times(a, b)
            case "add":
                return plus(a, b)
            case "min":
                return a if len(a) <= len(b) else b
            case _:
                return a

    def product(self, *factors: object) -> Work:
        total = number(1.0)
        for factor in factors:
            total = times(total, self.work(factor))
        return total
