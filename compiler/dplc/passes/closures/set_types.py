"""Types with lambda sets: the functions that an arrow may stand for.

After `mono`, each arrow of a type carries, in the place of its effect, the set of functions that may reach it:

    (i64 -> i64) * f64 list      (i64 -{fun@3 [f64]}-> i64) * f64 list

This means that the function is lambda 3, which captured an f64.  Sets are found by unification: where two arrows meet,
their sets become one.  A data type whose declaration mentions arrows takes sets as further arguments, one for each
arrow (recursive uses within a group of declarations share them).  Types without arrows do not change.

During inference, a `Set` is a variable.  A `Ground` set is final: there is one object for each, so that ground types
can be compared and used as keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, TypeGuard

from dpl.core import term as c
from dpl.core import ty as t
from dpl.diagnostics import Bug
from dpl.node import entity, field, node
from dpl.source import Span

from dplc.graph import components
from dplc.narrow import a_type
from dplc.passes.specialise.program import ANY, dimensions, type_arguments_of


@entity
class Lambda:
    """The definition of a function: its captures, parameter and body.  `peers` are the names of functions that its body
    may use and that are made of the same captures (its own name and those of its group)."""

    id: int
    label: str
    span: Span
    param: str
    body: c.Term
    captures: dict[str, t.Ty]
    arg: t.Ty = t.UNIT
    result: t.Ty = t.UNIT
    peers: dict[str, tuple[Lambda, t.Ty]] = field(default_factory=dict)


@entity
class Pullback:
    """The pullback of a vjp, as a member of a set.  It captures the residual; its only capture is the type of the
    differentiated function."""

    id: int


Member = Lambda | Pullback


@entity
class Set(t.Hole):
    """`members` maps functions to the types of their captures (a live view while the lambda is being inferred).  A set
    that has been united with another has a `link`.  A `shared` set belongs to a global value: it is the same for all
    uses of a function that mentions the value."""

    members: dict[Member, Collection[t.Ty]] = field(default_factory=dict)
    link: Set | None = None
    shared: bool = False


@entity
class Ground(t.Hole):
    """`boxed`: represented as a Data, because there are several members or the captures contain the set again."""

    id: int
    boxed: bool
    members: dict[Member, tuple[t.Ty, ...]] = field(default_factory=dict)


@node
class Slot(t.Hole):
    """A set in the declaration of a data type: the set argument of this number."""

    index: int


def arrow(arg: t.Ty, functions: Set | Ground | Slot, result: t.Ty) -> t.Fn:
    """A function type whose effect is replaced by the functions that it may stand for."""
    return t.Fn(arg, functions, result)


def root(functions: Any) -> Set:
    """The set that a set has become by unification: the end of its links."""
    while functions.link is not None:
        functions = functions.link
    return functions


def is_set(part: object) -> TypeGuard[Set | Ground | Slot]:
    """True for a lambda set in one of its three forms."""
    return isinstance(part, Set | Ground | Slot)


def rebuild(ty: t.Ty, on_type, on_set) -> t.Ty:
    """`ty` with its immediate parts replaced."""
    match ty:
        case t.Fn(arg, functions, result):
            return arrow(on_type(arg), on_set(functions), on_type(result))
        case t.Con(_, ()):
            return ty
        case t.Con(name, args):
            return t.Con(name, tuple([on_set(a) if is_set(a) else on_type(a) for a in args]))
        case t.Tup(items):
            return t.Tup(tuple([on_type(i) for i in items]))
        case t.Arr(elem, size):
            return t.Arr(on_type(elem), size)
        case _:
            raise Bug(f"not a monotype: {ty}")


def is_bare(ty: t.Ty) -> TypeGuard[t.Con]:
    """True for a type that has no parts, and so no sets: that of most variables that functions capture."""
    return type(ty) is t.Con and not ty.args


def sets_in(ty: t.Ty) -> Iterator[Any]:
    """The sets that a type mentions.  The sets inside their members are not included."""
    todo: list[Any] = [ty]
    while todo:
        match todo.pop():
            case t.Fn(arg, functions, result):
                yield functions
                todo += (result, arg)
            case t.Con(_, args):
                for a in args:
                    if is_set(a):
                        yield a
                    else:
                        todo.append(a)
            case t.Tup(items):
                todo += reversed(items)
            case t.Arr(elem):
                todo.append(elem)
            case _:
                pass


def beside(a: t.Ty, b: t.Ty) -> list[tuple[Any, Any]]:
    """The immediate parts of two types of one shape, in pairs; an arrow's set comes first."""
    match a, b:
        case t.Fn(arg1, set1, result1), t.Fn(arg2, set2, result2):
            return [(set1, set2), (arg1, arg2), (result1, result2)]
        case (t.Con(_, parts1), t.Con(_, parts2)) | (t.Tup(parts1), t.Tup(parts2)):
            return list(zip(parts1, parts2, strict=True))
        case t.Arr(elem1), t.Arr(elem2):
            return [(elem1, elem2)]
        case _:
            raise Bug(f"these types cannot meet: {a} and {b}")


class Unifier:
    """Unites sets.  It has no other state."""

    def types(self, a: t.Ty, b: t.Ty) -> None:
        """Makes the sets of two types equal.  The types themselves are equal by inference."""
        if a is not b:
            for x, y in beside(a, b):
                self.sets(x, y) if is_set(x) else self.types(x, y)

    def sets(self, a: Any, b: Any) -> None:
        a, b = root(a), root(b)
        if a is b:
            return
        if len(a.members) < len(b.members):
            a, b = b, a
        b.link = a
        a.shared = a.shared or b.shared
        for member, captures in b.members.items():
            known = a.members.setdefault(member, captures)
            if known is not captures:
                for x, y in zip(known, captures, strict=True):
                    self.types(x, y)


# ---- data types -----------------------------------------------------------------------------------------------------


class Datas:
    """The declarations of data types, with the lambda sets of their arrows."""

    def __init__(self, datas: dict[str, c.Data]) -> None:
        self.datas = datas
        self.groups: dict[str, tuple[str, ...]] = {}  # name -> its strongly connected component
        self.mentions: dict[str, list[str]] = {}  # a record of many fields is asked about at each use of a field
        self.arities: dict[str, int] = {"ref": 0}
        self.decorated: dict[str, tuple[t.Ty | None, ...]] = {}
        self.having: dict[int, tuple[t.Ty | t.Size, bool]] = {}  # by identity: types are deep; the key is kept alive
        self.payloads: dict[tuple[t.Ty, int], t.Ty | None] = {}

    def group(self, name: str) -> tuple[str, ...]:
        """The data types that mention each other, one of which this is."""
        if name not in self.groups:
            for component in components([name], self.mentioned):
                self.groups.update(dict.fromkeys(component, tuple(component)))
        return self.groups[name]

    def mentioned(self, name: str) -> list[str]:
        """The declared types that a declaration mentions."""
        if name not in self.mentions:
            self.mentions[name] = self._mentioned(name)
        return self.mentions[name]

    def _mentioned(self, name: str) -> list[str]:
        found: dict[str, None] = {}
        todo: list[Any] = [ty for _, ty in self.datas[name].cases if ty is not None]
        while todo:
            match todo.pop():
                case t.Con(other, args):
                    if other in self.datas:
                        found[other] = None
                    todo += args
                case t.Tup(items):
                    todo += items
                case t.Arr(elem):
                    todo.append(elem)
                case t.Fn(arg, _, result):
                    todo += (arg, result)
                case _:
                    pass
        return list(found)

    def recursive(self, name: str) -> bool:
        """True if a value of the type may hold another one."""
        group = self.group(name)
        return len(group) > 1 or name in self.mentioned(name)

    def unboxed(self, ty: t.Con) -> bool:
        """True if data is represented by its payload alone.  A constructor of an array of any size keeps its box: the
        rows of one array have one size, and data in an array need not.  Records have none, as C sees their fields:
        there a tuple keeps the array apart."""
        declared = self.datas[ty.name]
        if len(declared.cases) > 1 or self.recursive(ty.name):
            return False
        return bool(declared.fields) or not self.of_any_size(ty)

    def of_any_size(self, ty: t.Con) -> bool:
        """True if the argument of the only constructor, or the only field, is an array, of a size that the declaration
        does not tell.  A size that is a parameter may be `?`, which is two sizes in one array.  So may be those of an
        array in the place of a parameter."""
        declared = self.datas[ty.name].cases[0][1]
        if declared is None:
            return False
        sizes, inner = dimensions(declared)
        given = self.types_of(ty)[inner.name] if isinstance(inner, t.Var) else inner
        return isinstance(given, t.Arr) or any(size.terms for size in sizes)

    def lone_field(self, ty: t.Con) -> bool:
        """True for a record with a single field that is its payload."""
        return len(self.datas[ty.name].fields) == 1 and not self.tuple_of_one(ty)

    def tuple_of_one(self, ty: t.Con) -> bool:
        """True for a record whose payload is a tuple of its only field, an array of any size: arrays of such records
        have no rows, which would have one size."""
        return len(self.datas[ty.name].fields) == 1 and not self.recursive(ty.name) and self.of_any_size(ty)

    def opened(self, ty: t.Con, arg: c.Pattern) -> c.Pattern:
        """The pattern of the payload, from that of a constructor's argument."""
        return c.PTuple(t.Tup((arg.ty,)), (arg,)) if self.tuple_of_one(ty) else arg

    def arity(self, name: str) -> int:
        """The number of sets that a data type takes."""
        if name not in self.arities:
            if name not in self.datas:
                return 0
            self.decorate(self.group(name))
        return self.arities[name]

    def decorate(self, group: tuple[str, ...]) -> None:
        """Number the arrows of a group of declarations: their sets become Slots."""
        own = [Slot(i) for i in range(self.count(group))]
        slots = iter(own)

        def walk(ty: t.Ty) -> t.Ty:
            match ty:
                case t.Fn(arg, _, result):
                    here = next(slots)
                    return arrow(walk(arg), here, walk(result))
                case t.Con(name, args):
                    types = tuple(walk(a) for a in type_arguments_of(self.datas, name, args))
                    if name in group:
                        return t.Con(name, (*types, *own))
                    here = [next(slots) for _ in range(self.arity(name))]
                    return t.Con(name, (*types, *here))
                case t.Var():
                    return ty
                case _:
                    return rebuild(ty, walk, lambda s: s)

        for name in group:
            self.arities[name] = len(own)
        for name in group:
            self.decorated[name] = tuple(None if ty is None else walk(ty) for _, ty in self.datas[name].cases)

    def count(self, group: tuple[str, ...]) -> int:
        total = 0
        todo: list[Any] = [ty for name in group for _, ty in self.datas[name].cases if ty is not None]
        while todo:
            part = todo.pop()
            total += isinstance(part, t.Fn)
            total += self.arity(part.name) if isinstance(part, t.Con) and part.name not in group else 0
            todo += t.children(part)
        return total

    def has_sets(self, ty: t.Ty | t.Size) -> bool:
        """True if a monotype mentions an arrow."""
        found = self.having.get(id(ty))
        if found is None:
            found = self.having[id(ty)] = ty, self.mentions_sets(ty)
        return found[1]

    def mentions_sets(self, ty: t.Ty | t.Size) -> bool:
        match ty:
            case t.Fn():
                return True
            case t.Con(name, args):
                return self.arity(name) > 0 or any(self.has_sets(a) for a in args)
            case t.Tup(items):
                return any(self.has_sets(i) for i in items)
            case t.Arr(elem):
                return self.has_sets(elem)
            case _:
                return False

    def fresh(self, ty: t.Ty, shared: bool = False) -> t.Ty:
        """A monotype with fresh sets."""
        if not self.has_sets(ty):
            return ty
        match ty:
            case t.Fn(arg, _, result):
                return arrow(self.fresh(arg, shared), Set(shared=shared), self.fresh(result, shared))
            case t.Con(name, args):
                sets = [Set(shared=shared) for _ in range(self.arity(name))]
                types = [self.fresh(a_type(a), shared) for a in args]
                return t.Con(name, (*types, *sets))
            case _:
                return rebuild(ty, lambda part: self.fresh(part, shared), lambda s: s)

    def argument(self, ty: t.Ty, tag: int) -> t.Ty:
        """The type of the argument of a constructor that has one.  Otherwise a Bug."""
        found = self.payload(ty, tag)
        if found is None:
            raise Bug(f"constructor {tag} of {ty} has no argument")
        return found

    def payload(self, ty: t.Ty, tag: int) -> t.Ty | None:
        """The type of a constructor's argument; None for a nullary one."""
        key = (ty, tag)
        if key not in self.payloads:
            self.payloads[key] = self.instantiate(ty, tag)
        return self.payloads[key]

    def types_of(self, ty: t.Con) -> dict[str, t.Ty]:
        """The arguments of a data type that are types, by the names of its parameters."""
        names = [p.name for p in self.datas[ty.name].params if p.sort == "type"]
        return dict(zip(names, map(a_type, ty.args), strict=False))

    def instantiate(self, ty: t.Ty, tag: int) -> t.Ty | None:
        """The type of a constructor's argument, in a data type with its sets."""
        if not isinstance(ty, t.Con):
            raise Bug(f"not a data type: {ty}")
        self.arity(ty.name)
        types = self.types_of(ty)
        sets = ty.args[len(types) :]

        def put(part: t.Ty) -> t.Ty:
            match part:
                case t.Var(name):
                    return types[name]
                case t.Arr(elem):
                    return t.Arr(put(elem), ANY)
                case _:
                    return rebuild(part, put, lambda slot: sets[slot.index])

        argument = self.decorated[ty.name][tag]
        if argument is None:
            return None
        return t.Tup((put(argument),)) if self.tuple_of_one(ty) else put(argument)
