"""Types, sizes, patterns and literals -> text on one line."""

from __future__ import annotations

import re

from dpl.syntax import tree

_SYMBOLS = frozenset("!$%&*+-./<=>?@^|~:")


def name(text: str) -> str:
    """A value's name; an operator gets parentheses."""
    return f"( {text} )" if text[0] in _SYMBOLS else text


def string(value: str) -> str:
    """A string literal."""
    return f'"{escape(value)}"'


def escape(value: str) -> str:
    """The characters of a literal.  What cannot be printed is written by its code point."""
    out = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):X}}}" for c in out)


def literal(node: tree.Lit | tree.PatLit) -> str:
    """The literal as written, if its text is known."""
    match node:
        case tree.Lit(_, _, _, text) if text:
            return text.strip("() \n") if isinstance(node.value, str) and text[0] == "(" else text
        case tree.PatLit(span, int() | float(), _) if not isinstance(node.value, bool):
            if found := re.fullmatch(r"[\s(]*(-?)\s*(\d[\w.]*(?:[eE][+-]\w+)?)[\s)]*", span.text):
                return found.group(1) + found.group(2)
        case _:
            pass
    match node.value:
        case bool():
            return "true" if node.value else "false"
        case str():
            return string(node.value)
        case _:
            return f"{node.value!r}{node.suffix}"


# ---- sizes and types ----------------------------------------------------------------------------------------------


def size(node: tree.Size, tight: bool = False) -> str:
    """The text of a size.  `tight` if it is an operand of a product, or the right operand of a difference."""
    match node:
        case tree.SizeNum(_, value):
            return str(value)
        case tree.SizeVar(_, var):
            return var
        case tree.SizeUnknown():
            return "?"
        case tree.SizeOpen():
            return "_"
        case tree.SizeOp(_, "*", left, right):
            text = f"{size(left, _is_sum(left))} * {size(right, not _is_atom(right))}"
            return f"({text})" if tight and not _is_atom(node) else text
        case tree.SizeOp(_, op, left, right):
            text = f"{size(left)} {op} {size(right, _is_sum(right))}"
            return f"({text})" if tight else text


def _is_sum(node: tree.Size) -> bool:
    return isinstance(node, tree.SizeOp) and node.op != "*"


def _is_atom(node: tree.Size) -> bool:
    return not isinstance(node, tree.SizeOp)


def type_(node: tree.Type | tree.Size, level: int = 0) -> str:
    """The text of a type.  `level`: 0 allows any form, 1 no arrow, 2 no tuple either."""
    match node:
        case tree.TyVar(_, var):
            return f"'{var}"
        case tree.TyOpen():
            return "_"
        case tree.TyName(_, type_name, ()):
            return type_name
        case tree.TyName(_, type_name, (arg,)):
            text = type_(arg, 2)
            return f"({text}) {type_name}" if isinstance(arg, tree.SizeOp) else f"{text} {type_name}"
        case tree.TyName(_, type_name, args):
            return f"({', '.join(map(type_, args))}) {type_name}"
        case tree.TyArray(_, elem, sizes):
            return f"{type_(elem, 2)}[{', '.join(map(size, sizes))}]"
        case tree.TyTuple(_, items):
            text = " * ".join(type_(t, 2) for t in items)
            return f"({text})" if level >= 2 else text
        case tree.TyFun(_, arg, result, ctl):
            arrow = f"-{{ctl {type_(ctl)}}}->" if ctl else "->"
            text = f"{type_(arg, 1)} {arrow} {type_(result)}"
            return f"({text})" if level >= 1 else text
        case _:
            return size(node)


# ---- patterns -----------------------------------------------------------------------------------------------------

_AS, _OR, _CONS, _APPLY, _ATOM = range(5)


def pattern(node: tree.Pattern, level: int = _AS) -> str:
    """The text of a pattern.  `level` is the loosest form that needs no parentheses there."""
    text, own = _pattern(node)
    return f"({text})" if own < level else text


def parameter(node: tree.Pattern) -> str:
    """A pattern as a function's parameter, in parentheses unless it is an atom."""
    return pattern(node, _ATOM)


def _pattern(node: tree.Pattern) -> tuple[str, int]:  # noqa: C901 -- one case per form
    match node:
        case tree.PatWild():
            return "_", _ATOM
        case tree.PatVar(_, var):
            return name(var), _ATOM
        case tree.PatLit():
            return literal(node), _ATOM
        case tree.PatTuple(_, items):
            return f"({', '.join(map(_item, items))})", _ATOM
        case tree.PatCon(_, con, arg):
            return (f"{con} {pattern(arg, _ATOM)}", _APPLY) if arg else (con, _ATOM)
        case tree.PatCons(_, head, tail):
            return f"{pattern(head, _APPLY)} :: {pattern(tail, _CONS)}", _CONS
        case tree.PatList(_, (item,)):
            return f"[{pattern(item)};]", _ATOM
        case tree.PatList(_, items):
            return f"[{'; '.join(map(pattern, items))}]", _ATOM
        case tree.PatArray(_, items):
            return f"[{', '.join(map(pattern, items))}]", _ATOM
        case tree.PatRecord(_, fields, is_open):
            shown = [_field(f, p) for f, p in fields] + ["_"] * is_open
            return f"{{ {'; '.join(shown)} }}", _ATOM
        case tree.PatAs(_, inner, var):
            return f"{pattern(inner)} as {var}", _AS
        case tree.PatOr(_, left, right):
            return f"{pattern(left, _OR)} | {pattern(right, _CONS)}", _OR
        case tree.PatAnnot(_, inner, annot):
            return f"({pattern(inner)} : {type_(annot)})", _ATOM


def _item(node: tree.Pattern) -> str:
    """A component of a tuple.  Its annotation needs no parentheses of its own."""
    return pattern(node)[1:-1] if isinstance(node, tree.PatAnnot) else pattern(node)


def _field(field: str, inner: tree.Pattern) -> str:
    short = isinstance(inner, tree.PatVar) and inner.name == tree.member(field)
    return field if short else f"{field} = {pattern(inner)}"
