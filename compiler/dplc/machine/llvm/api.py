"""LLVM, by the C functions of llvmlite's library.

llvmlite's own Python is not imported: that takes as long as all passes over a small program, as it also writes LLVM,
and finds its library by modules that unpack archives.  Functions have their names in the library without `LLVMPY_`.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_uint8, c_uint64, c_void_p
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from dpl.diagnostics import Bug

FILES = {"win32": "llvmlite.dll", "darwin": "libllvmlite.dylib"}
FILE = os.path.join("binding", FILES.get(sys.platform, "libllvmlite.so"))


class Element(ctypes.Structure):
    """A part of what the JIT links."""

    _fields_ = (("kind", c_uint8), ("value", c_char_p), ("size", c_size_t))


class Symbol(ctypes.Structure):
    _fields_ = (("name", c_char_p), ("address", c_uint64))


TEXT = POINTER(c_char_p)  # where the library puts a text
IR, OBJECT, LIBRARY = 0, 2, 3  # kinds of elements: texts, object code, the name of another library
PROCESS = LIBRARY, b""  # the symbols of this process

FUNCTIONS: dict[str, tuple[Any, ...]] = {  # the type of the result, and those of the parameters
    "GetVersionInfo": (ctypes.c_uint,),
    "DisposeString": (None, c_char_p),
    "InitializeNativeTarget": (None,),
    "InitializeNativeAsmPrinter": (None,),
    "InitializeAllTargetInfos": (None,),
    "InitializeAllTargets": (None,),
    "InitializeAllTargetMCs": (None,),
    "InitializeAllAsmPrinters": (None,),
    "GetDefaultTargetTriple": (None, TEXT),
    "GetHostCPUName": (None, TEXT),
    "GetHostCPUFeatures": (c_int, TEXT),
    "GetTargetFromTriple": (c_void_p, c_char_p, TEXT),
    "CreateTargetMachine": (
        c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int, c_char_p
    ),
    "CreateTargetMachineData": (c_void_p, c_void_p),
    "CopyStringRepOfTargetData": (None, c_void_p, TEXT),
    "DisposeTargetData": (None, c_void_p),
    "TargetMachineEmitToMemory": (c_void_p, c_void_p, c_void_p, c_int, TEXT),
    "GetBufferStart": (c_void_p, c_void_p),
    "GetBufferSize": (c_size_t, c_void_p),
    "DisposeMemoryBuffer": (None, c_void_p),
    "ContextCreate": (c_void_p,),
    "ContextDispose": (None, c_void_p),
    "ParseAssembly": (c_void_p, c_void_p, c_char_p, TEXT),
    "VerifyModule": (c_bool, c_void_p, TEXT),
    "PrintModuleToString": (None, c_void_p, TEXT),
    "DisposeModule": (None, c_void_p),
    "CreatePipelineTuningOptions": (c_void_p,),
    "PTOSetLoopUnrolling": (None, c_void_p, c_bool),
    "PTOSetLoopVectorization": (None, c_void_p, c_bool),
    "PTOSetSLPVectorization": (None, c_void_p, c_bool),
    "PTOSetInlinerThreshold": (None, c_void_p, c_int),
    "DisposePipelineTuningOptions": (None, c_void_p),
    "CreatePassBuilder": (c_void_p, c_void_p, c_void_p),
    "DisposePassBuilder": (None, c_void_p),
    "buildPerModuleDefaultPipeline": (c_void_p, c_void_p, c_int),
    "RunNewModulePassManager": (None, c_void_p, c_void_p, c_void_p),
    "DisposeNewModulePassManger": (None, c_void_p),
    "LoadLibraryPermanently": (c_bool, c_char_p, TEXT),
    "SearchAddressOfSymbol": (c_void_p, c_char_p),
    "CreateLLJITCompiler": (c_void_p, c_void_p, c_bool, c_bool, TEXT),
    "LLJITDispose": (None, c_void_p),
    "LLJIT_Link": (
        c_void_p, c_void_p, c_char_p, POINTER(Element), c_size_t, POINTER(Symbol), c_size_t, POINTER(Symbol), c_size_t,
        TEXT,
    ),
    "LLJIT_Dylib_Tracker_Dispose": (c_bool, c_void_p, TEXT),
}  # fmt: skip

OPTIONS = (
    # Loops over the rows of a matrix had a version with vectors for rows of one element, and none for others.
    b"-enable-mem-access-versioning=false",
    # A text is verified once, by `parsed`: to find old debug information, the parser did it before, and aborted.
    b"-disable-auto-upgrade-debug-info",
)
NOTHING: Mapping[str, int] = MappingProxyType({})
LOCK = threading.RLock()  # one thread at a time is in the library


@cache
def library() -> ctypes.CDLL:
    found = find_spec("llvmlite")
    if found is None or not found.submodule_search_locations:
        raise ImportError("llvmlite is not installed")
    made = ctypes.CDLL(os.path.join(found.submodule_search_locations[0], FILE))
    for option in OPTIONS:
        made.LLVMPY_SetCommandLine(b"dpl", option)
    return made


@cache
def function(name: str) -> Any:
    made = getattr(library(), f"LLVMPY_{name}")
    made.restype, *made.argtypes = FUNCTIONS[name]
    return made


def call(name: str, *args: Any) -> Any:
    """Calls a C function; one thread at a time does so."""
    with LOCK:
        return function(name)(*args)


def answer(name: str, *args: Any) -> tuple[Any, str]:
    """The result of a function whose last parameter is a place for a text, and that text: an answer or a complaint."""
    text = c_char_p()
    result = call(name, *args, ctypes.byref(text))
    said = (text.value or b"").decode("utf-8", "replace")
    call("DisposeString", text)
    return result, said


def version() -> tuple[int, ...]:
    """The version of LLVM: major, minor, patch."""
    packed = call("GetVersionInfo")
    return tuple(packed >> shift & 255 for shift in (16, 8, 0))


def default_triple() -> str:
    """The triple of the machine that LLVM runs on."""
    return answer("GetDefaultTargetTriple")[1]


def host_name() -> str:
    """The processor's name."""
    return answer("GetHostCPUName")[1]


def host_features() -> str:
    """What this processor has and has not, sorted: `+avx,-sha`.

    Vectors are as wide as its registers: LLVM prefers half of that for Intel's, for the sake of code around them, and
    loops of elementary functions take 1.3 times as long."""
    known = answer("GetHostCPUFeatures")[1].split(",")
    if "+avx512f" in known:
        known.append("-prefer-256-bit")
    return ",".join(sorted(filter(None, known), key=lambda feature: feature[1:]))


class Machine:
    """LLVM's code generator for a target, which is never freed.  `effort` 0 is fast, 3 optimises most."""

    def __init__(
        self, triple: str, cpu: str, features: str = "", effort: int = 2, relocation: str = "pic", jit: bool = False
    ) -> None:
        target, complaint = answer("GetTargetFromTriple", triple.encode())
        if not target:
            raise RuntimeError(complaint)
        words = triple.encode(), cpu.encode(), features.encode(), effort, relocation.encode(), b"default"
        self.triple = triple
        self.handle = call("CreateTargetMachine", target, *words, 0, int(jit), b"")
        if not self.handle:
            raise RuntimeError(f"LLVM cannot make code for {triple}")

    @property
    def layout(self) -> str:
        """Sizes and alignments of types, as LLVM's text has them."""
        data = call("CreateTargetMachineData", self.handle)
        try:
            return answer("CopyStringRepOfTargetData", data)[1]
        finally:
            call("DisposeTargetData", data)

    def emit_object(self, module: Module) -> bytes:
        """The object code of a module."""
        return self.emitted(module, 1)

    def emit_assembly(self, module: Module) -> str:
        """The assembly text of a module."""
        return self.emitted(module, 0).decode()

    def emitted(self, module: Module, kind: int) -> bytes:
        buffer, complaint = answer("TargetMachineEmitToMemory", self.handle, module.handle, kind)
        if not buffer:
            raise RuntimeError(complaint)
        try:
            return ctypes.string_at(call("GetBufferStart", buffer), call("GetBufferSize", buffer))
        finally:
            call("DisposeMemoryBuffer", buffer)


class Module:
    """LLVM's own form of a text; `handle` is 0 when it is freed."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def text(self) -> str:
        """The module as LLVM text."""
        return answer("PrintModuleToString", self.handle)[1]


@contextmanager
def parsed(text: str) -> Generator[Module]:
    """A verified module.  It is freed at the end of the `with`, and then its context.  It has one of its own, as the
    global context never frees types and constants.  Raises Bug."""
    context = call("ContextCreate")
    try:
        handle, complaint = answer("ParseAssembly", context, text.encode())
        if not handle:
            raise Bug(f"LLVM does not accept our text: {complaint}")
        module = Module(handle)
        try:
            wrong, complaint = answer("VerifyModule", handle)
            if wrong:
                raise Bug(f"LLVM does not accept our text: {complaint}")
            yield module
        finally:
            module.handle = 0
            call("DisposeModule", handle)
    finally:
        call("ContextDispose", context)


def optimise(module: Module, machine: Machine, level: int, vectorise: bool, inlining: int = -1) -> None:
    """Runs the passes of a level of LLVM's, without unrolling, in place.  `inlining` is the cost of functions that go
    into their callers, -1 that of the level."""
    options = call("CreatePipelineTuningOptions")
    call("PTOSetLoopUnrolling", options, False)
    call("PTOSetLoopVectorization", options, vectorise)
    call("PTOSetSLPVectorization", options, vectorise)
    call("PTOSetInlinerThreshold", options, inlining)
    builder = call("CreatePassBuilder", machine.handle, options)
    manager = call("buildPerModuleDefaultPipeline", builder, level)
    try:
        call("RunNewModulePassManager", manager, module.handle, builder)
    finally:
        call("DisposeNewModulePassManger", manager)
        call("DisposePassBuilder", builder)
        call("DisposePipelineTuningOptions", options)


def load_library(name: str) -> None:
    """Makes the symbols of a shared library of the system known to the JIT."""
    failed, complaint = answer("LoadLibraryPermanently", name.encode())
    if failed:
        raise RuntimeError(complaint)


def address_of(symbol: str) -> int | None:
    """The address of a symbol of this process."""
    return call("SearchAddressOfSymbol", symbol.encode())


class Jit:
    """A world of libraries, which refer to one another by their names."""

    def __init__(self, machine: Machine) -> None:
        # JITLink keeps an object in one piece; RuntimeDyld aborts if a stack of gigabytes lies between its sections
        self.handle, complaint = answer("CreateLLJITCompiler", machine.handle, False, True)
        if not self.handle:
            raise RuntimeError(complaint)

    def __del__(self, call=call) -> None:
        if self.handle and not sys.is_finalizing():
            call("LLJITDispose", self.handle)


class Linked:
    """Elements that a JIT has linked to a library, in memory that is freed with it.  `addresses` are those of its
    exports, `imports` those of symbols that it uses."""

    def __init__(self, jit: Jit, name: str, elements: Sequence[tuple[int, bytes]], exports: Sequence[str],
                 imports: Mapping[str, int] = NOTHING) -> None:  # fmt: skip
        self.jit = jit
        parts = (Element * len(elements))(*((kind, value, len(value)) for kind, value in elements))
        given = (Symbol * len(imports))(*((name.encode(), address) for name, address in imports.items()))
        found = (Symbol * len(exports))(*((name.encode(), 0) for name in exports))
        lists = parts, len(parts), given, len(given), found, len(found)
        self.handle, complaint = answer("LLJIT_Link", jit.handle, name.encode(), *lists)
        if not self.handle:
            raise RuntimeError(complaint)
        self.addresses = {name: found[i].address for i, name in enumerate(exports)}

    def __del__(self, answer=answer) -> None:
        if self.handle and not sys.is_finalizing():
            answer("LLJIT_Dylib_Tracker_Dispose", self.handle)
