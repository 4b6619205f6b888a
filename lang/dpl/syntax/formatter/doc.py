"""A pretty-printer after Wadler: document -> text of a given width.  Groups that fit stay on one line; others break.

    group("[", "1,", LINE, "2", "]")   ->   [1, 2]   or, where that is too wide,   [1,
                                                                                    2]

Two additions serve comments: text that waits for the end of its line, and groups that must break.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpl.node import node


@node
class Break:
    """A line break, or `flat` in a group that fits.  A hard break also breaks the groups around it."""

    flat: str = " "
    hard: bool = False


@node
class Concat:
    parts: tuple[Doc, ...]
    hard: bool


@node
class Group:
    content: Doc
    hard: bool


@node
class Nest:
    """Indents lines after the first by `depth` more; without a depth, to the column where the content begins."""

    content: Doc
    depth: int | None
    hard: bool


@node
class Suffix:
    """Text deferred to the end of the line, whatever comes in between."""

    text: str
    hard: bool = True


@node
class Flush:
    """A line break if a suffix waits for one."""

    hard: bool = True


Doc = str | Break | Concat | Group | Nest | Suffix | Flush

LINE, HARD, FLUSH = Break(), Break(hard=True), Flush()


def is_hard(doc: Doc) -> bool:
    """True if a document contains a line break that no width removes, so that groups around it break."""
    return "\n" in doc if isinstance(doc, str) else doc.hard


def concat(*parts: Doc) -> Doc:
    """Documents in a row."""
    return parts[0] if len(parts) == 1 else Concat(parts, any(map(is_hard, parts)))


def group(*parts: Doc) -> Doc:
    """Documents on one line if they fit; otherwise all their own line breaks are taken."""
    content = concat(*parts)
    return Group(content, is_hard(content))


def nest(depth: int, *parts: Doc) -> Doc:
    """Documents whose lines after the first stand `depth` columns to the right."""
    content = concat(*parts)
    return Nest(content, depth, is_hard(content))


def align(*parts: Doc) -> Doc:
    """Documents whose lines after the first stand below the column at which the first begins."""
    content = concat(*parts)
    return Nest(content, None, is_hard(content))


def fill(separator: str, docs: Iterable[Doc]) -> Doc:
    """Fills each line with as many parts as fit."""
    first, *others = docs
    return concat(first, *(concat(separator, group(LINE, doc)) for doc in others))


def join(separator: Doc, docs: Iterable[Doc]) -> Doc:
    """Documents with a separator between them."""
    parts: list[Doc] = []
    for doc in docs:
        if parts:
            parts.append(separator)
        parts.append(doc)
    return concat(*parts)


def flat_width(doc: Doc) -> int:
    """The width of a document on one line."""
    match doc:
        case str():
            return len(doc)
        case Break(text):
            return len(text)
        case Concat(parts):
            return sum(map(flat_width, parts))
        case Group(content) | Nest(content):
            return flat_width(content)
        case Suffix() | Flush():
            return 0


_Todo = tuple[int, bool, Doc]  # indentation, flat, document


class _Page:
    """The text written so far, and the suffixes that wait for the end of the current line."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.column = 0
        self.waiting: list[str] = []

    def write(self, text: str) -> None:
        self.out.append(text)
        _, newline, last = text.rpartition("\n")
        self.column = len(last) if newline else self.column + len(text)

    def end_line(self, indent: int) -> None:
        for number, text in enumerate(self.waiting):
            self.out.append(("\n" + " " * indent if number else "  ") + text)
        self.waiting.clear()
        self.out.append("\n" + " " * indent)
        self.column = indent

    def finish(self) -> str:
        self.end_line(0)
        return "\n".join(line.rstrip() for line in "".join(self.out).split("\n"))


def layout(doc: Doc, width: int = 100) -> str:
    """The text of a document.  It ends with a newline; lines have no trailing blanks."""
    page = _Page()
    todo: list[_Todo] = [(0, False, doc)]
    while todo:
        indent, flat, doc = todo.pop()
        match doc:
            case str():
                page.write(doc)
            case Suffix(text):
                page.waiting.append(text)
            case Flush():
                if page.waiting:
                    page.end_line(indent)
            case Break(text, hard):
                if flat and not hard:
                    page.write(text)
                else:
                    page.end_line(indent)
            case Concat(parts):
                todo.extend((indent, flat, part) for part in reversed(parts))
            case Nest(content, depth):
                todo.append((page.column if depth is None else indent + depth, flat, content))
            case Group(content, hard):
                fits = flat or (not hard and _fits((indent, True, content), todo, width - page.column))
                todo.append((indent, fits, content))
    return page.finish()


def _fits(first: _Todo, rest: list[_Todo], room: int) -> bool:
    """True if `first`, with the rest up to the next possible line break, fits into `room` columns."""
    todo, number = [first], len(rest)
    while room >= 0:
        if not todo:
            if number == 0:
                return True
            number -= 1
            todo.append(rest[number])
        indent, flat, doc = todo.pop()
        match doc:
            case Suffix() | Flush():
                pass
            case str():
                line, newline, _ = doc.partition("\n")
                room -= len(line)
                if newline:
                    return room >= 0
            case Break(text, hard):
                if hard or not flat:
                    return True
                room -= len(text)
            case Concat(parts):
                todo.extend((indent, flat, part) for part in reversed(parts))
            case Nest(content) | Group(content):
                todo.append((indent, flat, content))
    return False
