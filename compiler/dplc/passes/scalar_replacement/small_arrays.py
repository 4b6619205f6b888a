"""Scalar replacement of arrays: flat -> flat where arrays of few elements, known in number, are numbers.

    d = sub (index r i) (index r j)             x0 = index r i 0;  x1 = index r i 1;  y0 = index r j 0; ...
    s = dot d d                          =>     d0 = sub x0 y0;  d1 = sub x1 y1
                                                s = add (mul d0 d0) (mul d1 d1)

Lengths are those that the code tells (`flat/dims.py`), also through calls (`flat/known_sizes.py`).  The pass runs
before derivatives are taken, so these are derivatives of operations on numbers: nothing is kept in arrays, and no array
is made to hold a cotangent.  Results of branches and the state of loops are split, too; what is needed in one piece is
put together again.  Short comprehensions and loops are unrolled first (`unroll`).  In nests of comprehensions, larger
matrices are read by elements where they are multiplied by such an array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from dpl.node import field, record, replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.dims import Dims
from dplc.flat.known_sizes import KnownSizes, known_sizes
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of
from dplc.flat.walk import (
    atoms,
    blocks,
    bound,
    bound_inside,
    every,
    mentions,
    names,
    rebuild,
    supply_for,
    with_branches,
)
from dplc.passes.scalar_replacement.added_literals import added_literals
from dplc.passes.scalar_replacement.few_elements import (
    EXPANSIONS,
    FEW,
    IN_ORDER,
    Few,
    Piece,
    Shape,
    Writer,
    made_whole,
    shape_of,
)
from dplc.passes.scalar_replacement.few_extrema import few_extrema
from dplc.passes.scalar_replacement.large_work import called_in_points, large_work
from dplc.passes.scalar_replacement.needed_elements import needed_elements
from dplc.passes.scalar_replacement.unroll import unrolled
from dplc.passes.simplify.hoist_dims import without_known_lengths
from dplc.passes.simplify.purity import HERE
from dplc.passes.simplify.simplify import simplified

FEWER = 4  # elements that are read from memory where nothing else would tell to split the array
FACTOR = 128  # elements, at most, of a matrix that are read for its product with a vector of few


Aside = Callable[[f.Block, Dims], bool]  # whether arrays of few elements stay what they are in a block


def small_arrays(program: f.Program, device: bool = False) -> f.Program:
    """The program with numbers in place of these arrays; with a `device`, not where it does the other work."""
    known, supply = known_sizes(program), supply_for(program)
    aside = large_work(program, known.dims) if device else nowhere
    points = called_in_points(program) if device else set(program.fns)
    fns = {
        name: without_small(fn, known, supply, program, nowhere if name in points else aside)
        for name, fn in program.fns.items()
    }
    return replace(program, fns=fns)


def nowhere(block: f.Block, dims: Dims) -> bool:
    return False


def again(program: f.Program) -> f.Program:
    """As `small_arrays`, of functions that read known directions of few elements, such as those of the rows of a
    Jacobian, or add to few elements at constants, once derivatives are inlined."""
    chosen = [name for name, fn in program.fns.items() if has_few(fn)]
    if not chosen:
        return program
    supply = supply_for(program)
    program = replace(program, fns=program.fns | {n: added_literals(program.fns[n], supply) for n in chosen})
    known = known_sizes(program)
    made = {name: without_small(program.fns[name], known, supply, program) for name in chosen}
    return replace(program, fns=program.fns | made)


def has_few(fn: f.Fn) -> bool:
    """True if a function adds, at a constant, to few elements; or reads there a comprehension of few elements that uses
    nothing from outside."""
    built = set[str]()
    for bind in every(fn.body):
        match bind.rhs:
            case f.Build(_, f.Const(int(n)), body) if 0 < n <= FEW:
                inside = {var.name for var in bound_inside(bind.rhs)}
                if inside.issuperset(mentions(body)):
                    built.update(names(bind.vars))
            case f.Op("index", (f.Var(name), f.Const())) if name in built:
                return True
            case f.Op("acc_index", (f.Const(), _, f.Const(int(n)), f.Const())) if n <= FEW:
                return True
            case _:
                pass
    return False


def without_small(fn: f.Fn, known: KnownSizes, supply: f.Supply, program: f.Program, aside: Aside = nowhere) -> f.Fn:
    dims, given = known.dims(fn), fn
    if (told := without_known_lengths(fn, supply, dims)) is not fn:
        fn = simplified(told, supply, program)
    if not any(shape_of(dims, var) for var in bound(given)):
        return fn
    is_main = fn.name == program.main
    now = dims if fn is given else known.dims(fn)
    if (straight := unrolled(fn, supply, now, is_main, lambda block: aside(block, now), program)) is not fn:
        fn = simplified(straight, supply, program)
        now = known.dims(fn)
    if (plain := few_extrema(fn, lambda array: length_of(now, array), supply)) is not fn:
        fn = simplified(plain, supply, program)
        now = known.dims(fn)
    wants = Wants(now, is_main, aside)
    wants.function(fn)
    if wants.opened:
        fn = simplified(_Splitter(wants, supply).function(fn), supply, program)
        now = known.dims(fn)
    needed = needed_elements(fn, now, supply)
    return fn if needed is fn else simplified(needed, supply, program)


def length_of(dims: Dims, atom: f.Atom) -> int | None:
    """The length of an array of few numbers of rank 1, if it is known."""
    shape = shape_of(dims, atom) if elem_of(atom.ty) != f.BOOL else None
    return shape[0] if shape and len(shape) == 1 else None


# ---- what is wanted -------------------------------------------------------------------------------------------------


@record
class Joined:
    """A result of a branch, or a variable of a loop's state: `vars` are one value, which comes from `sources`."""

    vars: tuple[f.Var, ...]
    sources: tuple[f.Atom, ...]


@record
class Wants:
    """The arrays whose elements are wanted (`opened`), and those that are wanted in one piece (`whole`).  `split` has
    the results of branches and the states that are split, `applied` the operations that work on elements, by
    identity.  `free` has the arrays that need not be in memory."""

    dims: Dims
    is_main: bool
    aside: Aside
    factors: dict[str, Shape] = field(default_factory=dict)
    builds: int = 0  # comprehensions around, one in the other
    points: int = 0  # the same, with loops in between
    opened: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    split: set[str] = field(default_factory=set)
    applied: set[int] = field(default_factory=set)
    varying: set[str] = field(default_factory=set)  # read or updated at an index that is not a constant
    free: set[str] = field(default_factory=set)
    rows: set[str] = field(default_factory=set)  # of these, the ones that are read out of others
    looped: set[str] = field(default_factory=set)  # made by loops, and used once
    vectors: set[str] = field(default_factory=set)  # made in this loop by operations that others are fused with
    uses: Counter[str] = field(default_factory=Counter)
    joined: list[Joined] = field(default_factory=list)
    waiting: list[tuple[f.Op, f.Var]] = field(default_factory=list)  # they want no elements by themselves

    def shape(self, atom: f.Atom) -> Shape | None:
        return shape_of(self.dims, atom)

    @property
    def nested(self) -> bool:
        """True in a comprehension in a comprehension: `columns` makes vectors of what it does with numbers."""
        return self.builds > 1

    def read(self, var: f.Var) -> Shape | None:
        """The shape of an array whose elements are read."""
        return self.factors.get(var.name) or self.shape(var)

    def function(self, fn: f.Fn) -> None:
        self.uses.update(mentions(fn.body))
        self.block(fn.body, inner=not self.is_main and not self.aside(fn.body, self.dims))
        self.whole.update(names(fn.body.results))
        joined, waiting = self.joined, self.waiting
        while True:
            later = [join for join in joined if not self.splits(join)]
            unread = [(op, var) for op, var in waiting if not self.opens(op, var)]
            if len(later) == len(joined) and len(unread) == len(waiting):
                break
            joined, waiting = later, unread
        for join in joined:
            self.whole.update(names(join.sources))
        for op, _ in waiting:
            self.whole.update(names(op.args))

    def opens(self, op: f.Op, made: f.Var) -> bool:
        """Opens the operands of an operation if elements of the result are wanted: a view, or one that would be made
        in memory for this only."""
        if made.name not in self.opened or (op.op != "reshape" and made.name in self.whole):
            return False
        self.applied.add(id(op))
        self.opened.update(names(array_operands(op)))
        return True

    def splits(self, join: Joined) -> bool:
        """Splits a joined value if one of its variables is opened."""
        variables = {var.name for var in join.vars}
        if self.opened.isdisjoint(variables) or not self.varying.isdisjoint(variables):
            return False
        if any(self.shape(atom) is None for atom in (*join.vars, *join.sources)):
            return False
        self.split |= variables
        self.opened.update(names(join.sources))
        return True

    def block(self, block: f.Block, inner: bool) -> None:
        for bind in block.binds:
            match bind.rhs:
                case f.Op() as op:
                    self.op(op, bind.vars, inner)
                case f.If() | f.Switch():
                    arms = blocks(bind.rhs)
                    for arm in arms:
                        self.block(arm, inner)
                    for k, var in enumerate(bind.vars):
                        self.joined.append(Joined((var,), tuple([arm.results[k] for arm in arms])))
                    self.free.update(var.name for var in bind.vars)
                    self.whole.update(names(atoms(bind.rhs)))
                case f.For() | f.While() as loop:
                    self.loop(loop, bind, self.points > 0 or not self.aside(loop.body, self.dims))
                case rhs:
                    self.whole.update(names(atoms(rhs)))
                    if isinstance(rhs, f.Build):
                        self.looped.update(var.name for var in bind.vars if self.uses[var.name] == 1)
                    self.builds += isinstance(rhs, f.Build)
                    self.points += isinstance(rhs, f.Build)
                    for body in blocks(rhs):
                        self.block(body, inner=True)
                        self.whole.update(names(body.results))
                    self.builds -= isinstance(rhs, f.Build)
                    self.points -= isinstance(rhs, f.Build)

    def loop(self, loop: f.For | f.While, bind: f.Bind, inner: bool) -> None:
        width = len(loop.state)
        self.free.update(var.name for var in bind.vars[width:])
        given = {name for body in blocks(loop) for name in handed_on(body)}
        for state, after in zip(loop.state, bind.vars, strict=False):
            if state.name not in given or prod(self.shape(state) or ()) <= FEWER:
                self.free |= {state.name, after.name}
        builds, self.builds = self.builds, 0
        vectors, self.vectors = self.vectors, set()
        for body in blocks(loop):
            self.block(body, inner)
        self.builds, self.vectors = builds, vectors
        self.whole.update(names(loop.body.results[width:]))
        for parts in zip(loop.state, bind.vars, loop.inits, loop.body.results):
            self.joined.append(Joined(parts[:2], parts[2:]))

    def op(self, op: f.Op, made: tuple[f.Var, ...], inner: bool) -> None:
        if inner and self.applies(op, made):
            if op.op == "reshape" or self.in_memory(op):
                self.waiting.append((op, made[0]))
                self.free.update(names(made if op.op == "reshape" else ()))
                return
            self.applied.add(id(op))
            self.free.update(var.name for var in made)
            self.opened.update(names(array_operands(op)))
            return
        if self.nested and op.op == "matmul" and self.factor(op, made[0]):
            self.applied.add(id(op))
            self.free.add(made[0].name)
            self.opened.update(names(op.args))
            return
        self.whole.update(names(op.args))
        if OPS[op.op].elementwise:
            self.vectors.update(names(made))
        if op.op in ("index", "update") and not all(isinstance(a, f.Const) for a in op.args[-1:]):
            self.varying.update(names(op.args[:1]))
        if op.op == "index" or (op.op == "slice" and self.nested):
            self.free.update(var.name for var in made)
            self.rows.update(names(made))

    def factor(self, op: f.Op, made: f.Var) -> bool:
        """Notes a matrix whose product with a vector of few is computed by elements, if the vector is not in memory."""
        for matrix, vector in (op.args, op.args[::-1]):
            shape, few = self.dims.shape(matrix), self.shape(vector)
            if not (isinstance(matrix, f.Var) and shape and few and 1 in few and self.shape(made)):
                continue
            if not FEW < prod(shape) <= FACTOR or self.free.isdisjoint(names((vector,))):
                continue
            trial = [blank_of(n, a) for n, a in zip((self.dims.shape(a) for a in op.args), op.args, strict=True)]
            if EXPANSIONS["matmul"](Writer(f.Supply(), []), op, trial) is not None:
                self.factors[matrix.name] = shape
                return True
        return False

    def applies(self, op: f.Op, made: tuple[f.Var, ...]) -> bool:
        """True if an operation works on the elements of its operands."""
        if op.op not in EXPANSIONS or (isinstance(made[0].ty, f.Arr) and self.shape(made[0]) is None):
            return False
        args = array_operands(op)
        if not (args or op.op in ("array", "fill")) or not all(map(self.shape, args)):
            return False
        if op.op == "sum" and not self.looped.isdisjoint(names(args)):
            return False  # the loop adds up what it computes
        if op.op in ("sum", "dot") and not self.nested and any(prod(self.shape(a) or ()) > IN_ORDER for a in args):
            if self.free.difference(self.rows).isdisjoint(names(args)):
                return False  # as many as lanes, and in memory
        if self.in_memory(op) and not (OPS[op.op].cheap and self.vectors.isdisjoint(names(args))):
            return False
        trial = Writer(f.Supply(), [])
        return EXPANSIONS[op.op](trial, op, [blank_of(self.shape(a), a) for a in op.args]) is not None

    def in_memory(self, op: f.Op) -> bool:
        """True if all operands are in memory, and are read there as they are."""
        args = array_operands(op)
        if not args or not self.free.isdisjoint(names(args)):
            return False
        return op.op == "index" or (op.op != "slice" and any(prod(self.shape(a) or ()) > FEWER for a in args))


def array_operands(op: f.Op) -> list[f.Atom]:
    return [a for a in op.args if isinstance(a.ty, f.Arr)]


def handed_on(block: f.Block) -> Iterator[str]:
    """The names of what is given to functions in one piece, or is put into data."""
    for bind in every(block):
        if isinstance(bind.rhs, f.Call | f.Ad | f.TupMake | f.ConMake):
            yield from names(atoms(bind.rhs))


def blank_of(shape: Shape | None, atom: f.Atom) -> Piece:
    """An array of this shape in pieces that have no names."""
    return Few(shape, (f.Var("", elem_of(atom.ty)),) * prod(shape)) if shape else atom


# ---- the new code ---------------------------------------------------------------------------------------------------


class _Splitter:
    """One function.  `pieces` has the elements of opened arrays, `known` the atoms that replace variables."""

    def __init__(self, wants: Wants, supply: f.Supply) -> None:
        self.wants = wants
        self.supply = supply
        self.pieces: dict[str, Few] = {}
        self.known: dict[str, f.Atom] = {}

    def function(self, fn: f.Fn) -> f.Fn:
        return replace(fn, body=self.block(fn.body, fn.params))

    def atom(self, atom: f.Atom) -> f.Atom:
        while isinstance(atom, f.Var) and atom.name in self.known:
            atom = self.known[atom.name]
        return atom

    def piece(self, atom: f.Atom) -> Piece:
        return self.pieces[atom.name] if isinstance(atom, f.Var) and isinstance(atom.ty, f.Arr) else self.atom(atom)

    def spread(self, given: Sequence[f.Atom], split: Sequence[bool]) -> tuple[f.Atom, ...]:
        """Atoms, with the elements of those that are split in their place."""
        return tuple([item for atom, apart in zip(given, split, strict=True) for item in self.either(atom, apart)])

    def either(self, atom: f.Atom, apart: bool) -> tuple[f.Atom, ...]:
        return self.pieces[atom.name].items if apart and isinstance(atom, f.Var) else (self.atom(atom),)

    def fresh(self, var: f.Var) -> Few:
        """Variables for the elements of an array."""
        shape = self.wants.shape(var)
        assert shape is not None
        return Few(shape, tuple([f.Var(self.supply.fresh(var.name), elem_of(var.ty)) for _ in range(prod(shape))]))

    def block(self, block: f.Block, params: tuple[f.Var, ...] = (), split: Sequence[bool] | None = None) -> f.Block:
        binds: list[f.Bind] = []
        self.read(params, binds)
        for bind in block.binds:
            self.bind(bind, binds)
        return f.Block(tuple(binds), self.spread(block.results, split or [False] * len(block.results)))

    def read(self, made: Sequence[f.Var], binds: list[f.Bind]) -> None:
        """Reads the elements of arrays that are there in one piece."""
        for var in made:
            if var.name in self.wants.opened and (shape := self.wants.read(var)):
                self.pieces[var.name] = Few(shape, tuple(self.elements(var, (), shape, binds, True)))

    def elements(
        self, array: f.Atom, at: tuple[f.Atom, ...], shape: Shape, binds: list[f.Bind], unchecked: bool | str,
        span: f.Span = f.NOWHERE,
    ) -> Iterator[f.Var]:  # fmt: skip
        """Reads the elements of the part of an array at some indices.  Only the first read need be checked; the others
        must stay behind it."""
        for indices in product(*map(range, shape)):
            var = f.Var(self.supply.fresh("x"), elem_of(array.ty))
            how = unchecked or (HERE if any(indices) else False)
            attrs = (("unchecked", how),) if how else (("sure", len(indices)),)
            args = (array, *at, *[f.Const(i, f.I64) for i in indices])
            binds.append(f.Bind((var,), f.Op("index", args, attrs, span)))
            yield var

    def bind(self, bind: f.Bind, binds: list[f.Bind]) -> None:
        match bind.rhs:
            case f.Op() as op if id(op) in self.wants.applied:
                self.apply(op, bind.vars[0], binds)
            case f.Op("index", (array, *at)) as op if self.is_row(bind.vars):
                (var,) = bind.vars
                if var.name in self.wants.whole:
                    binds.append(f.Bind(bind.vars, rebuild(op, self.atom, self.block, same)))
                args, shape = [self.atom(a) for a in (array, *at)], self.wants.read(var)
                assert shape is not None
                sure = op.attr("unchecked") or (HERE if var.name in self.wants.whole else False)
                items = self.elements(args[0], tuple(args[1:]), shape, binds, sure, op.span)
                self.pieces[var.name] = Few(shape, tuple(items))
            case f.If() | f.Switch():
                self.branch(bind, binds)
            case f.For() | f.While() as loop:
                self.loop(bind, loop, binds)
            case rhs:
                binds.append(f.Bind(bind.vars, rebuild(rhs, self.atom, self.block, same)))
                self.read(bind.vars, binds)

    def is_row(self, made: tuple[f.Var, ...]) -> bool:
        return isinstance(made[0].ty, f.Arr) and made[0].name in self.wants.opened

    def apply(self, op: f.Op, var: f.Var, binds: list[f.Bind]) -> None:
        made = EXPANSIONS[op.op](Writer(self.supply, binds), op, [self.piece(a) for a in op.args])
        if isinstance(made, Few):
            self.pieces[var.name] = made
            if var.name in self.wants.whole:
                made_whole(binds, self.supply, made, var)
        else:
            assert made is not None
            self.known[var.name] = made

    def parted(self, made: Sequence[f.Var]) -> tuple[list[bool], tuple[f.Var, ...], list[f.Bind]]:
        """Which of these variables are split; the variables with those of their elements; bindings that put together
        what is also wanted in one piece."""
        split = [var.name in self.wants.split for var in made]
        whole: list[f.Bind] = []
        for var, apart in zip(made, split, strict=True):
            if apart:
                self.pieces[var.name] = few = self.fresh(var)
                if var.name in self.wants.whole:
                    made_whole(whole, self.supply, few, var)
        spread: list[f.Var] = []
        for var, apart in zip(made, split, strict=True):
            spread += [x for x in self.pieces[var.name].items if isinstance(x, f.Var)] if apart else [var]
        return split, tuple(spread), whole

    def branch(self, bind: f.Bind, binds: list[f.Bind]) -> None:
        split, made, whole = self.parted(bind.vars)
        arms = [self.block(arm, (), split) for arm in blocks(bind.rhs)]
        rhs = rebuild(bind.rhs, self.atom, lambda b: b, same)
        binds += [f.Bind(made, with_branches(rhs, arms)), *whole]
        self.read([var for var, apart in zip(bind.vars, split, strict=True) if not apart], binds)

    def loop(self, bind: f.Bind, loop: f.For | f.While, binds: list[f.Bind]) -> None:
        width = len(loop.state)
        split, state, whole = self.parted(loop.state)
        inits = self.spread(loop.inits, split)
        apart = [*split, *[False] * loop.collect]
        left = tuple([s for s, one in zip(loop.state, split, strict=True) if not one])
        if isinstance(loop, f.While):
            cond = self.started(self.block(loop.cond, left), whole, again=True)
            body = self.started(self.block(loop.body, left, apart), whole)
            rhs: f.Rhs = f.While(state, inits, cond, body, loop.collect)
        else:
            body = self.started(self.block(loop.body, left, apart), whole)
            rhs = f.For(loop.index, self.atom(loop.count), state, inits, body, loop.collect)
        _, made, after = self.parted(bind.vars[:width])
        binds += [f.Bind((*made, *bind.vars[width:]), rhs), *after]
        self.read([var for var, one in zip(bind.vars, apart) if not one], binds)

    def started(self, block: f.Block, whole: list[f.Bind], again: bool = False) -> f.Block:
        """A block that first puts state together; `again`: under other names, as another block does so, too."""
        started = f.Block((*whole, *block.binds), block.results)
        return Copier(self.supply, {}).block(started) if again and whole else started


def same(var: f.Var) -> f.Var:
    return var
