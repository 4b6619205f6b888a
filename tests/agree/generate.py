"""Dice -> the text of a well-typed program that ends: every construct of the language, in combinations nobody thinks of.

A program has data types, functions, prints of values of all types, and `f : 'a -> float` with a point `x0 : 'a` where f
is smooth or nearly so.  Values stay moderate (products are damped), loops short, recursion fuelled.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import strategies as st


@dataclass(frozen=True)
class Ty:
    """A type: `name` is a scalar's, a data type's or one of `* -> [] list option`; an array has its `size`."""

    name: str
    args: tuple[Ty, ...] = ()
    size: int = 0

    def __str__(self) -> str:
        match self.name:
            case "*":
                return "(" + " * ".join(map(str, self.args)) + ")"
            case "->":
                return f"({self.args[0]} -> {self.args[1]})"
            case "[]":
                return array_text(self)
            case "list" | "option":
                return f"{self.args[0]} {self.name}"
        return self.name


def array_text(ty: Ty) -> str:
    sizes = []
    while ty.name == "[]":
        sizes.append(str(ty.size))
        ty = ty.args[0]
    return f"{ty}[{', '.join(sizes)}]"


FLOAT, INT, BOOL, STRING = Ty("float"), Ty("int"), Ty("bool"), Ty("string")


def tuple_of(*items: Ty) -> Ty:
    return Ty("*", items)


def array(item: Ty, size: int) -> Ty:
    return Ty("[]", (item,), size)


def list_of(item: Ty) -> Ty:
    return Ty("list", (item,))


def function(a: Ty, b: Ty) -> Ty:
    return Ty("->", (a, b))


@dataclass(frozen=True)
class Scope:
    """What may be used: variables, and whether references may (they may not where code is differentiated)."""

    vars: tuple[tuple[str, Ty], ...] = ()
    references: bool = True
    favourite: str = ""  # a float that much should depend on

    def add(self, *named: tuple[str, Ty]) -> Scope:
        shadowed = {name for name, _ in named}
        return replace(self, vars=(*(v for v in self.vars if v[0] not in shadowed), *named))

    def of(self, ty: Ty) -> list[str]:
        return [name for name, t in self.vars if t == ty]

    def pure(self) -> Scope:
        return replace(self, references=False)


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

SMOOTH = ("sin", "cos", "tanh", "atan", "sigmoid", "softplus", "-", "damp", "twice sin", "compose exp sin", "erf", "abs", "relu")
OPERATORS = ("+", "-", "*", "+", "*")


@dataclass
class Writer:
    dice: Random
    datas: dict[str, list[tuple[str, Ty | None]]] = field(default_factory=dict)
    records: dict[str, list[tuple[str, Ty]]] = field(default_factory=dict)
    names: int = 0
    control: bool = False  # with shift and reset: then the interpreter runs it all
    risky: bool = False  # with errors when it runs
    special: bool = False  # numbers at kinks and edges

    # ---- dice ----

    def fresh(self, stem: str = "v") -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def one(self, *choices):
        return choices[self.dice.randrange(len(choices))]

    def often(self, percent: int) -> bool:
        return self.dice.randrange(100) < percent

    # ---- types ----

    def data_type(self, depth: int = 2) -> Ty:
        """A type of data: no functions in it."""
        if depth == 0 or self.often(35):
            return self.one(FLOAT, FLOAT, FLOAT, INT, BOOL, STRING)
        sub = depth - 1
        match self.one("*", "*", "[]", "[]", "list", "option", "data", "record"):
            case "*":
                return tuple_of(*(self.data_type(sub) for _ in range(self.dice.randint(2, 3))))
            case "[]":
                item = self.one(FLOAT, FLOAT, array(FLOAT, self.dice.randint(1, 3)), self.data_type(sub))
                return array(item, self.dice.randint(1, 4))
            case "list":
                return list_of(self.data_type(sub))
            case "option":
                return Ty("option", (self.data_type(sub),))
            case "data" if self.datas:
                return Ty(self.one(*self.datas))
            case "record" if self.records:
                return Ty(self.one(*self.records))
        return FLOAT

    def any_type(self, depth: int = 2) -> Ty:
        if self.often(20):
            return function(self.data_type(1), self.data_type(1))
        if self.often(10):
            item = function(self.one(FLOAT, self.data_type(1)), self.one(FLOAT, self.data_type(1)))
            return self.one(list_of(item), array(item, self.dice.randint(1, 3)), tuple_of(item, FLOAT), Ty("option", (item,)))
        return self.data_type(depth)

    def reaches(self, ty: Ty, name: str, seen: frozenset[Ty] = frozenset()) -> bool:
        """Whether a type of that name is part of it: `float`, or `->`."""
        if ty.name == name:
            return True
        parts = [t for _, t in self.datas.get(ty.name, ()) if t] + [t for _, t in self.records.get(ty.name, ())]
        return ty not in seen and any(self.reaches(t, name, seen | {ty}) for t in (*ty.args, *parts))

    def point_type(self) -> Ty:
        """What can be differentiated by: data with a float in every value of it."""
        while True:
            ty = self.data_type(2)
            if self.reaches(ty, "float") and not self.reaches(ty, "->"):
                return ty

    def declarations(self) -> str:
        lines = []
        for _ in range(self.dice.randint(0, 2)):
            name = self.fresh("r")
            fields = [(self.fresh("f"), self.any_type(1)) for _ in range(self.dice.randint(1, 3))]
            lines.append(f"type {name} = {{ {'; '.join(f'{f} : {t}' for f, t in fields)} }}")
            self.records[name] = fields
        for _ in range(self.dice.randint(0, 2)):
            name = self.fresh("d")
            cases: list[tuple[str, Ty | None]] = [(self.fresh("C"), self.one(None, FLOAT))]
            for _ in range(self.dice.randint(1, 2)):
                me = Ty(name)
                inside = self.one(
                    self.any_type(1), tuple_of(FLOAT, me), tuple_of(me, me), array(me, 2), list_of(me), tuple_of(self.any_type(1), me)
                )
                cases.append((self.fresh("C"), inside))
            lines.append(f"type {name} = {' | '.join(c if t is None else f'{c} of {t}' for c, t in cases)}")
            self.datas[name] = cases
        return "\n".join(lines)

    def folds(self) -> tuple[str, Scope]:
        """For each data type a function that goes through it all, and one that rebuilds it; and the scope with them."""
        lines, scope = [], Scope()
        for name, cases in self.datas.items():
            total, again, g = self.fresh("total"), self.fresh("again"), self.fresh("g")
            me = Ty(name)
            scope = scope.add((total, function(me, FLOAT)), (again, function(me, me)))
            lines.append(f"let rec {total} t = match t with " + " | ".join(self.totals(total, me, c, t) for c, t in cases))
            arms = " | ".join(self.rebuilt(f"{again} {g}", me, c, t) for c, t in cases)
            lines.append(f"let rec {again} {g} t = match t with {arms}")
            lines.append(f"let {again} t = {again} (fun v -> {self.one('sin v', 'v * 0.5', 'v + 0.1', 'v * v')}) t")
        return "\n".join(lines), scope

    def totals(self, total: str, me: Ty, constructor: str, inside: Ty | None) -> str:
        if inside is None:
            return f"{constructor} -> 1.0"
        return f"{constructor} v -> damp ({self.sum_of(total, me, inside, 'v')} + 0.3)"

    def sum_of(self, total: str, me: Ty, ty: Ty, v: str) -> str:
        """The float made of all parts of `v`."""
        if ty == me:
            return f"{total} {v}"
        x = self.fresh("x")
        match ty.name:
            case "float":
                return v
            case "*":
                names = [self.fresh("x") for _ in ty.args]
                terms = [self.sum_of(total, me, t, n) for n, t in zip(names, ty.args)]
                return f"(let ({', '.join(names)}) = {v} in {self.one(' + ', ' * ').join(terms)})"
            case "[]":
                return f"sum (map (fun {x} -> {self.sum_of(total, me, ty.args[0], x)}) {v})"
            case "list":
                return f"sum_by (fun {x} -> {self.sum_of(total, me, ty.args[0], x)}) {v}"
        return "0.7"

    def rebuilt(self, again: str, me: Ty, constructor: str, inside: Ty | None) -> str:
        return f"{constructor} -> {constructor}" if inside is None else f"{constructor} v -> {constructor} {self.copy_of(again, me, inside, 'v')}"

    def copy_of(self, again: str, me: Ty, ty: Ty, v: str) -> str:
        if ty == me:
            return f"({again} {v})"
        x = self.fresh("x")
        match ty.name:
            case "float":
                return f"({again.split()[1]} {v})"
            case "*":
                names = [self.fresh("x") for _ in ty.args]
                return f"(let ({', '.join(names)}) = {v} in ({', '.join(self.copy_of(again, me, t, n) for n, t in zip(names, ty.args))}))"
            case "[]":
                return f"(map (fun {x} -> {self.copy_of(again, me, ty.args[0], x)}) {v})"
            case "list":
                return f"(List.map (fun {x} -> {self.copy_of(again, me, ty.args[0], x)}) {v})"
        return v

    # ---- literals ----

    def number(self) -> str:
        return f"{self.one(0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.7, 2.0)}"

    def literal(self, ty: Ty, depth: int = 3) -> str:
        """A value written out."""
        match ty.name:
            case "float":
                number = f"{self.dice.randint(-2, 2):.1f}" if self.special else f"{self.dice.randint(-20, 20) / 10 + 0.03:.2f}"
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
                return f"(fun ({name} : {ty.args[0]}) -> {self.expression(ty.args[1], Scope(((name, ty.args[0]),), False), 1)})"
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
        e = lambda t: self.expression(t, scope, 0)
        match ty.name:
            case "->":
                p = self.fresh("p")
                return f"(fun {self.parameter(p, ty.args[0])} -> {self.expression(ty.args[1], scope.add((p, ty.args[0])), 0)})"
            case "*":
                return f"({', '.join(map(e, ty.args))})"
            case "[]":
                return f"[{', '.join(e(ty.args[0]) for _ in range(ty.size))}]"
            case "list":
                return f"[{e(ty.args[0])}; {e(ty.args[0])}]"
            case "option":
                return f"(Some {e(ty.args[0])})"
        return "{ " + "; ".join(f"{f} = {e(t)}" for f, t in self.records[ty.name]) + " }"

    def general(self, ty: Ty, scope: Scope, depth: int) -> str:
        """What works at every type."""
        e = lambda t=ty, s=scope: self.expression(t, s, depth)
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
        e = lambda t: self.expression(t, scope, depth)
        unused = self.any_type(1)
        first = self.one(
            f'print ("~", {e(unused)})',
            f'print ("~", {e(STRING)})',
            f"let {self.fresh('_u')} = {e(unused)} in ()",
            *([f"assert {e(BOOL)}", f"if {e(BOOL)} then error {e(STRING)}"] if self.risky else []),
        )
        return f"({first}); {e(ty)}"

    def parameter(self, name: str, ty: Ty) -> str:
        return f"({name} : {ty})"

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
        return f"let rec {go} {n} ({x} : {ty}) = {body} in {go} {self.dice.randint(1, 3)} {self.expression(ty, scope, depth)}"

    def looped(self, ty: Ty, scope: Scope, depth: int) -> str:
        s, i = self.fresh("s"), self.fresh("i")
        start = self.expression(ty, scope, depth)
        if self.often(60):
            body = self.expression(ty, scope.add((s, ty), (i, INT)), depth)
            return f"loop {s} = {start} for {i} < {self.dice.randint(1, 3)} do {body}"
        t = self.any_type(1)
        other, more = self.fresh("s"), self.fresh("n")
        inside = scope.add((s, ty), (other, t), (more, INT))
        state = f"({self.expression(ty, inside, depth)}, {self.expression(t, inside, depth)}, {more} - 1)"
        test = self.one(f"{more} > 0", f"{more} > 0 && {self.expression(BOOL, inside, min(depth, 1))}")
        out = self.fresh("o")
        return (
            f"let ({out}, _, _) = (loop ({s}, {other}, {more}) = ({start}, {self.expression(t, scope, depth)}, {self.dice.randint(1, 3)})"
            f" while {test} do {state}) in {out}"
        )

    def taken_apart(self, ty: Ty, scope: Scope, depth: int) -> str:
        """Some data made, or found, and matched."""
        candidates = [t for _, t in scope.vars if t.name in ("*", "list", "option", "[]") or t.name in self.datas or t.name in self.records]
        t = self.one(*candidates) if candidates and self.often(60) else self.data_type()
        value = self.expression(t, scope, depth)
        result = lambda *named: self.expression(ty, scope.add(*named), depth)
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

    # ---- by type ----

    def made(self, ty: Ty, scope: Scope, depth: int) -> str:
        e = lambda t, s=scope: self.expression(t, s, depth)
        match ty.name:
            case "float":
                return self.made_float(scope, depth)
            case "int":
                return self.made_int(scope, depth)
            case "bool":
                t = self.data_type(1)
                return self.one(
                    f"{e(FLOAT)} {self.one('<', '>', '<=')} {e(FLOAT)}",
                    f"{e(INT)} {self.one('<', '=', '<>', '>=')} {e(INT)}",
                    f"{e(BOOL)} {self.one('&&', '||')} {e(BOOL)}",
                    f"not {e(BOOL)}",
                    f"{e(t)} {self.one('=', '<', '<>')} {e(t)}" if not self.reaches(t, "->") else "true",
                )
            case "string":
                t = self.any_type(1)
                return self.one(f"{e(STRING)} ++ {e(STRING)}", f"show {e(t)}", f'$"<{{{e(INT)}}}|{{{e(STRING)}}}>"')
            case "*":
                return ", ".join(e(t) for t in ty.args)
            case "->":
                p = self.fresh("p")
                return f"fun {self.parameter(p, ty.args[0])} -> {e(ty.args[1], scope.add((p, ty.args[0])))}"
            case "[]":
                return self.made_array(ty, scope, depth)
            case "list":
                return self.made_list(ty, scope, depth)
            case "option":
                return f"Some {e(ty.args[0])}" if self.often(75) else "None"
            case name if name in self.records:
                fields = self.records[name]
                if self.often(30):
                    f, t = self.one(*fields)
                    return f"{{ {e(ty)} with {f} = {e(t)} }}" if len(fields) > 1 else e(ty)
                return "{ " + "; ".join(f"{f} = {e(t)}" for f, t in fields) + " }"
            case name:
                constructor, inside = self.one(*self.datas[name])
                return constructor if inside is None else f"{constructor} {e(inside)}"

    def made_int(self, scope: Scope, depth: int) -> str:
        e = lambda t: self.expression(t, scope, depth)
        t = self.any_type(1)
        return self.one(
            f"{e(INT)} {self.one('+', '-', '*')} {e(INT)}",
            f"{e(INT)} {self.one('/', '%')} {e(INT) if self.risky else self.dice.randint(2, 5)}",
            f"max {e(INT)} {e(INT)}",
            f"int (3.0 * tanh {e(FLOAT)})",
            f"length {e(array(t, self.dice.randint(1, 3)))}",
            f"List.length {e(list_of(t))}",
            f"argmax {e(array(FLOAT, 3))}",
            f"String.length {e(STRING)}",
            f"sum {e(array(INT, 3))}",
        )

    def made_float(self, scope: Scope, depth: int) -> str:
        e = lambda t=FLOAT, s=scope: self.expression(t, s, depth)
        n = self.dice.randint(1, 4)
        v = array(FLOAT, n)
        match self.dice.randrange(30):
            case 27 | 28 | 29 if self.datas:
                return self.taken_apart(FLOAT, scope, depth) if self.often(50) else self.totalled(scope, depth)
            case 22 | 23 | 24 if any(self.reaches(t, "float") and t != FLOAT for _, t in scope.vars):
                return self.taken_apart(FLOAT, scope, depth)
            case 25:
                return self.own_rule(scope, depth)
            case 26 if self.control:
                return self.controlled(scope, depth)
            case 0 | 1 | 2:
                return f"{self.one(*SMOOTH)} {e()}"
            case 3 | 4 | 5 | 6:
                return f"{e()} {self.one(*OPERATORS)} {e()}"
            case 7:
                return self.one(f"{e()} / (1.5 + {e()} ** 2)", f"sqrt (1.0 + {e()} ** 2)", f"log (2.0 + {e()} ** 2)")
            case 8:
                return f"{self.one('max', 'min', 'hypot', 'atan2', 'logaddexp')} {e()} {e()}"
            case 9:
                return f"{e()} ** {self.one('2', '3', '(-1)', '0', '2.0')}" if self.often(50) else f"float {e(INT)}"
            case 10 | 11:
                one = self.one("sum", "mean", "prod", "norm", "maximum", "minimum", "logsumexp", "var", "std")
                return f"{one} {e(v)}"
            case 12:
                return f"dot {e(v)} {e(v)}"
            case 13:
                return f"sum ({e(array(v, self.dice.randint(1, 3)))} @ {e(v)})"
            case 14:
                return f"{e(v)}[{self.index(n, scope, depth)}]"
            case 15 | 16:
                return self.derivative(scope, depth)
            case 17:
                fields = [(r, f) for r, fs in self.records.items() for f, t in fs if t == FLOAT]
                return "{}.{}".format(e(Ty((r := self.one(*fields))[0])), r[1]) if fields else f"damp {e()}"
            case 18 if scope.references:
                name = self.fresh("q")
                return f"let {name} = ref {e()} in {name} := !{name} * {e()}; !{name} + {e()}"
            case 19:
                a, b = self.fresh("a"), self.fresh("x")
                return f"{self.one('reduce', 'fold')} (fun {a} {b} -> {a} {self.one('+', '*')} {b}) {self.one('0.0', '1.0')} {e(v)}"
            case 20:
                t = self.any_type(1)
                return f"sum_by {e(function(t, FLOAT))} {e(list_of(t))}"
            case _:
                x = self.fresh("x")
                keep = self.expression(BOOL, scope.add((x, FLOAT)), depth)
                return f"sum (filter (fun {x} -> {keep}) {e(v)})"

    def derivative(self, scope: Scope, depth: int) -> str:
        """A derivative inside: of a function of a float, or of more."""
        x = self.fresh("x")
        pure = scope.pure()
        body = lambda t: self.expression(FLOAT, pure.add((x, t)), depth)
        at = self.expression(FLOAT, scope, depth)
        match self.dice.randrange(6):
            case 0:
                return f"grad (fun ({x} : float) -> {body(FLOAT)}) {at}"
            case 1:
                return f"diff (fun ({x} : float) -> {body(FLOAT)}) {at}"
            case 2:
                return f"snd (jvp (fun ({x} : float) -> {body(FLOAT)}) {at} {self.expression(FLOAT, scope, depth)})"
            case 3:
                y, back = self.fresh("y"), self.fresh("k")
                inside = scope.add((y, FLOAT), (back, function(FLOAT, FLOAT)))
                use = self.expression(FLOAT, inside, depth)
                return f"let ({y}, {back}) = vjp (fun ({x} : float) -> {body(FLOAT)}) {at} in {back} {y} + {back} {use}"
            case 4:
                return f"checkpoint (fun ({x} : float) -> {body(FLOAT)}) {at}"
            case _:
                t = self.point_type()
                g = self.fresh("g")
                use = self.expression(FLOAT, scope.add((g, t)), depth)
                return f"let {g} = grad (fun ({x} : {t}) -> {body(t)}) {self.expression(t, scope, depth)} in {use}"

    def totalled(self, scope: Scope, depth: int) -> str:
        folds = [(f, t.args[0]) for f, t in scope.vars if t.name == "->" and t.args[0].name in self.datas and t.args[1] == FLOAT]
        if not folds:
            return self.expression(FLOAT, scope, depth)
        f, t = self.one(*folds)
        return f"{f} {self.expression(t, scope, depth)}"

    def own_rule(self, scope: Scope, depth: int) -> str:
        """A function of a float with its derivative by hand, which is right."""
        x, d = self.fresh("x"), self.fresh("d")
        at = self.expression(FLOAT, scope, depth)
        return self.one(
            f"with_jvp (fun {x} -> {x} * {x}) (fun {x} {d} -> ({x} * {x}, 2.0 * {x} * {d})) {at}",
            f"with_vjp (fun {x} -> sin {x}) (fun {x} -> (sin {x}, fun {d} -> cos {x} * {d})) {at}",
        )

    def controlled(self, scope: Scope, depth: int) -> str:
        k, c = self.fresh("k"), self.fresh("c")
        e = lambda s=scope: self.expression(FLOAT, s, depth)
        inside = scope.add((c, FLOAT))
        return self.one(
            f"reset (let {c} = shift {k} -> {e()} * {k} {e()} + {k} {e()} in {e(inside)})",
            f"reset (let {c} = shift {k} -> {k} (damp ({k} {e()})) in {e(inside)})",
            f"reset (let {c} = (if {self.expression(BOOL, scope, depth)} then shift {k} -> {e()} else {e()}) in {e(inside)})",
        )

    def made_array(self, ty: Ty, scope: Scope, depth: int) -> str:
        (item,), n = ty.args, ty.size
        e = lambda t=ty, s=scope: self.expression(t, s, depth)
        i, x = self.fresh("i"), self.fresh("x")
        from_index = lambda: self.expression(item, scope.add((i, INT)), depth)
        numeric = self.rank_of_floats(ty)
        match self.dice.randrange(14 if numeric else 9):
            case 0 | 1:
                return f"[{', '.join(e(item) for _ in range(n))}]"
            case 2 | 3:
                return f"[for {i} < {n} -> {from_index()}]"
            case 4:
                return f"{{ {e()} with [{self.index(n, scope, depth)}] = {e(item)} }}"
            case 5:
                t = self.any_type(1)
                body = self.expression(item, scope.add((x, t)), depth)
                return f"map (fun {self.parameter(x, t)} -> {body}) {e(array(t, n))}"
            case 6:
                return f"[for {x} in {e()} -> {self.expression(item, scope.add((x, item)), depth)}]"
            case 7:
                return self.one(
                    f"reverse {e()}", f"fill {n} {e(item)}", f"scan (fun {i} {x} -> {x}) {e(item)} {e()}",
                    f"{e(array(item, n + 2))}[1:{n + 1}]",
                    f"gather {e(array(item, 3))} (map (fun {i} -> {i} % 3) {e(array(INT, n))})",
                    f"scatter {e()} [0, {n - 1}] {e(array(item, 2))}",
                    f"mapi (fun {i} {self.parameter(x, item)} -> {self.expression(item, scope.add((i, INT), (x, item)), depth)}) {e()}",
                    f"[for {x} in zip {e()} {e()} -> {self.one('fst', 'snd')} {x}]",
                    f"tabulate {n} (fun {i} -> {from_index()}) :> {ty}",
                    self.updated(ty, scope, depth),
                )  # fmt: skip
            case 8:
                if n > 1:
                    k = self.dice.randint(1, n - 1)
                    return f"{e(array(item, k))} ++ {e(array(item, n - k))}"
                return f"[for {i} < {n} -> {from_index()}]"
            case 9 | 10:
                return f"{e()} {self.one(*OPERATORS)} {self.one(e, lambda: e(FLOAT), lambda: e(item))()}"
            case 11:
                return f"{self.one('sin', 'tanh', 'damp', '-', 'relu')} {e()}"
            case 12 if numeric == 1:
                k = self.dice.randint(1, 3)
                return self.one(
                    f"{e(array(array(FLOAT, k), n))} @ {e(array(FLOAT, k))}",
                    f"{e(array(FLOAT, k))} @ {e(array(array(FLOAT, n), k))}",
                    f"sum {e(array(ty, k))}",
                    f"softmax {e()}",
                    f"sort {e()}",
                    f"cumsum {e()}",
                    f"cumprod {e()}",
                    f"{e(array(array(FLOAT, k), n))}[:, {self.dice.randrange(k)}]",
                    f"{e(array(ty, k))}[{self.dice.randrange(k)}]",
                    f"scatter_add {e()} [0, {n - 1}] {e(array(FLOAT, 2))}",
                )
            case 12 if numeric == 2:
                m, k = item.size, self.dice.randint(1, 3)
                return self.one(
                    f"{e(array(array(FLOAT, k), n))} @ {e(array(array(FLOAT, m), k))}",
                    f"transpose {e(array(array(FLOAT, n), m))}",
                    f"outer {e(array(FLOAT, n))} {e(array(FLOAT, m))}",
                    f"{{ {e()} with [{self.dice.randrange(n)}, {self.index(m, scope, depth)}] = {e(FLOAT)} }}",
                    f"[for {i} < {n}, {x} < {m} -> {self.expression(FLOAT, scope.add((i, INT), (x, INT)), depth)}]",
                )
            case _:
                return f"grad (fun ({x} : {ty}) -> {self.expression(FLOAT, scope.pure().add((x, ty)), depth)}) {e()}"

    def updated(self, ty: Ty, scope: Scope, depth: int) -> str:
        """An array filled by a loop that reads what it writes."""
        a, i = self.fresh("a"), self.fresh("i")
        inside = scope.add((a, ty), (i, INT), (self.fresh("z"), ty.args[0]))
        z = inside.vars[-1][0]
        n = ty.size
        return (
            f"loop {a} = {self.expression(ty, scope, depth)} for {i} < {self.dice.randint(1, 4)} do let {z} = {a}[{i} % {n}] in "
            f"{{ {a} with [({i} + {self.dice.randrange(3)}) % {n}] = {self.expression(ty.args[0], inside, depth)} }}"
        )

    def rank_of_floats(self, ty: Ty) -> int:
        """The rank of an array of floats; 0 for all else."""
        rank = 0
        while ty.name == "[]":
            rank, ty = rank + 1, ty.args[0]
        return rank if ty == FLOAT else 0

    def made_list(self, ty: Ty, scope: Scope, depth: int) -> str:
        (item,) = ty.args
        e = lambda t=ty, s=scope: self.expression(t, s, depth)
        x, t = self.fresh("x"), self.any_type(1)
        return self.one(
            f"[{e(item)};]",
            f"[{e(item)}; {e(item)}]",
            f"{e(item)} :: {e()}",
            f"{e()} ++ {e()}",
            f"List.rev {e()}",
            f"List.map (fun {self.parameter(x, t)} -> {self.expression(item, scope.add((x, t)), depth)}) {e(list_of(t))}",
            f"List.filter (fun {self.parameter(x, item)} -> {self.expression(BOOL, scope.add((x, item)), depth)}) {e()}",
        )

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


def program(dice: Random) -> str:
    return Writer(dice).program()


programs = st.builds(program, st.randoms(use_true_random=False))
