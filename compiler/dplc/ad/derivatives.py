"""The book, a table of all derivatives: their names, and the known facts about each.

    book.forward("f", active)     f.jvp, which results have tangents, and where these may be symbolic zeros
    book.reverse("f", ...)        f.fwd and f.bwd, and the type of the residual between them
    book.deps("f")                which leaves of f's results depend on which of its parameters'

All derivatives are memoised.  The key of a forward mode is the function and the leaves of its parameters that have
tangents; reverse mode adds the leaves of its results that have cotangents.  Code that writes a derivative gets the
derivatives of callees from here.  `ad/differentiate.py` implements the methods that write derivatives.

In a chain of functions that each call the next one for a constant and for a variable, each function has twice the
activities of the one before.  So calls ask by `varied` and `useful`: when a function has many, one serves all others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

from dpl.node import record
from dpl.source import Span

from dplc.ad.activity import Deps, Graph, Grapher, Node
from dplc.ad.expand import expanded
from dplc.ad.optimistic import Assumption, Fixpoint
from dplc.ad.repeats import Costs
from dplc.ad.silent import Silent
from dplc.ad.tangents.coefficients import Coefficients
from dplc.ad.tangents.convert import Conversions
from dplc.ad.tangents.shape_check import has_form
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, Zeros
from dplc.ad.tangents.types import Series, Tangents
from dplc.flat import term as f
from dplc.flat.call_graph import callees, groups
from dplc.flat.known_sizes import known_sizes
from dplc.flat.retype import Retype
from dplc.flat.walk import every
from dplc.passes import NeedsInterpreter
from dplc.passes.parallel.scatters import adding
from dplc.passes.simplify.inlined import has_at_most, on_numbers
from dplc.passes.simplify.simplify import simplified

SHORT = 64  # operations of a derivative that is differentiated in line
ACTIVITIES = 8  # for which a derivative of one function is written; one more serves all others

Seeds = tuple[tuple[int, Zeros], ...]  # leaves that have tangents or cotangents, and where these may be zero


@record
class Mode:
    """A forward mode, with first-order tangents (`f.jvp`) or Taylor series (`f.jet`)."""

    name: str
    tangents: Tangents
    convert: Conversions


@record
class Forwarded:
    """f.jvp or f.jet.  `results` are the leaves of f's results whose tangents it returns too."""

    name: str
    results: tuple[int, ...]
    assumption: Assumption

    @property
    def zeros(self) -> list[Zeros]:
        return self.assumption.zeros


@record
class Reversed:
    """f.fwd and f.bwd, the type of the residual, and the known zeros of the accumulators that f.bwd returns."""

    fwd: str
    bwd: str
    residual: f.Type
    assumption: Assumption
    jacobian: bool = False  # the residual is the Jacobian (`reverse/preaccumulation.py`)

    @property
    def zeros(self) -> list[Zeros]:
        return self.assumption.zeros


class Derivatives(ABC):
    def __init__(self, program: f.Program, supply: f.Supply) -> None:
        self.program = program
        self.supply = supply
        self.sizes = known_sizes(program)
        self.sites = {ad.site: ad for fn in program.fns.values() for ad in sites(fn) if ad.mode in ("vjp", "pullback")}
        self._given = set(program.fns)
        given = {ad.fn for ad in self.sites.values()}
        number, recursive = groups(program)
        self.recursive = {fn for fn in program.fns if number[fn] in recursive}
        self.roots = given - self.recursive  # these are called once
        self.updated = frozenset(updated(program, given))
        self.costs = Costs(self.written)
        self.retype = Retype(self.residual_of)
        self.tangents = Tangents(program.datas, self.retype.type)
        self.convert = Conversions(program, supply, self.tangents)
        self.first = Mode("jvp", self.tangents, self.convert)
        series = Series(program.datas, self.retype.type)
        self.coefficients = Coefficients(program, supply, series)
        self.series = Mode("jet", series, self.coefficients)
        self.silent = Silent(program, supply)
        self._bodies: dict[str, f.Fn | None] = {}  # None: in progress
        self._expanded: dict[str, f.Fn] = {}
        self._graphs: dict[str, Graph] = {}
        self._deps: dict[str, Deps] = {}
        self._forward: dict[tuple, Forwarded] = {}
        self._reverse: dict[tuple, Reversed] = {}
        self._activities: dict[tuple[str, str], set[tuple]] = {}  # of calls, for a mode and a function
        self._open: set[str] = set()  # functions being generated
        self._fixpoint = Fixpoint(self.forget)
        self._boxes: set[str] = set()
        self._residuals: dict[str, f.Type] = {}
        self.linear: dict[tuple, str] = {}  # functions with a check of linearity (`custom/linearity.py`)

    # ---- what is left open ---------------------------------------------------------------------------------------

    @abstractmethod
    def free(self, fn: f.Fn) -> f.Fn:
        """A function with the derivatives in it taken."""

    @abstractmethod
    def write_forward(
        self, fn: f.Fn, made: Forwarded, active: tuple[tuple[int, Zeros], ...], mode: Mode
    ) -> list[Zeros]:
        """Adds f.jvp or f.jet to the program.  Returns the known zeros of its results."""

    @abstractmethod
    def write_reverse(
        self, fn: f.Fn, made: Reversed, active: tuple[int, ...], wanted: tuple[tuple[int, Zeros], ...]
    ) -> list[Zeros]:
        """Adds f.fwd and f.bwd to the program.  Returns the known zeros of the accumulators that f.bwd returns."""

    # ---- functions without Ad ------------------------------------------------------------------------------------

    def body(self, name: str, span: Span | None = None) -> f.Fn:
        """A function with the derivatives in it taken."""
        if self.silent.is_missing(name):
            self.silent.write(name)
        fn = self.program.fns[name]
        done = self._bodies.get(name)
        if done is not None:
            return done
        if name in self._bodies or name in self._open:
            raise endless(fn, span)
        self._bodies[name] = None
        self._bodies[name] = self.program.fns[name] = done = self.retype.fn(self.free(fn))
        return done

    def differentiable(self, name: str, span: Span | None = None) -> f.Fn:
        """The body to differentiate: operations are expanded into others that have derivatives.  What loops add at
        places that an array tells is added, as the derivative of that needs no copy of the sums before each step."""
        fn = self.body(name, span)
        if name not in self._expanded:
            self._expanded[name] = expanded(adding(self.opened(fn), self.supply), self.supply)
        return self._expanded[name]

    def recurs(self, name: str) -> bool:
        """True if a function calls itself."""
        return name in self.recursive or name in callees(self.body(name).body)

    def opened(self, fn: f.Fn) -> f.Fn:
        """A function with short derivatives in line.  They share much of their work, and the outer derivative sees
        that: it need not keep what each of them has computed."""
        called = {bind.rhs.fn for bind in every(fn.body) if isinstance(bind.rhs, f.Call)} - self._given
        made = {name: self.program.fns[name] for name in called if self.written(name)}
        short = {name: one for name, one in made.items() if is_short(one)}
        return simplified(fn, self.supply, self.program, short) if short else fn

    def pulled(self, ad: f.Ad) -> Reversed:
        """The reverse derivative at a site of `vjp`: for its last argument, and all leaves of the result."""
        fn = self.body(ad.fn, ad.span)
        active = self.pulled_leaves(fn)
        return self.reverse(ad.fn, active, tuple((i, NO_ZEROS) for i in self.wanted_leaves(fn)), ad.span)

    def like(self, fn: f.Fn, x: f.Atom) -> tuple[f.Atom, ...]:
        """The argument, if a cotangent of its type needs its shape."""
        return () if f.is_float(fn.params[-1].ty) else (x,)

    def formed(self, y: f.Var) -> tuple[f.Atom, ...]:
        """The result, if a cotangent could have another form."""
        return (y,) if has_form(y.ty) else ()

    def residual_of(self, site: str) -> f.Type:
        """The residual type of a site.  It is unit if the site is gone, as then no value has that type."""
        if site not in self.sites:
            return f.UNIT
        if site not in self._residuals:
            ad = self.sites[site]
            made = self.pulled(ad)
            fn = self.body(ad.fn)
            x, y = fn.params[-1], f.Var("y", fn.results[0])
            self._residuals[site] = f.Tup((made.residual, *(a.ty for a in (*self.like(fn, x), *self.formed(y)))))
        return self._residuals[site]

    # ---- dependence ----------------------------------------------------------------------------------------------

    def param_nodes(self, fn: f.Fn) -> list[Node]:
        """The leaves of the parameters of a function, in order."""
        return [(p.name, i) for p in fn.params for i in range(len(self.tangents.leaves(p.ty)))]

    def last_leaves(self, fn: f.Fn) -> tuple[int, ...]:
        """The numbers of the last parameter's leaves, among the leaves of all parameters."""
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
                    graph = Grapher(self.tangents, self._deps).draw(self.differentiable(fn))
                    deps = graph.deps() if fn not in self.program.rules else self.ruled_deps(fn, graph.deps())
                    changed |= deps != self._deps[fn]
                    self._graphs[fn], self._deps[fn] = graph, deps
        return self._deps[name]

    def ruled_deps(self, name: str, body: Deps) -> Deps:
        """The dependences of a function with a rule.  All results depend on the argument.  They depend on the captures
        like those of the function's body or the rule's value; their Taylor series also depend on them like the rule's
        tangents."""
        fn = self.program.fns[name]
        by_rule = self._deps.get(self.program.rules[name].fn) or [frozenset[int]()] * len(body)  # so far
        slopes = frozenset[int]().union(*by_rule[len(body) :]) & frozenset(range(len(self.param_nodes(fn))))
        always = slopes | frozenset(self.last_leaves(fn))
        return tuple(on | always | given for on, given in zip(body, by_rule, strict=False))

    def captures(self, fn: f.Fn) -> bool:
        """True if the function with a rule has captures to which a derivative may flow."""
        return len(self.param_nodes(fn)) > len(self.last_leaves(fn))

    def unknown(self, name: str) -> list[str]:
        """The functions, reachable from this one, whose dependences are not known yet; callees first."""
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
                if fn in self.program.rules and self.captures(self.body(fn)):
                    todo.append((self.program.rules[fn].fn, False))
        return order

    def graph(self, name: str) -> Graph:
        """The dependences in a function."""
        self.deps(name)
        return self._graphs[name]

    # ---- the activities of calls ---------------------------------------------------------------------------------

    def varied(self, mode: Mode, name: str, active: Seeds) -> Seeds:
        """The leaves of parameters to which a call gives tangents, if it has those of `active`."""
        if not active or (not self.takes_null(name) and self.is_own(mode.name, name, active)):
            return active
        return tuple((i, MAYBE_ZERO) for i in self.inputs(name))

    def takes_null(self, name: str) -> bool:
        """True for the derivative of a recursion on data: a test for null in it skips what no tangent reaches, and it
        is long, so it is not written again for each activity."""
        if name in self._given or name in self.program.rules or not self.recurs(name):
            return False
        leaves = [leaf for p in self.body(name).params for leaf in self.tangents.leaves(p.ty)]
        return all(isinstance(leaves[i], f.Data) for i in self.inputs(name))

    def useful(self, name: str, active: tuple[int, ...], wanted: Seeds) -> tuple[tuple[int, ...], Seeds]:
        """The same for reverse mode: the leaves of parameters with accumulators, those of results with cotangents."""
        if self.is_own("vjp", name, (active, wanted)):
            return active, wanted
        return self.inputs(name), tuple((i, MAYBE_ZERO) for i, deps in enumerate(self.deps(name)) if deps)

    def is_own(self, mode: str, name: str, activity: tuple) -> bool:
        """True if this activity has a derivative of its own.  That does not change when derivatives are forgotten."""
        if name in self.program.rules or name in self.program.checkpoints:
            return True
        known = self._activities.setdefault((mode, name), set())
        if len(known) < ACTIVITIES:
            known.add(activity)
        return activity in known

    def inputs(self, name: str) -> tuple[int, ...]:
        """The leaves of a function's parameters on which its results depend."""
        return tuple(sorted(frozenset[int]().union(*self.deps(name))))

    # ---- the two modes -------------------------------------------------------------------------------------------

    def forward(
        self,
        name: str,
        active: tuple[tuple[int, Zeros], ...],
        span: Span | None = None,
        mode: Mode | None = None,
    ) -> Forwarded:
        """The forward derivative of a function for some active leaves, whose tangents may be symbolic zeros as said;
        written at its first use.
        """
        mode = mode or self.first
        key = (mode.name, name, active)
        if key in self._forward:
            made = self._forward[key]
            self._fixpoint.call(made.assumption)
        else:
            fn = self.differentiable(name, span)
            indices = {i for i, _ in active}
            results = tuple(i for i, deps in enumerate(self.deps(name)) if deps & indices)
            made = self._forward[key] = Forwarded(
                self.fresh(name, mode.name), results, self._fixpoint.assume(key, len(results))
            )
            if results or name in self.program.rules:
                self.settle(made.assumption, {made.name}, lambda: self.write_forward(fn, made, active, mode))
        return made

    def reverse(
        self, name: str, active: tuple[int, ...], wanted: tuple[tuple[int, Zeros], ...], span: Span | None = None
    ) -> Reversed:
        """The reverse derivative for some active leaves of the arguments and wanted leaves of the results; written at
        its first use.  One that calls itself has a residual in a box.
        """
        key = (name, active, wanted)
        if key in self._reverse:
            made = self._reverse[key]
            ordinary = name not in self.program.checkpoints and name not in self.program.rules
            if self._fixpoint.call(made.assumption) and ordinary and not made.jacobian:
                made.residual = f.Data(f"res.{made.fwd}")  # it calls itself, so its residual is boxed
                self._boxes.add(f"res.{made.fwd}")
            return made
        fn = self.differentiable(name, span)
        fwd, bwd = self.fresh(name, "fwd"), self.fresh(name, "bwd")
        made = self._reverse[key] = Reversed(fwd, bwd, f.UNIT, self._fixpoint.assume(key, len(active)))
        self.deps(name)
        self.settle(made.assumption, {fwd, bwd}, lambda: self.write_reverse(fn, made, active, wanted))
        return made

    def settle(self, assumption: Assumption, names: set[str], write: Callable[[], list[Zeros]]) -> None:
        """Writes a derivative until what was assumed of its zeros holds."""
        self._open |= names
        self._fixpoint.solve(assumption, write)
        self._open -= names

    def forget(self, key: tuple) -> None:
        """Removes a derivative that was written under a wrong assumption."""
        self._forward.pop(key, None)
        self._reverse.pop(key, None)

    def boxed(self, box: str) -> bool:
        """True for the residual of a derivative that calls itself."""
        return box in self._boxes

    def fresh(self, name: str, kind: str) -> str:
        """A name for a derivative, which the program does not have yet."""
        new = f"{name}.{kind}"
        while new in self.program.fns or new in self._open:
            new = f"{name}.{self.supply.fresh(kind)}"
        self._open.add(new)
        self.program.fns[new] = f.Fn(new, (), (), f.Block((), ()))  # reserved
        self._open.discard(new)
        return new

    def written(self, name: str) -> f.Block | None:
        """The body of a function, if it is complete."""
        fn = self.program.fns.get(name)
        return None if fn is None or name in self._open or not fn.results else fn.body

    def nodes(self, atoms: Sequence[f.Atom]) -> list[Node | None]:
        """The leaves of some atoms, in order; None for those of constants."""
        return [
            (a.name, i) if isinstance(a, f.Var) else None for a in atoms for i in range(len(self.tangents.leaves(a.ty)))
        ]


def is_short(fn: f.Fn) -> bool:
    return has_at_most(SHORT, fn.body) and on_numbers(fn)


def sites(fn: f.Fn) -> Iterator[f.Ad]:
    """The derivatives taken in a function."""
    return (bind.rhs for bind in every(fn.body) if isinstance(bind.rhs, f.Ad))


def updated(program: f.Program, roots: Iterable[str]) -> Iterator[f.Type]:
    """The types of arrays that are updated in functions that are differentiated."""
    todo, seen = list(roots), set(roots)
    while todo:
        body = program.fns[todo.pop()].body
        for bind in every(body):
            match bind.rhs:
                case f.Op("update", (array, *_)):
                    yield array.ty
                case f.Call(fn) | f.Ad(_, fn) if fn not in seen:
                    seen.add(fn)
                    todo.append(fn)
                case _:
                    pass


def endless(fn: f.Fn | None, span: Span | None) -> NeedsInterpreter:
    name = f"`{fn.label}`" if fn is not None and fn.label else "a function"
    reason = f"the derivative of {name} inside its own derivative, to an order known only when it runs"
    return NeedsInterpreter(reason, span, ("natively, of orders known when the program runs:  Ad.jet n f x",))
