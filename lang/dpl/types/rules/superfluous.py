"""Helps for one argument too many: of something that is no function, or of one that takes fewer."""

from __future__ import annotations

import re

from dpl.core import term, ty
from dpl.diagnostics import Edit, Label
from dpl.regex import regex
from dpl.source import Span
from dpl.syntax import tree
from dpl.syntax.foreign import OPERATORS, WORDS
from dpl.types.messages.axes import along, named_axis
from dpl.types.messages.parts import FORGOTTEN_DO, at_the_margin, taken_apart
from dpl.types.rules.misplaced import counted, drawn, of_library, of_sibling, reshaped, takers, written
from dpl.types.rules.order import kind_given, kinds_wanted, result_of
from dpl.types.solve.meta import Type, prune
from dpl.types.state.context import Arg, Context
from dpl.types.state.env import Primitive, Value


def on_next_line(value: tree.Expr | term.Term) -> tuple[str, ...]:
    """Helps for a line that was taken for an argument of the line before."""
    span = value.span
    set_ = re.match(r"\s*=[^=]", span.source.text[span.end :])
    if set_ and isinstance(value, tree.Index):
        name = written(value.array)
        return (f"an array does not change; one with another element:  let {name} = {{ {name} with [i] = e }}",)
    if set_ and isinstance(value, tree.Var):
        return (f"a name never changes its value; this makes a new one:  let {value.name} = ...",)
    if at_the_margin(span) and DEFINES.match(span.source.line(span.line)):
        return ("a definition begins with `let`:  let f x = e",)
    line = span.source.line(span.line).strip()
    if at_the_margin(span):
        return (f"to run it:  do {line if len(line) < 60 else 'e'}",)
    return ("steps of one expression are separated by  ;", FORGOTTEN_DO)


DEFINES = regex(r"\w+(\s+[\w()]+)*\s*(=[^=]|::)")


WORD_OPERATORS = {
    "mod": "the remainder is written  a % b",
    "rem": "the remainder is written  a % b",
    "div": "integers are divided by  a / b",
    "to": "the numbers below 10:  range 10",
    "xor": "of booleans:  a <> b",
    "or": "or is written  a || b",
    "where": WORDS["where"][0],
    "is": "equality is written  a = b ; what an option holds:  match x with None -> a | Some y -> b",
}


def applied(cx: Context, t: Type, head: Span, value: tree.Expr | term.Term) -> tuple[str, ...]:
    """Helps for something that is no function and has an argument: brackets, a comma or an operator is missing."""
    if isinstance(value, tree.Var) and value.name in WORD_OPERATORS:
        return (WORD_OPERATORS[value.name],)
    if head.text == '""' and value.span.text.startswith('"'):
        return ('a string begins and ends with one  "  and may go on over several lines',)
    if t == ty.STRING and value.span.text.startswith('"'):
        return (f"strings are appended with  ++ :  {head.text} ++ {written(value)}",)
    if value.span.text.startswith("~="):
        return (OPERATORS["!="],)
    if type(t) is ty.Arr and isinstance(value, tree.ArrayLit | term.ArrayLit):
        return (f"an element is taken without a space:  {head.text}{value.span.text}",)
    if type(t) is ty.Arr:
        return (f"an element is taken with brackets:  {head.text}[{value.span.text.strip('()')}]",)
    if t == ty.STRING and isinstance(value, tree.ArrayLit):
        return taken_apart(t)
    if type(t) is ty.Tup and any(type(prune(item)) is ty.Fn for item in t.items):
        return taken_apart(t)
    if not head.text[:1].isdigit():
        taking = takers(cx, t.name) if type(t) is ty.Con else ""
        return (taking,) if taking else ()
    text = head.source.text[: head.start]
    if text.rstrip()[-1:] in ("[", ","):
        return (f"elements are separated by commas:  [{head.text}, {written(value)}]",)
    if call := re.search(r"\w (\w+ [-+] ?)$", text):  # `go n - 1 x`
        return (f"an argument that is computed is put in parentheses:  ({call[1]}{head.text})",)
    return (f"a product is written  {head.text} * {written(value)}",)


def hiding(cx: Context, name: str) -> tuple[tuple[str, ...], tuple[Label, ...]]:
    """A help and a label for a name of the program that hides a function of the Prelude with more arguments."""
    entry = cx.find(name) if name.isidentifier() else None
    meant = next((layer.values[name] for layer in cx.layers[:2] if name in layer.values), None)
    if not isinstance(entry, Value) or not isinstance(meant, Value | Primitive) or entry is meant:
        return (), ()
    if len(kinds_wanted(meant.scheme.ty)) <= len(kinds_wanted(entry.scheme.ty)):
        return (), ()
    here = Label(entry.span, f"this `{name}` hides that of the library")
    return (f"another name keeps both usable; that of the library:  Prelude.{name}",), (here,)


def superfluous(cx: Context, args: list[Arg], name: str, given: int) -> tuple[tuple[str, ...], tuple[Edit, ...]]:
    """Helps and edits for a function with one argument too many."""
    extra, last = args[given].value, args[given - 1].value
    if known := of_known_function(args, name, extra) or of_sibling(cx, name, args):
        return (known,), ()
    gap = Span(last.span.source, last.span.end, extra.span.start)
    if isinstance(extra, tree.ArrayLit) and isinstance(last, tree.Lit) and isinstance(last.value, str):
        return taken_apart(ty.STRING), ()
    if isinstance(extra, tree.ArrayLit) and len(extra.items) == 1 and gap.text.isspace():
        return (f"an element is taken without a space:  {written(last)}{extra.span.text}",), (Edit(gap, ""),)
    if given == 1 and name and (axis := named_axis(extra.span.source.text[extra.span.start :])) is not None:
        return (along(name, written(last), axis),), ()
    if isinstance(last, tree.Var) and kind_given(cx, last) == "Arr":
        element = f"an element is taken with brackets:  {last.name}[{extra.span.text.strip('()')}]"
        whole = result_of(cx, name, 0)
        of_array = type(whole) is ty.Fn and type(prune(whole.arg)) is ty.Arr
        if given == 1 and of_array and isinstance(extra, tree.Lit) and type(extra.value) is int:
            return (element, along(name, last.name, extra.value)), ()
        return (element,), ()
    if given == 1 and name and isinstance(last, tree.Var):
        call = " ".join(written(arg.value) for arg in args)
        return (f"if `{written(last)}` is to be called first:  {name} ({call})",), ()
    if name == "print":
        return (f"several values:  print ({', '.join(written(arg.value) for arg in args)})",), ()
    return tuple(filter(None, (of_library(cx, name, 1),))), ()


def of_known_function(args: list[Arg], name: str, extra: tree.Expr | term.Term) -> str:
    """A help for one argument too many of a function whose name and arguments are others elsewhere."""
    shown = [written(arg.value) for arg in args]
    match name:
        case "zeros" | "ones":
            return f"rows of {name}:  fill {shown[0]} ({name} {shown[1]})"
        case "reshape" if isinstance(extra, tree.Tuple | tree.ArrayLit | tree.ListLit):
            return reshaped(shown[0], [written(size) for size in extra.items])
        case "reshape" if isinstance(extra, tree.Lit):
            return reshaped(shown[0], shown[1:])
        case "Random.uniform" | "Random.normal":
            return drawn(name, args[0].value, shown[1:])
        case "map" | "List.map":
            return f"of two {'arrays' if name == 'map' else 'lists'}:  {name}2 {' '.join(shown[:3])}"
        case "range":
            return counted(shown)
        case "vjp":
            return f"the pullback is the second part:  let (y, back) = vjp {shown[0]} {shown[1]} in back {shown[2]}"
        case "assert":
            return f"with a reason:  if not {shown[0]} then error {shown[1]}"
        case _:
            return ""
