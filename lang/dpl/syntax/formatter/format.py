"""`dpl fmt`: programs, and the blocks of pages, in the style of `show`."""

from __future__ import annotations

from dpl.diagnostics import DplError
from dpl.source import Source
from dpl.syntax import tree
from dpl.syntax.formatter.show import show, show_expr
from dpl.syntax.pages import Block, blocks, is_page
from dpl.syntax.parse import parse, parse_block

_SETTLING = 4  # most passes: a comment in an odd place may move again when the lines around it change


def format_source(source: Source) -> str:
    """The text of a file in the style.  Raises DplError if it cannot be parsed."""
    return _format_page(source) if is_page(source) else _settled(parse(source))


def _format_page(source: Source) -> str:
    """A page with its blocks of DPL in the style.  What is not meant to be parsed stays as it is."""
    page, parts, at = source.text, [], 0
    for block in blocks(page):
        parts += [page[at : block.start], _format_block(source, block)]
        at = block.end
    return "".join([*parts, page[at:]])


def _format_block(source: Source, block: Block) -> str:
    text = block.text_of(source.text)
    try:
        parsed = parse_block(source, block)
    except DplError:
        if block.runs:
            raise
        return text
    if isinstance(parsed, tree.File):
        return _settled(parsed)
    has_comments = "--" in text or "(*" in text  # the tree of an expression alone has none
    return text if has_comments else show_expr(parsed) + "\n"


def _settled(file: tree.File) -> str:
    text = show(file)
    for _ in range(_SETTLING):
        before, text = text, show(parse(Source(file.span.source.name, text)))
        if text == before:
            break
    return text
