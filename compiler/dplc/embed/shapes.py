"""Converts values between Python and a library: a shape for each type.

Like `calls.py`, this file needs only NumPy.
"""

from __future__ import annotations

import ctypes
import sys
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Protocol

import numpy as np

CTYPES = {
    "bool": ctypes.c_bool, "f16": ctypes.c_uint16, "f32": ctypes.c_float, "f64": ctypes.c_double,
    "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
}  # fmt: skip
DTYPES = {name: np.dtype("bool" if name == "bool" else f"{name[0]}{int(name[1:]) // 8}") for name in CTYPES}
MAX = (1 << 63) - 1
Sizes = tuple[int, ...]
DLPACK_CPU = 1
OTHER_TYPE, OTHER_SIZE = "R0508", "R0703"
WORDS = {"f64": "float", "i64": "int"}
NAMES = {dtype: WORDS.get(name, name) for name, dtype in DTYPES.items()}


class Error(Exception):
    """An error in a program or in a call of its functions; the text says where and why."""


class ArgumentError(Error, TypeError):
    """An argument has another type than the function takes."""


class Holder(Protocol):
    """Keeps arrays where they are, outside of the host's memory.  `given` is the name by which the library knows an
    argument, and its shape, or None if it is not held; `made` is the array of a result."""

    def given(self, value: Any, dtype: np.dtype, place: Place, kept: list[Any]) -> tuple[int, Sizes] | None: ...

    def made(self, place: int, shape: Sizes, dtype: np.dtype) -> Any: ...


class Home(Protocol):
    """The library to which shapes belong: it makes the shapes of parts, and frees results."""

    holder: Holder | None

    def free(self, place: int) -> None: ...

    def shape(self, data: Mapping[str, Any]) -> Shape: ...


class Place:
    """An argument or a part of one, as messages describe it."""

    def __init__(self, what: str, type: str, signature: str) -> None:
        self.what = what
        self.type = type
        self.signature = signature

    def part(self, name: str, type: str) -> Place:
        return Place(f"`{name}` of {self.what}", type, self.signature)

    def refused(self, found: str, way: str = "") -> ArgumentError:
        """The error for a value described as `found`.  `way` is a help with an expression that converts the argument,
        written `{x}`."""
        lines = [f"error[{OTHER_TYPE}]: {self.what} is {self.type}, not {found}"]
        if way:
            lines.append(f"  = help: {way.format(x=self.what.split('`')[1])}")
        return ArgumentError("\n".join([*lines, f"  = note: {self.signature}"]))


class Shape(ABC):
    """The representation of a type's values.  `give` turns a value into C arguments; `room` makes places for a result,
    and `taken` reads it from them.  In a struct, a value has `members`, to which `stored` gives values."""

    def __init__(self, library: Home, data: Mapping[str, Any]) -> None:
        self.library = library
        self.text: str = data["text"]

    @abstractmethod
    def members(self, name: str) -> Iterator[tuple[str, Any]]:
        """The names and ctypes of a value as part of a struct."""

    @abstractmethod
    def stored(self, value: Any, place: Place, kept: list[Any]) -> list[Any]:
        """The values of the members.  Objects to which they point are added to `kept`.  Raises ArgumentError."""

    def give(self, value: Any, place: Place, kept: list[Any]) -> list[Any]:
        return self.stored(value, place, kept)

    def give_plain(self, value: Any, given: list[Any]) -> bool:
        """Adds the C arguments of a value that can be passed as it is, and that the caller holds; False for others."""
        return False

    def given_as(self) -> list[Any]:
        """The ctypes of the values that `give` returns."""
        return [kind for _, kind in self.members("")]

    def room(self) -> list[Any]:
        return [kind() for _, kind in self.members("")]

    def taken(self, room: Iterator[Any]) -> Any:
        """The Python value of a result, read from the places that `room` made."""
        return self.made(place.value for place in room)

    @abstractmethod
    def made(self, values: Iterator[Any]) -> Any:
        """The Python value made from the values of its members."""


class Number(Shape):
    def __init__(self, library: Home, data: Mapping[str, Any]) -> None:
        super().__init__(library, data)
        self.name: str = data["name"]
        self.plain = {"f64": float, "f32": float, "bool": bool}.get(self.name)

    def give_plain(self, value: Any, given: list[Any]) -> bool:
        fits = type(value) is self.plain or (self.name == "i64" and type(value) is int and -MAX <= value <= MAX)
        if fits:
            given.append(value)
        return fits

    def taken(self, room: Iterator[Any]) -> Any:
        return next(room).value if self.name != "f16" else super().taken(room)

    def members(self, name: str) -> Iterator[tuple[str, Any]]:
        yield name, CTYPES[self.name]

    def stored(self, value: Any, place: Place, kept: list[Any]) -> list[Any]:
        value = scalar(value)
        is_bool, is_int = isinstance(value, bool | np.bool_), isinstance(value, int | np.integer)
        wanted = DTYPES[self.name]
        if self.name == "bool":
            fits = is_bool
        elif wanted.kind == "f":
            fits = not is_bool and (is_int or isinstance(value, float | np.floating))
        else:
            fits = is_int and not is_bool
        if not fits:
            raise place.refused(described(value), self.conversion(value, wanted))
        if wanted.kind in "iu" and not np.iinfo(wanted).min <= value <= np.iinfo(wanted).max:
            raise place.refused(f"{value}, which is too large for it")
        if self.name == "f16":
            return [int(np.float16(value).view(np.uint16))]
        return [float(value) if wanted.kind == "f" else value if is_bool else int(value)]

    def conversion(self, value: Any, wanted: np.dtype) -> str:
        if isinstance(value, np.ndarray) and value.size == 1:
            return "take the number in it:  {x}.item()"
        word = {"b": "bool", "f": "float"}.get(wanted.kind, "int")
        return f"convert it:  {word}({{x}})" if isinstance(value, bool | int | float | np.generic) else ""

    def made(self, values: Iterator[Any]) -> Any:
        value = next(values)
        return float(np.uint16(value).view(np.float16)) if self.name == "f16" else value


class Text(Shape):
    def members(self, name: str) -> Iterator[tuple[str, Any]]:
        yield name, ctypes.c_void_p
        yield f"{name}_bytes", ctypes.c_int64

    def stored(self, value: Any, place: Place, kept: list[Any]) -> list[Any]:
        if not isinstance(value, str):
            raise place.refused(described(value), "convert it:  {x}.decode()" if isinstance(value, bytes) else "")
        try:
            data = ctypes.create_string_buffer(value.encode("utf-8"))
        except UnicodeEncodeError as failure:
            code, at = ord(value[failure.start]), failure.start
            raise place.refused(f"{described(value)}: U+{code:04X} at {at} is no character, but half of one") from None
        kept.append(data)
        return [ctypes.addressof(data), len(data) - 1]

    def made(self, values: Iterator[Any]) -> Any:
        place, size = next(values), next(values)
        text = ctypes.string_at(place, size).decode("utf-8", "replace")
        self.library.free(place)
        return text


class Array(Shape):
    def __init__(self, library: Home, data: Mapping[str, Any]) -> None:
        super().__init__(library, data)
        self.element: str = data["element"]
        self.dtype = DTYPES[self.element]
        self.sizes: list[str] = data["sizes"]
        self.open: list[bool] = [label is not None for label in data["labels"]]
        self.rank = len(self.sizes) if all(self.open) else -1

    def give_plain(self, value: Any, given: list[Any]) -> bool:
        """An array in C order, of the right type and rank.  All others, and those that must not be written to, take
        the longer way."""
        if type(value) is not np.ndarray or value.dtype != self.dtype or not value.flags.carray:
            return False
        shape = value.shape
        if len(shape) != self.rank:
            return False
        given.append(value.__array_interface__["data"][0])
        given += shape
        return True

    def members(self, name: str) -> Iterator[tuple[str, Any]]:
        yield name, ctypes.c_void_p
        for i, is_open in enumerate(self.open):
            if is_open:
                yield f"{name}_{i}", ctypes.c_int64

    def stored(self, value: Any, place: Place, kept: list[Any]) -> list[Any]:
        holder = self.library.holder
        held = holder.given(value, self.dtype, place, kept) if holder else None
        if held:
            data, shape = held
            self.require_sizes(shape, place)
        else:
            array = self.array(value, place)
            kept.append(array)
            data, shape = array.ctypes.data, array.shape
        return [data, *(n for n, is_open in zip(shape, self.open, strict=True) if is_open)]

    def array(self, value: Any, place: Place) -> np.ndarray:
        """The value as an array of the right type; the value itself if possible.  Raises ArgumentError, or Error if a
        size differs."""
        array = as_array(value, self.dtype, place)
        if array.dtype.newbyteorder("=") != self.dtype:
            raise place.refused(described(array), self.conversion(value, array.dtype))
        if array.ndim != len(self.sizes):
            raise place.refused(described(array), self.reshaping(array))
        self.require_sizes(array.shape, place)
        return np.require(array, self.dtype, ["C", "A"])

    def require_sizes(self, shape: tuple[int, ...], place: Place) -> None:
        if len(shape) != len(self.sizes):
            raise place.refused(f"an array of {len(shape)} dimensions")
        for size, length, is_open in zip(self.sizes, shape, self.open, strict=True):
            if not is_open and int(size) != length:
                said = f"size of {place.what}: {length} is not {size}\n  = note: {place.signature}"
                raise Error(f"error[{OTHER_SIZE}]: {said}")

    def conversion(self, value: Any, found: np.dtype) -> str:
        """Advice on converting an array to the right element type; none for lists, which the user wrote out."""
        if isinstance(value, list | tuple) or found.kind not in "biufO":
            return ""
        loses = found.kind == "f" and self.dtype.kind in "iu"
        wanted = f"np.{self.dtype.name if self.dtype.kind != 'b' else 'bool_'}"
        if loses or isinstance(value, np.ndarray):
            return f"convert it:  {'np.round({x})' if loses else '{x}'}.astype({wanted})"
        return f"convert it:  np.asarray({{x}}, {wanted})"

    def reshaping(self, array: np.ndarray) -> str:
        """Advice on reaching the right number of dimensions; empty if there is none."""
        wanted = len(self.sizes)
        if array.ndim == wanted + 1 and 1 in array.shape:
            return f"leave out a dimension:  {{x}}.squeeze({array.shape.index(1)})"
        if array.ndim == wanted - 1:
            rest = ", :" * array.ndim
            return f"one row of it:  {{x}}[np.newaxis{rest}]" + ("; one column:  {x}[:, np.newaxis]" * (wanted == 2))
        return "as one row of numbers:  {x}.ravel()" if wanted == 1 else ""

    def made(self, values: Iterator[Any]) -> Any:
        place, sizes = next(values), self.sizes
        shape = tuple([next(values) if is_open else int(sizes[k]) for k, is_open in enumerate(self.open)])
        if self.library.holder:
            return self.library.holder.made(place, shape, self.dtype)
        if 0 in shape:
            self.library.free(place)
            return np.empty(shape, self.dtype)
        return np.asarray(Memory(place, shape, self.dtype.str, self.library.free))


class Memory:
    """The elements of a result, as NumPy's array interface describes them.  They are freed with the last array that
    shows them, but not when Python ends."""

    def __init__(self, place: int, shape: tuple[int, ...], dtype: str, free: Callable[[int], None]) -> None:
        self.place = place
        self.free = free
        self.__array_interface__ = {"data": (place, False), "shape": shape, "typestr": dtype, "version": 3}

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ends():
            self.free(self.place)


class Tuple(Shape):
    def __init__(self, library: Home, data: Mapping[str, Any]) -> None:
        super().__init__(library, data)
        self.items = [library.shape(item) for item in data["items"]]

    def members(self, name: str) -> Iterator[tuple[str, Any]]:
        for i, item in enumerate(self.items):
            yield from item.members(f"{name}_{i}")

    def parts(self, value: Any, place: Place) -> list[tuple[Shape, Any, Place]]:
        if not self.items and value is None:
            return []
        if not isinstance(value, tuple | list) or len(value) != len(self.items):
            raise place.refused(described(value))
        return [(s, v, place.part(str(i), s.text)) for i, (s, v) in enumerate(zip(self.items, value, strict=True))]

    def stored(self, value: Any, place: Place, kept: list[Any]) -> list[Any]:
        return [x for shape, part, at in self.parts(value, place) for x in shape.stored(part, at, kept)]

    def give(self, value: Any, place: Place, kept: list[Any]) -> list[Any]:
        return [x for shape, part, at in self.parts(value, place) for x in shape.give(part, at, kept)]

    def given_as(self) -> list[Any]:
        return [kind for item in self.items for kind in item.given_as()]

    def room(self) -> list[Any]:
        return [place for item in self.items for place in item.room()]

    def taken(self, room: Iterator[Any]) -> Any:
        return tuple(item.taken(room) for item in self.items) if self.items else None

    def made(self, values: Iterator[Any]) -> Any:
        return tuple(item.made(values) for item in self.items) if self.items else None


class Record(Shape):
    """A struct in C, a named tuple in Python."""

    def __init__(self, library: Home, data: Mapping[str, Any]) -> None:
        super().__init__(library, data)
        self.fields = [(name, library.shape(part)) for name, part in data["fields"]]
        members = [member for name, part in self.fields for member in part.members(name)]
        self.struct = type(data["name"], (ctypes.Structure,), {"_fields_": members})
        self.names = [name for name, _ in members]
        self.tuple = record_class(data["name"], tuple(name for name, _ in self.fields), self.text)

    def members(self, name: str) -> Iterator[tuple[str, Any]]:
        yield name, self.struct

    def stored(self, value: Any, place: Place, kept: list[Any]) -> list[Any]:
        parts = self.parts(value, place)
        members = [
            member
            for (name, shape), part in zip(self.fields, parts, strict=True)
            for member in shape.stored(part, place.part(name, shape.text), kept)
        ]
        return [self.struct(*members)]

    def parts(self, value: Any, place: Place) -> list[Any]:
        """The values of the fields, from a named tuple, a mapping, or any object with these attributes."""
        names = [name for name, _ in self.fields]
        if isinstance(value, self.tuple):
            return list(value)
        if isinstance(value, Mapping) and set(value) == set(names):
            return [value[name] for name in names]
        if all(hasattr(value, name) for name in names):
            return [getattr(value, name) for name in names]
        found = described(value)
        if isinstance(value, Mapping):
            lacking = [f"`{name}`" for name in names if name not in value]
            extra = [f"`{name}`" for name in value if name not in names]
            found += f" without {', '.join(lacking)}" if lacking else f" with {', '.join(extra)} besides"
        raise place.refused(found)

    def give(self, value: Any, place: Place, kept: list[Any]) -> list[Any]:
        (struct,) = self.stored(value, place, kept)
        return [ctypes.byref(struct)]

    def given_as(self) -> list[Any]:
        return [ctypes.c_void_p]

    def taken(self, room: Iterator[Any]) -> Any:
        return self.made(iter([next(room)]))

    def made(self, values: Iterator[Any]) -> Any:
        struct = next(values)
        members = iter([getattr(struct, name) for name in self.names])
        return self.tuple(*(shape.made(members) for _, shape in self.fields))


@cache
def record_class(name: str, fields: tuple[str, ...], text: str) -> type[tuple]:
    """The class of a record; all libraries with the same record share it.  A pickled value contains the arguments of
    this function, so that it can be read without the library."""
    made: Any = namedtuple(name, fields, rename=True)
    made.__doc__ = text
    made.__reduce__ = lambda value: (remade, (name, fields, text, tuple(value)))
    return made


def remade(name: str, fields: tuple[str, ...], text: str, values: tuple) -> tuple:
    return record_class(name, fields, text)(*values)


# ---- values of Python --------------------------------------------------------------------------------------------


def scalar(value: Any) -> Any:
    """The element of an array without dimensions; other values unchanged."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value[()]
    if hasattr(value, "__array__") and not isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
        return np.asarray(value)[()]
    return value


def as_array(value: Any, dtype: np.dtype, place: Place) -> np.ndarray:
    """The value as a NumPy array.  Numbers in lists are converted to `dtype` if that loses nothing.  Raises
    ArgumentError if the value is no array."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise place.refused("an array of which parts are masked", "say what stands there:  {x}.filled(0)")
    if isinstance(value, np.ndarray):
        return value
    if value is None or np.isscalar(value):
        raise place.refused(described(value))
    try:
        if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == DLPACK_CPU:
            return np.from_dlpack(value)
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as failure:
        raise place.refused(f"{described(value)}: {failure}") from None
    if isinstance(value, list | tuple | range):
        kinds = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}[dtype.kind]
        if array.size == 0 and array.dtype.kind == "f":
            return array.astype(dtype)
        if array.dtype.kind in kinds and (dtype.kind == "f" or np.array_equal(array.astype(dtype), array)):
            return array.astype(dtype)
    return array


def described(value: Any) -> str:
    """A value's type for messages: `float[3, 4]` for an array, otherwise its value or type in Python."""
    if isinstance(value, np.ndarray):
        name = NAMES.get(value.dtype, str(value.dtype))
        return f"{name}[{', '.join(map(str, value.shape))}]" if value.ndim else f"the {name} {value}"
    if isinstance(value, np.generic):
        return f"the {NAMES.get(value.dtype, str(value.dtype))} {value}"
    if isinstance(value, bool | int | float | str) and len(repr(value)) < 40:
        return f"{value!r}"
    return f"a {type(value).__name__}"
