"""Points that read an array in merged dimensions have the dimensions of the array itself (delinearisation).

    a = par i < n, j < m to keep { ... }           a = par i < n, j < m to keep { ... }
    v = reshape a l                                d = par i < n, j < m to keep in a {
    b = par k < l to keep in v {            =>       x = index a i j
      x = index v k; y = index w k                   t = mul i m; k = add t j; y = index w k
      ...; yield z }                                 ...; yield z }
    c = reshape b n m                              b = reshape d l

So they can be joined with the points that make the array.  Likewise points that make an array of which later points
read a view in finer dimensions.  The order of the points, row by row, stays the same, so does each sum of them.  A view
of a view in the dimensions that the array has is the array: `c` is `d`.  Equal products of lengths are one number, so
that equal spaces are known to be equal.

The processor's loops over merged dimensions are longer, so points become finer for a device only, which finds the
indices of each point from its number in any case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.copy import Renamed
from dplc.flat.dims import dims_of
from dplc.flat.ops.row import Dim
from dplc.flat.types import elem_of, of_rank, rank_of
from dplc.flat.walk import every, mentions, own_reads, with_body, with_rhs
from dplc.narrow import expect_type
from dplc.passes.simplify.dead_code import drop_unused

Length = tuple[int, frozenset[tuple[object, int]]]  # a number, times other lengths with exponents
MANY = 8  # factors of a product that are told apart


def finer_points(fn: f.Fn, supply: f.Supply, device: bool) -> f.Fn:
    """The function; one without views is given back."""
    if not any(isinstance(bind.rhs, f.Op) and bind.rhs.op == "reshape" for bind in every(fn.body)):
        return fn
    return with_body(fn, _Views(fn.body, supply, device).block(fn.body))


class _Views(Renamed):
    """One function; `views` has the arrays that views are of, `shapes` the dimensions of new arrays."""

    def __init__(self, body: f.Block, supply: f.Supply, device: bool) -> None:
        super().__init__({})
        self.supply, self.device = supply, device
        self.dims = dims_of(body)
        self.products: dict[str, Length] = {}
        self.numbers: dict[Length, f.Var] = {}  # the products that are there
        self.views: dict[str, f.Var] = {}
        self.shapes: dict[str, list[f.Atom]] = {}
        self.kept: set[str] = set()  # what Pars of the block have made

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        made: list[f.Bind] = []
        outside = dict(self.numbers), self.kept
        self.kept = set()
        for bind in binds:
            bind = with_rhs(bind, self.rhs(bind.rhs))
            match bind.rhs:
                case f.Op("mul", factors, ()) if bind.vars[0].ty == f.I64:
                    product = self.length(factors)
                    same = self.numbers.setdefault(product, bind.vars[0])
                    if same is not bind.vars[0]:
                        self.atoms[bind.vars[0].name] = same
                        continue
                    if len(product[1]) <= MANY:
                        self.products[bind.vars[0].name] = product
                    made.append(bind)
                case f.Op("reshape", (f.Var() as array, *lengths)) as op if op.attr("unchecked"):
                    if self.is_whole(bind.vars[0], self.views.get(array.name, array), lengths):
                        continue
                    made.append(bind)
                case f.Par() as par:
                    self.finer(made, with_rhs(bind, overwriting(par)))
                case _:
                    made.append(bind)
        self.numbers, self.kept = outside
        return tuple(made)

    def is_whole(self, view: f.Var, array: f.Var, lengths: Sequence[f.Atom]) -> bool:
        """Notes what a view is of.  Returns True if it has the dimensions of that: then it stands for it."""
        self.views[view.name] = array
        if [self.length([n]) for n in lengths] != [self.length([n]) for n in self.shape(array)]:
            return False
        self.atoms[view.name] = array
        return True

    def shape(self, array: f.Var) -> Sequence[Dim | None]:
        return self.shapes.get(array.name) or [self.now(self.dims.of(array, k)) for k in range(rank_of(array.ty))]

    def now(self, dim: Dim | None) -> Dim | None:
        """A dimension of the code as it was, by the variable that stands for it."""
        return self.atom(dim) if isinstance(dim, f.Var) else dim

    def length(self, factors: Sequence[Dim | None]) -> Length:
        """The product of lengths, as numbers wrap: what is equal for equal products."""
        number, others = 1, Counter[object]()
        for dim in [self.now(self.dims.read(factor)) for factor in factors]:
            if isinstance(dim, f.Const) and isinstance(dim.value, int):
                number = number * dim.value % 2**64
            elif isinstance(dim, f.Var) and dim.name in self.products:
                known, more = self.products[dim.name]
                number = number * known % 2**64
                others.update(dict(more))
            else:
                others[dim] += 1
        return number, frozenset(others.items())

    # ---- points

    def finer(self, made: list[f.Bind], bind: f.Bind) -> None:
        """Adds a Par to a block.  It has the dimensions of an array that a Par of this block has kept, if it reads a
        view of it at its own points; and what it reads at its points is made in its dimensions."""
        par = expect_type(f.Par, bind.rhs)
        binds = [bind]
        if self.device and not par.ordered:
            seen = {name: self.views[name] for name in self.read(par) if name in self.views}
            shapes = (self.shape(array) for array in seen.values() if array.name in self.kept)
            shape = next((shape for shape in shapes if is_plain(par) and self.groups(par, shape)), None)
            if shape is not None:
                binds = self.over(made, bind, par, self.known(shape))
            else:
                counts = [count for _, count in par.space]
                found = {view: self.made_finer(made, array.name, counts) for view, array in seen.items()}
                self.atoms |= {view: array for view, array in found.items() if array is not None}
                binds = [with_rhs(bind, overwriting(expect_type(f.Par, self.rhs(par))))]
        made += binds
        self.kept |= kept_by(binds[0])

    def read(self, par: f.Par) -> list[str]:
        """The arrays of which a Par reads numbers at its own points."""
        reads = own_reads(par.body, tuple([index for index, _ in par.space]))
        return [array.name for array, _ in reads if rank_of(array.ty) == len(par.space)]

    def known(self, shape: Sequence[Dim | None]) -> list[f.Atom]:
        return [n for n in shape if isinstance(n, f.Var | f.Const)]

    def groups(self, par: f.Par, shape: Sequence[Dim | None]) -> list[list[f.Atom]]:
        """Some dimensions by those of the space that they make together; nothing if they do not, or if these are the
        same."""
        left = self.known(shape)
        if len(left) != len(shape) or len(left) <= len(par.space):
            return []
        groups: list[list[f.Atom]] = []
        for _, count in par.space:
            some = 1
            while some < len(left) and self.length(left[:some]) != self.length([count]):
                some += 1
            groups.append(left[:some])
            left = left[some:]
        fit = [self.length(group) == self.length([n]) for group, (_, n) in zip(groups, par.space, strict=True)]
        return groups if all(fit) and not left else []

    def made_finer(self, made: list[f.Bind], name: str, counts: list[f.Atom]) -> f.Var | None:
        """Makes an array that a Par of the block keeps in finer dimensions; None if that cannot be."""
        at = next((at for at, bind in enumerate(made) if any(var.name == name for var in bind.vars)), len(made))
        maker = made[at].rhs if at < len(made) else None
        if not isinstance(maker, f.Par) or not is_plain(maker) or not self.groups(maker, counts):
            return None
        if any(var in counts for bind in made[at:] for var in bind.vars):
            return None
        k = [var.name for var in made[at].vars].index(name)
        before = made[:at]
        binds = self.over(before, made[at], maker, counts)
        made[: at + 1] = [*before, *binds]
        self.kept |= kept_by(binds[0])
        return binds[0].vars[k]

    def over(self, made: list[f.Bind], bind: f.Bind, par: f.Par, shape: list[f.Atom]) -> list[f.Bind]:
        """A Par over finer dimensions, and the views of what it keeps.  What it reads at its points is made so, too."""
        for name in self.read(par):
            if name not in self.views:
                self.made_finer(made, name, shape)
        b, known = Builder(self.supply), dict[str, f.Atom]()
        space: list[tuple[f.Var, f.Atom]] = []
        for (index, _), counts in zip(par.space, self.groups(par, shape), strict=True):
            parts = [f.Var(b.supply.fresh(index.name), f.I64) for _ in counts]
            place: f.Atom = parts[0]
            for part, count in zip(parts[1:], counts[1:], strict=True):
                place = b.op("add", (b.op("mul", (place, count)), part))
            known[index.name] = place
            space += zip(parts, counts, strict=True)
        lengths = [self.length([n]) for _, n in space]
        arrays = {name: of for name, of in self.views.items()
                  if [self.length([n]) for n in self.shape(of)] == lengths}  # fmt: skip
        body = _Point(known, arrays, par, [index for index, _ in space]).block(par.body)
        outs = [replace(out, target=arrays.get(out.target.name)) if isinstance(out.target, f.Var) else out
                for out in par.outs]  # fmt: skip
        results = [f.Var(b.supply.fresh(var.name), of_rank(elem_of(var.ty), len(space))) if out.kind == "keep" else var
                   for var, out in zip(bind.vars, par.outs, strict=True)]  # fmt: skip
        body = drop_unused(replace(body, binds=(*b.binds, *body.binds)))
        whole = overwriting(f.Par(tuple(space), body, tuple(outs), par.span))
        return [f.Bind(tuple(results), whole), *self.seen_as(results, bind.vars, par, [n for _, n in space])]

    def seen_as(self, arrays: list[f.Var], views: Sequence[f.Var], par: f.Par, shape: list[f.Atom]) -> list[f.Bind]:
        """Views of arrays over the dimensions of a Par."""
        counts, binds = [n for _, n in par.space], list[f.Bind]()
        for array, view in zip(arrays, views, strict=True):
            if array is not view:
                self.views[view.name], self.shapes[array.name] = array, shape
                binds.append(f.Bind((view,), f.Op("reshape", (array, *counts), (("unchecked", True),), par.span)))
        return binds


def overwriting(par: f.Par) -> f.Par:
    """A Par that overwrites an array, which it may have read under another name, only if it reads it at its own points,
    and once."""
    own = Counter(array.name for array, _ in own_reads(par.body, tuple([index for index, _ in par.space])))
    reads, targets = Counter(mentions(par.body)), set[f.Atom]()
    outs: list[f.Out] = []
    for out in par.outs:
        if out.kind == "keep" and isinstance(target := out.target, f.Var):
            if target in targets or reads[target.name] != own[target.name]:
                out = replace(out, target=None)
            targets.add(target)
        outs.append(out)
    return replace(par, outs=tuple(outs))


def kept_by(bind: f.Bind) -> set[str]:
    outs = expect_type(f.Par, bind.rhs).outs
    return {var.name for var, out in zip(bind.vars, outs, strict=True) if out.kind == "keep" and not out.order}


def is_plain(par: f.Par) -> bool:
    """True for points that keep numbers, or sums of all of them: both are the same in other dimensions."""
    return not par.ordered and all(
        isinstance(result.ty, f.Num) and not out.order
        if out.kind == "keep"
        else out.kind == "fold" and out.rank == 0 and not out.kept
        for out, result in zip(par.outs, par.body.results, strict=True)
    )


class _Point(Renamed):
    """A point that reads `arrays` in place of their views, at its own indices."""

    def __init__(self, known: dict[str, f.Atom], arrays: dict[str, f.Var], par: f.Par, indices: list[f.Var]) -> None:
        super().__init__(known)
        self.arrays, self.indices = arrays, indices
        self.own = (*[index for index, _ in par.space], len(par.space))

    def rhs(self, rhs: f.Rhs) -> f.Rhs:
        match rhs:
            case f.Op("index", (f.Var(name, ty), *at)) if name in self.arrays and (*at, rank_of(ty)) == self.own:
                return replace(rhs, args=(self.arrays[name], *self.indices))
            case _:
                return super().rhs(rhs)
