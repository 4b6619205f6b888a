"""The order of sums is part of the language (`dpl/prims/sums.py`): both engines print the same digits, however a sum is
written and whatever it is fused with."""

from __future__ import annotations

import math
import re

import pytest
from dpl.prims import sums

PROGRAM = """
let a k n = Random.normal (Random.key k) n
let show n =
  let (x, y) = (a 1 n, a 2 n) in
  let spread = [for i < n -> x[i] + y[i] * 0.5] in
  print (n, sum x, sum (1.0 * x), sum (x * y), dot x y, mean x, sum spread, sum [for i < n -> x[i] * y[i]])
let m : float[34, 33] = reshape (a 3 1122)
let w = a 4 33
let big : float[1030, 2] = reshape (a 5 2060)
let few : float[16] = reshape (a 6 16)
let halves =
  loop (x, s) = (few, -0.0) for k < 3 do (x * 0.7 + few * float k, s + dot x few + sum (x * few) + sum (0.0 * x))
let sizes = [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 1024, 1025, 2049]
do loop u = () for i < length sizes do show sizes[i]
do print (sum (sum m), sum (sum (m * w)), sum (sum (exp (m * w))))
do print (sum (m * w))
do print (sum (transpose m))
do print (halves, sum (-0.0 * few * few))
do print (sum big, sum (big * [1.0, 2.0]), sum (sum big))
"""


@pytest.mark.parametrize("number", ["float", "f32"])
def test_every_way_to_write_a_sum_has_one_order(dpl, number: str) -> None:
    drawn = "Random.normal (Random.key k) n"
    text = PROGRAM.replace("float", number).replace(drawn, f"{number} ({drawn})")
    native, interp = (dpl("run", "--engine", engine, "-", stdin=text) for engine in ("native", "interp"))
    assert native.returncode == 0, native.stderr
    assert native.stdout == interp.stdout
    for line in native.stdout.splitlines()[:16]:
        _, x, one, xy, dot, _, _, products = line.strip("()").split(", ")
        assert x == one
        assert xy == dot == products


def test_the_order_is_what_the_table_says() -> None:
    numbers = [math.sin(k * k) for k in range(5000)]
    lanes = [sum(numbers[lane:1024:32]) for lane in range(32)]
    while len(lanes) > 1:
        lanes = [x + y for x, y in zip(lanes, lanes[len(lanes) // 2 :], strict=False)]
    assert sums.block(float.__add__, 0.0, numbers[:1024]) == lanes[0]
    b = [sums.block(float.__add__, 0.0, numbers[k : k + 1024]) for k in range(0, 5000, 1024)]
    assert sums.total(float.__add__, 0.0, numbers) == ((b[0] + b[1]) + (b[2] + b[3])) + b[4]


IN_PARTS = """
let a k n = Random.normal (Random.key k) n
let x = a 1 1100
let w : float[5] = a 2 5
let rows : float[1030, 5] = reshape (a 3 5150)
let few : float[16] = a 4 16
do print (sum [for i < 1027 -> let e = sum [for j < 5 -> w[j] * x[i + j]] - x[i] in e * e])
do print (sum [for i < 1026 -> tanh (sum [for j < 16 -> few[j] * x[i + j]])])
do print (sum [for row in rows -> log (1.0 + exp (dot w row))])
do print (sum [for i < 50 -> exp (0.1 * x[i]) * logsumexp rows[i]])
let soft = [for i < 1030 -> tanh (x[i] + maximum rows[i])]
do print (sum soft, soft[0], soft[1023], soft[1024], soft[1029])
do print (sum [for i < 2 -> [for j < 1030 -> exp (sum [for k < 5 -> rows[i, k] * rows[j, k]] / 5.0)]])[1029]
"""


def test_points_in_two_parts_have_the_same_sums(dpl) -> None:
    native, interp = (dpl("run", "--engine", engine, "-", stdin=IN_PARTS) for engine in ("native", "interp"))
    assert native.returncode == 0, native.stderr
    assert native.stdout == interp.stdout


KNOWN = """
let sums_N (k : int) =
  let e = [for i < N -> x[i + k] * y[i] + 1.0] in
  (sum [for i < N -> -0.0 * abs x[i]], sum e, e[N - 1],
   sum [for i < N -> if y[i] > 0.0 then x[i] else if i < k then 0.5 else y[i] ** 3],
   sum [for i < N -> exp x[i] * number i - sqrt (y[i] * y[i])],
   sum [for i < 20 -> sum [for j < N -> m[i, k] * y[j] / x[i]]])
do print (sums_N 3)
"""


@pytest.mark.parametrize("number", ["float", "f32"])
def test_sums_of_a_known_number_have_the_order(dpl, number: str) -> None:
    drawn = [f"let {name} = {number} (Random.normal (Random.key {k}) 1100)\n" for k, name in enumerate("xy")]
    text = "".join([*drawn, f"let m : {number}[20, 5] = reshape (take 100 x)\n",
                    *[KNOWN.replace("N", str(n)).replace("number", number) for n in (16, 31, 1023)]])  # fmt: skip
    if number == "f32":
        text = re.sub(r"\d\.\d", r"\g<0>f32", text)
    native, interp = (dpl("run", "--engine", engine, "-", stdin=text) for engine in ("native", "interp"))
    assert native.returncode == 0, native.stderr
    assert native.stdout == interp.stdout
