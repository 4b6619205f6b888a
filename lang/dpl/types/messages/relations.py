"""Errors of constraints that cannot hold: operators, products, appending, formats."""

from __future__ import annotations

import re

from dpl.core import formats, ty
from dpl.diagnostics import DplError, Label, tighter
from dpl.regex import regex
from dpl.source import Span
from dpl.types.messages.errors import class_code, mismatch
from dpl.types.messages.parts import (
    FLOATS,
    GROWS,
    OF_INT,
    as_argument,
    both,
    conversions,
    is_option,
    is_reference,
    is_sequence,
    missing,
    number_of_string,
    phrase,
    printer,
    size_helps,
    size_labels,
    taken_apart,
)  # fmt: skip
from dpl.types.messages.pretty import Printer
from dpl.types.solve.constraints import Constraint
from dpl.types.solve.kinds import PHRASES
from dpl.types.solve.meta import Meta, dimensions, is_scalar, prune
from dpl.types.solve.unify import Clash

NUMBER_BY_NUMBER = "number by number:  Tree.add x y  Tree.sub x y  Tree.scale a x ;  Tree.axpy a x y  is  a * x + y"
PRINTS = regex(r"(print|print_string) (.+)")
SYMBOL = regex(r"[!$%&*+\-./:<=>?@^|~]+")


def relation(cx, clash: Clash, constraint: Constraint) -> DplError:
    """The error for a constraint that cannot hold, with a label for the type of each operand."""
    p = printer(cx)
    span, types = operator(constraint), constraint.types
    shown = [phrase(t) or p.type(t) for t in types[:2]]
    labels = tuple(Label(place, p.type(t)) for place, t in zip(constraint.operands, types))
    a, b = shown if len(shown) == 2 else (shown[0], "")
    if (error := of_function(cx, p, constraint)) is not None:
        return error
    match constraint.name, clash.kind:
        case "format", _:
            return unsuited(cx, constraint.extra, clash.right, shown[0], span)
        case "matmul", ("inner" | "product" | "dot") as kind:
            return product(cx, p, kind, clash, types, span, labels)
        case (("lift" | "fits" | "pow" | "elem"), ("type" | "class")) if is_scalar(types[0]) and is_scalar(types[1]):
            title = f"{a} and {b} do not go together" if a != b else f"this works on numbers, not on {a}"
            helps = formatted(span, types) or mixed(types[0], types[1])
            return cx.fail("E0201", title, span, labels=labels, helps=helps)
        case _, "class" if constraint.name != "append" or all(is_sequence(prune(t)) for t in types[:2]):
            code, phrase_ = class_code(clash.right), PHRASES[clash.right]
            helps = no_number(prune(clash.left), constraint, span) or mixed(types[0], types[-1])
            return cx.fail(code, f"{p.type(clash.left)} is not {phrase_}", span, labels=labels, helps=helps)
        case (("lift" | "fits"), "size"):
            left, right = p.size(clash.left), p.size(clash.right)
            return cx.fail(
                "E0301",
                f"the sizes of {a} and {b} do not match: {left} and {right}",
                span,
                labels=both(span, labels, size_labels(p, clash, clash.left, clash.right)),
                helps=appending(span, constraint) or stretched(clash) or size_helps(cx, clash.left, clash.right, b),
            )
        case (("lift" | "fits"), "rank"):
            return cx.fail(
                "E0302",
                f"{a} has more dimensions than {b}, whose shape was fixed before",
                span,
                labels=labels,
                helps=("annotate the operands to say which has the higher rank",),
            )
        case name, "ambiguous":
            words = {"matmul": "the ranks of this product", "append": "what is appended here"}
            return cx.fail(
                "E0211", f"{words.get(name, 'the types here')} cannot be told", span, helps=("annotate an operand",)
            )
        case "append", ("type" | "append" | "class"):
            helps = appended(constraint, types)
            title = f"`++` appends two strings, lists or arrays, not {a} and {b}"
            return cx.fail("E0201", title, span, labels=labels, helps=helps)
        case _, ("size" | "occurs" | "rigid" | "effect" | "answer"):
            return mismatch(cx, clash, types[0], types[1], span, None)
        case _:
            pass
    detail = f"{p.type(clash.left)} against {p.type(clash.right)}" if clash.kind == "type" else ""
    helps = conversions(clash.left, clash.right) if clash.kind == "type" else ()
    return cx.fail("E0201", f"{a} and {b} do not go together", span, note=detail, labels=labels, helps=helps)


def of_function(cx, p: Printer, constraint: Constraint) -> DplError | None:
    """The error for an operand that is a function, mostly because it lacks an argument; None if there is none."""
    given = list(zip(constraint.types, constraint.operands))
    one, place = next(((t, at) for t, at in given if type(prune(t)) is ty.Fn), (None, None))
    if one is None or place is None or constraint.name in ("append", "convert", "format"):
        return None
    labels = tuple(Label(at, p.type(t)) for t, at in given if at is not place)
    helps = no_number(prune(one), constraint, operator(constraint))
    title = f"{p.type(one)} is not {PHRASES['num']}"
    return cx.fail("E0204", title, place, note="a function", labels=labels, helps=helps)


def operator(constraint: Constraint) -> Span:
    """The span of the operator between its operands; if it is not found, the span of the constraint."""
    if len(constraint.operands) < 2:
        return constraint.span
    left, right = sorted(constraint.operands[:2], key=lambda operand: operand.start)
    found = SYMBOL.search(left.source.text, left.end, right.start) if left.source == right.source else None
    return Span(left.source, found.start(), found.end()) if found else constraint.span


def unsuited(cx, form: str, kinds: frozenset[str], shown: str, span: Span) -> DplError:
    """The error for a format that does not suit values with these kinds of numbers."""
    if form.endswith("s"):
        way = "`s` is for other data: leave it out"
    elif formats.FLOAT in kinds:
        way = "floats take  .2f  e  g  %,  or a width, a sign, an alignment:  >10"
    elif kinds:
        way = "integers take  d  x  b  o,  those of floats with their letter:  .2f,  or a width:  10"
    else:
        way = "without numbers in it, it takes a width, an alignment, a precision that cuts:  >10"
    return cx.fail("E0220", f"the format `{form}` does not suit {shown}", span, helps=(way,))


def missing_argument(span: Span, last: Span) -> str:
    """The help for a missing argument of an operator's operand; `f -1.0` parses as a subtraction, `1.0 + f -1.0`, too,
    of what is before it."""
    text = span.source.text
    if span.text == "-" and text[span.start - 1 : span.start].isspace() and not text[span.end : span.end + 1].isspace():
        return "a negative argument is put in parentheses:  f (-x)"
    if re.match(r"\s+-[\w(]", text[last.end :]):
        return "a negative argument is put in parentheses:  f (-x)"
    return missing(last.text)[0]


def appended(constraint: Constraint, types) -> tuple[str, ...]:
    """Helps for `++`: show a value as a string, put a single element in brackets, write a list as one."""
    left, right = prune(types[0]), prune(types[1])
    if is_sequence(left) and is_sequence(right) and type(left) is not type(right):
        return ("a list is written with semicolons:  [x;]", GROWS)
    for (one, other), place in zip((types[:2], types[1::-1]), constraint.operands[::-1]):
        if prune(one) == ty.STRING and (said := PRINTS.match(place.text)):
            return (f"what is printed is put in parentheses:  {said[1]} ({said[2]} ++ ...)",)
        if prune(one) == ty.STRING:
            return tighter(place.text) or (f"make a string of it:  show {as_argument(place.text)}",)
        if is_sequence(prune(one)) and not is_sequence(prune(other)):
            item = f"[{place.text}]" if type(prune(one)) is ty.Arr else f"[{place.text};]"
            return (f"one element is put in brackets:  {item}",)
        if is_sequence(prune(one)):
            break
    return ()


def appending(span: Span, constraint: Constraint) -> tuple[str, ...]:
    """A help for `xs + [x]`, as Python appends to a list."""
    is_written = any(re.match(r"\[(?!for\b)", place.text) for place in constraint.operands)
    are_vectors = all(len(dimensions(t)[0]) == 1 for t in constraint.types[:2])
    return ("arrays are appended with  a ++ b",) if span.text == "+" and is_written and are_vectors else ()


def stretched(clash: Clash) -> tuple[str, ...]:
    """A help for users of NumPy, which repeats a dimension of size 1."""
    if any(not size.terms and size.const == 1 for size in (clash.left, clash.right)):
        return ("sizes of 1 do not stretch: a number is repeated, or a row:  matrix + row",)
    return ()


def no_number(t, constraint: Constraint, span: Span) -> tuple[str, ...]:
    """Helps for a value of type `t` where a number is wanted."""
    if type(t) is ty.Fn:
        places = constraint.operands or (span,)
        of_two = next((place for place in places if re.match(r"(max|min) ", place.text)), places[-1])
        ways = (*tighter(span.source.text[places[0].start :]), missing_argument(span, of_two))
        return ways[:1] if "(-" in ways[0] else ways
    if constraint.name == "convert" and t == ty.STRING:
        return (number_of_string(constraint.extra in ty.INTS),)
    if t == ty.UNIT:
        return ("what a function is given is put in parentheses:  print (a + b)",)
    if is_option(t):
        whole = re.fullmatch(r"Some\s+(\S+)", constraint.operands[0].text)
        of_whole = (f"of the whole:  Some ({whole[1]} {span.text} ...)",) if whole else ()
        return (*taken_apart(t), *of_whole)
    if type(t) is ty.Con and t.name == "list":
        return ("for each element:  List.map (fun x -> ...) xs",)
    return ("the content of a reference:  !r",) if is_reference(t) else ()


def formatted(span: Span, types) -> tuple[str, ...]:
    """A help for Python's `"x = %d" % x`."""
    is_format = span.text == "%" and ty.STRING in map(prune, types)
    return ('values in a string:  $"x = {x:.2f}"',) if is_format else ()


def mixed(one, other) -> tuple[str, ...]:
    """Helps for two operands of different types: how to make them fit."""
    one, other = prune(one), prune(other)
    if ty.BOOL in (one, other):
        return ("a condition is 1 or 0 as a number:  int c  float c",)
    if ty.STRING in (one, other):
        return ("strings are appended with  ++ , and made of numbers with  show x",)
    for a, b in ((one, other), (other, one)):
        if type(a) is ty.Con and a.name in ty.INTS and (b in FLOATS or (type(b) is Meta and "real" in b.classes)):
            way = OF_INT.format("(...)") if type(b) is Meta and b.rigid else "float (...)"
            return (f"there are no implicit conversions: make the integer a float with  {way}",)
    return (NUMBER_BY_NUMBER,) if is_data(one) or is_data(other) else conversions(one, other)


def is_data(t) -> bool:
    """Whether a type is a tuple, or declared by a program: `Tree` computes with what is in it."""
    return bool(type(t) is ty.Tup and t.items) or (type(t) is ty.Con and t.name.startswith("main."))


def product(cx, p: Printer, kind: str, clash: Clash, types, span: Span, labels: tuple[Label, ...]) -> DplError:
    a, b = p.type(types[0]), p.type(types[1])
    if kind == "inner":
        inner = [p.size(s) for s in clash.right]
        if type(prune(types[0])) is Meta:  # itself a product of unknown rank
            a = f"a product of {inner[0]} columns"
            labels = (Label(labels[0].span, a), *labels[1:]) if labels else ()
        return cx.fail(
            "E0303",
            f"cannot multiply {a} by {b}: the inner sizes {inner[0]} and {inner[1]} differ",
            span,
            note="this product needs  [.., k] @ [k, ..]",
            labels=both(span, labels, size_labels(p, clash, *clash.right)),
            helps=size_helps(cx, clash.right[0], clash.right[1], b),
        )
    if kind == "dot":
        return cx.fail(
            "E0302",
            f"`@` multiplies matrices; {a} and {b} are two vectors",
            span,
            labels=labels,
            helps=("use  dot a b",),
        )
    return cx.fail(
        "E0302",
        f"`@` multiplies matrices and vectors, not {a} and {b}",
        span,
        labels=labels,
        helps=("use  *  elementwise",),
    )
