"""`type` declarations -> data types, constructors, fields and abbreviations."""

from __future__ import annotations

from dpl.core import term, ty
from dpl.diagnostics import Diagnostic, Label
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.messages.parts import printer
from dpl.types.rules.annotations import apply, combine, misapplied, must_be_closed
from dpl.types.solve import sizes
from dpl.types.solve.meta import PURE, Type
from dpl.types.state.context import Context
from dpl.types.state.env import Constructor, TypeName


def declare_types(module, decl: tree.DeclType) -> None:
    """Declares the types of one declaration, which may refer to each other."""
    Group(module, decl).declare()


def warn_of_hidden(cx: Context, name: str, data: term.Data, span: Span) -> None:
    """Warns if a new constructor hides one that is in scope."""
    hidden = cx.known_constructor(name)
    if isinstance(hidden, Constructor):
        other, own = (printer(cx).data_name(d.name) for d in (hidden.data, data))
        before = cx.constructors.get(name)
        cx.warnings.add(
            Diagnostic(
                "W0206",
                f"the constructor `{name}` of `{own}` hides that of `{other}`",
                span,
                labels=(Label(before[1], f"`{name}` of `{other}`"),) if before else (),
                helps=(f"another name keeps both usable; where a `{other}` is known to be wanted, its own is found",),
            )
        )


def written(d: tree.TypeDef) -> tuple:
    """The types that occur in a declaration."""
    match d.body:
        case tree.Variants(_, cases):
            return tuple(t for _, t, _ in cases)
        case tree.Fields(_, fields):
            return tuple(t for _, t, _ in fields)
        case alias:
            return (alias,)


class Group:
    def __init__(self, module, decl: tree.DeclType) -> None:
        self.module, self.cx = module, module.cx
        self.defs = {d.name: d for d in decl.defs}
        if len(self.defs) < len(decl.defs):
            raise self.cx.fail("E0209", "a type is declared twice in this group", decl.span)
        self.known: dict[str, TypeName] = {}
        self.active: list[str] = []  # the abbreviations being expanded

    def declare(self) -> None:
        datas = [d for d in self.defs.values() if isinstance(d.body, tree.Variants | tree.Fields)]
        for d in datas:
            self.known[d.name] = TypeName(self.module.qualified(d.name), self.params(d))
        for d in self.defs.values():
            for t in written(d):
                must_be_closed(self.cx, t, "a declared type")
        for d in self.defs.values():
            if d not in datas:
                self.abbreviation(d)
        made = [self.data(d) for d in datas]
        self.cx.own.types.update(self.known)
        for d, data in zip(datas, made):
            self.publish(d, data)

    def params(self, d: tree.TypeDef) -> tuple[ty.Var, ...]:
        names = [p.name for p in d.params]
        if len(set(names)) < len(names):
            raise self.cx.fail("E0209", f"the type `{d.name}` has two parameters of one name", d.span)
        return tuple(ty.Var(p.name, "size" if p.is_size else "type") for p in d.params)

    def abbreviation(self, d: tree.TypeDef) -> TypeName:
        if d.name in self.active:
            raise self.cx.fail(
                "E0209",
                f"the abbreviation `{d.name}` contains itself, an infinite type",
                d.span,
                helps=("a recursive type needs a constructor:  type t = T of ...",),
            )
        if d.name not in self.known:
            self.active.append(d.name)
            params = self.params(d)
            alias = self.type(d.body, params)
            self.known[d.name] = TypeName(d.name, params, alias)
            self.active.pop()
        return self.known[d.name]

    def data(self, d: tree.TypeDef) -> term.Data:
        found = self.known[d.name]
        match d.body:
            case tree.Variants(_, cases):
                self.distinct([(name, span) for name, _, span in cases], "constructor")
                made = tuple((name, None if arg is None else self.type(arg, found.params)) for name, arg, _ in cases)
                return term.Data(found.name, found.params, made)
            case tree.Fields(_, fields):
                self.distinct([(name, span) for name, _, span in fields], "field")
                types = [self.type(t, found.params) for _, t, _ in fields]
                content = types[0] if len(types) == 1 else ty.Tup(tuple(types))
                return term.Data(found.name, found.params, ((d.name, content),), tuple(name for name, _, _ in fields))
            case _:
                raise AssertionError(d)

    def distinct(self, names: list, kind: str) -> None:
        seen: set[str] = set()
        for name, span in names:
            if name in seen:
                raise self.cx.fail("E0209", f"the {kind} `{name}` is declared twice in this type", span)
            seen.add(name)

    def publish(self, d: tree.TypeDef, data: term.Data) -> None:
        self.cx.datas[data.name] = data
        cx = self.cx
        match d.body:
            case tree.Variants(_, cases):
                for tag, (name, _, span) in enumerate(cases):
                    warn_of_hidden(cx, name, data, span)
                    cx.own.constructors[name] = Constructor(data, tag)
                    cx.constructors[name] = data, span
            case _:
                cx.own.fields.update(dict.fromkeys(data.fields, data))
                for name in data.fields:
                    cx.fields.setdefault(name, []).append(data)

    # ---- types as written, over the declaration's parameters

    def type(self, t, params: tuple[ty.Var, ...]) -> Type:
        match t:
            case tree.TyVar(span, name):
                if (found := ty.Var(name)) in params:
                    return found
                helps = (f"the parameter {name} is a size:  float[{name}]",) if ty.Var(name, "size") in params else ()
                raise self.cx.fail(
                    "E0209", f"the type variable '{name} is not a parameter of this type", span, helps=helps
                )
            case tree.TyName(span, name, args):
                return self.named(name, args, span, params)
            case tree.TyTuple(_, items):
                return ty.Tup(tuple(self.type(i, params) for i in items))
            case tree.TyFun(_, arg, result, ctl):
                effect = PURE if ctl is None else ty.Ctl(self.type(ctl, params))
                return ty.Fn(self.type(arg, params), effect, self.type(result, params))
            case tree.TyArray(_, elem, dims):
                inner = self.type(elem, params)
                for dim in reversed(dims):
                    inner = ty.Arr(inner, self.size(dim, params))
                return inner
            case _:
                pass
        raise self.cx.fail("E0209", "a type is wanted here, not a size", t.span)

    def named(self, name: str, args: tuple, span, params: tuple[ty.Var, ...]) -> Type:
        found = self.find(name, span)
        if len(args) != len(found.params):
            raise misapplied(self.cx, name, found, args, span, self.find)
        values = tuple(
            self.size(a, params) if p.sort == "size" else self.type(a, params) for p, a in zip(found.params, args)
        )
        return apply(self.cx, found, values)

    def find(self, name: str, span: Span) -> TypeName:
        if name in self.known:
            return self.known[name]
        own = self.defs.get(name)
        return self.abbreviation(own) if own else self.cx.type_name(name, span)

    def size(self, s, params: tuple[ty.Var, ...]) -> ty.Size:
        match s:
            case tree.SizeNum(span, value):
                return self.cx.solver.sizes.written(ty.Size(value), span)
            case tree.SizeUnknown():
                return self.cx.solver.unknown_size()
            case tree.SizeVar(span, name) | tree.TyName(span, name, ()):
                if ty.Var(name, "size") in params:
                    return sizes.name(name)
                way = f"make it one:  type {name} t = ..., or write ? for a size known only when running"
                if ty.Var(name) in params:
                    way = f"the parameter '{name} is a type, as its quote says; that of a size is  {name}"
                title = f"the size `{name}` is not a parameter of this type"
                raise self.cx.fail("E0209", title, span, helps=(way,))
            case tree.SizeOp(_, op, left, right):
                return combine(op, self.size(left, params), self.size(right, params))
            case tree.TyTuple(_, items):  # `(n * m) t` reads as a tuple
                product = ty.Size(1)
                for item in items:
                    product = sizes.mul(product, self.size(item, params))
                return product
            case _:
                pass
        raise self.cx.fail("E0209", "a size is wanted here, not a type", s.span)
