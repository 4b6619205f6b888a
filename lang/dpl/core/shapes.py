"""The sizes of the types that type variables stand for, and which definitions need them.

    let map (f : 'a -> 'b) (xs : 'a[n]) : 'b[n] = sized [for x in xs -> f x]

The value of an array without rows does not show how long its rows would be; only its type does.  If the row type is a
variable, the use of the definition supplies the sizes: `map[float[m], float[2]]` comes with the ints m and 2
(`Var.sizes`), and the engines pass on those that the definition needs, here 2.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.walk import subterms

Needs = tuple[tuple[t.Var, ...], frozenset[str]]  # a definition's parameters; the names of those whose sizes it needs
NOTHING: Needs = (), frozenset()


def innermost(ty: t.Ty) -> t.Ty:
    """The element type of an array of any rank; any other type is its own."""
    while isinstance(ty, t.Arr):
        ty = ty.elem
    return ty


def rank(ty: t.Ty) -> int:
    """The number of dimensions: 0 for what is no array."""
    n = 0
    while isinstance(ty, t.Arr):
        ty, n = ty.elem, n + 1
    return n


def variables(params: tuple[t.Var, ...]) -> frozenset[str]:
    return frozenset([p.name for p in params if p.sort == "type"])


def needed(params: tuple[t.Var, ...], bodies: list[c.Term], others: Callable[[str], Needs | None]) -> frozenset[str]:
    """The type parameters whose sizes a group of definitions needs.  `others` returns the Needs of a global."""
    own = variables(params)
    return frozenset(_mentioned(bodies, others) & own) if own else frozenset()


class GlobalNeeds:
    """The Needs of global definitions, each recursive group computed once.  `definition` finds a definition by name."""

    def __init__(self, definition: Callable[[str], c.Def | None]) -> None:
        self.definition = definition
        self.known: dict[str, Needs] = {}

    def of(self, name: str) -> Needs:
        """The sizes that a definition needs, with those that the definitions it calls need (a fixpoint)."""
        if name not in self.known:
            definition = self.definition(name)
            if definition is None or not definition.params:
                return NOTHING
            self._compute(definition)
        return self.known[name]

    def _compute(self, definition: c.Def) -> None:
        """The members of a group have the same parameters, so they need the same sizes."""
        group = definition.group or (definition.name,)
        bodies = [one.body for one in map(self.definition, group) if one is not None]
        found, before = frozenset[str](), None
        while found != before:  # calls inside the group may hand on parameters in another order
            self.known.update(dict.fromkeys(group, (definition.params, found)))
            before, found = found, needed(definition.params, bodies, self.of)


def _mentioned(bodies: list[c.Term], others: Callable[[str], Needs | None]) -> set[str]:
    """The type variables whose sizes are needed somewhere inside."""
    found: set[str] = set()
    uses: list[c.Var] = []
    local: dict[str, Needs] = {}  # definitions inside
    nested: list[tuple[tuple[str, ...], tuple[t.Var, ...], list[c.Term]]] = []
    todo = list(bodies)
    while todo:
        e = todo.pop()
        match e:
            case c.Prim(ty=ty, op="sized"):
                found |= _variable(ty)
            case c.Var(inst=inst) if inst:
                uses.append(e)
            case c.Let(name=name, params=params, rhs=rhs) if params:
                nested.append(((name,), params, [rhs]))
            case c.LetRec(params=params, bindings=bindings) if params:
                nested.append((tuple([name for name, _ in bindings]), params, [rhs for _, rhs in bindings]))
            case _:
                pass
        todo += subterms(e)
    grown = True
    while grown:
        before = len(found), sum(len(names) for _, names in local.values())
        for names, params, _ in nested:
            local.update(dict.fromkeys(names, (params, frozenset(found & variables(params)))))
        for use in uses:
            known = local.get(use.name) or others(use.name)
            if known is not None and known[1]:
                for p, ty in zip(known[0], use.inst, strict=True):
                    if p.name in known[1] and p.sort == "type":
                        found |= _variable(ty)
        grown = before != (len(found), sum(len(names) for _, names in local.values()))
    return found


def _variable(ty) -> set[str]:
    inner = innermost(ty)
    return {inner.name} if isinstance(inner, t.Var) else set()
