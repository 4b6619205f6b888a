"""`dpl new NAME`: makes a folder with a sample program that can be run, tested and built."""

from __future__ import annotations

import re
from pathlib import Path

import click

from dplc.tools.files import put, unwritable

MODEL = """\
-- Module Model: what is learnt, and how far from the truth it is.

type params = { slope : float; offset : float }

-- | What the model says of x.
let predict (p : params) (x : float) : float = p.slope * x + p.offset

-- | The mean of the squared errors.
let loss (points : (float * float)[n]) (p : params) : float =
  mean [for (x, y) in points -> let e = predict p x - y in e * e]

expect "a perfect line has no loss" =
  loss [(0.0, 1.0), (1.0, 3.0)] { slope = 2.0; offset = 1.0 } = 0.0

expect "the gradient is right" =
  Test.check_grad (loss [(0.0, 1.0), (1.0, 2.5), (2.0, 5.5)]) { slope = 0.3; offset = -0.2 }

expect "no loss is negative" =
  let numbers = Test.float (-10.0) 10.0 in
  let some_loss (slope, offset) = loss [(0.0, 1.0), (1.0, 3.0)] { slope; offset } in
  Test.for_all (Test.pair numbers numbers) (fun line -> some_loss line >= 0.0)
"""

MAIN = """\
-- Fits a line to noisy points by gradient descent:  dpl run main.dp

import Model

let noisy k =
  let (x, noise) = (Random.normal k 100, Random.normal (fst (Random.split k)) 100) in
  [for i < 100 -> (x[i], 3.0 * x[i] + 1.0 + 0.1 * noise[i])]

let points = noisy (Random.key 1)

let start : Model.params = { slope = 0.0; offset = 0.0 }

let fitted =
  loop p = start for _ < 200 do
    let g = grad (Model.loss points) p in
    Tree.axpy (-0.1) g p

do print $"loss {Model.loss points start}, then {Model.loss points fitted}"
do print fitted
"""

README = """\
# {name}

    dpl run main.dp
    dpl test
    dpl build main.dp -o {name}
"""

IGNORED = """\
/{name}
/doc/
"""


def make(name: str) -> int:
    """Make the folder.  Raises ClickException if it exists and is not empty."""
    folder = Path(name)
    if not re.fullmatch(r"[A-Za-z][\w.-]*", folder.name):
        raise click.UsageError(f"{folder.name!r} is no name for a project: letters, digits, `-`, `_`, `.`")
    files = {"model.dp": MODEL, "main.dp": MAIN, "README.md": README, ".gitignore": IGNORED}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise click.ClickException(f"{folder} is there already, and not empty")
    except OSError as failure:
        raise unwritable(folder, failure) from None
    for file, text in files.items():
        put(folder / file, text.replace("{name}", folder.name).encode())
    print(f"{folder}/: {', '.join(files)}")
    return 0
