"""The interpreter behind the stand-in for CUDA's driver (stand_in.c).

    python stand_in.py SOCKET        answers programs that use the stand-in, each in a process of its own

DPL_STAND_IN_TRAFFIC names a file that gets a line for each launch: the kernel, its threads, and the bytes that they ask
for, that are moved for them, and that lie in distinct sectors (`ptx_traffic.py`).

`library(folder)` compiles the stand-in; `Server(folder)` starts this script.
"""

from __future__ import annotations

import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
from ptx_memory import Blocks
from ptx_run import Machine
from ptx_scalars import Fault
from ptx_traffic import Traffic

HERE = Path(__file__).parent
FIRST = 0x700000000000
NAME = 120  # bytes of the name of a kernel


class Session:
    """One program.  Each method answers a question of `stand_in.c` by a number and some bytes."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.machines: list[Machine] = []
        self.memory: np.ndarray = np.zeros(0, np.uint8)
        self.stack_bytes = 1024  # of a thread, if nothing else is asked for

    def hello(self, pid: int, file: int, size: int, data: bytes) -> tuple[int, bytes]:
        with open(f"/proc/{pid}/fd/{file}", "r+b") as shared:
            self.memory = np.frombuffer(mmap.mmap(shared.fileno(), size), np.uint8)
        return 0, b""

    def bytes(self, base: int, size: int) -> np.ndarray:
        return self.memory[base - FIRST : base - FIRST + size]

    def load(self, a: int, b: int, c: int, data: bytes) -> tuple[int, bytes]:
        try:
            if tool := os.environ.get("DPL_STAND_IN_PTXAS"):
                command = [tool, "-arch=sm_90", "-", "-o", os.devnull]
                subprocess.run(command, input=data, check=True, capture_output=True)
            machine = Machine(data.decode(), self.blocks)
        except subprocess.CalledProcessError as error:
            return -1, error.stderr
        except Exception as error:
            return -1, f"the interpreter cannot read it: {error!r}".encode()
        self.machines.append(machine)
        return machine.size_of_globals(), b""

    def place(self, base: int, size: int, c: int, data: bytes) -> tuple[int, bytes]:
        self.machines[-1].place_globals(base, self.bytes(base, size))
        return len(self.machines), b""

    def parameters(self, module: int, b: int, c: int, data: bytes) -> tuple[int, bytes]:
        function = self.machines[module - 1].module.functions.get(data.decode())
        if function is None:
            return -1, b""
        return len(function.params), struct.pack(f"{len(function.params)}i", *function.params.values())

    def variable(self, module: int, b: int, c: int, data: bytes) -> tuple[int, bytes]:
        machine = self.machines[module - 1]
        sizes = {v.name: v.size for v in machine.module.variables}
        name = data.decode()
        if name not in machine.globals:
            return -1, b""
        return 0, struct.pack("qq", machine.globals[name], sizes[name])

    def allocated(self, base: int, size: int, c: int, data: bytes) -> tuple[int, bytes]:
        self.blocks.add(base, self.bytes(base, size))
        return 0, b""

    def freed(self, base: int, b: int, c: int, data: bytes) -> tuple[int, bytes]:
        self.blocks.remove(base)
        return 0, b""

    def launch(self, module: int, grid: int, block: int, data: bytes) -> tuple[int, bytes]:
        name = data[:NAME].rstrip(b"\0").decode()
        machine = self.machines[module - 1]
        function = machine.module.functions[name]
        cells = struct.unpack(f"{len(function.params)}Q", data[NAME:])
        try:
            races, place = os.environ.get("DPL_STAND_IN_RACES") != "0", os.environ.get("DPL_STAND_IN_TRAFFIC")
            traffic = Traffic() if place else None
            machine.launch(name, grid, block, list(cells), races, self.stack_bytes, traffic)
            if place and traffic:
                with open(place, "a", encoding="utf-8") as file:
                    file.write(f"{name} {grid * block} {traffic.asked} {traffic.moved} {traffic.distinct}\n")
        except Fault as fault:
            print(f"stand-in: {name}: {fault}", file=sys.stderr, flush=True)
            return 1, b""
        return 0, b""

    def stack(self, size: int, b: int, c: int, data: bytes) -> tuple[int, bytes]:
        self.stack_bytes = size
        return 0, b""


QUESTIONS = (
    Session.hello, Session.load, Session.place, Session.parameters,
    Session.variable, Session.allocated, Session.freed, Session.launch, Session.stack,
)  # fmt: skip


def serve(talk: socket.socket) -> None:
    """Answers one program until it ends."""
    session, stream = Session(), talk.makefile("rb")
    while len(head := stream.read(40)) == 40:
        what, a, b, c, size = struct.unpack("5q", head)
        number, back = QUESTIONS[what](session, a, b, c, stream.read(size))
        talk.sendall(struct.pack("2q", number, len(back)) + back)


def listen(path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(64)
    print("ready", flush=True)
    while True:
        talk, _ = listening.accept()
        if os.fork() == 0:
            try:
                serve(talk)
            finally:
                os._exit(0)
        talk.close()


def library(folder: Path) -> Path:
    """Compiles the stand-in."""
    made = folder / "libcuda.so.1"
    command = ["cc", "-O1", "-shared", "-fPIC", "-Wno-unused-result", str(HERE / "stand_in.c"), "-o", str(made)]
    subprocess.run(command, check=True)
    return made


class Server:
    """The stand-in, ready for programs that run in `environment`; with `blas`, also that for cuBLAS.  `complaints` are
    what the interpreter has found."""

    def __init__(self, folder: Path, blas: bool = False) -> None:
        self.errors = (folder / "complaints").open("w+")
        path = str(folder / "socket")
        made = str(library(folder))
        self.environment = {"DPL_CUDA": made, "DPL_STAND_IN": path, "DPL_CUBLAS": made if blas else "there is none"}
        self.process = subprocess.Popen([sys.executable, __file__, path], stdout=subprocess.PIPE, stderr=self.errors)
        assert self.process.stdout and self.process.stdout.readline() == b"ready\n"

    def complaints(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.errors.close()


if __name__ == "__main__":
    listen(sys.argv[1])
