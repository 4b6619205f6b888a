"""THE SPINE: text -> a program that can run.  Each stage is one function from one file; this page is all of them.

load        text -> trees            the modules of the program, those imported first
check       trees -> core            types, sizes and effects inferred; the standard library from its cache
mono        core -> core             one copy for each type at which something is used
control     core -> core             shift and reset become functions: continuations are arguments
sets        core -> core + sets      which functions can each arrow be?
lower       core + sets -> flat      closures become data: first order from here on
collapse    flat -> flat             functions that call each other in a circle become one
loops       flat -> flat             tail recursion becomes loops
simplify    flat -> flat             inline, fold, share, drop
frames      flat -> flat             recursion that makes references for its own calls becomes two loops
promote     flat -> flat             references that nobody else can see become variables
stores      flat -> flat             references that derivatives flow through become places in arrays passed along
derive      flat -> flat without Ad  forward and reverse mode, to any nesting
constants   flat -> flat             parameters that are the same constant in every call go
tupling     flat -> flat             calls that differ in some arguments only, such as directions, are one call
tidy        flat -> flat             simplify what that left
nulls       flat -> flat             whether a cotangent is null is asked once
orient      flat -> flat             transposed operands of products are read as they are
accumulate  flat -> flat             what is only added to an accumulator is added as it is computed
fuse        flat -> flat             elementwise operations become single loops
rare        flat -> flat             what is done only where a number is none becomes a branch
memory      flat -> flat             reference counts, reuse in place
llvm        flat -> LLVM's text
object      LLVM's text -> machine code, which `machine.jit` loads and runs
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpl.diagnostics import Diagnostic
from dpl.node import node
from dpl.source import Source
from dpl.syntax.load import Module, load

if TYPE_CHECKING:
    from dplc.interface import Export


@dataclass(slots=True)
class Context:
    """What the stages of one compilation share: options, and what they have to say."""

    verify: bool = False
    effort: int = 2  # LLVM's, at most
    testing: bool = False  # expectations are done when they are asked for
    warnings: list[Diagnostic] = field(default_factory=list)
    modules: list[Module] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    library: bool = False  # whether `exports` are wanted, which others than the program call
    exports: list[Export] = field(default_factory=list)


@node
class Stage:
    """`run` gives the stage's result, `show` a readable text of it, `verify` raises Bug if it is not well formed."""

    name: str
    run: Callable[[Any, Context], Any]
    show: Callable[[Any], str]
    verify: Callable[[Any], Any] | None = None


def stages() -> Iterator[Stage]:
    """In order.  A generator, so that what a stage needs is imported when it is reached."""

    def read(source: Source, context: Context) -> list[Module]:
        context.modules = load(source)
        return context.modules

    yield Stage("load", read, show_trees)

    from dpl.types.check import check_all

    from dplc.passes.expects import asked_for

    def check(modules: list[Module], context: Context):
        checked = check_all(modules)
        context.warnings += checked.warnings
        if context.library:
            from dplc.passes.exports import exports

            context.exports = exports(checked)
        return asked_for(checked.program, modules[-1].source) if context.testing else checked.program

    yield Stage("check", check, show_core, verify_core)

    from dplc.passes.control import explicit_control
    from dplc.passes.lambdas import solve
    from dplc.passes.lower import lower
    from dplc.passes.mono import monomorphise

    def mono(program, context: Context):
        return monomorphise(program, exports=[export.entry for export in context.exports])

    yield Stage("mono", mono, show_mono)
    yield Stage("control", lambda mono, _: explicit_control(mono), show_mono)
    yield Stage("sets", lambda mono, _: solve(mono), show_sets)

    from dplc.ad.expand import expand
    from dplc.ad.stores import pass_stores
    from dplc.passes.accumulate import accumulate
    from dplc.passes.collapse import collapse
    from dplc.passes.constants import constant_parameters
    from dplc.passes.frames import frames
    from dplc.passes.fuse import fuse
    from dplc.passes.loops import loops
    from dplc.passes.memory import count_references
    from dplc.passes.nulls import thread_nulls
    from dplc.passes.orient import orient
    from dplc.passes.promote import promote
    from dplc.passes.rare import branch_rarely
    from dplc.passes.simplify import simplify
    from dplc.passes.tupling import tupling

    yield flat("lower", lower)
    yield flat("collapse", collapse)
    yield flat("loops", loops)
    yield flat("simplify", simplify)
    yield flat("frames", frames)
    yield flat("promote", promote)
    yield flat("stores", pass_stores)
    yield flat("derive", expand)
    yield flat("constants", constant_parameters)
    yield flat("tupling", tupling)
    yield flat("tidy", simplify)
    yield flat("nulls", thread_nulls)
    yield flat("orient", orient)
    yield flat("accumulate", accumulate)
    yield flat("fuse", fuse)
    yield flat("rare", branch_rarely)
    yield Stage("memory", lambda program, _: count_references(program), show_flat)

    from dplc.machine.codegen import Compiled, assemble, emit_text

    yield Stage("llvm", lambda program, _: emit_text(program), lambda made: made[0])
    yield Stage(
        "object",
        lambda made, context: Compiled(assemble(made[0], most=context.effort), made[1].to_json()),
        lambda made: f"{len(made.code)} bytes",
    )


def flat(name: str, transform: Callable[[Any], Any]) -> Stage:
    """A stage that gives flat."""
    return Stage(name, lambda program, _: transform(program), show_flat, verify_flat)


def show_trees(modules: list[Module]) -> str:
    from dpl.syntax.show import show

    return "\n".join(show(module.tree) for module in modules)


def show_core(program) -> str:
    from dpl.core.show import show

    return show(program)


def verify_core(program) -> None:
    from dpl.core.verify import verify

    verify(program)


def show_mono(mono) -> str:
    from dplc.passes.show import show_mono

    return show_mono(mono)


def show_sets(solved) -> str:
    from dplc.passes.show import show_sets

    return show_sets(solved)


def show_flat(program) -> str:
    from dplc.flat.show import show

    return show(program)


def verify_flat(program) -> None:
    from dplc.flat.verify import verify

    verify(program)


NAMES = (
    "load", "check", "mono", "control", "sets", "lower", "collapse", "loops", "simplify", "frames", "promote", "stores",
    "derive", "constants", "tupling", "tidy", "nulls", "orient", "accumulate", "fuse", "rare", "memory", "llvm",
    "object",
)  # fmt: skip


def compile_to(name: str, source: Source, context: Context) -> tuple[Stage, Any]:
    """Runs the stages up to the one of that name; that stage, and its result."""
    return compile_from("", source, name, context)


def compile_from(start: str, value: Any, name: str, context: Context) -> tuple[Stage, Any]:
    """The same from the result of the stage `start` on."""
    begin = time.perf_counter()
    for stage in stages():
        if start:
            start = "" if stage.name == start else start
            continue
        value = stage.run(value, context)
        if context.verify and stage.verify:
            stage.verify(value)
        now = time.perf_counter()
        context.seconds[stage.name] = now - begin
        begin = now
        if stage.name == name:
            return stage, value
    raise ValueError(name)
