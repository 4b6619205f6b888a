"""The passes that make loops of array code: same answers, fewer operations."""

from dplc.flat import interp
from dplc.flat import term as f
from dplc.flat.verify import verify
from dplc.flat.walk import every
from dplc.passes.accumulate.accumulate import accumulate
from dplc.passes.arrays.fold_transposes import fold_transposes
from dplc.passes.arrays.fuse import fuse
from dplc.passes.simplify.branch_threading import thread_branches
from unit.machine.native import Main

VECTOR, MATRIX = f.Arr(f.F64, 1), f.Arr(f.F64, 2)


def matrix(m: Main, rows: int, columns: int) -> f.Var:
    def row(i):
        def element(j: f.Var) -> f.Atom:
            return m.op("cast", (m.op("add", (i, m.op("mul", (j, j)))),), to="f64")

        return m.build(m.int(columns), element, VECTOR)

    return m.build(m.int(rows), row, MATRIX)


def operations(program: f.Program) -> list[str]:
    """What `main` does, Maps by the operations in them."""
    return [bind.rhs.op for bind in every(program.fns["main"].body) if isinstance(bind.rhs, f.Op)]


def maps(program: f.Program) -> list[f.Map]:
    return [bind.rhs for bind in every(program.fns["main"].body) if isinstance(bind.rhs, f.Map)]


def same(program: f.Program, *passes) -> f.Program:
    """The program after some passes, which must not change what it prints."""
    after = program
    for step in passes:
        after = step(after)
        verify(after)
    assert interp.run(after) == interp.run(program)
    return after


def test_a_chain_with_its_sum_is_one_map():
    m = Main()
    x = m.op("cast", (m.op("iota", (m.int(5),)),), to="f64")
    y = m.op("exp", (m.op("neg", (x,)),))
    m.number(m.op("sum", (m.op("mul", (y, y)),)))
    (only,) = maps(same(m.program(), fuse))
    assert (len(only.body.binds), only.ranks) == (4, (0,))


def test_what_others_read_is_kept():
    m = Main()
    a = matrix(m, 3, 2)
    b = m.op("mul", (a, m.float(2.0)))
    c = m.op("add", (b, m.op("index", (b, m.int(0)))))  # lifted: another place of the same array
    m.numbers(m.op("sum_to", (m.op("sub", (c, b)),), rank=1))
    first, second = maps(same(m.program(), fuse))
    assert (first.ranks, second.ranks) == ((2,), (1,))


def test_products_go_into_accumulators():
    m = Main()
    a, b = matrix(m, 2, 3), matrix(m, 3, 2)
    one = m.op("acc_add", (f.Const(None, MATRIX), m.op("matmul", (a, b))))
    m.numbers(m.op("acc_add", (one, m.op("matmul", (a, b)))))
    assert operations(same(m.program(), accumulate)).count("matmul_acc") == 2


def test_additions_go_into_branches():
    m = Main()
    v, n = m.build(m.int(3), lambda i: m.float(1.5), VECTOR), m.int(3)
    acc = m.op("acc_index", (f.Const(None, VECTOR), m.float(1.0), n, m.int(0)), rank=1)
    with m.inside() as binds:
        term = m.op("acc_index", (f.Const(None, VECTOR), m.float(2.0), n, m.int(1)), rank=1)
    arms = f.Block(tuple(binds), (term,)), f.Block((), (f.Const(None, VECTOR),))
    picked = m.one(f.If(m.op("gt", (m.op("index", (v, m.int(0))), m.float(1.0))), *arms), VECTOR)
    m.numbers(m.op("acc_add", (acc, picked)))
    after = same(m.program(), accumulate)
    assert "acc_add" not in operations(after)


def test_products_take_transposed_operands():
    m = Main()
    a, b = matrix(m, 2, 3), matrix(m, 2, 3)
    m.numbers(m.op("matmul", (a, m.op("transpose", (b,)))))
    m.numbers(m.op("transpose", (m.op("matmul", (m.op("transpose", (a,)), b)),)))
    assert "transpose" not in operations(same(m.program(), fold_transposes))


def test_nulls_are_asked_for_once():
    m = Main()
    v = m.build(m.int(2), lambda i: m.float(1.0), VECTOR)
    null = f.Const(None, VECTOR)

    def guarded(x: f.Atom, make) -> f.Var:
        with m.inside() as binds:
            result = make(x)
        arms = f.Block((), (null,)), f.Block(tuple(binds), (result,))
        return m.one(f.If(m.op("is_null", (x,)), *arms), VECTOR)

    start = m.op("acc_zeros", (m.op("acc_slice", (null, v, m.int(2), m.int(0)), rank=1), m.int(2)))
    first = guarded(start, lambda x: m.op("exp", (x,)))
    second = guarded(first, lambda x: m.op("mul", (x, m.float(3.0))))
    third = guarded(second, lambda x: m.op("add", (x, v)))
    m.numbers(m.op("acc_zeros", (third, m.int(2))))
    after = same(m.program(), thread_branches)
    assert operations(after).count("is_null") == 1
    assert len(maps(same(after, fuse))) == 1


def test_what_is_made_zero_and_added_to_is_written_over():
    m = Main()
    c, n, row = matrix(m, 3, 2), m.int(3), m.build(m.int(2), lambda i: m.float(1.5), VECTOR)
    index = m.op("add", (m.int(0), m.int(1)))
    zeros = m.op("acc_zeros", (f.Const(None, VECTOR), m.int(2)))
    emptied = m.op("update", (c, zeros, index))
    elsewhere = m.op("acc_index", (emptied, row, n, m.int(2), m.int(2)), rank=2)
    same_row = m.op("acc_index", (elsewhere, m.op("mul", (row, m.float(2.0))), n, m.int(2), index), rank=2)
    m.numbers(m.op("index", (same_row, m.int(1))))
    m.numbers(m.op("index", (same_row, m.int(2))))
    after = operations(same(m.program(), accumulate))
    assert (after.count("update"), after.count("acc_index"), after.count("acc_zeros")) == (1, 1, 0)


def test_what_may_be_null_is_added():
    """Nothing is added then, and the element is zero."""
    m = Main()
    c, n, null = matrix(m, 3, 2), m.int(3), f.Const(None, VECTOR)
    emptied = m.op("update", (c, m.op("acc_zeros", (null, m.int(2))), m.int(1)))
    arms = f.Block((), (null,)), f.Block((), (m.op("index", (c, m.int(0))),))
    term = m.one(f.If(m.op("eq", (n, m.int(3))), *arms), VECTOR)
    added = m.op("acc_index", (emptied, term, n, m.int(2), m.int(1)), rank=2)
    m.numbers(m.op("index", (added, m.int(1))))
    assert "acc_index" in operations(same(m.program(), accumulate))
