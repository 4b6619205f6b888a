"""DLPack's capsules and CUDA's array interface: arrays in the memory of a GPU that libraries share.

The structs are those of DLPack's header, version 0.8: `DLManagedTensor`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from dplc.embed.shapes import Sizes

HOST, CUDA = 1, 2  # kinds of devices
KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}
NAME, USED = b"dltensor", b"used_dltensor"
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_number", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Found:
    """Where the elements of another library's array are; `end` is called when they are not needed any more."""

    def __init__(self, place: int, shape: Sizes, dtype: np.dtype, end: Callable[[], object]) -> None:
        self.place, self.shape, self.dtype, self.end = place, shape, dtype, end

    def __del__(self) -> None:
        self.end()


def api(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


new_capsule = api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
pointer_of = api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
rename = api("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
is_unused = api("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
place_in = api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


# ---- out

SHARED: dict[int, tuple[Any, ...]] = {}  # what capsules show, by the address of their structs


@DELETER
def ended(managed: int) -> None:
    SHARED.pop(managed, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def never_used(capsule: int) -> None:
    """Frees the array of a capsule that no library has taken."""
    if is_unused(capsule, NAME):
        SHARED.pop(place_in(capsule, NAME), None)


def capsule(owner: Any, place: int, shape: Sizes, dtype: np.dtype) -> Any:
    """A capsule for elements on the device; it keeps their owner."""
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    managed = Managed()
    tensor = managed.tensor
    tensor.data, tensor.device, tensor.ndim = place, CUDA, len(shape)
    tensor.code, tensor.bits, tensor.lanes = KINDS[dtype.kind], 8 * dtype.itemsize, 1
    tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = ctypes.cast(ended, ctypes.c_void_p).value
    SHARED[ctypes.addressof(managed)] = (owner, sizes, managed)
    return new_capsule(ctypes.addressof(managed), NAME, ctypes.cast(never_used, ctypes.c_void_p))


# ---- in


def taken(given: Any) -> Found:
    """The array in a capsule, which is ours from now on."""
    place = pointer_of(given, NAME)
    managed = Managed.from_address(place)
    tensor, shape = managed.tensor, tuple(managed.tensor.shape[: managed.tensor.ndim])
    delete = DELETER(managed.deleter) if managed.deleter else None
    kind = {code: kind for kind, code in KINDS.items()}.get(tensor.code)
    rename(given, USED)
    found = Found((tensor.data or 0) + tensor.offset, shape, np.dtype("V1"), lambda: delete and delete(place))
    if kind is None or tensor.lanes != 1 or tensor.device != CUDA or tensor.device_number != 0:
        raise BufferError("it is not on the first GPU, or has elements of another kind")
    found.dtype = np.dtype(bool if kind == "b" else f"{kind}{tensor.bits // 8}")
    if tensor.strides:
        require_order(tuple(tensor.strides[: tensor.ndim]), shape, 1)
    return found


def described_by(told: Mapping[str, Any], owner: Any) -> Found:
    """The array that CUDA's array interface describes."""
    dtype, shape = np.dtype(told["typestr"]), tuple(told["shape"])
    if told.get("mask") is not None:
        raise BufferError("parts of it are masked")
    if told.get("strides"):
        require_order(tuple(told["strides"]), shape, dtype.itemsize)
    return Found(told["data"][0] or 0, shape, dtype, lambda: owner)


def require_order(strides: Sizes, shape: Sizes, size: int) -> None:
    """Fails unless elements lie side by side, in C's order."""
    rows = [size * prod(shape[k + 1 :]) for k in range(len(shape))]
    if 0 not in shape and any(a != b for a, b, n in zip(strides, rows, shape, strict=True) if n > 1):
        raise BufferError("its elements do not lie side by side")
