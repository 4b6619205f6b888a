"""Dice -> the text of a well-typed program that ends: every construct of the language, in odd combinations.

A program has data types, functions, prints of values of all types, and `f : 'a -> float` with a point `x0 : 'a` where f
is smooth or nearly so.  Values stay moderate (products are damped), loops short, recursion fuelled.

    python tests/agree/generate.py SEED [DEPTH]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from random import Random

from random_types import BOOL, FLOAT, INT, STRING, Scope, Ty, array, function, list_of
from random_values import Values

HELPERS = """\
let twice g x = g (g x)
let compose g h = fun x -> g (h x)
let choose c x y = if c then x else y
let swap (a, b) = (b, a)
let rec repeat n g x = if n <= 0 then x else g (repeat (n - 1) g x)
let rec iterate n g x = if n <= 0 then x else iterate (n - 1) g (g x)
let rec sum_by g xs = match xs with [] -> 0.0 | x :: rest -> g x + sum_by g rest
let damp x = x / (1.0 + abs x)
"""


class Writer(Values):
    """Expressions of any type, and programs."""

    # ---- literals ----

    def number(self) -> str:
        return f"{self.one(0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.7, 2.0)}"

    def literal(self, ty: Ty, depth: int = 3) -> str:
        """A value written out."""
        match ty.name:
            case "float":
                tenths = self.dice.randint(-2, 2) * 10 if self.special else self.dice.randint(-20, 20)
                number = f"{tenths / 10:.1f}" if self.special else f"{tenths / 10 + 0.03:.2f}"
                return f"({number})" if number.startswith("-") else number
            case "int":
                return str(self.dice.randint(0, 5))
            case "bool":
                return self.one("true", "false")
            case "string":
                return self.one('"a"', '"bc"', '""', '"é\\n"')
            case "*":
                return f"({', '.join(self.literal(t, depth - 1) for t in ty.args)})"
            case "[]":
                return f"[{', '.join(self.literal(ty.args[0], depth - 1) for _ in range(ty.size))}]"
            case "list":
                items = [self.literal(ty.args[0], depth - 1) for _ in range(self.dice.randint(1, 3))]
                return f"[{items[0]};]" if len(items) == 1 else f"[{'; '.join(items)}]"
            case "option":
                return f"(Some {self.literal(ty.args[0], depth - 1)})"
            case "->":
                name = self.fresh("p")
                body = self.expression(ty.args[1], Scope(((name, ty.args[0]),), False), 1)
                return f"(fun ({name} : {ty.args[0]}) -> {body})"
            case name if name in self.records:
                return "{ " + "; ".join(f"{f} = {self.literal(t, depth - 1)}" for f, t in self.records[name]) + " }"
            case name:
                constructor, inside = self.datas[name][0] if depth <= 0 else self.one(*self.datas[name])
                return constructor if inside is None else f"({constructor} {self.literal(inside, depth - 1)})"

    # ---- expressions ----

    def expression(self, ty: Ty, scope: Scope, depth: int) -> str:
        """Any expression of that type, as an atom."""
        known = scope.of(ty)
        if depth <= 0:
            if ty == FLOAT and scope.favourite and self.often(40):
                return scope.favourite
            if scope.favourite and ty in (INT, BOOL) and self.often(60):
                x = scope.favourite
                return f"({x} < {self.number()})" if ty == BOOL else f"(int (4.0 * sin {x}))"
            if not known and ty.name in ("->", "*", "[]", "option", "list", *self.records):
                return self.shallow(ty, scope)
            return self.one(*known) if known and self.often(95) else self.literal(ty, 1)
        if known and self.often(20):
            return self.one(*known)
        if self.often(45):
            text = self.general(ty, scope, depth - 1)
        else:
            text = self.made(ty, scope, depth - 1)
        return f"({text})"

    def shallow(self, ty: Ty, scope: Scope) -> str:
        """A small expression, which uses variables if it can."""

        def e(t: Ty) -> str:
            return self.expression(t, scope, 0)

        match ty.name:
            case "->":
                p = self.fresh("p")
                inside = scope.add((p, ty.args[0]))
                return f"(fun {self.parameter(p, ty.args[0])} -> {self.expression(ty.args[1], inside, 0)})"
            case "*":
                return f"({', '.join(map(e, ty.args))})"
            case "[]" if ty.size > 4:
                i = self.fresh("i")
                return f"[for {i} < {ty.size} -> {self.expression(ty.args[0], scope.add((i, INT)), 0)}]"
            case "[]":
                return f"[{', '.join(e(ty.args[0]) for _ in range(ty.size))}]"
            case "list":
                return f"[{e(ty.args[0])}; {e(ty.args[0])}]"
            case "option":
                return f"(Some {e(ty.args[0])})"
        return "{ " + "; ".join(f"{f} = {e(t)}" for f, t in self.records[ty.name]) + " }"

    def general(self, ty: Ty, scope: Scope, depth: int) -> str:
        """What works at every type."""

        def e(t: Ty = ty, s: Scope = scope) -> str:
            return self.expression(t, s, depth)

        if self.often(4):
            return self.effect(ty, scope, depth)
        match self.dice.randrange(19):
            case 0 | 1:
                return f"if {e(BOOL)} then {e()} else {e()}"
            case 2 | 3 | 4:
                name, t = self.fresh(), self.any_type()
                return f"let {name} = {e(t)} in {e(ty, scope.add((name, t)))}"
            case 5 | 6 | 7:
                return self.taken_apart(ty, scope, depth)
            case 8:
                return self.looped(ty, scope, depth)
            case 9:
                name, t = self.fresh("g"), self.any_type(1)
                p = self.fresh("p")
                inner = self.expression(ty, scope.add((p, t)), depth)
                return f"let {name} {self.parameter(p, t)} = {inner} in {e(ty, scope.add((name, function(t, ty))))}"
            case 10:
                return f"{e(function(ty, ty))} {e()}"
            case 11:
                t = self.any_type(1)
                return f"{e(function(t, ty))} {e(t)}"
            case 12:
                return f"{self.one('twice', 'repeat 2', 'iterate 3', 'choose true id')} {e(function(ty, ty))} {e()}"
            case 13:
                t = self.data_type(1)
                return f"compose {e(function(t, ty))} {e(function(ty, t))} {e()}"
            case 14:
                n = self.dice.randint(1, 3)
                return f"{e(array(ty, n))}[{self.index(n, scope, depth)}]"
            case 15:
                return self.recursion(ty, scope, depth)
            case 16:
                t = self.data_type(1)
                return self.one(f"fst ({e()}, {e(t)})", f"snd (swap ({e()}, {e(t)}))", f"choose {e(BOOL)} {e()} {e()}")
            case 17:
                t = self.any_type(1)
                a, x = self.fresh("a"), self.fresh("x")
                body = self.expression(ty, scope.add((a, ty), (x, t)), depth)
                seq = self.one(list_of(t), array(t, self.dice.randint(1, 3)))
                fold = "List.fold" if seq.name == "list" else "fold"
                return f"{fold} (fun {a} {self.parameter(x, t)} -> {body}) {e()} {e(seq)}"
            case _:
                functions = [(f, t) for f, t in scope.vars if t.name == "->" and t.args[1] == ty]
                if functions:
                    f, t = self.one(*functions)
                    return f"{f} {e(t.args[0])}"
                return self.made(ty, scope, depth)

    def effect(self, ty: Ty, scope: Scope, depth: int) -> str:
        """What can be seen to happen, in the order in which it happens, then an expression."""

        def e(t: Ty) -> str:
            return self.expression(t, scope, depth)

        unused = self.any_type(1)
        first = self.one(
            f'print ("~", {e(unused)})',
            f'print ("~", {e(STRING)})',
            f"let {self.fresh('_u')} = {e(unused)} in ()",
            *([f"assert {e(BOOL)}", f"if {e(BOOL)} then error {e(STRING)}"] if self.risky else []),
        )
        return f"({first}); {e(ty)}"

    def parameter(self, name: str, ty: Ty) -> str:
        return name if self.bare and self.often(60) else f"({name} : {ty})"

    def count(self) -> int:
        """Steps of a loop: few, or so many that what it keeps must grow."""
        return 18 if self.often(3) else self.dice.randint(1, 3)

    def index(self, n: int, scope: Scope, depth: int) -> str:
        if self.risky and self.often(10):
            return self.expression(INT, scope, depth)
        return str(self.dice.randrange(n)) if self.often(50) else f"{self.expression(INT, scope, depth)} % {n}"

    def recursion(self, ty: Ty, scope: Scope, depth: int) -> str:
        """A local function that calls itself, with fuel."""
        go, n, x = self.fresh("go"), self.fresh("n"), self.fresh("x")
        inside = scope.add((n, INT), (x, ty))
        step = self.expression(ty, inside, depth)
        last = self.expression(ty, inside, depth)
        again = f"{go} ({n} - 1)"
        if self.often(50):
            rest = f"{again} {step}"
        else:
            y = self.fresh("y")
            rest = f"let {y} = {again} {x} in {self.expression(ty, inside.add((y, ty)), depth)}"
        body = f"if {n} <= 0 then {last} else {rest}"
        return f"let rec {go} {n} ({x} : {ty}) = {body} in {go} {self.count()} {self.expression(ty, scope, depth)}"

    def looped(self, ty: Ty, scope: Scope, depth: int) -> str:
        s, i = self.fresh("s"), self.fresh("i")
        start = self.expression(ty, scope, depth)
        if self.often(60):
            body = self.expression(ty, scope.add((s, ty), (i, INT)), depth)
            return f"loop {s} = {start} for {i} < {self.count()} do {body}"
        t = self.any_type(1)
        other, more = self.fresh("s"), self.fresh("n")
        inside = scope.add((s, ty), (other, t), (more, INT))
        state = f"({self.expression(ty, inside, depth)}, {self.expression(t, inside, depth)}, {more} - 1)"
        test = self.one(f"{more} > 0", f"{more} > 0 && {self.expression(BOOL, inside, min(depth, 1))}")
        out = self.fresh("o")
        return (
            f"let ({out}, _, _) = (loop ({s}, {other}, {more}) = "
            f"({start}, {self.expression(t, scope, depth)}, {self.count()})"
            f" while {test} do {state}) in {out}"
        )

    def taken_apart(self, ty: Ty, scope: Scope, depth: int) -> str:
        """Some data made, or found, and matched."""
        open_to = {"*", "list", "option", "[]", *self.datas, *self.records}
        candidates = [t for _, t in scope.vars if t.name in open_to]
        t = self.one(*candidates) if candidates and self.often(60) else self.data_type()
        value = self.expression(t, scope, depth)

        def result(*named: tuple[str, Ty]) -> str:
            return self.expression(ty, scope.add(*named), depth)

        match t.name:
            case "*":
                names = [(self.fresh(), item) for item in t.args]
                return f"let ({', '.join(n for n, _ in names)}) = {value} in {result(*names)}"
            case "list":
                x, rest = (self.fresh("x"), t.args[0]), (self.fresh("t"), t)
                return f"match {value} with [] -> {result()} | {x[0]} :: {rest[0]} -> {result(x, rest)}"
            case "option":
                x = (self.fresh("x"), t.args[0])
                guard = f" when {self.expression(BOOL, scope.add(x), 1)}" if self.often(30) else ""
                last = "_" if guard else "None"
                return f"match {value} with Some {x[0]}{guard} -> {result(x)} | {last} -> {result()}"
            case "[]" if self.often(50):
                names = [(self.fresh(), t.args[0]) for _ in range(t.size)]
                return f"let [{', '.join(n for n, _ in names)}] = {value} in {result(*names)}"
            case name if name in self.records:
                names = [(self.fresh(), item) for _, item in self.records[name]]
                fields = "; ".join(f"{f} = {v}" for (f, _), (v, _) in zip(self.records[name], names))
                return f"let {{ {fields} }} = {value} in {result(*names)}"
            case name if name in self.datas:
                arms = []
                for constructor, inside in self.datas[name]:
                    if inside is None:
                        arms.append(f"{constructor} -> {result()}")
                    elif inside.name == "*":
                        names = [(self.fresh(), item) for item in inside.args]
                        arms.append(f"{constructor} ({', '.join(n for n, _ in names)}) -> {result(*names)}")
                    else:
                        x = (self.fresh(), inside)
                        arms.append(f"{constructor} {x[0]} -> {result(x)}")
                return f"match {value} with {' | '.join(arms)}"
        name = self.fresh()
        return f"let {name} = {value} in {result((name, t))}"

    # ---- programs ----

    def program(self, depth: int = 4) -> str:
        self.special, self.control, self.risky = self.often(20), self.often(5), self.often(15)
        parts = [HELPERS, self.declarations()]
        folds, scope = self.folds()
        parts.append(folds)
        for _ in range(self.dice.randint(0, 3)):
            name, p, t, result = self.fresh("h"), self.fresh("p"), self.any_type(), self.any_type()
            inner = scope.pure().add((p, t))
            parts.append(f"let {name} {self.parameter(p, t)} = {self.expression(result, inner, depth - 1)}")
            scope = scope.add((name, function(t, result)))
        for _ in range(self.dice.randint(1, 3)):
            name, t = self.fresh("c"), self.any_type()
            parts.append(f"let {name} = {self.expression(t, scope, depth)}")
            parts.append(f"do print {name}")
            scope = scope.add((name, t))
        point = self.point_type()
        inner = replace(scope.pure().add(("x", point), ("s", FLOAT)), favourite="s")
        parts.append(f"let f (x : {point}) : float =")
        parts.append("  let s = Tree.fold (fun a v -> 0.5 * a + sin (v + 0.1 * a)) 0.3 x in")
        parts.append(f"  {self.expression(FLOAT, inner, depth + 1)}")
        parts.append(f"let x0 : {point} = {self.literal(point)}")
        parts.append("do print (f x0)")
        return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(Writer(Random(int(sys.argv[1]))).program(*map(int, sys.argv[2:])), end="")
