"""Which blocks do work on arrays of many elements, by themselves or in what they call: a device may do it.

What such a block computes besides, on arrays of few elements, is better left on the device, too: as numbers, the host
would wait for them in each step of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from math import prod

from dplc.flat import term as f
from dplc.flat.dims import Dims
from dplc.flat.types import elem_of
from dplc.flat.walk import every

MANY = 256  # elements that are worth a device


def large_work(program: f.Program, dims_of: Callable[[f.Fn], Dims]) -> Callable[[f.Block, Dims], bool]:
    """Whether a block does such work; the dimensions are those of its function."""

    @cache
    def of_function(name: str) -> bool:
        return any(is_large(program.fns[one].body, dims_of(program.fns[one])) for one in reached(program, [name]))

    return lambda block, dims: is_large(block, dims) or any(map(of_function, used_by(block)))


def called_in_points(program: f.Program) -> set[str]:
    """The functions that points of comprehensions call, directly or not."""
    points = [bind.rhs for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.Build)]
    return reached(program, [name for point in points for name in used_by(point.body)])


def reached(program: f.Program, names: Iterable[str]) -> set[str]:
    """Functions, and those that they call, directly or not."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        if (name := todo.pop()) not in found and name in program.fns:
            found.add(name)
            todo += used_by(program.fns[name].body)
    return found


def used_by(block: f.Block) -> list[str]:
    """The functions that a block calls, or takes derivatives of."""
    return [bind.rhs.fn for bind in every(block) if isinstance(bind.rhs, f.Call | f.Ad)]


def is_large(block: f.Block, dims: Dims) -> bool:
    """True if a block itself has an operation on many numbers, or many points."""
    for bind in every(block):
        match bind.rhs:
            case f.Build(_, f.Const(int(count)), _) if count <= MANY:
                pass
            case f.Build():
                return True
            case f.Op("matmul" | "conv2d", args) if any(many(dims, x) for x in args):
                return True
            case _:
                pass
    return False


def many(dims: Dims, atom: f.Atom) -> bool:
    """True for an array that may have many numbers."""
    if not isinstance(atom.ty, f.Arr) or not isinstance(elem_of(atom.ty), f.Num):
        return False
    shape = dims.shape(atom)
    return shape is None or prod(shape) > MANY
