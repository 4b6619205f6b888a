"""The parser: text -> tree.

    let f x = x + 1   ->   DeclLet(Binding(PatVar f, (PatVar x,), None, Binary(+, Var x, Lit 1)))

The automaton of `automaton.py` reads the tokens.  A declaration with a syntax error is reported and skipped, so that
one run reports several errors.
"""

from __future__ import annotations

from typing import Any

from dpl.diagnostics import Diagnostic, DplError
from dpl.node import replace
from dpl.source import Source, Span
from dpl.syntax import pages, tree
from dpl.syntax.automaton import Parser
from dpl.syntax.build import Builder
from dpl.syntax.docs import attach_docs
from dpl.syntax.errors.brackets import Declarations, begins_declaration, too_deep, unbalanced
from dpl.syntax.foreign import foreign_operators
from dpl.syntax.lexer import Lexer, Token
from dpl.syntax.tables import tables

_MOST_ERRORS = 20


def parse(source: Source) -> tree.File:
    """The tree of a file, or of the program in a page.  Raises DplError with the syntax errors."""
    return _page(source) if pages.is_page(source) else _file(source)


def _file(source: Source, text: str | None = None) -> tree.File:
    lexer, file = _read(source, "file", text)
    assert isinstance(file, tree.File)
    return attach_docs(replace(file, comments=tuple(lexer.comments)))


def _page(source: Source) -> tree.File:
    parts: list[tree.File] = []
    problems = list(pages.misspelt(source))
    for block in pages.blocks(source.text):
        if block.runs:
            try:
                part = parse_block(source, block)
                parts.append(part if isinstance(part, tree.File) else printed(part))
            except DplError as failure:
                problems += failure.diagnostics
    if problems:
        raise DplError(*problems[:_MOST_ERRORS])
    decls = tuple(decl for part in parts for decl in part.decls)
    comments = tuple(comment for part in parts for comment in part.comments)
    return tree.File(Span(source, 0, len(source.text)), decls, comments)


def parse_block(source: Source, block: pages.Block) -> tree.File | tree.Expr:
    """The declarations in a block of a page, or the expression that it is.  Raises DplError with the syntax errors."""
    text = block.alone(source.text)
    return _file(source, text) if block.declares(source.text) else _read(source, "expression", text)[1]


def printed(expr: tree.Expr) -> tree.File:
    """The declaration `do print (expr)`."""
    at = expr.span
    return tree.File(at, (tree.DeclDo(at, tree.App(at, tree.Var(at, "print"), expr)),), ())


def parse_expr(source: Source) -> tree.Expr:
    """The tree of a text that is one expression.  Raises DplError with the syntax errors."""
    return _read(source, "expression")[1]


def parse_input(source: Source) -> tree.File | tree.Expr:
    """The declarations of a text, or the expression that it is.  Raises DplError with the syntax errors."""
    try:
        return parse(source)
    except DplError as as_file:
        try:
            return parse_expr(source)
        except DplError as as_expr:
            words = source.text.split(maxsplit=1)
            raise (as_file if words and words[0] in pages.DECLARES else as_expr) from None


def parse_type(text: str) -> tree.Type:
    """The tree of a text that is one type.  Raises DplError with the syntax errors."""
    return _read(Source("<type>", text), "type_alone")[1]


def _read(source: Source, start: str, text: str | None = None) -> tuple[Lexer, Any]:
    lexer = Lexer(source, tables(), text).read()
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
    """Parses the tokens; after an error, parsing resumes at the next declaration.

    Where a keyword was taken for a name, other errors at its uses are consequences."""
    problems: list[Diagnostic] = []
    names: set[str] = set()
    at = 0
    while True:
        failed = parser.feed(tokens, at)
        if failed is None:
            return parser.values[-1], problems
        from dpl.syntax.errors import mistakes

        problem = mistakes.explain(parser, tokens, failed)
        if problem.code == "E0109":
            names.add(str(tokens[failed].value))
        elif any(token.value in names for token in tokens[at : failed + 1]):
            problem = None
        problems += [problem] if problem else []
        at = failed + (failed == at)
        while at < len(tokens) and not begins_declaration(parser.builder.source, tokens[at]):
            at += 1
        if at >= len(tokens) or parser.start != "file":
            return None, problems
        parser.restart()


def _independent(declarations: Declarations, *kinds: list[Diagnostic]) -> list[Diagnostic]:
    """One problem per declaration, since others there are probably consequences.  Earlier `kinds` take precedence."""
    first: dict[int, Diagnostic] = {}
    for problems in kinds:
        for problem in problems:
            first.setdefault(declarations.number(problem), problem)
    return sorted(first.values(), key=_place)[:_MOST_ERRORS]


def _place(problem: Diagnostic) -> int:
    return problem.span.start if problem.span else 0
