"""Forward mode: f -> f.jvp, which computes values and tangents together.

    fn f(x: f64, n: i64) -> (f64)            fn f.jvp(x: f64, n: i64, x': f64) -> (f64, f64)
      y = mul x 2.0                            y = mul x 2.0;  y' = mul x' 2.0
      s = for i < n state (s = y)     =>       (s, s') = for i < n state (s = y, s' = y')
        t = mul s x                              t = mul s x;  t' = add (mul s' x) (mul x' s)
        yield t                                  yield t, t'
      return s                                 return s, s'

The code keeps its structure and its names; each binding with varied leaves is followed by one of its tangents.  `env`
has the tangents; a node that is not in it is a symbolic zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dplc.ad.activity import Graph, Node, component
from dplc.ad.derivatives import Derivatives, Mode
from dplc.ad.height import lowered
from dplc.ad.loops import split, with_states
from dplc.ad.rules import bulk, products
from dplc.ad.tangents.symbolic_zeros import (
    MAYBE_ZERO,
    ZERO_ELEMENTS,
    Part,
    Told,
    Zeros,
    absence,
    after_branch,
    after_loop,
    all_certain,
    atom_of,
    by_sign,
    either,
    end_of,
    how_told,
    marks,
    sent,
    signed,
    together,
    whole,
)
from dplc.ad.tangents.symbolic_zeros import total as sum_of
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.nans import guarded
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of

Parts = list["Part | None"]  # one for each leaf of a value


class Forward:
    extra: tuple[f.Var, ...] = ()  # further parameters of every derivative

    def __init__(self, derivatives: Derivatives, mode: Mode, graph: Graph, active: Sequence[tuple[int, Zeros]]) -> None:
        self.d = derivatives
        self.mode = mode
        self.tangents = mode.tangents
        self.convert = mode.convert
        self.active = active
        self.varied = graph.varied(i for i, _ in active)
        self.env: dict[Node, Part] = {}
        self.defs: dict[str, f.Op] = {}  # the operations that bind variables without tangents
        self.held: dict[tuple, tuple[Sequence[int], Told]] = {}  # a loop, zeros of its inits -> what held, for `loop`

    def function(self, fn: f.Fn, name: str, results: Sequence[int]) -> tuple[f.Fn, list[Zeros]]:
        """The derivative of `fn`.  It also returns the tangents of the leaves `results` of its results."""
        b = Builder(self.d.supply)
        nodes = [(p.name, i) for p in fn.params for i in range(len(self.tangents.leaves(p.ty)))]
        types = [leaf for p in fn.params for leaf in self.tangents.leaves(p.ty)]
        seeds = [b.var("d", types[i]) for i, _ in self.active]
        for (i, zeros), seed in zip(self.active, seeds, strict=True):
            self.env[nodes[i]] = by_sign(b, seed, zeros)
        self.block(b, fn.body)
        parts = [part for r in fn.body.results for part in self.parts(r)]
        leaves = [leaf for r in fn.results for leaf in self.tangents.leaves(r)]
        outs = [sent(b, parts[i], leaves[i]) for i in results]
        made = f.Fn(
            name, (*fn.params, *seeds, *self.extra), (*fn.results, *(a.ty for a in outs)),
            b.block(*fn.body.results, *outs), fn.label and f"derivative of {fn.label}", fn.span,
        )  # fmt: skip
        return made, [either([parts[i]]) for i in results]

    # ---- tangents of variables -----------------------------------------------------------------------------------

    def parts(self, atom: f.Atom) -> Parts:
        """The tangents of an atom's leaves; None for symbolic zeros."""
        count = len(self.tangents.leaves(atom.ty))
        return [self.env.get((atom.name, i)) for i in range(count)] if isinstance(atom, f.Var) else [None] * count

    def set(self, var: f.Var, parts: Sequence[Part | None]) -> None:
        """Notes the tangents of a variable's leaves."""
        for i, part in enumerate(parts):
            if part is not None:
                self.env[(var.name, i)] = part

    def packed(self, b: Builder, atom: f.Atom) -> Part | None:
        """The tangent in one piece, in which arrays may be null; None if it is a symbolic zero."""
        parts = self.parts(atom)
        if not any(parts):
            return None
        if not isinstance(atom.ty, f.Tup):
            return parts[0]
        leaves = zip(parts, self.tangents.leaves(atom.ty), strict=True)
        return Part(self.tangents.pack(b, atom.ty, [atom_of(part, leaf) for part, leaf in leaves]), MAYBE_ZERO)

    def solid(self, b: Builder, atom: f.Atom) -> Part:
        """The tangent in one piece, to be put into an array or a part of one: never a null array."""
        part = self.packed(b, atom)
        ty = self.tangents.of(atom.ty)
        if not isinstance(ty, f.Arr):
            return part or Part(self.tangents.pack(b, atom.ty, [None] * len(self.tangents.leaves(atom.ty))), MAYBE_ZERO)
        if part is not None and part.zeros is not MAYBE_ZERO:
            return part
        return Part(b.op("acc_zeros", (atom_of(part, ty), *self.dims(b, atom))), ZERO_ELEMENTS)

    def dims(self, b: Builder, atom: f.Atom) -> tuple[f.Atom, ...]:
        """The dimensions of the tangent of an array."""
        return b.dims(atom)

    def unpacked(self, b: Builder, value: f.Atom, of: Part) -> list[Part]:
        """The leaves of a value that was read from `of`."""
        return [Part(leaf, of.part(leaf.ty)) for leaf in self.tangents.unpack(b, value)]

    def unless_null(self, b: Builder, part: Part, write: Callable[[Builder, Part], list[Part]]) -> list[Part]:
        """The tangents that `write` gives; at run time zeros if `part` is null."""
        if not part.nullable:
            return write(b, part)
        some = b.inner()
        parts = write(some, Part(part.atom, ZERO_ELEMENTS if isinstance(part.atom.ty, f.Arr) else MAYBE_ZERO))
        null = b.op("is_null", (part.atom,))
        told = [marks([b, some], [None, p], null) for p in parts]
        nothing = f.Block((), (*(end_of(0, [None, p], p.atom.ty) for p in parts), *(mark[0] for mark in told if mark)))
        vars_ = b.choose(null, nothing, some.block(*(p.atom for p in parts), *(mark[1] for mark in told if mark)))
        more = iter(vars_[len(parts) :])
        return [after_branch(b, var, next(more) if mark else None, null, [None, p])
                for var, mark, p in zip(vars_, told, parts, strict=False)]  # fmt: skip

    # ---- bindings ------------------------------------------------------------------------------------------------

    def block(self, b: Builder, block: f.Block) -> None:
        """Writes a block; bindings of which no leaf varies stay as they are."""
        for bind in block.binds:
            if any((v.name, i) in self.varied for v in bind.vars for i in range(len(self.tangents.leaves(v.ty)))):
                self.bind(b, bind)
            else:
                b.binds.append(bind)
                if isinstance(bind.rhs, f.Op):
                    self.defs |= {var.name: bind.rhs for var in bind.vars}

    def bind(self, b: Builder, bind: f.Bind) -> None:
        """Writes a binding, with its tangents after it."""
        match bind.rhs:
            case f.Op() as op:
                b.binds.append(bind)
                if any(p is not None for i in bulk.flows(op) for p in self.parts(op.args[i])):
                    self.set(bind.vars[0], self.op(b, op, bind.vars[0]))
            case f.TupMake(items):
                b.binds.append(bind)
                self.set(bind.vars[0], [part for item in items for part in self.parts(item)])
            case f.TupGet(tup, index):
                b.binds.append(bind)
                self.set(bind.vars[0], component(self.tangents, tup, self.parts(tup), index))
            case f.ConMake(data, tag, arg):
                b.binds.append(bind)
                if arg is not None and any(self.parts(arg)):
                    self.set(bind.vars[0], [Part(self.con(b, data, tag, arg))])
            case f.Call() as call:
                self.call(b, call, bind.vars)
            case f.If(cond, then, else_):
                self.branches(b, bind.vars, [(then, None), (else_, None)], lambda blocks: f.If(cond, *blocks), cond)
            case f.Switch() as switch:
                self.switch(b, switch, bind.vars)
            case f.For() | f.While():
                self.loop(b, bind)
            case f.Build() as build:
                self.build(b, build, bind.vars)
            case _:
                pass

    def con(self, b: Builder, data: str, tag: int, arg: f.Atom) -> f.Var:
        """The tangent of a cell: a cell of the mirror type, with the tangents of the argument."""
        leaves = [signed(b, *pair) for pair in zip(self.parts(arg), self.tangents.leaves(arg.ty), strict=True)]
        return self.convert.shut(b, self.tangents.mirror(data), tag, arg.ty, leaves)

    def call(self, b: Builder, call: f.Call, vars_: Sequence[f.Var]) -> None:
        """Calls the derivative in place of the function, if some leaf of the results varies."""
        matter = self.d.inputs(call.fn)
        given = [part for arg in call.args for part in self.parts(arg)]
        parts = {i: part for i, part in enumerate(given) if part is not None and i in matter}
        active = self.d.varied(self.mode, call.fn, tuple((i, part.zeros) for i, part in parts.items()))
        made = self.d.forward(call.fn, active, call.span, self.mode)
        if not made.results:
            b.binds.append(f.Bind(tuple(vars_), call))
            return
        types = [leaf for arg in call.args for leaf in self.tangents.leaves(arg.ty)]
        leaves = [(v, i, leaf) for v in vars_ for i, leaf in enumerate(self.tangents.leaves(v.ty))]
        outs = [b.var("d", leaves[i][2]) for i in made.results]
        args = (*call.args, *(sent(b, parts.get(i), types[i]) for i, _ in active), *self.extra)
        b.binds.append(f.Bind((*vars_, *outs), f.Call(made.name, args, call.span)))
        for i, out, zeros in zip(made.results, outs, made.zeros, strict=True):
            if not self.d.deps(call.fn)[i].isdisjoint(parts):
                var, k, _ = leaves[i]
                self.env[(var.name, k)] = by_sign(b, out, zeros)

    # ---- control -------------------------------------------------------------------------------------------------

    def branches(
        self, b: Builder, vars_: Sequence[f.Var],
        blocks: Sequence[tuple[f.Block, Callable[[Builder], None] | None]], build: Callable[[list[f.Block]], f.Rhs],
        cond: f.Atom | None = None,
    ) -> None:  # fmt: skip
        """Blocks of which one runs, each with code to write before it.  Leaves that are varied in one of them become
        results."""
        inners, ends = [], []
        for block, before in blocks:
            inner = b.inner()
            if before is not None:
                before(inner)
            self.block(inner, block)
            inners.append(inner)
            ends.append([part for r in block.results for part in self.parts(r)])
        leaves = [(v, i, leaf) for v in vars_ for i, leaf in enumerate(self.tangents.leaves(v.ty))]
        carried = [k for k in range(len(leaves)) if any(end[k] for end in ends)]
        outs = [b.var("d", leaves[k][2]) for k in carried]
        came = {k: [end[k] for end in ends] for k in carried}
        told = {k: mark for k in carried if (mark := marks(inners, came[k], cond))}
        more = {k: b.var("a", mark[0].ty) for k, mark in told.items()}
        done = [
            inner.block(
                *block.results,
                *(end_of(i, came[k], leaves[k][2]) for k in carried),
                *(mark[i] for mark in told.values()),
            )
            for i, ((block, _), inner) in enumerate(zip(blocks, inners, strict=True))
        ]
        b.binds.append(f.Bind((*vars_, *outs, *more.values()), build(done)))
        for k, out in zip(carried, outs, strict=True):
            self.env[(leaves[k][0].name, leaves[k][1])] = after_branch(b, out, more.get(k), cond, came[k])

    def switch(self, b: Builder, switch: f.Switch, vars_: Sequence[f.Var]) -> None:
        """A switch on data; where the data's tangent is null, those of its parts are symbolic zeros."""
        tangent = self.packed(b, switch.scrutinee)

        def opener(case: f.Case) -> Callable[[Builder], None] | None:
            payload = case.payload
            if tangent is None or payload is None or not self.tangents.leaves(payload.ty):
                return None
            there = tangent

            def parts(some: Builder, part: Part) -> list[Part]:
                opened = self.convert.open(some, part.atom, case.tag)
                return [by_sign(some, leaf) for leaf in self.tangents.unpack(some, opened)]

            return lambda inner: self.set(payload, self.unless_null(inner, there, parts))

        def build(blocks: list[f.Block]) -> f.Rhs:
            cases = tuple(f.Case(c.tag, c.payload, body) for c, body in zip(switch.cases, blocks, strict=False))
            return f.Switch(switch.scrutinee, cases, blocks[-1] if switch.default is not None else None)

        blocks = [(case.body, opener(case)) for case in switch.cases]
        self.branches(b, vars_, blocks if switch.default is None else [*blocks, (switch.default, None)], build)

    def loop(self, b: Builder, bind: f.Bind) -> None:
        """A loop with tangents of its varied state.  That their zeros do not change, and are exact, is assumed; if it
        is wrong, the loop is written again.  What held is remembered for when a loop around it is written again."""
        assert isinstance(bind.rhs, f.For | f.While)
        inits = [part for init in bind.rhs.inits for part in self.parts(init)]
        best = max(how_told(inits), Told.BY_MARK)
        given = bind.vars, tuple([part and part.zeros for part in inits]), best
        while (weaker := self.attempt(b, bind, *self.held.get(given, ((), best)))) is not None:
            self.held[given] = weaker

    def attempt(
        self, b: Builder, bind: f.Bind, doubtful: Sequence[int], known: Told
    ) -> tuple[Sequence[int], Told] | None:
        """Writes a loop.  The `doubtful` leaves are taken to become MAYBE_ZERO, all of these to be told at least as
        `known` says.  If that does not hold, nothing is written, and the result is a weaker assumption."""
        rhs = bind.rhs
        assert isinstance(rhs, f.For | f.While)
        width = len(rhs.state)
        leaves = [(s, i, leaf) for s in rhs.state for i, leaf in enumerate(self.tangents.leaves(s.ty))]
        inits = [part for init in rhs.inits for part in self.parts(init)]
        carried = [k for k, (s, i, _) in enumerate(leaves) if (s.name, i) in self.varied]
        states = [b.var("d", leaves[k][2]) for k in carried]
        marked: dict[int, f.Var] = {}
        for k, state in zip(carried, states, strict=True):
            zeros = MAYBE_ZERO if k in doubtful else either([inits[k]])
            if known and zeros is MAYBE_ZERO and f.is_float(state.ty):
                marked[k] = b.var("a", f.BOOL)
            certain = k in marked and known is Told.CERTAINLY
            self.env[(leaves[k][0].name, leaves[k][1])] = Part(state, zeros, marked.get(k), certain=certain)
        inner = b.inner()
        self.block(inner, rhs.body)
        nexts = [part for r in rhs.body.results[:width] for part in self.parts(r)]
        worse = [k for k in carried if either([nexts[k]]) > self.env[(leaves[k][0].name, leaves[k][1])].zeros]
        still = min(known, how_told(nexts[k] for k in carried))
        if worse and not doubtful:
            return carried, still  # the weakest
        if marked and still < known:
            return doubtful, still
        kept = self.kept(inner, rhs.body.results[width:])
        body = inner.block(
            *rhs.body.results[:width],
            *(atom_of(nexts[k], leaves[k][2]) for k in carried),
            *(absence(inner, nexts[k]) for k in marked),
            *rhs.body.results[width:],
            *kept,
        )
        outs = [b.var("d", leaves[k][2]) for k in carried]
        more = {k: b.var("a", f.BOOL) for k in marked}
        starts = [*(atom_of(inits[k], leaves[k][2]) for k in carried), *(absence(b, inits[k]) for k in marked)]
        loop = with_states(rhs, (*states, *marked.values()), starts, body, rhs.collect + len(kept))
        if isinstance(loop, f.For):
            loop = lowered(loop, states, self.d.supply)
        b.binds.append(f.Bind((*bind.vars[:width], *outs, *more.values(), *self.collected(b, bind, kept)), loop))
        self.split(b, bind, kept, loop.collect)
        for k, out in zip(carried, outs, strict=True):
            var = bind.vars[[s.name for s in rhs.state].index(leaves[k][0].name)]
            count = rhs.count if isinstance(rhs, f.For) else None
            self.env[(var.name, leaves[k][1])] = after_loop(b, out, more.get(k), count, (inits[k], nexts[k]))
        return None

    def kept(self, b: Builder, items: Sequence[f.Atom]) -> list[f.Atom]:
        """The tangent of a collected tuple in one piece, if it has one."""
        if not any(part for item in items for part in self.parts(item)):
            return []
        ty = f.Tup(tuple(item.ty for item in items))
        leaves = zip([part for item in items for part in self.parts(item)], self.tangents.leaves(ty), strict=True)
        return [self.tangents.pack(b, ty, [atom_of(part, leaf) for part, leaf in leaves])]

    def collected(self, b: Builder, bind: f.Bind, kept: Sequence[f.Atom]) -> tuple[f.Var, ...]:
        """The variable for the collected array; a new one if tangents are collected too."""
        assert isinstance(bind.rhs, f.For | f.While)
        if not bind.rhs.collect:
            return ()
        if not kept:
            return bind.vars[-1:]
        items = bind.rhs.body.results[len(bind.rhs.state) :]
        return (b.var("kept", f.Arr(f.Tup((*(a.ty for a in items), kept[0].ty)), 1)),)

    def split(self, b: Builder, bind: f.Bind, kept: Sequence[f.Atom], width: int) -> None:
        """An array of collected tuples with their tangents -> an array of tuples and an array of tangents."""
        if not kept:
            return
        both, primal = b.binds[-1].vars[-1], bind.vars[-1]
        tangent = b.var("d", f.Arr(kept[0].ty, 1))
        split(b, both, [primal, tangent], [width - 1, None])
        self.env[(primal.name, 0)] = Part(tangent, ZERO_ELEMENTS)

    def build(self, b: Builder, build: f.Build, vars_: Sequence[f.Var]) -> None:
        """A comprehension that makes the tangents of its elements beside them."""
        inner = b.inner()
        self.block(inner, build.body)
        results = build.body.results
        solid = [(v, self.solid(inner, r)) for v, r in zip(vars_, results, strict=True) if any(self.parts(r))]
        outs = [b.var("d", self.tangents.of(v.ty)) for v, _ in solid]
        body = inner.block(*results, *(part.atom for _, part in solid))
        sizes = dict(zip([v.name for v in vars_], build.inner))
        own = (*build.inner, *(self.inner_sizes(v, sizes[v.name]) for v, _ in solid)) if sizes else ()
        b.binds.append(f.Bind((*vars_, *outs), f.Build(build.index, build.count, body, build.span, own)))
        for (var, part), out in zip(solid, outs, strict=True):
            self.env[(var.name, 0)] = Part(out, whole([part]))

    def inner_sizes(self, array: f.Var, sizes: tuple[f.Atom, ...]) -> tuple[f.Atom, ...]:
        """The inner sizes of the tangent of an array whose elements have these sizes."""
        return sizes

    # ---- operations ----------------------------------------------------------------------------------------------

    def op(self, b: Builder, op: f.Op, y: f.Var) -> list[Part]:
        """The tangents of an operation's result, by its row."""
        if not bulk.known(op):
            raise bulk.refuse(op)
        row = OPS[op.op]
        if row.scalar:
            return self.row(b, op, y)
        if row.derivative.bilinear:
            return self.product(b, op, y)
        match op.op:
            case "acc_add":
                parts = [part for _, part in self.there(op)]
                total = parts[0].atom if len(parts) == 1 else self.convert.add(b, parts[0].atom, parts[1].atom)
                return [sum_of(b, total, parts)]
            case "acc_zeros":
                return [part for _, part in self.there(op)]
            case "acc_index" | "acc_slice":
                a, v = self.packed(b, op.args[0]), self.packed(b, op.args[1])
                if v is None:
                    return [a] if a is not None else []
                (leaf,) = self.tangents.leaves(y.ty)
                made = self.linear(b, op, {0: atom_of(a, leaf), 1: v.atom})
                added = MAYBE_ZERO if v.nullable else ZERO_ELEMENTS
                return [Part(made, together(MAYBE_ZERO if a is None else a.zeros, added))]
            case "update" | "concat" | "array" | "fill":
                solid = {i: self.solid(b, op.args[i]) for i in bulk.flows(op)}
                made = self.linear(b, op, {i: part.atom for i, part in solid.items()})
                return [Part(made, whole(solid.values()))]
            case _:
                pass
        ((i, part),) = self.there(op)
        return self.unless_null(b, part, lambda some, p: self.unpacked(some, self.linear(some, op, {i: p.atom}), p))

    def row(self, b: Builder, op: f.Op, y: f.Var) -> list[Part]:
        """The tangent of a row of the table.  That of a guarded value has the same guard: a symbolic zero that is
        finite may have a tangent that is NaN."""
        guard, all_flow = guarded(self.defs, op), len(self.there(op)) == len(op.args)

        def share(b: Builder, i: int, part: Part) -> f.Atom:
            made = bulk.scalar_part(b, op, i, part, y, all_flow)
            return made if guard is None else bulk.guarded(b, guard[0], made)

        parts = self.sum(b, y, [(i, part, share) for i, part in self.there(op)])
        if not bulk.chooses(op):
            return parts
        there = self.there(op)
        others = [bulk.other_chosen(b, op, i, part, y) for i, part in there]
        chosen = [Part(part.atom, MAYBE_ZERO, bulk.not_chosen(b, other, part))
                  for (_, part), other in zip(there, others, strict=True)]  # fmt: skip
        absent = sum_of(b, parts[0].atom, chosen).absent if all(part.absent for part in chosen) else None
        certain = all_certain([part for _, part in there])
        return [Part(p.atom, max(p.zeros, zeros_of_choice(y)), absent, certain=certain) for p in parts]

    def product(self, b: Builder, op: f.Op, y: f.Var) -> list[Part]:
        """The tangent of a product of arrays."""
        return self.sum(b, y, [(i, part, lambda some, i, p: product(some, op, i, p)) for i, part in self.there(op)])

    def linear(self, b: Builder, op: f.Op, tangents: dict[int, f.Atom]) -> f.Var:
        """A linear operation with tangents in place of operands."""
        return linear(b, op, tangents)

    def there(self, op: f.Op) -> list[tuple[int, Part]]:
        """The operands that have tangents, as a single leaf."""
        parts = ((i, self.parts(op.args[i])) for i in bulk.flows(op))
        return [(i, part[0]) for i, part in parts if part and part[0] is not None]

    def sum(
        self, b: Builder, y: f.Var, parts: Sequence[tuple[int, Part, Callable[[Builder, int, Part], f.Atom]]]
    ) -> list[Part]:
        """The sum of the contributions of several operands to the tangent of `y`."""

        def contribute(i: int, part: Part, write: Callable[[Builder, int, Part], f.Atom]) -> Part:
            return self.unless_null(
                b, part, lambda some, p: [self.lifted(some, write(some, i, p), p, y, part.nullable)]
            )[0]

        done = [contribute(*part) for part in parts]
        total = done[0]
        for part in done[1:]:
            name = "acc_add" if total.nullable or part.nullable else "add"
            if name == "acc_add":
                total, part = (p.alike(bulk.lift(b, p.atom, y), p.zeros) for p in (total, part))
            total = sum_of(b, b.op(name, (total.atom, part.atom)), (total, part))
        return [self.lifted(b, total.atom, total, y, True)]

    def lifted(self, b: Builder, atom: f.Atom, of: Part, y: f.Var, now: bool) -> Part:
        """A contribution.  With `now`, it is lifted to the rank of `y` (otherwise a later sum may lift it)."""
        lower = rank_of(atom.ty) < rank_of(y.ty)
        zeros = ZERO_ELEMENTS if of.zeros is MAYBE_ZERO and rank_of(y.ty) and not of.nullable else of.zeros
        made = bulk.lift(b, atom, y) if lower and now else atom
        return Part(made, zeros) if lower else of.alike(made, zeros)


def zeros_of_choice(y: f.Var) -> Zeros:
    """The zeros in a tangent of `y`, where an operation chose the values of `y`."""
    return ZERO_ELEMENTS if isinstance(y.ty, f.Arr) else MAYBE_ZERO


def linear(b: Builder, op: f.Op, tangents: dict[int, f.Atom]) -> f.Var:
    """A linear operation on tangents: the operation itself, with the tangents in place of their primals."""
    args = [tangents.get(i, arg) for i, arg in enumerate(op.args)]
    return b.op(op.op, args, span=op.span, **dict(op.attrs))


def product(b: Builder, op: f.Op, i: int, t: Part) -> f.Atom:
    """The contribution of operand `i` to the tangent of a product of arrays."""
    if op.op == "matmul_acc" and i == 0:
        return t.atom
    return products.tangent(b, op, i, t)
