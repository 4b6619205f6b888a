"""Data types that native code cannot represent, because they hold themselves at other types.

    type 'a t = N | C of 'a * ('a * 'a) t          int t holds (int * int) t, which holds ((int * int) * (int * int)) t
    type 'a s = E | S of ('a -> int) * int s       lambda sets keep one set for this arrow, whatever 'a is

Types without end: each parameter of a declaration is a node.  Where a declaration mentions a type, edges lead from its
own parameters to the parameters of that type whose arguments they are in; an edge *grows* if the parameter is only a
part of the argument.  Types grow without end if and only if a growing edge is on a cycle (Kennedy and Pierce 2007).
The argument and result types of a function are not part of its layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpl.core import term as c
from dpl.core import ty as t

from dplc.graph import components
from dplc.passes.specialise.program import parts_of

Parameter = tuple[str, str]  # a declaration, and one of its type variables

ENDLESS = "holds data of ever larger types"
MIXED = "holds functions, and itself at other types"


class Regularity:
    """Finds the fault of a declaration, if any: its own, or that of a declaration that it mentions."""

    def __init__(self, datas: Mapping[str, c.Data]) -> None:
        self.datas = datas
        self.faults: dict[str, str] = {}

    def fault(self, name: str) -> str:
        """Why a data type, or one that it mentions, cannot be represented; "" if it can."""
        if name not in self.faults:
            for group in components([name], self.mentioned):
                others = [other for member in group for other in self.mentioned(member) if other not in group]
                inherited = next((self.faults[other] for other in others if self.faults[other]), "")
                own = ENDLESS if self.grows(group) else MIXED if self.mixes(group) else ""
                self.faults.update(dict.fromkeys(group, own or inherited))
        return self.faults[name]

    def mentioned(self, name: str) -> list[str]:
        return list(dict.fromkeys(ty.name for ty in self.declared(name)))

    def declared(self, name: str, inside: bool = True) -> Iterator[t.Con]:
        """The declared types that a declaration mentions; with `inside`, also those inside arrows."""
        return (ty for ty in self.types(name, inside) if isinstance(ty, t.Con) and ty.name in self.datas)

    def types(self, name: str, inside: bool = True) -> Iterator[object]:
        """The types in a declaration, and their parts.  With `inside`, also the parts of arrows."""
        todo: list[object] = [ty for _, ty in self.datas[name].cases]
        while todo:
            yield (ty := todo.pop())
            if inside or not isinstance(ty, t.Fn):
                todo += parts(ty)

    def grows(self, group: list[str]) -> bool:
        """True if types of these declarations, which mention each other, contain types without end."""
        edges: dict[Parameter, list[Parameter]] = {}
        growing: list[tuple[Parameter, Parameter]] = []
        for name in group:
            for held in self.declared(name, inside=False):
                for param, arg in zip(self.datas[held.name].params, held.args, strict=True):
                    for variable in variables(arg):
                        edge = (name, variable), (held.name, param.name)
                        edges.setdefault(edge[0], []).append(edge[1])
                        if not isinstance(arg, t.Var):
                            growing.append(edge)
        cycles = components(edges, lambda node: edges.get(node, ()))
        number = {node: i for i, cycle in enumerate(cycles) for node in cycle}
        return any(number[start] == number[end] for start, end in growing)

    def mixes(self, group: list[str]) -> bool:
        """True if the declarations have an arrow that mentions their parameters, and mention each other at other
        types."""
        arrows = (ty for name in group for ty in self.types(name) if isinstance(ty, t.Fn))
        return any(next(variables(ty), None) for ty in arrows) and not self.is_uniform(group)

    def is_uniform(self, group: list[str]) -> bool:
        """True if the declarations mention each other at one list of types only, when the first is given its
        variables."""
        known = {group[0]: tuple(self.parameters(group[0], self.datas[group[0]].params))}
        todo = [group[0]]
        while todo:
            name = todo.pop()
            meaning = dict(zip(self.parameters(name, self.datas[name].params), known[name], strict=True))
            for held in self.declared(name):
                if held.name in group:
                    given = tuple(meaning.get(ty) for ty in self.parameters(held.name, held.args))
                    if held.name not in known:
                        todo.append(held.name)
                    if None in given or known.setdefault(held.name, given) != given:
                        return False
        return True

    def parameters(self, name: str, args: tuple) -> list:
        """The type arguments.  Sizes are erased."""
        return [arg for param, arg in zip(self.datas[name].params, args, strict=True) if param.sort == "type"]


def parts(ty: object) -> tuple:
    return parts_of(ty) if isinstance(ty, t.Con | t.Tup | t.Arr | t.Fn) else ()


def variables(ty: object) -> Iterator[str]:
    todo = [ty]
    while todo:
        match todo.pop():
            case t.Var(name, "type"):
                yield name
            case ty:
                todo += parts(ty)
