"""The types of flat's operations: (operation, operand types) -> result types.

result_types("index", (Arr(f64, 2), i64), {}) == (Arr(f64, 1),)
"""

from __future__ import annotations

from dpl.diagnostics import Bug
from dpl.prims import TABLE

from dplc.flat.term import BOOL, F64, I64, STR, Arr, Num, Ref, Tup, Type

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
NEVER = frozenset({"fail", "exit", "extern", "state"})  # bind variables of any types
NOTHING = frozenset(
    [
        "same_shape",
        "buf_str",
        "buf_quoted",
        "buf_num",
        "buf_format",
        "write",
        "progress",
        "check_equal",
        "ref_set",
        "write_text",
        "write_bytes",
        "tick",
        "dup",
        "drop",
        "take",
    ]
)
FIXED: dict[str, tuple[Type, ...]] = {
    "dim": (I64,), "iota": (Arr(I64, 1),), "is_null": (BOOL,),
    "str_append": (STR,), "str_length": (I64,), "str_codes": (Arr(I64, 1),), "str_of_codes": (STR,),
    "str_cmp": (I64,), "str_to_int": (I64, BOOL), "str_to_float": (F64, BOOL), "buf_take": (STR,),
    "read_text": (STR,), "read_bytes": (Arr(Num("u8"), 1),), "arg_count": (I64,), "arg": (STR,), "time": (F64,),
    "env": (STR, BOOL), "tally": (I64,), "has_lapack": (BOOL,), "lapack_lu": (Arr(F64, 2), Arr(I64, 1)),
    "lapack_cholesky": (Arr(F64, 2),), "lapack_qr": (Arr(F64, 2), Arr(F64, 2)),
    "lapack_eigh": (Arr(F64, 1), Arr(F64, 2)), "lapack_svd": (Arr(F64, 2), Arr(F64, 1), Arr(F64, 2)),
    "lapack_triangular": (Arr(F64, 2),),
}  # fmt: skip
LIKE_FIRST = frozenset(
    [
        "copied",
        "update",
        "slice",
        "concat",
        "copy",
        "transpose",
        "matmul",
        "acc_add",
        "acc_zeros",
        "acc_index",
        "acc_slice",
        "matmul_acc",
        "stop_grad",
    ]
)


def rank_of(ty: Type) -> int:
    return ty.rank if isinstance(ty, Arr) else 0


def elem_of(ty: Type) -> Type:
    return ty.elem if isinstance(ty, Arr) else ty


def of_rank(elem: Type, rank: int) -> Type:
    """`rank`-dimensional arrays of `elem` (which may be an array itself)."""
    return Arr(elem_of(elem), rank_of(elem) + rank) if rank else elem


def elementwise(op: str, args: tuple[Type, ...]) -> Type:
    """The result of a scalar row on operands of several ranks."""
    rank = max(map(rank_of, args))
    if op in COMPARISONS or op in ("not", "and", "or"):
        return of_rank(BOOL, rank)
    return of_rank(elem_of(args[1 if op in ("select", "polygamma") else 0]), rank)


def result_types(op: str, args: tuple[Type, ...], attrs: dict) -> tuple[Type, ...] | None:
    """The types of an operation's results; None where they may be any."""
    if op in NEVER:
        return None
    if op in NOTHING:
        return ()
    if op in FIXED:
        return FIXED[op]
    if op in LIKE_FIRST:
        return (args[0],)
    match op:
        case "cast" | "bitcast":
            return (of_rank(Num(attrs["to"]), rank_of(args[0])),)
        case "index":
            return (of_rank(elem_of(args[0]), rank_of(args[0]) - len(args) + 1),)
        case "reshape":
            return (Arr(elem_of(args[0]), len(args) - 1),)
        case "fill":
            return (of_rank(args[1], 1),)
        case "array":
            return (of_rank(args[0], 1),)
        case "sum":
            return (of_rank(elem_of(args[0]), rank_of(args[0]) - 1),)
        case "sum_to":
            return (of_rank(elem_of(args[0]), attrs["rank"]),)
        case "dot":
            return (elem_of(args[0]),)
        case "ref_new":
            return (Ref(args[0]),)
        case "ref_get":
            return (args[0].elem,) if isinstance(args[0], Ref) else None
        case _:
            pass
    if op in TABLE and TABLE[op].elementwise:
        return (elementwise(op, args),)
    raise Bug(f"flat has no operation {op}")


def is_unit(ty: Type) -> bool:
    return ty == Tup(())
