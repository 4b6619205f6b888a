"""A loop of small steps -> the kernel of a team (`team.py`).

done, all = par t < 1 to done, keep { for i < n { x = par ...; c = matmul ... }; yield true, s }
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import replace

from dplc.flat import term as f
from dplc.machine.cuda.points import Places
from dplc.machine.cuda.team import Team
from dplc.machine.cuda.team_par import TeamPar
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.local_arrays import local_arrays
from dplc.machine.emit.module.unit import Unit
from dplc.machine.llvm.writer import Values
from dplc.machine.runtime.failure_codes import Failure
from dplc.passes.device.escape import staying
from dplc.passes.device.kernels import Kernel
from dplc.passes.device.team_steps import is_team
from dplc.passes.device.values import is_shared


class TeamEmitter(Team):
    """The entry of a kernel under construction.  `plan` makes kernels of the Pars of steps, `body_of` gives the bodies
    of functions."""

    def __init__(
        self, unit: Unit, kernel: Kernel, may_fail: Callable[[str], bool],
        plan: Callable[[f.Par], Kernel | str], body_of: Callable[[str], f.Block],
    ) -> None:  # fmt: skip
        super().__init__(unit, kernel, may_fail)
        self.plan, self.body_of = plan, body_of

    def work(self, where: Places) -> str:
        (level,) = self.kernel.levels
        self.begin()
        self.define((level.par.space[0][0],), ["0"])
        self.run(level.par.body.binds)
        for k, made in enumerate(self.kernel.outs):
            row = arrays.array_of(made.value.ty, self.value(made.value))
            self.require(self.w.let(f"icmp ne ptr {row.data}, null"), Failure.SHAPE, 0)  # a zero of any shape
            arrays.check_shape(self, where.sizes[k], row.dims, 0, Failure.SHAPE)
            self.copy(row.elem, where.places[k], row.data, self.w.product(row.dims))
        self.checked()
        return ""

    # ---- right-hand sides

    def rhs(self, bind: f.Bind) -> Values:
        if self.alone:
            return super().rhs(bind)
        match bind.rhs:
            case f.Par() as par if is_team(par):
                return self.point(par)
            case f.Par() as par:
                kernel = self.plan(par)
                assert isinstance(kernel, Kernel)
                return TeamPar(self, kernel, bind.vars).write()
            case f.Call(name, args) if any(is_shared(x.ty) for x in (*bind.vars, *args)):
                return self.in_line(name, args)
            case f.If(f.Var() as cond, then) if self.one(cond) == "true":  # a device has done it
                return self.block(then)
            case f.Op("array"):
                self.framed = bool(bind.vars) and all(var.name in self.staying for var in bind.vars)
                values = super().rhs(bind)
                self.framed = False
                return values
            case _:
                return super().rhs(bind)

    def point(self, par: f.Par) -> Values:
        """The point of a Par for a team, such as those in functions that the host calls, too."""
        self.define((par.space[0][0],), ["0"])
        self.run(par.body.binds)
        rows = [self.value(result) for result in par.body.results[1:]]
        return ["true", *(leaf for owner, data, *dims in rows for leaf in (owner, data, "1", *dims))]

    def in_line(self, name: str, args: tuple[f.Atom, ...]) -> Values:
        """A call of a function that reads or makes arrays of numbers, by its body."""
        body, params = self.body_of(name), self.unit.program.fns[name].params
        given = [self.value(arg) for arg in args]
        outer = self.env, self.staying, self.local, self.ready, self.separate  # by names, which are the function's own
        self.env, self.staying, self.ready, self.separate = {}, staying(body), set(), {}
        self.local = local_arrays(replace(self.unit.program.fns[name], body=body))
        for param, values in zip(params, given, strict=True):
            self.define((param,), values)
        values = self.block(body)
        self.env, self.staying, self.local, self.ready, self.separate = outer
        return values
