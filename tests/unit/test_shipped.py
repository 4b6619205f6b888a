"""Entries that travel with an installation: used if they fit and are whole, and nothing is made then."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from dpl.syntax import tables
from dpl.system import kept, shipped
from dpl.types import library
from dplc.machine.llvm import target
from dplc.machine.runtime import shared
from dplc.tools.first_run import RUNTIME, make_runtime_beside


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installation without entries, and an empty cache."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "shipped")
    monkeypatch.setenv("DPL_CACHE", str(tmp_path / "cache"))
    caches = (library.library, tables.tables, shared.shared, shared._kept)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path / "shipped"
    for cached in caches:
        cached.cache_clear()


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("a.dp", "b.py")]
    for path in paths:
        path.write_text(path.name)
    return paths


def test_what_was_made_from_these_sources_is_found(folder: Path, sources: list[Path]) -> None:
    assert shipped.find("x", sources) is None
    shipped.write("x", sources, ["here"], b"old")
    shipped.write("x", sources, ["here"], b"made")
    assert shipped.find("x", reversed(sources), "here") == b"made"
    assert [file.name.partition("-")[0] for file in folder.iterdir()] == ["x"]


def test_times_do_not_count(folder: Path, sources: list[Path]) -> None:
    shipped.write("x", sources, (), b"made")
    for path in sources:
        os.utime(path, (1, 1))
    assert shipped.find("x", sources) == b"made"


def test_other_sources_are_another_entry(folder: Path, sources: list[Path]) -> None:
    shipped.write("x", sources, ["here"], b"made")
    assert shipped.find("x", sources, "there") is None
    assert shipped.find("x", sources[:1], "here") is None
    sources[0].write_text("A.dp")
    assert shipped.find("x", sources, "here") is None


def test_damage_is_seen(folder: Path, sources: list[Path]) -> None:
    shipped.write("x", sources, (), b"made")
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    for damaged in (b"", whole[:-1], whole[:-1] + b"E", b"E" + whole[1:]):
        entry.write_bytes(damaged)
        assert shipped.find("x", sources) is None


def test_nothing_is_made_that_was_shipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = library.Library({}, {}, {}, {"what was shipped"})
    monkeypatch.setattr(library, "check_library", lambda: known)
    monkeypatch.setattr(shared, "build", lambda: shared.Shared({"rt.x": "text"}, b"code"))
    shipped.write(library.NAME, library.sources(), (), library.packed_library())
    shipped.write(tables.NAME, [tables.source()], tables.version(), tables.packed_tables())
    shipped.write(shared.NAME, shared.sources(), (target.describe(),), shared.packed())
    for module, maker in ((library, "check_library"), (tables, "construct"), (shared, "build")):
        monkeypatch.setattr(module, maker, lambda *_: pytest.fail("made again"))
    assert library.library().loud == {"what was shipped"}
    assert tables.tables().starts and shared.shared() == shared.Shared({"rt.x": "text"}, b"code")


@pytest.mark.slow
def test_a_wheel_brings_them(tmp_path: Path) -> None:
    """Its first run checks and compiles nothing but the program."""
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT]
    made = subprocess.run(pip, capture_output=True, text=True, timeout=600, check=False)
    if made.returncode:
        pytest.skip(f"no wheel can be built here: {made.stderr[-300:]}")
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    names = [path.name.partition("-")[0] for path in (tmp_path / "installed" / "dpl" / "shipped").iterdir()]
    assert sorted(names) == ["grammar", "library", "runtime"]
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path / "installed")!r})
import dplc
assert dplc.__file__.startswith({str(tmp_path)!r})
from dpl.types import library
from dpl.syntax import tables
from dplc.machine.runtime import shared
del library.check_library, tables.construct, shared.build
sys.argv = ["dpl", "run", {str(ROOT / "examples" / "hello.dp")!r}]
from dplc.cli import main
main()
"""
    environment = {**os.environ, "DPL_CACHE": str(tmp_path / "cache")}
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert (run.stdout, run.stderr) == ("Hello, world!\n", "")


def test_the_runtime_is_made_beside_the_library_if_none_was_shipped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "posix_spawn", lambda program, words, *_, **__: begun.append(words[-1]) or 1)
    with monkeypatch.context() as unwritable:
        unwritable.setattr(os, "access", lambda *_: False)
        make_runtime_beside()
        assert not begun
    make_runtime_beside()
    assert begun == [RUNTIME]
    kept.write(library.entry(), b"checked")
    make_runtime_beside()
    library.entry().unlink()
    kept.write(shared.entry(), b"compiled")
    make_runtime_beside()
    shared.entry().unlink()
    shipped.write(shared.NAME, shared.sources(), (target.describe(),), b"compiled")
    make_runtime_beside()
    assert begun == [RUNTIME]
