"""`dpl.load`: a program's exports as functions of Python."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
import time

import dpl as package
import numpy as np
import pytest
from building import written
from conftest import ROOT

MODEL = """
-- | A line with slope and offset.
type line = { w : float; b : float }
type (n, m) layer = { weights : f32[m, n]; bias : f32[m] }
type row = { items : float[?] }
-- | Mean squared error.
export let loss (p : line) (xs : float[n]) (ys : float[n]) : float = mean ((p.w * xs + p.b - ys) ** 2)
export let apply (l : (n, m) layer) (x : f32[n]) : f32[m] = l.weights @ x + l.bias
export let same (x : float[n, m]) : float[n, m] = x
export let add (x : float[3]) : float[3] = x + [1.0, 2.0, 3.0]
export let filled (n : int) : float[?] = fill n 1.5
export let mixed ((a, b) : float * i8) : i8 * float * bool = (b, a, a > 1.0)
export let greet (name : string) : string = "hello " ++ name
export let half (x : f16) : f16 = x / 2.0
export let nothing () : unit = ()
export let doubled (r : row) : row = { items = 2.0 * r.items }
export let depth (n : int) : int = let rec go n = if n = 0 then 0 else 1 + go (n - 1) in go n
export let spin (n : int) : float = loop s = 0.0 for i < n do s + sin (float i)
export let constant : float[3] = [1.0, 2.0, 3.0]
let rec grown (c : float) (n : int) : float = if n = 0 then c else grown c (n - 1) * 0.5 + grown c (n - 1)
export let grown_from (c : float) (n : int) : float = grown c n
export let grown_from_two (n : int) : float = grown 2.0 n
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory, cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPL_CACHE", str(cache))
        yield package.load(written(tmp_path_factory.mktemp("load"), MODEL))


X = np.array([0.0, 1.0, 2.0])
Y = np.array([1.0, 3.0, 5.0])


def test_values_in_and_out(model) -> None:
    assert model.loss({"w": 1, "b": 1.0}, X, Y) == pytest.approx(5 / 3)
    layer = {"weights": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": [10, 20]}
    out = model.apply(layer, [1, 1, 1])
    assert out.dtype == np.float32 and out.tolist() == [13, 32]
    assert model.mixed((1.5, -3)) == (-3, 1.5, True)
    assert model.greet("Wörld\0!") == "hello Wörld\0!"
    assert model.half(3) == 1.5 and model.half(np.float16(0.1)) == float(np.float16(0.05))
    assert model.nothing() is None
    assert model.grown_from(3.0, 2) == 6.75 and model.grown_from_two(2) == 4.5
    assert model.constant.tolist() == [1, 2, 3] and model.constant is model.constant
    assert model.filled(0).shape == (0,) and model.filled(3).tolist() == [1.5] * 3
    assert model.depth(1_000_000) == 1_000_000


def test_records_are_named_tuples(model) -> None:
    gradient = model.grad("loss")({"w": 1.0, "b": 1.0}, X, Y)
    assert type(gradient).__name__ == "line" and gradient._fields == ("w", "b")
    assert gradient == pytest.approx((-10 / 3, -2.0))
    assert model.loss(gradient, X, Y) == pytest.approx(float(np.mean((gradient.w * X + gradient.b - Y) ** 2)))
    assert model.doubled({"items": X}).items.tolist() == [0.0, 2.0, 4.0]


def test_derivatives(model) -> None:
    p = {"w": 1.0, "b": 1.0}
    residual = X + 1 - Y
    assert model.grad("loss", "ys")(p, X, Y) == pytest.approx(-2 / 3 * residual)
    assert model.grad("loss", 1)(p, X, Y) == pytest.approx(2 / 3 * residual)
    value, slope = model.value_and_grad("loss")(p, xs=X, ys=Y)
    assert value == pytest.approx(5 / 3) and slope.b == pytest.approx(-2.0)
    assert model.grad("loss") is model.grad("loss")
    assert str(inspect.signature(model.grad("loss"))) == "(p: 'line', xs: 'float[n]', ys: 'float[n]') -> 'line'"
    for wrong in ("zs", 3, -1):
        with pytest.raises(
            AttributeError, match=f"^loss has no argument {wrong!r} to .*; its arguments are p, xs, ys$"
        ):
            model.grad("loss", wrong)
    with pytest.raises(AttributeError, match="no function `lost`"):
        model.grad("lost")
    with pytest.raises(package.Error, match=r"E04\d\d|E02\d\d"):
        model.grad("depth")


def test_documentation(model) -> None:
    assert str(inspect.signature(model.loss)) == "(p: 'line', xs: 'float[n]', ys: 'float[n]') -> 'float'"
    assert (
        inspect.getdoc(model.loss) == "loss (p : line) (xs : float[n]) (ys : float[n]) : float\n\nMean squared error."
    )
    assert repr(model.loss) == "<DPL function loss (p : line) (xs : float[n]) (ys : float[n]) : float>"
    assert {"loss", "constant"} <= set(dir(model)) and "loss" in repr(model)


def test_no_copies(model) -> None:
    big = np.zeros((1000, 1000))
    out = model.same(big)  # what comes out is DPL's own, so that nobody changes what others see
    out[0, 0] = 1.0
    assert big[0, 0] == 0.0 and out.flags.writeable and out.flags.c_contiguous
    for layout in (np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(12.0).reshape(2, 6)[:, ::2]):
        assert model.same(layout).tolist() == layout.tolist()
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert model.add(frozen).tolist() == [2, 3, 4]
    unaligned = np.frombuffer(b"\0" + np.ones(3).tobytes(), np.uint8)[1:].view(np.float64)
    assert model.add(unaligned).tolist() == [2, 3, 4]
    assert model.add(np.ones(3, ">f8")).tolist() == [2, 3, 4]


def test_other_arrays(model) -> None:
    class Array:
        def __init__(self, way: str) -> None:
            self.way = way

        def __getattr__(self, name: str):
            if name == self.way:
                return getattr(np.ones(3), name)
            raise AttributeError(name)

    class Package(Array):
        def __dlpack__(self, **more):
            return np.ones(3).__dlpack__(**more)

        def __dlpack_device__(self):
            return np.ones(3).__dlpack_device__()

    class Old(Array):
        def __array__(self, dtype=None, copy=None):
            return np.ones(3)

    for other in (Package(""), Old(""), (1, 1, 1), range(1, 2)):
        if isinstance(other, range):
            with pytest.raises(package.Error, match=r"R0703.*size of `x` of add: 1 is not 3"):
                model.add(other)
        else:
            assert model.add(other).tolist() == [2, 3, 4]


def test_lengths_that_types_tell_are_asked_of_the_caller(tmp_path) -> None:
    """Code may rely on them, so they must be true: the sides of a square, a constant, in pairs and records, too."""
    text = """
export let corner (u : float[n, n]) : float = u[n - 1, 0]
export let moved ((u, v) : float[n, n] * float[n]) : float = sum (u @ v)
export let fixed (u : float[2, 2]) : float = u[1, 1]
"""
    model, ones = package.load(written(tmp_path, text)), np.ones
    assert (model.corner(ones((3, 3))), model.moved((ones((2, 2)), ones(2))), model.fixed(ones((2, 2)))) == (1, 4, 1)
    for shape in ((2, 3), (3, 2)):
        for call, more in ((model.corner, ()), (model.moved, (ones(3),)), (model.fixed, ())):
            with pytest.raises(package.Error, match="R0703"):
                call((ones(shape), *more) if more else ones(shape))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.loss({"w": 1, "b": 1}, X, Y[:2]), "R0703.*size n of `ys`: 2 is not 3"),
        (lambda m: m.greet("\ud800"), r"R0508.*`\w+` of greet is string, not '\\ud800': U\+D800 at 0 is no character"),
        (lambda m: m.add(np.arange(3)), r"R0508.*`x` of add is float\[3\], not int\[3\]"),
        (lambda m: m.add(np.ones((3, 1))), r"not float\[3, 1\]"),
        (lambda m: m.add(np.ones(3, np.float32)), r"not f32\[3\]"),
        (lambda m: m.add("abc"), "not"),
        (lambda m: m.add([1, "x", 2]), "not"),
        (lambda m: m.add([[1, 2], [3]]), "not a list"),
        (lambda m: m.add(None), "not"),
        (lambda m: m.loss(1.0, X, Y), "`p` of loss is line, not 1.0"),
        (lambda m: m.loss({"w": "a", "b": 1}, X, Y), "`w` of `p` of loss is float, not 'a'"),
        (lambda m: m.loss({"w": 1}, X, Y), "`p` of loss is line, not a dict without `b`"),
        (lambda m: m.loss({"w": 1, "b": 2, "c": 3}, X, Y), "not a dict with `c` besides"),
        (lambda m: m.loss(X), "missing a required argument: 'xs'"),
        (lambda m: m.loss(1, 2, 3, 4), "too many"),
        (lambda m: m.mixed((1.0, 200)), "too large"),
        (lambda m: m.mixed((1.0,)), "not a tuple"),
        (lambda m: m.filled(True), "is int, not True"),
        (lambda m: m.filled(2.5), "is int, not 2.5"),
        (lambda m: m.filled(1 << 70), "too large"),
        (lambda m: m.filled(-1), "R0702.*-1"),
        (lambda m: m.greet(b"x"), r"is string.*name\.decode\(\)"),
        (lambda m: m.greet("a\ud800"), "R0508.*U.D800 at 1"),
        (lambda m: m.greet("a\udcff"), "R0508.*U.DCFF at 1"),
        (lambda m: m.add(np.ones(3, np.float32)), r"help: convert it:  x\.astype\(np\.float64\)"),
        (lambda m: m.add(np.ones(3, object)), r"not object\[3\].*x\.astype\(np\.float64\)"),
        (lambda m: m.add(np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])), r"masked.*x\.filled\(0\)"),
        (lambda m: m.add(np.ones((1, 3))), r"leave out a dimension:  x\.squeeze\(0\)"),
        (lambda m: m.add(np.ones((2, 3))), r"x\.ravel\(\)"),
        (lambda m: m.same(np.ones(3)), r"x\[np\.newaxis, :\]"),
        (lambda m: m.apply({"weights": np.ones((2, 3)), "bias": [1, 2]}, X), r"weights\.astype\(np\.float32\)"),
        (lambda m: m.filled(np.ones(1)), r"n\.item\(\)"),
        (lambda m: m.filled(2.0), r"int\(n\)"),
    ],
)
def test_wrong_arguments(model, call, words) -> None:
    with pytest.raises(package.Error, match=f"(?s){words}"):
        call(model)
    assert model.add(np.zeros(3)).tolist() == [1, 2, 3]


def test_threads_run_at_once(model) -> None:
    """Python's lock is released while DPL computes, and calls do not wait for each other."""
    order: list[str] = []
    worker = threading.Thread(target=lambda: (model.spin(5_000_000), order.append("slow")))
    worker.start()
    time.sleep(0.05)
    assert model.add(np.zeros(3)).tolist() == [1, 2, 3]
    order.append("quick")
    worker.join()
    assert order == ["quick", "slow"]

    wrong: list[object] = []

    def work(b: float) -> None:
        for _ in range(300):
            if abs(model.loss({"w": 2.0, "b": b}, X, Y) - (b - 1) ** 2) > 1e-12:
                wrong.append(b)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_state_is_one(tmp_path, cache, monkeypatch) -> None:
    """Calls of a program that keeps state take turns."""
    monkeypatch.setenv("DPL_CACHE", str(cache))
    text = "let calls = ref 0\nexport let count () : int = calls := !calls + 1; !calls\n"
    counter = package.load(written(tmp_path, text))
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.extend(counter.count() for _ in range(100))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(1, 401))


def test_one_program_is_there_once(tmp_path, cache, monkeypatch) -> None:
    """Models of one file share its code, unless it keeps state; what changed is another program."""
    monkeypatch.setenv("DPL_CACHE", str(cache))
    file = written(tmp_path, "export let twice (x : float) : float = 2.0 * x\n")
    first, second = package.load(file), package.load(file)
    assert first.twice is second.twice and first.grad("twice") is second.grad("twice")
    written(tmp_path, "export let twice (x : float) : float = x + x\n")
    assert package.load(file).twice is not first.twice
    counts = written(tmp_path, "let calls = ref 0\nexport let count () : int = calls := !calls + 1; !calls\n", "c.dp")
    first, second = package.load(counts), package.load(counts)
    assert [first.count(), first.count(), second.count()] == [1, 2, 1]


LOADING = """
import dpl, gc, pathlib, sys
def pages():
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1])
def load():
    return dpl.load(sys.argv[1]).count()
load(), gc.collect(), gc.freeze()  # the compiler that the first load needed is not searched at each one
used = [load() and pages() for _ in range(40)]
print((used[-1] - used[5]) * 4)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says how much memory is used")
def test_programs_go_with_their_models(tmp_path, cache) -> None:
    file = written(tmp_path, "let calls = ref 0\nexport let count () : int = calls := !calls + 1; !calls\n")
    environment = {**os.environ, "DPL_CACHE": str(cache),
                   "PYTHONPATH": f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}"}  # fmt: skip
    run = subprocess.run([sys.executable, "-c", LOADING, file], env=environment, capture_output=True, text=True,
                         timeout=60, check=False)  # fmt: skip
    assert run.returncode == 0 and int(run.stdout) < 10_000, (run.stdout, run.stderr)  # kilobytes; 70,000 are too many


def test_linear_algebra(tmp_path, cache, monkeypatch) -> None:
    """By NumPy's LAPACK, as everywhere."""
    monkeypatch.setenv("DPL_CACHE", str(cache))
    text = "export let solved (a : float[n, n]) (b : float[n]) : float[n] = Linalg.solve a b\n"
    a, b = np.array([[4.0, 1.0], [2.0, 3.0]]), np.array([1.0, 2.0])
    assert package.load(written(tmp_path, text)).solved(a, b) == pytest.approx(np.linalg.solve(a, b))


ROWLESS = """
let none (x : float[n, m]) : float[?, m] = filter (fun _ -> false) x
export let keep (x : float[n, m]) : float[?, m] = none x
export let total (x : float[n, m]) : float[m] = sum x
export let slope (x : float[n, m]) : float[n, m] = grad (fun x -> sum (sum (x * x)) + sum (sum (none x ++ x))) x
export let twice (x : float[n, m]) : float[n, 2, m] = map (fun r -> [r, r]) x
export let product (x : float[n, k]) (y : float[k, m]) : float[n, m] = x @ y
"""


def test_arrays_without_rows(tmp_path, cache, monkeypatch) -> None:
    """They go in and come out with their inner sizes."""
    monkeypatch.setenv("DPL_CACHE", str(cache))
    model = package.load(written(tmp_path, ROWLESS, "rowless.dp"))
    wide, tall = np.zeros((0, 5)), np.zeros((4, 0))
    assert model.keep(wide).shape == (0, 5) and model.keep(np.ones((3, 2))).shape == (0, 2)
    assert model.total(wide).tolist() == [0.0] * 5 and model.total(tall).tolist() == []
    assert model.slope(wide).shape == (0, 5) and model.slope(tall).shape == (4, 0)
    assert model.slope(np.ones((1, 2))).tolist() == [[3.0, 3.0]]
    assert model.twice(wide).shape == (0, 2, 5) and model.product(tall, wide).tolist() == [[0.0] * 5] * 4


def test_memory_comes_back(model) -> None:
    import resource

    def grown(times: int) -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(times):
            model.filled(1_000_000)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    grown(5)
    assert grown(100) < 40_000  # kilobytes; 100 results would take 800,000


def test_programs_with_errors(tmp_path, cache, monkeypatch) -> None:
    monkeypatch.setenv("DPL_CACHE", str(cache))
    with pytest.raises(package.Error, match=r"(?s)E0201.*wrong.dp:1"):
        package.load(written(tmp_path, "let x : int = 1.5\n", "wrong.dp"))
    with pytest.raises(package.Error, match="exports nothing"):
        package.load(written(tmp_path, "let x = 1\n", "empty.dp"))
    unknown = 'extern "no_such_function" f : float -> float\nexport let g (x : float) : float = f x\n'
    with pytest.raises(package.Error, match=r"R0507.*`no_such_function`"):
        package.load(written(tmp_path, unknown, "unknown.dp"))
    with pytest.raises(package.Error, match=r"none.dp"):
        package.load(tmp_path / "none.dp")
    failing = package.load(written(tmp_path, 'export let x : int = error "never"\n', "failing.dp"))
    with pytest.raises(package.Error, match=r"(?s)R0706\]: never.*failing.dp:1"):
        _ = failing.x


def test_what_changed_is_compiled_again(tmp_path, cache, monkeypatch) -> None:
    monkeypatch.setenv("DPL_CACHE", str(cache))
    written(tmp_path, "let k = 1\n", "part.dp")
    file = written(tmp_path, 'import "part.dp" as Part\nexport let f (x : int) : int = x + Part.k\n')
    assert package.load(file).f(1) == 2 and package.load(file).f(1) == 2
    written(tmp_path, "let k = 2\n", "part.dp")
    assert package.load(file).f(1) == 3


def test_training(cache) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "embed" / "train.py")], capture_output=True, text=True, timeout=120,
        env={**os.environ, "DPL_CACHE": str(cache), "PYTHONPATH": f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    lines = run.stdout.split("\n")
    assert float(lines[0].split()[-1]) > 1.0 and float(lines[4].split()[-1]) < 0.005
    assert "learnt: -0.9" in lines[5] and lines[7] == "error[R0703]: size m of `ys`: 10 is not 64"


NAMED = """
type point = { class : float; _hidden : float; count : int }
export let same (p : point) : point = p
export let double (lambda : float) : float = 2.0 * lambda
export let free (message : float) : float = message
export let many (x : float) (y : float[n]) : point * float[n] = ({ class = x; _hidden = x; count = n }, y)
"""


def test_names_that_are_words_elsewhere(tmp_path, cache, monkeypatch) -> None:
    monkeypatch.setenv("DPL_CACHE", str(cache))
    model = package.load(written(tmp_path, NAMED))
    assert model.double(lambda_=2.0) == 4.0 == model.double(2.0) and model.free(message=1.0) == 1.0
    assert model.same({"class_": 1, "_hidden": 2.0, "count": 3}) == (1.0, 2.0, 3)
    assert model.grad("double")(1.0) == 2.0
    with pytest.raises(package.Error, match="`def` cannot be exported to Python"):
        package.load(written(tmp_path, "export let def (x : float) : float = x\n", "word.dp"))


def test_records_can_be_kept(tmp_path, cache, monkeypatch) -> None:
    """Pickled and copied; their class is the model's, whichever model of it."""
    monkeypatch.setenv("DPL_CACHE", str(cache))
    file = written(tmp_path, NAMED)
    model = package.load(file)
    point, array = model.many(1.0, X)
    for again in (pickle.loads(pickle.dumps((point, array))), copy.deepcopy((point, array))):
        assert again[0] == point and type(again[0]) is model.point and again[1].tolist() == X.tolist()
        assert model.same(again[0]) == point
    assert copy.copy(point) == point and "point" in dir(model)
    assert isinstance(package.load(file).same(point), model.point)
    code = f"import pickle; print(pickle.loads({pickle.dumps(point)!r}))"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "point(class_=1.0, _1=1.0, count=3)\n", run.stderr


NESTED = """
type inner = { flag : bool; small : i8; scale : f32 }
type 'a box = { content : 'a; count : i32 }
type outer = { on : bool; first : inner; pair : i16 * float; name : string; rest : inner box; xs : f16[2] }
export let turned (o : outer) : outer =
  { on = not o.on; first = o.rest.content; pair = (let (a, b) = o.pair in (a + 1, b / 2.0)); name = o.name ++ "!";
    rest = { content = o.first; count = 0 - o.rest.count }; xs = reverse o.xs }
export let wide (x : i64[n, m]) (k : u64) : i64[n, m] * u64 = (x, k + 1)
"""


def test_nested_records(tmp_path, cache, monkeypatch) -> None:
    monkeypatch.setenv("DPL_CACHE", str(cache))
    model = package.load(written(tmp_path, NESTED))
    one, two = {"flag": True, "small": -1, "scale": 0.5}, {"flag": False, "small": 7, "scale": 2.0}
    rest = {"content": two, "count": 5}
    given = {"on": True, "first": one, "pair": (3, 1.0), "name": "ö", "rest": rest, "xs": np.array([1, 2], "f2")}
    for _ in range(2):
        made = model.turned(given)
        assert not made.on and made.first == (False, 7, 2.0) and made.pair == (4, 0.5) and made.name == "ö!"
        assert made.rest.content == (True, -1, 0.5) and made.rest.count == -5 and made.xs.tolist() == [2, 1]
    assert model.turned(made).name == "ö!!"
    x, k = model.wide(np.arange(6).reshape(2, 3), (1 << 64) - 2)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and k == (1 << 64) - 1
    assert model.wide(np.empty((0, 3), np.int64), 0)[0].shape == (0, 3)


def test_arrays_outlive_their_module(tmp_path, cache) -> None:
    """Also where both go at once.  A process of its own, as what was wrong would end it."""
    written(tmp_path, "export let twice (x : float[n]) : float[n] = x * 2.0\n")
    script = (
        "import dpl, gc, sys\n"
        "for both in (False, True) * 3:\n"
        "    model = dpl.load(sys.argv[1])\n"
        "    y = model.twice([1.0] * 1000)\n"
        "    if both: model.kept = (model, y)\n"
        "    else: assert (gc.collect() if globals().pop('model') else 0) >= 0 and y.sum() == 2000.0\n"
        "    y = model = None\n"
        "    gc.collect()\n"
    )
    path = f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}"
    environment = {**os.environ, "PYTHONPATH": path, "DPL_CACHE": str(cache)}
    command = [sys.executable, "-c", script, next(tmp_path.glob("*.dp"))]
    assert subprocess.run(command, env=environment, timeout=60, check=False).returncode == 0
