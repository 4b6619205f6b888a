"""For and While -> basic blocks.  Arrays that they collect are written element by element."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.types import elem_of
from dplc.machine.emit.bodies import arrays, inplace, interrupts
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.layout import ALIGN_FROM, counted, leaves, struct
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type

FIRST_ROOM = 16  # elements for which a growing array has room at first


def loop(e: BodyEmitter, rhs: f.For | f.While, variables: tuple[f.Var, ...]) -> Values:
    """The registers of the loop's final state, and of the arrays that it has collected."""
    return _for(e, rhs, variables) if isinstance(rhs, f.For) else _while(e, rhs, variables)


def _state_types(loop: f.For | f.While) -> tuple[str, ...]:
    return leaves(f.Tup(tuple(var.ty for var in loop.state)))


def _for(e: BodyEmitter, loop: f.For, variables: tuple[f.Var, ...]) -> Values:
    types, count = _state_types(loop), e.one(loop.count)
    kept: Array | None = None
    if loop.collect:
        length = e.w.let(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
        kept = arrays.new_outer(e, elem_of(variables[-1].ty), length, (), e.site(e.fn.span))

    def step(i: str, state: Values) -> Values:
        e.define((loop.index,), [i])
        e.define(loop.state, state)
        values = e.block(loop.body)
        if kept:
            item = e.w.element(kept.data, i, kept.size)
            e.once(kept.elem, lambda: e.put(kept.elem, values[len(types) :], item))
        return values[: len(types)]

    found, inits = _chains(e, loop), e.values(loop.inits)
    if found:
        some = e.w.let(f"icmp sgt i64 {count}, 0")
        given = inits
        inits = e.w.choose(some, types, lambda: _ready(e, loop, found, given), lambda: given)
    last = interrupts.count_to(e, count, step, types, inits, short=interrupts.is_short(loop.body))
    return [*last, *(kept.values if kept else ())]


def _chains(e: BodyEmitter, loop: f.For | f.While) -> list[inplace.Chain]:
    return [chain for chain in inplace.chains(loop) if chain.certain or e.is_ready(loop.inits[chain.index])]


def _ready(e: BodyEmitter, loop: f.For | f.While, found: list[inplace.Chain], inits: Values) -> Values:
    """The initial state, with the arrays that every step changes made unique."""
    state = list(inits)
    for chain in found:
        e.ready.update(chain.variables)
        if e.is_ready(loop.inits[chain.index]):
            continue
        ty = expect_type(f.Arr, loop.state[chain.index].ty)
        start = len(leaves(f.Tup(tuple(var.ty for var in loop.state[: chain.index]))))
        part = slice(start, start + len(leaves(ty)))
        state[part] = inplace.ready(e, ty, state[part], [e.one(n) for n in chain.dims])
    return state


def _while(e: BodyEmitter, loop: f.While, variables: tuple[f.Var, ...]) -> Values:
    """Collected elements go into a block that doubles when it is full."""
    types, w = _state_types(loop), e.w
    inits = e.values(loop.inits)
    if not loop.collect:

        def run(inits: Values) -> Values:
            return e.loop(types, inits, lambda s: _condition(e, loop, s), lambda s: _step(e, loop, s))

        found = _chains(e, loop)
        if not found:
            return run(inits)
        some = _condition(e, loop, inits)
        return w.choose(some, types, lambda: run(_ready(e, loop, found, inits)), lambda: inits)
    elem = elem_of(variables[-1].ty)
    size = struct(elem).size
    first = arrays.new_array(e, elem, [str(FIRST_ROOM)])
    growing = (first.owner, first.data, "0", str(FIRST_ROOM))  # the number of elements, and how many there is room for

    def step(state: Values) -> Values:
        own, (owner, data, count, room) = state[:-4], state[-4:]
        values = _step(e, loop, own)

        def grow() -> Values:
            doubled = w.scale(room, 2)
            e.allocated(w.scale(doubled, size))
            e.unit.droppers.freed(w, w.scale(room, size))
            args = [f"ptr {owner}", f"ptr {data}", f"i64 {w.scale(room, size)}"]
            return [*w.call(("ptr", "ptr"), "@rt.doubled", args), doubled]

        full = w.let(f"icmp eq i64 {count}, {room}")
        place = ("ptr", "ptr", "i64")
        owner, data, room = w.choose(full, place, grow, lambda: [owner, data, room])
        e.put(elem, values[len(types) :], w.element(data, count, size))
        return [*values[: len(types)], owner, data, w.add(count, "1"), room]

    all_types = (*types, "ptr", "ptr", "i64", "i64")
    last = e.loop(all_types, [*inits, *growing], lambda s: _condition(e, loop, s[:-4]), step)
    owner, data, count, _ = last[-4:]
    if counted(elem):  # whoever frees the block finds the elements by the size in its header
        owner, data = _trimmed(e, elem, (owner, data, count))
    return [*last[:-4], owner, data, count]


def _trimmed(e: BodyEmitter, elem: f.Type, collected: tuple[str, str, str]) -> Values:
    """The block of so many elements with their size in its header.  Small blocks are freed by that size, so a small
    array moves to one that is made for it."""
    w, (owner, data, count) = e.w, collected
    used = w.scale(count, struct(elem).size)

    def move() -> Values:
        smaller = arrays.new_array(e, elem, [count])
        w.copy(smaller.data, data, used)
        e.unit.droppers.free_block(w, owner)
        return [smaller.owner, smaller.data]

    def stay() -> Values:
        w.store("i64", used, w.at(owner, 8))
        return [owner, data]

    return w.choose(w.let(f"icmp ult i64 {used}, {ALIGN_FROM}"), ("ptr", "ptr"), move, stay)


def _condition(e: BodyEmitter, loop: f.While, state: Values) -> str:
    e.define(loop.state, state)
    return e.block(loop.cond)[0]


def _step(e: BodyEmitter, loop: f.While, state: Values) -> Values:
    interrupts.poll(e)
    return e.block(loop.body)
