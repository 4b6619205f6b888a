"""Helps for recursive functions that call themselves at other sizes, or whose results were taken to have too few
dimensions.

    let rec go n = if n = 0 then [[1.0, 2.0], [3.0, 4.0]] else go (n - 1) + [5.0, 6.0]

Inside the definition, the result of `go` is not known.  Beside an array, it is taken to have no more dimensions than
that array (`Lift` in `constraints.py`).
"""

from __future__ import annotations

import re

from dpl.core import ty
from dpl.diagnostics import DplError
from dpl.node import replace
from dpl.regex import regex
from dpl.types.messages.parts import Why, printer
from dpl.types.solve import sizes
from dpl.types.solve.meta import Meta, Type, dimensions, prune
from dpl.types.solve.unify import Clash

NAME = regex(r"[a-z_][\w']*")


def guessed(cx) -> str:
    """The recursive function in scope whose unknown result must fit the array beside it; "" if there is none."""
    for constraint in cx.pending:
        if constraint.name == "fits" and type(part := prune(constraint.types[0])) is Meta:
            for name in NAME.findall(constraint.span.text):
                for entry in cx.locals.get(name, ())[-1:]:
                    if getattr(entry, "group", None) is not None and outcome(entry.scheme.ty) is part:
                        return name
    return ""


def outcome(t: Type) -> Type:
    """The type of a function's result when it has all its arguments."""
    t = prune(t)
    while type(t) is ty.Fn:
        t = prune(t.result)
    return t


def clash_of_ranks(clash: BaseException | None) -> bool:
    if not isinstance(clash, Clash):
        return False
    if clash.kind == "class":
        return clash.right == "scalar"
    return clash.kind == "type" and len(dimensions(clash.left)[0]) != len(dimensions(clash.right)[0])


def at_other_sizes(cx, clash: Clash, why: Why | None, wanted: str) -> tuple[str, ...]:
    """The help for a recursive call at another size, where the size of the parameter is inferred."""
    name = why.span.text if why is not None and why.span is not None else ""
    inferred = any(n[0] == "!" for n in sizes.names(cx.solver.sizes.norm(clash.right)))
    if why is None or not inferred or getattr(cx.find(name), "group", None) is None:
        return ()
    annotated = f"({parameter(name, why)} : {wanted})"
    return (f"to call `{name}` at other sizes inside its definition, annotate its parameter:  {annotated}",)


def parameter(name: str, why: Why) -> str:
    """The parameter of the function `name` that gets the argument that `why` tells of; "..." if it has no name."""
    number = re.match(r"argument (\d+) ", why.what)
    definition = rf"\b(?:rec|and)\s+{re.escape(name)}\s((?:\s*{NAME.pattern})*)"
    found = re.search(definition, why.span.source.text) if why.span else None
    names = found[1].split() if found else []
    return names[int(number[1]) - 1] if number and len(names) >= int(number[1]) else "..."


def with_helps(cx, error: DplError, clash: BaseException | None, name: str, *results: Type) -> DplError:
    """The error of a clash, with helps if its cause may be the rank at which the result of `name` was taken.

    The result may be the one of `results` of highest rank, if that has several dimensions."""
    if not (name and error.diagnostics and clash_of_ranks(clash)):
        return error
    first, *rest = error.diagnostics
    sizes, inner = max((dimensions(t) for t in results), key=lambda found: len(found[0]))
    p = printer(cx)
    scalar = p.type(inner) if type(inner) is ty.Con else "float"
    shown = f"{scalar}[{', '.join(map(p.size, sizes))}]" if len(sizes) > 1 else "float[?, ?]"
    helps = (
        f"inside its definition, the result of `{name}` is taken to have no more dimensions than the array beside it",
        f"if it has more, annotate it:  let rec {name} ... : {shown} = ...",
    )
    return DplError(replace(first, helps=helps), *rest)
