"""The outside world as programs see it: output, files, arguments, the clock."""

from __future__ import annotations

import os
import struct
import sys
import time
from pathlib import Path
from typing import TextIO

from dpl.diagnostics import DplError
from dpl.eval.value import Array


class ProgramExit(Exception):
    """The program asked to stop, with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Outside:
    """One run's."""

    def __init__(self, out: TextIO, args: list[str]) -> None:
        self.out = out
        self.args = args
        self._progress = False

    def print_string(self, text: str) -> tuple:
        """At once: what the interpreter does in between takes far longer than writing."""
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
        self.out.flush()
        if self._progress:
            sys.stderr.write("\n")

    def arg_count(self, _unit: tuple) -> int:
        return len(self.args)

    def arg(self, i: int) -> str:
        if not 0 <= i < len(self.args):
            raise DplError.at("R0705", f"there is no argument number {i}: the program was given {len(self.args)}")
        return self.args[i]

    def exit(self, code: int):
        raise ProgramExit(code & 0xFF)


def read_text(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise DplError.at("R0506", f"`{path}` is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise _failed("read", path, error) from None


def write_text(path: str, text: str) -> tuple:
    return _write(path, text.encode("utf-8"))


def read_bytes(path: str) -> Array:
    try:
        data = list(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise _failed("read", path, error) from None
    return Array((len(data),), data)


def write_bytes(path: str, data: Array) -> tuple:
    return _write(path, bytes(data.data))


def _write(path: str, data: bytes) -> tuple:
    try:
        Path(path).write_bytes(data)
    except (OSError, ValueError) as error:
        raise _failed("write", path, error) from None
    return ()


def _failed(verb: str, path: str, error: Exception) -> DplError:
    if "\0" in path:
        return DplError.at("R0506", "there is no file with a zero byte in its name")
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DplError.at("R0506", f"cannot {verb} {path}: {why}")


def clock(_unit: tuple) -> float:
    return time.time()


def env(name: str) -> tuple[str, bool]:
    value = None if "\0" in name else os.environ.get(name)
    return ("", False) if value is None else (value, True)


def _bitcast(source: str, target: str):
    return lambda x: struct.unpack(target, struct.pack(source, x))[0]


BITCASTS = {
    "f64_of_bits": _bitcast("<Q", "<d"),
    "bits_of_f64": _bitcast("<d", "<Q"),
    "f32_of_bits": _bitcast("<I", "<f"),
    "bits_of_f32": _bitcast("<f", "<I"),
}
