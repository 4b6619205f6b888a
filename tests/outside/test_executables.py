"""`dpl build`: executables that do what `dpl run` does, with nothing of DPL or Python around them."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from building import done, failed, needs_cc, written
from conftest import ROOT, assert_same_output
from dpl.diagnostics import DplError
from dplc.machine.llvm.target import to_build
from dplc.tools.build import link

pytestmark = needs_cc

READING = ("Data.read", "Tree.load")  # examples that read files; those that load weights take long
EXAMPLES = sorted(
    p for p in (ROOT / "examples").glob("*.dp") if not any(name in p.read_text("utf-8") for name in READING)
)

# Those that take seconds: built in the long run, optimised and not.
LONG = (
    "control", "eight_schools", "gaussian_process", "hyper_gradient", "inverse_kinematics", "kalman", "meta_learning",
    "neural_ode", "ntm", "pinn", "ray_tracer", "speech_ctc",
)  # fmt: skip
BUILDS = [pytest.param(p, "-O2", id=p.stem) for p in EXAMPLES if p.stem not in LONG]
LARGE = [pytest.param(p, effort, id=f"{p.stem}{effort}", marks=pytest.mark.slow)
         for p in EXAMPLES if p.stem in LONG for effort in ("-O0", "-O2")]  # fmt: skip

# Steps of those that learn for seconds: a tenth of their own, or less.
STEPS = {"meta_learning": "200", "neural_ode": "30", "ntm": "100", "speech_ctc": "60", "pinn": "100"}

ROWS = """
let number i = float ((i * 7919 + 12345) % 2147483647 * 48271 % 2147483647) % 3.0
let placed (r : float[3, 3]) k =
  let far i = number (i + k) + number (i + 2 * k) * number (i + 3 * k) in
  [for i < 4 -> [for j < 4 -> if i = 3 then (if j = 3 then 1.0 else 0.0) else if j = 3 then far i else r[i, j]]]
do print [for t < 2 -> placed [for i < 3 -> [for j < 3 -> float (i * j)]] (t + List.length Sys.args)][1, 2]
"""


def built(dpl, file: Path, folder: Path, *options: str, **env: str) -> Path:
    out = folder / file.stem
    run = dpl("build", file, "-o", out, *options, **env)
    assert run.returncode == 0 and run.stdout == f"{out}\n" and run.stderr == "", run.stderr
    return out


@pytest.mark.parametrize(("file", "effort"), [*BUILDS, *LARGE])
def test_examples(dpl, tmp_path, file, effort) -> None:
    """Their stages are verified where their sizes are counted (`cost/test_code_sizes.py`)."""
    program = shutil.move(built(dpl, file, tmp_path, effort, DPL_CHECK="0"), tmp_path / "alone")
    (tmp_path / "empty").mkdir()
    words = [STEPS[file.stem]] if file.stem in STEPS else []
    known = ROOT / "tests" / "examples" / f"{file.stem}.out"  # what `dpl run` prints
    wanted = known.read_text(encoding="utf-8") if known.exists() else dpl("run", file, *words).stdout
    assert_same_output(done([program, *words], tmp_path / "empty").stdout, wanted)


def test_small(dpl, tmp_path) -> None:
    assert built(dpl, ROOT / "examples" / "hello.dp", tmp_path).stat().st_size < 50_000


def test_llvm_is_silent(dpl, tmp_path) -> None:
    """The last step of a row takes an arm of its own, from which LLVM leaves the loop: it has two exits, no vectors."""
    (tmp_path / "rows.dp").write_text(ROWS, encoding="utf-8")
    assert done([built(dpl, tmp_path / "rows.dp", tmp_path, "-O2")], tmp_path).stdout == "[0.0, 2.0, 4.0, 0.0]\n"


@pytest.mark.clock
def test_quick(dpl, tmp_path) -> None:
    hello = built(dpl, ROOT / "examples" / "hello.dp", tmp_path)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        assert done([hello], tmp_path).stdout == "Hello, world!\n"
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.01  # of which starting a process from Python takes most


def test_static(dpl, tmp_path) -> None:
    hello = built(dpl, ROOT / "examples" / "hello.dp", tmp_path, "--static")
    assert done([hello], tmp_path).stdout == "Hello, world!\n"
    if shutil.which("ldd"):
        assert "not a dynamic" in done(["ldd", hello], tmp_path, code=1).stderr


def test_character_network(dpl, tmp_path) -> None:
    """It trains as `dpl run` does."""
    file = ROOT / "examples" / "char_rnn.dp"
    text = written(tmp_path, "the quick brown fox jumps over the lazy dog. " * 40, "text.txt")
    network = built(dpl, file, tmp_path, "--cpu", "native")
    timings = re.compile(r"[\d.]+ s\b")
    out = timings.sub("", done([network, text, "300"], tmp_path).stdout)
    assert "loss" in out
    assert_same_output(out, timings.sub("", dpl("run", file, text, "300").stdout), rel=1e-6)


ODD = """
let rec depth n = if n = 0 then 0 else 1 + depth (n - 1)
let rec forever n = 1 + forever (n + 1)
let pick (a : int[?]) i = a[i]
do (match Sys.args with
  | ["deep";] -> print (depth 1000000)
  | ["endless";] -> print (forever 0)
  | ["index";] -> print_string "before "; print (pick [1, 2, 3] 5)
  | ["slice"; n] -> (match String.to_int n with Some n -> print [1, 2, 3][2:n] | None -> print "no number")
  | ["error";] -> error "so nicht: ü"
  | ["exit";] -> Sys.exit 7
  | ["file";] -> print (Data.read_text "/nowhere/at all")
  | ["divide"; n] -> (match String.to_int n with Some n -> print (1 / n) | None -> print "no number")
  | ["env";] -> print (Sys.env "DPL_TEST_NOTHING")
  | args -> print args)
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("odd")


@pytest.fixture
def program(dpl, odd) -> Path:
    return odd / "odd" if (odd / "odd").exists() else built(dpl, written(odd, ODD, "odd.dp"), odd)


def test_arguments(program, odd) -> None:
    assert done([program, "a b", "", "ü"], odd).stdout == '["a b"; ""; "ü"]\n'
    assert done([program], odd).stdout == "[]\n"
    assert done([program, "env"], odd).stdout == "None\n"
    assert done([program, "exit"], odd, code=7).stdout == ""


def test_deep_recursion(program, odd) -> None:
    assert done([program, "deep"], odd).stdout == "1000000\n"


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (["index"], "error[R0705]: index 5 is out of bounds for length 3"),
        (["slice", "1"], "error[R0705]: the slice 2:1 is out of bounds for length 3"),
        (["slice", "7"], "error[R0705]: the slice 2:7 is out of bounds for length 3"),
        (["error"], "error[R0706]: so nicht: ü"),
        (["file"], "error[R0506]: cannot read /nowhere/at all: No such file or directory"),
        (["divide", "0"], "error[R0701]: division by zero"),
    ],
    ids=lambda w: w[0] if isinstance(w, list) else "",
)
def test_failures(dpl, program, odd, words, title) -> None:
    """The message of `dpl run`, without the calls that led there."""
    run = done([program, *words], odd, code=1)
    assert run.stderr.startswith(f"{title}\n") and " odd.dp:" in run.stderr.replace(f"{odd}/", "") and "^" in run.stderr
    told = dpl("run", odd / "odd.dp", *words)
    assert told.stdout == run.stdout
    assert told.stderr.startswith(run.stderr.split("  :::")[0].rstrip("\n |"))
    assert ("= help: " in told.stderr) == ("= help: " in run.stderr)


def test_endless_recursion(program, odd) -> None:
    told = done(["env", "DPL_STACK=16", program, "endless"], odd, code=1).stderr
    assert "recursion is too deep" in told and "DPL_STACK chooses the stack" in told


@pytest.mark.parametrize(
    "setting", ["DPL_DEVICE=tpu", "DPL_DEVICE_LEAST=abc", "DPL_THREADS=0", "DPL_STACK=1e3", "DPL_STACK="]
)
def test_settings_that_mean_nothing(dpl, program, odd, setting: str) -> None:
    """They are refused in the words of the command, and with its code."""
    name, _, value = setting.partition("=")
    told = dpl("run", odd / "odd.dp", **{name: value})
    run = done(["env", setting, program], odd, code=told.returncode)
    assert run.returncode == (2 if value else 0) and run.stdout == told.stdout
    assert run.stderr.strip() == told.stderr.strip().rpartition("\n")[2]


def test_no_code_for_a_gpu(program, odd) -> None:
    """It is asked for in vain, with the code of the command; `auto` never is an error."""
    run = done(["env", "DPL_DEVICE=gpu", program, "a"], odd, code=1)
    assert run.stdout == "" and run.stderr.startswith("error[R0511]: this executable has no code for a GPU\n")
    for device in ("auto", "cpu"):
        assert done(["env", f"DPL_DEVICE={device}", program, "a"], odd).stdout == done([program, "a"], odd).stdout


def test_closed_output(program, odd) -> None:
    run = done(["sh", "-c", f"{program} a | true; echo done"], odd)
    assert run.stdout == "done\n"


def test_a_c_function(dpl, tmp_path) -> None:
    known = written(tmp_path, 'extern "cbrt" root : float -> float\ndo print (root 27.0)\n', "known.dp")
    assert done([built(dpl, known, tmp_path)], tmp_path).stdout == dpl("run", known).stdout
    unknown = written(tmp_path, 'extern "no_such_function" f : float -> float\ndo print (f 27.0)\n', "unknown.dp")
    failed(dpl("build", unknown, "-o", tmp_path / "u"), 1, "error[R0507]", "no_such_function", "unknown.dp:1")
    assert not (tmp_path / "u").exists()


@pytest.mark.parametrize("kind", ["llvm", "asm", "obj"])
def test_steps_in_between(dpl, tmp_path, kind) -> None:
    hello = ROOT / "examples" / "hello.dp"
    run = dpl("build", hello, "--emit", kind, cwd=tmp_path)
    assert run.returncode == 0
    made = tmp_path / run.stdout.strip()
    assert made.name == {"llvm": "hello.ll", "asm": "hello.s", "obj": "hello.o"}[kind]
    if kind != "llvm":
        done(["cc", made, "-o", "linked", "-lm"], tmp_path)
        assert done([tmp_path / "linked"], tmp_path).stdout == "Hello, world!\n"
    else:
        assert dpl("build", hello, "--emit", kind, "-o", "-").stdout == made.read_text()


def test_wishes_that_cannot_be(dpl, tmp_path) -> None:
    hello = ROOT / "examples" / "hello.dp"
    failed(dpl("build", hello, "--target", "vax"), 2, "there is no target `vax`", "aarch64-linux", "wasm32")
    failed(dpl("build", hello, "--cpu", "z80", cwd=tmp_path), 2, "there is no processor `z80`")
    failed(dpl("build", hello, "--cpu", "native", "--target", "aarch64-macos"), 2, "is another")
    failed(dpl("build", hello, "--lib", "--emit", "obj", "--target", "wasm32"), 2, "no shared libraries for wasm32")
    failed(dpl("build", hello, "-o", "/nowhere/x"), 1, "error[E0572]", "/nowhere/x", "no folder")
    failed(dpl("build", hello, "-o", tmp_path), 1, "error[E0572]", "is a folder")
    failed(dpl("build", tmp_path / "none.dp"), 1, "none.dp")
    failed(dpl("build", hello, "--emit", "pdf"), 2, "pdf")
    failed(dpl("build", hello, "-O", "3"), 2, "3 is not in the range 0<=x<=2")
    wrong = written(tmp_path, "do print (1 + true)\n", "wrong.dp")
    failed(dpl("build", wrong, "-o", tmp_path / "wrong"), 1, "error[E02", "wrong.dp:1")
    assert not (tmp_path / "wrong").exists()


def test_an_output_that_is_protected(dpl, tmp_path) -> None:
    """What is there stays whole when the linker fails."""
    old = written(tmp_path, "precious", "old")
    unknown = written(tmp_path, 'extern "no_such_function" f : float -> float\ndo print (f 27.0)\n')
    failed(dpl("build", unknown, "-o", old), 1, "error[R0507]")
    assert old.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.dp", "old"]


def test_no_linker(monkeypatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(link, "find_spec", lambda name: None)
    for target in (None, "x86_64-windows"):
        with pytest.raises(DplError, match=r"nothing links for.*`cc`.*`ziglang`") as told:
            link.linker(to_build(target, None))
        assert told.value.diagnostics[0].code == "E0571"
        assert "pip install 'dpl-lang[cross]'" in told.value.diagnostics[0].helps[0]


TRACED = """let rec total (xs : float[n]) i =
  if i = length xs then 0.0
  else
    let x = xs[i] in
    2.0 * x + total xs (i + 1)

let rec walk n =
  if n = 0 then 0
  else 1 + walk (n - 1)

let xs = [for i < List.length Sys.args + 4 -> float i]
do print (total xs 0)
do print (walk (length xs))
"""


def test_debugging(dpl, tmp_path) -> None:
    """gdb breaks on lines of the program, and shows arguments and calls."""
    program = built(dpl, written(tmp_path, TRACED, "traced.dp"), tmp_path, "-g")
    assert done([program], tmp_path).stdout == "12.0\n4\n"
    lines = done(["objdump", "--dwarf=decodedline", program], tmp_path).stdout
    assert {5, 9} <= {int(n) for n in re.findall(r"^traced\.dp +(\d+) ", lines, re.MULTILINE)}
    if shutil.which("gdb") is None:
        pytest.skip("there is no gdb")
    commands = ["break traced.dp:5", "run", "continue 3", "backtrace", "info args", "break walk if n == 2", "continue",
                "info args", "backtrace"]  # fmt: skip
    told = done(["gdb", "-q", "-batch", *(f"-ex={c}" for c in commands), program], tmp_path).stdout
    assert re.search(r"Breakpoint 1, total \(.*i=0.*\) at .*traced\.dp:5\n5\t +2\.0 \* x \+ total xs", told), told
    assert len(re.findall(r"#[0-3]  .*total \(.*\) at .*traced\.dp:5", told)) == 4 and "\ni = 3\n" in told, told
    assert "n = 2\n" in told and len(re.findall(r"#[012] .*walk \(n=.*\) at .*traced\.dp:\d", told)) == 3, told


LOCALS = """type model = { scale : float; bias : float }
type shape = Round of float | Long of float * float

let rec depth n =
  if n <= 0 then 0.0
  else
    let (q, r) = (n / 2, n % 2) in
    let y = depth q + float r in
    let y = y * 2.0 in
    y + 0.5

let rec area shapes sum =
  match shapes with
  | [] -> sum
  | Round r :: rest -> area rest (sum + r * r)
  | Long (wide, high) :: rest ->
    let own = wide * high in
    area rest (sum + own)

let fit xs p =
  let out = xs * p.scale + p.bias in
  let total = sum out in
  loop (a, b) = (total, 1.0) for step < length xs do
    let c = a * b in
    (b, c - out[step])

let n = List.length Sys.args + 4
let xs = [for i < n -> float (i * i)]
let p = { scale = float n; bias = 0.5 }
do print (depth n, area (Round (float n) :: List.map (fun h -> Long (3.0, h)) [float n;]) 1.0, fit xs p)
"""


@pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb")
def test_local_variables(dpl, tmp_path) -> None:
    """gdb shows what `let`, patterns and loops have bound where it stops, and nothing else by these names."""
    program = built(dpl, written(tmp_path, LOCALS, "locals.dp"), tmp_path, "-g", "-O0")

    def at(line: int, *commands: str, when: str = "") -> str:
        given = [f"tbreak locals.dp:{line}{when}", "run", *commands]
        return done(["gdb", "-q", "-batch", *(f"-ex={c}" for c in given), program], tmp_path).stdout

    told = at(8, "info args", "info locals")
    assert "\nn = 4\n" in told and "\nq = 2\n" in told and "\nr = 0\n" in told and "\ny = " not in told, told
    told = at(10, "info locals", "print y", "up", "print q")  # of depth 1: 0 + 1, twice
    assert re.search(r"\ny = 2\n(.*\n)*y = 1\n(.*\n)*r = 1\n", told) and "$1 = 2\n" in told and "$2 = 1\n" in told, told
    told = at(18, "info locals")
    assert "own = 12\n" in told and "wide = 3\n" in told and "high = 4\n" in told and "sum = 17\n" in told, told
    told = at(25, "info locals", "print *out.data@4", when=" if step == 2")
    assert "$1 = {0.5, 4.5, 16.5, 36.5}\n" in told and "step = 2\n" in told and "a = 57.5\n" in told, told


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
@pytest.mark.parametrize("name", ["rowless_sizes", "rowless_arrays", "rowless_matrices"])
def test_memory(dpl, tmp_path, name: str) -> None:
    """Arrays without rows, and derivatives through them, write nowhere but where they may, and leave nothing."""
    program = built(dpl, ROOT / "tests" / "agree" / "programs" / f"{name}.dp", tmp_path)
    run = done(["valgrind", "-q", "--leak-check=full", "--error-exitcode=9", program], tmp_path)
    assert "==" not in run.stderr, run.stderr


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
def test_profiling(dpl, tmp_path) -> None:
    """callgrind counts for lines of the program, in what was inlined too."""
    text = "let heavy x =\n  loop s = 0.0 for i < 2000 do\n    s + x * float i\n\ndo print (heavy 1.5)\n"
    program = built(dpl, written(tmp_path, text, "heavy.dp"), tmp_path, "-g")
    done(["valgrind", "--tool=callgrind", "--callgrind-out-file=out", program], tmp_path)
    told = done(["callgrind_annotate", "out", "heavy.dp"], tmp_path).stdout
    found = re.search(r"^ *([\d,]+) .*s \+ x \* float i", told, re.MULTILINE)
    assert found and int(found[1].replace(",", "")) >= 2000, told


def test_from_standard_input(dpl, tmp_path) -> None:
    assert dpl("build", "-", stdin="do print (1 + 1)\n", cwd=tmp_path).stdout == "program\n"
    assert done([tmp_path / "program"], tmp_path).stdout == "2\n"


def test_stripped(dpl, tmp_path) -> None:
    program = built(dpl, ROOT / "examples" / "hello.dp", tmp_path)
    assert "no symbols" in done(["nm", program], tmp_path).stderr


FACTORED = """
let a = [for i < 12, j < 12 -> if i = j then 9.0 else sin (float (i * j))]
let (w, _) = Linalg.eigh (a + transpose a)
do print (Linalg.solve a [for i < 12 -> float i], w, Linalg.det a)
"""


@pytest.mark.parametrize("library", ["", "openblas", "lapack"])
def test_linear_algebra(dpl, tmp_path, library) -> None:
    """By algorithms of DPL's own, or by a LAPACK that it is linked with."""
    if (
        library
        and done(["sh", "-c", f"echo 'int main(){{}}' | cc -xc - -l{library} -o t; echo $?"], tmp_path).stdout != "0\n"
    ):
        pytest.skip(f"there is no lib{library} to link with")
    file = written(tmp_path, FACTORED)
    program = built(dpl, file, tmp_path, *(["-l", library] if library else []))
    assert_same_output(done([program], tmp_path).stdout, dpl("run", file).stdout)
