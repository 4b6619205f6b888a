"""The library of MPI for the interpreter, by ctypes: the functions that `rt/message_passing.rt` calls for native code.

A launcher, such as `mpiexec`, starts the processes and says so in the environment.  Only then is a library looked for.
There are three binary interfaces: the standard one of MPI 5, that of MPICH before it, and that of Open MPI.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Sequence
from functools import cache

from dpl.eval.machine import ranks

NAMES = (
    "libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi.so.12", "libmpich.so.12", "libmpi.so.40",
    "libmpi_abi.1.dylib", "libmpi_abi.0.dylib", "libmpi.12.dylib", "libmpich.12.dylib", "libmpi.40.dylib",
)  # fmt: skip
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
RANKS = ("PMI_RANK", "PMIX_RANK")
# what a library calls its communicator, types and operations
THINGS = ("world", "floats", "integers", "sum", "greatest")
STANDARD = (0x101, 0x214, 0x258, 0x21, 0x23)
MPICH = (0x44000000, 0x4C00080B, 0x4C00083A, 0x58000003, 0x58000001)
OPEN = ("ompi_mpi_comm_world", "ompi_mpi_double", "ompi_mpi_int64_t", "ompi_mpi_op_sum", "ompi_mpi_op_max")
STATUS = 64  # bytes, at least as many as any library's MPI_Status has
TAG = 1

pointer = ctypes.c_void_p
Words = Sequence[int]


class Library:
    """The ranks as this process sees them.  It ends MPI when the process ends."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.names = {name: pointer(value) for name, value in zip(THINGS, names(library), strict=True)}
        self.world = self.names["world"]
        self.calls = 0
        self.code = 0  # with which the program has failed
        known = ctypes.c_int(0)
        library.MPI_Initialized(ctypes.byref(known))
        if not known:
            library.MPI_Init(None, None)
            atexit.register(self.end)
        self.rank, self.size = self.told("MPI_Comm_rank"), self.told("MPI_Comm_size")

    def told(self, function: str) -> int:
        number = ctypes.c_int(0)
        self.library[function](self.world, ctypes.byref(number))
        return number.value

    def reduce(self, words: Words, what: str) -> list[int]:
        """What all ranks get: the sums of words that are `floats`, or the sums or greatest of integers."""
        given, kind = room(len(words)), "floats" if what == "sum of floats" else "integers"
        operation = "greatest" if what == "greatest" else "sum"
        names = self.names
        self.library.MPI_Allreduce(numbers(words), given, len(words), names[kind], names[operation], self.world)
        return signed(given) if what == "greatest" else list(given)

    def broadcast(self, words: Words, root: int) -> list[int]:
        given = numbers(words)
        self.library.MPI_Bcast(given, len(words), self.names["integers"], root, self.world)
        return list(given)

    def gather(self, words: Words) -> list[int]:
        given, kind = room(len(words) * self.size), self.names["integers"]
        self.library.MPI_Allgather(numbers(words), len(words), kind, given, len(words), kind, self.world)
        return list(given)

    def rotate(self, words: Words, by: int) -> list[int]:
        request, data = pointer(), numbers(words)
        where = (self.names["integers"], (self.rank + by) % self.size, TAG, self.world)
        self.library.MPI_Isend(data, len(words), *where, ctypes.byref(request))
        given = self.receive(len(words), (self.rank - by) % self.size)
        self.library.MPI_Wait(ctypes.byref(request), status())
        return given

    def send(self, words: Words, to: int) -> None:
        self.library.MPI_Send(numbers(words), len(words), self.names["integers"], to, TAG, self.world)

    def receive(self, count: int, source: int) -> list[int]:
        given = room(count)
        self.library.MPI_Recv(given, count, self.names["integers"], source, TAG, self.world, status())
        return list(given)

    def end(self) -> None:
        """Ends MPI.  A program that has failed ends the other ranks; one that has not waits for their ends.  If another
        rank goes on, that one fails with a message and ends this one meanwhile."""
        if self.code:
            self.library.MPI_Abort(self.world, self.code)
            return  # a library may come back, and the others must not hear of an end that is none
        if ranks.disagreement(self, ranks.END):
            ranks.disagreement(self, ranks.END)
        self.library.MPI_Finalize()


@cache
def join() -> Library | None:
    """The ranks, if a launcher has started this process.  Raises OSError if there is no library, or a wrong one."""
    sizes = [int(size) for name in SIZES if (size := os.environ.get(name, "")).isdigit()]
    if not sizes and not any(name in os.environ for name in RANKS):
        return None
    library = found()
    if library is None:
        why = "a launcher of MPI has started this program, but no library of MPI was found"
        raise OSError(f"{why}; the environment variable DPL_MPI may name one")
    joined = Library(library)
    if sizes and sizes[0] != joined.size:
        why = f"the launcher has started {sizes[0]} processes, but the library of MPI knows of {joined.size}"
        raise OSError(f"{why}: it belongs to another launcher; the environment variable DPL_MPI may name the right one")
    return joined


def found() -> ctypes.CDLL | None:
    """The library that DPL_MPI names; else that of the launcher; else one that the system knows."""
    if chosen := os.environ.get("DPL_MPI"):
        return opened(chosen)
    first = [name for name in NAMES if ".40" in name] if "OMPI_COMM_WORLD_SIZE" in os.environ else []
    for name in (*first, *NAMES):
        if library := opened(f"{beside_launcher()}/{name}") or opened(name):
            return library
    return None


def opened(path: str) -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        return library if hasattr(library, "MPI_Init") else None
    except OSError:
        return None


@cache
def beside_launcher() -> str:
    """The folder `lib` beside that of the program which has started this one."""
    try:
        return os.path.join(os.path.dirname(os.readlink(f"/proc/{os.getppid()}/exe")), os.pardir, "lib")
    except OSError:
        return ""


def names(library: ctypes.CDLL) -> Sequence[int | None]:
    """What the library calls THINGS."""
    if hasattr(library, OPEN[0]):
        return [ctypes.cast(library[name], pointer).value for name in OPEN]
    version = ctypes.c_int(-1)
    if hasattr(library, "MPI_Abi_get_version"):
        library.MPI_Abi_get_version(ctypes.byref(version), ctypes.byref(ctypes.c_int(0)))
    return STANDARD if version.value > 0 else MPICH


def numbers(words: Words) -> ctypes.Array:
    return (ctypes.c_uint64 * len(words))(*words)


def room(count: int) -> ctypes.Array:
    return (ctypes.c_uint64 * count)()


def signed(words: ctypes.Array) -> list[int]:
    return list((ctypes.c_int64 * len(words)).from_buffer(words))


def status() -> ctypes.Array:
    return ctypes.create_string_buffer(STATUS)


def ending(code: int) -> None:
    """The program has failed with this exit code: the process will end the other ranks."""
    if join.cache_info().currsize and (joined := join()):
        joined.code = code
