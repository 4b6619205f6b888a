"""Properties of trees for the formatter: precedence, forms that extend to the right, the author's line breaks."""

from __future__ import annotations

from dpl.node import node
from dpl.regex import regex
from dpl.source import Span
from dpl.syntax import tree
from dpl.syntax.operators import AND, ASSIGN, COMPARE, CONS, OR, PIPE, POWER, UNARY, Level, level

APPLY, POSTFIX, ATOM = POWER.rank + 1, POWER.rank + 2, POWER.rank + 3


@node
class Place:
    """The position of an expression.

    `least` is the loosest operator rank that needs no parentheses; `seq` allows a sequence.  The other fields tell
    which tokens follow that the expression would swallow without parentheses: a semicolon, the bar of an enclosing
    match, an `else`, or any operator or argument (`more`)."""

    least: int = -1
    seq: bool = True
    semi: bool = False
    bar: bool = False
    orelse: bool = False
    more: bool = False


FREE = Place()
ITEM = Place(seq=False)  # before a comma or a closing bracket
STEP = Place(seq=False, semi=True)  # before a semicolon
ARGUMENT = Place(POSTFIX, more=True)
PART = Place(ATOM, more=True)

_BLANK_LINE = regex(r"\n[ \t]*\n")
_OPEN = (tree.Let, tree.Fun, tree.Shift, tree.Match)  # their bodies extend over semicolons
_BINDERS = (*_OPEN, tree.If, tree.LoopFor, tree.LoopWhile)


def needs_parentheses(node: tree.Expr, place: Place) -> bool:
    """True if an expression in this place would be read as something else without parentheses."""
    if is_binder(node):
        return place.least > OR.rank or is_swallowed(node, place)
    return rank_of(node) < place.least or is_swallowed(node, place)


def is_swallowed(node: tree.Expr, place: Place) -> bool:
    """True if the expression, without parentheses, would swallow what follows or be split by it."""
    match node:
        case tree.Seq():
            return not place.seq or place.more
        case tree.Match() if place.bar:
            return True
        case tree.If(_, _, _, None) if place.orelse:
            return True
        case _:
            return (is_binder(node) and place.more) or (isinstance(node, _OPEN) and place.semi)


def is_binder(node: tree.Expr) -> bool:
    return isinstance(node, _BINDERS)


def level_of(node: tree.Expr) -> Level:
    """The precedence of an infix form."""
    match node:
        case tree.Pipe():
            return PIPE
        case tree.Assign():
            return ASSIGN
        case tree.Logic(_, op, _, _):
            return AND if op == "&&" else OR
        case tree.Cons():
            return CONS
        case tree.Binary(_, op, _, _, _):
            return level(op)
        case _:
            raise TypeError(node)


def rank_of(node: tree.Expr) -> int:
    match node:
        case tree.Binary() | tree.Logic() | tree.Cons() | tree.Pipe() | tree.Assign():
            return level_of(node).rank
        case tree.Unary(_, "-", _) | tree.App(_, tree.Var(_, "not"), _):
            return UNARY.rank
        case tree.Lit() if is_negative(node):
            return UNARY.rank
        case tree.App() if is_prefixed(node):
            return ATOM
        case tree.App() | tree.Reset():
            return APPLY
        case tree.Field() | tree.Index():
            return POSTFIX
        case tree.Seq():
            return -1
        case _:
            return ATOM


def is_negative(node: tree.Expr) -> bool:
    """True for a number that is written with a minus."""
    match node:
        case tree.Lit(_, str() | bool()):
            return False
        case tree.Lit(_, value, _, text):
            return text.startswith("-") or (not text and str(value).startswith("-"))
        case _:
            return False


def is_prefixed(node: tree.Expr) -> bool:
    """True for a user's prefix operator with its operand."""
    match node:
        case tree.App(_, tree.Var(_, op), _):
            return op[0] in "~?!" and op not in ("!", "?", "!=")
        case _:
            return False


def starts_with_symbol(node: tree.Expr) -> bool:
    """True if a sign right before the expression would merge with its first symbol."""
    while True:
        match node:
            case tree.Unary():
                return True
            case tree.App() if is_prefixed(node):
                return True
            case (
                tree.App(_, inner, _)
                | tree.Field(_, inner, _)
                | tree.Index(_, inner, _)
                | tree.Binary(_, _, inner, _, _)
            ):
                node = inner
            case _:
                return is_negative(node)


def operands(node: tree.Expr) -> tuple[str, tree.Expr, tree.Expr]:
    match node:
        case tree.Binary(_, op, left, right, _) | tree.Logic(_, op, left, right):
            return op, left, right
        case tree.Cons(_, left, right):
            return "::", left, right
        case tree.Pipe(_, left, right):
            return "|>", left, right
        case tree.Assign(_, left, right):
            return ":=", left, right
        case _:
            raise TypeError(node)


def flatten(node: tree.Expr) -> tuple[tree.Expr, list[tuple[str, tree.Expr, tree.Expr]]]:
    """The first operand of a chain, and for each operator the next operand and a part of the chain.

    The part ends with that operand; for right-associative operators, it begins with it."""
    rank = level_of(node)
    op, left, right = operands(node)
    links = [(op, right, node)]
    if rank.right:
        while _is_infix(right) and level_of(right) is rank:
            inner = right
            op, middle, right = operands(inner)
            links[-1:] = [(links[-1][0], middle, inner), (op, right, node)]
    elif rank is not COMPARE:
        while _is_infix(left) and level_of(left) is rank:
            inner = left
            op, left, middle = operands(inner)
            links.append((op, middle, inner))
        links.reverse()
    return left, links


def _is_infix(node: tree.Expr) -> bool:
    return isinstance(node, tree.Binary | tree.Logic | tree.Cons | tree.Pipe | tree.Assign)


def spine(node: tree.Expr) -> tuple[tree.Expr, list[tree.Expr]]:
    """The function and the arguments of an application."""
    args: list[tree.Expr] = []
    while isinstance(node, tree.App) and not (args and is_prefixed(node)):
        args.append(node.arg)
        node = node.fn
    return node, args[::-1]


def partial(node: tree.Expr, args: int) -> list[tree.Expr]:
    """The partial applications inside an application: after one argument, after two, ..., without the last."""
    parts: list[tree.Expr] = []
    while len(parts) < args - 1 and isinstance(node, tree.App):
        node = node.fn
        parts.append(node)
    return parts[::-1]


def embraces(node: tree.Expr) -> bool:
    """True if an expression breaks well, so that it can begin on the line of its context."""
    match node:
        case tree.App():
            return isinstance(spine(node)[1][-1], tree.Fun)
        case _:
            return isinstance(
                node,
                tree.Fun
                | tree.ListLit
                | tree.ArrayLit
                | tree.Comprehension
                | tree.Record
                | tree.RecordWith
                | tree.ArrayWith,
            )


# ---- the author's lines -------------------------------------------------------------------------------------------


def newlines(node: tree.Node, start: int, end: int) -> int:
    """The number of line breaks in a range of the node's source."""
    return node.span.source.text.count("\n", start, end) if start < end else 0


def has_blank_line(node: tree.Node, start: int, end: int) -> bool:
    """True if there is an empty line in a range of the node's source."""
    return start < end and bool(_BLANK_LINE.search(node.span.source.text, start, end))


def starts_line(node: tree.Node) -> bool:
    """True if the node comes first on its line."""
    text, start = node.span.source.text, node.span.start
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return bool(text) and "\n" in text[:start] and not line.strip()


def run_is_broken(node: tree.Expr) -> bool:
    """True if the author put the steps of a run of `let .. in` and `e;` on separate lines."""
    while True:
        match node:
            case tree.Let(_, _, bindings, body):
                end = bindings[-1].span.end
            case tree.Seq(_, first, body):
                end = first.span.end
            case _:
                return False
        if newlines(node, end, body.span.start):
            return True
        node = body


def branches_are_broken(node: tree.If) -> bool:
    """True if the author broke the line between `then` and `else`, here or in a following `else if`."""
    return bool(node.else_ and newlines(node, node.then.span.end, node.else_.span.start)) or (
        isinstance(node.else_, tree.If) and branches_are_broken(node.else_)
    )


def comment_ends_line(span: Span) -> bool:
    """True if nothing but space is between the end of the span and the end of its line."""
    text, end = span.source.text, span.end
    newline = text.find("\n", end)
    return not text[end : newline if newline >= 0 else len(text)].strip()
