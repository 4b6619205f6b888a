"""Pages -> types, errors and warnings.  The results for a page are kept while its text is unchanged and all names that
it mentions keep their meanings.  When a definition changes, it is checked again; its users are checked again only if
its type has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dpl.core import term, ty
from dpl.diagnostics import Diagnostic, Warnings
from dpl.node import field, record
from dpl.source import Source, Span
from dpl.syntax import tree
from dpl.types.declarations import Item, bound_names
from dpl.types.declarations import Module as Checker
from dpl.types.library import Library
from dpl.types.solve import sizes
from dpl.types.solve.kinds import Kinds
from dpl.types.solve.meta import Meta, prune
from dpl.types.solve.scheme import Scheme, free, replace
from dpl.types.state.context import Context
from dpl.types.state.env import Exports, Failed, Value
from dpl.types.state.notes import Notes
from dpl.types.warnings.advice import advice, advice_without_running

from dplc.passes.entry.exports import offered
from dplc.tools.lsp.text.pages import Book, Page
from dplc.tools.lsp.text.unfinished import ANYTHING, Draft

OLD = 2000  # the number of checked pages after which the solver is replaced by a new one

KINDS = ("values", "types", "constructors", "fields")
TABLES = ("captures", "global_evidence", "constructors")  # tables of a context to which declarations add


@record
class Found:
    """The results for a page: the names that it `declares`, by kind; the entries that it adds to the tables of its
    context; and its functions.  `numbers` is the number of earlier definitions of each name."""

    notes: Notes
    declares: dict[str, dict[str, Any]]
    added: dict[str, dict]
    functions: dict[str, tree.Binding]
    datas: dict[str, term.Data]
    fields: dict[str, list[term.Data]]
    loud: set[str]
    opens: list[Exports]
    numbers: dict[str, int]
    problems: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    unfinished: list = field(default_factory=list)
    is_right: bool = True  # its syntax was right
    is_open: bool = False  # later uses may determine its types
    mentioned: set[str] | None = None  # data types in its types

    def said(self) -> Iterable[Diagnostic]:
        return (*self.problems, *self.warnings)


@record
class Surroundings:
    """The surroundings of a text: its module's name, the other modules, and the contexts that explain their errors."""

    library: Library
    name: str
    modules: dict[str, Exports]
    datas: dict[str, term.Data]
    loud: set[str]
    homes: Callable[[str], Context | None]


class Checking:
    """The incremental checker of one text."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.found: dict[Page, Found] = {}
        self.solver = None
        self.datas: dict[str, term.Data] = {}
        self.last: dict[str, Any] = {}  # the entries of values when last checked without a syntax error
        self.checked = 0  # the number of pages checked with this solver
        self.reached: Context | None = None  # the context in which a draft was checked

    def check(self, pages: list[Page], around: Surroundings, draft: Draft | None = None) -> Notes | None:
        """Check a text.  With a `draft`, `pages` are those before it; the draft is checked after them, its notes are
        returned, and no results are kept."""
        if self.checked > OLD:
            self.forget()
        before = dict(self.datas)
        checker = self.begin(around)
        kept: dict[Page, Found] = {}
        new: list[Found] = []
        changed: set[str] = set()
        for page in pages:
            found = self.found.get(page)
            if found is None or found.is_right != page.is_right or not self.holds(found, checker, changed):
                found = self.declare(page, checker)
                new.append(found)
                changed |= {n for n, data in found.datas.items() if before.get(n) != data}
                if changed:
                    checker.cx.solver.kinds = Kinds(self.datas)
            else:
                self.declare_again(found, checker)
            kept[page] = found
        if draft is not None:
            self.reached = checker.cx
            return self.declare(draft, checker).notes
        for found in new:
            self.finish(found, checker)
        self.found = kept
        return None

    def begin(self, around: Surroundings) -> Checker:
        self.datas.clear()
        self.datas.update(around.datas)
        cx = Context(around.name, around.modules, self.datas, Warnings(), around.library.primitives)
        if self.solver is not None:
            cx.solver = self.solver
        self.solver = cx.solver
        cx.loud, cx.homes = set(around.loud), around.homes
        cx.own.values[ANYTHING] = Failed()
        cx.begin()
        return Checker(cx)

    # ---- pages checked before

    def holds(self, found: Found, checker: Checker, changed: set[str]) -> bool:
        """True if checking the page again would give the same results."""
        cx = checker.cx
        if found.is_open or found.opens:
            return False
        if any(checker.used.get(name, 0) != number for name, number in found.numbers.items()):
            return False
        if any(not same(cx._found(kind, name), old) for (kind, name), old in found.notes.asked.items()):
            return False
        if changed and changed & self.mentioned(found):
            return False
        return all(span_holds(span) for d in found.said() for span in spans(d))

    def mentioned(self, found: Found) -> set[str]:
        """The data types that occur in the page's types."""
        if found.mentioned is None:
            stack: list[Any] = [t for _, t in found.notes.expressions]
            stack += [scheme.ty for _, _, scheme in found.notes.locals]
            names, seen = set(found.datas), set()
            while stack:
                t = stack.pop()
                t = prune(t) if isinstance(t, Meta) else t
                if id(t) in seen or isinstance(t, ty.Size):
                    continue
                seen.add(id(t))
                if isinstance(t, ty.Con) and t.name in self.datas and t.name not in names:
                    names.add(t.name)
                    stack += [arg for _, arg in self.datas[t.name].cases if arg is not None]
                stack += ty.children(t)
            found.mentioned = names
        return found.mentioned

    def declare_again(self, found: Found, checker: Checker) -> None:
        """Repeat the effects on the context of checking the page."""
        cx = checker.cx
        for exports in found.opens:
            cx.layers.append(exports)
            cx.new_layer()
        for name in found.numbers:
            checker.used[name] = checker.used.get(name, 0) + 1
        for kind, names in found.declares.items():
            for name, what in names.items():
                if kind == "values":
                    cx.declare(name, what)
                else:
                    getattr(cx.own, kind)[name] = what
        for table, entries in found.added.items():
            getattr(cx, table).update(entries)
        for name, binding in found.functions.items():
            cx.remember(name, binding, cx.clock)
        for name, datas in found.fields.items():
            cx.fields.setdefault(name, []).extend(datas)
        self.datas.update(found.datas)
        cx.loud |= found.loud

    # ---- new pages

    def declare(self, page: Page | Draft, checker: Checker) -> Found:
        """Check the declarations of a page."""
        cx = checker.cx
        self.checked += 1
        cx.notes = notes = Notes()
        declared = {kind: dict(getattr(cx.own, kind)) for kind in KINDS}
        added = {table: dict(getattr(cx, table)) for table in TABLES}
        definitions = dict(cx.definitions)
        datas, loud, numbers = dict(self.datas), set(cx.loud), dict(checker.used)
        fields = {name: len(known) for name, known in cx.fields.items()}
        layers = len(cx.layers)
        checker.problems, checker.unfinished, cx.warnings = [], [], Warnings()
        for decl in page.decls:
            checker.declare(decl)
        cx.notes = None
        if not page.is_right:
            self.excuse(page, checker)
        opens = [layer for layer in cx.layers[layers:] if not any(layer is own for own in cx.owned)]
        if opens:
            declared = {kind: {} for kind in KINDS}
        declares = {kind: changes(declared[kind], getattr(cx.own, kind)) for kind in KINDS}
        values = [value for value in declares["values"].values() if isinstance(value, Value)]
        own = {id(what) for names in declares.values() for what in names.values()}
        notes.asked = {key: what for key, what in notes.asked.items() if id(what) not in own}
        if not page.broken:
            self.last.update(declares["values"])
        unknown = free(cx.solver, [value.scheme.ty for value in values], -1)
        return Found(
            notes,
            declares,
            {table: changes(added[table], getattr(cx, table)) for table in TABLES},
            {n: d.binding for n, d in changes(definitions, cx.definitions).items() if not d.frames},
            changes(datas, self.datas),
            {
                name: known[fields.get(name, 0) :]
                for name, known in cx.fields.items()
                if len(known) > fields.get(name, 0)
            },
            cx.loud - loud,
            opens,
            {name: numbers.get(name, 0) for name, n in checker.used.items() if n != numbers.get(name, 0)},
            checker.problems,
            cx.warnings.diagnostics,
            unfinished=checker.unfinished,
            is_right=page.is_right,
            is_open=bool(unknown.metas or unknown.effects),
        )

    def excuse(self, page: Page | Draft, checker: Checker) -> None:
        """Drop the type errors of an incomplete declaration, for which only the syntax error is reported.  Its names
        keep their previous meanings."""
        checker.problems, checker.unfinished = [], []
        checker.cx.warnings = Warnings()
        for decl in page.decls:
            for name in declared_values(decl):
                checker.cx.own.values[name] = self.last.get(name, Failed())

    def finish(self, found: Found, checker: Checker) -> None:
        """Complete the core of a page, after all pages have been checked."""
        cx = checker.cx
        checker.unfinished, checker.problems, cx.warnings = found.unfinished, [], Warnings()
        found.items = checker.complete()
        found.problems += checker.problems or offered(found.items, found.declares["values"], self.datas)[1]
        found.warnings += cx.warnings.diagnostics
        found.unfinished = []

    # ---- the whole text

    def warnings_of_the_whole(self, pages: list[Page], around: Surroundings, source: Source) -> list[Diagnostic]:
        """Warnings that need all definitions: about derivatives.  Empty if there are errors."""
        if any(not page.is_right or self.found[page].problems for page in pages):
            return []
        items = [item for page in pages for item in self.found[page].items]
        program = term.Program(items, around.library.definitions, self.datas)
        return [*advice(program, {source}), *advice_without_running(program, {source})]


def changes(before: dict, after: dict) -> dict:
    """The entries of `after` that are new or have changed."""
    return {name: what for name, what in after.items() if before.get(name) is not what}


def same(new: Any, old: Any) -> bool:
    """True if a name's new entry is equivalent to the old one, wherever it is declared."""
    if new is old:
        return True
    if not isinstance(new, Value) or not isinstance(old, Value):
        return type(new) is type(old) and new == old
    if (new.name, new.size, new.is_global) != (old.name, old.size, old.is_global):
        return False
    return new.scheme is old.scheme or essence(new.scheme) == essence(old.scheme)


def essence(scheme: Scheme) -> tuple:
    """A scheme in a normal form for comparison, with unknown sizes named by their numbers."""
    env = {unknown: sizes.name(f"#{number}") for number, unknown in enumerate(scheme.unknowns)}
    relations = [(type(c), tuple(replace(t, env, {}) for t in c.types), c.extra) for c in scheme.relations]
    counts = [(scheme.unknowns.index(unknown), index) for unknown, index in scheme.counts]
    return scheme.params, replace(scheme.ty, env, {}), scheme.classes, relations, counts


def spans(d: Diagnostic) -> Iterable[Span]:
    """All spans of a diagnostic."""
    yield from (span for span in (d.span, *(label.span for label in d.labels), *(c.span for c in d.path)) if span)


def span_holds(span: Span) -> bool:
    """True if a span is still in its text."""
    return not isinstance(span.source, Book) or span.source.page_of(span.start).live


def declared_values(decl: tree.Decl) -> list[str]:
    match decl:
        case tree.DeclLet(bindings=bound):
            return [name for b in bound for name in bound_names(b.pattern)]
        case tree.DeclExtern(name=name):
            return [name]
        case _:
            return []
