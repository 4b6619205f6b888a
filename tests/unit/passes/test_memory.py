"""Counting owners: random programs neither leak nor use what was freed; what should be in place is."""

from __future__ import annotations

import re
from random import Random

import pytest
from counting import Counting, OutOfFuel
from dplc.flat import term as f
from dplc.passes.memory import borrow
from dplc.passes.memory.reference_counts import count_references

LIST = f.Data("list")
BOX = f.Data("box")
ARRAY = f.Arr(LIST, 1)
PAIR = f.Tup((ARRAY, f.F64, LIST))
DATAS = {
    "list": f.DataDecl("list", (None, f.Tup((f.Arr(f.F64, 1), LIST)), f.STR), ("nil", "cons", "text")),
    "box": f.DataDecl("box", (PAIR,), ("box",)),
}
NUMBERS = f.Arr(f.F64, 1)
TYPES = (f.F64, NUMBERS, LIST, ARRAY, PAIR, BOX, f.STR, f.Ref(LIST))


class Generator:
    """Random well-typed programs."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.supply = f.Supply()
        count = self.dice.randrange(2, 5)
        self.signatures = {f"f{i}": (self.types(0, 3), self.types(1, 2)) for i in range(count)} | {"main": ((), ())}

    def types(self, low: int, high: int) -> tuple[f.Type, ...]:
        return tuple(self.dice.choice(TYPES) for _ in range(self.dice.randint(low, high)))

    def var(self, ty: f.Type) -> f.Var:
        return f.Var(self.supply.fresh("v"), ty)

    def program(self) -> f.Program:
        program = f.Program(datas=DATAS)
        for name, (params, results) in self.signatures.items():
            vars_ = tuple(self.var(ty) for ty in params)
            body = self.block(vars_, results, 3 if name == "main" else 2)
            program.fns[name] = f.Fn(name, vars_, results, body)
        return program

    def block(self, scope: tuple[f.Var, ...], results: tuple[f.Type, ...], depth: int) -> f.Block:
        binds: list[f.Bind] = []
        for _ in range(self.dice.randrange(5)):
            made = self.statement(scope, binds, depth)
            scope = (*scope, *made)
        tail = self.tail(scope, binds, results, depth)
        given = tail or tuple(self.atom(scope, binds, ty) for ty in results)
        return f.Block(tuple(binds), given)

    def tail(self, scope, binds, results, depth) -> tuple[f.Atom, ...] | None:
        callees = [name for name, (_, given) in self.signatures.items() if given == results and results]
        if not callees or self.dice.random() < 0.6:
            return None
        vars_ = tuple(self.var(ty) for ty in results)
        binds.append(f.Bind(vars_, self.call(self.dice.choice(callees), scope, binds)))
        return vars_

    def call(self, name: str, scope, binds) -> f.Call:
        return f.Call(name, tuple(self.atom(scope, binds, ty) for ty in self.signatures[name][0]))

    def atom(self, scope: tuple[f.Var, ...], binds: list[f.Bind], ty: f.Type) -> f.Atom:
        found = [v for v in scope if v.ty == ty]
        if found and self.dice.random() < 0.8:
            return self.dice.choice(found)
        match ty:
            case f.Num():
                return f.Const(1.0, ty)
            case f.Tup(items):
                rhs = f.TupMake(tuple(self.atom(scope, binds, item) for item in items))
            case f.Data("list"):
                tag = self.dice.randrange(3)
                payload = DATAS["list"].payloads[tag]
                rhs = f.ConMake("list", tag, None if payload is None else self.atom(scope, binds, payload))
            case f.Data():
                rhs = f.ConMake("box", 0, self.atom(scope, binds, PAIR))
            case f.Ref(elem):
                rhs = f.Op("ref_new", (self.atom(scope, binds, elem),))
            case _:
                rhs = f.Op("buf_take", ())
        var = self.var(ty)
        binds.append(f.Bind((var,), rhs))
        return var

    def statement(self, scope, binds, depth) -> tuple[f.Var, ...]:  # noqa: C901 -- one case per form
        kind = self.dice.randrange(14 if depth else 8)
        at = f.Const(0, f.I64)
        a = lambda ty: self.atom(scope, binds, ty)  # noqa: E731
        types = self.types(1, 2)
        match kind:
            case 0:
                return self.bind(binds, (ARRAY,), f.Op("update", (a(ARRAY), a(LIST), at)))
            case 1:
                return self.bind(binds, (LIST,), f.Op("index", (a(ARRAY), at)))
            case 2:
                return self.bind(binds, (ARRAY,), f.Op("concat", (a(ARRAY), a(ARRAY))))
            case 3:
                return self.bind(binds, (f.STR,), f.Op("str_append", (a(f.STR), a(f.STR))))
            case 4:
                pair = a(PAIR)
                index = self.dice.randrange(3)
                return self.bind(binds, (PAIR.items[index],), f.TupGet(pair, index))
            case 5:
                return self.bind(binds, (LIST,), f.Op("ref_get", (a(f.Ref(LIST)),)))
            case 6:
                return self.bind(binds, (), f.Op("ref_set", (a(f.Ref(LIST)), a(LIST))))
            case 7:
                name = self.dice.choice([n for n in self.signatures if n != "main"])
                return self.bind(binds, self.signatures[name][1], self.call(name, scope, binds))
            case 8 | 9:
                branches = [self.block(scope, types, depth - 1) for _ in range(2)]
                return self.bind(binds, types, f.If(f.Const(True, f.BOOL), *branches))
            case 10 | 11:
                return self.bind(binds, types, self.switch(scope, binds, types, depth))
            case 12:
                collect = self.dice.randrange(2)
                state = tuple(self.var(ty) for ty in types)
                inits = tuple(a(ty) for ty in types)
                body = self.block((*scope, *state), types + (LIST,) * collect, depth - 1)
                given = types + (f.Arr(f.Tup((LIST,)), 1),) * collect
                if self.dice.random() < 0.5:
                    return self.bind(binds, given, f.For(self.var(f.I64), at, state, inits, body, collect))
                cond = self.block((*scope, *state), (f.F64,), 0)
                return self.bind(binds, given, f.While(state, inits, cond, body, collect))
            case _:
                body = self.block(scope, (LIST,), depth - 1)
                return self.bind(binds, (ARRAY,), f.Par(((self.var(f.I64), at),), body, (f.Out("keep"),)))

    def switch(self, scope, binds, types, depth) -> f.Switch:
        data = self.dice.choice((LIST, BOX))
        scrutinee = self.atom(scope, binds, data)
        cases = []
        for tag, payload in enumerate(DATAS[data.name].payloads):
            var = self.var(payload) if payload and self.dice.random() < 0.8 else None
            extra: list[f.Bind] = []
            parts: tuple[f.Var, ...] = ()
            if var and isinstance(payload, f.Tup):
                for i, item in enumerate(payload.items):
                    parts += self.bind(extra, (item,), f.TupGet(var, i))
            block = self.block((*scope, *parts, *((var,) if var else ())), types, depth - 1)
            cases.append(f.Case(tag, var, f.Block((*extra, *block.binds), block.results)))
        if data == LIST and self.dice.random() < 0.4:
            return f.Switch(scrutinee, tuple(cases[1:]), cases[0].body)
        return f.Switch(scrutinee, tuple(cases), None)

    def bind(self, binds, types, rhs) -> tuple[f.Var, ...]:
        vars_ = tuple(self.var(ty) for ty in types)
        binds.append(f.Bind(vars_, rhs))
        return vars_


@pytest.mark.parametrize("batch", range(8))
def test_random_programs_balance(batch: int) -> None:
    for seed in range(60 * batch, 60 * batch + 60):
        program = count_references(Generator(seed).program())
        for throw in range(3):
            try:
                Counting(program, Random(throw)).run()
            except (OutOfFuel, RecursionError):
                pass
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, throw {throw}") from error


# ---- particular programs ------------------------------------------------------------------------------------------

X, Y, P = f.Var("x", NUMBERS), f.Var("y", NUMBERS), f.Var("p", f.Tup((NUMBERS, NUMBERS)))
ZERO, ONE = f.Const(0, f.I64), f.Const(1.0, f.F64)


def body_of(*binds: f.Bind, results: tuple[f.Atom, ...] = ()) -> f.Block:
    return f.Block(binds, results)


def program_of(*fns: f.Fn) -> f.Program:
    return f.Program(fns={fn.name: fn for fn in fns}, datas=DATAS)


def ops(block: f.Block) -> str:
    """The operations of a block and, in brackets, of the blocks inside."""
    words = []
    for bind in block.binds:
        rhs = bind.rhs
        words.append(rhs.op if isinstance(rhs, f.Op) else type(rhs).__name__)
        match rhs:
            case f.For(body=body):
                words.append(f"[{ops(body)}]")
            case f.Switch(cases=cases):
                words += [f"[{ops(case.body)}]" for case in cases]
    return " ".join(words)


def counted(*fns: f.Fn) -> str:
    program = count_references(program_of(*fns))
    return ops(program.fns[fns[-1].name].body)


def test_a_loop_updates_its_state_in_place() -> None:
    s, i = f.Var("s", NUMBERS), f.Var("i", f.I64)
    step = body_of(f.Bind((Y,), f.Op("update", (s, ONE, i))), results=(Y,))
    loop = f.Bind((f.Var("z", NUMBERS),), f.For(i, ZERO, (s,), (X,), step))
    fn = f.Fn("fn", (X,), (NUMBERS,), body_of(loop, results=(f.Var("z", NUMBERS),)))
    assert counted(fn) == "For [update]"


def test_parts_of_a_tuple_are_updated_in_place() -> None:
    s, q = f.Var("s", P.ty), f.Var("q", P.ty)
    a, b, c = f.Var("a", NUMBERS), f.Var("b", NUMBERS), f.Var("c", NUMBERS)
    step = body_of(
        f.Bind((a,), f.TupGet(s, 0)),
        f.Bind((b,), f.TupGet(s, 1)),
        f.Bind((c,), f.Op("update", (b, ONE, ZERO))),
        f.Bind((q,), f.TupMake((a, c))),
        results=(q,),
    )
    z = f.Var("z", P.ty)
    fn = f.Fn(
        "fn", (P,), (P.ty,), body_of(f.Bind((z,), f.For(f.Var("i", f.I64), ZERO, (s,), (P,), step)), results=(z,))
    )
    assert counted(fn) == "For [TupGet TupGet update TupMake]"


def test_an_earlier_version_that_is_needed_is_kept() -> None:
    total = f.Var("t", f.F64)
    update, sum_ = f.Bind((Y,), f.Op("update", (X, ONE, ZERO))), f.Bind((total,), f.Op("sum", (X,)))
    fn = f.Fn("fn", (X,), (NUMBERS, NUMBERS, f.F64), body_of(update, sum_, results=(Y, X, total)))
    assert counted(fn) == "dup update sum"


def test_an_update_waits_until_the_earlier_version_is_read() -> None:
    total = f.Var("t", f.F64)
    update, sum_ = f.Bind((Y,), f.Op("update", (X, ONE, ZERO))), f.Bind((total,), f.Op("sum", (X,)))
    fn = f.Fn("fn", (X,), (NUMBERS, f.F64), body_of(update, sum_, results=(Y, total)))
    assert counted(fn) == "sum update"


def sum_of_list() -> f.Fn:
    xs, p, rest = f.Var("xs", LIST), f.Var("p", DATAS["list"].payloads[1]), f.Var("rest", LIST)
    zero = body_of(results=(ONE,))
    more = body_of(
        f.Bind((rest,), f.TupGet(p, 1)),
        f.Bind((f.Var("r", f.F64),), f.Call("total", (rest,))),
        results=(f.Var("r", f.F64),),
    )
    result = f.Var("v", f.F64)
    cases = (f.Case(0, None, zero), f.Case(1, p, more))
    switch = f.Switch(xs, cases, zero)
    return f.Fn("total", (xs,), (f.F64,), body_of(f.Bind((result,), switch), results=(result,)))


def test_a_parameter_that_is_only_looked_at_is_borrowed() -> None:
    program = program_of(sum_of_list())
    assert borrow.infer(program) == {"total": {0}}
    assert "dup" not in counted(sum_of_list())


def test_an_owned_cell_is_taken_apart() -> None:
    xs, p, rest, out = f.Var("xs", LIST), f.Var("p", DATAS["list"].payloads[1]), f.Var("rest", LIST), f.Var("v", LIST)
    tail = body_of(f.Bind((rest,), f.TupGet(p, 1)), results=(rest,))
    switch = f.Switch(xs, (f.Case(1, p, tail),), body_of(results=(xs,)))
    fn = f.Fn("tail", (xs,), (LIST,), body_of(f.Bind((out,), switch), results=(out,)))
    assert re.fullmatch(r"Switch \[take TupGet drop TupGet\]", counted(fn))


def test_tail_calls_stay_last() -> None:
    """`go` only looks at its list, but hands on a new one at its end: it owns it."""
    xs, made, out = f.Var("xs", LIST), f.Var("m", LIST), f.Var("v", f.F64)
    body = body_of(f.Bind((made,), f.ConMake("list", 0, None)), f.Bind((out,), f.Call("go", (made,))), results=(out,))
    assert counted(f.Fn("go", (xs,), (f.F64,), body)) == "drop ConMake Call"
