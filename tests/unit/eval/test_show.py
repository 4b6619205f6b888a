"""What `print` and `show` write."""

from __future__ import annotations

import math

import pytest
from dpl.core import ty as t
from dpl.core.term import LIST, Data
from dpl.eval.values.datatypes import DataTypes
from dpl.eval.values.show import Shower
from dpl.eval.values.value import Array, Con, make_list

INT, F = t.I64, t.F64
LEAVES = t.Con("leaves")
POINT = t.Con("point", (F,))
DATAS = {
    "list": LIST,
    "leaves": Data("leaves", (), (("Leaf", F), ("Node", t.Tup((LEAVES, LEAVES))), ("Empty", None))),
    "point": Data("point", (t.Var("a"),), (("point", t.Tup((t.Var("a"), INT))),), ("x", "y")),
    "box": Data("box", (), (("box", F),), ("content",)),
}
SHOWER = Shower(DataTypes(DATAS))


def leaf(x: float) -> Con:
    return Con(0, "Leaf", x)


@pytest.mark.parametrize(
    ("value", "ty", "text"),
    [
        (1.0, F, "1.0"),
        (1e-5, F, "1e-05"),
        (-math.inf, F, "-inf"),
        (True, t.BOOL, "true"),
        ((), t.UNIT, "()"),
        ("a\n", t.STRING, "a\n"),
        (('a"\n', 1), t.Tup((t.STRING, INT)), '("a\\"\\n", 1)'),
        (0.10000000149011612, t.F32, "0.1"),
        (16777216.0, t.F32, "16777216.0"),
        (Array((2, 2), [1, 2, 3, 4]), t.Arr(t.Arr(INT, t.Size(2)), t.Size(2)), "[[1, 2], [3, 4]]"),
        (Array((2, 0), []), t.Arr(t.Arr(INT, t.Size(0)), t.Size(2)), "[[], []]"),
        (make_list([]), t.list_of(INT), "[]"),
        (make_list([1]), t.list_of(INT), "[1;]"),
        (make_list([-1, 2]), t.list_of(INT), "[-1; 2]"),
        (Con(1, "Node", (leaf(-1.0), Con(2, "Empty"))), LEAVES, "Node (Leaf (-1.0), Empty)"),
        (Con(0, "point", (-1.0, 2)), POINT, "{ x = -1.0; y = 2 }"),
        (Con(0, "box", 1.0), t.Con("box"), "{ content = 1.0 }"),
    ],
)
def test_show(value, ty, text):
    assert SHOWER.show(value, ty) == text


def test_long_arrays_are_abridged_by_print_only():
    ty, long = t.Arr(INT, t.Size(1001)), Array((1001,), list(range(1001)))
    first, last = ", ".join(map(str, range(500))), ", ".join(map(str, range(501, 1001)))
    assert SHOWER.show(long, ty, abridged=True) == f"[{first}, ..., {last}]"
    assert "..." not in SHOWER.show(long, ty)


def test_deep_trees_need_no_stack():
    tree = leaf(1.0)
    for _ in range(50_000):
        tree = Con(1, "Node", (tree, Con(2, "Empty")))
    assert SHOWER.show(tree, LEAVES).endswith(", Empty)")
