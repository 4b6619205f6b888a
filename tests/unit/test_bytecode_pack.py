"""Modules whose bytecode is packed in DPL's cache."""

from __future__ import annotations

import fcntl
import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType

import pytest
from dplc.bytecode import MANY, Loader, Pack, appending, stamp


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("DPL_CACHE", str(tmp_path / "cache"))
    made = [tmp_path / f"packed_{i}.py" for i in range(MANY)]
    for i, path in enumerate(made):
        path.write_text(f"number = {i}\n")
    return made


def packed(sources: list[Path], file: Path) -> Pack:
    """The pack of a run after one that has imported these modules."""
    run(sources, file).save()
    Loader.pack = Pack(str(file))
    return Loader.pack


def number(pack: Pack, source: Path) -> int | None:
    """What a module says that is imported from the pack; None if it is not there."""
    spec = pack.find_spec(source.stem)
    if spec is None or (code := pack.code(source.stem, str(source), stamp(str(source)))) is None:
        return None
    return said(code)


def said(code: CodeType) -> int:
    scope = dict[str, int]()
    exec(code, scope)
    return scope["number"]


def test_a_later_run_finds_the_modules(sources, tmp_path: Path) -> None:
    pack = packed(sources, tmp_path / "cache" / "pack")
    assert [number(pack, source) for source in sources] == list(range(MANY))
    more = tmp_path / "later.py"
    more.write_text("number = 100\n")
    others = [more, *(tmp_path / f"other_{i}.py" for i in range(MANY))]
    for path in others[1:]:
        path.write_text("number = 7\n")
    pack = packed(others, tmp_path / "cache" / "pack")
    assert [number(pack, source) for source in (sources[3], more, others[-1])] == [3, 100, 7]


def run(sources: list[Path], file: Path) -> Pack:
    """A run that has imported these modules, and has not ended."""
    Loader.pack = pack = Pack(str(file))
    for path in sources:
        assert Loader(path.stem, str(path)).get_code(path.stem)
    return pack


def test_one_of_several_runs_saves(sources, tmp_path: Path) -> None:
    file = tmp_path / "cache" / "pack"
    first, second, later = (run(sources, file) for _ in range(3))
    first.save()
    size = file.stat().st_size
    second.save()
    assert file.stat().st_size == size
    with appending(f"{file}-lock") as lock:
        file.unlink()
        fcntl.flock(lock, fcntl.LOCK_EX)
        later.save()
        assert not file.exists()  # another run is about to write
    later.save()
    assert [number(Pack(str(file)), source) for source in sources] == list(range(MANY))


def test_a_module_that_has_changed_is_not_taken(sources, tmp_path: Path) -> None:
    pack = packed(sources, tmp_path / "cache" / "pack")
    sources[0].write_text("number = 1000\n")
    sources[1].unlink()
    assert [number(pack, source) for source in sources[:3]] == [None, None, 2]
    code = Loader(sources[0].stem, str(sources[0])).get_code(sources[0].stem)  # the finders of folders ask it
    assert code and said(code) == 1000


def test_a_damaged_pack_is_not_taken(sources, tmp_path: Path) -> None:
    file = tmp_path / "cache" / "pack"
    packed(sources, file)
    data = bytearray(file.read_bytes())
    data[len(data) - 1] ^= 1
    file.write_bytes(data)
    assert number(Pack(str(file)), sources[-1]) is None
    assert number(Pack(str(file)), sources[0]) == 0
    file.unlink()
    assert number(Pack(str(file)), sources[0]) is None


def test_bytecode_that_is_cut_off(sources, tmp_path: Path) -> None:
    """Python does not notice that the disk is full when it writes bytecode beside a source."""
    kept = Path(cache_from_source(str(sources[3])))
    kept.parent.mkdir(exist_ok=True)
    py_compile.compile(str(sources[3]), str(kept), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    kept.write_bytes(kept.read_bytes()[:40])
    Loader.pack = Pack(str(tmp_path / "cache" / "pack"))
    code = Loader("cut", str(sources[3])).get_code("cut")
    assert code is not None and said(code) == 3


@pytest.mark.parametrize("forbidden", [False, True])
def test_bytecode_lies_in_the_cache_if_python_must_not_write_it(
    sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forbidden: bool
) -> None:
    """Otherwise Python has it beside the sources, and the pack has a copy."""
    monkeypatch.setattr(sys, "dont_write_bytecode", forbidden)
    Loader.pack = pack = Pack(str(tmp_path / "cache" / "pack"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # as `keep` does
    for path in sources:
        assert pack.loader(path.stem, str(path)).get_code(path.stem)
    beside = [Path(cache_from_source(str(path))).exists() for path in sources]
    assert beside == [not forbidden] * MANY
    assert len(list((tmp_path / "cache").rglob("*.pyc"))) == MANY * forbidden
    pack.save()
    assert [number(Pack(pack.path), source) for source in sources] == list(range(MANY))
