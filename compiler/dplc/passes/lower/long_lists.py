"""Long lists of numbers are made by a loop from arrays, which are constants where the numbers are.

    [4; 7; ...]                 a = array(4, 7, ...)
                                for i < n state (rest = []) { x = index(a, n - 1 - i); yield x :: rest }

Constant arrays are in the data segment, as a constant pool is.  Cell by cell, a list of 100,000 numbers would be
200,000 bindings in every stage.  The items are computed first, in order, and then what follows them, as cells would
have it; the loop reads within the array.
"""

from __future__ import annotations

from dpl.core import term as c
from dpl.core import ty as t

from dplc.flat import term as f
from dplc.flat.values import Bundle, Value, block_of, leaves, like
from dplc.narrow import expect_type
from dplc.passes.lower.body import Body

SHORTEST = 32  # a loop and its arrays are more text than a few cells


def long_list(body: Body, e: c.Con) -> Value | None:
    """A list of many numbers, or tuples of numbers; None if it is another value.  Numbers are looked for first: the
    cells of other lists ask one by one."""
    ty = expect_type(t.Con, body.type_of(e))
    if ty.name != "list" or not isinstance(e.arg, c.Tuple) or not is_numeric(body.flat(e.arg.items[0])):
        return None
    heads, after = spine(e)
    if len(heads) < SHORTEST:
        return None
    first, *others = [body.term(head) for head in heads]
    columns = zip(leaves(first), *map(leaves, others), strict=True)
    arrays = [body.b.op("array", column, e.span) for column in columns]
    rest = body.atom(after)
    index, state = body.b.var("i", f.I64), body.b.var("rest", rest.ty)
    with body.b.inside() as binds:
        place = body.b.op("sub", (f.Const(len(heads) - 1, f.I64), index))
        head = like(first, iter([body.b.op("index", (array, place)) for array in arrays]))
        cell = body.b.atom(body.construct(ty, 1, Bundle((head, state))))
    count = f.Const(len(heads), f.I64)
    return body.b.one(f.For(index, count, (state,), (rest,), block_of(binds, (cell,))), rest.ty, "list")


def spine(e: c.Term) -> tuple[list[c.Term], c.Term]:
    """The items of the cells that a term makes, and what follows them."""
    heads = []
    while isinstance(e, c.Con) and isinstance(e.arg, c.Tuple):
        head, e = e.arg.items
        heads.append(head)
    return heads, e


def is_numeric(ty: f.Type) -> bool:
    """True for a number, and for a tuple of numbers."""
    if isinstance(ty, f.Tup):
        return bool(ty.items) and all(map(is_numeric, ty.items))
    return isinstance(ty, f.Num)
