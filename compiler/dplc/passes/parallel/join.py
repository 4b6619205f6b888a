"""Joining: flat -> flat where a Par that keeps what another Par reads at the same points becomes a part of it.

    k = par i < n to keep { ...; yield t }             c, d = par i < n to keep, fold 0 {
    c, d = par j < n to keep, fold 0 {           =>      ...
      t' = index k j                                     ... t ...
      ...; yield u, v }                                  yield u, v }

So the forward and the backward sweep of a comprehension are one loop, and what the forward sweep keeps for the backward
sweep is never stored.  A sum of what a Par keeps is a fold of it.  Two Pars that compute something alike are one, too:
the function and its derivative at the same points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, cached_property

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Renamed
from dplc.flat.dims import dims_of
from dplc.flat.kinds import any_of, kinds
from dplc.flat.known_sizes import KnownSizes, known_sizes
from dplc.flat.types import rank_of
from dplc.flat.walk import (
    atoms,
    blocks,
    every,
    mentions,
    names,
    operands_of,
    own_reads,
    rhs_mentions,
    supply_for,
    with_binds,
    with_body,
    with_inner,
    with_rhs,
)
from dplc.narrow import expect_type
from dplc.passes.inversion.fission.additions_last import additions_last
from dplc.passes.inversion.invert import inverted
from dplc.passes.parallel.checked_places import CheckedPlaces
from dplc.passes.parallel.common_work import CommonWork, ComputedOnce
from dplc.passes.parallel.consecutive_rows import consecutive_rows
from dplc.passes.parallel.few_terms import few_terms
from dplc.passes.parallel.finer_points import finer_points
from dplc.passes.parallel.flat_nests import flat_nest, placed
from dplc.passes.parallel.late_extensions import late_extensions
from dplc.passes.parallel.late_views import late_views
from dplc.passes.parallel.one_column import continued, passed_on
from dplc.passes.simplify.dead_code import drop_unused, with_compared
from dplc.passes.simplify.fold import fold
from dplc.passes.simplify.purity import droppable, natural
from dplc.passes.simplify.row_shapes import one_shape

POINTS = any_of(f.Par)
WIDE = 32  # results of a point, at most, where nothing but common work joins Pars
NEAR = 64  # so many bindings before a Par are searched for another one with common work


def join(program: f.Program, device: bool = False) -> f.Program:
    supply, sizes = supply_for(program), cache(lambda: known_sizes(program))
    fns = {name: with_sums(joined(fn, supply, device), sizes, supply, device) for name, fn in program.fns.items()}
    fns = {name: additions_last(few_terms(fn, supply), supply) for name, fn in fns.items()}
    return replace(program, fns={name: consecutive_rows(fn, supply) for name, fn in fns.items()})


def with_sums(fn: f.Fn, sizes: Callable[[], KnownSizes], supply: f.Supply, device: bool) -> f.Fn:
    """The function with inversions, whose sums may be joined in turn."""
    if not kinds(fn.body) & POINTS:
        return fn
    fn = with_known_numbers(fn)
    made = inverted(fn, sizes, supply)
    return fn if made is fn else joined(made, supply, device)


def joined(fn: f.Fn, supply: f.Supply, device: bool) -> f.Fn:
    if not kinds(fn.body) & POINTS:
        return fn
    known = with_known_numbers(fn)
    late = late_views(late_extensions(known, supply), supply)
    known = finer_points(known if late is known else with_known_numbers(late), supply, device)
    return with_body(fn, Joiner(known).block(known.body))


def with_known_numbers(fn: f.Fn) -> f.Fn:
    """The function with what the code tells in place of what it reads: known lengths and their products, elements of
    arrays whose elements are equal, parts of tuples that are made in it.  An array that a Par keeps is there, so
    `acc_zeros` gives it as it is."""
    dims, known = dims_of(fn.body), dict[str, f.Atom]()
    equal = {bind.vars[0].name: bind.rhs.args[1] for bind in every(fn.body)
             if isinstance(bind.rhs, f.Op) and bind.rhs.op == "fill" and rank_of(bind.vars[0].ty) == 1}  # fmt: skip
    kept = {var.name for bind in every(fn.body) if isinstance(bind.rhs, f.Par)
            for var, out in zip(bind.vars, bind.rhs.outs, strict=True) if out.kind == "keep"}  # fmt: skip
    tuples = {bind.vars[0].name: bind.rhs.items for bind in every(fn.body) if isinstance(bind.rhs, f.TupMake)}
    for bind in every(fn.body):
        found: f.Atom | None = None
        match bind.rhs:
            case f.TupGet(f.Var(name), k) if name in tuples:
                found = tuples[name][k]
            case f.Op("dim", (array,)) if isinstance(n := dims.of(array, bind.rhs.attr("k")), f.Var | f.Const):
                found = n
            case f.Op("mul", factors) if bind.vars[0].ty == f.I64:
                found = fold(replace(bind.rhs, args=tuple([numbered(known, a) for a in factors])), {})
            case f.Op("index", (f.Var(name), _)) if name in equal and bind.rhs.attr("unchecked"):
                found = equal[name]
            case f.Op("acc_zeros", (f.Var(name) as array, *_)) if name in kept:
                found = array
            case _:
                pass
        if found is not None:
            known[bind.vars[0].name] = numbered(known, found)
    if not known:
        return fn
    body = _Known(known).block(fn.body)
    return replace(fn, body=drop_unused(body) if tuples else body)


def numbered(known: Mapping[str, f.Atom], atom: f.Atom) -> f.Atom:
    while isinstance(atom, f.Var) and atom.name in known:
        atom = known[atom.name]
    return atom


class _Known(Renamed):
    """Drops the bindings of variables that are replaced."""

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        return super().binds(tuple([b for b in binds if not (len(b.vars) == 1 and b.vars[0].name in self.atoms)]))


class Joiner:
    """One function; `uses` counts how often its variables are mentioned."""

    def __init__(self, fn: f.Fn) -> None:
        self.uses = Counter(mentions(fn.body))
        self.dims = dims_of(fn.body)
        self.body = fn.body
        self.common = CommonWork()
        self.once = ComputedOnce(self.common)
        self.equal: dict[object, object] = {}  # lengths that were checked to be equal
        self.outer: dict[f.Atom, f.Atom] = {}  # lengths read in a block, which are those that were there before
        self.read = {bind.vars[0].name: bind.rhs for bind in every(fn.body)
                        if isinstance(bind.rhs, f.Op) and bind.rhs.op in ("dim", "mul")}  # fmt: skip

    @cached_property
    def places(self) -> CheckedPlaces:
        return CheckedPlaces(self.body)

    def block(self, block: f.Block) -> f.Block:
        if not any(isinstance(bind.rhs, f.Par) or blocks(bind.rhs) for bind in block.binds):
            return block
        done: list[f.Bind] = []
        outside = dict(self.equal)
        for bind in block.binds:
            if (is_check(bind) and self.checked(*atoms(bind.rhs))) or self.same_shape(bind.rhs):
                continue
            if is_check(bind):
                self.note_outer(done, *atoms(bind.rhs))
            bind = with_inner(bind, self.block)
            if self.summed(done, bind):
                continue
            done = self.add(done, bind) if isinstance(bind.rhs, f.Par) else [*done, bind]
        self.equal = outside
        return self.without_unused(block, done)

    def add(self, done: list[f.Bind], bind: f.Bind) -> list[f.Bind]:
        """The bindings and then a Par, joined with those that it can be joined with."""
        later: list[f.Bind] = []
        while (found := self.joint(done, bind)) is not None:
            at, bind, before, after = found
            done, later = [*done[:at], *before], [*after, *later]
        return [*done, self.with_outer_counts(bind), *later]

    # ---- lengths

    def checked(self, *lengths: f.Atom) -> bool:
        """Notes that two lengths are equal from here on.  Returns True if that is known."""
        one, other = map(self.length, lengths)
        if isinstance(other, f.Const):
            one, other = other, one
        self.equal[other] = one
        return one == other

    def note_outer(self, done: list[f.Bind], *lengths: f.Atom) -> None:
        """Notes that a length that was just read is one from outside of the block."""
        own = [any(atom in bind.vars for bind in done) for atom in lengths]
        if own[0] != own[1]:
            inner, outer = lengths if own[0] else lengths[::-1]
            self.outer[inner] = outer

    def with_outer_counts(self, bind: f.Bind) -> f.Bind:
        """A Par that counts to known numbers, or to lengths from outside, so that arrays made before may be as long."""
        par = expect_type(f.Par, bind.rhs)
        space = tuple([(index, self.known_count(count)) for index, count in par.space])
        if space == par.space:
            return bind
        self.uses.subtract(names([count for _, count in par.space]))
        self.uses.update(names([count for _, count in space]))
        return with_rhs(bind, replace(par, space=space))

    def known_count(self, count: f.Atom) -> f.Atom:
        length = self.length(count)
        return length if isinstance(length, f.Const) else self.outer.get(count, count)

    def length(self, atom: f.Atom) -> object:
        """What is equal for equal lengths."""
        op = self.read.get(atom.name) if isinstance(atom, f.Var) else None
        found: object = atom
        if op is not None and op.op == "mul":
            found = tuple(map(self.length, op.args))
        elif op is not None:
            found = self.dims.of(op.args[0], op.attr("k"))
        while found in self.equal and self.equal[found] != found:
            found = self.equal[found]
        return found

    def same_shape(self, rhs: f.Rhs) -> bool:
        """True for a comparison of shapes that are known to be equal."""
        match rhs:
            case f.Op("same_shape", (f.Var(_, f.Arr(_, rank)) as a, f.Var() as b)):
                same = all(self.extent(a, k) == self.extent(b, k) for k in range(rank))
            case _:
                return False
        if same:
            self.uses.subtract((a.name, b.name))
        return same

    def extent(self, array: f.Var, k: int) -> object:
        """What is equal for equal dimensions of arrays."""
        dim = self.dims.of(array, k)
        return self.length(dim) if isinstance(dim, f.Var | f.Const) else dim

    # ---- sums of what is kept

    def summed(self, done: list[f.Bind], bind: f.Bind) -> bool:
        """Makes the sum of what a Par keeps one of its outs.  Returns False if a binding is no such sum."""
        match bind.rhs:
            case f.Op("sum", (f.Var(_, f.Arr(f.Num(), 1)) as array,)):
                pass
            case f.Op("sum_to", (f.Var(_, f.Arr(f.Num())) as array,)) if bind.rhs.attr("rank") == 0:
                pass
            case _:
                return False
        for at in reversed(range(len(done))):
            made = done[at]
            if array not in made.vars:
                continue
            if not isinstance(made.rhs, f.Par) or made.rhs.ordered:
                return False
            k = made.vars.index(array)
            if made.rhs.outs[k].kind != "keep" or len(made.rhs.space) != rank_of(array.ty):
                return False
            body = f.Block(made.rhs.body.binds, (*made.rhs.body.results, made.rhs.body.results[k]))
            par = replace(made.rhs, body=body, outs=(*made.rhs.outs, f.Out("fold")))
            done[at] = f.Bind((*made.vars, *bind.vars), par)
            self.uses[array.name] -= 1
            return True
        return False

    def without_unused(self, block: f.Block, done: list[f.Bind]) -> f.Block:
        """The block without dead outs, nor what only dead Pars and fills read."""
        binds: list[f.Bind] = []
        for bind in reversed(done):
            if self.is_unused(bind):
                self.uses.subtract(rhs_mentions(bind.rhs))
            else:
                binds.insert(0, self.used(bind) if isinstance(bind.rhs, f.Par) else bind)
        return with_binds(block, binds)

    def is_unused(self, bind: f.Bind) -> bool:
        """True for a dead Par, or a dead array of equal parts, that cannot fail, because its counts are lengths
        or known; and for dead views of them."""
        if any(self.uses[var.name] > 0 for var in bind.vars):
            return False
        match bind.rhs:
            case f.Op("reshape") as op:
                return bool(op.attr("unchecked"))
            case f.Op("fill", (count, _)) as op:
                if op.attr("unchecked"):
                    return True
                counts = [count]
            case f.Par(ordered=False) as par if self.harmless(par) and one_shape(par):
                counts = [count for _, count in par.space]
            case _:
                return False
        return all(natural(count) or isinstance(self.length(count), tuple) for count in counts)

    def used(self, bind: f.Bind) -> f.Bind:
        par = bind.rhs
        assert isinstance(par, f.Par)
        wanted = [k for k, var in enumerate(bind.vars) if self.uses[var.name] > 0 or par.outs[k].kind == "add"]
        if wanted:
            wanted = with_compared(par, wanted, self.dims)
        if not wanted or len(wanted) == len(bind.vars):
            return bind
        body = f.Block(par.body.binds, tuple([par.body.results[k] for k in wanted]))
        gone = [out for k, out in enumerate(par.outs) if k not in wanted]
        variables = tuple([bind.vars[k] for k in wanted])
        outs = self.overwriting(variables, [par.outs[k] for k in wanted], gone)
        return f.Bind(variables, replace(par, body=body, outs=outs))

    def overwriting(self, variables: tuple[f.Var, ...], outs: list[f.Out], gone: list[f.Out]) -> tuple[f.Out, ...]:
        """The results, where arrays that those which are gone would have overwritten are overwritten by others."""
        spare = [out.target for out in gone if out.kind == "keep" and out.target is not None]
        for k, (var, out) in enumerate(zip(variables, outs, strict=True)):
            fitting = [a for a in spare if a.ty == var.ty]
            if out.kind == "keep" and out.target is None and not out.inner and fitting:
                spare.remove(fitting[0])
                outs[k] = replace(out, target=fitting[0])
        return tuple(outs)

    # ---- two Pars

    def joint(self, done: list[f.Bind], bind: f.Bind) -> tuple[int, f.Bind, list[f.Bind], list[f.Bind]] | None:
        """The place of an earlier Par that `bind` can be joined with, both in one, and the bindings between them that
        come before and after it."""
        par = bind.rhs
        assert isinstance(par, f.Par)
        own = tuple([index for index, _ in par.space])
        reads = Counter(array.name for array, _ in own_reads(par.body, own))
        if par.ordered:
            return None
        for at in reversed(range(0 if reads else max(0, len(done) - NEAR), len(done))):
            earlier = done[at]
            if not isinstance(earlier.rhs, f.Par):
                continue
            if len(earlier.rhs.space) < len(par.space):
                earlier = with_rhs(earlier, flat_nest(earlier.rhs))
                assert isinstance(earlier.rhs, f.Par)
            if not any(var.name in reads for var in earlier.vars) and not self.alike(earlier.rhs, par):
                continue
            if not self.fits(earlier, earlier.rhs, par, reads):
                return None
            between = self.ordered(done[at + 1 :], earlier, par)
            if between is None:
                return None
            return at, self.both(earlier, bind, reads), *between
        return None

    def alike(self, first: f.Par, second: f.Par) -> bool:
        """True if it is worth joining two Pars that read nothing of each other: they have common work, and a point does
        not have more results than registers."""
        return len(first.outs) + len(second.outs) <= WIDE and self.common.between(first, second)

    def fits(self, earlier: f.Bind, first: f.Par, second: f.Par, reads: Counter[str]) -> bool:
        """True if the second Par has the space of the first, and reads its results at its own points only."""
        counts = [[self.length(count) for _, count in par.space] for par in (first, second)]
        if first.ordered or counts[0] != counts[1] or not (self.harmless(second) or self.harmless(first)):
            return False  # of two that fail, the earlier one does
        kept = {
            var.name for var, out in zip(earlier.vars, first.outs, strict=True) if out.kind == "keep" and not out.order
        }  # or a part there is not what the point keeps
        targets = {name for out in second.outs if out.kind == "keep" for name in names(operands_of(out))}
        times = Counter(rhs_mentions(second))
        times.subtract(targets)
        times.subtract([earlier.vars[k].name for k in continued(earlier, second, self.uses)])
        return all(
            times[var.name] <= 0 or (var.name in kept and times[var.name] == reads[var.name]) for var in earlier.vars
        )

    def ordered(self, between: list[f.Bind], first: f.Bind, second: f.Par) -> tuple[list[f.Bind], list[f.Bind]] | None:
        """The bindings between two Pars: those that the second one needs, and the others; None if the Pars cannot meet
        between them, or what fails or has effects would happen in another order."""
        own = {var.name for var in first.vars}
        depends = set(own)
        for bind in between:
            if depends.intersection(rhs_mentions(bind.rhs)):
                if is_check(bind):
                    return None
                depends.update([var.name for var in bind.vars])
        needed = set(rhs_mentions(second))
        if needed & (depends - own):
            return None
        before: list[f.Bind] = []
        after: list[f.Bind] = []
        for bind in reversed(between):
            if any(var.name in needed for var in bind.vars) or is_check(bind):
                before.insert(0, bind)
                needed.update(rhs_mentions(bind.rhs))
            else:
                after.insert(0, bind)
        early = [bind for bind in before if not self.movable(bind)]
        passed = [bind for bind in after if not self.movable(bind)]
        if (early and not self.harmless(first.rhs)) or (passed and (early or not self.harmless(second))):
            return None
        failing = any(self.places.may_fail(bind.rhs) for bind in passed)
        if failing and self.places.stands(second):
            return None
        if (failing or self.places.may_fail(first.rhs)) and any(self.places.stands(bind.rhs) for bind in before):
            return None
        return before, after

    def movable(self, bind: f.Bind) -> bool:
        """True for what may be done earlier or later than what fails."""
        return droppable(bind.rhs)

    def harmless(self, rhs: f.Rhs) -> bool:
        """True for a Par whose points cannot fail.  What it does for each element of an array ends."""
        return isinstance(rhs, f.Par) and all(map(self.is_quiet, rhs.body.binds))

    def is_quiet(self, bind: f.Bind) -> bool:
        match bind.rhs:
            case f.Par(space, body) as par if not par.ordered:
                counted = all(isinstance(self.length(count), tuple) or natural(count) for _, count in space)
                return counted and all(map(self.is_quiet, body.binds))
            case f.If(_, then, other):
                return all(map(self.is_quiet, (*then.binds, *other.binds)))
            case rhs:
                return droppable(rhs)

    def both(self, earlier: f.Bind, later: f.Bind, reads: Counter[str]) -> f.Bind:
        first, second = earlier.rhs, later.rhs
        assert isinstance(first, f.Par) and isinstance(second, f.Par)
        indices = {own.name: index for (own, _), (index, _) in zip(second.space, first.space, strict=True)}
        kept = {var.name: value for var, value in zip(earlier.vars, first.body.results, strict=True)}
        sums = continued(earlier, second, self.uses)
        handed = {acc.name: first.body.results[k] for k, on in sums.items() if (acc := second.outs[on].acc)}
        point = _Point({**indices, **handed}, kept, tuple([index for index, _ in first.space]))
        body = point.block(second.body)
        for var in earlier.vars:
            self.uses[var.name] -= reads[var.name]
        read = set(mentions(first.body)) | set(kept)
        outs = []
        for out in second.outs:
            if out.kind == "keep" and out.target is not None and read & set(names((out.target,))):
                self.uses.subtract(names((out.target,)))
                out = replace(out, target=None)
            outs.append(out)
        whole = self.once.joined(first.body, body)
        rows = [par.span for par in (first, second) if keeps_rows(par)]  # which may have other sizes
        follows = any(reads[var.name] for var in earlier.vars)  # its count is the length of what is there
        span = rows[0] if rows else first.span if follows else placed(first, second)
        self.uses.subtract([earlier.vars[k].name for k in sums])
        both = f.Par(first.space, whole, (*first.outs, *outs), span)
        sums = {k: len(first.outs) + on for k, on in sums.items()}
        return self.used(passed_on((*earlier.vars, *later.vars), both, sums))


def keeps_rows(par: f.Par) -> bool:
    return any(isinstance(result.ty, f.Arr) for result in par.body.results)


class _Point(Renamed):
    """The points of a Par as points of another one, with that one's results in place of the elements that it kept."""

    def __init__(self, atoms: dict[str, f.Atom], kept: dict[str, f.Atom], indices: tuple[f.Var, ...]) -> None:
        super().__init__(atoms)
        self.kept = kept
        self.indices = indices

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        made: list[f.Bind] = []
        for bind in binds:
            rhs = self.rhs(bind.rhs)
            match rhs:
                case f.Op("index", (f.Var(name), *indices)) if name in self.kept:
                    value, rest = self.kept[name], tuple(indices[len(self.indices) :])
                    if not rest:
                        self.atoms[bind.vars[0].name] = value
                        continue
                    rhs = replace(rhs, args=(value, *rest))
                case _:
                    pass
            made.append(with_rhs(bind, rhs))
        return tuple(made)


def is_check(bind: f.Bind) -> bool:
    """True for a comparison of lengths, which may tell that the spaces of two Pars are one."""
    return isinstance(bind.rhs, f.Op) and bind.rhs.op == "check_lengths"
