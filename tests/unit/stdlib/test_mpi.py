"""Module Mpi: two ranks, by a launcher of MPI that is installed (such as that of the package `mpich`)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NUMBER, ROOT

LAUNCHER = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
pytestmark = pytest.mark.skipif(not LAUNCHER, reason="there is no launcher of MPI: the extra `mpi` is not installed")
TWO_ENGINES = pytest.mark.parametrize("engine", ["native", "interp"])
DPL = (sys.executable, "-m", "dplc.cli")


def ranks(*command: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Two processes of a command."""
    paths = f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}"
    environment = {
        **os.environ, "PYTHONPATH": paths, "DPL_OPTIMISE": "never", "DPL_CHECK": "0", "DPL_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }  # fmt: skip
    words = [str(LAUNCHER), "-n", "2", *map(str, command)]
    return subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=120, env=environment, check=False)


VALUES = """
let r = float Mpi.rank
let same what a b = if a <> b then error $"{what}: {a} is not {b}"
type net = { w : f32[2]; k : int; yes : bool; deep : float list option }
do same "rank and size" Mpi.size 2
let mine = { w = [1.5f32, 2.0f32]; k = Mpi.rank - 3; yes = Mpi.rank = 1; deep = Some [r; 0.5] }
do same "all_reduce" (Mpi.all_reduce mine)
  { w = [3.0f32, 4.0f32]; k = 0 - 5; yes = true; deep = Some [1.0; 1.0] }
do same "all_gather" (Mpi.all_gather (Mpi.rank, [r, 2.0])) [(0, [0.0, 2.0]), (1, [1.0, 2.0])]
do same "broadcast" (Mpi.broadcast 1 (r + 0.5, Mpi.rank)) (1.5, 1)
do same "rotate" (Mpi.rotate 3 [r, 0.0 - r]) [1.0 - r, r - 1.0]
do same "extremes" (Mpi.all_max [r, 0.0 - r], Mpi.all_min r) ([1.0, 0.0], 0.0)
do same "exact_reduce, mean" (Mpi.exact_reduce (0.1 + r), Mpi.mean r) (0.1 + (0.1 + 1.0), 0.5)
do same "share" (Mpi.all_reduce (length (Mpi.share (range 5)))) 5
do same "grad_mean" (Mpi.grad_mean (fun xs p -> p ** 2 * sum xs / float (length xs)) (Mpi.share [1.0, 2.0, 6.0]) 2.0)
  (12.0, 12.0)
do Mpi.barrier ()
do if Mpi.rank = 0 then Mpi.send 1 [1.0, 2.0] else same "receive" (Mpi.receive 0 [0.0, 0.0]) [1.0, 2.0]
let x = r + 2.0
do same "reverse" (grad (fun x -> Mpi.all_reduce (x * x) * (r + 1.0)) x) (6.0 * x)
do same "twice" (grad (grad (fun x -> Mpi.all_reduce (x ** 3))) x) (12.0 * x)
do same "forward" (jvp (fun x -> Mpi.all_reduce (x ** 3)) x 1.0) (35.0, 39.0)
do same "forward over reverse" (snd (jvp (grad (fun x -> Mpi.all_reduce (x ** 3))) x 1.0)) (12.0 * x)
do same "of rotate" (grad (fun x -> (r + 1.0) * Mpi.rotate 1 (x ** 2)) x) (2.0 * x * (2.0 - r))
do same "of broadcast" (grad (fun x -> Mpi.broadcast 1 (x ** 3)) x) (54.0 * r)
do same "of all_gather" (grad (fun x -> sum (Mpi.all_gather (x ** 3) ** 2)) x) (12.0 * x ** 5)
do same "of all_max" (grad (fun x -> Mpi.all_max (x ** 2)) x) (12.0 * r)
do print "done"
"""


@TWO_ENGINES
def test_two_ranks(tmp_path: Path, engine: str) -> None:
    program = tmp_path / "main.dp"
    program.write_text(VALUES)
    run = ranks(*DPL, "run", "--engine", engine, program)
    assert (run.returncode, run.stdout.split()) == (0, ["done", "done"]), run.stderr


WRONG = {
    "a rank fails": ('do if Mpi.rank = 1 then error "oh no" else Mpi.barrier ()', "oh no"),
    "a rank ends": ("do if Mpi.rank = 1 then Mpi.barrier ()", "one is at a barrier, while another is at its end"),
    "sizes": ("do print (Mpi.all_reduce (zeros (Mpi.rank + 1) : float[?]))", "one has 1 numbers, another 2"),
    "roots": ("do print (Mpi.broadcast Mpi.rank 1.0)", "one names 0, another 1"),
    "no such rank": ("do print (Mpi.broadcast 2 1.0)", "there is no rank 2: the number of ranks is 2"),
    "message": (
        "do if Mpi.rank = 0 then Mpi.send 1 1.0 else print (Mpi.receive 0 [0.0, 0.0])",
        "a message of 1 numbers came where 2 were to come",
    ),
    "derivative": (
        "do print (grad (fun x -> let s = Mpi.all_reduce [x, x] in if Mpi.rank = 0 then sum s else 0.0) 1.0)",
        "only some ranks take the derivative of an operation",
    ),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case == "a rank ends" else pytest.mark.slow) for case in WRONG]
)
@TWO_ENGINES
def test_a_rank_that_fails_ends_all(tmp_path: Path, engine: str, case: str) -> None:
    program, message = WRONG[case]
    (tmp_path / "main.dp").write_text(program)
    for _ in range(3):  # a launcher that ends has once not passed on what a rank wrote; a crash has another code
        run = ranks(*DPL, "run", "--engine", engine, tmp_path / "main.dp")
        assert run.returncode == 1
        if run.stderr:
            break
    assert message in run.stderr
    assert "its end" in message or "its end" not in run.stderr  # a rank that fails is not at its end for the others


@pytest.mark.slow
def test_executables(dpl, tmp_path: Path) -> None:
    (tmp_path / "main.dp").write_text(VALUES)
    (tmp_path / "wrong.dp").write_text(WRONG["a rank fails"][0])
    for name in ("main", "wrong"):
        assert dpl("build", tmp_path / f"{name}.dp", "-o", tmp_path / name).returncode == 0
    run = ranks(tmp_path / "main")
    assert (run.returncode, run.stdout.split()) == (0, ["done", "done"]), run.stderr
    run = ranks(tmp_path / "wrong")
    assert run.returncode != 0 and "oh no" in run.stderr and "its end" not in run.stderr


@pytest.mark.slow
def test_the_network_of_mnist(dpl, tmp_path: Path) -> None:
    """Two ranks learn what one rank learns, to ten digits."""
    text = (ROOT / "examples" / "mnist_cnn.dp").read_text().replace("f32", "float")
    shown = (
        'let p = train start in if Mpi.rank = 0 then print $"{Tree.norm p:.17g} {List.of_array (Tree.flatten p.third)}"'
    )
    program = tmp_path / "main.dp"
    program.write_text(text.replace("do ignore (train start)", f"do ({shown})"))
    data = [ROOT / "examples" / "data" / f"digits-{name}.idx.gz" for name in ("images", "labels")]
    two = ranks(*DPL, "run", program, *data, "1")
    assert two.returncode == 0, two.stderr
    found = [[float(x) for x in NUMBER.findall(out)] for out in (dpl("run", program, *data, "1").stdout, two.stdout)]
    assert found[0] == pytest.approx(found[1], rel=0, abs=1e-10)
    assert len(found[0]) > 500
