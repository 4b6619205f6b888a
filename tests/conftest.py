"""What all tests share: running the command as a user does, comparing output, and blessing golden transcripts."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import dplc  # noqa: F401 (the system is the host of the language in all tests)
import pytest
from forks import COLLECT_AFTER, Forks
from hypothesis import settings

# Every run draws the same examples: a failure is due to a change.  `test_random_programs.py` has seeds for others.
settings.register_profile("same", derandomize=True, database=None)
settings.load_profile("same")

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"  # more material, used when it is there

# Native code of long programs: as it is, and in the long run as LLVM optimises it, which takes longer than all else.
EFFORTS = pytest.mark.parametrize("effort", ["-O0", pytest.param("-O2", marks=pytest.mark.slow)])
ENGINES = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(("interp",), id="interp"),
        pytest.param(("native", "-O0"), id="native"),
        pytest.param(("native", "-O2"), id="optimised", marks=pytest.mark.slow),
    ],
)


def one_in(every: int, items: Iterable[object]) -> list[object]:
    """One in so many, for the quick run; the long run has them all."""
    return [item if i % every == 0 else pytest.param(item, marks=pytest.mark.slow) for i, item in enumerate(items)]


# Files of tests that take many seconds each.
LONG = (
    "tests/doubt", "tests/test_house", "tests/unit/tools/test_repl", "tests/agree/test_jets", "tests/cost",
    "tests/outside/test_executables",
)  # fmt: skip

NUMBER = re.compile(r"(?<![\w.])-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan)(?![\w])")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite golden transcripts with what comes out now")


def pytest_configure() -> None:
    """The program is verified after every stage of every compilation, in these processes and in those of `dpl`, which
    begins no program in the interpreter.  Python may keep bytecode: hundreds of processes import the same modules.  And
    signals that whoever started the tests ignores, as `nohup` does, would be ignored by the programs under test."""
    os.environ.setdefault("DPL_CHECK", "1")
    os.environ.setdefault("DPL_INTERPRET", "0")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    gc.set_threshold(*COLLECT_AFTER)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first, so that no process waits for another at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_collection_finish() -> None:
    """What is there before the first test stays: to look for garbage in it took a tenth of all time."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """At the end pytest searches for garbage once more: not in all that a process leaves behind, which took seconds."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder of the tests' own, shared by all their processes, so that no run depends on what lies about, and
    the runtime library is compiled once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "dpl-cache"
    os.environ["DPL_CACHE"] = str(folder)
    return folder


@pytest.fixture
def fresh_heap() -> None:
    """For tests that look for garbage: only in what they make, as a second would be needed to search all that is left
    of a thousand tests before."""
    gc.freeze()


def environment() -> dict[str, str]:
    """That of the command under test."""
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "PYTHONPATH": f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}",
        "DPL_OPTIMISE": "never",  # no test leaves a process behind
        "PYTHONIOENCODING": "utf-8",
    }


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    made = Forks(environment())
    yield made
    made.close()


@pytest.fixture
def dpl(forks: Forks):
    """`dpl(*args)` runs the command in another process.  What Python itself is told in the environment needs a process
    from the start; all else is forked from one that has everything imported."""

    def run(*args: str | Path, stdin: str = "", timeout: float = 120, cwd: Path = ROOT, **env: str):
        given = environment() | env
        words = [str(arg) for arg in args]
        if not any(name.startswith("PYTHON") for name in env):
            return forks.run(words, stdin, timeout, cwd, given)
        return subprocess.run(
            [sys.executable, "-m", "dplc.cli", *words],
            input=stdin, capture_output=True, encoding="utf-8", timeout=timeout, cwd=cwd, env=given,
        )  # fmt: skip

    return run


def assert_same_output(got: str, want: str, rel: float = 1e-9) -> None:
    """Equal texts, except that numbers may differ by a little."""
    assert NUMBER.sub("#", got) == NUMBER.sub("#", want), f"got:\n{got}\nwant:\n{want}"
    for a, b in zip(map(float, NUMBER.findall(got)), map(float, NUMBER.findall(want)), strict=True):
        assert a == b or (a != a and b != b) or abs(a - b) <= rel * max(abs(a), abs(b), 1.0), f"{a} for {b} in\n{got}"


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """`golden(path, text)` compares with the transcript at `path`, or writes it under --bless."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--bless"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no transcript {path}; write it with  pytest --bless"
        assert text == path.read_text(encoding="utf-8")

    return compare
