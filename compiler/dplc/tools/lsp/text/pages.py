"""A text -> pages: parts of it, most with one declaration, that are parsed once.

When the text changes, pages whose own text is unchanged are kept with their trees and results, even if they move.  So
that their spans remain valid, a book gives each new page its own range of offsets, after those of all earlier pages.
The page itself knows its current place in the text.  A removed page keeps its range of offsets, because spans may still
refer to it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

from dpl.diagnostics import Diagnostic
from dpl.node import replace
from dpl.source import Source, Span
from dpl.syntax import tree
from dpl.syntax.automaton import Parser
from dpl.syntax.build import Builder
from dpl.syntax.docs import attach_docs
from dpl.syntax.errors import mistakes
from dpl.syntax.errors.brackets import unbalanced
from dpl.syntax.foreign import OPERATORS, foreign_operators
from dpl.syntax.lexer import Lexer, Token
from dpl.syntax.tables import tables

from dplc.tools.lsp.text.names import Names
from dplc.tools.lsp.text.unfinished import completed

BOUNDARY = re.compile(r"^(?:[ \t]*--[^\n]*\n)*(?:let|type|do|export|expect|import|open|extern)\b(?!')", re.MULTILINE)
JOINED = 20  # the most pieces of text that are tried as one declaration
GARBAGE, SLACK = 8, 20_000  # a book starts again when its pages exceed GARBAGE times the text plus SLACK


class Page:
    """A part of the text with its tokens and trees.

    base            the first of its offsets
    start, line     its current place in the text
    broken          true if it cannot be parsed; `decls` then has the declarations as far as they go
    problems        its other syntax errors"""

    def __init__(self, book: Book, text: str, base: int) -> None:
        self.book, self.text, self.base = book, text, base
        self.start = self.line = 0
        lexer = Lexer(book, tables())
        lexer.at = base
        lexer.read()
        self.tokens, self.comments, self.lexical = lexer.tokens, lexer.comments, lexer.problems
        builder = Builder(book)
        parser = Parser(tables(), builder, "file")
        self.failed = parser.feed(self.tokens, 0)  # the number of the token that does not fit
        self.broken = self.failed is not None or bool(self.lexical)
        self.problems: list[Diagnostic] = []
        if not self.broken:
            made = parser.values[-1]
            self.decls = attach_docs(tree.File(made.span, made.decls, tuple(self.comments))).decls
            self.problems = sorted([*builder.problems, *builder.extremes.values()], key=start_of)
        else:
            stop = len(self.tokens) - 1 if self.failed is None else self.failed
            made = completed(book, self.tokens[:stop], self.comments, self.tokens[stop].start)
            self.decls = made.decls if made else ()
        self.has_foreign = any(t.value in OPERATORS for t in self.tokens)
        self.foreign: list[Diagnostic] = []  # operators of other languages, unless the text defines them
        self.told: tuple[Page | None, list[Diagnostic]] | None = None
        self.pieces = 1  # the number of pieces of text that it consists of
        self.live = True  # it is in the text
        self.names: list[Names] | None = None  # of its declarations, computed on demand

    def leave(self) -> None:
        """Remove the page from the text and drop its data; only its range of offsets remains."""
        self.live = False
        self.tokens, self.comments, self.decls, self.names = [], [], (), None
        self.lexical, self.problems, self.foreign, self.told = [], [], [], None

    @property
    def is_right(self) -> bool:
        """True if it has no syntax errors."""
        return not (self.broken or self.problems or self.foreign)

    @property
    def ends_early(self) -> bool:
        """True if more text could complete it."""
        return self.failed is not None and self.tokens[self.failed].kind == "$END"

    def now(self, offset: int) -> int:
        """The current place in the text of an offset of this page."""
        return self.start + offset - self.base

    def diagnostics(self, following: Page | None) -> list[Diagnostic]:
        """The page's syntax errors; an error may point into the following page."""
        if not self.broken and not self.goes_on(following):
            return sorted([*self.problems, *self.foreign], key=start_of)
        if self.told is None or self.told[0] is not following:
            self.told = following, [self.first_problem(following)]
        return self.told[1]

    def goes_on(self, following: Page | None) -> bool:
        """True if the page ends with a `;`, after which the next declaration is read as the next step."""
        if following is None or following.broken or len(self.tokens) < 2:
            return False
        return self.tokens[-2].kind == "SEMICOLON" and following.tokens[0].kind == "LET"

    def first_problem(self, following: Page | None) -> Diagnostic:
        """The first error of this page and the following one read as one text, since messages depend on the context."""
        if self.lexical:
            return self.lexical[0]
        text = Source(self.book.name, self.text + (following.text if following else ""))
        tokens = Lexer(text, tables()).read().tokens
        brackets = [d for d in unbalanced(text, tokens) if d.span and d.span.start < len(self.text)]
        parser = Parser(tables(), Builder(text), "file")
        failed = parser.feed(tokens, 0)
        if brackets:
            problem = brackets[0]
        elif failed is not None:
            problem = mistakes.explain(parser, tokens, failed)
        else:  # more text completes it than was tried
            problem = Diagnostic("E0101", "this declaration is not complete", Span(text, 0, len(self.text.rstrip())))
        return self.moved(problem, following)

    def moved(self, d: Diagnostic, following: Page | None) -> Diagnostic:
        """A message about this page and the following one, with its spans moved to their places in the book."""

        def place(offset: int) -> int:
            beyond = offset - len(self.text)
            return self.base + offset if beyond < 0 or following is None else following.base + beyond

        def span(s: Span) -> Span:
            start = place(s.start)
            return Span(self.book, start, start + s.end - s.start)

        labels = tuple(replace(label, span=span(label.span)) for label in d.labels)
        return replace(d, span=span(d.span) if d.span else None, labels=labels)

    def token_at(self, offset: int) -> Token | None:
        """The token that covers an offset of this page or ends there; None if there is none."""
        number = bisect_right(self.tokens, offset, key=lambda t: t.start) - 1
        if number >= 0 and offset <= self.tokens[number].end:
            before = self.tokens[number - 1] if number else None
            token = self.tokens[number]
            is_word = token.kind in ("LOWER", "QLOWER", "UPPER", "QUPPER", "TYVAR")
            return before if before and before.end == offset and not is_word else token
        return None


def start_of(d: Diagnostic) -> int:
    return d.span.start if d.span else 0


class Book(Source):
    """The changing text of one document, which is `current`.  As a source, `text` joins the texts of all pages, old
    ones too."""

    def __init__(self, name: str, path: Path | None = None) -> None:
        super().__init__(name, "\n", path)
        self.all: list[Page] = []  # all pages since the book started, in the order of their offsets
        self.pages: list[Page] = []  # in the order of the text
        self.current = ""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def update(self, text: str) -> bool:
        """Set the text.  Returns true if the book started again, so that all results for its pages are invalid."""
        full = len(self.text) > GARBAGE * len(text) + SLACK
        if full:
            self._text, self.all, self.pages = "\n", [], []
        known: dict[str, list[Page]] = defaultdict(list)
        sizes = sorted({1, *(page.pieces for page in self.pages)}, reverse=True)
        for page in reversed(self.pages):
            known[page.text].append(page)
        starts = [*sorted({0, *(m.start() for m in BOUNDARY.finditer(text))}), len(text)]
        self.pages, self.current = [], text
        number = start = line = 0
        while number < len(starts) - 1:
            page = self.kept(text, starts, number, known, sizes)
            if page is None:
                page = self.page(text, starts, number)
                self.all.append(page)
            number += page.pieces
            page.start, page.line = start, line
            start += len(page.text)
            line += page.text.count("\n")
            self.pages.append(page)
        for gone in (page for pages in known.values() for page in pages):
            gone.leave()
        self.find_foreign()
        return full

    def find_foreign(self) -> None:
        """Find the errors for operators of other languages.  All pages are needed, since any may define an operator."""
        suspects = [page for page in self.pages if page.has_foreign]
        tokens = [t for page in self.pages for t in page.tokens] if suspects else []
        found = foreign_operators(self, tokens)
        for page in suspects:
            page.foreign = [d for d in found if d.span and page.base <= d.span.start < page.base + len(page.text)]

    def kept(self, text: str, starts: list[int], number: int, known: dict[str, list[Page]], sizes: list[int]):
        """A page from before the change that begins with piece `number` of the text; None if there is none."""
        for size in sizes:
            if number + size < len(starts) and (pages := known.get(text[starts[number] : starts[number + size]])):
                return pages.pop()
        return None

    def page(self, text: str, starts: list[int], number: int) -> Page:
        """A new page that begins with piece `number` of the text, with more pieces if it does not parse alone."""
        first = self.read(text[starts[number] : starts[number + 1]])
        page, last = first, number + 1
        while page.broken and last < len(starts) - 1:
            last = self.closed(page, text, starts, last) if page.lexical else last + 1 if page.ends_early else 0
            if not number < last <= number + JOINED and not (page.lexical and last):
                break
            page = self.read(text[starts[number] : starts[last]])
            if not page.broken:
                page.pieces = last - number
                return page
        return first

    def closed(self, page: Page, text: str, starts: list[int], last: int) -> int:
        """The number of the piece after the one that closes an open comment or string; 0 if none closes it."""
        rest = Lexer(Source("", text[starts[last] - len(page.text) :]), tables()).read()
        edge, first = len(page.text), starts[last] - len(page.text)
        ends = [t.end for t in rest.tokens if t.start < edge < t.end]
        ends += [c.span.end for c in rest.comments if c.span.start < edge < c.span.end]
        return bisect_right(starts, first + ends[0] - 1) if ends else 0

    def read(self, text: str) -> Page:
        base = len(self.text)
        self._text = self.text + text
        page = Page(self, text, base)
        self._text += "\n"
        return page

    # ---- as a source

    def page_of(self, offset: int) -> Page:
        """The page to which an offset belongs; it may no longer be in the text."""
        return self.all[max(bisect_right(self.all, offset, key=lambda p: p.base) - 1, 0)]

    def page_at(self, place: int) -> Page | None:
        """The page at a current place of the text."""
        number = bisect_right(self.pages, place, key=lambda p: p.start) - 1
        return self.pages[number] if number >= 0 else None

    def now(self, span: Span) -> tuple[int, int]:
        """The current start and end of a span in the text."""
        page = self.page_of(span.start)
        return page.now(span.start), page.now(min(span.end, page.base + len(page.text)))

    def position(self, offset: int) -> tuple[int, int]:
        page = self.page_of(offset)
        before = page.text[: offset - page.base]
        return page.line + before.count("\n") + 1, len(before) - before.rfind("\n")

    def line(self, number: int, first: int = 0, last: int | None = None) -> str:
        lines = self.current.split("\n")
        return lines[number - 1][first:last] if 0 < number <= len(lines) else ""
