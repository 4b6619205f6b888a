"""The cost of computing a value again in backward code, beside the cost of keeping it.

Both are counted in bytes: keeping a number writes 8 bytes and reads them again.  A function such as `exp` costs a
little more than that; an element of an array that is there anyway costs little.

    build i < n { x = index xs i;  r = sqrt x;  y = exp r;  ... }      a point: it depends on its index only
    for i < n state (s = a) { t = exp s;  ... }                        a step: it depends on the step before

The points of a comprehension can be computed again in their backward loop, where all of their values are at hand, and
the forward loop often is not needed any more.  So their costs are counted at an eighth; but twice where the forward
loop stays, as it calls functions that may fail.  Nested loops of points are computed again as a whole: what they keep
is then short-lived and small.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain

from dplc.flat import term as f
from dplc.flat.call_graph import callees
from dplc.flat.copy import Copier
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import binders, blocks, bound_inside, every
from dplc.passes.simplify.purity import droppable

BYTES = {"bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "i32": 4, "u32": 4, "f32": 4}
LENGTH = 32  # assumed, of what is not known
OTHER = 1 << 8  # bytes of data and strings: they may take much memory
QUICK, SLOW = 14, 20  # the costs of a division or a root, and of other functions
READ, VIEW, CELL = 1, 2, 16  # an element, a row, a constructor
FAR = 64  # an element of an array that would be kept for it, and is perhaps much longer
SHARE, OPEN = 8, 2  # the parts of a point's cost that count: of most code, of loops that may fail


def bytes_of(ty: f.Type) -> int:
    """The bytes of a value, arrays included."""
    match ty:
        case f.Num(name):
            return BYTES.get(name, 8)
        case f.Tup(items):
            return sum(map(bytes_of, items))
        case f.Arr(elem, rank):
            return CELL + LENGTH**rank * bytes_of(elem)
        case _:
            return OTHER


class Costs:
    """The costs of right-hand sides; None for what cannot be repeated.  `body` gives the body of a function, or None if
    it is recursive or not written yet."""

    def __init__(self, body: Callable[[str], f.Block | None]) -> None:
        self.body = body
        self.known: dict[str, int | None] = {}
        self.totals: dict[str, bool] = {}
        self.changing: dict[str, bool] = {}

    def of_step(self, rhs: f.Rhs) -> int | None:
        """The cost in a step of a loop."""
        return None if self.changes_others(rhs) else self.of(rhs)

    def of_point(self, rhs: f.Rhs) -> int | None:
        """The cost in a point of a comprehension."""
        cost = self.of_step(rhs)
        if cost is None:
            return None
        inside = [rhs, *(bind.rhs for block in blocks(rhs) for bind in every(block))]
        if any(isinstance(other, f.Call) and not self.total(other.fn) for other in inside):
            return 2 * cost
        known = {name for name, total in self.totals.items() if total}
        stays = any(isinstance(other, f.While) and not droppable(other, known) for other in inside)
        return cost // (OPEN if stays else SHARE)

    def total(self, fn: str) -> bool:
        """True for a function whose calls are dropped when their results are dead."""
        if fn not in self.totals:
            self.totals[fn] = False  # while it is being found out
            body = self.body(fn)
            inner = body is not None and all(self.total(callee) for callee in dict.fromkeys(callees(body)))
            known = {name for name, total in self.totals.items() if total}
            self.totals[fn] = body is not None and inner and all(droppable(b.rhs, known) for b in body.binds)
        return self.totals[fn]

    def changes_others(self, rhs: f.Rhs) -> bool:
        """True if a right-hand side changes arrays in place that are there before it: repeated, it would copy them."""
        match rhs:
            case f.Op(op):
                return OPS[op].changes
            case f.Call(fn):
                return self.changes_given(fn)
            case _:
                return self.reaches_out([rhs], blocks(rhs), {var.name for var in bound_inside(rhs)})

    def changes_given(self, fn: str) -> bool:
        """True if a function changes arrays in place that it is given."""
        if fn not in self.changing:
            self.changing[fn] = False  # while it is being found out
            body = self.body(fn)
            binds = () if body is None else every(body)
            inside = {var.name for bind in binds for var in (*bind.vars, *binders(bind.rhs))}
            self.changing[fn] = body is not None and self.reaches_out([], (body,), inside)
        return self.changing[fn]

    def reaches_out(self, outer: Iterable[f.Rhs], inner: Sequence[f.Block], inside: Collection[str]) -> bool:
        """True if blocks change arrays that are not of their own names `inside`, or that their loops begin with."""
        binds = [bind.rhs for block in inner for bind in every(block)]
        changed = {a for rhs in binds for a in self.changed(rhs)}
        if not changed:
            return False
        given = chain(changed, *(loop.inits for loop in (*outer, *binds) if isinstance(loop, f.For | f.While)))
        return any(isinstance(a, f.Var) and isinstance(a.ty, f.Arr) and a.name not in inside for a in given)

    def changed(self, rhs: f.Rhs) -> tuple[f.Atom, ...]:
        """The arrays that an operation or a call changes in place."""
        match rhs:
            case f.Op(op, args) if OPS[op].changes:
                return args[:1]
            case f.Call(fn, args) if self.changes_given(fn):
                return tuple([a for a in args if isinstance(a.ty, f.Arr)])
            case _:
                return ()

    def of(self, rhs: f.Rhs) -> int | None:
        """The cost of a right-hand side in operations; None if it is not done again, whatever it costs."""
        match rhs:
            case f.Op():
                return operation(rhs)
            case f.TupMake() | f.TupGet():
                return 0
            case f.ConMake():
                return CELL
            case f.Call(fn):
                return self.call(fn)
            case f.If(_, then, else_):
                return self.most((then, else_))
            case f.Switch(_, cases, default):
                return self.most([case.body for case in cases] + ([] if default is None else [default]))
            case f.Build(_, count, body):
                return self.times(count, body, sum(bytes_of(a.ty) for a in body.results) // SHARE)
            case f.For(_, count, _, _, body, collect):
                kept = body.results[len(body.results) - collect :] if collect else ()
                return self.times(count, body, sum(bytes_of(a.ty) for a in kept) // SHARE)
            case f.While(_, _, cond, body):
                both = self.sum(bind.rhs for block in (cond, body) for bind in block.binds)
                return None if both is None else LENGTH * (1 + both)
            case _:
                return None

    def block(self, block: f.Block) -> int | None:
        """The cost of a block."""
        return self.sum(bind.rhs for bind in block.binds)

    def sum(self, given: Iterable[f.Rhs]) -> int | None:
        """The cost of several right-hand sides; None if one of them is not done again."""
        total = 0
        for rhs in given:
            cost = self.of(rhs)
            if cost is None:
                return None
            total += cost
        return total

    def most(self, arms: Iterable[f.Block]) -> int | None:
        """The cost of a branch."""
        costs = [self.block(arm) for arm in arms]
        known = [cost for cost in costs if cost is not None]
        return max(known, default=0) if len(known) == len(costs) else None

    def times(self, count: f.Atom, body: f.Block, more: int) -> int | None:
        """The cost of a loop."""
        one = self.block(body)
        steps = count.value if isinstance(count, f.Const) and isinstance(count.value, int) else LENGTH
        return None if one is None else CELL + min(max(steps, 0), LENGTH) * (1 + one + more)

    def call(self, fn: str) -> int | None:
        """The cost of a function; None if it calls itself."""
        if fn not in self.known:
            self.known[fn] = None  # while it is being computed: a recursive function is not repeated
            body = self.body(fn)
            self.known[fn] = None if body is None else self.block(body)
        return self.known[fn]


def operation(op: f.Op) -> int | None:
    row = OPS[op.op]
    if not row.quiet:
        return None
    if row.elementwise:
        each = 0 if row.cheap or is_square(op) or is_low_bits(op) else QUICK if row.quick else SLOW
        rank = max(map(rank_of, (a.ty for a in op.args)), default=0)
        return CELL + LENGTH**rank * (1 + each) if rank else each
    if row.cheap:
        return 0
    if row.light:
        return READ if op.op == "index" and len(op.args) > rank_of(op.args[0].ty) else VIEW
    rank = max(map(rank_of, (a.ty for a in op.args)), default=0)
    made = 0 if row.reduces and rank == 1 else CELL
    return made + LENGTH ** (3 if row.cubic else max(rank, 1))


def is_square(op: f.Op) -> bool:
    """True for a power that is a product of few factors."""
    return op.op == "powi" and isinstance(op.args[1], f.Const) and op.args[1].value in (1, 2, 3, 4)


def is_low_bits(op: f.Op) -> bool:
    """True for a remainder that is the lowest bits of a number."""
    by = op.args[-1].value if isinstance(op.args[-1], f.Const) else 0
    return op.op == "mod" and isinstance(by, int) and by > 0 and by & (by - 1) == 0


def again(bind: f.Bind, supply: f.Supply, taken: Collection[str]) -> f.Bind:
    """A binding for the backward code, under the same names outside, but those taken, and others inside.  Nothing is
    checked: the forward code would have failed before."""
    vars_ = tuple([f.Var(supply.fresh(v.name), v.ty) if v.name in taken else v for v in bind.vars])
    return f.Bind(vars_, Again(supply, {}).rhs(bind.rhs))


class Again(Copier):
    def rhs(self, rhs: f.Rhs) -> f.Rhs:
        made = super().rhs(rhs)
        return unchecked(made) if isinstance(made, f.Op) else made

    def binds(self, binds: tuple[f.Bind, ...]) -> tuple[f.Bind, ...]:
        return super().binds(tuple([bind for bind in binds if not is_check(bind)]))


def is_check(bind: f.Bind) -> bool:
    return not bind.vars and isinstance(bind.rhs, f.Op) and OPS[bind.rhs.op].fails is Fails.CHECK


def unchecked(op: f.Op) -> f.Op:
    if OPS[op.op].fails is not Fails.BOUNDS or op.attr("unchecked"):
        return op
    return f.Op(op.op, op.args, (*op.attrs, ("unchecked", True)), op.span)
