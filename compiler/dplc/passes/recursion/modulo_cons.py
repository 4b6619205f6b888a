"""flat -> the tail calls modulo cons: recursive calls after which the function only makes cells with their results.

    fn map(xs)                                    map(xs, out)
      ...                                           ...
      t = f x                                       t = f x
      r = map rest                          =>      c = :: (t, _);  *out = c
      c = :: (t, r)                                 map(rest, address of _)
      return c

Such a function can take the addresses for its results as parameters (destination passing; Leijen and Lorenzen 2023).
The cells are made first, with a hole in each.  The call, now in tail position, fills the holes.  So the stack does not
grow with the list.  A function of several results has an address for each: the forward function of `map` makes a list
and a record.  Other results, such as stores, are those of the call.  This file finds the calls; emission changes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.walk import atoms, blocks, names
from dplc.passes.simplify.purity import pure


@node
class Cell:
    """Field number `place` of a cell is a result of the call.  The fields are those of tuples in it, too."""

    make: f.ConMake
    fields: tuple[f.Atom, ...]
    place: int


@node
class Hole:
    """The end of a block: the bindings before the call, the call, and for each of its results the cell that it goes
    into, or None if the function returns it as it is."""

    before: tuple[f.Bind, ...]
    call: f.Call
    cells: tuple[Cell | None, ...]


def hole(block: f.Block, name: str) -> Hole | None:
    """The end of a block, if it is a call of `name` modulo cons."""
    after: list[f.Bind] = []
    for at in range(len(block.binds) - 1, -1, -1):
        bind = block.binds[at]
        match bind.rhs:
            case f.Call(fn) as call if fn == name:
                return around(block.binds[:at], f.Bind(bind.vars, call), after[::-1], block.results)
            case f.TupMake() | f.ConMake():
                pass
            case rhs if not is_small(rhs, bind.vars):
                return None
            case _:
                pass
        after.append(bind)
    return None


def around(before: tuple[f.Bind, ...], call: f.Bind, after: list[f.Bind], results: tuple[f.Atom, ...]) -> Hole | None:
    """The hole that a call fills, if what comes after it makes cells of its results only."""
    assert isinstance(call.rhs, f.Call)
    made = dict[str, f.TupMake | f.ConMake]()  # what holds a result of the call
    given = set(names(call.vars))
    moved = list[f.Bind]()
    for bind in after:
        if not given.intersection(names(atoms(bind.rhs))):
            moved.append(bind)
        elif isinstance(bind.rhs, f.TupMake | f.ConMake):
            made[bind.vars[0].name] = bind.rhs
            given.add(bind.vars[0].name)
        else:
            return None
    if len(call.vars) != len(results):
        return None
    cells: list[Cell | None] = []
    used = list[str]()  # the results of the call, where they are used
    for var, result in zip(call.vars, results, strict=True):
        make = made.get(result.name) if isinstance(result, f.Var) else None
        fields = (result,) if not isinstance(make, f.ConMake) or make.arg is None else tuple(flattened(make.arg, made))
        used += [field.name for field in fields if isinstance(field, f.Var) and field.name in given]
        if fields.count(var) != 1:
            return None
        cells.append(Cell(make, fields, fields.index(var)) if isinstance(make, f.ConMake) else None)
    if sorted(used) != sorted(names(call.vars)) or not any(cells):
        return None
    return Hole((*before, *moved), call.rhs, tuple(cells))


def flattened(atom: f.Atom, made: dict[str, f.TupMake | f.ConMake]) -> Iterator[f.Atom]:
    """The parts of a tuple that is made of them, and of those in it."""
    make = made.get(atom.name) if isinstance(atom, f.Var) else None
    if isinstance(make, f.TupMake):
        for item in make.items:
            yield from flattened(item, made)
    else:
        yield atom


def is_small(rhs: f.Rhs, made: tuple[f.Var, ...]) -> bool:
    """True for arithmetic on numbers that cannot fail: it may move before the call."""
    numbers = all(isinstance(var.ty, f.Num) for var in made)
    return numbers and (isinstance(rhs, f.TupGet) or (isinstance(rhs, f.Op) and pure(rhs)))


def with_holes(program: f.Program) -> set[str]:
    """The functions with such calls, which are not mutually recursive."""
    group, _ = groups(program)
    sizes = Counter(group.values())
    return {
        name
        for name, fn in program.fns.items()
        if gives_cells(fn) and sizes[group[name]] == 1
        and any(True for _ in ends(fn.body, name))
    }  # fmt: skip


def gives_cells(fn: f.Fn) -> bool:
    """True if a function returns data, so that its tail may be a constructor around a call."""
    return any(isinstance(ty, f.Data) for ty in fn.results)


def ends(block: f.Block, name: str) -> Iterator[Hole]:
    """All such ends in the body of a function."""
    if (found := hole(block, name)) is not None:
        yield found
    elif block.binds and block.binds[-1].vars == block.results and isinstance(block.binds[-1].rhs, f.If | f.Switch):
        for inner in blocks(block.binds[-1].rhs):
            yield from ends(inner, name)
