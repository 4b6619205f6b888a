"""The state of checking one module: names in scope, levels, equations, and what is known about sizes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import Any

from dpl.core import term, ty
from dpl.diagnostics import Diagnostic, DplError, Warnings
from dpl.node import field, node, record
from dpl.source import NOWHERE, Span
from dpl.syntax import tree
from dpl.types.messages.parts import printer
from dpl.types.solve.constraints import Constraint, Lift
from dpl.types.solve.meta import PURE, Effect, Meta, Type, prune
from dpl.types.solve.scheme import NOTHING
from dpl.types.solve.unify import Solver
from dpl.types.state.env import CONSTRUCTORS, TYPES, Constructor, Entry, Exports, Failed, TypeName, Value
from dpl.types.state.notes import Notes


@node
class Ambient:
    """The effect allowed here, and the reason: `top`, `fun`, `reset`, `bulk` or `module`."""

    effect: Effect
    reason: str
    span: Span = NOWHERE


@record
class Frame:
    """The type and size variables that the annotations of one binding introduce."""

    level: int
    types: dict[str, Type] = field(default_factory=dict)
    sizes: dict[str, ty.Size] = field(default_factory=dict)


@node
class Definition:
    """The source of a function and its scope, enough to check it again (`replay.py`).

    It sees the `locals` and the annotation `frames` around it, and what its module declared before `horizon`."""

    binding: tree.Binding
    home: Scope
    horizon: int
    locals: Mapping[str, list[Entry]] = NOTHING
    frames: tuple[Frame, ...] = ()

    @property
    def function(self) -> tuple[tuple, tree.Expr]:
        """The parameters and the body."""
        b = self.binding
        return (b.body.params, b.body.body) if not b.params and isinstance(b.body, tree.Fun) else (b.params, b.body)


class Scope(ABC):
    """The scope and the state of inference in the module that is being checked."""

    @property
    @abstractmethod
    def following(self) -> bool:
        """True while calls are followed into the called functions; facts found then hold for that call only."""

    @property
    def inside_call(self) -> bool:
        """True in the body of a called function that is checked again at the sizes of the call."""
        return self.horizon is not None

    def __init__(
        self, module: str, modules: dict[str, Exports], datas: dict, warnings: Warnings, primitives: Exports
    ) -> None:
        self.module = self.name = module  # `module` is where names are looked up at present
        self.modules = modules
        self.datas = datas
        self.warnings = warnings
        self.loud: set[str] = set()  # names that block generalisation: see `quiet`
        self.solver = Solver(datas, module + ".")
        self.global_evidence: dict[str, term.Term] = {}  # sizes -> int terms that compute them
        self.layers: list[Exports] = [primitives, *([modules["Prelude"]] if "Prelude" in modules else [])]
        self.owned: list[Exports] = []
        self.captures: dict[str, tuple[str, Span]] = {}  # functions that capture -> the call that captures
        self.defining = ""
        self.definitions: dict[str, Definition] = {}  # functions by core name
        self.guessed: set[str] = set()  # functions of guessed rank: see `messages/recursion.py`
        self.history: dict[str, list[tuple[int, Entry]]] = {}  # each name of this module -> its meanings, since when
        self.ahead: dict[tuple[str, str], Span] = {}  # the declarations of this module, by kind and name
        self.homes: Callable[[str], Scope | None] = lambda name: None  # the contexts of other modules
        self.clock = 0  # the number of values declared so far
        self.horizon: int | None = None
        self.notes: Notes | None = None
        self.fields: dict[str, list[term.Data]] = {}  # the record types of this module, by field name
        self.constructors: dict[str, tuple[term.Data, Span]] = {}  # those of this module, with their places
        self.new_layer()
        self.begin()

    def begin(self) -> None:
        """Prepares for a new top-level definition."""
        self.solver.level = 0
        self.solver.queue.clear()
        self.solver.assumed.clear()
        self.solver.undecided.clear()
        self.locals: dict[str, list[Entry]] = {}
        self.trail: list[str] = []
        self.evidence = dict(self.global_evidence)
        self.lost = False  # a name was used whose own definition has an error: types that depend on it stay open
        self.unlearned: tuple[term.Var, ...] = ()  # variables in scope whose types were not yet known enough
        self.ints: dict[str, term.Var] = {}  # run-time sizes -> the ints in scope that they equal
        self.tied: dict[str, str] = {}  # run-time sizes -> the int parameters that they equal
        self.claims: list[tuple[term.Term, term.Term]] = []  # sizes of a parameter, and the ints that they must equal
        self.frames: list[Frame] = [Frame(1)]
        self.ambient = Ambient(PURE, "top")
        self.taken: dict[str, int] = {}
        self.literals: list[Meta] = []  # the types of numbers without a suffix
        self.large: list[tuple[int | float, Type]] = []  # literals that do not fit into each type, and their types
        self.holders: list[tuple[int | float, Type, Span]] = []  # literals of what is used, and their types
        self.unused: dict[str, tuple[str, Span]] = {}  # local names that are not used yet, by core name
        self.pending: list[Constraint] = []
        self.held: list[Lift] = []  # constraints of the last instance
        self.greedy: set[int] = set()  # matches that end a case of another match, without parentheses
        self.counter = 0

    # ---- names

    def new_layer(self) -> None:
        """Starts a new layer of declarations, which shadows earlier ones and the names of opened modules."""
        self.own = Exports()
        self.owned.append(self.own)
        self.layers.append(self.own)

    def exports(self) -> Exports:
        """All declarations of the module."""
        merged = Exports()
        for own in self.owned:
            for kind in ("values", "types", "constructors", "fields"):
                getattr(merged, kind).update(getattr(own, kind))
        return merged

    def unique(self, name: str) -> str:
        """A name for core that no other local has."""
        self.counter += 1
        return f"{name}.{self.counter}"

    def bind(self, name: str, entry: Entry) -> None:
        """Adds a local name, until the scope around ends."""
        self.locals.setdefault(name, []).append(entry)
        self.trail.append(name)
        if self.notes is not None and isinstance(entry, Value) and not self.following:
            self.notes.locals.append((name, entry.span, entry.scheme))

    @contextmanager
    def scope(self):
        """Restores the names and evidence in scope at the end."""
        mark, evidence, unlearned = len(self.trail), self.evidence, self.unlearned
        self.evidence = dict(evidence)
        yield
        self.unwind(mark)
        self.evidence, self.unlearned = evidence, unlearned

    def declare(self, name: str, entry: Entry) -> None:
        """Declares a value of this module."""
        self.own.values[name] = entry
        self.history.setdefault(name, []).append((self.clock, entry))
        self.clock += 1

    def remember(self, core: str, binding: tree.Binding, horizon: int) -> None:
        """Remembers the definition of a function of this module."""
        self.definitions[core] = Definition(binding, self, horizon)

    def remember_local(self, core: str, binding: tree.Binding) -> None:
        """Remembers the definition of a local function, if calls are being followed."""
        if self.following:
            known = {name: list(stack) for name, stack in self.locals.items() if stack}
            horizon = self.clock if self.horizon is None else self.horizon
            self.definitions[core] = Definition(binding, self, horizon, known, tuple(self.frames))

    def definition(self, value: Value) -> Definition | None:
        """The definition of a user's function; None for others."""
        module = value.name.rpartition(".")[0]
        home = self.homes(module) if value.is_global and module != self.name else self
        return home.definitions.get(value.name) if home is not None else None

    def known_sizes(self) -> dict[str, term.Term]:
        """All evidence at present, including ints that were used as sizes further inside and are in scope here."""
        visible = {stack[-1].name for stack in self.locals.values() if stack and isinstance(stack[-1], Value)}
        return {**{n: var for n, var in self.ints.items() if var.name in visible}, **self.evidence}

    def unwind(self, mark: int) -> None:
        while len(self.trail) > mark:
            self.locals[self.trail.pop()].pop()

    def lookup(self, name: str, span: Span) -> Entry:
        """What a name stands for.  Raises an error, with names that are like it, if it is not in scope."""
        found = self.find(name)
        if found is None:
            raise self.unbound("value", name, span)
        return found

    def find(self, name: str) -> Entry | None:
        """What a name stands for; None if it is not in scope.  It counts as used then."""
        local = self.locals.get(name)
        if local:
            found = local[-1]
            if isinstance(found, Value):
                self.unused.pop(found.name, None)
            return found
        return self._resolve("values", name)

    def hides_value(self, name: str) -> bool:
        """Does a local name stand before a value of the module?"""
        return isinstance(self._found("values", name), Value)

    def watch(self, name: str, core: str, span: Span) -> None:
        """Warns later if this local name is never used, unless it says that it may be."""
        self.unused[core] = name, span

    def _resolve(self, kind: str, name: str) -> Any:
        found = self._found(kind, name)
        if self.notes is not None and not self.following:
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
        """The meaning that a name had before the horizon."""
        for since, entry in reversed(self.history.get(name, ())):
            if self.horizon is not None and since < self.horizon:
                return entry
        others = (exports for exports in reversed(self.layers) if not any(exports is own for own in self.owned))
        return next((exports.values[name] for exports in others if name in exports.values), None)

    def type_name(self, name: str, span: Span) -> TypeName:
        """The type of this name.  Raises an error if there is none."""
        found = self._resolve("types", name)
        if found is None or (isinstance(found, Failed) and name in TYPES):
            found = TYPES.get(name)
        if found is None:
            raise self.unbound("type", name, span)
        if isinstance(found, Failed):
            raise found.again()
        return found

    def constructor(self, name: str, span: Span, wanted: Type | None = None) -> Constructor:
        """The constructor of this name: that of the wanted type if it has one, else the one in scope.

        Raises DplError if there is none."""
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
        """The constructor of this name, also one of the language; None if there is none."""
        return CONSTRUCTORS.get(name) or self._resolve("constructors", name)

    def field_owner(self, name: str, span: Span) -> term.Data:
        """The record that has a field of this name.  Raises an error if there is none."""
        found = self._resolve("fields", name)
        if found is None:
            raise self.unbound("field", name, span)
        if isinstance(found, Failed):
            raise found.again()
        self.warn_of_ambiguous(name, found, span)
        return found

    def is_field(self, name: str) -> bool:
        """True if a record in scope has a field of this name."""
        return self._resolve("fields", name) is not None

    def warn_of_ambiguous(self, name: str, meant: term.Data, span: Span) -> None:
        """Warns if an earlier record type of this module has the same field; the last declaration wins."""
        earlier = [data for data in self.fields.get(name, ()) if data.name != meant.name]
        if earlier:
            one, other = (printer(self).data_name(d.name) for d in (earlier[-1], meant))
            self.warnings.add(
                Diagnostic(
                    "W0202",
                    f"both `{one}` and `{other}` have `{name}`: that of `{other}` is meant here",
                    span,
                    helps=(f"an annotation decides:  (e : {one})",),
                )
            )

    def unbound(self, kind: str, name: str, span: Span, wanted: Type | None = None) -> DplError:
        """The error for a name that is not in scope, with others that may be meant."""
        from dpl.types.state.unbound import unbound

        return unbound(self, kind, name, span, wanted)

    @staticmethod
    def fail(code: str, title: str, span: Span | None, **more) -> DplError:
        return DplError.at(code, title, span, **more)
