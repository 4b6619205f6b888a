"""Resolves written types.  Abbreviations are expanded; variables are rigid, or unknowns where `flexible` allows it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from dpl.core import ty
from dpl.diagnostics import DplError
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.rules.counts import of_int
from dpl.types.solve import sizes
from dpl.types.solve.meta import Type, prune
from dpl.types.solve.scheme import fresh_name, replace
from dpl.types.state.context import Context
from dpl.types.state.env import SizeName, TypeName, Value


class Flexible(Enum):
    """The variables of an annotation that inference may determine.

    NOTHING for functions, SIZES for values, ALL for annotations inside expressions."""

    NOTHING = 0
    SIZES = 1
    ALL = 2


def resolve(cx: Context, t: tree.Type, flexible: Flexible = Flexible.NOTHING) -> Type:
    """The type that an annotation denotes."""
    match t:
        case tree.TyVar(span, name):
            return _variable(cx, name, flexible)
        case tree.TyName(span, name, args):
            return named(cx, name, args, span, lambda a: resolve(cx, a, flexible), lambda s: size(cx, s, flexible))
        case tree.TyTuple(_, items):
            return ty.Tup(tuple(resolve(cx, i, flexible) for i in items))
        case tree.TyFun(_, arg, result, ctl):
            effect = ty.Ctl(resolve(cx, ctl, flexible)) if ctl is not None else cx.solver.effect()
            return ty.Fn(resolve(cx, arg, flexible), effect, resolve(cx, result, flexible))
        case tree.TyArray(_, elem, dims):
            inner = resolve(cx, elem, flexible)
            for dim in reversed(dims):
                inner = ty.Arr(inner, size(cx, dim, flexible))
            return inner
        case tree.TyOpen(span):
            cx.solver.at(span)
            return cx.solver.fresh()
    raise AssertionError(t)


def _variable(cx: Context, name: str, flexible: Flexible) -> Type:
    for frame in reversed(cx.frames):
        if name in frame.types:
            return frame.types[name]
    frame = cx.frames[-1]
    found = cx.solver.fresh() if flexible is Flexible.ALL else cx.solver.rigid(fresh_name(name, (), cx.taken))
    found.level = frame.level
    frame.types[name] = found
    return found


def size(cx: Context, s: tree.Size | tree.Type, flexible: Flexible) -> ty.Size:
    match s:
        case tree.SizeNum(span, value):
            return cx.solver.sizes.written(ty.Size(value), span)
        case tree.SizeUnknown(span):
            cx.solver.at(span)
            return cx.solver.unknown_size()
        case tree.SizeOpen(span) | tree.TyOpen(span):
            cx.solver.at(span)
            return cx.solver.size()
        case tree.SizeVar(span, name) | tree.TyName(span, name, ()):
            cx.solver.at(span)
            found = size_variable(cx, name, flexible)
            return cx.solver.sizes.written(ty.Size(found.const, found.terms), span)
        case tree.SizeOp(_, op, left, right):
            return combine(op, size(cx, left, flexible), size(cx, right, flexible))
        case _:
            raise cx.fail("E0304", "a size is wanted here, not a type", s.span)


def open_part(t) -> Span | None:
    """The first `_` in a written type or size; None if there is none."""
    match t:
        case tree.TyOpen(span) | tree.SizeOpen(span):
            return span
        case tree.TyName(_, _, args) | tree.TyTuple(_, args):
            within = args
        case tree.TyArray(_, elem, dims):
            within = (elem, *dims)
        case tree.TyFun(_, arg, result, ctl):
            within = (arg, result, ctl)
        case tree.SizeOp(_, _, left, right):
            within = (left, right)
        case _:
            within = ()
    return next((found for part in within if (found := open_part(part))), None)


def must_be_closed(cx: Context, t, what: str, code: str = "E0209") -> None:
    """Raises an error if a written type contains `_` where nothing can be inferred."""
    if found := open_part(t):
        title = f"{what} says its type in full: `_` is inferred, and here there is nothing to infer it from"
        raise cx.fail(code, title, found, note="write the type")


def combine(op: str, a: ty.Size, b: ty.Size) -> ty.Size:
    """The size `a op b`, for `+`, `-` and `*`."""
    return sizes.mul(a, b) if op == "*" else sizes.add(a, b) if op == "+" else sizes.sub(a, b)


def size_variable(cx: Context, name: str, flexible: Flexible) -> ty.Size:
    for frame in reversed(cx.frames):
        if name in frame.sizes:
            return frame.sizes[name]
    frame = cx.frames[-1]
    local = cx.locals.get(name)
    if local and isinstance(local[-1], Value) and prune(local[-1].scheme.ty) == ty.I64:
        return of_int(cx, name)
    if flexible is not Flexible.NOTHING or cx.inside_call:
        found = cx.solver.sizes.fresh(frame.level)
    else:
        unique = fresh_name(name, (), cx.taken)
        cx.solver.sizes.levels[unique] = frame.level
        found = sizes.name(unique)
    frame.sizes[name] = found
    cx.bind(name, SizeName(found))
    return found


def named(cx: Context, name: str, args: tuple, span: Span, as_type, as_size) -> Type:
    """The type of an applied type name.  Each argument is a type or a size, as its parameter requires."""
    found = cx.type_name(name, span)
    if len(args) != len(found.params):
        raise misapplied(cx, name, found, args, span, cx.type_name)
    values = tuple(as_size(a) if p.sort == "size" else as_type(_as_type(cx, a)) for p, a in zip(found.params, args))
    return apply(cx, found, values)


def misapplied(
    cx: Context, name: str, found: TypeName, args: tuple, span: Span, find: Callable[[str, Span], TypeName]
) -> DplError:
    """The error for a type with the wrong number of arguments, such as `list float`; `find` knows the types."""
    wants = f"{len(found.params)} argument{'s' * (len(found.params) != 1)}"
    title = f"the type `{name}` takes {wants}, not {len(args)}"
    helps: tuple[str, ...] = ()
    if len(args) == 1 and not found.params and isinstance(args[0], tree.TyName) and not args[0].args:
        swapped = find(args[0].name, args[0].span)
        helps = (f"arguments come first:  {name} {args[0].name}",) if len(swapped.params) == 1 else ()
    if len(args) == 1 and not found.params and not helps:
        written = args[0].span.text
        helps = (f"several values are joined by `*`:  {written} * {name}",)
    elif len(found.params) > 1:
        names = ", ".join(p.name if p.sort == "size" else f"'{p.name}" for p in found.params)
        more = ("n" if p.sort == "size" else "float" for p in found.params[len(args) :])
        example = ", ".join([*(arg.span.text for arg in args[: len(found.params)]), *more])
        helps = (f"before it stand  ({names}) , so:  ({example}) {name}",)
    elif not args and len(found.params) == 1:
        is_size = found.params[0].sort == "size"
        helps = (f"its argument comes first:  {'n' if is_size else 'float'} {name}",)
        if is_size and len(name) == 1:  # `type tree a = ...`
            helps = (f"a parameter stands before the name and has a quote:  type '{name} {found.params[0].name} = ...",)
    return cx.fail("E0209", title, span, helps=helps)


def apply(cx: Context, found: TypeName, values: tuple) -> Type:
    """The type of this name with these arguments.  An abbreviation is expanded, with new unknowns for its `?` sizes."""
    if found.alias is None:
        return ty.Con(found.name, values)
    return replace(found.alias, {**{p.name: v for p, v in zip(found.params, values)}, **_opened(cx, found.alias)}, {})


def _opened(cx: Context, alias: Type) -> dict:
    """Fresh unknown sizes for one use of an abbreviation."""
    return {n: cx.solver.unknown_size() for n in unknowns(alias)}


def unknowns(t) -> list[str]:
    """The names of the run-time sizes (`?`) in `t`, in an order that does not depend on the run."""
    found, stack, seen = dict[str, None](), [t], set()
    while stack:
        t = stack.pop()
        if type(t) is ty.Size:
            found |= dict.fromkeys(n for n in sizes.names(t) if n[0] == "?")
        elif id(t) not in seen:
            seen.add(id(t))
            stack += ty.children(t)
    return list(found)


def _as_type(cx: Context, a) -> tree.Type:
    if isinstance(a, tree.Size):
        raise cx.fail("E0209", "a type is wanted here, not a size", a.span)
    return a
