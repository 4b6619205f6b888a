"""`dpl run`: runs a program, as native code or in the interpreter."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dpl.node import replace

if TYPE_CHECKING:
    from dpl.core.term import Program
    from dpl.source import Source

    from dplc.pipeline import Context

STDIN = "-"
USUAL = 2  # LLVM's optimisation level; only code at this level is cached


def run_from_cache(args: list[str]) -> int | None:
    """Run `dpl run FILE ARGS` from the cache.  Returns the exit code, or None if the program is not cached or there are
    options."""
    if not args or args[0].startswith("-"):
        return None
    from dplc.machine.run.cache import find

    compiled = find(Path(args[0]))
    if compiled is None:
        return None
    from dplc.machine.run.jit import execute

    if compiled.warnings:
        from dplc.tools.report import warn

        warn(pickle.loads(compiled.warnings))
    return execute(compiled, args[1:])


def run_program(file: str | None, expression: str | None, args: list[str], engine: str | None, timings: bool,
                no_cache: bool, effort: int, verify: bool) -> int:  # fmt: skip
    """Run a program and return its exit code.  If no engine is named, the interpreter runs what native code cannot."""
    from dplc.pipeline import Context
    from dplc.stack import on_large_stack
    from dplc.tools.report import warn

    source = text_of(file, expression)
    context = Context(verify=verify, effort=effort)
    compiled = None if engine == "interp" else on_large_stack(lambda: compile_native(source, context, engine is None))
    warn(context.warnings)
    if timings:
        tell(context)
    if compiled is None:
        return on_large_stack(lambda: interpret(source, args, context))
    if source.path and not no_cache and effort == USUAL:
        from dplc.machine.run.cache import store

        if context.warnings:
            compiled = replace(compiled, warnings=pickle.dumps(context.warnings))
        store(source.path, [m.source for m in context.modules], compiled)
    from dplc.machine.run.jit import execute

    return execute(compiled, args)


def text_of(file: str | None, expression: str | None) -> Source:
    from dpl.source import Source
    from dpl.syntax.load import decoded, read

    from dplc.tools.streams import standard_input

    if expression is not None:
        return Source("<expression>", f"do print (\n{decoded(os.fsencode(expression), '<expression>')}\n)")
    if file == STDIN:
        return standard_input()
    assert file is not None
    return read(Path(file))


def compile_native(source: Source, context: Context, may_be_interpreted: bool):
    """The object code, or None, with a warning, if the program must be interpreted.  If it may not be, raises
    DplError."""
    from dpl.diagnostics import Diagnostic, DplError

    from dplc.passes import NeedsInterpreter
    from dplc.pipeline import compile_to

    try:
        return compile_to("object", source, context)[1]
    except NeedsInterpreter as need:
        refusal = Diagnostic("W0219", f"native code does not know this: {need.reason}", need.span, helps=need.helps)
        if not may_be_interpreted:
            raise DplError(replace(refusal, denied=True)) from need
        slower = "the interpreter runs the program, far more slowly"
        context.warnings.append(replace(refusal, helps=(*need.helps, slower)))
        return None


def interpret(source: Source, args: list[str], context: Context) -> int:
    from dplc.pipeline import Context, compile_to
    from dplc.tools.report import warn

    fresh = Context(verify=context.verify)
    program = compile_to("check", source, fresh)[1]
    if not context.warnings:
        warn(fresh.warnings)
    return interpret_program(program, args)


def interpret_program(program: Program, args: list[str]) -> int:
    from dpl.eval.run import ProgramExit, run

    try:
        run(program, args=args, out=sys.stdout)
    except ProgramExit as stop:
        return stop.code & 0xFF
    return 0


def tell(context: Context) -> None:
    """Print the time that each stage took."""
    total = sum(context.seconds.values())
    for name, seconds in context.seconds.items():
        print(f"{name:>10} {seconds * 1e3:8.1f} ms {100 * seconds / total:5.1f} %", file=sys.stderr)
    print(f"{'total':>10} {total * 1e3:8.1f} ms", file=sys.stderr)
