"""The state of checking one module, and what every rule needs: scopes, levels, equations, names, failures.

The rules for the forms of expressions register themselves in `RULES`; `infer` and `check` apply them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpl.core import term, ty
from dpl.diagnostics import Diagnostic, DplError, Warnings
from dpl.node import node
from dpl.source import NOWHERE, Span
from dpl.syntax import tree
from dpl.types import checks, errors, sizes
from dpl.types.constraints import Constraint, Lift
from dpl.types.env import (
    CONSTRUCTORS,
    TYPES,
    Constructor,
    Entry,
    Exports,
    Failed,
    Group,
    SizeName,
    TypeName,
    Value,
)
from dpl.types.meta import PURE, Effect, Meta, Type, dimensions, prune, prune_effect
from dpl.types.notes import Notes
from dpl.types.scheme import NOTHING, Scheme, instantiate, mono, replace
from dpl.types.unbound import unbound
from dpl.types.unify import Clash, Solver

if TYPE_CHECKING:
    from dpl.types.replay import Replay

RULES: dict[type, Callable] = {}


def rule(*kinds: type):
    """Registers how to infer these kinds of expressions: `(cx, e, expected) -> core term`.  `expected` is a hint: the
    type that the context will ask for, or None."""

    def register(function: Callable) -> Callable:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


@node
class Ambient:
    """The effect allowed here, and why: `top`, `fun`, `reset`, `bulk`, `module`."""

    effect: Effect
    reason: str
    span: Span = NOWHERE


@dataclass(slots=True)
class Frame:
    """The type and size variables that the annotations of one binding introduce."""

    level: int
    types: dict[str, Type] = field(default_factory=dict)
    sizes: dict[str, ty.Size] = field(default_factory=dict)


@node
class Definition:
    """A function as it is written, and where: enough to check it again (`replay.py`).  It sees the `locals` and the
    annotations' `frames` around it, and what its module declared before `horizon`."""

    binding: tree.Binding
    home: Context
    horizon: int
    locals: Mapping[str, list[Entry]] = NOTHING
    frames: tuple[Frame, ...] = ()

    @property
    def function(self) -> tuple[tuple, tree.Expr]:
        """Its parameters and its body."""
        b = self.binding
        return (b.body.params, b.body.body) if not b.params and isinstance(b.body, tree.Fun) else (b.params, b.body)


class Context:
    def __init__(
        self, module: str, modules: dict[str, Exports], datas: dict, warnings: Warnings, primitives: Exports
    ) -> None:
        self.module = self.name = module  # `module` is where names are looked up just now
        self.modules = modules
        self.datas = datas
        self.warnings = warnings
        self.loud: set[str] = set()  # what must not be generalised over when used: see `quiet`
        self.solver = Solver(datas, module + ".")
        self.global_evidence: dict[str, term.Term] = {}  # sizes -> ints that they can be computed from
        self.layers: list[Exports] = [primitives, *([modules["Prelude"]] if "Prelude" in modules else [])]
        self.owned: list[Exports] = []
        self.captures: dict[str, tuple[str, Span]] = {}  # functions that capture -> what they call for it
        self.defining = ""
        self.definitions: dict[str, Definition] = {}  # functions by their names in core
        self.history: dict[str, list[tuple[int, Entry]]] = {}  # what each name of this module stood for, and since when
        self.ahead: dict[tuple[str, str], Span] = {}  # what this module declares, by kind and name
        self.homes: Callable[[str], Context | None] = lambda name: None  # the contexts of other modules
        self.clock = 0  # how many values were declared
        self.horizon: int | None = None
        self.replay: Replay | None = None
        self.notes: Notes | None = None
        self.fields: dict[str, list[term.Data]] = {}  # the record types of this module, by their fields' names
        self.constructors: dict[str, tuple[term.Data, Span]] = {}  # of this module, and where they are declared
        self.new_layer()
        self.begin()

    def begin(self) -> None:
        """A new top-level definition."""
        self.solver.level = 0
        self.solver.queue.clear()
        self.solver.assumed.clear()
        self.solver.undecided.clear()
        self.locals: dict[str, list[Entry]] = {}
        self.trail: list[str] = []
        self.evidence = dict(self.global_evidence)
        self.unlearned: tuple[term.Var, ...] = ()  # variables in scope, of whose types too little was known
        self.ints: dict[str, term.Var] = {}  # unknown sizes -> the ints in scope that they are
        self.tied: dict[str, str] = {}  # unknown sizes -> the int parameters that they are
        self.claims: list[tuple[term.Term, term.Term]] = []  # sizes of a parameter, and the int parameters they must be
        self.frames: list[Frame] = [Frame(1)]
        self.ambient = Ambient(PURE, "top")
        self.taken: dict[str, int] = {}
        self.literals: list[Meta] = []  # the types of numbers without a suffix
        self.unused: dict[str, tuple[str, Span]] = {}  # local names, by those in core, that nothing has mentioned yet
        self.pending: list[Constraint] = []
        self.held: list[Lift] = []  # of the last instance
        self.greedy: set[int] = set()  # matches that end a case of another, without parentheses
        self.counter = 0

    # ---- names

    def new_layer(self) -> None:
        """What is declared from here on shadows what was there before, names of opened modules too."""
        self.own = Exports()
        self.owned.append(self.own)
        self.layers.append(self.own)

    def exports(self) -> Exports:
        """Everything that the module declares."""
        merged = Exports()
        for own in self.owned:
            for kind in ("values", "types", "constructors", "fields"):
                getattr(merged, kind).update(getattr(own, kind))
        return merged

    def unique(self, name: str) -> str:
        self.counter += 1
        return f"{name}.{self.counter}"

    def bind(self, name: str, entry: Entry) -> None:
        self.locals.setdefault(name, []).append(entry)
        self.trail.append(name)
        if self.notes is not None and isinstance(entry, Value) and self.replay is None:
            self.notes.locals.append((name, entry.span, entry.scheme))

    @contextmanager
    def scope(self):
        """What is bound inside is forgotten afterwards."""
        mark, evidence, unlearned = len(self.trail), self.evidence, self.unlearned
        self.evidence = dict(evidence)
        yield
        self.unwind(mark)
        self.evidence, self.unlearned = evidence, unlearned

    def declare(self, name: str, entry: Entry) -> None:
        """A value of this module."""
        self.own.values[name] = entry
        self.history.setdefault(name, []).append((self.clock, entry))
        self.clock += 1

    def remember(self, core: str, binding: tree.Binding, horizon: int) -> None:
        """A function of this module."""
        self.definitions[core] = Definition(binding, self, horizon)

    def remember_local(self, core: str, binding: tree.Binding) -> None:
        """A function inside another, if its calls are being followed."""
        if self.replay is not None:
            known = {name: list(stack) for name, stack in self.locals.items() if stack}
            horizon = self.clock if self.horizon is None else self.horizon
            self.definitions[core] = Definition(binding, self, horizon, known, tuple(self.frames))

    def definition(self, value: Value) -> Definition | None:
        """The definition of a function, if it is the user's own."""
        module = value.name.rpartition(".")[0]
        home = self.homes(module) if value.is_global and module != self.name else self
        return home.definitions.get(value.name) if home is not None else None

    def known_sizes(self) -> dict[str, term.Term]:
        """All evidence as it is now: also of ints that were used as sizes further inside, and are in scope here."""
        visible = {stack[-1].name for stack in self.locals.values() if stack and isinstance(stack[-1], Value)}
        return {**{n: var for n, var in self.ints.items() if var.name in visible}, **self.evidence}

    def unwind(self, mark: int) -> None:
        while len(self.trail) > mark:
            self.locals[self.trail.pop()].pop()

    def lookup(self, name: str, span: Span) -> Entry:
        found = self.find(name)
        if found is None:
            raise self.unbound("value", name, span)
        return found

    def find(self, name: str) -> Entry | None:
        local = self.locals.get(name)
        if local:
            found = local[-1]
            if isinstance(found, Value):
                self.unused.pop(found.name, None)
            return found
        return self._resolve("values", name)

    def watch(self, name: str, core: str, span: Span) -> None:
        """A local name that should be mentioned."""
        if not name.startswith("_"):
            self.unused[core] = name, span

    def _resolve(self, kind: str, name: str) -> Any:
        found = self._found(kind, name)
        if self.notes is not None and self.replay is None:
            self.notes.asked[kind, name] = found
        return found

    def _found(self, kind: str, name: str) -> Any:
        qualifier, dot, member = name.rpartition(".")
        if dot and qualifier and qualifier[0].isalpha():
            exports = self.modules.get(qualifier)
            found = getattr(exports, kind).get(member) if exports else None
            return getattr(self.layers[0], kind).get(member) if found is None and qualifier == "Prelude" else found
        if self.horizon is not None and kind == "values":
            found = self._resolve_then(name)
        else:
            layers = (getattr(exports, kind) for exports in reversed(self.layers))
            found = next((names[name] for names in layers if name in names), None)
        return Failed() if found is None and any(exports.missing for exports in self.layers) else found

    def _resolve_then(self, name: str) -> Entry | None:
        """What a name stood for before the horizon."""
        for since, entry in reversed(self.history.get(name, ())):
            if self.horizon is not None and since < self.horizon:
                return entry
        others = (exports for exports in reversed(self.layers) if not any(exports is own for own in self.owned))
        return next((exports.values[name] for exports in others if name in exports.values), None)

    def type_name(self, name: str, span: Span) -> TypeName:
        found = self._resolve("types", name)
        if found is None or (isinstance(found, Failed) and name in TYPES):
            found = TYPES.get(name)
        if found is None:
            raise self.unbound("type", name, span)
        if isinstance(found, Failed):
            raise found.again()
        return found

    def constructor(self, name: str, span: Span, wanted: Type | None = None) -> Constructor:
        """By name; of the type that is wanted, if that is known and has one of that name."""
        wanted = prune(wanted) if wanted is not None else None
        if type(wanted) is ty.Con and wanted.name in self.datas:
            data = self.datas[wanted.name]
            for tag, (case, _) in enumerate(data.cases):
                if case == name.rpartition(".")[2] and not data.fields:
                    return Constructor(data, tag)
        found = self.known_constructor(name)
        if found is None:
            raise self.unbound("constructor", name, span, wanted)
        if isinstance(found, Failed):
            raise found.again()
        return found

    def known_constructor(self, name: str) -> Constructor | Failed | None:
        return CONSTRUCTORS.get(name) or self._resolve("constructors", name)

    def field_owner(self, name: str, span: Span) -> term.Data:
        found = self._resolve("fields", name)
        if found is None:
            raise self.unbound("field", name, span)
        if isinstance(found, Failed):
            raise found.again()
        self.warn_of_ambiguous(name, found, span)
        return found

    def warn_of_ambiguous(self, name: str, meant: term.Data, span: Span) -> None:
        """A field that an earlier type of this module has too: the last wins."""
        earlier = [data for data in self.fields.get(name, ()) if data.name != meant.name]
        if earlier:
            one, other = (errors.printer(self).data_name(d.name) for d in (earlier[-1], meant))
            self.warnings.add(
                Diagnostic(
                    "W0202",
                    f"both `{one}` and `{other}` have `{name}`: that of `{other}` is meant here",
                    span,
                    helps=(f"an annotation decides:  (e : {one})",),
                )
            )

    def unbound(self, kind: str, name: str, span: Span, wanted: Type | None = None) -> DplError:
        return unbound(self, kind, name, span, wanted)

    @staticmethod
    def fail(code: str, title: str, span: Span | None, **more) -> DplError:
        return DplError.at(code, title, span, **more)

    # ---- levels and effects

    @contextmanager
    def deeper(self):
        """Inside, unknowns belong to the next level; yields the constraints' mark."""
        self.solver.level += 1
        yield len(self.pending)
        self.solver.level -= 1

    @contextmanager
    def allowing(self, effect: Effect, reason: str, span: Span):
        outer, self.ambient = self.ambient, Ambient(effect, reason, span)
        yield
        self.ambient = outer

    def perform(self, effect: Effect, span: Span, what: str = "") -> None:
        """Something with this effect happens here: a call of `what`, or a `shift`."""
        if type(prune_effect(effect)) is ty.Ctl and self.defining:
            self.captures.setdefault(self.defining, (what, span))
        try:
            self.solver.perform(effect, self.ambient.effect)
        except Clash as clash:
            raise errors.effect(self, clash, span, what) from clash
        self.drain()

    # ---- expressions

    def infer(self, e: tree.Expr, expected: Type | None = None) -> term.Term:
        made = RULES[type(e)](self, e, expected)
        if self.notes is not None:
            self.note(e.span, made.ty)
        return made

    def note(self, span: Span, t: Type) -> None:
        """This stretch of text has this type; what is found while following a call is of that call only."""
        if self.notes is not None and self.replay is None:
            self.notes.expressions.append((span, t))

    def check(self, e: tree.Expr, expected: Type, why: errors.Why | None = None) -> term.Term:
        """`e`, which must have the type `expected`; sizes only running can confirm are checked there."""
        return self.coerce(self.infer(e, expected), expected, why)

    def coerce(self, t: term.Term, expected: Type, why: errors.Why | None = None) -> term.Term:
        """`t` where `expected` is wanted.  If that is a type variable, another argument said what it is, and only sizes
        that are known are claimed."""
        if t.ty is expected:
            return t
        self.solver.assumed.clear()
        self.solver.claimed.clear()
        self.unify(t.ty, expected, t.span, why)
        return self.confirm(t, expected) if self.solver.assumed else t

    def confirm(self, t: term.Term, expected: Type, actual: Type | None = None) -> term.Term:
        """`t`, its sizes checked against those of `expected` when it runs, as far as both can be computed; `actual` is
        its type, if that is not the one it says."""
        self.solver.assumed.clear()
        return checks.confirm(self, t, expected, actual or t.ty)

    def unify(self, actual: Type, expected: Type, span: Span, why: errors.Why | None = None) -> None:
        self.solver.at(span)
        try:
            self.solver.unify(actual, expected)
        except Clash as clash:
            raise errors.mismatch(self, clash, actual, expected, span, why) from clash
        self.drain()

    def require(self, t: Type, cls: str, span: Span) -> None:
        self.solver.at(span)
        try:
            self.solver.require(t, cls)
        except Clash as clash:
            raise errors.mismatch(self, clash, t, t, span, None) from clash
        self.drain()

    def drain(self) -> None:
        if self.solver.queue:
            self.solver.drain(self.attempt)

    # ---- constraints

    def constrain(self, constraint: Constraint) -> None:
        self.attempt(constraint)
        if not constraint.done:
            self.pending.append(constraint)
        self.drain()

    def attempt(self, constraint: Constraint, step: Callable | None = None) -> None:
        self.solver.at(constraint.span)
        try:
            done = constraint.solve(self.solver, self.constrain) if step is None else step(self.solver, self.constrain)
        except Clash as clash:
            raise errors.relation(self, clash, constraint) from clash
        if done or step is not None:
            constraint.done = True
            return
        for t in constraint.types:
            inner = dimensions(t)[1]
            if type(inner) is Meta and constraint not in inner.watchers:
                inner.watchers.append(constraint)

    def decide(self, constraint: Constraint) -> None:
        """Nothing more will be learnt about it."""
        self.attempt(constraint)
        if not constraint.done:
            self.attempt(constraint, constraint.default)
        self.drain()

    # ---- names as terms

    def instance(
        self, scheme: Scheme, span: Span, sizes: Mapping[str, ty.Size] = NOTHING, operands: tuple[Span, ...] = ()
    ) -> tuple[Type, tuple]:
        self.solver.at(span)
        mark = len(self.pending)
        made = instantiate(self.solver, scheme, self.constrain, span, sizes, operands)
        self.held = [c for c in self.pending[mark:] if isinstance(c, Lift) and c.held]
        return made

    def release(self, held: list[Lift], result: Type) -> None:
        """All arguments of a function were given: of the operands that it relates, no more will be known."""
        if type(prune(result)) is not ty.Fn:
            for c in held:
                c.held = False
                if not c.done:
                    self.attempt(c)
            self.drain()

    def use(self, name: str, span: Span, known: Mapping[str, ty.Size] = NOTHING, call: Span | None = None) -> term.Term:
        """A name that is no primitive, as a term; `call` is where it is applied."""
        match self.lookup(name, span):
            case Value(core, scheme, group=None):
                t, inst = self.instance(scheme, call or span, known)
                self.note(span, t)
                known_sizes: Any = ((dict(self.evidence), self.unlearned),) if inst else ()  # known later
                return term.Var(span, t, core, inst, known_sizes)
            case Value(core, scheme, group=Group() as group):
                named = {n for size in group.sizes.values() for n in sizes.names(size) if n[0] not in "!?"}
                t = replace(scheme.ty, {n: self.solver.size() for n in named}, {}) if named else scheme.ty
                group.uses.setdefault(core, call or span)
                inst: Any = (group,)  # its parameters, when they are known
                return term.Var(span, t, core, inst)
            case SizeName(found):
                return checks.size_term(self, found, span, name)
            case Failed():
                return term.Var(span, self.solver.fresh(), "failed")
            case _:
                raise AssertionError(name)

    def local(self, name: str, t: Type, span: Span, size: ty.Size | None = None) -> str:
        """Bind a monomorphic local name; answers its name in core."""
        core = self.unique(name)
        if name != "_":
            self.bind(name, Value(core, mono(t), span, size=size))
        return core
