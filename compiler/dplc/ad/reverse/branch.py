"""Reverse mode through branches.

    y = if c { t = ...; yield t }      forward:   y, k = if c { t = ...; yield t, (t, 0.0) } else { yield x, (0.0, b) }
        else   { yield x }      =>    backward:  cx = if c { t = k.0; ... } else { b = k.1; ... }

The branches keep a tuple whose slots they share, for each part of the tuples that they keep; a slot that a branch does
not fill holds zero or null.

A loop that goes along a list keeps the numbers that it reads, and which branch ran, in place of the rest of the list:
an array of numbers is filled and freed at once, where data are counted one by one.  So does a recursive function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.node import field, record

from dplc.ad.activity import Node
from dplc.ad.reverse.branch_records import BranchRecords, fits
from dplc.ad.reverse.cotangents import Inner, Scope, branch
from dplc.ad.reverse.tape import Reverse, Runs, Tape
from dplc.ad.tangents.symbolic_zeros import MAYBE_ZERO, NO_ZEROS, Part, by_sign, nowhere, signed
from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.copy import Renamed
from dplc.flat.walk import blocks as inner_blocks
from dplc.flat.walk import with_branches

FEW = 4  # numbers that are kept in place of what they were read from


@record
class Branch:
    """Reverses an If or a Switch."""

    reverse: Reverse
    tape: Tape
    bind: f.Bind
    tapes: list[Tape] = field(default_factory=list)
    kept: list[list[f.Var]] = field(default_factory=list)  # the variables that each branch keeps
    slots: list[f.Var] = field(default_factory=list)  # results of the forward code, beside those of the binding
    places: list[list[int]] = field(default_factory=list)  # the slots that each branch fills
    told: int | None = None  # the slot that tells which branch ran, where the scrutinee is not kept
    done: f.Bind | None = None  # the forward code: every branch around asks for it

    def __post_init__(self) -> None:
        rhs = self.bind.rhs
        payloads = [case.payload for case in rhs.cases] if isinstance(rhs, f.Switch) else []
        for i, block in enumerate(inner_blocks(rhs)):
            payload = payloads[i] if i < len(payloads) else None
            params = () if payload is None else (payload,)
            self.tapes.append(Tape(self.reverse, block, params, self.tape, self.tape.runs, integer(1)))
        self.forget()

    def forget(self) -> None:
        self.told, self.done, self.slots = None, None, []
        self.kept, self.places = [[] for _ in self.tapes], [[] for _ in self.tapes]

    def backward(self, scope: Scope) -> None:
        self.forget()
        parts = self.reverse.result_parts(scope, self.bind.vars)
        if any(parts):
            writes = [lambda inner, i=i: self.alternative(inner, i, parts) for i in range(len(self.tapes))]
            rhs, recorded = self.bind.rhs, fits(self.tape, self.bind, scope)  # a record need not keep the condition
            branch(
                scope,
                [frozenset(tape.names) for tape in self.tapes],
                writes,
                lambda blocks: self.build(scope, blocks),
                rhs.cond if isinstance(rhs, f.If) and not recorded else None,
            )

    def alternative(self, scope: Inner, i: int, parts: Sequence[Part | None]) -> None:
        """The backward code of branch `i`."""
        tape = self.tapes[i]
        opened = self.open(scope, i)
        at = 0
        for result in tape.block.results:
            count = len(self.reverse.nodes(result))
            self.reverse.add(scope, result, parts[at : at + count])
            at += count
        tape.backward(scope)
        if opened is not None:
            self.shut(scope, i, *opened)

    def open(self, scope: Inner, i: int) -> tuple[Node, Part | None] | None:
        """Takes the cotangent of the scrutinee apart, so that that of the payload is updated in place.  Where it
        is null it is certain of the payload's floats that they are symbolic zeros."""
        rhs, params = self.bind.rhs, self.tapes[i].params
        if not isinstance(rhs, f.Switch) or not params:
            return None
        (node,) = self.reverse.nodes(rhs.scrutinee) or (None,)
        if node is None or not scope.active(node):
            return None
        part = scope.get(node)
        targets = self.reverse.nodes(params[0])
        if part is None or not targets:
            return node, part
        convert, tangents, tag = self.reverse.d.convert, self.reverse.tangents, rhs.cases[i].tag
        some = scope.b.inner()
        leaves = tangents.unpack(some, convert.open(some, part.atom, tag))
        nothing = f.Block((), tuple(signed(some, None, leaf.ty) for leaf in leaves))
        there = scope.b.choose(scope.b.op("is_null", (part.atom,)), nothing, some.block(*leaves))
        for target, leaf in zip(targets, there, strict=True):
            assert target is not None
            scope.parts[target] = by_sign(scope.b, leaf, certain=True)
        del scope.parts[node]  # uses of the scrutinee in the branch begin one of their own
        return node, part

    def shut(self, scope: Inner, i: int, node: Node, before: Part | None) -> None:
        """Rebuilds the scrutinee's cotangent, and adds the contributions of the arm to the scrutinee as a whole.  If it
        was null, and nothing was added to the payload, as in merging of lists to all but one of them, it stays null."""
        rhs, (payload,) = self.bind.rhs, self.tapes[i].params
        assert isinstance(rhs, f.Switch) and isinstance(rhs.scrutinee.ty, f.Data)
        parts = self.reverse.parts(scope, payload)
        if not any(parts):
            return
        mirror = self.reverse.tangents.mirror(rhs.scrutinee.ty.name)
        types = self.reverse.tangents.leaves(payload.ty)

        def whole(b: Builder) -> f.Atom:
            leaves = [signed(b, part, leaf) for part, leaf in zip(parts, types, strict=True)]
            return self.reverse.d.convert.shut(b, mirror, rhs.cases[i].tag, payload.ty, leaves)

        given = [] if before is None or not before.nullable else [before]
        nothing = nowhere(scope.b, [*given, *(part for part in parts if part)])
        if nothing is None:
            scope.add(node, Part(whole(scope.b), NO_ZEROS))
            return
        some, leaf = scope.b.inner(), self.reverse.leaf[node]
        made = some.block(whole(some))
        (there,) = scope.b.choose(nothing, f.Block((), (f.Const(None, leaf),)), made)
        scope.add(node, Part(there, MAYBE_ZERO))

    def build(self, scope: Scope, blocks: list[f.Block]) -> f.Rhs:
        """The backward branches with their prologues.  Their residuals are known only now."""
        if fits(self.tape, self.bind, scope):
            self.reverse.records = made = BranchRecords.of(self.tape, self.bind, self.tapes, blocks)
            return made.backward
        chosen = [
            self.reverse.choose(block, tape, {p.name for p in tape.params})
            for block, tape in zip(blocks, self.tapes, strict=True)
        ]
        parts = self.by_parts(blocks, [kept for kept, _ in chosen])
        chosen = parts or chosen
        self.kept = [kept for kept, _ in chosen]
        self.places = [self.place(kept) for kept in self.kept]
        if parts and len(blocks) > 1:
            self.told = len(self.slots)
            self.slot(f.BOOL if len(blocks) == 2 else f.I64)
        self.done = None
        done = []
        for block, (kept, again), at in zip(blocks, chosen, self.places, strict=True):
            b, slots = Builder(self.reverse.d.supply), iter([self.slots[k] for k in at])
            there = Renamed({var.name: joined(b, var.ty, slots) for var in kept})
            done.append(there.block(f.Block((*b.binds, *again, *block.binds), block.results)))
        if not parts:
            return with_branches(self.bind.rhs, done)
        if len(done) == 2 and self.told is not None:
            return f.If(self.slots[self.told], done[1], done[0])
        told = integer(0) if self.told is None else self.slots[self.told]
        return f.Switch(told, tuple([f.Case(k, None, block) for k, block in enumerate(done)]), None)

    def by_parts(
        self, blocks: Sequence[f.Block], beside: Sequence[Sequence[f.Var]]
    ) -> list[tuple[list[f.Var], list[f.Bind]]] | None:
        """What the branches keep in place of data, if that is few numbers more than what they keep `beside` it.  The
        data is a state of a loop that they open, or what a call of a recursive function does: they would keep it for
        each step, or call."""
        rhs = self.bind.rhs
        if not isinstance(rhs, f.Switch) or not isinstance(rhs.scrutinee, f.Var):
            return None
        home = self.reverse.home.get(rhs.scrutinee.name)
        if home is None or not isinstance(rhs.scrutinee.ty, f.Data):
            return None
        if home.runs is not Runs.STEPS and not self.reverse.d.boxed(self.reverse.box):
            return None
        chosen = [self.reverse.choice(block, tape) for block, tape in zip(blocks, self.tapes, strict=True)]
        more = [var for (vars_, _), there in zip(chosen, beside, strict=True) for var in vars_ if var not in there]
        return chosen if len(more) <= FEW and all(isinstance(var.ty, f.Num) for var in more) else None

    def place(self, kept: Sequence[f.Var]) -> list[int]:
        """The slots, of the right types, for the parts of the variables that a branch keeps."""
        places: list[int] = []
        for part in [part for var in kept for part in parts_of(var.ty)]:
            free = [k for k, slot in enumerate(self.slots) if slot.ty == part and k not in places]
            if not free:
                self.slot(part)
            places.append(free[0] if free else len(self.slots) - 1)
        return places

    def slot(self, ty: f.Type) -> None:
        self.slots.append(self.tape.own(f.Var(self.reverse.d.supply.fresh("kept"), ty)))

    def forward(self) -> list[f.Bind]:
        if self.done is None:
            blocks = [self.filled(i) for i in range(len(self.tapes))]
            self.done = f.Bind((*self.bind.vars, *self.slots), with_branches(self.bind.rhs, blocks))
        return [self.done]

    def filled(self, i: int) -> f.Block:
        tape = self.tapes[i]
        binds = tape.forward()
        b = Builder(self.reverse.d.supply)
        parts = [part for var in self.kept[i] for part in split(b, var)]
        at: dict[int, f.Atom] = dict(zip(self.places[i], parts, strict=True))
        if self.told is not None:
            at[self.told] = f.Const(i == 1, f.BOOL) if len(self.tapes) == 2 else integer(i)
        items = [at[k] if k in at else dummy(b, slot.ty) for k, slot in enumerate(self.slots)]
        return f.Block((*binds, *b.binds), (*tape.block.results, *items))


def parts_of(ty: f.Type) -> list[f.Type]:
    """What a type is made of: branches share slots for each part of the tuples that they keep."""
    return [part for item in ty.items for part in parts_of(item)] if isinstance(ty, f.Tup) and ty.items else [ty]


def split(b: Builder, atom: f.Atom) -> list[f.Atom]:
    """The parts of a value."""
    if not (isinstance(atom.ty, f.Tup) and atom.ty.items):
        return [atom]
    return [part for k in range(len(atom.ty.items)) for part in split(b, b.get(atom, k))]


def joined(b: Builder, ty: f.Type, parts: Iterator[f.Atom]) -> f.Atom:
    """The value of a type that has these parts."""
    return b.make([joined(b, item, parts) for item in ty.items]) if isinstance(ty, f.Tup) and ty.items else next(parts)


def dummy(b: Builder, ty: f.Type) -> f.Atom:
    """A placeholder: some value of a type, which is never read."""
    match ty:
        case f.Num("bool"):
            return f.Const(False, ty)
        case f.Num():
            return f.Const(0.0 if f.is_float(ty) else 0, ty)
        case f.Str():
            return f.Const("", ty)
        case f.Tup(items):
            return b.make([dummy(b, item) for item in items])
        case _:
            return f.Const(None, ty)
