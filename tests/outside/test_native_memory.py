"""Native programs that go on for long take no more memory than those that end soon: whatever a step makes, goes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from building import written
from conftest import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says how much memory is used"),
]

DECLARED = """
type shape = Dot | Ring of float | Both of shape * shape
type point = { at : float[3]; name : string; weight : float }
type tree = Leaf | Node of tree * float * tree

let rec insert t (x : float) =
  match t with
  | Leaf -> Node (Leaf, x, Leaf)
  | Node (l, y, r) -> if x < y then Node (insert l x, y, r) else Node (l, y, insert r x)

let rec depth t = match t with | Leaf -> 0.0 | Node (l, _, r) -> 1.0 + max (depth l) (depth r)
let rec area s = match s with | Dot -> 0.0 | Ring r -> r * r | Both (a, b) -> area a + area b
let rec count_down f (n : int) = if n = 0 then f 0 else count_down (fun m -> f (m + 1)) (n - 1)
let all : float list ref = ref []
let size s = float (String.length s)
let compose f g x = f (g x)
let rec grown (n : int) (x : float) : float[?] = if n = 0 then [x] else grown (n - 1) x ++ [x]
let bowl (x : float[n]) = sum (x * x * sin x)
let three (x : float) = [x, x + 1.0, x + 2.0]
"""
STEPS = {  # what a step adds, from its number `i` and its float `x`
    "strings": 'float (String.length (show i ++ "-" ++ show x))',
    "formats": 'float (String.length $"{x:.3f} and {i} of {three x}")',
    "splitting": 'float (List.length (String.split "," "a,b,c,d"))',
    "replacing": 'float (String.length (String.replace "b" (show i) "abcabc"))',
    "parsing": 'match String.to_float (show x) with | Some y -> y | None -> 0.0',
    "lists": "List.fold (fun a b -> a + b) 0.0 (List.rev (List.map (fun y -> y * 2.0) [x; x + 1.0; x + 2.0]))",
    "list sort": "match List.sort [x; 1.0; 0.5 * x] with | y :: _ -> y | [] -> 0.0",
    "lists and arrays": "sum (List.to_array (List.of_array (three x)))",
    "closures": "float (count_down (fun m -> m + i) 3)",
    "composed": "compose (fun y -> y + x) (fun y -> y * float i) 2.0",
    "captured arrays": "let a = three x in let f = (fun j -> a[j] * x) in f 0 + f 2",
    "records": 'let p = { at = three x; name = show i; weight = x } in sum { p with weight = 2.0 }.at',
    "variants": "area (Both (Ring x, Both (Dot, Ring 2.0)))",
    "trees": "depth (insert (insert (insert Leaf x) 1.0) (x + 1.0))",
    "arrays": "sum (sum [for j < 8, k < 4 -> float (j * k) + x])",
    "large arrays": "(if i % 64 = 0 then sum (fill 20000 x * 2.0) else 0.0)",
    "appended": "sum (three x ++ [x] ++ three 1.0)",
    "growing": "sum (grown 5 x)",
    "filter": "sum (filter (fun y -> y > 1.0) (three x))",
    "without rows": "sum (sum (filter (fun (r : float[2]) -> r[0] < 0.0) [[x, 1.0], [2.0, x]]))",
    "sort": "(sort (three (0.0 - x)))[0]",
    "matrices": "sum (sum ([[x, 1.0], [2.0, x]] @ [[1.0, x], [x, 2.0]]))",
    "updated": "sum (loop a = zeros 16 for j < 16 do { a with [j] = x + float j })",
    "tuples": "let (a, (b, c)) = (three x, (show i, x)) in a[1] + c + float (String.length b)",
    "refs": "let r = ref [show x;] in r := show i :: !r; r := List.rev !r; float (List.length !r)",
    "gradients": "sum (grad bowl (three x))",
    "nested gradients": "sum (grad (fun a -> sum (grad bowl a)) (three x))",
    "gradients of loops": "grad (fun y -> loop z = y for _ < 4 do sin z * y) x",
    "gradients of whiles": "grad (fun y -> loop z = y while z < 900.0 do z * (1.2 + y)) (x / float (1 + i % 40))",
    "gradients of lists": "grad (fun y -> List.fold (fun a b -> a * b) 1.0 [y; y + 1.0; y * y]) x",
    "jvp": "snd (jvp bowl (three x) (three 1.0))",
    "jets": "Ad.diffn 4 (fun y -> sin y * y) x",
    "hessians": "sum (sum (Ad.hessian bowl (three x)))",
    "continuations": "reset (1.0 + (shift k -> k (k x)))",
    "generators": "Control.fold (fun a b -> a + b) x (Control.generate (fun () -> Control.yield x; Control.yield x))",
    "backtracking": "float (List.length (Control.solutions (fun () -> Control.choose [1; 2; 3] * i)))",
    "exceptions": "Control.catch (fun () -> if i < 9 then x else Control.throw (show i)) (fun s -> x + size s)",
    "random": "sum (Random.normal (Random.key i) 5) + Random.draw (fst (Random.split (Random.key i)))",
    "permutations": "float (Random.permutation (Random.key i) 6)[0]",
    "solving": "sum (Linalg.solve [[2.0, 1.0], [1.0, 3.0 + x]] [x, 1.0])",
}  # fmt: skip
KEPT = "all := x :: !all; x"  # and it must be seen
FEW, MANY = 2_000, 60_000

MEASURING = """
import dpl, pathlib, sys
model = dpl.load(sys.argv[1])
def used():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4
for number in range(int(sys.argv[2])):
    step = getattr(model, f"step{number}")
    step(FEW)
    before = used()
    step(MANY)
    print(used() - before)
"""


def program() -> str:
    """A function for each step, which does it as often as it is told."""
    loops = (
        f"export let step{number} (n : int) : float =\n"
        f"  loop total = 0.0 for i < n do let x = 1.0 + float (i % 7) in total + ({step})\n"
        for number, step in enumerate([*STEPS.values(), KEPT])
    )
    return DECLARED + "".join(loops)


def test_steps_keep_nothing(tmp_path: Path, cache: Path) -> None:
    file = written(tmp_path, program())
    code = MEASURING.replace("FEW", str(FEW)).replace("MANY", str(MANY))
    path = f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}"
    environment = {**os.environ, "DPL_CACHE": str(cache), "PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-c", code, file, str(len(STEPS) + 1)], env=environment, capture_output=True,
                         text=True, timeout=300, check=False)  # fmt: skip
    assert run.returncode == 0, run.stderr
    *changes, kept = map(int, run.stdout.split())
    grown = dict(zip(STEPS, changes, strict=True))
    assert kept > 400
    assert {name: kilobytes for name, kilobytes in grown.items() if kilobytes > 400} == {}  # 16 bytes each are 900
