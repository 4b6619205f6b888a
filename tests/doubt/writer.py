"""Draws -> the text of an expression of a wanted type, whatever is in scope.

    @rule(3, lambda h: h.ty == FLOAT)
    def product(h: Hole) -> str:
        return f"{h()} * {h()}"

A rule fills a `Hole`: `h(ty)` writes a part that is evaluated where the hole is, `h.apart(ty)` the body of a pure
function, `h.differentiated(ty)` of one whose derivative is taken.  Draws that are low give what is simple, as
hypothesis shrinks towards them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from doubt.scopes import (
    BOOL,
    F32,
    FLOAT,
    INT,
    STRING,
    Declared,
    Scope,
    Ty,
    array,
    function,
    instance,
    list_of,
    option,
    ref,
    tuple_of,
)

Rule = Callable[["Hole"], str]
RULES: list[tuple[int, Callable[[Hole], bool], Rule]] = []
SCALARS = (FLOAT, FLOAT, FLOAT, FLOAT, INT, BOOL, STRING)
NUMBERS = (0.3, 0.7, 1.1, 0.2, 0.9, 1.3, 0.1, 0.5, 1.7, 2.0)


def rule(weight: int, when: Callable[[Hole], bool]) -> Callable[[Rule], Rule]:
    """Registers a rule: how often it is chosen where `when` says that it fits."""

    def register(make: Rule) -> Rule:
        RULES.append((weight, when, make))
        return make

    return register


@cache
def below(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)


@dataclass(frozen=True)
class Features:
    """What a program has besides the usual."""

    control: bool = False  # shift and reset
    refs: bool = False
    singles: bool = False  # f32
    special: bool = False  # numbers at kinks and edges
    risky: bool = False  # errors when it runs
    bare: bool = False  # parameters without their types: inference may rightly find it too vague
    stops: bool = False  # stop_grad: finite differences see what it hides


@dataclass
class Writer:
    """The draws, what is declared, and how much more may be written."""

    draw: Callable[[st.SearchStrategy], Any]
    features: Features
    budget: int
    declared: dict[str, Declared] = field(default_factory=dict)
    names: int = 0
    used: set[str] = field(default_factory=set)  # rules

    # ---- draws ----

    def below(self, n: int) -> int:
        return self.draw(below(n)) if n > 1 else 0

    def one(self, *choices):
        return choices[self.below(len(choices))]

    def often(self, percent: int) -> bool:
        """Never, once it is shrunk."""
        return self.below(100) >= 100 - percent

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def fill(self, hole: Hole) -> str:
        """What hypothesis may replace by a part of it that was filled in the same way."""
        return self.draw(filled(hole))

    # ---- types ----

    def parts(self, ty: Ty) -> list[tuple[str, Ty | None]]:
        """The fields of a record, the constructors of data, at the type's argument."""
        declared = self.declared[ty.name]
        if not ty.args:
            return list(declared.parts)
        return [(name, part and instance(part, ty.args[0])) for name, part in declared.parts]

    def is_record(self, ty: Ty) -> bool:
        return ty.name in self.declared and self.declared[ty.name].is_record

    def is_data(self, ty: Ty) -> bool:
        return ty.name in self.declared and not self.declared[ty.name].is_record

    def reaches(self, ty: Ty, *names: str, seen: frozenset[Ty] = frozenset()) -> bool:
        """Whether one of those types is part of it."""
        if ty.name in names:
            return True
        parts = [part for _, part in self.parts(ty) if part] if ty.name in self.declared else ty.args
        return ty not in seen and any(self.reaches(part, *names, seen=seen | {ty}) for part in parts)

    def scalar(self) -> Ty:
        return self.one(*SCALARS, F32, F32) if self.features.singles else self.one(*SCALARS)

    def data_type(self, depth: int = 2) -> Ty:
        """A type of values that can be printed, compared and kept in references."""
        at = self.below(20) if depth else 0
        if at < 10:
            return self.scalar()
        item = self.data_type(depth - 1)
        match at:
            case 10 | 11:
                return tuple_of(item, self.data_type(depth - 1))
            case 12:
                return tuple_of(item, FLOAT, FLOAT)
            case 13 | 14:
                return array(FLOAT, self.below(4) + 1)
            case 15:
                return array(array(FLOAT, self.below(3) + 1), self.below(3) + 1)
            case 16:
                return array(item, self.below(3) + 1)
            case 17:
                return list_of(item)
            case 18:
                return option(item)
        data = [name for name in self.declared if not self.reaches(self.applied(name), "->", "ref")]
        return self.applied(self.one(*data), item) if data else list_of(item)

    def applied(self, name: str, item: Ty = FLOAT) -> Ty:
        return Ty(name, (item,)) if self.declared[name].parametric else Ty(name)

    def any_type(self, depth: int = 2) -> Ty:
        """Functions and references too, and data that holds them."""
        at = self.below(20)
        if at < 14:
            return self.data_type(depth)
        made = ref(self.data_type(1)) if self.features.refs and at < 16 else function(self.scalar(), self.data_type(1))
        if at < 18:
            return made
        curried = function(FLOAT, function(FLOAT, FLOAT))
        names = [name for name in self.declared if self.reaches(self.applied(name), "->", "ref")]
        holders = [list_of(made), tuple_of(made, FLOAT), option(made), tuple_of(FLOAT, made), array(made, 2), curried]
        return self.one(*holders, *(self.applied(name) for name in names))

    def point_type(self, depth: int = 2) -> Ty:
        """What can be differentiated, and by what: data with floats, and nothing of single precision."""
        ty = self.data_type(depth)
        if self.reaches(ty, "float") and not self.reaches(ty, "f32"):
            return ty
        return self.one(FLOAT, array(FLOAT, 2), Ty("*", (FLOAT, ty)) if not self.reaches(ty, "f32") else FLOAT)

    def rigid_type(self) -> Ty:
        """A point type whose values all have one structure, so that any two fit."""
        ty = self.point_type(1)
        return self.one(FLOAT, array(FLOAT, 2), tuple_of(FLOAT, FLOAT)) if self.varies(ty) else ty

    def varies(self, ty: Ty) -> bool:
        return self.reaches(ty, "list", "option", *(name for name in self.declared if self.is_data(Ty(name))))

    def fits_point(self, ty: Ty) -> bool:
        return self.reaches(ty, "float") and not self.reaches(ty, "->", "ref", "f32")


@dataclass(frozen=True)
class Hole:
    """An expression is wanted here: of this type, in this scope, this deep."""

    writer: Writer
    ty: Ty
    scope: Scope
    depth: int

    def __call__(self, ty: Ty | None = None, *named: tuple[str, Ty]) -> str:
        """A part of it, that is evaluated here."""
        return self.filled(ty or self.ty, self.scope.add(*named))

    def apart(self, ty: Ty, *named: tuple[str, Ty]) -> str:
        """The body of a function that may be called from anywhere."""
        return self.filled(ty, self.scope.apart().add(*named))

    def differentiated(self, ty: Ty, *named: tuple[str, Ty]) -> str:
        """The body of a function whose derivative is taken."""
        scope = replace(self.scope.differentiated(), order=self.scope.order + 1)
        return self.filled(ty, scope.add(*named))

    def delimited(self, answer: Ty) -> Hole:
        """The same hole, inside of a `reset` that it is to have."""
        return replace(self, scope=self.scope.delimited(answer))

    def small(self, ty: Ty, *named: tuple[str, Ty]) -> str:
        """A variable, or something about one."""
        return leaf(Hole(self.writer, ty, self.scope.add(*named), 0))

    def filled(self, ty: Ty, scope: Scope) -> str:
        return self.writer.fill(Hole(self.writer, ty, scope, self.depth - 1))

    # ---- the writer's ----

    def fresh(self, stem: str) -> str:
        return self.writer.fresh(stem)

    def named(self, stem: str, ty: Ty) -> tuple[str, Ty]:
        return self.writer.fresh(stem), ty

    def one(self, *choices):
        return self.writer.one(*choices)

    def often(self, percent: int) -> bool:
        return self.writer.often(percent)

    def some_type(self, depth: int = 1) -> Ty:
        return self.writer.any_type(depth)

    def parameter(self, var: tuple[str, Ty]) -> str:
        """A parameter, with its type unless the program is bare."""
        text = self.component(var)
        return f"({text})" if ":" in text else text

    def component(self, var: tuple[str, Ty]) -> str:
        """The same as a component of a tuple, where it needs no parentheses."""
        name, ty = var
        bare = self.writer.features.bare and self.often(60)
        return self.one(name, f"{name} : _") if bare else f"{name} : {ty}"

    def count(self) -> int:
        """Steps of a loop: few, or so many that what it keeps must grow; few where steps may run many times."""
        if self.scope.answer:
            return self.writer.below(2) + 1
        return 18 if self.often(3) else self.writer.below(3) + 1

    def index(self, n: int) -> str:
        """Of an array with `n` elements."""
        if self.writer.features.risky and self.often(10):
            return self(INT)
        return str(self.writer.below(n)) if n == 1 or self.often(50) else f"{self(INT)} % {n}"


@st.composite
def filled(draw: st.DrawFn, hole: Hole) -> str:
    """A strategy of its own, so that hypothesis knows where parts begin and end."""
    hole.writer.draw = draw
    return expression(hole)


def expression(h: Hole) -> str:
    """Any expression of the wanted type, as an atom."""
    w = h.writer
    w.budget -= 1
    if h.depth <= 0 or w.budget <= 0:
        return leaf(h)
    rules = [(weight, make) for weight, fits, make in RULES if fits(h)]
    at = w.below(8 + sum(weight for weight, _ in rules)) - 8
    if at < 0:
        return leaf(h)
    for weight, make in rules:
        at -= weight
        if at < 0:
            w.used.add(make.__name__)
            return f"({make(h)})"
    raise AssertionError("no rule")


def leaf(h: Hole) -> str:
    """A variable, or a value written out whose parts are variables where that can be."""
    w, ty = h.writer, h.ty
    known = h.scope.of(ty)
    at = w.below(len(known) + 1)
    if at < len(known):
        return known[at]
    floats = h.scope.of(FLOAT) if ty in (INT, BOOL) else []
    if floats:
        x = w.one(*floats)
        return f"({x} < {w.one(*NUMBERS)})" if ty == BOOL else f"(int (4.0 * sin {x}))"
    return literal(h)


def literal(h: Hole) -> str:  # noqa: C901 -- one case per type
    """A value of the type written out."""
    w, ty = h.writer, h.ty
    h = replace(h, depth=h.depth - 1)

    def part(item: Ty, *named: tuple[str, Ty]) -> str:
        return leaf(replace(h, ty=item, scope=h.scope.add(*named)))

    match ty.name:
        case "float":
            return number(w)
        case "f32":
            return f"{w.one(*NUMBERS)}f32"
        case "int":
            return str(w.below(6))
        case "bool":
            return w.one("true", "false")
        case "string":
            return w.one('"a"', '"bc"', '""', '"é\\n"')
        case "unit":
            return "()"
        case "*":
            return f"({', '.join(map(part, ty.args))})"
        case "[]" if ty.size > 4:
            i = w.fresh("i")
            return f"[for {i} < {ty.size} -> {literal(replace(h, ty=ty.args[0], scope=Scope().add((i, INT))))}]"
        case "[]":
            return f"[{', '.join(part(ty.args[0]) for _ in range(ty.size))}]"
        case "list":
            items = [part(ty.args[0]) for _ in range(w.below(3) + 1)]
            return f"[{items[0]};]" if len(items) == 1 else f"[{'; '.join(items)}]"
        case "option":
            return f"(Some {part(ty.args[0])})"
        case "ref":
            return f"(ref {part(ty.args[0])})"
        case "->":
            var = h.named("p", ty.args[0])
            inside = replace(h, ty=ty.args[1], scope=h.scope.delimited(ty.answer) if ty.answer else h.scope.apart())
            return f"(fun ({var[0]} : {var[1]}) -> {leaf(replace(inside, scope=inside.scope.add(var)))})"
    parts = w.parts(ty)
    if w.is_record(ty):
        return "{ " + "; ".join(f"{name} = {part(item)}" for name, item in parts if item) + " }"
    constructor, inside = parts[0] if h.depth < -2 else w.one(*parts)
    return constructor if inside is None else f"({constructor} {part(inside)})"


def number(w: Writer) -> str:
    """A float: odd ones, so that nothing is at a kink, unless that is wanted."""
    if w.features.special:
        return w.one("0.0", "1.0", "(-1.0)", "2.0", "(-2.0)", "0.5")
    at = w.below(3 * len(NUMBERS))
    value = NUMBERS[at // 3] + 0.03 * (at % 2)
    return f"(-{value:.2f})" if at % 3 == 2 else f"{value:.2f}"
