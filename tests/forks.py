"""A process that has compiled a program and forks for runs of the command: start-up is most of short runs.

`Forks().run(args, ...)` does what `subprocess.run` does with `python -m dplc.cli`, and gives the same result.  Runs
share what depends on DPL alone: modules, the checked library, the tables of the grammar, the runtime.  A run reads its
environment and files itself.  One with another cache, or other settings of DPL, shares modules only.

A fork copies thousands of pages of memory before it has done anything.  So one serves up to AGE plain runs, one after
the other, which leave nothing behind that another could see.  All others have a process of their own.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import NoReturn

COLLECT_AFTER = (3_000_000, 20, 100)  # more than most runs allocate, which leave few cycles of garbage
RUN = ("DPL_INTERPRET", "DPL_OPTIMISE")  # settings of a run, on which nothing that is shared depends
AGE = 25  # plain runs of one process
PLAIN = ("run", "check", "dump")  # commands of plain runs
WORDS = ("-", "-e", "--engine", "--fn", "--no-cache", "-O0", "-O2")  # their options: others set what lasts longer
ALONE = 1 << 62  # added to a request's length: this run is not plain

# Modules that are loaded besides those of a compilation.
SHARED = (
    "dpl.columns", "dpl.debug.engine", "dpl.eval.run", "dpl.render", "dpl.syntax.foreign", "dpl.types.rules.misplaced",
    "dplc.bytecode", "dplc.cli", "dplc.commands", "dplc.machine.failure.trace", "dplc.machine.run.cache",
    "dplc.machine.run.program", "dplc.passes.inversion.fission.kept_numbers", "dplc.passes.inversion.sums.interchange",
    "dplc.passes.inversion.fission.kept_additions", "dplc.passes.inversion.sums.stencils", "dplc.passes.vectors.tupled",
    "dplc.tools.check", "dplc.tools.dump", "dplc.tools.first_tier", "dplc.tools.process", "dplc.tools.report",
    "dplc.tools.streams", "numpy", "tomllib", "unicodedata",
)  # fmt: skip

# A program whose compilation imports what most others do.
WARM = """
let f (x : float[n]) = sum [for i < n -> exp x[i] * log x[i] + x[i] ** sin x[i] + atan x[i]]
do print (grad f [1.5, 2.5], jvp f [1.5] [1.0], Ad.jacobian (map tanh) [1.5, 2.5], Ad.jet 3 exp 1.5)
do print (reset (1.0 + shift k -> k (k 2.0)))
"""


class Forks:
    """The process is started at the first run, and ends when its caller does.  `usual` is the environment of plain
    runs."""

    def __init__(self, usual: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        self.socket = ours
        self.usual = dict(usual)
        command = [sys.executable, __file__, str(theirs.fileno())]
        paths = os.pathsep.join(str(Path(__file__).parents[1] / folder) for folder in ("lang", "compiler"))
        env = {**os.environ, "PYTHONPATH": paths}
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env)
        theirs.close()

    def plain(self, args: list[str], stdin: str, cwd: Path, env: Mapping[str, str]) -> bool:
        """A function of C may keep numbers of its own, as `rand` does, which the next run would see."""
        options = {arg for arg in args if arg.startswith("-")}
        if not args or args[0] not in PLAIN or not options <= {*WORDS} or env != self.usual:
            return False
        files = [cwd / arg for arg in args if arg.endswith(".dp")]
        return not any(b"extern" in text for text in (stdin.encode(), *map(content, files)))

    def run(
        self, args: list[str], stdin: str, timeout: float, cwd: Path, env: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            given.write(stdin.encode())
            given.seek(0)
            request = json.dumps([args, str(cwd), env]).encode()
            files = [file.fileno() for file in (given, out, errors)]
            how = 0 if self.plain(args, stdin, cwd, env) else ALONE
            self.socket.sendall((len(request) + how).to_bytes(8, "little"))
            socket.send_fds(self.socket, [b"f"], files)
            self.socket.sendall(request)
            pid = int.from_bytes(self.socket.recv(8), "little")
            self.socket.settimeout(timeout)
            try:
                status = int.from_bytes(self.socket.recv(8), "little", signed=True)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self.socket.settimeout(None)
                self.socket.recv(8)
                raise subprocess.TimeoutExpired(args, timeout) from None
            self.socket.settimeout(None)
            for file in (out, errors):
                file.seek(0)
            return subprocess.CompletedProcess(args, status, text(out.read()), text(errors.read()))

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)  # to close it is not enough: forks of this process hold it, too
        self.socket.close()
        self.process.wait()


def content(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""


def text(written: bytes) -> str:
    return written.decode().replace("\r\n", "\n")


def serve(channel: socket.socket) -> None:
    """One run at a time, until the caller has gone.  A fork reads the requests itself, and says how each run ended,
    unless its own end says so."""
    gc.set_threshold(*COLLECT_AFTER)
    warm_up()
    running = mmap.mmap(-1, 1)  # shared: 1 while a run goes on whose end the caller does not know
    while coming(channel):
        child = os.fork()
        if child == 0:
            runs(channel, running)
        _, status = os.waitpid(child, 0)
        if running[0]:
            channel.sendall(os.waitstatus_to_exitcode(status).to_bytes(8, "little", signed=True))
        running[0] = 0


def coming(channel: socket.socket) -> int:
    """The head of the next request, which stays where it is; 0 if the caller has gone."""
    return int.from_bytes(channel.recv(8, socket.MSG_PEEK | socket.MSG_WAITALL), "little")


def runs(channel: socket.socket, running: mmap.mmap) -> NoReturn:
    """In a process that was just forked: a run that is not plain, which ends it, or some plain ones.  One that ends in
    an unusual way is the last."""
    for number in range(AGE):
        head = coming(channel)
        alone = head >= ALONE
        if not head or (alone and number):
            break
        running[0] = 1
        receive(channel, 8)
        _, files, _, _ = socket.recv_fds(channel, 1, 3)
        args, cwd, env = json.loads(receive(channel, head % ALONE))
        channel.sendall(os.getpid().to_bytes(8, "little"))
        if alone:
            channel.close()
        code = become(args, cwd, env, files)
        if alone or code not in (0, 1):
            os._exit(code)
        running[0] = 0
        channel.sendall(code.to_bytes(8, "little", signed=True))
    os._exit(0)


def receive(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := channel.recv(size - len(data))):
        data += more
    return data


def warm_up() -> None:
    """Import and load what most runs of the command have in common.  It leaves no thread and no open file."""
    for name in SHARED:
        import_module(name)
    from dpl.source import Source
    from dpl.types.library import library
    from dplc.pipeline import Context
    from dplc.stack import on_large_stack
    from dplc.tools.run import Begun, compile_native

    on_large_stack(lambda: compile_native(Begun(Source("<warm>", WARM)), Context(), False, False))
    for part in (library().definitions, *(module.values for module in library().modules.values())):
        for name in part:
            part[name]  # unpacked once, not in each run
    gc.freeze()  # no collection in a fork looks at what is there


def settings(env: Mapping[str, str]) -> dict[str, str]:
    """What may change the data that is shared."""
    return {name: value for name, value in env.items() if name.startswith("DPL_") and name not in RUN}


def forget() -> None:
    """Empty all that functions remember of earlier calls."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("dpl", "dplc"):
            for value in list(vars(module).values()):
                if clear := getattr(value, "cache_clear", None):
                    clear()


def become(args: list[str], cwd: str, env: dict[str, str], files: list[int]) -> int:
    """The command; its exit code."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    if settings(env) != settings(os.environ):
        forget()
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["dpl", *args]
    from dplc import cli

    code = 1
    try:
        cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    cli.keep_bytecode = lambda: None  # a process does so once
    return code


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
