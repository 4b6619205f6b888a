"""Random trees of whole files, as the parser could have made them (without spans)."""

from __future__ import annotations

from dpl.source import NOWHERE, Span
from dpl.syntax import tree
from hypothesis import strategies as st

N = NOWHERE
LOWERS = st.sampled_from(["x", "y'", "_z", "loss", "θ", "in_", "matches"])
UPPERS = st.sampled_from(["A", "Leaf", "Node2"])
# No operator of another language is among them: a program that uses one without a definition is refused.
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "@",
    "**",
    "++",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "<+>",
    "^+",
    "**.",
    "+.+",
    "$$",
    "|+|",
    "&&&",
]
TYPES = st.sampled_from(["int", "float", "t", "Nn.layer"])
FIELDS = st.one_of(LOWERS, st.just("Nn.width"))


def build(kind, *parts, **more):
    return st.builds(lambda *a, **k: kind(N, *a, **k), *parts, **more)


def tuples(items, low=0, high=3):
    return st.lists(items, min_size=low, max_size=high).map(tuple)


# ---- sizes, types, patterns ---------------------------------------------------------------------------------------

SIZES = st.recursive(
    st.one_of(
        build(tree.SizeNum, st.integers(0, 99)),
        build(tree.SizeVar, LOWERS),
        build(tree.SizeUnknown),
        build(tree.SizeOpen),
    ),
    lambda inner: build(tree.SizeOp, st.sampled_from("+-*"), inner, inner),
    max_leaves=4,
)
ARGUMENT_SIZES = st.one_of(build(tree.SizeNum, st.integers(0, 99)), build(tree.SizeUnknown))


def _types(inner):
    return st.one_of(
        build(tree.TyName, TYPES, tuples(st.one_of(inner, ARGUMENT_SIZES), 1)),
        build(tree.TyTuple, tuples(inner, 2)),
        build(tree.TyFun, inner, inner, st.one_of(st.none(), inner)),
        build(tree.TyArray, inner, tuples(SIZES, 1)),
    )


TYPE = st.recursive(
    st.one_of(build(tree.TyVar, st.just("a")), build(tree.TyName, TYPES), build(tree.TyOpen)), _types, max_leaves=5
)
NUMBERS = st.one_of(
    st.tuples(st.integers(0, 10**6), st.sampled_from(["", "i32", "u64"])),
    st.tuples(st.floats(0, 1e9).filter(lambda x: x == x), st.sampled_from(["", "f32"])),
)
STRINGS = st.sampled_from(
    ["", "a b", 'quote " and \\', "line\nline", "{brace}", "θ\u200b", "-- no comment", "(* nor this"]
)
PATTERN_LEAVES = st.one_of(
    build(tree.PatWild),
    build(tree.PatVar, LOWERS),
    build(tree.PatVar, st.sampled_from(OPERATORS)),
    st.tuples(NUMBERS, st.booleans()).map(
        lambda n: tree.PatLit(N, -n[0][0] if n[1] and n[0][1] != "u64" else n[0][0], n[0][1])
    ),
    build(tree.PatLit, STRINGS),
    build(tree.PatLit, st.booleans()),
    build(tree.PatCon, UPPERS),
)


def _patterns(inner):
    fields_ = tuples(st.tuples(FIELDS, inner), 1)
    return st.one_of(
        tuples(inner).filter(lambda t: len(t) != 1).map(lambda t: tree.PatTuple(N, t)),
        build(tree.PatCon, UPPERS, inner),
        build(tree.PatCons, inner, inner),
        build(tree.PatList, tuples(inner)),
        build(tree.PatArray, tuples(inner, 1)),
        build(tree.PatRecord, fields_, st.booleans()),
        build(tree.PatAs, inner, LOWERS),
        build(tree.PatOr, inner, inner),
        build(tree.PatAnnot, inner, TYPE),
    )


PATTERN = st.recursive(PATTERN_LEAVES, _patterns, max_leaves=4)
FUNCTION_NAME = build(tree.PatVar, st.one_of(LOWERS, st.sampled_from(OPERATORS)))

# ---- expressions --------------------------------------------------------------------------------------------------


def _number(value, suffix, negative=False):
    negative = negative and suffix != "u64"
    value = -value if negative else value
    return tree.Lit(N, value, suffix, f"{'-' if negative else ''}{abs(value)!r}{suffix}")


LEAVES = st.one_of(
    st.builds(lambda n, negative: _number(*n, negative), NUMBERS, st.booleans()),
    build(tree.Lit, STRINGS),
    st.booleans().map(lambda b: tree.Lit(N, b, "", "true" if b else "false")),
    build(tree.Var, st.one_of(LOWERS, st.sampled_from(["not", "Nn.relu", "~-", "!!", "&&", "::", *OPERATORS]))),
    build(tree.Con, st.one_of(UPPERS, st.just("Nn.Leaf"))),
    st.just(tree.Tuple(N, ())),
)


def _unary(arg):
    """As the parser makes them: a sign before a number belongs to it."""
    if isinstance(arg, tree.Lit) and not isinstance(arg.value, str | bool) and not arg.text.startswith("-"):
        return _number(arg.value, arg.suffix, True) if arg.suffix != "u64" else arg
    return tree.Unary(N, "-", arg)


def _interp(pieces):
    """Texts around expressions, empty ones left out."""
    parts = [p for text, expr, form in pieces for p in (text, (expr, form)) if p != ""]
    return tree.Interp(N, tuple(parts))


def _binding(inner):
    annot = st.one_of(st.none(), TYPE)
    return st.one_of(
        build(tree.Binding, PATTERN, st.just(()), annot, inner),
        build(tree.Binding, FUNCTION_NAME, tuples(PATTERN, 1), annot, inner),
    )


def _exprs(inner):
    records = tuples(st.tuples(FIELDS, inner), 1)
    count = st.one_of(LOWERS, st.just("_"))
    slices = st.one_of(inner, build(tree.Slice, st.one_of(st.none(), inner), st.one_of(st.none(), inner)))
    clauses = st.one_of(build(tree.ForRange, count, inner), build(tree.ForIn, PATTERN, inner))
    arms = tuples(build(tree.Arm, PATTERN, st.one_of(st.none(), inner), inner), 1)
    return st.one_of(
        st.lists(st.tuples(st.sampled_from(["", "a{b}", 'x"']), inner, st.sampled_from(["", ".4f"])), max_size=2).map(
            _interp
        ),
        build(tree.Tuple, tuples(inner, 2)),
        build(tree.ListLit, tuples(inner)),
        build(tree.ArrayLit, tuples(inner, 1, 6)),
        build(tree.Comprehension, tuples(clauses, 1), st.one_of(st.none(), inner), inner),
        build(tree.Record, records),
        build(tree.RecordWith, inner, records),
        build(tree.ArrayWith, inner, tuples(st.tuples(tuples(inner, 1), inner), 1)),
        build(tree.Field, inner, LOWERS),
        build(tree.Index, inner, tuples(slices, 1)),
        build(tree.App, inner, inner),
        st.builds(_unary, inner),
        build(tree.Unary, st.just("!"), inner),
        build(tree.Binary, st.sampled_from(OPERATORS), inner, inner, st.just(N)),
        build(tree.Logic, st.sampled_from(["&&", "||"]), inner, inner),
        build(tree.Cons, inner, inner),
        build(tree.Pipe, inner, inner),
        build(tree.Assign, inner, inner),
        build(tree.Seq, inner, inner),
        build(tree.If, inner, inner, st.one_of(st.none(), inner)),
        build(tree.Match, inner, arms),
        build(tree.Fun, tuples(PATTERN, 1), inner),
        build(tree.Let, st.booleans(), tuples(_binding(inner), 1), inner),
        build(tree.LoopFor, PATTERN, inner, count, inner, inner),
        build(tree.LoopWhile, PATTERN, inner, inner, inner),
        build(tree.Shift, count, inner),
        build(tree.Reset, inner),
        build(tree.Annot, inner, TYPE),
        build(tree.Coerce, inner, TYPE),
    )


EXPR = st.recursive(LEAVES, _exprs, max_leaves=12)

# ---- declarations -------------------------------------------------------------------------------------------------

PARAMS = tuples(
    st.one_of(build(tree.Param, st.just("a"), st.just(False)), build(tree.Param, st.just("n"), st.just(True)))
)
CASES = tuples(st.tuples(UPPERS, st.one_of(st.none(), TYPE), st.just(N)), 1)
FIELDS = tuples(st.tuples(LOWERS, TYPE, st.just(N)), 1)
TYPEDEFS = build(tree.TypeDef, LOWERS, PARAMS, st.one_of(build(tree.Variants, CASES), build(tree.Fields, FIELDS), TYPE))
DECL = st.one_of(
    build(tree.DeclLet, st.booleans(), tuples(_binding(EXPR), 1), st.booleans()),
    build(tree.DeclType, tuples(TYPEDEFS, 1)),
    build(tree.DeclOpen, UPPERS),
    build(tree.DeclDo, EXPR),
    st.sampled_from(
        [
            tree.DeclImport(N, "Nn", False, None),
            tree.DeclImport(N, "a b/m.dp", True, "M"),
            tree.DeclImport(N, "m.dp", True, None),
        ]
    ),
    build(tree.DeclExtern, st.just("cbrt"), LOWERS, TYPE),
    build(tree.DeclExpect, STRINGS, EXPR),
)
FILE = st.builds(lambda decls: tree.File(N, decls, ()), tuples(DECL, 0, 4))


def bare(value):
    """A tree without its spans, literals without the way they were written."""
    match value:
        case tree.Lit(_, number, suffix, _):
            return "Lit", type(number), repr(number), suffix
        case tree.Node():
            left_out = ("span", "op_span", "comments", "doc")
            return type(value).__name__, *(bare(getattr(value, f)) for f in value.__match_args__ if f not in left_out)
        case tuple():
            return tuple(map(bare, value))
        case Span():
            return None
        case float():
            return repr(value)
        case _:
            return value
