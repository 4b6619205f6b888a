"""Branches of points in lanes whose arms add to arrays or read tuples: each is done by those lanes that are to do it.

    c = eq k j                               m = lanes of c; yes = m, no = not m
    z, a = if c { yield 0.0, a0 }            x = masked load b[k ...] by the mask no
           else { x = index b k        =>    masked addition to a[k ...] by the mask no
                  a1 = acc_index a0 x k      z = select m 0.0 x
                  yield x, a1 }

If all lanes agree on the condition, it stays a branch, and no mask is needed; so does one of arithmetic that is much
work.  What an arm reads or adds to at a place that is no lane's own is there only if some lane does the arm, so that is
asked before.  So it is before much work.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from dplc.flat import term as f
from dplc.flat.walk import every
from dplc.machine.emit.points.lane_operations import has_functions, reads
from dplc.machine.emit.points.lane_reads import Reads
from dplc.machine.emit.points.varying import BY_LANE, BY_ROW
from dplc.machine.emit.scalars.vectors import vector_type
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type

LITTLE = 12  # operations, at most, of an arm that is done by no lane rather than asked for


class Arms(Reads):
    """Writes the branches of a strip."""

    @abstractmethod
    def binds(self, binds: Sequence[f.Bind]) -> None: ...

    def arms(self, variables: tuple[f.Var, ...], branch: f.If) -> None:
        """Writes a branch; the points have one row."""
        w, arms = self.w, (branch.then, branch.else_)
        numbers = [k for k, var in enumerate(variables) if var.name not in self.how.accs]
        types = [self.type_of(variables[k]) for k in numbers]

        def write(arm: f.Block) -> Values:
            self.binds(arm.binds)
            for var, x in zip(variables, arm.results, strict=True):
                if var.name in self.how.accs:
                    self.e.define((var,), self.e.value(x))  # the same array in both arms
            return [self.varied(arm.results[k], variables[k], 0) for k in numbers]

        if self.varies(branch.cond, BY_LANE):
            cond = self.varied(branch.cond, expect_type(f.Var, branch.cond), 0)
            yes, no = [self.masked(arm, mask, types, write) for arm, mask in zip(arms, self.masks(cond), strict=True)]
            flags = vector_type("bool", self.width)
            made = [w.let(f"select {flags} {cond}, {t} {a}, {t} {b}") for t, a, b in zip(types, yes, no, strict=True)]
        else:
            (cond,) = self.of_row(branch.cond, 0)
            made = w.choose(cond, types, lambda: write(branch.then), lambda: write(branch.else_))
        for k, value in zip(numbers, made, strict=True):
            if self.how.of(variables[k]):
                self.parts[variables[k].name] = [value]
            else:
                self.e.define((variables[k],), [value])

    def is_much(self, branch: f.If) -> bool:
        """True for a branch that is worth asking for, or may not read where it is not taken."""
        return any(map(self.must_ask, (branch.then, branch.else_))) or (reads(branch) and not self.e.unit.has_masks)

    def either(self, variables: tuple[f.Var, ...], branch: f.If) -> None:
        """Writes a branch that all points take alike."""
        rows = [(k, var, row) for k, var in enumerate(variables)
                for row in range(self.rows if self.varies(var, BY_ROW) else 1)]  # fmt: skip

        def write(arm: f.Block) -> Values:
            self.binds(arm.binds)
            return [self.varied(arm.results[k], var, row) for k, var, row in rows]

        (cond,) = self.of_row(branch.cond, 0)
        types = [self.type_of(var) for _, var, _ in rows]
        self.define(variables, self.w.choose(cond, types, lambda: write(branch.then), lambda: write(branch.else_)))

    def define(self, variables: Sequence[f.Var], made: Values) -> None:
        """Defines variables by their rows."""
        for var in variables:
            rows = self.rows if self.how.of(var) & BY_ROW else 1
            if self.how.of(var):
                self.parts[var.name] = made[:rows]
            else:
                self.e.define((var,), made[:1])
            made = made[rows:]

    def type_of(self, var: f.Var) -> str:
        name = expect_type(f.Num, var.ty).name
        return vector_type(name, self.width) if self.varies(var, BY_LANE) else SCALARS[name]

    def masks(self, cond: str) -> tuple[str, str]:
        """The lanes of both arms, of those that have points."""
        w, flags = self.w, vector_type("bool", self.width)
        other = w.let(f"xor {flags} {cond}, splat (i1 true)")
        if not self.mask:
            return cond, other
        return w.let(f"and {flags} {self.mask}, {cond}"), w.let(f"and {flags} {self.mask}, {other}")

    def masked(self, arm: f.Block, mask: str, types: Sequence[str], write: Callable[[f.Block], Values]) -> Values:
        """Writes an arm by the lanes of a mask; the others have zeros, or anything."""
        outer = self.mask

        def some() -> Values:
            self.mask = mask
            made = write(arm)
            self.mask = outer
            return made

        if not self.must_ask(arm):
            return some()
        bits = self.w.let(f"bitcast {vector_type('bool', self.width)} {mask} to i{self.width}")
        asked = self.w.let(f"icmp ne i{self.width} {bits}, 0")
        return self.w.choose(asked, types, some, lambda: ["zeroinitializer" for _ in types])

    def must_ask(self, arm: f.Block) -> bool:
        """True for an arm that is much work, or touches a place that is no lane's own."""
        inside = every(arm)
        here = any(isinstance(bind.rhs, f.Op) and self.is_common(bind.rhs) for bind in inside)
        return here or len(inside) > LITTLE or has_functions(inside)

    def is_common(self, op: f.Op) -> bool:
        """True for what touches a place that is no lane's own.  An addition at places that are cut off touches the
        first one, too (`add_each`)."""
        match op:
            case f.Op("index", (_, *at)):
                return not any(self.varies(i, BY_LANE) for i in at)
            case f.Op("acc_index", (_, _, *at)):
                cut = any(isinstance(i, f.Var) and i.name in self.how.cut for i in at)
                return cut or not any(self.varies(i, BY_LANE) for i in at)
            case _:
                return False
