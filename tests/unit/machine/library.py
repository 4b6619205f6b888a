"""Functions of the runtime library, called from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from dplc.machine.llvm import api, target
from dplc.machine.object.assemble import assemble
from dplc.machine.runtime.library import library
from dplc.machine.runtime.shapes import Vectors

# None is the host's own; vectors of 256 bits are those of AVX2
OTHERS = {
    "128 bits, not fused": Vectors(16, False),
    **({"256 bits": Vectors(32, True)} if target.arch() == "x86_64" else {}),
}
HOST = Vectors.of(target.features())  # one of the others would be the same text again
MACHINES = {"host": None, **{name: vectors for name, vectors in OTHERS.items() if vectors != HOST}}
C_TYPES = {
    "double": ctypes.c_double, "float": ctypes.c_float, "i1": ctypes.c_bool, "i8": ctypes.c_int8,
    "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "ptr": ctypes.c_void_p, "void": None,
}  # fmt: skip

TAKE = """
define i64 @taken(ptr %to) {
  %s = call { ptr, ptr, i64 } @rt.buf_take()
  %owner = extractvalue { ptr, ptr, i64 } %s, 0
  %data = extractvalue { ptr, ptr, i64 } %s, 1
  %size = extractvalue { ptr, ptr, i64 } %s, 2
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %data, i64 %size, i1 false)
  call void @rt.release(ptr %owner)
  ret i64 %size
}
"""


def function(name: str, result: str, params: Sequence[str], body: Sequence[str]) -> str:
    """`%a0`, `%a1` ... are the parameters; the body names its result %r."""
    head = ", ".join(f"{p}{' zeroext' if p == 'i1' else ''} %a{i}" for i, p in enumerate(params))
    end = f"ret {result} %r" if result != "void" else "ret void"
    return (
        f"define {'zeroext i1' if result == 'i1' else result} @{name}({head}) {{\n  "
        + "\n  ".join([*body, end])
        + "\n}\n"
    )


def forwarding(name: str, symbol: str, result: str, params: Sequence[str]) -> str:
    args = ", ".join(f"{p} %a{i}" for i, p in enumerate(params))
    call = f"call {result} @{symbol}({args})"
    return function(name, result, params, [call if result == "void" else f"%r = {call}"])


class Loaded:
    """Machine code of some functions: name -> (result, parameters), with their text."""

    def __init__(self, text: str, types: dict[str, tuple[str, Sequence[str]]], machine: Vectors | None = None) -> None:
        host = target.host()
        head = f'target datalayout = "{host.layout}"\ntarget triple = "{host.triple}"\n'
        code = assemble(head + text + library(text, machine))
        self.linked = api.Linked(api.Jit(host), "test", [(api.OBJECT, code), api.PROCESS], list(types))
        self.functions = {}
        for name, (result, params) in types.items():
            prototype = ctypes.CFUNCTYPE(C_TYPES[result], *(C_TYPES[p] for p in params))
            self.functions[name] = prototype(self.linked.addresses[name])

    def __getitem__(self, name: str) -> Callable:
        return self.functions[name]


class Shown(Loaded):
    """Functions that write to the show buffer; calling gives what they wrote."""

    def __init__(self, text: str, types: dict[str, tuple[str, Sequence[str]]]) -> None:
        super().__init__(text + TAKE, types | {"taken": ("i64", ("ptr",))})
        self.space = ctypes.create_string_buffer(20_000)

    def text(self, name: str, *args) -> str:
        self.functions[name](*args)
        size = self.functions["taken"](self.space)
        return self.space.raw[:size].decode()
