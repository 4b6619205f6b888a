"""A file -> the parsed modules of the program, imported ones first.

    main.dp: import "lib/model.dp" as M; import Nn   ->   [Module Model (lib/model.dp), Module main (main.dp)]

Standard modules are always in scope.  They are not loaded here; an import of one is only recorded.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from dpl import host, resources
from dpl.diagnostics import Diagnostic, DplError
from dpl.digest import blake2b
from dpl.node import field, record
from dpl.source import Source, Span, unified
from dpl.syntax import tree
from dpl.syntax.parse import parse
from dpl.syntax.tree import File

MAIN = "main"
LIKE = 0.62  # how like a name is another, from 0 to 1, that is proposed in its place
MOST = 1 << 20  # the most bytes of cached imports
SHOWN = 5  # how many programs of a folder a message names
SAVE = ("save the file in the encoding UTF-8",)


@record
class Module:
    """A module; `imports` maps its aliases of other modules to the names of these modules.

    A module whose imports are known from the cache is parsed only when its tree is used."""

    name: str
    source: Source
    parsed: File | None = None
    imports: dict[str, str] = field(default_factory=dict)
    is_std: bool = False

    @property
    def tree(self) -> File:
        """The syntax tree, which is made at its first use.  Raises the syntax errors."""
        if self.parsed is None:
            self.parsed = parse(self.source)
        return self.parsed


Reader = Callable[[Path, str, Span | None], Source]


def load(main: str | Path | Source, search: Sequence[Path] = ()) -> list[Module]:
    """The modules of a program in order of execution, `main` last.  Raises DplError if one cannot be read or parsed.

    `search` lists folders to search for imported files, after the folder of the importing file."""
    return Loader(search).load(main if isinstance(main, Source) else read(Path(main)))


@cache
def standard_modules() -> dict[str, Path]:
    """The files of the standard library by module name."""
    return {module_name(path): path for path in sorted(resources.stdlib().glob("*.dp"))}


def load_standard(name: str) -> Module:
    """A parsed module of the standard library."""
    path = standard_modules()[name]
    source = read(path, f"stdlib/{path.name}")
    return Module(name, source, parse(source), is_std=True)


def module_name(path: Path) -> str:
    """The module of a file: `tree.dp` is `Tree`."""
    return path.stem[:1].upper() + path.stem[1:]


def read(path: Path, name: str = "", where: Span | None = None) -> Source:
    """The text of a file; `where` is the import that needs it.  Raises DplError if it cannot be read."""
    name = name or str(path)
    try:
        lasting = is_lasting(path, name, where)
        return Source(name, decoded(host.current.read_bytes(path), name, where), path if lasting else None)
    except FileNotFoundError:
        helps = _near(path) or beside(where) or _there(path)
        raise DplError.at("E0510", f"there is no file {name}", where, helps=helps) from None
    except (IsADirectoryError, NotADirectoryError):
        reason = "is a directory, not a file" if _is_folder(path) else "is below a file, which is no directory"
        raise DplError.at("E0511", f"{name} {reason}", where) from None
    except (OSError, ValueError) as error:
        raise unreadable(name, error, where) from None


def unreadable(name: str, error: Exception, where: Span | None = None) -> DplError:
    """E0513 for a file that cannot be read, with the system's reason."""
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return DplError.at("E0513", f"{name} cannot be read: {reason}", where)


def is_lasting(path: Path, name: str, where: Span | None) -> bool:
    """True if the file can be read again.  The main module may also come through a pipe or from a terminal.

    Raises DplError for imports of other kinds, and for devices, which may never end."""
    kind = host.current.kind(path)
    if kind in ("file", "folder"):
        return True
    if where is None and kind != "device":
        return False
    kind = kind if kind in ("pipe", "socket") else "device"
    raise DplError.at("E0511", f"{name} is a {kind}, not a file", where)


def _is_folder(path: Path) -> bool:
    try:
        return host.current.kind(path) == "folder"
    except OSError:
        return False


def _programs(folder: Path) -> list[str]:
    """The names of the DPL programs in a folder."""
    return [name for name in host.current.names(folder) if name.endswith(".dp")]


def decoded(data: bytes, name: str, where: Span | None = None) -> str:
    """The text in the bytes of a program, with line ends normalised.  Raises DplError if it is not UTF-8."""
    if b"\0" in data:
        what = "it is UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "it holds zero bytes"
        raise DplError.at("E0512", f"{name} is no text in UTF-8", where, note=what, helps=SAVE)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        title = f"{name} is not UTF-8: byte 0x{data[error.start]:02x} on line {line}"
        raise DplError.at("E0512", title, where, helps=SAVE) from None
    return unified(text)


def _near(path: Path) -> tuple[str, ...]:
    """A help that names a file beside a missing one with a similar name."""
    try:
        names = _programs(path.parent)
    except OSError:
        return ()
    from difflib import get_close_matches

    stems = {Path(name).stem: name for name in names}
    return tuple(f"did you mean {path.with_name(stems[n])}?" for n in get_close_matches(path.stem, stems, 1, LIKE))


def _there(path: Path) -> tuple[str, ...]:
    """A help that says which programs there are where one is missing."""
    folder = "this folder" if path.parent == Path() else str(path.parent)
    if path.parent != Path() and not _is_folder(path.parent):
        return (f"there is no folder {folder} either",)
    try:
        names = sorted(_programs(path.parent))
    except OSError:
        return ()
    more = " ..." if len(names) > SHOWN else ""
    found = f"programs in {folder}:  {'  '.join(names[:SHOWN])}{more}"
    return (found if names else f"no program (.dp) is in {folder}",)


def beside(where: Span | None) -> tuple[str, ...]:
    """A help for a path in an import, which begins where the importing file is."""
    return ("the path begins at the folder of the file that imports it",) if where is not None else ()


class Loader:
    """Loads modules depth first.  A file is identified by its real path and read once; `reader` returns its text."""

    def __init__(self, search: Sequence[Path], reader: Reader | None = None) -> None:
        self.search = search
        self.reader = reader or read
        self.done: list[Module] = []
        self.names: dict[str, str] = {}  # real path -> module name
        self.taken: set[str] = {MAIN, *standard_modules()}
        self.open: list[tuple[str, Source]] = []  # the modules being loaded, with their real paths
        self.problems: list[Diagnostic] = []

    def load(self, main: Source) -> list[Module]:
        """The modules of a program, imported ones first."""
        return self.add(Module(MAIN, main))

    def add(self, main: Module) -> list[Module]:
        """The modules not loaded before, in order of execution, the main one last.

        Raises DplError with all errors; then none of them counts as loaded."""
        before, names = len(self.done), dict(self.names)
        self.visit(main)
        if self.problems:
            problems, self.problems, self.names = self.problems, [], names
            del self.done[before:]
            raise DplError(*problems)
        return self.done[before:]

    def visit(self, module: Module) -> None:
        source = module.source
        try:
            declared = _imports(module)
        except DplError as error:
            self.problems += error.diagnostics
            return
        self.open.append((_real(source.path), source))
        for decl in declared:
            try:
                alias, target = self.follow(decl, source)
                module.imports[alias] = target
            except DplError as error:
                self.problems += error.diagnostics
        self.open.pop()
        self.done.append(module)

    def follow(self, decl: tree.DeclImport, importer: Source) -> tuple[str, str]:
        """The alias that the importing module uses, and the name of the imported module."""
        if not decl.is_path and decl.target in standard_modules():
            return decl.alias or decl.target, decl.target
        path = self.find(decl, importer)
        real = _real(path)
        alias = decl.alias or (module_name(path) if decl.is_path else decl.target)
        self.refuse_cycle(real, decl)
        if real not in self.names:
            self.names[real] = name = self.fresh(module_name(path))
            self.visit(Module(name, self.reader(path, _shown(path, decl, importer), decl.span)))
        return alias, self.names[real]

    def find(self, decl: tree.DeclImport, importer: Source) -> Path:
        """The file of an import, beside the file that imports it.  Raises E0510 or E0511."""
        folder = importer.path.parent if importer.path else Path()
        target = decl.target
        if "\0" in target:
            raise DplError.at("E0510", "there is no file with a zero byte in its name", decl.span)
        names = [target] if decl.is_path else [f"{target[:1].lower()}{target[1:]}.dp", f"{target}.dp"]
        candidates = [f / n for f in (folder, *self.search) for n in names]
        if not decl.is_path and not any(map(host.current.exists, candidates)):
            raise _unknown_module(decl, folder)
        return next(filter(host.current.exists, candidates), candidates[0])

    def fresh(self, name: str) -> str:
        number, fresh = 1, name
        while fresh in self.taken:
            number += 1
            fresh = f"{name}#{number}"
        self.taken.add(fresh)
        return fresh

    def refuse_cycle(self, real: str, decl: tree.DeclImport) -> None:
        known = [path for path, _ in self.open]
        if real in known:
            chain = [source.name for _, source in self.open[known.index(real) :]]
            circle = " -> ".join([*chain, chain[0]])
            title = f"these files import each other: {circle}" if len(chain) > 1 else f"{chain[0]} imports itself"
            raise DplError.at("E0514", title, decl.span, note="this import closes the circle",
                              helps=("move what they share into a file of its own",))  # fmt: skip


def _imports(module: Module) -> list[tree.DeclImport]:
    """The imports of a module, from the cache (by its content) or else by parsing.

    The main module is always parsed, because it changes most."""
    source = module.source
    if module.name == MAIN:
        return _parsed_imports(module)
    import json

    kept = host.current.cache
    place = kept.place("imports", blake2b(source.text.encode(), digest_size=16).hexdigest())
    if (known := kept.read(place)) is not None:
        return [tree.DeclImport(Span(source, start, end), *rest) for start, end, *rest in json.loads(known)]
    found = _parsed_imports(module)
    shown = [(d.span.start, d.span.end, d.target, d.is_path, d.alias) for d in found]
    kept.write(place, json.dumps(shown).encode())
    kept.prune(place.parent, MOST)
    return found


def _parsed_imports(module: Module) -> list[tree.DeclImport]:
    return [decl for decl in module.tree.decls if isinstance(decl, tree.DeclImport)]


def _real(path: Path | None) -> str:
    return host.current.real(path) if path else ""


def _shown(path: Path, decl: tree.DeclImport, importer: Source) -> str:
    """A file's name in messages: relative like the importing file's, if it lies there."""
    if importer.path and path.parent == importer.path.parent / Path(decl.target).parent:
        beside = os.path.relpath(path, importer.path.parent)
        return os.path.normpath(os.path.join(os.path.dirname(importer.name), beside))
    return str(path)


def _unknown_module(decl: tree.DeclImport, folder: Path) -> DplError:
    beside = [module_name(Path(name)) for name in _programs(folder)] if _is_folder(folder) else []
    from difflib import get_close_matches

    close = get_close_matches(decl.target, [*standard_modules(), *beside], 1, LIKE)
    helps = [f"did you mean {name}?" for name in close]
    lower = decl.target[:1].lower() + decl.target[1:]
    helps.append(f'it is neither a standard module nor a file here; a file elsewhere:  import "path/{lower}.dp"')
    return DplError.at("E0515", f"there is no module {decl.target}", decl.span, helps=tuple(helps))
