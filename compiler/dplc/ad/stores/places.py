"""Data with places: the type that has an int for each float of another, and the functions that make it of data.

data tree = Leaf f64 | Node (f64, tree)      data places.tree = Leaf i64 | Node (i64, places.tree)

count.tree(x, n)            n and the number of floats in x
ravel.tree(x, values, at)   x with places from `at` on, the array with the floats there, and the next place
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.types import datas_reached
from dplc.flat.walk import supply_for


class Ravel:
    """The types with places and the functions that make such data; `fns` and `datas` are the new ones."""

    def __init__(self, program: f.Program) -> None:
        self.old = program.datas
        self.b = Builder(supply_for(program))
        self.fns: dict[str, f.Fn] = {}
        self.datas: dict[str, f.DataDecl] = {}

    # ---- types

    def number(self, ty: f.Type) -> f.Num | None:
        """The type of all floats in values of this type, if there is one, and nothing stands in the way."""
        if not isinstance(ty, f.Data):
            return None
        payloads = [p for name in datas_reached([ty], self.old) for p in self.old[name].payloads if p is not None]
        parts = set(parts_of(payloads))
        floats = [part for part in parts if isinstance(part, f.Num) and f.is_float(part)]
        plain = all(isinstance(part, f.Num | f.Str | f.Data) for part in parts)
        return floats[0] if plain and len(floats) == 1 else None

    def branches(self, ty: f.Type) -> bool:
        """True for data that holds its own type in several parts, itself or in a node below it."""
        around = [name for name in datas_reached([ty], self.old) if self.reaches(f.Data(name), ty)]
        payloads = [p for name in around for p in self.old[name].payloads if p is not None]
        return any(sum(self.reaches(part, ty) for part in parts_of([p])) > 1 for p in payloads)

    def reaches(self, part: f.Type, ty: f.Type) -> bool:
        return isinstance(ty, f.Data) and ty.name in datas_reached([part], self.old)

    def holds(self, ty: f.Type) -> bool:
        """True if values of a type hold floats."""
        reached = [p for name in datas_reached([ty], self.old) for p in self.old[name].payloads if p is not None]
        return any(map(f.is_float, parts_of([ty, *reached])))

    def type(self, ty: f.Type) -> f.Type:
        """The type with ints for floats."""
        match ty:
            case f.Tup(items):
                return f.Tup(tuple(map(self.type, items)))
            case f.Data(name) if self.holds(ty):
                return self.data(name)
            case _:
                return f.I64 if f.is_float(ty) else ty

    def data(self, name: str) -> f.Data:
        own = f.Data(f"places.{name}")
        if own.name not in self.datas:
            decl = self.old[name]
            self.datas[own.name] = replace(decl, name=own.name)  # it may hold itself
            payloads = tuple([None if p is None else self.type(p) for p in decl.payloads])
            self.datas[own.name] = replace(decl, name=own.name, payloads=payloads)
        return own

    # ---- functions

    def counter(self, ty: f.Type) -> str:
        """The function that adds the number of floats in data to a number."""
        assert isinstance(ty, f.Data)
        x, n = f.Var("x.p", ty), f.Var("n.p", f.I64)

        def counted(part: f.Atom, total: f.Atom) -> f.Atom:
            match part.ty:
                case f.Tup(items):
                    for i, item in enumerate(items):
                        if self.holds(item):
                            total = counted(self.b.one(f.TupGet(part, i), item, "part"), total)
                    return total
                case f.Data():
                    return self.b.call(self.counter(part.ty), (part, total), f.I64, hint="n")
                case _:
                    return self.b.op("add", (total, integer(1)))

        def arm(_: int, part: f.Atom | None) -> tuple[f.Atom, ...]:
            return (n if part is None or not self.holds(part.ty) else counted(part, n),)

        name = f"count.{ty.name}"
        if name not in self.fns:
            self.fns[name] = f.Fn(name, (x, n), (f.I64,), f.Block((), (n,)))  # it may call itself
            self.fns[name] = replace(self.fns[name], body=self.switch(x, arm, (f.I64,)))
        return name

    def maker(self, ty: f.Type, array: f.Type) -> str:
        """The function that writes the floats of data into an array, from a place on."""
        assert isinstance(ty, f.Data)
        new = self.data(ty.name)
        x, values, at = f.Var("x.p", ty), f.Var("values.p", array), f.Var("at.p", f.I64)

        def raveled(part: f.Atom, now: f.Atom, place: f.Atom) -> tuple[f.Atom, f.Atom, f.Atom]:
            match part.ty:
                case f.Tup(items):
                    made = list[f.Atom]()
                    for i, item in enumerate(items):
                        one, now, place = raveled(self.b.one(f.TupGet(part, i), item, "part"), now, place)
                        made.append(one)
                    return self.b.one(f.TupMake(tuple(made)), self.type(part.ty), "t"), now, place
                case f.Data() if self.holds(part.ty):
                    results = (self.type(part.ty), array, f.I64)
                    one, now, place = self.b.bind(f.Call(self.maker(part.ty, array), (part, now, place)), results)
                    return one, now, place
                case _ if f.is_float(part.ty):
                    return place, self.b.op("update", (now, part, place)), self.b.op("add", (place, integer(1)))
                case _:
                    return part, now, place

        def arm(tag: int, part: f.Atom | None) -> tuple[f.Atom, ...]:
            one, now, place = (None, values, at) if part is None else raveled(part, values, at)
            return self.b.one(f.ConMake(new.name, tag, one), new, "data"), now, place

        name = f"ravel.{ty.name}"
        if name not in self.fns:
            self.fns[name] = f.Fn(name, (x, values, at), (new, array, f.I64), f.Block((), (x, values, at)))
            self.fns[name] = replace(self.fns[name], body=self.switch(x, arm, (new, array, f.I64)))
        return name

    def switch(
        self, x: f.Var, arm: Callable[[int, f.Atom | None], tuple[f.Atom, ...]], results: Sequence[f.Type]
    ) -> f.Block:
        """A block that branches on data, with an arm for each constructor."""
        assert isinstance(x.ty, f.Data)
        cases = list[f.Case]()
        for tag, payload in enumerate(self.old[x.ty.name].payloads):
            part = None if payload is None else self.b.var("part", payload)
            with self.b.inside() as binds:
                made = arm(tag, part)
            cases.append(f.Case(tag, part, block_of(binds, made)))
        with self.b.inside() as binds:
            found = self.b.bind(f.Switch(x, tuple(cases), None), results)
        return block_of(binds, found)


def parts_of(types: Iterable[f.Type]) -> Iterator[f.Type]:
    """The types, with tuples taken apart."""
    for ty in types:
        if isinstance(ty, f.Tup):
            yield from parts_of(ty.items)
        else:
            yield ty
