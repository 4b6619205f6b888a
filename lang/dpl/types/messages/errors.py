"""Type errors -> messages: what did not fit, the actual types, where each came from, and a way out."""

from __future__ import annotations

import re

from dpl.core import ty
from dpl.diagnostics import DplError, Label, tighter
from dpl.source import Span
from dpl.types.messages import recursion
from dpl.types.messages.compare import side_by_side
from dpl.types.messages.control import answer, answers, wanted_pure
from dpl.types.messages.parts import (
    FLOATS,
    FORGOTTEN_DO,
    OF_INT,
    Why,
    annotated,
    at_the_margin,
    both,
    by_rows,
    class_labels,
    conversions,
    is_reference,
    made,
    missing,
    negated,
    otherwise_annotated,
    phrase,
    printer,
    size_helps,
    size_labels,
)  # fmt: skip
from dpl.types.messages.pretty import Printer
from dpl.types.solve.kinds import PHRASES
from dpl.types.solve.meta import Meta, dimensions, prune
from dpl.types.solve.unify import Clash

NUMERIC = ("num", "real", "integer", "scalar")
NUMBERS = (*map(ty.Con, ty.INTS), *map(ty.Con, ty.FLOATS))


def mismatch(cx, clash: Clash, actual, expected, span: Span, why: Why | None) -> DplError:
    """The error for a value of type `actual` where `expected` is wanted."""
    if why is not None and why.answer and clash.kind in ("type", "class", "occurs"):
        return answers(cx, actual, expected, span, why)
    p = printer(cx)
    shown, wanted = p.type(actual), p.type(of_one_kind(expected, actual))
    if clash.kind == "occurs" and answer(cx, p) in (shown, wanted):
        return answers(cx, actual, expected, span, why or Why())
    if why is not None and why.recursive:
        return recursive_use(cx, clash, shown, wanted, span, why)
    labels = why.labels(phrase(expected) or wanted) if why else ()
    match clash.kind:
        case "size":
            return of_sizes(cx, clash, actual, expected, span, why)
        case "occurs" if "'" in shown + wanted:
            return infinite(cx, p.type(clash.left), shown, wanted, span, why)
        case "class" if (error := lacking(cx, clash, actual, expected, span, why)) is not None:
            return error
        case "rigid":
            return rigid(cx, clash, shown, wanted, span, labels)
        case "effect":
            return wanted_pure(cx, span, why.what if why else "")
        case "answer":
            return answers(cx, clash.left, clash.right, span, why or Why())
        case _:
            return of_types(cx, clash, actual, expected, span, why)


def of_sizes(cx, clash: Clash, actual, expected, span: Span, why: Why | None) -> DplError:
    """The error for arrays of two sizes."""
    p = printer(cx)
    shown, wanted, facts = p.type(actual), p.type(of_one_kind(expected, actual)), compared(p, actual, expected)
    labels = why.labels(phrase(expected) or wanted) if why else ()
    left, right = p.size(clash.left), p.size(clash.right)
    place = place_of(why)
    return cx.fail(
        "E0301",
        f"the sizes {left} and {right} differ"
        + ("" if facts or shown == wanted else f": {place} {shown}, where {wanted} is wanted"),
        span,
        note=place if facts else "" if shown == wanted else shown,
        labels=both(span, labels, size_labels(p, clash, clash.left, clash.right)),
        facts=facts,
        helps=(why.ways() if why else ())
        or recursion.at_other_sizes(cx, clash, why, wanted)
        or annotated(p, actual, expected, shown, labels)
        or size_helps(cx, clash.left, clash.right, wanted, why.what if why else ""),
    )


def infinite(cx, part: str, shown: str, wanted: str, span: Span, why: Why | None) -> DplError:
    """The error for a type that would contain itself, by way of an unknown part."""
    helps = (FORGOTTEN_DO,) if at_the_margin(span) else contained(shown, wanted, part)
    sign = negated(why.span) if why and why.span else ()
    title = f"an infinite type: {shown} would have to equal {wanted}"
    return cx.fail("E0206", title, span, labels=why.labels(wanted) if why else (), helps=sign or helps)


def of_types(cx, clash: Clash, actual, expected, span: Span, why: Why | None) -> DplError:
    """The error for two types, or for arrays of two ranks."""
    p = printer(cx)
    shown, wanted, facts = p.type(actual), p.type(of_one_kind(expected, actual)), compared(p, actual, expected)
    labels = why.labels(phrase(expected) or wanted) if why else ()
    sources = both(span, labels, made(actual, shown, span), made(expected, wanted, span))
    title, place = f"expected {wanted}, found {shown}", place_of(why)
    ranks = len(dimensions(actual)[0]), len(dimensions(expected)[0])
    if 0 not in ranks and ranks[0] != ranks[1] and clash.left is not prune(actual):
        note = f"{place} of rank {ranks[0]}, not {ranks[1]}"
        ways = particular(why) or by_rows(span, why or Why(), ranks) or annotated(p, actual, expected, shown, labels)
        return cx.fail("E0302", title, span, note=note, labels=sources, helps=ways)
    return cx.fail(
        "E0201",
        title,
        span,
        note=f"{place} {shown}",
        labels=sources,
        facts=facts,
        helps=of_total(span, actual, expected)
        or for_each(span, why, actual, expected)
        or absent(span, wanted)
        or tighter(span.text)
        or conversions(actual, expected, span)
        or otherwise_annotated(actual, shown, wanted, labels),
    )


def place_of(why: Why | None) -> str:
    return f"{why.what} is" if why and why.what else "this is"


def of_total(span: Span, actual, expected) -> tuple[str, ...]:
    """A help for a function that gives an array where one that gives a number is wanted, as of a loss."""
    wanted, found = prune(expected), prune(actual)
    if type(wanted) is not ty.Fn or type(found) is not ty.Fn or not span.text.replace(".", "").isidentifier():
        return ()
    one, many = prune(wanted.result), prune(found.result)
    is_number = one in ty.FLOATS or (type(one) is Meta and "scalar" in one.classes)
    return (f"one number of several:  (fun x -> mean ({span.text} x))",) if is_number and type(many) is ty.Arr else ()


def for_each(span: Span, why: Why | None, actual, expected) -> tuple[str, ...]:
    """The ways out that are known; rather than the whole type of a function of numbers, that for each of an array."""
    ways = why.ways() if why else ()
    sizes, element = dimensions(actual)
    if why is None or len(sizes) != 1 or not would_do(prune(element), prune(expected)):
        return ways
    return particular(why) or by_rows(span, why, (1, 0)) or ways


def would_do(element, expected) -> bool:
    """Whether an element of an array may be the number that is expected: both are floats, or both integers."""
    known = [t for t in (element, expected) if type(t) is not Meta]
    is_float = any(t in FLOATS if type(t) is not Meta else "real" in t.classes for t in (element, expected))
    return all(t in NUMBERS for t in known) and not (is_float and any(t not in FLOATS for t in known))


def particular(why: Why | None) -> tuple[str, ...]:
    """The ways out, unless they only show the whole type of a function."""
    return tuple(way for way in (why.ways() if why else ()) if not way.startswith("the whole type"))


def of_one_kind(expected, actual):
    """The array type that is expected, with the elements that there are, if any will do: sizes differ, or the rank."""
    (sizes, element), (others, own) = dimensions(expected), dimensions(actual)
    element = prune(element)
    if type(element) is not Meta or not sizes or (len(sizes) != len(others) and "scalar" not in element.classes):
        return expected
    if len(sizes) != len(others) and own not in NUMBERS:
        own = ty.F64
    for size in reversed(sizes):
        own = ty.Arr(own, size)
    return own


def contained(shown: str, wanted: str, name: str) -> tuple[str, ...]:
    """Helps for two types of which one would contain the other, at their parts called `name`."""
    if shown.count("[") != wanted.count("["):
        return ("one is an array of the other: is an element meant, or an array, in both places?",)
    if name not in (shown, wanted):
        return (f"compare them part by part: where one has {name}, the other has a type with {name} in it",)
    return (
        "a type that contains itself needs a declaration:  type t = Roll of ...",
        "a recursive function has one type inside its own definition",
    )


def absent(span: Span, wanted: str) -> tuple[str, ...]:
    """A help for `let x : float = None`."""
    return (f"what may be missing has the type  {wanted} option",) if span.text == "None" else ()


def lacking(cx, clash: Clash, actual, expected, span: Span, why: Why | None) -> DplError | None:
    """The error for a type that is not in a class; None if the two types say enough."""
    p = printer(cx)
    shown, wanted = phrase(actual) or p.type(actual), phrase(expected) or p.type(expected)
    labels = why.labels(wanted) if why else ()
    place = f"{why.what} is" if why and why.what else "this is"
    if phrase(actual) or phrase(expected):
        return cx.fail(
            "E0201",
            f"expected {wanted}, found {shown}",
            span,
            note=f"{place} {shown}",
            labels=both(span, labels, class_labels(clash), made(actual, shown, span), made(expected, wanted, span)),
            helps=for_each(span, why, actual, expected) or tighter(span.text) or conversions(actual, expected, span),
        )
    if actual is expected or clash.right not in NUMERIC:
        wanted = PHRASES[clash.right].partition(" (")[0] if type(prune(expected)) is Meta else wanted
        labels = why.labels(wanted) if why else ()
        return cx.fail(
            class_code(clash.right),
            f"{p.type(clash.left)} is not {PHRASES[clash.right]}",
            span,
            note=f"{shown} here",
            labels=both(span, labels, class_labels(clash)),
            helps=component(p, clash, actual)
            or held(cx, p, clash.left)
            or contents(clash)
            or of_several(clash, why)
            or (why.ways() if why and type(prune(actual)) is ty.Fn else ())
            or (missing(span.text) if prune(clash.left) is prune(actual) and is_call(actual, span) else ()),
        )
    if clash.right == "real" and type(prune(actual)) is ty.Arr:
        sizes, number = dimensions(actual)
        if prune(number) is not prune(clash.left):  # `(zeros 3 : int[3])`
            wanted, helps = p.type(expected), ("whole numbers:  fill n 0, or  int xs  of an array of floats",)
        else:
            wanted, helps = "an array of floats", ("make floats of the integers:  map float xs",) * (len(sizes) == 1)
        helps = (why.ways() if why else ()) or helps
        return cx.fail("E0201", f"expected {wanted}, found {shown}", span, note=f"{place} {shown}", helps=helps)
    return None


def is_call(t, span: Span) -> bool:
    """Whether a function at `span` is what a call or a name gives, rather than one that is written there."""
    return type(prune(t)) is ty.Fn and not span.text.lstrip("( ").startswith("fun ")


def held(cx, p: Printer, t) -> tuple[str, ...]:
    """A help that names the field or constructor of a declared type that holds a function or a reference."""
    t = prune(t)
    if type(t) is not ty.Con or not (found := cx.solver.kinds.holder(t)):
        return ()
    names, inside = found
    if not names:  # a bare reference
        return ()
    what = "a function" if type(inside) is ty.Fn else "a reference"
    return (f"{p.type(t)} holds {what}:  {'.'.join(names)} : {p.type(inside)}",)


def contents(clash: Clash) -> tuple[str, ...]:
    """A help for the comparison of two references."""
    return ("compare what they hold:  !a = !b",) if clash.right == "data" and is_reference(prune(clash.left)) else ()


def of_several(clash: Clash, why: Why | None) -> tuple[str, ...]:
    """A help for `jvp f (x, y)` of a function of two arguments."""
    found = re.fullmatch(r"argument 1 of `(jvp|vjp)`", why.what) if why and clash.right == "active" else None
    if found is None or type(prune(clash.left)) is not ty.Fn:
        return ()
    return (f"what it is given takes more arguments; by both:  {found[1]} (fun (x, y) -> f x y) (x, y) ...",)


def component(p: Printer, clash: Clash, actual) -> tuple[str, ...]:
    """A help that names the component of a tuple by which nothing can be differentiated."""
    kind, whole, part = clash.right, prune(actual), prune(clash.left)
    if kind != "diff" or type(whole) is not ty.Tup or not (type(part) is ty.Fn or is_reference(part)):
        return ()
    what = "a function" if type(part) is ty.Fn else "a reference"
    place = next((i for i, item in enumerate(whole.items) if prune(item) is part), None)
    if place is None:  # it lies deeper
        return (f"{p.type(whole)} holds {what}: differentiate by the rest alone, and capture it",)
    names = [f"x{i}" for i in range(1, len(whole.items) + 1)]
    rest = names[:place] + names[place + 1 :]
    pattern = rest[0] if len(rest) == 1 else f"({', '.join(rest)})"
    return (
        f"component {place + 1} is {what}: differentiate by the rest alone, and capture it:",
        f"grad (fun {pattern} -> f ({', '.join(names)})) {pattern}",
    )


def compared(p: Printer, actual, expected) -> tuple[tuple[str, str], ...]:
    """Both types with the differences marked, if the types are long and only a part differs."""
    texts = side_by_side(p, expected, actual)
    return tuple(zip(("expected", "found"), texts)) if texts and max(map(len, texts)) > 30 else ()


def recursive_use(cx, clash: Clash, shown: str, wanted: str, span: Span, why: Why) -> DplError:
    """The error for a recursive function that its own definition uses at another type."""
    helps = ("inside its own definition a function has one type, and as many arguments as it takes",)
    if clash.kind == "size":
        helps = (
            "the length is part of an array's type; a list grows, and is written with semicolons:  [x;]  [x; y]",
            f"where the length varies, annotate the result:  let rec {why.recursive} ... : t[?] = ...",
        )
    return cx.fail(
        "E0206" if clash.kind == "occurs" else "E0201",
        f"`{why.recursive}` is {shown}, but its recursive definition uses it as {wanted}",
        span,
        labels=(Label(why.span, "used here"),) if why.span else (),
        helps=helps,
    )


def class_code(cls: str) -> str:
    """The code of the error that a type is not in a class."""
    return {"diff": "E0402", "active": "E0403"}.get(cls, "E0204")


def rigid(cx, clash: Clash, shown: str, wanted: str, span: Span, labels) -> DplError:
    p = printer(cx)
    name = next((p.type(t) for t in (clash.left, clash.right) if type(t) is Meta and t.rigid), "'a")
    other = clash.right if type(clash.left) is Meta and clash.left.rigid else clash.left
    rigids = any(type(t) is Meta and t.rigid for t in (clash.left, clash.right))
    way = f"literals such as 0.5 are {name} too, and so is an int n as  {OF_INT.format('n')}"
    literals = (way,) if rigids and prune(other) in FLOATS else ()
    return cx.fail(
        "E0210",
        f"the annotation says {name}, any type, but it must be {p.type(other)} here",
        span,
        note=f"{shown}, where {wanted} is wanted",
        labels=labels,
        helps=("write the actual type in the annotation, or leave it out", *literals),
    )
