"""Where arrays are: before the host looks at elements that a device may have written, it asks for them.

    (a) = call f x              (a) = call f x
    for i < n { ... a[i] }  =>  need_host a
                                for i < n { ... a[i] }

Arrays do not change while they have a name, so one question is enough for a variable, before the loops in which it is
read.  What an operation of the host has made needs no question.  A Par asks for what its points use when it turns out
to run on the host (`machine/emit/launches/launch.py`); its points ask for what calls in them give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeGuard, TypeVar

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.ops.columns import free
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, is_numbers, rank_of
from dplc.flat.walk import atoms, blocks, bound_inside, rebuild, used, with_binds, with_rhs
from dplc.passes.kernels.independence import gives_numbers

Same = TypeVar("Same")
DEEPEST = 3  # loops in loops whose state is looked at twice


def place(program: f.Program) -> f.Program:
    """The program with its questions."""
    made = program.copy()
    made.fns = {name: replace(fn, body=_Places().block(fn.body, set(), False)) for name, fn in program.fns.items()}
    return made


class _Places:
    """A walk through a function.  `home` are the variables whose elements the host has."""

    def __init__(self) -> None:
        self.depth = 0

    def block(self, block: f.Block, home: set[str], points: bool) -> f.Block:
        """The block with its questions; adds to `home` what the host has after it."""
        binds: list[f.Bind] = []
        for bind in block.binds:
            self.ask(self.wanted(bind.rhs, points), home, binds)
            rhs, made = self.inside(bind.rhs, home, points)
            home.update(var.name for var, known in zip(bind.vars, made, strict=False) if known)
            binds.append(with_rhs(bind, rhs))
        return with_binds(block, binds)

    def ask(self, wanted: Iterable[f.Var], home: set[str], binds: list[f.Bind]) -> None:
        for var in wanted:
            if var.name not in home:
                home.add(var.name)
                binds.append(f.Bind((), f.Op("need_host", (var,))))

    def points(self, par: f.Par, home: set[str], points: bool) -> f.Par:
        """A Par whose points ask for what they read, and for the rows that they give, which are copied.  Arrays in a
        tuple that they give stay where they are.  Where points launch nothing, what they add to stays where it was."""
        if points:
            targets = [(out.acc, out.target) for out in par.outs if out.acc is not None]
            home.update(acc.name for acc, target in targets if target is not None and is_home(target, home))
        body = self.block(par.body, home, points)
        binds = list(body.binds)
        self.ask((x for x in body.results if is_array(x)), home, binds)
        if len(binds) > len(body.binds):
            body = f.Block(tuple(binds), body.results)
        return par if body is par.body else replace(par, body=body)

    def wanted(self, rhs: f.Rhs, points: bool) -> Iterable[f.Var]:
        """What a right-hand side reads of variables from outside of it.  The points of a Par ask by themselves."""
        found = {var.name: var for var in read(rhs, points)}
        if found and not isinstance(rhs, f.Op):
            for var in bound_inside(rhs):
                found.pop(var.name, None)
        return found.values()

    def inside(self, rhs: f.Rhs, home: set[str], points: bool) -> tuple[f.Rhs, list[bool]]:
        """A right-hand side with its questions, and which of its results the host has."""
        match rhs:
            case f.Par():
                if points or in_turn(rhs):
                    return self.points(rhs, set(home), points), [True for _ in rhs.outs]
                own = {var.name for var in bound_inside(rhs)}
                outside = {var.name for var in variables(rhs) if var.name not in own}
                return self.points(rhs, home | outside, True), [False for _ in rhs.outs]
            case f.For() | f.While():
                return self.loop(rhs, home, points)
            case f.If() | f.Switch():
                made: list[list[bool]] = []

                def arm(block: f.Block) -> f.Block:
                    inner = set(home)
                    done = self.block(block, inner, points)
                    made.append([is_home(atom, inner) for atom in done.results])
                    return done

                return rebuild(rhs, same, arm, same), [all(column) for column in zip(*made, strict=True)]
            case f.Op(_, args):
                if holds_others(args):
                    return rhs, []
                if may_be_launched(rhs):
                    return rhs, [points]
                if rhs.op == "acc_add":  # it may be the second one
                    return rhs, [all(is_home(x, home) for x in args)]
                return rhs, [looks(rhs) or any(is_home(x, home) for x in args[:1])]
            case f.TupGet(tup):
                return rhs, [is_home(tup, home)]
            case f.TupMake(items):
                return rhs, [all(is_home(item, home) for item in items)]
            case _:
                return rhs, []

    def loop(self, loop: f.For | f.While, home: set[str], points: bool) -> tuple[f.Rhs, list[bool]]:
        """A loop.  The host has its state if it has what the loop starts with, and what a step gives."""
        known = [is_home(init, home) for init in loop.inits]
        self.depth += 1
        done, after = self.steps(loop, home, known, points)
        while after != known:
            known = after if self.depth <= DEEPEST else [False] * len(known)
            done, after = self.steps(loop, home, known, points)
            after = [a and b for a, b in zip(after, known, strict=True)]
        self.depth -= 1
        return done, known

    def steps(self, loop: f.For | f.While, home: set[str], known: list[bool], points: bool) -> tuple[f.Rhs, list[bool]]:
        """A loop with its questions, where the host has what is `known` of the state before each step; and what it has
        of that after a step."""
        before = home | {var.name for var, here in zip(loop.state, known, strict=True) if here}
        ends: list[list[bool]] = []

        def block(old: f.Block) -> f.Block:
            inner = set(before)
            done = self.block(old, inner, points)
            ends.append([is_home(x, inner) for x in done.results[: len(known)]])
            return done

        done = rebuild(loop, same, block, same)
        return done, [a and b for a, b in zip(known, ends[-1], strict=True)]


def same(x: Same) -> Same:
    return x


def read(rhs: f.Rhs, points: bool) -> Iterator[f.Var]:
    """The variables whose elements the host reads in a right-hand side."""
    match rhs:
        case f.Op() if looks(rhs) and (points or not may_be_launched(rhs)):
            yield from filter(is_array, rhs.args)
        case f.Par() if not in_turn(rhs):
            if points:
                yield from (x for x in variables(rhs) if has_numbers(x.ty))
        case f.For() | f.While() | f.Par():
            for block in blocks(rhs):
                for bind in block.binds:
                    yield from deeply(bind.rhs, points)
        case _:
            pass


def deeply(rhs: f.Rhs, points: bool) -> Iterator[f.Var]:
    """The same, with what is read in branches."""
    yield from read(rhs, points)
    if isinstance(rhs, f.If | f.Switch):
        for block in blocks(rhs):
            for bind in block.binds:
                yield from deeply(bind.rhs, points)


def in_turn(par: f.Par) -> bool:
    """True for a Par whose points the host does one after the other, so that what they do may be launched."""
    return par.ordered or not gives_numbers(par.body)


def variables(par: f.Par) -> Iterator[f.Var]:
    """The variables that a Par uses."""
    return (x for x in (*atoms(par), *used(par.body)) if isinstance(x, f.Var))


def looks(op: f.Op) -> bool:
    """True if an operation looks at elements: not for views and lengths, which cost nothing, and not for zeros in place
    of null, or for a sum of which one part may be null, which asks by itself where it adds."""
    if op.op in ("acc_zeros", "acc_add"):
        return False
    if op.op == "index":
        return rank_of(op.args[0].ty) == len(op.args) - 1
    row = OPS[op.op]
    return row.cost is not free or row.fresh or row.elementwise


def may_be_launched(op: f.Op) -> bool:
    """True for products of matrices and convolutions for which devices have kernels."""
    return op.op.startswith(("matmul", "conv2d")) and elem_of(op.args[0].ty) in (f.F32, f.F64)


def holds_others(args: tuple[f.Atom, ...]) -> bool:
    """True if an operand is a reference, or an array of values that hold arrays: what comes from there may be
    anywhere."""
    return any(isinstance(x.ty, f.Ref) or (isinstance(x.ty, f.Arr) and has_numbers(x.ty.elem)) for x in args)


def is_home(atom: f.Atom, home: set[str]) -> bool:
    return isinstance(atom, f.Const) or atom.name in home or not has_numbers(atom.ty)


def is_array(atom: f.Atom) -> TypeGuard[f.Var]:
    """True for an array of numbers.  An operation never reads the elements of arrays in a tuple: it puts the tuple
    somewhere."""
    return isinstance(atom, f.Var) and isinstance(atom.ty, f.Arr) and has_numbers(atom.ty)


def has_numbers(ty: f.Type) -> bool:
    """True for arrays of numbers and tuples with such arrays: only these are on devices."""
    match ty:
        case f.Tup(items):
            return any(map(has_numbers, items))
        case f.Arr():
            return is_numbers(elem_of(ty))
        case _:
            return False
