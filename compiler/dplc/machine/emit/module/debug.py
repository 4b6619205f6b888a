"""Debug information for debuggers and profilers: DWARF, as LLVM metadata.

    loss.3(w: f64, xs: f64[1])       a subprogram `loss` of model.dp, with arguments `w` and `xs`
    mul w x                          its instructions stand in model.dp, line 7

Calls that were inlined in flat look like calls that LLVM inlined.  An array is shown as {data, n0, n1 ...}, a tuple as
a struct with members _0, _1 ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dpl.regex import regex
from dpl.source import NOWHERE, Source, Span

from dplc.flat import places
from dplc.flat import term as f
from dplc.machine.emit.module.layout import leaves, struct
from dplc.machine.failure.failures import shown
from dplc.machine.llvm.literals import escape
from dplc.machine.llvm.types import SIZES, memory_type

UNIT, TYPE = "!6", "!7"  # nodes of the module's prelude: the compile unit, and the type of all functions
BASIC = {
    "bool": ("bool", 8, "boolean"), "f16": ("f16", 16, "float"), "f32": ("f32", 32, "float"),
    "f64": ("float", 64, "float"), "i64": ("int", 64, "signed"),
    **{f"i{bits}": (f"i{bits}", bits, "signed") for bits in (8, 16, 32)},
    **{f"u{bits}": (f"u{bits}", bits, "unsigned") for bits in (8, 16, 32, 64)},
}  # fmt: skip


MARK = regex(r", !dbg ![0-9]+")


def has_no_location(line: str) -> bool:
    """An instruction without a debug location (phis need none), except those that end in a mark (`versions.py`)."""
    return line.startswith("  ") and "!dbg" not in line and " phi " not in line and " ;" not in line


Member = tuple[str, str, int, int]  # name, type, size in bits, place in words


class DebugInfo:
    """The metadata of one module, without duplicates."""

    def __init__(self, metadata: Callable[[str], str], main: str) -> None:
        """`metadata` adds a node to the module and returns its number; `main` is the name of the main function."""
        self.metadata = metadata
        self.main = main
        self.known: dict[tuple[str, str], str] = {}
        self.locations: dict[tuple[str, Span], str] = {}

    def node(self, text: str, instance: str = "") -> str:
        """The number of a node of metadata, which is made once."""
        if (text, instance) not in self.known:
            self.known[text, instance] = self.metadata(text)
        return self.known[text, instance]

    # ---- places

    def file(self, source: Source) -> str:
        """The node of a source file."""
        path = Path(source.path).resolve() if source.path else Path(source.name)
        name, folder = (escape(str(part).encode()) for part in (path.name, path.parent))
        return self.node(f'!DIFile(filename: "{name}", directory: "{folder}")')

    def subprogram(self, name: str, span: Span, instance: str = "") -> str:
        """A function; `instance` tells several copies of one function of the source apart."""
        file, line = self.file(span.source), span.line if span != NOWHERE else 0
        text = f'distinct !DISubprogram(name: "{escape(name.encode())}", scope: {file}, file: {file}, '
        text += f"line: {line}, scopeLine: {line}, type: {TYPE}, unit: {UNIT}, "
        return self.node(f"{text}spFlags: DISPFlagDefinition | DISPFlagOptimized)", instance)

    def function(self, fn: f.Fn) -> str:
        """The node of a function, by the name that the user knows."""
        own = fn.name.partition(".")[0]  # `loop.4a1c` is shown as `loop`
        name = "program" if fn.name == self.main else shown(fn.label) or own  # `main` is C's
        return self.subprogram(name, fn.span, fn.name)

    def location(self, scope: str, span: Span) -> str:
        """The debug location of an instruction in the function `scope`."""
        return f", !dbg {self._location(scope, span)}"

    def _location(self, scope: str, span: Span) -> str:
        if (scope, span) not in self.locations:
            self.locations[scope, span] = self._made(scope, span)
        return self.locations[scope, span]

    def _made(self, scope: str, span: Span) -> str:
        inlined_at = ""
        if isinstance(span, places.Inlined):
            inlined_at = f", inlinedAt: {self._location(scope, span.caller)}"
            scope = self.subprogram(shown(span.label), Span(span.source, span.start, span.end))
        line, column = span.source.position(span.start) if span != NOWHERE else (0, 0)
        if span != NOWHERE:
            scope = self.node(f"!DILexicalBlockFile(scope: {scope}, file: {self.file(span.source)}, discriminator: 0)")
        return self.node(f"!DILocation(line: {line}, column: {column}, scope: {scope}{inlined_at})")

    def with_locations(self, lines: list[str], scope: str, span: Span) -> list[str]:
        """Gives every instruction of a function a location: if it has none, that of the instruction before."""
        done, place = [], self.location(scope, span)
        for line in lines:
            if mark := MARK.search(line):
                place = mark[0]
            done.append(line + place if has_no_location(line) else line)
        return done

    # ---- arguments

    def arguments(self, fn: f.Fn, scope: str) -> Iterator[str]:
        """Debug records for the start of a function that describe its arguments."""
        file, line = self.file(fn.span.source), fn.span.line if fn.span != NOWHERE else 0
        place = self.node(f"!DILocation(line: {line}, scope: {scope})")
        for i, var in enumerate(fn.params):
            shape = struct(var.ty)
            if not shape.leaves:
                continue
            name = escape(var.name.split(".")[0].encode())
            text = f'!DILocalVariable(name: "{name}", arg: {i + 1}, scope: {scope}, file: {file}, line: {line}, '
            variable = self.node(f"{text}type: {self.type(var.ty)})")
            for k, (leaf, offset) in enumerate(zip(shape.leaves, shape.offsets, strict=True)):
                size = 8 * SIZES[memory_type(leaf)]
                part = f"DW_OP_LLVM_fragment, {8 * offset}, {size}" if len(shape.leaves) > 1 else ""
                yield f"    #dbg_value({leaf} %p{i}.{k}, {variable}, !DIExpression({part}), {place})"

    def type(self, ty: f.Type) -> str:
        """The node of a type."""
        match ty:
            case f.Num(name):
                shown_as, bits, kind = BASIC[name]
                return self.node(f'!DIBasicType(name: "{shown_as}", size: {bits}, encoding: DW_ATE_{kind})')
            case f.Arr(elem, rank):
                kinds = [self.pointer(None), self.pointer(elem), *[self.type(f.I64)] * rank]
                return self.composite("array", ty, kinds, ["owner", "data", *(f"n{k}" for k in range(rank))])
            case f.Str():
                byte = self.node('!DIBasicType(name: "char", size: 8, encoding: DW_ATE_UTF)')
                text = self.node(f"!DIDerivedType(tag: DW_TAG_pointer_type, baseType: {byte}, size: 64)")
                kinds = [self.pointer(None), text, self.type(f.I64)]
                return self.composite("string", ty, kinds, ["owner", "data", "bytes"])
            case f.Tup((item,)):
                return self.type(item)
            case f.Tup(items):
                return self.tuple_type(ty, items)
            case _:
                return self.pointer(None)

    def pointer(self, to: f.Type | None) -> str:
        """The node of a pointer; to anything, if nothing is said."""
        base = "null" if to is None else self.type(to)
        return self.node(f"!DIDerivedType(tag: DW_TAG_pointer_type, baseType: {base}, size: 64)")

    def composite(self, name: str, ty: f.Type, types: list[str], names: list[str]) -> str:
        shape = struct(ty)
        sizes = [8 * SIZES[memory_type(leaf)] for leaf in shape.leaves]
        return self.members(name, shape.size, list(zip(names, types, sizes, shape.offsets, strict=True)))

    def tuple_type(self, ty: f.Tup, items: tuple[f.Type, ...]) -> str:
        """A struct whose members lie as the leaves of the items do."""
        shape, at, parts = struct(ty), 0, []
        for i, item in enumerate(items):
            count = len(leaves(item))
            if count:
                parts.append((f"_{i}", self.type(item), 8 * struct(item).size, shape.offsets[at]))
            at += count
        return self.members("tuple", shape.size, parts)

    def members(self, name: str, size: int, parts: Sequence[Member]) -> str:
        nodes = [
            self.node(
                f'!DIDerivedType(tag: DW_TAG_member, name: "{part}", baseType: {kind}, size: {bits}, offset: {8 * at})'
            )
            for part, kind, bits, at in parts
        ]
        elements = self.node(f"!{{{', '.join(nodes)}}}")
        tag = "DW_TAG_structure_type"
        return self.node(f'!DICompositeType(tag: {tag}, name: "{name}", size: {8 * size}, elements: {elements})')
