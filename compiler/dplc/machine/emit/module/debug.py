"""Debug information for debuggers and profilers: DWARF, as LLVM metadata.

    loss.3(w: f64, xs: f64[1])       a subprogram `loss` of model.dp, with arguments `w` and `xs`
    mul w x                          its instructions stand in model.dp, line 7

Calls that were inlined in flat look like calls that LLVM inlined.  An array is shown as {data, n0, n1 ...}, a tuple as
a struct with members _0, _1 ...  The text in which a local variable is seen is a lexical block of its own, so the
debugger shows the variables of the place where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from dpl.node import node
from dpl.regex import regex
from dpl.source import NOWHERE, Source, Span

from dplc.flat import places
from dplc.flat import term as f
from dplc.flat.local_names import Local, LocalNames
from dplc.machine.emit.module.layout import leaves, struct
from dplc.machine.failure.failures import shown
from dplc.machine.llvm.literals import escape
from dplc.machine.llvm.types import SIZES, memory_type
from dplc.machine.llvm.writer import Writer

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


@node
class Seen:
    """A variable of flat in the text of a function: its leaves, and the span of what defines it."""

    var: f.Var
    values: tuple[str, ...]
    span: Span


def inside(fn: f.Fn, local: Local, span: Span) -> Span | None:
    """The place where a name is seen, with the calls through which the function around it was inlined: that of `span`,
    or of a call in which that is.  None if the name is not of this function, nor of one that was inlined there."""
    while isinstance(span, places.Inlined):
        if (span.source, span.label) == (local.scope.source, local.label):
            at = local.scope
            return places.Inlined(at.source, at.start, at.end, span.label, span.caller)
        span = span.caller
    return local.scope if fn.label == local.label else None


def kept(w: Writer, slots: dict[str, str], records: Iterable[str]) -> Iterator[str]:
    """The same records for code that is not optimised: each value is stored in the frame, where it stays when nothing
    uses it any more.  `slots` are those of other values."""
    for record in records:
        before, about = record.split(", !", 1)
        leaf, value = before.strip().removeprefix("#dbg_value(").split(" ", 1)
        if about not in slots:
            slots[about] = w.slot(leaf)
        yield f"  store {leaf} {value}, ptr {slots[about]}"
        variable, place = about.replace("!DIExpression()", "!DIExpression(DW_OP_deref)"), slots[about]
        yield f"    #dbg_value(ptr {place}, !{variable.replace('(DW_OP_LLVM', '(DW_OP_deref, DW_OP_LLVM')}"


Member = tuple[str, str, int, int]  # name, type, size in bits, place in words


class DebugInfo:
    """The metadata of one module, without duplicates."""

    def __init__(self, metadata: Callable[[str], str], main: str, names: LocalNames) -> None:
        """`metadata` adds a node to the module and returns its number; `main` is the name of the main function, and
        `names` are those of local variables."""
        self.metadata = metadata
        self.main = main
        self.names = names
        self.labels: dict[str, str] = {}  # of functions, by their nodes
        self.blocks: dict[tuple[Source, str], list[Span]] = {}  # where names are seen, outer texts first
        for local in names.locals.values():
            self.blocks.setdefault((local.scope.source, local.label), []).append(local.scope)
        for scopes in self.blocks.values():
            scopes[:] = sorted(dict.fromkeys(scopes), key=lambda scope: (scope.start, -scope.end))
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
        node = self.subprogram(name, fn.span, fn.name)
        self.labels[node] = fn.label
        return node

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
        line, column = span.source.position(span.start) if span != NOWHERE else (0, 0)
        return self.node(f"!DILocation(line: {line}, column: {column}, scope: {self.block(scope, span)}{inlined_at})")

    def block(self, scope: str, span: Span) -> str:
        """The innermost block around a place in the function `scope`, or in one that was inlined."""
        if span == NOWHERE:
            return scope
        label = self.labels.get(scope, "")
        if isinstance(span, places.Inlined):
            label, plain = span.label, Span(span.source, span.start, span.end)
            scope = self.subprogram(shown(label), self.names.functions.get((span.source, label), plain))
        file = self.file(span.source)
        scope = self.node(f"!DILexicalBlockFile(scope: {scope}, file: {file}, discriminator: 0)")
        for seen in self.blocks.get((span.source, label), ()):
            if seen.start <= span.start < seen.end:
                line, column = seen.source.position(seen.start)
                scope = self.node(f"!DILexicalBlock(scope: {scope}, file: {file}, line: {line}, column: {column})")
        return scope

    def start(self, fn: f.Fn, scope: str) -> str:
        """The location of what a function does without one: its line, or none, and where its arguments are seen."""
        texts = (scopes[0] for (_, label), scopes in self.blocks.items() if label == fn.label)
        block = self.block(scope, next(texts, fn.span))
        line, column = fn.span.source.position(fn.span.start) if fn.span != NOWHERE else (0, 0)
        return f", !dbg {self.node(f'!DILocation(line: {line}, column: {column}, scope: {block})')}"

    def with_locations(self, lines: list[str], fn: f.Fn, scope: str) -> list[str]:
        """Gives every instruction of a function a location: if it has none, that of the instruction before."""
        done, place = [], self.start(fn, scope)
        for line in lines:
            if mark := MARK.search(line):
                place = mark[0]
            done.append(line + place if has_no_location(line) else line)
        return done

    # ---- variables

    def arguments(self, w: Writer, fn: f.Fn, scope: str) -> list[str]:
        """Debug records for the start of a function that describe those of its arguments that the program names."""
        records = self.given(fn, scope)
        return list(kept(w, {}, records) if self.names.stay else records)

    def given(self, fn: f.Fn, scope: str) -> Iterator[str]:
        file, line = self.file(fn.span.source), fn.span.line if fn.span != NOWHERE else 0
        place = self.node(f"!DILocation(line: {line}, scope: {scope})")
        for i, var in enumerate(fn.params):
            if not (named := self.names.of(var)):
                continue
            name = escape(named[0].name.encode())
            text = f'!DILocalVariable(name: "{name}", arg: {i + 1}, scope: {scope}, file: {file}, line: {line}, '
            values = [f"%p{i}.{k}" for k in range(len(leaves(var.ty)))]
            yield from self.records(text, var.ty, 0, values, place)

    def records(self, text: str, whole: f.Type, first: int, values: Sequence[str], place: str) -> Iterator[str]:
        """Debug records that say that `values` are the leaves from number `first` on of the variable that `text`
        describes."""
        shape = struct(whole)
        if not values:
            return
        variable = self.node(f"{text}type: {self.type(whole)})")
        parts = list(zip(shape.leaves, shape.offsets, strict=True))[first : first + len(values)]
        for (leaf, offset), value in zip(parts, values, strict=True):
            size = 8 * SIZES[memory_type(leaf)]
            part = f"DW_OP_LLVM_fragment, {8 * offset}, {size}" if len(shape.leaves) > 1 else ""
            yield f"    #dbg_value({leaf} {value}, {variable}, !DIExpression({part}), {place})"

    def local(self, fn: f.Fn, scope: str, seen: Seen) -> Iterator[str]:
        """Debug records for a variable of flat, if it has names in the program."""
        for local in self.names.of(seen.var):
            if (span := inside(fn, local, seen.span)) is None:
                continue
            block, place = self.block(scope, span), self._location(scope, span)
            name, line = escape(local.name.encode()), span.source.position(span.start)[0]
            text = f'!DILocalVariable(name: "{name}", scope: {block}, file: {self.file(span.source)}, line: {line}, '
            yield from self.records(text, local.whole, len(leaves(f.Tup(local.before))), seen.values, place)

    def with_locals(self, w: Writer, fn: f.Fn, scope: str, seen: Sequence[Seen]) -> list[str]:
        """The lines of a function, with debug records after those that define what they are about."""
        made = {line.split(" = ")[0].strip(): i for i, line in enumerate(w.lines) if " = " in line}
        after: dict[int, list[str]] = {}
        slots: dict[str, str] = {}
        for one in dict.fromkeys(seen):
            last = max([made.get(value, -1) for value in one.values], default=-1)
            if last >= 0 and all(value in made or not value.startswith("%") for value in one.values):
                records = self.local(fn, scope, one)
                after.setdefault(last, []).extend(kept(w, slots, records) if self.names.stay else records)
        done, waiting = [], []
        for i, line in enumerate(w.lines):
            if waiting and " phi " not in line:
                done += waiting
                waiting = []
            done.append(line)
            waiting += after.get(i, ())
        return done

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
