"""The verbs of the command, with click.  Each verb's work is in a file of its own."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dplc import settings
from dplc.tools.options import PATHS, denied_codes

if TYPE_CHECKING:
    from dplc.tools.bench.cost import Report


class Verbs(click.Group):
    """`dpl model.dp` means `dpl run model.dp`; an unknown verb names the nearest."""

    def resolve_command(self, ctx: click.Context, args: list[str]):
        word = args[0]
        if word not in self.commands:
            if word.endswith((".dp", ".md", ".ipynb")) or word == "-" or Path(word).exists():
                return super().resolve_command(ctx, ["run", *args])
            near = difflib.get_close_matches(word, self.commands, 1)
            hint = f"; did you mean `{near[0]}`?" if near else f"; the verbs are {', '.join(sorted(self.commands))}"
            raise click.UsageError(f"there is no verb `{word}`{hint}", ctx)
        return super().resolve_command(ctx, args)


def show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from dplc.tools.version import version

        click.echo(version())
        ctx.exit()


@click.group(cls=Verbs, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version,
              help="Print the versions of dpl and of its libraries.")  # fmt: skip
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto",
              help="Colour messages; auto: on a terminal, unless NO_COLOR is set.")  # fmt: skip
@click.option("--message-format", "format_", type=click.Choice(["human", "short", "json"]), default="human",
              help="Message format: with source excerpts, one line each, or JSON (editors/MESSAGES.md).")  # fmt: skip
@click.option("--deny", "denied", metavar="CODE|warnings", multiple=True, callback=denied_codes,
              help="Treat a warning, or all, as errors.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Suppress warnings.")
@click.option("-v", "--verbose", is_flag=True, envvar="DPL_VERBOSE",
              help="Include calls inside the library in error paths (or DPL_VERBOSE=1).")  # fmt: skip
@click.pass_context
def cli(ctx: click.Context, color: str, format_: str, denied: tuple[str, ...], quiet: bool, verbose: bool) -> None:
    """DPL: a small ML-like language in which differentiation is first class."""
    from dplc.tools.report import wishes

    if mistake := settings.mistake():
        raise click.UsageError(mistake)
    wishes.color, wishes.format, wishes.quiet, wishes.denied = color, format_, quiet, denied
    if verbose:
        os.environ["DPL_VERBOSE"] = "1"  # for what reads it, in this process and in those of `dpl test`
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


ENGINES = click.Choice(["native", "interp"])
ENGINE = click.option("--engine", type=ENGINES,
                      help="Native code or the interpreter.  [default: native where possible]")  # fmt: skip


ONE_ENGINE = click.option("--engine", type=ENGINES, default="native", show_default=True,
                          help="Native code or the interpreter.")  # fmt: skip


CHECK = click.option("--check", "verify", is_flag=True, envvar="DPL_CHECK",
                     help="Verify the program after every stage of the compiler (or DPL_CHECK=1).")  # fmt: skip


@cli.command(context_settings={"allow_interspersed_args": False})
@ENGINE
@click.option("--timings", is_flag=True, help="Print the time of each stage on standard error.")
@click.option("--no-cache", is_flag=True, help="Compile again, and do not cache the result.")
@click.option("-O", "effort", type=click.IntRange(0, 2), metavar="0|1|2",
              help="Optimise to this level before the program starts (default: to level 2 while it runs).")  # fmt: skip
@click.option("--threads", type=click.IntRange(1), metavar="N", envvar="DPL_THREADS",
              help="Threads to use (or DPL_THREADS; default: as many as processors).")  # fmt: skip
@click.option("--device", type=click.Choice(["auto", "cpu", "gpu"]), envvar="DPL_DEVICE",
              help="Where loops run; auto: on a GPU if there is one (or DPL_DEVICE).  [default: cpu]")  # fmt: skip
@click.option("--nan", type=click.Choice(["off", "warn", "trap"]), default="off", show_default=True,
              help="At the first NaN or infinity of a call or a sweep: end, or (in the interpreter) warn.")  # fmt: skip
@CHECK
@click.option("-e", "expression", metavar="EXPR", help="Print the value of EXPR, or run declarations.")
@click.argument("file", required=False, type=click.Path())
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    file: str | None, args: tuple[str, ...], expression: str | None, threads: int | None, device: str | None, **options
) -> int:
    """Run a program, the blocks of DPL in a page of Markdown (.md), or the cells of a notebook (.ipynb); `-` is
    standard input.  ARGS go to the program."""
    from dplc.tools.run import run_program

    if threads:
        os.environ["DPL_THREADS"] = str(threads)  # the runtime reads it, as in executables
    if device:
        os.environ["DPL_DEVICE"] = device
    if device == "gpu" and (options["engine"] == "interp" or options["nan"] == "warn"):
        raise click.UsageError("the interpreter runs on the CPU only: leave out --device gpu, or --engine and --nan")
    if (file or None) == expression:
        raise click.UsageError("which FILE?")
    if file is not None and expression is not None:
        args, file = (file, *args), None
    if file is not None and file.endswith(".ipynb"):
        return run_notebook(file, args, **options)
    return run_program(file, expression, list(args), **options)


def run_notebook(file: str, args: tuple[str, ...], engine: str | None, timings: bool, no_cache: bool,
                 effort: int | None, nan: str, verify: bool) -> int:  # fmt: skip
    """Run the cells of a notebook in a session, which has few of the options."""
    from dplc.tools.repl.notebook import run

    if args or timings or no_cache or effort is not None or nan != "off":
        raise click.UsageError("a notebook takes no arguments, and only the options --engine, --threads and --device")
    return run(Path(file), engine or "native")


@cli.command()
@PATHS
@click.option("--types", is_flag=True, help="Print the type of every definition.")
@click.option("--json", "as_json", is_flag=True, help="Print each message as a JSON object, for editors.")
@click.option("--show-checks", "size_checks", is_flag=True, help="List the size checks that remain for run time.")
def check(paths: tuple[str, ...], types: bool, as_json: bool, size_checks: bool) -> int:
    """Parse and type-check programs (folders: every .dp inside; `-` is standard input)."""
    from dplc.tools.check import check_files
    from dplc.tools.report import wishes

    if as_json:
        if types or size_checks:
            raise click.UsageError("--json prints messages and nothing else; leave out --types and --show-checks")
        wishes.format, wishes.where = "json", sys.stdout
    return check_files(list(paths) or ["."], types, size_checks)


@cli.command()
@PATHS
@click.option("--check", "only_check", is_flag=True, help="Do not write; exit 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Do not write; show the changes.")
def fmt(paths: tuple[str, ...], only_check: bool, diff: bool) -> int:
    """Format programs and pages in place (folders: every .dp inside); `-` formats standard input to standard output."""
    from dplc.tools.fmt import format_paths

    return format_paths(list(paths) or ["."], only_check, diff)


@cli.command()
@PATHS
@ONE_ENGINE
@click.option("-k", "text", default="", metavar="TEXT", help="Run only tests whose name contains TEXT.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Number of parallel jobs.")
@click.option("--seed", default=0, help="Seed for property tests.", show_default=True)
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit XML report.")
@click.option("--update", is_flag=True, help="Write what the blocks of pages print into the pages.")
def test(paths: tuple[str, ...], engine: str, text: str, jobs: int, seed: int, junit: Path | None, update: bool) -> int:
    """Run the tests (`expect`) in files (folders: every .dp inside), and the blocks of DPL in pages of Markdown (.md),
    which must print what the pages say."""
    from dplc.tools.test.test import Wanted, test_paths

    return test_paths(list(paths) or ["."], Wanted(text, engine, seed, jobs, update), junit)


def drawing_to(path: Path) -> Callable[[Sequence[Report]], None]:
    """A function that plots costs to a file; bad paths are refused before anything is counted."""
    try:
        from matplotlib import backend_bases

        from dplc.tools.bench.curves import draw
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "matplotlib":
            raise
        raise click.UsageError("pictures of costs need matplotlib:  pip install 'dpl-lang[plot]'") from None
    kinds = backend_bases.FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:] not in kinds:
        raise click.UsageError(f"'{path}' ends in none of {', '.join(sorted(kinds))}")
    return lambda found: draw(found, path)


@cli.command()
@click.option("--cost", "cost", is_flag=True,
              help="Count operations and bytes at growing sizes, and measure time; "
                   "exit 1 if a gradient grows faster.")  # fmt: skip
@click.option("--max-ratio", type=click.FloatRange(0, min_open=True), metavar="RATIO",
              help="With --cost: exit 1 if a gradient costs more than so many functions.")  # fmt: skip
@click.option("--size", type=click.IntRange(1), help="Size of the arguments.  [default: up to 1000; of matrices 64]")
@click.option("--limit", type=click.FloatRange(0.1), default=10.0, show_default=True, metavar="SECONDS",
              help="Time limit for one function at one size; larger sizes are then skipped.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each function.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="PATH",
              help="Plot the counts of --cost as PDF, SVG or PNG (extra `plot`).")  # fmt: skip
@click.argument("target", metavar="FILE|MODULE|stdlib", type=click.Path())
@click.argument("names", nargs=-1)
def bench(
    cost: bool, max_ratio: float | None, size: int | None, limit: float, as_json: bool, plot: Path | None, target: str,
    names: tuple[str, ...],
) -> int:  # fmt: skip
    """Time the functions of a file or of the library, and their gradients; NAMES selects some."""
    if cost:
        if size is not None:
            raise click.UsageError("--cost measures at several sizes; leave out --size")
        from dplc.tools.bench.cost import tell_costs

        return tell_costs(target, names, limit, as_json, drawing_to(plot) if plot else None, max_ratio)
    if max_ratio is not None:
        raise click.UsageError("--max-ratio is compared with what --cost counts; add --cost")
    if plot:
        raise click.UsageError("--plot draws what --cost counts; add --cost")
    from dplc.tools.bench.bench import tell_times

    return tell_times(target, names, size, limit, as_json)


@cli.command()
@click.option(
    "-o",
    "out",
    metavar="PATH",
    type=click.Path(),
    help="Output file; `-` is standard output, for text and object code.",
)
@click.option("--lib", "library", is_flag=True, help="Build a shared library of each `export let`, with a C header.")
@click.option("--python", is_flag=True, help="Build a wheel that offers each `export let` as a Python function.")
@click.option("--emit", "kind", type=click.Choice(["exe", "lib", "obj", "header", "llvm", "asm", "ptx"]),
              help="Kind of output; with --lib, obj, llvm and asm are those of the library; ptx has the kernels of a "
                   "GPU.")  # fmt: skip
@click.option("--target", metavar="NAME", help="Target platform, such as aarch64-linux, x86_64-windows, wasm32.")
@click.option("--cpu", metavar="NAME",
              help="`native`, or LLVM's name of a processor (ptx: sm_90).  [default: a common baseline]")  # fmt: skip
@click.option("--gpu", "device", is_flag=True,
              help="Include kernels for a GPU, which the executable uses if there is one (or DPL_DEVICE).")  # fmt: skip
@click.option("--static", is_flag=True, help="Link an executable statically.")
@click.option("-g", "debug", is_flag=True, help="Include debug information, and do not strip.")
@click.option("-l", "libraries", metavar="NAME", multiple=True, help="Link with a C library, for `extern`s.")
@click.option("-O", "effort", type=click.IntRange(0, 2), metavar="0|1|2", default=2,
              help="Optimise to this level: 0 builds a long program in a third of the time.  [default: 2]")  # fmt: skip
@click.argument("file", type=click.Path())
def build(file: str, out: str | None, kind: str | None, library: bool, python: bool, target: str | None,
          cpu: str | None, device: bool, static: bool, debug: bool, libraries: tuple[str, ...],
          effort: int) -> int:  # fmt: skip
    """Build an executable, or a library for C or Python; print the paths of the files made."""
    from dplc.tools.build.build import build
    from dplc.tools.build.link import Wish

    if python:
        if library or kind:
            raise click.UsageError("--python makes a wheel and nothing else; leave out --lib and --emit")
        kind = "wheel"
    return build(file, out, kind, library, target, cpu, Wish(False, static, debug, libraries), device, effort)


@cli.command()
@click.argument("stage", required=False)
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@click.option("--list", "listed", is_flag=True, help="List the stages.")
@click.option("--fn", "name", metavar="NAME", help="Print only definitions whose name contains NAME.")
@click.option("--from", "start", metavar="STAGE", help="FILE is a dump of flat from this earlier STAGE.")
@CHECK
def dump(stage: str | None, file: str | None, listed: bool, name: str | None, start: str | None, verify: bool) -> int:
    """Print the program in FILE (- for standard input) as it is after STAGE of the compiler."""
    from dplc.tools.dump import dump_stage, list_stages

    if listed:
        return list_stages()
    if stage is None or file is None:
        raise click.UsageError("which STAGE and FILE?  `dpl dump --list` lists the stages")
    return dump_stage(stage, file, name, start, verify)


@cli.command()
@click.argument("files", metavar="[FILE|MODULE|NAME]...", nargs=-1, type=click.Path())
@click.option("--stdlib", is_flag=True, help="Document the standard library, too.")
@click.option(
    "--search",
    "query",
    metavar="WORDS|TYPE",
    help="Print what fits: by name, by words, or by type, such as 'float[n] -> float'.",
)
@click.option("-o", "--output", default="doc", show_default=True, type=click.Path(file_okay=False, path_type=Path),
              help="Output folder.")  # fmt: skip
def doc(files: tuple[str, ...], stdlib: bool, query: str | None, output: Path) -> int:
    """Write HTML documentation of FILEs, from their types and comments; or print that of a MODULE or NAME of the
    standard library."""
    from dplc.tools.doc.doc import write_pages
    from dplc.tools.doc.terminal import print_names, print_search

    if query is not None:
        return print_search(" ".join((query, *files)))  # words are seldom quoted
    if not files and not stdlib:
        raise click.UsageError("which FILES?  (or --stdlib)")
    names = [name for name in files if not Path(name).exists() and not name.endswith(".dp")]
    if names and len(names) == len(files):
        return print_names(names)
    return write_pages(files, stdlib, output)


@cli.command()
@ONE_ENGINE
@click.option("--load", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Load FILE first.")
def repl(engine: str, load: Path | None) -> int:
    """Start an interactive session."""
    from dplc.tools.repl.loop import converse

    return converse(engine, load)


@cli.command()
@click.option("--break", "breaks", metavar="PLACE", multiple=True,
              help="LINE, FILE:LINE, FUNCTION, LINE:rev, rev, error or nonfinite; may have ` if EXPR`.")  # fmt: skip
@click.option("--watch", "watches", metavar="EXPR", multiple=True, help="Show EXPR at every stop; `d x`: a derivative.")
@click.option("--script", type=click.Path(dir_okay=False), metavar="FILE", help="Do the commands in FILE.")
@click.option("--at", metavar="error|nonfinite|CALL", help="Go on to an error, a NaN or infinity, or a call first.")
@click.argument("file", type=click.Path())
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def debug(file: str, args: tuple[str, ...], breaks: tuple[str, ...], watches: tuple[str, ...], script: str | None,
          at: str | None) -> int:  # fmt: skip
    """Debug a program, forwards and backwards, through reverse sweeps too.  `help` lists the commands."""
    from dplc.tools.debug.session import debug as converse

    return converse(file, args, breaks, watches, script, at)


OUTPUT = click.Path(dir_okay=False, path_type=Path)


@cli.command(context_settings={"allow_interspersed_args": False})
@click.option("--top", type=click.IntRange(1), default=12, show_default=True, metavar="N", help="Rows of each table.")
@click.option("--flame", type=OUTPUT, metavar="FILE.svg", help="Draw a flame graph.")
@click.option("--trace", type=OUTPUT, metavar="FILE.json", help="Write a trace for Chrome or Perfetto.")
@click.option("--speedscope", type=OUTPUT, metavar="FILE.json", help="Write the samples for speedscope.")
@click.option("--memory", is_flag=True, help="Tell which lines make the blocks of memory, in place of time.")
@click.argument("file", type=click.Path())
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def profile(file: str, args: tuple[str, ...], top: int, flame: Path | None, trace: Path | None,
            speedscope: Path | None, memory: bool) -> int:  # fmt: skip
    """Run a program as native code and tell where it spends its time or its memory, by line and by function."""
    from dplc.tools.profile.profile import Wanted, profile

    return profile(file, args, Wanted(top, flame, trace, speedscope), memory)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each line.")
def doctor(as_json: bool) -> int:
    """Print what a bug report needs, and run a self-test; exit 1 if something is broken."""
    from dplc.tools.doctor import examine

    return examine(as_json)


@cli.command()
def dap() -> int:
    """Run the debug adapter for editors, over standard input and output."""
    from dplc.tools.debug.dap import serve

    return serve()


@cli.command()
@click.argument("name")
def new(name: str) -> int:
    """Create a project: a folder with a program and its tests."""
    from dplc.tools.new import make

    return make(name)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completions(shell: str) -> int:
    """Print the completion script for SHELL:  eval "$(dpl completions bash)"."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(cli, {}, "dpl", "_DPL_COMPLETE").source())
    return 0


@cli.command("explain")
@click.argument("code", required=False)
@click.option("--list", "all_", is_flag=True, help="List the codes.")
def explain_code(code: str | None, all_: bool) -> int:
    """Explain the CODE of a message, with a wrong and a right program."""
    from dplc.tools.explain import explain, list_codes

    if code is None and not all_:
        raise click.UsageError("which CODE? `--list` lists them")
    return list_codes() if code is None or all_ else explain(code)


@cli.command()
@click.option("--stdio", is_flag=True, hidden=True)  # what clients say, and there is no other way
def lsp(stdio: bool) -> int:
    """Run the language server, over standard input and output."""
    try:
        from dplc.tools.lsp.server import serve
    except ModuleNotFoundError as missing:
        if missing.name not in ("pygls", "lsprotocol"):
            raise
        raise click.UsageError("the language server needs pygls:  pip install 'dpl-lang[lsp]'") from None
    from dplc.stack import on_large_stack

    on_large_stack(serve)
    return 0


@cli.group(invoke_without_command=True)
@click.pass_context
def jupyter(ctx: click.Context) -> None:
    """Offer DPL to notebooks of Jupyter (extra `jupyter`)."""
    try:
        import ipykernel  # noqa: F401
    except ModuleNotFoundError as missing:
        if missing.name not in ("ipykernel", "jupyter_client"):
            raise
        raise click.UsageError("notebooks need ipykernel:  pip install 'dpl-lang[jupyter]'") from None
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


PREFIX = click.option("--prefix", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
                      help="For the environment in FOLDER.  [default: for the user]")  # fmt: skip


@jupyter.command("install")
@PREFIX
def jupyter_install(prefix: Path | None) -> int:
    """Tell Jupyter of the kernel; print its folder."""
    from dplc.tools.jupyter.install import install

    return install(prefix)


@jupyter.command("uninstall")
@PREFIX
def jupyter_uninstall(prefix: Path | None) -> int:
    """Remove the kernel from Jupyter; print what its folder was."""
    from dplc.tools.jupyter.install import uninstall

    return uninstall(prefix)


@jupyter.command("kernel", hidden=True)
@click.option("-f", "connection", type=click.Path(exists=True, dir_okay=False), required=True)
def jupyter_kernel(connection: str) -> int:
    """Run the kernel; Jupyter writes the file."""
    from dplc.tools.jupyter.kernel import serve

    return serve(connection)


@cli.group()
def cache() -> None:
    """Manage the cache of compiled programs (DPL_CACHE sets its folder)."""


@cache.command("dir")
def cache_dir() -> int:
    """Print its path."""
    from dpl.system.kept import cache_dir

    click.echo(cache_dir())
    return 0


@cache.command("size")
def cache_size() -> int:
    """Print its size in bytes."""
    from dpl.system import kept

    click.echo(kept.size())
    return 0


@cache.command("clean")
def cache_clean() -> int:
    """Remove all entries."""
    from dpl.system import kept

    kept.clean()
    return 0
