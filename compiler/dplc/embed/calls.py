"""Calls the exported functions of a DPL library from Python, with NumPy arrays.

A library is a set of C functions and a description of their parameters and results (`embed/description.py`).  This file
and `shapes.py` need only NumPy: `dpl build --python` copies them into its wheels.

Contiguous arrays in C order are passed without copying; others are copied.  A resulting array uses the library's
memory, which is freed with the array.

Ctrl-C stops a call from Python's main thread and raises KeyboardInterrupt there, if Python's default handler is set.
Other handlers run after the call has ended.  Calls from other threads cannot be interrupted.
"""

from __future__ import annotations

import ctypes
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from signal import SIGINT, default_int_handler
from typing import Any, Protocol

try:
    from _signal import getsignal  # signal.getsignal makes an enum of its result: slow  # pyrefly: ignore[missing-import]
except ImportError:
    from signal import getsignal

from .shapes import ArgumentError, Array, Error, Holder, Number, Place, Record, Shape, Text, Tuple

MESSAGE = ctypes.CFUNCTYPE(ctypes.c_char_p)
WATCH = ctypes.CFUNCTYPE(None, ctypes.c_int32)
UNIT = "unit"  # callers do not pass arguments of this type


def own(prefix: str, name: str) -> str:
    """The symbol of a function that every library has (`machine/entry/library.py`)."""
    return f"{prefix}_0{name}"


class World:
    """The runtime state in which calls run, with the addresses of its functions.  All threads share it, or with `apart`
    the library has separate state for each thread."""

    def __init__(self, address: Callable[[str], int], prefix: str, apart: bool = False) -> None:
        self.address = address
        self.apart = apart
        self.functions: dict[str, Callable[..., int]] = {}  # by symbol
        self._watch = WATCH(address(own(prefix, "watch")))
        self._watched = False

    def function(self, symbol: str, prototype: Callable[[int], Callable[..., int]]) -> Callable[..., int]:
        if symbol not in self.functions:
            self.functions[symbol] = prototype(self.address(symbol))
        return self.functions[symbol]

    def prepare(self) -> None:
        """Tell the library, before a call, whether Ctrl-C may stop it."""
        is_main = threading.get_ident() == threading.main_thread().ident
        if self.apart and not is_main:
            return
        watched = is_main and getsignal(SIGINT) is default_int_handler
        if watched != self._watched:
            self._watch(watched)
            self._watched = watched


class Lender(Protocol):
    """Lends a world for the duration of one call."""

    def take(self) -> World: ...

    def give_back(self, world: World) -> None: ...


class Library:
    """The exported functions and values of a library.  `free` is the address of the function that frees results, which
    may be called at any time."""

    def __init__(self, description: Mapping[str, Any], lender: Lender, free: int) -> None:
        self.prefix: str = description["prefix"]
        self.lender = lender
        self.holder: Holder | None = None
        self._free: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free)
        self.shapes: dict[str, Shape] = {}
        self.functions: dict[str, Function] = {}
        self.values: dict[str, Function] = {}
        for export in description["exports"]:
            kind = self.values if export["parameters"] is None else self.functions
            kind[export["name"]] = Function(self, export)

    @property
    def classes(self) -> dict[str, type]:
        """The Python classes of the library's records."""
        return {name: shape.tuple for name, shape in self.shapes.items() if isinstance(shape, Record)}

    @property
    def exported(self) -> str:
        return ", ".join([*self.functions, *self.values])

    def free(self, place: int) -> None:
        """Free a result.  A reference to this bound method keeps the library, and so its code, alive."""
        self._free(place)

    def shape(self, data: Mapping[str, Any]) -> Shape:
        kinds = {"number": Number, "text": Text, "array": Array, "tuple": Tuple, "record": Record}
        if data["kind"] != "record":
            return kinds[data["kind"]](self, data)
        if data["name"] not in self.shapes:
            self.shapes[data["name"]] = Record(self, data)
        return self.shapes[data["name"]]

    def call(self, symbol: str, prototype: Callable[[int], Callable[..., int]], given: Sequence[Any]) -> None:
        """Call a C function, which runs without Python's global lock.  Raises Error with the program's message if it
        fails."""
        world = self.lender.take()
        try:
            world.prepare()
            if world.function(symbol, prototype)(*given):
                said = MESSAGE(world.address(own(self.prefix, "message")))()
                raise Error(said.decode("utf-8", "replace").rstrip("\n"))
        finally:
            self.lender.give_back(world)


class Shared:
    """A shared library.  Each thread has a world of its own; with `takes_turns`, calls run one at a time instead."""

    def __init__(self, path: str, prefix: str, takes_turns: bool) -> None:
        self.file = ctypes.CDLL(path)
        self.turn = threading.Lock() if takes_turns else None
        self.world = World(self.address, prefix, apart=not takes_turns)

    def take(self) -> World:
        if self.turn is not None:
            self.turn.acquire()
        return self.world

    def give_back(self, world: World) -> None:
        if self.turn is not None:
            self.turn.release()

    def address(self, symbol: str) -> int:
        return ctypes.cast(getattr(self.file, symbol), ctypes.c_void_p).value or 0


def shared(path: str, description: Mapping[str, Any]) -> Library:
    """The library in the file `path`."""
    file = Shared(path, description["prefix"], description["keeps_state"])
    return Library(description, file, file.address(own(description["prefix"], "free")))


class Model:
    """The exported definitions of a program as attributes: functions, and values, which are evaluated on first
    access."""

    def __init__(self, library: Library, name: str) -> None:
        self.__dict__.update(library.classes | library.functions)
        self.__name__ = name
        self.__doc__ = "\n".join(f.type for f in (*library.functions.values(), *library.values.values()))
        self._library = library

    def __getattr__(self, name: str) -> Any:
        if name in self._library.values:
            value = self.__dict__[name] = self._library.values[name]()
            return value
        raise AttributeError(f"{self.__name__} exports no `{name}`; it exports {self._library.exported}")

    def __dir__(self) -> list[str]:
        return [*{**self._library.functions, **self._library.values, **self._library.classes}]

    def __repr__(self) -> str:
        return f"<DPL model {self.__name__}: {self._library.exported}>"


class Function:
    """An exported function, with documentation and a signature like Python's own functions."""

    def __init__(self, library: Library, export: Mapping[str, Any]) -> None:
        self.library = library
        self.__name__ = self.__qualname__ = export["name"]
        self.symbol = f"{library.prefix}_{export['name']}"
        self.type: str = export["signature"]
        self.__doc__ = "\n\n".join(part for part in (self.type, export["docs"]) if part)
        given = export["parameters"] or ()
        self.parameters = [(p["name"], library.shape(p["shape"]), p["text"]) for p in given]
        self.result = library.shape(export["result"]["shape"])
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.given = [p for p in self.parameters if p[2] != UNIT]
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(name, kind, annotation=text) for name, _, text in self.given],
            return_annotation=export["result"]["text"],
        )
        self.room = [type(place) for place in self.result.room()]
        types = [kind for _, shape, _ in self.given for kind in shape.given_as()]
        self.prototype = ctypes.CFUNCTYPE(ctypes.c_int32, *types, *(ctypes.c_void_p for _ in self.room))

    def __repr__(self) -> str:
        return f"<DPL function {self.type}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named or len(args) != len(self.given):
            try:
                args = self.__signature__.bind(*args, **named).args
            except TypeError as failure:
                raise ArgumentError(f"{failure}: {self.type}") from None
        kept: list[Any] = []  # keeps alive the memory to which arguments point
        given: list[Any] = []
        for (name, shape, text), value in zip(self.given, args, strict=True):
            if not shape.give_plain(value, given):
                given += shape.give(value, Place(f"`{name}` of {self.__name__}", text, self.type), kept)
        room = [kind() for kind in self.room]
        self.library.call(self.symbol, self.prototype, [*given, *map(ctypes.byref, room)])
        return self.result.taken(iter(room))
