"""`dpl test`: runs every `expect "name" = ...` of some files, each in a process of its own, several in parallel.
The blocks of literate pages run in `pages.py`.

A file is compiled once.  An expectation fails if it is `false`, raises a run-time error, or ends its process in any
other way; its output is shown then.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import click
from dpl.diagnostics import DplError
from dpl.node import node
from dpl.render import render
from dpl.syntax.load import read
from dpl.syntax.pages import SUFFIX

from dplc.machine.object.compiled import Compiled
from dplc.machine.run.linked import linked
from dplc.passes import NeedsInterpreter
from dplc.passes.entry.expectations import expectations
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack
from dplc.tools.files import put
from dplc.tools.report import colored
from dplc.tools.test.processes import Processes


@node
class Wanted:
    """The tests to run (names that contain `text`), the engine, the seed, the number of parallel jobs, and whether to
    write what blocks print into their pages."""

    text: str
    engine: str
    seed: int
    jobs: int
    update: bool = False


@node
class Outcome:
    """The result of a test, or (without a name) of a file with errors.  `why` is the failure, empty on success."""

    file: Path
    name: str
    line: int
    seconds: float
    why: str = ""
    printed: str = ""


def test_paths(paths: Sequence[str], wanted: Wanted, junit: Path | None) -> int:
    """Run the tests.  Returns exit code 1 if one failed or none were found."""
    outcomes: list[Outcome] = []
    with (
        TemporaryDirectory(prefix="dpl-test-") as folder,
        ThreadPoolExecutor(wanted.jobs) as pool,
        Processes() as processes,
    ):
        for file in files_of(paths):
            found = list(of_page(file, wanted)) if file.suffix == SUFFIX else []
            if file.suffix != SUFFIX or 'expect "' in file.read_text("utf-8", errors="replace"):
                found += of_file(file, wanted, Path(folder), pool, processes)
            tell(found)
            outcomes += found
    if junit:
        put(junit, as_junit(outcomes).encode())
    failed = sum(bool(o.why) for o in outcomes)
    if not outcomes:
        print("no expectations found", file=sys.stderr)
    else:
        print(f"{len(outcomes) - failed} passed" + (f", {failed} failed" if failed else ""))
    return int(failed > 0 or not outcomes)


def files_of(paths: Sequence[str]) -> Iterator[Path]:
    """The given files, and all programs with expectations in the given folders."""
    for path in map(Path, paths):
        if path.is_dir():
            yield from (f for f in sorted(path.rglob("*.dp")) if "expect" in f.read_text("utf-8", errors="replace"))
        elif path.exists():
            yield path
        else:
            raise click.UsageError(f"there is no {path}")


def of_page(file: Path, wanted: Wanted) -> Iterator[Outcome]:
    """The outcomes of the blocks of a literate page."""
    from dplc.tools.test.pages import shown, update

    try:
        found = update(file, wanted.engine) if wanted.update else shown(file, wanted.engine)[1]
    except DplError as failure:
        yield failed(file, failure)
        return
    for one in found:
        name = f"line {one.line}: {one.title}"
        if wanted.text.casefold() in name.casefold():
            yield Outcome(file, name, one.line, one.seconds, one.why)


def of_file(
    file: Path, wanted: Wanted, folder: Path, pool: ThreadPoolExecutor, processes: Processes
) -> Iterator[Outcome]:
    try:
        cases, ready = on_large_stack(lambda: prepare(file, wanted))
    except DplError as failure:
        yield failed(file, failure)
        return
    place = folder / "program"
    place.write_bytes(ready)

    def fulfil(case: tuple[int, str, int]) -> Outcome:
        number, name, line = case
        begin = time.perf_counter()
        command = [sys.executable, "-m", "dplc.tools.test.expectation", str(place)]
        done = processes.run(command, environment(number, wanted.seed))
        why = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode and not why:
            why = f"killed by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        seconds = time.perf_counter() - begin
        printed = done.stdout.decode("utf-8", "replace")
        return Outcome(file, name, line, seconds, why if done.returncode else "", printed)

    yield from pool.map(fulfil, cases)


def failed(file: Path, failure: DplError) -> Outcome:
    """The outcome of a file with errors."""
    return Outcome(file, "", 1, 0.0, "\n\n".join(render(d, color=colored(sys.stdout)) for d in failure.diagnostics))


def prepare(file: Path, wanted: Wanted) -> tuple[list[tuple[int, str, int]], bytes]:
    """(number, name and line of each wanted expectation, the pickled program that runs them)."""
    source = read(file)
    items = expectations(compile_to("check", source, Context())[1], source)
    cases = [
        (number, item.name, source.position(item.span.start)[0])
        for number, item in enumerate(items)
        if wanted.text.casefold() in item.name.casefold()
    ]
    if not cases:
        return [], b""
    try:
        stage = "object" if wanted.engine == "native" else "check"
        ready = compile_to(stage, source, Context(testing=True))[1]
    except NeedsInterpreter:
        ready = compile_to("check", source, Context(testing=True))[1]
    return cases, pickle.dumps(linked(ready) if isinstance(ready, Compiled) else ready)


def environment(number: int, seed: int) -> dict[str, str]:
    """The environment of a test's process."""
    color = {"FORCE_COLOR": "1"} if colored(sys.stdout) else {"NO_COLOR": "1"}
    return {
        **os.environ,
        **color,
        "DPL_EXPECT": str(number),
        "DPL_SEED": str(seed),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


# ---- telling --------------------------------------------------------------------------------------------------------


def tell(outcomes: Sequence[Outcome]) -> None:
    """Print the results of one file."""
    if outcomes:
        print(outcomes[0].file)
    for o in outcomes:
        mark = ("FAIL", "red") if o.why else ("ok", "green")
        word = click.style(f"{mark[0]:4}", fg=mark[1]) if colored(sys.stdout) else f"{mark[0]:4}"
        print(f"  {word} {o.name or o.file.name}" + ("" if o.why or not o.name else f"  ({o.seconds:.2f} s)"))
        if o.why:
            told = o.why + (f"\nprinted:\n{o.printed.rstrip()}" if o.printed else "")
            print("\n".join(f"       {line}".rstrip() for line in told.split("\n")))
    sys.stdout.flush()


def as_junit(outcomes: Sequence[Outcome]) -> str:
    """JUnit's XML for continuous integration: a suite for each file."""
    root = ElementTree.Element("testsuites")
    for file in dict.fromkeys(o.file for o in outcomes):
        mine = [o for o in outcomes if o.file == file]
        suite = ElementTree.SubElement(
            root, "testsuite", name=str(file), tests=str(len(mine)), failures=str(sum(bool(o.why) for o in mine)),
            time=f"{sum(o.seconds for o in mine):.3f}",
        )  # fmt: skip
        for o in mine:
            case = ElementTree.SubElement(
                suite, "testcase", classname=file.stem, name=o.name or "is a program", file=str(file), line=str(o.line),
                time=f"{o.seconds:.3f}",
            )  # fmt: skip
            if o.why:
                ElementTree.SubElement(case, "failure", message=printable(o.why.split("\n")[0])).text = printable(o.why)
            if o.printed:
                ElementTree.SubElement(case, "system-out").text = printable(o.printed)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def printable(text: str) -> str:
    """A text without control characters, which XML does not allow."""
    return "".join(c if c in "\n\t" or c >= " " else "?" for c in text)
