"""Data that many steps walk through: flat -> flat where its numbers are an array, and the data holds their places.

    f(t: tree) = sum [for x in points -> leaf t x]      each point walks from the root to a leaf

    n = count.tree(t, 0)                                how many numbers there are
    (p: tree', values: f64[], _) = ravel.tree(t, zeros n, 0)
    f(t) = sum [for x in points -> values[leaf p x]]    tree' has an int for each f64 of tree

Reverse mode gives each walk a cotangent in the form of data, with a node for each step of the walk, and adds them up
node by node.  At a place of an array it adds at once, and data without numbers has no derivative at all.

It is done for data in the last argument of a function that is pulled back, as the cotangent is as large as all of that
data anyway: to ravel costs no more.  Some loop in a loop must walk from a node to one of several children; loops that
visit all of a list or tree gain nothing.  (JAX's `ravel_pytree` is for all parameters, and leaves no data.)
"""

from __future__ import annotations

from dpl.node import replace

from dplc.ad.stores.places import Ravel
from dplc.flat import term as f
from dplc.flat.build import block_of, integer
from dplc.flat.walk import every, rebuild, unchanged, with_body, with_branches
from dplc.passes.arrays.chosen_elements import differentiated
from dplc.passes.arrays.plain_copies import with_plain_copies


def raveled_data(program: f.Program) -> f.Program:
    pulled = {rhs.fn for fn in program.fns.values() for rhs in (b.rhs for b in every(fn.body))
              if isinstance(rhs, f.Ad) and rhs.mode == "vjp"}  # fmt: skip
    walked = [program.fns[name] for name in program.fns if name in pulled and walks(program.fns[name].body)]
    if not walked:
        return program
    ravel = Ravel(program)
    changed = {fn.name: made for fn in walked if (made := raveled(fn, ravel)) is not fn}
    if not changed:
        return program
    derived = differentiated(program)
    program = replace(program, fns=program.fns | ravel.fns, datas=program.datas | ravel.datas)
    return with_plain_copies(program, changed, derived, ravel.b.supply)


def walks(body: f.Block) -> bool:
    """True if a loop has data for a state."""
    loops = (bind.rhs for bind in every(body) if isinstance(bind.rhs, f.For | f.While))
    return any(isinstance(var.ty, f.Data) for loop in loops for var in loop.state)


def raveled(fn: f.Fn, ravel: Ravel) -> f.Fn:
    """The function with the parts of its last argument raveled for which it pays."""
    for root in roots(fn):
        number = ravel.number(root.ty)
        if number is not None:
            fn = with_body(fn, with_places(fn.body, root, number, ravel))
    return fn


def roots(fn: f.Fn) -> list[f.Var]:
    """The last argument of a function, or its parts, if it is a tuple."""
    found = {fn.params[-1].name: fn.params[-1]}
    for bind in fn.body.binds:
        if isinstance(bind.rhs, f.TupGet) and bind.rhs.tup in found.values():
            found[bind.vars[0].name] = bind.vars[0]
    return [var for var in found.values() if isinstance(var.ty, f.Data)]


def with_places(body: f.Block, root: f.Var, number: f.Num, ravel: Ravel) -> f.Block:
    """The body of a function that reads the numbers of `root` in an array, if this pays."""
    b = ravel.b
    tree, values = b.var(root.name, ravel.type(root.ty)), b.var("values", f.Arr(number, 1))
    reads = _Reads(ravel, root, tree, values)
    try:
        made = reads.plain(body)
    except Elsewhere:
        return body
    if not reads.pays:
        return body
    with b.inside() as binds:
        count = b.call(ravel.counter(root.ty), (root, integer(0)), f.I64, hint="n")
        zeros = b.op("fill", (count, f.Const(0.0, number)))
        call = f.Call(ravel.maker(root.ty, values.ty), (root, zeros, integer(0)))
        b.binds.append(f.Bind((tree, values, b.var("end", f.I64)), call))
    first = next((k + 1 for k, bind in enumerate(made.binds) if root in bind.vars), 0)
    return f.Block((*made.binds[:first], *block_of(binds, ()).binds, *made.binds[first:]), made.results)


class Elsewhere(Exception):
    """The data goes where it cannot be data with places."""


class _Reads:
    """Writes a function that reads data by places.  `now` has the variables of such data under their old names; `depth`
    tells how many loops are around, and `pays` whether one of them walks to one of several children."""

    def __init__(self, ravel: Ravel, root: f.Var, tree: f.Var, values: f.Var) -> None:
        self.ravel, self.b = ravel, ravel.b
        self.root, self.values = root, values
        self.now: dict[str, f.Var] = {root.name: tree}
        self.depth = 0
        self.pays = False

    def placed(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.now

    def read(self, atom: f.Atom) -> f.Atom:
        return self.now.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def whole(self, atom: f.Atom) -> f.Atom:
        """An operand as it is in the old program: the whole data, or something else."""
        if self.placed(atom) and atom != self.root:
            raise Elsewhere
        return atom

    def renamed(self, var: f.Var) -> f.Var:
        """A variable that is data with places from now on."""
        self.now[var.name] = f.Var(var.name, self.ravel.type(var.ty))
        return self.now[var.name]

    def part(self, var: f.Var, binds: list[f.Bind]) -> f.Var:
        """What is bound where `var` was, for a part of data: a place, data with places, or neither."""
        if f.is_float(var.ty):
            place = self.b.var("place", f.I64)
            binds.append(f.Bind((var,), f.Op("index", (self.values, place), (("unchecked", True),))))
            return place
        return self.renamed(var) if self.ravel.holds(var.ty) else var

    def block(self, block: f.Block) -> f.Block:
        """A block whose results may be data with places."""
        binds = list[f.Bind]()
        for bind in block.binds:
            self.bind(bind, binds)
        return f.Block(tuple(binds), block.results)

    def plain(self, block: f.Block) -> f.Block:
        """A block whose results are as they were."""
        made = self.block(block)
        return f.Block(made.binds, tuple(map(self.whole, made.results)))

    def bind(self, bind: f.Bind, out: list[f.Bind]) -> None:
        match bind.rhs:
            case f.TupGet(tup, i) if self.placed(tup):
                after = list[f.Bind]()
                out += [f.Bind((self.part(bind.vars[0], after),), f.TupGet(self.read(tup), i)), *after]
            case f.If(_, then, else_):
                out.append(self.joined(bind, bind.rhs, [then, else_]))
            case f.Switch(scrutinee, cases, default):
                opened = [self.case(case, self.placed(scrutinee)) for case in cases]
                rhs = f.Switch(self.read(scrutinee), tuple(opened), default)
                out.append(self.joined(bind, rhs, [*(c.body for c in opened), *([] if default is None else [default])]))
            case f.For() | f.While() as loop:
                out.append(self.loop(bind, loop))
            case rhs:
                self.depth += 1
                out.append(f.Bind(bind.vars, rebuild(rhs, self.whole, self.plain, unchanged)))
                self.depth -= 1

    def case(self, case: f.Case, placed: bool) -> f.Case:
        if not placed or case.payload is None:
            return case
        first = list[f.Bind]()
        payload = self.part(case.payload, first)
        return f.Case(case.tag, payload, f.Block((*first, *case.body.binds), case.body.results))

    def joined(self, bind: f.Bind, rhs: f.Rhs, arms: list[f.Block]) -> f.Bind:
        """A branch with the arms of the new program: a result is data with places in all of them, or in none."""
        made = [self.block(arm) for arm in arms]
        vars_ = list(bind.vars)
        for k, var in enumerate(bind.vars):
            if any(self.placed(arm.results[k]) and arm.results[k] != self.root for arm in made):
                vars_[k] = self.renamed(var)
                made = [self.with_placed(arm, k) for arm in made]
        return f.Bind(tuple(vars_), with_branches(rhs, made))

    def with_placed(self, arm: f.Block, k: int) -> f.Block:
        """An arm whose result is data with places, or that fails."""
        result, binds = arm.results[k], arm.binds
        if not self.placed(result):
            if not (binds and result in binds[-1].vars and is_failure(binds[-1].rhs)):
                raise Elsewhere
            made = [self.renamed(var) if var == result else var for var in binds[-1].vars]
            binds = (*binds[:-1], f.Bind(tuple(made), binds[-1].rhs))
        return f.Block(binds, (*arm.results[:k], self.read(result), *arm.results[k + 1 :]))

    def loop(self, bind: f.Bind, loop: f.For | f.While) -> f.Bind:
        """A loop; its states that start as data with places must stay so, or all be the whole data."""
        state = tuple([self.renamed(var) if self.placed(init) else var
                       for var, init in zip(loop.state, loop.inits, strict=True)])  # fmt: skip
        test = self.plain(loop.cond) if isinstance(loop, f.While) else None
        self.depth += 1
        body = self.block(loop.body)
        self.depth -= 1
        walked = [self.placed(init) for init in loop.inits]
        results = [self.read(atom) if placed else self.whole(atom)
                   for atom, placed in zip(body.results, [*walked, *[False] * loop.collect], strict=True)]  # fmt: skip
        for var, result, placed in zip(loop.state, body.results, walked, strict=False):
            if placed and not self.placed(result):
                raise Elsewhere
            self.pays |= placed and self.depth > 0 and result != var and self.ravel.branches(var.ty)
        vars_ = [self.renamed(var) if placed else var for var, placed in zip(bind.vars, walked, strict=False)]
        inits = tuple(map(self.read, loop.inits))
        made = f.Block(body.binds, tuple(results))
        rhs: f.Rhs = (
            replace(loop, count=self.whole(loop.count), state=state, inits=inits, body=made)
            if isinstance(loop, f.For)
            else replace(loop, state=state, inits=inits, cond=test, body=made)
        )
        return f.Bind((*vars_, *bind.vars[len(vars_) :]), rhs)


def is_failure(rhs: f.Rhs) -> bool:
    return isinstance(rhs, f.Op) and rhs.op == "fail"
