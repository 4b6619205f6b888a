"""`dpl build`: makes an executable, a library for C, a wheel, or an intermediate form of a program."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import click
from dpl.diagnostics import DplError
from dpl.node import node, replace

from dplc.flat.local_names import LocalNames
from dplc.flat.term import Program
from dplc.interface import Export
from dplc.machine.failure.failures import Sites
from dplc.machine.llvm import target as targets
from dplc.machine.llvm.target import Target
from dplc.stack import on_large_stack
from dplc.tools.build.link import Wish, link, own_linker
from dplc.tools.files import put, unwritable
from dplc.tools.report import warn
from dplc.tools.run import STDIN, text_of

EXECUTABLE, LIBRARY, WHEEL, OBJECT, HEADER = "exe", "lib", "wheel", "obj", "header"
LLVM, ASM, PTX = "llvm", "asm", "ptx"
SUFFIXES = {OBJECT: ".o", HEADER: ".h", LLVM: ".ll", ASM: ".s", PTX: ".ptx"}
STDOUT = "-"


@node
class Job:
    """The file to build, the kind of output, and how to make it.  `library` is true if the code is for a library,
    `device` if parallel loops may run on a GPU; `gpu` is the compute capability of PTX as an output; `effort` is LLVM's
    optimisation level, at most."""

    file: Path
    kind: str
    library: bool
    target: Target
    wish: Wish
    gpu: int = 0
    device: bool = False
    effort: int = 2

    @property
    def name(self) -> str:
        """The prefix of the names of the library's functions."""
        return re.sub(r"\W", "_", self.stem)

    @property
    def stem(self) -> str:
        return "program" if str(self.file) == STDIN else self.file.stem


def build(
    file: str, out: str | None, kind: str | None, library: bool, target: str | None, cpu: str | None, wish: Wish,
    device: bool = False, effort: int = 2,
) -> int:  # fmt: skip
    """Makes the files and prints their paths.  Raises UsageError for options that do not go together."""
    kind = kind or (LIBRARY if library else EXECUTABLE)
    gpu, cpu = (of_gpu(cpu), None) if kind == PTX else (0, cpu)
    code_of_library = library or kind in (LIBRARY, HEADER, WHEEL)
    job = Job(Path(file), kind, code_of_library, chosen(target, cpu, wish.static), wish, gpu, device, effort)
    if device and (job.library or kind in (HEADER, PTX) or job.target.system != "linux"):
        raise click.UsageError("--gpu is for executables for Linux")
    if device and wish.static:
        raise click.UsageError("--gpu needs the driver's library, which a static executable cannot load")
    if job.target.system == "wasi" and job.library and kind != HEADER:
        raise click.UsageError("there are no shared libraries for wasm32")
    place = Path(out) if out else default_place(job)
    if out != STDOUT:
        must_be_writable(place)
    made = on_large_stack(lambda: make(job, place, out == STDOUT))
    for path in made:
        click.echo(path)
    return 0


def of_gpu(cpu: str | None) -> int:
    """The compute capability for PTX: `sm_90` is 90.  Raises UsageError."""
    from dplc.machine.cuda.ptx import KNOWN, PORTABLE

    if cpu is None:
        return PORTABLE
    number = int(cpu[3:]) if re.fullmatch(r"sm_\d+", cpu) else 0
    if number not in KNOWN:
        names = ", ".join(f"sm_{sm}" for sm in KNOWN)
        raise click.UsageError(f"there is no GPU `{cpu}`; those that PTX can be made for are {names}")
    return number


def chosen(name: str | None, cpu: str | None, static: bool) -> Target:
    """The requested target.  A static executable for Linux uses musl if there is no `cc`.  Raises UsageError."""
    if name is not None and name not in targets.TRIPLES:
        known = ", ".join(targets.TRIPLES)
        raise click.UsageError(f"there is no target `{name}`; the targets are {known}")
    try:
        found = targets.to_build(name, cpu)
    except KeyError:
        raise click.UsageError(f"code cannot be made for this machine's architecture, {targets.arch()}") from None
    if cpu not in (None, targets.NATIVE) and is_unknown(found):
        raise click.UsageError(f"there is no processor `{cpu}` among those of {found.arch}")
    if cpu == targets.NATIVE and name is not None and found.arch != targets.arch():
        raise click.UsageError(f"--cpu native is about this machine, and {name} is another")
    if static and found.system == "linux" and not own_linker(found):
        return targets.to_build(f"{found.name}-musl", cpu)
    return found


def is_unknown(target: Target) -> bool:
    """True if LLVM does not know the target's processor.  LLVM reports this only on standard error."""
    with tempfile.TemporaryFile() as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            target.machine()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        said.seek(0)
        return b"not a recognized processor" in said.read()


def default_place(job: Job) -> Path:
    from dplc.tools.build.wheel import wheel_name

    stem, system = job.stem, job.target.system
    match job.kind:
        case "exe":
            return Path(stem + {"windows": ".exe", "wasi": ".wasm"}.get(system, ""))
        case "wheel":
            return Path(wheel_name(job.name, job.target))
        case "lib":
            suffix = {"windows": ".dll", "macos": ".dylib"}.get(system, ".so")
            return Path(f"{'' if system == 'windows' else 'lib'}{stem}{suffix}")
        case _:
            return Path(stem + SUFFIXES[job.kind])


def must_be_writable(place: Path) -> None:
    """Raises an error if the output cannot be written, before any work is done."""
    folder = place.parent
    if place.is_dir():
        raise unwritable(place, IsADirectoryError(0, "it is a folder"))
    if not folder.is_dir():
        raise unwritable(place, FileNotFoundError(0, f"there is no folder {folder}"))
    if not os.access(folder, os.W_OK) or (place.exists() and not os.access(place, os.W_OK)):
        raise unwritable(place, PermissionError(0, "permission denied"))


def make(job: Job, place: Path, to_stdout: bool) -> list[Path]:
    """Make the output.  Returns the files written."""
    from dplc.embed.description import describe
    from dplc.machine.entry.library import keeps_state
    from dplc.tools.build.header import header
    from dplc.tools.build.wheel import wheel

    program, exports, names = compiled(job)
    told = header(job.name, job.file.name, exports).encode() if job.library and job.kind != WHEEL else b""
    if job.kind == HEADER:
        return written(told, place, to_stdout)
    if job.kind == PTX:
        from dplc.machine.cuda.emit import emit_ptx

        return written(emit_ptx(program, job.gpu).encode(), place, to_stdout)
    text, sites = written_out(job, program, exports, names)
    if job.kind in (OBJECT, LLVM, ASM):
        return written(emitted(job, text), place, to_stdout)
    from dplc.machine.object.assemble import assemble

    if to_stdout:
        raise click.UsageError("executables and libraries go to a file, not to standard output")
    code = assemble(text, job.target, job.effort)
    code = link(code, place.name, job.target, replace(job.wish, shared=job.library), sites)
    if job.kind == WHEEL:
        code = wheel(job.name, code, describe(job.name, exports, keeps_state(program)), job.target)
    put(place, code, executable=job.kind != WHEEL)
    if job.kind != LIBRARY:
        return [place]
    beside = place.with_name(f"{job.name}.h")
    put(beside, told)
    return [place, beside]


def compiled(job: Job) -> tuple[Program, list[Export], LocalNames | None]:
    """The program as flat, with its exports if it is built as a library, and the names of local variables if it has
    debug information.  Raises DplError."""
    from dplc.passes import NeedsInterpreter
    from dplc.pipeline import Context, compile_to

    names = LocalNames(stay=job.effort == 0) if job.wish.debug else None
    context = Context(library=job.library, device=job.device, names=names)
    try:
        _, program = compile_to("reference_counts", text_of(str(job.file), None), context)
    except NeedsInterpreter as need:
        title = f"the compiler cannot make native code of this program yet: {need.reason}"
        raise DplError.at("E0573", title, need.span, helps=need.helps) from need
    warn(context.warnings)
    if job.library and not context.exports:
        raise DplError.at(
            "E0570",
            f"{job.file} exports nothing",
            helps=("others see what is declared by  export let f (x : float) : float = ...",),
        )
    return program, context.exports, names


def written_out(job: Job, program: Program, exports: list[Export], names: LocalNames | None) -> tuple[str, Sites]:
    """The LLVM text of the executable or library, and its sites of failure."""
    from dplc.machine.entry.executable import executable_text
    from dplc.machine.entry.library import keeps_state, library_text

    if job.library:
        worlds = job.kind != WHEEL or not keeps_state(program)
        return library_text(program, exports, job.name, job.target, worlds, names, job.kind == WHEEL)
    device = None
    if job.device:
        from dplc.machine.cuda.host import device_of

        device = device_of(program)
    return executable_text(program, job.target, names, device)


def emitted(job: Job, text: str) -> bytes:
    from dplc.machine.object.assemble import optimised

    with optimised(text, job.target, job.effort) as (machine, module):
        match job.kind:
            case "llvm":
                return module.text().encode()
            case "asm":
                return machine.emit_assembly(module).encode()
            case _:
                return machine.emit_object(module)


def written(data: bytes, place: Path, to_stdout: bool) -> list[Path]:
    if to_stdout:
        sys.stdout.buffer.write(data)
        return []
    put(place, data)
    return [place]
