"""Declarations -> core definitions, data types and exports, one at a time; an error in one does not stop the others."""

from __future__ import annotations

from dpl.core import term, ty
from dpl.diagnostics import DplError
from dpl.syntax import tree
from dpl.types import sizes
from dpl.types.annotations import combine, named, resolve
from dpl.types.bindings import close, generalisable, group, pattern_annotations, right_side, settle_outer, simple_name
from dpl.types.context import Context
from dpl.types.env import Constructor, Failed, Group, TypeName, Value
from dpl.types.errors import Why
from dpl.types.meta import PURE, Type, prune
from dpl.types.patterns import bind_pattern
from dpl.types.quiet import is_quiet
from dpl.types.scheme import Scheme, mono
from dpl.types.zonk import Zonk

Item = term.Def | term.Do | term.Expect


class Module:
    """Checks the declarations of one module in order."""

    def __init__(self, cx: Context) -> None:
        self.cx = cx
        self.items: list[Item] = []
        self.problems: list = []
        self.used: dict[str, int] = {}

    def declare(self, decl: tree.Decl) -> None:
        self.cx.begin()
        try:
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
                    body = self.cx.check(decl.body, ty.UNIT, Why("a `do`"))
                    self.items.append(term.Do(self.finish()(body)))
                case tree.DeclExpect():
                    self.expect(decl)
        except DplError as error:
            self.problems += error.diagnostics
            self.fail(decl)

    def finish(self) -> Zonk:
        """Decide what is still open; answers what turns the definition's terms into core."""
        cx = self.cx
        while cx.pending:
            constraint = cx.pending.pop(0)
            if not constraint.done:
                cx.decide(constraint)
        return Final(cx, self.problems)

    def fail(self, decl: tree.Decl) -> None:
        """The names of a declaration with an error fit everywhere, so that nothing is said twice."""
        names: list[str] = []
        match decl:
            case tree.DeclLet(bindings=bindings):
                names = [n for b in bindings for n in bound_names(b.pattern)]
            case tree.DeclExtern(name=name):
                names = [name]
        for name in names:
            self.cx.own.values[name] = Failed()

    def qualified(self, name: str) -> str:
        """A global name that is new: the second `f` is `f#2`."""
        full = f"{self.cx.module}.{name}"
        self.used[full] = self.used.get(full, 0) + 1
        return full if self.used[full] == 1 else f"{full}#{self.used[full]}"

    def export(self, name: str, core: str, scheme: Scheme, span, size=None, doc: str = "") -> None:
        self.cx.own.values[name] = Value(core, scheme, span, size=size, is_global=True, doc=doc)

    # ---- values

    def let(self, decl: tree.DeclLet) -> None:
        if decl.rec:
            self.recursive(decl)
        else:
            made = [self.binding(b, decl) for b in decl.bindings]
            for publish in made:
                publish()

    def binding(self, b: tree.Binding, decl: tree.DeclLet):
        """Checks one binding; what is answered puts its names into scope."""
        cx = self.cx
        name = simple_name(b)
        with cx.deeper() as mark:
            value = right_side(cx, b, name or "")
        self.must_be_annotated(b, decl)
        if generalisable(cx, value):
            scheme = close(cx, [value.ty], mark, type(prune(value.ty)) is ty.Fn)[0]
        else:
            cx.solver.lower(value.ty, cx.solver.level)
            settle_outer(cx, mark)
            scheme = mono(value.ty)
        quiet = is_quiet(cx, value)
        pattern, found = None, {}
        if name is None:
            with cx.scope():
                pattern = bind_pattern(cx, b.pattern, value.ty)
                found = {n: cx.find(n) for n in bound_names(b.pattern)}
        zonk = self.finish()
        body = zonk(value)
        scheme = Scheme(scheme.params, zonk.type(scheme.ty), scheme.classes, scheme.constraints, scheme.unknowns)
        if name is not None:
            return lambda: self.define(name, scheme, body, b, decl, quiet)
        return lambda: self.components(scheme, body, zonk.pattern(pattern), found, b, quiet)

    def define(self, name: str, scheme: Scheme, body: term.Term, b: tree.Binding, decl: tree.DeclLet, quiet: bool) -> None:
        core = self.qualified(name)
        self.items.append(term.Def(core, scheme.params, scheme.ty, body, (), decl.export))
        if not quiet:
            self.cx.loud.add(core)
        if name != "_":
            size = None
            if not b.params and isinstance(b.body, tree.Lit) and scheme.ty == ty.I64 and b.body.value >= 0:
                size = ty.Size(b.body.value)
            self.export(name, core, scheme, b.span, size, decl.doc)

    def components(self, scheme: Scheme, body: term.Term, pattern, found: dict, b: tree.Binding, quiet: bool) -> None:
        """`let (p, q) = e`: the value, and one definition for each name in it."""
        whole = self.qualified(",".join(found) or "_")
        self.items.append(term.Def(whole, scheme.params, scheme.ty, body))
        inst = tuple(ty.Size(0, (((p.name,), 1),)) if p.sort == "size" else p for p in scheme.params)
        for name, value in found.items():
            t = variable_type(pattern, value.name)
            arm = term.Arm(b.pattern.span, pattern, None, term.Var(b.pattern.span, t, value.name))
            match = term.Match(b.pattern.span, t, term.Var(b.pattern.span, scheme.ty, whole, inst), (arm,))
            core = self.qualified(name)
            self.items.append(term.Def(core, scheme.params, t, match))
            if not quiet:
                self.cx.loud.add(core)
            self.export(name, core, Scheme(scheme.params, t, scheme.classes, scheme.constraints, scheme.unknowns), b.span)

    def recursive(self, decl: tree.DeclLet) -> None:
        cx = self.cx
        cores = [self.qualified(simple_name(b) or "_") for b in decl.bindings]
        names, values, schemes, _ = group(cx, decl.bindings, cores, is_global=True)
        zonk = self.finish()
        bodies = [zonk(v) for v in values]
        if not all(is_quiet(cx, v) for v in values):
            cx.loud.update(cores)
        for name, core, body, scheme, b in zip(names, cores, bodies, schemes, decl.bindings):
            self.must_be_annotated(b, decl)
            self.items.append(term.Def(core, scheme.params, scheme.ty, body, tuple(cores), decl.export))
            self.export(name, core, scheme, b.span, doc=decl.doc)

    def must_be_annotated(self, b: tree.Binding, decl: tree.DeclLet) -> None:
        """What others than DPL call says its type."""
        if decl.export and not (
            (b.annot is not None and all(isinstance(p, tree.PatAnnot) for p in b.params)) or pattern_annotations(b.pattern)
        ):
            raise self.cx.fail("E0215", "an exported definition must have its type annotated", b.pattern.span,
                               helps=("annotate every parameter and the result:  export let f (x : float) : float = ...",))  # fmt: skip

    def extern(self, decl: tree.DeclExtern) -> None:
        t = closed_type(self.cx, decl.type)
        core = self.qualified(decl.name)
        zonk = self.finish()
        t = zonk.type(t)
        self.items.append(term.Def(core, (), t, term.Extern(decl.span, t, decl.symbol)))
        self.export(decl.name, core, mono(t), decl.span, doc=decl.doc)

    def expect(self, decl: tree.DeclExpect) -> None:
        body = self.cx.infer(decl.body)
        if prune(body.ty) != ty.UNIT:
            body = self.cx.coerce(body, ty.BOOL, Why("an `expect`"))
        self.items.append(term.Expect(decl.name, decl.span, self.finish()(body)))

    def open(self, decl: tree.DeclOpen) -> None:
        exports = self.cx.modules.get(decl.name)
        if exports is None:
            raise self.cx.unbound("value", decl.name + ".x", decl.span)
        own, public = self.cx.own, exports.public()
        self.cx.opened.append(type(public)({k: v for k, v in public.values.items() if not own.values.get(k)} or public.values,
                                           public.types, public.constructors, public.fields))  # fmt: skip

    # ---- types

    def types(self, decl: tree.DeclType) -> None:
        from dpl.types.typedefs import declare_types

        declare_types(self, decl)


class Final(Zonk):
    """A zonk that reports what it found to the module when the definition is done."""

    def __init__(self, cx: Context, problems: list) -> None:
        super().__init__(cx.solver, cx.datas, cx.warnings)
        self.problems = problems


def closed_type(cx: Context, t: tree.Type) -> Type:
    """A type without variables, its arrows pure."""
    found = resolve(cx, t, flexible=True)
    return pure_arrows(found)


def pure_arrows(t) -> Type:
    from dpl.types.scheme import rebuild

    t = prune(t)
    if type(t) is ty.Fn:
        return ty.Fn(pure_arrows(t.arg), t.eff if type(t.eff) is ty.Ctl else PURE, pure_arrows(t.result))
    return rebuild(t, lambda part: pure_arrows(part) if isinstance(part, ty.Con | ty.Tup | ty.Arr | ty.Fn) else part)


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
    return []


def variable_type(p: term.Pattern, name: str) -> ty.Ty:
    """The type of a variable in a pattern."""
    stack = [p]
    while stack:
        match stack.pop():
            case term.PVar(t, found) if found == name:
                return t
            case term.PAs(t, inner, found):
                if found == name:
                    return t
                stack.append(inner)
            case term.PTuple(_, items) | term.PArray(_, items):
                stack += items
            case term.PCon(_, _, _, arg) if arg is not None:
                stack.append(arg)
            case term.POr(_, left, _):
                stack.append(left)
    raise AssertionError(name)


__all__ = ["Constructor", "Group", "Module", "TypeName", "combine", "named", "sizes"]
