"""Points in two parts, strip by strip: first what has loops and calls in it, then the arithmetic on what that gave.

    par i < n to fold 0 {                        for strips of 1024 points
      r = index x i; t = dot w r                   for i in the strip { r = index x i; buffer[i] = dot w r }
      y = index u i                        =>      for i in the strip {
      z = mul t y; e = exp z                         t = buffer[i]; y = index u i
      yield e }                                      z = mul t y; e = exp z; ... }

LLVM makes vectors of the second loop, and the first one may fit lanes (`lanes.py`).  What adds the values of elementary
functions to arrays is a second part, too; the functions are vectors of the first one, which may have two parts itself:

    par i < n to add (c) {                       for i in the strip { r = index x i; buffer[i] = dot w r }
      r = index x i; t = dot w r; e = exp t  =>  for i in the strip { numbers[i] = exp buffer[i] }
      for j { acc_index c (e * r[j]) j } }       for i in the strip { r = index x i; e = numbers[i]; for j ... }
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node, replace
from dpl.prims import TABLE
from dpl.prims.sums import BLOCK, FEW

from dplc.flat import term as f
from dplc.flat.elementary import is_function
from dplc.flat.types import is_numbers
from dplc.flat.walk import every, names, needed, rhs_mentions
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.bodies.interrupts import is_short
from dplc.machine.emit.points.lane_operations import FLOATS, has_functions, reads
from dplc.machine.emit.points.lanes import Lanes, lanes_of
from dplc.machine.emit.points.least_values import with_least_values
from dplc.machine.emit.points.marks import marked
from dplc.machine.emit.points.varying import varying
from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type
from dplc.passes.inversion.fission.kept_numbers import Level
from dplc.passes.inversion.nests import Unfit
from dplc.passes.simplify.purity import droppable

FEWEST = 4  # points that are a vector
MOST = 16  # numbers of a point that are kept


@node
class Parts:
    """The first part, which keeps numbers; and the second part, which uses them."""

    first: f.Par
    kept: tuple[f.Var, ...]
    second: tuple[f.Bind, ...]
    adds: bool = False  # in the second part


def in_parts(par: f.Par, binds: tuple[f.Bind, ...], masks: bool, branches: bool = True) -> Parts | None:
    """The two parts of a Par's points, whose bindings are these; None if that is not worth it.  `masks`: see `varying`;
    `branches`: see `_split`."""
    if par.ordered or any(out.kind != "add" and (out.target or not is_numbers(x.ty))
                          for out, x in zip(par.outs, par.body.results, strict=True)):  # fmt: skip
        return None
    count = par.space[-1][1]
    steps = count.value if isinstance(count, f.Const) and isinstance(count.value, int) else FEW
    if steps < FEWEST:
        return None
    if (parts := _additions_last(par, binds)) is not None:
        return parts
    if steps < FEW:  # vectors of functions, of which a row is one or a few
        parts = _split(par, binds, branches)
        return parts if parts and has_functions(parts.second) else None
    sought = with_least_values(par, binds)
    if sought is not binds and (parts := _split(par, sought)) and varying(parts.first, masks):
        return parts
    parts = _split(par, binds)
    return parts if parts and (has_functions(parts.second) or varying(parts.first, masks)) else None


def _additions_last(par: f.Par, binds: tuple[f.Bind, ...]) -> Parts | None:
    """The two parts of points that add values of elementary functions to arrays: what is added, and the additions."""
    if not any(out.acc for out in par.outs) or not any(calls_functions(bind.rhs) for bind in binds):
        return None
    whole = replace(par, body=replace(par.body, binds=binds))
    level = _level(whole) or _level(whole, again=True)
    if level is None:
        return None
    numbers = [x for x, out in zip(par.body.results, par.outs, strict=True)
               if not out.acc and isinstance(x, f.Var) and x.name not in level.beside]  # fmt: skip
    kept = tuple(dict.fromkeys([*level.kept, *numbers]))
    first = tuple(level.first(kept))
    made = {var.name for bind in first for var in bind.vars}
    functions = any(calls_functions(bind.rhs) for bind in needed(first, names(level.kept)))
    if not level.kept or not functions or any(var.ty not in FLOATS or var.name not in made for var in kept):
        return None
    keeps = replace(par, space=par.space[-1:], body=f.Block(first, kept), outs=(f.Out("keep"),) * len(kept))
    return Parts(keeps, kept, level.second, adds=True)


def _level(par: f.Par, again: bool = False) -> Level | None:
    try:
        return Level(par, (), again, MOST, follow=True)
    except Unfit:
        return None


def calls_functions(rhs: f.Rhs) -> bool:
    """True for an elementary function of numbers, perhaps in a branch."""
    if isinstance(rhs, f.If):
        return any(calls_functions(bind.rhs) for arm in (rhs.then, rhs.else_) for bind in arm.binds)
    return is_function(rhs)


def _split(par: f.Par, binds: Sequence[f.Bind], branches: bool = True) -> Parts | None:
    """The first part is what is no arithmetic; with `branches`, those that read are arithmetic."""

    def is_first(bind: f.Bind) -> bool:
        return not is_arithmetic(bind) or (not branches and isinstance(bind.rhs, f.If) and reads(bind.rhs))

    adds = {out.acc: x for out, x in zip(par.outs, par.body.results, strict=True) if out.acc}
    slow = {acc.name for acc in adds}  # what is not arithmetic, or needs what is not
    for bind in binds:
        if is_first(bind) or any(name in slow for name in rhs_mentions(bind.rhs)):
            slow.update(var.name for var in bind.vars)
    wanted = set(names(tuple(adds.values())))  # by the first part
    first: list[f.Bind] = []
    for bind in reversed(binds):
        if is_first(bind) or any(var.name in wanted for var in bind.vars):
            first.append(bind)
            wanted.update(rhs_mentions(bind.rhs))
    if len(slow) == len(adds):
        return None
    early = {id(bind) for bind in first if (any(var.name in slow for var in bind.vars) or not bind.vars)
             and not is_condition(bind)}  # fmt: skip
    results = tuple([x for x, out in zip(par.body.results, par.outs, strict=True) if not out.acc])
    second = needed([bind for bind in binds if id(bind) not in early], names(results))
    used = {*names(results), *[name for bind in second for name in rhs_mentions(bind.rhs)]}
    kept = tuple([var for bind in binds if id(bind) in early for var in bind.vars if var.name in used])
    if any(var.ty not in (*FLOATS, f.I64) for var in kept):
        return None
    body = f.Block(tuple(reversed(first)), (*kept, *adds.values()))
    outs = (*[f.Out("keep")] * len(kept), *[out for out in par.outs if out.acc])
    return Parts(f.Par(par.space[-1:], body, outs, par.span), kept, tuple(second))


def is_arithmetic(bind: f.Bind) -> bool:
    """True for a few operations on numbers and elements of arrays, which cannot fail, and which vectors have."""
    block = f.Block((bind,), ())
    return bool(bind.vars) and is_short(block) and droppable(bind.rhs) and not any(map(is_of_one, every(block)))


def is_condition(bind: f.Bind) -> bool:
    """True for a comparison of numbers, and what is made of such: both parts ask it."""
    return bool(bind.vars) and is_arithmetic(bind) and all(var.ty == f.BOOL for var in bind.vars)


def is_of_one(bind: f.Bind) -> bool:
    """True for a function of the runtime library that takes one number at a time, as `lgamma` does."""
    row = TABLE.get(bind.rhs.op) if isinstance(bind.rhs, f.Op) else None
    return row is not None and row.llvm.startswith("rt.")


class Strips:
    """The first part of the points, in buffers.  If it adds nothing, it may have two parts itself: `inner` is the first
    one."""

    def __init__(self, e: BodyEmitter, parts: Parts, size: int = BLOCK) -> None:
        self.e, self.parts, self.size = e, parts, size
        self.buffers: list[str] = []
        self.start = "0"
        par = parts.first
        masks = e.unit.has_masks
        may_be_twice = parts.adds and not varying(par, masks)
        twice = in_parts(par, par.body.binds, masks, branches=False) if may_be_twice else None
        self.inner = Strips(e, twice, size) if twice else None
        self.binds = twice.second if twice else par.body.binds

    def begin(self, first: str, count: str) -> None:
        """Writes the first part of `count` points, at most `size`, from number `first` on."""
        e, w, par, self.start = self.e, self.e.w, self.parts.first, first
        self.buffers = [w.slot(f"[{self.size} x {SCALARS[num(var)]}]", 64) for var in self.parts.kept]
        outer, e.env = e.env, dict(e.env)
        lanes = lanes_of(e, par, [count])

        def in_lanes(lanes: Lanes) -> Values:
            pairs = enumerate(zip(self.parts.kept, self.buffers, strict=True))
            lanes.run(first, {k: Array(var.ty, "null", buffer, (count,)) for k, (var, buffer) in pairs})
            return []

        def one_by_one() -> Values:
            self.points(first, count)
            return []

        if lanes:
            lanes.or_else((), lambda: in_lanes(lanes), one_by_one)
        else:
            one_by_one()
        e.env = outer

    def points(self, first: str, count: str) -> None:
        """Writes the first part point by point, or by LLVM's vectors if it is arithmetic that adds nothing."""
        e, w, loop = self.e, self.e.w, self.parts.first.space[0]
        wide = self.parts.adds and is_short(f.Block(self.binds, ()))
        if self.inner:
            self.inner.begin(first, count)
        if wide:
            e.groups.append(e.unit.metadata("distinct !{}"))
        own, mark = (e.access(len(e.groups) - 1), marked(e, loop, self.binds, wide)) if wide else ("", "")

        def point(i: str) -> None:
            e.define((loop[0],), [w.add(first, i)])
            if self.inner:
                self.inner.resume(w.add(first, i), own)
            e.wide = wide
            e.run(self.binds)
            e.wide = False
            for k, var in enumerate(self.parts.kept):
                w.store(SCALARS[num(var)], e.one(var), self.place(k, i), own)

        w.repeat(count, point, mark)
        if wide:
            e.groups.pop()

    def resume(self, i: str, mark: str) -> None:
        """Defines what the first part gave at point number `i`."""
        i = self.e.w.let(f"sub nuw nsw i64 {i}, {self.start}") if self.start != "0" else i
        for k, var in enumerate(self.parts.kept):
            self.e.define((var,), [self.e.w.load(SCALARS[num(var)], self.place(k, i), mark)])

    def place(self, k: int, i: str) -> str:
        """The address of a point's number in a buffer."""
        w, leaf = self.e.w, SCALARS[num(self.parts.kept[k])]
        return w.element(self.buffers[k], i, SIZES[leaf])


def num(var: f.Var) -> str:
    return expect_type(f.Num, var.ty).name
