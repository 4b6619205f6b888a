"""The operations of flat that are not scalar rows of the primitive table.

`own` lists the operands an operation consumes (so that it may reuse them in place when nobody else holds them); the
others are borrowed.  Every elementwise operation owns its array operands.  "null" says which operands may be null.
`k` is the rank of the array concerned.  Bounds, shapes and negative counts are checked unless attr `unchecked` is true.
"""

from __future__ import annotations

from dpl.node import node
from dpl.prims import TABLE


@node
class Spec:
    doc: str
    own: tuple[int, ...] = ()
    pure: bool = True  # may be dropped when unused, moved and shared


def impure(doc: str, own: tuple[int, ...] = ()) -> Spec:
    return Spec(doc, own, pure=False)


OPS: dict[str, Spec] = {
    # scalars
    "cast": Spec("number (or array of them) to the scalar type attr `to`; bool to number gives 0, 1"),
    # arrays
    "dim": Spec("a, attr k -> i64: the length of dimension k"),
    "index": impure("a, i ... -> element, or the sub-array left after the indices (a view)"),
    "update": impure("a, v, i ... -> a with v (an element or sub-array) there", own=(0, 1)),
    "slice": impure("a, lo, hi -> elements of dimension 0 (a view)"),
    "concat": impure("a, b -> along dimension 0; inner shapes must agree"),
    "reshape": impure("a, d0 ... -> the same elements in new dimensions (a view); their number must agree", own=(0,)),
    "copy": Spec("a -> the same elements, in memory of their own"),
    "transpose": Spec("a of rank >= 2 -> its first two dimensions exchanged"),
    "fill": impure("n, x -> n copies of x as a new outermost dimension; x may be an array", own=(1,)),
    "iota": impure("n -> 0 .. n - 1 as i64"),
    "array": impure("x0 ... (at least one) -> array of them; array operands must have one shape", own=()),
    "sum": Spec("a -> sum over dimension 0, of numbers (rank 1: a scalar)"),
    "sum_to": Spec("a, attr rank -> sum over leading dimensions until that rank is left (0: scalar); null gives null"),
    "dot": impure("a, b of rank 1 -> scalar"),
    "matmul": impure("a, b of rank 2, attrs ta, tb (transposed first) -> rank 2"),
    "matmul_acc": impure("c (null or rank 2), a, b, attrs ta, tb -> c + a @ b", own=(0,)),
    "same_shape": impure("a, b, attr what: run-time error unless the shapes agree; gives nothing"),
    # accumulating cotangents: zero-aware
    "is_null": Spec("x of type Arr or Data -> bool"),
    "acc_add": Spec("a, b floats or arrays of floats, either null -> a + b", own=(0, 1)),
    "acc_zeros": Spec("a, d0 ... -> a; if it is null, zeros (0, null, tuples of them) of these dimensions", own=(0,)),
    "acc_index": Spec("a (null or array of floats), v (scalar or array of floats, null too), d0 ... d(k-1), i ... ->"
                      " a with v added there; attr rank = k says how many d", own=(0,)),
    "acc_slice": Spec("a (null), v (null), d0 ... d(k-1), lo; attr rank -> a with v added from row lo", own=(0,)),
    # strings
    "str_append": Spec("a, b -> string", own=(0,)),
    "str_length": Spec("s -> i64, code points"),
    "str_codes": Spec("s -> i64 array"),
    "str_of_codes": impure("i64 array -> string"),
    "str_cmp": Spec("a, b -> i64: -1, 0, 1 in the order of code points"),
    "str_to_int": Spec("s -> (i64, bool)"),
    "str_to_float": Spec("s -> (f64, bool)"),
    "buf_str": impure("s: appended to the output buffer; gives nothing"),
    "buf_quoted": impure("s, in quotes with escapes, likewise"),
    "buf_num": impure("a number or boolean as print prints it, likewise"),
    "buf_format": impure("spec (a string constant), number or string, whether in parentheses if negative, likewise"),
    "buf_take": impure("-> string: the buffer's contents; it is empty then"),
    # effects
    "write": impure("s to standard output"),
    "progress": impure("s, a passing line on standard error if that is a terminal"),
    "fail": impure("message; attr code: run-time error. Binds variables of any types, never reached"),
    "check_equal": impure("actual, expected : i64; attr what: run-time error unless equal; gives nothing"),
    "ref_new": impure("x -> ref", own=(0,)),
    "ref_get": impure("r -> content"),
    "ref_set": impure("r, x: gives nothing", own=(1,)),
    "copied": Spec("an array of numbers or string that others own -> the same in the program's own memory"),
    "state": Spec("-> the reference of attr name, which is there as long as the program is"),
    "read_text": impure("path -> string"), "write_text": impure("path, s: gives nothing"),
    "read_bytes": impure("path -> u8 array"), "write_bytes": impure("path, u8 array: gives nothing"),
    "arg_count": impure("-> i64"), "arg": impure("i -> string"), "time": impure("-> f64"),
    "env": impure("name -> (string, bool)"), "exit": impure("code; as fail, never reached after"),
    "extern": impure("arguments of a C function, attr symbol; binds its result (numbers and booleans only)"),
    "has_lapack": Spec("-> bool: whether LAPACK is there, found when first asked"),
    "lapack_lu": Spec("a -> both factors, order; this and the following as in prims, only where LAPACK is there"),
    "lapack_cholesky": Spec("a -> l"), "lapack_qr": Spec("a -> q, r"), "lapack_eigh": Spec("a -> w, v"),
    "lapack_svd": Spec("a -> u, s, v"), "lapack_triangular": Spec("upper, transposed, ones, t, b -> x"),
    "bitcast": Spec("a number -> the number of attr `to` with the same bits"),
    "stop_grad": Spec("x -> x, with derivative zero", own=(0,)),
    # counting, put in by flat/operation_counts.py
    "tick": impure("n : i64: as many operations more have been done; gives nothing"),
    "tally": impure("0 or 1 -> i64: the operations so far, or the bytes allocated"),
    # memory, put in by passes/memory/reference_counts.py
    "dup": impure("x: one owner more; gives nothing"),
    "drop": impure("x: one owner less; gives nothing", own=(0,)),
    "take": impure("a cell, attrs data, tag: its payload's parts are now the arm's; one owner less; gives nothing",
                   own=(0,)),
}  # fmt: skip

ELEMENTWISE = frozenset(name for name, row in TABLE.items() if row.elementwise) | {"cast", "bitcast"}
"""The operations on numbers that work elementwise on arrays."""
