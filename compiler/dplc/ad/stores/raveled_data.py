"""Data that many steps walk through: flat -> flat where its numbers are an array, and the data holds their places.

    f(t: tree) = sum [for x in points -> leaf t x]      each point walks from the root to a leaf

    n = count.tree(t, 0)                                how many numbers there are
    (p: tree', values: f64[], _) = ravel.tree(t, zeros n, 0)
    f(t) = sum [for x in points -> values[leaf p x]]    tree' has an int for each f64 of tree

Reverse mode gives each walk a cotangent in the form of data, with a node for each step of the walk, and adds them up
node by node.  At a place of an array it adds at once, and data without numbers has no derivative at all.

It is done for data in the last argument of a function that is pulled back, as the cotangent is as large as all of that
data anyway: to ravel costs no more.  A loop in a loop must walk through a part of it: from a node to one of
several children, or along a list that it may leave before the end, with what it has found in an option or a tuple.
What visits all of a list or tree gains nothing.  (JAX's `ravel_pytree` is for all parameters, and leaves no data.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.node import replace

from dplc.ad.stores.places import Ravel, parts_of
from dplc.flat import term as f
from dplc.flat.build import block_of, integer
from dplc.flat.walk import blocks, every, names, rebuild, unchanged, with_body, with_branches
from dplc.passes.arrays.plain_copies import with_plain_copies
from dplc.passes.simplify.callers import differentiated, reachable


def raveled_data(program: f.Program) -> f.Program:
    pulled = {rhs.fn for fn in program.fns.values() for rhs in rhs_of(fn.body)
              if isinstance(rhs, f.Ad) and rhs.mode == "vjp"}  # fmt: skip
    walked = [program.fns[name] for name in program.fns if name in pulled and name not in program.rules]
    if not walked:
        return program
    ravel = Ravel(program)
    copies = _Copies(program, ravel)
    changed = {fn.name: made for fn in walked if (made := raveled(fn, copies)) is not fn}
    if not changed:
        return program
    needed = reachable(program, program.fns | ravel.fns | changed)
    more = {name: fn for name, fn in ravel.fns.items() if name in needed}
    derived = differentiated(program)
    program = replace(program, fns=program.fns | more, datas=program.datas | ravel.datas)
    return with_plain_copies(program, changed, derived, ravel.b.supply)


def rhs_of(block: f.Block) -> Iterator[f.Rhs]:
    return (bind.rhs for bind in every(block))


def raveled(fn: f.Fn, copies: _Copies) -> f.Fn:
    """The function with the parts of its last argument raveled for which it pays."""
    for root in roots(fn):
        number = copies.ravel.number(root.ty)
        if number is not None:
            fn = with_body(fn, with_places(fn.body, root, number, copies))
    return fn


def roots(fn: f.Fn) -> list[f.Var]:
    """The last argument of a function, or its parts, if it is a tuple."""
    found = {fn.params[-1].name: fn.params[-1]}
    for bind in fn.body.binds:
        if isinstance(bind.rhs, f.TupGet) and bind.rhs.tup in found.values():
            found[bind.vars[0].name] = bind.vars[0]
    return [var for var in found.values() if isinstance(var.ty, f.Data)]


def with_places(body: f.Block, root: f.Var, number: f.Num, copies: _Copies) -> f.Block:
    """The body of a function that reads the numbers of `root` in an array, if this pays."""
    ravel, b = copies.ravel, copies.ravel.b
    tree, values = b.var(root.name, ravel.type(root.ty)), b.var("values", f.Arr(number, 1))
    reads = _Reads(copies, values, {root.name: tree}, root)
    try:
        made = reads.plain(body)
    except Elsewhere:
        return body
    if reads.walks < 1:
        return body
    with b.inside() as binds:
        count = b.call(ravel.counter(root.ty), (root, integer(0)), f.I64, hint="n")
        zeros = b.op("fill", (count, f.Const(0.0, number)))
        call = f.Call(ravel.maker(root.ty, values.ty), (root, zeros, integer(0)))
        b.binds.append(f.Bind((tree, values, b.var("end", f.I64)), call))
    first = next((k + 1 for k, bind in enumerate(made.binds) if root in bind.vars), 0)
    return f.Block((*made.binds[:first], *block_of(binds, ()).binds, *made.binds[first:]), made.results)


NEVER = -1000  # loops around what does not walk


class Elsewhere(Exception):
    """The data goes where it cannot be data with places."""


class _Copies:
    """Copies of functions that take data with places for some arguments.  `walks` tells how many loops are
    around what goes from node to node in each."""

    def __init__(self, program: f.Program, ravel: Ravel) -> None:
        self.ravel = ravel
        special = program.rules.keys() | program.checkpoints
        self.old = {name: fn for name, fn in program.fns.items() if name not in special}
        self.names: dict[tuple[str, tuple[bool, ...]], str] = {}
        self.walks: dict[str, int] = {}

    def copy(self, name: str, placed: tuple[bool, ...], values: f.Type) -> str:
        """The name of the copy; raises Elsewhere if there is none."""
        known = self.names.get((name, placed))
        if known is not None:
            return known
        before = dict(self.names), dict(self.ravel.fns)
        try:
            return self.written(name, placed, values)
        except Elsewhere:
            self.names, self.ravel.fns = before  # what was written meanwhile may call this one
            raise

    def written(self, name: str, placed: tuple[bool, ...], values: f.Type) -> str:
        if name not in self.old:
            raise Elsewhere
        fn, b = self.old[name], self.ravel.b
        new = self.names[name, placed] = b.supply.fresh(name)
        array = b.var("values", values)
        reads = _Reads(self, array, {}, None)
        params = tuple([reads.renamed(p) if is_placed else p for p, is_placed in zip(fn.params, placed, strict=True)])
        body = reads.plain(fn.body)
        walked = (param.ty for param, is_placed in zip(fn.params, placed, strict=True) if is_placed)
        onward = [a for rhs in rhs_of(body) if isinstance(rhs, f.Call) and rhs.fn == new for a in rhs.args]
        if calls_on_a_path(body, new) == 1 and any(map(self.ravel.branches, walked)) and several(body, onward):
            reads.walked(0)
        self.walks[new] = reads.walks
        self.ravel.fns[new] = replace(fn, name=new, params=(*params, array), body=body)
        return new


def calls_on_a_path(block: f.Block, name: str) -> int:
    """How many calls of a function are on one path through a block, at most; those in loops count twice."""
    total = 0
    for bind in block.binds:
        inner = [calls_on_a_path(one, name) for one in blocks(bind.rhs)]
        if isinstance(bind.rhs, f.If | f.Switch):
            total += max(inner)
        else:
            total += (isinstance(bind.rhs, f.Call) and bind.rhs.fn == name) + 2 * sum(inner)
    return total


def stops(loop: f.For | f.While) -> bool:
    """True if a loop along lists may stop before these end: not only their constructors tell."""
    if isinstance(loop, f.For):
        return True
    tests = every(loop.cond)
    told = {var.name for bind in tests for var in bind.vars}
    by_ends = all(isinstance(bind.rhs, f.Switch) and isinstance(bind.rhs.scrutinee.ty, f.Data) for bind in tests)
    return not by_ends or not told.issuperset(names(loop.cond.results))


def several(block: f.Block, chosen: Sequence[f.Atom]) -> bool:
    """True if some of these atoms are one of several parts of a node, as the block chooses."""
    made = {var.name: (bind.rhs, k) for bind in every(block) for k, var in enumerate(bind.vars)}
    todo, found = [atom for atom in chosen if isinstance(atom.ty, f.Data)], set[tuple[f.Type, int]]()
    while todo:
        atom = todo.pop()
        match made.pop(atom.name, None) if isinstance(atom, f.Var) else None:
            case f.TupGet(tup, i), _:
                found.add((tup.ty, i))
            case (f.If() | f.Switch()) as branch, k:
                todo += [arm.results[k] for arm in blocks(branch)]
            case _:
                pass
    return len(found) > 1


class _Reads:
    """Writes code that reads data by places.  `now` has the variables of such data under their old names, `empty` the
    constructors without payload; `depth` tells how many loops are around, `walks` how many are around what walks, at
    most.  `root` is there as it was, too."""

    def __init__(self, copies: _Copies, values: f.Var, now: dict[str, f.Var], root: f.Var | None) -> None:
        self.copies, self.ravel, self.b = copies, copies.ravel, copies.ravel.b
        self.values, self.now, self.root = values, now, root
        self.empty: dict[str, f.ConMake] = {}
        self.depth = 0
        self.walks = NEVER

    def placed(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Var) and atom.name in self.now

    def read(self, atom: f.Atom) -> f.Atom:
        return self.now.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def whole(self, atom: f.Atom) -> f.Atom:
        """An operand as it is in the old program: the whole data, or something else."""
        if self.placed(atom) and atom != self.root:
            raise Elsewhere
        return atom

    def walked(self, loops: int) -> None:
        """Some code here walks, with so many loops around it."""
        self.walks = max(self.walks, self.depth + loops)

    def renamed(self, var: f.Var) -> f.Var:
        """A variable that is data with places from now on."""
        self.now[var.name] = f.Var(var.name, self.ravel.type(var.ty))
        return self.now[var.name]

    # ---- parts of data

    def part(self, var: f.Var, binds: list[f.Bind]) -> f.Var:
        """What is bound where `var` was, for a part of data: data with places; or a place, or a tuple of such."""
        if not self.ravel.holds(var.ty):
            return var
        if any(isinstance(part, f.Data) and self.ravel.holds(part) for part in parts_of([var.ty])):
            return self.renamed(var)
        place = self.b.var("place", self.ravel.type(var.ty))
        with self.b.inside() as read:
            items = self.numbers(place, var.ty)
        binds += block_of(read, ()).binds
        last = binds.pop()
        assert last.vars == (items,)
        binds.append(f.Bind((var,), last.rhs))
        return place

    def numbers(self, place: f.Atom, ty: f.Type) -> f.Atom:
        """The numbers at the places in a tuple."""
        if f.is_float(ty):
            return self.b.op("index", (self.values, place), unchecked=True)
        if not isinstance(ty, f.Tup):
            return place
        items = [self.numbers(self.b.one(f.TupGet(place, i), self.ravel.type(item), "part"), item)
                 for i, item in enumerate(ty.items)]  # fmt: skip
        return self.b.one(f.TupMake(tuple(items)), ty, "t")

    # ---- blocks

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
                self.joined(bind, bind.rhs, [then, else_], out)
            case f.Switch(scrutinee, cases, default):
                opened = [self.case(case, self.placed(scrutinee)) for case in cases]
                rhs = f.Switch(self.read(scrutinee), tuple(opened), default)
                arms = [*(case.body for case in opened), *([] if default is None else [default])]
                self.joined(bind, rhs, arms, out)
            case f.For() | f.While() as loop:
                self.loop(bind, loop, out)
            case f.Call(_, args) as call if any(map(self.placed, args)):
                out.append(f.Bind(bind.vars, self.call(call)))
            case f.ConMake(data, tag, f.Var() as arg) if self.placed(arg):
                made = self.renamed(bind.vars[0])
                out.append(f.Bind((made,), f.ConMake(self.ravel.data(data).name, tag, self.read(arg))))
            case f.TupMake(items) if any(map(self.placed, items)) and self.has_no_numbers(items):
                made = self.renamed(bind.vars[0])
                out.append(f.Bind((made,), f.TupMake(tuple(map(self.read, items)))))
            case rhs:
                if isinstance(rhs, f.ConMake) and rhs.arg is None:
                    self.empty[bind.vars[0].name] = rhs
                self.depth += 1
                out.append(f.Bind(bind.vars, rebuild(rhs, self.whole, self.plain, unchanged)))
                self.depth -= 1

    def has_no_numbers(self, items: Sequence[f.Atom]) -> bool:
        """True if only data with places among these holds numbers: there are no places for other ones."""
        return all(self.placed(item) or not self.ravel.holds(item.ty) for item in items)

    def call(self, call: f.Call) -> f.Call:
        """A call with data with places; if the function cannot take it, with the whole data."""
        placed = tuple(map(self.placed, call.args))
        try:
            name = self.copies.copy(call.fn, placed, self.values.ty)
        except Elsewhere:
            return f.Call(call.fn, tuple(map(self.whole, call.args)), call.span)
        self.walked(self.copies.walks.get(name, NEVER))
        return f.Call(name, (*map(self.read, call.args), self.values), call.span)

    def case(self, case: f.Case, placed: bool) -> f.Case:
        if not placed or case.payload is None:
            return case
        first = list[f.Bind]()
        payload = self.part(case.payload, first)
        return f.Case(case.tag, payload, f.Block((*first, *case.body.binds), case.body.results))

    def joined(self, bind: f.Bind, rhs: f.Rhs, arms: list[f.Block], out: list[f.Bind]) -> None:
        """A branch with the arms of the new program: a result is data with places in all of them, or in none."""
        made = [self.block(arm) for arm in arms]
        vars_ = list(bind.vars)
        for k, var in enumerate(bind.vars):
            if any(self.placed(arm.results[k]) and arm.results[k] != self.root for arm in made):
                vars_[k] = self.renamed(var)
                made = [self.with_placed(arm, k) for arm in made]
        out.append(f.Bind(tuple(vars_), with_branches(rhs, made)))

    def with_placed(self, arm: f.Block, k: int) -> f.Block:
        """An arm whose result is data with places: it may be a constructor without payload, or the arm fails."""
        result, binds = arm.results[k], list(arm.binds)
        if self.placed(result):
            new = self.read(result)
        elif isinstance(result, f.Const):
            new = f.Const(result.value, self.ravel.type(result.ty))
        else:
            new = self.b.var(result.name, self.ravel.type(result.ty))
            binds.append(f.Bind((new,), self.stand_in(result, new.ty, arm)))
        return f.Block(tuple(binds), (*arm.results[:k], new, *arm.results[k + 1 :]))

    def stand_in(self, result: f.Var, ty: f.Type, arm: f.Block) -> f.Rhs:
        """What gives a value with places where an arm makes one without."""
        if result.name in self.empty and isinstance(ty, f.Data):
            return replace(self.empty[result.name], data=ty.name)
        for bind in arm.binds:
            if result in bind.vars and isinstance(bind.rhs, f.Op) and bind.rhs.op == "fail":
                return bind.rhs  # it is never reached
        raise Elsewhere

    def loop(self, bind: f.Bind, loop: f.For | f.While, out: list[f.Bind]) -> None:
        """A loop; its states that start as data with places must stay so, or all be the whole data.  A state that
        starts as nothing may become such data, as what a search finds."""
        walked = [self.placed(init) for init in loop.inits]
        found = [placed or (isinstance(init, f.Const) and isinstance(init.ty, f.Data) and self.ravel.holds(init.ty))
                 for init, placed in zip(loop.inits, walked, strict=True)]  # fmt: skip
        before = dict(self.now), self.depth, self.walks
        try:
            out.append(self.loop_of(bind, loop, found))
        except Elsewhere:
            if found == walked:
                raise
            self.now, self.depth, self.walks = before
            out.append(self.loop_of(bind, loop, walked))

    def loop_of(self, bind: f.Bind, loop: f.For | f.While, walked: list[bool]) -> f.Bind:
        """A loop of which some states are data with places."""
        state = tuple([self.renamed(var) if placed else var for var, placed in zip(loop.state, walked, strict=True)])
        test = self.plain(loop.cond) if isinstance(loop, f.While) else None
        self.depth += 1
        body = self.block(loop.body)
        self.depth -= 1
        for k, (var, result, placed) in enumerate(zip(loop.state, body.results, walked, strict=False)):
            if placed:
                body = self.with_placed(body, k)
                if result != var and (stops(loop) or self.forks(var, body, result)):
                    self.walked(0)
        others = [result if placed else self.whole(result)
                  for result, placed in zip(body.results, [*walked, *[False] * loop.collect], strict=True)]  # fmt: skip
        body = f.Block(body.binds, tuple(others))
        inits = tuple([f.Const(init.value, self.ravel.type(init.ty)) if placed and isinstance(init, f.Const)
                       else self.read(init) for init, placed in zip(loop.inits, walked, strict=True)])  # fmt: skip
        vars_ = [self.renamed(var) if was else var for var, was in zip(bind.vars, walked, strict=False)]
        rhs: f.Rhs = (
            replace(loop, count=self.whole(loop.count), state=state, inits=inits, body=body)
            if isinstance(loop, f.For)
            else replace(loop, state=state, inits=inits, cond=test, body=body)
        )
        return f.Bind((*vars_, *bind.vars[len(vars_) :]), rhs)

    def forks(self, var: f.Var, body: f.Block, result: f.Atom) -> bool:
        """True if a step goes to one of several children."""
        return self.ravel.branches(var.ty) and several(body, [result])
