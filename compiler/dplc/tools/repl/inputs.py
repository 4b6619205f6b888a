"""Input text -> declarations, and the test whether an input is complete.

let x = 1 +       is not complete
f 2               the declaration  let it = f 2
"""

from __future__ import annotations

from dpl.source import Source
from dpl.syntax import tree
from dpl.syntax.automaton import Parser
from dpl.syntax.build import Builder
from dpl.syntax.lexer import Lexer
from dpl.syntax.parse import parse_input
from dpl.syntax.tables import tables
from dpl.types.declarations import bound_names

IT = "it"  # the value of the last expression
UNCLOSED = "this comment is never closed"


def complete(text: str) -> bool:
    """True if this can be parsed, or if no continuation could make it correct."""
    lexer = Lexer(Source("", text), tables()).read()
    if any(problem.title == UNCLOSED for problem in lexer.problems):
        return False
    source, tokens = lexer.source, lexer.tokens
    if "-- |" in text and all(token.kind == "$END" for token in tokens):
        return False  # documents the declaration that follows
    failed = [Parser(tables(), Builder(source), start).feed(tokens, 0) for start in ("file", "expression")]
    return any(at is None for at in failed) or all(tokens[at].kind != "$END" for at in failed if at is not None)


def ready(text: str) -> bool:
    """True if this is a whole input: a command of the session, or complete."""
    return text.lstrip().startswith(":") or complete(text)


def declarations(source: Source) -> tuple[tree.File, bool]:
    """(declarations, False), or for an expression (its declaration as `it`, True).  Raises DplError."""
    found = parse_input(source)
    return (found, False) if isinstance(found, tree.File) else (as_it(found), True)


def as_it(expr: tree.Expr) -> tree.File:
    """The declaration `let it = expr`."""
    binding = tree.Binding(expr.span, tree.PatVar(expr.span, IT), (), None, expr)
    return tree.File(expr.span, (tree.DeclLet(expr.span, False, (binding,)),), ())


def declared(file: tree.File) -> list[str]:
    """The names of the values that declarations bind, in order."""
    names: list[str] = []
    for decl in file.decls:
        if isinstance(decl, tree.DeclLet):
            names += [name for binding in decl.bindings for name in bound_names(binding.pattern)]
        elif isinstance(decl, tree.DeclExtern):
            names.append(decl.name)
    return names
