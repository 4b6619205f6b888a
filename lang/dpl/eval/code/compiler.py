"""Operands: the code of a term's parts runs from left to right, then their values are combined.

The other files of this folder compile the forms of terms; `terms.py` defines the abstract method `compile`.
"""
# ruff: noqa: RUF005 (environments grow by concatenation: it is the fastest way)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from dpl.core import term as c
from dpl.core.shapes import Needs
from dpl.diagnostics import Bug, DplError
from dpl.eval.code.code import Code, Direct, Run, Scope, at_once
from dpl.eval.code.mentioned import Mentioned
from dpl.eval.code.sites import site
from dpl.eval.machine.failure import located
from dpl.eval.machine.machine import Machine
from dpl.eval.machine.primitives import Surroundings
from dpl.eval.values.value import Value
from dpl.source import Span

Done = Callable[[tuple, tuple, tuple], tuple]  # environment, values of the operands, continuation -> state


class Compiler(ABC):
    """Compiles operands and combines their values; every form of term uses it.

    Each run has one.  `lookup(name, types, sizes)` returns the value of a global at closed types; `needs(name)` returns
    which sizes the global needs."""

    def __init__(
        self, machine: Machine, lookup: Callable, needs: Callable[[str], Needs], surroundings: Surroundings
    ) -> None:
        self.machine = machine
        self.lookup = lookup
        self.needs = needs
        self.surroundings = surroundings
        self.mentioned = Mentioned()
        self.tails: dict[int, c.Term] = {}  # calls in tail position, by identity

    def forget(self) -> None:
        """Clear what is kept of terms."""
        self.mentioned = Mentioned()
        self.tails = {}

    @abstractmethod
    def compile(self, term: c.Term, scope: Scope) -> Code:
        """The code of any term."""

    def top(self, term: c.Term, scope: Scope) -> Code:
        """The code of a term that nothing in its function, or definition, waits for."""
        self.ends_with(term)
        return self.compile(term, scope)

    def make(self, terms: Sequence[c.Term], scope: Scope, combine: Callable, span: Span | None = None) -> Code:
        """Code that applies `combine` to the values of `terms`.  Its errors are located at `span`."""
        return self.combine([self.compile(term, scope) for term in terms], terms, combine, span)

    def combine(self, codes: Sequence[Code], terms: Sequence[c.Term], combine: Callable, span: Span | None) -> Code:
        if all(code.direct for code in codes):
            return at_once(_direct([code.direct for code in codes if code.direct], combine, span))

        def done(env: tuple, values: tuple, k: tuple) -> tuple:
            try:
                return k[0], combine(*values), k
            except DplError as error:
                raise located(error, span) if span else error from None

        return Code(self.gather(codes, terms, done))

    def gather(self, codes: Sequence[Code], terms: Sequence[c.Term], done: Done, call: c.App | None = None) -> Run:
        """Evaluate operands, of a `call` if they are, from left to right, then call `done` with their values.  For an
        operand that is not direct, a frame keeps the environment and the values so far."""
        stage = self._stage(codes, terms, 0, done, call)
        return lambda env, k: stage(env, (), k)

    def _stage(
        self, codes: Sequence[Code], terms: Sequence[c.Term], start: int, done: Done, call: c.App | None
    ) -> Done:
        stop = next((i for i in range(start, len(codes)) if not codes[i].direct), len(codes))
        first = [code.direct for code in codes[start:stop] if code.direct]
        if stop == len(codes):
            if not first:
                return done
            return lambda env, values, k: done(env, values + tuple([f(env) for f in first]), k)
        run, rest = codes[stop].run, self._stage(codes, terms, stop + 1, done, call)

        def resume(value: Value, frame: tuple) -> tuple:
            env, values = frame[1]
            return rest(env, values + (value,), frame[2])

        self.note(resume, terms[stop])
        if call:
            self.machine.gathered[resume] = site(call)
        return lambda env, values, k: run(env, (resume, (env, values + tuple([f(env) for f in first])), k))

    def note(self, resume: Callable, term: c.Term) -> None:
        """Record that frames with this resumption wait for `term`.  If it is a call, error paths will show it."""
        if isinstance(term, c.App):
            self.machine.sites[resume] = site(term)

    def ends_with(self, body: c.Term) -> None:
        """Note the calls in tail position of a function's body."""
        todo = [body]
        while todo:
            match todo.pop():
                case c.App() as call:
                    self.tails[id(call)] = call
                case c.Let(body=inner) | c.LetRec(body=inner):
                    todo.append(inner)
                case c.If(then=then, else_=else_):
                    todo += (then, else_)
                case c.Match(arms=arms):
                    todo += [arm.body for arm in arms]
                case _:
                    pass

    def is_tail(self, call: c.App) -> bool:
        return id(call) in self.tails

    def size(self, term: c.Term, scope: Scope) -> Direct:
        """The code of a size.  Sizes consist of dimensions and constants, so they are direct; otherwise a Bug."""
        direct = self.compile(term, scope).direct
        if direct is None:
            raise Bug(f"a size with a call in it at {term.span}")
        return direct


def _direct(operands: list[Direct], combine: Callable, span: Span | None) -> Direct:
    """Apply `combine` to direct operands; the common arities have lambdas of their own, for speed."""
    match operands:
        case []:
            plain = lambda env: combine()  # noqa: E731
        case [a]:
            plain = lambda env: combine(a(env))  # noqa: E731
        case [a, b]:
            plain = lambda env: combine(a(env), b(env))  # noqa: E731
        case [a, b, d]:
            plain = lambda env: combine(a(env), b(env), d(env))  # noqa: E731
        case _:
            plain = lambda env: combine(*[f(env) for f in operands])  # noqa: E731
    if span is None:
        return plain

    def guarded(env: tuple) -> Value:
        try:
            return plain(env)
        except DplError as error:
            raise located(error, span) from None

    return guarded
