"""An exported function value -> a flat function for callers outside the program.

    export of f = the closure of f, that captured c

    main() ... keep "export of f" c          when all definitions are evaluated
    export(x, y) = apply (kept "export of f") x y

The closure is stored in a global cell of the program, so the caller does not pass the captures.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpl.core import ty as t
from dpl.source import NOWHERE

from dplc.flat import term as f
from dplc.flat.values import Bundle, Value, ValueBuilder
from dplc.narrow import expect_type
from dplc.passes.lower.body import Body


def export(main: Body, name: str, ty: t.Fn, closure: Value) -> None:
    """Writes the wrapper function.  `main` stores the closure at the point where its value is known."""
    layout = main.up.layout
    captured = layout.flat(ty)
    params: list[f.Type] = []
    result: t.Ty = ty
    while isinstance(result, t.Fn):
        params.append(layout.flat(result.arg))
        result = result.result
    keeps = holds_reference(captured, layout.declared)

    def make(body: Body, *args: Value) -> f.Atom:
        value: Value = body.b.kept(name, captured)
        arrow = ty
        given = [copied(body.b, arg) if keeps else arg for arg in args]
        for arg in given[:-1]:
            value, arrow = body.apply(value, arrow, arg, NOWHERE), expect_type(t.Fn, arrow.result)
        return body.b.atom(body.apply(value, arrow, given[-1], NOWHERE, whole=True))

    main.b.keep(name, closure)
    main.up.program.exports[name] = main.up.function(("export", name), params, make)


def holds_reference(ty: f.Type, datas: Mapping[str, f.DataDecl], inside: tuple[str, ...] = ()) -> bool:
    """True if a function of this type has captured a reference, and so could store its arguments there."""
    match ty:
        case f.Ref():
            return True
        case f.Tup(items):
            return any(holds_reference(item, datas, inside) for item in items)
        case f.Arr(elem, _):
            return holds_reference(elem, datas, inside)
        case f.Data(name) if name not in inside:
            payloads = datas[name].payloads
            return any(p is not None and holds_reference(p, datas, (*inside, name)) for p in payloads)
        case _:
            return False


def copied(b: ValueBuilder, value: Value) -> Value:
    """A copy of a value, in memory that does not belong to the caller."""
    if isinstance(value, Bundle):
        return Bundle(tuple([copied(b, item) for item in value.items])) if value.items else value
    return b.op("copied", (value,)) if isinstance(value.ty, f.Arr | f.Str) else value
