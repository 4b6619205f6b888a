"""flat -> flat where linear recursion (one call at most on every path) becomes two loops.  (Danvy and Goldberg 2005:
"There and back again".)

    fn f(x, n)                               (x', kept) = while (n > 0) keep x { yield x / 2, n - 1 }
      if n > 0 { y = f(x / 2, n - 1)   =>    r = x'
                 yield x * y }               for the rows of kept, last first { r = x * r }
      else { yield x }

The first loop runs the code before the call, the second one the code after it, last step first.  Each step of the first
loop keeps the variables that the second one needs, and the number of the call if there are several.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node, record, replace

from dplc.flat import term as f
from dplc.flat.copy import Copier, Renamed
from dplc.flat.types import of_rank
from dplc.flat.walk import atoms, binders, blocks, every, mentioned, supply_for, with_branches
from dplc.passes.recursion.tail_calls import filler, flagged, is_call, is_pure, rotated
from dplc.passes.simplify.dead_code import drop_unused

NUMBER = f.Num("u8")  # the type of a call's number: `linear_recursion.LARGE` limits the number of calls


def two_loops(program: f.Program, name: str) -> f.Program | None:
    """The program with that function as loops.  None if that is impossible."""
    fn = program.fns[name]
    body = _TwoLoops(supply_for(program), fn).body() if linear(fn.body, name) else None
    return None if body is None else replace(program, fns=program.fns | {name: replace(fn, body=body)})


def linear(block: f.Block, name: str) -> bool:
    """True if every path through a block makes at most one call, and no loop makes a call."""
    calling = [bind for bind in block.binds if calls(bind.rhs, name)]
    match calling:
        case []:
            return True
        case [f.Bind(_, f.Call())]:
            return True
        case [f.Bind(_, f.If() | f.Switch() as choice)]:
            return all(linear(inner, name) for inner in blocks(choice))
        case _:
            return False


def calls(rhs: f.Rhs, name: str) -> bool:
    return is_call(rhs, name) or any(is_call(bind.rhs, name) for inner in blocks(rhs) for bind in every(inner))


@node
class Rest:
    """The code after a binding, which uses the variables that it binds."""

    vars: tuple[f.Var, ...]
    binds: tuple[f.Bind, ...]
    results: tuple[f.Atom, ...]


@record
class Back:
    """The code after one of the calls, the variables that it needs from the code before, and the names in scope
    there."""

    values: tuple[f.Var, ...]
    block: f.Block
    kept: list[f.Var]
    there: set[str]


class _TwoLoops:
    def __init__(self, supply: f.Supply, fn: f.Fn) -> None:
        self.supply = supply
        self.fn = fn
        self.steps = f.Var(supply.fresh("steps"), f.I64)
        made = [bind.rhs for bind in every(fn.body) if is_call(bind.rhs, fn.name)]
        self.fixed = {p.name for i, p in enumerate(fn.params) if all(atoms(call)[i] == p for call in made)}
        self.backs: list[Back] = []
        self.find(fn.body, (), {p.name for p in fn.params})
        self.choose()
        self.kept = [f.Var(supply.fresh("kept"), ty) for ty in self.places]
        self.made = 0

    def body(self) -> f.Block | None:
        """The two loops."""
        down = replace(self.fn, params=(*self.fn.params, self.steps, *self.kept), body=self.down(self.fn.body, ()))
        begin: list[f.Bind] = []
        nothing = [filler(ty, begin, self.supply) for ty in self.places]
        turned = rotated(down, self.supply)
        block = turned or flagged(down, self.supply)
        return None if block is None else self.around(begin, nothing, block, exact=turned is not None)

    # ---- what is kept --------------------------------------------------------------------------------------------

    def find(self, block: f.Block, pending: tuple[Rest, ...], there: set[str]) -> None:
        """Finds the code after each call, in the order of the calls in the text."""
        for i, bind in enumerate(block.binds):
            if calls(bind.rhs, self.fn.name):
                rests = (Rest(bind.vars, block.binds[i + 1 :], block.results), *pending)
                if isinstance(bind.rhs, f.Call):
                    self.backs.append(self.back(rests, there))
                for inner in blocks(bind.rhs):
                    self.find(inner, rests, there | {v.name for v in binders(bind.rhs)})
                return
            there = there | {v.name for v in bind.vars}

    def back(self, rests: Sequence[Rest], there: set[str]) -> Back:
        values = tuple([f.Var(self.supply.fresh("r"), v.ty) for v in rests[0].vars])
        block = self.finished(values, rests)
        return Back(values, block, self.free(block, {v.name for v in values}), there)

    def free(self, block: f.Block, known: set[str]) -> list[f.Var]:
        """The free variables of a block, without those that never change."""
        known = known | self.fixed | {v.name for b in every(block) for v in (*b.vars, *binders(b.rhs))}
        return [v for name, v in mentioned(block).items() if name not in known]

    def choose(self) -> None:
        """Chooses how the second loop finds the call that was made: by its number, or by evaluating the conditions
        before it again, if the values needed for that take less room than the number."""
        self.asked = False
        first: list[f.Var] = []
        if len(self.backs) > 1:
            first = [f.Var(self.supply.fresh("which"), NUMBER)]
            if all(answerable(bind.rhs, self.fn.name) for bind in every(self.fn.body)):
                ends = [f.Block((), (f.Const(k, f.I64),)) for k, _ in enumerate(self.backs)]
                asked = self.free(drop_unused(self.again(self.fn.body, ends)), set())
                if len(self.room(asked)) < len(self.room(first)):
                    self.asked, first = True, asked
        self.first, self.places = first, self.room(first)

    def room(self, first: list[f.Var]) -> list[f.Type]:
        """The types of the kept places, of which the first are for `first`."""
        more: list[f.Type] = []
        for back in self.backs:
            free = list(more)
            for var in back.kept:
                if var not in first:
                    free.remove(var.ty) if var.ty in free else more.append(var.ty)
        return [*(v.ty for v in first), *more]

    def taken(self, back: Back) -> dict[int, f.Var]:
        """The kept variable in each place, for the code after one call."""
        places = {k: var for k, var in enumerate(self.first) if var.name in back.there}
        for var in back.kept:
            if var not in self.first:
                free = range(len(self.first), len(self.places))
                places[next(k for k in free if self.places[k] == var.ty and k not in places)] = var
        return places

    def again(self, block: f.Block, ends: list[f.Block]) -> f.Block:
        """The path through a block to its calls, without the bindings that do not compute numbers.  Each call is
        replaced by one of the `ends`."""
        i, bind = next((i, bind) for i, bind in enumerate(block.binds) if calls(bind.rhs, self.fn.name))
        before = tuple([b for b in block.binds[:i] if is_number(b)])
        if isinstance(bind.rhs, f.Call):
            return ends.pop(0)
        ways = [
            self.again(inner, ends)
            for inner in blocks(bind.rhs)
            if any(calls(b.rhs, self.fn.name) for b in inner.binds)
        ]
        if len(ways) == 1:
            return f.Block((*before, *ways[0].binds), ways[0].results)
        vars_ = tuple([f.Var(self.supply.fresh("r"), a.ty) for a in ways[0].results])
        return f.Block((*before, f.Bind(vars_, with_branches(bind.rhs, ways))), vars_)

    # ---- there ---------------------------------------------------------------------------------------------------
    def finished(self, values: Sequence[f.Atom], rests: Sequence[Rest]) -> f.Block:
        copier = Copier(self.supply, {})
        binds: list[f.Bind] = []
        for rest in rests:
            copier.atoms.update(zip((v.name for v in rest.vars), values, strict=True))
            binds += copier.binds(rest.binds)
            values = [copier.atom(a) for a in rest.results]
        return f.Block(tuple(binds), tuple(values))

    def down(self, block: f.Block, pending: tuple[Rest, ...]) -> f.Block:
        """A block whose calls are tail calls.  They also pass the number of steps and the kept values."""
        for i, bind in enumerate(block.binds):
            if not calls(bind.rhs, self.fn.name):
                continue
            before, results = block.binds[:i], tuple([f.Var(self.supply.fresh("r"), ty) for ty in self.fn.results])
            if isinstance(bind.rhs, f.Call):
                more = f.Var(self.supply.fresh("steps"), f.I64)
                count = f.Bind((more,), f.Op("add", (self.steps, f.Const(1, f.I64))))
                call = replace(bind.rhs, args=(*bind.rhs.args, more, *self.row()))
                return f.Block((*before, count, f.Bind(results, call)), results)
            rests = (Rest(bind.vars, block.binds[i + 1 :], block.results), *pending)
            choice = with_branches(bind.rhs, [self.down(inner, rests) for inner in blocks(bind.rhs)])
            return f.Block((*before, f.Bind(results, choice)), results)
        rest = self.finished(block.results, pending)
        return f.Block((*block.binds, *rest.binds), rest.results)

    def row(self) -> list[f.Atom]:
        """The values kept at the next call."""
        places = self.taken(self.backs[self.made])
        row: list[f.Atom] = [places.get(k, var) for k, var in enumerate(self.kept)]
        if len(self.backs) > 1 and not self.asked:
            row[0] = f.Const(self.made, NUMBER)
        self.made += 1
        return row

    # ---- and back ------------------------------------------------------------------------------------------------

    def around(self, begin: list[f.Bind], nothing: list[f.Atom], block: f.Block, exact: bool) -> f.Block:
        """The first loop and the code around it, then the second loop.  `exact`: each step of the first loop makes a
        call."""
        at = next(i for i, bind in enumerate(block.binds) if isinstance(bind.rhs, f.While))
        loop, vars_ = block.binds[at].rhs, block.binds[at].vars
        assert isinstance(loop, f.While)
        first = next(i for i, a in enumerate(loop.inits) if a == self.steps)
        here, after = slice(first + 1, first + 1 + len(self.kept)), first + 1 + len(self.kept)
        known = dict(zip((s.name for s in loop.state[here]), nothing, strict=True))

        def without(items: tuple) -> tuple:
            return (*items[: first + 1], *items[after:])

        body = Renamed(known).block(loop.body)
        cond = Renamed(known).block(loop.cond)
        inits = tuple([f.Const(0, f.I64) if a == self.steps else a for a in without(loop.inits)])
        body = f.Block(body.binds, (*without(body.results), *body.results[here]))
        there = f.While(without(loop.state), inits, cond, body, len(self.kept))
        row = f.Var(self.supply.fresh("kept"), of_rank(f.Tup(tuple(self.places)), 1))
        rows = (row,) if self.kept else ()
        binds = [*begin, *block.binds[:at], f.Bind((*without(vars_), *rows), there)]
        binds += block.binds[at + 1 :]
        steps = vars_[first]
        if exact and rows:
            steps = f.Var(self.supply.fresh("steps"), f.I64)
            binds.append(f.Bind((steps,), f.Op("dim", rows, (("k", 0),))))
        return self.upwards(binds, steps, row, block.results)

    def upwards(self, binds: list[f.Bind], steps: f.Var, rows: f.Var, ends: tuple[f.Atom, ...]) -> f.Block:
        supply = self.supply
        j, last, i = (f.Var(supply.fresh(hint), f.I64) for hint in ("j", "last", "i"))
        state = tuple([f.Var(supply.fresh("r"), ty) for ty in self.fn.results])
        parts = [f.Var(supply.fresh("kept"), ty) for ty in self.places]
        body = [f.Bind((i,), f.Op("sub", (last, j)))]
        if parts:
            row = f.Var(supply.fresh("row"), f.Tup(tuple(self.places)))
            body.append(f.Bind((row,), f.Op("index", (rows, i), (("unchecked", True),))))
            body += [f.Bind((part,), f.TupGet(row, k)) for k, part in enumerate(parts)]
        step = self.step(state, parts)
        block = f.Block((*body, *step.binds), step.results)
        outs = tuple([f.Var(supply.fresh("r"), ty) for ty in self.fn.results])
        back = f.Bind(outs, f.For(j, steps, state, ends, block))
        before = f.Bind((last,), f.Op("sub", (steps, f.Const(1, f.I64))))
        return f.Block((*binds, before, back), outs)

    def step(self, state: tuple[f.Var, ...], parts: list[f.Var]) -> f.Block:
        """The step of the second loop: the code after the call that was made."""
        ends = [self.end(back, state, parts) for back in self.backs]
        if len(ends) == 1:
            return ends[0]
        if self.asked:
            known = {var.name: part for var, part in zip(self.first, parts, strict=False)}
            return Copier(self.supply, known).block(self.again(self.fn.body, ends))
        outs = tuple([f.Var(self.supply.fresh("r"), ty) for ty in self.fn.results])
        cases = tuple([f.Case(k, None, end) for k, end in enumerate(ends)])
        return f.Block((f.Bind(outs, f.Switch(parts[0], cases, None)),), outs)

    def end(self, back: Back, state: tuple[f.Var, ...], parts: list[f.Var]) -> f.Block:
        known: dict[str, f.Atom] = {v.name: s for v, s in zip(back.values, state, strict=True)}
        known |= {var.name: parts[k] for k, var in self.taken(back).items()}
        return Copier(self.supply, known).block(back.block)


def is_number(bind: f.Bind) -> bool:
    """True for a pure operation on numbers."""
    return isinstance(bind.rhs, f.Op) and is_pure(bind.rhs) and all(
        isinstance(a.ty, f.Num) for a in (*bind.vars, *bind.rhs.args)
    )  # fmt: skip


def answerable(rhs: f.Rhs, name: str) -> bool:
    """True if a branch that leads to calls can be decided again from numbers alone."""
    if not isinstance(rhs, f.Switch) or not calls(rhs, name):
        return True
    return isinstance(rhs.scrutinee.ty, f.Num) and all(
        any(calls(bind.rhs, name) for bind in inner.binds) for inner in blocks(rhs)
    )
