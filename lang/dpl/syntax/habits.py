"""Habits from other languages: what does not parse, but reads like Python, C, Rust, OCaml or Haskell."""

from __future__ import annotations

from collections.abc import Callable

from dpl.diagnostics import Diagnostic, Edit
from dpl.node import replace
from dpl.source import Span
from dpl.syntax.foreign import WORDS, table
from dpl.syntax.place import Place


def _range(place: Place) -> Diagnostic | None:
    """`0..10`"""
    dots = place.before if place.before.kind == "DOT" else place.token
    text = place.source.text
    if dots.kind == "DOT" and ".." in text[dots.start - 1 : dots.end + 1]:
        ways = ("the numbers from 0 to 9:  range 10", "to count:  [for i < 10 -> e]  or  loop s = s0 for i < 10 do e")
        return place.error("E0106", "there are no ranges with dots", *ways, at=place.span(dots))
    return None


def _comprehension(place: Place) -> Diagnostic | None:
    """Comprehensions as Python has them."""
    if place.inside("[", "(", "{") != "[":
        return None
    if place.token.kind == "IF" and place.inside("for", "loop", "let") == "for":
        edit = Edit(place.span(place.token), "when")
        error = place.error("E0106", "a condition in a comprehension begins with `when`", "[for x in xs when c -> e]")
        return replace(error, edits=(edit,))
    if place.token.kind == "FOR" and not place.inside("loop"):
        return place.error("E0106", "a comprehension begins with its `for`", "[for x in xs -> e]")
    return None


def _try(place: Place) -> Diagnostic | None:
    """`try e with ...`, where `try` was read as a function."""
    if place.token.kind != "WITH":
        return None
    for token in reversed(place.tokens[: place.number]):
        if token.kind == "MATCH":
            return None
        if token.value == "try":
            way = "match Control.attempt (fun () -> e) with ..."
            help_ = f"to go on after a failure:  {way}"
            return place.error("E0106", "there is no `try` in DPL", help_, at=place.span(token))
    return None


def _tuple_type(place: Place) -> Diagnostic | None:
    """`(float, float)` as a type, which reads like the arguments of one."""
    if place.before.kind != "RPAR" or not place.parser.accepts("QLOWER") or place.parser.accepts("RPAR"):
        return None
    number, depth = place.number - 1, 0
    while number:
        depth += {"RPAR": 1, "LPAR": -1}.get(place.tokens[number].kind, 0)
        if depth == 0:
            break
        number -= 1
    parts = place.source.text[place.tokens[number].start : place.before.end]
    if "," not in parts or place.parser.accepts("INT"):
        return None
    at = Span(place.source, place.tokens[number].start, place.before.end)
    help_ = f"the type of a tuple:  {parts.replace(',', ' *')}"
    error = place.error("E0101", "the parts of a tuple's type are joined by `*`", help_, at=at)
    return replace(error, edits=(Edit(at, parts.replace(",", " *")),))


def _assignment(place: Place) -> Diagnostic | None:
    """`x = 6` for a statement."""
    at_start = place.parser.start == "file" and place.due("export")
    if at_start and place.token.kind == "LOWER" and place.after.value == "=":
        name = place.token.value
        error = place.error("E0101", "a definition begins with `let`", f"let {name} = e")
        at = place.span(place.token)
        return replace(error, edits=(Edit(Span(place.source, at.start, at.start), "let "),))
    return None


def _ocaml_array(place: Place) -> Diagnostic | None:
    if place.before.value == "[" and str(place.token.value).startswith("|"):
        return place.error("E0106", "arrays are written without bars", "an array:  [1.0, 2.0]", "a list:  [1.0; 2.0]")
    return None


def _foreign_word(place: Place) -> Diagnostic | None:
    """A keyword of another language just before; here it was read as a name."""
    for token in reversed(place.tokens[max(place.number - 12, 0) : place.number + 1]):
        if token.kind in _ENDS_SEARCH:
            return None
        if token.kind == "LOWER" and token.value in WORDS:
            if token is place.before and place.source.text[token.start - 1 : token.start] == "(":
                return None
            helps = WORDS[str(token.value)]
            return place.error("E0106", f"there is no `{token.value}` in DPL", *helps, at=place.span(token))
    return None


def _looks_foreign(place: Place) -> Diagnostic | None:
    """What reads like another language: its comments, `and` between conditions, constructors in small letters."""
    token, before = place.token, place.before
    if isinstance(token.value, str) and token.value.startswith("//"):
        return place.error("E0106", "`//` begins no comment", "a comment begins with  --")
    if token.value == "|" and before.kind == "LOWER" and place.inside("type"):
        name = str(before.value)
        help_ = f"write  {name[:1].upper()}{name[1:]} | ..."
        title = f"a constructor begins with a capital letter, unlike `{name}`"
        return place.error("E0101", title, help_, at=place.span(before))
    last = before if token.kind == "$END" or place.ends_declaration() else token
    line = place.source.position(last.start)[0]
    for earlier in place.tokens[place.number - (last is before) :: -1]:
        if place.source.position(earlier.start)[0] != line or earlier.value == "=":
            break
        if earlier.kind == "AND":
            title = "`and` joins definitions, not conditions"
            return place.error("E0106", title, "conditions are joined by  &&", at=place.span(earlier))
    return None


def _number_without_digit(place: Place) -> Diagnostic | None:
    """`.5`, after something that has no fields."""
    dot, number = (place.token, place.after) if place.token.kind == "DOT" else (place.before, place.token)
    apart = not place.source.text[dot.start - 1 : dot.start].strip(" \n\t([{,;=")
    if dot.kind == "DOT" and number.kind == "INT" and number.start == dot.end and apart:
        return place.error("E0106", "a number begins with a digit", f"write  0.{number.value}", at=place.span(dot))
    return None


def _after_dot(place: Place) -> Diagnostic | None:
    if place.before.kind != "DOT":
        return None
    match place.token.kind:
        case "LPAR" if place.tokens[place.number - 2].kind == "UPPER":
            module, helps = place.tokens[place.number - 2].value, ("name it there:  let plus = ( + )",)
            title = "operators have no qualified names"
            return place.error("E0106", title, f"take them all into scope:  open {module}", *helps)
        case "LPAR" | "LSQB" | "INDEX":
            return place.error("E0106", "an element of an array is taken without a dot", "write  xs[i]")
        case "INT" | "FLOAT":
            return place.error(
                "E0106", "parts of a tuple have no numbers", "take it apart:  let (a, b) = pair", "or use fst and snd"
            )
        case "UPPER":
            ours = table()["fields"].get(place.token.value, "")
            helps = (f"here it is written  {ours}",) if ours else ()
            return place.error("E0101", "the name of a field begins with a small letter", *helps)
        case _:
            return None


_ENDS_SEARCH = frozenset(
    ("LET", "IN", "IF", "FUN", "MATCH", "WITH", "DO", "TYPE", "EXPORT", "EXPECT", "SEMICOLON", "DOT", "LBRACE")
)


HABITS: tuple[Callable[[Place], Diagnostic | None], ...] = (
    _range,
    _comprehension,
    _try,
    _assignment,
    _tuple_type,
    _looks_foreign,
    _ocaml_array,
    _foreign_word,
    _number_without_digit,
    _after_dot,
)
