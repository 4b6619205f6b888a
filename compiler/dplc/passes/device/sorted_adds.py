"""What points add to an array that is too large for copies: a device sorts the points by place, and each place adds up
what its points give.

    c = par k < m to add (a) {          done, keys, vs = par k < m to done, keep, keep { ...; yield i * m + k, v }
      ...                        =>     keys' = call "sorted keys" keys
      yield acc_index a v n i }         c' = par p < n to keep { s = a[p]; for keys in p * m .. p * m + m - 1:
                                                                   s = s + vs[key - p * m]; yield s }

A key tells place and point, so all keys differ, and sums have the order of the loop: its bits, too.  Small arrays have
copies for groups of points (`kernels.py`), which many threads can add to where a place has many points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer, product
from dplc.flat.copy import Copier
from dplc.flat.ops.row import Dim
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import bound_inside, mentions, supply_for, with_binds, with_body, with_inner
from dplc.narrow import expect_type
from dplc.passes.device.array_sums import called_by_points
from dplc.passes.device.kernels import LEAST_GROUPS, ROOM, Devices, Made
from dplc.passes.device.merge_sort import SORTED, bisect, merge_sort
from dplc.passes.device.tiled_scan import unless, unless_done

MOST = ROOM // LEAST_GROUPS  # elements of an array that has enough copies
MOST_KEYS = 1 << 31  # places, and numbers to add: a key has 64 bits
MOST_NUMBERS = 32  # that a point adds to an array


def sorted_adds(program: f.Program) -> f.Program:
    """The program, in which devices do such Pars of the host."""
    apart, devices, supply = called_by_points(program), Devices(program), supply_for(program)
    made = program.copy()
    walk = _Walk(devices, supply)
    for name, fn in program.fns.items():
        if name not in apart:
            made.fns[name] = with_body(fn, walk.block(fn.body))
    if walk.found:
        made.fns[SORTED] = merge_sort(supply)
    return made


@node
class Addition:
    """What each point adds: some numbers, each at a place of its own, or one row of numbers.  `gone` are the variables
    of the accumulator; `row` is the Par that keeps a row which a point adds element by element."""

    made: Made
    gone: tuple[f.Var, ...]
    places: tuple[tuple[f.Atom, ...], ...]
    values: tuple[f.Atom, ...]
    row: f.Par | None = None

    @property
    def count(self) -> int:
        """The keys of a point."""
        return len(self.values)

    @property
    def kept(self) -> int:
        """The rank of what a point keeps."""
        return rank_of(self.values[0].ty) if self.count == 1 else 1


class _Walk:
    """A walk through the blocks that the host runs."""

    def __init__(self, devices: Devices, supply: f.Supply) -> None:
        self.devices, self.supply = devices, supply
        self.found = False

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            if isinstance(bind.rhs, f.Par):
                binds += self.par(bind, bind.rhs) or [bind]
            else:
                binds.append(with_inner(bind, self.block))
        return with_binds(block, binds)

    def par(self, bind: f.Bind, par: f.Par) -> list[f.Bind]:
        """What comes in place of a Par; nothing if it stays."""
        adds = [k for k, out in enumerate(par.outs) if out.kind == "add"]
        if not adds or any(out.kind == "done" for out in par.outs):
            return []
        kernel = self.devices.plan(par)
        if isinstance(kernel, str) or kernel.geometry != "groups" or kernel.loops or len(kernel.levels) > 1:
            return []
        found = {k: addition(par, kernel.outs[k]) for k in adds if not kernel.outs[k].own}
        additions = {k: one for k, one in found.items() if one is not None}
        if len(additions) < len(found) or all(map(is_small, additions.values())):
            return []
        made = SortedAdds(par, additions, self.supply).binds(bind, self.devices)
        self.found |= bool(made)
        return made


def is_small(addition: Addition) -> bool:
    """True if the array is known to have enough copies."""
    size = 1
    for dim in addition.made.dims:
        if not isinstance(dim, f.Const):
            return False
        size *= expect_type(int, dim.value)
    return size <= MOST


def addition(par: f.Par, made: Made) -> Addition | None:
    """What the points of a Par add for an out; None if that is neither some numbers nor a row."""
    uses, acc = Counter(mentions(par.body)), made.out.acc
    binds = {bind.vars[0]: bind.rhs for bind in par.body.binds if len(bind.vars) == 1}
    at, found = made.value, list[Addition]()
    while acc is not None and at != acc:
        rhs = binds.get(at) if isinstance(at, f.Var) and uses[at.name] == 1 else None
        one = _one(made, at, rhs) if isinstance(at, f.Var) and rhs is not None else None
        if one is None or rhs is None or len(found) == MOST_NUMBERS:
            return None
        found.append(one)
        at = rhs.args[0] if isinstance(rhs, f.Op) else _target(rhs)
    if acc is None or not found or uses[acc.name] != 1:
        return None
    found.reverse()
    return found[0] if len(found) == 1 else _several(found)


def _several(found: list[Addition]) -> Addition | None:
    """Additions of numbers, one after the other."""
    if any(one.kept or one.row for one in found):
        return None
    places = tuple([place for one in found for place in one.places])
    values = tuple([value for one in found for value in one.values])
    gone = tuple([x for one in found for x in one.gone])
    return Addition(found[0].made, gone, places, values)


def _target(rhs: f.Rhs) -> f.Atom | None:
    """What a Par inside of the points adds to, if it does nothing else."""
    match rhs:
        case f.Par(outs=(f.Out("add", _, target, f.Var()),)):
            return target
        case _:
            return None


def _one(made: Made, var: f.Var, rhs: f.Rhs) -> Addition | None:
    """The addition that gives a variable."""
    match rhs:
        case f.Op("acc_index"):
            return _at(made, var, rhs)
        case f.Par(space, body, (f.Out("add", _, _, f.Var() as inner),)):
            last = body.binds[-1] if body.binds else None
            if last is None or last.vars != body.results or not isinstance(last.rhs, f.Op):
                return None
            if Counter(mentions(body))[inner.name] != 1 or last.rhs.op != "acc_index" or last.rhs.args[0] != inner:
                return None
            one = _at(made, var, last.rhs)
            return one and _row(one, rhs, tuple([i for i, _ in space]))
        case _:
            return None


def _at(made: Made, var: f.Var, op: f.Op) -> Addition | None:
    _, value, *rest = op.args
    rank = rank_of(var.ty)
    place = tuple(rest[rank:])
    fine = op.attr("rank") == rank == len(place) + rank_of(value.ty) and place
    return Addition(made, (var,), (place,), (value,)) if fine else None


def _row(one: Addition, par: f.Par, indices: tuple[f.Var, ...]) -> Addition | None:
    """The addition of a row, if the last indices of each place are those of an inner Par."""
    (at,), (value,) = one.places, one.values
    place, rest = at[: -len(indices)], at[-len(indices) :]
    own = set[f.Atom](bound_inside(par))
    if rank_of(value.ty) or rest != indices or not place or own.intersection(place):
        return None
    row = f.Var(f"{one.gone[0].name}'row", f.Arr(value.ty, len(indices)))
    body = f.Block(par.body.binds[:-1], (value,))
    return Addition(one.made, one.gone, (place,), (row,), replace(par, body=body, outs=(f.Out("keep"),)))


class SortedAdds:
    """Such a Par, as Pars."""

    def __init__(self, par: f.Par, additions: dict[int, Addition], supply: f.Supply) -> None:
        self.old, self.additions, self.supply = par, additions, supply
        self.b = Builder(supply)
        self.b.span = par.span

    def binds(self, bind: f.Bind, devices: Devices) -> list[f.Bind]:
        """The bindings in place of the Par; none if a device cannot do them."""
        b, old = self.b, self.old
        self.points = product(b, [count for _, count in old.space])
        tests = self.left_alone()
        par, types = self.terms(bind)
        if devices.why_not(par):
            return []
        done, *made = unless(b, tests, par, types)
        with b.inside() as inner:
            rest, left = len(old.outs) - len(self.additions), iter(made)
            results = {k: next(left) for k in range(len(bind.vars)) if k not in self.additions}
            pairs = made[rest:]
            for (k, one), keys, values in zip(self.additions.items(), pairs[::2], pairs[1::2], strict=True):
                results[k] = self.sums(one, keys, values)
            there = block_of(inner, [results[k] for k in range(len(bind.vars))])
        return unless_done(b, done, there, [f.Bind(bind.vars, old)], devices)

    def dim(self, dim: Dim) -> f.Atom:
        return self.b.op("dim", (dim[0],), k=dim[1]) if isinstance(dim, tuple) else dim

    def left_alone(self) -> list[f.Var]:
        """Tests whether the Par stays: what it adds to is small, missing, or has too many places for a key."""
        b, tests = self.b, list[f.Var]()
        if not isinstance(self.points, f.Const):
            most = MOST_KEYS // max(one.count for one in self.additions.values())
            tests += [b.op("le", (self.points, integer(0))), b.op("gt", (self.points, integer(most)))]
        small: f.Var | None = None
        for one in self.additions.values():
            if isinstance(one.made.out.target, f.Var):
                tests.append(b.op("is_null", (one.made.out.target,)))
            size = product(b, [self.dim(dim) for dim in one.made.dims])
            tests.append(b.op("gt", (size, integer(MOST_KEYS))))
            this = b.op("le", (size, integer(MOST)))
            small = this if small is None else b.op("and", (small, this))
        assert small is not None
        return [small, *tests]

    def terms(self, bind: f.Bind) -> tuple[f.Par, list[f.Type]]:
        """The Par that gives keys and values in place of what it adds."""
        b, old, gone = self.b, self.old, {var: one for one in self.additions.values() for var in one.gone}
        others = [k for k in range(len(old.outs)) if k not in self.additions]
        space = tuple([(b.var(i.name, f.I64), count) for i, count in old.space])
        copier = Copier(self.supply, {i.name: new for (i, _), (new, _) in zip(old.space, space, strict=True)})
        binds: list[f.Bind] = []
        for bound in old.body.binds:
            one = gone.get(bound.vars[0]) if len(bound.vars) == 1 else None
            if one is None:
                binds.append(bound)
            elif one.row is not None and isinstance(row := one.values[0], f.Var):
                binds.append(f.Bind((row,), one.row))
        with b.inside() as points:
            b.binds += copier.binds(tuple(binds))
            point = self.row_major([i for i, _ in space], [count for _, count in space])
            results = [f.Const(True, f.BOOL), *[copier.atom(old.body.results[k]) for k in others]]
            for one in self.additions.values():
                keys = self.keys(one, point, [copier.operands(place) for place in one.places])
                results += [self.row(keys), self.row(copier.operands(one.values))]
            body = block_of(points, results)
        outs = [old.outs[k] for k in others]
        types: list[f.Type] = [f.BOOL, *[bind.vars[k].ty for k in others]]
        for one in self.additions.values():
            types.append(f.Arr(f.I64, len(space) + (one.count > 1)))
            types.append(f.Arr(elem_of(one.values[0].ty), len(space) + one.kept))
        pairs = [f.Out("keep") for _ in range(2 * len(self.additions))]
        return f.Par(space, body, (f.Out("done"), *outs, *pairs), old.span), types

    def numbers(self, one: Addition) -> f.Atom:
        """How many numbers, or rows, are added."""
        return self.points if one.count == 1 else self.b.op("mul", (self.points, integer(one.count)))

    def keys(self, one: Addition, point: f.Atom, places: list[tuple[f.Atom, ...]]) -> list[f.Atom]:
        """The keys of a point: by place, then by the order in which the points add."""
        b, dims, made = self.b, [self.dim(dim) for dim in one.made.dims], list[f.Atom]()
        for k, place in enumerate(places):
            first = b.op("mul", (self.row_major(place, dims), self.numbers(one)))
            number = point if one.count == 1 else b.op("add", (b.op("mul", (point, integer(one.count))), integer(k)))
            made.append(b.op("add", (first, number)))
        return made

    def row(self, atoms: Sequence[f.Atom]) -> f.Atom:
        return atoms[0] if len(atoms) == 1 else self.b.op("array", atoms)

    def row_major(self, indices: Sequence[f.Atom], counts: Sequence[f.Atom]) -> f.Atom:
        """The number of an element, by its indices."""
        number = indices[0]
        for i, count in zip(indices[1:], counts[1:], strict=False):
            number = self.b.op("add", (self.b.op("mul", (number, count)), i))
        return number

    # ---- sums

    def sums(self, one: Addition, keys: f.Var, values: f.Var) -> f.Var:
        """The array with all that is added to it."""
        b, count, outer = self.b, self.numbers(one), len(self.old.space)
        lengths = [b.op("dim", (values,), k=outer + k) for k in range(one.kept)] if one.count == 1 else []
        if rank_of(keys.ty) > 1:
            keys = b.op("reshape", (keys, count), unchecked=True)
            values = b.op("reshape", (values, count, *lengths), unchecked=True)
        keys = b.call(SORTED, (keys,), keys.ty)
        dims = [self.dim(dim) for dim in one.made.dims]
        at = [b.var("p", f.I64) for _ in dims]
        with b.inside() as inner:
            target = one.made.out.target
            has = isinstance(target, f.Var)
            zero = f.Const(0.0 if f.is_float(elem_of(values.ty)) else 0, elem_of(values.ty))
            old = b.op("index", (target, *at), unchecked=True) if has else zero
            rank = len(one.places[0])
            rows = at[rank:]
            first = b.op("mul", (self.row_major(at[:rank], dims), count))
            inside = [b.op("lt", pair) for pair in zip(rows, lengths, strict=True)]
            total = self.total(keys, values, (first, count), rows, inside, old)
            body = block_of(inner, (total,))
        out = f.Out("keep", target=target if has else None)
        return b.one(f.Par(tuple(zip(at, dims, strict=True)), body, (out,), b.span), f.Arr(old.ty, len(dims)), "sums")

    def total(
        self, keys: f.Var, values: f.Var, found: tuple[f.Var, f.Atom], rows: list[f.Var], inside: list[f.Var],
        old: f.Atom,
    ) -> f.Var:  # fmt: skip
        """What was there, with the values whose keys are from `first` on, in order: `count` at most."""
        b, (first, count) = self.b, found
        last = b.op("sub", (count, integer(1)))
        start = bisect(b, integer(0), count, lambda j: b.op("lt", (b.op("index", (keys, j), unchecked=True), first)))
        state = (b.var("s", old.ty), b.var("j", f.I64))

        def key(j: f.Var) -> f.Var:
            return b.op("sub", (b.op("index", (keys, b.op("min", (j, last))), unchecked=True), first))

        with b.inside() as binds:
            more = b.op("and", (b.op("lt", (state[1], count)), b.op("lt", (key(state[1]), count))))
            for test in inside:
                more = b.op("and", (more, test))
            cond = block_of(binds, (more,))
        with b.inside() as binds:
            value = b.op("index", (values, key(state[1]), *rows), unchecked=True)
            after = (b.op("add", (state[0], value)), b.op("add", (state[1], integer(1))))
            body = block_of(binds, after)
        return b.bind(f.While(state, (old, start), cond, body), (old.ty, f.I64), "s")[0]
