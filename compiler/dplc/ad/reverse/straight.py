"""Reverse mode through operations and constructors: the steps of straight-line code.

y = mul a b              backward:   ca = add ca (mul cy b);  cb = add cb (mul cy a)
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import record

from dplc.ad.reverse import transpose
from dplc.ad.reverse.cotangents import Scope, if_there
from dplc.ad.reverse.tape import Reverse
from dplc.ad.rules import bulk as rules
from dplc.ad.tangents.symbolic_zeros import ZERO_ELEMENTS, Part, all_certain, by_sign
from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of


@record
class Plain:
    """A binding without cotangents: only its forward code remains."""

    bind: f.Bind

    def backward(self, scope: Scope) -> None:
        pass

    def forward(self) -> list[f.Bind]:
        return [self.bind]


@record
class Op:
    reverse: Reverse
    op: f.Op
    y: f.Var
    views: Sequence[f.Op]  # the view that its first operand is, the view that this is a part of, ...
    store: f.Op | None = None  # reads the array, of which all these are parts, out of an array of tuples

    def forward(self) -> list[f.Bind]:
        return [f.Bind((self.y,), self.op)]

    def backward(self, scope: Scope) -> None:
        part = self.reverse.packed(scope, self.y)
        if part is None:
            return
        if not rules.known(self.op):
            raise rules.refuse(self.op)
        if OPS[self.op.op].scalar:
            self.row(scope, part)
        else:
            if_there(scope, part, self.bulk)

    def bulk(self, scope: Scope, part: Part) -> None:
        op = transpose.through(scope.b, self.op, self.views) if self.op.op == "index" else self.op
        if op.op == "index" and self.store is not None:
            transpose.in_store(self.reverse, scope, self.store, op, part)
        else:
            transpose.transpose(self.reverse, scope, op, self.y, part)

    def row(self, scope: Scope, part: Part) -> None:
        """A scalar operation: its derivative rule, read as a linear map of the cotangent, for each active operand."""
        if part.nullable:
            if_there(scope, part, self.row)
            return
        nodes = [(i, node) for i in rules.flows(self.op) for node in self.reverse.nodes(self.op.args[i])]
        active = [(i, node) for i, node in nodes if node is not None and scope.active(node)]
        for i, node in active:
            t = rules.scalar_part(scope.b, self.op, i, part, self.y, len(active) == len(self.op.args))
            rank = rank_of(self.op.args[i].ty)
            if rank < rank_of(t.ty):
                t = scope.b.op("sum_to", (t,), rank=rank)
            scope.add(node, self.contribution(scope, i, part, t))

    def contribution(self, scope: Scope, i: int, part: Part, t: f.Atom) -> Part:
        """`t`, which is the contribution of `part` to operand `i`, with its zeros."""
        if not rules.chooses(self.op):
            return part.alike(t, part.part_of_sum(t.ty))
        zeros = Part(part.atom, max(part.zeros, ZERO_ELEMENTS)).part_of_sum(t.ty)
        other = rules.other_chosen(scope.b, self.op, i, part, self.y)
        absent = rules.not_chosen(scope.b, other, part)
        return Part(t, zeros, absent, certain=all_certain([part]), unused=other)


@record
class Update:
    """An update that is undone: `old` is what it overwrites (`reverse/store_on_kill.py`)."""

    step: Op
    old: f.Var

    def forward(self) -> list[f.Bind]:
        array, _, *at = self.step.op.args
        read = f.Op("index", (array, *at), self.step.op.attrs, self.step.op.span)
        return [f.Bind((self.old,), read), *self.step.forward()]

    def backward(self, scope: Scope) -> None:
        self.step.backward(scope)
        array, _, *at = self.step.op.args
        assert isinstance(array, f.Var)
        undone = f.Op("update", (self.step.y, self.old, *at), (("unchecked", True),), self.step.op.span)
        scope.b.binds.append(f.Bind((array,), undone))


@record
class Con:
    reverse: Reverse
    y: f.Var
    con: f.ConMake

    def forward(self) -> list[f.Bind]:
        return [f.Bind((self.y,), self.con)]

    def backward(self, scope: Scope) -> None:
        part = self.reverse.packed(scope, self.y)
        if part is not None and self.con.arg is not None:
            if_there(scope, part, self.open)

    def open(self, scope: Scope, part: Part) -> None:
        """Adds the cotangents in a cell to those of the constructor's argument."""
        assert self.con.arg is not None
        d = self.reverse.d
        leaves = d.tangents.unpack(scope.b, d.convert.open(scope.b, part.atom, self.con.tag))
        self.reverse.add(scope, self.con.arg, [by_sign(scope.b, leaf) for leaf in leaves])
