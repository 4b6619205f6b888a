"""Flat reads back: `parse(show(p))` is `p`, except for places in the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT
from dpl.diagnostics import DplError
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.flat.show import show
from stages import called, flat_stages, programs, sample

FIELDS = ("datas", "residuals", "checkpoints", "rules", "main", "exports")
SMALL = [ROOT / "examples" / "hello.dp", *(path for path in sample(6) if path.stat().st_size < 600)]


def reduced(value: object) -> object:
    """Without places; numbers with their types, and NaN equal to itself."""
    if isinstance(value, tuple):
        return tuple(map(reduced, value))
    if isinstance(value, int | float):
        return type(value), repr(value)
    fields = getattr(type(value), "__match_args__", ())
    return (type(value), *(reduced(getattr(value, name)) for name in fields if name != "span")) if fields else value


def same(program: f.Program, again: f.Program) -> None:
    assert list(again.fns) == list(program.fns) and list(again.datas) == list(program.datas)
    for name in FIELDS:
        assert getattr(again, name) == getattr(program, name)
    for name, fn in program.fns.items():
        assert reduced(again.fns[name]) == reduced(fn), name


def check(path: Path) -> None:
    for stage, program in flat_stages(path):
        text = show(program)
        again = parse(Source(f"{path.name} after {stage}", text))
        same(program, again)
        assert show(again) == text


@pytest.mark.parametrize("path", SMALL, ids=called)
def test_reads_back(path: Path) -> None:
    check(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", programs(), ids=called)
def test_every_program_reads_back(path: Path) -> None:
    check(path)


def test_whatever_programs_seldom_have() -> None:
    x, r, t = f.Var("a b.1", f.F64), f.Var("nan", f.Arr(f.Ref(f.Arr(f.STR, 1)), 2)), f.Var("t.3", f.Tup((f.F64,)))
    consts = (f.Const(float("-inf"), f.F64), f.Const(1e300, f.F32), f.Const(None, t.ty), f.Const("a\n'`\"", f.STR),
              f.Const(-3, f.Num("i8")), f.Const((), f.UNIT))  # fmt: skip
    body = f.Block((
        f.Bind((t,), f.TupMake((x,))),
        f.Bind((), f.Op("op", consts, (("what", "true"), ("flag", True), ("data", "list.0"), ("n", -2), ("s", "a b")))),
        f.Bind((f.Var("y", f.F64),), f.TupGet(t, 0)),
        f.Bind((f.Var("z", f.F64),), f.TupGet(f.Var("a b.1", f.F64), 1)),
        f.Bind((), f.If(f.Const(True, f.BOOL), f.Block((), ()), f.Block((), ()))),
        f.Bind((), f.Par(((f.Var("i", f.I64), f.Const(3, f.I64)),), f.Block((), ()), (), ordered=True)),
    ), ())  # fmt: skip
    fn = f.Fn("add.(f64, f64)[]", (x, r), (), body, "an odd, one", borrowed=(1,))
    data = f.DataDecl("list.0", (None, f.Tup((f.F64, f.Res("site.1")))), ("[]", "::"))
    rules = {"f": f.Rule("vjp", "g", "h"), "g": f.Rule("jvp", "k")}
    program = f.Program({fn.name: fn}, {"list.0": data, "e": f.DataDecl("e", ()), "n": f.DataDecl("n", (None, f.STR))},
                        {"site.1": f.STR}, {"f", "g"}, rules, "start", {"a b": "f"})  # fmt: skip
    text = show(program)
    again = parse(Source("here", text))
    same(program, again)
    assert show(again) == text


@pytest.mark.parametrize(
    ("text", "said", "where"),
    [
        ("let x = 1", "expected a definition", "let"),
        ("fn f() -> ()\n  x: f64 = mul y.1 2.0\n  return", "y.1 is not bound", "y.1"),
        ("fn f() -> ()\n  if true\n    yield\n  return", "expected `else` after this block", "yield"),
        ("fn f(x: f64) -> (f64)\n  y: f64 = mul x x", "the block ends without `return`", "y: f64"),
        ("fn f(x: f64) -> (f64)\n    return x", "this stands too deep", "return"),
        ("fn f(x: f64) -> (f64)\n  return x y", "expected the end of the line", "y"),
        ("fn f(x: f64[) -> (f64)\n  return x", "expected `]`", ")"),
        ("fn f(x: f64) -> (f64)\n  y: f64 = x.one\n  return x", "this is no component of a tuple", "x.one"),
        ("data list = [] | :: (f64", "expected `,`", ""),
        ("fn f() -> ()\n  drop =\n  return", "this is no constant", "="),
    ],
)
def test_what_is_no_flat_has_a_place(text: str, said: str, where: str) -> None:
    with pytest.raises(DplError) as failure:
        parse(Source("here", text))
    (diagnostic,) = failure.value.diagnostics
    assert said in diagnostic.title and diagnostic.span
    assert text[diagnostic.span.start :].startswith(where)
