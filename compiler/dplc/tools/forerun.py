"""A program runs natively up to an incident, and the interpreter goes on from the last checkpoints before it.

Whatever cannot be done so (programs that native code does not know, values that cannot be read back) gives None, and
the interpreter starts at the beginning.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.promising import is_repeatable
from dpl.debug.reading import Unreadable, is_readable, read
from dpl.diagnostics import DplError
from dpl.eval.values.datatypes import DataTypes
from dpl.eval.values.value import Value
from dpl.garbage import collected_seldom
from dpl.node import node, replace
from dpl.source import NOWHERE, Source
from dpl.syntax.load import Module

from dplc.passes.entry.checkpoints import Resumer, Writer, before_name, cotangent_name, given_name
from dplc.passes.entry.spine import changes_globals, value_of
from dplc.stack import on_large_stack

if TYPE_CHECKING:
    from dplc.machine.run.program import Program

INCIDENTS = ("error", "nonfinite")
REACHED = "the function is called"


@node
class Resumed:
    """A program that begins shortly before the incident, and the values that it is given.  `failure` is what native
    code said."""

    program: c.Program
    given: Mapping[str, Value]
    failure: DplError

    @property
    def skipped(self) -> bool:
        return bool(self.given)


@node
class Uneventful:
    """There is no incident: the program has run to its end, and does the same when it runs again."""


def forerun(
    program: c.Program, modules: Sequence[Module], args: Sequence[str], at: str, stops_there: bool = False
) -> Resumed | Uneventful | None:
    """Run natively, quietly, to an incident: `error`, `nonfinite`, or the name of a function of the program.  Must be
    called by the main thread, to which the system's signals go.  If what is resumed `stops_there`, its loops need not
    go on with numbers that are not finite."""
    if changes_globals(program) or not (at in INCIDENTS or any(named(item, at) for item in program.items)):
        return None
    own = {module.source for module in modules}
    with folder_of_states() as folder:
        writer = Writer(stopping(program, own, at), own, folder=folder, finite=at == "nonfinite")
        native = on_large_stack(lambda: compiled(writer.rewritten()))
        if native is None:
            return None
        if (failure := failure_of(native, args)) is None:
            return Uneventful() if is_repeatable(program) else None
        try:
            return on_large_stack(lambda: resumed(program, own, writer, folder, failure, stops_there))
        except Unreadable:
            return None


@contextmanager
def folder_of_states() -> Generator[Path]:
    """A folder for a while.  After Ctrl-C the native code goes on until the process ends, and may write into it while
    it is emptied."""
    folder = Path(tempfile.mkdtemp(prefix="dpl-at-"))
    try:
        yield folder
    finally:
        for _ in range(5):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break


def stopping(program: c.Program, own: set[Source], at: str) -> c.Program:
    """The program that fails at the incident."""
    if at == "error":
        return program
    if at == "nonfinite":
        from dplc.passes.entry.finite import finite

        return finite(program, own)
    return replace(program, items=[stopped(item) if named(item, at) else item for item in program.items])


def named(item: c.Def | c.Do | c.Expect, name: str) -> bool:
    return isinstance(item, c.Def) and item.name.rpartition(".")[2].partition("#")[0] == name.rpartition(".")[2]


def stopped(item: c.Def | c.Do | c.Expect) -> c.Def | c.Do | c.Expect:
    """A function that stops the program when it is called."""

    def inside(body: c.Term) -> c.Term:
        if isinstance(body, c.Lam):
            return replace(body, body=inside(body.body))
        return c.Prim(body.span, body.ty, "error", (c.Lit(body.span, t.STRING, REACHED),))

    return replace(item, body=inside(item.body)) if isinstance(item.body, c.Lam) else item


def compiled(program: c.Program) -> Program | None:
    """The quick version of a program; None if it cannot be compiled."""
    from dplc.machine.run.linked import quickly_linked
    from dplc.passes import NeedsInterpreter
    from dplc.pipeline import Context, compile_from

    try:
        with collected_seldom():
            text, sites = compile_from("check", program, "llvm", Context())[1]
            return quickly_linked(text, sites.to_json())
    except (NeedsInterpreter, DplError):
        return None


def failure_of(native: Program, args: Sequence[str]) -> DplError | None:
    """How a program fails natively, optimised while it runs; None if it does not."""
    from dplc.machine.run.program import load, run_loaded
    from dplc.machine.run.tiers import Upgrade

    image = load(native)
    upgrade = Upgrade(native, image, None)
    try:
        with quiet():
            run_loaded(native, image, list(args), upgrade.look)
    except DplError as failure:
        return failure
    finally:
        upgrade.end()
    return None


@contextmanager
def quiet() -> Generator[None]:
    """What is written to standard output meanwhile goes nowhere, and standard input is empty."""
    sys.stdout.flush()
    kept, nowhere = [os.dup(0), os.dup(1)], os.open(os.devnull, os.O_RDWR)
    try:
        for number in (0, 1):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, old in enumerate(kept):
            os.dup2(old, number)
            os.close(old)
        os.close(nowhere)


def resumed(program: c.Program, own: set[Source], writer: Writer, folder: Path, failure: DplError,
            stops_there: bool) -> Resumed:  # fmt: skip
    datas = DataTypes(program.datas)
    given: dict[str, Value] = {}
    done: set[int] = set()
    for number, item in enumerate(program.items):
        file = folder / f"item{number}"
        if isinstance(item, c.Expect) or not file.exists():
            continue
        if isinstance(item, c.Do):
            done.add(number)
        elif value_of(item) and is_readable(item.ty, datas):
            assert isinstance(item, c.Def)
            given[item.name] = read(file.read_text(encoding="utf-8"), item.ty, datas)
    steps, ends, swept = states(writer, folder, datas, given)
    ends = ends if stops_there else {}
    rest = Resumer(program, own, steps=steps, ends=ends, swept=swept, done=frozenset(done)).rewritten()
    nothing = c.Tuple(NOWHERE, t.UNIT, ())
    names = [c.Def(name, (), ty, nothing) for name, ty in types_of_given(writer, given)]
    return Resumed(replace(rest, items=[*names, *rest.items]), given, failure)


def states(writer: Writer, folder: Path, datas: DataTypes, given: dict[str, Value]
           ) -> tuple[dict[int, int], dict[int, int], dict[int, tuple[int, int] | None]]:  # fmt: skip
    """The numbers of a Resumer's loops; `given` receives their states."""
    steps: dict[int, int] = {}
    ends: dict[int, int] = {}
    swept: dict[int, tuple[int, int] | None] = {}
    for number, spot in writer.spots.items():
        if not is_readable(spot.ty, datas):
            continue
        reached = t.Tup((t.I64, spot.ty))
        found = written(folder / f"loop{number}", reached, datas)
        after = written(folder / f"loop{number}after", t.I64, datas)
        if found and after is not None and after > found[0]:
            ends[number] = after
        elif (last := written(folder / f"sweep{number}last", reached, datas)) is not None:
            found = last
            if written(folder / f"sweep{number}behind", t.I64, datas) is not None:
                swept[number] = None
            flow = t.Tup((spot.ty, spot.beside or t.UNIT))
            if is_readable(flow, datas):
                later = written(folder / f"sweep{number}", t.Tup((t.I64, spot.ty, flow)), datas)
                before = written(folder / f"sweep{number}before", reached, datas)
                if later and before:
                    swept[number] = before[0], later[0]
                    given |= {before_name(number): before[1], cotangent_name(number): later[2]}
        if found:
            steps[number], given[given_name(number)] = found
    return steps, ends, swept


def written(file: Path, ty: t.Ty, datas: DataTypes) -> Value | None:
    """What native code has written into a file, if it has."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return read(text, ty, datas) if text else None


def types_of_given(writer: Writer, given: Mapping[str, Value]) -> list[tuple[str, t.Ty]]:
    """The names that the states of loops and their cotangents have, with their types."""
    found: list[tuple[str, t.Ty]] = []
    for number, spot in writer.spots.items():
        flow = t.Tup((spot.ty, spot.beside or t.UNIT))
        found += [(given_name(number), spot.ty), (before_name(number), spot.ty), (cotangent_name(number), flow)]
    return [(name, ty) for name, ty in found if name in given]
