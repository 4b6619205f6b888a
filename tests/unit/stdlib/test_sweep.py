"""Every public function of the library: its value in both engines; its derivatives of first and second order, in both
modes, with respect to all floats of its arguments; and these beside differences (`sweep/head.dp`).

A file of `sweep/` has the rows of some modules; `edges.dp` has values and slopes at the ends of what functions take,
`mended.dp` those that were wrong once, `refused.dp` what is an error.  The rows of functions that take any floats run
in single precision, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ENGINES, ROOT, assert_same_output
from test_references import PUBLIC

SWEEP = Path(__file__).parent / "sweep"
OTHERS = ("head", "edges", "mended", "refused")
FILES = sorted(path.stem for path in SWEEP.glob("*.dp") if path.stem not in OTHERS)
ROW = re.compile(r'"([A-Z]\w*)\.([a-z]\w*\'*)"')
MODULES = sorted(path.stem for path in (ROOT / "stdlib").glob("*.dp"))
SINGLE = ("containers", "linalg", "nn", "sparse", "special", "stats", "tables")
INTERPRETED = {"trace"}  # native code does not record a sweep
DOUBLE = {  # arguments in f64, whatever the data; the size of a file
    *("Ad.check_grad", "Nn.dropout", "Tree.axpy", "Tree.clip_norm", "Tree.fold", "Tree.map2", "Tree.scale"),
    *("Tree.load", "Tree.save", "Tree.unflatten", "Vi.draws", "Vi.draws_full"),
}
DECIMAL = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.])")
CONSTANT = re.compile(r"\b(inf|nan|pi)\b(?![\"])")
NO_ROWS = {
    *("inf", "nan", "pi", "max_int", "min_int", "of_int", "of_float"),  # constants and conversions
    *("ignore", "any", "all"),  # no floats
    *("exit", "send", "receive"),  # they end the program, or want several ranks: refused.dp, test_mpi.py
}


def rows() -> set[tuple[str, str]]:
    return {row for name in FILES for row in ROW.findall((SWEEP / f"{name}.dp").read_text())}


@pytest.mark.parametrize("module", MODULES)
def test_every_function_has_a_row(module: str) -> None:
    swept = {name for of, name in rows() if of == module.title()}
    names = set(PUBLIC.findall((ROOT / "stdlib" / f"{module}.dp").read_text()))
    assert names - swept <= NO_ROWS, "rows are missing in tests/unit/stdlib/sweep"


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_sweep(dpl, name: str, tmp_path: Path) -> None:
    """Both engines find no difference between the ways to a derivative, and print the same values.  Files that a
    program writes are in a folder of its own."""
    text = (SWEEP / "head.dp").read_text() + (SWEEP / f"{name}.dp").read_text()
    printed = []
    engines = (("interp",), ("native", "-O0"))
    for engine in engines[:1] if name in INTERPRETED else engines:
        run = dpl("run", "--engine", *engine, "-", stdin=text, cwd=tmp_path, timeout=900)
        assert run.returncode == 0, run.stderr
        assert not re.findall("^WRONG.*", run.stdout, re.MULTILINE)
        printed.append(run.stdout)
    assert_same_output(printed[0], printed[-1], rel=1e-12)


def single(rows: str) -> str:
    """The same rows in f32."""
    return CONSTANT.sub(r"(f32 \1)", re.sub(r"\bfloat\b", "f32", DECIMAL.sub(r"\1f32", rows)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SINGLE)
def test_single_precision(dpl, name: str, tmp_path: Path) -> None:
    """The values are near to those in f64, in both engines, and derivatives in both modes are near to each other."""
    parts = re.split(r"^(?=\S)", (SWEEP / f"{name}.dp").read_text(), flags=re.MULTILINE)
    rows = "".join(part for part in parts if not {".".join(row) for row in ROW.findall(part)} & DOUBLE)
    head = (SWEEP / "head.dp").read_text()
    coarse = head.replace("let exact = true", "let exact = false")
    want = dpl("run", "--engine", "interp", "-", stdin=head + rows, cwd=tmp_path).stdout
    for engine in (("interp",), ("native", "-O0")):
        run = dpl("run", "--engine", *engine, "-", stdin=coarse + single(rows), cwd=tmp_path, timeout=900)
        assert run.returncode == 0, run.stderr
        assert not re.findall("^WRONG.*", run.stdout, re.MULTILINE)
        assert_same_output(run.stdout, want, rel=3e-4)


@ENGINES
@pytest.mark.parametrize("name", ["mended", pytest.param("edges", marks=pytest.mark.slow)])
def test_edges(dpl, engine: tuple[str, ...], name: str) -> None:
    """At the ends of what functions take, and outside of it."""
    run = dpl("run", "--engine", *engine, str(SWEEP / f"{name}.dp"), timeout=600)
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, (SWEEP / f"{name}.out").read_text(), rel=1e-12)


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(("--engine", "interp", "-k", "Mcmc"), id="some"),
        pytest.param(("--engine", "interp"), id="interp", marks=pytest.mark.slow),
        pytest.param(("--engine", "native"), id="native", marks=pytest.mark.slow),
    ],
)
def test_refusals(dpl, chosen: tuple[str, ...]) -> None:
    """Each test of the file fails, with the error after which it is called."""
    run = dpl("test", *chosen, str(SWEEP / "refused.dp"), timeout=600)
    told = re.findall(r"^  FAIL (.*)\n\s+error\[\w+\]: (.*)$", run.stdout, re.MULTILINE)
    assert f"\n0 passed, {len(told)} failed" in run.stdout and told, run.stdout
    assert not [pair for pair in told if pair[0] not in pair[1]]
