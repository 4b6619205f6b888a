"""Syntax errors in the heads of definitions, in parameters, patterns and types, as other languages write them."""

from __future__ import annotations

from collections.abc import Callable

from dpl import resources
from dpl.diagnostics import Diagnostic, Edit
from dpl.node import replace
from dpl.source import Span
from dpl.syntax.errors.place import Place
from dpl.syntax.foreign import LAMBDA, STARTS, TYPE_WORDS, WORDS, table
from dpl.syntax.lexer import Token

SUM_TYPE = "a value of several types:  type t = A of float | B of int"
MISTYPED_LET = frozenset(("lte", "elt", "etl", "le", "lt", "ket", "lrt", "lett", "leet", "llet"))
STARS = {
    "~": ("parameters have no labels", "they stand one after the other:  let f x y = e"),
    "?": ("no parameter may be left out", "what may be missing is an option:  None  or  Some x"),
    "*": ("a function takes a fixed number of arguments", "any number of values:  let f (xs : float[n]) = e"),
    "**": ("arguments have no names", "values with names are a record:  let f (r : settings) = e"),
}


def _signature(place: Place) -> Diagnostic | None:
    """`f :: int -> int` or `x : int = 3` at the start of a declaration."""
    if not _at_start(place) or place.token.kind != "LOWER" or place.after.value not in ("::", ":"):
        return None
    name = place.token.value
    if any(t.value == "=" for t in _line(place)):
        return _with_let(place, f"let {name} : int = e")
    title = "the type of a function stands in its definition"
    return place.error("E0106", title, f"let {name} (x : int) : int = e", at=place.span(place.after))


def _equation(place: Place) -> Diagnostic | None:
    """`x = 6`, `f x = e`, `xs[0] = 5`, `x += 1` at the start of a declaration."""
    if not _at_start(place) or place.token.kind != "LOWER" or place.token.value in _NO_NAMES:
        return None
    name, line = place.token.value, _line(place)
    stop = next((i for i, t in enumerate(line) if t.value in ("=", "+=", "-=", "*=", "/=", ":=")), 0)
    if not stop or any(t.kind not in _OF_PATTERNS for t in line[:stop]):
        return None
    if name in MISTYPED_LET and line[1].kind == "LOWER":
        return place.error("E0101", f"there is no `{name}` in DPL", f"did you mean  let {line[1].value} ... ?")
    if line[1].kind == "INDEX":
        title = "an array does not change"
        return place.error("E0106", title, f"one with another element:  let {name} = {{ {name} with [i] = e }}")
    if line[1].kind == "DOT":
        title, field = "a record does not change", line[2].value
        return place.error("E0106", title, f"one with another field:  let {name} = {{ {name} with {field} = e }}")
    if line[stop].value == ":=":
        return place.error("E0101", "a declaration that runs something begins with `do`", f"do {name} := e")
    if line[stop].value != "=":
        help_ = f"a new one:  let {name} = {name} {str(line[stop].value)[0]} e"
        return place.error("E0106", "a name never changes its value", help_, "a variable:  let r = ref e")
    cases = any(t.kind in ("INT", "FLOAT", "UPPER") for t in line[1:stop])
    ways = (f"by cases:  let rec {name} x = match x with | 0 -> a | n -> b",) if cases else ()
    return _with_let(place, f"let {name} = e" if stop == 1 else f"let {name} x = e", *ways)


def _with_let(place: Place, *helps: str) -> Diagnostic:
    at = place.span(place.token)
    error = place.error("E0101", "a definition begins with `let`", *helps)
    return replace(error, edits=(Edit(Span(place.source, at.start, at.start), "let "),))


def _result(place: Place) -> Diagnostic | None:
    """`let f (x : float) -> float = e` and `let f :: float -> float = e`."""
    if not place.due("=") or place.inside("let", "fun", "(", "=") != "let":
        return None
    at, found = place.span(place.token), place.token.value
    cell = place.tokens[max(place.number - 2, 0)]
    if cell.value == "::":  # it was read as a pattern
        at = place.span(cell)
        error = place.error("E0106", "a type follows `:`, not `::`", "let x : float = e", at=at)
        return replace(error, edits=(Edit(at, ":"),))
    if found == "->" and place.due(":") and any(t.value == "=" for t in _line(place)[1:]):
        error = place.error("E0106", "the type of the result follows `:`", "let f (x : int) : int = e")
        return replace(error, edits=(Edit(at, ":"),))
    return None


def _parameter(place: Place) -> Diagnostic | None:
    """Parameters with labels, defaults or stars, and type variables that are declared."""
    token, value = place.token, str(place.token.value)
    if value == "=" and place.due(")") and place.inside("(", "[", "{") == "(" and _heads(place, "(") == "let":
        title = "a parameter has no default value"
        return place.error("E0106", title, "one function without it:  let f x = g x 1.0", STARS["?"][1])
    if not place.due("=") or _heads(place, "let") != "let" or place.inside("(", "[", "{"):
        return None
    if value == "<" and place.before.kind == "LOWER" and place.before.end == token.start:
        name = place.before.value
        return place.error("E0106", "type variables need no declaration", f"let {name} (x : 'a) = e")
    if value in STARS and place.after.start == token.end and place.after.kind in ("LOWER", "LPAR"):
        return place.error("E0106", STARS[value][0], STARS[value][1])
    return None


def _heads(place: Place, nearest: str) -> str:
    """`let` if the head of a definition is not finished, and its bracket, if any, is the parameter's."""
    found = place.inside("let", "fun", "=", "->")
    return found if nearest == "let" or place.inside("(", "let") == "(" else ""


def _tuple_without_brackets(place: Place) -> Diagnostic | None:
    """A comma where a tuple needs its parentheses: `let x, y = t`, `fun x, y -> e`, `A of float, float`."""
    if place.token.kind != "COMMA":
        return None
    about = place.inside("(", "[", "{", "let", "fun", "match", "with", "loop", "type", "of", "do")
    match about:
        case "let" if place.due("="):
            return _bracketed(place, "let", "=", "let (x, y) = e")
        case "fun" if place.due("->"):
            help_ = "they stand one after the other:  fun x y -> e"
            return place.error("E0101", "no comma stands between parameters", help_, "a pair:  fun (x, y) -> e")
        case "match" if place.due("with"):
            return _bracketed(place, "match", "with", "match (a, b) with")
        case "with" if place.due("->"):
            return place.error("E0101", "a tuple is written in parentheses", "| (a, b) -> e")
        case "loop":
            help_ = "a loop with two states:  loop (s, t) = (s0, t0) for i < n do e"
            return place.error("E0101", "a loop has one state", help_)
        case "type" if place.before.kind == "UPPER" and place.due("of"):
            error = place.error("E0101", "cases are separated by `|`", "type t = A | B")
            return replace(error, edits=(Edit(place.span(place.token), " |"),))
        case "of":
            error = place.error("E0101", "the parts of a tuple's type are joined by `*`", "A of float * float")
            return replace(error, edits=(Edit(place.span(place.token), " *"),))
        case "do":
            tuple_ = "several values are a tuple:  print (a, b)"
            return place.error("E0101", "a comma outside brackets", tuple_, 'or a text:  print $"{a} {b}"')
        case _:
            return None


def _bracketed(place: Place, begin: str, end: str, example: str) -> Diagnostic:
    """The error for a tuple without parentheses between two words, and an edit that sets them."""
    start = next(span.end for word, span in place.unfinished() if word == begin)
    first = next((t for t in place.tokens if t.start >= start and t.kind != "REC"), place.token)
    last = next((i for i in range(place.number, len(place.tokens)) if place.tokens[i].value == end), place.number)
    error = place.error("E0101", "a tuple is written in parentheses", example)
    at = Span(place.source, first.start, place.tokens[last - 1].end)
    return replace(error, edits=(Edit(at, f"({at.text})"),)) if last > place.number else error


def _pattern(place: Place) -> Diagnostic | None:
    """Cases: `| n if n > 0 ->`, `| Node l x r ->`, `match x:`, `fun x => e`."""
    token, before = place.token, place.before
    if token.kind == "IF" and place.due("when") and place.inside("with", "[") == "with":
        error = place.error("E0106", "a condition of a case begins with `when`", "| p when c -> e")
        return replace(error, edits=(Edit(place.span(token), "when"),))
    if token.kind == "WHEN" and place.inside("(", "[", "{") and place.inside("with", "(", "[", "{") != "with":
        return place.error("E0101", "a condition stands behind the whole pattern", "| p when c -> e")
    if token.kind == "COLON" and place.due("with") and place.inside("match", "(", "[", "{") == "match":
        error = place.error("E0106", "expected `with`, found `:`", "match x with | p -> e | q -> f")
        return replace(error, edits=(Edit(place.span(token), " with"),))
    if token.value == "=>" and place.due("->"):
        helps = (LAMBDA,) if place.inside("fun", "with") == "fun" else ("| p -> e",)
        error = place.error("E0106", "expected `->`, found `=>`", *helps, note="between pattern and result")
        return replace(error, edits=(Edit(place.span(token), "->"),))
    if place.due("->") and before.kind in ("LOWER", "_", "INT") and token.kind in ("LOWER", "_", "INT", "LPAR"):
        head = place.tokens[place.number - 2]
        if before.kind == "LOWER" and head.value in ("|", "with"):
            name = str(before.value)
            way = f"write  {name[:1].upper()}{name[1:]}"
            title = f"a constructor begins with a capital letter, unlike `{name}`"
            return place.error("E0101", title, way, at=place.span(before))
        if head.kind == "UPPER":
            parts = [t.value for t in _line(place, place.number - 1) if t.kind in ("LOWER", "_", "INT")]
            stop = next((t.start for t in _line(place) if t.value == "->"), token.end)
            shown = ", ".join(str(part) for part in parts[: place.source.text[before.start : stop].count(" ")])
            way = f"several are a tuple:  {head.value} ({shown})"
            return place.error("E0101", "a constructor holds one value", way)
    return None


def _field(place: Place) -> Diagnostic | None:
    """`{ mutable x : float }`."""
    if place.before.value in ("mutable", "mut") and place.inside("{", "(") == "{" and place.token.kind == "LOWER":
        help_ = f"one that changes holds a reference:  {{ {place.token.value} : float ref }}"
        return place.error("E0106", "a field does not change", help_, at=place.span(place.before))
    return None


def _several_types(place: Place) -> Diagnostic | None:
    """`(x : float | int)`."""
    if place.token.value == "|" and place.inside(":", "(", "=") == ":":
        return place.error("E0106", "a type is one type", SUM_TYPE)
    return None


def _type_parameters(place: Place) -> Diagnostic | None:
    """`type 'a 'b t =`, `type t n m =`, `type t(n) =`, `type t[n] =`, `type t<a> =`."""
    in_head = place.inside("type", "=", "of", ":") == "type" and not place.inside("(", "[", "{")
    if not in_head or not any(t.value == "=" for t in _line(place)):
        return None
    if place.token.kind in ("TYVAR", "LOWER") or place.token.value in ("(", "[", "<"):
        ways = ("a type or a size:  type 'a t = ...  type n t = ...", "several:  type ('a, n, m) t = ...")
        return place.error("E0106", "the parameters of a type stand before its name", *ways)
    return None


def _import(place: Place) -> Diagnostic | None:
    """`import math`, `import model.dp`, `import Nn.relu`."""
    if place.before.kind != "IMPORT" or place.token.kind not in ("LOWER", "QLOWER"):
        return None
    name = str(place.token.value)
    if place.token.kind == "QLOWER":
        module = name.rpartition(".")[0]
        return place.error("E0106", "a module is imported as a whole", f"import {module} , and then  {name}")
    if name in table()["libraries"]["names"] and not (resources.stdlib() / f"{name}.dp").exists():
        title = f"there is no module `{name}`, and no need of it"
        return place.error("E0106", title, "leave it out; the library is there:  sqrt x  sum xs  Linalg.inverse a")
    module = name[:1].upper() + name[1:]
    ways = (f'a file of yours:  import "{name}.dp" as {module}', f"a module of the library:  {module}.f x")
    known = (resources.stdlib() / f"{name}.dp").exists()
    return place.error("E0101", f"the name of a module begins with a capital letter, unlike `{name}`", ways[known])


def _at_start(place: Place) -> bool:
    return place.parser.start == "file" and place.due("export")


def _line(place: Place, number: int | None = None) -> list[Token]:
    """The tokens from this one (or from that number) to the end of its line."""
    first = place.number if number is None else number
    line = place.source.position(place.tokens[first].start)[0]
    rest = place.tokens[first:]
    return [t for t in rest if t.kind != "$END" and place.source.position(t.start)[0] == line]


_NO_NAMES = frozenset((*TYPE_WORDS, *STARTS, *WORDS))
_OF_PATTERNS = frozenset((
    "LOWER", "UPPER", "INT", "FLOAT", "STRING", "LPAR", "RPAR", "COMMA", "_", "INDEX", "RSQB", "DOT", "COLON",
))  # fmt: skip

HEADINGS: tuple[Callable[[Place], Diagnostic | None], ...] = (
    _signature,
    _equation,
    _result,
    _parameter,
    _tuple_without_brackets,
    _pattern,
    _field,
    _several_types,
    _type_parameters,
    _import,
)
