"""The standard library, checked once and cached on disk.  Its interface is loaded at once, each body on first use."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from pathlib import Path

from dpl import host, pickled, resources
from dpl.core import term
from dpl.diagnostics import DplError, Warnings
from dpl.node import field, record
from dpl.syntax.load import Module, load_standard, standard_modules
from dpl.types.module import check_module
from dpl.types.primitives import primitives
from dpl.types.state.env import Exports

FIRST = "Prelude"
NAME, WHAT = "library", "checking the standard library"

Place = tuple[int, int]  # where a part begins and ends


class Parts:
    """Packed values, side by side in one buffer.  The library's own pickle has none of it: its file has it behind the
    pickle, and is mapped, not read.  A smaller file has its checksum sooner; few values are unpacked.  The pickle of a
    program, which another process runs, has all of it."""

    def __init__(self, buffer: bytes | None = None) -> None:
        self.buffer: bytes | bytearray | memoryview = bytearray() if buffer is None else buffer

    def add(self, value: object) -> Place:
        """Packs a value, and gives its place."""
        assert isinstance(self.buffer, bytearray)
        start = len(self.buffer)
        self.buffer += zlib.compress(pickled.dumps(value, 5), 1)
        return start, len(self.buffer)

    def at(self, place: Place):
        """The value at a place."""
        return pickled.loads(zlib.decompress(self.buffer[slice(*place)]))

    def __reduce__(self) -> tuple:
        is_new = isinstance(self.buffer, bytearray)
        return Parts, () if is_new else (bytes(self.buffer),)


class Lazy(MutableMapping):
    """A mapping whose values stay packed until their first use."""

    def __init__(self, parts: Parts, packed: dict[str, Place], ready: dict | None = None) -> None:
        self.parts = parts
        self.packed = packed
        self.ready = ready or {}

    def __getitem__(self, name: str):
        if name not in self.ready:
            self.ready[name] = self.parts.at(self.packed[name])
        return self.ready[name]

    def get(self, name: str, default=None):
        return self[name] if name in self.packed or name in self.ready else default

    def __setitem__(self, name: str, value) -> None:
        self.ready[name] = value

    def __delitem__(self, name: str) -> None:
        self.packed.pop(name, None)
        self.ready.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self.packed or name in self.ready

    def __iter__(self) -> Iterator[str]:
        return iter(self.packed.keys() | self.ready.keys())

    def __len__(self) -> int:
        return len(self.packed.keys() | self.ready.keys())

    def __reduce__(self) -> tuple:
        return Lazy, (self.parts, self.packed, self.ready)


@record
class Library:
    """Exports by module, definitions by core name, and data types.  Names in `loud` block generalisation."""

    modules: dict[str, Exports]
    definitions: Mapping[str, term.Def]
    datas: dict[str, term.Data]
    loud: set[str]
    primitives: Exports = field(default_factory=Exports)
    parts: Parts = field(default_factory=Parts)


@cache
def library() -> Library:
    """The library from the cache; if it is not there, as it was shipped, or else newly checked."""
    path = entry()

    def find() -> Library | None:
        data = host.current.cache.mapped(path)
        try:
            return None if data is None else unpacked(data)
        except Exception:  # another version of Python wrote it
            return None

    def make() -> Library:
        data = host.current.shipped(NAME, sources()) or packed_library()
        host.current.cache.write(path, data)
        return unpacked(memoryview(data))

    return host.current.cache.once(find, make, WHAT)


def entry() -> Path:
    """The checked library's place in the cache."""
    return host.current.cache.place(f"stdlib-{version()}.bin")


@cache
def version() -> str:
    """A hash that changes with the library, the grammar or the checker."""
    return host.current.stamp(paths())


def sources() -> list[Path]:
    """The files that the checked library depends on."""
    return list(map(Path, paths()))


def paths() -> list[str]:
    """Their paths, as text: each compilation asks for them, and to make a Path takes longer than to look up a file."""
    folders = (resources.grammar(), resources.stdlib())
    files = [entry.path for folder in folders for entry in os.scandir(folder) if entry.name.endswith((".lark", ".dp"))]
    return [*sorted(files), *resources.checker()]


def packed_library() -> bytes:
    """Length of a pickle | the pickle | the parts that it refers to."""
    made = check_library()
    head = pickled.dumps(made, 5)
    return len(head).to_bytes(8, "little") + head + made.parts.buffer


def unpacked(data: memoryview) -> Library:
    end = 8 + int.from_bytes(data[:8], "little")
    found: Library = pickled.loads(data[8:end])
    found.parts.buffer = data[end:]
    return found


def check_library() -> Library:
    """Checks every module of the standard library, each after the modules that it mentions."""
    base = Exports(values=dict(primitives(public=True)))
    found = Library({"Prim": Exports(values=dict(primitives(public=False)))}, {}, {}, set(), base)
    definitions: dict[str, term.Def] = {}
    problems = []
    for module in in_order():
        items, cx, failures = check_module(
            module.name, module.tree, dict(found.modules), found.datas, found.loud, Warnings(), base
        )
        problems += failures
        found.modules[module.name] = cx.exports()
        definitions.update((item.name, item) for item in items if isinstance(item, term.Def))
    if problems:
        raise DplError(*problems)
    del found.modules["Prim"]
    for name, exports in found.modules.items():
        found.modules[name] = public = exports.public()
        public.values = lazy(found.parts, public.values)
    base.values = lazy(found.parts, base.values)
    found.definitions = lazy(found.parts, definitions)
    return found


def lazy(parts: Parts, values: Mapping) -> Lazy:
    return Lazy(parts, {name: parts.add(value) for name, value in values.items()})


def in_order() -> list[Module]:
    """The modules in dependency order: the Prelude first, then each after those that its text mentions."""
    names = standard_modules()
    loaded = {name: load_standard(name) for name in names}
    done: dict[str, Module] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in done or name in path:
            return
        needs = [FIRST] if name != FIRST and FIRST in names else []
        needs += [
            other for other in names if other != name and f"{other}." in loaded[name].source.text and name != FIRST
        ]
        for other in needs:
            visit(other, (*path, name))
        done[name] = loaded[name]

    for name in names:
        visit(name, ())
    return list(done.values())
