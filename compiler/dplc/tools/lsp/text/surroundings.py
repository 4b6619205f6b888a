"""What stands around a cursor, from the tokens before it: the record that is being written, the `match` of an arm."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dpl.node import node
from dpl.syntax.lexer import Token

OPEN = frozenset(("LPAR", "LSQB", "LBRACE", "BEGIN", "INTERP_OPEN"))
CLOSE = frozenset(("RPAR", "RSQB", "RBRACE", "END", "INTERP_CLOSE"))
BEFORE_FIELDS = ("LBRACE", "SEMICOLON", "WITH")


@node
class Record:
    """A record, its pattern or its update, where the next field may follow: the fields that it has, and where the
    expression before `with` begins and ends."""

    given: tuple[str, ...]
    updated: tuple[int, int] | None


def innermost(tokens: Sequence[Token]) -> list[Token]:
    """The tokens from the innermost open bracket on; of brackets that are closed, only the last token."""
    found: list[Token] = []
    depth = 0
    for token in reversed(tokens):
        depth -= token.kind in OPEN
        if depth <= 0 and token.kind not in OPEN:
            found.append(token)
        if depth < 0:
            found.append(token)
            break
        depth += token.kind in CLOSE
    found.reverse()
    return found


def record_at(tokens: Sequence[Token]) -> Record | None:
    """The record whose braces are open at the cursor, if a field's name may stand there."""
    inside = innermost(tokens)
    if not inside or inside[0].kind != "LBRACE" or inside[-1].kind not in BEFORE_FIELDS:
        return None
    at = next((i for i, token in enumerate(inside) if token.kind == "WITH"), 0)
    begun = [token for before, token in pairwise(inside[at:]) if before.kind in BEFORE_FIELDS]
    given = tuple(str(token.value) for token in begun if token.kind in ("LOWER", "QLOWER"))
    return Record(given, (inside[0].end, inside[at - 1].end) if at else None)


def matched_at(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Where an arm of a `match` may begin: the start and the end of what is matched."""
    inside = innermost(tokens)
    if not inside or inside[-1].kind not in ("WITH", "VBAR"):
        return None
    for i in range(len(inside) - 1, 0, -1):
        if inside[i].kind == "WITH":
            end = inside[i - 1].end
            start = next((token.end for token in reversed(inside[:i]) if token.kind == "MATCH"), None)
            return None if start is None else (start, end)
    return None
