"""Loop fusion: flat -> flat where each chain of elementwise operations on arrays is one loop, a `Map`.

    t = mul x w                       u, s = map (p = x, q = w) { t' = mul p q; u' = exp t'; yield u', u' }
    u = exp t                 =>             keeping u', summing u'
    s = sum u

Operations that read each other's elements at the same index join a *group*, which becomes one `Map`.  A group is open
until another operation reads one of its arrays, or reads it at another index (lifted, or as a sum).  Then the group is
emitted, just before its reader.  Arrays that only the group itself reads are never stored.

A sum of cotangents (`acc_add`) joins a group as an elementwise operation where both are known not to be null: what is
made is not, nor is what an elementwise operation has read.  So a backward step through a loop with arrays as state is
one loop, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dpl.node import field, record, replace

from dplc.flat import term as f
from dplc.flat.kinds import ELEMENTWISE, any_of, kinds
from dplc.flat.masked import masked
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import mentions, names, rhs_mentions, with_binds, with_body, with_inner
from dplc.narrow import expect_type
from dplc.passes.arrays.late_reshapes import late_reshapes

OUTSIDE = Effect.CLOCK | Effect.FOREIGN  # operations with these effects: all earlier work must be done first
LARGEST = 48  # operations in a group; larger ones would run out of registers
FUSED = ELEMENTWISE | any_of("reshape")


def fuse(program: f.Program) -> f.Program:
    found = [fn for fn in program.fns.values() if kinds(fn.body) & FUSED]
    return replace(program, fns=program.fns | {fn.name: with_body(fn, _Fuser(fn).block(fn.body)) for fn in found})


@record
class Group:
    """Operations over arrays of one shape.  `sums` are the sums of its arrays: (variable, summand, rank of the
    result)."""

    rank: int
    members: list[tuple[int, f.Var, f.Op]] = field(default_factory=list)  # (position in the block, variable, operation)
    sums: list[tuple[f.Var, f.Var, int]] = field(default_factory=list)


def terms_of(op: f.Op, name: str) -> Iterator[tuple[f.Var, f.Op]]:
    """The elementwise operations of an inner product, which is the sum of the last one.  In a masked product, a term
    that is NaN is zero where a factor whose zeros win is zero."""
    part = f.Var(name, op.args[0].ty)
    yield part, f.Op("mul", op.args, (), op.span)
    for x in (x for i, x in enumerate(op.args) if masked(op) >> i & 1):
        zero, odd, absent = (f.Var(f"{part.name}.{hint}", f.Arr(f.BOOL, 1)) for hint in ("zero", "odd", "absent"))
        kept, nothing = f.Var(f"{part.name}.kept", part.ty), f.Const(0.0, elem_of(part.ty))
        yield zero, f.Op("eq", (x, nothing))
        yield odd, f.Op("ne", (part, part))
        yield absent, f.Op("and", (zero, odd))
        yield kept, f.Op("select", (absent, nothing, part))
        part = kept


class _Fuser:
    """One function; `uses` counts how often each of its variables is mentioned, `solid` are the arrays that are known
    not to be null at the current place."""

    def __init__(self, fn: f.Fn) -> None:
        self.uses = Counter(mentions(fn.body))
        self.count = 0
        self.solid: set[str] = set()

    def fresh(self, hint: str, ty: f.Type) -> f.Var:
        self.count += 1
        return f.Var(f"{hint}.elem{self.count}", expect_type(f.Num, elem_of(ty)))

    def block(self, block: f.Block) -> f.Block:
        if not kinds(block) & FUSED:
            return block
        scope = _Scope(self)
        found: set[str] = set()
        for position, bind in enumerate(late_reshapes(block, self.uses).binds):
            if not scope.join(position, bind):
                scope.before(bind.rhs)
                scope.binds.append(with_inner(bind, self.block))
            if isinstance(bind.rhs, f.Op):
                more = set(self.shown(bind.vars, bind.rhs)) - self.solid
                self.solid |= more
                found |= more
        scope.seal(None)
        self.solid -= found
        return with_binds(block, scope.binds)

    def is_solid(self, atom: f.Atom) -> bool:
        return not isinstance(atom.ty, f.Arr | f.Data) or (isinstance(atom, f.Var) and atom.name in self.solid)

    def is_elementwise(self, op: f.Op) -> bool:
        return OPS[op.op].elementwise or (op.op == "acc_add" and all(map(self.is_solid, op.args)))

    def shown(self, made: tuple[f.Var, ...], op: f.Op) -> Iterator[str]:
        """The arrays that are not null once an operation is done.  The sum of one that may be null may be the state of
        a loop that only adds to it, and stays a sum."""
        if op.op == "acc_add":
            there = self.is_elementwise(op)
        else:
            there = OPS[op.op].solid(op, self.is_solid)
            if OPS[op.op].elementwise:
                yield from (a.name for a in op.args if isinstance(a, f.Var) and isinstance(a.ty, f.Arr))
        if there:
            yield from (var.name for var in made if isinstance(var.ty, f.Arr))


class _Scope:
    """One block: the groups still open, by the variables they define, and the bindings emitted so far."""

    def __init__(self, fuser: _Fuser) -> None:
        self.fuser = fuser
        self.binds: list[f.Bind] = []
        self.open: dict[str, Group] = {}

    def before(self, rhs: f.Rhs) -> None:
        """Emits the open groups that a right-hand side uses; all of them if it has outside effects."""
        if self.open:
            outside = isinstance(rhs, f.Op) and bool(OPS[rhs.op].effects & OUTSIDE)
            self.seal(None if outside else set(rhs_mentions(rhs)))

    def seal(self, wanted: set[str] | None) -> None:
        """Emits the groups that define any of these variables (None: all groups)."""
        closing = list({id(g): g for n, g in self.open.items() if wanted is None or n in wanted}.values())
        for group in closing:
            self.binds.append(self.map(group))
        closed = {id(group) for group in closing}
        self.open = {name: group for name, group in self.open.items() if id(group) not in closed}

    # ---- joining

    def join(self, position: int, bind: f.Bind) -> bool:
        """Adds an elementwise operation, or a sum of a group's array, to a group.  Returns False if it cannot join
        one."""
        op = bind.rhs
        if not isinstance(op, f.Op):
            return False
        row = OPS[op.op]
        if row.reduces:
            return self.join_sum(position, bind, op)
        if not self.fuser.is_elementwise(op) or not (rank := rank_of(bind.vars[0].ty)):
            return False
        if op.op == "acc_add" and not any(self.element(atom, rank) for atom in op.args):
            return False
        group = self.group(rank, op.args, more=1)
        group.members.append((position, bind.vars[0], op))
        self.open[bind.vars[0].name] = group
        return True

    def join_sum(self, position: int, bind: f.Bind, op: f.Op) -> bool:
        """Joins a sum to the group that computes its operand.  Sums of other arrays are separate kernels."""
        if not any(self.element(atom, rank_of(op.args[0].ty)) for atom in op.args):
            return False
        rank = rank_of(op.args[0].ty)
        terms = list(terms_of(op, f"{bind.vars[0].name}.product")) if op.op == "dot" else []
        group = self.group(rank, op.args, more=len(terms))
        if terms:  # they mention a factor more often than the product does
            self.fuser.uses.subtract(names(op.args))
            self.fuser.uses.update(name for _, term in terms for name in names(term.args))
        for var, term in terms:
            group.members.append((position, var, term))
            self.open[var.name] = group
        summand = terms[-1][0] if terms else expect_type(f.Var, op.args[0])
        left = op.attr("rank") if op.op == "sum_to" else rank - 1
        group.sums.append((bind.vars[0], summand, left))
        self.open[bind.vars[0].name] = group
        return True

    def element(self, atom: f.Atom, rank: int) -> Group | None:
        """The open group that computes an operand elementwise at this rank, if there is one."""
        if not isinstance(atom, f.Var):
            return None
        group = self.open.get(atom.name)
        if group is None or group.rank != rank or any(total.name == atom.name for total, _, _ in group.sums):
            return None
        return group

    def group(self, rank: int, args: tuple[f.Atom, ...], more: int) -> Group:
        """The group for an operation on these operands.  Their groups are merged if there is room for `more`
        members."""
        elsewhere = {a.name for a in args if isinstance(a, f.Var) and a.name in self.open and not self.element(a, rank)}
        if elsewhere:
            self.seal(elsewhere)
        groups = list({id(g): g for g in (self.element(a, rank) for a in args) if g}.values())
        if sum(len(g.members) for g in groups) + more > LARGEST:
            self.seal({a.name for a in args if isinstance(a, f.Var)})
            groups = []
        if len(groups) == 1:
            return groups[0]
        merged = Group(rank, [m for g in groups for m in g.members], [s for g in groups for s in g.sums])
        merged.members.sort(key=lambda member: member[0])
        for g in groups:
            self.open.update({name: merged for name, owner in self.open.items() if owner is g})
        return merged

    # ---- writing

    def map(self, group: Group) -> f.Bind:
        """A group as one Map.  Its results are the arrays that code outside reads, then the sums."""
        elements = {var.name: self.fuser.fresh(var.name, var.ty) for _, var, _ in group.members}
        inside = Counter(name for _, _, op in group.members for name in names(op.args))
        inside.update(summand.name for _, summand, _ in group.sums)
        params: dict[f.Var, f.Var] = {}  # keyed by the input array

        def element(atom: f.Atom) -> f.Atom:
            if not isinstance(atom.ty, f.Arr):
                return atom
            if isinstance(atom, f.Const):  # null, in dead code
                return f.Const(0.0, elem_of(atom.ty))
            if atom.name in elements:
                return elements[atom.name]
            return params.setdefault(atom, self.fuser.fresh(atom.name, atom.ty))

        body = tuple(
            f.Bind((elements[var.name],), replace(op, args=tuple(map(element, op.args))))
            for _, var, op in group.members
        )
        kept = [var for _, var, _ in group.members if self.fuser.uses[var.name] > inside[var.name]]
        results = (*(elements[var.name] for var in kept), *(element(summand) for _, summand, _ in group.sums))
        ranks = (group.rank,) * len(kept) + tuple(left for _, _, left in group.sums)
        _, _, first = group.members[0]
        rhs = f.Map(tuple(params.values()), tuple(params), f.Block(body, results), ranks, first.span)
        return f.Bind((*kept, *(total for total, _, _ in group.sums)), rhs)
