"""Syntax errors caused by habits from other languages: Python, C, Rust, OCaml or Haskell."""

from __future__ import annotations

from collections.abc import Callable

from dpl.diagnostics import Diagnostic, Edit
from dpl.node import replace
from dpl.source import Span
from dpl.syntax.errors import expected
from dpl.syntax.errors.brackets import begins_declaration
from dpl.syntax.errors.place import Place
from dpl.syntax.foreign import COMPOSED, EACH_SECOND, LAMBDA, STARTS, TYPE_WORDS, WORDS, table
from dpl.syntax.lexer import Token


def _range(place: Place) -> Diagnostic | None:
    """A range with dots: `0..10`."""
    dots = place.before if place.before.kind == "DOT" else place.token
    text = place.source.text
    if dots.kind == "DOT" and ".." in text[dots.start - 1 : dots.end + 1]:
        ways = ("the numbers from 0 to 9:  range 10", "to count:  [for i < 10 -> e]  or  loop s = s0 for i < 10 do e")
        bracket = next((span for word, span in place.unfinished() if word in ("[", "(", "{")), None)
        if bracket and any(t.kind == "INDEX" and t.start == bracket.start for t in place.tokens):
            ways = ("a part of an array, without its end:  xs[1:3]",)
        return place.error("E0106", "there are no ranges with dots", *ways, at=place.span(dots))
    return None


def _comprehension(place: Place) -> Diagnostic | None:
    """Python's forms of comprehensions."""
    bracket = place.inside("[", "(", "{", "loop")
    if bracket == "(" and place.token.kind == "FOR" and place.before.kind in _ENDS_OPERAND:
        return place.error("E0106", "a comprehension stands in square brackets", "sum [for x in xs -> x]")
    if place.inside("[", "(", "{") != "[":
        return None
    if place.token.kind == "IF" and place.inside("for", "loop", "let") == "for":
        edit = Edit(place.span(place.token), "when")
        error = place.error("E0106", "a condition in a comprehension begins with `when`", "[for x in xs when c -> e]")
        return replace(error, edits=(edit,))
    if place.token.kind == "FOR" and place.inside("for", "loop", "let") == "for" and not place.due("do"):
        error = place.error("E0106", "clauses of a comprehension are separated by commas", "[for i < n, j < m -> e]")
        return replace(error, edits=(Edit(Span(place.source, place.before.end, place.token.end), ","),))
    if place.token.kind in ("FOR", "VBAR") and place.before.kind != "LSQB" and not place.inside("loop"):
        return place.error("E0106", "a comprehension begins with its `for`", "[for x in xs -> e]")
    return None


def _try(place: Place) -> Diagnostic | None:
    """`try e with ...` or `try e catch x -> ...`, where `try` was read as a function."""
    if place.token.kind != "WITH" and not (place.token.value == "->" and not place.due("->")):
        return None
    for token in reversed(place.tokens[: place.number]):
        if token.kind in ("MATCH", "FUN", "IN"):
            return None
        if token.value == "try":
            way = "match Control.attempt (fun () -> e) with ..."
            help_ = f"to go on after a failure:  {way}"
            return place.error("E0106", "there is no `try` in DPL", help_, at=place.span(token))
    return None


def _tuple_type(place: Place) -> Diagnostic | None:
    """`(float, float)` as a type, which was read as the arguments of a type."""
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


def _ocaml_array(place: Place) -> Diagnostic | None:
    if place.before.value == "[" and str(place.token.value).startswith("|"):
        return place.error("E0106", "arrays are written without bars", "an array:  [1.0, 2.0]", "a list:  [1.0; 2.0]")
    return None


def _foreign_word(place: Place) -> Diagnostic | None:
    """A keyword of another language shortly before; it was read as a name."""
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
    """Comments of other languages, `and` between conditions, constructors in lower case."""
    token, before = place.token, place.before
    if isinstance(token.value, str) and token.value.startswith(("//", "/*", *("%" if place.number == 0 else ()))):
        ways = ("a comment begins with  --", "or stands in  (* ... *)")
        return place.error("E0106", f"`{token.value[:2]}` begins no comment", *ways)
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
        if earlier.kind == "AND" and token.kind == "LET" and earlier is before:
            return place.error("E0106", "after `and` there is no `let`", "let rec f x = ... and g x = ...")
        if earlier.kind == "AND":
            title = "`and` joins definitions, not conditions"
            return place.error("E0106", title, "conditions are joined by  &&", at=place.span(earlier))
    return None


def _number_without_digit(place: Place) -> Diagnostic | None:
    """`.5` where no field access is possible."""
    dot, number = (place.token, place.after) if place.token.kind == "DOT" else (place.before, place.token)
    apart = not place.source.text[dot.start - 1 : dot.start].strip(" \n\t([{,;=")
    if dot.kind == "DOT" and number.kind == "INT" and number.start == dot.end and apart:
        return place.error("E0106", "a number begins with a digit", f"write  0.{number.value}", at=place.span(dot))
    return None


def _after_dot(place: Place) -> Diagnostic | None:
    if place.before.kind != "DOT":
        return None
    if place.token.kind in ("QLOWER", "LPAR") and place.token.start > place.before.end:
        return place.error("E0106", "`.` composes no functions", COMPOSED, at=place.span(place.before))
    match place.token.kind:
        case "LPAR" if place.tokens[place.number - 2].kind == "UPPER":
            module, helps = place.tokens[place.number - 2].value, ("name it there:  let plus = ( + )",)
            title = "operators have no qualified names"
            return place.error("E0106", title, f"take them all into scope:  open {module}", *helps)
        case "LPAR" | "LSQB" | "INDEX":
            of_each = ("a function of each element:  map f xs",) if place.token.kind == "LPAR" else ()
            return place.error("E0106", "an element of an array is taken without a dot", "write  xs[i]", *of_each)
        case "INT" | "FLOAT" if place.tokens[place.number - 2].kind == "FLOAT":
            return place.error("E0105", "a number has one point", at=place.span(place.before))
        case "INT" | "FLOAT":
            return place.error(
                "E0106", "parts of a tuple have no numbers", "take it apart:  let (a, b) = pair", "or use fst and snd"
            )
        case "UPPER":
            ours = table()["fields"].get(place.token.value, "") or table()["same"].get(place.token.value, "")
            helps = (f"here it is written  {ours}",) if ours else ()
            return place.error("E0101", "the name of a field begins with a small letter", *helps)
        case _:
            return None


_ENDS_SEARCH = frozenset(
    ("LET", "IN", "IF", "FUN", "MATCH", "WITH", "DO", "TYPE", "EXPORT", "EXPECT", "SEMICOLON", "DOT", "LBRACE")
)


def _block(place: Place) -> Diagnostic | None:
    """`if c { a } else { b }`: the braces do not hold a record."""
    if place.inside("{", "(", "[") != "{":
        return None
    brace = next(span for word, span in place.unfinished() if word == "{")
    number = next(i for i, token in enumerate(place.tokens) if token.start == brace.start)
    first, second = (place.tokens[min(number + k, len(place.tokens) - 1)] for k in (1, 2))
    about = place.inside("if", "then", "else", "fun", "match", "for", "while", "do", "with", "->")
    named = first.kind == "LOWER" and second.kind in ("EQUAL", "COLON", "SEMICOLON", "COMMA", "RBRACE", "WITH")
    braced = named and not (second.kind == "RBRACE" and about in _BLOCKS)
    if braced or first.kind in ("QLOWER", "DOT", "RBRACE") or first.value in ("mutable", "mut"):
        return None
    if place.token.kind == "FOR" or (first.kind in _LITERALS and second.kind in ("COLON", "COMMA", "SEMICOLON")):
        return _collection(place, brace, first, second)
    if first.kind == "LOWER" and second.value == "|":
        return place.error("E0106", "braces hold no `|`", f"a changed copy:  {{ {first.value} with x = e }}")
    about = "match" if place.tokens[max(number - 2, 0)].value == "switch" else about
    helps = _BLOCKS.get(about, ("leave them out; several steps are put in parentheses:  (a; b)",))
    return place.error("E0106", "braces make records; they group no steps", *helps, at=brace)


def _collection(place: Place, brace: Span, first: Token, second: Token) -> Diagnostic:
    """Sets, dictionaries and comprehensions in braces: `{1, 2}`, `{"a": 1}`, `{x * x for x in xs}`."""
    title = "braces make records"
    if place.token.kind == "FOR":
        return place.error("E0106", title, "an array:  [for x in xs -> e]", at=brace)
    text = place.span(first).text
    if second.kind == "COLON":
        ways = (f"a dictionary:  Map.of_list [({text}, e); ...]", "a record's fields have names:  { x = 1; y = 2 }")
        return place.error("E0106", title, *ways, at=place.span(first))
    array, list_ = f"an array:  [{text}, ...]", f"a list:  [{text}; ...]"
    return place.error("E0106", title, array, f"{list_}  a set:  Set.of_list [{text}; ...]", at=brace)


_LITERALS = frozenset(("STRING", "INT", "FLOAT"))
_BLOCKS = {
    "if": ("if c then a else b", "several steps are put in parentheses:  (a; b)"),
    "fun": (LAMBDA,),
    "match": ("match x with | p -> e | q -> f",),
    "for": ("loop s = s0 for i < n do e",),
    "while": ("loop s = s0 while c do e",),
}


def _separator(place: Place) -> Diagnostic | None:
    """`let x = 3;` before the next declaration, which may have been read as a step with its own `let`."""
    let = next((span.start for word, span in place.unfinished() if word == "let"), -1)
    number = next((i for i, token in enumerate(place.tokens) if token.start == let and i), place.number or 1)
    for i in (number, place.number or 1, place.number + 1):
        ends, after = place.tokens[i - 1], place.tokens[min(i, len(place.tokens) - 1)]
        closed = after.kind == "$END" or begins_declaration(place.source, after)
        if ends.kind == "SEMICOLON" and closed and not place.inside("(", "[", "{", "begin"):
            at = place.span(ends)
            error = place.error("E0106", "no `;` stands between declarations", "leave it out", at=at)
            return replace(error, edits=(Edit(at, ""),))
    return None


def _label(place: Place) -> Diagnostic | None:
    """OCaml's labelled arguments: `f ~x:1 ~y`."""
    line = place.source.position(place.token.start)[0]
    for tilde, name in zip(place.tokens[place.number :: -1], place.tokens[place.number + 1 : 0 : -1], strict=False):
        if place.source.position(tilde.start)[0] != line:
            break
        if tilde.value == "~" and name.kind == "LOWER" and name.start == tilde.end:
            help_ = "they stand one after the other:  f x y"
            return place.error("E0106", "arguments have no labels", help_, at=place.span(tilde))
    return None


def _operator(place: Place) -> Diagnostic | None:
    """Operators of C: `i++`, `c ? a : b`, `&x`."""
    if place.before.value == "++" and place.source.text[place.before.start - 1].isalnum():
        ways = ("the next number:  i + 1", "a reference is changed by  r := !r + 1")
        return place.error("E0106", "`++` does not count; it appends", *ways, at=place.span(place.before))
    match place.token.value:
        case "?":
            return place.error("E0106", "there is no `? :` in DPL", "if c then a else b")
        case "@" if place.parser.start == "file" and place.due("export"):
            ways = ("leave it out; everything is compiled", "derivatives of your own:  with_vjp f rule")
            return place.error("E0106", "there are no decorators", *ways)
        case "&":
            return place.error("E0106", "there are no addresses", "a reference is made by  ref e")
        case "::" if place.inside("[", "(") == "[":
            return place.error("E0106", "a slice takes no steps", EACH_SECOND)
        case _:
            return None


def _lambda(place: Place) -> Diagnostic | None:
    """Functions without `fun`: `x -> e`, `|x| e` and `(_ + 1)`."""
    bars = place.token.value == "|" and place.after.kind == "LOWER"
    bars = bars and place.tokens[min(place.number + 2, len(place.tokens) - 1)].value == "|"
    arrow = place.token.value == "->" and not place.due("->") and not place.inside("match", "with", "fun", "[", "type")
    operand = place.before.kind in ("LOWER", "RPAR") and not place.begins_line("UPPER")
    if place.token.value == "_" and place.after.value[:1] in tuple("+-*/.<>=|&@"):
        return place.error("E0106", "`_` is no value", LAMBDA)
    if bars or (arrow and operand and not place.due("=")):
        return place.error("E0106", "a function without a name begins with `fun`", LAMBDA)
    return None


def _condition(place: Place) -> Diagnostic | None:
    """Conditions and conversions of Python and Rust: `a if c else b`, `if x in xs`, `x as t`."""
    if place.token.kind == "IF" and place.before.kind in _ENDS_OPERAND and not place.inside("[", "with"):
        return place.error("E0106", "the condition comes first", "if c then a else b")
    if place.token.kind == "IN" and place.inside("if", "then", "let") == "if":
        return place.error("E0106", "`in` asks no question", "is it there:  any [for y in xs -> y = x]")
    if place.token.kind == "AS" and place.before.kind in _ENDS_OPERAND and place.inside("match", "let") != "match":
        return place.error("E0106", "`as` converts nothing", "functions do:  float x")
    return None


_ENDS_OPERAND = frozenset(("LOWER", "QLOWER", "INT", "FLOAT", "STRING", "RPAR", "RSQB", "INTERP_CLOSE"))


COUNTED = ("for i < n do e", "to go through an array:  for i < length xs do ... xs[i]")


def _counting(place: Place) -> Diagnostic | None:
    """Loops that count: `for i = 0 to n`, `for i in 0 to n`."""
    if (
        place.token.value in ("=", "in")
        and place.inside("for", "do") == "for"
        and (place.token.value == "=" or place.inside("loop", "[") == "loop")
    ):
        if place.inside("loop", "[") == "[":
            ways = ("the numbers from 0:  [for i < n -> e]", "the elements of an array:  [for x in xs -> e]")
            return place.error("E0106", "a comprehension counts from 0 to below a bound", *ways)
        return place.error("E0106", "a loop counts from 0 to below a bound", *COUNTED)
    if place.token.kind == "LOWER" and place.before.kind == "LOWER" and place.due("<") and place.inside("for") == "for":
        return place.error("E0106", "a loop counts from 0 to below a bound", *COUNTED)  # `for i from 1 to n`
    if place.token.value == "<=" and place.inside("for", "do", "->") == "for":
        return place.error("E0106", "a count ends below its bound", f"from 0 to n:  for {place.before.value} < n + 1")
    return None


def _at_margin(place: Place) -> Diagnostic | None:
    """What is to be run, below a declaration: `if x then ...` at the margin."""
    runs = {"IF": "if c then a else b", "MATCH": "match x with | p -> e", "LOOP": "loop s = s0 for i < n do e"}
    at_margin = place.source.position(place.token.start)[1] == 1
    if not (at_margin and place.number and place.token.kind in runs and place.due("export")):
        return None
    title = f"`{place.token.value}` begins no declaration"
    return place.error("E0101", title, f"to run it:  do {runs[place.token.kind]}")


def _typed_before(place: Place) -> Diagnostic | None:
    """A type before its name: `(int x)`."""
    kind, name = place.before.value, place.token.value
    if kind in TYPE_WORDS and place.token.kind == "LOWER" and place.due(":"):
        at = Span(place.source, place.before.start, place.token.end)
        ours = TYPE_WORDS[str(kind)]
        error = place.error("E0106", "a type stands behind what has it", f"({name} : {ours})", at=at)
        return replace(error, edits=(Edit(at, f"{name} : {ours}"),))
    return None


def _foreign_start(place: Place) -> Diagnostic | None:
    """A declaration of another language."""
    if not (place.parser.start == "file" and place.due("export") and place.token.kind == "LOWER"):
        return None
    word = str(place.token.value)
    if word in TYPE_WORDS and place.after.kind == "LOWER":
        return place.error(
            "E0106", "a definition begins with `let`", f"let {place.after.value} : {TYPE_WORDS[word]} = e"
        )
    if word in STARTS:
        return place.error("E0106", f"there is no `{word}` in DPL", *STARTS[word])
    return None


def _do_block(place: Place) -> Diagnostic | None:
    if place.token.kind in ("DO", "COLON") and place.due("->") and place.inside("[", "loop", "fun", "match") == "[":
        error = place.error("E0106", f"expected `->`, found `{place.token.value}`", "[for i < n -> e]")
        return replace(error, edits=(Edit(place.span(place.token), "->"),))
    if place.token.value in ("->", ":", "{") and place.due("do") and place.inside("loop", "[") == "loop":
        error = place.error("E0106", f"expected `do`, found `{place.token.value}`", "loop s = s0 for i < n do e")
        return replace(error, edits=(Edit(place.span(place.token), "do"),)) if place.token.value == "->" else error
    if place.token.kind == "DO" and not place.due("do") and not place.ends_declaration() and not place.inside("loop"):
        return place.error("E0106", "`do` begins a declaration", "several steps for one value:  (a; b)")
    return None


def _nameless_record(place: Place) -> Diagnostic | None:
    """Fields where a type is wanted, as in a constructor or for a parameter: `type t = A of { x : float }`."""
    if place.token.kind != "LBRACE":
        return None
    if place.before.kind == "OF":
        help_ = "type t = A of point  and point = { x : float; y : float }"
        return place.error("E0106", "the record that a constructor holds has a name", help_)
    if expected.in_words(place.parser.acceptable(), place.parser.tables.words) == "a type":
        declared = "type point = { x : float; y : float }"
        return place.error("E0106", "a record's type has a name", f"declared before it is used:  {declared}")
    return None


def _shift_of_function(place: Place) -> Diagnostic | None:
    """`shift` of a function, as in Scheme's and Racket's libraries."""
    called = place.token.kind == "LPAR" or (place.before.kind == "LOWER" and place.token.kind == "RPAR")
    if called and place.inside("shift", "(", "->") == "shift":
        return place.error("E0106", "`shift` names the continuation itself", "shift k -> e")
    return None


def _single(place: Place) -> Diagnostic | None:
    """A tuple of one item: `(1,)`."""
    if place.token.kind == "RPAR" and place.before.kind == "COMMA":
        return place.error("E0106", "a tuple has at least two parts", "of one there is the value itself:  e")
    return None


HABITS: tuple[Callable[[Place], Diagnostic | None], ...] = (
    _range,
    _foreign_start,
    _separator,
    _label,
    _block,
    _operator,
    _at_margin,
    _condition,
    _counting,
    _typed_before,
    _do_block,
    _single,
    _nameless_record,
    _shift_of_function,
    _comprehension,
    _try,
    _tuple_type,
    _looks_foreign,
    _ocaml_array,
    _foreign_word,
    _lambda,
    _number_without_digit,
    _after_dot,
)
