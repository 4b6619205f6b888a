"""A process that has everything imported and forks for each run of the command: start-up is a third of short runs.

`Forks().run(args, ...)` does what `subprocess.run` does with `python -m dplc.cli`, and gives the same result.  Only
imports are shared: a run reads its environment, files and cache itself, and is a process of its own.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = 1 << 20  # bytes of a request: arguments, the folder, and the environment


class Forks:
    """The process is started at the first run, and ends when its caller does."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.socket = ours
        command = [sys.executable, __file__, str(theirs.fileno())]
        paths = os.pathsep.join(str(Path(__file__).parents[1] / folder) for folder in ("lang", "compiler"))
        env = {**os.environ, "PYTHONPATH": paths}
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env)
        theirs.close()

    def run(
        self, args: list[str], stdin: str, timeout: float, cwd: Path, env: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            given.write(stdin.encode())
            given.seek(0)
            request = json.dumps([args, str(cwd), env]).encode()
            files = [file.fileno() for file in (given, out, errors)]
            self.socket.sendall(len(request).to_bytes(8, "little"))
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


def text(written: bytes) -> str:
    return written.decode().replace("\r\n", "\n")


def serve(channel: socket.socket) -> None:
    """One run at a time, until the caller has gone."""
    import_everything()
    while head := receive(channel, 8):
        _, files, _, _ = socket.recv_fds(channel, 1, 3)
        args, cwd, env = json.loads(receive(channel, int.from_bytes(head, "little")))
        child = os.fork()
        if child == 0:
            channel.close()
            become(args, cwd, env, files)
        for file in files:
            os.close(file)
        channel.sendall(child.to_bytes(8, "little"))
        _, status = os.waitpid(child, 0)
        channel.sendall(os.waitstatus_to_exitcode(status).to_bytes(8, "little", signed=True))


def receive(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := channel.recv(size - len(data))):
        data += more
    return data


def import_everything() -> None:
    """Of the command, but for what only some verbs want.  Nothing here may start a thread or read the environment."""
    from importlib import import_module

    import click  # noqa: F401
    import llvmlite.binding  # noqa: F401
    import numpy  # noqa: F401
    from dplc import commands, pipeline  # noqa: F401
    from dplc.tools import process, run, streams  # noqa: F401

    for stage in pipeline.STAGES:
        for place in (stage.function, stage.gives.show, stage.gives.verify):
            if place:
                pipeline.named(place)
    for module in ("dpl.eval.run", "dpl.render", "dpl.types.check", "dplc.machine.run.linked"):
        import_module(module)
    gc.freeze()  # no collection in a fork looks at what is imported


def become(args: list[str], cwd: str, env: dict[str, str], files: list[int]) -> None:
    """The command, in a process that was just forked."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["dpl", *args]
    code = 1
    try:
        from dplc.cli import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
