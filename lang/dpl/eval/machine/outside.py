"""The outside world as programs see it: output, files, arguments, the clock."""

from __future__ import annotations

import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from dpl import host
from dpl.diagnostics import DplError
from dpl.eval.values.value import Array


class ProgramExit(Exception):
    """The program asked to stop, with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Writable(Protocol):
    """Where the program's output goes."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class Outside:
    """The outside world of one run.  The methods are primitives."""

    def __init__(self, out: Writable, args: list[str]) -> None:
        self.out = out
        self.args = args
        self._progress = False

    def print_string(self, text: str) -> tuple:
        """Print and flush.  Flushing costs little compared with interpreting."""
        self.out.write(text)
        self.out.flush()
        return ()

    def progress(self, text: str) -> tuple:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self._progress = True
        return ()

    def close(self) -> None:
        """Has everything printed, and ends the line of a progress bar."""
        self.out.flush()
        if self._progress:
            sys.stderr.write("\n")

    def arg_count(self, _unit: tuple) -> int:
        return len(self.args)

    def arg(self, i: int) -> str:
        """An argument of the command, from 0.  Raises R0705 if there are fewer."""
        if not 0 <= i < len(self.args):
            raise DplError.at("R0705", f"there is no argument number {i}: the program was given {len(self.args)}")
        return decoded(host.current.raw(self.args[i]), f"argument {i + 1} of the command")

    def exit(self, code: int):
        """Ends the program; the operating system sees eight bits of the code."""
        raise ProgramExit(code & 0xFF)


def decoded(data: bytes, what: str) -> str:
    """Bytes from outside as a string.  Raises R0509, which names the bytes `what`, if they are not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        title = f"{what} is not UTF-8 text: the byte at offset {error.start} begins no character"
        way = "text in Latin-1 is converted by  iconv -f latin1 -t utf8;  a file of bytes is read by  Bytes.read"
        raise DplError.at("R0509", title, helps=(way,)) from None


def read_text(path: str) -> str:
    """A file's text.  Raises an error if the file cannot be read or is not UTF-8."""
    return decoded(_read(path), f"`{path}`")


def write_text(path: str, text: str) -> tuple:
    """Writes a file in UTF-8, over an older one."""
    return _write(path, text.encode("utf-8"))


def read_bytes(path: str) -> Array:
    """A file's bytes, as an array of numbers from 0 to 255."""
    data = list(_read(path))
    return Array((len(data),), data)


def read_line(file: int) -> tuple[str, bool]:
    """Byte by byte, so that whoever reads next, native code too, goes on where this one has stopped."""
    with _opening("read", f"file {file}"):
        line = bytearray()
        while not line.endswith(b"\n") and (byte := host.current.read_byte(file)):
            line += byte
    whole = bytes(line).removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else bytes(line)
    return decoded(whole, f"file {file}"), bool(line)


def write_bytes(path: str, data: Array) -> tuple:
    """Writes a file, over an older one."""
    return _write(path, bytes(data.data))


def _read(path: str) -> bytes:
    with _opening("read", path):
        return host.current.read_bytes(Path(path))


def _write(path: str, data: bytes) -> tuple:
    with _opening("write", path):
        host.current.write_bytes(Path(path), data)
    return ()


@contextmanager
def _opening(verb: str, path: str) -> Generator[None]:
    """Turns an error of the system into R0506, which says why a file could not be read or written."""
    shown, nul, _ = path.partition("\0")
    try:
        yield
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        why = "a NUL character follows, and no path has one" if nul else why
        raise DplError.at("R0506", f"cannot {verb} {shown}: {why}") from None


def clock(_unit: tuple) -> float:
    """Seconds since 1970."""
    return host.current.clock()


def env(name: str) -> tuple[str, bool]:
    """An environment variable, and whether it is set.  Raises an error if it is not UTF-8."""
    value = host.current.environment(name)
    if value is None:
        return "", False
    return decoded(host.current.raw(value), f"the environment variable `{name}`"), True


def _bitcast(source: str, target: str):
    return lambda x: struct.unpack(target, struct.pack(source, x))[0]


BITCASTS = {
    "f64_of_bits": _bitcast("<Q", "<d"),
    "bits_of_f64": _bitcast("<d", "<Q"),
    "f32_of_bits": _bitcast("<I", "<f"),
    "bits_of_f32": _bitcast("<f", "<I"),
    "f16_of_bits": _bitcast("<H", "<e"),
    "bits_of_f16": _bitcast("<e", "<H"),
}
