"""`dpl build --python`: a wheel of a model, which needs NumPy and nothing of DPL."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from building import failed, needs_cc, written

pytestmark = needs_cc

MODEL = """
-- | Twice as much.
export let twice (x : float[n]) : float[n] = 2.0 * x
export let limits : float * float = (0.0, 1.0)
let calls = ref 0
export let count () : int = calls := !calls + 1; !calls
"""

USE = """
import sys, threading
import numpy as np
import two_things
assert "dpl" not in sys.modules
print(two_things.twice(np.arange(3.0)), two_things.limits, two_things.twice.__doc__.split()[-1], dir(two_things))
threads = [threading.Thread(target=two_things.count) for _ in range(5)]
[t.start() for t in threads]; [t.join() for t in threads]
print(two_things.count())
try:
    two_things.twice(3)
except two_things.Error as error:
    print(error)
"""


def test_a_wheel(dpl, tmp_path) -> None:
    run = dpl("build", "--python", written(tmp_path, MODEL, "two-things.dp"), cwd=tmp_path)
    wheel = tmp_path / run.stdout.strip()
    assert run.returncode == 0 and wheel.name.startswith("two_things-0.1.0-py3-none-linux_"), run.stderr
    installed = tmp_path / "installed"
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", installed, wheel]
        made = subprocess.run(pip, capture_output=True, text=True, timeout=120, check=False)
        assert made.returncode == 0, made.stderr
    else:
        zipfile.ZipFile(wheel).extractall(installed)
    packages = Path(np.__file__).parent.parent
    used = subprocess.run(
        [sys.executable, "-S", "-c", USE], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{installed}{os.pathsep}{packages}"},
    )  # fmt: skip
    assert used.returncode == 0, used.stderr
    assert used.stdout.split("\n")[:-1] == [
        "[0. 2. 4.] (0.0, 1.0) much. ['ArgumentError', 'Error', 'count', 'limits', 'twice']",
        "6",
        "error[R0508]: `x` of twice is float[n], not 3",
        "  = note: twice (x : float[n]) : float[n]",
    ]


def test_wishes_that_cannot_be(dpl, tmp_path) -> None:
    file = written(tmp_path, MODEL)
    failed(dpl("build", "--python", "--lib", file), 2, "--python makes a wheel and nothing else")
    failed(dpl("build", "--python", "--target", "wasm32", file), 2, "no shared libraries for wasm32")
    failed(dpl("build", "--python", written(tmp_path, "let x = 1\n", "none.dp")), 1, "exports nothing")


@pytest.mark.parametrize("place", ["/nowhere/m.whl", "."])
def test_it_cannot_be_written(dpl, tmp_path, place) -> None:
    failed(dpl("build", "--python", written(tmp_path, MODEL), "-o", place, cwd=tmp_path), 1, "error[E0572]")
