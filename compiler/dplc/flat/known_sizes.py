"""The lengths of arrays that are one number in every call of a function: program -> (parameter, dimension) -> number.

    fn f(x: f64[,], y: f64[]) ...
    built = build i < 1000 of (3) { ... }              x has the dimensions 1000 and 3
    r = f(built, v)

This is an optimistic fixpoint, callers first: a length is what the calls seen so far give.  A parameter that a
recursive function passes on has the length that it was given.  Arrays in tuples have paths for names
(`flat/dims.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from dplc.flat import term as f
from dplc.flat.dims import Dims, parts
from dplc.flat.walk import every
from dplc.graph import components

Known = dict[tuple[str, int], f.Const]  # (path, dimension) -> its length
Given = dict[tuple[str, int], f.Const | None]  # None: it varies; absent: no call is known yet


def known_sizes(program: f.Program) -> dict[str, Known]:
    """The known lengths of each function's parameters."""
    calls = {name: list(sites(fn)) for name, fn in program.fns.items()}
    order = list(components(calls, lambda name: [callee for callee, _ in calls[name]]))
    given: dict[str, Given] = {name: {} for name in program.fns}
    for name in {*program.roots, *used_by_rules(program)} & program.fns.keys():
        paths = [path for p in program.fns[name].params for path in parts(p.name, p.ty)]
        given[name] = {(at, k): None for at, rank in paths for k in range(rank)}
    todo = {name for group in order for name in group if calls[name]}
    while todo:
        again = set[str]()
        for name in [name for group in reversed(order) for name in group if name in todo]:
            dims = Dims(program.fns[name].body, numbers(given[name]))
            for callee, args in calls[name]:
                if joined(given[callee], program.fns[callee], args, dims, name == callee) and calls[callee]:
                    again.add(callee)
        todo = again
    return {name: numbers(lengths) for name, lengths in given.items()}


def sites(fn: f.Fn) -> Iterator[tuple[str, tuple[f.Atom, ...]]]:
    """The functions that a function calls or differentiates, with the arguments for their first parameters."""
    for bind in every(fn.body):
        match bind.rhs:
            case f.Call(callee, args):
                yield callee, args
            case f.Ad("jet", callee, (*captured, _, x)):
                yield callee, (*captured, x)
            case f.Ad("jvp" | "vjp", callee, args):
                yield callee, args
            case _:
                pass


def used_by_rules(program: f.Program) -> Iterator[str]:
    """Functions that differentiation calls."""
    for name, rule in program.rules.items():
        yield from (name, rule.fn, rule.pullback)


def numbers(given: Given) -> Known:
    return {at: known for at, known in given.items() if known is not None}


def joined(given: Given, callee: f.Fn, args: tuple[f.Atom, ...], dims: Dims, itself: bool) -> bool:
    """Joins the lengths of a call's arguments into those of the parameters; true if these have changed."""
    before = dict(given)
    for param, arg in zip(callee.params, args, strict=False):
        paths = parts(arg.name, arg.ty) if isinstance(arg, f.Var) else ((None, rank) for _, rank in parts("", arg.ty))
        for (at, rank), (there, _) in zip(parts(param.name, param.ty), paths, strict=True):
            if itself and at == there:
                continue
            for k in range(rank):
                known = None if there is None else dims.found.get((there, k))
                same = isinstance(known, f.Const) and given.get((at, k), known) == known
                given[(at, k)] = known if same and isinstance(known, f.Const) else None
    return given != before
