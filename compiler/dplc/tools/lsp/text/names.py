"""Trees -> the target of each name within a declaration; names from outside remain unresolved.

let f x = let y = x + z in y     ->   `f` declared; `x`, `y` local, with the spans in which they are visible;
                                      `+`, `z` unresolved
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from dpl.node import entity, field, node, record
from dpl.source import Span
from dpl.syntax import tree
from dpl.syntax.lexer import Token

from dplc.tools.lsp.text.unfinished import ANYTHING

SPACES = ("values", "types", "constructors", "fields", "modules")


@entity
class Symbol:
    """A declared name.

    kind         function, value, parameter, local, size, type, typevar, constructor, field or module
    span         the name; `whole` is the declaration
    scope        where a local name is visible; None for the rest of the module
    annotated    true if the text states its type"""

    name: str
    kind: str
    span: Span
    whole: Span
    scope: Span | None = None
    doc: str = ""
    owner: str = ""
    annotated: bool = False

    @property
    def space(self) -> str:
        named = {"type": "types", "typevar": "types", "constructor": "constructors", "field": "fields"}
        return named.get(self.kind, "modules" if self.kind == "module" else "values")


@entity
class Use:
    """An occurrence of a name in the text, in its declaration or elsewhere; `qualifier` is the module before its
    point.  A field's `record` is the place of the expression whose type has it."""

    span: Span
    space: str
    name: str
    symbol: Symbol | None = None
    declares: bool = False
    qualifier: str = ""
    record: Span | None = None


@node
class Foreign:
    """A name of another module; `module` is its name in this text.  `owner` is the type of a field if it is known."""

    module: str
    space: str
    name: str
    owner: str = ""


Target = Symbol | Foreign


@record
class Names:
    """The names of one declaration: those that it `declares` for later ones, its local `symbols`, and all `uses`.
    `early` is true if the names that it declares are in scope inside it."""

    decl: tree.Decl
    declares: list[Symbol] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    early: bool = False


def names_of(decl: tree.Decl, tokens: Sequence[Token]) -> Names:
    """The names of a declaration: those that it declares, and where names are used, in the order of the text."""
    reader = Reader(decl, tokens)
    reader.declaration(decl)
    reader.names.uses = sorted((u for u in reader.names.uses if u.name != ANYTHING), key=lambda u: u.span.start)
    return reader.names


class Reader:
    """Walks one declaration and keeps track of the names in scope."""

    def __init__(self, decl: tree.Decl, tokens: Sequence[Token]) -> None:
        self.names = Names(decl)
        self.source = decl.span.source
        self.tokens = [t for t in tokens if t.kind not in ("STRING", "TYVAR")]
        self.starts = [t.start for t in self.tokens]
        self.scopes: dict[str, list[Symbol]] = {}
        self.trail: list[str] = []
        self.frames: list[dict[str, Symbol]] = [{}]  # type variables
        self.sized = decl.span  # the scope of a size named in an annotation

    # ---- places of names

    def place(self, name: str, start: int, end: int, last: bool = False) -> Span:
        """The span of the first (or `last`) occurrence of a name between two offsets; empty if there is none."""
        near = self.tokens[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
        found = [t for t in near if t.value == name and t.end <= end]
        token = found[-1 if last else 0] if found else None
        return Span(self.source, token.start, token.end) if token else Span(self.source, start, start)

    def declare(self, symbol: Symbol) -> Symbol:
        """Declare a name for the declarations that follow."""
        self.names.declares.append(symbol)
        self.mention(symbol.span, symbol.space, symbol.name, symbol, declares=True)
        return symbol

    def local(self, symbol: Symbol) -> Symbol:
        self.names.symbols.append(symbol)
        self.mention(symbol.span, symbol.space, symbol.name, symbol, declares=True)
        if symbol.space == "values":
            self.scopes.setdefault(symbol.name, []).append(symbol)
            self.trail.append(symbol.name)
        return symbol

    def mention(self, span: Span, space: str, name: str, symbol: Symbol | None = None, declares: bool = False,
                record: Span | None = None) -> None:  # fmt: skip
        qualifier, dot, member = name.rpartition(".")
        if dot and qualifier and qualifier[0].isalpha():
            edge = span.start + len(qualifier)
            self.names.uses.append(Use(Span(self.source, span.start, edge), "modules", qualifier))
            here = Span(self.source, edge + 1, span.end)
            self.names.uses.append(Use(here, space, member, qualifier=qualifier, record=record))
        else:
            self.names.uses.append(Use(span, space, name, symbol, declares, record=record))

    def value(self, name: str, span: Span) -> None:
        stack = self.scopes.get(name)
        self.mention(span, "values", name, stack[-1] if stack else None)

    @contextmanager
    def scope(self) -> Generator[None]:
        mark = len(self.trail)
        yield
        while len(self.trail) > mark:
            self.scopes[self.trail.pop()].pop()

    # ---- declarations

    def declaration(self, decl: tree.Decl) -> None:
        match decl:
            case tree.DeclLet(span, rec, bindings):
                self.names.early = rec
                for b in bindings:
                    kind = "function" if b.params or isinstance(b.body, tree.Fun) else "value"
                    for p, annotated in variables(b.pattern):
                        place = self.place(p.name, p.span.start, p.span.end, last=True)
                        self.declare(Symbol(p.name, kind, place, span, doc=decl.doc, annotated=annotated))
                for b in bindings:
                    self.annotations(b.pattern)
                    self.binding(b)
            case tree.DeclType(span, defs):
                self.names.early = True
                for d in defs:
                    self.type_definition(d)
            case tree.DeclImport(span, target, is_path, alias):
                name = alias or ("" if is_path else target)
                if name:
                    place = self.place(name, span.start, span.end, last=True)
                    self.declare(Symbol(name, "module", place, span))
            case tree.DeclOpen(span, name):
                self.mention(self.place(name, span.start, span.end, last=True), "modules", name)
            case tree.DeclExtern(span, _, name, t):
                place = self.place(name, span.start, t.span.start)
                self.declare(Symbol(name, "function", place, span, doc=decl.doc, annotated=True))
                self.type(t)
            case tree.DeclDo(_, body) | tree.DeclExpect(_, _, body):
                self.expr(body)

    def type_definition(self, d: tree.TypeDef) -> None:
        place = self.place(d.name, d.params[-1].span.end if d.params else d.span.start, d.span.end)
        self.declare(Symbol(d.name, "type", place, d.span, doc=d.doc))
        self.frames.append({})
        with self.scope():
            for param in d.params:
                if param.is_size:
                    self.local(Symbol(param.name, "size", param.span, d.span, d.span))
                else:
                    self.type_variable(param.name, param.span)
            match d.body:
                case tree.Variants(_, cases):
                    for name, t, span in cases:
                        place = self.place(name, span.start, span.end)
                        self.declare(Symbol(name, "constructor", place, span, owner=d.name))
                        self.type(t)
                case tree.Fields(_, fields):
                    for name, t, span in fields:
                        place = self.place(name, span.start, span.end)
                        self.declare(Symbol(name, "field", place, span, owner=d.name, annotated=True))
                        self.type(t)
                case t:
                    self.type(t)
        self.frames.pop()

    def binding(self, b: tree.Binding) -> None:
        """Read the parameters, annotations and body of a binding; the caller declares its name."""
        before, self.sized = self.sized, b.span if b.params else self.sized
        self.frames.append({})
        with self.scope():
            for param in b.params:
                self.pattern(param, b.span, "parameter")
            if b.annot is not None:
                self.type(b.annot)
            self.expr(b.body)
        self.frames.pop()
        self.sized = before

    # ---- patterns

    def pattern(self, p: tree.Pattern, scope: Span, kind: str = "local") -> None:
        """Bind the names of a pattern; in `a | a`, the second is a use of the first."""
        for variable, annotated in variables(p):
            place = self.place(variable.name, variable.span.start, variable.span.end, last=True)
            known = next((s for s in self.names.symbols if s.whole is p.span and s.name == variable.name), None)
            if known:
                self.mention(place, "values", variable.name, known)
            elif variable.name not in ("_", ANYTHING):
                self.local(Symbol(variable.name, kind, place, p.span, scope, annotated=annotated))
        self.annotations(p)

    def annotations(self, p: tree.Pattern) -> None:
        """Record the constructors, fields and types in a pattern."""
        match p:
            case tree.PatCon(span, name, arg):
                self.mention(self.place(name, span.start, arg.span.start if arg else span.end), "constructors", name)
            case tree.PatRecord(span, fields):
                at = span.start
                for name, inner in fields:
                    self.mention(self.place(name, at, inner.span.end), "fields", name, record=span)
                    at = inner.span.end
            case tree.PatAnnot(_, _, t):
                self.type(t)
            case _:
                pass
        for inner in parts(p):
            self.annotations(inner)

    # ---- expressions

    def expr(self, e: tree.Expr | None) -> None:
        match e:
            case None | tree.Lit():
                pass
            case tree.Let() | tree.Seq():
                self.block(e)
            case tree.Match(_, scrutinee, arms):
                self.expr(scrutinee)
                for arm in arms:
                    self.arm(arm)
            case tree.Fun() | tree.Shift() | tree.Comprehension():
                with self.scope():
                    self.binder(e)
            case tree.LoopFor() | tree.LoopWhile():
                self.loop(e)
            case tree.Annot(_, inner, t) | tree.Coerce(_, inner, t):
                self.expr(inner)
                self.type(t)
            case tree.Interp(_, pieces):
                for inner in [piece[0] for piece in pieces if not isinstance(piece, str)]:
                    self.expr(inner)
            case _:
                self.mentions(e)

    def mentions(self, e: tree.Expr) -> None:
        """Read a form that binds nothing; it may mention names."""
        match e:
            case tree.Var(span, name):
                self.value(name, span)
            case tree.Con(span, name):
                self.mention(span, "constructors", name)
            case tree.Binary(_, op, left, right, place):
                self.expr(left)
                self.value(op, place)
                self.expr(right)
            case tree.Field(span, record, name):
                self.expr(record)
                self.mention(self.place(name, record.span.end, span.end, last=True), "fields", name, record=record.span)
            case tree.Record(span, fields):
                self.fields(span.start, fields, span)
            case tree.RecordWith(span, record, fields):
                self.expr(record)
                self.fields(record.span.end, fields, span)
            case _:
                for inner in parts(e):
                    self.expr(inner)

    def arm(self, arm: tree.Arm) -> None:
        with self.scope():
            self.pattern(arm.pattern, arm.span)
            self.expr(arm.guard)
            self.expr(arm.body)

    def binder(self, e: tree.Fun | tree.Shift | tree.Comprehension) -> None:
        """Read the inside of a form that binds names."""
        match e:
            case tree.Fun(span, params):
                for p in params:
                    self.pattern(p, span, "parameter")
            case tree.Shift(span, name, body):
                self.named(name, span.start, body.span.start, body.span)
            case tree.Comprehension(span, clauses, cond):
                for clause in clauses:
                    self.clause(clause, span)
                self.expr(cond)
        self.expr(e.body)

    def block(self, e: tree.Expr) -> None:
        """Read a chain of lets and sequences, without recursion since it may be long."""
        with self.scope():
            while isinstance(e, tree.Let | tree.Seq):
                if isinstance(e, tree.Seq):
                    self.expr(e.first)
                    e = e.second
                    continue
                if not e.rec:
                    for b in e.bindings:
                        self.binding(b)
                for b in e.bindings:
                    kind = "function" if b.params or isinstance(b.body, tree.Fun) else "local"
                    self.pattern(b.pattern, e.span if e.rec else e.body.span, kind)
                if e.rec:
                    for b in e.bindings:
                        self.binding(b)
                e = e.body
            self.expr(e)

    def loop(self, e: tree.LoopFor | tree.LoopWhile) -> None:
        self.expr(e.init)
        if isinstance(e, tree.LoopFor):
            self.expr(e.count)
        with self.scope():
            self.pattern(e.state, e.span)
            if isinstance(e, tree.LoopFor):
                self.named(e.index, e.init.span.end, e.count.span.start, e.body.span)
            else:
                self.expr(e.cond)
            self.expr(e.body)

    def clause(self, clause: tree.ForRange | tree.ForIn, scope: Span) -> None:
        match clause:
            case tree.ForRange(span, name, count):
                self.expr(count)
                self.named(name, span.start, count.span.start, scope)
            case tree.ForIn(_, pattern, array):
                self.expr(array)
                self.pattern(pattern, scope)

    def named(self, name: str, start: int, end: int, scope: Span) -> None:
        """Bind a local name that is not in a pattern."""
        if name not in ("_", ANYTHING):
            place = self.place(name, start, end)
            self.local(Symbol(name, "local", place, place, scope))

    def fields(self, at: int, fields: tuple[tuple[str, tree.Expr], ...], record: Span) -> None:
        for name, value in fields:
            self.mention(self.place(name, at, value.span.end), "fields", name, record=record)
            self.expr(value)
            at = value.span.end

    # ---- types

    def type(self, t: tree.Type | tree.Size | None) -> None:
        match t:
            case tree.TyVar(span, name):
                self.type_variable(name, span)
            case tree.TyName(span, name, args):
                for arg in args:
                    if isinstance(arg, tree.TyName) and not arg.args and arg.name in self.scopes:
                        self.value(arg.name, arg.span)
                    else:
                        self.type(arg)
                self.mention(self.place(name, args[-1].span.end if args else span.start, span.end, True), "types", name)
            case tree.SizeVar(span, name):
                if not self.scopes.get(name):
                    self.local(Symbol(name, "size", span, span, self.sized, annotated=True))
                else:
                    self.value(name, span)
            case None:
                pass
            case _:
                for inner in parts(t):
                    self.type(inner)

    def type_variable(self, name: str, span: Span) -> None:
        known = next((frame[name] for frame in reversed(self.frames) if name in frame), None)
        if known:
            self.mention(span, "types", name, known)
        else:
            self.frames[-1][name] = self.local(Symbol(name, "typevar", span, span, self.sized))


def variables(p: tree.Pattern, annotated: bool = False) -> Iterator[tuple[tree.PatVar | tree.PatAs, bool]]:
    """The variables of a pattern, each with true if the pattern states its type."""
    match p:
        case tree.PatVar():
            yield p, annotated
        case tree.PatAnnot(_, inner, _):
            yield from variables(inner, True)
        case tree.PatAs(_, inner, _):
            yield from variables(inner, annotated)
            yield p, annotated
        case _:
            for inner in parts(p):
                yield from variables(inner, annotated)


def parts(n: tree.Node) -> Iterator:
    """The nodes directly inside a node, in the order of its fields."""
    waiting = [getattr(n, name) for name in reversed(n.__match_args__) if name != "span"]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting += reversed(value)
        elif isinstance(value, tree.Node) and not isinstance(value, tree.TypeDef):
            yield value
