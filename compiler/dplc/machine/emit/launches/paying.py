"""Whether a launch pays: by the operations that it does, as far as these are known before; and by where its operands
are.  What reads an array that only the device has is done there, however little it is, unless the host waits for what
it gives: so the update of a bias makes no copies.

A team is one block of threads, of the hundreds that a device has.  It pays where there is much to do in all, and little
in a step: each Par of a larger step is better a launch of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dplc.flat import term as f
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.launches.launching import plain_arrays
from dplc.machine.llvm.literals import number
from dplc.passes.device.kernels import Kernel
from dplc.passes.kernels import work

MOST_OF_A_POINT = 400.0  # operations: a few points that do much are slow on a device, where one thread does each
MOST_OF_A_STEP = float(1 << 16)  # operations that a team does as quickly as some launches
OF_A_TEAM = 0.25  # of the operations of a team count, as it uses a small part of the device


def launch_pays(e: BodyEmitter, par: f.Par, kernel: Kernel, counts: list[str], cell: str) -> str:
    """Whether it does, as i1; `counts` are those of the dimensions, `cell` is that of the kernel."""
    if any(out.kind == "done" and out.kept for out in par.outs):
        return device_pays(e, number(math.inf, "f64"))
    if kernel.geometry == "team":
        return team_pays(e, par)
    points = e.w.product(counts[: len(par.space)])
    total = in_all(e, work.plus(work_of(e, par.body), work.number(1.0)), counts[: len(par.space)])
    most = e.w.let(f"fmul double {as_double(e, points)}, {number(MOST_OF_A_POINT, 'f64')}")
    pays = device_pays(e, e.w.let(f"call double @llvm.minnum.f64(double {total}, double {most})"))
    if kernel.fails or any(made.out.kind == "fold" and isinstance(made.value.ty, f.Num) and not made.out.rank
                           and not made.out.kept for made in kernel.outs):  # fmt: skip
        return pays
    short = e.w.let(f"fcmp ole double {total}, {most}")
    some = e.w.let(f"icmp sgt i64 {points}, 0")  # a sum of no points is the host's: no thread would write it
    close = e.w.let(f"and i1 {short}, {some}")
    return e.w.let(f"select i1 {close}, i1 {near(e, pays, cell, owners(e, kernel))}, i1 {pays}")


def owners(e: BodyEmitter, kernel: Kernel) -> list[str]:
    """The owners of the arrays of numbers that a kernel reads, or writes over."""
    targets = [made.out.target for made in kernel.outs if isinstance(made.out.target, f.Var)]
    read = {var.name: var for var in (*kernel.args, *targets)}
    return [e.value(var)[at] for var in read.values() for at in plain_arrays(var.ty)]


def near(e: BodyEmitter, pays: str, cell: str, owners: list[str]) -> str:
    """Whether a launch pays, or reads an array that only the device has."""
    for owner in owners:
        if owner != "null":
            pays = e.w.let(f"call i1 @rt.device_near(i1 {pays}, ptr {cell}, ptr {owner})")
    return pays


def team_pays(e: BodyEmitter, par: f.Par) -> str:
    w = e.w
    total = w.let(f"fmul double {in_all(e, work_of(e, par.body), [])}, {number(OF_A_TEAM, 'f64')}")
    fine = device_pays(e, total)
    for step in steps(par.body):
        small = w.let(f"fcmp ole double {in_all(e, work_of(e, step), [])}, {number(MOST_OF_A_STEP, 'f64')}")
        fine = w.let(f"and i1 {fine}, {small}")
    return fine


def steps(block: f.Block) -> Iterator[f.Block]:
    """The bindings of a block without its loops, and those of the loops' steps."""
    yield f.Block(tuple([bind for bind in block.binds if not isinstance(bind.rhs, f.For | f.While)]), ())
    for bind in block.binds:
        if isinstance(bind.rhs, f.For | f.While):
            yield from steps(bind.rhs.body)


def device_pays(e: BodyEmitter, total: str) -> str:
    """Asks the runtime, with the number of operations as a double."""
    return e.w.let(f"call i1 @rt.device_pays(double {total})")


def work_of(e: BodyEmitter, block: f.Block) -> work.Work:
    def known(var: f.Var, k: int) -> str | None:
        values = e.env.get(var.name)
        return None if values is None else values[0] if k < 0 else values[2 + k]

    return work.of_block(e.unit.program, block, known)


def in_all(e: BodyEmitter, each: work.Work, counts: list[str]) -> str:
    """The operations of so many points, as a double."""
    total = ""
    for operands, factor in each.items():
        term = number(factor, "f64")
        for operand in (*operands, *counts):
            term = e.w.let(f"fmul double {term}, {as_double(e, operand)}")
        total = e.w.let(f"fadd double {total}, {term}") if total else term
    return total or number(0.0, "f64")


def as_double(e: BodyEmitter, whole: str) -> str:
    return e.w.let(f"sitofp i64 {whole} to double")
