"""Values go with their last user, without Python's search for circles: what functions capture is in none."""

from __future__ import annotations

import gc
import io
import tracemalloc

import pytest
from dpl.eval.run import run
from dpl.source import Source
from dpl.syntax.load import load
from dpl.types.check import check_program

BODIES = {
    "alone": "let rec go i s = if i = 0 then s else go (i - 1) (s + a[i]) in go 3 0.0",
    "each other": "let rec f i = if i = 0 then a[0] else g (i - 1) and g i = if i = 0 then a[1] else f (i - 1) in f 5",
    "of any type": "let rec last x xs = match xs with | [] -> x | y :: ys -> last (if length a = 0 then x else y) ys in"
    ' let s = last "" ["a"; "b"] in last 0.0 [1.0; 2.0]',
    "in a function": "let rec go i = if i = 0 then a[0] else (let h j = go j + a[j] in h (i - 1)) in go 3",
    "in another": "let rec f i = (let rec g j = if j = 0 then a[i] else if j = 9 then f j else g 0 in g 2) in f 3",
    "given away": "let rec f i = if i = 0 then a[0] else sum (map (fun j -> f j) [i - 1]) in f 2",
    "differentiated": "let rec f x i = if i = 0 then x * a[0] else f (x * x) (i - 1) in grad (fun x -> f x 2) 1.5",
    "captured": "let rec f i = if i = 0 then shift k -> k a[0] else f (i - 1) in reset (f 3)",
}


def peak(body: str, calls: int) -> int:
    """Bytes at most, of a number of calls that each make an array."""
    text = f"let f n = let a = fill 1000 (float n) in {body}\ndo print (loop s = 0.0 for i < {calls} do s + f i)"
    program, _ = check_program(load(Source("main.dp", text)))
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        run(program, out=io.StringIO())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_calls_keep_nothing(fresh_heap, body: str) -> None:
    assert peak(body, 45) - peak(body, 5) < 100_000  # arrays of 8 KB each
