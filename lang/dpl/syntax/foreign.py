"""Words, names and operators of other languages, and their equivalents in DPL."""

from __future__ import annotations

from functools import cache

from dpl import resources
from dpl.diagnostics import Diagnostic, Edit
from dpl.source import Source, Span
from dpl.syntax.lexer import Token

LAMBDA = "a function without a name:  fun x -> e"

WORDS = {
    "elif": ("write  else if",),
    "elsif": ("write  else if",),
    "elseif": ("write  else if",),
    "fn": ("a function:  let f x = e", LAMBDA),
    "lambda": (LAMBDA,),
    "function": (
        "a function:  let f x = e",
        "by cases:  fun x -> match x with | p -> e | q -> f",
    ),
    "func": ("a function:  let f x = e", LAMBDA),
    "def": ("a function:  let f x = e",),
    "return": ("the value of a function is its body; nothing is returned early",),
    "var": ("a value:  let x = e", "a variable:  let r = ref e"),
    "val": ("a value:  let x = e", "its type stands there too:  let f (x : int) : int = e"),
    "const": ("a value:  let x = e",),
    "where": ("define it before its use:  let x = e in body",),
    "module": ("a file is a module",),
    "case": ("match x with | p -> e | q -> f",),
    "switch": ("match x with | p -> e | q -> f",),
    "unless": ("if not c then a else b",),
    "struct": ("a record:  type t = { x : float; y : float }",),
    "class": ("a record:  type t = { x : float; y : float }",),
}

CLASSES = (
    "show, print, =, < and grad take any data",
    "what differs from type to type is handed in:  let total area xs = sum (map area xs)",
)
OPERATOR = ("an operator:  let ( <+> ) a b = e  with the precedence of its first character",)

STARTS = {
    "from": ("all names of a module:  open List", "or with its name:  List.map f xs"),
    "include": ("a file of yours:  import Model",),
    "using": ("all names of a module:  open List",),
    "enum": ("type t = A | B",),
    "data": ("type t = A | B of int",),
    "try": ("to go on after a failure:  match Control.attempt (fun () -> e) with ...",),
    "raise": ('to end the program:  do error "why"',),
    "exception": (
        'it is thrown without a declaration:  Control.throw "why"',
        "to go on after it:  match Control.attempt (fun () -> e) with ...",
    ),
    "throw": ('to end the program:  do error "why"',),
    "async": ("leave it out; everything is done in order",),
    "pub": ("what others may call:  export let f x = e",),
    "public": ("what others may call:  export let f x = e",),
    "static": ("leave it out",),
    "use": ("all names of a module:  open Nn",),
    "namespace": ("a file is a module",),
    "package": ("a file is a module",),
    "newtype": ("type t = A of int",),
    "record": ("type t = { x : float; y : float }",),
    "impl": ("a function stands by itself:  let area (s : shape) = e",),
    "trait": CLASSES,
    "interface": CLASSES,
    "protocol": CLASSES,
    "instance": CLASSES,
    "deriving": ("leave it out:  show, print, =, < and grad take any data",),
    "extends": CLASSES,
    "infixl": OPERATOR,
    "infixr": OPERATOR,
    "infix": OPERATOR,
    "operator": OPERATOR,
    "macro": ("a function:  let f x = e",),
    "global": ("a variable at the top:  let r = ref e",),
    "del": ("leave it out; memory is freed as soon as it is not used",),
    "yield": ("a generator:  Control.generate (fun () -> Control.yield 1; Control.yield 2)",),
    "await": ("leave it out; everything is done in order",),
    "extension": CLASSES,
}

TYPE_WORDS = {
    "int": "int", "float": "float", "bool": "bool", "string": "string", "double": "float", "long": "int",
    "str": "string", "boolean": "bool", "char": "string", "f32": "f32", "f64": "f64", "i32": "i32", "i64": "int",
    "auto": "_",
}  # fmt: skip

# what other languages write between `let` and a name
MODIFIERS = frozenset((
    "mut", "mutable", "var", "val", "const", "static", "final", "pub", "public", "private", "local", "global",
    "inline", "lazy", "async", "volatile", "ref",
))  # fmt: skip

EACH_SECOND = "[for i < length xs / 2 -> xs[2 * i]]"
COMPOSED = "functions are composed by  fun x -> f (g x)"

OPERATORS = {
    "==": "equality is written  a = b",
    "===": "equality is written  a = b",
    "!=": "inequality is written  a <> b",
    "!==": "inequality is written  a <> b",
    "=/=": "inequality is written  a <> b",
    "&": "and is written  a && b",
    "<-": "a reference is changed by  r := e ; others have changed copies:  { xs with [i] = e }  { r with x = e }",
    "=>": LAMBDA,
    "+=": "a reference is changed by  r := !r + e",
    "-=": "a reference is changed by  r := !r - e",
    "*=": "a reference is changed by  r := !r * e",
    "+.": "`+` works on floats too",
    "-.": "`-` works on floats too",
    "*.": "`*` works on floats too",
    "/.": "`/` works on floats too",
    "^": "strings are joined by  a ++ b; a power is  x ** 2",
    "$": "what a function is given is put in parentheses:  f (g x)",
    "<|": "what a function is given is put in parentheses:  f (g x)",
    "@@": "what a function is given is put in parentheses:  f (g x)",
    ">>": "functions are composed by  fun x -> g (f x) ; a value goes through them by  x |> f |> g",
    "<<": "functions are composed by  fun x -> f (g x) ; a value goes through them by  x |> g |> f",
    "/=": "inequality is written  a <> b ; a reference is changed by  r := !r / e",
    "<$>": "a function of each element:  map f xs",
    ".+": "`+` works on arrays too",
    ".-": "`-` works on arrays too",
    ".*": "`*` works on arrays too",
    "./": "`/` works on arrays too",
    ".^": "a power is  x ** 2 , of arrays too",
    ".**": "a power is  x ** 2 , of arrays too",
    "^^": "a power is  x ** 2",
    "!!": "an element of an array:  xs[i] ; of a list:  List.nth xs i",
    "~": "not is written  not x",
    "%%": "the remainder is written  a % b",
    "<>=": "inequality is written  a <> b",
    "//": "integer division is written  a / b; a comment begins with --",
}

SAME = {"==": "=", "===": "=", "!=": "<>", "!==": "<>", "=/=": "<>", "+.": "+", "-.": "-", "*.": "*", "/.": "/",
        ".+": "+", ".-": "-", ".*": "*", "./": "/", ".^": "**", ".**": "**"}  # fmt: skip


def without_modifier(word: str, name: str) -> tuple[str, ...]:
    """Helps for `let WORD NAME = e`; none if other languages have no such word there."""
    if word in TYPE_WORDS:
        return (f"a value:  let {name} = e", f"with its type:  let {name} : {TYPE_WORDS[word]} = e")
    if word in MODIFIERS:
        return (f"a value:  let {name} = e", f"a variable:  let {name} = ref e ; its content is  !{name}")
    return ()


@cache
def table() -> dict[str, dict]:
    """The table of names in other languages (`names.toml`)."""
    import tomllib

    return tomllib.loads(resources.names().read_text(encoding="utf-8"))


def foreign_operators(source: Source, tokens: list[Token]) -> list[Diagnostic]:
    """Errors for operators of other languages.

    None are reported if the program defines the operator, or opens a module, which may define it."""
    if any(t.kind == "OPEN" for t in tokens):
        return []
    defined = {
        t.value
        for a, t, b in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if a.kind == "LPAR" and b.kind == "RPAR"
    }
    return [
        Diagnostic(
            "E0106",
            f"there is no operator `{t.value}`",
            Span(source, t.start, t.end),
            helps=(OPERATORS[str(t.value)],),
            edits=(Edit(Span(source, t.start, t.end), SAME[str(t.value)]),) if t.value in SAME else (),
        )
        for t in tokens
        if t.kind == "INFIX" and t.value in OPERATORS and t.value not in defined
    ]
