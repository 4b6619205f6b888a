"""flat -> flat where a list that a loop appends to is made backwards, and turned round at the end.

    xs' = for i < n state (xs = [])                 back' = for i < n state (xs = [])
      cell = :: (y, [])                       =>      cell = :: (y, xs)
      longer = append(xs, cell)                       yield cell
      yield longer                                  xs' = back', reversed by a loop

`append` copies its first argument, so the loop takes the square of the length; a difference list (Hughes 1986) takes
the length.  The loop must do nothing else with the list, and must begin with a list that is written out.  Then nothing
is turned round that was not made here, and no program gets slower.  This comes before differentiation, so that reverse
mode finds the quick loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.copy import Renamed
from dplc.flat.walk import blocks, every, names, rhs_mentions, supply_for, with_inner

FEW = 8  # steps for which it does not pay


def appended_lists(program: f.Program) -> f.Program:
    appends = {name for name, fn in program.fns.items() if is_append(fn)}
    supply = None
    for name, fn in program.fns.items():
        if name not in appends and any(called(bind.rhs, appends) for bind in every(fn.body)):
            supply = supply or supply_for(program)
            program.fns[name] = replace(fn, body=_Backwards(supply, program.datas, appends, fn.body).whole())
    return program


def called(rhs: f.Rhs, appends: set[str]) -> bool:
    return isinstance(rhs, f.Call) and rhs.fn in appends


def is_append(fn: f.Fn) -> bool:
    """True for `append xs ys = match xs with [] -> ys | x :: rest -> x :: append rest ys`, whoever wrote it."""
    match fn.params, fn.body.binds:
        case (xs, ys), (f.Bind(found, f.Switch(scrutinee, (nil, f.Case(1, f.Var() as both, cons)), None)),):
            told = scrutinee == xs and fn.body.results == found and nil == f.Case(0, None, f.Block((), (ys,)))
        case _:
            return False
    match cons.binds:
        case (
            f.Bind((x,), f.TupGet(one, 0)),
            f.Bind((rest,), f.TupGet(other, 1)),
            f.Bind((more,), f.Call(fn.name, args)),
            f.Bind((cell,), f.TupMake(parts)),
            f.Bind(whole, f.ConMake(_, 1, made_of)),
        ):
            same = one == other == both and args == (rest, ys) and parts == (x, more) and made_of == cell
            return told and same and cons.results == whole
        case _:
            return False


class Elsewhere(Exception):
    """The list is used for something else."""


class _Backwards:
    """`made` holds the right-hand sides that make the constructors and tuples of a function; `turned`, the names of the
    appended lists that are made backwards; `now`, what stands for a list of the program."""

    def __init__(self, supply: f.Supply, datas: Mapping[str, f.DataDecl], appends: set[str], body: f.Block) -> None:
        self.b = Builder(supply)
        self.datas, self.appends, self.body = datas, appends, body
        kinds = f.ConMake | f.TupMake
        self.made: Mapping[str, f.Rhs] = {b.vars[0].name: b.rhs for b in every(body) if isinstance(b.rhs, kinds)}
        self.turned: set[str] = set()
        self.now: dict[str, f.Atom] = {}

    def whole(self) -> f.Block:
        made = self.block(self.body)
        return Renamed(self.now).block(made) if self.now else self.body

    def block(self, block: f.Block) -> f.Block:
        with self.b.inside() as binds:
            for bind in block.binds:
                match bind.rhs:
                    case f.Call(_, (before, more)) if bind.vars[0].name in self.turned:
                        self.now[bind.vars[0].name] = self.in_front(more, before)
                    case f.For() | f.While() as loop if places := self.places(loop):
                        self.loop(bind, loop, places)
                    case _:
                        binds.append(with_inner(bind, self.block))
        return block_of(binds, block.results)

    # ---- which lists

    def places(self, loop: f.For | f.While) -> list[int]:
        """The states of a loop that are lists made backwards from now on."""
        match loop:
            case f.For(_, f.Const(int() as count)) if count <= FEW:
                return []
            case _:
                written = [k for k, start in enumerate(loop.inits) if self.written(start) is not None]
                return [k for k in written if self.appended(loop, k)]

    def appended(self, loop: f.For | f.While, k: int) -> bool:
        chain, found = {loop.state[k].name}, set[str]()
        try:
            self.steps(loop, [i == k for i in range(len(loop.state))], chain, found)
        except Elsewhere:
            return False
        self.turned |= found
        return bool(found)

    def steps(self, loop: f.For | f.While, given: list[bool], chain: set[str], found: set[str]) -> None:
        """A loop, some of whose states continue the list: they must do so in each step."""
        if isinstance(loop, f.While):
            self.through(loop.cond, chain, found)
        if self.through(loop.body, chain, found) != given + [False] * loop.collect:
            raise Elsewhere

    def through(self, block: f.Block, chain: set[str], found: set[str]) -> list[bool]:
        """Which results of a block continue the list.  `chain` collects the variables that do, `found` those of them
        that append to it."""
        for vars_, rhs in ((bind.vars, bind.rhs) for bind in block.binds):
            given: list[bool]
            match rhs:
                case f.Call(_, (f.Var(before), more)) if called(rhs, self.appends) and before in chain:
                    self.free((more,), chain)
                    found.add(vars_[0].name)
                    given = [True]
                case f.If() | f.Switch():
                    self.free((rhs.cond if isinstance(rhs, f.If) else rhs.scrutinee,), chain)
                    given, *others = [self.through(inner, chain, found) for inner in blocks(rhs)]
                    if any(other != given for other in others):
                        raise Elsewhere
                case f.For() | f.While():
                    given = [isinstance(start, f.Var) and start.name in chain for start in rhs.inits]
                    self.free((rhs.count,) if isinstance(rhs, f.For) else (), chain)
                    chain.update(var.name for var, on in zip(rhs.state, given) if on)
                    self.steps(rhs, given, chain, found)
                case _:
                    if not chain.isdisjoint(rhs_mentions(rhs)):
                        raise Elsewhere
                    given = []
            chain.update(var.name for var, on in zip(vars_, given, strict=False) if on)
        return [isinstance(atom, f.Var) and atom.name in chain for atom in block.results]

    def free(self, atoms: Iterable[f.Atom], chain: set[str]) -> None:
        if not chain.isdisjoint(names(atoms)):
            raise Elsewhere

    def written(self, xs: f.Atom) -> list[f.Atom] | None:
        """The elements of a list that is written out."""
        elements = []
        while isinstance(xs, f.Var):
            match self.made.get(xs.name):
                case f.ConMake(_, 0):
                    return elements
                case f.ConMake(_, 1, f.Var(cell)):
                    match self.made.get(cell):
                        case f.TupMake((element, rest)):
                            elements.append(element)
                            xs = rest
                        case _:
                            return None  # no list: a closure, or other data
                case _:
                    return None
        return None

    # ---- the same, backwards

    def loop(self, bind: f.Bind, loop: f.For | f.While, places: list[int]) -> None:
        """The loop, and after it the lists as they should be."""
        inits, vars_ = list(loop.inits), list(bind.vars)
        for k in places:
            inits[k] = self.in_front(loop.inits[k], self.empty(loop.inits[k].ty))
            vars_[k] = self.b.var("back", vars_[k].ty)
        inner = with_inner(f.Bind(tuple(vars_), loop), self.block).rhs
        assert isinstance(inner, f.For | f.While)
        self.b.binds.append(f.Bind(tuple(vars_), replace(inner, inits=tuple(inits))))
        for k in places:
            self.now[bind.vars[k].name] = self.in_front(vars_[k], self.empty(vars_[k].ty))

    def empty(self, ty: f.Type) -> f.Var:
        assert isinstance(ty, f.Data)
        return self.b.one(f.ConMake(ty.name, 0, None), ty, "none")

    def cons(self, element: f.Atom, rest: f.Atom) -> f.Var:
        assert isinstance(rest.ty, f.Data)
        cell = self.b.one(f.TupMake((element, rest)), f.Tup((element.ty, rest.ty)), "cell")
        return self.b.one(f.ConMake(rest.ty.name, 1, cell), rest.ty, "longer")

    def in_front(self, xs: f.Atom, rest: f.Atom) -> f.Atom:
        """The elements of `xs`, the last first, and then `rest`."""
        elements = self.written(xs)
        if elements is not None:
            for element in elements:
                rest = self.cons(element, rest)
            return rest
        left, done = self.b.var("left", xs.ty), self.b.var("done", xs.ty)
        yes, no = (f.Block((), (f.Const(value, f.BOOL),)) for value in (True, False))
        with self.b.inside() as test:
            more = self.b.one(f.Switch(left, (f.Case(0, None, no), f.Case(1, None, yes)), None), f.BOOL, "more")
        with self.b.inside() as step:
            moved = self.b.bind(self.next(left, done), (xs.ty, xs.ty), "moved")
        loop = f.While((left, done), (xs, rest), block_of(test, (more,)), block_of(step, moved))
        return self.b.bind(loop, (xs.ty, xs.ty), "turned")[1]

    def next(self, left: f.Var, done: f.Var) -> f.Switch:
        """One element moves from `left` to `done`."""
        assert isinstance(left.ty, f.Data)
        made_of = self.datas[left.ty.name].payloads[1]
        assert isinstance(made_of, f.Tup)
        cell = self.b.var("cell", made_of)
        with self.b.inside() as binds:
            element = self.b.one(f.TupGet(cell, 0), made_of.items[0], "element")
            rest = self.b.one(f.TupGet(cell, 1), left.ty, "rest")
            longer = self.cons(element, done)
        one = f.Case(1, cell, block_of(binds, (rest, longer)))
        return f.Switch(left, (f.Case(0, None, f.Block((), (left, done))), one), None)
