"""The cache: entries that are whole and this user's, or none; made by one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from dpl.system import kept


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The cache, which is not there yet."""
    monkeypatch.setenv("DPL_CACHE", str(tmp_path / "cache"))
    kept.usable.cache_clear()
    yield tmp_path / "cache"
    kept.usable.cache_clear()


def entry() -> Path:
    path = kept.place("objects", "x")
    kept.write(path, b"what was made")
    return path


def test_what_is_written_is_read_and_is_for_this_user_alone(folder: Path) -> None:
    path = entry()
    assert kept.read(path) == b"what was made"
    modes = [place.stat().st_mode & 0o777 for place in (folder, path.parent, path)]
    assert modes == [0o700, 0o700, 0o600]


def test_every_damage_is_seen(folder: Path) -> None:
    path = entry()
    whole = path.read_bytes()
    for i in range(len(whole)):
        path.write_bytes(whole[:i])
        assert kept.read(path) is None
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        assert kept.read(path) is None
    path.write_bytes(whole)
    assert kept.read(path) == b"what was made"


def test_what_others_may_have_written_is_not_read(folder: Path) -> None:
    path = entry()
    path.chmod(0o620)
    assert kept.read(path) is None
    if os.geteuid() == 0:
        path.chmod(0o600)
        os.chown(path, 65534, -1)
        assert kept.read(path) is None


def test_a_folder_that_others_may_write_to_is_not_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = entry()
    folder.chmod(0o777)
    kept.usable.cache_clear()
    for _ in range(2):
        assert kept.read(path) is None
        kept.write(path, b"other")
    assert capsys.readouterr().err == f"warning: the cache {folder} is not used: other users may write to it\n"
    folder.chmod(0o755)
    kept.usable.cache_clear()
    assert kept.read(path) == b"what was made"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_somebody_elses_folder_is_not_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser can give a folder away")
    path = entry()
    os.chown(folder, 65534, -1)
    kept.usable.cache_clear()
    assert kept.read(path) is None
    assert "belongs to another user" in capsys.readouterr().err


@pytest.mark.parametrize("odd", ["file", "link", "nowhere"])
def test_odd_places(folder: Path, odd: str) -> None:
    """A folder may be reached by a link; where there can be none, nothing is kept and nothing is said."""
    if odd == "file":
        folder.write_text("")
    elif odd == "link":
        (folder.parent / "other").mkdir()
        folder.symlink_to(folder.parent / "other")
    else:
        folder.symlink_to("/proc/nowhere")
    assert kept.read(entry()) == (b"what was made" if odd == "link" else None)


FULL = """
import resource, sys
from dpl.system import kept
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
kept.write(kept.place("objects", "x"), bytes(1000))
print([p.name for p in kept.place("objects").iterdir()])
"""


def test_a_full_disk_leaves_nothing_behind(folder: Path) -> None:
    assert python(FULL) == "[]\n"


TURNS = """
import sys, time
from dpl.system import kept
path = kept.place("x")
def make():
    print("made")
    kept.once(lambda: None, lambda: 1)  # what is made needs something else that is made
    time.sleep(0.3)
    kept.write(path, b"made")
    return b"made"
assert kept.once(lambda: kept.read(path), make) == b"made"
"""


def test_one_process_makes_what_the_others_wait_for(folder: Path) -> None:
    processes = [started(TURNS) for _ in range(4)]
    assert sorted(process.communicate(timeout=60)[0] for process in processes) == ["", "", "", "made\n"]


def test_who_waits_too_long_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "PATIENCE", 0)
    script = "import sys\nfrom dpl.system import kept\nwith kept.alone(): print('in', flush=True); sys.stdin.read()"
    holder = started(script)
    assert holder.stdout is not None and holder.stdout.readline() == "in\n"
    assert kept.once(lambda: None, lambda: 5) == 5
    holder.communicate("", timeout=60)


def test_entries_with_locks_of_their_own_do_not_wait(folder: Path) -> None:
    script = "import sys\nfrom dpl.system import kept\nwith kept.alone('lock-x'): print(flush=True); sys.stdin.read()"
    holder = started(script)
    assert holder.stdout is not None and holder.stdout.readline() == "\n"
    assert kept.once(lambda: None, lambda: 5) == 5
    holder.communicate("", timeout=60)
    kept.clean()
    assert not list(folder.glob("lock*"))


def test_only_entries_are_cleaned(folder: Path) -> None:
    path = entry()
    (folder / "mine.txt").write_text("not the cache's")
    kept.clean()
    assert not path.exists() and [p.name for p in folder.iterdir()] == ["mine.txt"]


def started(text: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lang")}
    return subprocess.Popen(
        [sys.executable, "-c", text], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def python(text: str) -> str:
    process = started(text)
    return process.communicate(timeout=60)[0]


@pytest.mark.slow
def test_every_kind_of_entry_is_made_again_in_silence(dpl, tmp_path: Path) -> None:
    """Of a program with a module, with Python's bytecode among the entries."""
    (tmp_path / "model.dp").write_text("let y = 2\n")
    main = tmp_path / "main.dp"
    main.write_text('import "model.dp"\ndo print (Model.y + 1)\n')
    cache = tmp_path / "cache"
    options = {"DPL_CACHE": str(cache), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    assert dpl("run", main, **options).stdout == "3\n"
    entries = [p for p in cache.rglob("*") if p.is_file() and p.stat().st_size]
    kinds = {p.relative_to(cache).parts[0].partition("-")[0] for p in entries}
    assert kinds == {"objects", "modules", "imports", "bytecode", "stdlib", "grammar"}
    for i, path in enumerate(entries):
        data = bytearray(path.read_bytes())
        data[(i * 7919) % len(data)] ^= 1 << (i % 8)
        path.write_bytes(data[: len(data) // 2] if i % 3 == 0 else data)
    for verb in ("run", "check"):
        run = dpl(verb, main, **options)
        assert (run.returncode, run.stdout, run.stderr) == (0, "3\n" if verb == "run" else "", "")
