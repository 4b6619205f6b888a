"""Records of derivatives that a loop reads for the last time are taken out of their array, so that backward code is
their one owner, and frees them while it reads them.

    for j < n state (c = a)               for j < n state (c = a, left = kept)
      i = sub last j                        i = sub last j
      t = index kept i             =>       t = index left i;  rest = update left (null) i
      r = t.0                               r = t.0
      d = f.bwd(r, c)                       d = f.bwd(r, c)
      yield d                               yield d, rest

Points that only add to arrays are such a loop.  With two owners, the counts of all records that the first one refers to
would be increased, and decreased later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.kinds import any_of, kinds
from dplc.flat.walk import blocks, bound_inside, every, rhs_mentions, supply_for, with_binds, with_body, with_inner
from dplc.narrow import expect_type
from dplc.passes.memory.borrow import residual
from dplc.passes.recursion.tail_calls import blank

LOOPS = any_of(f.For, f.Par)


def last_reads(program: f.Program, device: bool) -> f.Program:
    """Points are no such loop where a device may do them."""
    if not any(map(residual, map(f.Data, program.datas))):
        return program
    supply = supply_for(program)
    given = {name: [p.name for p in fn.params] for name, fn in program.fns.items()}
    fns = {name: with_body(fn, _block(fn.body, given[name], supply, device)) for name, fn in program.fns.items()}
    return replace(program, fns=fns)


def _block(block: f.Block, given: Iterable[str], supply: f.Supply, device: bool) -> f.Block:
    """The block, in which the arrays `given` are bound, beside its own."""
    if not kinds(block) & LOOPS:
        return block
    uses = Counter(name for bind in block.binds for name in set(rhs_mentions(bind.rhs)))
    uses.update(atom.name for atom in block.results if isinstance(atom, f.Var))
    here = {*given, *(var.name for bind in block.binds for var in bind.vars)}
    once = {name for name in here if uses[name] == 1}
    made = []
    for bind in block.binds:
        if blocks(bind.rhs):
            own = once if isinstance(bind.rhs, f.If | f.Switch) else ()  # an arm runs once, a body several times
            bind = with_inner(bind, partial(_block, given=own, supply=supply, device=device))
        if (loop := _in_order(bind.rhs, device)) is not None:
            for at, array in _read_once(loop):
                if array.name in once:
                    bind = _taking(f.Bind(bind.vars, loop), at, array, supply)
                    loop = expect_type(f.For, bind.rhs)
        made.append(bind)
    return with_binds(block, made)


def _in_order(rhs: f.Rhs, device: bool) -> f.For | None:
    """A loop, or points that only add to arrays, as a loop."""
    match rhs:
        case f.For():
            return rhs
        case f.Par(((index, count),), body, outs, _, False) if not device and outs and all(out.acc for out in outs):
            accs, targets = zip(*[(out.acc, out.target) for out in outs], strict=True)
            return f.For(index, count, accs, targets, body)
        case _:
            return None


def _read_once(loop: f.For) -> list[tuple[f.Var, f.Var]]:
    """The elements with records in them that each step reads, and their arrays: no other step reads them."""
    inner = {var.name for var in bound_inside(loop)}
    mentions = Counter(name for bind in every(loop.body) for name in rhs_mentions(bind.rhs) if name not in inner)
    mentions.update(atom.name for atom in (*loop.inits, *loop.body.results) if isinstance(atom, f.Var))
    places, found = {loop.index.name}, []
    for bind in loop.body.binds:
        match bind.rhs:
            case f.Op("sub", (start, f.Var(name))) if name == loop.index.name:
                if not isinstance(start, f.Var) or start.name not in inner:
                    places.add(bind.vars[0].name)
            case f.Op("index", (f.Var(array) as kept, f.Var(at))) if at in places and mentions[array] == 1:
                if isinstance(kept.ty, f.Arr) and kept.ty.rank == 1 and _is_taken(kept.ty.elem):
                    found.append((bind.vars[0], kept))
            case _:
                pass
    return found


def _is_taken(ty: f.Type) -> bool:
    """True for a tuple with records in it.  A reference in it would have no placeholder."""
    parts = _parts(ty)
    return any(map(residual, parts)) and not any(isinstance(part, f.Ref | f.Res) for part in parts)


def _parts(ty: f.Type) -> list[f.Type]:
    return [part for item in ty.items for part in _parts(item)] if isinstance(ty, f.Tup) else [ty]


def _taking(bind: f.Bind, element: f.Var, array: f.Var, supply: f.Supply) -> f.Bind:
    """The loop whose state is also what is left in the array."""
    loop = expect_type(f.For, bind.rhs)
    width = len(loop.state)
    left, rest, after = (f.Var(supply.fresh("left"), array.ty) for _ in range(3))
    binds = list[f.Bind]()
    for inner in loop.body.binds:
        if inner.vars != (element,):
            binds.append(inner)
            continue
        assert isinstance(inner.rhs, f.Op)
        place = inner.rhs.args[1]
        binds.append(f.Bind(inner.vars, replace(inner.rhs, args=(left, place))))
        nothing = blank(element.ty, binds, supply)
        binds.append(f.Bind((rest,), f.Op("update", (left, nothing, place), (("unchecked", True),), inner.rhs.span)))
    results = loop.body.results
    body = f.Block(tuple(binds), (*results[:width], rest, *results[width:]))
    taking = replace(loop, state=(*loop.state, left), inits=(*loop.inits, array), body=body)
    return f.Bind((*bind.vars[:width], after, *bind.vars[width:]), taking)
