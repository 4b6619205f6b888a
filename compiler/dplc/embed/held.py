"""Arrays of a model that is loaded with a device: they stay there between calls.

    m = dpl.load("model.dp", device="gpu")
    p = m.step(p, xs)                      a `Held` array; given to the next call, it is not copied
    np.asarray(p)                          its elements on the host
    torch.from_dlpack(p), jax.numpy.from_dlpack(p), cupy.asarray(p)         the same memory on the GPU

Arguments on the GPU, by `__cuda_array_interface__` or `__dlpack__`, are read where they are.  Arrays
that are shared in this way must not be written to.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from dplc.embed import dlpack
from dplc.embed.calls import Library, own
from dplc.embed.shapes import NAMES, Place, Sizes

HELD = 1 << 62  # is added to the address of a block (`rt/held.rt`)
ADOPT, DROP, HOME, PLACE, WAIT, STREAM = range(6)  # requests
REQUEST = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
NONE = -1
LEGACY = 1  # the stream of work that names none


class Holder:
    """The held arrays of one library."""

    def __init__(self, library: Library, must: bool) -> None:
        self.library = library
        self.dropped: list[int] = []  # blocks without a holder
        if must:
            self.request(STREAM)  # starts the program, and fails if there is no device

    def request(self, what: int, block: int = 0, number: int = 0) -> int:
        frame = (ctypes.c_int64 * 4)(what, block, number, NONE)
        symbol = own(self.library.prefix, "request")
        self.library.call(symbol, REQUEST, (ctypes.addressof(frame),))
        return frame[3]

    def tidy(self) -> None:
        while self.dropped:
            self.request(DROP, self.dropped.pop())

    def made(self, place: int, shape: Sizes, dtype: np.dtype) -> Held:
        self.tidy()
        return Held(self, place - HELD, shape, dtype)

    def given(self, value: Any, dtype: np.dtype, place: Place, kept: list[Any]) -> tuple[int, Sizes] | None:
        """The name and the shape of an array on the device; None for others."""
        if isinstance(value, Held) and value.holder is self:
            require_type(value.dtype, value.shape, dtype, place)
            kept.append(value)
            return value.block + HELD, value.shape
        found = self.foreign(value, place)
        if found is None:
            return None
        require_type(found.dtype, found.shape, dtype, place)
        block = self.request(ADOPT, found.place, prod(found.shape) * dtype.itemsize)
        if block == NONE:
            return None
        kept.append(Lent(self, block, found))
        return block + HELD, found.shape

    def foreign(self, value: Any, place: Place) -> dlpack.Found | None:
        """Where the elements of an argument are on the device, once work on them is done."""
        if isinstance(value, np.ndarray | np.generic | list | tuple | int | float):
            return None
        try:
            if told := getattr(value, "__cuda_array_interface__", None):
                stream = told.get("stream", LEGACY)
                if stream is not None:
                    self.request(WAIT, number=stream)
                return dlpack.described_by(told, value)
            if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == dlpack.CUDA:
                return dlpack.taken(value.__dlpack__(stream=self.request(STREAM)))
        except (RuntimeError, BufferError, TypeError) as failure:
            raise place.refused(f"a {type(value).__name__}: {failure}") from None
        return None


def require_type(found: np.dtype, shape: Sizes, wanted: np.dtype, place: Place) -> None:
    if found != wanted:
        raise place.refused(f"{NAMES.get(found, found)}[{', '.join(map(str, shape))}]")


class Lent:
    """An argument on the device that belongs to another library, which has it back when our work is done."""

    def __init__(self, holder: Holder, block: int, found: dlpack.Found) -> None:
        self.holder, self.block, self.found = holder, block, found

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ends():
            self.holder.request(WAIT)
            self.holder.request(DROP, self.block)


class Shown:
    """The elements of a held array on the host, as NumPy reads them."""

    def __init__(self, held: Held) -> None:
        self.held = held
        place = held.holder.request(HOME, held.block)
        self.__array_interface__ = {"data": (place, True), "shape": held.shape, "typestr": held.dtype.str, "version": 3}


class Held:
    """An array that stays where it was computed."""

    __slots__ = ("__weakref__", "block", "dtype", "holder", "shape")

    def __init__(self, holder: Holder, block: int, shape: Sizes, dtype: np.dtype) -> None:
        self.holder, self.block, self.shape, self.dtype = holder, block, shape, dtype

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ends():
            self.holder.dropped.append(self.block)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The elements on the host; without a copy, they are not to be written to."""
        return np.array(Shown(self), dtype, copy=copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        place = self.place()
        if place == NONE:
            raise AttributeError("there is no GPU")
        return {"data": (place, False), "shape": self.shape, "typestr": self.dtype.str, "version": 3, "stream": None}

    def __dlpack_device__(self) -> tuple[int, int]:
        return (dlpack.HOST if self.place() == NONE else dlpack.CUDA), 0

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, **_: Any) -> Any:
        place = self.place()
        if place == NONE or (dl_device and dl_device[0] == dlpack.HOST):
            return np.array(self).__dlpack__()
        return dlpack.capsule(self, place, self.shape, self.dtype)

    def place(self) -> int:
        """The address on the device, where nothing is being written any more."""
        return self.holder.request(PLACE, self.block)

    def numpy(self) -> np.ndarray:
        return np.asarray(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return np.asarray(self)[index]

    def __repr__(self) -> str:
        return f"<{NAMES[self.dtype]}[{', '.join(map(str, self.shape))}] of a DPL model>"
