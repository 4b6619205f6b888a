"""core -> flat, seen by what the flat program prints and by what became of its functions."""

from corelang import (
    BOOL,
    F64,
    I64,
    STR,
    UNIT,
    A,
    B,
    add,
    app,
    arr,
    array,
    con,
    cons,
    define,
    equal,
    field,
    flat,
    fn,
    if_,
    lam,
    let,
    letrec,
    list_,
    lit,
    match,
    mul,
    nil,
    output,
    pcon,
    plit,
    prim,
    ptup,
    pvar,
    show,
    sub,
    tup,
    var,
    wild,
)  # fmt: skip
from dpl.core import term as c
from dpl.core import ty as t
from dpl.source import NOWHERE
from dplc.flat import term as f

N = t.Var("n", "size")
MAP = define(
    "P.map",
    lam("f", fn(A, B), lam("xs", arr(A), c.Build(NOWHERE, arr(B), "i", prim("length", I64, var("xs", arr(A))), app(
        var("f", fn(A, B)), prim("index", A, var("xs", arr(A)), var("i", I64)))))),
    A, B, N,
)  # fmt: skip


def mapped(f_, xs, a=I64, b=I64):
    return app(var("P.map", fn(fn(a, b), arr(a), arr(b)), a, b, t.Size(2)), f_, xs)


SUCC = lam("x", I64, add(var("x", I64), 1))
DOUBLE = lam("y", I64, mul(var("y", I64), 2))


def calls_in(program: f.Program) -> list[str]:
    return [line for line in program.fns if line.startswith("apply")]


def test_known_functions_are_called_directly():
    xs = array(1, 2)
    made = flat(*show(mapped(SUCC, xs), mapped(DOUBLE, xs)), library=(MAP,))
    assert not calls_in(made)
    assert output(*show(mapped(SUCC, xs), mapped(DOUBLE, xs)), library=(MAP,)) == ["[2, 3]", "[2, 4]"]


def test_a_function_chosen_at_run_time_is_data():
    def pick(test):
        return mapped(if_(test, SUCC, DOUBLE), array(1, 5))

    assert calls_in(flat(*show(pick(True)), library=(MAP,)))
    assert output(*show(pick(True), pick(False)), library=(MAP,)) == ["[2, 6]", "[2, 10]"]


def test_instances_at_several_types():
    half = lam("z", F64, mul(var("z", F64), 0.5))
    assert output(*show(mapped(SUCC, array(1)), mapped(half, array(1.0), F64, F64)), library=(MAP,)) == ["[2]", "[0.5]"]


def test_global_values_are_captured_through_calls():
    k = define("main.k", add(2, 3))
    g = define("main.g", lam("x", I64, add(var("x", I64), var("main.k", I64))))
    h = define("main.h", lam("x", I64, mul(app(var("main.g", fn(I64, I64)), var("x", I64)), 10)))
    assert output(k, g, h, *show(app(var("main.h", fn(I64, I64)), 1))) == ["60"]


def test_partial_application_and_closures_in_lists():
    plus = define("main.plus", lam("x", I64, lam("y", I64, add(var("x", I64), var("y", I64)))))
    add_k = app(var("main.plus", fn(I64, I64, I64)), 10)
    fs = list_(fn(I64, I64), add_k, SUCC, app(var("main.plus", fn(I64, I64, I64)), 20))
    go = define("main.go", lam("fs", t.list_of(fn(I64, I64)), lam("x", I64, match(
        var("fs", t.list_of(fn(I64, I64))),
        (nil(fn(I64, I64)), var("x", I64)),
        (cons(pvar("f", fn(I64, I64)), pvar("rest", t.list_of(fn(I64, I64)))),
         app(var("main.go", fn(t.list_of(fn(I64, I64)), I64, I64)), var("rest", t.list_of(fn(I64, I64))),
             app(var("f", fn(I64, I64)), var("x", I64)))),
    ))))  # fmt: skip
    used = app(var("main.go", fn(t.list_of(fn(I64, I64)), I64, I64)), fs, 1)
    assert output(plus, go, *show(used)) == ["32"]


def test_a_closure_that_captures_its_own_kind():
    """let rec power n = if n = 0 then succ else let p = power (n - 1) in fun x -> p (p x)"""
    power = define("main.power", lam("n", I64, if_(
        equal(var("n", I64), 0), SUCC,
        let("p", app(var("main.power", fn(I64, I64, I64)), sub(var("n", I64), 1)),
            lam("x", I64, app(var("p", fn(I64, I64)), app(var("p", fn(I64, I64)), var("x", I64))))),
    )))  # fmt: skip
    assert output(power, *show(app(var("main.power", fn(I64, I64, I64)), 5, 0))) == ["32"]


def test_local_functions_capture_and_recur():
    """let rec even n = if n = 0 then true else odd (n - 1) and odd ...; both capture k"""
    ty, k = fn(I64, BOOL), var("k", I64)
    body = letrec({
        "even": lam("n", I64, if_(equal(var("n", I64), k), True, app(var("odd", ty), sub(var("n", I64), 1)))),
        "odd": lam("m", I64, if_(equal(var("m", I64), k), False, app(var("even", ty), sub(var("m", I64), 1)))),
    }, tup(app(var("even", ty), 10), app(var("odd", ty), 7)))  # fmt: skip
    assert output(*show(let("k", add(1, -1), body))) == ["(true, true)"]


def test_generalised_local_functions():
    ident = lam("x", A, var("x", A))
    body = tup(app(var("id", fn(I64, I64), I64), 1), app(var("id", fn(F64, F64), F64), 2.0))
    assert output(*show(let("id", ident, body, A))) == ["(1, 2.0)"]


STREAM = c.Data("main.stream", (), (("Stop", None), ("Next", t.Tup((I64, fn(UNIT, t.Con("main.stream")))))))
S = t.Con("main.stream")


def test_functions_in_recursive_data():
    """type stream = Stop | Next of int * (unit -> stream); let rec from n = Next (n, fun () -> from (n + 1))"""
    from_ = define(
        "main.from",
        lam(
            "n",
            I64,
            con(
                S,
                "Next",
                1,
                tup(
                    var("n", I64),
                    lam(
                        "u",
                        UNIT,
                        if_(
                            equal(var("n", I64), 3),
                            con(S, "Stop", 0),
                            app(var("main.from", fn(I64, S)), add(var("n", I64), 1)),
                        ),
                    ),
                ),
            ),
        ),
    )
    total = define("main.total", lam("s", S, match(
        var("s", S), (pcon(S, "Stop", 0), 0),
        (pcon(S, "Next", 1, ptup(pvar("x", I64), pvar("rest", fn(UNIT, S)))),
         add(var("x", I64), app(var("main.total", fn(S, I64)), app(var("rest", fn(UNIT, S)), tup())))))))  # fmt: skip
    assert output(from_, total, *show(app(var("main.total", fn(S, I64)), app(var("main.from", fn(I64, S)), 1)),
                                      app(var("main.from", fn(I64, S)), 1)),
                  datas=(STREAM,)) == ["6", "Next (1, <fun>)"]  # fmt: skip


OPT = t.Con("main.opt", (I64,))
OPTION = c.Data("main.opt", (A,), (("None", None), ("Some", A)))


def some(p):
    return pcon(OPT, "Some", 1, p)


def test_nested_patterns_guards_and_alternatives():
    def classify(a, b):
        pair = t.Tup((OPT, I64))
        return match(
            tup(a, b),
            (ptup(some(pvar("x", I64)), plit(0)), prim("gt", BOOL, var("x", I64), 5), lit("big, 0")),
            (c.POr(pair, ptup(some(wild(I64)), plit(0)), ptup(pcon(OPT, "None", 0), plit(7))), lit("alternatives")),
            (c.PAs(pair, ptup(wild(OPT), c.PVar(I64, "n")), "all"), lit("rest")),
        )

    none, one, nine = con(OPT, "None", 0), con(OPT, "Some", 1, 1), con(OPT, "Some", 1, 9)
    lines = output(*show(classify(nine, 0), classify(one, 0), classify(none, 7), classify(none, 0)), datas=(OPTION,))
    assert lines == ["big, 0", "alternatives", "alternatives", "rest"]


def test_literal_patterns_of_all_kinds():
    def on(x, *arms):
        return match(x, *[(plit(k), lit(v)) for k, v in arms], (wild(lit(x).ty), lit("other")))

    assert output(*show(on(2, (1, "a"), (2, "b")), on(0.5, (0.25, "a"), (0.5, "b")), on("q", ("p", "a")),
                        on(False, (True, "t")))) == ["b", "b", "other", "other"]  # fmt: skip


def test_array_patterns():
    xs = arr(I64)
    sized = match(array(1, 2), (c.PArray(xs, (pvar("a", I64),)), var("a", I64)),
                  (c.PArray(xs, (pvar("b", I64), pvar("d", I64))), add(var("b", I64), var("d", I64))),
                  (wild(xs), 0))  # fmt: skip
    assert output(*show(sized)) == ["3"]


def test_large_shared_arms_become_functions():
    big = var("n", I64)
    for i in range(12):
        big = add(big, i)
    xs = t.list_of(I64)
    arms = [(cons(plit(i), nil(I64)), lit(i)) for i in range(3)]
    made = let("n", 100, match(list_(I64, 1, 2), *arms, (wild(xs), big)))
    assert output(*show(made)) == [str(100 + sum(range(12)))]
    assert any(name.startswith("arm") for name in flat(*show(made)).fns)


RECORD = c.Data("main.r", (), (("main.r", t.Tup((F64, arr(I64)))),), ("w", "k"))
R = t.Con("main.r")


def test_records_are_unboxed_and_show_their_fields():
    r = con(R, "main.r", 0, tup(1.0, array(1)))
    made = flat(*show(r, field(arr(I64), r, 1)), datas=(RECORD,))
    assert not made.datas
    assert output(*show(r, field(arr(I64), r, 1)), datas=(RECORD,)) == ["{ w = 1.0; k = [1] }", "[1]"]


def test_loops_carry_tuples_in_pieces():
    ty = t.Tup((I64, I64))
    s = var("s", ty)
    step = match(s, (ptup(pvar("a", I64), pvar("b", I64)), tup(var("b", I64), add(var("a", I64), var("b", I64)))))
    loop = c.For(NOWHERE, ty, "s", tup(0, 1), "i", lit(10), step)
    assert output(*show(loop)) == ["(55, 89)"]
    small = match(s, (ptup(pvar("a", I64), wild(I64)), prim("lt", BOOL, var("a", I64), 50)))
    while_ = c.While(NOWHERE, ty, "s", tup(0, 1), small, step)
    assert output(*show(while_)) == ["(55, 89)"]


def test_equality_and_order_of_data():
    def both(a, b):
        return tup(*[prim(op, BOOL, a, b) for op in ("eq", "lt", "ge")])

    none, two = con(OPT, "None", 0), con(OPT, "Some", 1, 2)
    lines = output(
        *show(
            both(none, two),
            both(list_(I64, 1, 2), list_(I64, 1, 3)),
            both(array(1, 2), array(1)),
            both(tup(1, "a"), tup(1, "b")),
            both(list_(I64, 1), list_(I64, 1)),
        ),
        datas=(OPTION,),
    )
    assert lines == ["(false, true, false)", "(false, true, false)", "(false, false, true)", "(false, true, false)",
                     "(true, false, true)"]  # fmt: skip


def test_showing():
    nested = list_(OPT, con(OPT, "Some", 1, -1), con(OPT, "None", 0))
    assert output(*show(nested, list_(I64), list_(I64, 1), tup(), array(array(1.5), array(-0.0)), tup("a", SUCC)),
                  datas=(OPTION,)) == [
        "[Some (-1); None]", "[]", "[1;]", "()", "[[1.5], [-0.0]]", '("a", <fun>)']  # fmt: skip


def test_long_arrays_are_abridged_by_print_only():
    n = prim("range", arr(I64), 1001)
    printed, shown = output(*show(n, prim("show", STR, n)))
    assert printed == "[" + ", ".join([*map(str, range(500)), "...", *map(str, range(501, 1001))]) + "]"
    assert shown == str(list(range(1001)))


def test_matrix_products_of_vectors():
    m, v = array(array(1.0, 2.0), array(3.0, 4.0)), array(5.0, 6.0)
    vec = arr(F64)
    assert output(*show(prim("matmul", vec, m, v), prim("matmul", vec, v, m), prim("matmul", arr(vec), m, m))) == [
        "[17.0, 39.0]", "[23.0, 34.0]", "[[7.0, 10.0], [15.0, 22.0]]"]  # fmt: skip


def test_appending_lists():
    assert output(*show(prim("append", t.list_of(I64), list_(I64, 1, 2), list_(I64, 3)))) == ["[1; 2; 3]"]


def test_leaves_and_maps_of_data():
    tree = list_(t.Tup((F64, I64)), tup(1.0, 1), tup(2.0, 2))
    twice = lam("x", F64, mul(var("x", F64), 2.0))
    plus = lam("x", F64, lam("y", F64, add(var("x", F64), var("y", F64))))
    assert output(*show(prim("tree_map", tree.ty, twice, tree), prim("tree_leaves", arr(F64), tree),
                        prim("tree_map2", tree.ty, plus, tree, tree))) == [
        "[(2.0, 1); (4.0, 2)]", "[1.0, 2.0]", "[(2.0, 1); (4.0, 2)]"]  # fmt: skip


def test_derivative_sites():
    square = lam("x", F64, mul(mul(var("x", F64), var("k", F64)), var("x", F64)))
    vjp = prim("vjp", t.Tup((F64, fn(F64, F64))), square, 3.0)
    body = match(vjp, (ptup(wild(F64), pvar("pb", fn(F64, F64))), app(var("pb", fn(F64, F64)), 1.0)))
    jvp = prim("jvp", t.Tup((F64, F64)), square, 3.0, 1.0)
    made = flat(*show(let("k", add(1.0, 1.0), tup(body, jvp))))
    ads = [b.rhs for fn_ in made.fns.values() for b in fn_.body.binds if isinstance(b.rhs, f.Ad)]
    assert [a.mode for a in ads] == ["vjp", "pullback", "jvp"]
    assert ads[0].fn == ads[1].fn and ads[0].site == ads[1].site
    assert len(ads[0].args) == 2  # k, captured, then x


def test_rules_and_checkpoints():
    square = lam("x", F64, mul(var("x", F64), var("x", F64)))
    rule = lam("x", F64, lam("dx", F64, tup(var("x", F64), var("dx", F64))))
    pull = lam("x", F64, tup(var("x", F64), lam("dy", F64, var("dy", F64))))
    made = flat(*show(prim("with_jvp", F64, square, rule, 2.0), prim("with_vjp", F64, square, pull, 3.0),
                      prim("checkpoint", F64, square, 4.0)))  # fmt: skip
    assert [r.kind for r in made.rules.values()] == ["jvp", "vjp"]
    assert len(made.checkpoints) == 1


def test_effects_stay_in_order():
    def said(text, value):
        return let("_", prim("print_string", UNIT, text), value)

    assert output(*show(add(said("a", 1), said("b", 2)))) == ["ab3"]


def test_ten_thousand_nested_lets():
    body = var("x9999", I64)
    for i in reversed(range(1, 10_000)):
        body = let(f"x{i}", add(var(f"x{i - 1}", I64), 1), body)
    assert output(*show(let("x0", 0, body))) == ["9999"]
