"""The types of core: resolved, immutable, without inference variables.

Inference (`types/`) uses variables of its own, which are `Hole`s; none of them remain.  Scalars are `Con` without
arguments, under their canonical names: `i8 ... i64 u8 ... u64 f16 f32 f64 bool string` (`int` is `i64`, `float` is
`f64`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from dpl.diagnostics import Bug
from dpl.node import node


@node
class Var:
    """A quantified variable, of sort `type`, `size` or `effect`; `name` is unique in its definition."""

    name: str
    sort: str = "type"


@node
class Con:
    """A scalar, `list` (1 argument), `ref` (1), or a declared data type or record (its qualified name)."""

    name: str
    args: tuple[Ty | Size, ...] = ()


@node
class Tup:
    items: tuple[Ty, ...]  # () is unit; never of length 1


@node
class Arr:
    """An array of `size` elements; `float[n, m]` is Arr(Arr(float, m), n)."""

    elem: Ty
    size: Size


@node
class Fn:
    """`eff` is PURE, an effect Var, or Ctl(answer type)."""

    arg: Ty
    eff: Effect
    result: Ty


@node
class Lift:
    """The result type of an elementwise operation on operands of these types: the type of highest rank.  The others are
    rows of it, rows of rows, or scalars.  `name` is unique in its definition, like that of a variable; each instance
    determines which of the types it is."""

    name: str
    items: tuple[Ty, ...]


class Hole:
    """The base class of placeholders for types and effects during inference: unknowns (`types/solve/meta.py`), and sets
    of functions in the compiler (`passes/closures/set_types.py`).  Finished core contains none."""

    __slots__ = ()


Ty = Var | Con | Tup | Arr | Fn | Lift | Hole


@node
class Size:
    """A polynomial in normal form: `const` plus a sum of coefficient * product of names (sorted, with repeats).
    A name that begins with `?` is a size known only at run time."""

    const: int = 0
    terms: tuple[tuple[tuple[str, ...], int], ...] = ()


@node
class Pure:
    pass


@node
class Ctl:
    answer: Ty


Effect = Pure | Ctl | Var | Hole
PURE = Pure()

UNIT = Tup(())
BOOL, STRING = Con("bool"), Con("string")
I64, F64, F32 = Con("i64"), Con("f64"), Con("f32")
INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "f32", "f64")


def children(t: Any) -> tuple:
    """The types, sizes and effects directly inside a type or effect."""
    match t:
        case Con(_, args):
            return args
        case Tup(items):
            return items
        case Arr(elem, size):
            return elem, size
        case Fn(arg, eff, result):
            return arg, eff, result
        case Ctl(answer):
            return (answer,)
        case Lift(_, items):
            return items
        case _:
            pass
    return ()


def list_of(elem: Ty) -> Con:
    """The type of lists with elements of this type."""
    return Con("list", (elem,))


@overload
def substitute(ty: Ty, env: Mapping[str, Any]) -> Ty: ...
@overload
def substitute(ty: Size, env: Mapping[str, Any]) -> Size: ...
def substitute(ty: Ty | Size, env: Mapping[str, Any]) -> Ty | Size:
    """`ty` with its variables replaced.  `env` maps names to types, Sizes or effects, which share one name space."""
    match ty:
        case Var(name):
            return env.get(name, ty)
        case Con(_, ()):
            return ty
        case Con(name, args):
            return Con(name, tuple(substitute(a, env) for a in args))
        case Tup(items):
            return Tup(tuple(substitute(t, env) for t in items))
        case Arr(elem, size):
            return Arr(substitute(elem, env), substitute(size, env))
        case Fn(arg, eff, result):
            return Fn(substitute(arg, env), _in_effect(eff, env), substitute(result, env))
        case Lift(name, items):
            return lifted(name, [substitute(t, env) for t in items])
        case Size():
            return _in_size(ty, env)
        case Hole():
            raise Bug(f"a type that inference left open: {ty}")


def lifted(name: str, items: list[Ty]) -> Ty:
    """The lift of these types; one of the types themselves if it is known to have the highest rank."""
    parts = {id(part): part for t in items for part in (t.items if isinstance(t, Lift) else (t,))}
    flat = list(dict.fromkeys(parts.values()))  # most equal types are one object, which is found sooner
    ranks = [None if type(t) is Var else _rank(t) for t in flat]
    known = [r for r in ranks if r is not None]
    if len(known) == len(flat):
        return flat[ranks.index(max(known))]
    left = [t for t, r in zip(flat, ranks) if r is None or r > 0]  # a scalar never raises the rank
    return left[0] if len(left) == 1 else Lift(name, tuple(left))


def _rank(t: Ty) -> int | None:
    """The number of dimensions of a type, or None if unknown."""
    rank = 0
    while isinstance(t, Arr):
        t, rank = t.elem, rank + 1
    return None if isinstance(t, Var | Hole | Lift) else rank


def _in_effect(effect: Effect, env: Mapping[str, Any]) -> Effect:
    match effect:
        case Var(name):
            return env.get(name, effect)
        case Ctl(answer):
            return Ctl(substitute(answer, env))
        case _:
            return effect


def _in_size(size: Size, env: Mapping[str, Any]) -> Size:
    match size:
        case Size(0, (((name,), 1),)):  # keep the object itself: inference knows its origin
            found = env.get(name)
            return found if isinstance(found, Size) else size
        case _:
            pass
    total: Terms = {(): size.const}
    for names, coefficient in size.terms:
        product: Terms = {(): coefficient}
        for name in names:
            factor = env.get(name)
            product = multiply(product, as_terms(factor) if isinstance(factor, Size) else {(name,): 1})
        for key, value in product.items():
            total[key] = total.get(key, 0) + value
    return from_terms(total)


Terms = dict[tuple[str, ...], int]  # product of names -> its coefficient


def as_terms(size: Size) -> Terms:
    """A size as a polynomial: monomials (sorted names) -> coefficients; the constant's monomial is ()."""
    return {(): size.const, **dict(size.terms)}


def from_terms(terms: Terms) -> Size:
    """The size of a sum of terms; the term without names is its constant, and terms with coefficient 0 go."""
    rest = tuple(sorted((k, v) for k, v in terms.items() if k and v))
    return Size(terms.get((), 0), rest)


def multiply(a: Terms, b: Terms) -> Terms:
    """The product of two polynomials.  A coefficient may come out 0."""
    out: Terms = {}
    for ka, va in a.items():
        for kb, vb in b.items():
            key = tuple(sorted(ka + kb))
            out[key] = out.get(key, 0) + va * vb
    return out
