"""Compiled programs on disk: found, not found, damaged, pruned."""

import os

import pytest
from dpl.source import Source
from dpl.system import kept
from dplc.machine.llvm import processor, target
from dplc.machine.object.image import Image
from dplc.machine.run import cache
from dplc.machine.run.program import Program

IMAGE = Image(b"image", 4096, 8192, 10000, b"words", ["sin"], {"dpl_entry": 16}, {"dpl f": 24})
PROGRAM = Program(IMAGE, b"\x7fELF code", "[[], []]", b"warnings", b"text")


def contents(program):
    """All that a program has."""
    image = program.image
    return [getattr(program, name) for name in Program.__slots__ if name != "image"], [
        getattr(image, name) for name in Image.__slots__
    ]


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("DPL_CACHE", str(tmp_path / "cache"))
    main, module = tmp_path / "main.dp", tmp_path / "model.dp"
    main.write_text('import "model.dp"\n')
    module.write_text("let x = 1\n")
    cache.store(main, [Source(p.name, path=p) for p in (main, module)], PROGRAM)
    return main, module


def test_what_was_stored_is_found(program):
    assert contents(cache.find(program[0])) == contents(PROGRAM)


@pytest.mark.parametrize("changed", (0, 1))
def test_a_changed_file_is_another_program(program, changed):
    program[changed].write_text("let x = 2\n")
    assert cache.find(program[0]) is None


def test_damage_is_seen(program):
    (entry,) = (program[0].parent / "cache" / "objects").iterdir()
    for damaged in (entry.read_bytes()[:-1], b"", b"foreign", entry.read_bytes().replace(b"ELF", b"FLE")):
        entry.write_bytes(damaged)
        assert cache.find(program[0]) is None


def test_the_least_recently_used_go_first(tmp_path):
    for i in range(4):
        (tmp_path / str(i)).write_bytes(b"x" * 10)
        os.utime(tmp_path / str(i), (i, i))
    kept.prune(tmp_path, most=20)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["2", "3"]


def test_without_a_place_to_write_nothing_happens(program, monkeypatch):
    monkeypatch.setenv("DPL_CACHE", "/proc/nowhere")
    cache.store(program[0], [], PROGRAM)
    assert cache.find(program[0]) is None


def test_the_processor_is_part_of_the_name(monkeypatch):
    known = processor.processor()
    assert b"flags" in known or b"Features" in known
    assert b"MHz" not in known and b"processor" not in known and known == processor.processor()
    monkeypatch.setattr("builtins.open", lambda *_: (_ for _ in ()).throw(FileNotFoundError()))
    assert processor.processor() == target.describe().encode()  # where there is no /proc
