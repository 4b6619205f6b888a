"""Every operation on arrays, at operands without rows and without columns: both engines print the same values and the
same derivatives, by reverse and by forward mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import assert_same_output

OPERATIONS = """
length x
reverse x
transpose x
sum x
sum (sum x)
prod x
map sum x
map (fun r -> length r) x
mapi (fun i r -> r) x
filter (fun r -> true) x
filter (fun r -> false) x
x ++ x
x + x
x * 2.0
2.0 - x
exp x
abs x
max x x
min x 1.0
hypot x x
x = x
x < x
x ** 2
cumsum x
cumprod x
scan (fun a r -> a + r) (sum x) x
fold (fun a r -> a + r) (sum x) x
zip x x
unzip (zip x x)
map2 (fun a b -> a * b) x x
map2 (fun a b -> length a) x x
take 0 x
drop 0 x
x[0:0]
x[:, 0:0]
gather x [for i < 0 -> i]
scatter x [for i < 0 -> i] x[0:0]
scatter_add x [for i < 0 -> i] x[0:0]
[for r in x -> r]
[for r in x -> [r, r]]
[for r in x when true -> r]
[for i < length x -> x[i]]
flatten x
sort (flatten x)
argsort (flatten x)
List.of_array x
List.to_array (List.of_array x)
List.length (List.of_array x)
List.to_array (List.map (fun r -> r) (List.of_array x))
x @ transpose x
transpose x @ x
x @ sum x
sum (transpose x) @ x
outer (sum x) (sum x)
fill 2 x
tabulate 0 (fun i -> x)
clip x 0.0 1.0
concat x x
[x, x]
[x][0:0]
any (map (fun r -> true) x)
all (map (fun r -> true) x)
floor x
int x
map (fun r -> sum r * r) x
norm (flatten x)
dot (flatten x) (flatten x)
Linalg.det (x @ transpose x)
Linalg.eigh (x @ transpose x)
Linalg.lstsq x x
softmax (flatten x)
sign x
round x
x[0:0] ++ x
x ++ x[0:0]
[for r in x, s in x -> r + s]
[for i < 0, r in x -> r]
[for i < 2, j < 0, k < 3 -> 1.0]
sum [for i < 0, r in x -> r]
sum [for i < 2, r in x[0:0] -> r]
""".strip().splitlines()

OPERANDS = {  # functions of a matrix of 2 rows and 3 columns
    "none": "filter (fun r -> r[0] > 9.0) m",
    "narrow": "m[:, 0:0]",
    "guess": "[for i < 0 -> filter (fun y -> y > 9.0) m[i]]",
}

PROGRAM = """
let m0 = [[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]]
let others m = sin (sum (sum (m * m)))
"""

OPERATION = """
let value m = let x = {operand} in {operation}
let total m = sum (Tree.flatten (value m)) + others m
do print_string "{operation}: "; print (value m0)
do print (grad total m0)
do print (jvp total m0 m0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("operand", OPERANDS)
def test_operations_on_nothing(dpl, tmp_path: Path, operand: str) -> None:
    text = PROGRAM + "".join(OPERATION.format(operand=OPERANDS[operand], operation=o) for o in OPERATIONS)
    file = tmp_path / "it.dp"
    file.write_text(text, encoding="utf-8")
    meant, found = (dpl("run", "--engine", engine, "-O0", file) for engine in ("interp", "native"))
    assert (meant.returncode, found.returncode) == (0, 0), meant.stderr + found.stderr
    assert_same_output(found.stdout, meant.stdout)
