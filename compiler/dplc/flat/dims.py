"""The dimensions of arrays, as far as they are known from the code.

    b = update a v i                        b has the dimensions of a
    c = matmul b d                          c has dimension 0 of b, that is of a, and dimension 1 of d
    e = fill n c                            e has n, and those of c
    s' = for i < n state (s = e) { t = update s ...; yield t }          s and s' have those of e

A dimension is an atom, or dimension k of an array about which nothing is known.  Loops are assumed to keep the
dimensions of their state; if a step does not, the assumption is dropped.  `known` has lengths of parameters and of the
results of functions (`flat/known_sizes.py`); an array inside of a tuple is named by its path (`parts`).  `fields` has
shapes that are assumed of the items of tuples, and of what constructors hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from dplc.flat import term as f
from dplc.flat.ops.row import Dim
from dplc.flat.ops.table import OPS
from dplc.flat.remembered import remembered
from dplc.flat.types import rank_of
from dplc.flat.walk import BLOCKS, binders, blocks, every

Known = Mapping[tuple[str, int], f.Const]  # (path, dimension) -> its length
NOTHING: Known = {}
Fields = dict[tuple[f.Type, int], tuple[int, ...]]  # the shapes of the arrays that tuples and data of a type hold


DEEP, LONGEST = 6, 1 << 32  # sums of sums, and elements of a slice, that are looked at
ANY = f.Const("any", f.I64)  # the length of what a function got from itself, while its own lengths are guessed


class Dims:
    def __init__(
        self,
        body: f.Block,
        known: Known = NOTHING,
        results: Mapping[str, Known] | None = None,
        fields: Fields | None = None,
    ) -> None:
        self.fields = fields or {}
        self.found: dict[tuple[str, int], Dim] = dict(known)
        self.numbered = {root(name) for name, _ in known}  # the values of whose lengths some are or were known numbers
        self.results = results or {}
        self.varying: set[tuple[str, int]] = set()  # dimensions of states for which an assumption was dropped
        self.measured: dict[str, Dim | None] = {}  # what numbers are that were read as dimensions
        self.body = body
        self.steps: dict[str, tuple[f.Atom, ...]] = {}  # what the steps of a loop keep, by the array of that
        self.variables: dict[str, f.Var] = {}  # what pullbacks are of, by what is kept for them
        self.block(body)

    def of(self, array: f.Atom, k: int) -> Dim | None:
        """Dimension k of an array; None for null, which has no dimensions."""
        if not isinstance(array, f.Var):
            return None
        return self.found.get((array.name, k), (array, k))

    def shape(self, array: f.Atom) -> tuple[int, ...] | None:
        """The dimensions of an array, if all are known numbers."""
        known = [self.of(array, k) for k in range(rank_of(array.ty))]
        numbers = tuple([n.value for n in known if isinstance(n, f.Const) and isinstance(n.value, int)])
        return numbers if numbers and len(numbers) == len(known) else None

    def block(self, block: f.Block) -> None:
        """Reads a block: what it binds, in order."""
        for bind in telling(block):
            READERS[type(bind.rhs)](self, bind.vars, bind.rhs)

    def tuple_got(self, vars_: tuple[f.Var, ...], got: f.TupGet) -> None:
        if isinstance(got.tup, f.Var):
            self.item(path(got.tup.name, got.index), vars_[0])
        if self.fields:
            self.held(vars_[0], got.tup.ty, got.index)

    def tuple_made(self, vars_: tuple[f.Var, ...], made: f.TupMake) -> None:
        for i, item in enumerate(made.items) if self.numbered else ():
            if type(item.ty) is not f.Num:
                self.moved(item.name if isinstance(item, f.Var) else "", item.ty, path(vars_[0].name, i))

    def call(self, vars_: tuple[f.Var, ...], call: f.Call) -> None:
        if known := self.results.get(call.fn):
            self.called(vars_, known)

    def ops(self, vars_: tuple[f.Var, ...], op: f.Op) -> None:
        for var in vars_:
            self.op(var, op)

    def op(self, var: f.Var, op: f.Op) -> None:
        """Reads an operation: its row says the dimensions of the result."""
        if op.op == "dim":
            self.measured[var.name] = self.read(self.of(op.args[0], op.attr("k")))
        if op.op == "index" and isinstance(var.ty, f.Tup) and isinstance(op.args[0], f.Var):
            for i, item in enumerate(self.steps.get(op.args[0].name, ())):
                kept = item.name if isinstance(item, f.Var) else ""
                self.moved(kept, item.ty, path(var.name, i))
                if kept in self.steps:
                    self.steps[path(var.name, i)] = self.steps[kept]
        for k in range(rank := rank_of(var.ty)):
            self.set(var.name, k, OPS[op.op].dims(self.of, op, rank, k))
        if op.op == "slice" and (length := self.length(*op.args[1:])) is not None:
            self.set(var.name, 0, length)

    def item(self, place: str, var: f.Var) -> None:
        """What is taken out of a tuple, at this path: an array of numbers, or what the steps of a loop kept."""
        if self.numbered:
            self.moved(place, var.ty, var.name)
        if place in self.steps:
            self.steps[var.name] = self.steps[place]

    def length(self, first: f.Atom, end: f.Atom) -> Dim | None:
        """How many elements a slice has that ends at a constant distance from where it begins: `6 * g : 6 * g + 6`."""
        terms = Counter[str]()
        self.add(terms, end, 1, DEEP)
        self.add(terms, first, -1, DEEP)
        count = terms.pop("", 0)
        return f.Const(count, f.I64) if 0 <= count < LONGEST and not any(terms.values()) else None

    def add(self, terms: Counter[str], atom: f.Atom, factor: int, depth: int) -> None:
        """Adds a whole number, as a sum of constants and variables with factors."""
        if isinstance(atom, f.Const):
            terms[""] += factor * atom.value if isinstance(atom.value, int) else 0
            return
        match whole_numbers(self.body).get(atom.name) if depth else None:
            case f.Op("add", (a, b)):
                self.add(terms, a, factor, depth - 1)
                self.add(terms, b, factor, depth - 1)
            case f.Op("sub", (a, b)):
                self.add(terms, a, factor, depth - 1)
                self.add(terms, b, -factor, depth - 1)
            case f.Op("mul", (f.Const(int(by)), a)) | f.Op("mul", (a, f.Const(int(by)))):
                self.add(terms, a, factor * by, depth - 1)
            case _:
                terms[atom.name] += factor

    def equal(self, one: Dim | None, other: Dim | None) -> bool:
        """True if two dimensions are known to be one."""
        return self.read(one) == self.read(other)

    def agree(self, one: Dim | None, other: Dim | None) -> bool:
        """True if two dimensions are one, or are guessed to be."""
        return ANY in (one, other) or self.equal(one, other)

    def read(self, dim: Dim | None) -> Dim | None:
        """What a dimension is if it is a number that was read as one."""
        return self.measured.get(dim.name, dim) if isinstance(dim, f.Var) else dim

    def set(self, name: str, k: int, dim: Dim | None) -> None:
        """Notes a dimension, or that it is not known."""
        if dim is None:
            self.found.pop((name, k), None)
            return
        if type(dim) is f.Var and type(known := self.measured.get(dim.name)) is f.Const:
            dim = known
        self.found[(name, k)] = dim
        if type(dim) is f.Const:
            self.numbered.add(root(name))

    def branch(self, results: tuple[f.Var, ...], branch: f.If | f.Switch) -> None:
        """Reads the arms of a branch, then what their results have in common."""
        if self.fields and isinstance(branch, f.Switch):
            for case in branch.cases:
                self.held(case.payload, branch.scrutinee.ty, case.tag)
        for inner in blocks(branch):
            self.block(inner)
        self.met(results, branch)

    def held(self, var: f.Var | None, owner: f.Type, i: int) -> None:
        """What a tuple or a constructor holds has the shape that is assumed of it."""
        if var is not None:
            for k, length in enumerate(self.fields.get((owner, i), ())):
                self.set(var.name, k, f.Const(length, f.I64))

    def called(self, vars_: tuple[f.Var, ...], known: Known) -> None:
        """The results of a function; `known` names them by their numbers."""
        for i, var in enumerate(vars_):
            if not holds_arrays(var.ty):
                continue
            for (there, rank), (here, _) in zip(parts(path("", i), var.ty), parts(var.name, var.ty), strict=True):
                for k in range(rank):
                    if (there, k) in known:
                        self.set(here, k, known[there, k])

    def derivative(self, vars_: tuple[f.Var, ...], ad: f.Ad) -> None:
        """What is differentiated gives what it gives otherwise, which its tangent is like; a cotangent is like the
        variable."""
        if ad.mode == "pullback":
            x = self.variables.get(ad.args[0].name) if isinstance(ad.args[0], f.Var) else None
            self.moved(x.name if x else "", vars_[0].ty, vars_[0].name)
            return
        if ad.mode == "vjp" and isinstance(ad.args[-1], f.Var):
            self.variables[vars_[1].name] = ad.args[-1]
        self.called(vars_[:1], self.results.get(ad.fn, {}))
        if ad.mode == "jvp":
            self.moved(vars_[0].name, vars_[1].ty, vars_[1].name)

    def moved(self, source: str, ty: f.Type, name: str) -> None:
        """Gives the numbers known of a value, or of the parts of a tuple, to the value of that name, and no others: the
        body of a loop may have been seen before, under an assumption that was dropped."""
        if not holds_arrays(ty) or self.numbered.isdisjoint((root(source), root(name))):
            return
        for (old, rank), (new, _) in zip(parts(source, ty), parts(name, ty), strict=True):
            for k in range(rank):
                known = self.found.get((old, k))
                self.set(new, k, known if isinstance(known, f.Const) else None)

    def par(self, vars_: tuple[f.Var, ...], par: f.Par) -> None:
        self.block(par.body)
        counts = [count for _, count in par.space]
        for var, out, result in zip(vars_, par.outs, par.body.results, strict=True):
            for k in range(rank_of(var.ty)):
                self.set(var.name, k, self.collected(out, counts, result, rank_of(var.ty), k))

    def collected(self, out: f.Out, counts: list[f.Atom], result: f.Atom, rank: int, k: int) -> Dim | None:
        """Dimension k of the array that a Par makes of one result."""
        if out.order:
            return out.ordered([*counts, *out.inner])[k]
        if out.kind == "keep" and k < len(counts):
            return counts[k]
        if out.kind == "fold" and rank == out.rank:
            return counts[k - rank]
        if isinstance(out.target, f.Var):
            return self.of(out.target, k)
        if out.kind in ("keep", "add"):
            return self.inner(result, counts, out.inner, k - (len(counts) if out.kind == "keep" else 0))
        return None

    def build(self, vars_: tuple[f.Var, ...], build: f.Build) -> None:
        self.block(build.body)
        for i, var in enumerate(vars_):
            told = build.inner[i] if build.inner else ()
            for k in range(rank_of(var.ty)):
                dim = self.inner(build.body.results[i], [build.count], told, k - 1) if k else build.count
                self.set(var.name, k, dim)

    def map(self, vars_: tuple[f.Var, ...], mapped: f.Map) -> None:
        self.block(mapped.body)
        for var in vars_:
            for k in range(rank_of(var.ty)):
                self.set(var.name, k, self.lifted(mapped.inputs, rank_of(var.ty) - k))

    def lifted(self, inputs: Sequence[f.Atom], last: int) -> Dim | None:
        """The dimension that is number `last` from the end, of what elementwise operations make of these inputs."""
        having = sorted([a for a in inputs if rank_of(a.ty) >= last], key=lambda a: -rank_of(a.ty))
        dims = [self.of(a, rank_of(a.ty) - last) for a in having]
        guess = ANY if ANY in dims else dims[0]
        return next((dim for dim in dims if isinstance(dim, f.Const) and dim != ANY), guess)

    def met(self, results: Sequence[f.Var], branch: f.If | f.Switch) -> None:
        """The dimensions of the results of branches, where these agree."""
        if all(isinstance(var.ty, f.Num) for var in results):
            return
        arms, own = [arm for arm in blocks(branch) if not fails(arm)], names_inside(branch)
        for i, var in enumerate(results):
            for k in range(rank_of(var.ty)):
                dim = self.agreed([self.of(arm.results[i], k) for arm in arms])
                self.set(var.name, k, None if inside(dim, own) else dim)
            if isinstance(var.ty, f.Tup):
                self.chosen(var, [arm.results[i] for arm in arms])

    def agreed(self, dims: Sequence[Dim | None]) -> Dim | None:
        """What several dimensions are, if they are one."""
        first, *rest = [dim for dim in dims if dim != ANY] or dims or [None]
        return first if all(self.equal(dim, first) for dim in rest) else None

    def chosen(self, var: f.Var, sources: Sequence[f.Atom]) -> None:
        """The numbers known of the arrays in a tuple that is one of several, where these agree."""
        if not self.numbered:
            return
        names = [source.name if isinstance(source, f.Var) else "" for source in sources]
        for whole, *pieces in zip(*[parts(name, var.ty) for name in (var.name, *names)], strict=True):
            for k in range(whole[1]):
                dim = self.agreed([self.found.get((at, k)) for at, _ in pieces])
                self.set(whole[0], k, dim if isinstance(dim, f.Const) else None)

    def inner(self, element: f.Atom, counts: Sequence[f.Atom], told: Sequence[f.Atom], k: int) -> Dim | None:
        """Dimension k of the elements of a comprehension, if it is the same where there are no elements: then it is
        the one that was told."""
        known, without = self.of(element, k), told[k] if told else None
        some = all(isinstance(n, f.Const) and isinstance(n.value, int) and n.value > 0 for n in counts)
        if without is not None and self.agree(without, known):
            return without
        return known if some and isinstance(known, f.Const) else None

    def loop(self, vars_: tuple[f.Var, ...], loop: f.For | f.While) -> None:
        """Reads a loop: a state keeps the dimensions that each step leaves as they are.  This is an optimistic
        fixpoint.
        """
        keys = [
            (i, k) for i, s in enumerate(loop.state) for k in range(rank_of(s.ty)) if isinstance(loop.inits[i], f.Var)
        ]
        keys = [key for key in keys if (loop.state[key[0]].name, key[1]) not in self.varying]
        while True:
            for i, k in keys:
                self.set(loop.state[i].name, k, self.of(loop.inits[i], k))
            for inner in blocks(loop):
                self.block(inner)
            kept = [(i, k) for i, k in keys if self.agree(self.of(loop.body.results[i], k), self.of(loop.inits[i], k))]
            if kept == keys:
                break
            for i, k in keys:
                self.set(loop.state[i].name, k, None)
            self.varying |= {(loop.state[i].name, k) for i, k in keys if (i, k) not in kept}
            keys = kept
        for i, var in enumerate(vars_[: len(loop.state)]):
            for k in range(rank_of(var.ty)):
                self.set(var.name, k, self.of(loop.inits[i], k) if (i, k) in keys else None)
        if len(vars_) > len(loop.state):
            self.steps[vars_[-1].name] = loop.body.results[len(loop.state) :]


READERS: dict[type, Callable[[Dims, tuple[f.Var, ...], Any], None]] = {
    f.Op: Dims.ops,
    f.TupGet: Dims.tuple_got,
    f.TupMake: Dims.tuple_made,
    f.For: Dims.loop,
    f.While: Dims.loop,
    f.Call: Dims.call,
    f.Ad: Dims.derivative,
    f.If: Dims.branch,
    f.Switch: Dims.branch,
    f.Par: Dims.par,
    f.Build: Dims.build,
    f.Map: Dims.map,
}


@remembered
def dims_of(body: f.Block) -> Dims:
    """The dimensions of the arrays of a function with this body."""
    return Dims(body)


@remembered
def whole_numbers(body: f.Block) -> dict[str, f.Op]:
    """What whole numbers are made of."""
    return {bind.vars[0].name: bind.rhs for bind in every(body)
            if isinstance(bind.rhs, f.Op) and [var.ty for var in bind.vars] == [f.I64]}  # fmt: skip


@remembered
def telling(block: f.Block) -> list[f.Bind]:
    """The bindings of a block that tell of dimensions.  Most work on numbers; `Dims` sees a block again and again."""
    return [bind for bind in block.binds if tells(bind)]


def tells(bind: f.Bind) -> bool:
    for var in bind.vars:
        if type(var.ty) is not f.Num and holds_arrays(var.ty):  # most are numbers
            return True
    rhs = bind.rhs
    if isinstance(rhs, f.Op):
        return rhs.op == "dim"
    if type(rhs) not in BLOCKS:
        return isinstance(rhs, f.Ad)
    return any(holds_arrays(var.ty) for var in binders(rhs)) or any(map(telling, blocks(rhs)))


def holds_arrays(ty: f.Type) -> bool:
    """True if a value is an array, or a tuple that holds one."""
    if type(ty) is f.Tup:
        return any(map(holds_arrays, ty.items))
    return type(ty) is f.Arr


def fails(arm: f.Block) -> bool:
    """True if an arm of a branch never comes to its end."""
    return any(isinstance(bind.rhs, f.Op) and bind.rhs.op == "fail" for bind in arm.binds)


def names_inside(rhs: f.Rhs) -> set[str]:
    """The names of the variables that a right-hand side and its blocks bind; not what is bound deeper."""
    return {var.name for var in binders(rhs)}.union(*map(names_in, blocks(rhs)))


def is_outside(atom: f.Atom, rhs: f.Rhs) -> bool:
    """True if a right-hand side does not bind an atom: not for its blocks, and not in them."""
    if not isinstance(atom, f.Var):
        return True
    return not any(atom.name in names_in(b) for b in blocks(rhs)) and all(v.name != atom.name for v in binders(rhs))


@remembered
def names_in(block: f.Block) -> set[str]:
    """The names of the variables that a block binds; not what is bound deeper.  A branch may have hundreds of results,
    each of which asks."""
    return {var.name for bind in block.binds for var in bind.vars}


def inside(dim: Dim | None, names: Container[str]) -> bool:
    """True if a dimension depends on a variable with one of these names."""
    var = dim[0] if isinstance(dim, tuple) else dim
    return isinstance(var, f.Var) and var.name in names


def path(name: str, i: int) -> str:
    return f"{name}#{i}"


def root(path: str) -> str:
    """The value that has the part with this path."""
    return path.partition("#")[0] if "#" in path else path


def parts(name: str, ty: f.Type) -> list[tuple[str, int]]:
    """The paths and ranks of the arrays that a value is, or that a tuple holds."""
    if type(ty) is f.Arr:
        return [(name, ty.rank)]
    if type(ty) is not f.Tup:
        return []
    return [part for i, item in enumerate(ty.items) if type(item) is not f.Num for part in parts(path(name, i), item)]
