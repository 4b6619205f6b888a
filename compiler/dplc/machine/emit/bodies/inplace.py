"""Arrays that a loop changes at every step: made unique once, before the loop.

    a = for i < n state (s = a0) { ...; t = update s v i; yield t }

`update` would check at each step whether the array is unique (and `acc_index`, whether it is null).  An array that is
unique stays so as long as the body only reads elements of it, changes it and yields it.  So the check is done before
the first step; the steps are plain stores, which LLVM can vectorise.  Straight code that changes one array many times
checks it once.  A loop inside counts as a change, though it may have no steps.

    a = for i < n state (s = a0) { t = if g { u = update s v i; yield u } else { yield s }; yield t }

Where a step changes an array in some branches only, the loop may not need it to be unique at all: then nothing is
checked if the array was changed just before the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import prod

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, mentions, names, rhs_mentions
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.module.emitter import Emitter
from dplc.machine.llvm.writer import Values


@node
class Chain:
    """The `state` variable number `index`, and the variables that hold the same array during a step, with how often
    they are mentioned.  `dims` are its lengths if it may be null before the loop.  It is `certain` if every step
    changes the array."""

    index: int
    held: tuple[tuple[str, int], ...]
    dims: tuple[f.Atom, ...]
    certain: bool

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple([name for name, _ in self.held])


@node
class Link:
    """What becomes of an array in a binding: the variable that holds it afterwards, those that hold it inside, with how
    often they are mentioned, and the operations that change it.  The binding mentions it so many times."""

    after: str
    inside: tuple[tuple[str, int], ...]
    changes: tuple[f.Op, ...]
    mentions: int
    certain: bool


def chains(loop: f.For | f.While) -> list[Chain]:
    """The arrays that every step changes in place.  A While needs its condition once more before the loop; it must only
    compute."""
    if isinstance(loop, f.While) and not all(_only_computes(bind.rhs) for bind in loop.cond.binds):
        return []
    state = list(zip(loop.state, loop.body.results, strict=False))
    index = {loop.index.name} if isinstance(loop, f.For) else set[str]()
    return chains_in(loop.body, state, index, mentions(loop.cond) if isinstance(loop, f.While) else ())


def chains_in(body: f.Block, state: list[tuple[f.Var, f.Atom]], own: set[str], more: Iterable[str] = ()) -> list[Chain]:
    """The same of a body, with the next values of its state.  `own` are its other variables, `more` uses elsewhere."""
    if not any(isinstance(var.ty, f.Arr) for var, _ in state):
        return []
    uses = Counter(mentions(body))
    uses.update(more)
    inside = own | {var.name for bind in every(body) for var in bind.vars} | {var.name for var, _ in state}
    links = {name: link for bind in body.binds for name, link in _links(bind)}
    more_than_read = uses - Counter(name for bind in every(body) for name in _read(bind.rhs))
    found = [_chain(links, i, var, after, uses, more_than_read, inside) for i, (var, after) in enumerate(state)
             if isinstance(var.ty, f.Arr)]  # fmt: skip
    return [chain for chain in found if chain]


def _only_computes(rhs: f.Rhs) -> bool:
    row = OPS[rhs.op] if isinstance(rhs, f.Op) else None
    return row is not None and (row.elementwise or (row.short and row.repeatable))


def _chain(
    links: dict[str, Link], index: int, var: f.Var, after: f.Atom, uses: Counter[str], more_than_read: Counter[str],
    inside: set[str],
) -> Chain | None:  # fmt: skip
    name, held, dims, certain = var.name, list[tuple[str, int]](), (), False
    while name in links:
        link = links[name]
        if more_than_read[name] != link.mentions or any(uses[inner] != count for inner, count in link.inside):
            return None
        held += [(name, link.mentions), *link.inside]
        dims = _lengths(link.changes) or dims
        certain, name = certain or link.certain, link.after
    if not held or uses[name] != 1 or after != f.Var(name, var.ty):
        return None
    return None if inside & set(names(dims)) else Chain(index, tuple(held), dims, certain)


def _links(bind: f.Bind) -> Iterator[tuple[str, Link]]:
    """The arrays that a binding changes, in all branches or in some."""
    match bind.rhs:
        case f.If(_, then, other):
            for var, *ends in zip(bind.vars, then.results, other.results, strict=True):
                if isinstance(var.ty, f.Arr) and (both := _branches((then, other), ends)) is not None:
                    name, link = both
                    yield name, replace(link, after=var.name)
        case f.For() as loop:
            yield from _inner_links(bind.vars, loop.body, loop.inits, chains(loop))
        case f.Par(space, body, outs) if any(out.acc for out in outs):
            adds = [(var, out, x) for var, out, x in zip(bind.vars, outs, body.results, strict=True) if out.acc]
            variables, state = tuple([var for var, *_ in adds]), [(out.acc, x) for _, out, x in adds if out.acc]
            found = chains_in(body, state, {index.name for index, _ in space})
            yield from _inner_links(variables, body, [out.target for _, out, _ in adds], found)
        case f.Op("acc_zeros", (f.Var(name), *_)) as rhs:
            yield name, Link(bind.vars[0].name, (), (rhs,), 1, False)
        case rhs:
            for name, op in _changes(rhs):
                yield name, Link(bind.vars[0].name, (), (op,), 1, True)


def _inner_links(
    after: Sequence[f.Var], body: f.Block, inits: Sequence[f.Atom | None], found: Sequence[Chain]
) -> Iterator[tuple[str, Link]]:
    """The arrays that an inner loop changes, which begin as `inits` and end as `after`."""
    for chain in found:
        variables = set(chain.variables)
        changes = [op for inner in every(body) for name, op in _changes(inner.rhs) if name in variables]
        if isinstance(init := inits[chain.index], f.Var):
            yield init.name, Link(after[chain.index].name, chain.held, tuple(changes), 1, chain.certain)


def _branches(arms: Sequence[f.Block], ends: Sequence[f.Atom]) -> tuple[str, Link] | None:
    """The array that the results `ends` of branches are, after changes in some of them.  Where branches tell it other
    lengths, which are equal only if one of them is taken, it is not known how long a null one is."""
    found = [_branch(arm, end.name) for arm, end in zip(arms, ends, strict=True) if isinstance(end, f.Var)]
    (name, _), *others = found or [("", None)]
    if len(found) < len(arms) or any(other != name for other, _ in others):
        return None
    links = [link for _, link in found if link is not None]
    changes = tuple([op for link in links for op in link.changes])
    if not changes or len({told for link in links if (told := _lengths(link.changes))}) > 1:
        return None
    inside = tuple([inner for link in links for inner in link.inside])
    count = sum(link.mentions for link in links) + len(found) - len(links)
    return name, Link("", inside, changes, count, len(links) == len(found) and all(link.certain for link in links))


def _branch(arm: f.Block, end: str) -> tuple[str, Link | None]:
    """The array that the result `end` of a branch was before it; None if that does not change it."""
    came = {link.after: (name, link) for bind in arm.binds for name, link in _links(bind)}
    if end not in came:
        return end, None
    name, last = came[end]
    inside, changes, certain = [(end, 1), *last.inside], [*last.changes], last.certain
    while name in came:
        (earlier, link), middle = came[name], name
        inside += [(middle, last.mentions), *link.inside]
        changes += link.changes
        certain, name, last = certain or link.certain, earlier, link
    return name, Link(end, tuple(inside), tuple(changes), last.mentions, certain)


def _lengths(changes: Sequence[f.Op]) -> tuple[f.Atom, ...]:
    """The lengths that the first of these operations tells that tells them."""
    return next((told for op in changes if (told := _dims_told(op))), ())


def _dims_told(op: f.Op) -> tuple[f.Atom, ...]:
    """The lengths of an array that an operation makes if it is null."""
    if op.op == "acc_zeros":
        return op.args[1:]
    return op.args[2 : 2 + op.attr("rank")] if OPS[op.op].accumulates else ()


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


def is_filled(chain: Chain, body: f.Block, counts: Sequence[f.Atom]) -> bool:
    """True if an array may be filled with zeros before its points add to it, so that no addition asks whether it is
    null.  Zeros cost little if points certainly add, or if there are at least as many points as elements."""
    inner = points_of(body, frozenset(chain.variables))
    return chain.certain or (bool(chain.dims) and as_many(chain.dims, (*counts, *inner)))


def as_many(dims: Sequence[f.Atom], counts: Sequence[f.Atom]) -> bool:
    """True if so many points are at least as many as an array with these lengths has elements."""
    numbers = [n.value for n in (*dims, *counts) if isinstance(n, f.Const) and isinstance(n.value, int)]
    if len(numbers) == len(dims) + len(counts):
        return prod(numbers[: len(dims)]) <= prod(numbers[len(dims) :])
    return not Counter(dims) - Counter(counts)


def points_of(body: f.Block, held: frozenset[str]) -> list[f.Atom]:
    """The counts of the loops in a body around what changes an array that these variables hold; the deepest ones."""
    found: list[list[f.Atom]] = [[]]
    for bind in body.binds:
        match bind.rhs:
            case f.If(_, then, other):
                found += [points_of(then, held), points_of(other, held)]
            case f.For() as loop if not held.isdisjoint(names(loop.inits)):
                found.append([loop.count, *points_of(loop.body, held)])
            case f.Par(space, inner, outs) if not held.isdisjoint(names([out.target for out in outs if out.target])):
                found.append([*[count for _, count in space], *points_of(inner, held)])
            case _:
                pass
    return max(found, key=len)


def settled(binds: Sequence[f.Bind]) -> Iterator[str]:
    """The arrays that are changed, by straight code or a loop, just after they were changed: they are unique and not
    null."""
    fresh: set[str] = set()
    for bind in binds:
        change = next(iter(_changes(bind.rhs)), None)
        if fresh:
            uses = Counter(rhs_mentions(bind.rhs))
            uses.subtract(_read(bind.rhs))
            yield from [name for name in _taken(bind.rhs) if name in fresh and uses[name] == 1]
            fresh -= {name for name, times in uses.items() if times}
        if change and not isinstance(change[1].args[1].ty, f.Arr):
            fresh.add(bind.vars[0].name)


def _taken(rhs: f.Rhs) -> list[str]:
    """The arrays that a right-hand side changes, or that loops begin with."""
    match rhs:
        case f.For() | f.While():
            return list(names(rhs.inits))
        case f.Par():
            return list(names([out.target for out in rhs.outs if out.kind == "add" and out.target is not None]))
        case _:
            return [name for name, _ in _changes(rhs)]


def ready(e: Emitter, ty: f.Arr, values: Values, dims: list[str]) -> Values:
    """The array, made unique and not null."""
    a = arrays.array_of(ty, values)
    if dims:
        a = arrays.present(e, a, dims)
    return arrays.writable(e, a).values
