"""Primitives -> flat operations.

    Prim("matmul", (m, v))      t = reshape v (dim v 0) 1; p = matmul m t; reshape p (dim p 0)

Scalar rows of the table are operations under their own names, arrays included.  Primitives on data of any type are in
`compare`, `showing` and `trees`, those of differentiation in `derivatives`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from dpl.core import formats
from dpl.core import term as c
from dpl.core import ty as t
from dpl.diagnostics import Bug
from dpl.prims import TABLE

from dplc.flat import term as f
from dplc.flat.build import integer, product
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.values import UNIT, Bundle, Value, ValueBuilder, pieces, type_of
from dplc.narrow import expect_type
from dplc.passes.lower import derivatives
from dplc.passes.lower.body import Body
from dplc.passes.lower.compare import compare
from dplc.passes.lower.dissect import Argument, by_constructor, is_scalar, same_constructor
from dplc.passes.lower.layout import layout
from dplc.passes.lower.loops import build
from dplc.passes.lower.showing import Style, show

CONVERSIONS = frozenset((*t.INTS, *t.FLOATS))
RENAMED = {
    "slice": "slice", "range": "iota", "transpose": "transpose", "sum": "sum", "dot": "dot", "index": "index",
    "update": "update", "string_length": "str_length", "string_codes": "str_codes", "stop_grad": "stop_grad",
    "string_bytes": "str_bytes",
    "string_of_codes": "str_of_codes", "read_text": "read_text", "read_bytes": "read_bytes", "arg": "arg",
    "mpi": "mpi",
    "argmax": "argmax", "argmin": "argmin", "sort": "sort", "argsort": "argsort",
    "ref": "ref_new", "deref": "ref_get", "conv2d": "conv2d", "conv2d_data": "conv2d_data",
}  # fmt: skip
SEVERAL = {
    "string_of_bytes": ("str_of_bytes", (f.STR, f.BOOL)),
    "string_to_int": ("str_to_int", (f.I64, f.BOOL)), "string_to_float": ("str_to_float", (f.F64, f.BOOL)),
    "string_to_table": ("str_to_table", (f.Arr(f.F64, 1), f.I64, f.BOOL)), "env": ("env", (f.STR, f.BOOL)),
    "read_line": ("read_line", (f.STR, f.BOOL)),
}  # fmt: skip
NOTHING = {"print_string": "write", "assign": "ref_set", "write_text": "write_text", "write_bytes": "write_bytes",
           "progress": "progress"}  # fmt: skip
BITCASTS = {"f64_of_bits": "f64", "bits_of_f64": "u64", "f32_of_bits": "f32", "bits_of_f32": "u32",
            "f16_of_bits": "f16", "bits_of_f16": "u16"}  # fmt: skip


def lower_primitive(body: Body, e: c.Prim) -> Value:
    """By a handler of its own, by a table of those that are alike, or by its name if it is elementwise."""
    handler = HANDLERS.get(e.op)
    if handler is not None:
        return handler(body, e)
    values = [body.term(a) for a in e.args]
    args = [body.b.atom(v) for v in values]
    b = body.b
    if e.op in RENAMED:
        return b.explode(b.op(RENAMED[e.op], args, e.span))
    if e.op in SEVERAL:
        name, types = SEVERAL[e.op]
        return Bundle(tuple(b.bind(f.Op(name, tuple(args), (), e.span), types)))
    if e.op in NOTHING:
        b.effect(NOTHING[e.op], args, e.span)
        return UNIT
    if e.op in BITCASTS:
        return b.op("bitcast", args, e.span, to=BITCASTS[e.op])
    if e.op in CONVERSIONS:
        return cast(b, args[0], e.op, e)
    if e.op in TABLE and TABLE[e.op].elementwise:
        return b.op(e.op, args, e.span)
    raise Bug(f"no lowering for the primitive `{e.op}`")


def cast(b: ValueBuilder, x: f.Atom, to: str, e: c.Prim) -> f.Atom:
    return x if elem_of(x.ty) == f.Num(to) else b.op("cast", (x,), e.span, to=to)


# ---- scalars --------------------------------------------------------------------------------------------------------


def power(body: Body, e: c.Prim) -> Value:
    base, exponent = [body.atom(a) for a in e.args]
    if f.is_float(elem_of(exponent.ty)):
        return body.b.op("pow", (base, exponent), e.span)
    return body.b.op("powi", (base, cast(body.b, exponent, "i64", e)), e.span)


def to_like(body: Body, e: c.Prim) -> Value:
    x, like = [body.atom(a) for a in e.args]
    return cast(body.b, x, expect_type(f.Num, elem_of(like.ty)).name, e)


def comparison(body: Body, e: c.Prim) -> Value:
    ty = body.type_of(e.args[0])
    bare = next((k for k, arg in enumerate(e.args) if is_bare(body, arg)), None)
    if e.op in ("eq", "ne") and bare is not None:  # `xs = []` only asks for the constructor
        made, same = expect_type(c.Con, e.args[bare]), f.Const(e.op == "eq", f.BOOL)
        other = f.Const(e.op == "ne", f.BOOL)
        return same_constructor(body, body.term(e.args[1 - bare]), made.tag, lambda _: same, lambda: other)
    left, right = [body.term(a) for a in e.args]
    return compare(body, e.op, ty, left, right)


def is_bare(body: Body, e: c.Term) -> bool:
    """True for a constructor without argument, of a type that has others."""
    return isinstance(e, c.Con) and e.arg is None and not body.up.datas.unboxed(expect_type(t.Con, e.ty))


# ---- arrays ---------------------------------------------------------------------------------------------------------


def dim(body: Body, e: c.Prim) -> Value:
    k = expect_type(c.Lit, e.args[1]).value if e.op == "dim" else 0
    return body.b.op("dim", (body.atom(e.args[0]),), k=k)


def filled(body: Body, e: c.Prim) -> Value:
    count = body.atom(e.args[0])
    if e.op == "fill":
        return body.b.op("fill", (count, body.atom(e.args[1])), e.span)
    elem = elem_of(body.flat(e))
    return body.b.op("fill", (count, f.Const(0.0 if e.op == "zeros" else 1.0, elem)), e.span)


def append(body: Body, e: c.Prim) -> Value:
    if body.type_of(e) == t.STRING:
        return append_texts(body, e)
    left, right = [body.atom(a) for a in e.args]
    match body.type_of(e):
        case t.Arr():
            return body.b.op("concat", (left, right), e.span)
        case ty:
            return append_lists(body, expect_type(t.Con, ty), left, right)


def append_texts(body: Body, e: c.Prim) -> Value:
    """The texts of a chain, one after the other.  What stands between two strings, literals and shown numbers, is
    written to the output buffer and taken from it at once."""
    found: list[f.Atom] = []
    for written, leaves in groupby(texts_of(e), lambda leaf: is_written(body, leaf)):
        run = list(leaves)
        if written and len(run) > 1:
            values = [body.atom(leaf.args[-1] if isinstance(leaf, c.Prim) else leaf) for leaf in run]
            with body.b.at(e.span):
                for leaf, value in zip(run, values):
                    write_text(body, leaf, value)
                found.append(body.b.atom(body.b.op("buf_take", ())))
        else:
            found += [body.atom(leaf) for leaf in run]
    whole = found[0]
    for part in found[1:]:
        whole = body.b.op("str_append", (whole, part), e.span)
    return whole


def texts_of(e: c.Term) -> list[c.Term]:
    """The operands of a chain of `++`."""
    if isinstance(e, c.Prim) and e.op == "append":
        return [text for arg in e.args for text in texts_of(arg)]
    return [e]


def is_written(body: Body, e: c.Term) -> bool:
    """True for a literal, and for a number or boolean that is shown or formatted."""
    if isinstance(e, c.Prim) and is_scalar(body, body.type_of(e.args[-1])):
        return e.op == "show" or (e.op == "format" and style_of(body, e) is not None)
    return isinstance(e, c.Lit)


def write_text(body: Body, e: c.Term, value: f.Atom) -> None:
    """Writes a literal, or what `show` and `format` make of a number or boolean, to the output buffer."""
    if isinstance(e, c.Prim):
        show(body, body.type_of(e.args[-1]), value, Style() if e.op == "show" else style_of(body, e) or Style())
    else:
        body.b.effect("buf_str", (value,))


def append_lists(body: Body, ty: t.Con, left: f.Atom, right: f.Atom) -> f.Atom:
    key, flat = ("append", ty), body.up.layout.flat(ty)

    def make(inner: Body, xs: f.Atom, ys: f.Atom) -> f.Atom:
        def arm(_tag: int, argument: Argument) -> Value:
            if argument is None:
                return ys
            head, tail = pieces(argument[1])
            rest = inner.b.call(inner.up.function(key, (flat, flat), make), (tail, ys), flat)
            return inner.construct(ty, 1, Bundle((head, rest)))

        return inner.b.atom(by_constructor(inner, ty, xs, arm))

    return body.b.call(body.up.function(key, (flat, flat), make), (left, right), flat)


def dims(b: ValueBuilder, x: f.Atom) -> list[f.Atom]:
    return [b.op("dim", (x,), k=k) for k in range(rank_of(x.ty))]


def reshape(body: Body, e: c.Prim) -> Value:
    """A dimension of -1 is computed from the number of elements.  Dimensions inside the elements are kept."""
    b = body.b
    x, *wanted = [body.atom(a) for a in e.args]
    inner = rank_of(body.flat(e)) - len(wanted)
    kept = dims(b, x)[rank_of(x.ty) - inner :] if inner else []
    if integer(-1) in wanted:
        rest = product(b, [w for w in wanted if w != integer(-1)] + kept)
        total = product(b, dims(b, x))
        left = b.op("div", (total, b.op("max", (rest, integer(1)))), e.span)
        wanted = [left if w == integer(-1) else w for w in wanted]
    return b.op("reshape", (x, *wanted, *kept), e.span)


def flatten(body: Body, e: c.Prim) -> Value:
    b = body.b
    x = body.atom(e.args[0])
    n, m, *inner = dims(b, x)
    return b.op("reshape", (x, b.op("mul", (n, m)), *inner), e.span)


def matmul(body: Body, e: c.Prim) -> Value:
    """A vector becomes a matrix of one row (left operand) or one column (right operand), by reshaping, which is
    free."""
    b = body.b
    x, y = [body.atom(a) for a in e.args]
    one = integer(1)
    left = x if rank_of(x.ty) == 2 else b.op("reshape", (x, one, b.op("dim", (x,), k=0)))
    right = y if rank_of(y.ty) == 2 else b.op("reshape", (y, b.op("dim", (y,), k=0), one))
    result = b.op("matmul", (left, right), e.span, ta=False, tb=False)
    if left is x and right is y:
        return result
    if left is not x and right is not y:
        return b.op("index", (result, integer(0), integer(0)))
    return b.op("reshape", (result, b.op("dim", (result,), k=0 if left is x else 1)))


def sized(body: Body, e: c.Prim) -> Value:
    """An array whose inner sizes, if it has no rows, are the operands after it; or whose sizes are all told."""
    array, *known = e.args
    if isinstance(array, c.Build):
        return build(body, array, tuple(known))
    b = body.b
    x, told = body.atom(array), [body.atom(k) for k in known]
    if len(told) == rank_of(x.ty):
        return b.op("reshape", (x, *told), e.span, unchecked=True, told=True)
    n, *inner = dims(b, x)
    before, found = n, [n]
    for own, size in zip(inner, told, strict=True):
        found.append(b.op("select", (b.op("eq", (before, integer(0))), size, own)))
        before = b.op("mul", (before, found[-1]))
    return b.op("reshape", (x, *found), e.span, unchecked=True)


def numeric(body: Body, e: c.Prim) -> Value:
    ty = expect_type(f.Arr, body.atom(e.args[0]).ty)
    return f.Const(ty.rank == 1 and isinstance(ty.elem, f.Num), f.BOOL)


# ---- text and effects -----------------------------------------------------------------------------------------------


def show_(body: Body, e: c.Prim) -> Value:
    value = body.term(e.args[0])
    if body.type_of(e.args[0]) == t.STRING:
        return value
    with body.b.at(e.span):
        return shown(body, body.type_of(e.args[0]), value, Style())


def shown(body: Body, ty: t.Ty, value: Value, style: Style) -> Value:
    show(body, ty, value, style)
    return body.b.op("buf_take", ())


def print_(body: Body, e: c.Prim) -> Value:
    value, ty = body.term(e.args[0]), body.type_of(e.args[0])
    with body.b.at(e.span):
        if ty == t.STRING:
            body.b.effect("buf_str", (value,))
        else:
            show(body, ty, value, Style(abridged=True))
        body.b.effect("buf_str", (f.Const("\n", f.STR),))
        body.b.effect("write", (body.b.op("buf_take", ()),))
    return UNIT


def layout_(body: Body, e: c.Prim) -> Value:
    layout(body, body.type_of(e.args[0]), body.term(e.args[0]))
    return body.b.op("buf_take", (), e.span)


def format_(body: Body, e: c.Prim) -> Value:
    """Numbers are written by the format; a value without numbers is padded as text."""
    value, ty, style = body.term(e.args[1]), body.type_of(e.args[1]), style_of(body, e)
    with body.b.at(e.span):
        if style is not None:
            return shown(body, ty, value, style)
        if not isinstance(type_of(value), f.Num | f.Str):
            value = shown(body, ty, value, Style())
        spec = f.Const(str(expect_type(c.Lit, e.args[0]).value), f.STR)
        body.b.effect("buf_format", (spec, value, f.Const(False, f.BOOL)))
        return body.b.op("buf_take", ())


def style_of(body: Body, e: c.Prim) -> Style | None:
    """How `format` writes the numbers of its value; None if it is padded as text."""
    spec = expect_type(c.Lit, e.args[0]).value
    assert isinstance(spec, str)
    form = formats.read(spec)
    kinds = formats.numbers(form, formats.kinds_of(body.type_of(e.args[1]), body.up.datas.datas))
    # no numbers, for example in an empty list
    return Style(form=spec, kinds=kinds) if kinds or not form.suits_text else None


def stop(body: Body, e: c.Prim) -> Value:
    """error, refuted and exit.  Code after them is never reached."""
    arg = body.atom(e.args[0])
    codes = {"error": "R0706", "refuted": "R0707"}
    rhs = f.Op("fail", (arg,), (("code", codes[e.op]),), e.span) if e.op in codes else f.Op("exit", (arg,), (), e.span)
    return body.b.explode(body.b.one(rhs, body.flat(e), "never"))


def assert_(body: Body, e: c.Prim) -> Value:
    cond = body.atom(e.args[0])
    return body.branch(cond, lambda: UNIT, lambda: body.fail("an assertion does not hold", f.UNIT, e.span, "R0707"))


def outside(body: Body, e: c.Prim) -> Value:
    """Primitives that take unit."""
    body.term(e.args[0])
    return body.b.op(e.op, (), e.span)


def extern(body: Body, e: c.Prim) -> Value:
    args = tuple([body.atom(a) for a in e.args[1:]])
    rhs = f.Op("extern", args, (("symbol", expect_type(c.Lit, e.args[0]).value),), e.span)
    return body.b.explode(body.b.one(rhs, body.flat(e), "c"))


def keep(body: Body, e: c.Prim) -> Value:
    body.b.keep(name_of(e), body.term(e.args[1]), e.span)
    return UNIT


def recall(body: Body, e: c.Prim) -> Value:
    return body.b.kept(name_of(e), body.flat(e), e.span)


def name_of(e: c.Prim) -> str:
    """The name in the first operand, a literal."""
    name = expect_type(c.Lit, e.args[0]).value
    assert isinstance(name, str)
    return name


def gram(body: Body, e: c.Prim) -> Value:
    rows = [as_matrix(body.b, body.atom(a)) for a in e.args]
    return body.b.op("matmul", rows, e.span, ta=False, tb=True)


def as_matrix(b: ValueBuilder, x: f.Atom) -> f.Atom:
    """A matrix whose second dimension is the product of all inner dimensions."""
    if rank_of(x.ty) == 2:
        return x
    rows, *inner = dims(b, x)
    return b.op("reshape", (x, rows, product(b, inner)))


def lapack(body: Body, e: c.Prim) -> Value:
    """A LAPACK routine, which computes in f64.  Its last operand may be a vector or have a rank above 2; it is reshaped
    to a matrix and back."""
    b = body.b
    *args, last = [body.atom(a) for a in e.args]
    kind = elem_of(last.ty)
    assert isinstance(kind, f.Num)
    operands = tuple([in_type(b, a, kind, f.F64, e) for a in (*args, as_matrix(b, last))])
    types = OPS[e.op].result(tuple([a.ty for a in operands]), {})
    results = [in_type(b, x, f.F64, kind, e) for x in b.bind(f.Op(e.op, operands, (), e.span), types or ())]
    if len(results) > 1:
        return Bundle(tuple(results))
    return results[0] if rank_of(last.ty) == 2 else b.op("reshape", (results[0], *dims(b, last)))


def in_type(b: ValueBuilder, x: f.Atom, old: f.Num, new: f.Num, e: c.Prim) -> f.Atom:
    """Numbers of one type in another; what has other numbers as it is."""
    return cast(b, x, new.name, e) if elem_of(x.ty) == old else x


HANDLERS: dict[str, Callable[[Body, c.Prim], Value]] = {
    "pow": power, "to_like": to_like, "length": dim, "dim": dim, "zeros": filled, "ones": filled, "fill": filled,
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), comparison),
    "append": append, "reshape": reshape, "sized": sized, "numeric": numeric, "flatten": flatten,
    "matmul": matmul, "gram": gram,
    "show": show_, "print": print_, "format": format_, "error": stop, "refuted": stop, "exit": stop,
    "assert": assert_,
    "arg_count": outside, "time": outside, "has_lapack": outside, "extern": extern,
    "keep": keep, "recall": recall,
    **{op: lapack for op in OPS if op.startswith("lapack_")},
    "jvp": derivatives.jvp, "taylor": derivatives.taylor, "vjp": derivatives.vjp, "checkpoint": derivatives.checkpoint,
    "with_vjp": derivatives.with_rule, "with_jvp": derivatives.with_rule,
    "tree_map": derivatives.tree_map, "tree_map2": derivatives.tree_map, "tree_leaves": derivatives.tree_leaves,
    "tree_map_words": derivatives.tree_map, "tree_words": derivatives.tree_leaves, "tree_layout": layout_,
}  # fmt: skip
