"""The LR automaton.  It runs tokens through the tables of `tables.py`, with a stack of states and one of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dpl.source import Span
from dpl.syntax.build import Builder
from dpl.syntax.lexer import Token
from dpl.syntax.tables import Tables


class Parser:
    """The state of one parse; `spans` holds the start and end offsets of each value on the stack."""

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
        """Reads tokens from index `at` on.  Returns the index of the first that does not fit, or None at the end."""
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
        """True if a token of this kind could be shifted now."""
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
    """The arguments of an action, with inlined lists spliced in.

    A leading list has no other user, so it is extended in place."""
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
