"""A set of terminals -> a phrase for messages: "an expression", "`,` or `]`"."""

from __future__ import annotations

from dpl.syntax.lexer import Token

_NAMES = {
    "LOWER": "a name",
    "UPPER": "a capitalised name",
    "STRING": "a string",
    "INT": "a number",
    "TYVAR": "a type variable",
    "INTERP_MIDDLE": "`}`",
    "INTERP_CLOSE": "`}`",
    "$END": "the end",
}
_MOST = 4


def in_words(kinds: list[str], words: dict[str, str]) -> str:
    """The expected tokens in words.  It omits operators and arguments, which may follow almost anything."""
    have = set(kinds)
    written = {kind: word for word, kind in words.items()}
    if {"IF", "INT", "FUN"} <= have:
        return "an expression"
    if "EXPORT" in have and "IF" not in have and "INT" not in have:
        return "a declaration"
    if {"TYVAR", "LPAR"} <= have:
        return "a type"
    if {"UNDERSCORE", "INT", "LOWER"} <= have:
        return _either(["a pattern", *_symbols(have, written, ("=", "->", ":"))])
    symbols = _symbols(have, written, tuple(words))
    if "INT" in have and "INFIX" not in have:
        return "an expression"
    if "INT" in have:  # within an application
        return _either(symbols or ["an operator or an argument"])
    names = [_NAMES[kind] for kind in _NAMES if kind in have and (kind != "$END" or not symbols)]
    return _either(list(dict.fromkeys(names)) + symbols)


_ORDER = (")", "]", "}", "<", "in", "then", "with", "do", "->", "=", ",", ";", ":", "|", "and", "else")


def _symbols(have: set[str], written: dict[str, str], candidates: tuple[str, ...]) -> list[str]:
    """Keywords and symbols among `candidates`, the most likely first."""
    possible = [w for w in candidates if any(written.get(kind) == w for kind in have)]
    if "INFIX" in have:  # after an expression, these are operators
        possible = [w for w in possible if w not in ("=", "<")]
    known = sorted((w for w in possible if w in _ORDER), key=_ORDER.index)
    if len(known) > 1 and "|" in known:
        known.remove("|")
    return [f"`{word}`" for word in (known or possible)[:_MOST]]


def _either(words: list[str]) -> str:
    match words:
        case []:
            return "something else"
        case [word]:
            return word
        case _:
            return f"{', '.join(words[:-1])} or {words[-1]}"


def token_in_words(token: Token) -> str:
    """How messages name a token that stands in the text."""
    match token.kind:
        case "$END":
            return "the end of the file"
        case "STRING" | "INTERP" | "INTERP_OPEN":
            return "a string"
        case "INTERP_MIDDLE" | "INTERP_CLOSE":
            return "`}`"
        case "INT" | "FLOAT":
            return f"the number {token.value}"
        case "TYVAR":
            return f"`'{token.value}`"
        case _:
            return f"`{token.value}`"
