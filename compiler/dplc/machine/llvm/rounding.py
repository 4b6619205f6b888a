"""Rounding a double to a shorter float, once."""

from __future__ import annotations

from collections.abc import Callable


def rounded(value: str, ty: str, op: Callable[[str], str]) -> str:
    """`op` writes an instruction and returns the name of its result.  LLVM's own conversion to f16 is a call of a
    function of the compiler's library, which sessions do not have; so it goes by way of a float, which keeps a sticky
    last bit."""
    if ty == "f64":
        return value
    if ty == "f32":
        return op(f"fptrunc double {value} to float")
    bits = op(f"bitcast double {value} to i64")
    tail = op(f"and i64 {bits}, {0x1FFFFFFF}")
    inexact = op(f"icmp ne i64 {tail}, 0")
    sticky = op(f"select i1 {inexact}, i64 {1 << 29}, i64 0")
    kept = op(f"or i64 {op(f'and i64 {bits}, {~0x1FFFFFFF}')}, {sticky}")
    single = op(f"fptrunc double {op(f'bitcast i64 {kept} to double')} to float")
    return op(f"fptrunc float {single} to half")
