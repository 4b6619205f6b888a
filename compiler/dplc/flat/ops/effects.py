"""Rows of the operations with effects: checks, references, the outside world, reference counts."""

from __future__ import annotations

from dpl.node import replace

from dplc.flat.ops.columns import (
    NONE,
    ZERO,
    always,
    anything,
    fixed,
    free,
    nothing,
    one,
    perhaps_null,
    reading,
    unknown,
    unknown_sign,
)
from dplc.flat.ops.row import Attrs, Cost, Derivative, Effect, Fails, Result, Row, Solid, Types
from dplc.flat.term import BOOL, F64, I64, STR, Arr, Num, Ref


def content(args: Types, at: Attrs) -> Types | None:
    return (args[0].elem,) if isinstance(args[0], Ref) else None


def row(
    name: str, doc: str, *, result: Result, own: tuple[int, ...], solid: Solid, fails: Fails, effects: Effect,
    shared: bool, cost: Cost, light: bool, short: bool, derivative: Derivative,
) -> Row:  # fmt: skip
    return Row(
        name, doc, scalar=None, elementwise=False, result=result, second=None, dims=unknown,
        own=own, fresh=False, solid=solid, changes=False, accumulates=False, reduces=False,
        reads=False, views=False, framed=False, spread=False, keeps="", finds="", sign=None, positive=unknown_sign,
        compares=False,
        fails=fails, effects=effects, shared=shared,
        cost=cost, cheap=False, quick=False, cubic=False, light=light, loops=False, short=short,
        derivative=derivative,
    )  # fmt: skip


def check(name: str, doc: str, *, result: Result, cost: Cost, light: bool, derivative: Derivative) -> Row:
    """An operation that ends the program with an error unless a condition holds."""
    return row(
        name, doc, result=result, own=(), solid=perhaps_null, fails=Fails.CHECK, effects=Effect.NONE,
        shared=False, cost=cost, light=light, short=False, derivative=derivative,
    )  # fmt: skip


def comparing(name: str, doc: str, *, light: bool) -> Row:
    """A check that two operands, or their shapes, are equal."""
    return replace(check(name, doc, result=nothing, cost=free, light=light, derivative=NONE), compares=True)


def reference(name: str, doc: str, *, result: Result, own: tuple[int, ...], effects: Effect) -> Row:
    """An operation on references.  Store passing (`ad/stores`) removes those that derivatives flow through."""
    return row(
        name, doc, result=result, own=own, solid=perhaps_null, fails=Fails.NEVER, effects=effects,
        shared=False, cost=one, light=True, short=False, derivative=ZERO,
    )  # fmt: skip


def outside(name: str, doc: str, *, result: Result, fails: Fails, effects: Effect) -> Row:
    """An operation on the outside world.  Its results are never null."""
    return row(
        name, doc, result=result, own=(), solid=always, fails=fails, effects=effects,
        shared=False, cost=one, light=False, short=False, derivative=NONE,
    )  # fmt: skip


def owners(name: str, doc: str, *, own: tuple[int, ...], short: bool) -> Row:
    """An operation on the memory of its operand.  `passes/memory/reference_counts.py`, the last pass, inserts those
    that count references."""
    return row(
        name, doc, result=nothing, own=own, solid=perhaps_null, fails=Fails.NEVER, effects=Effect.OWNERS,
        shared=False, cost=one, light=True, short=short, derivative=NONE,
    )  # fmt: skip


ROWS = (
    check("fail", "message; attr code: run-time error. Binds variables of any types, never reached",
          result=anything, cost=one, light=False, derivative=ZERO),
    comparing("check_equal", "actual, expected : i64; attr what: run-time error unless equal", light=False),
    comparing("same_shape", "a, b, attr what: run-time error unless the shapes agree", light=True),
    comparing("check_lengths", "n, m : i64, lengths of operands; attr what, a message: run-time error unless equal",
              light=True),
    check("check_index", "i, n : i64; attr after, how many indices come after it: run-time error unless 0 <= i < n",
          result=nothing, cost=free, light=True, derivative=NONE),
    reference("ref_new", "x -> ref", result=lambda args, at: (Ref(args[0]),), own=(0,),
              effects=Effect.NEW | Effect.WRITE),
    reference("ref_get", "r -> content; attr taken: with its owner (`passes/memory/moved_contents.py`)",
              result=content, own=(), effects=Effect.READ),
    reference("ref_set", "r, x: gives nothing; attr taken: what r held is another one's",
              result=nothing, own=(1,), effects=Effect.WRITE),
    row("state", "-> the reference of attr name, which is there as long as the program is",
        result=anything, own=(), solid=perhaps_null, fails=Fails.NEVER, effects=Effect.NONE,
        shared=True, cost=one, light=True, short=False, derivative=NONE),
    outside("write", "s to standard output", result=nothing, fails=Fails.NEVER, effects=Effect.OUTPUT),
    outside("progress", "s, a passing line on standard error if that is a terminal",
            result=nothing, fails=Fails.NEVER, effects=Effect.OUTPUT),
    outside("read_text", "path -> string", result=fixed(STR), fails=Fails.VALUES, effects=Effect.LOAD),
    outside("write_text", "path, s: gives nothing", result=nothing, fails=Fails.VALUES, effects=Effect.STORE),
    outside("read_bytes", "path -> u8 array", result=fixed(Arr(Num("u8"), 1)), fails=Fails.VALUES, effects=Effect.LOAD),
    outside("write_bytes", "path, u8 array: gives nothing", result=nothing, fails=Fails.VALUES, effects=Effect.STORE),
    outside("read_line", "number of a file -> (string, bool)", result=fixed(STR, BOOL), fails=Fails.VALUES,
            effects=Effect.FOREIGN),
    outside("arg_count", "-> i64", result=fixed(I64), fails=Fails.NEVER, effects=Effect.ENVIRONMENT),
    outside("arg", "i -> string", result=fixed(STR), fails=Fails.VALUES, effects=Effect.ENVIRONMENT),
    outside("env", "name -> (string, bool)", result=fixed(STR, BOOL), fails=Fails.VALUES, effects=Effect.ENVIRONMENT),
    outside("time", "-> f64", result=fixed(F64), fails=Fails.NEVER, effects=Effect.CLOCK),
    row("exit", "code; as fail, never reached after",
        result=anything, own=(), solid=perhaps_null, fails=Fails.NEVER, effects=Effect.EXIT,
        shared=False, cost=one, light=False, short=False, derivative=ZERO),
    outside("extern", "arguments of a C function, attr symbol; binds its result (numbers and booleans only)",
            result=anything, fails=Fails.VALUES, effects=Effect.FOREIGN),
    outside("mpi", "what, a rank, of what : i64, words : u64 array -> words", result=fixed(Arr(Num("u64"), 1)),
            fails=Fails.VALUES, effects=Effect.FOREIGN),
    outside("tick", "n : i64: as many operations more have been done; gives nothing (`flat/operation_counts.py`)",
            result=nothing, fails=Fails.NEVER, effects=Effect.COUNTERS),
    outside("tally", "0, 1 or 2 -> i64: the operations so far, or the bytes allocated or freed (the same)",
            result=fixed(I64), fails=Fails.NEVER, effects=Effect.COUNTERS),
    reading(owners("dup", "x: one owner more; gives nothing", own=(), short=True)),
    reading(owners("drop", "x: one owner less; gives nothing", own=(0,), short=True)),
    owners("need_host", "x: the host reads its arrays of numbers; gives nothing (`passes/device/place.py`)", own=(),
           short=True),
    owners("take",
           "a cell, attrs data, tag: its payload's parts are now the arm's; one owner less; gives nothing",
           own=(0,), short=False),
)  # fmt: skip
