"""The operations that all inference rules share: infer and check, unify, solve constraints, turn names into terms.

The rules for the forms of expressions register themselves in `RULES`; `infer` and `check` apply them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from dpl.core import term, ty
from dpl.node import node
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.messages import recursion
from dpl.types.messages.parts import Why
from dpl.types.solve import sizes
from dpl.types.solve.constraints import Constraint, Lift
from dpl.types.solve.meta import Effect, Meta, Type, dimensions, prune, prune_effect
from dpl.types.solve.scheme import NOTHING, Scheme, instantiate, mono, replace
from dpl.types.solve.unify import Clash
from dpl.types.state import checks
from dpl.types.state.env import Failed, Group, SizeName, Value
from dpl.types.state.scope import Ambient, Scope

RULES: dict[type, Callable] = {}


def rule(*kinds: type):
    """Registers a rule for these kinds of expressions: `(cx, e, expected) -> core term`.

    `expected` is a hint: the type that the context will require, or None."""

    def register(function: Callable) -> Callable:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


class Context(Scope):
    """The state of inference in one module, with the operations that all rules share."""

    replay: Follower | None = None

    @property
    def following(self) -> bool:
        return self.replay is not None

    # ---- levels and effects

    @contextmanager
    def deeper(self):
        """Enters the next level: unknowns made inside belong to it.

        Yields the index of the first new pending constraint."""
        self.solver.level += 1
        yield len(self.pending)
        self.solver.level -= 1

    @contextmanager
    def allowing(self, effect: Effect, reason: str, span: Span):
        """The effect that terms may have meanwhile, with the reason that messages tell."""
        outer, self.ambient = self.ambient, Ambient(effect, reason, span)
        yield
        self.ambient = outer

    def perform(self, effect: Effect, span: Span, what: str = "") -> None:
        """Records that an effect happens here: a call of `what`, or a `shift`."""
        if type(prune_effect(effect)) is ty.Ctl and self.defining:
            self.captures.setdefault(self.defining, (what, span))
        try:
            self.solver.perform(effect, self.ambient.effect)
        except Clash as clash:
            from dpl.types.messages import control  # as of all messages: only programs with errors need it

            raise control.effect(self, clash, span, what) from clash
        self.drain()

    # ---- expressions

    def infer(self, e: tree.Expr, expected: Type | None = None) -> term.Term:
        """An expression -> a term with its type.  `expected` is a hint: the type may come out another."""
        made = RULES[type(e)](self, e, expected)
        if self.notes is not None:
            self.note(e.span, made.ty)
        return made

    def note(self, span: Span, t: Type) -> None:
        """Records the type of a stretch of text for editors, except while a call is followed."""
        if self.notes is not None and not self.following:
            self.notes.expressions.append((span, t))

    def check(self, e: tree.Expr, expected: Type, why: Why | None = None) -> term.Term:
        """Infers `e` and coerces it to the type `expected`; assumed sizes are checked at run time."""
        return self.coerce(self.infer(e, expected), expected, why)

    def coerce(self, t: term.Term, expected: Type, why: Why | None = None) -> term.Term:
        """`t` where `expected` is wanted, with run-time checks of assumed sizes.

        Raises DplError if the types do not unify.  If `expected` is a type variable, only sizes that are known at
        compile time are checked."""
        if t.ty is expected:
            return t
        self.solver.assumed.clear()
        self.solver.claimed.clear()
        self.unify(t.ty, expected, t.span, why)
        return self.confirm(t, expected) if self.solver.assumed else t

    def confirm(self, t: term.Term, expected: Type, actual: Type | None = None) -> term.Term:
        """`t`, with run-time checks of its sizes against `expected`, as far as both can be computed.

        `actual` is its type, if that is not `t.ty`."""
        self.solver.assumed.clear()
        return checks.confirm(self, t, expected, actual or t.ty)

    def unify(self, actual: Type, expected: Type, span: Span, why: Why | None = None) -> None:
        """Makes two types equal; a clash is an error at the span, explained by `why`."""
        self.solver.at(span)
        try:
            self.solver.unify(actual, expected)
        except Clash as clash:
            from dpl.types.messages import errors

            error = errors.mismatch(self, clash, actual, expected, span, why)
            raise recursion.with_helps(self, error, clash, recursion.guessed(self), actual, expected) from clash
        self.drain()

    def require(self, t: Type, cls: str, span: Span) -> None:
        """Requires a type to be in a class; if it is not, that is an error at the span."""
        self.solver.at(span)
        try:
            self.solver.require(t, cls)
        except Clash as clash:
            from dpl.types.messages import errors

            raise errors.mismatch(self, clash, t, t, span, None) from clash
        self.drain()

    def drain(self) -> None:
        if self.solver.queue:
            self.solver.drain(self.attempt)

    # ---- constraints

    def constrain(self, constraint: Constraint) -> None:
        """Solves a constraint now, or keeps it until more is known."""
        self.attempt(constraint)
        if not constraint.done:
            self.pending.append(constraint)
        self.drain()

    def attempt(self, constraint: Constraint, step: Callable | None = None) -> None:
        """Tries to solve a constraint.  A clash is an error at its span."""
        self.solver.at(constraint.span)
        try:
            done = constraint.solve(self.solver, self.constrain) if step is None else step(self.solver, self.constrain)
        except Clash as clash:
            from dpl.types.messages import relations

            raise relations.relation(self, clash, constraint) from clash
        if done or step is not None:
            constraint.done = True
            return
        for t in constraint.types:
            inner = dimensions(t)[1]
            if type(inner) is Meta and constraint not in inner.watchers:
                inner.watchers.append(constraint)

    def decide(self, constraint: Constraint) -> None:
        """Decides a constraint about which nothing more will be learnt."""
        self.attempt(constraint)
        if not constraint.done:
            self.attempt(constraint, constraint.default)
        self.drain()

    # ---- names as terms

    def instance(
        self, scheme: Scheme, span: Span, sizes: Mapping[str, ty.Size] = NOTHING, operands: tuple[Span, ...] = ()
    ) -> tuple[Type, tuple]:
        """The type of a scheme at one use, with new unknowns, and what they stand for."""
        self.solver.at(span)
        mark = len(self.pending)
        made = instantiate(self.solver, scheme, self.constrain, span, sizes, operands)
        for param, t in zip(scheme.params, made[1], strict=False) if scheme.large else ():
            for value in scheme.large.get(param.name, ()):
                self.holders.append((value, t, span))
                self.large.append((value, t))
        self.held = [c for c in self.pending[mark:] if isinstance(c, Lift) and c.held]
        return made

    def hold(self, schemes: Sequence[Scheme]) -> None:
        """Notes in schemes the large literals whose types they generalise."""
        found = [(value, prune(t)) for value, t in self.large]
        for scheme in schemes:
            for value, t in found:
                if type(t) is ty.Var:
                    scheme.large.setdefault(t.name, []).append(value)
        self.large = [(value, t) for value, t in found if type(t) is Meta]

    def release(self, held: list[Lift], result: Type) -> None:
        """Releases held constraints once a function has all its arguments.

        Nothing more will be known of its operands."""
        if type(prune(result)) is not ty.Fn:
            for c in held:
                c.held = False
                if not c.done:
                    self.attempt(c)
            self.drain()

    def use(self, name: str, span: Span, known: Mapping[str, ty.Size] = NOTHING, call: Span | None = None) -> term.Term:
        """A name that is not a primitive, as a term; `call` is where it is applied."""
        match self.lookup(name, span):
            case Value(core, scheme, group=None):
                t, inst = self.instance(scheme, call or span, known)
                self.note(span, t)
                known_sizes: Any = ((dict(self.evidence), self.unlearned),) if inst else ()  # completed later
                return term.Var(span, t, core, inst, known_sizes)
            case Value(core, scheme, group=Group() as group):
                named = [n for size in group.sizes.values() for n in sizes.names(size) if n[0] not in "!?"]
                fresh = {n: self.solver.size() for n in dict.fromkeys(named)}
                fresh |= {n: self.solver.unknown_size() for n in group.unknowns}
                t = replace(scheme.ty, fresh, {}) if fresh else scheme.ty
                group.uses.setdefault(core, call or span)
                inst: Any = (group,)  # its parameters, once they are known
                return term.Var(span, t, core, inst)
            case SizeName(found):
                return checks.size_term(self, found, span, name)
            case Failed():
                self.lost = True
                return term.Var(span, self.solver.fresh(), "failed")
            case _:
                raise AssertionError(name)

    def local(self, name: str, t: Type, span: Span) -> str:
        """Binds a monomorphic local name; returns its name in core."""
        core = self.unique(name)
        if name != "_":
            self.bind(name, Value(core, mono(t), span))
        return core


@node
class Arg:
    """An argument, as an expression or already as a term, and the span of the application up to it."""

    value: tree.Expr | term.Term
    span: Span

    def check(self, cx: Context, expected: Type, why: Why) -> term.Term:
        return (
            cx.coerce(self.value, expected, why)
            if isinstance(self.value, term.Node)
            else cx.check(self.value, expected, why)
        )


class Follower(Protocol):
    """Follows calls into the functions that are called (implemented by `replay.py`)."""

    def follow(
        self, cx: Context, entry: Value, name: str, args: list[Arg], expected: Type | None, head: Span
    ) -> list[Arg]:
        """Checks the called function at these arguments and raises the error found there.

        Returns the arguments; those that need not wait for a parameter's type are inferred."""
        ...
