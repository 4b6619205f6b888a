"""Type errors -> messages: what did not fit, the actual types, where each came from, and a way out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dpl.core import formats, ty
from dpl.diagnostics import Call, DplError, Label
from dpl.node import node
from dpl.source import NOWHERE, Span
from dpl.types.messages.compare import side_by_side
from dpl.types.messages.pretty import Printer
from dpl.types.solve.constraints import Constraint
from dpl.types.solve.kinds import PHRASES
from dpl.types.solve.meta import Meta, dimensions, is_scalar, prune, prune_effect
from dpl.types.solve.unify import Clash

FLOATS = tuple(ty.Con(name) for name in ty.FLOATS)
NUMBERS = frozenset(ty.Con(name) for name in (*ty.INTS, *ty.FLOATS))
NUMERIC = ("num", "real", "integer", "scalar")
SYMBOL = re.compile(r"[!$%&*+\-./:<=>?@^|~]+")
ANNOTATED = ("as annotated", "as claimed")
ANSWER = "a `shift` and its `reset` must have one answer type (answer-type modification is not supported)"


@node
class Why:
    """Why a type is expected: `what` (`the condition of if`) expects it, and `span` is the place that says so.

    `answer` marks the answer type of a `reset`.  `recursive` names a function whose type comes from its use inside its
    own definition.  `help` is a way out."""

    what: str = ""
    span: Span | None = None
    note: str = ""
    answer: bool = False
    recursive: str = ""
    help: str = ""

    def labels(self, wanted: str = "") -> tuple[Label, ...]:
        """A label at the place that the expectation comes from."""
        if self.span is None:
            return ()
        return (Label(self.span, self.note or (f"this wants {wanted}" if wanted else self.what)),)


def printer(cx) -> Printer:
    return Printer(cx.solver.sizes, cx.module)


def mismatch(cx, clash: Clash, actual, expected, span: Span, why: Why | None) -> DplError:
    """The error for a value of type `actual` where `expected` is wanted."""
    if why is not None and why.answer and clash.kind in ("type", "class", "occurs"):
        return answers(cx, actual, expected, span, why)
    p = printer(cx)
    shown, wanted = p.type(actual), p.type(expected)
    if clash.kind == "occurs" and answer(cx, p) in (shown, wanted):
        return answers(cx, actual, expected, span, why or Why())
    if why is not None and why.recursive:
        return recursive_use(cx, clash, shown, wanted, span, why)
    labels = why.labels(phrase(expected) or wanted) if why else ()
    place = f"{why.what} is" if why and why.what else "this is"
    facts = compared(p, actual, expected)
    match clash.kind:
        case "size":
            left, right = p.size(clash.left), p.size(clash.right)
            return cx.fail(
                "E0301",
                f"the sizes {left} and {right} differ"
                + ("" if facts else f": {place} {shown}, where {wanted} is wanted"),
                span,
                note=place if facts else shown,
                labels=both(span, labels, size_labels(p, clash, clash.left, clash.right)),
                facts=facts,
                helps=annotated(p, actual, expected, shown, labels) or size_helps(clash.left, clash.right, wanted),
            )
        case "occurs" if "'" in shown + wanted:
            return cx.fail(
                "E0206",
                f"an infinite type: {shown} would have to equal {wanted}",
                span,
                labels=labels,
                helps=(
                    "a type that contains itself needs a declaration:  type t = Roll of ...",
                    "a recursive function has one type inside its own definition",
                ),
            )
        case "class" if phrase(actual) or phrase(expected):
            shown, wanted = phrase(actual) or shown, phrase(expected) or wanted
            return cx.fail(
                "E0201",
                f"expected {wanted}, found {shown}",
                span,
                note=f"{place} {shown}",
                labels=both(span, labels, class_labels(clash), made(actual, shown, span), made(expected, wanted, span)),
                helps=(why.help,) if why and why.help else conversions(actual, expected),
            )
        case "class" if actual is expected or clash.right not in NUMERIC:
            part = p.type(clash.left)
            return cx.fail(
                class_code(clash.right),
                f"{part} is not {PHRASES[clash.right]}",
                span,
                note=f"{shown} here",
                labels=both(span, labels, class_labels(clash)),
            )
        case "rigid":
            return rigid(cx, clash, shown, wanted, span, labels)
        case "effect":
            return wanted_pure(cx, span, why.what if why else "")
        case "answer":
            return answers(cx, clash.left, clash.right, span, why or Why())
        case _:
            pass
    if clash.kind == "class" and clash.right == "real" and type(prune(actual)) is ty.Arr:
        helps = ("make floats of the integers:  map float xs",) if len(dimensions(actual)[0]) == 1 else ()
        title = f"expected an array of floats, found {shown}"
        return cx.fail("E0201", title, span, note=f"{place} {shown}", helps=helps)
    if type(prune(actual)) is ty.Arr and type(prune(expected)) is ty.Arr and clash.left is not prune(actual):
        ranks = len(dimensions(actual)[0]), len(dimensions(expected)[0])
        if ranks[0] != ranks[1]:
            return cx.fail(
                "E0302",
                f"expected {wanted}, found {shown}",
                span,
                note=f"{place} of rank {ranks[0]}, not {ranks[1]}",
                labels=both(span, labels, made(actual, shown, span), made(expected, wanted, span)),
                helps=annotated(p, actual, expected, shown, labels),
            )
    return cx.fail(
        "E0201",
        f"expected {wanted}, found {shown}",
        span,
        note=f"{place} {shown}",
        labels=both(span, labels, made(actual, shown, span), made(expected, wanted, span)),
        facts=facts,
        helps=(why.help,) if why and why.help else conversions(actual, expected),
    )


def compared(p: Printer, actual, expected) -> tuple[tuple[str, str], ...]:
    """Both types with the differences marked, if the types are long and only a part differs."""
    texts = side_by_side(p, expected, actual)
    return tuple(zip(("expected", "found"), texts)) if texts and max(map(len, texts)) > 30 else ()


def both(span: Span, labels: tuple[Label, ...], *more: Iterable[Label]) -> tuple[Label, ...]:
    """`labels`, and those of `more` that mark other places.  A label of a part replaces the label of its annotation."""
    found = list(labels)
    for label in (label for some in more for label in some):
        if label.span != span and all(label.span != known.span for known in found):
            found = [known for known in found if known.text not in ANNOTATED or not known.span.contains(label.span)]
            found.append(label)
    return tuple(found)


def size_labels(p: Printer, clash: Clash, *clashing: ty.Size) -> Iterable[Label]:
    """Labels for the places where two clashing sizes come from."""
    for size, place in zip(clashing, clash.places):
        if place is not None and place is not NOWHERE:
            yield Label(
                place, f"size {p.size(size)} comes from here" if p.size(size) != "?" else "a size not known yet"
            )


def class_labels(clash: Clash) -> Iterable[Label]:
    """Labels for the places that require the class which the type lacks."""
    for place in clash.places:
        if place is not None and place is not NOWHERE:
            yield Label(place, f"{PHRASES[clash.right]} is needed because of this")


def made(t, shown: str, span: Span) -> Iterable[Label]:
    """A label for the place where an unknown type was determined."""
    if type(t) is Meta and t.place is not NOWHERE and t.place != span:
        yield Label(t.place, f"because of this it is {phrase(t) or shown}")


def recursive_use(cx, clash: Clash, shown: str, wanted: str, span: Span, why: Why) -> DplError:
    """The error for a recursive function that its own definition uses at another type."""
    return cx.fail(
        "E0206" if clash.kind == "occurs" else "E0201",
        f"`{why.recursive}` is {shown}, but its recursive definition uses it as {wanted}",
        span,
        labels=(Label(why.span, "used here"),) if why.span else (),
        helps=("inside its own definition a function has one type, and as many arguments as it takes",),
    )


def answer(cx, p: Printer) -> str:
    """The answer type that a `shift` has here, or "" if none is known."""
    effect = prune_effect(cx.ambient.effect)
    return p.type(effect.answer) if type(effect) is ty.Ctl else ""


def answers(cx, one, other, span: Span, why: Why) -> DplError:
    """The error for two different answer types."""
    p = printer(cx)
    left, right = phrase(one) or p.type(one), phrase(other) or p.type(other)
    return cx.fail(
        "E0552",
        f"the answer types differ: {left} and {right}",
        span,
        note=f"{why.what} is {left}" if why.what else "",
        labels=both(span, why.labels(), made(one, left, span), made(other, right, span)),
        helps=(ANSWER,),
    )


def phrase(t) -> str:
    """An unknown type in words, if only its class is known; else ""."""
    t = prune(t)
    if type(t) is not Meta or t.rigid or not t.classes:
        return ""
    if "scalar" in t.classes:
        return "a float" if "real" in t.classes else "a number"
    return next((PHRASES[c] for c in ("real", "integer", "num") if c in t.classes), "")


def is_sequence(t) -> bool:
    return type(t) is ty.Arr or (type(t) is ty.Con and t.name == "list")


def conversions(actual, expected) -> tuple[str, ...]:
    """Helps for two types that clash: how to convert one to the other."""
    a, e = prune(actual), prune(expected)
    kinds = {"list" if type(t) is ty.Con and t.name == "list" else "array" for t in (a, e) if is_sequence(t)}
    if len(kinds) == 2:
        return ("lists are written with semicolons, arrays with commas; `List.to_array` and `List.of_array` convert",)
    if (type(a) is ty.Fn) != (type(e) is ty.Fn) and type(a) is ty.Fn and type(e) is not Meta:
        return ("this is a function: is an argument missing?",)
    if ty.STRING in (a, e) and (phrase(a) or phrase(e) or {a, e} & NUMBERS):
        return ('`show` makes a string of any value; $"{x:.2f}" puts one into a text',)
    if type(a) is ty.Con and type(e) is ty.Con and not a.args and not e.args:
        numbers = (*ty.INTS, *ty.FLOATS)
        if a.name in numbers and e.name in numbers:
            name = {"i64": "int", "f64": "float"}.get(e.name, e.name)
            return (f"there are no implicit conversions; write  {name} (...)",)
    if type(a) is Meta and "real" in a.classes and type(e) is ty.Con and e.name in ty.INTS:
        return ("a literal with a point is a float; leave the point out, or convert with  int (...)",)
    return ()


def annotated(p: Printer, actual, expected, shown: str, labels: tuple[Label, ...]) -> tuple[str, ...]:
    """Helps for a value of another rank, or of a type other than its annotation."""
    ranks = len(dimensions(actual)[0]), len(dimensions(expected)[0])
    if ranks == (1, 2):
        outer, inner = (p.size(size) for size in dimensions(expected)[0])
        return (f"rows are made by  fill {outer} (zeros {inner}) , or of the elements of an array by  reshape",)
    said = any(label.text in ANNOTATED for label in labels)
    return (f"its type is  {shown} : annotate that",) if said and "?" not in shown and "-" in shown else ()


def size_helps(left: ty.Size, right: ty.Size, wanted: str) -> tuple[str, ...]:
    if left.terms and left.terms == right.terms:
        return ("an array that grows has no fixed size: make it at its full size, or collect a list",)
    if left.terms or right.terms:
        return (f"if they are known to be equal, say so:  (e :> {wanted})  is checked when it runs",)
    return ()


def class_code(cls: str) -> str:
    return {"diff": "E0402", "active": "E0403"}.get(cls, "E0204")


def rigid(cx, clash: Clash, shown: str, wanted: str, span: Span, labels) -> DplError:
    p = printer(cx)
    name = next((p.type(t) for t in (clash.left, clash.right) if type(t) is Meta and t.rigid), "'a")
    other = clash.right if type(clash.left) is Meta and clash.left.rigid else clash.left
    return cx.fail(
        "E0210",
        f"the annotation says {name}, any type, but it must be {p.type(other)} here",
        span,
        note=f"{shown}, where {wanted} is wanted",
        labels=labels,
        helps=("write the actual type in the annotation, or leave it out",),
    )


def effect(cx, clash: Clash, span: Span, what: str) -> DplError:
    """The error for a call that captures its context where this is not allowed."""
    if clash.kind == "answer":
        return answers(cx, clash.left, clash.right, span, Why())
    effects = [prune_effect(e) for e in (clash.left, clash.right)]
    ctl = next((e for e in effects if type(e) is ty.Ctl), None)
    who = f"`{what}`" if what else "this"
    match cx.ambient.reason:
        case "bulk":
            return cx.fail(
                "E0551",
                f"{who} captures its context by `shift`, which a comprehension cannot allow",
                span,
                labels=(Label(cx.ambient.span, "its elements may be computed in parallel"),),
                helps=("use `List.map`, `fold` or `loop`, which run in order",),
                path=captured(cx, what),
            )
        case "top":
            shown = printer(cx).type(ctl.answer) if ctl is not None else "'a"
            answer = "" if shown.startswith("'") else f"; its answer type is {shown}"
            return cx.fail(
                "E0550",
                f"{who} uses `shift` with no `reset` around it",
                span,
                note=f"captured up to here{answer}",
                helps=("put the part that is to be captured in  reset (...)",),
                path=captured(cx, what),
            )
        case _:
            pass
    return wanted_pure(cx, span, who)


def wanted_pure(cx, span: Span, what: str) -> DplError:
    """The error for a function that captures its context where a pure one is wanted."""
    text = span.source.text[span.start : span.end]
    name, labels = text, ()
    if name not in cx.captures and cx.defining in cx.captures:
        name, place = cx.captures[cx.defining]
        labels = (Label(place, f"`{name}` captures here" if name else "captured here"),) if span.contains(place) else ()
    path = captured(cx, name)
    if path and path[-1].span is not None:
        labels = (*labels, Label(path[-1].span, "captured here"))
    bulk = not any(name in what for name in ("grad", "jvp", "vjp", "diff", "Ad."))
    other = ", or use `List.map`, `fold` or `loop`, which take any function" if bulk else ""
    return cx.fail(
        "E0551",
        "a function that captures its context by `shift` stands where a pure one is wanted",
        span,
        note=f"{what or 'this'} must not capture its context",
        labels=labels,
        path=path,
        helps=(f"put a `reset` inside the function{other}",),
    )


def captured(cx, what: str) -> tuple[Call, ...]:
    """The calls from `what` to the `shift` that captures."""
    steps = []
    while what in cx.captures and len(steps) < 20:
        called, span = cx.captures[what]
        steps.append(Call(what, span, f"calls {called}" if called else "shift"))
        what = called
    return tuple(steps)


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


def relation(cx, clash: Clash, constraint: Constraint) -> DplError:
    """The error for a constraint that cannot hold, with a label for the type of each operand."""
    p = printer(cx)
    span, types = operator(constraint), constraint.types
    shown = [phrase(t) or p.type(t) for t in types[:2]]
    labels = tuple(Label(place, p.type(t)) for place, t in zip(constraint.operands, types))
    a, b = shown if len(shown) == 2 else (shown[0], "")
    match constraint.name, clash.kind:
        case "format", _:
            return unsuited(cx, constraint.extra, clash.right, shown[0], span)
        case "matmul", ("inner" | "product" | "dot") as kind:
            return product(cx, p, kind, clash, types, span, labels)
        case (("lift" | "fits" | "pow" | "elem"), ("type" | "class")) if is_scalar(types[0]) and is_scalar(types[1]):
            title = f"{a} and {b} do not go together" if a != b else f"this works on numbers, not on {a}"
            return cx.fail("E0201", title, span, labels=labels, helps=mixed(types[0], types[1]))
        case _, "class":
            code, phrase_ = class_code(clash.right), PHRASES[clash.right]
            is_function = type(prune(clash.left)) is ty.Fn
            helps = (missing_argument(span),) if is_function else mixed(types[0], types[-1])
            if prune(clash.left) == ty.UNIT:
                helps = ("what a function is given is put in parentheses:  print (a + b)",)
            return cx.fail(code, f"{p.type(clash.left)} is not {phrase_}", span, labels=labels, helps=helps)
        case (("lift" | "fits"), "size"):
            left, right = p.size(clash.left), p.size(clash.right)
            return cx.fail(
                "E0301",
                f"the sizes of {a} and {b} do not match: {left} and {right}",
                span,
                labels=both(span, labels, size_labels(p, clash, clash.left, clash.right)),
                helps=stretched(clash) or size_helps(clash.left, clash.right, b),
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
        case "append", ("type" | "append"):
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


def operator(constraint: Constraint) -> Span:
    """The span of the operator between its operands; if it is not found, the span of the constraint."""
    if len(constraint.operands) < 2:
        return constraint.span
    left, right = sorted(constraint.operands[:2], key=lambda operand: operand.start)
    found = SYMBOL.search(left.source.text, left.end, right.start) if left.source == right.source else None
    return Span(left.source, found.start(), found.end()) if found else constraint.span


def missing_argument(span: Span) -> str:
    """The help for a missing argument; `f -1.0` parses as a subtraction."""
    text = span.source.text
    if span.text == "-" and text[span.start - 1 : span.start].isspace() and not text[span.end : span.end + 1].isspace():
        return "a negative argument is put in parentheses:  f (-x)"
    return "this is a function: is an argument missing?"


def appended(constraint: Constraint, types) -> tuple[str, ...]:
    """Helps for `++`: show a value as a string, or put a single element in brackets."""
    for (one, other), place in zip((types[:2], types[1::-1]), constraint.operands[::-1]):
        if prune(one) == ty.STRING:
            return (f"make a string of it:  show {brackets(place.text)}",)
        if is_sequence(prune(one)) and not is_sequence(prune(other)):
            item = f"[{place.text}]" if type(prune(one)) is ty.Arr else f"[{place.text};]"
            return (f"one element is put in brackets:  {item}",)
        if is_sequence(prune(one)):
            break
    return ()


def brackets(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+|\(.*\)|\[.*\]", text, re.DOTALL) else f"({text})"


def stretched(clash: Clash) -> tuple[str, ...]:
    """A help for users of NumPy, which repeats a dimension of size 1."""
    if any(not size.terms and size.const == 1 for size in (clash.left, clash.right)):
        return ("sizes of 1 do not stretch: a number is repeated, or a row:  matrix + row",)
    return ()


def mixed(one, other) -> tuple[str, ...]:
    """Helps for two operands of different types: how to make them fit."""
    one, other = prune(one), prune(other)
    if ty.STRING in (one, other):
        return ("strings are appended with  ++ , and made of numbers with  show x",)
    for a, b in ((one, other), (other, one)):
        if type(a) is ty.Con and a.name in ty.INTS and (b in FLOATS or (type(b) is Meta and "real" in b.classes)):
            return ("there are no implicit conversions: make the integer a float with  float (...)",)
    return conversions(one, other)


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
            helps=size_helps(clash.right[0], clash.right[1], b),
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
