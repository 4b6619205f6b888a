"""The open texts and the files on disk, and the targets of their names across declarations and modules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from dpl.core import ty
from dpl.diagnostics import Diagnostic, DplError, Label
from dpl.node import field, record, replace
from dpl.source import Source, Span
from dpl.syntax import tree
from dpl.syntax.load import Loader, module_name, read, standard_modules
from dpl.types.check import Run
from dpl.types.library import library
from dpl.types.module import hidden_exports, unstarted
from dpl.types.primitives import primitives
from dpl.types.solve.meta import prune
from dpl.types.state.env import Exports
from dpl.types.state.notes import Notes
from lsprotocol.types import PositionEncodingKind

from dplc.tools.lsp.text.checking import Checking, Found, Surroundings
from dplc.tools.lsp.text.links import FIRST, Linker
from dplc.tools.lsp.text.names import Names, Symbol, Target, Use, names_of
from dplc.tools.lsp.text.pages import Book, Page
from dplc.tools.lsp.text.positions import Lines, readable
from dplc.tools.lsp.text.unfinished import ANYTHING, Draft

MOST_FILES = 500  # of the workspace that are searched for references


@record
class Imports:
    """The modules that a text imports: alias in the text -> name, name -> file, the run that checked them, and their
    errors."""

    aliases: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    run: Run | None = None
    problems: list[Diagnostic] = field(default_factory=list)


class Document:
    """One text, open in an editor or on disk."""

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
        """Set the text.  It is checked later, on demand."""
        self.text = readable(text)
        self.lines = Lines(self.text, self.encoding)
        if self.book.update(self.text):
            self.checking.forget()
        self.checked = False
        self._links: dict[Use, Target | None] | None = None

    @property
    def pages(self) -> list[Page]:
        return self.book.pages

    @cached_property
    def standard(self) -> str:
        """The module's name if this is a file of the standard library, otherwise empty."""
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
        """The symbol that other modules see under a name: its last declaration."""
        found = None
        for names in self.all_names():
            for symbol in names.declares:
                if symbol.name == name and symbol.space == space:
                    found = symbol
        return found

    def use_at(self, place: int) -> Use | None:
        """The name at a place of the text, or ending there."""
        page = self.book.page_at(place)
        if page is None:
            return None
        offset = place - page.start + page.base
        found = [u for names in self.names(page) for u in names.uses if u.span.start <= offset <= u.span.end]
        return min(found, key=lambda u: (u.span.end == offset, u.space == "fields")) if found else None

    @property
    def links(self) -> dict[Use, Target | None]:
        """The target of each name of the text; None if unknown."""
        if self._links is None:
            self._links = Linker(self).links()
        return self._links

    def field_of(self, owner: Symbol, name: str) -> Symbol | None:
        """A field of a record type of this text."""
        page = self.book.page_of(owner.span.start)
        declared = [s for names in self.names(page) for s in names.declares]
        return next((s for s in declared if (s.kind, s.owner, s.name) == ("field", owner.name, name)), None)

    # ---- other modules

    def module_file(self, called: str) -> Path | None:
        """The file of the module with this name or alias in the text."""
        for decl in reversed(self.import_declarations()):
            if called == (decl.alias or (module_name(Path(decl.target)) if decl.is_path else decl.target)):
                if not decl.is_path and decl.target in standard_modules():
                    return standard_modules()[decl.target]
                with suppress(DplError):
                    return Loader(()).find(decl, self.book)
        return standard_modules().get(called)

    def import_declarations(self) -> list[tree.DeclImport]:
        return [decl for page in self.pages for decl in page.decls if isinstance(decl, tree.DeclImport)]

    def offers(self, module: str, space: str, name: str) -> bool:
        """True if a module has a member of this kind and name."""
        exports = library().modules.get(module)
        if exports is not None:
            return name in getattr(exports, space) or (module == FIRST and name in library().primitives.values)
        path = self.module_file(module)
        other = self.workspace.document(path) if path else None
        return other is not None and other.declared(space, name) is not None

    def resolve(self, target: Target | None) -> tuple[Document, Symbol | None] | None:
        """The document and the symbol that declare a target; the symbol is None for a module.  None if unknown."""
        if isinstance(target, Symbol):
            return self, target
        path = self.module_file(target.module) if target else None
        other = self.workspace.document(path) if path else None
        if other is None or target is None:
            return None
        owner = other.declared("types", target.owner) if target.owner else None
        found = other.field_of(owner, target.name) if owner else other.declared(target.space, target.name)
        return (other, found) if found or target.space == "modules" else None

    # ---- types

    @property
    def around(self) -> Surroundings:
        """The surroundings of the last check."""
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
        """The surroundings of a library module, which sees the private primitives but not itself."""
        std = library()
        names = {name: exports for name, exports in std.modules.items() if name != self.standard}
        names["Prim"] = Exports(values=dict(primitives(public=False)))
        datas = {n: d for n, d in std.datas.items() if not n.startswith(f"{self.standard}.")}
        return Surroundings(std, self.standard, names, datas, std.loud, lambda name: None)

    def import_modules(self) -> None:
        """Read and check the imported modules; unchanged ones are cached."""
        imports = Imports(run=Run(library(), self.workspace.modules))
        loader = Loader((), self.workspace.read)
        if self.path:
            loader.open.append((os.path.realpath(self.path), self.book))
        for decl in self.import_declarations():
            if ANYTHING not in (decl.target, decl.alias):
                self.follow(decl, loader, imports)
        self.imports = imports
        self.workspace.forget_modules()

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
        """Bring all types up to date."""
        if not self.checked:
            self._around = self.surroundings()
            self.checking.check(self.pages, self.around)
            self.checked = True
            self._links = None

    def check_draft(self, before: list[Page], draft: Draft) -> Notes:
        """The notes of inference on an incomplete declaration after some pages."""
        self.checked = False  # the pages after the draft are not checked
        self._around = self.surroundings()
        return self.checking.check(before, self.around, draft) or Notes()

    def found(self, page: Page) -> Found:
        self.check()
        return self.checking.found[page]

    def diagnostics(self) -> list[Diagnostic]:
        """All errors and warnings of the text; none for the standard library."""
        if self.standard:
            return []
        self.check()
        syntax: list[Diagnostic] = []
        others = list(self.imports.problems)
        for page, following in zip(self.pages, [*self.pages[1:], None]):
            syntax += page.diagnostics(following)
            others += [d for d in self.checking.found[page].said() if not self.follows(d)]
        decls = [decl for page in self.pages for decl in page.decls]
        others += [*hidden_exports(decls), *unstarted(decls)]
        if not any(d.severity == "error" for d in (*syntax, *others)):
            others += self.checking.warnings_of_the_whole(self.pages, self.around, self.book)
        return [*syntax, *others]

    def follows(self, d: Diagnostic) -> bool:
        """True for an error that follows from one in an imported module: the module is not there."""
        missing = self.imports.aliases.keys() - self.around.modules.keys()
        return d.code == "E0560" and any(f"`{alias}`" in d.title for alias in missing)

    def record_at(self, page: Page, span: Span) -> tuple[str, str] | None:
        """(module, name) of the data type of the expression at a place.  The module is named as in this
        text, with "" for the text itself.  None if the type is unknown."""
        if not self.checked:
            return None
        module, _, name = self.data_name(page, span).partition("#")[0].rpartition(".")
        if not module:
            return None
        called = {name: alias for alias, name in self.imports.aliases.items()}
        return ("" if module == self.around.name else called.get(module, module)), name

    def data_name(self, page: Page, span: Span) -> str:
        """The data type of the expression at a place of a page; empty if unknown."""
        for place, t in reversed(self.found(page).notes.expressions):
            t = prune(t)
            if (place.start, place.end) == (span.start, span.end) and isinstance(t, ty.Con):
                return t.name
        return ""


class Workspace:
    """All documents: the open texts and the files read from disk."""

    def __init__(self) -> None:
        self.open: dict[str, Document] = {}  # by their URIs
        self.disk: dict[Path, tuple[int, Document]] = {}
        self.modules: dict = {}  # checked modules, by the keys of their contents
        self.folders: list[Path] = []
        self.encoding: PositionEncodingKind | str | None = None

    def read(self, path: Path, name: str = "", where: Span | None = None) -> Source:
        """A file's text: the editor's if it is open, otherwise from disk."""
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

    def forget(self) -> None:
        """Drop data that can be read again: files that are not open, and modules that no open text uses."""
        self.disk.clear()
        self.forget_modules()

    def forget_modules(self) -> None:
        """Drop unused modules: each edit of a module creates an entry with a new key."""
        used = {key for d in self.open.values() if d.imports.run for key in d.imports.run.keys.values()}
        for key in self.modules.keys() - used:
            del self.modules[key]

    def files(self) -> list[Path]:
        """The programs in the open folders, at most MOST_FILES."""
        found: list[Path] = []
        for folder in self.folders:
            for base, folders, names in os.walk(folder):
                folders[:] = [f for f in folders if not f.startswith(".") and f not in ("node_modules", "__pycache__")]
                found += [Path(base, name) for name in names if name.endswith(".dp")]
                if len(found) > MOST_FILES:
                    return found[:MOST_FILES]
        return found
