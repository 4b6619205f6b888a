"""Arrays that share their lists, values as trees of leaves, scalar operations."""

from __future__ import annotations

import math

import pytest
from dpl.diagnostics import DplError
from dpl.eval.values import arrays
from dpl.eval.values.active import Dual
from dpl.eval.values.scalar import cast, scalar
from dpl.eval.values.structure import compare, equal, leaves, rebuild
from dpl.eval.values.value import Array, Con, make_list


def test_old_versions_keep_their_elements():
    first = Array((3,), [1, 2, 3])
    second = arrays.update(first, 20, 1)
    third = arrays.update(second, 30, 2)
    branch = arrays.update(second, 10, 0)
    assert [x.data for x in (first, second, third, branch)] == [[1, 2, 3], [1, 20, 3], [1, 20, 30], [10, 20, 3]]


def test_rows_and_reshapes_share_nothing():
    matrix = Array((2, 2), [1, 2, 3, 4])
    flat, row = arrays.flatten(matrix), arrays.index(matrix, 1)
    changed = arrays.update(matrix, Array((2,), [8, 9]), 1)
    assert (flat.data, row.data, changed.data) == ([1, 2, 3, 4], [3, 4], [1, 2, 8, 9])


@pytest.mark.parametrize("i", [-1, 3])
def test_bounds(i):
    with pytest.raises(DplError, match=f"index {i} is out of bounds for length 3"):
        arrays.index(Array((3,), [1, 2, 3]), i)


def test_leaves_and_back():
    value = (1.0, make_list([2, 3]), Array((2,), [(4, "a"), (5, "b")]), Con(1, "Some", 6))
    found = leaves(value)
    assert found == [1.0, 2, 3, 4, "a", 5, "b", 6]
    assert leaves(rebuild(value, iter(["z"] * len(found)))) == ["z"] * len(found)


def test_order():
    assert compare((1, 2.0), (1, 3.0)) < 0
    assert compare(make_list([1, 2]), make_list([1])) > 0
    assert compare(Array((1,), [1]), Array((2,), [1, 2])) < 0
    assert equal(make_list([1, 2]), make_list([1, 2]))
    assert not equal(math.nan, math.nan)


@pytest.mark.parametrize(
    ("name", "kind", "args", "result"),
    [
        ("add", "i8", (127, 1), -128),
        ("mul", "u8", (16, 17), 16),
        ("neg", "u32", (1,), 2**32 - 1),
        ("div", "i64", (-7, 2), -4),
        ("rem", "i64", (-7, 2), -1),
        ("div", "i64", (-(2**63), -1), -(2**63)),
        ("add", "f32", (1.0, 1e-9), 1.0),
        ("mul", "f16", (300.0, 300.0), math.inf),
    ],
)
def test_scalars(name, kind, args, result):
    assert scalar(name, kind)(*args) == result


def test_casts_saturate_and_pass_derivatives():
    assert cast("f64", "u8")(300.0) == 255
    assert cast("f64", "i32")(math.nan) == 0
    narrowed = cast("f64", "f32")(Dual(1, 0.1, 1.0))
    assert isinstance(narrowed, Dual) and narrowed.primal == 0.10000000149011612
