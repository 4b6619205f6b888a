"""Rows that each engine implements by name: arrays, strings, references, derivatives, the outside world.

`'a[?]` in a result is an array whose size is known only at run time.  Rows marked "varied" take any number of indices;
the type shown is the one for a single index.
"""

from __future__ import annotations

from dpl.prims.table import Row


def row(name: str, type_: str, doc: str, **more) -> Row:
    return Row(name, type_, doc, **more)


def hidden(name: str, type_: str, doc: str, **more) -> Row:
    return Row(name, type_, doc, public=False, **more)


def outside(name: str, type_: str, doc: str, **more) -> Row:
    return Row(name, type_, doc, pure=False, outside=True, **more)


ARRAYS = (
    row("length", "'a[n] -> int", "how many elements, over the outermost dimension"),
    row("range", "int -> int[?]", "0 to n - 1", pure=False),
    row("zeros", "int -> 's[?] where 's : real, 's : scalar", "n zeros", pure=False),
    row("ones", "int -> 's[?] where 's : real, 's : scalar", "n ones", pure=False),
    row("fill", "int -> 'a -> 'a[?]", "n times the same", pure=False),
    hidden("index", "'a[n] -> int -> 'a", "element at an index; out of bounds is an error (varied)", pure=False),
    hidden("update", "'a[n] -> 'a -> int -> 'a[n]",
           "a copy (in place if nothing else holds the array) with one element changed (varied)", pure=False),
    hidden("slice", "'a[n] -> int -> int -> 'a[?]", "elements lo to hi - 1 of the outermost dimension", pure=False),
    hidden("append", "'a -> 'b -> 'c where append 'a 'b 'c", "concatenation of two strings, lists or arrays", op="++"),
    row("reshape", "'a[n] -> 'b",
        "the same elements in other dimensions, given by the result's type (varied: in core, the dimensions follow as"
        " ints, -1 for one to be computed)", pure=False),
    hidden("sized", "'a[n] -> 'a[n]",
           "with inner sizes, if it has no rows that tell them (varied: ints for the dimensions that its type shows)"),
    hidden("numeric", "'a[n] -> bool", "whether the elements are numbers or booleans, known when compiling"),
    hidden("argmax", "'a[n] -> int", "of numbers: the index of the first greatest, or of the first NaN; 0 if none"),
    hidden("argmin", "'a[n] -> int", "of numbers: the index of the first least, or of the first NaN; 0 if none"),
    hidden("sort", "'a[n] -> 'a[n]", "of numbers: ascending, stable, NaN last"),
    hidden("argsort", "'a[n] -> int[n]", "of numbers: the indices that sort them: stable, NaN last"),
    row("transpose", "'a[n, m] -> 'a[m, n]", "rows become columns"),
    row("flatten", "'a[n, m] -> 'a[n * m]", "the rows, one after the other"),
    row("sum", "'a[n] -> 'a where 'a : num",
        "sum over the outermost dimension, always in one order; 0 for none"),
    row("dot", "'s[n] -> 's[n] -> 's where 's : num, 's : scalar", "sum of products"),
    hidden("matmul", "'a -> 'b -> 'c where matmul 'a 'b 'c",
           "matrix product: matrix and matrix, matrix and vector, vector and matrix", op="@", pure=False,
           own_digits=True),
    hidden("conv2d",
           "'s[n, h, w, c] -> 's[k, l, d, o] -> int -> int -> int -> int -> int -> int -> int -> int -> int"
           " -> 's[n, ?, ?, o] where 's : real, 's : scalar",
           "x, w, steps, padding, gaps, groups, rows and columns of the result: a convolution (`convolution.py`)",
           own_digits=True),
    hidden("conv2d_data",
           "'s[n, h, w, o] -> 's[k, l, d, o] -> int -> int -> int -> int -> int -> int -> int -> int -> int"
           " -> 's[n, ?, ?, ?] where 's : real, 's : scalar",
           "y, w, and as above: its transpose, from what it gives to what it is given", own_digits=True),
    hidden("gram", "'b[n] -> 'b[m] -> 's[n, m] where 's : real, 's : scalar",
           "the sums of the products of each row with each row, of floats", own_digits=True),
)  # fmt: skip

STRINGS = (
    hidden("string_length", "string -> int", "number of code points"),
    hidden("string_codes", "string -> int[?]", "its code points"),
    hidden("string_of_codes", "int[n] -> string", "from code points; an invalid one is an error", pure=False),
    hidden("string_bytes", "string -> u8[?]", "its bytes as UTF-8"),
    hidden("string_of_bytes", "u8[n] -> string * bool", "the string, and whether the bytes are UTF-8"),
    hidden("string_to_int", "string -> int * bool", "the number, and whether it is one"),
    hidden("string_to_float", "string -> float * bool", "the number, and whether it is one"),
    hidden("string_to_table", "string -> float[?] * int * bool",
           "the numbers of a text as `Data.read_csv` reads it, how many are in a row, and whether it is such a table"),
    row("show", "'a -> string", "as print prints it, unabridged"),
    hidden("format", "string -> 'a -> string",
           "as show, its numbers by a format such as .4f or 8.3e or 5d (see core/formats.py)", pure=False),
)  # fmt: skip

EFFECTS = (
    outside("print", "'a -> unit", "any value and a newline, to standard output; long arrays and lists abridged"),
    outside("print_string", "string -> unit", "to standard output, without a newline"),
    row("error", "string -> 'a", "stop with a message", pure=False),
    row("assert", "bool -> unit", "stop unless it holds", pure=False),
    hidden("refuted", "string -> unit", "stop, as what was asserted does not hold", pure=False),
    row("ref", "'a -> 'a ref where 'a : data", "a new reference", pure=False),
    hidden("deref", "'a ref -> 'a", "the content", op="!", pure=False),
    hidden("assign", "'a ref -> 'a -> unit", "change the content", op=":=", pure=False),
    outside("read_text", "string -> string", "a file's text (UTF-8)", public=False),
    outside("write_text", "string -> string -> unit", "path, text", public=False),
    outside("read_bytes", "string -> u8[?]", "a file's bytes", public=False),
    outside("write_bytes", "string -> u8[n] -> unit", "path, bytes", public=False),
    outside("read_line", "int -> string * bool", "the next line of an open file by its number, 0 for standard input,"
           " without its end; and whether there was one", public=False),
    outside("arg_count", "unit -> int", "how many arguments the program was given", public=False),
    outside("arg", "int -> string", "one of them", public=False),
    outside("time", "unit -> float", "seconds since 1970", public=False),
    outside("env", "string -> string * bool", "an environment variable, and whether it is set", public=False),
    outside("exit", "int -> 'a", "stop with an exit code, output flushed", public=False),
    hidden("keep", "string -> 'a -> unit", "under a name, for later parts of a program that grows", pure=False),
    hidden("recall", "string -> 'a", "what was kept under a name", pure=False),
    outside("mpi", "int -> int -> int -> u64[n] -> u64[?]",
           "what an operation of MPI gives (`stdlib/mpi.dp` numbers them), with a rank, for some words; it may belong"
           " to the derivative of an earlier one", public=False),
    outside("progress", "string -> unit",
           "one line on standard error that the next overwrites, when that is a terminal", public=False),
)  # fmt: skip

# computed in f64, whatever the type of the floats
LAPACK = (
    hidden("has_lapack", "unit -> bool", "whether LAPACK is there; the rows that follow may be used only then"),
    hidden("lapack_lu", "'s[n, n] -> 's[n, n] * int[n] where 's : real, 's : scalar",
           "by rows exchanged: both factors in one matrix, and where each row was", own_digits=True),
    hidden("lapack_cholesky", "'s[n, n] -> 's[n, n] where 's : real, 's : scalar",
           "the lower factor, from the lower triangle; NaN if not positive definite", own_digits=True),
    hidden("lapack_qr", "'s[n, m] -> 's[n, m] * 's[m, m] where 's : real, 's : scalar",
           "of at least as many rows as columns", own_digits=True),
    hidden("lapack_eigh", "'s[n, n] -> 's[n] * 's[n, n] where 's : real, 's : scalar",
           "eigenvalues, ascending, and eigenvectors as columns, from the lower triangle", own_digits=True),
    hidden("lapack_svd", "'s[n, m] -> 's[n, m] * 's[m] * 's[m, m] where 's : real, 's : scalar",
           "u, s, v of at least as many rows as columns", own_digits=True),
    hidden("lapack_triangular", "bool -> bool -> bool -> 's[n, n] -> 'b[n] -> 'b[n] where 's : real, 's : scalar",
           "upper, transposed, ones on the diagonal, t, b: the x with t @ x = b, or transpose t @ x = b",
           own_digits=True),
)  # fmt: skip

BITCASTS = (
    hidden("f64_of_bits", "u64 -> f64", "the float with these bits"),
    hidden("bits_of_f64", "f64 -> u64", "the bits of a float"),
    hidden("f32_of_bits", "u32 -> f32", "the float with these bits"),
    hidden("bits_of_f32", "f32 -> u32", "the bits of a float"),
    hidden("f16_of_bits", "u16 -> f16", "the float with these bits"),
    hidden("bits_of_f16", "f16 -> u16", "the bits of a float"),
)

DERIVATIVES = (
    row("jvp", "('a -> 'b) -> 'a -> 'a -> 'b * 'b where 'a : diff, 'b : diff",
        "forward mode: value and directional derivative", pure=False, own_digits=True),
    hidden("taylor", "int -> ('s -> 'b) -> 's -> 'b[?] where 's : real, 's : scalar, 'b : diff",
           "the Taylor coefficients of a function at a point, of the orders 0 to n", pure=False, own_digits=True),
    hidden("record_sweep",
           "('a -> 's) -> 'a -> (string * string * int * int * int * float * float * int * int * int)[?]"
           " where 'a : diff, 's : real, 's : scalar",
           "what happens at each visit of a line in the sweep of a gradient (`debug/sweeps.py`)",
           pure=False, native=False, own_digits=True),
    row("vjp", "('a -> 'b) -> 'a -> 'b * ('b -> 'a) where 'a : diff, 'b : diff",
        "reverse mode: value and pullback", pure=False, own_digits=True),
    row("stop_grad", "'a -> 'a", "identity, with derivative zero"),
    row("checkpoint", "('a -> 'b) -> 'a -> 'b",
        "the function; when reversed, recomputed inside instead of stored", pure=False),
    row("with_vjp", "('a -> 'b) -> ('a -> 'b * ('b -> 'a)) -> 'a -> 'b where 'a : diff, 'b : diff",
        "a function with its own reverse rule", pure=False),
    row("with_jvp", "('a -> 'b) -> ('a -> 'a -> 'b * 'b) -> 'a -> 'b where 'a : diff, 'b : diff",
        "a function with its own forward rule", pure=False),
    hidden("tree_map", "(float -> float) -> 'a -> 'a where 'a : diff",
           "over every float inside (f32 and f16 by conversion)", pure=False),
    hidden("tree_map2", "(float -> float -> float) -> 'a -> 'a -> 'a where 'a : diff",
           "over the floats at the same places of two values of one shape; other leaves from the first", pure=False),
    hidden("tree_leaves", "'a -> float[?] where 'a : diff", "every float inside, in order"),
    hidden("tree_map_words", "(u64 -> u64) -> 'a -> 'a where 'a : data",
           "over every number and boolean inside: integers as u64, floats as the bits of an f64", pure=False),
    hidden("tree_words", "'a -> u64[?] where 'a : data", "every number and boolean inside, in order, as above"),
    hidden("tree_layout", "'a -> string where 'a : data",
           "the names, types and sizes of the numbers inside, in order (`eval/values/layout.py`)"),
)  # fmt: skip

ROWS = (*ARRAYS, *STRINGS, *EFFECTS, *LAPACK, *BITCASTS, *DERIVATIVES)
