"""Dice -> types, declarations of types, and functions that go through their values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random


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


@dataclass
class Types:
    """The dice, what has been declared, and which kinds of things a program has."""

    dice: Random
    datas: dict[str, list[tuple[str, Ty | None]]] = field(default_factory=dict)
    records: dict[str, list[tuple[str, Ty]]] = field(default_factory=dict)
    names: int = 0
    control: bool = False  # with shift and reset: then the interpreter runs it all
    bare: bool = False  # parameters without their types
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
            rows = array(item, self.dice.randint(1, 3))
            return self.one(list_of(item), rows, tuple_of(item, FLOAT), Ty("option", (item,)))
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
                    self.any_type(1),
                    tuple_of(FLOAT, me),
                    tuple_of(me, me),
                    array(me, 2),
                    list_of(me),
                    tuple_of(self.any_type(1), me),
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
            arms = " | ".join(self.totals(total, me, c, t) for c, t in cases)
            lines.append(f"let rec {total} t = match t with {arms}")
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
        if inside is None:
            return f"{constructor} -> {constructor}"
        return f"{constructor} v -> {constructor} {self.copy_of(again, me, inside, 'v')}"

    def copy_of(self, again: str, me: Ty, ty: Ty, v: str) -> str:
        if ty == me:
            return f"({again} {v})"
        x = self.fresh("x")
        match ty.name:
            case "float":
                return f"({again.split()[1]} {v})"
            case "*":
                names = [self.fresh("x") for _ in ty.args]
                copies = ", ".join(self.copy_of(again, me, t, n) for n, t in zip(names, ty.args))
                return f"(let ({', '.join(names)}) = {v} in ({copies}))"
            case "[]":
                return f"(map (fun {x} -> {self.copy_of(again, me, ty.args[0], x)}) {v})"
            case "list":
                return f"(List.map (fun {x} -> {self.copy_of(again, me, ty.args[0], x)}) {v})"
        return v
