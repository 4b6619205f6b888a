"""Monomorphic copies, and which functions come where."""

import pytest
from corelang import (
    ANY,
    BOOL,
    F64,
    I64,
    UNIT,
    A,
    B,
    add,
    app,
    arr,
    array,
    con,
    define,
    field,
    fn,
    if_,
    lam,
    let,
    lit,
    lower_program,
    mul,
    output,
    prim,
    program,
    show,
    tup,
    var,
)
from dpl.core import term as c
from dpl.core import ty as t
from dpl.source import NOWHERE, Source
from dplc.passes import NeedsInterpreter
from dplc.passes.closures.lambda_sets import solve
from dplc.passes.closures.set_types import Unifier
from dplc.passes.closures.show import show_mono, show_sets, show_type
from dplc.passes.lower.lower import lower
from dplc.passes.specialise.mono import convert, monomorphise
from dplc.pipeline import Context, compile_to

IDENTITY = define("main.id", lam("x", A, var("x", A), "id"), A)
COMPOSE = define(
    "main.compose",
    lam("f", fn(B, A), lam("g", fn(I64, B), lam("x", I64, app(
        var("f", fn(B, A)), app(var("g", fn(I64, B)), var("x", I64))))), "compose"),
    A, B,
)  # fmt: skip
SUCC = lam("x", I64, add(var("x", I64), 1), "succ")
HALF = lam("z", I64, mul(prim("f64", F64, var("z", I64)), 0.5), "half")


def compose(f_, g):
    return app(var("main.compose", fn(f_.ty, g.ty, fn(I64, f_.ty.result)), f_.ty.result, g.ty.result), f_, g)


def test_one_copy_for_each_type_and_none_for_what_is_not_used():
    def used(value, ty):
        return app(var("main.id", fn(ty, ty), ty), value)

    unused = define("main.unused", lam("x", A, var("x", A)), A)
    mono = monomorphise(program(IDENTITY, unused, *show(used(1, I64), used(2.0, F64), used(3, I64))))
    assert len(mono.functions) == 2
    assert "main.unused" not in show_mono(mono)


def test_sizes_are_erased():
    size = t.Size(3)
    sized = define("main.f", lam("x", t.Arr(F64, t.Size(0, ((("n",), 1),))), 1), t.Var("n", "size"))
    three, four = (app(var("main.f", fn(arr(F64), I64), s), array(1.0)) for s in (size, t.Size(4)))
    mono = monomorphise(program(sized, *show(three, four)))
    assert len(mono.functions) == 1
    assert mono.functions["main.f"].ty.arg == t.Arr(F64, ANY)


def test_literals_take_their_type():
    assert convert(F64, 1) == 1.0 and isinstance(convert(F64, 1), float)
    assert convert(t.F32, 0.1) == 0.10000000149011612
    assert convert(t.Con("u8"), 300) == 44 and convert(t.Con("i8"), 200) == -56


def test_types_without_end_are_left_to_the_interpreter():
    body = var("x20", UNIT)
    for i in reversed(range(21)):
        part = var(f"x{i - 1}", UNIT) if i else lit(1)
        body = let(f"x{i}", tup(part, part), body)

    def retyped(e, types):
        match e:
            case c.Let(span, _, name, params, c.Tuple(where, _, items), rest):
                items = tuple(c.Var(NOWHERE, types[x.name], x.name) if isinstance(x, c.Var) else x for x in items)
                types[name] = t.Tup(tuple(x.ty for x in items))
                return c.Let(span, UNIT, name, params, c.Tuple(where, types[name], items), retyped(rest, types))
        return tup()

    with pytest.raises(NeedsInterpreter):
        monomorphise(program(c.Do(retyped(body, {}))))


def test_a_definition_at_endlessly_many_types_is_left_to_the_interpreter():
    """let f x = f (x, x), as if inference let it pass."""
    pair = t.Tup((A, A))
    endless = define("main.f", lam("x", A, app(var("main.f", fn(pair, UNIT), pair), tup(var("x", A), var("x", A)))), A)
    with pytest.raises(NeedsInterpreter):
        monomorphise(program(endless, c.Do(app(var("main.f", fn(I64, UNIT), I64), 1))))


def test_each_mention_of_a_global_function_has_sets_of_its_own():
    uses = show(app(compose(HALF, SUCC), 1), app(compose(SUCC, SUCC), 1))
    text = show_sets(solve(monomorphise(program(COMPOSE, *uses))))
    assert "[f : i64 -{}-> f64]" in text  # the parameters' sets are variables


def test_where_functions_meet_their_sets_are_one():
    pick = define("main.pick", if_(prim("gt", BOOL, 1, 0), SUCC, lam("y", I64, var("y", I64), "same")))
    solved = solve(monomorphise(program(pick, *show(app(var("main.pick", fn(I64, I64)), 1)))))
    (ty,) = [solved.type_of(body) for name, body in solved.items if name]
    assert "succ" in show_type(ty) and "same" in show_type(ty)


def test_closures_are_tuples_where_only_one_function_is_possible():
    made = lower(solve(monomorphise(program(COMPOSE, *show(app(compose(HALF, SUCC), 3))))))
    assert not made.datas
    assert not [name for name in made.fns if name.startswith("apply")]
    assert output(COMPOSE, *show(app(compose(HALF, SUCC), 3))) == ["2.0"]


OPS = c.Data("main.ops", (A,), (("main.ops", t.Tup((A, fn(A, A)))),), ("zero", "step"))


def test_functions_in_records_keep_to_their_record():
    """Two values of one record type that never meet have sets of their own."""
    ops = t.Con("main.ops", (I64,))

    def made(step):
        return con(ops, "main.ops", 0, tup(1, step))

    def stepped(e):
        return app(field(fn(I64, I64), e, 1), field(I64, e, 0))

    double = lam("y", I64, mul(var("y", I64), 2))
    apart = lower_program(program(*show(stepped(made(SUCC)), stepped(made(double))), datas=(OPS,)))
    assert not apart.datas
    together = lower_program(program(*show(stepped(if_(True, made(SUCC), made(double)))), datas=(OPS,)))
    assert {d.names for d in together.datas.values()} == {("succ", "fun")}


def test_elements_without_functions_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of numbers has no sets of functions that those of what its constructors hold could be united with."""
    pairs: list[tuple[t.Ty, t.Ty]] = []
    unite = Unifier.types
    monkeypatch.setattr(Unifier, "types", lambda self, a, b: (pairs.append((a, b)), unite(self, a, b))[1])

    def compared(elements: list[str]) -> int:
        pairs.clear()
        text = f"let xs = [{'; '.join(elements)}]\ndo print (List.length xs)"
        compile_to("lambda_sets", Source("main.dp", text), Context(verify=False))
        return len(pairs)

    assert compared(["1"] * 12) == compared(["1"] * 6)
    assert compared(["sin"] * 12) > compared(["sin"] * 6)
