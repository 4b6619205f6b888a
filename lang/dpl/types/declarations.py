"""Declarations -> core definitions, data types and exports, one by one.  An error in one does not stop the rest."""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import term, ty
from dpl.diagnostics import Diagnostic, DplError, Edit
from dpl.node import replace
from dpl.source import NOWHERE, Span
from dpl.syntax import tree
from dpl.types.messages.parts import Why, printer
from dpl.types.messages.pretty import show_scheme
from dpl.types.rules import arrays, expressions, records  # noqa: F401  (they register their rules)
from dpl.types.rules.annotations import Flexible, must_be_closed, resolve
from dpl.types.rules.bindings import (
    close,
    compares,
    counted,
    generalisable,
    group,
    pattern_annotations,
    right_side,
    settle_outer,
    simple_name,
)
from dpl.types.rules.counts import size_of
from dpl.types.rules.modifiers import modified
from dpl.types.rules.patterns import bind_pattern
from dpl.types.rules.quiet import is_quiet
from dpl.types.rules.zonk import Zonk
from dpl.types.solve.meta import PURE, Type, prune
from dpl.types.solve.scheme import Scheme, closed, free, mono, rebuild
from dpl.types.state.checks import learn
from dpl.types.state.context import Context
from dpl.types.state.env import Exports, Failed, Value
from dpl.types.typedefs import declare_types

Item = term.Def | term.Do | term.Expect

UNDECIDED = "E0211"
OF_C = (ty.UNIT, *(ty.Con(name) for name in ("bool", "f64", "f32", *ty.INTS)))  # what C takes, and what it gives
DOES = "to show a value:  do print e"


class Module:
    """Checks the declarations of one module in order."""

    def __init__(self, cx: Context) -> None:
        self.cx = cx
        self.unfinished: list[tuple[Callable[[Zonk], Item], Span, list]] = []
        self.span = NOWHERE  # that of the declaration being checked
        self.problems: list = []
        self.used: dict[str, int] = {}

    def declare(self, decl: tree.Decl) -> None:
        """Checks a declaration; an error in it is kept, and the names that it would declare are known as failed."""
        self.span = decl.span
        before = len(self.unfinished)
        try:
            self.check(decl)
        except DplError as error:
            if isinstance(decl, tree.DeclLet | tree.DeclDo | tree.DeclExpect):
                from dpl.types.replay import explained

                error = explained(self.cx, error, lambda: self.check(decl))
            self.problems += [d for d in error.diagnostics if d.code != UNDECIDED or not self.cx.lost]
            del self.unfinished[before:]
            self.fail(decl)
        else:
            if self.cx.lost:
                self.fail(decl, annotated=False)
            self.warn_of_unused()

    def warn_of_unused(self) -> None:
        for name, span in self.cx.unused.values():
            if name.startswith("_"):
                continue
            helps = (f"a name that may go unused begins with an underscore:  _{name}",)
            is_field = span.source.text[: span.start].rstrip().endswith(("{", ";"))  # maybe: fields keep their names
            edits = (Edit(span, f"_{name}"),) if span.text == name and not is_field else ()
            self.cx.warnings.add(Diagnostic("W0203", f"`{name}` is never used", span, helps=helps, edits=edits))

    def check(self, decl: tree.Decl) -> None:
        """A declaration -> items and exports, by its kind."""
        self.cx.begin()
        match decl:
            case tree.DeclLet():
                self.let(decl)
            case tree.DeclType():
                self.types(decl)
            case tree.DeclOpen():
                self.open(decl)
            case tree.DeclExtern():
                self.extern(decl)
            case tree.DeclDo():
                body = self.cx.check(decl.body, ty.UNIT, Why("a `do`", help=compares(decl.body) or DOES))
                self.add(lambda zonk: term.Do(zonk(body)))
            case tree.DeclExpect():
                self.expect(decl)
            case _:
                pass

    def add(self, item: Callable[[Zonk], Item]) -> None:
        """Queues an inferred definition and decides its open constraints; `finish` builds its core."""
        cx = self.cx
        while cx.pending:
            constraint = cx.pending.pop(0)
            if not constraint.done:
                cx.decide(constraint)
        self.unfinished.append((item, self.span, cx.holders))
        cx.holders = []

    def finish(self) -> list[Item]:
        """The core of all declarations, now that later uses have settled the types of values."""
        items = self.complete()
        zonk = Zonk(self.cx.solver, self.cx.datas, self.cx.warnings, NOWHERE)
        for own in self.cx.owned:
            for name, value in own.values.items():
                if isinstance(value, Value):
                    own.values[name] = replace(value, scheme=replace(value.scheme, ty=zonk.type(value.scheme.ty)))
        return items

    def complete(self) -> list[Item]:
        """The core of the declarations that are still unfinished."""
        items: list[Item] = []
        for item, span, holders in self.unfinished:
            zonk = Zonk(self.cx.solver, self.cx.datas, self.cx.warnings, span)
            try:
                items.append(item(zonk))
            except DplError as error:
                self.problems += error.diagnostics
            zonk.judge_literals(holders)
            self.problems += [problem for problem in zonk.problems if problem not in self.problems]
        return items

    def fail(self, decl: tree.Decl, annotated: bool = True) -> None:
        """Declares the names of a declaration with an error, so that their uses cause no further errors.  Where it only
        mentions names with errors, what is not `annotated` has a type that was guessed."""
        cx = self.cx
        match decl:
            case tree.DeclLet(bindings=bindings):
                for b in bindings:
                    if annotated or not (b.annot or pattern_annotations(b.pattern)):
                        for name in bound_names(b.pattern):
                            cx.declare(name, Failed())
            case _ if not annotated:
                pass
            case tree.DeclExtern(name=name):
                cx.declare(name, Failed())
            case tree.DeclType(defs=defs):
                cx.own.types.update({d.name: Failed() for d in defs})
                for body in (d.body for d in defs):
                    if isinstance(body, tree.Variants):
                        cx.own.constructors.update({name: Failed() for name, *_ in body.cases})
                    elif isinstance(body, tree.Fields):
                        cx.own.fields.update({name: Failed() for name, *_ in body.fields})
            case tree.DeclOpen():
                cx.layers.append(Exports(missing=True))
                cx.new_layer()
            case _:
                pass

    def qualified(self, name: str) -> str:
        """A unique global name: the second `f` is `f#2`."""
        full = f"{self.cx.module}.{name}"
        self.used[full] = self.used.get(full, 0) + 1
        return full if self.used[full] == 1 else f"{full}#{self.used[full]}"

    def export(self, name: str, core: str, scheme: Scheme, span, size=None, doc: str = "", parameters=()) -> None:
        self.cx.declare(name, Value(core, scheme, span, None, size, True, doc, tuple(map(called, parameters))))

    # ---- values

    def let(self, decl: tree.DeclLet) -> None:
        for warning in filter(None, map(modified, decl.bindings)):
            self.cx.warnings.add(warning)
        if decl.rec:
            self.recursive(decl)
        else:
            made = [self.binding(b, decl) for b in decl.bindings]
            for publish in made:
                publish()

    def binding(self, b: tree.Binding, decl: tree.DeclLet):
        """Checks one binding.  Returns a function that puts its names into scope."""
        cx = self.cx
        name = cx.defining = simple_name(b) or ""
        name = name or None
        with cx.deeper() as mark:
            value = right_side(cx, b, name or "")
            pattern, found = None, {}
            if name is None:  # before the type is generalised: a pattern gives that of `error "..."` its form
                with cx.scope():
                    pattern = bind_pattern(cx, b.pattern, value.ty)
                    found = {n: cx.find(n) for n in bound_names(b.pattern)}
        self.must_be_annotated(b, decl)
        if generalisable(cx, value):
            scheme = counted(cx, close(cx, [value.ty], mark, type(prune(value.ty)) is ty.Fn)[0], value)
        else:
            cx.solver.lower(value.ty, cx.solver.level)
            settle_outer(cx, mark)
            scheme = mono(value.ty)
        decide_numbers(cx, scheme.ty)
        quiet = is_quiet(cx, value)
        if name is not None:
            return lambda: self.define(name, scheme, value, b, decl, quiet)
        return lambda: self.components(scheme, value, pattern, found, b, quiet)

    def define(
        self, name: str, scheme: Scheme, value: term.Term, b: tree.Binding, decl: tree.DeclLet, quiet: bool
    ) -> None:
        self.must_be_ground(scheme, b, decl)
        core = self.qualified(name)
        self.add(lambda zonk: term.Def(core, scheme.params, zonk.type(scheme.ty), zonk(value), (), decl.export))
        if not quiet:
            self.cx.loud.add(core)
        if name != "_":
            size = size_of(self.cx, b.body) if not b.params and not scheme.params else None
            self.cx.remember(core, b, self.cx.clock)
            self.export(name, core, scheme, b.span, size, decl.doc, b.params)
            if not scheme.params:
                self.cx.evidence = self.cx.global_evidence
                learn(self.cx, term.Var(b.span, scheme.ty, core), scheme.ty)

    def components(self, scheme: Scheme, value: term.Term, pattern, found: dict, b: tree.Binding, quiet: bool) -> None:
        """`let (p, q) = e`: one definition for the value, and one for each name in the pattern."""
        whole = self.qualified(",".join(found) or "_")
        self.add(lambda zonk: term.Def(whole, scheme.params, zonk.type(scheme.ty), zonk(value)))
        inst = tuple(ty.Size(0, (((p.name,), 1),)) if p.sort == "size" else p for p in scheme.params)
        span = b.pattern.span

        def component(zonk: Zonk, core: str, variable: str, t: Type) -> term.Def:
            arm = term.Arm(span, pattern, None, term.Var(span, t, variable))
            match = term.Match(span, t, term.Var(span, scheme.ty, whole, inst), (arm,))
            return term.Def(core, scheme.params, zonk.type(t), zonk(match))

        for name, entry in found.items():
            core, t = self.qualified(name), closed(self.cx.solver, entry.scheme.ty, {})
            self.add(lambda zonk, core=core, variable=entry.name, t=t: component(zonk, core, variable, t))
            if not quiet:
                self.cx.loud.add(core)
            self.export(name, core, replace(scheme, ty=t), span)

    def recursive(self, decl: tree.DeclLet) -> None:
        cx = self.cx
        cores = [self.qualified(simple_name(b) or "_") for b in decl.bindings]
        names, values, schemes, _ = group(cx, decl.bindings, cores, is_global=True)
        for scheme in schemes:
            decide_numbers(cx, scheme.ty)
        if not all(is_quiet(cx, v) for v in values):
            cx.loud.update(cores)
        for name, core, value, scheme, b in zip(names, cores, values, schemes, decl.bindings):
            self.must_be_annotated(b, decl)
            self.must_be_ground(scheme, b, decl)
            self.add(
                lambda zonk, core=core, value=value, scheme=scheme: term.Def(
                    core, scheme.params, zonk.type(scheme.ty), zonk(value), tuple(cores), decl.export
                )
            )
            self.export(name, core, scheme, b.span, None, decl.doc, b.params)
        for core, b in zip(cores, decl.bindings):
            cx.remember(core, b, cx.clock)

    def must_be_annotated(self, b: tree.Binding, decl: tree.DeclLet) -> None:
        """Raises an error if an exported definition has no type annotation."""
        if not decl.export:
            return
        annots = pattern_annotations(b.pattern)
        for t in (*annots, b.annot, *(t for p in b.params for t in annotations_in(p))):
            must_be_closed(self.cx, t, "an exported definition", "E0215")
        if not ((b.annot is not None and all(map(is_annotated, b.params))) or annots):
            raise self.cx.fail(
                "E0215",
                "an exported definition must have its type annotated",
                b.pattern.span,
                helps=("annotate every parameter and the result:  export let f (x : float) : float = ...",),
            )

    def must_be_ground(self, scheme: Scheme, b: tree.Binding, decl: tree.DeclLet) -> None:
        """Raises an error if an exported definition is polymorphic, except in sizes."""
        if decl.export and any(p.sort == "type" for p in scheme.params):
            shown = show_scheme(scheme, self.cx.module)
            raise self.cx.fail("E0215", f"an exported definition must be of one type, not {shown}", b.pattern.span)

    def extern(self, decl: tree.DeclExtern) -> None:
        must_be_closed(self.cx, decl.type, "a C function")
        t = closed_type(self.cx, decl.type)
        self.must_be_of_c(t, decl)
        core = self.qualified(decl.name)
        self.add(lambda zonk: term.Def(core, (), zonk.type(t), term.Extern(decl.span, zonk.type(t), decl.symbol)))
        self.export(decl.name, core, mono(t), decl.span, doc=decl.doc)

    def must_be_of_c(self, t: Type, decl: tree.DeclExtern) -> None:
        """Raises an error unless a type is that of a function that C may have: on numbers and booleans."""
        parts: list[Type] = []
        while type(t) is ty.Fn:
            parts.append(t.arg)
            t = t.result
        if not parts:
            title = f"`extern` names a function, and `{decl.name}` is declared as none"
            raise self.cx.fail("E0209", title, decl.type.span, helps=("a function without arguments:  unit -> float",))
        for part in (*parts, t):
            if part not in OF_C:
                title = f"C gets and gives numbers and booleans here, not {printer(self.cx).type(part)}"
                helps = ("of other data, C calls DPL:  export let f (xs : float[n]) : float = e",)
                raise self.cx.fail("E0209", title, decl.type.span, helps=helps)

    def expect(self, decl: tree.DeclExpect) -> None:
        body = self.cx.infer(decl.body)
        if prune(body.ty) != ty.UNIT:
            body = self.cx.coerce(body, ty.BOOL, Why("an `expect`", help="a test is a condition:  a = b"))
        self.add(lambda zonk: term.Expect(decl.name, decl.span, zonk(body)))

    def open(self, decl: tree.DeclOpen) -> None:
        exports = self.cx.modules.get(decl.name)
        if exports is None:
            raise self.cx.unbound("value", decl.name + ".x", decl.span)
        self.cx.layers.append(exports.public())
        self.cx.new_layer()

    # ---- types

    def types(self, decl: tree.DeclType) -> None:
        declare_types(self, decl)


def decide_numbers(cx: Context, t: Type) -> None:
    """At the top level, a number type that is not generalised becomes int or float at once; later uses have no say."""
    for meta in free(cx.solver, [t], -1).metas:
        if "scalar" in meta.classes and not meta.rigid:
            cx.unify(meta, ty.F64 if "real" in meta.classes else ty.I64, NOWHERE)


def closed_type(cx: Context, t: tree.Type) -> Type:
    """The type of a closed annotation.  Arrows without `ctl` are pure."""
    found = resolve(cx, t, Flexible.ALL)
    return pure_arrows(found)


def pure_arrows(t) -> Type:
    t = prune(t)
    if type(t) is ty.Fn:
        return ty.Fn(pure_arrows(t.arg), t.eff if type(t.eff) is ty.Ctl else PURE, pure_arrows(t.result))
    return rebuild(t, lambda part: pure_arrows(part) if isinstance(part, ty.Con | ty.Tup | ty.Arr | ty.Fn) else part)


def is_annotated(p: tree.Pattern) -> bool:
    """True if a pattern states its whole type: `(x : t)`, `()`, `(x : t, y : u)`."""
    return isinstance(p, tree.PatAnnot) or (isinstance(p, tree.PatTuple) and all(map(is_annotated, p.items)))


def annotations_in(p: tree.Pattern) -> list[tree.Type]:
    """The annotations in a parameter whose whole type is annotated."""
    if isinstance(p, tree.PatTuple):
        return [t for item in p.items for t in annotations_in(item)]
    return pattern_annotations(p)


def called(p: tree.Pattern) -> str:
    """What documentation calls a parameter: its pattern without types."""
    match p:
        case tree.PatVar(name=name) | tree.PatAs(name=name):
            return name
        case tree.PatAnnot(pattern=inner):
            return called(inner)
        case tree.PatTuple(items=items):
            return f"({', '.join(map(called, items))})"
        case _:
            return p.span.text


def bound_names(p: tree.Pattern) -> list[str]:
    """The variables of a pattern, from left to right."""
    match p:
        case tree.PatVar(_, name):
            return [name]
        case tree.PatTuple(_, items) | tree.PatList(_, items) | tree.PatArray(_, items):
            return [n for i in items for n in bound_names(i)]
        case tree.PatCon(_, _, arg) if arg is not None:
            return bound_names(arg)
        case tree.PatCons(_, head, tail):
            return bound_names(head) + bound_names(tail)
        case tree.PatRecord(_, fields, _):
            return [n for _, i in fields for n in bound_names(i)]
        case tree.PatAs(_, inner, name):
            return [*bound_names(inner), name]
        case tree.PatOr(_, left, _):
            return bound_names(left)
        case tree.PatAnnot(_, inner, _):
            return bound_names(inner)
        case _:
            pass
    return []
