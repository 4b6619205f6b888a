"""A primitive and the types of its use -> a function of its operands' values.

    mul at (f32[n], f32)    lift2(scalar("mul", "f32"))
    show at (tree)          value -> text

Primitives that call functions of the program with a continuation are in control.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dpl import host
from dpl.core import ty as t
from dpl.core.shapes import innermost
from dpl.diagnostics import Bug, DplError
from dpl.eval.derivatives import derive
from dpl.eval.machine import outside, ranks
from dpl.eval.machine.outside import Outside
from dpl.eval.values import arrays, strings
from dpl.eval.values.datatypes import DataTypes
from dpl.eval.values.layout import layout
from dpl.eval.values.memory import gathered
from dpl.eval.values.scalar import COMPARISONS, FIT, cast, scalar
from dpl.eval.values.show import Shower
from dpl.eval.values.structure import check_same_form, compare, equal, leaves, rebuild
from dpl.eval.values.value import Array, Cell, Value, number
from dpl.node import node
from dpl.prims import TABLE, evaluation

Types = tuple[t.Ty, ...]  # of the operands, then of the result


def kind(ty: t.Ty) -> str:
    """The name of an operand's scalar type; for an array, that of its innermost elements."""
    found = innermost(ty)
    return found.name if isinstance(found, t.Con) else "i64"  # an unconstrained type: any kind will do


# ---- elementwise --------------------------------------------------------------------------------------------------


def elementwise(op: str, types: Types) -> Callable:
    f = _scalar(op, types)
    if not any(isinstance(ty, t.Arr) for ty in types):
        return f
    match len(types) - 1:
        case 1:
            return arrays.lift1(f)
        case 2:
            return arrays.lift2(f)
        case _:
            return arrays.lift(f)


def _scalar(op: str, types: Types) -> Callable:
    match op:
        case "to_like":
            convert = cast(kind(types[0]), kind(types[1]))
            return lambda x, _like: convert(x)
        case "not" | "and" | "or" | "select":
            return evaluation(op, "bool")
        case "pow" if kind(types[1]) in t.INTS:
            return scalar("powi", kind(types[0]))
        case _ if op in FIT:
            return cast(kind(types[0]), op)
        case _:
            return scalar(op, kind(types[-1]))


ORDER: dict[str, Callable[[int], bool]] = {
    "lt": lambda c: c < 0,
    "le": lambda c: c <= 0,
    "gt": lambda c: c > 0,
    "ge": lambda c: c >= 0,
}


def comparison(op: str, ty: t.Ty) -> Callable:
    """A comparison: Python's own for scalars, structural for data."""
    if isinstance(ty, t.Con) and (ty.name in FIT or ty in (t.BOOL, t.STRING)):
        return COMPARISONS[op]
    if op == "eq":
        return equal
    if op == "ne":
        return lambda x, y: not equal(x, y)
    decide = ORDER[op]
    return lambda x, y: decide(compare(x, y))


# ---- by name ------------------------------------------------------------------------------------------------------


def error(message: str):
    raise DplError.at("R0706", message)


def assert_(holds: bool) -> tuple:
    if not holds:
        raise DplError.at("R0707", "an assertion does not hold")
    return ()


def refuted(why: str):
    raise DplError.at("R0707", why)


def deref(cell: Cell) -> Value:
    return cell.content


def assign(cell: Cell, value: Value) -> tuple:
    cell.content = value
    return ()


def fresh_zeros(value: float) -> Callable[[int], Array]:
    return lambda n: Array((arrays.count_checked(n),), [value] * n)


def arange(n: int) -> Array:
    return Array((arrays.count_checked(n),), gathered(n, int))


def tree_map(call: Callable, f: Value, x: Value) -> Value:
    new = [call(f, leaf) if derive.is_float(leaf) else leaf for leaf in leaves(x)]
    return rebuild(x, iter(new))


def tree_map2(call: Callable, f: Value, x: Value, y: Value) -> Value:
    check_same_form(x, y, "the two values do not have one form")
    pairs = zip(leaves(x), leaves(y), strict=True)
    new = [call(f, a, b) if derive.is_float(a) else a for a, b in pairs]
    return rebuild(x, iter(new))


def tree_leaves(value: Value) -> Array:
    found = [leaf for leaf in leaves(value) if derive.is_float(leaf)]
    return Array((len(found),), found)


WORDS = frozenset((*FIT, "bool"))  # leaves that are numbers or booleans


def tree_words(value: Value, kinds: list[str]) -> Array:
    found = [word_of(number(leaf), kind) for leaf, kind in zip(leaves(value), kinds, strict=True) if kind in WORDS]
    return Array((len(found),), found)


def tree_map_words(call: Callable, f: Value, x: Value, kinds: list[str]) -> Value:
    new = [
        of_word(call(f, word_of(number(leaf), kind)), kind) if kind in WORDS else leaf
        for leaf, kind in zip(leaves(x), kinds, strict=True)
    ]
    return rebuild(x, iter(new))


def word_of(leaf: float, kind: str) -> int:
    """A number or boolean as a u64: a float as the bits of an f64."""
    return outside.BITCASTS["bits_of_f64"](leaf) if kind in t.FLOATS else int(leaf) % (1 << 64)


def of_word(word: int, kind: str) -> float:
    if kind == "bool":
        return word != 0
    return cast("f64", kind)(outside.BITCASTS["f64_of_bits"](word)) if kind in t.FLOATS else FIT[kind](word)


def factorization(name: str, types: Types, run: Surroundings) -> Callable:
    """A primitive that LAPACK computes, in f64.  Programs must check `has_lapack` first."""
    rounded = run.datas.rounding(types[-1])

    def compute(*args: Value) -> Value:
        routines = host.current.factorizations()
        assert routines is not None
        return rounded(routines[name](*args))

    return compute


BY_NAME: dict[str, Callable] = {
    "length": lambda x: x.shape[0],
    "dim": lambda x, k: x.shape[k],
    "range": arange,
    "zeros": fresh_zeros(0.0),
    "ones": fresh_zeros(1.0),
    "fill": arrays.fill,
    "index": arrays.index,
    "update": arrays.update,
    "slice": arrays.slice_,
    "append": arrays.append,
    "reshape": arrays.reshape,
    "transpose": arrays.transpose,
    "flatten": arrays.flatten,
    "string_length": len,
    "string_codes": strings.codes,
    "string_of_codes": strings.of_codes,
    "string_bytes": strings.to_bytes,
    "string_of_bytes": strings.of_bytes,
    "string_to_int": strings.to_int,
    "string_to_float": strings.to_float,
    "string_to_table": strings.to_table,
    "error": error,
    "assert": assert_,
    "refuted": refuted,
    "ref": Cell,
    "deref": deref,
    "assign": assign,
    "read_text": outside.read_text,
    "write_text": outside.write_text,
    "read_bytes": outside.read_bytes,
    "write_bytes": outside.write_bytes,
    "time": outside.clock,
    "env": outside.env,
    "read_line": outside.read_line,
    "mpi": ranks.mpi,
    "stop_grad": derive.stop_grad,
    **outside.BITCASTS,
    "has_lapack": lambda _unit: host.current.factorizations() is not None,
}
BY_KIND = {
    "sum": arrays.sum_, "dot": arrays.dot, "matmul": arrays.matmul, "gram": arrays.gram,
    "sort": lambda _kind: arrays.sort, "argsort": lambda _kind: arrays.argsort,
    "argmax": lambda _kind: arrays.extremum(COMPARISONS["gt"]),
    "argmin": lambda _kind: arrays.extremum(COMPARISONS["lt"]),
    **{name: partial(arrays.convolution, name) for name in ("conv2d", "conv2d_data")},
}  # fmt: skip


@node
class Surroundings:
    """The parts of a run that primitives use.  `call` applies a function of the program."""

    datas: DataTypes
    shower: Shower
    world: Outside
    call: Callable


def of_tree_map(types: Types, run: Surroundings) -> Callable:
    rounded, wide = run.datas.rounding(types[1]), run.datas.widening(types[1])
    return lambda f, x: rounded(tree_map(run.call, f, wide(x)))


def of_tree_map2(types: Types, run: Surroundings) -> Callable:
    rounded, wide = run.datas.rounding(types[1]), run.datas.widening(types[1])
    return lambda f, x, y: rounded(tree_map2(run.call, f, wide(x), wide(y)))


def of_tree_leaves(types: Types, run: Surroundings) -> Callable:
    wide = run.datas.widening(types[0])
    return lambda x: tree_leaves(wide(x))


OF_TREES: dict[str, Callable[[Types, Surroundings], Callable]] = {
    "tree_map": of_tree_map,
    "tree_map2": of_tree_map2,
    "tree_leaves": of_tree_leaves,
    "tree_map_words": lambda types, run: lambda f, x: tree_map_words(run.call, f, x, run.datas.leaf_kinds(x, types[1])),
    "tree_words": lambda types, run: lambda x: tree_words(x, run.datas.leaf_kinds(x, types[0])),
    "tree_layout": lambda types, run: lambda x: layout(run.datas, x, types[0]),
    **{name: partial(factorization, name) for name in TABLE if name.startswith("lapack_")},
}


def implementation(op: str, types: Types, run: Surroundings) -> Callable:
    """The Python function for a primitive at these types (the operands', then the result's)."""
    if op in COMPARISONS:
        return comparison(op, types[0])
    if op != "dim" and TABLE[op].elementwise:
        return elementwise(op, types)
    if op in BY_NAME:
        return BY_NAME[op]
    if op in BY_KIND:
        return BY_KIND[op](kind(types[0]))
    if op in OF_TREES:
        return OF_TREES[op](types, run)
    match op:
        case "numeric":
            elem = types[0].elem if isinstance(types[0], t.Arr) else None
            known = isinstance(elem, t.Con) and (elem.name in FIT or elem == t.BOOL)
            return lambda _xs: known
        case "show":
            return lambda x: run.shower.show(x, types[0])
        case "print":
            return lambda x: run.world.print_string(run.shower.show(x, types[0], abridged=True) + "\n")
        case "format":
            return lambda spec, x: run.shower.format(spec, x, types[1])
        case "print_string" | "progress" | "arg_count" | "arg" | "exit":
            return getattr(run.world, op)
        case _:
            raise Bug(f"the interpreter does not know the primitive `{op}`")
