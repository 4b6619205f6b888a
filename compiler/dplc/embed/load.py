"""`dpl.load`: a program's exported definitions as Python functions, compiled on loading.

    m = dpl.load("model.dp")
    m.loss(w, x)                      takes and returns NumPy arrays
    m.grad("loss")(w, x)              the gradient by the first argument

Calls from several threads run in parallel: each has an instance of the program to itself.  A pool keeps the instances
for later calls.  Calls of a program that keeps state take turns.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpl.diagnostics import DplError
from dpl.node import node
from dpl.render import render
from dpl.source import Source
from dpl.system import kept

from dplc.embed.calls import Function, Library, Model, World, own
from dplc.embed.shapes import Error
from dplc.machine.failure.failures import missing
from dplc.machine.llvm import target
from dplc.machine.object import cache_file
from dplc.machine.run import cache
from dplc.machine.run.execute import FINDER
from dplc.machine.run.jit import LoadedLibrary, is_linked
from dplc.stack import on_large_stack

PREFIX = "dpl"
CPU = "cpu"
DEVICES = (CPU, "gpu", "auto")
SHARED: weakref.WeakValueDictionary[tuple[str, str, bytes], Library] = weakref.WeakValueDictionary()


@node
class Built:
    """A library's object code, its description, and the C functions that it needs, each with the message for when it is
    missing."""

    code: bytes
    description: dict[str, Any]
    externs: dict[str, str]


def load(path: str | os.PathLike[str], device: str = CPU) -> LoadedModel:
    """The exported definitions of the program at `path`.  Raises `dpl.Error` with DPL's messages.

    `device` is "cpu", "gpu", or "auto": a GPU if there is one.  Unless it is "cpu", arrays that functions return are
    `embed/held.py`'s: they stay on the device."""
    if device not in DEVICES:
        raise ValueError(f"there is no device {device!r}; there are {', '.join(DEVICES)}")
    file = Path(path)
    return LoadedModel(file, instances(file, "", device), device)


class LoadedModel(Model):
    """A model with its source, so that derivatives of its functions can be compiled too."""

    def __init__(self, file: Path, library: Library, device: str) -> None:
        super().__init__(library, file.stem)
        self._file, self._device = file, device
        self._derivatives: dict[tuple[str, str, str | int], Function] = {}

    def grad(self, name: str, argument: str | int = 0) -> Function:
        """The gradient of a function with respect to one argument, given by name or position (from 0).  It has the
        type of that argument.  Raises AttributeError if there is no such function or argument."""
        return self._derived("grad", name, argument)

    def value_and_grad(self, name: str, argument: str | int = 0) -> Function:
        """As `grad`, but the function returns (value, gradient)."""
        return self._derived("value_and_grad", name, argument)

    def _derived(self, operator: str, name: str, argument: str | int) -> Function:
        if (operator, name, argument) not in self._derivatives:
            function = self._library.functions.get(name)
            if function is None:
                raise AttributeError(
                    f"{self.__name__} exports no function `{name}`; it exports {self._library.exported}"
                )
            only, more = f"{operator}_{name}", derivative(operator, function, argument)
            made = instances(self._file, more, self._device, only).functions[only]
            self._derivatives[operator, name, argument] = made
        return self._derivatives[operator, name, argument]


def derivative(operator: str, function: Function, argument: str | int) -> str:
    """The DPL text of an additional exported definition: the derivative of a function."""
    names = [name for name, _, _ in function.parameters]
    place = names.index(argument) if argument in names else argument
    if not isinstance(place, int) or not 0 <= place < len(names):
        known = f"; its arguments are {', '.join(names)}" if names else ""
        raise AttributeError(f"{function.__name__} has no argument {argument!r} to differentiate by{known}")
    types = [text for _, _, text in function.parameters]
    result = types[place] if operator == "grad" else f"{function.__signature__.return_annotation} * ({types[place]})"
    params = " ".join(f"({name} : {text})" for name, text in zip(names, types, strict=True))
    active = f"{max(names, key=len)}_"
    given = " ".join(active if i == place else name for i, name in enumerate(names))
    body = f"Prelude.{operator} (fun {active} -> {function.__name__} {given}) {names[place]}"
    return f"\nexport let {operator}_{function.__name__} {params} : {result} = {body}\n"


# ---- instances ---------------------------------------------------------------------------------------------------


def instances(file: Path, more: str, device: str, only: str = "") -> Library:
    """The library of a program with the text `more` appended; of its exports, `only` one if it is given.  Models of the
    same program share it, unless the program keeps state."""
    try:
        built = compiled(file, more, device != CPU, only)
    except DplError as error:
        raise Error(said(error)) from None
    content = str(file.resolve()), more + device, hashlib.sha256(built.code).digest()
    if (library := SHARED.get(content)) is None:
        pool = Pool(built, device)
        library = Library(built.description, pool, pool.first.address(own(PREFIX, "free")))
        if device != CPU:
            from dplc.embed.held import Holder

            library.holder = Holder(library, device == "gpu")
        if not built.description["keeps_state"]:
            SHARED[content] = library
    return library


def said(error: DplError) -> str:
    return "\n\n".join(map(render, error.diagnostics))


class Instance:
    """One instance of a program: loaded code with memory of its own."""

    def __init__(self, built: Built, device: str) -> None:
        for symbol, message in built.externs.items():
            if not is_linked(symbol):
                raise Error(message)
        exports = [f"{PREFIX}_{export['name']}" for export in built.description["exports"]]
        more = ("want", "request") if device != CPU else ()
        runtime = [own(PREFIX, name) for name in ("free", "message", "watch", "end", "lapack", *more)]
        self.loaded = LoadedLibrary(built.code, [*exports, *runtime])
        ctypes.CFUNCTYPE(None, type(FINDER))(self.address(own(PREFIX, "lapack")))(FINDER)
        if device != CPU:
            self.device = ctypes.create_string_buffer(device.encode())
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address(own(PREFIX, "want")))(ctypes.addressof(self.device))
        self.world = World(self.address, PREFIX)
        weakref.finalize(self, ctypes.CFUNCTYPE(None)(self.address(own(PREFIX, "end")))).atexit = False  # pyrefly: ignore[missing-attribute]  (typeshed's error)

    def address(self, symbol: str) -> int:
        return self.loaded.address(symbol)


class Pool:
    """The instances of a program that are idle.  If calls take turns, there is only one instance: so do those of a
    program that keeps state, and of one whose arrays are on a device."""

    def __init__(self, built: Built, device: str) -> None:
        self.built, self.device = built, device
        self.turn = threading.Lock() if built.description["keeps_state"] or device != CPU else None
        self.first = Instance(built, device)
        self.instances = {self.first.world: self.first}
        self.idle = [self.first.world]

    def take(self) -> World:
        if self.turn is not None:
            self.turn.acquire()
        try:
            return self.idle.pop()  # one step, as are append and assignment below: no lock is needed
        except IndexError:
            instance = Instance(self.built, self.device)
            self.instances[instance.world] = instance
            return instance.world

    def give_back(self, world: World) -> None:
        self.idle.append(world)
        if self.turn is not None:
            self.turn.release()


# ---- compiling ---------------------------------------------------------------------------------------------------


def compiled(file: Path, more: str, device: bool, only: str) -> Built:
    """The compiled library, from the cache if the program's files are unchanged."""
    from dpl.syntax.load import read

    source = read(file)
    kind = b"library with a device" if device else b"library"
    name = cache_file.name(kind, os.fsencode(file.resolve()), more.encode())
    place = kept.place("objects", name)
    if (entry := cache_file.read(place)) is not None:
        header, code = entry
        if cache.unchanged(header["files"]):
            with suppress(OSError):
                os.utime(place)
            return Built(code, header["description"], header["externs"])
    source = Source(source.name, source.text + more, source.path)
    built, sources = on_large_stack(lambda: compile_library(source, device, only))
    files = [[str(file.resolve()), cache.digest(file)], *cache.digests([s for s in sources if s.path != source.path])]
    cache_file.write(place, {"files": files, "description": built.description, "externs": built.externs}, built.code)
    return built


def compile_library(source: Source, device: bool, only: str) -> tuple[Built, list[Source]]:
    """The compiled library and its sources.  Raises DplError."""
    from dplc.embed.description import describe
    from dplc.machine.entry.library import keeps_state, library_text
    from dplc.machine.object.assemble import assemble
    from dplc.passes import NeedsInterpreter
    from dplc.pipeline import Context, compile_to

    context = Context(library=True, device=device, only=only)
    try:
        _, program = compile_to("reference_counts", source, context)
    except NeedsInterpreter as need:
        title = f"the compiler cannot make native code of this program yet: {need.reason}"
        raise DplError.at("E0573", title, need.span, helps=need.helps) from need
    if not context.exports:
        raise DplError.at("E0570", f"{source.name} exports nothing")
    kernels = None
    if device:
        from dplc.machine.cuda.host import device_of

        kernels = device_of(program)
    here = target.here()
    text, sites = library_text(program, context.exports, PREFIX, here, per_thread=False, python=True, device=kernels)
    externs = {symbol: said(missing(symbol, sites)) for symbol in sites.externs}
    made = Built(assemble(text), describe(PREFIX, context.exports, keeps_state(program)), externs)
    return made, [module.source for module in context.modules]
