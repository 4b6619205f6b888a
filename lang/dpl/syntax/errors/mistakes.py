"""A token that does not fit -> an error message.

Usual mistakes are recognised one by one, the most specific first; otherwise the message lists the expected tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dpl.diagnostics import Diagnostic, Edit, Label
from dpl.node import replace
from dpl.source import Span
from dpl.syntax.automaton import Parser
from dpl.syntax.errors import expected
from dpl.syntax.errors.brackets import begins_declaration
from dpl.syntax.errors.habits import HABITS
from dpl.syntax.errors.headings import HEADINGS
from dpl.syntax.errors.place import Place
from dpl.syntax.foreign import EACH_SECOND, LAMBDA, table
from dpl.syntax.lexer import Token


def explain(parser: Parser, tokens: list[Token], number: int) -> Diagnostic:
    """The error for the token with this number, which does not fit: by the first rule that knows the mistake."""
    place = Place(parser, parser.builder.source, tokens, number)
    found = next((d for d in (rule(place) for rule in (*HEADINGS, *HABITS, *SLIPS)) if d), None)
    return found or _general(place)


def _general(place: Place) -> Diagnostic:
    wanted = expected.in_words(place.parser.acceptable(), place.parser.tables.words)
    found = expected.token_in_words(place.token)
    labels = [Label(span, f"to complete this `{word}`") for word, span in _construct(place)]
    whole = ("loop s = s0 for i < n do e",) if place.due("do") and place.inside("loop", "[") == "loop" else ()
    if place.token.kind == "$END" or (place.ends_declaration() and place.number and "declaration" not in wanted):
        at = Span(place.source, place.before.end, place.before.end)
        found = "the end of the file" if place.token.kind == "$END" else f"the next declaration, `{place.token.value}`"
        return place.error("E0101", f"expected {wanted}, found {found}", *whole, at=at, labels=labels)
    return place.error("E0101", f"expected {wanted}, found {found}", *whole, labels=[*labels, *_long_string(place)])


def _construct(place: Place) -> list[tuple[str, Span]]:
    """The unfinished construct for a label; [] if it begins right here."""
    words = ("let", "if", "match", "fun", "loop", "shift", "(", "[", "{", "begin", "type", "for")
    found = next(((w, s) for w, s in place.unfinished() if w in words), None)
    if found is None or found[1].end >= place.before.start or (found[0] == "let" and not place.ends_declaration()):
        return []
    return [found]


def _long_string(place: Place) -> list[Label]:
    """A label for a string over several lines before the mistake: perhaps a quote is missing."""
    for token in place.tokens[place.number :: -1]:
        if begins_declaration(place.source, token):
            break
        if token.kind == "STRING" and "\n" in place.source.text[token.start : token.end]:
            return [Label(Span(place.source, token.start, token.start + 1), "this string goes on over several lines")]
    return []


# ---- the usual mistakes -------------------------------------------------------------------------------------------


def _case_without_bar(place: Place) -> Diagnostic | None:
    """A case without its bar: `None -> 0`, below another case or beside it, where it was read as an argument."""
    if place.token.value != "->" or not any(t.kind == "MATCH" for t in place.tokens[: place.number]):
        return None
    line = place.source.position(place.token.start)[0]
    first = next(t for t in place.tokens if place.source.position(t.start)[0] == line)
    if place.before.kind == "UPPER" and not (place.due("->") or place.due("with")):
        first = place.before
    if first.value == "|" or first.kind in ("LET", "FUN", "MATCH"):
        return None
    at = place.span(first)
    error = place.error("E0101", "a case begins with `|`", at=at, note="a case?")
    return replace(error, edits=(Edit(Span(place.source, at.start, at.start), "| "),), helps=("| p -> e",))


def _let_without_in(place: Place) -> Diagnostic | None:
    if not place.due("in") or place.inside("let", "for", "in") != "let":
        return None
    let = next(span for word, span in place.unfinished() if word == "let")
    before = [t for t in place.tokens if t.end <= let.start]
    if before and place.source.text[let.start - 1 : let.start] == "\n":  # it was read as part of what precedes it
        at = Span(place.source, before[-1].end, before[-1].end)
        return place.error("E0101", "expected an expression, found the next declaration, `let`", at=at)
    spot = _end_of_binding(place, let)
    return place.error(
        "E0108",
        "this `let` has no `in`",
        "inside an expression:  let x = e in body",
        at=let,
        labels=[Label(Span(place.source, spot, spot), "`in` belongs here")],
    )


def _end_of_binding(place: Place, let: Span) -> int:
    """The end of a binding by indentation: before the first line indented no deeper than its `let`."""
    margin = place.source.position(let.start)[1]
    previous = None
    for token in place.tokens[: place.number]:
        if token.start > let.start:
            line, column = place.source.position(token.start)
            if previous and column <= margin and line > place.source.position(previous.start)[0]:
                return previous.end
            previous = token
    return place.before.end


def _wrong_arrow(place: Place) -> Diagnostic | None:
    value = place.token.value
    if value in ("->", "=>", ":=", "<-", "==") and place.due("=") and not (value == "=>" and place.due("->")):
        return place.error("E0106", f"expected `=`, found `{value}`", "a definition:  let f x = e", LAMBDA)
    if value == ":" and place.due("->") and place.inside("fun", "(") == "fun":
        return place.error("E0106", "expected `->`, found `:`", "a type is put in parentheses:  fun (x : int) -> e")
    if value in ("=", ":", ":=") and place.due("->"):
        ways = ("the first of a list and its rest:  x :: rest",) if value == ":" else ()
        return place.error("E0106", f"expected `->`, found `{value}`", *ways, note="between pattern and result")
    if value == "<-" and place.due("in") and place.inside("for", "let") == "for":
        return place.error("E0106", "expected `in`, found `<-`", "[for x in xs -> e]")
    return None


def _glued_operator(place: Place) -> Diagnostic | None:
    """`let x =-1`, where `=-` is read as one operator."""
    token = place.token
    if token.kind in ("INFIX", "PREFIX") and isinstance(token.value, str):
        for end in range(len(token.value) - 1, 0, -1):
            word, rest = token.value[:end], token.value[end:]
            if word in place.parser.tables.words and place.due(word) and rest in ("-", "!", "?"):
                return place.error("E0106", f"`{token.value}` is read as one operator", f"put a space after `{word}`")
    return None


def _operator_name(place: Place) -> Diagnostic | None:
    """A name of an operator that is none, `+:`, and an operator defined between its operands."""
    token, before = place.token, place.before
    glued = token.kind in ("COLON", "SEMICOLON", "COMMA", "VBAR") and before.end == token.start
    if before.kind == "LPAR" and token.kind == "VBAR" and place.after.start == token.end:
        before, token, glued = token, place.after, place.after.kind == "COLON"
    if glued and before.kind in _SYMBOLS:
        at = Span(place.source, before.start, token.end)
        return place.error("E0106", f"`{at.text}` cannot be an operator", OPERATOR_CHARACTERS, at=at)
    in_head = place.due("=") and place.inside("let", "(", "loop") == "let"
    if token.value == "|" and in_head:
        title = "a definition has one body, without conditions before it"
        return place.error("E0106", title, "by conditions:  let f x = if c then a else b", BY_CASES)
    if token.kind in _SYMBOLS and before.kind == "LOWER" and in_head:
        help_ = f"let ( {token.value} ) {before.value} b = e"
        return place.error("E0101", "the operator that is defined is put in parentheses", help_)
    return None


BY_CASES = "by cases:  match x with | p when c -> e | _ -> f"
_SYMBOLS = frozenset(("INFIX", "PREFIX", "PLUS", "MINUS", "STAR", "LESSTHAN", "VBAR"))
OPERATOR_CHARACTERS = "an operator is made of the characters  ! $ % & * + - . / < = > ? @ ^ | ~"


def _section(place: Place) -> Diagnostic | None:
    """An operator with one of its operands in parentheses: `( +a )`, `(1 +)`."""
    alone, partly = "the operator as a function:  ( {} )", "with one operand:  fun x -> x {} a"
    if place.before.kind in _SYMBOLS and place.tokens[max(place.number - 2, 0)].kind == "LPAR":
        ways = (way.format(place.before.value) for way in (alone, partly))
        return place.error("E0106", "an operator in parentheses has no operand", *ways)
    if place.token.kind == "RPAR" and place.before.kind in _SYMBOLS:
        ways = (way.format(place.before.value) for way in (alone, "with one operand:  fun x -> a {} x"))
        return place.error("E0101", "expected an expression, found `)`", *ways)
    return None


def _array_without_size(place: Place) -> Diagnostic | None:
    """Brackets of a type that hold no size: `float[]`, `float[,]`, `float[:]`, `[float]`."""
    token, before = place.token, place.before
    in_type = place.inside(":", "of", "type", "=", "[", "(") in (":", "of", "type")
    if before.kind in ("LSQB", "INDEX") and token.kind in ("RSQB", "COMMA", "COLON"):
        of = place.tokens[max(place.number - 2, 0)]
        if of.end == before.start and place.parser.accepts("QMARK"):
            name = "(...)" if of.kind == "RPAR" else place.source.text[of.start : of.end]
            ways = (f"a size to name, to infer or to find out:  {name}[n]  {name}[_]  {name}[?]",)
            if place.inside("type", "let") == "type":
                ways = (f"known when it runs:  {name}[?]", f"a parameter of the type:  type n t = ... {name}[n]")
            return place.error("E0101", "an array type says its sizes", *ways)
    if token.kind in ("LSQB", "INDEX") and in_type and place.after.kind == "LOWER":
        return place.error("E0101", "the type of an array begins with its elements", f"write  {place.after.value}[n]")
    return None


def _content(place: Place) -> Diagnostic | None:
    """The content of a constructor without `of` or `*`: `A float`, `A(float, float)`, `A of 'a 'a`."""
    if place.before.kind == "UPPER" and place.token.kind in ("LOWER", "LPAR", "TYVAR") and place.due("of"):
        name = place.before.value
        ways = (f"one value:  {name} of float", f"several:  {name} of float * int")
        return place.error("E0101", "what a constructor holds follows `of`", *ways)
    if place.token.kind in ("TYVAR", "LPAR") and place.inside("of", "type") == "of" and place.before.kind == "LOWER":
        of = next(span for word, span in place.unfinished() if word == "of")
        first = place.source.text[of.end : place.before.end].strip()
        way = f"several values are joined by `*`:  {first} * ..."
        return place.error("E0101", "a constructor holds one value", way)
    return None


def _index_of_string(place: Place) -> Diagnostic | None:
    """`"abc"[0:2]`, where the bracket begins an array."""
    if place.token.kind == "COLON" and place.inside("[", "(", "{") == "[":
        start = next(span.start for word, span in place.unfinished() if word == "[")
        if any(t.end == start and t.kind in ("STRING", "INTERP_CLOSE") for t in place.tokens):
            return place.error("E0101", "a string takes no index", "a part of a string:  String.slice 0 2 s")
    return None


_TAKES_NAME = frozenset(("LET", "REC", "FUN", "DOT", "AND", "AS", "FOR", "SHIFT", "LOOP", "LBRACE", "TYPE", "EXTERN"))


def _keyword_as_name(place: Place) -> Diagnostic | None:
    token, words = place.token, place.parser.tables.words
    is_field = place.before.kind == "SEMICOLON" and bool(place.inside("{"))
    takes_name = place.before.kind in _TAKES_NAME or is_field or place.due("=")
    takes_name = takes_name and not (token.kind in ("FOR", "WHILE") and place.before.kind == "LPAR")
    is_word = isinstance(token.value, str) and token.value.isalpha() and words.get(token.value) == token.kind
    if is_word and takes_name and place.parser.accepts("LOWER") and not place.ends_declaration():
        help_ = f"call it {token.value}_ or {token.value}'"
        return place.error("E0109", f"`{token.value}` is a keyword and cannot be a name", help_)
    return None


def _top_level(place: Place) -> Diagnostic | None:
    if place.token.kind == "IN" and not place.due("in"):
        return place.error(
            "E0101",
            "this `in` belongs to no `let`",
            "a declaration has no `in`",
            "to run an expression:  do let x = e in print x",
        )
    if place.before.kind == place.token.kind == "SEMICOLON":
        return place.error("E0106", "expected an expression, found `;`", "declarations need no separator; drop `;;`")
    if place.parser.start == "file" and place.due("export"):
        at_start = len(place.parser.values) == 0 or not isinstance(place.parser.values[-1], Token)
        if at_start and place.token.kind in _BEGINS_EXPRESSION:
            title = f"expected a declaration, found {expected.token_in_words(place.token)}"
            line = place.source.text[place.token.start :].partition("\n")[0].rstrip(" ;")
            word = str(place.token.value)
            run = f"{word} ..." if word in ("match", "if", "loop") else "print x"
            run = line if word in ("print", "print_string") and len(line) < 60 else run
            ways = (f"to run an expression:  do {run}", "to name its value:  let x = e")
            if line.startswith('"""'):
                ways = ("a comment begins with  --",)
            elif place.token.kind == "FUN" and "->" not in line.partition("=")[0]:
                ways = ("a function with a name:  let f x = e",)
            return place.error("E0101", title, *ways)
    return None


_BEGINS_EXPRESSION = frozenset((
    "LOWER", "QLOWER", "INT", "FLOAT", "STRING", "INTERP", "INTERP_OPEN", "LPAR", "LSQB", "BEGIN", "IF", "MATCH", "FUN",
    "LOOP",
))  # fmt: skip


def _comma(place: Place) -> Diagnostic | None:
    if place.token.kind != "COMMA":
        return None
    match place.inside("(", "[", "{"):
        case "{":
            help_ = "fields are separated by semicolons:  { x = 1; y = 2 }"
            return place.error("E0101", "expected `;`, found `,`", help_)
        case "[" if place.inside("when", "with", "[") == "when" and place.inside("for", "[") == "for":
            help_ = "`when` comes last:  [for x in xs, y in ys when p -> e]"
            return place.error("E0101", "expected `->`, found `,`", help_, note="after `when` there is no more clause")
        case "[":
            return place.error("E0101", "expected `;`, found `,`", "a list has semicolons, an array commas")
        case "(":
            help_ = "several steps for one part of a tuple are put in parentheses:  ((a; b), c)"
            sign = place.inside(":>", ":", "(")
            if sign != "(":
                start = next(span.end for word, span in place.unfinished() if word == "(")
                part = place.source.text[start : place.before.end]
                help_ = f"the type of one part is put in parentheses:  (({part}), b)"
            return place.error("E0101", "expected `)`, found `,`", help_)
        case _:
            pass
    line = place.source.line(place.source.position(place.token.start)[0])
    if re.search(r"\bassert\b[^,]*$", line.partition(",")[0]):
        ways = ("it shows both sides itself:  assert (a = b)", 'a text of your own:  if c then () else error "why"')
        return place.error("E0106", "an assertion takes no text", *ways)
    number = place.before.kind == "INT" and place.after.kind == "INT" and place.after.start == place.token.end
    point = ("a decimal number has a point:  1.5",) if number else ()
    return place.error("E0101", "a comma outside brackets", *point, "a tuple is written in parentheses:  (a, b)")


def _semicolon(place: Place) -> Diagnostic | None:
    if place.token.kind != "SEMICOLON" or place.inside("(", "[", "{") not in ("[", "("):
        return None
    if place.inside("(", "[", "{") == "[":
        return place.error(
            "E0101",
            "expected `,` or `]`, found `;`",
            "a list has semicolons, an array commas",
            "several steps for one element are put in parentheses:  [(a; b), c]",
        )
    return place.error(
        "E0101",
        "expected `,` or `)`, found `;`",
        "the parts of a tuple are separated by commas",
        "several steps for one part are put in parentheses:  ((a; b), c)",
    )


def _bar(place: Place) -> Diagnostic | None:
    if place.token.kind == "VBAR" and place.inside("with", "type", "if", "then", "(") in ("", "if", "then", "("):
        return place.error("E0106", "`|` stands between cases only", "or is written  a || b")
    return None


def _braces(place: Place) -> Diagnostic | None:
    in_braces = place.inside("{", "(", "[", "match") == "{"
    if in_braces and place.token.kind in ("RBRACE", "SEMICOLON") and place.due("with"):
        return place.error(
            "E0101",
            f"expected `with`, found `{place.token.value}`",
            "a record:  { x = 1; y = 2 }",
            "braces group no steps; parentheses do:  (a; b)",
        )
    return None


def _else_or_then(place: Place) -> Diagnostic | None:
    if place.due("then") and place.inside("if", "then") == "if":
        start = next(span for word, span in place.unfinished() if word == "if")
        at = Span(place.source, place.before.end, place.before.end)
        return place.error(
            "E0101",
            f"expected `then`, found {expected.token_in_words(place.token)}",
            "if c then a else b",
            at=at,
            labels=[Label(start, "for this `if`")],
        )
    if place.token.kind == "ELSE":
        title = "this `else` belongs to no `if`"
        return place.error(
            "E0101", title, "a branch is one expression; put several steps in parentheses:  if c then (a; b) else d"
        )
    return None


def _nameless_test(place: Place) -> Diagnostic | None:
    """The name of a test without quotes: `expect odd = ...`."""
    if place.before.kind != "EXPECT" or place.token.kind not in ("LOWER", "UPPER"):
        return None
    at, name = place.span(place.token), place.token.value
    error = place.error("E0101", "a test has its name in quotes", f'expect "{name}" = e')
    return replace(error, edits=(Edit(at, f'"{name}"'),))


def _loop(place: Place) -> Diagnostic | None:
    stateless = place.token.value in ("<", "in", "while", "do") and place.due("=")
    stateless = stateless or (place.before.kind == "LOOP" and place.token.kind in ("FOR", "WHILE"))
    if stateless and place.inside("loop", "let") == "loop":
        ways = ("loop s = s0 for i < n do e", "for what a step does:  loop _ = () for i < n do print i")
        return place.error("E0101", "a loop has a state", *ways)
    if place.token.kind in ("FOR", "WHILE") and not place.inside("loop"):
        title = f"`{place.token.value}` begins no expression"
        if place.token.kind == "WHILE":
            ways = ("a loop with its state:  loop s = 1 while s < 100 do 2 * s",)
            return place.error("E0106", title, *ways, "of a reference:  loop _ = () while !r < 100 do r := 2 * !r")
        ways = ("a loop with its state:  loop s = 0.0 for i < n do s + xs[i]", "an array of results:  [for i < n -> e]")
        at = place.span(place.token)
        does = "for what a step does:  loop _ = () for i < n do print i"
        if place.before.kind in ("DO", "") or re.search(r"\(\)\s*=\s*$", at.source.text[: at.start]):
            ways = (does, *ways)
        elif place.begins_line("FOR"):  # a statement elsewhere: its steps change variables
            ways = (ways[0], "with a reference as its state:  loop _ = () for i < n do s := !s + xs[i]")
        else:
            ways = (*ways, does)
        return place.error("E0106", title, *ways)
    return None


def _capital(place: Place) -> Diagnostic | None:
    token = place.token
    if token.kind == "OF" and place.before.kind == "LOWER":
        return place.error(
            "E0101",
            f"a constructor begins with a capital letter, unlike `{place.before.value}`",
            at=place.span(place.before),
        )
    if token.kind == "UPPER" and place.parser.accepts("LOWER") and not place.parser.accepts("UPPER"):
        what = "type" if place.inside("type", ":", "of") else "value or field"
        ours = table()["types"].get(token.value, "") if what == "type" else ""
        helps = (f"here it is written  {ours}",) if ours else ()
        if what == "type" and not ours and len(token.value) == 1:
            helps = (f"a type variable is written  '{token.value.lower()}",)
        return place.error("E0101", f"the name of a {what} begins with a small letter, unlike `{token.value}`", *helps)
    if token.kind == "LOWER" and place.parser.accepts("UPPER") and not place.parser.accepts("LOWER"):
        what = "module" if place.before.kind in ("IMPORT", "OPEN", "AS") else "constructor"
        return place.error("E0101", f"the name of a {what} begins with a capital letter, unlike `{token.value}`")
    return None


def _annotation(place: Place) -> Diagnostic | None:
    if place.token.kind == "COLON" and place.before.kind == "LOWER" and place.inside("(", "[", "{") == "{":
        edit = Edit(place.span(place.token), " =")
        return replace(place.error("E0101", "expected `=`, found `:`", "a record:  { x = 1; y = 2 }"), edits=(edit,))
    bracket = next((span.start for word, span in place.unfinished() if word in ("[", "(", "{")), -1)
    indexes = any(t.kind == "INDEX" and t.start == bracket for t in place.tokens)
    if place.token.kind == "COLON" and indexes and not place.due(":"):
        return place.error("E0106", "a slice takes no steps", EACH_SECOND)
    about, ends = place.inside("[", "(", "{", "for"), (place.before.kind, place.after.kind)
    counts = "INT" in ends and (about in ("[", "for") or ends == ("INT", "INT"))
    if place.token.kind == "COLON" and counts and not place.due(":"):
        ways = ("the numbers below 10:  range 10", "those from 1 to 9:  [for i < 9 -> i + 1]")
        return place.error("E0106", "there are no ranges with colons", *ways)
    if place.token.value == ":>" and place.due(":"):
        help_ = "`:>` claims the type of an expression:  (e :> t)"
        error = place.error("E0101", "the type of what is named here follows `:`", help_)
        return replace(error, edits=(Edit(place.span(place.token), ":"),))
    if place.token.kind in ("COLON", "__ANON_3") and not place.due(":"):
        sign = place.token.value
        return place.error(
            "E0101",
            f"`{sign}` outside parentheses",
            f"the type of an expression is put in parentheses:  (e {sign} t)",
        )
    return None


SLIPS: tuple[Callable[[Place], Diagnostic | None], ...] = (
    _case_without_bar,
    _wrong_arrow,
    _glued_operator,
    _operator_name,
    _section,
    _array_without_size,
    _content,
    _index_of_string,
    _loop,
    _keyword_as_name,
    _bar,
    _braces,
    _else_or_then,
    _nameless_test,
    _let_without_in,
    _top_level,
    _comma,
    _semicolon,
    _capital,
    _annotation,
)
