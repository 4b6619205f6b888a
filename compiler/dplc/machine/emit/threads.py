"""Loops whose points several threads compute.

    z = build i < n { ... x ... }

    define void @"dpl f points 1"(from, to, x, z)      for from <= i < to { z[i] = ... x ... }
    define void @"block of f points 1"(env, from, to)  the same, with x and z from the environment `env`

    if n * work > rt.process_least:  rt.spread(@"block of f points 1", {x, z}, n, work)     blocks, in any order
    else:                            @"dpl f points 1"(0, n, x, z)

Points that are independent (`passes/kernels/independence.py`) become a function of the first and the last point and of
what they use.  The pool of threads calls it for blocks of points; of a small loop, all points are one call.

What comes from outside is lent to the points: in their function all arrays from outside have no owner.  So the points
neither count owners of what they share, nor change it in place; the arrays that they make are their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from dpl.diagnostics import Bug
from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.walk import atoms, blocks, every
from dplc.machine.emit.bodies import interrupts
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.bodies.resume import free, types_of
from dplc.machine.emit.module.memory import parts
from dplc.machine.emit.module.unit import symbol
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.writer import Mark, Values, Writer, function, typed
from dplc.passes.kernels import work
from dplc.passes.kernels.work import Work

LEAST = "@rt.process_least"
MEMORY = 10.0  # with less operations, the time of a point is that of its memory
LITTLE = 40000.0  # operations that are not worth a region of the pool, as in `rt/pool.rt`


@node
class Points:
    """The points of a loop: their number, their work, and `step`, which writes one.  `fresh` are addresses of memory
    that only the points use.  The first `alone` points are done before the others."""

    count: str
    work: Work
    step: Callable[[str], object]
    short: bool
    fresh: Sequence[str]
    mark: Mark = ""
    alone: int = 0


def pays(e: BodyEmitter, body: f.Block, count: str) -> Work | None:
    """The work of a point, if the points of a loop can be spread over threads and may be worth it."""
    unit = e.unit
    if e.spread or unit.counting or unit.debug or e.fn.name in unit.cold or not unit.independence.points(body):
        return None
    each = work.plus(work.of_block(unit.program, body, lambda var, k: _operand(e, var, k)), work.number(1.0))
    if os.environ.get("DPL_BLOCK"):  # for tests: every loop
        return each
    little = set(each) == {()} and (each[()] < MEMORY or (count.isdigit() and each[()] * int(count) <= LITTLE))
    return None if little else each


def _operand(e: BodyEmitter, var: f.Var, k: int) -> str | None:
    """The operand of a number, or of dimension k of an array, if it is known before the loop."""
    values = e.env.get(var.name)
    return None if values is None else values[0] if k < 0 else values[2 + k]


def spread(e: BodyEmitter, body: f.Block, points: Points) -> None:
    """Writes the points of a loop with this body as a function, and its calls."""
    w = e.w
    name = f"{e.fn.name} points {w.fresh()[2:]}"
    given = _function(e, name, body, points)
    types, values = [t for t, _ in given], [v for _, v in given]
    callee, e.unit.helpers[f"block of {name}"] = symbol(name), _block(name, types, points.alone)

    def run(first: str, last: str) -> Values:
        w.do(f"call fastcc void {callee}({', '.join([f'i64 {first}', f'i64 {last}', *typed(types, values)])}) noinline")
        return []

    def share() -> Values:
        env = w.slot(f"[{max(8 * len(types), 8)} x i8]")
        for i, (ty, value) in enumerate(given):
            w.store(ty, value, w.at(env, 8 * i))
        what = f"ptr {_block_symbol(name)}, ptr {env}, i64 {rest}, double {each}"
        w.do(f"call void @rt.spread({what})")
        return []

    rest = points.count
    if points.alone:
        run("0", str(points.alone))
        rest = w.let(f"sub i64 {points.count}, {points.alone}")
    each = _amount(w, points.work)
    total = w.let(f"fmul double {each}, {w.let(f'sitofp i64 {rest} to double')}")
    big = w.let(f"fcmp ogt double {total}, {w.load('double', LEAST)}")
    w.choose(big, (), share, lambda: run(str(points.alone), points.count))


def _function(e: BodyEmitter, name: str, body: f.Block, points: Points) -> list[tuple[str, str]]:
    """Writes the function of the points.  Returns the values that it uses, with their types."""
    w, before, start = e.w, (e.env, e.scope, e.ready), e.w.place()
    e.env, e.scope, e.ready = dict(e.env), e.unit.scope(replace(e.fn, name=name, label="")), set()
    e.spread, e.loop, w.label = True, w.loop, "start"
    owners = _lend(e, body)

    def step(i: str, _: Values) -> Values:
        points.step(i)
        return []

    interrupts.count_to(e, "%to", step, mark=points.mark, short=points.short, first="%from")
    w.do("ret void")
    inner = w.cut(start)
    inner.lines = e.with_locations(inner.lines)
    scope, e.spread = e.scope, False
    e.env, e.scope, e.ready = before
    wanted = free([*inner.lines, *inner.slots], ("%from", "%to"))
    if owners.intersection(wanted):
        raise Bug(f"{name}: points know the owner of an array from outside")
    known = types_of(e, set(wanted))
    given = [(known[value], value) for value in wanted]
    params = [f"{ty}{' noalias' if value in points.fresh else ''} {value}" for ty, value in given]
    head = f"fastcc void {symbol(name)}({', '.join(['i64 %from', 'i64 %to', *params])})"
    linkage = "dso_local" if e.unit.replaceable else "internal"
    e.unit.helpers[name] = function(head, inner, end="", place=f" !dbg {scope}", linkage=linkage)
    return given


def _block(name: str, types: Sequence[str], alone: int) -> str:
    """The function that the pool calls for a block."""
    w = Writer()
    values = [w.load(ty, w.at("%env", 8 * i)) for i, ty in enumerate(types)]
    ends = [f"i64 {w.add(end, str(alone))}" for end in ("%from", "%to")]
    w.do(f"call fastcc void {symbol(name)}({', '.join([*ends, *typed(types, values)])}) noinline")
    return function(f"void {_block_symbol(name)}(ptr %env, i64 %from, i64 %to)", w)


def _block_symbol(name: str) -> str:
    return symbol(name).replace('@"dpl ', '@"block of ', 1)


def _amount(w: Writer, each: Work) -> str:
    """Writes the work of a point; the operand."""
    total = ""
    for operands, factor in each.items():
        term = number(factor, "f64")
        for operand in operands:
            term = w.let(f"fmul double {term}, {w.let(f'sitofp i64 {operand} to double')}")
        total = w.let(f"fadd double {total}, {term}") if total else term
    return total


def _lend(e: BodyEmitter, body: f.Block) -> set[str]:
    """Takes the owners from the arrays from outside that a body uses; returns them."""
    owners: set[str] = set()
    for var in _mentioned(body):
        if var.name in e.env:
            values = list(e.env[var.name])
            for at, _ in parts(var.ty):
                owners.add(values[at])
                values[at] = "null"
            e.env[var.name] = values
    return owners - {"null"}


def _mentioned(body: f.Block) -> Iterator[f.Var]:
    """The variables that a block uses."""
    inside = [inner for bind in every(body) for inner in blocks(bind.rhs)]
    found = [atom for bind in every(body) for atom in atoms(bind.rhs)]
    found += [atom for block in (body, *inside) for atom in block.results]
    return (atom for atom in found if isinstance(atom, f.Var))
