"""Kernels: which Pars a GPU can compute, and how.

    s, z = par i < n to fold 0, keep { ...; yield x, y }        geometry "sums"

A Par qualifies if its points are independent, use numbers, arrays and data from outside, and give numbers, or arrays of
numbers whose lengths are known before.  Points may call functions, branch, loop, fail, and make arrays and
data of their own.  Whatever does not qualify runs on the host.

The geometry says which points a thread does, so that sums have the order of `dpl/prims/sums.py` and everything is the
same on every device:

    points   any points: all results are kept
    sums     a block of threads does 1024 points, one of them each at a time, and then adds up what these give
    rows     a thread does a column of 1024 rows
    groups   a thread does some consecutive points, which add to a copy of the target of their own
    team     one block of threads does one point, and shares the points of its inner Pars (`team_steps.py`)
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from dpl.node import field, node, replace

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.dims import Dims, Known, parts
from dplc.flat.ops.row import Dim, Effect
from dplc.flat.ops.table import OPS
from dplc.flat.show import show_type
from dplc.flat.types import elem_of, is_numbers, nothing, rank_of
from dplc.flat.walk import atoms, blocks, bound_inside, every, mentions, names, used, with_binds, with_inner
from dplc.passes.device.lengths import Lengths
from dplc.passes.device.own_places import own_places
from dplc.passes.device.team_steps import TeamSteps, is_team, works
from dplc.passes.device.values import is_local
from dplc.passes.kernels.nest import Level, nest

MOST_SUMS = 20  # whose numbers fit into shared memory
THREADS = 256  # of a block on the device
BLOCK = 1024  # points of a block of sums
ROOM = 1 << 24  # elements that the copies of a target may have in all
MOST_GROUPS = 16384
NOT_ALONE = "conv"  # how the names of operations begin that have no code for a single thread
MOST_PARAMETERS = 500  # words: the driver takes 4352 bytes
LEAST_GROUPS = 32  # fewer groups of many points have too little parallelism

Geometry = Literal["points", "sums", "rows", "groups", "team"]


@node
class Made:
    """What becomes of one result of the points, `out.kind`.  `row` has the dimensions of a value that is kept and is an
    array, `dims` those of the array that is added to.  If `own`, each point adds to places of its own, and all add
    to one array."""

    out: f.Out
    value: f.Atom
    row: tuple[Dim, ...] = ()
    dims: tuple[Dim, ...] = ()
    own: bool = False

    @property
    def elem(self) -> f.Type:
        return elem_of(self.value.ty)


@node
class Kernel:
    """A Par as a kernel.  `args` are the variables from outside that its points use, `space` the counts of its
    dimensions; a point runs the `loops`, inner Pars whose results are parts of its own.

    known      lengths of arguments that are the same number in every launch
    fails      it may leave a record of a failure
    arena      its threads need memory of their own
    recursive  they need a stack
    in_place   results may be written over their targets"""

    par: f.Par
    args: tuple[f.Var, ...]
    levels: tuple[Level, ...]
    loops: tuple[Level, ...]
    outs: tuple[Made, ...]
    geometry: Geometry
    known: Known = field(default_factory=dict)
    name: str = ""
    fails: bool = False
    arena: bool = False
    recursive: bool = False

    @property
    def space(self) -> tuple[f.Atom, ...]:
        return tuple([count for level in self.levels for _, count in level.par.space])

    @property
    def in_place(self) -> bool:
        return not self.fails


def grid(kernel: Kernel, points: int, columns: int, copies: int, processors: int) -> int:
    """A good number of blocks of threads; with any, the results are the same."""
    blocks = -(-points // BLOCK)
    threads = {
        "points": points, "sums": THREADS * blocks, "groups": copies,
        "rows": -(-points // columns // BLOCK) * columns if columns else 0, "team": THREADS,
    }[kernel.geometry]  # fmt: skip
    return max(1, min(-(-threads // THREADS), 32 * processors))


def groups_of(points: int, size: int) -> int:
    """The groups of points that add to `size` elements; 0 if this does not suit a device."""
    most = min(points, ROOM // max(size, 1), MOST_GROUPS)
    return most if most >= max(1, min(points, LEAST_GROUPS)) else 0


class Devices:
    """Which Pars of a program can be kernels."""

    def __init__(self, program: f.Program) -> None:
        self.program = program
        self.functions: dict[str, str] = {}
        self.group, self.looping = groups(program)

    def why_not(self, par: f.Par) -> str:
        """The reason why a Par is not a kernel; "" if it is."""
        plan = self.plan(par)
        return plan if isinstance(plan, str) else ""

    def plan(self, par: f.Par) -> Kernel | str:
        """The Par as a kernel, without a name; or the reason why it is none."""
        if is_team(par):
            return self.team(without_done(par))
        par = without_done(par)
        if par.ordered:
            return "its points have effects"
        if reason := self.block(par.body):
            return reason
        levels = nest(par)
        if any(level.par.ordered for level in levels):
            return "its points have an order"
        flat = 1
        while flat < len(levels) and all(is_cheap(bind) for bind in levels[flat - 1].before):
            flat += 1
        return self.planned(par, tuple(levels[:flat]), tuple(levels[flat:]))

    def team(self, par: f.Par) -> Kernel | str:
        """The only point of a Par as the kernel of a team."""
        reason = self.team_steps().block(par.body)
        if reason or not works(par.body):
            return reason or "there is nothing that threads can share"
        made = self.planned(par, (Level(par, par.body.binds, ()),), ())
        return made if isinstance(made, str) else replace(made, geometry="team")

    def team_steps(self) -> TeamSteps:
        recursive = {name for name, group in self.group.items() if group in self.looping}
        return TeamSteps(self.program, self.why_not, self.function, recursive)

    def steps_of_team(self, binds: tuple[f.Bind, ...], first: int) -> int:
        """The number of the first binding that a team cannot do, from `first` on."""
        steps = self.team_steps()
        return next((k for k in range(first, len(binds)) if steps.bind(binds[k])), len(binds))

    def planned(self, par: f.Par, levels: tuple[Level, ...], loops: tuple[Level, ...]) -> Kernel | str:
        leaf = (*levels, *loops)[-1].par
        own = {var.name for var in bound_inside(par)}
        args = {a.name: a for a in used(par.body) if isinstance(a, f.Var) and a.name not in own}
        if strange := [a for a in args.values() if not is_local(a.ty)]:
            return f"its points use {show_type(strange[0].ty)}"
        lengths = Lengths(par.body, own, self.program.fns)
        inner = tuple([count for level in loops for _, count in level.par.space])
        outs: list[Made] = []
        for out, value in zip(leaf.outs, leaf.body.results, strict=True):
            made = self.made(leaf, out, value, inner, lengths)
            if isinstance(made, str):
                return made
            outs.append(made)
        geometry = geometry_of(outs)
        if geometry is None:
            return "it has too many sums, or sums of rows and others"
        given = sum(words(a.ty) for a in args.values()) + sum(1 + len(m.row) + len(m.dims) for m in outs)
        if given + sum(len(level.par.space) for level in levels) > MOST_PARAMETERS:
            return "it uses too many variables"
        return Kernel(par, tuple(args.values()), levels, loops, tuple(outs), geometry)

    def made(
        self, par: f.Par, out: f.Out, value: f.Atom, inner: tuple[f.Atom, ...], lengths: Lengths
    ) -> Made | str:  # fmt: skip
        if not is_numbers(elem_of(value.ty)):
            return f"it gives values of type {show_type(value.ty)}"
        if out.kind == "fold":
            return Made(out, value)
        if out.kind == "last":
            return Made(out, value, dims=out.inner)
        if out.kind == "add":
            assert out.acc is not None
            found = self.target(out, lengths)
            own_ = own_places(par, out, value)
            return Made(out, value, (), found, own_) if found else "the lengths of what it adds to are not known before"
        if out.order and inner:
            return "its inner points keep numbers that do not lie side by side"
        row: list[Dim] = list(inner)
        for k in range(rank_of(value.ty)):
            dim = lengths.of(value, k)
            if dim is None:
                dim = out.inner[k] if k < len(out.inner) and not is_zero(out.inner[k]) else None
            if dim is None:
                return "it gives arrays whose lengths are not known before"
            row.append(dim)
        return Made(out, value, row=tuple(row))

    def target(self, out: f.Out, lengths: Lengths) -> tuple[Dim, ...]:
        """The dimensions of the array that is added to; none if they are not known.  A target that is given may be null
        all the same: those by what is added to it come first."""
        assert out.acc is not None
        if found := out.inner or lengths.added({out.acc.name}):
            return found
        if isinstance(out.target, f.Var):
            return tuple([(out.target, k) for k in range(rank_of(out.acc.ty))])
        return ()

    # ---- what points may do

    def block(self, block: f.Block) -> str:
        if any(map(fails, block.binds)):
            return ""  # the host fails in its place, and tells
        return next(filter(None, map(self.bind, block.binds)), "")

    def bind(self, bind: f.Bind) -> str:
        rhs = bind.rhs
        for x in (*bind.vars, *atoms(rhs)):
            if not is_local(x.ty):
                return f"its points use {show_type(x.ty)}"
        match rhs:
            case f.Op(op):
                if OPS[op].shared or op == "copied" or op.startswith(NOT_ALONE):
                    return f"its points do {op}"
                return "" if OPS[op].effects in (Effect.NONE, Effect.OWNERS) else f"its points do {op}"
            case f.Call(name):
                return self.function(name)
            case _:
                return next(filter(None, map(self.block, blocks(rhs))), "")

    def function(self, name: str) -> str:
        if name not in self.functions:
            self.functions[name] = ""  # while it is looked at
            self.functions[name] = self.block(self.program.fns[name].body)
        return self.functions[name]


def without_done(par: f.Par) -> f.Par:
    """The Par without an out that says whether a device has done it."""
    kept = [k for k, out in enumerate(par.outs) if out.kind != "done"]
    if len(kept) == len(par.outs):
        return par
    body = f.Block(par.body.binds, tuple([par.body.results[k] for k in kept]))
    return replace(par, body=body, outs=tuple([par.outs[k] for k in kept]))


def shortened(block: f.Block) -> f.Block:
    """The block, where what comes before a certain failure is gone: the host does it again, and tells."""
    last = next(filter(fails, block.binds), None)
    if last is None:
        return with_binds(block, [with_inner(bind, shortened) for bind in block.binds])
    op = f.Op("fail", (f.Const("", f.STR),))
    return f.Block((f.Bind(last.vars, op),), tuple([nothing(atom.ty) for atom in block.results]))


def fails(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.Op) and bind.rhs.op == "fail"


def known_lengths(kernel: Kernel, dims: Dims) -> Known:
    """The lengths of arguments that are numbers, so that points need not compare them, nor divide by them.  What is
    only indexed is not null: a null array has no lengths, whatever its others are."""
    used_in = Counter(mentions(kernel.par.body))
    for bind in every(kernel.par.body):
        if isinstance(bind.rhs, f.Op) and bind.rhs.op == "index":
            used_in.subtract(names(bind.rhs.args[:1]))
    paths = [path for var in kernel.args if not used_in[var.name] for path in parts(var.name, var.ty)]
    all_ = [((at, k), dims.found.get((at, k))) for at, rank in paths for k in range(rank)]
    return {place: length for place, length in all_ if isinstance(length, f.Const)}


def words(ty: f.Type) -> int:
    """How many parameters a variable from outside is."""
    match ty:
        case f.Tup(items):
            return sum(map(words, items))
        case f.Arr(_, rank):
            return 1 + rank
        case _:
            return 1


def geometry_of(outs: list[Made]) -> Geometry | None:
    kinds = {("rows" if made.out.rank else "sums") if made.out.kind == "fold" else made.out.kind
             for made in outs if not made.own}  # fmt: skip
    ranks = {made.out.rank for made in outs if made.out.kind == "fold"}
    if len(ranks) > 1 or {"add", "rows"} <= kinds or (ranks == {0} and len(outs) > MOST_SUMS):
        return None
    return "groups" if "add" in kinds else "rows" if "rows" in kinds else "sums" if "sums" in kinds else "points"


def is_cheap(bind: f.Bind) -> bool:
    """True for what may be computed again at each point."""
    match bind.rhs:
        case f.Op(op):
            cheap = OPS[op].light or (OPS[op].elementwise and OPS[op].cheap)
            return cheap and not any(isinstance(var.ty, f.Arr) for var in bind.vars)
        case rhs:
            return isinstance(rhs, f.TupMake | f.TupGet)


def is_zero(atom: f.Atom) -> bool:
    return isinstance(atom, f.Const) and atom.value == 0
