"""flat -> flat without Ad: every derivative is made, once for each way in which it is needed.

    (y, dy) = jvp f (c, x, dx)          =>    (y, dy) = f.jvp(c, x, dx)
    (y, s) = jet f (c, n, x)            =>    (y, s) = f.jet(c, x, [1.0, 0.0, ...], n)
    (y, r) = vjp f (c, x)               =>    (y, k) = f.fwd(c, x);  r = (k, x)
    dx = pullback f (r, dy)             =>    cx = f.bwd(k, dy, 0);  dx = from_tan(cx, like x)

Innermost first: what is differentiated is first freed of derivatives itself (`body`), so nested derivatives are
derivatives of ordinary code and cannot be confused.  All is memoised: forward modes on the function and which leaves of
its parameters have tangents, reverse mode also on which leaves of its results have cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dpl.node import replace
from dpl.source import Span

from dplc.ad.activity import Deps, Graph, Grapher, Node
from dplc.ad.builder import Builder, int_
from dplc.ad.forward.forward import Forward
from dplc.ad.optimistic import Guess, Guesses
from dplc.ad.reverse.reverse import Reverse
from dplc.ad.rules import checkpoint, custom
from dplc.ad.tangents import shape_check
from dplc.ad.tangents.convert import Conversions
from dplc.ad.tangents.shape_check import has_form
from dplc.ad.tangents.symbolic_zeros import FULL, MAYBE, Presence, atom_of
from dplc.ad.tangents.types import Series, Tangents
from dplc.ad.taylor import custom_rules, jet
from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.retype import Retype
from dplc.flat.walk import every, supply_for, with_blocks
from dplc.passes import NeedsInterpreter


def expand(program: f.Program) -> f.Program:
    """The program without `Ad` and `Res`."""
    if not any(isinstance(bind.rhs, f.Ad) for fn in program.fns.values() for bind in every(fn.body)):
        return f.Program(program.fns, program.datas, main=program.main, exports=program.exports)
    out = replace(
        program, fns=dict(program.fns), datas=dict(program.datas), residuals={}, checkpoints=set(program.checkpoints),
        rules=dict(program.rules),
    )  # fmt: skip
    derivatives = Derivatives(out, supply_for(program))
    for name in program.fns:
        out.fns[name] = derivatives.body(name)
    derivatives.finish()
    out.checkpoints, out.rules = set(), {}  # they have served
    return out


@dataclass(slots=True)
class Mode:
    """A forward mode: with tangents of the first order (`f.jvp`), or series (`f.jet`)."""

    name: str
    tangents: Tangents
    convert: Conversions
    transform: type[Forward]


@dataclass(slots=True)
class Forwarded:
    """f.jvp or f.jet: `results` are the leaves of f's results whose tangents it gives too."""

    name: str
    results: tuple[int, ...]
    guess: Guess

    @property
    def presence(self) -> list[Presence]:
        return self.guess.presence


@dataclass(slots=True)
class Reversed:
    """f.fwd, f.bwd, the type of what is kept, and what is known of the accumulators that come out."""

    fwd: str
    bwd: str
    residual: f.Type
    guess: Guess

    @property
    def presence(self) -> list[Presence]:
        return self.guess.presence


class Derivatives:
    def __init__(self, program: f.Program, supply: f.Supply) -> None:
        self.program = program
        self.supply = supply
        self.sites = {ad.site: ad for fn in program.fns.values() for ad in sites(fn) if ad.mode in ("vjp", "pullback")}
        self.retype = Retype(self.residual_of)
        self.tangents = Tangents(program.datas, self.retype.type)
        self.convert = Conversions(program, supply, self.tangents)
        self.first = Mode("jvp", self.tangents, self.convert, Forward)
        series = Series(program.datas, self.retype.type)
        self.coefficients = jet.Coefficients(program, supply, series)
        self.series = Mode("jet", series, self.coefficients, jet.Jet)
        self._bodies: dict[str, f.Fn | None] = {}  # None: being worked on
        self._graphs: dict[str, Graph] = {}
        self._deps: dict[str, Deps] = {}
        self._forward: dict[tuple, Forwarded] = {}
        self._reverse: dict[tuple, Reversed] = {}
        self._open: set[str] = set()  # functions being generated
        self._guesses = Guesses(self.forget)
        self._boxes: set[str] = set()
        self.quiet: dict[str, str] = {}  # functions to come (`special.silent`), and what they are the silent form of
        self._residuals: dict[str, f.Type] = {}
        self.linear: dict[tuple, str] = {}  # functions that are checked to be linear (`linear.checked`)

    # ---- functions without Ad ------------------------------------------------------------------------------------

    def body(self, name: str, span: Span | None = None) -> f.Fn:
        """A function, freed of the derivatives taken in it."""
        if name in self.quiet and name not in self.program.fns:
            checkpoint.quieten(self, name)
        fn = self.program.fns[name]
        done = self._bodies.get(name)
        if done is not None:
            return done
        if name in self._bodies or name in self._open:
            raise endless(fn, span)
        self._bodies[name] = None
        self._bodies[name] = self.program.fns[name] = done = self.retype.fn(self.without_ad(fn))
        return done

    def without_ad(self, fn: f.Fn) -> f.Fn:
        return f.Fn(fn.name, fn.params, fn.results, self.block(fn.body), fn.label, fn.span)

    def block(self, block: f.Block) -> f.Block:
        b = Builder(self.supply)
        for bind in block.binds:
            if isinstance(bind.rhs, f.Ad):
                self.site(b, bind.rhs, bind.vars)
            else:
                b.binds.append(f.Bind(bind.vars, with_blocks(bind.rhs, self.block)))
        return f.Block(tuple(b.binds), block.results)

    def site(self, b: Builder, ad: f.Ad, vars_: tuple[f.Var, ...]) -> None:
        """One derivative taken by the program."""
        fn = self.body(ad.fn, ad.span)
        match ad.mode:
            case "jvp":
                shape_check.check(self.convert, b, ad.args[-1], ad.args[-2], "direction", ad.span)
                tangents = self.convert.to_tan(b, ad.args[-1])
                (y, *others), outs = self.beside(b, ad, self.first, ad.args[:-1], tangents)
                self.rename(b, vars_, (y, self.convert.from_tan(b, outs, y), *others))
            case "jet":
                *captured, order, x = ad.args
                some = b.op("max", order, int_(1))  # an array in which nothing is has no inner dimensions
                given = (jet.variable(b, some, x), some)
                (y, *others), series = self.beside(b, ad, self.series, (*captured, x), given)
                self.rename(b, vars_, (y, self.coefficients.all(b, series, y, order, some), *others))
            case "vjp":
                made = self.pulled(ad)
                y, *others, kept = b.call(made.fwd, ad.args, (*fn.results, made.residual), ad.span)
                self.rename(b, vars_, (y, b.make((kept, *self.like(fn, ad.args[-1]), *self.formed(y))), *others))
            case "pullback":
                residual = (
                    f.Var(ad.args[0].name, self.residual_of(ad.site)) if isinstance(ad.args[0], f.Var) else ad.args[0]
                )
                self.pullback(b, ad, fn, residual, vars_)

    def beside(
        self, b: Builder, ad: f.Ad, mode: Mode, args: Sequence[f.Atom], tangents: Sequence[f.Atom]
    ) -> tuple[tuple[f.Var, ...], list[f.Var | None]]:
        """Calls f.jvp or f.jet: what f gives, and the tangents of the leaves of the first of that."""
        fn = self.program.fns[ad.fn]
        made = self.forward(ad.fn, tuple((i, FULL) for i in self.last_leaves(fn)), ad.span, mode)
        leaves = [leaf for ty in fn.results for leaf in mode.tangents.leaves(ty)]
        types = (*fn.results, *(leaves[i] for i in made.results))
        called = (made.name, (*args, *tangents)) if made.results else (ad.fn, args)
        values = b.call(*called, types, ad.span)
        outs = dict(zip(made.results, values[len(fn.results) :], strict=True))
        return values[: len(fn.results)], [outs.get(i) for i in range(len(mode.tangents.leaves(fn.results[0])))]

    def pullback(self, b: Builder, ad: f.Ad, fn: f.Fn, residual: f.Atom, vars_: tuple[f.Var, ...]) -> None:
        made = self.pulled(ad)
        x = fn.params[-1]
        types = self.tangents.leaves(x.ty)
        outs: list[f.Atom | None] = [None] * len(types)
        active = self.pulled_leaves(fn)
        start = len(self.param_nodes(fn)) - len(types)
        if has_form(fn.results[0]):
            y = b.get(residual, 1 + len(self.like(fn, x)))
            shape_check.check(self.convert, b, ad.args[1], y, "cotangent", ad.span)
        if active:
            given = self.convert.to_tan(b, ad.args[1])
            cts = [given[i] for i in self.wanted_leaves(fn)]
            accs = [atom_of(None, types[i - start]) for i in active]
            for i, out in zip(
                active, b.call(made.bwd, (b.get(residual, 0), *cts, *accs), [a.ty for a in accs], ad.span), strict=True
            ):
                outs[i - start] = out
        like = b.get(residual, 1) if self.like(fn, x) else f.Const(0.0, x.ty)
        self.rename(b, vars_, (self.convert.from_tan(b, outs, like),))

    def pulled(self, ad: f.Ad) -> Reversed:
        fn = self.body(ad.fn, ad.span)
        return self.reverse(ad.fn, self.pulled_leaves(fn), tuple((i, FULL) for i in self.wanted_leaves(fn)), ad.span)

    def like(self, fn: f.Fn, x: f.Atom) -> tuple[f.Atom, ...]:
        """The argument, if its shape is needed to give a cotangent of its type."""
        return () if f.is_float(fn.params[-1].ty) else (x,)

    def formed(self, y: f.Var) -> tuple[f.Atom, ...]:
        """The result, if cotangents could differ from it in form."""
        return (y,) if has_form(y.ty) else ()

    def rename(self, b: Builder, vars_: Sequence[f.Var], atoms: Sequence[f.Atom]) -> None:
        """Binds variables to atoms, through a tuple."""
        tup = b.make(atoms)
        b.binds += [f.Bind((self.retype.var(var),), f.TupGet(tup, i)) for i, var in enumerate(vars_)]

    def finish(self) -> None:
        """The functions still to come; those that nobody calls go; and no residual's name is left in a type."""
        while missing := [name for name in self.quiet if name not in self.program.fns]:
            for name in missing:
                checkpoint.quieten(self, name)
        reached = self.reached()
        self.program.fns = {name: self.retype.fn(fn) for name, fn in self.program.fns.items() if name in reached}
        for name, decl in list(self.program.datas.items()):
            self.program.datas[name] = self.retype.data(decl)

    def reached(self) -> set[str]:
        """The functions that are called from outside, and those that they call."""
        todo = self.program.roots if self.program.main in self.program.fns else list(self.program.fns)
        found = set(todo)
        while todo:
            new = set(callees(self.program.fns[todo.pop()].body)) - found
            found |= new
            todo += new
        return found

    def residual_of(self, site: str) -> f.Type:
        """What the type `Res(site)` stands for; if only types mention the site any more, no value has that type."""
        if site not in self.sites:
            return f.UNIT
        if site not in self._residuals:
            ad = self.sites[site]
            made = self.pulled(ad)
            fn = self.body(ad.fn)
            x, y = fn.params[-1], f.Var("y", fn.results[0])
            self._residuals[site] = f.Tup((made.residual, *(a.ty for a in (*self.like(fn, x), *self.formed(y)))))
        return self._residuals[site]

    # ---- who depends on what -------------------------------------------------------------------------------------

    def param_nodes(self, fn: f.Fn) -> list[Node]:
        return [(p.name, i) for p in fn.params for i in range(len(self.tangents.leaves(p.ty)))]

    def last_leaves(self, fn: f.Fn) -> tuple[int, ...]:
        """Of all leaves of the parameters, those of the last."""
        count = len(self.param_nodes(fn))
        return tuple(range(count - len(self.tangents.leaves(fn.params[-1].ty)), count))

    def wanted_leaves(self, fn: f.Fn) -> tuple[int, ...]:
        """The leaves of the first result that depend on the last parameter."""
        last, count = set(self.last_leaves(fn)), len(self.tangents.leaves(fn.results[0]))
        return tuple(i for i, deps in enumerate(self.deps(fn.name)[:count]) if deps & last)

    def pulled_leaves(self, fn: f.Fn) -> tuple[int, ...]:
        """The leaves of the last parameter on which the first result depends."""
        deps = self.deps(fn.name)
        on = frozenset[int]().union(*(deps[i] for i in self.wanted_leaves(fn)))
        return tuple(i for i in self.last_leaves(fn) if i in on)

    def deps(self, name: str) -> Deps:
        """For each leaf of a function's results, the leaves of its parameters that it depends on."""
        if name not in self._deps:
            order = self.unknown(name)
            for fn in order:
                self._deps[fn] = ()
            changed = True
            while changed:
                changed = False
                for fn in order:
                    graph = Grapher(self.tangents, self._deps).draw(self.body(fn))
                    deps = graph.deps() if fn not in self.program.rules else custom.deps(self, fn, graph.deps())
                    changed |= deps != self._deps[fn]
                    self._graphs[fn], self._deps[fn] = graph, deps
        return self._deps[name]

    def deps_so_far(self, name: str) -> Deps:
        """The same while it is being found; empty if nothing is known."""
        return self._deps.get(name, ())

    def unknown(self, name: str) -> list[str]:
        """The functions reachable from one whose dependencies are not known yet, callees first."""
        order: list[str] = []
        seen: set[str] = set()
        todo = [(name, False)]
        while todo:
            fn, done = todo.pop()
            if done:
                order.append(fn)
            elif fn not in seen and fn not in self._deps:
                seen.add(fn)
                todo.append((fn, True))
                todo += [(bind.rhs.fn, False) for bind in every(self.body(fn).body) if isinstance(bind.rhs, f.Call)]
                if fn in self.program.rules and custom.captures(self, self.body(fn)):
                    todo.append((self.program.rules[fn].fn, False))
        return order

    def graph(self, name: str) -> Graph:
        self.deps(name)
        return self._graphs[name]

    # ---- the two modes -------------------------------------------------------------------------------------------

    def forward(
        self,
        name: str,
        active: tuple[tuple[int, Presence], ...],
        span: Span | None = None,
        mode: Mode | None = None,
    ) -> Forwarded:
        mode = mode or self.first
        key = (mode.name, name, active)
        if key in self._forward:
            made = self._forward[key]
            self._guesses.met(made.guess)
        else:
            fn = self.body(name, span)
            indices = {i for i, _ in active}
            results = tuple(i for i, deps in enumerate(self.deps(name)) if deps & indices)
            made = self._forward[key] = Forwarded(
                self.fresh(name, mode.name), results, self._guesses.guess(key, len(results))
            )

            def write() -> list[Presence]:
                if name in self.program.rules:
                    by_rule = custom.forward if mode is self.first else custom_rules.series
                    by_rule(self, fn, made, active)
                    return [MAYBE] * len(results)
                work = mode.transform(self, mode, self.graph(name), active)
                self.program.fns[made.name], presence = work.function(fn, made.name, results)
                return presence

            if results or name in self.program.rules:
                self.settle(made.guess, {made.name}, write)
        return made

    def reverse(
        self, name: str, active: tuple[int, ...], wanted: tuple[tuple[int, Presence], ...], span: Span | None = None
    ) -> Reversed:
        key = (name, active, wanted)
        if key in self._reverse:
            made = self._reverse[key]
            ordinary = name not in self.program.checkpoints and name not in self.program.rules
            if self._guesses.met(made.guess) and ordinary:
                made.residual = f.Data(f"res.{made.fwd}")  # it calls itself: what it keeps is boxed
                self._boxes.add(f"res.{made.fwd}")
            return made
        fn = self.body(name, span)
        fwd, bwd = self.fresh(name, "fwd"), self.fresh(name, "bwd")
        made = self._reverse[key] = Reversed(fwd, bwd, f.UNIT, self._guesses.guess(key, len(active)))

        def write() -> list[Presence]:
            if name in self.program.rules:
                custom.reverse(self, fn, made, active, wanted)
                return [MAYBE] * len(active)
            if name in self.program.checkpoints:
                return checkpoint.checkpoint(self, fn, made, active, wanted)
            work = Reverse(self, self.graph(name), active, wanted)
            self.program.fns[fwd], self.program.fns[bwd], presence = work.function(fn, fwd, bwd, f"res.{fwd}")
            made.residual = self.program.fns[fwd].results[-1]
            return presence

        self.deps(name)
        self.settle(made.guess, {fwd, bwd}, write)
        return made

    def settle(self, guess: Guess, names: set[str], write: Callable[[], list[Presence]]) -> None:
        self._open |= names
        self._guesses.settle(guess, write)
        self._open -= names

    def forget(self, key: tuple) -> None:
        """A derivative that rests on a wrong guess."""
        self._forward.pop(key, None)
        self._reverse.pop(key, None)

    def boxed(self, box: str) -> bool:
        return box in self._boxes

    def fresh(self, name: str, kind: str) -> str:
        new = f"{name}.{kind}"
        while new in self.program.fns or new in self._open:
            new = f"{name}.{self.supply.fresh(kind)}"
        self._open.add(new)
        self.program.fns[new] = f.Fn(new, (), (), f.Block((), ()))  # reserved
        self._open.discard(new)
        return new

    def nodes(self, atoms: Sequence[f.Atom]) -> list[Node | None]:
        return [
            (a.name, i) if isinstance(a, f.Var) else None for a in atoms for i in range(len(self.tangents.leaves(a.ty)))
        ]

    def split(self, b: Builder, both: f.Var, arrays: Sequence[f.Var], widths: Sequence[int | None]) -> None:
        """An array of tuples -> arrays of parts of them: each of so many items, or of one item not made a tuple."""
        index, inner = b.fresh("i", f.I64), b.inner()
        tup = inner.op("index", both, index, unchecked=True)
        at, parts = 0, []
        for width in widths:
            items = [inner.get(tup, k) for k in range(at, at + (width or 1))]
            parts.append(items[0] if width is None else inner.make(items))
            at += len(items)
        b.binds.append(f.Bind(tuple(arrays), f.Build(index, b.op("dim", both, k=0), inner.block(*parts))))


def sites(fn: f.Fn) -> Iterator[f.Ad]:
    """The derivatives taken in a function."""
    return (bind.rhs for bind in every(fn.body) if isinstance(bind.rhs, f.Ad))


def endless(fn: f.Fn | None, span: Span | None) -> NeedsInterpreter:
    name = f"`{fn.label}`" if fn is not None and fn.label else "a function"
    reason = f"the derivative of {name} inside its own derivative, to an order known only when it runs"
    return NeedsInterpreter(reason, span, ("natively, of orders known when the program runs:  Ad.jet n f x",))
