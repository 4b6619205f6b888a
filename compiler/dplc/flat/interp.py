"""flat -> value: a plain evaluator.  The tests of the passes use it as their oracle.

Numbers are Python's, tuples are tuples, null is None; see `Array` and `Cell` for the rest.  Printed text is collected
in `Outside.output`; a run-time error is a `Failure`.  Operations are in `interp_ops`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from dpl.diagnostics import Bug
from dpl.node import field, record

from dplc.flat import term as f
from dplc.flat.interp_ops import Array, Cell, Failure, Outside, apply_op, scalar_row, stack
from dplc.flat.types import elem_of, nothing

Env = dict[str, Any]

__all__ = ["Array", "Cell", "Failure", "Machine", "run"]


def run(program: f.Program) -> str:
    """Runs the program.  Returns the text that `main` prints."""
    machine = Machine(program)
    machine.call(program.main)
    return "".join(machine.outside.output)


@record
class Machine:
    """Evaluates functions of a flat program, whose state is a world of its own: its references, and what it prints."""

    program: f.Program
    outside: Outside = field(default_factory=Outside)
    steps: int = 0  # bindings evaluated, to measure costs

    def call(self, name: str, *args: object) -> tuple:
        """The results of a function.  Tail calls take no stack."""
        while True:
            fn = self.program.fns[name]
            env: Env = {p.name: a for p, a in zip(fn.params, args, strict=True)}
            tail = self.tail_call(fn)
            if tail is None:
                return self.block(fn.body, env)
            self.binds(fn.body.binds[:-1], env)
            name, args = tail.fn, tuple(value(a, env) for a in tail.args)

    def tail_call(self, fn: f.Fn) -> f.Call | None:
        """The call in tail position at the top level of a function, if there is one."""
        match fn.body.binds:
            case (*_, f.Bind(vars_, f.Call() as call)) if vars_ == fn.body.results:
                return call
            case _:
                return None

    def block(self, block: f.Block, env: Env) -> tuple:
        self.binds(block.binds, env)
        return tuple(value(a, env) for a in block.results)

    def binds(self, binds: tuple[f.Bind, ...], env: Env) -> None:
        for bind in binds:
            self.steps += 1
            results = self.rhs(bind, env)
            for var, result in zip(bind.vars, results, strict=True):
                env[var.name] = result

    def rhs(self, bind: f.Bind, env: Env) -> tuple:  # noqa: C901 -- one case per form
        match bind.rhs:
            case f.Op(_, args):
                return apply_op(self.outside, bind.rhs, [value(a, env) for a in args], bind.vars)
            case f.Call(fn, args):
                return self.call(fn, *(value(a, env) for a in args))
            case f.Ad(mode, fn):
                raise Bug(f"flat: {mode} of {fn} is still to be taken")
            case f.TupMake(items):
                return (tuple(value(a, env) for a in items),)
            case f.TupGet(tup, index):
                return (value(tup, env)[index],)
            case f.ConMake(_, tag, arg):
                return (Cell(tag, None if arg is None else value(arg, env)),)
            case f.If(cond, then, else_):
                return self.block(then if value(cond, env) else else_, env)
            case f.Switch():
                return self.switch(bind.rhs, env)
            case f.For(index, count, state, inits, body, collect):
                return self.loop(value(count, env), index, None, state, inits, body, collect, env)
            case f.While(state, inits, cond, body, collect):
                return self.loop(None, None, cond, state, inits, body, collect, env)
            case f.Build() as build:
                return self.build(build, value(build.count, env), bind.vars, env)
            case f.Map():
                return self.map(bind.rhs, env)
            case f.Par():
                return self.par(bind.rhs, bind.vars, env)

    def switch(self, switch: f.Switch, env: Env) -> tuple:
        scrutinee = value(switch.scrutinee, env)
        tag = scrutinee.tag if isinstance(scrutinee, Cell) else scrutinee
        for case in switch.cases:
            if case.tag == tag:
                if case.payload is not None:
                    env[case.payload.name] = scrutinee.payload
                return self.block(case.body, env)
        if switch.default is None:
            raise Bug(f"flat: no case for {tag}")
        return self.block(switch.default, env)

    def loop(self, count, index, cond, state, inits, body, collect: int, env: Env) -> tuple:
        values = tuple(value(a, env) for a in inits)
        kept: list[object] = []
        step = 0
        while True:
            env.update(zip((s.name for s in state), values, strict=True))
            if step >= count if cond is None else not self.block(cond, env)[0]:
                return (*values, Array((len(kept),), kept)) if collect else values
            if index is not None:
                env[index.name] = step
            results = self.block(body, env)
            values = results[: len(results) - collect]
            if collect:
                kept.append(results[len(results) - collect :])
            step += 1

    def build(self, build: f.Build, count: int, vars_: tuple[f.Var, ...], env: Env) -> tuple:
        if count < 0:
            raise Failure("R0702", f"negative count {count}")
        rows = [self.block(build.body, env | {build.index.name: i}) for i in range(count)]
        inner = build.inner or [()] * len(vars_)
        sizes = [tuple([value(n, env) for n in one]) for one in inner]
        return tuple(stack([row[k] for row in rows], var.ty, sizes[k]) for k, var in enumerate(vars_))

    def par(self, par: f.Par, vars_: tuple[f.Var, ...], env: Env) -> tuple:
        counts = tuple(value(count, env) for _, count in par.space)
        for k, count in enumerate(counts):
            if count < 0 and 0 not in counts[:k]:
                raise Failure("R0702", f"negative count {count}")
        if any(out.kind == "done" for out in par.outs):
            return tuple(nothing(var.ty).value for var in vars_)
        values: list[list] = [[] for _ in par.outs]
        accs = {out.acc.name: value(out.target, env) for out in par.outs if out.acc and out.target}
        for point in itertools.product(*map(range, counts)):
            here = env | accs | {index.name: i for (index, _), i in zip(par.space, point, strict=True)}
            results = self.block(par.body, here)
            accs = {out.acc.name: made for out, made in zip(par.outs, results, strict=True) if out.acc}
            for made, result in zip(values, results, strict=True):
                made.append(result)
        return tuple(
            accs[out.acc.name] if out.acc else self.out(out, counts, made, var, env)
            for out, made, var in zip(par.outs, values, vars_, strict=True)
        )

    def out(self, out: f.Out, counts: tuple[int, ...], values: list, var: f.Var, env: Env) -> Any:
        if out.kind == "fold":
            total = Array(counts, values).sum_to(out.rank, elem_of(var.ty) if out.kept else var.ty)
            return Array((1,), [total]) if out.kept else total
        if isinstance(var.ty, f.Arr) and var.ty.rank > len(counts):
            inner = tuple(value(n, env) for n in out.inner)
            rows = stack(values, f.Arr(var.ty.elem, var.ty.rank - len(counts) + 1), inner)
            return in_order(Array((*counts, *rows.shape[1:]), rows.items), out)
        return Array(counts, values)

    def map(self, map_: f.Map, env: Env) -> tuple:
        def body(*scalars: object) -> tuple:
            return self.block(map_.body, env | {p.name: s for p, s in zip(map_.params, scalars, strict=True)})

        return fused(body, [value(a, env) for a in map_.inputs], map_.ranks)


def in_order(array: Array, out: f.Out) -> Array:
    """The array with its dimensions in the order that is told."""
    if not out.order:
        return array
    places = {tuple(out.ordered(at)): x
              for at, x in zip(itertools.product(*map(range, array.shape)), array.items, strict=True)}  # fmt: skip
    return Array(tuple(out.ordered(array.shape)), [places[at] for at in sorted(places)])


def fused(body: Callable[..., tuple], inputs: list, ranks: tuple[int, ...]) -> tuple:
    whole = scalar_row(body, inputs)
    results = []
    for k, rank in enumerate(ranks):
        part = Array(whole.shape, [row[k] for row in whole.items])
        results.append(part.sum_to(rank))
    return tuple(results)


def value(atom: f.Atom, env: Env) -> Any:
    return env[atom.name] if isinstance(atom, f.Var) else atom.value
