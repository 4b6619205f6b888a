"""Solved types -> ground types -> flat types, for each specialisation of a function.

    a -{G}-> b   with G bound to {fun@7 [f64]}   ==>   closures of this arrow are Tup(f64), nothing more
    a -{G}-> b   with G bound to {fun@7 [f64], fun@9 []}   ==>   Data fn.3 = fun@7 of f64 | fun@9

`Interner` keeps one `Ground` for each solved set, so that ground types can be compared; `Scope` maps the sets in the
types of one specialised function to ground sets; `Layout` maps ground types to flat ones and declares flat data.
"""

from __future__ import annotations

from typing import Any

from dpl.core import ty as t
from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.graph import components
from dplc.narrow import a_type
from dplc.passes import NeedsInterpreter
from dplc.passes.closures.set_types import (
    Datas,
    Ground,
    Lambda,
    Member,
    Set,
    beside,
    is_bare,
    is_set,
    rebuild,
    root,
    sets_in,
)

MOST_DATAS = 20_000


class Interner:
    """Makes one `Ground` for each set.  Equal sets have equal descriptions, cycles included: members in order, and sets
    of one cycle in the order in which a walk from the described set meets them."""

    def __init__(self) -> None:
        self.known: dict[tuple, Ground] = {}
        self.carried: dict[Set, list[tuple[Member, int, t.Ty]]] = {}

    def carrying(self, functions: Set) -> list[tuple[Member, int, t.Ty]]:
        """The captures of a set's members whose types have sets in them: (member, index of the capture, type)."""
        if functions not in self.carried:
            self.carried[functions] = [
                (member, i, ty)
                for member, captures in functions.members.items()
                for i, ty in enumerate(captures)
                if not is_bare(ty) and next(sets_in(ty), None) is not None
            ]
        return self.carried[functions]

    def solve(self, start: Set, bound: dict[Set, Ground]) -> None:
        """Extend `bound` to `start` and to all sets that it reaches."""

        def reached(functions: Set) -> list[Set]:
            types = (ty for captures in functions.members.values() for ty in captures if not is_bare(ty))
            found = (root(s) for ty in types for s in sets_in(ty))
            return [s for s in found if s not in bound]

        for component in components([start], reached):
            recursive = len(component) > 1 or component[0] in reached(component[0])
            keys = {s: description(s, bound) for s in component}
            new = []
            for s in component:
                ground = self.known.get(keys[s])
                if ground is None:
                    ground = self.known[keys[s]] = Ground(len(self.known), recursive or len(s.members) > 1)
                    new.append((s, ground))
                bound[s] = ground
            for s, ground in new:
                for member in sorted(s.members, key=lambda m: m.id):
                    ground.members[member] = tuple([ty if is_bare(ty) else put(ty, bound) for ty in s.members[member]])


def put(ty: t.Ty, bound: dict[Set, Ground]) -> t.Ty:
    """A type with its sets replaced by ground sets."""
    if is_bare(ty) or next(sets_in(ty), None) is None:
        return ty
    return rebuild(ty, lambda part: put(part, bound), lambda s: bound[root(s)])


def description(start: Set, bound: dict[Set, Ground]) -> tuple:
    numbers: dict[Set, int] = {start: 0}
    order = [start]

    def describe(part: Any) -> object:
        if is_bare(part):
            return part.name
        if is_set(part):
            part = root(part)
            if part in bound:
                return bound[part]
            if part not in numbers:
                numbers[part] = len(order)
                order.append(part)
            return numbers[part]
        match part:
            case t.Fn(arg, functions, result):
                return ("fn", describe(arg), describe(functions), describe(result))
            case t.Con(name, args):
                return (name, *[describe(a) for a in args])
            case t.Tup(items):
                return ("tuple", *[describe(i) for i in items])
            case t.Arr(elem):
                return ("array", describe(elem))
            case _:
                raise Bug(f"not a type: {part}")

    out = []
    for functions in order:  # the loop body appends to it
        members = sorted(functions.members, key=lambda m: m.id)
        out.append(tuple([(m.id, *[describe(ty) for ty in functions.members[m]]) for m in members]))
    return tuple(out)


class Scope:
    """The ground sets of the sets in a function's types, for one of its specialisations."""

    def __init__(self, interner: Interner) -> None:
        self.interner = interner
        self.bound: dict[Set, Ground] = {}
        self.memo: dict[int, tuple[t.Ty, t.Ty]] = {}  # by identity; the key is kept alive

    def bind(self, ty: t.Ty, ground: t.Ty) -> None:
        """Record that a solved type is this ground type."""
        if ty is ground:  # it mentions no sets
            return
        for part, found in beside(ty, ground):
            self.bind_set(part, found) if is_set(part) else self.bind(part, found)

    def bind_set(self, functions: Any, ground: Any) -> None:
        functions = root(functions)
        if functions in self.bound:
            if self.bound[functions] is not ground:
                raise Bug("one set stands for two")
            return
        self.bound[functions] = ground
        for member, i, ty in self.interner.carrying(functions):
            self.bind(ty, ground.members[member][i])

    def ground(self, ty: t.Ty) -> t.Ty:
        """A type with the sets that this specialisation has."""
        found = self.memo.get(id(ty))
        if found is None:
            for s in sets_in(ty):
                if root(s) not in self.bound:
                    self.interner.solve(root(s), self.bound)
            return self.placed(ty)
        return found[1]

    def placed(self, ty: t.Ty) -> t.Ty:
        """A type with its sets, which are all known, replaced; parts that types share are made once."""
        if is_bare(ty) or next(sets_in(ty), None) is None:
            return ty
        found = self.memo.get(id(ty))
        if found is None:
            found = self.memo[id(ty)] = ty, rebuild(ty, self.placed, lambda s: self.bound[root(s)])
        return found[1]


class Layout:
    """Ground types as flat types."""

    def __init__(self, datas: Datas) -> None:
        self.datas = datas
        self.declared: dict[str, f.DataDecl] = {}
        self.types: dict[t.Ty | str, f.Type] = {}  # those without parts by their names, which need no walk to find
        self.names: dict[t.Ty | Ground, str] = {}
        self.sites: dict[t.Ty, str] = {}

    def flat(self, ty: t.Ty) -> f.Type:
        """The type of flat for a ground type."""
        key = ty.name if is_bare(ty) else ty
        found = self.types.get(key)
        if found is None:
            found = self.types[key] = self.convert(ty)
        return found

    def convert(self, ty: t.Ty) -> f.Type:
        match ty:
            case t.Con("string"):
                return f.STR
            case t.Con("ref", (content,)):
                return f.Ref(self.flat(a_type(content)))
            case t.Con(name):
                return self.data(ty) if name in self.datas.datas else f.Num(name)
            case t.Tup(items):
                return f.Tup(tuple([self.flat(i) for i in items]))
            case t.Arr(elem):
                inner = self.flat(elem)
                return f.Arr(inner.elem, inner.rank + 1) if isinstance(inner, f.Arr) else f.Arr(inner, 1)
            case t.Fn():
                return self.closure(ty)
            case _:
                raise Bug(f"not a ground type: {ty}")

    def data(self, ty: t.Con) -> f.Type:
        if self.datas.unboxed(ty):
            payload = self.datas.payload(ty, 0)
            return f.UNIT if payload is None else self.flat(payload)
        declared = self.datas.datas[ty.name]
        name = self.names[ty] = f"{ty.name}.{len(self.names)}"
        self.types[ty if ty.args else ty.name] = f.Data(name)
        payloads = [self.datas.payload(ty, tag) for tag in range(len(declared.cases))]
        self.declare(
            name,
            tuple([None if p is None else self.flat(p) for p in payloads]),
            tuple([case for case, _ in declared.cases]),
        )
        return f.Data(name)

    def declare(self, name: str, payloads: tuple[f.Type | None, ...], names: tuple[str, ...]) -> None:
        """Declares a data type of flat.  Raises NeedsInterpreter if there are too many: there may be no end."""
        if len(self.declared) > MOST_DATAS:
            raise NeedsInterpreter("data types without end")
        self.declared[name] = f.DataDecl(name, payloads, names)

    def closure(self, ty: t.Fn) -> f.Type:
        """The type of a function value: the tuple of captures if there is only one member, otherwise a Data."""
        functions = ground_set(ty)
        if not functions.boxed:
            for member, captures in functions.members.items():
                return self.payload(member, captures)
            return f.UNIT
        name = self.names.get(functions)
        if name is None:
            name = self.names[functions] = f"fn.{len(self.names)}"
            payloads = [self.payload(member, captures) for member, captures in functions.members.items()]
            labels = tuple([m.label or "fun" if isinstance(m, Lambda) else "pullback" for m in functions.members])
            self.declare(name, tuple([p if p.items else None for p in payloads]), labels)
        return f.Data(name)

    def payload(self, member: Member, captures: tuple[t.Ty, ...]) -> f.Tup:
        """What a member of a lambda set carries: its captures, or the residual of a pullback."""
        if isinstance(member, Lambda):
            return f.Tup(tuple([self.flat(ty) for ty in captures]))
        return f.Tup((f.Res(self.site(captures[0])),))

    def site(self, differentiated: t.Ty) -> str:
        """The name of the site at which functions of this ground type are differentiated in reverse mode."""
        return self.sites.setdefault(differentiated, f"site.{len(self.sites)}")


def ground_set(ty: t.Ty) -> Ground:
    """The lambda set of a ground function type."""
    if isinstance(ty, t.Fn) and isinstance(ty.eff, Ground):
        return ty.eff
    raise Bug(f"not a ground function type: {ty}")
