"""print and show -> flat functions, one for each type, that write to the output buffer piece by piece.

    print [Some 1; None]      call show.4 xs; buf_str "\\n"; write (buf_take)

The text of a value is specified in `eval/values/show.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import formats
from dpl.core import ty as t
from dpl.diagnostics import Bug
from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.build import UNIT_ATOM, integer
from dplc.flat.values import UNIT, Value, block_of, pieces, type_of
from dplc.narrow import a_type, expect_type
from dplc.passes.lower.body import Body
from dplc.passes.lower.dissect import Argument, by_constructor, each_item, is_scalar

LIMIT = 1000  # elements; `print` abridges longer arrays and lists
KEPT = 500


@node
class Style:
    """`abridged`: as `print` shows it.  `argument`: a constructor's argument, in parentheses where needed.  `form`: the
    format for numbers of these `kinds`."""

    abridged: bool = False
    argument: bool = False
    form: str = ""
    kinds: frozenset[str] = frozenset()


def text(body: Body, s: str) -> Value:
    body.b.effect("buf_str", (f.Const(s, f.STR),))
    return UNIT


def show(body: Body, ty: t.Ty, value: Value, style: Style) -> Value:
    """Write a value's text to the output buffer."""
    inside = replace(style, argument=False)
    if ty == t.BOOL:
        body.b.effect("buf_num", (value,))
    elif is_scalar(body, ty) and formats.kind_of(expect_type(t.Con, ty).name) in style.kinds:
        body.b.effect("buf_format", (f.Const(style.form, f.STR), body.b.atom(value), f.Const(style.argument, f.BOOL)))
    elif is_scalar(body, ty):
        show_number(body, value, style.argument and expect_type(t.Con, ty).name[0] != "u")
    else:
        match ty:
            case t.Fn():
                text(body, "<fun>")
            case t.Con("string"):
                body.b.effect("buf_quoted", (value,))
            case t.Tup(items):
                text(body, "(")
                for i, (item, part) in enumerate(zip(items, pieces(value))):
                    if i:
                        text(body, ", ")
                    show(body, item, part, inside)
                text(body, ")")
            case _:
                fn = body.up.function(
                    ("show", ty, style),
                    (body.up.layout.flat(ty),),
                    lambda inner, x: show_one(inner, ty, x, style, inside),
                )
                body.b.call(fn, (value,), f.UNIT)
    return UNIT


def show_number(body: Body, x: Value, argument: bool) -> None:
    if argument:
        body.b.call(body.up.function(("show_argument", type_of(x)), (type_of(x),), show_signed), (x,), f.UNIT)
    else:
        body.b.effect("buf_num", (x,))


def show_signed(body: Body, x: f.Atom) -> f.Atom:
    """Write a number; in parentheses if its text begins with `-`, as that of -0.0 does."""
    b = body.b
    zero, one = [f.Const(float(n) if f.is_float(x.ty) else n, x.ty) for n in (0, 1)]
    negative: f.Atom = b.op("lt", (x, zero))
    if f.is_float(x.ty):
        below = b.op("eq", (x, zero))
        negative = b.atom(body.branch(below, lambda: b.op("lt", (b.op("div", (one, x)), zero)), lambda: negative))

    def number() -> Value:
        b.effect("buf_num", (x,))
        return UNIT

    def parenthesised() -> Value:
        text(body, "(")
        number()
        return text(body, ")")

    body.branch(negative, parenthesised, number)
    return UNIT_ATOM


def show_one(body: Body, ty: t.Ty, x: Value, style: Style, inside: Style) -> f.Atom:
    """The body of a show function."""
    match ty:
        case t.Arr(elem):
            show_array(body, elem, body.b.atom(x), inside)
        case t.Con("list"):
            show_list(body, ty, body.b.atom(x), inside)
        case t.Con("ref", (content,)):
            inner = body.b.explode(body.b.op("ref_get", (x,)))
            show_application(body, "ref", (a_type(content), inner), style)
        case t.Con():
            by_constructor(body, ty, x, lambda tag, argument: show_case(body, ty, tag, argument, style, inside))
        case _:
            raise Bug(f"cannot show {ty}")
    return UNIT_ATOM


def show_case(body: Body, ty: t.Con, tag: int, argument: Argument, style: Style, inside: Style) -> Value:
    declared = body.up.datas.datas[ty.name]
    if declared.fields and argument is not None:
        return show_record(body, ty, argument, inside)
    name = declared.cases[tag][0]
    return show_application(body, name.rpartition(".")[2] or name, argument, style)


def show_application(body: Body, name: str, argument: Argument, style: Style) -> Value:
    if argument is None:
        return text(body, name)
    text(body, f"({name} " if style.argument else f"{name} ")
    show(body, *argument, replace(style, argument=True))
    return text(body, ")") if style.argument else UNIT


def show_record(body: Body, ty: t.Con, argument: tuple[t.Ty, Value], inside: Style) -> Value:
    names = body.up.datas.datas[ty.name].fields
    payload, value = argument
    lone = body.up.datas.lone_field(ty)
    parts = [argument] if lone else list(zip(expect_type(t.Tup, payload).items, pieces(value)))
    for i, (name, part) in enumerate(zip(names, parts)):
        text(body, f"; {name} = " if i else f"{{ {name} = ")
        show(body, *part, inside)
    return text(body, " }")


# ---- arrays and lists -----------------------------------------------------------------------------------------------


def show_array(body: Body, elem: t.Ty, x: f.Atom, style: Style) -> None:
    b = body.b
    count, index = b.op("dim", (x,), k=0), b.var("i", f.I64)
    text(body, "[")
    with b.inside() as binds:
        show_item(
            body, index, count, ", ", style, lambda: show(body, elem, b.explode(b.op("index", (x, index))), style)
        )
    b.bind(f.For(index, count, (), (), block_of(binds, ())), ())
    text(body, "]")


def show_item(
    body: Body, index: f.Atom, count: f.Atom, separator: str, style: Style, item: Callable[[], Value]
) -> Value:
    """Show item `index` of `count`, unless it is in the part left out."""
    b = body.b

    def shown() -> Value:
        body.branch(b.op("gt", (index, integer(0))), lambda: text(body, separator), lambda: UNIT)
        return item()

    def left_out() -> Value:
        return body.branch(b.op("eq", (index, integer(KEPT))), lambda: text(body, f"{separator}..."), lambda: UNIT)

    if not style.abridged:
        return shown()
    late = b.op("ge", (index, b.op("sub", (count, integer(KEPT)))))
    near = b.op("or", (late, b.op("lt", (index, integer(KEPT)))))
    return body.branch(b.op("or", (near, b.op("le", (count, integer(LIMIT))))), shown, left_out)


def show_list(body: Body, ty: t.Con, x: f.Atom, style: Style) -> None:
    b = body.b
    text(body, "[")
    count = each_item(
        body,
        ty,
        x,
        lambda index, count, elem, head: show_item(
            body, index, count, "; ", style, lambda: show(body, elem, head, style)
        ),
    )
    body.branch(b.op("eq", (count, integer(1))), lambda: text(body, ";]"), lambda: text(body, "]"))
