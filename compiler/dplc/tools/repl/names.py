"""What a session knows about names: their documentation, and the completions of a text."""

from __future__ import annotations

from collections.abc import Iterator

from dpl.source import Source
from dpl.syntax.lexer import Lexer
from dpl.syntax.tables import tables
from dpl.types.messages.pretty import show_scheme
from dpl.types.state.env import Entry, Primitive, Value

from dplc.tools.repl.session import Session
from dplc.tools.search import heading, known_in, named


def about(session: Session, name: str) -> str | None:
    """The type and the documentation of a name, or what a module offers.  If nothing in scope has the name: what has it
    in modules, or what DPL has for a name of another system.  None if there is nothing."""
    if name in session.types.cx.modules:
        return "\n".join(
            title(f"{name}.{last}", entry)
            for last, entry in sorted(session.names(name).items())
            if isinstance(entry, Value | Primitive) and not last.startswith("_")
        )
    entry = session.entry(name)
    if isinstance(entry, Value | Primitive):
        doc = entry.row.doc if isinstance(entry, Primitive) else entry.doc
        return told(title(name, entry), doc)
    found = named(name, known_in(session.types.cx.modules)) if name else []
    return "\n".join(told(one.heading, one.doc) for one in found) or None


def told(title: str, doc: str | None) -> str:
    return f"{title}\n{doc}" if doc else title


def title(name: str, entry: Value | Primitive) -> str:
    return heading(name, entry.scheme, entry.parameters if isinstance(entry, Value) else ())


def type_of(entry: Entry | str) -> str:
    return show_scheme(entry.scheme) if isinstance(entry, Value | Primitive) else str(entry)


BINDERS = frozenset(("let", "rec", "and", "fun", "for", "loop", "|"))
ENDS = frozenset(("=", "->", "<", ":", "in"))


def completions(session: Session, word: str, text: str = "") -> Iterator[tuple[str, str]]:
    """What can take the place of the last part of a word, with types: names in scope, names of a module after
    `Module.`, fields after `value.`.  What the unfinished text before the word binds comes without types."""
    owner, dot, start = word.rpartition(".")
    local = {} if dot else dict.fromkeys(bound(text), "")
    for name, entry in sorted({**local, **session.names(owner if dot else None)}.items()):
        if name.startswith(start) and name != start:
            yield name, type_of(entry)


def bound(text: str) -> set[str]:
    """The names that a text binds, which need not be complete.  A type in parentheses ends with these."""
    found: set[str] = set()
    binds = typed = False
    for token in Lexer(Source("", text), tables()).read().tokens:
        if token.kind == "LOWER":
            if binds:
                found.add(text[token.start : token.end])
            continue
        binds = token.value in BINDERS or (typed and token.value == ")") or (binds and token.value not in ENDS)
        typed = token.value == ":" or (typed and token.value not in (")", "="))
    return found
