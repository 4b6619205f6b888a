"""An element of a comprehension that is chosen by its value is computed again: flat -> flat.

    d = build j < n { ...; yield e }                  d = build j < n { ...; yield e }
    m = for i < n - 1 state (s = d[0])                best = for i < n - 1 state (b = 0)
      t = min s d[i + 1]                       =>       c = select (d[b] <= d[i + 1]) b (i + 1);  yield c
      yield t                                         ...;  m = e                  with `best` in place of j

Only numbers of elements depend on `d` then, so no derivative flows through it: reverse mode goes through the chosen
element alone, instead of all n with cotangents that are zero.  Done in functions that are differentiated; it costs one
element more, so plain calls of such a function have it as it was (`plain_copies.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dpl.node import field, node, record, replace

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.copy import Copier
from dplc.flat.dims import dims_of
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import atoms, blocks, every, names, supply_for, with_blocks
from dplc.passes.arrays.bounds import without_checks
from dplc.passes.arrays.plain_copies import with_plain_copies
from dplc.passes.simplify.callers import differentiated
from dplc.passes.simplify.dead_code import drop_unused
from dplc.passes.simplify.purity import HERE


def chosen_elements(program: f.Program) -> f.Program:
    derived = differentiated(program)
    if not derived:
        return program
    supply, silent = supply_for(program), quiet_functions(program)
    fns = {name: changed(fn, supply, silent) for name, fn in program.fns.items() if name in derived}
    return with_plain_copies(program, fns, derived, supply)


def quiet_functions(program: f.Program) -> set[str]:
    """The functions without effects; they may fail."""
    loud = {name for name, fn in program.fns.items() if not all(is_quiet(bind.rhs) for bind in every(fn.body))}
    while True:
        more = {n for n, fn in program.fns.items() if n not in loud and not loud.isdisjoint(callees(fn.body))}
        if not more:
            return program.fns.keys() - loud
        loud |= more


def is_quiet(rhs: f.Rhs) -> bool:
    return OPS[rhs.op].quiet if isinstance(rhs, f.Op) else not isinstance(rhs, f.Ad)


def changed(fn: f.Fn, supply: f.Supply, silent: set[str]) -> f.Fn:
    """The function; a comprehension that is not needed any more is dropped, if no index in it need be checked."""
    places = Places()
    places.block(fn.body, 0)
    if not any(isinstance(rhs, f.Build) for rhs in places.made.values()):
        return fn
    chooser = _Chooser(places, supply, silent)
    body = chooser.block(fn.body)
    if not chooser.chosen:
        return fn
    fn = without_checks(replace(fn, body=body), dims_of(body), lambda: supply)
    return replace(fn, body=drop_unused(fn.body))


# ---- where variables are made and used ------------------------------------------------------------------------------


@record
class Places:
    """For each variable, what makes it, what uses it, and how many loops are around it."""

    made: dict[str, f.Rhs] = field(default_factory=dict)
    used: dict[str, list[f.Bind | None]] = field(default_factory=lambda: defaultdict(list))  # None: a block's result
    depth: dict[str, int] = field(default_factory=dict)

    def block(self, block: f.Block, depth: int) -> None:
        for bind in block.binds:
            self.made |= {var.name: bind.rhs for var in bind.vars}
            self.depth |= {var.name: depth for var in bind.vars}
            for name in names(atoms(bind.rhs)):
                self.used[name].append(bind)
            deeper = depth + isinstance(bind.rhs, f.For | f.While | f.Build)
            for inner in blocks(bind.rhs):
                self.block(inner, deeper)
        for name in names(block.results):
            self.used[name].append(None)

    def op(self, atom: f.Atom, op: str) -> f.Op | None:
        """The operation of that name that makes an atom."""
        made = self.made.get(atom.name) if isinstance(atom, f.Var) else None
        return made if isinstance(made, f.Op) and made.op == op else None

    def only_compared(self, bind: f.Bind) -> bool:
        """True if only truth values and integers depend on what a binding reads of an array."""
        if not isinstance(bind.rhs, f.Op):
            return False
        if all(is_whole(var.ty) for var in bind.vars):
            return True
        if bind.rhs.op != "index":
            return False
        uses = [use for var in bind.vars for use in self.used[var.name]]
        return all(use is not None and isinstance(use.rhs, f.Op) and is_whole(use.vars[0].ty) for use in uses)


def is_whole(ty: f.Type) -> bool:
    return isinstance(ty, f.Num) and not f.is_float(ty)


@node
class Extreme:
    """A loop that finds the least or greatest number of an array."""

    array: f.Var
    loop: f.For
    next: f.Var  # the index of the element that a step looks at
    keeps: str


def extreme(places: Places, bind: f.Bind) -> Extreme | None:
    match bind.rhs:
        case f.For(i, _, (state,), (init,), f.Block(binds, (result,)), 0) as loop if len(binds) == 3:
            first = places.op(init, "index")
            least = places.made.get(result.name) if isinstance(result, f.Var) else None
            if first is None or not isinstance(least, f.Op) or not OPS[least.op].keeps or least.args[0] != state:
                return None
            read = places.op(least.args[1], "index")
            if read is None or len(read.args) != 2 or first.args[1:] != (f.Const(0, f.I64),):
                return None
            array, at = read.args
            step = places.op(at, "add")
            if step is None or step.args != (i, f.Const(1, f.I64)) or array != first.args[0]:
                return None
            if isinstance(array, f.Var) and isinstance(at, f.Var):
                return Extreme(array, loop, at, OPS[least.op].keeps)
        case _:
            pass
    return None


# ---- the new code ---------------------------------------------------------------------------------------------------


@record
class _Chooser:
    """One function; `chosen` counts the elements that are computed again."""

    places: Places
    supply: f.Supply
    silent: set[str]
    chosen: int = 0

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            binds += self.bind(bind)
        return f.Block(tuple(binds), block.results)

    def bind(self, bind: f.Bind) -> Iterator[f.Bind]:
        found = extreme(self.places, bind)
        if found is not None and self.made_of(found.array, bind) is not None:
            best = f.Var(self.supply.fresh("best"), f.I64)
            yield self.search(found, best)
            yield from self.again(found.array, best, bind.vars[0])
            return
        match bind.rhs:
            case f.Op("index", (f.Var() as array, f.Var() as at)) as op if self.made_of(array, bind) is not None:
                if not op.attr("unchecked"):
                    checked = f.Var(self.supply.fresh("x"), bind.vars[0].ty)
                    yield f.Bind((checked,), op)
                yield from self.again(array, at, bind.vars[0])
            case rhs:
                yield f.Bind(bind.vars, with_blocks(rhs, self.block))

    def made_of(self, array: f.Var, read: f.Bind) -> f.Build | None:
        """The comprehension that makes an array, if only one read needs its elements for more than comparisons, once
        for each time that it is made."""
        build = self.places.made.get(array.name)
        if not isinstance(build, f.Build) or len(build.body.results) > 1:
            return None
        if rank_of(array.ty) != 1 or not holds_floats(elem_of(array.ty)):
            return None
        if self.places.depth[array.name] != self.places.depth[read.vars[0].name] or not self.repeatable(build.body):
            return None
        loops = [use for use in self.places.used[array.name] if use is not read and not self.part_of(use, read)]
        return build if all(use is not None and self.places.only_compared(use) for use in loops) else None

    def part_of(self, use: f.Bind | None, read: f.Bind) -> bool:
        """True if the use is a read by the loop `read`, which finds the least or greatest element."""
        if use is None or not isinstance(read.rhs, f.For):
            return False
        if use in read.rhs.body.binds:
            return True
        return use.vars == read.rhs.inits and self.places.used[use.vars[0].name] == [read]

    def repeatable(self, body: f.Block) -> bool:
        return all(
            bind.rhs.fn in self.silent if isinstance(bind.rhs, f.Call) else is_quiet(bind.rhs) for bind in every(body)
        )

    def search(self, found: Extreme, best: f.Var) -> f.Bind:
        """The loop that finds the place of the element: the first of equals, or the first that is not a number."""
        step, state = found.loop.body.binds, f.Var(self.supply.fresh("best"), f.I64)
        made: list[f.Bind] = [b for b in step if b.vars == (found.next,)]

        def op(name: str, *args: f.Atom, ty: f.Type, how: tuple = ()) -> f.Var:
            var = f.Var(self.supply.fresh(name), ty)
            made.append(f.Bind((var,), f.Op(name, args, how)))
            return var

        ty, sure = elem_of(found.array.ty), (("unchecked", HERE),)
        low = op("index", found.array, state, ty=ty, how=sure)
        other = op("index", found.array, found.next, ty=ty, how=sure)
        keep = op(found.keeps, low, other, ty=f.BOOL)
        keep = op("or", keep, op("ne", low, low, ty=f.BOOL), ty=f.BOOL)
        chosen = op("select", keep, state, found.next, ty=f.I64)
        body = f.Block(tuple(made), (chosen,))
        return f.Bind((best,), f.For(found.loop.index, found.loop.count, (state,), (f.Const(0, f.I64),), body))

    def again(self, array: f.Var, at: f.Var, var: f.Var) -> Iterator[f.Bind]:
        """Computes the element at an index of a comprehension."""
        build = self.places.made[array.name]
        assert isinstance(build, f.Build)
        self.chosen += 1
        copy = Copier(self.supply, {build.index.name: at}).block(build.body)
        yield from copy.binds
        tup = f.Var(self.supply.fresh("t"), f.Tup((var.ty,)))
        yield f.Bind((tup,), f.TupMake(copy.results))
        yield f.Bind((var,), f.TupGet(tup, 0))


def holds_floats(ty: f.Type) -> bool:
    match ty:
        case f.Tup(items):
            return any(map(holds_floats, items))
        case f.Num():
            return f.is_float(ty)
        case _:
            return True
