"""Reverse mode through calls, loops and comprehensions.

    s' = for i < n state (s = a)         forward:  s', kept = for i < n state (s = a) { t = ...; yield t, (x, y) }
      t = ...                      =>    backward: cs, cw' = for j < n state (cs = cs', cw = cw0)
      yield t                                        i = n - 1 - j;  (x, y) = kept[i];  ...

Each step of a loop keeps a tuple of residuals, and the loop an array of these tuples.  A call keeps the residual that
its f.fwd returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dpl.node import field, record, replace

from dplc.ad.activity import Node
from dplc.ad.derivatives import Reversed, Seeds
from dplc.ad.height import lowered
from dplc.ad.loops import split, with_states
from dplc.ad.reverse.cotangents import Inner, LoopScope, Scope, if_there, unless
from dplc.ad.reverse.filled import fill_over
from dplc.ad.reverse.jacobian import products
from dplc.ad.reverse.tape import Reverse, Runs, Tape
from dplc.ad.tangents.symbolic_zeros import (
    MAYBE_ZERO,
    ZERO_ELEMENTS,
    Part,
    Told,
    absence,
    after_loop,
    atom_of,
    by_sign,
    either,
    how_told,
    nowhere,
    sent,
    together,
)
from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.dims import inside, names_inside
from dplc.flat.ops.row import Dim
from dplc.flat.ops.table import OPS
from dplc.flat.types import of_rank, rank_of
from dplc.flat.walk import every

EXISTING = 1  # the cost of reading what is in an array that exists already


@record
class Call:
    reverse: Reverse
    tape: Tape
    call: f.Call
    vars: tuple[f.Var, ...]
    made: tuple[Reversed, f.Var] | None = None

    def forward(self) -> list[f.Bind]:
        if self.made is None:
            return [f.Bind(self.vars, self.call)]
        made, residual = self.made
        return [f.Bind((*self.vars, residual), f.Call(made.fwd, self.call.args, self.call.span))]

    def backward(self, scope: Scope) -> None:
        self.made = None
        parts = [(i, part) for i, part in enumerate(self.reverse.result_parts(scope, self.vars)) if part is not None]
        if not parts:
            return
        if len(parts) == 1 and parts[0][1].nullable:
            ((i, part),) = parts
            if_there(scope, part, lambda inner, there: self.pull(inner, [(i, there)]))
        else:
            self.pull(scope, parts)

    def pull(self, scope: Scope, parts: Sequence[tuple[int, Part]]) -> None:
        """Multiplies by the Jacobian, or calls f.bwd: the accumulators of the active arguments go in and come out."""
        d = self.reverse.d
        deps = d.deps(self.call.fn)
        nodes = enumerate(node for arg in self.call.args for node in self.reverse.nodes(arg))
        targets = {
            i: node for i, node in nodes
            if node is not None and scope.active(node) and any(i in deps[r] for r, _ in parts)
        }  # fmt: skip
        if not targets:
            return
        accepted, asked = d.useful(self.call.fn, tuple(targets), tuple((i, part.zeros) for i, part in parts))
        made = d.reverse(self.call.fn, accepted, asked, self.call.span)
        residual = self.tape.own(scope.b.var("res", made.residual))
        self.made = (made, residual)
        given = dict(parts)
        if made.jacobian:
            for _, k, part in products(scope.b, residual, [given.get(r) for r, _ in asked], made.zeros):
                scope.add(targets.get(accepted[k]), part)
            return
        nothing = nowhere(scope.b, list(given.values())) if self.is_long(given.values()) else None
        if nothing is None:
            self.swept(scope, targets, given, accepted, asked)
        else:
            unless(scope, nothing, lambda inner: self.swept(inner, targets, given, accepted, asked))

    def is_long(self, parts: Iterable[Part]) -> bool:
        """True if it pays to ask first whether there is anything to pull back.  Arrays and data are work; and what a
        recursion has computed in vain, as for the operand that `min` has not chosen, may be most of a tree."""
        return all(part.nullable for part in parts) or self.reverse.d.recurs(self.call.fn)

    def swept(
        self, scope: Scope, targets: dict[int, Node], given: dict[int, Part], accepted: Sequence[int], asked: Seeds
    ) -> None:
        """Calls f.bwd for the leaves `accepted` of the arguments and `asked` of the results."""
        assert self.made is not None
        made, residual = self.made
        firsts = {node: i for i, node in reversed(targets.items())}
        before = {i: part for i, node in targets.items() if firsts[node] == i and not counted(part := scope.get(node))}
        ins, outs = self.leaves(self.call.args), self.leaves(self.vars)
        accs = [sent(scope.b, before.get(i), ins[i]) for i in accepted]
        args = (residual, *(sent(scope.b, given.get(i), outs[i]) for i, _ in asked), *accs)
        after = scope.b.calls(made.bwd, args, [ins[i] for i in accepted], self.call.span)
        for i, out, zeros in zip(accepted, after, made.zeros, strict=True):
            if i in before:
                old = before[i]
                scope.set(targets[i], by_sign(scope.b, out, zeros if old is None else together(zeros, old.zeros)))
            elif i in targets:
                scope.add(targets[i], by_sign(scope.b, out, zeros))

    def leaves(self, atoms: Sequence[f.Atom]) -> list[f.Type]:
        return [leaf for atom in atoms for leaf in self.reverse.tangents.leaves(atom.ty)]


def counted(part: Part | None) -> bool:
    """True for a sum over a loop whose contributions are counted.  It does not go through a call, so that it is seen to
    be a sum: what the call adds is added to it."""
    return part is not None and part.count is not None


@record
class Body:
    """The body of a loop or comprehension, written backwards: the code that both share."""

    reverse: Reverse
    home: Tape
    tape: Tape
    kept: list[f.Var] = field(default_factory=list)
    array: f.Var | None = None  # of the tuples that the steps keep
    apart: list[tuple[f.Var, f.Var]] = field(default_factory=list)  # kept in arrays of their own

    def forget(self) -> None:
        self.kept, self.array, self.apart = [], None, []

    def finish(
        self, body: f.Block, index: f.Var, before: Sequence[f.Bind], given: set[str], arrays: dict[str, f.Var],
        regular: Callable[[f.Var], bool],
    ) -> f.Block:  # fmt: skip
        """The backward body with its prologue: `before`, then bindings that take the tuple kept by step `index` apart.
        Variables in `arrays` are read from arrays that exist already, and those that are `regular` from arrays of
        their own; but numbers beside data are in its tuple, as no vectors read them and an array less is made."""
        there = dict.fromkeys(arrays, EXISTING)
        kept, again = self.reverse.choose(body, self.tape, given, there)
        b = Builder(self.reverse.d.supply)
        alone = [var for var in kept if var.name not in arrays and regular(var)]
        if any(isinstance(var.ty, f.Data) for var in kept if var.name not in arrays):
            alone = [var for var in alone if isinstance(var.ty, f.Arr)]
        self.apart = [(var, self.home.own(b.var("kept", of_rank(var.ty, 1)))) for var in alone]
        arrays = {**arrays, **{var.name: array for var, array in self.apart}}
        self.kept = [var for var in kept if var.name not in arrays]
        for var in kept:
            if var.name in arrays:
                b.binds.append(f.Bind((var,), f.Op("index", (arrays[var.name], index), (("unchecked", True),))))
        if self.kept:
            ty = f.Tup(tuple(v.ty for v in self.kept))
            self.array = self.home.own(b.var("kept", f.Arr(ty, 1)))
            tup = b.op("index", (self.array, index), unchecked=True)
            b.binds += self.reverse.unkeep(self.kept, tup)
        return f.Block((*before, *b.binds, *again, *body.binds), body.results)


class Loop:
    """Reverses a For or a While."""

    def __init__(self, reverse: Reverse, tape: Tape, bind: f.Bind) -> None:
        rhs = bind.rhs
        assert isinstance(rhs, f.For | f.While)
        self.reverse = reverse
        self.bind = bind
        self.rhs = rhs
        index = (rhs.index,) if isinstance(rhs, f.For) else ()
        count = rhs.count if isinstance(rhs, f.For) else integer(0)
        self.tape = Tape(reverse, rhs.body, (*index, *rhs.state), tape, Runs.STEPS, count)
        self.body = Body(reverse, tape, self.tape)
        self.steps: f.Var | None = None  # the number of steps of a While
        self.held: dict[tuple, tuple[bool, Told]] = {}  # zeros of the results' cotangents -> what held, for `run`

    def backward(self, scope: Scope) -> None:
        self.body.forget()
        self.steps = None
        if any(self.reverse.result_parts(scope, self.bind.vars)):
            if isinstance(self.rhs, f.While):
                self.steps = self.body.home.own(scope.b.var("steps", f.I64))
            self.make_solid(scope)
            self.run(scope)

    def make_solid(self, scope: Scope) -> None:
        """Makes zeros of the cotangents of arrays that steps update, if they are null: so no step asks, where it takes
        one part of them."""
        updated = {bind.vars[0].ty for bind in every(self.rhs.body)
                   if isinstance(bind.rhs, f.Op) and bind.rhs.op == "update"}  # fmt: skip
        for var in self.bind.vars[: len(self.rhs.state)]:
            for node, part in zip(self.reverse.nodes(var), self.reverse.parts(scope, var), strict=True):
                if node and part and part.nullable and var.ty in updated and isinstance(var.ty, f.Arr):
                    if f.is_float(var.ty.elem):
                        zeros = scope.b.op("acc_zeros", (part.atom, *self.reverse.dims(var)))
                        scope.set(node, Part(zeros, ZERO_ELEMENTS))

    def run(self, scope: Scope) -> None:
        """Writes the backward loop, under the assumption that the zeros of the state's cotangents do not change, and
        are exact.  If that is wrong, it is written again with a weaker assumption.  That one is remembered: a loop
        around is written again, too, and this one with it, so their number would double with each loop around."""
        exits = self.reverse.result_parts(scope, self.bind.vars)
        best = max(how_told(exits), Told.BY_MARK)
        given = tuple([part and part.zeros for part in exits]), best
        while (weaker := self.attempt(scope, *self.held.get(given, (False, best)))) is not None:
            self.held[given] = weaker

    def attempt(self, scope: Scope, doubtful: bool, known: Told) -> tuple[bool, Told] | None:
        """Writes the backward loop under an assumption.  If that is wrong, nothing is written, and the result is a
        weaker one."""
        rhs, width = self.rhs, len(self.rhs.state)
        nodes = [node for s in rhs.state for node in self.reverse.nodes(s)]
        carried = {k: node for k, node in enumerate(nodes) if node is not None and scope.active(node)}
        exits = self.reverse.result_parts(scope, self.bind.vars[:width])
        sources = [node for init in rhs.inits for node in self.reverse.nodes(init)]
        targets = [node for r in rhs.body.results[:width] for node in self.reverse.nodes(r)]

        inner = LoopScope(scope, frozenset(self.tape.names))
        states = [scope.b.var("c", scope.type(node)) for node in carried.values()]
        begin = [MAYBE_ZERO if doubtful else either([exits[k]]) for k in carried]
        marked = {k: scope.b.var("a", f.BOOL) for k, state, zeros in zip(carried, states, begin, strict=True)
                  if known and zeros is MAYBE_ZERO and f.is_float(state.ty)}  # fmt: skip
        for k, state, zeros in zip(carried, states, begin, strict=True):
            certain = k in marked and known is Told.CERTAINLY
            inner.add(targets[k], Part(state, zeros, marked.get(k), certain=certain))
        count = self.steps if isinstance(rhs, f.While) else rhs.count
        assert count is not None
        back = scope.b.var("j", f.I64)
        index = rhs.index if isinstance(rhs, f.For) else scope.b.var("i", f.I64)
        before = Builder(self.reverse.d.supply)
        last = before.op("sub", (count, integer(1)))
        before.binds.append(f.Bind((index,), f.Op("sub", (last, back))))
        self.collected(scope, inner, index)
        self.tape.backward(inner)
        nexts = {k: inner.get(node) for k, node in carried.items()}
        still = min(known, how_told(nexts.values()))
        worse = not doubtful and any(either([n]) > zeros for n, zeros in zip(nexts.values(), begin, strict=True))
        if worse or (marked and still < known):
            return doubtful or worse, still

        ends = [atom_of(n, state.ty) for n, state in zip(nexts.values(), states, strict=True)]
        ends += [absence(inner.b, nexts[k]) for k in marked]
        body = inner.b.block(*ends, *inner.results())
        given = {index.name} if isinstance(rhs, f.For) else set[str]()
        body = self.body.finish(body, index, before.binds, given, {}, lambda _: False)
        inits = [atom_of(exits[k], state.ty) for k, state in zip(carried, states, strict=True)]
        inits += [absence(scope.b, exits[k]) for k in marked]
        own = len(inits)
        inits += inner.inits()
        loop = f.For(back, count, (*states, *marked.values(), *inner.states()), tuple(inits), body)
        loop = lowered(loop, states, self.reverse.d.supply)
        outs = [scope.b.var("c", i.ty) for i in inits]
        scope.b.binds.append(self.undone(f.Bind(tuple(outs), loop)))
        inner.close(outs[own:], count)
        if isinstance(rhs, f.For):
            fill_over(self.reverse, scope, inner, index, count)
        marks = dict(zip(marked, outs[len(states) :], strict=False))
        for k, out in zip(carried, outs, strict=False):
            scope.add(sources[k], after_loop(scope.b, out, marks.get(k), count, (exits[k], nexts[k])))
        return None

    def undone(self, bind: f.Bind) -> f.Bind:
        """The backward loop, which also gives back the states that are overwritten (`reverse/store_on_kill.py`)."""
        made, back = self.rhs, bind.rhs
        assert isinstance(back, f.For)
        vars_, state, inits, results = bind.vars, back.state, back.inits, back.body.results
        for k in self.reverse.overwritten.states(self.bind):
            init, end = made.inits[k], made.body.results[k]
            assert isinstance(init, f.Var) and isinstance(end, f.Var)
            if init.name not in self.reverse.overwritten.names:
                init = f.Var(self.reverse.d.supply.fresh(init.name), init.ty)
            vars_, state, inits = (*vars_, init), (*state, end), (*inits, self.bind.vars[k])
            results = (*results, made.state[k])
        return f.Bind(vars_, replace(back, state=state, inits=inits, body=f.Block(back.body.binds, results)))

    def collected(self, scope: Scope, inner: Inner, index: f.Var) -> None:
        """Adds the cotangent of this step's element of the collected array.  (Then the loop is itself part of a
        derivative.)"""
        width = len(self.rhs.state)
        if not self.rhs.collect:
            return
        array = self.bind.vars[-1]
        (part,) = self.reverse.parts(scope, array) or (None,)
        if part is None:
            return
        solid = scope.b.op("acc_zeros", (part.atom, *self.reverse.dims(array)))
        tup = inner.b.op("index", (solid, index), unchecked=True)
        leaves = iter(self.reverse.tangents.unpack(inner.b, tup))
        for item in self.rhs.body.results[width:]:
            self.reverse.add(inner, item, [Part(next(leaves), MAYBE_ZERO) for _ in self.reverse.nodes(item)])

    def forward(self) -> list[f.Bind]:
        rhs, width, binds = self.rhs, len(self.rhs.state), self.tape.forward()
        d, kept, array = self.reverse.d, self.body.kept, self.body.array
        results, vars_ = list(rhs.body.results), list(self.bind.vars)
        loop = rhs
        states: list[f.Var] = []
        if self.steps is not None:
            state, after = f.Var(d.supply.fresh("steps"), f.I64), f.Var(d.supply.fresh("steps"), f.I64)
            binds.append(f.Bind((after,), f.Op("add", (state, integer(1)))))
            states.append(state)
            results.insert(width, after)
            vars_.insert(width, self.steps)
        both = None
        if array is not None and rhs.collect:
            own = results[len(results) - rhs.collect :]
            both = f.Var(d.supply.fresh("kept"), f.Arr(f.Tup(tuple(a.ty for a in (*own, *kept))), 1))
            vars_[-1:] = [both]
        elif array is not None:
            vars_.append(array)
        loop = with_states(
            rhs, states, [integer(0)] * len(states), f.Block(tuple(binds), (*results, *kept)), rhs.collect + len(kept)
        )
        b = Builder(d.supply)
        b.binds.append(f.Bind(tuple(vars_), loop))
        if both is not None and array is not None:
            split(b, both, [self.bind.vars[-1], array], [rhs.collect, len(kept)])
        return b.binds


class Build:
    """Reverses a comprehension.  The backward code is a loop: the elements add to shared cotangents."""

    def __init__(self, reverse: Reverse, tape: Tape, bind: f.Bind) -> None:
        assert isinstance(bind.rhs, f.Build)
        self.reverse = reverse
        self.bind = bind
        self.rhs = bind.rhs
        self.tape = Tape(reverse, bind.rhs.body, (bind.rhs.index,), tape, Runs.POINTS, bind.rhs.count)
        self.body = Body(reverse, tape, self.tape)

    def backward(self, scope: Scope) -> None:
        self.body.forget()
        parts = [
            (k, part)
            for k, var in enumerate(self.bind.vars)
            for part in self.reverse.parts(scope, var)
            if part is not None
        ]
        if len(parts) == 1:
            ((k, part),) = parts
            if_there(scope, part, lambda inner, there: self.run(inner, [(k, there)]))
        elif parts:
            self.run(scope, [(k, self.solid(scope, self.bind.vars[k], part)) for k, part in parts])

    def solid(self, scope: Scope, array: f.Var, part: Part) -> Part:
        if part.zeros is not MAYBE_ZERO:
            return part
        return Part(scope.b.op("acc_zeros", (part.atom, *self.reverse.dims(array))), ZERO_ELEMENTS)

    def run(self, scope: Scope, parts: Sequence[tuple[int, Part]]) -> None:
        index, tangents = self.rhs.index, self.reverse.tangents
        inner = LoopScope(scope, frozenset(self.tape.names))
        for k, part in parts:
            element = inner.b.op("index", (part.atom, index), unchecked=True)
            leaves = [Part(leaf, part.part(leaf.ty)) for leaf in tangents.unpack(inner.b, element)]
            self.reverse.add(inner, self.rhs.body.results[k], leaves)
        self.tape.backward(inner)
        if not inner.touched:
            return
        body = inner.b.block(*inner.results())
        results = zip(self.rhs.body.results, self.bind.vars, strict=True)
        arrays = {r.name: var for r, var in results if isinstance(r, f.Var)}
        body = self.body.finish(body, index, (), {index.name}, arrays, self.regular)
        self.reverse.lengths |= {array.name: (self.rhs.count, *self.dims(var)) for var, array in self.body.apart}
        inits, states = tuple(inner.inits()), tuple(inner.states())
        loop = f.For(index, self.rhs.count, states, inits, body)
        inner.close(scope.b.bind(loop, [i.ty for i in inits], "c"), self.rhs.count)
        fill_over(self.reverse, scope, inner, index, self.rhs.count)

    def regular(self, var: f.Var) -> bool:
        """True for a number, and for an array whose lengths do not depend on the point: a row of an array of higher
        rank, in one piece of memory."""
        if isinstance(var.ty, f.Num):
            return True
        made = self.reverse.makers.get(var.name)
        if not isinstance(var.ty, f.Arr) or (var.name not in self.reverse.lengths and not (made and solid(made.rhs))):
            return False
        own = names_inside(self.rhs)
        return not any(dim is None or inside(dim, own) for dim in self.dims(var))

    def dims(self, var: f.Var) -> tuple[Dim | None, ...]:
        """The dimensions of what points keep."""
        known = self.reverse.lengths.get(var.name)
        return known or tuple([self.reverse.sizes.of(var, k) for k in range(rank_of(var.ty))])

    def forward(self) -> list[f.Bind]:
        binds, array, apart = self.tape.forward(), self.body.array, self.body.apart
        results, vars_ = [*self.rhs.body.results, *(var for var, _ in apart)], [*self.bind.vars, *(a for _, a in apart)]
        if array is not None:
            b = Builder(self.reverse.d.supply)
            results.append(b.make(self.body.kept))
            vars_.append(array)
            binds += b.binds
        more = tuple((integer(0),) * rank_of(r.ty) for r in results[len(self.bind.vars) :])
        inner = (*self.rhs.inner, *more) if self.rhs.inner else ()
        rhs = replace(self.rhs, body=f.Block(tuple(binds), tuple(results)), inner=inner)
        return [f.Bind(tuple(vars_), rhs)]


def solid(rhs: f.Rhs) -> bool:
    """True for code whose result is never null."""
    return isinstance(rhs, f.Build) or (isinstance(rhs, f.Op) and OPS[rhs.op].solid(rhs, lambda _: False))
