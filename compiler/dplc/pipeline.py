"""THE SPINE: text -> a program that can run.  Each stage is one function from one file; STAGES is all of them.

{stages}
`machine.run.linked` links the result with the runtime library; `machine.run.program` loads and runs it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpl.diagnostics import Bug, Diagnostic
from dpl.garbage import collected_seldom
from dpl.node import field, node, record
from dpl.source import Source
from dpl.syntax.load import Module, load

if TYPE_CHECKING:
    from dplc.flat.local_names import LocalNames
    from dplc.interface import Export


def checked_by_environment() -> bool:
    """True with DPL_CHECK=1, as in the tests: every compilation verifies the program after each stage."""
    return os.environ.get("DPL_CHECK", "") not in ("", "0")


@record
class Context:
    """Data shared by the stages of one compilation: options, warnings and by-products."""

    verify: bool = field(default_factory=checked_by_environment)
    effort: int = 2  # LLVM's optimisation level, at most
    testing: bool = False  # expectations run on request
    placed: bool = False  # every instruction knows its place, for the profiler
    watched: bool = False  # blocks of memory know who made them, for the profiler
    finite: bool = False  # calls look at whether their results are finite
    warnings: list[Diagnostic] = field(default_factory=list)
    modules: list[Module] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    device: bool = False  # parallel loops may run on a GPU
    library: bool = False  # fill in `exports`, for callers from outside
    only: str = ""  # the one export that is wanted; all of them if empty
    exports: list[Export] = field(default_factory=list)
    names: LocalNames | None = None  # of local variables, filled in for debuggers


@node
class Form:
    """The representation of programs between two stages.  `show` returns a readable text, `verify` raises Bug if the
    program is not well formed, `parse` reads the text back.  They are written as `module:function`, and the modules are
    imported on first use."""

    name: str
    show: str
    verify: str = ""
    parse: str = ""


TREES = Form("trees", "dplc.pipeline:show_trees")
CORE = Form("core", "dpl.core.show:show", "dpl.core.verify:verify")
MONO = Form("mono core", "dplc.passes.closures.show:show_mono")
SETS = Form("core + sets", "dplc.passes.closures.show:show_sets")
FLAT = Form("flat", "dplc.flat.show:show", "dplc.flat.verify:verify", "dplc.flat.parse:parse")
COUNTED = Form("counted flat", "dplc.flat.show:show", "dplc.flat.verify_counts:verify", "dplc.flat.parse:parse")
LLVM = Form("LLVM text", "dplc.pipeline:show_llvm")
CODE = Form("machine code", "dplc.pipeline:show_code")
PTX = Form("PTX", "builtins:str")


@node
class Stage:
    """A stage of the compiler.  `function`, written as `module:function`, takes the result of the previous stage, and
    the Context if `context` is true.  A side stage takes that of the stage `after`.  A stage that `changes` only code
    of certain kinds (`flat/kinds.py`) is not imported for a program without: imports are a third of a short run."""

    name: str
    gives: Form
    what: str
    function: str
    context: bool = False
    after: str = ""
    changes: tuple[str, ...] = ()

    def run(self, value: Any, context: Context) -> Any:
        return value if self.is_idle(value) else self.made(value, context)

    def is_idle(self, value: Any) -> bool:
        """True if the stage changes nothing in a program."""
        if not self.changes:
            return False
        from dplc.flat.kinds import any_of, has

        return not has(value, any_of(*self.changes))

    def made(self, value: Any, context: Context) -> Any:
        function = named(self.function)
        return function(value, context) if self.context else function(value)

    def show(self, value: Any) -> str:
        return named(self.gives.show)(value)

    def verify(self, value: Any) -> None:
        if self.gives.verify:
            named(self.gives.verify)(value)


def named(place: str) -> Callable[..., Any]:
    """The function `module:name`.  Its module is imported only now: a run pays for no stage that it does not need."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


STAGES = (
    Stage("load", TREES, "the modules of the program, those imported first", "dplc.pipeline:run_load", True),
    Stage("check", CORE, "types, sizes and effects inferred; the library from its cache",
          "dplc.pipeline:run_check", True),
    Stage("mono", MONO, "one copy for each type at which something is used", "dplc.pipeline:run_mono", True),
    Stage("cps", MONO, "shift and reset become functions: continuations are arguments",
          "dplc.pipeline:run_cps"),
    Stage("lambda_sets", SETS, "which functions can each arrow be?", "dplc.passes.closures.lambda_sets:solve"),
    Stage("lower", FLAT, "closures become data (defunctionalisation): first order from here on",
          "dplc.pipeline:run_lower", True),
    Stage("mutual", FLAT, "mutually recursive functions (an SCC) become one",
          "dplc.passes.recursion.mutual:merge_mutual_recursion"),
    Stage("tail_calls", FLAT, "tail recursion becomes loops", "dplc.passes.recursion.tail_calls:tail_calls_to_loops"),
    Stage("simplify", FLAT, "inline, fold constants, share common subexpressions, drop dead code",
          "dplc.passes.simplify.simplify:simplify"),
    Stage("linear_recursion", FLAT, "recursion that makes references for its own calls becomes two loops",
          "dplc.passes.recursion.linear_recursion:linear_recursion_to_loops"),
    Stage("promote", FLAT, "references that do not escape become variables", "dplc.passes.recursion.promote:promote"),
    Stage("counted_loops", FLAT, "while loops that count, and recursion that does, are for loops",
          "dplc.passes.recursion.counted_loops:counted_loops"),
    Stage("appended_lists", FLAT, "a list that a loop appends to is made backwards, and turned round at the end",
          "dplc.passes.recursion.appended_lists:appended_lists"),
    Stage("doall", FLAT, "loops that write each element of an array at its own place are comprehensions",
          "dplc.passes.arrays.doall:doall", changes=("update",)),
    Stage("captured_constants", FLAT, "functions know the constants that calls and closures give to them",
          "dplc.passes.simplify.captured_constants:captured_constants"),
    Stage("value_ranges", FLAT, "comparisons that the ranges of indices decide are constants",
          "dplc.passes.simplify.value_ranges:value_ranges"),
    Stage("inline_fields", FLAT, "tuples in arrays, and data, hold numbers in place of arrays of few elements",
          "dplc.passes.scalar_replacement.inline_fields:inline_fields"),
    Stage("small_arrays", FLAT, "arrays of few elements, known in number, become numbers (scalar replacement)",
          "dplc.pipeline:run_small_arrays", True),
    Stage("chosen_elements", FLAT, "the element that is the least, greatest or at an index found is computed again",
          "dplc.passes.arrays.chosen_elements:chosen_elements", changes=("Build",)),
    Stage("strip_mining", FLAT, "comprehensions that ask for halves of an index make two elements at a time",
          "dplc.passes.arrays.strip_mining:strip_mining", changes=("Build",)),
    Stage("equal_parameters", FLAT, "parameters that are equal in every call are one",
          "dplc.passes.simplify.equal_parameters:equal_parameters", changes=("Call",)),
    Stage("raveled_data", FLAT, "data that many steps walk through holds the places of its numbers in an array",
          "dplc.ad.stores.raveled_data:raveled_data", changes=("Ad",)),
    Stage("store_passing", FLAT, "references that derivatives flow through become places in a store",
          "dplc.pipeline:run_store_passing"),
    Stage("differentiate", FLAT, "forward, reverse and Taylor mode, to any nesting",
          "dplc.pipeline:run_differentiate"),
    Stage("constant_parameters", FLAT, "parameters that are the same constant in every call go",
          "dplc.passes.simplify.constant_parameters:constant_parameters"),
    Stage("tupling", FLAT, "calls that differ in some arguments only, such as directions, are one call",
          "dplc.passes.vectors.tupling:tupling"),
    Stage("equal_functions", FLAT, "functions that differ in names only are one",
          "dplc.passes.simplify.equal_functions:equal_functions"),
    Stage("simplify2", FLAT, "simplify what that left", "dplc.passes.simplify.simplify:simplify"),
    Stage("needed_results", FLAT, "functions compute the results that their callers use",
          "dplc.passes.simplify.needed_results:needed_results", changes=("Call",)),
    Stage("small_arrays2", FLAT, "small_arrays, of derivatives in directions of few elements",
          "dplc.passes.scalar_replacement.small_arrays:again"),
    Stage("structure_of_arrays", FLAT, "arrays of tuples that loops add to are an array for each number",
          "dplc.passes.layout.structure_of_arrays:structure_of_arrays"),
    Stage("branch_threading", FLAT, "whether a cotangent is null is asked once",
          "dplc.passes.simplify.branch_threading:thread_branches"),
    Stage("fold_transposes", FLAT, "products read transposed operands as they are",
          "dplc.passes.arrays.fold_transposes:fold_transposes"),
    Stage("accumulate", FLAT, "what is only added to an accumulator is added as it is computed",
          "dplc.pipeline:run_accumulate", True, changes=("acc_add", "acc_index", "matmul_acc", "update")),
    Stage("bounds", FLAT, "indices that are in bounds are not checked", "dplc.passes.arrays.bounds:bounds"),
    Stage("fuse", FLAT, "elementwise operations become single loops", "dplc.passes.arrays.fuse:fuse",
          changes=("elementwise", "reshape")),
    Stage("parallel", FLAT, "loops whose steps have no order become a Par: comprehensions, sums, accumulators",
          "dplc.passes.parallel.parallel:parallel", changes=("Map", "Build", "For", "acc_add")),
    Stage("join", FLAT, "a Par that keeps what another one reads at the same points becomes part of it",
          "dplc.pipeline:run_join", True, changes=("Par",)),
    Stage("row_blocks", FLAT, "a matrix times a vector, and its transpose times what follows, go by blocks of rows",
          "dplc.pipeline:run_row_blocks", True, changes=("matmul",)),
    Stage("distribution", FLAT, "elementary functions in the steps of a loop in order are computed before them",
          "dplc.pipeline:run_distribution", True, changes=("For",)),
    Stage("brief_sums", FLAT, "sums that grow with a loop around them are added in order while they are short",
          "dplc.pipeline:run_brief_sums", True, changes=("Par",)),
    Stage("linear_once", FLAT, "loops over directions compute once what follows from none",
          "dplc.passes.vectors.linear_once:linear_once", changes=("Par",)),
    Stage("columns", FLAT, "what innermost loops read and add to lies side by side: columns in place of rows",
          "dplc.passes.layout.columns:columns", changes=("Par",)),
    Stage("zero_directions", FLAT, "steps and points in which a direction has no part leave out its derivative",
          "dplc.passes.vectors.zero_directions:zero_directions", changes=("Par",)),
    Stage("nan_guards", FLAT, "what is done only where a number is NaN becomes a cold branch",
          "dplc.passes.simplify.nan_guards:branch_on_nan_guards", changes=("select",)),
    Stage("recursion_unrolling", FLAT, "small functions that call themselves several times have these calls inline",
          "dplc.passes.recursion.recursion_unrolling:recursion_unrolling"),
    Stage("sweeps", FLAT, "what a device does at once or keeps: both sweeps of points, sums that only points use",
          "dplc.pipeline:run_sweeps", True),
    Stage("outline", FLAT, "loops of what runs once become functions of their own, which are optimised",
          "dplc.passes.kernels.outline:outline"),
    Stage("place", FLAT, "the host asks for arrays that a device may have written, before it reads them",
          "dplc.pipeline:run_place", True),
    Stage("reference_counts", COUNTED, "reference counts, borrowing, reuse in place",
          "dplc.pipeline:run_reference_counts", True),
    Stage("llvm", LLVM, "the text of the module, and its sites of failure", "dplc.pipeline:run_llvm", True),
    Stage("object", CODE, "optimised by LLVM", "dplc.pipeline:run_object", True),
)  # fmt: skip

SIDE_STAGES = (
    Stage("ptx", PTX, "the kernels of a GPU, for Pars of `reference_counts`", "dplc.machine.cuda.emit:emit_ptx",
          after="reference_counts"),
)  # fmt: skip

# The `run_` functions below import what a program may not need: that takes longer than to compile a small program.
NAMES = tuple(stage.name for stage in STAGES)
SIDE_NAMES = tuple(stage.name for stage in SIDE_STAGES)
READABLE = tuple(stage.name for stage in STAGES if stage.gives.parse)  # stages whose dumps can be read back


def listing() -> str:
    """A line for each stage: its name, the form of its result, and a description."""
    return "".join(f"{s.name:21}{s.gives.name:14}{s.what}\n" for s in (*STAGES, *SIDE_STAGES))


__doc__ = (__doc__ or "").replace("{stages}", listing())


def run_load(source: Source, context: Context) -> list[Module]:
    context.modules = load(source)
    return context.modules


def run_check(modules: list[Module], context: Context) -> Any:
    from dpl.types.check import check_all

    checked = check_all(modules)
    context.warnings += checked.warnings
    if context.library:
        from dplc.passes.entry.exports import exports

        context.exports = [export for export in exports(checked) if context.only in ("", export.name)]
    if context.testing:
        from dplc.passes.entry.expectations import asked_for

        return asked_for(checked.program, modules[-1].source)
    if context.finite:
        from dplc.passes.entry.finite import finite

        return finite(checked.program, {module.source for module in modules})
    return checked.program


def run_mono(program: Any, context: Context) -> Any:
    from dplc.passes.specialise.mono import monomorphise

    return monomorphise(program, exports=[export.entry for export in context.exports])


def run_cps(mono: Any) -> Any:
    if not mono.control:
        return mono
    from dplc.passes.control.cps import explicit_control

    return explicit_control(mono)


def run_lower(solved: Any, context: Context) -> Any:
    from dplc.passes.lower.lower import lower

    return lower(solved, context.names)


def run_small_arrays(program: Any, context: Context) -> Any:
    from dplc.passes.scalar_replacement.small_arrays import small_arrays

    return small_arrays(program, context.device)


def run_store_passing(program: Any) -> Any:
    from dplc.ad.taken import takes_derivatives

    if not takes_derivatives(program):
        return program
    from dplc.ad.stores.store_passing import pass_stores

    return pass_stores(program)


def run_differentiate(program: Any) -> Any:
    from dplc.ad.taken import takes_derivatives, without_rules

    if not takes_derivatives(program):
        return without_rules(program)
    from dplc.ad.differentiate import differentiate

    return differentiate(program)


def run_accumulate(program: Any, context: Context) -> Any:
    from dplc.passes.accumulate.accumulate import accumulate

    return accumulate(program, late=not context.device)  # a device adds an outer product at once


def run_join(program: Any, context: Context) -> Any:
    from dplc.passes.parallel.join import join

    return join(program, context.device)


def run_row_blocks(program: Any, context: Context) -> Any:
    if context.device:
        return program  # a device does all of a product at once
    from dplc.passes.parallel.row_blocks import row_blocks

    return row_blocks(program)


def run_distribution(program: Any, context: Context) -> Any:
    if context.device:
        return program  # the host would wait for what a device computes before each block
    from dplc.passes.parallel.distribution import distribution

    return distribution(program)


def run_brief_sums(program: Any, context: Context) -> Any:
    if context.device:
        return program  # a device adds in its own way
    from dplc.passes.parallel.brief_sums import brief_sums

    return brief_sums(program)


def run_sweeps(program: Any, context: Context) -> Any:
    if not context.device:
        return program
    from dplc.passes.device.sweeps import sweeps

    return sweeps(program)


def run_place(program: Any, context: Context) -> Any:
    if not context.device:
        return program
    from dplc.passes.device.place import place

    return place(program)


def run_reference_counts(program: Any, context: Context) -> Any:
    from dplc.passes.memory.reference_counts import count_references

    return count_references(program, context.device)


def run_llvm(program: Any, context: Context) -> Any:
    if context.device:
        from dplc.machine.cuda.host import emit_text

        return emit_text(program)
    from dplc.machine.emit.llvm import emit_text

    return emit_text(program, placed=context.placed, watched=context.watched)


def run_object(made: Any, context: Context) -> Any:
    from dplc.machine.llvm.versions import final, plain
    from dplc.machine.object.assemble import assemble
    from dplc.machine.object.compiled import Compiled
    from dplc.machine.runtime import shared

    text, sites = made
    quickly = context.effort == 0 and not context.watched  # a program that is watched has a runtime of its own
    text = plain(text, shared.shared().texts) if quickly else final(text)
    return Compiled(assemble(text, most=context.effort, flat=True), sites.to_json())


def show_trees(modules: list[Module]) -> str:
    from dpl.syntax.formatter.show import show

    return "\n".join(show(module.tree) for module in modules)


def show_llvm(made: Any) -> str:
    from dplc.machine.llvm.versions import final

    text, _ = made
    return final(text)


def show_code(made: Any) -> str:
    return f"{len(made.code)} bytes"


def stage_of(name: str) -> Stage:
    """The row of a stage, or of one that is beside the spine."""
    return STAGES[NAMES.index(name)] if name in NAMES else SIDE_STAGES[SIDE_NAMES.index(name)]


def compile_to(name: str, source: Source, context: Context) -> tuple[Stage, Any]:
    """Run the stages up to the named one.  Returns that stage and its result."""
    return compile_from("", source, name, context)


def compile_from(start: str, value: Any, name: str, context: Context) -> tuple[Stage, Any]:
    """As `compile_to`, but starting with `value`, the result of the stage `start` (empty: a source)."""
    if start == name:
        return stage_of(name), value
    if name in SIDE_NAMES:
        stage = stage_of(name)
        return stage, stage.run(compile_from(start, value, stage.after, context)[1], context)
    before = start
    with collected_seldom():
        for stage in STAGES[NAMES.index(start) + 1 if start else 0 :]:
            begin = time.perf_counter()
            value = verified(stage, before, value, context) if context.verify else stage.run(value, context)
            before = stage.name
            context.seconds[stage.name] = time.perf_counter() - begin
            if stage.name == name:
                return stage, value
    raise ValueError(name)


def verified(stage: Stage, before: str, value: Any, context: Context) -> Any:
    """The verified result of a stage.  If the stage fails, the Bug names it and has a command to repeat it."""
    original = value.copy() if before in READABLE else None  # a stage may change its input
    try:
        made = stage.made(value, context)
        if stage.is_idle(value) and any(made.fns[name] is not fn for name, fn in value.fns.items()):
            raise Bug(f"it changes code that has none of {', '.join(stage.changes)}")
        stage.verify(made)
    except Bug as bug:
        bug.args = (f"after {stage.name}: {bug}",)
        if original is not None:
            bug.repeat = f"dpl dump --check {stage.name} --from {before} {kept(stage_of(before).show(original))}"
        raise
    return made


def kept(text: str) -> str:
    """Write the program on which a stage failed to a file; returns its path."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="dpl-", suffix=".flat", delete=False, encoding="utf-8") as file:
        file.write(text)
    return file.name
