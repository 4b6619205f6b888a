"""Reverse mode: f -> f.fwd, which also returns the residual, and f.bwd, which runs in reverse order.

    fn f(x: f64, y: f64) -> (f64)         fn f.fwd(x, y) -> (f64, (f64, f64))
      t = mul x y                           t = mul x y;  r = sin t;  return r, (t, y)
      r = sin t                  =>       fn f.bwd((t, y), cr, cx) -> (f64)           -- only x is active
      return r                              ct = mul cr (cos t);  cx' = add cx (mul ct y);  return cx'

*Accumulators are passed in.*  f.bwd takes the current cotangent of each active argument and returns it with f's
contribution added, arrays in place.  So the reverse of reading one element costs O(1).

A block becomes a `Tape` of steps.  `Tape.backward` writes the backward code, last step first, into a scope
(`ad/reverse/cotangents.py`); it refers to variables of the forward code by name.  The variables that it needs are kept.
`Tape.forward` gives the forward code after that, when the residuals are known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from typing import Protocol

from dplc.ad import repeats
from dplc.ad.activity import Graph, Node
from dplc.ad.derivatives import Derivatives
from dplc.ad.reverse import residuals
from dplc.ad.reverse.aliases import Aliases
from dplc.ad.reverse.cotangents import Scope
from dplc.ad.reverse.final_elements import Final, final_elements
from dplc.ad.reverse.store_on_kill import Overwritten, store_on_kill
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, Part, Zeros, by_sign, either, sent
from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.build import Builder, integer
from dplc.flat.dims import Dims
from dplc.flat.ops.row import Dim
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of, width
from dplc.flat.walk import atoms, blocks, bound, every, names, rhs_mentions


class Runs(Enum):
    """How often a block runs, branches left aside."""

    ONCE = "for each call of the function"
    POINTS = "for each point of a comprehension, in any order"
    STEPS = "for each step of a loop"


WIDE = 32  # leaves; a larger residual is boxed, as callers keep those of all their calls


class Step(Protocol):
    """A binding being reversed."""

    def backward(self, scope: Scope) -> None:
        """Writes the backward code.  It is written before the forward code, as it decides what is kept."""
        ...

    def forward(self) -> list[f.Bind]:
        """The forward code: the binding, with what the backward code needs beside it."""
        ...


class Records(Protocol):
    """The residual as a record for the branch that ran (`reverse/branch_records.py`)."""

    def residual(
        self, outer: Sequence[f.Var], forward: Sequence[f.Bind], body: f.Block
    ) -> tuple[list[f.Bind], f.Atom, f.Var, f.Block]: ...


class Tape:
    """A block being reversed, in the tape `around`.  `names` are bound in it (by bindings, or as its parameters)."""

    def __init__(
        self, reverse: Reverse, block: f.Block, params: Sequence[f.Var], around: Tape | None, runs: Runs, count: f.Atom
    ) -> None:
        self.reverse = reverse
        self.block = block
        self.params = params
        self.around = around
        self.runs = runs
        self.count = count
        self.names = {p.name for p in params}
        self.dims: dict[str, dict[int, f.Var]] = {}
        self.measured = {(op.args[0], op.attr("k")): bind.vars[0] for bind in block.binds
                         if isinstance(op := bind.rhs, f.Op) and op.op == "dim"}  # fmt: skip
        self.steps: list[Step] = []
        for var in params:
            reverse.home[var.name] = self
        views, reverse.views = reverse.views, reverse.views.copy()
        for bind in block.binds:
            for var in bind.vars:
                self.own(var)
            self.steps.append(reverse.step_of(self, bind))
            reverse.see(bind)
        reverse.views = views

    def own(self, var: f.Var) -> f.Var:
        """Records that this block binds a variable."""
        self.names.add(var.name)
        self.reverse.home[var.name] = self
        return var

    def backward(self, scope: Scope) -> None:
        """Writes the backward code of all steps, the last step first."""
        for step in reversed(self.steps):
            step.backward(scope)

    def forward(self) -> list[f.Bind]:
        """The forward code of all steps, with the lengths that backward code asks for."""
        binds = [bind for var in self.params for bind in self.measures(var)]
        for step in self.steps:
            for bind in step.forward():
                binds += self.reverse.kept_apart(bind)
                binds += [more for var in bind.vars for more in self.measures(var)]
        return binds

    def measures(self, var: f.Var) -> list[f.Bind]:
        return [f.Bind((d,), f.Op("dim", (var,), (("k", k),))) for k, d in self.dims.get(var.name, {}).items()]


class Reverse:
    """The reversal of one function.  `active` and `wanted` are the leaves of its parameters and results with
    cotangents.  `step_of` makes the step of a binding (`reverse/steps.py`).  Of the arrays that loops overwrite, those
    that are `restored` come back, or all."""

    def __init__(
        self, derivatives: Derivatives, graph: Graph, active: Sequence[int], wanted: Sequence[tuple[int, Zeros]],
        step_of: Callable[[Tape, f.Bind], Step], restored: Collection[str] | None = None,
    ) -> None:  # fmt: skip
        self.d = derivatives
        self.restored = restored
        self.tangents = derivatives.tangents
        self.step_of = step_of
        self.active_params = active
        self.wanted = wanted
        self.active = graph.varied(active) & graph.useful(i for i, _ in wanted)
        self.home: dict[str, Tape] = {}
        self.leaf: dict[Node, f.Type] = {}
        self.records: Records | None = None
        self.sizes = Dims(f.Block((), ()))
        self.affine = Affine(self.sizes)
        self.changing: set[str] = set()  # arrays that are updated
        self.aliases = Aliases(f.Fn("", (), (), f.Block((), ())))
        self.kept: set[str] = set()  # variables that are kept
        self.makers: dict[str, f.Bind] = {}  # the bindings of variables
        self.lengths: dict[str, tuple[Dim | None, ...]] = {}  # of arrays in which comprehensions keep numbers and rows
        self.sources: dict[Node, Node | None] = {}  # leaf of a tuple -> the same leaf of an item
        self.views: dict[str, f.Op] = {}  # rows, slices and tuples in arrays that were only read since
        self.overwritten = Overwritten()
        self.final = Final()

    def function(self, fn: f.Fn, fwd: str, bwd: str, box: str) -> tuple[f.Fn, f.Fn, list[Zeros]]:
        """f.fwd, f.bwd, and the zeros of the accumulators that f.bwd returns.  The residual is a tuple.  It is of the
        data type `box` if calls inside need one (`Derivatives.boxed`), or if it is `WIDE`."""
        self.register(fn)
        self.sizes, self.box = self.d.sizes.dims(fn), box
        self.affine = Affine(self.sizes)
        for bind in every(fn.body):
            self.affine.define(bind)
        self.changing = set(changing(fn.body))
        self.root = fn.name in self.d.roots
        self.aliases = Aliases(fn, self.root)
        self.overwritten = store_on_kill(fn, self.d.supply, self.is_active, self.root, self.restored)
        self.final = final_elements(fn, self.sizes)
        tape = Tape(self, fn.body, fn.params, None, Runs.ONCE, integer(1))
        scope = self.scope = Scope(self.d, Builder(self.d.supply), lambda node: node in self.active, self.leaf)
        params = [node for p in fn.params for node in self.nodes(p) if node is not None]
        results = [node for r in fn.body.results for node in self.nodes(r)]
        types = [leaf for r in fn.results for leaf in self.tangents.leaves(r)]
        accs = [scope.b.var("c", self.leaf[params[i]]) for i in self.active_params]
        seeds = [scope.b.var("c", types[i]) for i, _ in self.wanted]
        for i, acc in zip(self.active_params, accs, strict=True):
            scope.set(params[i], by_sign(scope.b, acc))
        for (i, zeros), seed in zip(self.wanted, seeds, strict=True):
            scope.add(results[i], by_sign(scope.b, seed, zeros))
        tape.backward(scope)
        outs = [params[i] for i in self.active_params]
        body = scope.b.block(*[sent(scope.b, scope.get(node), self.leaf[node]) for node in outs])
        kept, again = self.choose(body, tape)
        back = f.Block((*again, *body.binds), body.results)
        forward, value, param, back = self.residual(kept, tape.forward(), back)
        made_fwd = f.Fn(
            fwd,
            fn.params,
            (*fn.results, value.ty),
            f.Block(tuple(forward), (*fn.body.results, value)),
            fn.label,
            fn.span,
        )
        label = fn.label and f"reverse of {fn.label}"
        made_bwd = f.Fn(bwd, (param, *seeds, *accs), tuple(a.ty for a in accs), back, label, fn.span)
        return made_fwd, made_bwd, [either([scope.get(node)]) for node in outs]

    def residual(
        self, kept: Sequence[f.Var], forward: Sequence[f.Bind], body: f.Block
    ) -> tuple[list[f.Bind], f.Atom, f.Var, f.Block]:
        """Returns the forward code that makes the residual, the residual, the parameter for it, and the backward code
        that reads it."""
        if self.records is not None:
            return self.records.residual(kept, forward, body)
        there, back = Builder(self.d.supply), Builder(self.d.supply)
        value = there.make(kept)
        if self.d.boxed(self.box) or width(value.ty) > WIDE:
            self.d.program.datas[self.box] = f.DataDecl(self.box, (value.ty,), (self.box,))
            param = back.var("res", f.Data(self.box))
            tup, value = self.d.convert.open(back, param, 0), there.con(self.box, 0, value)
        else:
            param = tup = back.var("res", value.ty)
        binds = (*back.binds, *self.unkeep(kept, tup), *body.binds)
        return [*forward, *there.binds], value, param, f.Block(binds, body.results)

    def choose(
        self, block: f.Block, tape: Tape, given: Collection[str] = (), there: Mapping[str, int] | None = None
    ) -> tuple[list[f.Var], list[f.Bind]]:
        """The variables to keep, and the bindings to repeat (`residuals.choose`)."""
        kept, binds = self.choice(block, tape, given, there)
        self.kept |= {var.name for var in kept}
        return kept, binds

    def choice(
        self, block: f.Block, tape: Tape, given: Collection[str] = (), there: Mapping[str, int] | None = None
    ) -> tuple[list[f.Var], list[f.Bind]]:
        """Like `choose`, to ask what would be kept."""
        price, reading = (lambda bind: self.price(tape, bind)), (lambda var: self.reading(tape, var))
        given = {*given, *self.overwritten.names}
        forward = tape.forward()
        if self.final.last:
            forward = [self.final.read_last(bind, lambda array: self.is_final(array, tape)) for bind in forward]
        kept, binds = residuals.choose(block, tape.names, given, forward, price, reading, there or {})
        names = {var.name for var in kept}
        return kept, [repeats.again(bind, self.d.supply, names) for bind in binds]

    def is_final(self, array: f.Var, tape: Tape) -> bool:
        """True if an array is there as its loop leaves it: outside of a tape in that loop, and not put back.  Loops
        without cotangents have no tapes."""
        home, outer = self.home.get(array.name), tape.around
        while outer is not None and outer is not home:
            outer = outer.around
        return outer is not None and array.name not in self.overwritten.names

    # ---- what it costs to compute something again ----------------------------------------------------------------

    def price(self, tape: Tape, bind: f.Bind) -> int | None:
        """The cost of repeating a binding of a tape.  Code that runs once repeats only what is cheap.  A test for null
        of an outer array is not repeated: the outer block would have to keep the array at each step of a loop, to save
        one bit.  Products read a transposed matrix as it was (`fold_transposes`), if they see where it comes from."""
        match bind.rhs:
            case f.Op("transpose") if tape.runs is Runs.ONCE:
                return 1
            case f.Op("is_null", (f.Var(name),)) if name not in tape.names:
                return None
            case f.Op(op) if OPS[op].cheap and not rank_of(bind.vars[0].ty):
                return 0
            case f.TupGet():
                return 0
            case rhs if tape.runs is Runs.ONCE:
                return 0 if isinstance(rhs, f.Op) and OPS[rhs.op].cheap else None
            case rhs:
                return self.d.costs.of_step(rhs) if tape.runs is Runs.STEPS else self.d.costs.of_point(rhs)

    def reading(self, tape: Tape, var: f.Var) -> int | None:
        """The cost of reading an array from outside of a tape again, for each step: it has to be kept until then.  One
        that may be updated is not, as the update would copy it."""
        home = self.home.get(var.name)
        if var.name in self.overwritten.names:
            return repeats.READ if self.repeats(tape, home) else None
        if home is not None and var in self.final.last.values():
            return 0 if home.runs is Runs.ONCE and self.root else repeats.READ
        if home is None or (var.ty in self.d.updated and not self.aliases.only_read(var)):
            return None
        made = self.makers.get(var.name)
        if made is not None and isinstance(made.rhs, f.Op) and made.rhs.op in ("index", "slice"):
            array = made.rhs.args[0]
            return self.reading(tape, array) if isinstance(array, f.Var) else None
        if home.runs is Runs.ONCE and self.root:
            return 0
        if home.runs is Runs.POINTS:
            return repeats.READ
        return repeats.READ if self.as_long(tape, home, var) else repeats.FAR

    def repeats(self, tape: Tape | None, home: Tape | None) -> bool:
        """True if there is a loop from `tape` outwards to `home`."""
        while tape is not None and tape is not home and tape.count == integer(1):
            tape = tape.around
        return tape is not None and tape is not home

    def as_long(self, tape: Tape, home: Tape, array: f.Var) -> bool:
        """True if loops from `tape` outwards to `home` have about as many steps as the array has elements; where
        lengths are not known, all of these loops."""
        lengths = [self.length(self.sizes.of(array, k)) for k in range(rank_of(array.ty))]
        unknown = [length for length in lengths if not isinstance(length, f.Const)]
        alike = long = 0
        inner: Tape | None = tape
        while inner is not None and inner is not home:
            alike += inner.runs is not Runs.ONCE and is_one_of(self.length(inner.count), lengths)
            long += inner.runs is Runs.POINTS and not isinstance(inner.count, f.Const)
            inner = inner.around
        return (alike > 0 and alike >= len(unknown)) or long >= len(lengths)

    def length_is(self, array: f.Atom, k: int, count: f.Atom) -> bool:
        """True if a dimension is known to be a number."""
        made = self.makers.get(count.name) if isinstance(count, f.Var) else None
        same: list[Dim | None] = [count]
        match made.rhs if made is not None else None:
            case f.Op("dim", (other,)) as op:
                same.append(self.sizes.of(other, op.attr("k")))
            case _:
                pass
        return self.sizes.of(array, k) in same

    def length(self, dim: Dim | None) -> Dim | None:
        """The dimension that a number is, if it was measured, give or take a constant."""
        made = self.makers.get(dim.name) if isinstance(dim, f.Var) else None
        match made.rhs if made is not None else None:
            case f.Op("dim", (array,)) as op:
                return self.sizes.of(array, op.attr("k"))
            case f.Op("add" | "sub", (f.Var() as n, f.Const())):
                return self.length(n)
            case _:
                return dim

    def kept_apart(self, bind: f.Bind) -> list[f.Bind]:
        """Copies a kept row of an array that is updated later.  Otherwise, the update would copy the whole array."""
        match bind:
            case f.Bind((f.Var(name, f.Arr() as ty),), f.Op("index" | "slice", (f.Var(whole), *_)) as view) if (
                name in self.kept and whole in self.changing
            ):
                row = f.Var(self.d.supply.fresh("row"), ty)
                return [f.Bind((row,), view), f.Bind(bind.vars, f.Op("copy", (row,)))]
            case _:
                return [bind]

    def unkeep(self, kept: Sequence[f.Var], tup: f.Var) -> list[f.Bind]:
        return [f.Bind((var,), f.TupGet(tup, i)) for i, var in enumerate(kept)]

    def see(self, bind: f.Bind) -> None:
        """Forgets views of arrays that are used in other ways than reading a part.  Such a use may give the array a
        cotangent as a whole, and the cotangents of its parts are added to that."""
        match bind.rhs:
            case f.Op("index" | "slice", (f.Var(), *_)) as op if isinstance(bind.vars[0].ty, f.Arr | f.Tup):
                self.views[bind.vars[0].name] = op
            case f.Op("index" | "slice" | "dim"):
                pass
            case rhs if self.views:
                touched, whole = set(rhs_mentions(rhs)), set(as_wholes(bind))
                for y, op in list(self.views.items()):
                    if not (whole if self.is_tuple(y) else touched).isdisjoint(names(op.args[:1])):
                        del self.views[y]
            case _:
                pass

    def seen_through(self, args: Sequence[f.Atom]) -> Iterator[f.Op]:
        """The view that the first operand is, the view that this is a part of, and so on."""
        while args and isinstance(args[0], f.Var) and args[0].name in self.views:
            yield (view := self.views[args[0].name])
            args = view.args

    def place_in_store(self, array: f.Atom) -> f.Op | None:
        """The reading of an array of tuples that gave an array, which is the one leaf of such a tuple."""
        match self.nodes(array):
            case [(name, _)] if name in self.views and self.is_tuple(name):
                return self.views[name] if len(self.tangents.leaves(self.makers[name].vars[0].ty)) == 1 else None
            case _:
                return None

    def is_tuple(self, name: str) -> bool:
        return isinstance(self.makers[name].vars[0].ty, f.Tup)

    # ---- cotangents of atoms -------------------------------------------------------------------------------------

    def register(self, fn: f.Fn) -> None:
        """Records the types of all nodes of the function."""
        for var in bound(fn):
            for i, leaf in enumerate(self.tangents.leaves(var.ty)):
                self.leaf[(var.name, i)] = leaf
        self.makers.update((var.name, bind) for bind in every(fn.body) for var in bind.vars)

    def nodes(self, atom: f.Atom) -> list[Node | None]:
        """The nodes of an atom.  Leaves of a tuple are those of its items: cotangents are added there, not to the
        tuple."""
        count = len(self.tangents.leaves(atom.ty))
        if not isinstance(atom, f.Var):
            return [None] * count
        return [self.sources.get((atom.name, i), (atom.name, i)) for i in range(count)]

    def parts(self, scope: Scope, atom: f.Atom) -> list[Part | None]:
        """The cotangents of an atom's leaves."""
        return [None if node is None else scope.get(node) for node in self.nodes(atom)]

    def result_parts(self, scope: Scope, vars_: Sequence[f.Var]) -> list[Part | None]:
        """The cotangents of all leaves of some results."""
        return [part for var in vars_ for part in self.parts(scope, var)]

    def add(self, scope: Scope, atom: f.Atom, parts: Sequence[Part | None]) -> None:
        """Adds cotangents to those of an atom's leaves."""
        for node, part in zip(self.nodes(atom), parts, strict=True):
            scope.add(node, part)

    def is_active(self, var: f.Var) -> bool:
        """True if a leaf of a variable depends on the input and matters for the output."""
        return any(node in self.active for node in self.nodes(var))

    def packed(self, scope: Scope, atom: f.Atom) -> Part | None:
        """The cotangent in one piece; None if nothing has been added to it."""
        parts = self.parts(scope, atom)
        if not any(parts):
            return None
        if not isinstance(atom.ty, f.Tup):
            return parts[0]
        return Part(self.tangents.pack(scope.b, atom.ty, [None if p is None else p.atom for p in parts]), MAYBE_ZERO)

    def dim(self, array: f.Atom, k: int) -> f.Atom:
        """A dimension of an array of the forward code.  It is measured there, so that the array need not be kept."""
        if not isinstance(array, f.Var):
            return integer(0)
        known = self.sizes.of(array, k)
        if not isinstance(known, tuple):
            return known or integer(0)
        array, k = known
        tape = self.home[array.name]
        if known in tape.measured:
            return tape.measured[known]
        dims = tape.dims.setdefault(array.name, {})
        if k not in dims:
            dims[k] = tape.own(f.Var(self.d.supply.fresh("dim"), f.I64))
        return dims[k]

    def dims(self, array: f.Atom) -> tuple[f.Atom, ...]:
        """The lengths of an array, as forward code has measured them."""
        return tuple(self.dim(array, k) for k in range(rank_of(array.ty)))


def is_one_of(count: Dim | None, lengths: Sequence[Dim | None]) -> bool:
    """True if a loop has one of these lengths, of numbers at least half: at borders a step more or less is done."""
    known = [n.value for n in (count, *lengths) if isinstance(n, f.Const) and isinstance(n.value, int)]
    return count in lengths or (isinstance(count, f.Const) and any(2 * known[0] >= length for length in known[1:]))


def as_wholes(bind: f.Bind) -> Iterator[str]:
    """The arrays that a binding uses in other ways than by reading a part, or by a call that does not change them: it
    adds to the cotangent that it is given."""
    match bind.rhs:
        case f.Op("index" | "slice" | "dim", (_, *rest)):
            yield from names(rest)
        case f.Call(_, args):
            given = {var.ty for var in bind.vars}
            yield from names([arg for arg in args if arg.ty in given])
        case rhs:
            yield from names(atoms(rhs))
            for block in blocks(rhs):
                yield from names(block.results)
                for inner in block.binds:
                    yield from as_wholes(inner)


def changing(body: f.Block) -> Iterator[str]:
    """The arrays that a body updates."""
    for bind in every(body):
        match bind.rhs:
            case f.Op("update", (f.Var(name), *_)):
                yield name
            case _:
                pass
