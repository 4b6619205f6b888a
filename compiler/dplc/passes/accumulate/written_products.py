"""Outer products that a nest of loops adds to a matrix, element by element, as products of vectors.

    c = for i < n state (c1 = a) {               xs = for i < n state (u1 = null) {
      x = ...                                      x = ...
      c2 = for j < m state (c3 = c1) {             u2 = acc_index u1 x n i
        y = index v j; z = mul x y         =>      yield u2 }
        c4 = acc_index c3 z n m i j              u = reshape xs n 1
        yield c4 }                               t = reshape (slice v 0 m) m 1
      yield c2 }                                 c = matmul_acc tb=true a u t

The gradient of a matrix in sums that are written out, `sum [for j < m -> a[i, j] * v[j]]`, comes like this.  By itself
this saves nothing; the steps of a loop around it are added some at a time then (`delayed_updates`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.walk import blocks, bound_inside, rhs_mentions, with_binds, with_branches


@node
class Outer:
    """What is added at place (i, j): `x`, which does not depend on the inner index, times an element of `vector`.  The
    zero of one of them may win; `first` tells that the outer index is the row."""

    x: f.Atom
    vector: f.Var
    winner: f.Atom | None
    first: bool


def by_vectors(block: f.Block, matrix: f.Var, supply: Callable[[], f.Supply]) -> f.Block:
    """The block with products of vectors in place of the nests that add them to this matrix."""
    binds: list[f.Bind] = []
    for bind in block.binds:
        if matrix.name not in rhs_mentions(bind.rhs):
            binds.append(bind)
            continue
        made = [bind]
        match bind.rhs:
            case f.For(inits=inits) as loop if matrix in inits:
                k = inits.index(matrix)
                made, matrix = nest(bind, loop, k, supply), bind.vars[k]
            case f.If() as branch:
                arms = [by_vectors(arm, matrix, supply) for arm in blocks(branch)]
                made = [f.Bind(bind.vars, with_branches(branch, arms))]
            case _:
                pass
        binds += made
    return with_binds(block, binds)


def nest(bind: f.Bind, loop: f.For, k: int, supply: Callable[[], f.Supply]) -> list[f.Bind]:
    """A nest, if it adds one outer product to state number `k` and does nothing else with it, and what follows it."""
    inner = only_use(loop.body, loop.state[k], k)
    if inner is None or not isinstance(inner.rhs, f.For) or loop.collect or inner.rhs.collect:
        return [bind]
    at = inner.rhs.inits.index(loop.state[k])
    outer = outer_product(loop, inner.rhs, at)
    if outer is None:
        return [bind]
    b = Builder(supply())
    sums, before = (b.var("factor", outer.vector.ty) for _ in range(2))
    after = b.var("factor", outer.vector.ty)
    part = f.Op("acc_index", (before, outer.x, loop.count, loop.index), (("rank", 1),))
    binds = [without(inner, at) if one is inner else one for one in loop.body.binds]
    made = replace(
        loop, state=put(loop.state, k, before), inits=put(loop.inits, k, f.Const(None, before.ty)),
        body=f.Block((*binds, f.Bind((after,), part)), put(loop.body.results, k, after)),
    )  # fmt: skip
    b.binds.append(f.Bind(put(bind.vars, k, sums), made))
    added(b, outer, loop, inner.rhs, sums, (loop.inits[k], bind.vars[k]))
    return list(block_of(b.binds, ()).binds)


def only_use(block: f.Block, array: f.Var, k: int) -> f.Bind | None:
    """The binding that takes an array, if it is the only one, takes it once, and gives back result number `k`."""
    uses = [bind for bind in block.binds for name in rhs_mentions(bind.rhs) if name == array.name]
    if len(uses) != 1 or array in block.results or block.results.count(block.results[k]) != 1:
        return None
    (bind,), end = uses, block.results[k]
    place = bind.rhs.inits.index(array) if isinstance(bind.rhs, f.For) and array in bind.rhs.inits else 0
    used = any(isinstance(end, f.Var) and end.name in rhs_mentions(other.rhs) for other in block.binds)
    return bind if bind.vars[place : place + 1] == (end,) and not used else None


def outer_product(loop: f.For, inner: f.For, at: int) -> Outer | None:
    """What a nest adds to its matrix, number `at` of the inner state."""
    last = only_use(inner.body, inner.state[at], at)
    if last is None or not isinstance(last.rhs, f.Op) or last.rhs.op != "acc_index" or last.rhs.attr("rank") != 2:
        return None
    _, term, *where = last.rhs.args
    lengths, places = (loop.count, inner.count), (loop.index, inner.index)
    first = where == [*lengths, *places]
    if not first and where != [*lengths[::-1], *places[::-1]]:
        return None
    made = {var.name: bind.rhs for bind in (*loop.body.binds, *inner.body.binds) for var in bind.vars}
    found = product_of(term, made)
    if found is None:
        return None
    (x, y), winner = found
    inside, steps = {var.name for var in bound_inside(loop)}, {var.name for var in bound_inside(inner)}
    for one, other in ((x, y), (y, x)):
        read = made.get(other.name) if isinstance(other, f.Var) else None
        match read:
            case f.Op("index", (f.Var(vector, f.Arr(_, 1)) as v, place)) if place == inner.index:
                if vector not in inside and not (isinstance(one, f.Var) and one.name in steps):
                    return Outer(one, v, winner, first)
            case _:
                pass
    return None


def product_of(term: f.Atom, made: Mapping[str, f.Rhs]) -> tuple[tuple[f.Atom, ...], f.Atom | None] | None:
    """The factors of a product, and the one whose zero wins over an infinity or NaN, if one does."""

    def of(atom: f.Atom, op: str) -> tuple[f.Atom, ...] | None:
        rhs = made.get(atom.name) if isinstance(atom, f.Var) else None
        return rhs.args if isinstance(rhs, f.Op) and rhs.op == op else None

    if (factors := of(term, "mul")) is not None:
        return factors, None
    if (chosen := of(term, "select")) is None or (factors := of(chosen[2], "mul")) is None:
        return None
    both = of(chosen[0], "and") or ()
    tests = [of(one, "eq") for one in both[:1]] + [of(one, "ne") for one in both[1:]]
    if len(tests) != 2 or tests[1] != (chosen[2], chosen[2]) or tests[0] is None or not is_zero(chosen[1]):
        return None
    winner, zero = tests[0]
    return (factors, winner) if winner in factors and is_zero(zero) else None


def is_zero(atom: f.Atom) -> bool:
    return isinstance(atom, f.Const) and atom.value == 0


def without(inner: f.Bind, at: int) -> f.Bind:
    """The inner loop without the matrix."""
    loop = inner.rhs
    assert isinstance(loop, f.For)
    state = loop.state[at]
    kept = [bind for bind in loop.body.binds if state.name not in rhs_mentions(bind.rhs)]
    body = f.Block(tuple(kept), drop(loop.body.results, at))
    made = replace(loop, state=drop(loop.state, at), inits=drop(loop.inits, at), body=body)
    return f.Bind(drop(inner.vars, at), made)


def added(b: Builder, outer: Outer, loop: f.For, inner: f.For, sums: f.Var, matrix: tuple[f.Atom, f.Var]) -> None:
    """Adds the product of the vectors.  Without steps, the vector that is read may be shorter than the matrix."""
    before, after = matrix
    with b.inside() as there:
        row = b.op("slice", (outer.vector, integer(0), inner.count), unchecked=True)
        left, right = b.op("reshape", (sums, loop.count, integer(1))), b.op("reshape", (row, inner.count, integer(1)))
        sides = ("left", "right") if outer.first else ("right", "left")
        masked = () if outer.winner is None else (("masked", sides[outer.winner != outer.x]),)
        factors = (left, right) if outer.first else (right, left)
        total = b.one(f.Op("matmul_acc", (before, *factors), (("ta", False), ("tb", True), *masked)), after.ty, "c")
    cond = b.op("gt", (loop.count, integer(0)))
    b.binds.append(f.Bind((after,), f.If(cond, block_of(there, (total,)), f.Block((), (before,)))))


def put(items: Sequence, k: int, item: object) -> tuple:
    return (*items[:k], item, *items[k + 1 :])


def drop(items: Sequence, k: int) -> tuple:
    return (*items[:k], *items[k + 1 :])
