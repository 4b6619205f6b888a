"""Documentation comments: `-- | text` before a declaration becomes its `doc`."""

from __future__ import annotations

from bisect import bisect_left

from dpl.node import replace
from dpl.syntax import tree


def attach_docs(file: tree.File) -> tree.File:
    """The file, with documentation comments attached to the declarations and types that they precede."""
    comments = file.comments
    if not any(c.text.startswith("-- |") for c in comments):
        return file
    starts = [c.span.start for c in comments]
    return replace(file, decls=tuple(_documented(d, comments, starts) for d in file.decls))


def _documented(decl: tree.Decl, comments: tuple[tree.Comment, ...], starts: list[int]) -> tree.Decl:
    match decl:
        case tree.DeclLet() | tree.DeclExtern():
            doc = _doc_before(decl.span.start, comments, starts)
            return replace(decl, doc=doc) if doc else decl
        case tree.DeclType(span, defs):
            docs = [_doc_before(span.start, comments, starts)]
            docs += [_doc_before(_and_before(d), comments, starts) for d in defs[1:]]
            return replace(decl, defs=tuple(replace(d, doc=doc) for d, doc in zip(defs, docs, strict=True)))
        case _:
            return decl


def _and_before(node: tree.TypeDef) -> int:
    """The offset of the `and` before a definition."""
    return node.span.source.text.rindex("and", 0, node.span.start)


def _doc_before(offset: int, comments: tuple[tree.Comment, ...], starts: list[int]) -> str:
    """The text of the comment lines right before an offset, if the first begins with `-- |`; else ""."""
    lines: list[str] = []
    number = bisect_left(starts, offset) - 1
    while number >= 0:
        comment = comments[number]
        between = comment.span.source.text[comment.span.end : offset]
        if between.strip() or between.count("\n") > 1 or not comment.text.startswith("--"):
            break
        if comment.text.startswith("-- |"):
            return "\n".join([comment.text[4:].strip(), *lines])
        lines.insert(0, comment.text[2:].strip())
        offset = comment.span.start
        number -= 1
    return ""
