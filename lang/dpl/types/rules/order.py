"""Helps for arguments in the wrong order.  An order is told only if the function takes the arguments in it.

split "," text   ->   the other way round:  split text ","
zip xs 3         ->   no order of these fits
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

from dpl.core import term, ty
from dpl.syntax import tree
from dpl.syntax.formatter.shape import spine
from dpl.types.messages.parts import as_argument
from dpl.types.solve.constraints import NUMERIC
from dpl.types.solve.meta import Meta, Type, dimensions, prune
from dpl.types.solve.scheme import Scheme, rebuild
from dpl.types.solve.unify import Clash
from dpl.types.state.context import Context
from dpl.types.state.env import Primitive, Value

NUMBERS = (*ty.INTS, *ty.FLOATS)
MOST = 4  # arguments of which all orders are tried
NUMBER = "number"  # a literal: it has any numeric type

Takes = Callable[[Sequence[int]], bool]  # whether a function takes its arguments in an order


def exchanged(name: str, given: list[str], wanted: list[str], texts: list[str], i: int, takes: Takes) -> str:
    """A help if argument `i` and another one stand in each other's place."""
    for j in range(min(len(given), len(wanted))):
        free = j < i and wanted[j] == given[j] == wanted[i]  # of any type; what was given decided it
        if fits(given[j], wanted[i]) and (free or fits(given[i], wanted[j])) and not fits(given[i], wanted[i]):
            if found := the_other_way_round(name, texts, i, j, takes):
                return found
    return ""


def by_ranks(
    name: str, given: Sequence[Type | None], wanted: Sequence[Type], texts: list[str], i: int, takes: Takes
) -> str:
    """A help for `Linalg.solve b a`, a vector where a matrix is wanted and the reverse: the ranks are exchanged."""
    for j in range(min(len(given), len(wanted))):
        here, there = (rank(given[i]), rank(wanted[i])), (rank(given[j]), rank(wanted[j]))
        if here == there[::-1] and here[0] != here[1] and 0 not in here:
            if found := the_other_way_round(name, texts, i, j, takes):
                return found
    return ""


def the_other_way_round(name: str, texts: list[str], i: int, j: int, takes: Takes) -> str:
    """A help that exchanges two arguments; if those between them fit in their old order after it, only one is moved."""
    order = [*range(len(texts))]
    order[i], order[j] = j, i
    if not takes(order):
        return ""
    moved = [*range(len(texts))]
    moved.insert(min(i, j), moved.pop(max(i, j)))
    keeps = moved != order and takes(moved)
    how, best = ("in this order", moved) if keeps else ("the other way round", order)
    return f"{how}:  {name} {' '.join(texts[k] for k in best)}"


def rank(t: Type | None) -> int:
    """How many dimensions an array has; 0 if it is none, or unknown."""
    return len(dimensions(t)[0]) if t else 0


def in_order(name: str, given: list[str], wanted: list[str], texts: list[str], i: int, takes: Takes) -> str:
    """A help if there is just one order of argument `i` and those after it that can fit."""
    if not given[i] or fits(given[i], wanted[i]) or len(given) != len(wanted) or len(given) - i > MOST:
        return ""

    def may_fit(order: Sequence[int]) -> bool:
        kinds = all(not given[k] or not wanted[j] or fits(given[k], wanted[j]) for j, k in enumerate(order, i))
        return kinds and takes((*range(i), *order))

    orders = [order for order in permutations(range(i, len(given))) if may_fit(order)]
    others = " ".join(texts[k] for k in (*range(i), *orders[0])) if len(orders) == 1 and i < orders[0][0] else ""
    return f"in this order:  {name} {others}" if others else ""


def takes_in_order(cx: Context, name: str, given: Sequence[Type | None], order: Sequence[int]) -> bool:
    """Whether a function takes arguments of these types in this order.  Copies of the types are unified, so nothing is
    learnt of them; sizes that are no constants, and relations of ranks, are not compared."""
    entry = cx.find(name)
    if not isinstance(entry, Value | Primitive):
        return True
    kept = list(cx.solver.assumed), list(cx.solver.claimed), list(cx.solver.undecided)
    memo: dict[object, Type] = {}
    try:
        for wanted, k in zip(types_wanted(copied(cx, entry.scheme, entry.scheme.ty, {})), order):
            found = given[k]
            if found is not None:
                cx.solver.unify(copied(cx, None, found, memo), wanted)
    except Clash:
        return False
    finally:
        cx.solver.assumed[:], cx.solver.claimed[:], cx.solver.undecided[:] = kept
    return True


def one_after_the_other(cx: Context, name: str, parts: Sequence[tree.Expr | term.Term]) -> str:
    """A help for `grad (f, x)`, if the function takes the parts as arguments."""
    if not parts or not takes_in_order(cx, name, [type_seen(cx, part) for part in parts], range(len(parts))):
        return ""
    return f"arguments stand one after the other:  {name} {' '.join(as_argument(part.span.text) for part in parts)}"


def copied(cx: Context, scheme: Scheme | None, t: Any, memo: dict[object, Type]) -> Any:
    """A type with unknowns of its own, for those of the type and for the parameters of its scheme."""
    found: Any = prune(t)
    match found:
        case Meta():
            key, classes = found, found.classes
        case ty.Var(key) | ty.Lift(key):
            classes = scheme.classes.get(key, frozenset()) if scheme else frozenset()
        case ty.Size(_, terms):
            return cx.solver.size() if terms else found
        case ty.Fn(arg, _, result):
            return ty.Fn(copied(cx, scheme, arg, memo), cx.solver.effect(), copied(cx, scheme, result, memo))
        case _:
            return rebuild(found, lambda part: copied(cx, scheme, part, memo))
    if key not in memo:
        memo[key] = cx.solver.fresh(*classes)
    return memo[key]


def kind_given(cx: Context, e: tree.Expr | term.Term) -> str:
    """What an argument is outermost, as far as it can be seen without inference."""
    return kind_of(type_seen(cx, e))


def type_seen(cx: Context, e: tree.Expr | term.Term) -> Type:
    """The type of an argument, as far as it can be seen without inference."""
    match e:
        case tree.Lit(_, value):
            known = ty.STRING if isinstance(value, str) else ty.BOOL if isinstance(value, bool) else None
            return known or cx.solver.fresh("num")
        case tree.Fun():
            return ty.Fn(cx.solver.fresh(), cx.solver.effect(), cx.solver.fresh())
        case tree.ArrayLit():
            return ty.Arr(type_seen(cx, e.items[0]) if e.items else cx.solver.fresh(), cx.solver.size())
        case tree.ListLit():
            return ty.Con("list", (type_seen(cx, e.items[0]) if e.items else cx.solver.fresh(),))
        case tree.Tuple():
            return ty.Tup(tuple([type_seen(cx, item) for item in e.items]))
        case tree.Var(_, name):
            return result_of(cx, name, 0) or cx.solver.fresh()
        case tree.App():
            head, args = spine(e)
            known = result_of(cx, head.name, len(args)) if isinstance(head, tree.Var) else None
            return known or cx.solver.fresh()
        case term.Node():
            return e.ty
        case _:
            return cx.solver.fresh()


def fits(given: str, wanted: str) -> bool:
    """True if an argument of this kind can stand where that kind is wanted.  Some number fits every kind of numbers."""
    return bool(given) and (given == wanted or (given == NUMBER and wanted in NUMBERS))


def kind_of(t: Type | None) -> str:
    """What a type is outermost; empty if it may be several things."""
    match prune(t) if t else None:
        case ty.Con(name, _):
            return name
        case ty.Fn() | ty.Arr() | ty.Tup() as found:
            return type(found).__name__
        case Meta() as unknown if unknown.classes & NUMERIC:
            return NUMBER
        case _:
            return ""


def kinds_wanted(t: Type) -> list[str]:
    """What a function takes, argument by argument."""
    return [kind_of(arg) for arg in types_wanted(t)]


def types_wanted(t: Type) -> list[Type]:
    """The types of a function's parameters, in order."""
    t, types = prune(t), []
    while type(t) is ty.Fn:
        types.append(t.arg)
        t = prune(t.result)
    return types


def result_of(cx: Context, name: str, given: int) -> Type | None:
    """The type of a name that is applied to so many arguments, if it is known."""
    entry = cx.find(name)
    found = prune(entry.scheme.ty) if isinstance(entry, Primitive | Value) else None
    for _ in range(given):
        found = prune(found.result) if type(found) is ty.Fn else None
    return found
