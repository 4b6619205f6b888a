"""Fused elementwise operations: lifted, summed, in place."""

import random

from dplc.flat import term as f
from unit.machine.native import Main, agree

MATRIX, VECTOR = f.Arr(f.F64, 2), f.Arr(f.F64, 1)


def vector(m: Main, n: int, scale: float) -> f.Var:
    def element(i):
        return m.op("mul", (m.op("cast", (i,), to="f64"), m.float(scale)))

    return m.build(m.int(n), element, VECTOR)


def matrix(m: Main, rows: int, columns: int, scale: float) -> f.Var:
    return m.build(m.int(rows), lambda i: vector(m, columns, scale), MATRIX)


def test_a_chain_and_its_sum(capfd):
    m = Main()
    x = vector(m, 50, 0.1)
    y = m.op("exp", (m.op("mul", (x, m.float(-1.0))),))
    m.numbers(m.op("sum", (y,)))
    m.numbers(m.op("add", (y, m.float(1.0))))
    agree(m.program(), capfd)


def test_lifted_operands_of_two_ranks(capfd):
    m = Main()
    a, row = matrix(m, 3, 4, 0.5), vector(m, 4, 10.0)
    b = m.op("add", (m.op("mul", (a, m.float(2.0))), row))
    m.numbers(m.op("sum_to", (b,), rank=1))
    agree(m.program(), capfd)


def test_comparisons_and_choices_are_arrays_of_bytes(capfd):
    m = Main()
    a, b = vector(m, 9, 1.0), vector(m, 9, -1.0)
    c = m.op("gt", (a, m.float(4.5)))
    m.numbers(m.op("select", (c, a, b)))
    agree(m.program(), capfd)


def test_random_graphs_of_operations(capfd):
    rng = random.Random(7)
    m = Main()
    for _ in range(12):
        rows, columns = rng.randint(0, 5), rng.randint(0, 40)
        pool = [matrix(m, rows, columns, 0.1), matrix(m, rows, columns, -0.3), vector(m, columns, 0.2), m.float(0.7)]
        for _ in range(rng.randint(1, 8)):
            x, y = rng.choice(pool[:2] + pool[4:]), rng.choice(pool)
            pool.append(m.op(rng.choice(("add", "mul", "sub", "max")), (x, y) if rng.random() < 0.5 else (y, x)))
        m.numbers(m.op("sum_to", (pool[-1],), rank=rng.randint(0, 1)))
        m.numbers(rng.choice(pool[4:]))
        m.say("\n")
    agree(m.program(), capfd)
