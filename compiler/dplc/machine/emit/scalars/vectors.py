"""Rows of the scalar table on vectors of f32 or f64 -> LLVM text.  In each lane the result is that of `maths.py`.

A vector of an elementary function's operands may be longer than those that the machine has a function for: then it is
halved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dpl.prims import TABLE

from dplc.machine.emit.scalars.maths import COMPARISONS
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Writer
from dplc.machine.runtime.elementary import vector_lengths
from dplc.passes.simplify.fold import PRODUCTS

PLAIN = {"add": "fadd", "acc_add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
LOGIC = ("and", "or", "not")
INTRINSICS = {name: row.llvm for name, row in TABLE.items() if row.llvm.startswith("llvm.")}
ROWS = frozenset((*PLAIN, *COMPARISONS, *LOGIC, *INTRINSICS, "neg", "max", "min", "relu", "select", "clip", "sign",
                  "stop_grad"))  # fmt: skip


def vector_type(ty: str, lanes: int) -> str:
    """LLVM's type of so many numbers side by side."""
    return f"<{lanes} x {SCALARS[ty]}>"


def vector(w: Writer, row: str, ty: str, lanes: int, args: list[str]) -> str:
    """The result of a row on vectors; `ty` is the type of the numbers in its last operand."""
    t, flags = vector_type(ty, lanes), vector_type("bool", lanes)
    match row:
        case _ if row in PLAIN:
            return w.let(f"{PLAIN[row]} {t} {args[0]}, {args[1]}")
        case _ if row in COMPARISONS:
            return w.let(f"fcmp {'u' if row == 'ne' else 'o'}{row} {t} {args[0]}, {args[1]}")
        case _ if row in INTRINSICS:
            return w.let(f"call {t} @{INTRINSICS[row]}.v{lanes}{ty}({t} {args[0]})")
        case "not":
            return w.let(f"xor {flags} {args[0]}, splat (i1 true)")
        case _ if row in LOGIC:
            return w.let(f"{row} {flags} {args[0]}, {args[1]}")
        case "neg":
            return w.let(f"fneg {t} {args[0]}")
        case "stop_grad":
            return args[0]
        case "relu":
            above = w.let(f"fcmp ugt {t} {args[0]}, zeroinitializer")
            return w.let(f"select {flags} {above}, {t} {args[0]}, {t} zeroinitializer")
        case "select":
            return w.let(f"select {flags} {args[0]}, {t} {args[1]}, {t} {args[2]}")
        case "clip":
            upper = w.let(f"select {flags} {w.let(f'fcmp ogt {t} {args[0]}, {args[2]}')}, {t} {args[2]}, {t} {args[0]}")
            below = w.let(f"fcmp olt {t} {args[0]}, {args[1]}")
            return w.let(f"select {flags} {below}, {t} {args[1]}, {t} {upper}")
        case "sign":
            one, zero = f"splat ({SCALARS[ty]} 1.0)", "zeroinitializer"
            nonzero = w.let(f"fcmp one {t} {args[0]}, {zero}")
            unit = w.let(f"call {t} @llvm.copysign.v{lanes}{ty}({t} {one}, {t} {args[0]})")
            step = w.let(f"select {flags} {nonzero}, {t} {unit}, {t} {zero}")
            nan = w.let(f"fcmp uno {t} {args[0]}, {args[0]}")
            return w.let(f"select {flags} {nan}, {t} {args[0]}, {t} {step}")
        case _:
            first = w.let(f"fcmp {'oge' if row == 'max' else 'ole'} {t} {args[0]}, {args[1]}")
            nan = w.let(f"fcmp uno {t} {args[0]}, {args[0]}")
            return w.let(f"select {flags} {w.let(f'or {flags} {first}, {nan}')}, {t} {args[0]}, {t} {args[1]}")


def powi(w: Writer, ty: str, lanes: int, x: str, n: int) -> str:
    """A power that is products, in double precision except for squares, as in `maths.py`."""
    t, wide, one = vector_type(ty, lanes), vector_type("f64", lanes), "splat (double 1.0)"
    if n == 2:
        return w.let(f"fmul {t} {x}, {x}")
    if ty != "f64":
        x = w.let(f"fpext {t} {x} to {wide}")
    square = w.let(f"fmul {wide} {x}, {x}") if n > 2 else ""
    match n:
        case -1:
            made = w.let(f"fdiv {wide} {one}, {x}")
        case 3 | 4:
            made = w.let(f"fmul {wide} {square}, {x if n == 3 else square}")
        case _:
            made = x if n else one
    return made if ty == "f64" else w.let(f"fptrunc {wide} {made} to {t}")


def power(w: Writer, lanes: int, x: str, n: str, machine: int) -> str:
    """The power of f64 with any whole number, alike in all lanes: products for some, as at run time elsewhere."""
    t, whole = vector_type("f64", lanes), w.let(f"sitofp i64 {n} to double")

    def products() -> list[str]:
        return [_products(w, lanes, x, powi(w, "f64", lanes, x, 0), lambda k: f"i1 {w.let(f'icmp eq i64 {n}, {k}')}")]

    def other() -> list[str]:
        one = w.let(f"insertelement {t} poison, double {whole}, i64 0")
        exponents = w.let(f"shufflevector {t} {one}, {t} poison, <{lanes} x i32> zeroinitializer")
        return [function(w, "pow", "f64", lanes, [x, exponents], machine)]

    small = w.let(f"icmp ult i64 {w.let(f'add i64 {n}, 1')}, 6")
    return w.choose(small, (t,), products, other)[0]


def powers(w: Writer, lanes: int, x: str, n: str, machine: int) -> str:
    """The powers with a whole number for each lane."""
    t, whole, flags = vector_type("f64", lanes), f"<{lanes} x i64>", vector_type("bool", lanes)
    exponents = w.let(f"sitofp {whole} {n} to {t}")
    other = function(w, "pow", "f64", lanes, [x, exponents], machine)
    return _products(w, lanes, x, other, lambda k: f"{flags} {w.let(f'icmp eq {whole} {n}, splat (i64 {k})')}")


def _products(w: Writer, lanes: int, x: str, made: str, is_exponent: Callable[[int], str]) -> str:
    """`made`, or a product where the exponent has one."""
    t = vector_type("f64", lanes)
    for k in PRODUCTS:
        made = w.let(f"select {is_exponent(k)}, {t} {powi(w, 'f64', lanes, x, k)}, {t} {made}")
    return made


def of_numbers(w: Writer, row: str, ty: str, lanes: int, args: list[str]) -> str:
    """A comparison of whole numbers, or a conversion of one to a float of type `ty`."""
    whole, wide = f"<{lanes} x i64>", vector_type("f64", lanes)
    if row != "cast":
        return w.let(f"icmp {'' if row in ('eq', 'ne') else 's'}{row} {whole} {args[0]}, {args[1]}")
    made = w.let(f"sitofp {whole} {args[0]} to {wide}")
    return made if ty == "f64" else w.let(f"fptrunc {wide} {made} to {vector_type(ty, lanes)}")


def whole(w: Writer, lanes: int, x: str) -> str:
    """Floats that are whole numbers as such."""
    return w.let(f"fptosi {vector_type('f64', lanes)} {x} to <{lanes} x i64>")


def function(w: Writer, name: str, ty: str, lanes: int, args: Sequence[str], machine: int) -> str:
    """An elementary function of vectors, on a machine whose vectors have so many bytes."""
    t = vector_type(ty, lanes)
    if lanes in vector_lengths(name, ty, machine):
        return w.let(f"call {t} @rt.{name}.{ty}.v{lanes}({', '.join([f'{t} {arg}' for arg in args])})")
    if lanes == 1:
        leaf = SCALARS[ty]
        ones = [w.let(f"extractelement {t} {arg}, i64 0") for arg in args]
        made = w.let(f"call {leaf} @rt.{name}.{ty}({', '.join([f'{leaf} {one}' for one in ones])})")
        return w.let(f"insertelement {t} poison, {leaf} {made}, i64 0")
    size = lanes // 2
    halves = [function(w, name, ty, size, [_lanes(w, t, arg, range(first, first + size)) for arg in args], machine)
              for first in (0, size)]  # fmt: skip
    half = vector_type(ty, size)
    return w.let(f"shufflevector {half} {halves[0]}, {half} {halves[1]}, {places(range(lanes))}")


def _lanes(w: Writer, t: str, vector: str, which: Sequence[int]) -> str:
    return w.let(f"shufflevector {t} {vector}, {t} poison, {places(which)}")


def places(numbers: Iterable[int]) -> str:
    """The mask of a shuffle."""
    found = [f"i32 {i}" for i in numbers]
    return f"<{len(found)} x i32> <{', '.join(found)}>"
