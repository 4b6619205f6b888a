"""The results of `mono` and `lambda_sets` -> text, for compiler dumps.

fun 3 compose.g [f : i64 -{2 half}-> f64] : (i64 -{1 succ}-> i64) -{3 compose}-> ...
"""

from __future__ import annotations

from collections.abc import Iterator

from dpl.core import ty as t
from dpl.core.show import show_data, show_term
from dpl.diagnostics import Bug

from dplc.passes.closures.lambda_sets import Solved
from dplc.passes.closures.set_types import Lambda, Member, Set, arrow, is_set, root
from dplc.passes.specialise.program import Mono


def show_mono(mono: Mono) -> str:
    parts = [show_data(d) for d in mono.datas.values()]
    parts += [
        f"{f'def {name} =' if name else 'do'}\n  {show_term(body, 1)}"
        for name, body in (*mono.functions.items(), *mono.items)
    ]
    return "\n".join(parts) + "\n"


def show_sets(solved: Solved) -> str:
    """The functions with their captures, and their arrows with their sets."""
    return "\n".join(show_function(made) for made in solved.lambdas.values()) + "\n"


def show_function(made: Lambda) -> str:
    captures = ", ".join(f"{name} : {show_type(ty)}" for name, ty in made.captures.items())
    known = Set({made: made.captures.values()})
    return f"fun {show_member(made)} [{captures}] : {show_type(arrow(made.arg, known, made.result))}"


def show_member(member: Member) -> str:
    return f"{member.id} {member.label or 'fun'}" if isinstance(member, Lambda) else f"{member.id} pullback"


def show_type(ty: t.Ty) -> str:
    match ty:
        case t.Fn(arg, functions, result):
            left = f"({show_type(arg)})" if isinstance(arg, t.Fn) else show_type(arg)
            return f"{left} -{show_set(functions)}-> {show_type(result)}"
        case t.Con(name, args):
            return " ".join([*map(show_argument, args), name])
        case t.Tup(items):
            return f"({', '.join(map(show_type, items))})"
        case t.Arr(elem):
            return f"{show_type(elem)}[]"
        case t.Var(name):
            return name
        case t.Lift() | t.Hole():
            raise Bug(f"a type that inference left open: {ty}")


def show_argument(part) -> str:
    return show_set(part) if is_set(part) else f"({show_type(part)})"


def show_set(functions) -> str:
    return "{" + ", ".join(names(functions)) + "}"


def names(functions) -> Iterator[str]:
    """The names of a set's members.  Captures are shown where the functions are listed."""
    return (show_member(m) for m in sorted(root(functions).members, key=lambda m: m.id))
