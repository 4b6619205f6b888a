"""Arrays that a loop changes at every step: made unique once, before the loop.

    a = for i < n state (s = a0) { ...; t = update s v i; yield t }

`update` would check at each step whether the array is unique (and `acc_index`, whether it is null).  An array that is
unique stays so as long as the body only reads elements of it, changes it and yields it.  So the check is done before
the first step; the steps are plain stores, which LLVM can vectorise.  Straight code that changes one array many times
checks it once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import mentions, names, rhs_mentions
from dplc.machine.emit import arrays
from dplc.machine.emit.emitter import Emitter
from dplc.machine.llvm.writer import Values


@node
class Chain:
    """The `state` variable number `index`, and the variables that hold the same array during a step.  `dims` are its
    lengths if it may be null before the loop."""

    index: int
    variables: tuple[str, ...]
    dims: tuple[f.Atom, ...]


def chains(loop: f.For | f.While) -> list[Chain]:
    """The arrays that every step changes in place.  A While needs its condition once more before the loop; it must only
    compute."""
    if isinstance(loop, f.While) and not all(_only_computes(bind.rhs) for bind in loop.cond.binds):
        return []
    state = list(zip(loop.state, loop.body.results, strict=False))
    index = {loop.index.name} if isinstance(loop, f.For) else set[str]()
    return chains_in(loop.body, state, index, mentions(loop.cond) if isinstance(loop, f.While) else ())


def chains_in(
    body: f.Block, state: list[tuple[f.Var, f.Atom]], own: set[str], more: Iterable[str] = ()
) -> list[Chain]:
    """The same of a body, with the next values of its state.  `own` are its other variables, `more` uses elsewhere."""
    if not any(isinstance(var.ty, f.Arr) for var, _ in state):
        return []
    uses = Counter(mentions(body))
    uses.update(more)
    inside = own | {var.name for bind in body.binds for var in bind.vars} | {var.name for var, _ in state}
    links = {name: (change, bind.vars[0].name) for bind in body.binds for name, change in _changes(bind.rhs)}
    more_than_read = uses - Counter(name for bind in body.binds for name in _read(bind.rhs))
    found = [_chain(links, i, var, after, uses, more_than_read, inside) for i, (var, after) in enumerate(state)
             if isinstance(var.ty, f.Arr)]  # fmt: skip
    return [chain for chain in found if chain]


def _only_computes(rhs: f.Rhs) -> bool:
    row = OPS[rhs.op] if isinstance(rhs, f.Op) else None
    return row is not None and (row.elementwise or (row.short and row.repeatable))


def _chain(
    links: dict[str, tuple[f.Op, str]], index: int, var: f.Var, after: f.Atom, uses: Counter[str],
    more_than_read: Counter[str], inside: set[str],
) -> Chain | None:  # fmt: skip
    name, variables, dims = var.name, [], ()
    while name in links:
        if more_than_read[name] != 1:
            return None
        variables.append(name)
        change, name = links[name]
        if OPS[change.op].accumulates:
            dims = change.args[2 : 2 + change.attr("rank")]
    if not variables or uses[name] != 1 or after != f.Var(name, var.ty):
        return None
    return None if inside & set(names(dims)) else Chain(index, tuple(variables), dims)


def _changes(rhs: f.Rhs) -> list[tuple[str, f.Op]]:
    """The array that an operation changes, with the operation."""
    match rhs:
        case f.Op(op, (f.Var(name), *_)) if OPS[op].changes:
            return [(name, rhs)]
        case _:
            return []


def _read(rhs: f.Rhs) -> list[str]:
    """Arrays of which a right-hand side reads only an element or a length."""
    match rhs:
        case f.Op("index", (f.Var(name, f.Arr(f.Num(), rank)), *indices)) if len(indices) == rank:
            return [name]
        case f.Op("dim", (f.Var(name),)):
            return [name]
        case _:
            return []


def settled(binds: Sequence[f.Bind]) -> Iterator[str]:
    """The arrays that are changed in straight code just after they were changed: they are unique and not null."""
    fresh: set[str] = set()
    for bind in binds:
        change = next(iter(_changes(bind.rhs)), None)
        if fresh:
            uses = Counter(rhs_mentions(bind.rhs))
            uses.subtract(_read(bind.rhs))
            if change and change[0] in fresh and uses[change[0]] == 1:
                yield change[0]
            fresh -= {name for name, times in uses.items() if times}
        if change and not isinstance(change[1].args[1].ty, f.Arr):
            fresh.add(bind.vars[0].name)


def ready(e: Emitter, ty: f.Arr, values: Values, dims: list[str]) -> Values:
    """The array, made unique and not null."""
    a = arrays.array_of(ty, values)
    if dims:
        a = arrays.present(e, a, dims)
    return arrays.writable(e, a).values
