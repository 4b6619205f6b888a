"""Data of the host on a device: trees, lists and arrays in them are copied there, and again when they have changed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import assert_same_output
from stand_in import Server

pytestmark = pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux")

DATA = """
type tree = Leaf of int | Node of tree * tree
type shape = Dot | Line of float[2] * int | Poly of (float[3]) list
let rec grow seed depth = if depth = 0 || seed % 5 = 0 then Leaf (seed % 7) else
  Node (grow (seed * 3 + 1) (depth - 1), grow (seed + 1) (depth - 1))
let rec total w t = match t with Leaf c -> w * float c | Node (a, b) -> tanh (total w a - 0.5 * total w b)
let n = 40 + List.length Sys.args
let trees = [for k < n -> grow (k * 7919) 4]
do print ([for t in trees -> total 0.1 t], total 0.2 trees[3])
let points = [for k < 3 -> float (n + k)]
let shapes = [for k < n ->
  if k % 3 = 0 then Dot else if k % 3 = 1 then Line ([float k, 2.0], k) else Poly [points; [0.5, 1.0, float k];]]
let area s = match s with Dot -> 1.0 | Line (a, _) -> a[0] * a[1] | Poly ps -> List.fold (fun s p -> s + sum p) 0.0 ps
do print [for s in shapes -> area s]
let changed = loop s = shapes for k < 5 do
  (print (sum [for x in s -> area x]); [for i < n -> if i = k then Dot else s[i]])
do print [for k < n -> area changed[n - 1 - k]]
let rec squares k = if k = 0 then [] else k * k :: squares (k - 1)
let numbers = squares n
do print [for k < n -> List.fold (fun s x -> (s * 2 + x) % (k + 7)) 0 numbers]
"""
GRADIENT = """
type tree = Leaf of int | Node of tree * tree
let rec grow seed depth = if depth = 0 || seed % 5 = 0 then Leaf (seed % 6) else
  Node (grow (seed * 3 + 1) (depth - 1), grow (seed + 1) (depth - 1))
type model = { e : float[6, 3]; l : float[3, 3]; r : float[3, 3] }
let rec encode p t = match t with
  | Leaf c -> p.e[c]
  | Node (a, b) -> tanh (p.l @ encode p a + p.r @ encode p b)
let wave a n = [for k < n -> 0.2 * sin (a * float k)]
let start : model = { e = reshape (wave 1.3 18); l = reshape (wave 0.7 9); r = reshape (wave 0.9 9) }
let trees = [for k < 40 + List.length Sys.args -> grow (k * 7919) 3]
do print (grad (fun p -> sum [for t in trees -> sum (encode p t)]) start)
"""
CONSTANTS = """
let n = 40 + List.length Sys.args
let w = [0.5, 1.5, -2.0, 3.0, 0.25, 7.0, 1.0, 2.0, 3.5, 4.0, 5.0, 6.0, 0.125, 9.0, 8.0, 1.25, 2.25, 3.25, 4.25, 5.25]
let ys = loop xs = [for k < n -> float k] for i < 5 do
  (print i; [for k < n -> 0.5 * xs[k] + w[k % 20]])
do print (ys, [for k < n -> w[4:][k % 10]])
"""
SUMS = """
let n = 40 + List.length Sys.args
let unit (v : float[k]) : float[k] = v / sqrt (dot v v)
do print (loop v = [for k < n -> 1.0 + float k] for i < 5 do (print i; unit (v + 0.1 * v)))
"""
GROWN = """
let xs = loop xs = ([] : float[?]) for k < 3 + List.length Sys.args do [float k] ++ xs
do print (sum [for x in xs -> x * 2.0])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("device"))
    yield made
    made.close()


def launched(dpl, server: Server, text: str, folder: Path) -> str:
    """Runs a program here and there; what was launched and copied."""
    file = folder / "test.dp"
    file.write_text(text, encoding="utf-8")
    before = len(server.complaints())
    ran = dpl("run", "--device", "gpu", "--timings", file, **server.environment, DPL_DEVICE_LEAST="1")
    assert not (said := server.complaints()[before:]), said
    assert_same_output(ran.stdout, dpl("run", "--engine", "native", file).stdout)
    return ran.stderr


def test_data_that_points_read(dpl, server: Server, tmp_path: Path) -> None:
    told = launched(dpl, server, DATA, tmp_path)
    assert told.count(" us\n") >= 5
    assert "test.dp:16: stays on the host, as it gives values of type main.shape" in told


def test_a_gradient_through_recursion_over_data(dpl, server: Server, tmp_path: Path) -> None:
    """Forward and backward sweep are one kernel, and records of what points keep never leave the device."""
    told = launched(dpl, server, GRADIENT, tmp_path)
    assert told.count("groups") == 1


def test_constants_are_copied_once(dpl, server: Server, tmp_path: Path) -> None:
    assert "copies to the device: 1 times" in launched(dpl, server, CONSTANTS, tmp_path)


def test_sums_that_kernels_use_stay_on_the_device(dpl, server: Server, tmp_path: Path) -> None:
    """The host waits for the array that it prints."""
    assert "copies from the device: 1 times" in launched(dpl, server, SUMS, tmp_path)


def test_arrays_that_grew_at_the_front_are_aligned(dpl, server: Server, tmp_path: Path) -> None:
    assert "test.dp" in launched(dpl, server, GROWN, tmp_path)
