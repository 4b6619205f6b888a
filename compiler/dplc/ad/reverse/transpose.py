"""The transpose rules of bulk operations (Radul et al. 2023): the contributions of a result's cotangent to those of
the operands.

    y = index a i            ca = acc_index ca cy i       in place
    y = update a v i         cv = index cy i;  ca = update cy 0 i
    y = concat a b           ca = slice cy 0 n;  cb = slice cy n (n + m)
    y = matmul a b           ca = matmul_acc ca cy b';  cb = matmul_acc cb a' cy
    y = fill n x             cx = sum cy               y = sum a     ca = fill n cy

Cotangents that come here are not null; floats may be symbolic zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.node import replace

from dplc.ad.reverse.cotangents import Scope
from dplc.ad.reverse.covered import Filled
from dplc.ad.reverse.filled import fill
from dplc.ad.reverse.tape import Reverse
from dplc.ad.rules import products
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, ZERO_ELEMENTS, Part, together
from dplc.ad.tangents.types import zero
from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.types import rank_of

Transpose = Callable[[Reverse, Scope, f.Op, f.Var, Part], None]
"""Spreads the cotangent (the last operand) of the result of an operation to its operands."""


def transpose(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    """Adds the contributions of `y`'s cotangent to the operands; none if the operation has no rule."""
    rule = TRANSPOSES.get(op.op)
    if rule is not None:
        rule(r, scope, op, y, ct)


def to_first(write: Callable[[Reverse, Builder, f.Op, f.Var, f.Atom], f.Atom]) -> Transpose:
    """A rule for the first operand, if it is active: `write` makes its contribution from the whole cotangent."""

    def rule(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
        if wanted(r, scope, op.args[0]):
            give(r, scope, op.args[0], ct, write(r, scope.b, op, y, ct.atom))

    return rule


def to_all(*operands: int) -> Transpose:
    """A rule that adds the whole cotangent to each of these operands."""

    def rule(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
        for i in operands:
            r.add(scope, op.args[i], [ct])

    return rule


def cast(r: Reverse, b: Builder, op: f.Op, y: f.Var, c: f.Atom) -> f.Atom:
    return b.op("cast", (c,), to=scalar_name(op.args[0].ty), span=op.span)


def sum_to(r: Reverse, b: Builder, op: f.Op, y: f.Var, c: f.Atom) -> f.Atom:
    for k in reversed(range(rank_of(op.args[0].ty) - rank_of(y.ty))):
        c = b.op("fill", (r.dim(op.args[0], k), c), unchecked=True)
    return c


def update(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    array, element, *at = op.args
    if wanted(r, scope, element):
        take(r, scope, element, ct, *at)
    if wanted(r, scope, array):
        cleared = scope.b.op("update", (ct.atom, nothing(r, scope.b, element), *at), unchecked=True)
        scope.add(r.nodes(array)[0], Part(cleared, ZERO_ELEMENTS))


def array(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    for i, x in enumerate(op.args):
        if wanted(r, scope, x):
            read(r, scope, x, ct, integer(i))


def concat(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    b, (first, second) = scope.b, op.args
    for x, before in ((first, None), (second, first)):
        if wanted(r, scope, x):
            start = r.dim(before, 0) if before is not None else integer(0)
            end = b.op("add", (start, r.dim(x, 0)))
            give(r, scope, x, ct, b.op("slice", (ct.atom, start, end), unchecked=True))


def dot(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    for i, x in enumerate(op.args):
        if wanted(r, scope, x):
            give(r, scope, x, ct, products.dot_cotangent(scope.b, op, i, ct))


def matmul(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    for i in (0, 1):
        if wanted(r, scope, op.args[-2:][i]):
            product(r, scope, op, i, ct)


def matmul_acc(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    r.add(scope, op.args[0], [ct])
    matmul(r, scope, op, y, ct)


def convolution(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    for i, x in enumerate(op.args[:2]):
        if wanted(r, scope, x):
            first = int(i == 0 or op.op == "conv2d_weights")  # of an image; of weights, rows come first
            sizes = r.dim(x, first), r.dim(x, first + 1)
            give(r, scope, x, ct, products.convolution_cotangent(scope.b, op, i, ct, sizes))


def acc_index(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    r.add(scope, op.args[0], [ct])
    if wanted(r, scope, op.args[1]):
        take(r, scope, op.args[1], ct, *op.args[2 + op.attr("rank") :])


def acc_slice(r: Reverse, scope: Scope, op: f.Op, y: f.Var, ct: Part) -> None:
    r.add(scope, op.args[0], [ct])
    if wanted(r, scope, op.args[1]):
        lo = op.args[2 + op.attr("rank")]
        end = scope.b.op("add", (lo, r.dim(op.args[1], 0)))
        give(r, scope, op.args[1], ct, scope.b.op("slice", (ct.atom, lo, end), unchecked=True))


def through(b: Builder, op: f.Op, views: Sequence[f.Op]) -> f.Op:
    """Reading an element of a row or slice -> reading it from the whole array.  The cotangent is added to that of the
    array directly.  A cotangent of the part would be nearly all zeros."""
    array, *at = op.args
    for view in views:
        array, *first = view.args
        at = [b.op("add", (first[0], at[0])), *at[1:]] if view.op == "slice" else [*first, *at]
    return replace(op, args=(array, *at))


def scalar_name(ty: f.Type) -> str:
    elem = ty.elem if isinstance(ty, f.Arr) else ty
    assert isinstance(elem, f.Num)
    return elem.name


def wanted(r: Reverse, scope: Scope, atom: f.Atom) -> bool:
    return any(node is not None and scope.active(node) for node in r.nodes(atom))


def give(r: Reverse, scope: Scope, atom: f.Atom, ct: Part, c: f.Atom) -> None:
    """Adds `c`, computed from all of `ct`, to the cotangent of an operand of one leaf."""
    for node in r.nodes(atom):
        scope.add(node, Part(c, ct.part_of_sum(c.ty)))


def read(r: Reverse, scope: Scope, atom: f.Atom, ct: Part, *at: f.Atom) -> None:
    """Adds the element of `ct` at some indices to the cotangent of an operand."""
    given(r, scope, atom, ct, scope.b.op("index", (ct.atom, *at), unchecked=True))


def take(r: Reverse, scope: Scope, atom: f.Atom, ct: Part, *at: f.Atom) -> None:
    """Like `read`, but `ct` is updated later: the element is copied, so that `ct` can be updated in place."""
    element = scope.b.op("index", (ct.atom, *at), unchecked=True)
    given(r, scope, atom, ct, scope.b.op("copy", (element,)) if rank_of(element.ty) else element)


def given(r: Reverse, scope: Scope, atom: f.Atom, ct: Part, element: f.Atom) -> None:
    r.add(scope, atom, [Part(leaf, ct.part(leaf.ty)) for leaf in r.tangents.unpack(scope.b, element)])


def nothing(r: Reverse, b: Builder, v: f.Atom) -> f.Atom:
    """Zero in the shape of `v`, as an element of an array."""
    ty = r.tangents.of(v.ty)
    if isinstance(ty, f.Arr):
        return b.op("acc_zeros", (zero(ty), *r.dims(v)))
    return r.tangents.pack(b, v.ty, [None] * len(r.tangents.leaves(v.ty)))


def at_index(r: Reverse, scope: Scope, a: f.Atom, ct: Part, at: tuple[f.Atom, ...]) -> None:
    """Adds to one element, or a sub-array, of the cotangent of `a`."""
    (node,) = r.nodes(a)
    if node is None or not scope.active(node):
        return
    old, leaf = scope.get(node), scope.type(node)
    made = with_added(r, scope.b, scope.current(node), a, ct, at)
    if not (isinstance(leaf, f.Arr) and f.is_float(leaf.elem)):
        scope.set(node, Part(made, ZERO_ELEMENTS))
        return
    zeros = together(MAYBE_ZERO if old is None else old.zeros, MAYBE_ZERO if ct.nullable else ZERO_ELEMENTS)
    scope.set(node, Part(made, zeros))
    if ct.zeros is NO_ZEROS:
        fill(r, scope, Filled(a, at))


def with_added(r: Reverse, b: Builder, old: f.Atom, a: f.Atom, ct: Part, at: Sequence[f.Atom]) -> f.Atom:
    """A cotangent of `a`, to which `ct` is added at some indices."""
    assert isinstance(old.ty, f.Arr)
    if f.is_float(old.ty.elem):
        return b.op("acc_index", (old, ct.atom, *r.dims(a), *at), rank=old.ty.rank)
    array = b.op("acc_zeros", (old, *r.dims(a)))
    if len(at) == old.ty.rank:
        array, before = taken_out(r, b, array, at)
    else:
        before = b.op("index", (array, *at), unchecked=True)
    return b.op("update", (array, r.d.convert.add_values(b, before, ct.atom), *at), unchecked=True)


def taken_out(r: Reverse, b: Builder, array: f.Var, at: Sequence[f.Atom]) -> tuple[f.Var, f.Var]:
    """A cotangent without one of its elements, and that element: it has one owner while it grows."""
    assert isinstance(array.ty, f.Arr)
    elem = array.ty.elem
    before = b.op("index", (array, *at), unchecked=True)
    nothing = r.tangents.pack(b, elem, [None] * len(r.tangents.leaves(elem)))
    return b.op("update", (array, nothing, *at), unchecked=True), before


def in_store(r: Reverse, scope: Scope, store: f.Op, op: f.Op, ct: Part) -> None:
    """Adds to one element, or a part, of an array that is the one leaf of the tuples in another array, as references
    to arrays are.  A cotangent of the array, beside that, would be made for this and added."""
    b, (tuples, *place) = scope.b, store.args
    (node,) = r.nodes(tuples)
    if node is None or not scope.active(node):
        return
    array, before = taken_out(r, b, b.op("acc_zeros", (scope.current(node), *r.dims(tuples))), place)
    (old,) = r.tangents.unpack(b, before)
    total = r.tangents.pack(b, before.ty, [with_added(r, b, old, op.args[0], ct, op.args[1:])])
    scope.set(node, Part(b.op("update", (array, total, *place), unchecked=True), ZERO_ELEMENTS))


def at_slice(r: Reverse, scope: Scope, a: f.Atom, ct: Part, lo: f.Atom) -> None:
    """Adds to some rows of the cotangent of `a`."""
    (node,) = r.nodes(a)
    if node is None or not scope.active(node):
        return
    b, old, leaf = scope.b, scope.get(node), scope.type(node)
    assert isinstance(leaf, f.Arr)
    if f.is_float(leaf.elem):
        made = b.op("acc_slice", (scope.current(node), ct.atom, *r.dims(a), lo), rank=leaf.rank)
        scope.set(node, Part(made, ZERO_ELEMENTS if old is None else together(old.zeros, ZERO_ELEMENTS)))
        return
    array, index, state, body = (
        b.op("acc_zeros", (scope.current(node), *r.dims(a))),
        b.var("i", f.I64),
        b.var("c", leaf),
        b.inner(),
    )
    at = body.op("add", (lo, index))
    pair = body.op("index", (state, at), unchecked=True), body.op("index", (ct.atom, index), unchecked=True)
    total = body.op("update", (state, r.d.convert.add_values(body, *pair), at), unchecked=True)
    count = b.op("dim", (ct.atom,), k=0)
    (made,) = b.bind(f.For(index, count, (state,), (array,), body.block(total)), (leaf,), "c")
    scope.set(node, Part(made, ZERO_ELEMENTS))


def give_sum(r: Reverse, scope: Scope, x: f.Atom, ct: Part) -> None:
    """Adds the sum of `ct` over its outermost dimension to the cotangent of an operand."""
    if not wanted(r, scope, x):
        return
    b, leaves = scope.b, r.tangents.leaves(x.ty)
    elem = r.tangents.of(x.ty)
    if f.is_float(elem) or (isinstance(elem, f.Arr) and f.is_float(elem.elem)):
        give(r, scope, x, ct, b.op("sum", (ct.atom,)))
        return
    index, body = b.var("i", f.I64), b.inner()
    state = [b.var("c", leaf) for leaf in leaves]
    parts = r.tangents.unpack(body, body.op("index", (ct.atom, index), unchecked=True))
    totals = [r.d.convert.add(body, s, part) for s, part in zip(state, parts, strict=True)]
    loop = f.For(index, b.op("dim", (ct.atom,), k=0), tuple(state), tuple(map(zero, leaves)), body.block(*totals))
    r.add(scope, x, [Part(total, MAYBE_ZERO) for total in b.bind(loop, leaves, "c")])


def product(r: Reverse, scope: Scope, op: f.Op, i: int, ct: Part) -> None:
    """Adds to one factor of a matrix product."""
    (node,) = r.nodes(op.args[-2:][i])
    if node is None:
        return
    old = scope.get(node)
    made = products.cotangent(scope.b, op, i, ct, None if old is None else old.atom)
    scope.set(node, Part(made, together(ct.part_of_sum(made.ty), MAYBE_ZERO if old is None else old.zeros)))


TRANSPOSES: dict[str, Transpose] = {
    "cast": to_first(cast), "copy": to_all(0), "transpose": to_first(lambda r, b, op, y, c: b.op("transpose", (c,))),
    "reshape": to_first(lambda r, b, op, y, c: b.op("reshape", (c, *r.dims(op.args[0])))),
    "sum": to_first(lambda r, b, op, y, c: b.op("fill", (r.dim(op.args[0], 0), c), unchecked=True)),
    "sum_to": to_first(sum_to),
    "fill": lambda r, scope, op, y, ct: give_sum(r, scope, op.args[1], ct),
    "index": lambda r, scope, op, y, ct: at_index(r, scope, op.args[0], ct, op.args[1:]),
    "slice": lambda r, scope, op, y, ct: at_slice(r, scope, op.args[0], ct, op.args[1]),
    "update": update, "array": array, "concat": concat, "dot": dot, "matmul": matmul, "matmul_acc": matmul_acc,
    "conv2d": convolution, "conv2d_data": convolution, "conv2d_weights": convolution,
    "acc_add": to_all(0, 1), "acc_zeros": to_all(0), "acc_index": acc_index, "acc_slice": acc_slice,
}  # fmt: skip
"""By the names of operations; every one that is linear has its transpose here."""
