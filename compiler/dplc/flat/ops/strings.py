"""Rows of the operations on strings, and on the buffer where the text of a value is built."""

from __future__ import annotations

from dplc.flat.ops.columns import NONE, always, fixed, nothing, one, unknown, unknown_sign
from dplc.flat.ops.row import Effect, Fails, Result, Row
from dplc.flat.term import BOOL, F64, I64, STR, Arr, Num


def row(name: str, doc: str, *, result: Result, own: tuple[int, ...], fails: Fails, effects: Effect) -> Row:
    """An operation on strings.  Strings, and arrays made of them, are never null."""
    return Row(
        name, doc, scalar=None, elementwise=False, result=result, second=None, dims=unknown,
        own=own, fresh=False, solid=always, changes=False, accumulates=False, reduces=False,
        reads=False, views=False, framed=False, spread=False, keeps="", finds="", sign=None, positive=unknown_sign,
        compares=False,
        fails=fails, effects=effects, shared=False,
        cost=one, cheap=False, quick=False, cubic=False, light=False, loops=False, short=False,
        derivative=NONE,
    )  # fmt: skip


def string(name: str, doc: str, *, result: Result, own: tuple[int, ...], fails: Fails) -> Row:
    """An operation on strings without effects."""
    return row(name, doc, result=result, own=own, fails=fails, effects=Effect.NONE)


def buffer(name: str, doc: str, *, result: Result, effects: Effect) -> Row:
    """An operation that changes the buffer."""
    return row(name, doc, result=result, own=(), fails=Fails.NEVER, effects=effects)


ROWS = (
    string("str_append", "a, b -> string", result=fixed(STR), own=(0, 1), fails=Fails.NEVER),
    string("str_length", "s -> i64, code points", result=fixed(I64), own=(), fails=Fails.NEVER),
    string("str_codes", "s -> i64 array", result=fixed(Arr(I64, 1)), own=(), fails=Fails.NEVER),
    string("str_of_codes", "i64 array -> string", result=fixed(STR), own=(), fails=Fails.VALUES),
    string("str_bytes", "s -> u8 array", result=fixed(Arr(Num("u8"), 1)), own=(), fails=Fails.NEVER),
    string("str_of_bytes", "u8 array -> (string, bool)", result=fixed(STR, BOOL), own=(), fails=Fails.NEVER),
    string("str_cmp", "a, b -> i64: -1, 0, 1 in the order of code points",
           result=fixed(I64), own=(), fails=Fails.NEVER),
    string("str_to_int", "s -> (i64, bool)", result=fixed(I64, BOOL), own=(), fails=Fails.NEVER),
    string("str_to_float", "s -> (f64, bool)", result=fixed(F64, BOOL), own=(), fails=Fails.NEVER),
    string("str_to_table", "s -> (f64 array, i64, bool)", result=fixed(Arr(F64, 1), I64, BOOL), own=(),
           fails=Fails.NEVER),
    buffer("buf_str", "s: appended to the output buffer; gives nothing", result=nothing, effects=Effect.APPEND),
    buffer("buf_quoted", "s, in quotes with escapes, likewise", result=nothing, effects=Effect.APPEND),
    buffer("buf_num", "a number or boolean as print prints it, likewise", result=nothing, effects=Effect.APPEND),
    buffer("buf_format", "spec (a string constant), number or string, whether in parentheses if negative, likewise",
           result=nothing, effects=Effect.APPEND),
    buffer("buf_take", "-> string: the buffer's contents; it is empty then", result=fixed(STR), effects=Effect.TAKE),
)  # fmt: skip
