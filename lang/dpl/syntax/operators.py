"""A chain of operands and operators -> a tree, by precedence.

    - x ** 2 + f y * z   ->   (-(x ** 2)) + ((f y) * z)

A user's operator has the precedence of its first character, as in OCaml.  The algorithm uses two stacks instead of
recursion, because chains may be long.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dpl.diagnostics import Diagnostic
from dpl.source import Source, Span
from dpl.syntax import literals, tree
from dpl.syntax.lexer import Token


class Level(NamedTuple):
    rank: int
    right: bool = False


PIPE, ASSIGN, OR, AND = Level(0), Level(1, True), Level(2, True), Level(3, True)
COMPARE, CONS, APPEND = Level(4), Level(5, True), Level(6, True)
ADD, MULTIPLY, UNARY, POWER = Level(7), Level(8), Level(9, True), Level(10, True)

_NAMED = {"|>": PIPE, ":=": ASSIGN, "||": OR, "&&": AND, "::": CONS, "++": APPEND}
_FIRST = {"+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY, "%": MULTIPLY, "@": MULTIPLY, "^": APPEND}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def level(operator: str) -> Level:
    """The precedence of an infix operator; `.+` binds like `+`."""
    if operator in _NAMED:
        return _NAMED[operator]
    shape = operator.lstrip(".") or operator
    return POWER if shape.startswith("**") else _FIRST.get(shape[0], COMPARE)


def resolve(source: Source, chain: list, problems: list[Diagnostic]) -> tree.Expr:
    """The tree of a chain of operands (nodes), infix operators and signs (tokens).

    A token where an operand is due is a sign.  Errors go to `problems`."""
    operands: list[tree.Expr] = []
    waiting: list[tuple[Token, Level]] = []  # operators with an incomplete right operand

    def apply_while(condition) -> None:
        while waiting and condition(waiting[-1][1]):
            token, rank = waiting.pop()
            right = operands.pop()
            if rank is UNARY:
                operands.append(_sign(source, token, right, problems))
            else:
                operands.append(_infix(source, token, operands.pop(), right))

    operand_due = True
    compared: Token | None = None  # the last comparison, to detect chains
    for item in chain:
        if not isinstance(item, Token):
            operands.append(item)
            operand_due = False
        elif operand_due:
            waiting.append((item, UNARY))
        else:
            mine = level(str(item.value))
            apply_while(lambda other, mine=mine: other > mine if mine.right else other.rank >= mine.rank)
            if mine.rank < COMPARE.rank:
                compared = None
            elif item.value in _COMPARISONS:
                if compared:
                    chained = _chained(source, compared, item, operands[-1])
                    problems += [chained] * (chained not in problems)
                compared = item
            waiting.append((item, mine))
            operand_due = True
    apply_while(lambda _: True)
    return operands[0]


def _sign(source: Source, token: Token, operand: tree.Expr, problems: list[Diagnostic]) -> tree.Expr:
    span = Span(source, token.start, operand.span.end)
    match token.value, operand:
        case "not", _:
            name = tree.Var(Span(source, token.start, token.end), "not")
            return tree.App(span, name, operand)
        case _, tree.Lit(_, int() | float() as value, suffix, text) if text[:1].isdigit():
            if isinstance(value, int) and literals.fits(value, suffix) and not literals.fits(-value, suffix):
                problems.append(literals.out_of_range(str(-value), suffix, span))
            return tree.Lit(span, -value, suffix, "-" + text)
        case _:
            return tree.Unary(span, "-", operand)


def _infix(source: Source, token: Token, left: tree.Expr, right: tree.Expr) -> tree.Expr:
    span = Span(source, left.span.start, right.span.end)
    match token.value:
        case "|>":
            return tree.Pipe(span, left, right)
        case ":=":
            return tree.Assign(span, left, right)
        case "&&" | "||":
            return tree.Logic(span, token.value, left, right)
        case "::":
            return tree.Cons(span, left, right)
        case operator:
            return tree.Binary(span, str(operator), left, right, Span(source, token.start, token.end))


def _chained(source: Source, first: Token, second: Token, between: tree.Expr) -> Diagnostic:
    if joined := re.search(r"\s(or|and)\s", between.span.text):
        at = Span(source, between.span.start + joined.start(1), between.span.start + joined.end(1))
        return Diagnostic("E0106", f"there is no operator `{joined[1]}`", at, helps=("or is written  a || b",))
    of_truths = second.value in ("=", "!=") and first.value not in ("=", "!=")  # `a > 0 = b`
    apart = f"put the first in parentheses:  (a {first.value} b) {second.value} c"
    return Diagnostic(
        "E0106",
        f"comparisons do not chain: `{second.value}` after `{first.value}`",
        Span(source, second.start, second.end),
        helps=(apart if of_truths else "compare twice:  a < b && b < c",),
    )
