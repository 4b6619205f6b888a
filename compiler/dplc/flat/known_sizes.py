"""The lengths of arrays that are one number in every call of a function: program -> (path, dimension) -> number.

    fn f(x: f64[,], y: f64[]) ...
    built = build i < 1000 of (3) { ... }              x has the dimensions 1000 and 3
    r = f(built, v)

This is one optimistic fixpoint: parameters and results are assumed to have any length that is asked for, until a call
or the code tells another one.  A parameter that a recursive function passes on has the length that it was given, and
`f (f x)` has that of `f x`.  Arrays in tuples have paths for names (`flat/dims.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat, zip_longest

from dpl.node import field, node

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.dims import ANY, Dims, Fields, Known, dims_of, holds_arrays, parts, path
from dplc.flat.remembered import remembered_given
from dplc.flat.walk import every
from dplc.graph import components

Given = dict[tuple[str, int], f.Const | None]  # None: it varies
Flow = tuple[tuple[str, int], tuple[str, int] | None]  # from a parameter's length to an argument's; None: not known
Calls = dict[str, list[tuple[str, list[Flow]]]]  # the functions that each function calls or differentiates


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
    fields, fns = fields or {}, program.fns
    calls = {name: list(sites(fn, fns)) for name, fn in fns.items()}
    given = assumed(program, calls)
    results = {name: of_any_length(fn.results) for name, fn in fns.items() if any(map(holds_arrays, fn.results))}
    users: dict[str, set[str]] = {name: set() for name in fns}
    for name, fn in fns.items():
        for callee in callees(fn.body) & results.keys():
            users[callee].add(name)
    order = [name for group in components(calls, lambda name: [callee for callee, _ in calls[name]]) for name in group]
    telling = {name for name in order if name in results or any(flows for _, flows in calls[name])}
    todo = set(telling)
    while todo:
        for name in order:
            if name not in todo:
                continue
            todo.discard(name)
            dims = dims_with(fns[name].body, numbers(given[name]), results, fields)
            todo |= {callee for callee, flows in calls[name] if joined(given[callee], flows, dims)} & telling
            if name in results and (now := still(results[name], of_results(fns[name], dims))) != results[name]:
                results[name] = now
                todo |= users[name] & telling
        order.reverse()  # callees first, for results; then callers, for parameters
    return KnownSizes(certain({name: numbers(lengths) for name, lengths in given.items()}), certain(results), fields)


def assumed(program: f.Program, calls: Calls) -> dict[str, Given]:
    """What is assumed of parameters first: any length, but none of functions that are called from elsewhere."""
    called = {callee for found in calls.values() for callee, _ in found}
    called -= {*program.roots, *used_by_rules(program)}
    return {name: {(at, k): ANY if name in called else None
                   for param in fn.params for at, rank in parts(param.name, param.ty) for k in range(rank)}
            for name, fn in program.fns.items()}  # fmt: skip


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


def of_results(fn: f.Fn, dims: Dims) -> Known:
    found: dict[tuple[str, int], f.Const] = {}
    for i, result in enumerate(fn.body.results):
        here = parts(result.name, result.ty) if isinstance(result, f.Var) else ()
        for (at, rank), (there, _) in zip(here, parts(path("", i), result.ty), strict=False):
            for k in range(rank):
                if isinstance(length := dims.found.get((at, k)), f.Const):
                    found[there, k] = length
    return found


def sites(fn: f.Fn, fns: Mapping[str, f.Fn]) -> Iterator[tuple[str, list[Flow]]]:
    """The functions that a function calls or differentiates, with what it gives to their parameters."""
    for bind in every(fn.body):
        match bind.rhs:
            case f.Ad("jet", callee, (*captured, _, x)):
                yield callee, list(flows(fns[callee], (*captured, x), fn.name == callee))
            case f.Call(callee, args) | f.Ad("jvp" | "vjp", callee, args):
                yield callee, list(flows(fns[callee], args, fn.name == callee))
            case _:
                pass


def flows(callee: f.Fn, args: Sequence[f.Atom], itself: bool) -> Iterator[Flow]:
    """What the lengths of a function's parameters are in a call.  One that a function passes on to itself tells
    nothing."""
    for param, arg in zip_longest(callee.params, args[: len(callee.params)]):
        whence = parts(arg.name, arg.ty) if isinstance(arg, f.Var) else repeat((None, 0))
        for (at, rank), (there, _) in zip(parts(param.name, param.ty), whence, strict=False):
            if not itself or at != there:
                yield from (((at, k), None if there is None else (there, k)) for k in range(rank))


def used_by_rules(program: f.Program) -> Iterator[str]:
    """Functions that differentiation calls."""
    for name, rule in program.rules.items():
        yield from (name, rule.fn, rule.pullback)


def numbers(given: Given) -> dict[tuple[str, int], f.Const]:
    return {at: known for at, known in given.items() if known is not None}


def certain(found: Mapping[str, Known]) -> dict[str, Known]:
    """What is known once nothing is guessed: no length of what functions give that never end."""
    return {name: {at: n for at, n in known.items() if n != ANY} for name, known in found.items()}


def joined(given: Given, flows: Sequence[Flow], dims: Dims) -> bool:
    """Joins the lengths of a call's arguments into those of the parameters; true if these have changed."""
    changed = False
    for to, source in flows:
        seen = given[to]
        known = None if source is None else dims.found.get(source)
        if seen is not None and known not in (seen, ANY):
            given[to], changed = known if seen == ANY and isinstance(known, f.Const) else None, True
    return changed
