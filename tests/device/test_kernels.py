"""Kernels give what the evaluator of flat gives, bit for bit; they run in the interpreter of PTX (`pars.py`)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from dpl.prims import TABLE, elementary
from dpl.prims.scalar import SLOPES
from dpl.source import Source
from dplc.flat.interp import Failure
from dplc.flat.interp_ops import Array
from dplc.flat.parse import parse
from dplc.machine.cuda.kernels import Kernels, outermost
from dplc.machine.cuda.ptx import ptx
from dplc.passes.memory.reference_counts import count_references
from pars import Both, compared, program_of
from ptx_memory import Blocks
from ptx_run import Machine
from ptx_traffic import Traffic

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.dp"))


def kinds(text: str) -> set[str]:
    """The geometries of the kernels that ran."""
    return {one.kernel.geometry for one in compared(text)}


def test_each_point_is_kept() -> None:
    made = compared("""
let n = 520
let xs = [for i < n -> float i * 0.37 - 3.0]
let ys = [for i < n -> if i % 3 = 0 then exp xs[i] else sqrt (abs xs[i]) - 1.0 / xs[i]]
let zs = [for i < n -> (i * 7 / 3, xs[i] > 0.0, f32 xs[i])]
do print (ys, [for z in zs -> let (a, b, c) = z in if b then float a else float c])
""")
    assert {one.kernel.geometry for one in made} == {"points"} and made


@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 1023, 1025, 2049, 5000])
def test_sums_have_one_order(n: int) -> None:
    made = compared(f"""
let n = length [for i < {n} -> i]
let xs = [for i < n -> 1.0 / (1.0 + float i)]
do print (sum [for i < n -> xs[i] * 1.1], sum [for i < n -> i * i], sum [for i < n -> f32 xs[i]])
""")
    assert n == 1 or any(one.kernel.geometry == "sums" for one in made)  # one number is no sum


def test_sums_of_rows() -> None:
    assert "rows" in kinds("""
let m = [for i < 1100, j < 3 -> sin (float (i * j))]
let f (b : float[3]) = sum (sum (tanh (m + b)))
do print (grad f [0.5, -0.25, 0.125])
""")


def test_inner_loops_and_arrays() -> None:
    made = compared("""
let n = 10
let m = [for i < n, j < n + 23 -> sin (float (i * j))]
let softmax (x : float[k]) : float[k] =
  let e = [for a in x -> exp a] in e * (1.0 / sum e)
do print [for i < n -> softmax m[i]]
do print [for i < n -> argmin [for j < n + 23 -> (m[i, j] - 0.3) ** 2]]
do print [for i < n -> (sort [for j < n + 23 -> m[i, j]])[3]]
do print [for i < n -> sum [for k < 120 * i -> m[i, k % (n + 23)]]]
""")
    assert any(one.kernel.arena for one in made)


def test_short_rows_are_in_the_frame() -> None:
    """Also those that a sum is made beside, those of outer loops, and those that are copied in the end."""
    made = compared("""
let m : float[10, 12] = [for i < 10, j < 12 -> sin (float (i * j))]
let f (m : float[10, 12]) =
  let a = [for i < 10 -> softmax [for j < 12 -> if j <= i then m[i, j] else 0.0 - 1e9]] in
  sum (sum [for i < 10, j < 12 -> a[i, j] * cos (float j)])
do print (grad f m)
""")
    assert len(made) > 1 and not any(one.kernel.arena or one.kernel.fails for one in made)


def test_recursion_data_and_closures() -> None:
    made = compared("""
type tree = Leaf of float | Node of tree * tree
let rec grow n x = if n = 0 then Leaf x else Node (grow (n - 1) (x * 1.5), grow (n - 1) (x - 0.25))
let rec total t = match t with Leaf x -> x | Node (a, b) -> total a + total b
let twice f x = f (f x)
let rec fact n = if n <= 1 then 1 else n * fact (n - 1)
let n = 10
do print [for i < n -> total (grow (i % 4) (float i))]
do print [for i < n -> twice (if i % 2 = 0 then (fun x -> x * float i) else (fun x -> x - 1.0)) 0.5]
do print [for i < n -> fact i]
""")
    assert any(one.kernel.recursive for one in made)


def test_points_that_take_their_own_number_of_steps() -> None:
    compared("""
let n = 70
let rec collatz m k = if m = 1 then k else collatz (if m % 2 = 0 then m / 2 else 3 * m + 1) (k + 1)
do print [for i < n -> collatz (i + 1) 0]
""")


def test_points_add_to_one_array() -> None:
    made = compared("""
let n = 300
let xs = [for i < n -> sin (float i)]
let f (c : float[5, 2]) = sum [for i < n -> let k = (i * i) % 5 in (c[k, 0] - xs[i]) * c[(k + 1) % 5, 1]]
do print (grad f [for i < 5, j < 2 -> float i - 0.1 * float j])
""")
    assert any(one.kernel.geometry == "groups" for one in made)


@pytest.mark.parametrize(
    "body", ["xs[i * 30]", "1000 / (i - 17)", 'if i = 21 then error "no" else i', "(slice_of xs i)[0]"]
)
def test_failures_leave_a_record(body: str) -> None:
    machine = Both(
        program_of(f"""
let n = 50
let xs = [for i < n -> i * 3]
let slice_of (x : int[n]) (i : int) = x[i - 10 : i + 1]
do print [for i < n -> {body}]
""")
    )
    with pytest.raises(Failure):
        machine.call("main")
    assert machine.launched[-1].failed


FUNCTIONS = [name for name in elementary.NAMES if name in TABLE and name not in {row.name for row in SLOPES}]
PARTS = 4


@pytest.mark.parametrize("ty", ["f64", "f32"])
@pytest.mark.parametrize("part", range(PARTS))
def test_elementary_functions_have_the_same_bits(part: int, ty: str) -> None:
    """Of usual and special arguments."""

    def call(name: str) -> str:
        more = " (x * 0.7 + 0.3)"
        return f"x **{more}" if name == "pow" else f"{name} x{more if elementary.arity(name) == 2 else ''}"

    calls = ", ".join(map(call, FUNCTIONS[part::PARTS]))
    made = compared(f"""
let special = [0.0, -0.0, 1.0, -1.0, 0.5, 1e300, -1e300, 1e-310, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, 709.9, 88.8]
let xs = [for i < 45 -> if i < 13 then special[i % 13] else float (i - 30) * 0.37]
do print [for i < 45 -> let x = {"" if ty == "f64" else "f32 "}xs[i] in ({calls})]
""")
    assert made


def test_small_arrays_that_stay_are_in_the_frame() -> None:
    """So a kernel needs no memory, also where branches give views; an array that a loop hands on needs an arena."""
    made = compared("""
let xs = [for i < 40 -> sin (float i)]
let nearest x = argmin [for c < 12 -> (xs[c] - x) ** 2]
do print [for x in xs -> nearest x + length (sort [for c < 5 -> x * float c])]
do print [for x in xs -> sum (let a = [for j < 20 -> x * float j] in if x > 0.0 then a[3:15] else a[0:12])]
do print [for x in xs -> if x > 0.5 then [for j < 20 -> x * float j] else [for j < 20 -> sin x]]
""")
    assert len(made) > 2 and not any(one.kernel.arena for one in made)
    made = compared("""
let xs = [for i < 40 -> sin (float i)]
do print [for x in xs ->
  let a = loop a = [for j < 20 -> x * float j] for i < 3 do [for j < 20 -> a[(j + i) % 20] + x] in a[0] + a[2]]
""")
    assert any(one.kernel.arena for one in made)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_programs(program: Path) -> None:
    assert compared(program.read_text(encoding="utf-8"))


def test_searches_and_sums_of_rows_take_no_memory() -> None:
    made = compared("""
let xs = [for i < 16 -> sin (float (i * i))]
let few = [0.0 / 0.0, 1.0, -1.0, 1.0, -0.0, 0.0, -1.0]
do print [for x in xs -> argmax [for y in few -> y * x] + 10 * argmin [for j < 7 -> if x > 0.0 then few[6 - j] else x]]
do print [for i < 16 -> argmin [for j < 9 -> (i * j) % 7]]
do print [for x in xs -> sum [for j < 1100 -> [x * float j, 1.0 + x]]]
do print [for x in xs -> sum [for j < 9 -> [x * float j, -0.0, 0.0]]]
""")
    assert made and not any(one.kernel.arena for one in made)


def test_a_negative_length_fails() -> None:
    machine = Both(program_of("do print [for i < 40 -> argmin [for j < 20 - i -> (i * j) % 7]]"))
    with pytest.raises(Failure):
        machine.call("main")
    assert machine.launched[-1].failed


def test_points_add_to_their_own_rows_in_place() -> None:
    made = compared("""
let ys = [for i < 40 -> (i * i) % 5]
let scores (m : float[40, 5]) = sum [for i < 40 -> let r = m[i] in log (sum [for x in r -> exp x]) - r[ys[i]]]
do print (grad scores [for i < 40, j < 5 -> sin (float (i * j))])
""")
    own = [one for one in made if any(out.own for out in one.kernel.outs)]
    assert own and all(one.kernel.geometry != "groups" for one in own)


def test_constants_that_hold_others() -> None:
    compared("""
let pick n = if n = 0 then [1.0; 2.0] else if n = 1 then [3.0;] else []
do print [for i < 9 -> match pick (i % 3) with x :: y :: _ -> x + y | x :: _ -> x | [] -> float i]
""")


ADDED_IN_CALLS = """
fn total(rows: f64[,], p: f64[]) -> (f64[], f64[])
  n: i64 = dim k=0 rows
  (a: f64[], b: f64[]) = par k < n to add (c: f64[] = null:f64[]), add (d: f64[] = null:f64[])
    row: f64[] = index rows k
    s: f64 = sum row
    t: (f64, f64[]) = (s, p)
    (v: f64[], w: f64[]) = back(t, row, c, d)
    yield v, w
  return a, b

fn back(t: (f64, f64[]), g: f64[], c: f64[], d: f64[]) -> (f64[], f64[])
  s: f64 = t.0
  p: f64[] = t.1
  v: f64[] = acc_add c g
  m: i64 = dim k=0 p
  more: f64[] = par i < m to keep
    x: f64 = index p i
    y: f64 = mul x s
    yield y
  w: f64[] = acc_add d more
  return v, w
"""


def test_lengths_of_what_a_function_adds_to() -> None:
    """The backward sweep of a function of rows: its parameters tell the lengths."""
    machine = Both(count_references(parse(Source("test.flat", ADDED_IN_CALLS)), True))
    rows, p = [math.sin(float(i * i)) for i in range(40 * 3)], [1.0, 2.0, 3.0, 5.0]
    a, b = machine.call("total", Array((40, 3), rows), Array((4,), p))
    assert [(one.kernel.geometry, one.failed) for one in machine.launched] == [("groups", False)]
    assert (a.shape, b.shape) == ((3,), (4,)) and math.isclose(b.items[3], 5.0 * sum(rows))


COMPARED = """
fn total(rows: f64[,], p: f64[]) -> (f64[])
  n: i64 = dim k=0 rows
  a: f64[] = par k < n to add (c: f64[] = null:f64[])
    row: f64[] = rows_of(rows, k)
    t: (f64[], f64) = (row, 0.5)
    same: f64[] = t.0
    s: f64 = dot p same
    m: i64 = dim k=0 same
    more: f64[] = par i < m to keep
      x: f64 = index same i
      y: f64 = mul x s
      yield y
    v: f64[] = acc_add c more
    yield v
  return a

fn rows_of(rows: f64[,], k: i64) -> (f64[])
  row: f64[] = index rows k
  return row
"""


def test_lengths_of_what_is_compared_with_them() -> None:
    """A product with a vector from outside tells the length of a row; a row of another length fails."""
    machine = Both(count_references(parse(Source("test.flat", COMPARED)), True))
    rows, p = [math.sin(float(i * i)) for i in range(40 * 4)], [1.0, 2.0, 3.0, 5.0]
    (a,) = machine.call("total", Array((40, 4), rows), Array((4,), p))
    assert [(one.kernel.geometry, one.failed) for one in machine.launched] == [("groups", False)]
    assert a.shape == (4,)
    with pytest.raises(Failure):
        machine.call("total", Array((40, 4), rows), Array((3,), p[:3]))
    assert machine.launched[-1].failed


def test_lengths_of_what_is_added_to_a_part() -> None:
    """The gradient of a product of which points use some rows only: zeros, to which these are added, tell lengths."""
    made = compared("""
let xs : float[40, 5, 8] = [for b < 40 -> [for t < 5 -> [for j < 8 -> cos (float (b + t * j))]]]
let loss (w : float[8, 8]) =
  sum [for x in xs -> let y = tanh x @ w in let d = y[0:4] - x[1:5] in sum (flatten (d * d))]
do print (grad loss [for i < 8 -> [for j < 8 -> sin (float (i * j))]])
""")
    assert any(one.kernel.geometry == "groups" and not one.failed for one in made)


@pytest.mark.parametrize(("ty", "n"), [("f64", 10), ("f64", 64), ("f32", 21)])
def test_copies_are_added_sector_by_sector(ty: str, n: int) -> None:
    """In the order of lanes, whatever their number; what is moved is what is asked for."""
    program = program_of(f"""
let xs = [for i < 300 -> {"sin" if ty == "f64" else "f32"} (float i)]
let f (c : {ty}[5]) = sum [for i < 300 -> c[(i * i) % 5] * xs[i]]
do print (grad f [for i < 5 -> xs[i]])
""")
    kernels, blocks, traffic = Kernels(program), Blocks(), Traffic()
    for fn, par in outermost(program):
        kernels.of(par, fn)
    machine = Machine(ptx(kernels.text()), blocks)
    machine.place_globals(1 << 32, np.zeros(machine.size_of_globals() + 8, np.uint8))
    copies = np.random.default_rng(1).standard_normal((70, n)).astype(ty.replace("f", "float"))
    to = np.ones(n, copies.dtype)
    blocks.add(1 << 33, to.view(np.uint8))
    blocks.add(1 << 34, copies.reshape(-1).view(np.uint8))
    machine.launch(f"add_{ty}", 1, 64, [1 << 33, 1 << 34, 70, n], traffic=traffic)
    lanes = [np.add.accumulate(np.concatenate([0.0 * copies[:1], copies[k::32]]), 0)[-1] for k in range(32)]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [a + b for a, b in zip(lanes[:half], lanes[half:], strict=True)]
    assert (to == 1.0 + lanes[0]).all()
    assert traffic.moved < 2 * traffic.asked  # a sector each would be 4 or 8 times as much
