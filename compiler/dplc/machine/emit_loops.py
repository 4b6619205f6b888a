"""For, While and Build -> basic blocks; the arrays they keep are written as they go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpl.diagnostics import Bug
from dplc.flat import term as f
from dplc.machine import arrays
from dplc.machine.arrays import Array
from dplc.machine.layout import Failure, leaves, struct
from dplc.machine.writer import Values

if TYPE_CHECKING:
    from dplc.machine.emit_function import FunctionEmitter

FIRST_ROOM = 16  # elements that a growing array starts with


def loop(e: FunctionEmitter, rhs: f.Rhs, variables: tuple[f.Var, ...]) -> Values:
    match rhs:
        case f.For():
            return _for(e, rhs, variables)
        case f.While():
            return _while(e, rhs, variables)
        case f.Build():
            return _build(e, rhs, variables)
    raise Bug(f"no loop {rhs}")


def _state_types(loop: f.For | f.While) -> tuple[str, ...]:
    return leaves(f.Tup(tuple(var.ty for var in loop.state)))


def _for(e: FunctionEmitter, loop: f.For, variables: tuple[f.Var, ...]) -> Values:
    types, count = _state_types(loop), e.one(loop.count)
    kept: Array | None = None
    if loop.collect:
        length = e.w.let(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
        kept = arrays.new_outer(e, variables[-1].ty.elem, length, (), 0)

    def step(i: str, state: Values) -> Values:
        e.define((loop.index,), [i])
        e.define(loop.state, state)
        values = e.block(loop.body)
        if kept:
            e.put(kept.elem, values[len(types) :], e.w.at(kept.data, e.w.mul(i, str(kept.size))))
        return values[: len(types)]

    last = e.w.count_to(count, step, types, e.values(loop.inits))
    return [*last, *(kept.values if kept else ())]


def _while(e: FunctionEmitter, loop: f.While, variables: tuple[f.Var, ...]) -> Values:
    """Kept elements go into a block that doubles when it is full."""
    types, w = _state_types(loop), e.w
    inits = e.values(loop.inits)
    if not loop.collect:
        return w.loop(types, inits, lambda s: _condition(e, loop, s), lambda s: _step(e, loop, s))
    elem = variables[-1].ty.elem
    size = struct(elem).size
    first = arrays.new_array(e, elem, [str(FIRST_ROOM)])
    growing = (first.owner, first.data, "0", str(FIRST_ROOM))  # and elements in it, and room for

    def step(state: Values) -> Values:
        own, (owner, data, count, room) = state[:-4], state[-4:]
        values = _step(e, loop, own)

        def grow() -> Values:
            doubled = w.let(f"shl i64 {room}, 1")
            larger = arrays.new_array(e, elem, [doubled])
            w.copy(larger.data, data, w.mul(count, str(size)))
            w.do(f"call void @rt.free(ptr {owner})")
            return [larger.owner, larger.data, doubled]

        full = w.let(f"icmp eq i64 {count}, {room}")
        place = ("ptr", "ptr", "i64")
        owner, data, room = w.choose(full, place, grow, lambda: [owner, data, room])
        e.put(elem, values[len(types) :], w.at(data, w.mul(count, str(size))))
        return [*values[: len(types)], owner, data, w.add(count, "1"), room]

    all_types = (*types, "ptr", "ptr", "i64", "i64")
    last = w.loop(all_types, [*inits, *growing], lambda s: _condition(e, loop, s[:-4]), step)
    owner, data, count, _ = last[-4:]
    w.store("i64", w.mul(count, str(size)), w.at(owner, 8))  # so much of the block is elements
    return [*last[:-4], owner, data, count]


def _condition(e: FunctionEmitter, loop: f.While, state: Values) -> str:
    e.define(loop.state, state)
    return e.block(loop.cond)[0]


def _step(e: FunctionEmitter, loop: f.While, state: Values) -> Values:
    return e.block(loop.body)


# ---- Build


def _build(e: FunctionEmitter, build: f.Build, variables: tuple[f.Var, ...]) -> Values:
    site, count = e.site(build.span), e.one(build.count)
    inner = [atom.ty for atom in build.body.results]
    if not any(isinstance(ty, f.Arr) for ty in inner):
        made = [arrays.new_outer(e, ty, count, (), site) for ty in inner]
        e.w.count_to(count, lambda i, _: [_put_row(e, build, i, made), []][1])
        return [leaf for array in made for leaf in array.values]
    arrays.check_count(e, count, site)
    some = e.w.let(f"icmp sgt i64 {count}, 0")
    types = leaves(f.Tup(tuple(var.ty for var in variables)))
    return e.w.choose(some, types, lambda: _build_rows(e, build, count, site), lambda: _empty(e, variables))


def _put_row(e: FunctionEmitter, build: f.Build, i: str, made: list[Array]) -> None:
    e.define((build.index,), [i])
    values = e.block(build.body)
    for array in made:
        n = len(leaves(array.elem))
        e.put(array.elem, values[:n], e.w.at(array.data, e.w.mul(i, str(array.size))))
        values = values[n:]


def _empty(e: FunctionEmitter, variables: tuple[f.Var, ...]) -> Values:
    """Arrays without elements; their inner lengths are 0."""
    made = [arrays.new_array(e, var.ty.elem, ["0"] * var.ty.rank) for var in variables]
    return [leaf for array in made for leaf in array.values]


def _build_rows(e: FunctionEmitter, build: f.Build, count: str, site: int) -> Values:
    """Some results are arrays: the first step tells their shapes, and the others must agree."""
    e.define((build.index,), ["0"])
    rows = _split(build, e.block(build.body))
    made = []
    for ty, values in rows:
        elem, inner = (ty.elem, values[2:]) if isinstance(ty, f.Arr) else (ty, ())
        made.append(arrays.new_outer(e, elem, count, inner, site))
    _store_rows(e, made, rows, "0", site)

    def step(state: Values) -> Values:
        e.define((build.index,), state)
        _store_rows(e, made, _split(build, e.block(build.body)), state[0], site)
        return [e.w.add(state[0], "1")]

    e.w.loop(("i64",), ["1"], lambda s: e.w.let(f"icmp slt i64 {s[0]}, {count}"), step)
    return [leaf for array in made for leaf in array.values]


def _split(build: f.Build, values: Values) -> list[tuple[f.Type, Values]]:
    rows = []
    for atom in build.body.results:
        n = len(leaves(atom.ty))
        rows.append((atom.ty, values[:n]))
        values = values[n:]
    return rows


def _store_rows(e: FunctionEmitter, made: list[Array], rows: list[tuple[f.Type, Values]], i: str, site: int) -> None:
    for array, (ty, values) in zip(made, rows, strict=True):
        place = arrays.address(e, array, [i])
        if not isinstance(ty, f.Arr):
            e.put(ty, values, place)
            continue
        row = arrays.array_of(ty, values)
        arrays.check_shape(e, array.dims[1:], row.dims, site)
        arrays.copy_elements(e, row.elem, place, row.data, e.w.product(row.dims))
        e.drop(ty, values)


__all__ = ["Failure", "loop"]
