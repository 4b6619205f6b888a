"""Loops that only add to what they read at places that an array tells are accumulators.

    sums = for k < n state (s = a) {               m = dim 0 a
      i = index at k                               sums = for k < n state (s = a) {
      x = index s i                          =>      i = index at k
      y = add x v                                    check_index i m
      s' = update s y i                              s' = acc_index s v m i
      yield s' }                                     yield s' }

So are rows of few numbers, which are written as a whole.  On the host the steps keep their order; a device adds up what
groups of them add.  What is differentiated is changed before that: then the cotangents are read, which has no order.
Places that are computed are left alone: what is added there may become sums in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.kinds import any_of, kinds
from dplc.flat.types import rank_of
from dplc.flat.walk import every, mentions, supply_for, with_binds, with_blocks, with_body, with_rhs
from dplc.narrow import expect_type

UPDATES = any_of("update")


def scatters(program: f.Program) -> f.Program:
    """The program, in which such loops add."""
    supply = supply_for(program)
    fns = {name: adding(fn, supply) for name, fn in program.fns.items()}
    return program if all(fns[name] is fn for name, fn in program.fns.items()) else replace(program, fns=fns)


def adding(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function, in which such loops add."""
    may_add = kinds(fn.body) & UPDATES and any(map(_may_add, every(fn.body)))
    return with_body(fn, _block(fn.body, supply)) if may_add else fn


def _may_add(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.For) and any(
        isinstance(inner.rhs, f.Op) and inner.rhs.op == "update" for inner in bind.rhs.body.binds
    )


def _block(block: f.Block, supply: f.Supply) -> f.Block:
    if not kinds(block) & UPDATES:
        return block
    binds: list[f.Bind] = []
    for bind in block.binds:
        match bind.rhs:
            case f.For() as loop if _may_add(bind) and (found := _additions(loop)):
                before, adding = _adding(loop, found, supply)
                binds += [*before, with_rhs(bind, adding)]
            case rhs:
                binds.append(with_rhs(bind, with_blocks(rhs, lambda inner: _block(inner, supply))))
    return with_binds(block, binds)


# ---- what a loop does with its state


@node
class Addition:
    """An update of a state variable that adds numbers at a place: `terms` are these numbers, with the ends of their
    indices, and `read` is the first read of the place."""

    update: f.Bind
    place: tuple[f.Atom, ...]
    terms: tuple[tuple[f.Atom, tuple[f.Atom, ...]], ...]
    read: f.Bind
    gone: frozenset[str]  # variables that nothing needs then


def _additions(loop: f.For) -> list[Addition] | None:
    """What a loop adds to each of its state variables; None if it does something else with one of them."""
    made = {bind.vars[0].name: bind for bind in loop.body.binds if len(bind.vars) == 1}
    uses = Counter(mentions(loop.body))
    found: list[Addition] = []
    for state, result in zip(loop.state, loop.body.results, strict=False):
        addition = _addition(state, result, made, uses)
        if addition is None:
            return None
        found.append(addition)
    return None if loop.collect else found


def _addition(state: f.Var, result: f.Atom, made: Mapping[str, f.Bind], uses: Counter[str]) -> Addition | None:
    update = _bind(result, made)
    match update and update.rhs:
        case f.Op("update", (target, value, *place)) if target == state and _is_told(place, made):
            pass
        case _:
            return None
    whole = _bind(value, made)
    match whole and whole.rhs:
        case f.Op("array", items) if len(place) + 1 == rank_of(state.ty):
            parts = [(item, (f.Const(j, f.I64),)) for j, item in enumerate(items)]
        case _ if len(place) == rank_of(state.ty):
            parts = [(value, ())]
        case _:
            return None
    sums = [_sum(part, (state, *place, *end), made) for part, end in parts]
    gone = {atom.name for atom in (value, *(part for part, _ in parts)) if isinstance(atom, f.Var)}
    gone.update(read.vars[0].name for read, _ in filter(None, sums))
    if None in sums or any(uses[name] != 1 for name in gone) or uses[state.name] != len(parts) + 1:
        return None
    reads, terms = zip(*[found for found in sums if found is not None], strict=True)
    ends = tuple(zip(terms, [end for _, end in parts], strict=True))
    assert update is not None
    return Addition(update, tuple(place), ends, reads[0], frozenset(gone))


def _bind(atom: f.Atom, made: Mapping[str, f.Bind]) -> f.Bind | None:
    return made.get(atom.name) if isinstance(atom, f.Var) else None


def _is_told(place: list[f.Atom], made: Mapping[str, f.Bind]) -> bool:
    """True if an array tells the first index."""
    first = _bind(place[0], made)
    return first is not None and isinstance(first.rhs, f.Op) and first.rhs.op == "index"


def _sum(atom: f.Atom, place: tuple[f.Atom, ...], made: Mapping[str, f.Bind]) -> tuple[f.Bind, f.Atom] | None:
    """The read of a place, and what is added to that; None if a number is something else."""
    bind = _bind(atom, made)
    match bind and bind.rhs:
        case f.Op("add", (left, right)) if isinstance(atom.ty, f.Num) and atom.ty.name.startswith("f"):
            for read, term in ((_bind(left, made), right), (_bind(right, made), left)):
                if read is not None and isinstance(read.rhs, f.Op) and (read.rhs.op, read.rhs.args) == ("index", place):
                    return read, term
        case _:
            pass
    return None


# ---- the loop as an accumulating one


def _adding(loop: f.For, found: list[Addition], supply: f.Supply) -> tuple[list[f.Bind], f.For]:
    """The bindings of lengths before a loop, and the loop, which adds."""
    before: list[f.Bind] = []
    instead: dict[str, list[f.Bind]] = {name: [] for addition in found for name in addition.gone}
    for addition, state, init in zip(found, loop.state, loop.inits, strict=True):
        dims = tuple([f.Var(supply.fresh("dim"), f.I64) for _ in range(rank_of(state.ty))])
        before += [f.Bind((dim,), f.Op("dim", (init,), (("k", k),))) for k, dim in enumerate(dims)]
        instead[addition.read.vars[0].name] = place_checks(expect_type(f.Op, addition.read.rhs), dims)
        instead[addition.update.vars[0].name] = _adds(addition, state, dims, supply)
    binds = [made for bind in loop.body.binds
             for made in (instead.get(bind.vars[0].name, [bind]) if len(bind.vars) == 1 else [bind])]  # fmt: skip
    return before, replace(loop, body=with_binds(loop.body, binds))


def place_checks(read: f.Op, dims: tuple[f.Var, ...]) -> list[f.Bind]:
    """What a read of an element checks: its place in an array of these dimensions."""
    if read.attr("unchecked"):
        return []
    doubtful = read.args[1 : len(read.args) - read.attr("sure", 0)]
    return [f.Bind((), f.Op("check_index", (i, dim), (("after", len(doubtful) - 1 - k),), read.span))
            for k, (i, dim) in enumerate(zip(doubtful, dims, strict=False))]  # fmt: skip


def _adds(addition: Addition, state: f.Var, dims: tuple[f.Var, ...], supply: f.Supply) -> list[f.Bind]:
    """The additions in place of an update."""
    made: list[f.Bind] = []
    (result,), span = addition.update.vars, expect_type(f.Op, addition.update.rhs).span
    at: f.Var = state
    for k, (term, end) in enumerate(addition.terms):
        after = result if k + 1 == len(addition.terms) else f.Var(supply.fresh(result.name), result.ty)
        args = (at, term, *dims, *addition.place, *end)
        made.append(f.Bind((after,), f.Op("acc_index", args, (("rank", len(dims)),), span)))
        at = after
    return made
