"""flat -> flat where products of matrices read transposed operands in place, by their flags `ta` and `tb`.

t = transpose b                     m = matmul tb=True a b
m = matmul a t               =>

m = matmul a b                      t = matmul ta=True tb=True b a
t = transpose m
"""

from __future__ import annotations

from collections import Counter

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.kinds import any_of, kinds
from dplc.flat.masked import attribute, exchanged, masked
from dplc.flat.walk import mentions, with_binds, with_blocks, with_body, with_rhs

FOLDED = any_of("matmul", "matmul_acc", "transpose")


def fold_transposes(program: f.Program) -> f.Program:
    found = [fn for fn in program.fns.values() if kinds(fn.body) & FOLDED]
    return replace(program, fns=program.fns | {fn.name: with_body(fn, _Folder(fn).block(fn.body)) for fn in found})


class _Folder:
    """One function: its matrix products and transpositions so far, and how often each variable is mentioned."""

    def __init__(self, fn: f.Fn) -> None:
        self.uses = Counter(mentions(fn.body))
        self.made: dict[str, f.Op] = {}

    def block(self, block: f.Block) -> f.Block:
        if not kinds(block) & FOLDED:
            return block
        binds = []
        for bind in block.binds:
            rhs = with_blocks(bind.rhs, self.block)
            if isinstance(rhs, f.Op) and rhs.op in ("matmul", "matmul_acc", "transpose"):
                rhs = self.turned(rhs)
                if isinstance(bind.vars[0].ty, f.Arr) and bind.vars[0].ty.rank == 2:
                    self.made[bind.vars[0].name] = rhs
            binds.append(with_rhs(bind, rhs))
        return with_binds(block, [bind for bind in binds if not self.is_dead(bind)])

    def is_dead(self, bind: f.Bind) -> bool:
        return bind.vars != () and bind.vars[0].name in self.made and not self.uses[bind.vars[0].name]

    def source(self, atom: f.Atom, op: str) -> f.Op | None:
        made = self.made.get(atom.name) if isinstance(atom, f.Var) else None
        return made if made and made.op == op else None

    def turned(self, op: f.Op) -> f.Op:
        if op.op == "transpose":
            turned = op.args[0]
            product = self.source(turned, "matmul")
            if product is None or not isinstance(turned, f.Var) or self.uses[turned.name] != 1:
                return op
            a, b = product.args
            self.use(op.args, (a, b))
            zeros = exchanged(masked(product))
            return _product(product, (b, a), not product.attr("tb"), not product.attr("ta"), zeros)
        *first, a, b = op.args
        ta, tb = bool(op.attr("ta")), bool(op.attr("tb"))
        if turned := self.source(a, "transpose"):
            self.use((a,), turned.args)
            (a,), ta = turned.args, not ta
        if turned := self.source(b, "transpose"):
            self.use((b,), turned.args)
            (b,), tb = turned.args, not tb
        return _product(op, (*first, a, b), ta, tb, masked(op))

    def use(self, old: tuple[f.Atom, ...], new: tuple[f.Atom, ...]) -> None:
        """Counts a use of `old` as a use of `new`."""
        self.uses.subtract(atom.name for atom in old if isinstance(atom, f.Var))
        self.uses.update(atom.name for atom in new if isinstance(atom, f.Var))


def _product(op: f.Op, args: tuple[f.Atom, ...], ta: bool, tb: bool, zeros: int) -> f.Op:
    return replace(op, args=args, attrs=(("ta", ta), ("tb", tb), *attribute(zeros).items()))
