"""The lengths of arrays that are one number in every call of a function: program -> (path, dimension) -> number.

    fn f(x: f64[,], y: f64[]) ...
    built = build i < 1000 of (3) { ... }              x has the dimensions 1000 and 3
    r = f(built, v)

Parameters are an optimistic fixpoint, callers first: a length is what the calls seen so far give.  A parameter that a
recursive function passes on has the length that it was given.  Results are one around it, callees first: they are
assumed to have any length that is asked for, until the code tells another one, so `f (f x)` has that of `f x`.  Arrays
in tuples have paths for names (`flat/dims.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpl.node import field, node

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.dims import ANY, Dims, Fields, Known, dims_of, holds_arrays, parts, path
from dplc.flat.remembered import remembered_given
from dplc.flat.walk import every
from dplc.graph import components

Given = dict[tuple[str, int], f.Const | None]  # None: it varies; absent: no call is known yet
Site = tuple[str, tuple[f.Atom, ...]]  # a function, and the arguments for its first parameters


@node
class KnownSizes:
    """The known lengths, by function: those of its parameters, and those of its results by their numbers."""

    parameters: Mapping[str, Known]
    results: Mapping[str, Known]
    fields: Fields = field(default_factory=dict)

    def dims(self, fn: f.Fn) -> Dims:
        """The dimensions in a function, with those that the program tells."""
        return dims_with(fn.body, self.parameters.get(fn.name, {}), self.results, self.fields)


def dims_with(body: f.Block, known: Known, results: Mapping[str, Known], fields: Fields) -> Dims:
    """The dimensions of the arrays of a function, if these are known of its parameters and of results of functions."""
    told = {callee: lengths for callee in callees(body) if (lengths := results.get(callee))}
    return dims_given(body, (known, told, fields)) if known or told or fields else dims_of(body)


@remembered_given
def dims_given(body: f.Block, given: tuple[Known, Mapping[str, Known], Fields]) -> Dims:
    return Dims(body, *given)


def known_sizes(program: f.Program, fields: Fields | None = None) -> KnownSizes:
    """The known lengths, if arrays in tuples and data have the lengths `fields`."""
    fields = fields or {}
    calls = {name: list(sites(fn)) for name, fn in program.fns.items()}
    order = [name for group in components(calls, lambda name: [callee for callee, _ in calls[name]]) for name in group]
    gives = [name for name in order if any(map(holds_arrays, program.fns[name].results))]
    results = {name: of_any_length(program.fns[name].results) for name in gives}
    while True:
        parameters = of_parameters(program, calls, order[::-1], KnownSizes({}, results, fields))
        now = dict(results)
        for name in gives:
            now[name] = still(now[name], of_results(program.fns[name], KnownSizes(parameters, now, fields)))
        if now == results:
            return KnownSizes(certain(parameters), certain(now), fields)
        results = now


def of_any_length(results: Sequence[f.Type]) -> Known:
    """What is assumed of results first."""
    return {(at, k): ANY for at, rank in arrays(results) for k in range(rank)}


def still(assumed: Known, found: Known) -> Known:
    """The lengths that were assumed and are found."""
    return {at: length for at, length in found.items() if assumed.get(at) in (length, ANY)}


def arrays(results: Sequence[f.Type]) -> Iterator[tuple[str, int]]:
    """The paths of the arrays among results."""
    for i, ty in enumerate(results):
        yield from parts(path("", i), ty)


def of_results(fn: f.Fn, known: KnownSizes) -> Known:
    found: dict[tuple[str, int], f.Const] = {}
    dims = known.dims(fn)
    for i, result in enumerate(fn.body.results):
        here = parts(result.name, result.ty) if isinstance(result, f.Var) else ()
        for (at, rank), (there, _) in zip(here, parts(path("", i), result.ty), strict=False):
            for k in range(rank):
                if isinstance(length := dims.found.get((at, k)), f.Const):
                    found[there, k] = length
    return found


def of_parameters(
    program: f.Program, calls: Mapping[str, list[Site]], order: Sequence[str], known: KnownSizes
) -> dict[str, Known]:
    given: dict[str, Given] = {name: {} for name in program.fns}
    for name in {*program.roots, *used_by_rules(program)} & program.fns.keys():
        paths = [path for p in program.fns[name].params for path in parts(p.name, p.ty)]
        given[name] = {(at, k): None for at, rank in paths for k in range(rank)}
    todo = {name for name in order if any(has_arrays(args) for _, args in calls[name])}
    while todo:
        again = set[str]()
        for name in [name for name in order if name in todo]:
            dims = dims_with(program.fns[name].body, numbers(given[name]), known.results, known.fields)
            for callee, args in calls[name]:
                if joined(given[callee], program.fns[callee], args, dims, name == callee):
                    again.add(callee)
        todo = {name for name in again if any(has_arrays(args) for _, args in calls[name])}
    return {name: numbers(lengths) for name, lengths in given.items()}


def has_arrays(args: Sequence[f.Atom]) -> bool:
    return any(holds_arrays(a.ty) for a in args)


def sites(fn: f.Fn) -> Iterator[Site]:
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


def numbers(given: Given) -> dict[tuple[str, int], f.Const]:
    return {at: known for at, known in given.items() if known is not None}


def certain(found: Mapping[str, Known]) -> dict[str, Known]:
    """What is known once nothing is guessed: no length of what functions give that never end."""
    return {name: {at: n for at, n in known.items() if n != ANY} for name, known in found.items()}


def joined(given: Given, callee: f.Fn, args: tuple[f.Atom, ...], dims: Dims, itself: bool) -> bool:
    """Joins the lengths of a call's arguments into those of the parameters; true if these have changed."""
    changed = False
    for param, arg in zip(callee.params, args, strict=False):
        if not holds_arrays(param.ty):
            continue
        paths = parts(arg.name, arg.ty) if isinstance(arg, f.Var) else ((None, rank) for _, rank in parts("", arg.ty))
        for (at, rank), (there, _) in zip(parts(param.name, param.ty), paths, strict=True):
            if itself and at == there:
                continue
            for k in range(rank):
                known = None if there is None else dims.found.get((there, k))
                seen = given.get((at, k), ANY)
                if seen is not None and known != ANY:
                    seen = known if isinstance(known, f.Const) and seen in (known, ANY) else None
                if given.get((at, k), ()) != seen:
                    given[at, k], changed = seen, True
    return changed
