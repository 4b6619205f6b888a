"""text -> tree.

    let f x = x + 1   ->   DeclLet(Binding(PatVar f, (PatVar x,), None, Binary(+, Var x, Lit 1)))

The tokens are run through the tables of `tables.py` with a stack of states and one of values.  A declaration that
cannot be read is reported and skipped, so that one run tells of several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dpl.diagnostics import Diagnostic, DplError
from dpl.node import replace
from dpl.source import Source, Span
from dpl.syntax import mistakes, tree
from dpl.syntax.brackets import Declarations, begins_declaration, too_deep, unbalanced
from dpl.syntax.build import Builder
from dpl.syntax.docs import attach_docs
from dpl.syntax.foreign import foreign_operators
from dpl.syntax.lexer import Lexer, Token
from dpl.syntax.tables import Tables, tables

_MOST_ERRORS = 20


def parse(source: Source) -> tree.File:
    """The tree of a file; raises DplError with everything that is wrong with its syntax."""
    lexer, file = _read(source, "file")
    assert isinstance(file, tree.File)
    return attach_docs(replace(file, comments=tuple(lexer.comments)))


def parse_expr(source: Source) -> tree.Expr:
    """The tree of a text that is one expression."""
    return _read(source, "expression")[1]


def parse_type(text: str, name: str = "<type>") -> tree.Type:
    """The tree of a text that is one type."""
    return _read(Source(name, text), "type_alone")[1]


def _read(source: Source, start: str) -> tuple[Lexer, Any]:
    lexer = Lexer(source, tables()).read()
    parser = Parser(tables(), Builder(source), start)
    result, found = _run(parser, lexer.tokens)
    if lexer.problems or found:
        brackets = unbalanced(source, lexer.tokens) if not lexer.problems else []
        raise DplError(*_independent(Declarations(source, lexer.tokens), lexer.problems, brackets, found))
    if deep := too_deep(source, lexer.tokens):
        raise DplError(*deep)
    builder = parser.builder
    if problems := [*builder.problems, *builder.extremes.values(), *foreign_operators(source, lexer.tokens)]:
        raise DplError(*sorted(problems, key=_place)[:_MOST_ERRORS])
    return lexer, result


def _run(parser: Parser, tokens: list[Token]) -> tuple[Any, list[Diagnostic]]:
    """Parse; after an error go on at the next declaration."""
    problems: list[Diagnostic] = []
    at = 0
    while True:
        failed = parser.feed(tokens, at)
        if failed is None:
            return parser.values[-1], problems
        problems.append(mistakes.explain(parser, tokens, failed))
        at = failed + (failed == at)
        while at < len(tokens) and not begins_declaration(parser.builder.source, tokens[at]):
            at += 1
        if at >= len(tokens) or parser.start != "file":
            return None, problems
        parser.restart()


def _independent(declarations: Declarations, *kinds: list[Diagnostic]) -> list[Diagnostic]:
    """One problem for each declaration: others there are most likely its consequences.  The first kinds count most."""
    first: dict[int, Diagnostic] = {}
    for problems in kinds:
        for problem in problems:
            first.setdefault(declarations.number(problem), problem)
    return sorted(first.values(), key=_place)[:_MOST_ERRORS]


def _place(problem: Diagnostic) -> int:
    return problem.span.start if problem.span else 0


class Parser:
    """The automaton.  Beside each value stand the offsets where it starts and ends."""

    def __init__(self, tables: Tables, builder: Builder, start: str) -> None:
        self.tables = tables
        self.builder = builder
        self.start = start
        self.actions: list[Callable | None] = [getattr(builder, r.action) if r.action else None for r in tables.rules]
        self.restart()

    def restart(self) -> None:
        self.states = [self.tables.starts[self.start]]
        self.values: list = []
        self.spans: list[tuple[int, int]] = []

    def feed(self, tokens: list[Token], at: int) -> int | None:
        """Read tokens from `at` on; the number of the one that fits nowhere, or None at the end."""
        table, end = self.tables.states, self.tables.ends[self.start]
        states, values, spans = self.states, self.values, self.spans
        for number in range(at, len(tokens)):
            token = tokens[number]
            kind = token.kind
            while True:
                action = table[states[-1]].get(kind)
                if action is None:
                    return number
                if action >= 0:
                    break
                self.reduce(~action, token.start)
                if kind == "$END" and states[-1] == end:
                    return None
            states.append(action)
            values.append(token)
            spans.append((token.start, token.end))
        return None

    def reduce(self, number: int, here: int) -> None:
        rule = self.tables.rules[number]
        states, values, spans = self.states, self.values, self.spans
        if size := rule.size:
            parts = values[-size:]
            first, last = spans[-size][0], spans[-1][1]
            del states[-size:], values[-size:], spans[-size:]
        else:
            parts, first, last = [], here, here
        action = self.actions[number]
        if rule.inlined:
            value = _gather(rule.take, rule.splice, parts)
        elif action is None:
            only = rule.take[0]
            value = None if only is None else parts[only]
        else:
            arguments = _gather(rule.take, rule.splice, parts)
            value = action(Span(self.builder.source, first, last), *arguments)
        states.append(self.tables.states[states[-1]][rule.origin])
        values.append(value)
        spans.append((first, last))

    def acceptable(self) -> list[str]:
        """The terminals that may come next."""
        return [kind for kind in self.tables.states[self.states[-1]] if kind.isupper() and self.accepts(kind)]

    def accepts(self, kind: str) -> bool:
        """Would a token of this kind be shifted now?"""
        states = self.states[:]
        while True:
            action = self.tables.states[states[-1]].get(kind)
            if action is None:
                return False
            if action >= 0:
                return True
            rule = self.tables.rules[~action]
            if rule.size:
                del states[-rule.size :]
            states.append(self.tables.states[states[-1]][rule.origin])
            if kind == "$END" and states[-1] == self.tables.ends[self.start]:
                return True


def _gather(take: Iterable[int | None], splice: Iterable[bool], parts: list) -> list:
    """The arguments of an action, inlined lists opened.  A list in front is extended in place: it has no other user."""
    out: list = []
    for position, is_list in zip(take, splice):
        if position is None:
            out.append(None)
        elif not is_list:
            out.append(parts[position])
        elif out:
            out += parts[position]
        else:
            out = parts[position]
    return out
