"""The open texts and the files on disk; what their names refer to, across declarations and modules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dpl.core import ty
from dpl.diagnostics import Diagnostic, DplError, Label
from dpl.node import node, replace
from dpl.source import Source, Span
from dpl.syntax import tree
from dpl.syntax.load import Loader, module_name, read, standard_modules
from dpl.types.check import Run
from dpl.types.env import TYPES, Exports
from dpl.types.library import library
from dpl.types.meta import prune
from dpl.types.notes import Notes
from dpl.types.primitives import primitives
from lsprotocol.types import PositionEncodingKind

from dplc.tools.lsp.checking import Checking, Found, Surroundings
from dplc.tools.lsp.names import Names, Symbol, Use, names_of
from dplc.tools.lsp.pages import Book, Page
from dplc.tools.lsp.positions import Lines, readable
from dplc.tools.lsp.unfinished import Draft

MOST_FILES = 500  # of the workspace that are looked through for references
FIRST = "Prelude"


@node
class Foreign:
    """A name of another module."""

    module: str
    space: str
    name: str


Target = Symbol | Foreign


@dataclass(slots=True)
class Imports:
    """The modules that a text imports: their names by what the text calls them, their files, what they offer, and what
    is wrong with them."""

    aliases: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    run: Run | None = None
    problems: list[Diagnostic] = field(default_factory=list)


class Document:
    """One text: as an editor has it open, or as it is on disk."""

    def __init__(
        self, workspace: Workspace, uri: str, path: Path | None, encoding: PositionEncodingKind | str | None = None
    ) -> None:
        self.workspace, self.uri, self.path = workspace, uri, path
        name = str(path) if path else uri
        self.book = Book(name, path)
        self.checking = Checking()
        self.encoding = encoding
        self.version: int | None = None
        self.imports = Imports()
        self._around: Surroundings | None = None
        self.update("")

    def update(self, text: str) -> None:
        """The text is this now; nothing is found out before it is wanted."""
        self.text = readable(text)
        self.lines = Lines(self.text, self.encoding)
        self.book.update(self.text)
        self.checked = False
        self._links: dict[Use, Target | None] | None = None

    @property
    def pages(self) -> list[Page]:
        return self.book.pages

    @cached_property
    def standard(self) -> str:
        """The module's name, if this is a file of the standard library."""
        files = {str(path.resolve()): name for name, path in standard_modules().items()}
        return files.get(str(self.path.resolve()), "") if self.path else ""

    # ---- names

    def names(self, page: Page) -> list[Names]:
        if page.names is None:
            page.names = [names_of(decl, page.tokens) for decl in page.decls]
        return page.names

    def all_names(self) -> Iterator[Names]:
        for page in self.pages:
            yield from self.names(page)

    def declared(self, space: str, name: str) -> Symbol | None:
        """What other modules see under a name."""
        found = None
        for names in self.all_names():
            for symbol in names.declares:
                if symbol.name == name and symbol.space == space:
                    found = symbol
        return found

    def use_at(self, place: int) -> Use | None:
        """The name at a place of the text, or right before it."""
        page = self.book.page_at(place)
        if page is None:
            return None
        offset = place - page.start + page.base
        found = [u for names in self.names(page) for u in names.uses if u.span.start <= offset <= u.span.end]
        return min(found, key=lambda u: (u.span.end == offset, u.space == "fields")) if found else None

    @property
    def links(self) -> dict[Use, Target | None]:
        """What each name of the text refers to, so far as that is known."""
        if self._links is None:
            self._links = Linker(self).links()
        return self._links

    def field_of(self, owner: Symbol, name: str) -> Symbol | None:
        """A field of a record type of this text."""
        page = self.book.page_of(owner.span.start)
        fields = [
            s for names in self.names(page) for s in names.declares if s.kind == "field" and s.owner == owner.name
        ]
        return next((s for s in fields if s.name == name), None)

    # ---- other modules

    def module_file(self, called: str) -> Path | None:
        """The file of the module that this text calls so."""
        for page in self.pages:
            for decl in page.decls:
                if isinstance(decl, tree.DeclImport) and not (not decl.is_path and decl.target in standard_modules()):
                    target = Path(decl.target)
                    if called == (decl.alias or (module_name(target) if decl.is_path else decl.target)):
                        with suppress(DplError):
                            return Loader(()).find(decl, self.book)
        aliases = {d.alias: d.target for page in self.pages for d in page.decls if isinstance(d, tree.DeclImport)}
        return standard_modules().get(aliases.get(called, called))

    def offers(self, module: str, space: str, name: str) -> bool:
        """Whether a module has something of that name."""
        exports = library().modules.get(module)
        if exports is not None:
            return name in getattr(exports, space) or (module == FIRST and name in library().primitives.values)
        path = self.module_file(module)
        other = self.workspace.document(path) if path else None
        return other is not None and other.declared(space, name) is not None

    def resolve(self, target: Target | None) -> tuple[Document, Symbol | None] | None:
        """Where something is declared: a text, and what in it."""
        if isinstance(target, Symbol):
            return self, target
        path = self.module_file(target.module) if target else None
        other = self.workspace.document(path) if path else None
        if other is None or target is None:
            return None
        found = other.declared(target.space, target.name)
        return (other, found) if found or target.space == "modules" else None

    # ---- types

    @property
    def around(self) -> Surroundings:
        """What was outside when this was checked last."""
        if self._around is None:
            self._around = self.surroundings()
        return self._around

    def surroundings(self) -> Surroundings:
        std = library()
        if self.standard:
            return self.inside_library()
        self.import_modules()
        run = self.imports.run
        assert run is not None
        public = std.modules | {name: exports.public() for name, exports in run.exports.items()}
        names = std.modules | {alias: public[n] for alias, n in self.imports.aliases.items() if n in public}
        return Surroundings(std, "main", names, run.datas, run.loud, run.home)

    def inside_library(self) -> Surroundings:
        """A module of the library sees the private primitives, but not itself."""
        std = library()
        names = {name: exports for name, exports in std.modules.items() if name != self.standard}
        names["Prim"] = Exports(values=dict(primitives(public=False)))
        datas = {n: d for n, d in std.datas.items() if not n.startswith(f"{self.standard}.")}
        return Surroundings(std, self.standard, names, datas, std.loud, lambda name: None)

    def import_modules(self) -> None:
        """Reads and checks the modules that are imported; those that did not change are known."""
        imports = Imports(run=Run(library(), self.workspace.modules))
        loader = Loader((), self.workspace.read)
        if self.path:
            loader.open.append((os.path.realpath(self.path), self.book))
        for page in self.pages:
            for decl in page.decls:
                if isinstance(decl, tree.DeclImport) and not page.broken:
                    self.follow(decl, loader, imports)
        self.imports = imports

    def follow(self, decl: tree.DeclImport, loader: Loader, imports: Imports) -> None:
        run, before = imports.run, len(loader.done)
        assert run is not None
        try:
            alias, name = loader.follow(decl, self.book)
            problems, loader.problems = loader.problems, []
            if not problems:
                for module in loader.done[before:]:
                    run.add(module)
                    if module.source.path:
                        imports.files[module.name] = module.source.path
                problems, run.problems = run.problems, []
            imports.aliases[alias] = name
        except DplError as failure:
            problems = failure.diagnostics
        for d in problems:
            if d.span is not None and d.span.source is not self.book:
                place = Label(d.span, d.title)
                d = replace(d, title=f"what is imported has an error: {d.title}", span=decl.span, labels=(place,))
            imports.problems.append(d)

    def check(self) -> None:
        """Everything that is known of types is up to date afterwards."""
        if not self.checked:
            self._around = self.surroundings()
            self.checking.check(self.pages, self.around)
            self.checked = True
            self._links = None

    def check_draft(self, before: list[Page], draft: Draft) -> Notes:
        """What is found out about half a declaration after some pages."""
        self.checked = False  # the pages after it are not in sight now
        self._around = self.surroundings()
        return self.checking.check(before, self.around, draft) or Notes()

    def found(self, page: Page) -> Found:
        self.check()
        return self.checking.found[page]

    def diagnostics(self) -> list[Diagnostic]:
        """All that is wrong with the text, or may be."""
        if self.standard:
            return []
        self.check()
        syntax: list[Diagnostic] = []
        others = list(self.imports.problems)
        for page, following in zip(self.pages, [*self.pages[1:], None]):
            syntax += page.diagnostics(following)
            others += self.checking.found[page].said()
        if not any(d.severity == "error" for d in (*syntax, *others)):
            others += self.checking.warnings_of_the_whole(self.pages, self.around, self.book)
        return [*syntax, *others]

    def data_name(self, page: Page, end: int) -> str:
        """The data type of the expression that ends at an offset of a page, if that is known."""
        for span, t in reversed(self.found(page).notes.expressions):
            t = prune(t)
            if span.end == end and isinstance(t, ty.Con):
                return t.name
        return ""


class Linker:
    """Goes through a text with what is in scope at each declaration."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.layers: list[dict[tuple[str, str], Symbol] | str] = [FIRST, {}]  # of this text, or a module's name
        self.found: dict[Use, Target | None] = {}

    def links(self, before: Page | None = None) -> dict[Use, Target | None]:
        """Of the whole text, or only what comes before a page."""
        for page in self.document.pages:
            if page is before:
                break
            for names in self.document.names(page):
                if names.early:
                    self.declare(names)
                for use in names.uses:
                    self.found[use] = use.symbol or self.target(use, page)
                if not names.early:
                    self.declare(names)
                if isinstance(names.decl, tree.DeclOpen):
                    self.layers += [names.decl.name, {}]
        return self.found

    def declare(self, names: Names) -> None:
        own = self.layers[-1]
        assert isinstance(own, dict)
        for symbol in names.declares:
            own[symbol.space, symbol.name] = symbol

    def target(self, use: Use, page: Page | None = None) -> Target | None:
        if use.qualifier:
            return Foreign(use.qualifier, use.space, use.name)
        if use.space == "fields" and page is not None and (one := self.field(use, page)):
            return one
        for layer in reversed(self.layers):
            if isinstance(layer, dict):
                if found := layer.get((use.space, use.name)):
                    return found
            elif use.space != "modules" and self.document.offers(layer, use.space, use.name):
                return Foreign(layer, use.space, use.name)
        if use.space == "types" and use.name in TYPES:
            return Foreign(FIRST, "types", use.name)
        return Foreign(use.name, "modules", "") if use.space == "modules" else None

    def field(self, use: Use, page: Page) -> Target | None:
        """A field of the record in front of it, where several types have one of that name."""
        if use.span.source.text[use.span.start - 1] != "." or not self.document.checked:
            return None
        module, _, owner = self.document.data_name(page, use.span.start - 1).partition("#")[0].rpartition(".")
        if module != self.document.around.name:
            called = {name: alias for alias, name in self.document.imports.aliases.items()}
            return Foreign(called.get(module, module), "fields", use.name) if module else None
        for layer in self.layers:
            for symbol in layer.values() if isinstance(layer, dict) else ():
                if symbol.space == "types" and symbol.name == owner:
                    return self.document.field_of(symbol, use.name)
        return None


class Workspace:
    """All documents."""

    def __init__(self) -> None:
        self.open: dict[str, Document] = {}  # by their URIs
        self.disk: dict[Path, tuple[int, Document]] = {}
        self.modules: dict = {}  # what is known of modules, by the keys of their contents
        self.folders: list[Path] = []
        self.encoding: PositionEncodingKind | str | None = None

    def read(self, path: Path, name: str = "", where: Span | None = None) -> Source:
        """A file's text, as an editor has it if it is open."""
        document = self.opened(path)
        return Source(name or str(path), document.text, path) if document else read(path, name, where)

    def opened(self, path: Path) -> Document | None:
        real = os.path.realpath(path)
        return next((d for d in self.open.values() if d.path and os.path.realpath(d.path) == real), None)

    def document(self, path: Path) -> Document | None:
        """The document of a file, open or not; None if it cannot be read."""
        if found := self.opened(path):
            return found
        path = path.resolve()
        try:
            changed = path.stat().st_mtime_ns
            known = self.disk.get(path)
            if known and known[0] == changed:
                return known[1]
            document = Document(self, path.as_uri(), path, self.encoding)
            document.update(read(path).text)
        except (OSError, DplError):
            return None
        self.disk[path] = changed, document
        return document

    def files(self) -> list[Path]:
        """The programs in the folders that are open."""
        found: list[Path] = []
        for folder in self.folders:
            for base, folders, names in os.walk(folder):
                folders[:] = [f for f in folders if not f.startswith(".") and f not in ("node_modules", "__pycache__")]
                found += [Path(base, name) for name in names if name.endswith(".dp")]
                if len(found) > MOST_FILES:
                    return found[:MOST_FILES]
        return found
