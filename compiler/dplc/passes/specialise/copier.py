"""The basis of specialisation: the types of a copy, and the scope in which a copy is made.

`Copier` finds definitions and substitutes types.  The cases of copying a term are in `specialise/mono.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.shapes import GlobalNeeds
from dpl.diagnostics import Bug
from dpl.node import field, node, record
from dpl.source import NOWHERE

from dplc.narrow import a_type
from dplc.passes import NeedsInterpreter
from dplc.passes.specialise.lengths import Lengths
from dplc.passes.specialise.program import ANY, Mono, parts_of, takes_functions, type_arguments_of
from dplc.passes.specialise.regular import Regularity

MOST_PARTS = 5_000  # in one type
MOST_USES = 8  # uses with their own copy, of a local function that takes functions


class Captures(Exception):
    """The program captures contexts, so copies differ by effects too."""


@node
class Operator:
    """The definition of a function, and the meanings of its names.  Two operators with one key are equal."""

    key: Hashable
    text: c.Term = field(compare=False)
    scope: Scope = field(compare=False)
    depth: int = field(compare=False)


Known = tuple[tuple[str, Operator], ...]  # parameters whose values are known, by name
Types = tuple[t.Ty | t.Effect, ...]  # the type arguments of a definition


@record
class Local:
    """A local definition that is copied, and the instances requested so far: (types, number of the use) -> suffix of
    their names.  The number is 0, except for functions that take functions.  Each use of such a function has a copy of
    its own, up to a limit, so that the arguments of different uses do not mix."""

    params: tuple[t.Var, ...]
    span: object
    function: c.Term | None
    needs: frozenset[str]  # the type variables whose sizes must be passed
    instances: dict[tuple[Types, int, Known], str] = field(default_factory=dict)
    given: dict[str, list[tuple[c.Term, ...]]] = field(default_factory=dict)  # the sizes at its uses, by suffix

    def instance(self, types: Types, ty: t.Ty, known: Known) -> str:
        number = min(len(self.instances), MOST_USES) if self.function is not None and takes_functions(ty) else 0
        return self.instances.setdefault((types, number, known), f"@{len(self.instances)}")


@record
class Scope:
    """The meanings of type and effect variables, and the generalised local definitions in scope."""

    types: dict[str, t.Ty | t.Effect]
    locals: dict[str, Local] = field(default_factory=dict)
    memo: dict[int, t.Ty] = field(default_factory=dict)
    known: dict[str, Operator] = field(default_factory=dict)
    sizes: dict[str, tuple[c.Term, ...]] = field(default_factory=dict)  # sizes passed as arguments, by type variable
    data: dict[str, tuple[tuple[t.Var, ...], c.Term]] = field(default_factory=dict)  # local data that holds operators
    lengths: Lengths = field(default_factory=dict)  # what the sizes in types are


class Copier(ABC):
    """The state that the copies of one program share."""

    def __init__(self, program: c.Program, control: bool = False) -> None:
        self.program = program
        self.sorts = ("type", "effect") if control else ("type",)  # the sorts of the variables by which copies differ
        self.defs = {item.name: item for item in program.items if isinstance(item, c.Def)}
        self.out = Mono(datas={"list": c.LIST, **program.datas}, control=control)
        self.interned: dict[tuple, t.Ty] = {}  # by their `shallow` keys
        self.parts: dict[int, int] = {}  # the number of parts of each interned type, by identity
        self.needs = GlobalNeeds(self.definition)  # the sizes that generalised definitions need
        self.numbers = 0
        self.regularity = Regularity(self.out.datas)
        self.place = NOWHERE  # the span of the last term copied

    def fresh(self) -> int:
        """A number that no other name has."""
        self.numbers += 1
        return self.numbers

    @abstractmethod
    def term(self, e: c.Term, scope: Scope) -> c.Term:
        """The copy of a term."""

    def definition(self, name: str) -> c.Def | None:
        """The definition of this name, of the program or of the library."""
        found = self.defs.get(name)
        if found is None and name in self.program.library:
            found = self.program.library[name]
        return found

    # ---- types ------------------------------------------------------------------------------------------------------

    def names(self, params: Iterable[t.Var]) -> list[str]:
        return [p.name for p in params if p.sort in self.sorts]

    def arguments(self, params: Iterable[t.Var], inst: tuple, scope: Scope) -> Types:
        found = [(p.sort, i) for p, i in zip(params, inst, strict=True) if p.sort in self.sorts]
        return tuple([self.effect(i, scope) if sort == "effect" else self.ty(i, scope) for sort, i in found])

    def undetermined(self, params: Iterable[t.Var]) -> Types:
        """The type arguments of a definition that is not used."""
        return tuple([t.PURE if p.sort == "effect" else t.UNIT for p in params if p.sort in self.sorts])

    def effect(self, effect: t.Effect, scope: Scope) -> t.Effect:
        match effect:
            case t.Var(name):
                known = scope.types.get(name, t.PURE)
                return known if isinstance(known, t.Ctl) else t.PURE
            case t.Ctl(answer):
                self.capturing()
                return t.Ctl(self.ty(answer, scope))
            case _:
                return t.PURE

    def capturing(self) -> None:
        if not self.out.control:
            raise Captures

    def ty(self, ty: t.Ty, scope: Scope) -> t.Ty:
        """The type in a scope: variables are replaced, sizes are erased."""
        found = scope.memo.get(id(ty))
        if found is None:
            found = scope.memo[id(ty)] = self.erase(ty, scope)
        return found

    def erase(self, ty: t.Ty, scope: Scope) -> t.Ty:
        match ty:
            case t.Var(name):
                return a_type(scope.types.get(name, t.UNIT))
            case t.Con(name, args):
                if name in self.out.datas and (fault := self.regularity.fault(name)):
                    raise NeedsInterpreter(f"a value of the type `{plain(name)}` {fault}", self.place)
                new = t.Con(name, tuple(self.ty(a, scope) for a in type_arguments_of(self.out.datas, name, args)))
            case t.Tup(items):
                new = t.Tup(tuple(self.ty(i, scope) for i in items))
            case t.Lift(name, items):
                return t.lifted(name, [self.ty(i, scope) for i in items])
            case t.Arr(elem, _):
                new = t.Arr(self.ty(elem, scope), ANY)
            case t.Fn(arg, effect, result):
                new = t.Fn(self.ty(arg, scope), self.effect(effect, scope), self.ty(result, scope))
            case _:
                raise Bug(f"not a type: {ty}")
        return self.intern(new)

    def intern(self, new: t.Ty) -> t.Ty:
        """The one object for a type whose parts are interned.  Raises NeedsInterpreter for a type of too many parts:
        types that share parts can be large without limit."""
        size = 1 + sum(self.parts.get(id(part), 1) for part in parts_of(new))
        if size > MOST_PARTS:
            raise NeedsInterpreter("a type of very many parts", self.place)
        one = self.interned.setdefault(shallow(new), new)
        self.parts[id(one)] = size
        return one

    def used_datas(self) -> dict[str, c.Data]:
        """The declarations that the types of the copies mention, those that they mention, and so on."""
        found: set[str] = set()
        todo = [ty.name for ty in self.interned.values() if isinstance(ty, t.Con)]
        while todo:
            name = todo.pop()
            if name in self.out.datas and name not in found:
                found.add(name)
                todo += self.regularity.mentioned(name)
        return {name: declared for name, declared in self.out.datas.items() if name in found}


def shallow(ty: t.Ty) -> tuple:
    """A key for a type whose parts are interned, found without looking into them."""
    answer = (ty.eff.answer,) if isinstance(ty, t.Fn) and isinstance(ty.eff, t.Ctl) else ()
    head = ty.name if isinstance(ty, t.Con) else type(ty)
    return head, *[id(part) if parts_of(part) else part for part in (*parts_of(ty), *answer)]


def plain(name: str) -> str:
    """A global name as written in the user's own file."""
    return name.removeprefix("main.")
