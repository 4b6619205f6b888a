"""The arrays that the sums of an inverted nest read: copies with zeros around them, in the order of the reads.

What points compute of numbers that they read at one place alone is a number of that place.  It is computed once, before
the sums, which would else compute it for each of their terms (common subexpression elimination across iterations;
Cooper, Eckhardt and Kennedy 2008):

    s = for u < m {                                           d = par i < n to keep { zeros around
      x = index h (p - u); y = index g (p - u)                  x = index h i; y = index g i
      k = gt x 0.0; z = select k y 0.0               =>         k = gt x 0.0; select k y 0.0 }
      w = index v u; mul z w }                                s = for u < m {
                                                                z = index d (p - u); w = index v u; mul z w }

The numbers of a place are not more than what they are computed of, so no more is copied than before.  Where the points
give zero if what they read there is zero, they have to give it, too, if the numbers of the place are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.build import Builder, all_hold, block_of, integer, number_zero
from dplc.flat.copy import Copier
from dplc.flat.walk import names
from dplc.passes.inversion.nests import Loop
from dplc.passes.inversion.sites.solved import Read, Site
from dplc.passes.inversion.sites.zeros import gives_zero
from dplc.passes.simplify.fold import folded

Code = Sequence[tuple[f.Var, f.Op]]
Place = tuple[object, ...]  # what can be compared: the sums of a read's indices
ANYWHERE: Place = ()  # of what no read tells


@node
class Number:
    """A number of a place: what `code` makes of some reads there, or one read if there is none."""

    var: f.Var
    reads: tuple[Read, ...]
    code: Code


@node
class Term:
    """What is added at a site: numbers of places, each read from an array that is prepared, and the other code."""

    site: Site
    reads: list[Read]
    code: Code


def numbers(site: Site, moved: Sequence[str]) -> tuple[list[Number], Code]:
    """The numbers of places that a site adds something of, and the code that is left; `moved` are the indices at which
    arrays are copied anyway."""
    at = places(site)
    made, left = list[Number](), tuple(site.code)
    for place in dict.fromkeys(map(place_of, site.reads)):
        reads = tuple([read for read in site.reads if place_of(read) == place])
        rest, final, others = parted(site, left, at, place)
        few = 0 < len(final) <= sum(read.var.name not in others for read in reads)
        if few and is_point(reads[0], site.loops) and any({index: 1} in reads[0].at for index in moved):
            inside = tuple([(var, op) for var, op in site.code if at[var.name] in (place, ANYWHERE)])
            made += [Number(var, reads, inside) for var in final]
            reads = tuple([read for read in reads if read.var.name in others])
            left = rest
        made += [Number(read.var, (read,), ()) for read in reads]
    for index in moved:
        zeros = {number.var.name for number in made if {index: 1} in number.reads[0].at}
        if site.can_follow(index) and not gives_zero(left, site.added.value, zeros):
            return [Number(read.var, (read,), ()) for read in site.reads], site.code
    return made, left


def places(site: Site) -> dict[str, Place]:
    """Where what each variable is computed of is read, if that is one place; else a place that no other one has."""
    at = {read.var.name: place_of(read) for read in site.reads}
    for var, op in site.code:
        found = {at.get(arg.name, ANYWHERE) for arg in op.args if isinstance(arg, f.Var)} - {ANYWHERE}
        at[var.name] = ANYWHERE if not found else found.pop() if len(found) == 1 else (var.name,)
    return at


def parted(site: Site, code: Code, at: Mapping[str, Place], place: Place) -> tuple[Code, list[f.Var], set[str]]:
    """The code without the numbers of a place, those of them that it uses, and all other names in it.  Conditions are
    computed of these numbers again."""
    rest, final = list[tuple[f.Var, f.Op]](), list[f.Var]()
    wanted = set(names([site.added.value]))
    for var, op in reversed(code):
        if at[var.name] == place and f.is_float(var.ty):
            final += [var] if var.name in wanted else []
        elif at[var.name] != place or var.name in wanted:
            rest.append((var, op))
            wanted.update(names(op.args))
    return rest[::-1], final, wanted


def place_of(read: Read) -> Place:
    return tuple([frozenset(total.items()) for total in read.at])


def is_point(read: Read, loops: Mapping[str, Loop]) -> bool:
    """True if the indices of a read are some of the nest, each once."""
    found = [index for index in loops if {index: 1} in read.at]
    return len(found) == len(read.at)


class Copies:
    """Copies of the arrays that a nest reads, each made once.  `pads` has how many zeros stand before and after them,
    for the indices of which places are sums; what is read at `solved`, the indices that tell a place, is turned so that
    the last one of these is the last."""

    def __init__(
        self, b: Builder, loops: Mapping[str, Loop], solved: Sequence[str], pads: Mapping[str, tuple[f.Atom, f.Atom]]
    ) -> None:  # fmt: skip
        self.b, self.loops, self.solved, self.pads = b, loops, solved, pads
        self.made: dict[object, f.Var] = {}

    def term(self, site: Site) -> Term:
        found, code = numbers(site, tuple(self.pads))
        return Term(site, [self.prepared(one) for one in found], code)

    def prepared(self, number: Number) -> Read:
        """The read of a number, from a copy where it needs one."""
        read = number.reads[0]
        padded = {k: str(index) for k, total in enumerate(read.at) for index in self.pads if total == {index: 1}}
        order = self.order(read)
        if not number.code and not padded and order == tuple(range(len(order))):
            return read
        of = tuple([one.array.name for one in number.reads]), number.var.name if number.code else ""
        key = of, tuple(padded.items()), order
        if key not in self.made:
            self.made[key] = self.copy(number, padded, order)
        return Read(number.var, self.made[key], tuple([read.at[k] for k in order]))

    def order(self, read: Read) -> tuple[int, ...]:
        """The dimensions of a read, the one along the last dimension of the places last."""
        last, every = self.solved[-1], tuple(range(len(read.at)))
        mine = [k for k in every if last in read.at[k]]
        if len(mine) != 1 or read.at[mine[0]] != {last: 1} or set(self.solved) <= read.mentions():
            return every
        return (*[k for k in every if k != mine[0]], mine[0])

    def copy(self, number: Number, padded: Mapping[int, str], order: Sequence[int]) -> f.Var:
        """An array of the numbers of all places, with zeros before and after it in some dimensions."""
        b = self.b
        indices = [b.var("i", f.I64) for _ in number.reads[0].at]
        counts = [self.extent(number, k, padded.get(k)) for k in range(len(indices))]
        with b.inside() as binds:
            at, tests = list[f.Atom](indices), list[f.Atom]()
            for k, index in padded.items():
                at[k] = folded(b, "sub", indices[k], self.pads[index][0])
                tests += [b.op("ge", (at[k], integer(0))), b.op("lt", (at[k], self.loops[index].count))]
            with b.inside() as there:
                value = self.value(number, at)
            if tests:
                arms = block_of(there, (value,)), f.Block((), (number_zero(value.ty),))
                value = b.one(f.If(all_hold(b, tests), *arms), value.ty, "padded")
            else:
                binds += there
        space = tuple([(indices[k], counts[k]) for k in order])
        made = f.Par(space, block_of(binds, (value,)), (f.Out("keep"),))
        return b.one(made, f.Arr(value.ty, len(order)), "padded" if tests else "turned")

    def extent(self, number: Number, k: int, index: str | None) -> f.Atom:
        """How long a copy is in a dimension."""
        b, read = self.b, number.reads[0]
        if index is not None:
            zeros = folded(b, "add", *self.pads[index])
            return folded(b, "max", folded(b, "add", self.loops[index].count, zeros), integer(0))
        if not number.code:
            return b.op("dim", (read.array,), k=k)
        (own,) = read.at[k]
        return folded(b, "max", self.loops[str(own)].count, integer(0))

    def value(self, number: Number, at: Sequence[f.Atom]) -> f.Atom:
        """The number of a place."""
        b = self.b
        known: dict[str, f.Atom] = {}
        for read in number.reads:
            known[read.var.name] = b.op("index", (read.array, *at), unchecked=True)
        copier = Copier(b.supply, known)
        b.binds += copier.binds(tuple([f.Bind((var,), op) for var, op in number.code]))
        return copier.atom(number.var)
