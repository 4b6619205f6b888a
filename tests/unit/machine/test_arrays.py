"""Operations on arrays in native code, against the evaluator."""

from dplc.flat import term as f
from unit.machine.native import Main, agree

VECTOR, MATRIX, CUBE = (f.Arr(f.F64, k) for k in (1, 2, 3))


def vector(m: Main, n: int, start: float = 0.0) -> f.Var:
    return m.build(m.int(n), lambda i: m.op("add", (m.op("cast", (i,), to="f64"), m.float(start))), VECTOR)


def matrix(m: Main, rows: int, columns: int) -> f.Var:
    """A nest of Builds: one array."""

    def row(i):
        real = m.op("mul", (m.op("cast", (i,), to="f64"), m.float(10.0)))
        return m.build(m.int(columns), lambda j: m.op("add", (real, m.op("cast", (j,), to="f64"))), VECTOR)

    return m.build(m.int(rows), row, MATRIX)


def test_views_and_copies(capfd):
    m = Main()
    a = matrix(m, 3, 4)
    row = m.op("index", (a, m.int(1)))
    b = m.op("update", (a, m.float(99.0), m.int(1), m.int(2)))
    c = m.op("update", (b, row, m.int(0)))
    for x in (row, b, c, a, m.op("slice", (row, m.int(1), m.int(3)))):
        m.numbers(x)
        m.say("\n")
    agree(m.program(), capfd)


def test_rearranging(capfd):
    m = Main()
    a = matrix(m, 2, 5)
    m.numbers(m.op("transpose", (a,)))
    m.numbers(m.op("concat", (a, a)))
    m.numbers(m.op("reshape", (a, m.int(10))))
    m.numbers(m.op("fill", (m.int(3), m.op("index", (a, m.int(1))))))
    m.numbers(m.op("array", (m.op("index", (a, m.int(1))), m.op("index", (a, m.int(0))))))
    m.numbers(m.op("array", (m.float(1.5), m.float(-0.0))))
    m.numbers(m.op("iota", (m.int(4),)))
    m.numbers(m.op("sum", (a,)))
    m.numbers(m.op("concat", (m.op("iota", (m.int(0),)), m.op("iota", (m.int(2),)))))
    agree(m.program(), capfd)


def test_rows_that_come_as_arrays(capfd):
    """A Build whose rows are views, and one of matrices."""
    m = Main()
    a = matrix(m, 4, 3)
    back = m.build(m.int(4), lambda i: m.op("index", (a, m.op("sub", (m.int(3), i)))), MATRIX)
    m.numbers(back)
    cube = m.build(m.int(2), lambda i: m.op("mul", (a, m.op("cast", (i,), to="f64"))), CUBE)
    m.numbers(m.op("index", (cube, m.int(1))))
    empty = m.build(m.int(0), lambda i: m.op("index", (a, i)), MATRIX)
    m.number(m.op("dim", (empty,), k=0))
    agree(m.program(), capfd)


def test_products(capfd):
    m = Main()
    a, b = matrix(m, 3, 4), matrix(m, 4, 2)
    ab = m.op("matmul", (a, b))
    m.numbers(ab)
    m.numbers(m.op("matmul", (b, a), ta=True, tb=True))
    null = f.Const(None, MATRIX)
    once = m.op("matmul_acc", (null, a, b))
    m.numbers(m.op("matmul_acc", (once, a, b)))
    m.numbers(once)
    m.number(m.op("dot", (vector(m, 40), vector(m, 40, 0.5))))
    agree(m.program(), capfd)


def test_accumulating(capfd):
    m = Main()
    null, v = f.Const(None, VECTOR), vector(m, 3, 1.0)
    n = (m.int(3),)
    x = m.op("acc_index", (null, m.float(2.0), *n, m.int(1)), rank=1)
    y = m.op("acc_index", (x, m.float(0.5), *n, m.int(1)), rank=1)
    two = (m.int(2), m.int(3))
    z = m.op("acc_index", (f.Const(None, MATRIX), v, *two, m.int(1)), rank=2)
    for a in (x, y, z, m.op("acc_add", (x, v)), m.op("acc_add", (null, v)), m.op("acc_add", (v, null)), v):
        m.numbers(a)
    m.numbers(m.op("acc_slice", (null, v, m.int(5), m.int(2)), rank=1))
    m.numbers(m.op("acc_zeros", (null, *n)))
    m.number(m.op("is_null", (m.op("acc_index", (f.Const(None, MATRIX), null, *two, m.int(0)), rank=2),)))
    agree(m.program(), capfd)
