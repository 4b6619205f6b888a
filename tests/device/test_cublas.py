"""Large products by cuBLAS: here by a stand-in for it, which is as strict."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import assert_same_output
from stand_in import Server

pytestmark = pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux")

START = """
let wave (a : float) (n : int) (m : int) = [for i < n, j < m -> sin (a * float (i * m + j))]
let a : float[65, 16] = wave 0.3 65 16
let b : float[16, 65] = wave 0.7 16 65
"""
FEW = START + "do print (sum (sum (a @ b)), sum (sum (transpose b @ transpose a)))"
MANY = (
    START
    + """
let w : float[65, 65] = wave 0.1 65 65
let bad = [for i < 65, j < 65 -> if i = 3 && j = 2 then 1.0 / 0.0 else float (i - j)]
do print (sum (sum (f32 a @ f32 b)) > -1.05)
do print (sum (sum (grad (fun w -> sum (sum (tanh (w @ w) ** 2))) w)))
do print (sum (sum (grad (fun w -> loop s = 0.0 for k < 3 do s + sum (sum (sin (w @ w))) * float k) w)))
do print (sum (sum (grad (fun w -> sum (sum (relu (w @ bad)))) w)), (w @ bad)[0, 2])
"""
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("device"), blas=True)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("program", "wanted"),
    [(FEW, {"dgemm"}), pytest.param(MANY, {"dgemm", "sgemm", "mend_f64"}, marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_products_are_the_host_s(dpl, server: Server, tmp_path: Path, program: str, wanted: set[str]) -> None:
    place, log = tmp_path / "products.dp", tmp_path / "log"
    place.write_text(program, encoding="utf-8")
    more = {**server.environment, "DPL_DEVICE_LEAST": "1", "DPL_STAND_IN_LOG": str(log)}
    there, here = dpl("run", "--device", "gpu", place, **more), dpl("run", "--engine", "native", place)
    assert there.returncode == 0, there.stderr
    assert_same_output(there.stdout, here.stdout)
    launched = [line.split()[1] for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("launch")]
    assert wanted <= set(launched) and "matmul_f64" not in launched
    assert not server.complaints()


def test_small_products_do_not_load_it(dpl, server: Server, tmp_path: Path) -> None:
    place, log = tmp_path / "small.dp", tmp_path / "log"
    place.write_text("let a = [for i < 70 -> [for j < 90 -> float (i + j)]]\ndo print (sum (a @ transpose a))\n")
    more = {**server.environment, "DPL_DEVICE": "gpu", "DPL_DEVICE_LEAST": "20000", "DPL_STAND_IN_LOG": str(log)}
    assert dpl("run", place, **more).returncode == 0
    assert "matmul_f64" in (text := log.read_text(encoding="utf-8")) and "dgemm" not in text
