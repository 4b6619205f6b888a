"""The parts of type errors: why a type is expected, labels for the places of types, helps."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable

from dpl.core import ty
from dpl.diagnostics import Diagnostic, Label
from dpl.node import node
from dpl.regex import regex
from dpl.source import NOWHERE, Span
from dpl.types.messages.pretty import Printer
from dpl.types.solve.kinds import PHRASES
from dpl.types.solve.meta import Meta, dimensions, prune
from dpl.types.solve.unify import Clash

NUMBERS = frozenset(ty.Con(name) for name in (*ty.INTS, *ty.FLOATS))
FLOATS = frozenset(ty.Con(name) for name in ty.FLOATS)
ANNOTATED = ("as annotated", "as claimed")
OF_INT = "of_int {}"  # a float of any type
DECLARES = frozenset(("let", "and", "do", "export", "expect", "in", "then", "else", "with", "when"))
FORGOTTEN_DO = "a declaration that runs something begins with  do"
LITERAL = regex(r"(\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?)[iuf]\d+")  # a number with a suffix
LARGEST = {"f16": "65504.0", "f32": "3.4028235e+38", "f64": "1.7976931348623157e+308"}
INNERMOST = regex(r'"[^"]*"|[(\[{][^][(){}"]*[])}]')  # a string, or brackets without brackets inside


@node
class Why:
    """Why a type is expected: `what` (`the condition of if`) expects it, and `span` is the place that says so.

    `answer` marks the answer type of a `reset`.  `recursive` names a function whose type comes from its use inside its
    own definition.  `help` is a way out, or finds one when it is asked for."""

    what: str = ""
    span: Span | None = None
    note: str = ""
    answer: bool = False
    recursive: str = ""
    help: str | Callable[[], str] = ""

    def ways(self) -> tuple[str, ...]:
        """The ways out."""
        found = self.help() if callable(self.help) else self.help
        return (found,) if found else ()

    def labels(self, wanted: str = "") -> tuple[Label, ...]:
        """A label at the place that the expectation comes from."""
        if self.span is None:
            return ()
        return (Label(self.span, self.note or (f"this wants {wanted}" if wanted else self.what)),)


def printer(cx) -> Printer:
    """A printer of types, which keeps the names that it has given to unknowns."""
    return Printer(cx.solver.sizes, cx.module)


def phrase(t) -> str:
    """An unknown type in words, if only its class is known; else ""."""
    t = prune(t)
    if type(t) is not Meta or t.rigid or not t.classes:
        return ""
    if "scalar" in t.classes:
        return "a float" if "real" in t.classes else PHRASES["integer"] if "integer" in t.classes else "a number"
    return next((PHRASES[c] for c in ("real", "integer", "num") if c in t.classes), "")


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


def is_sequence(t) -> bool:
    """True for arrays and lists."""
    return type(t) is ty.Arr or (type(t) is ty.Con and t.name == "list")


def is_reference(t) -> bool:
    return type(t) is ty.Con and t.name == "ref"


def is_option(t) -> bool:
    return type(t) is ty.Con and t.name == "Prelude.option"


def conversions(actual, expected, span: Span | None = None) -> tuple[str, ...]:
    """Helps for two types that clash: how to convert one, at `span`, to the other."""
    a, e = prune(actual), prune(expected)
    kinds = {"list" if type(t) is ty.Con and t.name == "list" else "array" for t in (a, e) if is_sequence(t)}
    if len(kinds) == 2:
        return sequences(a, span)
    if is_reference(a) and not is_reference(e) and type(e) is not Meta:
        return ("the content of a reference:  !r",)
    if is_reference(e) and (phrase(a) or a in NUMBERS or type(a) is ty.Arr):
        return ("a reference is made by  ref e  and changed by  r := e",)
    if is_option(a) and type(e) is not Meta and not is_option(e):
        return taken_apart(a)
    if is_option(e) and (phrase(a) or a in NUMBERS or type(a) is ty.Arr):
        return ("what is there is an option as  Some e",)
    if e == ty.BOOL and (phrase(a) or a in NUMBERS):
        return ("a condition is true or false:  x <> 0",)
    if type(a) is ty.Fn and type(e) is not ty.Fn and (type(e) is not Meta or phrase(e)):
        return unapplied(span)
    if type(a) is ty.Fn and type(e) is ty.Fn and (many := parameters(e)) != parameters(a):
        names = " ".join("xyzuvw"[:many])
        return (f"a function of {many} argument{'s' * (many > 1)} is wanted:  fun {names} -> ...",) if many <= 6 else ()
    if ty.STRING in (a, e) and (phrase(a) or phrase(e) or {a, e} & NUMBERS):
        return of_string(a, e, span)
    (of, one), (wanted, other) = dimensions(a), dimensions(e)
    one, other = prune(one), prune(other)  # asked first whether they are names: large types take long to hash
    if len(of) == len(wanted) and isinstance(one, ty.Con) and isinstance(other, ty.Con) and {one, other} <= NUMBERS:
        return (of_number(other, "" if of or span is None else span.text),)
    if type(a) is Meta and "real" in a.classes and type(e) is ty.Con and e.name in ty.INTS:
        return ("a literal with a point is a float; leave the point out, or convert with  int (...)",)
    return of_parts(a, e)


def of_number(wanted: ty.Con, text: str) -> str:
    """A help for a number of another type than the `wanted` one, written as `text`."""
    name = {"i64": "int", "f64": "float"}.get(wanted.name, wanted.name)
    if wanted in FLOATS and (number := LITERAL.fullmatch(text)):
        if overflows(float(number[1].replace("_", "")), wanted.name):
            return f"the largest {name} is {LARGEST[wanted.name]}"
        return f"the same number as {name}:  {number[1]}{name.removeprefix('float')}"
    return f"there are no implicit conversions; write  {name} (...)"


def overflows(value: float, name: str) -> bool:
    """Whether this type of floats has only an infinity for a number."""
    try:
        struct.pack({"f16": "<e", "f32": "<f", "f64": "<d"}[name], float(value))
    except OverflowError:
        return True
    return math.isinf(value)


def of_parts(a, e) -> tuple[str, ...]:
    """Helps for two types that differ inside."""
    if type(a) is ty.Tup and type(e) is ty.Tup and mixed(a.items, e.items):
        return ("here all parts are numbers, or all arrays of one length; for each element:  [for x in xs -> e]",)
    return ("a list is written with semicolons, also one of one element:  [e;]",) if has_array_for_list(a, e) else ()


def mixed(actual, expected) -> bool:
    """Whether a tuple has numbers and arrays where all are to be of one kind: `Dist.Normal (means, 1.0)`."""
    given, wanted = ([kind(prune(t)) for t in items] for items in (actual, expected))
    return len(given) == len(wanted) and set(given) == {"number", "array"} and len(set(wanted)) == 1


def kind(t) -> str:
    return "array" if type(t) is ty.Arr else "number" if is_number(t) else ""


def is_number(t) -> bool:
    """True for the types of numbers, and for an unknown that some class allows to be one only."""
    return bool(phrase(t)) or t in NUMBERS


def of_string(a, e, span: Span | None) -> tuple[str, ...]:
    """Helps for a string where a number is wanted, and the reverse."""
    if a != ty.STRING:
        return ('`show` makes a string of any value; $"{x:.2f}" puts one into a text',)
    is_text = span is not None and re.match(r'\$?"\s*[^-+.\d\s]', span.text)  # no number was meant
    return () if is_text else (number_of_string(e in NUMBERS and e.name in ty.INTS),)


def has_array_for_list(actual, expected) -> bool:
    """Whether there is an array in one type where another has a list, inside of both."""
    a, e = prune(actual), prune(expected)
    if type(a) is ty.Arr and type(e) is ty.Con and e.name == "list":
        return True
    inside, wanted = ty.children(a), ty.children(e)
    alike = type(a) is type(e) and len(inside) == len(wanted) and getattr(a, "name", "") == getattr(e, "name", "")
    return alike and any(map(has_array_for_list, inside, wanted))


def parameters(t) -> int:
    """How many arguments a function takes."""
    count = 0
    while type(t := prune(t)) is ty.Fn:
        count, t = count + 1, t.result
    return count


# A name or a number after an argument.
FOLLOWING = regex(r" +(?!(?:in|then|else|do|with|and|of|for|while|when|is)\b)([A-Za-z_\d][\w.']*)")


def unapplied(span: Span | None) -> tuple[str, ...]:
    """Helps for a function, at `span`, where a value is wanted: `area Circle 2.0` means `area (Circle 2.0)`."""
    if span is not None and span.text.lstrip("( ").startswith("fun "):
        return ()
    following = FOLLOWING.match(span.source.text, span.end) if span is not None else None
    if following and span and re.fullmatch(r"[\w.']+", span.text):
        return (f"an application that is an argument is put in parentheses:  ({span.text} {following[1]})",)
    return missing(span.text if span is not None else "")


def missing(text: str) -> tuple[str, ...]:
    """Helps for an application that lacks an argument: `max xs`, or any other."""
    of_two = re.match(r"\(*(max|min)\b", text)
    if of_two:
        return (f"`{of_two[1]}` is of two numbers; of the elements of an array:  {of_two[1]}imum xs",)
    return ("this is a function: is an argument missing?",)


def printed(part: str, span: Span) -> Diagnostic:
    """The warning about a function that is printed: `max [1, 2]` lacks an argument, as Python's does not."""
    of_two = re.match(r"\(*(max|min)\b", span.text)
    ways = (f"of the elements of an array:  {of_two[1]}imum xs",) if of_two else ()
    helps = ("is an argument missing?", *ways, 'if that is meant, say so:  print_string "<fun>"')
    return Diagnostic("W0207", f"this prints  <fun> , as {part} a function", span, helps=helps)


def sequences(actual, span: Span | None) -> tuple[str, ...]:
    """Helps for a list where an array is wanted, and the reverse."""
    if type(actual) is ty.Arr and actual.size == ty.Size(1) and span and re.match(r"\[(?!for\b)", span.text):
        return ("a list of one element ends with a semicolon:  [e;]",)
    return (converted(type(actual) is ty.Arr, span),)


def converted(is_array: bool, span: Span | None) -> str:
    """How an array at `span` is written as a list, or made one; or a list as an array."""
    text = span.text if span is not None else ""
    if re.match(r"\[(?!\s*for\b)", text):
        return "a list is written with semicolons:  [a; b]" if is_array else "an array is written with commas:  [a, b]"
    made, unmade = ("of", "to") if is_array else ("to", "of")
    if back := re.match(rf"\(?List\.{unmade}_array ", text):
        return f"without  {back[0].strip('( ')}  it is {'a list' if is_array else 'an array'}"
    given = as_argument(text) if 0 < len(text) < 30 and "\n" not in text else "(...)"
    return f"{'a list' if is_array else 'an array'} of it:  List.{made}_array {given}"


def annotated(p: Printer, actual, expected, shown: str, labels: tuple[Label, ...]) -> tuple[str, ...]:
    """Helps for a value of another rank, or of a type other than its annotation."""
    ranks = len(dimensions(actual)[0]), len(dimensions(expected)[0])
    if ranks == (1, 2):
        outer, inner = (p.size(size) for size in dimensions(expected)[0])
        return (f"rows are made by  fill {outer} (zeros {inner}) , or of the elements of an array by  reshape",)
    said = any(label.text in ANNOTATED for label in labels)
    return (f"its type is  {shown} : annotate that",) if said and "?" not in shown and "-" in shown else ()


def otherwise_annotated(actual, shown: str, wanted: str, labels: tuple[Label, ...]) -> tuple[str, ...]:
    """A help for a value of another type than its annotation, which no conversion mends."""
    said = any(label.text in ANNOTATED for label in labels) and not phrase(actual) and not re.search("['?]", shown)
    return (f"its type is  {shown} : annotate that, or write a value of the type  {wanted}",) if said else ()


def by_rows(span: Span, why: Why, ranks: tuple[int, int]) -> tuple[str, ...]:
    """A help for an argument, at `span`, that has a dimension more or less than its function takes."""
    found = re.fullmatch(r"argument (\d+) of `([\w.']+)`", why.what)
    if found is None or why.span is None:
        return ()
    before, after = span.source.text[why.span.start : span.start], span.source.text[span.end :]
    is_whole = before.startswith(found[2]) and len(before) < 40 and "\n" not in before
    call = before if is_whole else f"{found[2]} {'... ' * (found[1] != '1')}"
    others = " ..." if re.match(r" +(?!(in|then|else|do|with|and|of)\b)[\w(\[\"]", after) else ""
    given = span.text if len(span.text) < 30 and "\n" not in span.text else "e"
    if found[2] == "Linalg.diag":  # NumPy's `diag` is of both
        return (f"the diagonal of a matrix:  Linalg.diagonal {as_argument(given)}",)
    if ranks == (1, 2):
        return (f"a table of this one row:  {call}[{given}]{others}",)
    one = "row" if ranks[1] else "x"
    each = f"for each{' row' if ranks[1] else ''}:  [for {one} in {given} -> {call}{one}{others}]"
    is_all = ranks == (2, 1) and call.count(" ") == 1 and not others
    whole = (f"of all elements:  {call}(flatten {as_argument(given)})",) if is_all else ()
    return (each, *whole) if ranks[0] == ranks[1] + 1 else ()


GROWS = "what grows is a list, which becomes an array in the end:  List.to_array (xs ++ [x;])"
BRANCHES = "a size that a branch decides:  let f (xs : float[n]) : float[?] = ..."
SHRINKS = "what shrinks is the argument of a recursive function:  let rec go (xs : float[?]) = ... go (drop 1 xs)"


def size_helps(cx, left: ty.Size, right: ty.Size, wanted: str, place: str = "") -> tuple[str, ...]:
    """Helps for two sizes that differ, in what `place` says."""
    for size, other in ((left, right), (right, left)):
        name = printer(cx).size(size)
        scheme = getattr(cx.layers[-1].values.get(name), "scheme", None)
        if not other.terms and scheme is not None and prune(scheme.ty) == ty.I64:
            return (f"`{name}` is any size in a type, not the value `{name}`: write  {other.const}  there, or  ?",)
    if place == "the body of the loop" and left.terms == right.terms:
        return ("the state of a loop keeps its size", SHRINKS if left.const < right.const else GROWS)
    asserted = f"if they are known to be equal, say so:  (e :> {wanted})  is checked when it runs"
    equal = () if left.terms == right.terms else (asserted,)
    if place.endswith("branch") or place == "this case":
        return (*equal, BRANCHES)
    if left.terms and left.terms == right.terms:
        return ("an array that grows has no fixed size: make it at its full size, or collect a list",)
    return equal


def number_of_string(whole: bool) -> str:
    """A help: how a string becomes a number."""
    name, none = ("to_int", "0") if whole else ("to_float", "0.0")
    return f"the number in a string:  match String.{name} s with | Some x -> x | None -> {none}"


def taken_apart(t) -> tuple[str, ...]:
    """Helps for indexing what is no array: how to take such a value apart."""
    match t:
        case ty.Tup((_, _)):
            return ("take it apart:  let (a, b) = pair", "or use  fst pair  and  snd pair")
        case ty.Tup(items):
            return (f"take it apart:  let ({', '.join(f'x{i}' for i in range(1, len(items) + 1))}) = t",)
        case ty.STRING:
            return ("a part of a string:  String.slice 0 1 s", "its code points:  (String.codes s)[0]")
        case ty.Con("Map.map"):
            return ("the value of a key:  match Map.find k m with | Some v -> ... | None -> ...",)
        case ty.Fn():
            return missing("")
        case ty.Con("list"):
            return ("use `List.nth`, or `List.to_array` first",)
        case _ if is_option(t):
            return ("take it apart:  match x with | Some y -> ... | None -> ...",)
        case _:
            return ()


def at_the_margin(span: Span) -> bool:
    """Is this line one that was to be run, but that was read as a part of the declaration above it?"""
    word = re.match(r"[a-z_]\w*", span.source.line(span.line))
    return word is not None and word[0] not in DECLARES


def negated(head: Span) -> tuple[str, ...]:
    """A help if `head` stands after a minus that belongs to it: `clip x -1.0 1.0` is read as `clip x - (1.0 1.0)`."""
    is_sign = re.search(r"[\w)\]}\"] -$", head.source.text[: head.start])
    return (f"a negative argument is put in parentheses:  (-{head.text})",) if is_sign else ()


def as_argument(text: str) -> str:
    """An expression as it is written as an argument: in parentheses, unless it is a name, a number or one group."""
    rest = text
    while (shorter := INNERMOST.sub("#", rest)) != rest:
        rest = shorter
    return text if re.fullmatch(r"#|[\w.']+", rest) else f"({text})"
