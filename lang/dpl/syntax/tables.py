"""grammar -> LALR tables.

Lark reads `grammar/dpl.lark` and constructs the tables.  They are cached in a plain form, so that a warm start neither
constructs anything nor imports Lark.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

from dpl import host, pickled, resources
from dpl.digest import blake2b
from dpl.node import node

NAME = "grammar"
_FORMAT = 1  # the version of the cached format


@node
class Rule:
    """A production of the grammar.

    `take` maps the values of its symbols to the arguments of its action: a position for each argument, or None for a
    missing optional part.  `splice` marks the arguments that are lists to be inlined.  `action` is a method of the
    builder; if it is empty, the value is the only argument, or the list of arguments for a rule that is inlined
    itself."""

    origin: str
    size: int
    action: str
    take: tuple[int | None, ...]
    splice: tuple[bool, ...]
    inlined: bool


@node
class Tables:
    """LALR tables.

    `states[s]` maps a terminal to the state to shift to (>= 0) or to ~r, where r is the rule to reduce by; it maps a
    nonterminal to the next state.  `words` maps a keyword or symbol to its terminal."""

    states: list[dict[str, int]]
    rules: list[Rule]
    starts: dict[str, int]
    ends: dict[str, int]
    words: dict[str, str]


STARTS = ("file", "expression", "type_alone")


@cache
def tables() -> Tables:
    """The tables of the language, from the cache or newly constructed."""
    text = source().read_text(encoding="utf-8")
    key = blake2b(f"{version()} {text}".encode(), digest_size=8).hexdigest()
    kept = host.current.cache
    path = kept.place(f"grammar-{key}.pickle")

    def find() -> Tables | None:
        data = kept.unpickled(path)
        return None if data is None else _thaw(data)

    def make() -> Tables:
        packed = host.current.shipped(NAME, [source()], *version()) or packed_tables()
        kept.write(path, packed)
        return _thaw(pickled.loads(packed))

    return kept.once(find, make)


def source() -> Path:
    """The path of the grammar."""
    return resources.grammar() / "dpl.lark"


def version() -> list[str]:
    """What the tables depend on besides the grammar."""
    return [f"{_FORMAT} {sys.version_info[:2]}"]


def packed_tables() -> bytes:
    """The tables as bytes, made by Lark from the grammar as it is now."""
    return pickled.dumps(_freeze(construct(source().read_text(encoding="utf-8"))))


def _freeze(made: Tables) -> tuple:
    rules = [(r.origin, r.size, r.action, r.take, r.splice, r.inlined) for r in made.rules]
    return made.states, rules, made.starts, made.ends, made.words


def _thaw(data: tuple) -> Tables:
    states, rules, starts, ends, words = data
    return Tables(states, [Rule(*r) for r in rules], starts, ends, words)


def construct(grammar: str) -> Tables:
    """Constructs the tables with Lark."""
    from lark import Lark
    from lark.lexer import Lexer, PatternStr
    from lark.parsers.lalr_analysis import Shift

    class NoLexer(Lexer):
        def __init__(self, conf: Any) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any):
            return iter(())

    parser: Any = Lark(grammar, parser="lalr", lexer=NoLexer, start=list(STARTS), maybe_placeholders=True)
    table = parser.parse_interactive("", start=STARTS[0]).parser_state.parse_conf.parse_table
    numbers: dict[Any, int] = {}
    rules: list[Rule] = []
    states: list[dict[str, int]] = [{} for _ in table.states]
    for state, actions in table.states.items():
        for symbol, (action, argument) in actions.items():
            if action is Shift:
                states[state][symbol] = argument
                continue
            if argument not in numbers:
                numbers[argument] = len(rules)
                rules.append(_rule(argument))
            states[state][symbol] = ~numbers[argument]
    words = {t.pattern.value: t.name for t in parser.terminals if isinstance(t.pattern, PatternStr)}
    return Tables(states, rules, dict(table.start_states), dict(table.end_states), words)


def _rule(rule: Any) -> Rule:
    name, options = rule.origin.name, rule.options
    bits = "".join("1" if empty else "0" for empty in options.empty_indices or ()) or "0" * len(rule.expansion)
    missing = [len(run) for run in bits.split("0")]
    take: list[int | None] = []
    splice: list[bool] = []
    for i, symbol in enumerate(rule.expansion):
        take += [None] * missing[i]
        splice += [False] * missing[i]
        if options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            take.append(i)
            splice.append(symbol.name.startswith("_") and not symbol.is_term)
    take += [None] * missing[-1]
    splice += [False] * missing[-1]
    inlined = name.startswith("_")
    alone = options.expand1 and len(take) == 1 and not rule.alias
    action = "" if inlined or alone else rule.alias or str(name)
    return Rule(str(name), len(rule.expansion), action, tuple(take), tuple(splice), inlined)
