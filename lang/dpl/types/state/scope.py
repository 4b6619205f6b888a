"""The state of checking one module: names in scope, levels, equations, and what is known of sizes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dpl.core import term, ty
from dpl.diagnostics import Diagnostic, DplError, Warnings
from dpl.node import node
from dpl.source import NOWHERE, Span
from dpl.syntax import tree
from dpl.types.messages import errors
from dpl.types.solve.constraints import Constraint, Lift
from dpl.types.solve.meta import PURE, Effect, Meta, Type, prune
from dpl.types.solve.scheme import NOTHING
from dpl.types.solve.unify import Solver
from dpl.types.state.env import CONSTRUCTORS, TYPES, Constructor, Entry, Exports, Failed, TypeName, Value
from dpl.types.state.notes import Notes
from dpl.types.state.unbound import unbound


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
    home: Scope
    horizon: int
    locals: Mapping[str, list[Entry]] = NOTHING
    frames: tuple[Frame, ...] = ()

    @property
    def function(self) -> tuple[tuple, tree.Expr]:
        """Its parameters and its body."""
        b = self.binding
        return (b.body.params, b.body.body) if not b.params and isinstance(b.body, tree.Fun) else (b.params, b.body)


class Scope(ABC):
    """What stands for what at a place of the module that is being checked."""

    @property
    @abstractmethod
    def following(self) -> bool:
        """Whether a call is being followed into the function: what is found out then holds for that call only."""

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
        self.homes: Callable[[str], Scope | None] = lambda name: None  # the contexts of other modules
        self.clock = 0  # how many values were declared
        self.horizon: int | None = None
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
        if self.notes is not None and isinstance(entry, Value) and not self.following:
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
        if self.following:
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
