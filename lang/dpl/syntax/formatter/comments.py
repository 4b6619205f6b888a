"""comments -> the nodes that they belong to, so that the formatter can restore them.

A comment on its own lines leads the node that follows; a comment at the end of a line trails the node before it.
Patterns and types are treated as wholes: a comment inside leads or trails them.  Comments inside an interpolated string
are part of its text.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from dpl.source import Span
from dpl.syntax import tree
from dpl.syntax.formatter.shape import comment_ends_line

_WHOLE = (
    tree.PatWild, tree.PatVar, tree.PatLit, tree.PatTuple, tree.PatCon, tree.PatCons, tree.PatList, tree.PatArray,
    tree.PatRecord, tree.PatAs, tree.PatOr, tree.PatAnnot, tree.TyVar, tree.TyName, tree.TyTuple, tree.TyFun,
    tree.TyArray, tree.TyOpen, tree.Interp, tree.Param,
)  # fmt: skip


class Comments:
    """The comments of a file by the part of the tree that they belong to.

    A part is a node, or a tuple that stands for a constructor or field of a type declaration."""

    def __init__(self, file: tree.File) -> None:
        self.leading: dict[int, list[tree.Comment]] = {}
        self.trailing: dict[int, list[tree.Comment]] = {}
        self._children: dict[int, tuple[list[Any], list[int]]] = {}
        self._begin = {comment.span.end: comment.span.start for comment in file.comments}
        for comment in file.comments:
            self._attach(comment, file)

    def _attach(self, comment: tree.Comment, part: Any) -> None:
        while True:
            children, starts = self._inside(part)
            number = bisect_right(starts, comment.span.start) - 1
            before = children[number] if number >= 0 else None
            if before is not None and comment.span.start < span_of(before).end:
                if isinstance(before, tree.Interp):
                    return
                part = before
                continue
            after = children[number + 1] if number + 1 < len(children) else None
            follows = before is not None and comment_ends_line(comment.span) and not _begins_line(comment)
            if after is not None and not (follows and not self._begins_field(comment, part)):
                self.leading.setdefault(id(after), []).append(comment)
            else:
                self.trailing.setdefault(id(part if before is None else before), []).append(comment)
            return

    def _begins_field(self, comment: tree.Comment, part: Any) -> bool:
        """True if the comment stands after the `=` of a field, or of an array update."""
        records = tree.Record | tree.RecordWith | tree.ArrayWith
        return isinstance(part, records) and comment.span.source.text.endswith("=", 0, self._end_before(comment.span))

    def _inside(self, part: Any) -> tuple[list[Any], list[int]]:
        """The children of a part in textual order, and their start offsets."""
        found = self._children.get(id(part))
        if found is None:
            children = sorted(_parts(part), key=lambda p: span_of(p).start)
            found = self._children[id(part)] = children, [span_of(c).start for c in children]
        return found

    def pop_before(self, symbol: str, part: Any, *heads: Any) -> list[tree.Comment]:
        """Removes and returns the comments between `heads` and the symbol before `part`; later ones stay."""
        end = self._end_before(span_of(part), symbol)
        if not span_of(part).source.text.endswith(symbol, 0, end):
            return []
        found: list[tree.Comment] = []
        places = [(self.leading, part), *((self.trailing, head) for head in heads)]
        places += [(self.leading, head) for head in heads[1:]]
        for table, owner in places:
            comments = table.get(id(owner), [])
            found += [c for c in comments if c.span.start < end]
            table[id(owner)] = [c for c in comments if c.span.start >= end]
        return sorted(found, key=lambda c: c.span.start)

    def _end_before(self, span: Span, symbol: str = "=") -> int:
        """The end of the text before a span, ignoring blanks, comments and the opening bracket or bar.  A symbol is not
        ignored, though it may be made of bars."""
        text, place = span.source.text, span.start
        while place and (place in self._begin or text[place - 1].isspace() or text[place - 1] in "|{("):
            if place not in self._begin and text.endswith(symbol, 0, place):
                break
            place = self._begin.get(place, place - 1)
        return place

    def pop_lost(self, span: Span) -> list[tree.Comment]:
        """Removes and returns the comments inside a span that no node claimed."""
        lost: list[tree.Comment] = []
        for table in (self.leading, self.trailing):
            for key, comments in list(table.items()):
                if any(span.start < c.span.start < span.end for c in comments):
                    lost += table.pop(key)
        return sorted(lost, key=lambda c: c.span.start)

    def pop_leading(self, part: Any) -> list[tree.Comment]:
        """The comments before a node, once."""
        return self.leading.pop(id(part), [])

    def pop_trailing(self, part: Any) -> list[tree.Comment]:
        """The comments behind a node, once."""
        return self.trailing.pop(id(part), [])


def span_of(part: Any) -> Span:
    return part.span if isinstance(part, tree.Node) else part[-1]


def parts_of(body: tree.Node) -> tuple[Any, ...]:
    """The constructors or fields of a type declaration; an abbreviation is a single part."""
    match body:
        case tree.Variants(_, parts) | tree.Fields(_, parts):
            return parts
        case _:
            return (body,)


def _parts(part: Any) -> list[Any]:
    if isinstance(part, _WHOLE) or not isinstance(part, tree.Node):
        return []
    parts: list[Any] = []
    waiting = [getattr(part, name) for name in part.__match_args__ if name not in ("span", "op_span", "comments")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tree.Variants | tree.Fields):
            parts += parts_of(value)
        elif isinstance(value, tuple):
            waiting += value
        elif isinstance(value, tree.Node):
            parts.append(value)
    return parts


def _begins_line(comment: tree.Comment) -> bool:
    text, start = comment.span.source.text, comment.span.start
    return not text[text.rfind("\n", 0, start) + 1 : start].strip()
