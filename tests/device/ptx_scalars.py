"""The arithmetic of PTX, on the bits of all threads at once.

Registers are arrays of u64.  `compute(instruction, operands)` takes the bits of the operands and gives those of the
result.  Arithmetic is IEEE's, fma included, so that results are those of a GPU, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from ptx_text import Instruction

Bits = NDArray[np.uint64]
Numbers = NDArray

TYPES: dict[str, type[np.generic]] = {
    "u8": np.uint8, "s8": np.int8, "b8": np.uint8, "u16": np.uint16, "s16": np.int16, "b16": np.uint16,
    "u32": np.uint32, "s32": np.int32, "b32": np.uint32, "u64": np.uint64, "s64": np.int64, "b64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "pred": np.uint64,
}  # fmt: skip
SIZES = {name: np.dtype(kind).itemsize for name, kind in TYPES.items()}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
ROUNDINGS = {"rni": np.rint, "rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc}


class Fault(Exception):
    """A mistake of the program: what hardware would not do, or would do without saying so."""

    instruction = ""

    def __str__(self) -> str:
        return f"{super().__str__()}: {self.instruction}" if self.instruction else super().__str__()


def numbers(bits: Bits, ty: str) -> Numbers:
    """Bits as numbers of a type."""
    size = SIZES[ty]
    return bits.view(TYPES[ty]) if size == 8 else bits.astype(UNSIGNED[size]).view(TYPES[ty])


def bits_of(values: Numbers) -> Bits:
    """Numbers as bits; those of small integers are not extended by their sign."""
    if values.dtype == np.uint64:
        return values
    if values.dtype.itemsize == 8:
        return values.view(np.uint64)
    if values.dtype == bool:
        return values.astype(np.uint64)
    return values.view(UNSIGNED[values.dtype.itemsize]).astype(np.uint64)


def compute(one: Instruction, operands: list[Bits]) -> Bits:
    """The result of an instruction that only computes."""
    rule = RULES.get(one.parts[0])
    if rule is None:
        raise Fault(f"an instruction that is not known: {one.text}")
    return bits_of(rule(one, operands))


def typed(apply: Callable[..., Numbers]) -> Callable[[Instruction, list[Bits]], Numbers]:
    """A rule for an operation on numbers of the instruction's type."""

    def rule(one: Instruction, operands: list[Bits]) -> Numbers:
        values = [numbers(x, one.type) for x in operands]
        return apply(*values).astype(values[0].dtype, copy=False)

    return rule


def either(floats: Callable[..., Numbers], integers: Callable[..., Numbers]) -> Callable[..., Numbers]:
    return lambda *values: (floats if values[0].dtype.kind == "f" else integers)(*values)


def exact_fma(x: Numbers, y: Numbers, z: Numbers) -> Numbers:
    """x * y + z, rounded once (S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved
    algorithms using rounding to odd", 2008)."""
    x, y, z = np.broadcast_arrays(x, y, z)
    kind = x.dtype
    if kind.itemsize < 8:
        return odd_sum(x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)).astype(kind)
    rounded = np.array(x * y + z)
    product, rest = exact_product(x, y)
    high, low = exact_sum(z, rest)
    total, error = exact_sum(product, high)
    sizes = [np.abs(v) for v in (x, y, x * y, z)]
    usual = np.all([(v > 2.0**-400) & (v < 2.0**400) for v in sizes], axis=0)
    made = np.where(usual, total + odd_sum(low, error), rounded)
    for i in np.nonzero(~usual & np.isfinite(rounded) & (x * y != z * 0.0) & (z != 0.0))[0]:
        exact = Fraction(float(x[i])) * Fraction(float(y[i])) + Fraction(float(z[i]))
        made[i] = nearest(exact, kind) if exact else rounded[i]
    return made


def exact_product(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """The rounded product, and what is missing to the exact one (Veltkamp, Dekker)."""

    def halves(v: Numbers) -> tuple[Numbers, Numbers]:
        t = v * 134217729.0
        return t - (t - v), v - (t - (t - v))

    (a, b), (c, d), product = halves(x), halves(y), x * y
    return product, ((a * c - product) + a * d + b * c) + b * d


def exact_sum(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """The rounded sum, and what is missing to the exact one (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def odd_sum(x: Numbers, y: Numbers) -> Numbers:
    """The sum, rounded to the number with an odd last bit unless it is exact."""
    total, rest = exact_sum(x, y)
    bits = total.view(np.int64)
    inexact = (rest != 0.0) & (bits & 1 == 0) & np.isfinite(rest) & np.isfinite(total)
    return np.where(inexact, bits + np.where((rest > 0.0) == (total > 0.0), 1, -1), bits).view(np.float64)


def nearest(value: Fraction, kind: np.dtype) -> np.floating:
    """The number of a type that is nearest to a fraction, ties to even."""
    sign, value = (-1 if value < 0 else 1), abs(value)
    digits, least, most = {8: (53, -1074, 1024), 4: (24, -149, 128), 2: (11, -24, 16)}[kind.itemsize]
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    unit = max(exponent - digits + 1, least)
    count = round(value / Fraction(2) ** unit)  # Fraction rounds ties to even
    if count.bit_length() + unit > most:
        return kind.type(sign * np.inf)
    return kind.type(sign * float(Fraction(count) * Fraction(2) ** unit))


def multiply(one: Instruction, operands: list[Bits]) -> Numbers:
    """mul and mad, with all bits of the product (`wide`), the upper half (`hi`), or the lower one."""
    x, y = (numbers(x, one.type) for x in operands[:2])
    if x.dtype.kind == "f":
        return x * y
    if "wide" in one.parts:
        ty = one.type[0] + str(2 * int(one.type[1:]))
        product = x.astype(TYPES[ty]) * y.astype(TYPES[ty])
        return product + numbers(operands[2], ty) if len(operands) > 2 else product
    product = upper(x, y) if "hi" in one.parts else x * y
    return product + numbers(operands[2], one.type) if len(operands) > 2 else product


def upper(x: Numbers, y: Numbers) -> Numbers:
    width = 8 * x.dtype.itemsize
    high = (x.astype(object) * y.astype(object)) >> width
    return (high & (1 << width) - 1).astype(UNSIGNED[x.dtype.itemsize]).view(x.dtype)


def divide(one: Instruction, operands: list[Bits]) -> Numbers:
    x, y = (numbers(x, one.type) for x in operands)
    if x.dtype.kind == "f":
        return x / y
    quotient = truncated(x, y)
    return quotient if one.parts[0] == "div" else (x - quotient * y).astype(x.dtype)


def truncated(x: Numbers, y: Numbers) -> Numbers:
    """The quotient of integers, rounded towards 0.  A GPU gives all ones for x / 0."""
    x, y = np.broadcast_arrays(x, y)
    safe = np.where(y == 0, 1, y).astype(x.dtype)
    quotient = np.floor_divide(x, safe)
    if x.dtype.kind == "i":
        rest = x - quotient * safe
        quotient = quotient + ((rest != 0) & ((x < 0) != (safe < 0)))
    return np.where(y == 0, -1 if x.dtype.kind == "i" else np.iinfo(x.dtype).max, quotient).astype(x.dtype)


def shift(one: Instruction, operands: list[Bits]) -> Numbers:
    """Shifts by more than the width give zeros, or signs."""
    x, by = numbers(operands[0], one.type), operands[1] & np.uint64(0xFFFFFFFF)
    width = 8 * x.dtype.itemsize
    inside = np.minimum(by, np.uint64(width - 1)).astype(x.dtype)
    if one.parts[0] == "shr" and x.dtype.kind == "i":
        return x >> inside
    moved = x << inside if one.parts[0] == "shl" else x >> inside
    return np.where(by >= width, np.zeros_like(moved), moved)


def funnel(one: Instruction, operands: list[Bits]) -> Numbers:
    low, high, by = operands
    by = by & np.uint64(31) if "wrap" in one.parts else np.minimum(by, np.uint64(32))
    both = high << np.uint64(32) | low & np.uint64(0xFFFFFFFF)
    return (both << by >> np.uint64(32) if one.parts[1] == "l" else both >> by).astype(np.uint32)


def permute(one: Instruction, operands: list[Bits]) -> Numbers:
    """prmt: four bytes chosen out of eight; a choice with bit 3 repeats the byte's sign."""
    low, high, chosen = operands
    both = high << np.uint64(32) | low & np.uint64(0xFFFFFFFF)
    made = np.zeros_like(both)
    for place in range(4):
        choice = chosen >> np.uint64(4 * place) & np.uint64(15)
        byte = both >> (choice & np.uint64(7)) * np.uint64(8) & np.uint64(0xFF)
        sign = np.where(byte >> np.uint64(7), np.uint64(0xFF), np.uint64(0))
        made |= np.where(choice >> np.uint64(3), sign, byte) << np.uint64(8 * place)
    return made.astype(np.uint32)


def compare(one: Instruction, operands: list[Bits]) -> Numbers:
    """setp.  For floats, `equ` and the like hold for NaN, `eq` and the like do not, `ne` neither."""
    x, y = (numbers(x, one.type) for x in operands[:2])
    how = one.parts[1]
    if x.dtype.kind == "f":
        unordered = np.isnan(x) | np.isnan(y)
        if how in ("nan", "num"):
            return unordered if how == "nan" else ~unordered
        found = COMPARISONS[how[:2]](x, y)
        return found | unordered if len(how) == 3 else found & ~unordered
    return COMPARISONS[how](x, y)


COMPARISONS: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def convert(one: Instruction, operands: list[Bits]) -> Numbers:
    to, source = one.parts[-2], one.parts[-1]
    x = numbers(operands[0], source)
    if x.dtype.kind == "f":
        for name, rounding in ROUNDINGS.items():
            if name in one.parts:
                x = rounding(x)
    kind = np.dtype(TYPES[to])
    if x.dtype.kind != "f" or kind.kind == "f":
        return x.astype(kind)
    return saturated(x, kind)


def saturated(x: Numbers, kind: np.dtype) -> Numbers:
    """Floats as integers: the nearest one that there is, 0 for NaN."""
    x = np.where(np.isnan(x), 0.0, x.astype(np.float64))
    limits = np.iinfo(kind)
    inside = (x > float(limits.min)) & (x < float(limits.max))
    made = np.where(x <= float(limits.min), limits.min, limits.max).astype(kind)
    made[inside] = x[inside].astype(kind)
    return made


def select(one: Instruction, operands: list[Bits]) -> Numbers:
    return np.where(operands[2] != 0, operands[0], operands[1])


def sign_bit(one: Instruction) -> np.uint64:
    return np.uint64(1 << (int(one.type[1:]) - 1))


def negate(one: Instruction, operands: list[Bits]) -> Numbers:
    if one.type[0] == "f":
        return operands[0] ^ sign_bit(one)
    x = numbers(operands[0], one.type)
    return (np.zeros_like(x) - x).astype(x.dtype)


def absolute(one: Instruction, operands: list[Bits]) -> Numbers:
    return operands[0] & ~sign_bit(one) if one.type[0] == "f" else np.abs(numbers(operands[0], one.type))


def copy_sign(one: Instruction, operands: list[Bits]) -> Numbers:
    sign, size = operands
    return size & ~sign_bit(one) | sign & sign_bit(one)


def invert(one: Instruction, operands: list[Bits]) -> Numbers:
    return operands[0] == 0 if one.type == "pred" else ~numbers(operands[0], one.type)


def count_ones(one: Instruction, operands: list[Bits]) -> Numbers:
    return np.bitwise_count(numbers(operands[0], one.type)).astype(np.uint32)


def leading_zeros(one: Instruction, operands: list[Bits]) -> Numbers:
    x = numbers(operands[0], one.type)
    return np.array([8 * x.dtype.itemsize - int(v).bit_length() for v in x], np.uint32)


def reverse(one: Instruction, operands: list[Bits]) -> Numbers:
    x = numbers(operands[0], one.type)
    width = 8 * x.dtype.itemsize
    return np.array([int(f"{int(v):0{width}b}"[::-1], 2) for v in x], np.uint64).astype(x.dtype)


def field_of(one: Instruction, operands: list[Bits]) -> Numbers:
    """bfe: some bits, extended by their sign in signed types."""
    x, at, size = operands
    whole = numbers(x, "u" + one.type[1:]).astype(np.uint64) >> at
    made = whole & ((np.uint64(1) << size) - np.uint64(1))
    if one.type[0] == "s":
        top = np.uint64(64) - np.maximum(size, np.uint64(1))
        made = (made << top).view(np.int64) >> top.view(np.int64)
    return made.astype(TYPES[one.type])


RULES: dict[str, Callable[[Instruction, list[Bits]], Numbers]] = {
    "add": typed(np.add),
    "sub": typed(np.subtract),
    "mul": multiply,
    "mad": multiply,
    "div": divide,
    "rem": divide,
    "fma": typed(exact_fma),
    "sqrt": typed(np.sqrt),
    "rcp": typed(lambda x: 1 / x),
    "min": typed(either(np.fmin, np.minimum)),
    "max": typed(either(np.fmax, np.maximum)),
    "neg": negate,
    "abs": absolute,
    "copysign": copy_sign,
    "and": typed(np.bitwise_and),
    "or": typed(np.bitwise_or),
    "xor": typed(np.bitwise_xor),
    "not": invert,
    "shl": shift,
    "shr": shift,
    "shf": funnel,
    "prmt": permute,
    "setp": compare,
    "selp": select,
    "cvt": convert,
    "popc": count_ones,
    "clz": leading_zeros,
    "brev": reverse,
    "bfe": field_of,
}


def mask_of(ty: str) -> np.uint64:
    """All bits of a type."""
    return np.uint64((1 << 8 * SIZES[ty]) - 1)
