"""`dpl run`: runs a program, as native code or in the interpreter."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from dpl.core import term
    from dpl.eval.machine.outside import Writable
    from dpl.source import Source

    from dplc.machine.run.program import LoadedImage, Program
    from dplc.pipeline import Context

    Result = TypeVar("Result")

STDIN = "-"
EXPRESSION = "<expression>"
ALLOCATIONS = 1_000_000  # more than most programs need until they are compiled
CACHED = (None, 2)  # optimisation levels whose code is cached: first quick and then optimised code; optimised code


def run_file(file: str, args: list[str]) -> int:
    """Run `dpl run FILE ARGS`, from the cache if it is there."""
    from dplc.machine.run.cache import find

    program = find(file)
    if program is None or (program.text and first(None)):
        from dplc.pipeline import checked_by_environment

        return run_program(file, None, args, None, False, False, None, checked_by_environment())
    from dplc.machine.run.program import load

    warn_again(program)
    return run_loaded(program, load(program), file, args)


def first(effort: int | None) -> bool:
    """Whether LLVM optimises a program before it starts."""
    return effort is not None or os.environ.get("DPL_OPTIMISE") == "first"


def run_loaded(program: Program, loaded: LoadedImage, path: str | None, args: list[str]) -> int:
    """Run a program in memory.  If it is the quick version, it is optimised meanwhile; `path` is the program's file if
    the result is to be kept."""
    from dplc.machine.run import program as running

    if args and not program.reads_arguments:
        from dplc.tools.arguments import refuse_options

        refuse_options(args)
    loaded.stay()
    if not program.text or os.environ.get("DPL_OPTIMISE") == "never":
        return running.run_loaded(program, loaded, args)
    from dplc.machine.run.tiers import Upgrade

    upgrade = Upgrade(program, loaded, path)
    try:
        return running.run_loaded(program, loaded, args, upgrade.look)
    finally:
        upgrade.end()


def must_be_on_device() -> bool:
    return os.environ.get("DPL_DEVICE") == "gpu"


def warn_again(program: Program) -> None:
    """Report the warnings of a program from the cache."""
    if program.warnings:
        from dpl.pickled import loads

        from dplc.tools.report import warn

        warn(loads(program.warnings))


def run_program(file: str | None, expression: str | None, args: list[str], engine: str | None, timings: bool,
                no_cache: bool, effort: int | None, verify: bool, nan: str = "off") -> int:  # fmt: skip
    """Run a program and return its exit code.  If no engine is named, the interpreter runs what native code cannot."""
    import gc

    from dpl.garbage import collected_seldom

    with collected_seldom(ALLOCATIONS):  # also while modules are imported
        run = prepared(file, expression, args, engine, timings, no_cache, effort, verify, nan)
        gc.freeze()  # what the compiler has made is not searched for garbage again, neither now nor at the end
    return run()


def prepared(file: str | None, expression: str | None, args: list[str], engine: str | None, timings: bool,
             no_cache: bool, effort: int | None, verify: bool, nan: str) -> Callable[[], int]:  # fmt: skip
    """What is left to be done of a run when the program is compiled, or found in the cache."""
    from functools import partial

    from dplc.machine.run.cache import find, store, wants_device
    from dplc.pipeline import Context
    from dplc.stack import on_large_stack
    from dplc.tools.report import warn

    context = Context(verify=verify, effort=2 if effort is None else effort, device=wants_device(), finite=nan != "off")
    if timings and context.device:
        os.environ["DPL_DEVICE_TIMES"] = "1"  # the runtime tells them at the end
    uncached = engine == "interp" or effort not in CACHED or no_cache or context.finite
    kept = None if file == STDIN or uncached else file
    program = timed("find", context, lambda: find(kept)) if kept and not verify else None
    if program is not None and not (program.text and first(effort)):
        warn_again(program)
        return partial(run_compiled, program, kept, args, context, timings)
    context.seconds.clear()
    source = text_of(file, expression)
    keep = kept if source.path else None
    engine = "interp" if nan == "warn" else engine  # native code stops at a number that is not finite
    interpretable = engine is None and not must_be_on_device()
    if engine != "interp":
        from dplc.tools.first_run import make_runtime_beside

        make_runtime_beside()
    begins = engine is None and not (timings or no_cache or context.finite or context.device or first(effort))
    begun = begin(source, args, context) if begins else Begun(source)
    if begun.code is not None:
        return partial(end_early, begun, keep, context)
    if engine != "interp":
        program = on_large_stack(lambda: compile_native(begun, context, first(effort), interpretable))
    warn(context.warnings[begun.warned :])
    if program is not None:
        if keep:
            store(keep, [m.source for m in context.modules], program)
        if context.finite:
            return partial(run_finite, program, source, args, context, timings)
        return partial(run_compiled, program, keep, args, context, timings, begun.said)
    if timings:
        tell(context)
    return lambda: on_large_stack(lambda: interpret(source, args, context, nan, begun.said))


class Begun:
    """How far a program has come when it is compiled: a source, or a checked program of which so many warnings are
    reported.  `said` it has printed, and `code` is its exit code if it has ended."""

    def __init__(self, source: Source) -> None:
        self.stage = ""
        self.value: object = source
        self.warned = 0
        self.said = b""
        self.code: int | None = None


def begin(source: Source, args: list[str], context: Context) -> Begun:
    """Interprets a program for a moment, unless DPL_INTERPRET is 0."""
    from dpl.core.promising import promising

    from dplc.pipeline import compile_to
    from dplc.stack import on_large_stack
    from dplc.tools import first_tier
    from dplc.tools.report import warn, wishes

    begun = Begun(source)
    if (seconds := first_tier.seconds_allowed()) and not wishes.denied:
        begun.stage = "check"
        begun.value = program = on_large_stack(lambda: compile_to("check", source, context)[1])
        warn(context.warnings)
        begun.warned = len(context.warnings)
        refuse_unread(args, program)
        if promising(program):
            begun.said, begun.code = first_tier.interpreted(program, args, seconds, context.verify)
    return begun


def refuse_unread(args: list[str], program: term.Program) -> None:
    """Raises UsageError for options among the arguments, if the program does not read these."""
    from dpl.core.promising import reads_arguments

    if args and not reads_arguments(program):
        from dplc.tools.arguments import refuse_options

        refuse_options(args)


def end_early(begun: Begun, keep: str | None, context: Context) -> int:
    """Ends a program that has ended in the interpreter.  In its second run, it is compiled for the next ones."""
    from dplc.machine.run.cache import ran_before, store
    from dplc.stack import on_large_stack

    if keep and ran_before(keep):
        program = on_large_stack(lambda: compile_native(begun, context, False, True))
        if program is not None:
            store(keep, [m.source for m in context.modules], program)
    assert begun.code is not None
    return begun.code


def run_finite(native: Program, source: Source, args: list[str], context: Context, timings: bool) -> int:
    """Run a program whose calls look for numbers that are not finite.  If one finds some, the interpreter says why,
    from the last checkpoint on; or runs the program again if no operation made them."""
    from dpl.diagnostics import DplError

    from dplc.machine.run.program import load
    from dplc.stack import on_large_stack
    from dplc.tools.forerun import Resumed, forerun
    from dplc.tools.nonfinite import explain, is_ours, run_again

    loaded = timed("load", context, lambda: load(native))
    if timings:
        tell(context)
    try:
        return run_loaded(native, loaded, None, args)
    except DplError as error:
        if not is_ours(error):
            raise
        failure, lines = error, loaded.lines_written()
    program = on_large_stack(lambda: checked(source, context))
    own = {module.source for module in context.modules}
    near = forerun(program, context.modules, args, "nonfinite", stops_there=True)

    def explained() -> int:
        if isinstance(near, Resumed) and (found := explain(near.program, own, args, near.given)):
            raise found
        return run_again(program, own, args, lines, failure)

    return on_large_stack(explained)


def run_compiled(program: Program, kept: str | None, args: list[str], context: Context, timings: bool,
                 said: bytes = b"") -> int:  # fmt: skip
    """Run a compiled program, which has printed `said` already."""
    from dplc.machine.run.program import load

    loaded = timed("load", context, lambda: load(program))
    if timings:
        tell(context)
    if not said:
        return run_loaded(program, loaded, kept, args)
    loaded.already(said)
    try:
        return run_loaded(program, loaded, kept, args)
    finally:
        if loaded.differs():
            differs(context)


def differs(context: Context) -> None:
    """Native code has not printed what the interpreter had."""
    from dpl.diagnostics import Bug

    if context.verify:
        raise Bug("the interpreter printed something else than native code")
    said = "note: the first lines are the interpreter's; native code differs, and its lines follow (DPL_INTERPRET=0)"
    print(said, file=sys.stderr)


def timed(name: str, context: Context, work: Callable[[], Result]) -> Result:
    """The result of the work.  Its time is noted under this name."""
    begin = time.perf_counter()
    result = work()
    context.seconds[name] = time.perf_counter() - begin
    return result


def text_of(file: str | None, expression: str | None) -> Source:
    """The program: an expression, the standard input, or a file.  Raises E0511 for a notebook."""
    from pathlib import Path

    from dpl.diagnostics import DplError
    from dpl.syntax.load import decoded, read

    from dplc.tools.streams import standard_input

    if expression is not None:
        return of_expression(decoded(os.fsencode(expression), EXPRESSION))
    if file == STDIN:
        return standard_input()
    assert file is not None
    if file.endswith(".ipynb"):
        title = f"{file} is a notebook, not a program or a page"
        raise DplError.at("E0511", title, helps=(f"its cells are run by  dpl run {file}",))
    return read(Path(file))


def of_expression(text: str) -> Source:
    """The program that an expression or declarations on the command line are.  Raises DplError with the syntax errors,
    in the text as the user wrote it."""
    from dpl.source import Source
    from dpl.syntax import tree
    from dpl.syntax.formatter.shape import spine
    from dpl.syntax.parse import parse_input

    found = parse_input(Source(EXPRESSION, text))
    if isinstance(found, tree.File):
        return Source(EXPRESSION, text)
    while isinstance(found, tree.Seq | tree.Let):
        found = found.second if isinstance(found, tree.Seq) else found.body
    head = spine(found)[0]
    prints = isinstance(head, tree.Var) and head.name in ("print", "print_string")
    return Source(EXPRESSION, f"do {text}" if prints else f"do print ({text}\n)")


def compile_native(begun: Begun, context: Context, first: bool, may_be_interpreted: bool) -> Program | None:
    """The linked program, optimised or (unless `first`) quick, or None, with a warning, if it must be interpreted.  If
    it may not be, raises DplError."""
    from dpl.core.promising import reads_arguments
    from dpl.diagnostics import Diagnostic, DplError
    from dpl.node import replace
    from dpl.pickled import dumps

    from dplc.machine.run.linked import linked, quickly_linked
    from dplc.passes import NeedsInterpreter
    from dplc.pipeline import compile_from

    def made(core: term.Program) -> Program:
        if first:
            compiled = compile_from("check", core, "object", context)[1]
            return timed("link", context, lambda: linked(compiled, context.watched, context.placed))
        text, sites = compile_from("check", core, "llvm", context)[1]
        return timed("object", context, lambda: quickly_linked(text, sites.to_json()))

    core = compile_from(begun.stage, begun.value, "check", context)[1]
    try:
        program = made(core)
        program.reads_arguments = reads_arguments(core)
        program.warnings = dumps(context.warnings) if context.warnings else b""
        return program
    except NeedsInterpreter as need:
        refusal = Diagnostic("W0219", f"native code does not know this: {need.reason}", need.span, helps=need.helps)
        if not may_be_interpreted:
            raise DplError(replace(refusal, denied=True)) from need
        slower = "the interpreter runs the program, far more slowly"
        context.warnings.append(replace(refusal, helps=(*need.helps, slower)))
        return None


def interpret(source: Source, args: list[str], context: Context, nan: str, said: bytes) -> int:
    """Interpret a program, which has printed `said` already."""
    from dplc.tools.first_tier import Rest

    program = checked(source, context)
    refuse_unread(args, program)
    if nan == "off":
        return interpret_program(program, args, Rest(said) if said else sys.stdout)
    from dplc.tools.nonfinite import interpret

    return interpret(program, {module.source for module in context.modules}, args, nan)


def checked(source: Source, context: Context) -> term.Program:
    """The program in core, for the interpreter.  Its warnings are reported, unless that has been done."""
    from dplc.pipeline import Context, compile_to
    from dplc.tools.report import warn

    fresh = Context(verify=context.verify)
    program = compile_to("check", source, fresh)[1]
    context.modules = fresh.modules
    if not context.warnings:
        warn(fresh.warnings)
    return program


def interpret_program(program: term.Program, args: list[str], out: Writable) -> int:
    """Runs a program in the interpreter and returns its exit status."""
    from dpl.debug.engine import engine_for
    from dpl.eval.run import ProgramExit, run

    try:
        run(program, args=args, out=out, engine=engine_for(program))
    except ProgramExit as stop:
        return stop.code & 0xFF
    return 0


def tell(context: Context) -> None:
    """Print the time that each stage took."""
    total = sum(context.seconds.values())
    for name, seconds in context.seconds.items():
        print(f"{name:>10} {seconds * 1e3:8.1f} ms {100 * seconds / total:5.1f} %", file=sys.stderr)
    print(f"{'total':>10} {total * 1e3:8.1f} ms", file=sys.stderr)
