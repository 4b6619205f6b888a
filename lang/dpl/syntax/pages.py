"""Literate programs: the blocks of DPL in a page of Markdown.

    ```dpl              a block of the program; the blocks of a page share one scope
    1.0 + 1.0
    ```
    ```text             right after it: the block's output, for `dpl test`
    2.0
    ```

More words behind `dpl` say that a block is special: `error` and `warning` show a message, `types` shows the types of
what it declares, `norun` is only read.  Blocks with `error` or `norun` are no part of the program.  Other words are
errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpl.diagnostics import Diagnostic
from dpl.node import node
from dpl.regex import regex
from dpl.source import Source, Span

SUFFIX = ".md"
WORDS = frozenset({"types", "warning"})  # what else a block of the program may be
APART = frozenset({"error", "norun"})  # of blocks that are no part of it
OUTPUT = ("text", "output")
DECLARES = ("let", "type", "open", "import", "do", "expect", "export", "extern")

_FENCE = regex(r"^(`{3,})[ \t]*([^\n`]*)\n", re.MULTILINE)
_DECLARATION = regex(rf"^(?:{'|'.join(DECLARES)})\b", re.MULTILINE)
_NOTHING = regex(r"(?:\s|--[^\n]*)*")
_CONTENT = regex(r"[^\n]")


@node
class Block:
    """A block of DPL: the words after `dpl`, where its text starts and ends, where it is `over`, and where the text of
    the block of output after it starts and ends, if there is one."""

    words: frozenset[str]
    start: int
    end: int
    over: int
    output: tuple[int, int] | None

    @property
    def runs(self) -> bool:
        """True for a part of the program."""
        return self.words <= WORDS

    def text_of(self, page: str) -> str:
        return page[self.start : self.end]

    def alone(self, page: str) -> str:
        """The page with everything but this block blank: offsets and lines stay as they are."""
        return _CONTENT.sub(" ", page[: self.start]) + page[self.start : self.end]

    def declares(self, page: str) -> bool:
        """True for declarations; otherwise the block is an expression, whose value is printed."""
        text = self.text_of(page)
        return bool(_DECLARATION.search(text) or _NOTHING.fullmatch(text))


def is_page(source: Source) -> bool:
    """True for a file of Markdown."""
    return source.path is not None and source.path.suffix == SUFFIX


def blocks(page: str) -> Iterator[Block]:
    """The blocks of DPL in a page."""
    found = list(_fenced(page))
    for number, (words, start, end, after) in enumerate(found):
        if words[:1] == ["dpl"]:
            output = None
            if number + 1 < len(found):
                follows, first, last, _ = found[number + 1]
                gap = page[after : page.rindex("```", after, first)].rstrip("`")
                if follows and follows[0] in OUTPUT and not gap.strip():
                    output = (first, last)
            yield Block(frozenset(words[1:]), start, end, after, output)


def misspelt(source: Source) -> Iterator[Diagnostic]:
    """Errors for words after `dpl` that say nothing: such a block would not run, in silence."""
    for block in blocks(source.text):
        for word in sorted(block.words - WORDS - APART):
            at = source.text.rindex(word, 0, block.start)
            helps = ("a block is  dpl , or  dpl types  dpl warning  dpl error  dpl norun",)
            span = Span(source, at, at + len(word))
            yield Diagnostic("E0106", f"`{word}` says nothing of a block", span, helps=helps)


def _fenced(page: str) -> Iterator[tuple[list[str], int, int, int]]:
    """For each block of code: its words, the start and the end of its text, and the end of the block."""
    at = 0
    while opening := _FENCE.search(page, at):
        closing = re.compile(rf"^{opening[1]}`*[ \t]*(?:\n|\Z)", re.MULTILINE).search(page, opening.end())
        end, at = (closing.start(), closing.end()) if closing else (len(page), len(page))
        yield opening[2].split(), opening.end(), end, at
