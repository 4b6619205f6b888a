"""Shows that a change is neutral: flat and LLVM of every program of the repository, at two commits.

    python tests/replay.py HEAD~3            this commit and uncommitted changes beside an older commit
    python tests/replay.py v0.1 main         two commits

It prints the programs whose dumps differ, the first differing lines, and the lines of LLVM in all.  A change that
should change no behaviour must show no difference.  The exit code is 1 if there is one.

Each commit runs in a checkout and a process of its own; programs are dumped in forks of it, so that none sees what
another left.  Programs that a commit refuses are compared by their messages.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NUMBER = re.compile(r"(?<=[A-Za-z_])\.[0-9]+\b")  # of a name, `x.12`; numbers have digits before the point
ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("examples", "benchmarks", "tests")


def programs() -> list[str]:
    return sorted(str(p.relative_to(ROOT)) for folder in FOLDERS for p in (ROOT / folder).rglob("*.dp"))


def dump(program: str, to: Path) -> None:
    """Writes the last flat and the LLVM text of a program, or what is said against it."""
    from dpl.diagnostics import DplError
    from dpl.source import Source
    from dplc.pipeline import NAMES, Context, compile_from, compile_to

    last_flat = NAMES[NAMES.index("llvm") - 1]
    name = program.replace("/", "-")
    try:
        path = ROOT / program
        stage, value = compile_to(last_flat, Source(str(path), path.read_text(encoding="utf-8")), context := Context())
        (to / f"{name}.flat").write_text(stage.show(value))
        stage, value = compile_from(last_flat, value, "llvm", context)
        (to / f"{name}.llvm").write_text(stage.show(value))
    except DplError as error:
        (to / f"{name}.error").write_text(str(error))
    except Exception as error:
        (to / f"{name}.error").write_text(f"{type(error).__name__}: {error}")


def dump_all(to: Path, workers: int) -> None:
    """Runs in a checkout's own code: forks for each program, several at a time."""
    import threading

    threading.stack_size(512 * 1024 * 1024)
    sys.setrecursionlimit(1_000_000)
    dump("examples/hello.dp", to)  # so that forks find everything imported
    running = 0
    for program in programs():
        if running == workers:
            os.wait()
            running -= 1
        if os.fork() == 0:
            work = threading.Thread(target=dump, args=(program, to))
            work.start()
            work.join()
            os._exit(0)
        running += 1
    while running:
        os.wait()
        running -= 1


def checkout(commit: str | None, folder: Path) -> Path:
    """Where the code of a commit is: a worktree, or this folder as it stands."""
    if commit is None:
        return ROOT
    place = folder / commit.replace("/", "-")
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(place), commit], cwd=ROOT, check=True)
    return place


def record(commit: str | None, folder: Path, workers: int) -> dict[str, str]:
    code = checkout(commit, folder)
    to = folder / f"dumps of {commit or 'this'}"
    to.mkdir()
    paths = os.pathsep.join((str(code / "lang"), str(code / "compiler")))
    env = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0", "DPL_CACHE": str(folder / f"cache {to.name}")}
    command = [sys.executable, "-S", "-c", WORKER, str(Path(__file__)), str(to), str(workers), *sys.path]
    try:
        subprocess.run(command, env=env, check=True)
    finally:
        if commit is not None:
            subprocess.run(["git", "worktree", "remove", "--force", str(code)], cwd=ROOT, check=True)
    return {path.name: path.read_text() for path in sorted(to.iterdir())}


# `-S` and the paths by hand: an editable install would put this checkout's packages first.
WORKER = """
import runpy, sys
from pathlib import Path
script, to, workers, *paths = sys.argv[1:]
sys.path += [path for path in paths if "site-packages" in path]
runpy.run_path(script)["dump_all"](Path(to), int(workers))
"""


def compare(old: dict[str, str], new: dict[str, str], shown: int) -> int:
    different = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    for name in different[:shown]:
        lines = difflib.unified_diff(
            old.get(name, "").splitlines(), new.get(name, "").splitlines(), "before", "after", lineterm="", n=1
        )
        print(f"{name}\n" + "\n".join(list(lines)[:24]) + "\n")
    for kind in ("flat", "llvm"):
        counts = [sum(text.count("\n") for name, text in side.items() if name.endswith(kind)) for side in (old, new)]
        print(f"{kind}: {counts[0]} lines before, {counts[1]} after")
    print(f"{len(different)} of {len({*old, *new})} dumps differ")
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare what the compiler makes of all programs at two commits.")
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", help="This checkout as it stands, if left out.")
    parser.add_argument("-n", "--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--llvm", action="store_true", help="LLVM alone, where the form of flat's text has changed.")
    parser.add_argument("--order", action="store_true", help="Names may have other numbers, in the same order.")
    parser.add_argument("--shown", type=int, default=5, help="Of how many dumps differences are shown.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dpl-replay-") as folder:
        before = record(options.before, Path(folder), options.workers)
        after = record(options.after, Path(folder), options.workers)
    if options.llvm:
        before, after = ({k: v for k, v in side.items() if not k.endswith(".flat")} for side in (before, after))
    if options.order:
        before, after = ({k: renumbered(v) for k, v in side.items()} for side in (before, after))
    return compare(before, after, options.shown)


def renumbered(text: str) -> str:
    """The text with the numbers of its names counted from the first."""
    numbers: dict[str, int] = {}
    return NUMBER.sub(lambda found: f".{numbers.setdefault(found[0], len(numbers))}", text)


if __name__ == "__main__":
    sys.exit(main())
